//! The best split of one feature at one node, from its histogram.
//!
//! Variance reduction summed over the components: with left and right sums L, R and weights a, b,
//! gain = Σ_c (L_c b − R_c a)² / (a b (a + b)). In this form a node of equal gradients gains exactly
//! nothing, and mirrored splits gain exactly the same: ties are true ties. If cells are weighted,
//! each component has its own a and b; a component without weight on one side gains nothing.

mod between;
mod binary;
mod candidates;
mod chance;
mod ordered;
mod quick_look;
mod scan;
mod subset;

pub use between::{NodeSums, RowsAside, SortedLanes, SortedNode};
pub use binary::improve_binary;
pub use chance::Chance;
pub use ordered::{Bounds, SplitOrder};
pub use subset::improve_subset;

use crate::category::CategorySet;
use crate::histogram::{FeatureHistogram, Layout};
use candidates::Candidates;
use ordered::scan_ordered;
use scan::scan_feature;

/// A way to split a node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSplit {
    /// Feature to look at.
    pub feature: u32,
    /// Last bin that goes left; for a categorical feature, the last place in the order of its
    /// categories.
    pub bin: u8,
    /// The categories that go left, for a categorical feature.
    pub categories: Option<CategorySet>,
    /// Whether missing values go left.
    pub missing_left: bool,
    /// Variance reduction, in units of split gradients squared times weight, without what chance gains.
    pub gain: f64,
    /// Lanes of the left child.
    pub left: Vec<i64>,
}

impl NodeSplit {
    /// Whether this split is better than another of that gain; the lower feature wins a tie.
    pub fn beats(&self, gain: f64, feature: u32) -> bool {
        self.gain > gain || (self.gain == gain && self.feature < feature)
    }

    /// The best of several splits, in any order.
    pub fn best_of(splits: impl IntoIterator<Item = Option<NodeSplit>>) -> Option<NodeSplit> {
        let better = |best: NodeSplit, next: NodeSplit| {
            if next.beats(best.gain, best.feature) { next } else { best }
        };
        splits.into_iter().flatten().reduce(better)
    }
}

/// The best split of a node so far, with room to look for better ones.
#[derive(Default)]
pub struct BestSplit {
    split: Option<NodeSplit>,
    scale: NodeScale,
    /// Cuts of scores up to this are not better.
    floor: f64,
    candidates: Candidates,
}

impl BestSplit {
    /// Begins the search of a node with these lanes.
    pub fn begin(&mut self, layout: &Layout, total: &[i64]) {
        self.split = None;
        self.scale = NodeScale::new(layout, total);
        self.floor = 0.0;
    }

    /// The best split of the node, if there is one.
    pub fn finish(&mut self) -> Option<NodeSplit> {
        self.split.take()
    }

    /// The score that a cut must exceed to be better.
    pub fn floor(&self) -> f64 {
        self.floor
    }

    /// Lets cuts up to this score count as not better: elsewhere a better one was found.
    pub fn raise_floor(&mut self, floor: f64) {
        self.floor = self.floor.max(floor);
    }

    /// The gain of a cut of this score, if it is enough and better than the best so far.
    fn better_gain(&self, score: f64, feature: u32, limits: &SplitLimits) -> Option<f64> {
        let NodeScale { gain_of_score, gain_of_quantum, count } = self.scale;
        let gain = score * gain_of_score - limits.by_chance;
        let noise = limits.noise * gain_of_quantum * count;
        let enough = score > 0.0 && gain > noise && gain >= limits.min_split_gain;
        let beaten = self.split.as_ref().is_some_and(|best| best.beats(gain, feature));
        (enough && !beaten).then_some(gain)
    }

    fn keep(&mut self, split: NodeSplit) {
        // A little lower, so that rounding hides no tie.
        self.raise_floor(split.gain / self.scale.gain_of_score * (1.0 - 1e-9));
        self.split = Some(split);
    }
}

/// How the scores of a node's cuts become gains.
#[derive(Debug, Clone, Copy, Default)]
struct NodeScale {
    /// Gain of a cut with score 1.
    gain_of_score: f64,
    /// Gain of one quantum² per row.
    gain_of_quantum: f64,
    count: f64,
}

impl NodeScale {
    fn new(layout: &Layout, total: &[i64]) -> NodeScale {
        // score · unit² is still to be divided by the node's weight, unless components did so.
        let square = layout.unit * layout.unit;
        let smallest = smallest_weight(layout, total) * layout.weight_unit;
        let weight = if layout.by_component() { layout.weight_unit } else { smallest };
        NodeScale {
            gain_of_score: square / weight,
            gain_of_quantum: square / smallest,
            count: layout.count(total) as f64,
        }
    }
}

