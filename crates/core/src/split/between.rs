//! Cuts between sorted rows, for one component without weights.

use super::scan::small_to_f64;
use super::{BestSplit, NodeSplit, SplitLimits};
use crate::histogram::{N_PLACES, RunningSums, SortKey, bin_of};

/// Cuts looked at together.
const AT_ONCE: usize = 8;

/// How many rows lie left and right of each cut between the sorted rows of a node.
pub struct RowsAside {
    left: [f64; N_PLACES],
    right: [f64; N_PLACES],
    /// Their product; infinite if the cut is not allowed.
    product: [f64; N_PLACES],
}

impl Default for RowsAside {
    fn default() -> RowsAside {
        let zeros = [0.0; N_PLACES];
        RowsAside { left: zeros, right: zeros, product: zeros }
    }
}

impl RowsAside {
    /// Counts the rows beside the cuts of a node of `n` rows.
    pub fn count(&mut self, n: usize, limits: &SplitLimits) {
        let min = limits.min_samples_leaf.max(1) as usize;
        for k in 0..n.next_multiple_of(AT_ONCE).min(N_PLACES) {
            let (left, right) = (k + 1, n.saturating_sub(k + 1));
            (self.left[k], self.right[k]) = (left as f64, right as f64);
            let allowed = left >= min && right >= min;
            self.product[k] = if allowed { self.left[k] * self.right[k] } else { f64::INFINITY };
        }
    }
}

/// The rows of a node, sorted by a feature.
#[derive(Clone, Copy)]
pub struct SortedNode<'a> {
    /// The feature.
    pub feature: u32,
    /// Their keys.
    pub keys: &'a [SortKey],
    /// Their gradients, added up.
    pub sums: &'a RunningSums,
    /// The rows beside the cuts.
    pub aside: &'a RowsAside,
}

impl SortedNode<'_> {
    /// The distance of a cut, squared, which over the product of rows is its score.
    #[inline(always)]
    fn square(&self, k: usize, total: f64) -> f64 {
        let left = small_to_f64(self.sums[k]);
        let distance = left * self.aside.right[k] - (total - left) * self.aside.left[k];
        distance * distance
    }

    /// Whether any cut, also between rows of one bin, scores more than `floor`.
    #[inline(always)]
    fn exceeds(&self, total: f64, floor: f64) -> bool {
        let n = self.keys.len().next_multiple_of(AT_ONCE).min(N_PLACES);
        let mut exceeds = 0u64;
        for k in 0..n {
            exceeds |= u64::from(self.square(k, total) > floor * self.aside.product[k]);
        }
        exceeds > 0
    }

    /// The cut between different bins with the highest score, the first if there are several.
    fn best_cut(&self, total: f64) -> Option<(usize, f64)> {
        let mut best = None;
        let mut best_score = 0.0;
        for (k, pair) in self.keys.windows(2).enumerate() {
            let score = self.square(k, total) / self.aside.product[k];
            if score > best_score && bin_of(pair[0]) != bin_of(pair[1]) {
                best_score = score;
                best = Some((k, score));
            }
        }
        best
    }
}

impl BestSplit {
    /// [`improve_split`](super::improve_split) by the sorted rows of the node, whose gradients are
    /// `total` in all and whose counts take up `count_bits` of a packed lane.
    #[inline(always)]
    pub fn improve_between(
        &mut self,
        node: SortedNode<'_>,
        total: f64,
        count_bits: u32,
        limits: &SplitLimits,
    ) {
        // Most features do not beat the best one so far, and need no division to tell.
        if node.exceeds(total, self.floor) {
            self.keep_between(node, total, count_bits, limits);
        }
    }

    #[inline(never)]
    fn keep_between(
        &mut self,
        node: SortedNode<'_>,
        total: f64,
        count_bits: u32,
        limits: &SplitLimits,
    ) {
        let Some((k, score)) = node.best_cut(total) else { return };
        let Some(gain) = self.better_gain(score, node.feature, limits) else { return };
        self.keep(NodeSplit {
            feature: node.feature,
            bin: bin_of(node.keys[k]),
            categories: None,
            // Without missing values in the node, they follow the larger child.
            missing_left: 2 * (k + 1) >= node.keys.len(),
            gain,
            left: vec![(node.sums[k] << count_bits) + (k + 1) as i64],
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::improve_split;
    use super::super::tests::Summed;
    use super::*;
    use crate::histogram::{SplitWeights, add_up, sort_column};

    #[test]
    fn cuts_between_rows_are_those_of_the_histogram() {
        let mut stream = crate::random::Key::new(5).stream();
        for case in 0..200usize {
            let n = 1 + stream.below(255);
            // From many ties to hardly any.
            let n_bins = 2 + stream.below(if case % 2 == 0 { 6 } else { 250 });
            let column: Vec<u8> = (0..n).map(|_| stream.below(n_bins) as u8).collect();
            let z: Vec<f32> = (0..n).map(|_| stream.below(9) as f32 - 4.0).collect();
            let summed = Summed::new(&column, &z, 1, SplitWeights::Equal, (n_bins, false));
            let limits = SplitLimits::new((case % 12) as i64, 0.0);
            let mut expected = summed.search();
            improve_split(&summed.of_feature(3), &limits, &mut expected);

            let rows: Vec<u32> = (0..n as u32).collect();
            let mut keys = [0; N_PLACES];
            sort_column(&column, &rows, &mut keys);
            let layout = summed.layout;
            let unit = layout.unit;
            let mut gradients = [0; N_PLACES];
            for (gradient, &z) in gradients.iter_mut().zip(&z) {
                *gradient = (f64::from(z) / unit) as i64;
            }
            // What lies behind the last row does not matter.
            let mut sums = [i64::MAX; N_PLACES];
            add_up(&keys[..n], &gradients, &mut sums);
            let mut aside = RowsAside::default();
            aside.count(n, &limits);
            let node = SortedNode { feature: 3, keys: &keys[..n], sums: &sums, aside: &aside };
            let (total, bits) = (layout.sum(&summed.total, 0), layout.count_bits.unwrap());
            let mut best = summed.search();
            best.improve_between(node, total, bits, &limits);
            assert_eq!(best.finish(), expected.finish());
        }
    }
}
