//! Cuts between sorted rows.

use super::scan::small_to_f64;
use super::{BestSplit, NodeSplit, SplitLimits};
use crate::histogram::{Layout, N_PLACES, RunningSums, SortKey, bin_of};

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

/// Most components of sorted rows.
const MAX_COMPONENTS: usize = 8;

/// How the sums of sorted rows are read: gradients, then weights if rows have them. Rows are counted by
/// their places.
#[derive(Clone, Copy)]
pub struct SortedLanes {
    components: usize,
    is_weighted: bool,
    count_bits: Option<u32>,
}

impl SortedLanes {
    /// For lanes of this layout, at most 32 bits wide if `is_narrow`; none if cuts between their rows
    /// cannot be scored.
    pub fn new(layout: &Layout, is_narrow: bool) -> Option<SortedLanes> {
        let &Layout { components, weight_lanes, count_bits, .. } = layout;
        let is_small = count_bits.is_some() || is_narrow;
        let is_sorted = is_small && components <= MAX_COMPONENTS && !layout.by_component();
        is_sorted.then_some(SortedLanes { components, is_weighted: weight_lanes > 0, count_bits })
    }

    /// Number of lanes.
    pub fn width(&self) -> usize {
        self.components + usize::from(self.is_weighted)
    }

    /// One of the lanes of a row.
    #[inline(always)]
    pub fn of_row(&self, lanes: &[impl Copy + Into<i64>], lane: usize) -> i64 {
        lanes[lane].into() >> self.count_bits.unwrap_or(0)
    }

    /// The lanes of the rows left of a cut, as the layout has them.
    fn left(&self, sums: &[RunningSums], k: usize) -> Vec<i64> {
        let count = (k + 1) as i64;
        match self.count_bits {
            Some(bits) => vec![(sums[0][k] << bits) + count],
            None => sums[..self.width()].iter().map(|lane| lane[k]).chain([count]).collect(),
        }
    }
}

/// Sums and weight of a node.
pub struct NodeSums {
    lanes: SortedLanes,
    sums: [f64; MAX_COMPONENTS],
    weight: f64,
}

impl NodeSums {
    /// From the lanes of a node.
    pub fn new(lanes: SortedLanes, layout: &Layout, total: &[i64]) -> NodeSums {
        let mut sums = [0.0; MAX_COMPONENTS];
        sums[..lanes.components].iter_mut().enumerate().for_each(|(c, sum)| {
            *sum = layout.sum(total, c);
        });
        NodeSums { lanes, sums, weight: layout.weight(total) }
    }
}

/// The rows of a node, sorted by a feature.
#[derive(Clone, Copy)]
pub struct SortedNode<'a> {
    /// The feature.
    pub feature: u32,
    /// Their keys.
    pub keys: &'a [SortKey],
    /// Their lanes, each added up.
    pub sums: &'a [RunningSums],
    /// The rows beside the cuts.
    pub aside: &'a RowsAside,
    /// Those of all rows.
    pub total: &'a NodeSums,
}

impl SortedNode<'_> {
    /// Number of groups of cuts.
    fn n_groups(&self) -> usize {
        self.keys.len().div_ceil(AT_ONCE).min(N_PLACES / AT_ONCE)
    }

    /// Σ D² and a b of a group of cuts, whose ratio is the score. a b is infinite if a cut is not allowed.
    /// Numbers of lanes that are known to the compiler spare loops.
    #[inline(always)]
    fn group(
        &self,
        group: usize,
        components: usize,
        is_weighted: bool,
    ) -> ([f64; AT_ONCE], [f64; AT_ONCE]) {
        let aside = self.aside;
        let mut a = aside.left.as_chunks::<AT_ONCE>().0[group];
        let mut b = aside.right.as_chunks::<AT_ONCE>().0[group];
        let mut product = aside.product.as_chunks::<AT_ONCE>().0[group];
        let lane = |lane: usize| {
            let sums = &self.sums[lane].as_chunks::<AT_ONCE>().0[group];
            std::array::from_fn::<f64, AT_ONCE, _>(|k| small_to_f64(sums[k]))
        };
        if is_weighted {
            a = lane(components);
            for k in 0..AT_ONCE {
                b[k] = self.total.weight - a[k];
                let allowed = (product[k] < f64::INFINITY) & (a[k] > 0.0) & (b[k] > 0.0);
                product[k] = if allowed { a[k] * b[k] } else { f64::INFINITY };
            }
        }
        let square = |c: usize| {
            let (left, total) = (lane(c), self.total.sums[c]);
            std::array::from_fn(|k| {
                let distance = left[k] * b[k] - (total - left[k]) * a[k];
                distance * distance
            })
        };
        if components == 1 {
            return (square(0), product);
        }
        // Four partial sums over the components, as in histograms.
        let mut partial = [[0.0f64; AT_ONCE]; 4];
        for four in (0..components).step_by(4) {
            for (c, partial) in (four..components).zip(&mut partial) {
                let square = square(c);
                (0..AT_ONCE).for_each(|k| partial[k] += square[k]);
            }
        }
        let sum = |k: usize| (partial[0][k] + partial[2][k]) + (partial[1][k] + partial[3][k]);
        (std::array::from_fn(sum), product)
    }

    /// Whether any cut, also between rows of one bin, scores more than `floor`.
    #[inline(always)]
    fn exceeds(&self, components: usize, is_weighted: bool, floor: f64) -> bool {
        let mut exceeds = 0u64;
        for group in 0..self.n_groups() {
            let (squares, products) = self.group(group, components, is_weighted);
            for k in 0..AT_ONCE {
                exceeds |= u64::from(squares[k] > floor * products[k]);
            }
        }
        exceeds > 0
    }

    /// [`exceeds`](Self::exceeds) for one component without weights: one loop, which compilers make
    /// the most of.
    #[inline(always)]
    fn exceeds_alone(&self, floor: f64) -> bool {
        let n = self.keys.len().next_multiple_of(AT_ONCE).min(N_PLACES);
        let (sums, aside, total) = (&self.sums[0], self.aside, self.total.sums[0]);
        let square = |k: usize| {
            let left = small_to_f64(sums[k]);
            let distance = left * aside.right[k] - (total - left) * aside.left[k];
            distance * distance
        };
        let mut exceeds = 0u64;
        for k in 0..n {
            exceeds |= u64::from(square(k) > floor * aside.product[k]);
        }
        exceeds > 0
    }

    /// The cut between different bins with the highest score, the first if there are several.
    fn best_cut(&self) -> Option<(usize, f64)> {
        let SortedLanes { components, is_weighted, .. } = self.total.lanes;
        let mut best = None;
        let mut best_score = 0.0;
        for group in 0..self.n_groups() {
            let (squares, products) = self.group(group, components, is_weighted);
            let pairs = self.keys[group * AT_ONCE..].windows(2);
            for (k, pair) in pairs.take(AT_ONCE).enumerate() {
                let score = squares[k] / products[k];
                if score > best_score && bin_of(pair[0]) != bin_of(pair[1]) {
                    best_score = score;
                    best = Some((group * AT_ONCE + k, score));
                }
            }
        }
        best
    }
}