/// What a split must respect.
#[derive(Debug, Clone, Copy)]
pub struct SplitLimits {
    /// Fewest rows in a child.
    pub min_samples_leaf: i64,
    /// Smallest gain worth a split.
    pub min_split_gain: f64,
    /// Gains up to this many quanta² per row are rounding noise.
    pub noise: f64,
    /// What chance gains with categories.
    pub chance: Chance,
    /// What chance gains with the feature that is searched: it does not count.
    pub by_chance: f64,
    /// The order that the two sides must keep, if any; needs a single component.
    pub order: Option<SplitOrder>,
}

impl SplitLimits {
    /// Limits without constraints.
    pub const fn new(min_samples_leaf: i64, min_split_gain: f64) -> SplitLimits {
        // Rounding to quanta alone gains about 1/12 quantum² per row; the best of many cuts gains a
        // few times as much.
        SplitLimits {
            min_samples_leaf,
            min_split_gain,
            noise: 4.0,
            chance: Chance::NONE,
            by_chance: 0.0,
            order: None,
        }
    }
}

/// Puts the best split of a feature into `best` if it is better, and tells whether it is.
///
/// Ties within a feature go to the lowest threshold, then to missing values on the right; ties
/// between features go to the lowest feature.
pub fn improve_split(
    histogram: &FeatureHistogram<'_>,
    limits: &SplitLimits,
    best: &mut BestSplit,
) -> bool {
    let &FeatureHistogram { feature, layout, total, .. } = histogram;
    let BestSplit { candidates, floor, scale, .. } = best;
    let floor = *floor + limits.by_chance / scale.gain_of_score;
    let score = match limits.order {
        Some(order) if !order.is_free() => scan_ordered(histogram, limits, order, candidates),
        _ => scan_feature(histogram, limits, floor, candidates),
    };
    let Some(gain) = best.better_gain(score, feature, limits) else { return false };
    let Some((bin, missing_left)) = best.candidates.first_with(score) else { return false };
    let left = histogram.left_sums(bin, missing_left);
    // A node without missing values says nothing about them: they follow the larger child.
    let missing_left = match histogram.missing() {
        Some(_) => missing_left,
        None => 2 * layout.count(&left) >= layout.count(total),
    };
    let categories = None;
    best.keep(NodeSplit { feature, bin: bin as u8, categories, missing_left, gain, left });
    true
}

/// Total weight of a node; if each component has its own weight, the smallest that is not zero.
fn smallest_weight(layout: &Layout, total: &[i64]) -> f64 {
    if !layout.by_component() {
        return layout.weight(total);
    }
    let weights = layout.weights(total).iter().filter(|&&w| w > 0);
    weights.min().map_or(1.0, |&w| w as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::{NodeLanes, NodeRows, RowLanes, SplitWeights, accumulate, quantise};
    use crate::parallel::Pool;

    /// A histogram that owns its sums.
    pub(super) struct Summed {
        pub layout: Layout,
        pub sums: Vec<i64>,
        pub total: Vec<i64>,
        pub n_bins: usize,
        pub has_missing: bool,
    }

    impl Summed {
        /// The histogram of all rows; bin `n_bins` holds missing values.
        pub fn new(
            column: &[u8],
            z: &[f32],
            q: usize,
            weights: SplitWeights<'_>,
            (n_bins, has_missing): (usize, bool),
        ) -> Summed {
            let gradients = quantise(&Pool::serial(), z, q, weights, None, None).unwrap();
            let layout = gradients.layout;
            let width = layout.width;
            let mut sums = vec![0i64; (n_bins + usize::from(has_missing)) * width];
            let (rows, gathered) = (NodeRows::All, false);
            match &gradients.lanes {
                RowLanes::Narrow(lanes) => {
                    accumulate(column, NodeLanes { rows, lanes, gathered, width }, &mut sums);
                }
                RowLanes::Wide(lanes) => {
                    accumulate(column, NodeLanes { rows, lanes, gathered, width }, &mut sums);
                }
            }
            let mut total = vec![0i64; width];
            for bin in sums.chunks(width) {
                total.iter_mut().zip(bin).for_each(|(t, b)| *t += b);
            }
            Summed { layout, sums, total, n_bins, has_missing }
        }

        /// A search of the node.
        pub fn search(&self) -> BestSplit {
            let mut best = BestSplit::default();
            best.begin(&self.layout, &self.total);
            best
        }

        pub fn of_feature(&self, feature: u32) -> FeatureHistogram<'_> {
            let Summed { layout, sums, total, n_bins, has_missing } = self;
            let (n_bins, has_missing) = (*n_bins, *has_missing);
            FeatureHistogram { feature, n_bins, has_missing, layout, sums, total, occupied: None }
        }
    }

    /// Tries every split by summing rows; `z` and `w` by row and component.
    fn brute(
        column: &[u8],
        z: impl Fn(usize, usize) -> f64,
        w: impl Fn(usize, usize) -> f64,
        q: usize,
        n_bins: usize,
        min: usize,
    ) -> Option<(f64, usize, bool)> {
        let mut best: Option<(f64, usize, bool)> = None;
        let counts = |i: usize| (0..q).any(|c| w(i, c) > 0.0);
        for bin in 0..n_bins {
            // A bin without rows repeats the cut before it, or cuts off the missing values.
            let occupied = (0..column.len()).any(|i| column[i] as usize == bin && counts(i));
            if !occupied && bin < n_bins - 1 {
                continue;
            }
            for missing_left in [false, true] {
                let goes_left = |i: usize| {
                    if column[i] as usize == n_bins {
                        missing_left
                    } else {
                        column[i] as usize <= bin
                    }
                };
                let n = column.len();
                let n_left = (0..n).filter(|&i| goes_left(i) && counts(i)).count();
                let n_right = (0..n).filter(|&i| !goes_left(i) && counts(i)).count();
                if n_left < min || n_right < min {
                    continue;
                }
                let mut gain = 0.0;
                for c in 0..q {
                    let weight = |side: bool| -> f64 {
                        (0..n).filter(|&i| goes_left(i) == side).map(|i| w(i, c)).sum()
                    };
                    let sum = |side: bool| -> f64 {
                        let terms = (0..n).filter(|&i| goes_left(i) == side);
                        terms.map(|i| w(i, c) * z(i, c)).sum()
                    };
                    let (a, b) = (weight(true), weight(false));
                    if a > 0.0 && b > 0.0 {
                        gain += (sum(true) * b - sum(false) * a).powi(2) / (a * b * (a + b));
                    }
                }
                if best.is_none_or(|(g, _, _)| gain > g * (1.0 + 1e-9)) {
                    best = Some((gain, bin, missing_left));
                }
            }
        }
        best
    }

    #[test]
    fn the_best_split_is_the_one_that_brute_force_finds() {
        let mut stream = crate::random::Key::new(11).stream();
        for case in 0..60 {
            let (n, q) = (40, 1 + case % 3);
            let n_bins = 6;
            let missing = case % 2 == 0;
            let slots = n_bins + usize::from(missing);
            let column: Vec<u8> = (0..n).map(|_| stream.below(slots) as u8).collect();
            let z: Vec<f32> = (0..n * q).map(|_| stream.normals().0 as f32).collect();
            // No weights, weights of rows, or weights of components, some of them zero.
            let kind = case % 5;
            let m = if kind < 2 { 1 } else { q };
            let mut draw = || (stream.uniform() as f32 * 2.0 - 0.5).max(0.0);
            let given: Vec<f32> =
                (0..n * m).map(|_| if kind < 2 { 0.5 + draw() } else { draw() }).collect();
            let w = |i: usize, c: usize| if kind == 4 { 1.0 } else { given[i * m + c % m] };
            let weighted: Vec<f32> = (0..n * q).map(|k| z[k] * w(k / q, k % q)).collect();
            let (source, weights) = match kind {
                0 | 1 => (&z, SplitWeights::Rows(&given)),
                2 | 3 => (&weighted, SplitWeights::Components(&given)),
                _ => (&z, SplitWeights::Equal),
            };
            let summed = Summed::new(&column, source, q, weights, (n_bins, missing));
            let mut best = summed.search();
            improve_split(&summed.of_feature(0), &SplitLimits::new(3, 0.0), &mut best);
            let split = best.finish().unwrap();
            let real = |i: usize, c: usize| f64::from(z[i * q + c]);
            let weight = |i: usize, c: usize| f64::from(w(i, c));
            let (gain, bin, missing_left) = brute(&column, real, weight, q, n_bins, 3).unwrap();
            assert!((split.gain - gain).abs() < 1e-5 * gain, "{} {gain}", split.gain);
            assert_eq!(split.bin as usize, bin);
            assert!(!missing || split.missing_left == missing_left);
        }
    }

    #[test]
    fn equal_gradients_gain_nothing() {
        let column: Vec<u8> = (0..30).map(|i| i % 4).collect();
        for q in [1, 2] {
            let z = vec![0.3f32; 30 * q];
            let summed = Summed::new(&column, &z, q, SplitWeights::Equal, (4, false));
            let mut best = summed.search();
            improve_split(&summed.of_feature(0), &SplitLimits::new(1, 0.0), &mut best);
            assert_eq!(best.finish(), None);
        }
    }

    #[test]
    fn a_node_without_rows_has_no_split() {
        for (q, weights) in [(1, SplitWeights::Equal), (2, SplitWeights::Rows(&[]))] {
            let summed = Summed::new(&[], &[], q, weights, (3, true));
            let mut best = summed.search();
            improve_split(&summed.of_feature(0), &SplitLimits::new(0, 0.0), &mut best);
            improve_subset(&summed.of_feature(1), &SplitLimits::new(0, 0.0), &mut best);
            assert_eq!(best.finish(), None);
        }
    }
}