impl BestSplit {
    /// [`improve_split`](super::improve_split) by the sorted rows of the node.
    #[inline(always)]
    pub fn improve_between(&mut self, node: SortedNode<'_>, limits: &SplitLimits) {
        let SortedLanes { components, is_weighted, .. } = node.total.lanes;
        // Most features do not beat the best one so far, and need no division to tell.
        let exceeds = match (components, is_weighted) {
            (1, false) => node.exceeds_alone(self.floor),
            (1, true) => node.exceeds(1, true, self.floor),
            _ => node.exceeds(components, is_weighted, self.floor),
        };
        if exceeds {
            self.keep_between(node, limits);
        }
    }

    #[inline(never)]
    fn keep_between(&mut self, node: SortedNode<'_>, limits: &SplitLimits) {
        let Some((k, score)) = node.best_cut() else { return };
        let Some(gain) = self.better_gain(score, node.feature, limits) else { return };
        self.keep(NodeSplit {
            feature: node.feature,
            bin: bin_of(node.keys[k]),
            categories: None,
            // Without missing values in the node, they follow the larger child.
            missing_left: 2 * (k + 1) >= node.keys.len(),
            gain,
            left: node.total.lanes.left(node.sums, k),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::improve_split;
    use super::super::tests::Summed;
    use super::*;
    use crate::histogram::{RowLanes, SplitWeights, add_up, quantise, sort_column};
    use crate::parallel::Pool;

    #[test]
    fn cuts_between_rows_are_those_of_the_histogram() {
        let mut stream = crate::random::Key::new(5).stream();
        for case in 0..600usize {
            let n = 1 + stream.below(255);
            let q = [1, 1, 2, 5, 8][case % 5];
            // From many ties to hardly any.
            let n_bins = 2 + stream.below(if case % 2 == 0 { 6 } else { 250 });
            let column: Vec<u8> = (0..n).map(|_| stream.below(n_bins) as u8).collect();
            let z: Vec<f32> = (0..n * q).map(|_| stream.below(9) as f32 - 4.0).collect();
            let weights: Vec<f32> = (0..n).map(|_| stream.below(4) as f32 / 3.0).collect();
            let weights =
                if case % 3 == 0 { SplitWeights::Equal } else { SplitWeights::Rows(&weights) };
            let summed = Summed::new(&column, &z, q, weights, (n_bins, false));
            let limits = SplitLimits::new((case % 12) as i64, 0.0);
            let mut expected = summed.search();
            improve_split(&summed.of_feature(3), &limits, &mut expected);

            let rows: Vec<u32> = (0..n as u32).collect();
            let mut keys = [0; N_PLACES];
            sort_column(&column, &rows, &mut keys);
            let layout = summed.layout;
            let quantised = quantise(&Pool::serial(), &z, q, weights, None, None).unwrap();
            let row_lanes: Vec<i64> = match quantised.lanes {
                RowLanes::Narrow(lanes) => lanes.into_iter().map(i64::from).collect(),
                RowLanes::Wide(lanes) => lanes,
            };
            let lanes = SortedLanes::new(&layout, true).unwrap();
            // What lies behind the last row does not matter.
            let mut sums = vec![[i64::MAX; N_PLACES]; lanes.width()];
            for (lane, sums) in sums.iter_mut().enumerate() {
                let mut values = [0; N_PLACES];
                for (value, row) in values.iter_mut().zip(row_lanes.chunks(layout.width)) {
                    *value = lanes.of_row(row, lane);
                }
                add_up(&keys[..n], &values, sums);
            }
            let mut aside = RowsAside::default();
            aside.count(n, &limits);
            let total = NodeSums::new(lanes, &layout, &summed.total);
            let keys = &keys[..n];
            let node = SortedNode { feature: 3, keys, sums: &sums, aside: &aside, total: &total };
            let mut best = summed.search();
            best.improve_between(node, &limits);
            assert_eq!(best.finish(), expected.finish());
        }
    }
}
