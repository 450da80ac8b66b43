//! Monotonic constraints: trees that rise, or fall, with a feature.
//!
//! While a tree with one component grows ([`scan_ordered`]), a split by a constrained feature must
//! keep the order of the mean gradients, and puts a value between its two sides: no node below the
//! lower side may lie above it, no node below the upper side may lie below it.
//!
//! What the leaves hold in the end is decided later, from other sums and for every output. Two leaves
//! are in order if one row may fall into the first and another into the second that differs from it
//! in constrained features alone, in their direction. [`order_leaves`] brings the values of the
//! leaves into that order, which makes the tree monotone. Missing values have no order.

use crate::category::CategorySet;
use crate::histogram::Layout;
use crate::split::{Found, SplitLimits};
use crate::tree::Node;

/// What the values below a node may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    low: f64,
    high: f64,
}

impl Bounds {
    /// Any value.
    pub const NONE: Bounds = Bounds { low: f64::NEG_INFINITY, high: f64::INFINITY };

    fn clip(&self, value: f64) -> f64 {
        value.max(self.low).min(self.high)
    }

    /// Bounds of the left and right child, with `middle` between them; `sign` is that of the
    /// constraint.
    fn parted(self, sign: i8, middle: f64) -> [Bounds; 2] {
        let middle = self.clip(middle);
        let below = Bounds { low: self.low, high: middle };
        let above = Bounds { low: middle, high: self.high };
        match sign {
            0 => [self, self],
            1.. => [below, above],
            _ => [above, below],
        }
    }
}

/// The order that the two sides of a split must keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Order {
    /// 1: the right side may not be lower; -1: not higher; 0: either.
    pub sign: i8,
    /// What the mean gradients of both sides are clipped to, in quanta of gradient by weight.
    pub bounds: Bounds,
}

impl Order {
    /// Whether it leaves all splits as they are.
    pub fn is_free(&self) -> bool {
        self.sign == 0 && self.bounds == Bounds::NONE
    }

    /// Bounds of the children of a split with these left and total lanes.
    pub fn parted(&self, layout: &Layout, left: &[i64], total: &[i64]) -> [Bounds; 2] {
        let [a, b] = sides(layout, left, total).map(|side| self.bounds.clip(side.mean()));
        self.bounds.parted(self.sign, (a + b) / 2.0)
    }
}

/// Sum and weight of one side of a split, in quanta.
#[derive(Clone, Copy)]
struct Side {
    sum: f64,
    weight: f64,
}

impl Side {
    fn mean(&self) -> f64 {
        self.sum / self.weight
    }

    /// By how much the sum of squares falls when the side is given a value.
    fn fall(&self, value: f64) -> f64 {
        value * (2.0 * self.sum - value * self.weight)
    }
}

fn sides(layout: &Layout, left: &[i64], total: &[i64]) -> [Side; 2] {
    let (sum, weight) = (layout.sum(left, 0), layout.weight(left));
    let rest = Side { sum: layout.sum(total, 0) - sum, weight: layout.weight(total) - weight };
    [Side { sum, weight }, rest]
}

/// The best cut of one component in which both sides, clipped to the bounds, keep their order: the
/// same candidates in the same order as without constraints.
pub fn scan_ordered(
    layout: &Layout,
    histogram: &[i64],
    n_bins: usize,
    has_missing: bool,
    total: &[i64],
    limits: SplitLimits,
    order: Order,
) -> Found {
    let width = layout.width;
    let bin_lanes = |bin: usize| &histogram[bin * width..(bin + 1) * width];
    let any_missing = has_missing && layout.count(bin_lanes(n_bins)) > 0;
    let min = limits.min_samples_leaf.max(1);
    let mut best: Found = None;
    let mut keep = |left: &[i64], bin: usize, missing_left: bool, sign: i8| {
        let count = layout.count(left);
        if count < min || layout.count(total) - count < min {
            return;
        }
        let score = score_of(layout, left, total, Order { sign, ..order });
        if score > best.map_or(0.0, |best| best.0) {
            best = Some((score, bin, missing_left));
        }
    };
    let mut left = vec![0i64; width];
    let mut with_missing = vec![0i64; width];
    for bin in 0..n_bins {
        let lanes = bin_lanes(bin);
        left.iter_mut().zip(lanes).for_each(|(left, lane)| *left += lane);
        if bin == n_bins - 1 {
            // All values left, only the missing right: these have no order.
            keep(&left, bin, false, 0);
        } else if layout.count(lanes) > 0 {
            keep(&left, bin, false, order.sign);
            if any_missing {
                let missing = bin_lanes(n_bins);
                for ((sum, left), missing) in with_missing.iter_mut().zip(&left).zip(missing) {
                    *sum = left + missing;
                }
                keep(&with_missing, bin, true, order.sign);
            }
        }
    }
    best
}

/// Gain of a cut times the node's weight, in quanta; 0 where it breaks the order.
fn score_of(layout: &Layout, left: &[i64], total: &[i64], order: Order) -> f64 {
    let [a, b] = sides(layout, left, total);
    if a.weight <= 0.0 || b.weight <= 0.0 {
        return 0.0;
    }
    let [value_a, value_b] = [a, b].map(|side| order.bounds.clip(side.mean()));
    if f64::from(order.sign) * (value_b - value_a) < 0.0 {
        return 0.0;
    }
    if value_a == a.mean() && value_b == b.mean() {
        let distance = a.sum * b.weight - b.sum * a.weight;
        return distance * distance / (a.weight * b.weight);
    }
    let node = Side { sum: a.sum + b.sum, weight: a.weight + b.weight };
    let before = node.fall(order.bounds.clip(node.mean()));
    (a.fall(value_a) + b.fall(value_b) - before) * node.weight
}

/// The values of a feature with which a row may come to a leaf.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// Numbers above this one,
    above: f32,
    /// up to this one.
    up_to: f32,
    categories: CategorySet,
    missing: bool,
}

/// How the values of a feature that lead to one leaf lie to those that lead to another.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Relation {
    /// Some are the same.
    Meet,
    Below,
    Above,
    Apart,
}

impl Span {
    const ALL: Span = Span {
        above: f32::NEG_INFINITY,
        up_to: f32::INFINITY,
        categories: CategorySet::ALL,
        missing: true,
    };

    /// What is left of it on one side of a split.
    fn beyond(mut self, node: &Node, sets: &[CategorySet], left: bool) -> Span {
        self.missing &= node.missing_left() == left;
        if node.is_categorical() {
            let set = sets[node.cut as usize];
            self.categories = self.categories.and(if left { set } else { set.complement() });
        } else if left {
            self.up_to = self.up_to.min(node.threshold);
        } else {
            self.above = self.above.max(node.threshold);
        }
        self
    }

    fn relation(&self, other: &Span) -> Relation {
        let numbers = self.above.max(other.above) < self.up_to.min(other.up_to);
        let categories = self.categories.and(other.categories) != CategorySet::default();
        let have_numbers = self.above < self.up_to && other.above < other.up_to;
        if (self.missing && other.missing) || (numbers && categories) {
            Relation::Meet
        } else if have_numbers && self.up_to <= other.above {
            Relation::Below
        } else if have_numbers && other.up_to <= self.above {
            Relation::Above
        } else {
            Relation::Apart
        }
    }
}

/// A leaf: its number, and the spans of the features on its path.
struct Region {
    leaf: usize,
    spans: Vec<(usize, Span)>,
}

impl Region {
    fn span(&self, feature: usize) -> Span {
        self.spans.iter().find(|(f, _)| *f == feature).map_or(Span::ALL, |(_, span)| *span)
    }

    /// Whether the leaf may not lie above the other.
    fn is_below(&self, other: &Region, signs: &[i8]) -> bool {
        let features = self.spans.iter().chain(&other.spans).map(|(feature, _)| *feature);
        features.into_iter().all(|feature| {
            match self.span(feature).relation(&other.span(feature)) {
                Relation::Meet => true,
                Relation::Below => signs[feature] > 0,
                Relation::Above => signs[feature] < 0,
                Relation::Apart => false,
            }
        })
    }
}

/// The leaves of a tree in an order in which none comes before one that may not lie above it: the
/// lower side of every constrained split first.
fn regions(nodes: &[Node], sets: &[CategorySet], signs: &[i8]) -> Vec<Region> {
    let mut found = Vec::new();
    let mut open = vec![(0usize, Vec::new())];
    while let Some((k, spans)) = open.pop() {
        let node = &nodes[k];
        if node.is_leaf() {
            found.push(Region { leaf: node.feature as usize, spans });
            continue;
        }
        let feature = node.feature_index();
        let side = |left: bool| {
            let mut spans = spans.clone();
            match spans.iter_mut().find(|(f, _)| *f == feature) {
                Some((_, span)) => *span = span.beyond(node, sets, left),
                None => spans.push((feature, Span::ALL.beyond(node, sets, left))),
            }
            (node.left as usize + usize::from(!left), spans)
        };
        let left_first = signs[feature] >= 0;
        // The last in is the first out.
        open.push(side(!left_first));
        open.push(side(left_first));
    }
    found
}

/// Which leaves must be in order.
struct LeafOrder {
    /// The leaves, none before one that may not lie above it.
    leaves: Vec<usize>,
    /// For each place in that list, the earlier places that may not lie above it.
    below: Vec<Vec<u32>>,
}

impl LeafOrder {
    fn new(nodes: &[Node], sets: &[CategorySet], signs: &[i8]) -> LeafOrder {
        let regions = regions(nodes, sets, signs);
        let below = (0..regions.len())
            .map(|t| {
                let earlier = 0..t as u32;
                earlier.filter(|&s| regions[s as usize].is_below(&regions[t], signs)).collect()
            })
            .collect();
        LeafOrder { leaves: regions.iter().map(|region| region.leaf).collect(), below }
    }

    /// Pools adjacent violators (Burdakov, Sysoev, Grimvall and Hussian 2006): one leaf after the
    /// other, and each takes in the highest group of leaves below it while that lies above it.
    /// Exact where the leaves form a chain, and close to the nearest ordered values elsewhere.
    fn pool(&self, values: &mut [f64], weights: &[f64]) {
        let lies_above = |t: usize, s: u32| values[s as usize] > values[t];
        if !self.below.iter().enumerate().any(|(t, below)| below.iter().any(|&s| lies_above(t, s)))
        {
            return;
        }
        let n = values.len();
        let mut weights = weights.to_vec();
        // Each group is known by its latest leaf, which holds its value and weight.
        let mut group: Vec<usize> = (0..n).collect();
        let mut members: Vec<Vec<usize>> = (0..n).map(|t| vec![t]).collect();
        for t in 0..n {
            loop {
                let below = members[t].iter().flat_map(|&m| &self.below[m]);
                let groups = below.map(|&s| group[s as usize]).filter(|&g| g != t);
                let highest = groups.reduce(|a, b| if values[b] > values[a] { b } else { a });
                let Some(g) = highest.filter(|&g| values[g] > values[t]) else { break };
                let weight = weights[t] + weights[g];
                let mean = (weights[t] * values[t] + weights[g] * values[g]) / weight;
                // Rounding must not lift the mean above what lies above the group.
                values[t] =
                    if weight > 0.0 { mean.max(values[t]).min(values[g]) } else { values[t] };
                weights[t] = weight;
                for m in std::mem::take(&mut members[g]) {
                    group[m] = t;
                    members[t].push(m);
                }
            }
        }
        for t in 0..n {
            values[t] = values[group[t]];
        }
    }
}

/// Brings leaf values (n_leaves × n_outputs) into the order that `signs` (n_outputs × n_features)
/// ask for. `weights` (n_leaves × n_outputs, or n_leaves × 1 for all outputs) say how much each value
/// matters where several become one.
pub fn order_leaves(
    nodes: &[Node],
    sets: &[CategorySet],
    signs: &[i8],
    weights: &[f64],
    values: &mut [f64],
) {
    let n_leaves = nodes.iter().filter(|node| node.is_leaf()).count();
    let n_outputs = values.len() / n_leaves;
    let n_features = signs.len() / n_outputs;
    let weight_columns = weights.len() / n_leaves;
    // Outputs with the same constraints, most often all of them, share an order.
    let mut known: Option<(&[i8], LeafOrder)> = None;
    for output in 0..n_outputs {
        let signs = &signs[output * n_features..(output + 1) * n_features];
        let mut splits = nodes.iter().filter(|node| node.orders_values());
        if !splits.any(|node| signs[node.feature_index()] != 0) {
            continue;
        }
        let order = match known.take() {
            Some((same, order)) if same == signs => order,
            _ => LeafOrder::new(nodes, sets, signs),
        };
        let place = |leaf: usize| leaf * n_outputs + output;
        let mut in_order: Vec<f64> = order.leaves.iter().map(|&leaf| values[place(leaf)]).collect();
        let weight = |&leaf: &usize| weights[leaf * weight_columns + output % weight_columns];
        let weights: Vec<f64> = order.leaves.iter().map(weight).collect();
        order.pool(&mut in_order, &weights);
        order.leaves.iter().zip(in_order).for_each(|(&leaf, value)| values[place(leaf)] = value);
        known = Some((signs, order));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{MISSING_LEFT, find_leaf};

    /// A random tree over three features; every fourth split sends missing values left.
    fn random_tree(stream: &mut crate::random::Stream, n_splits: usize) -> Vec<Node> {
        let leaf = Node { feature: 0, threshold: 0.0, left: 0, cover: 1.0, gain: 0.0, cut: 0 };
        let mut nodes = vec![leaf];
        for _ in 0..n_splits {
            let leaves: Vec<usize> = (0..nodes.len()).filter(|&k| nodes[k].is_leaf()).collect();
            let k = leaves[stream.below(leaves.len())];
            let flag = if stream.below(4) == 0 { MISSING_LEFT } else { 0 };
            nodes[k].feature = stream.below(3) as u32 | flag;
            nodes[k].threshold = stream.below(8) as f32 + 0.5;
            nodes[k].left = nodes.len() as u32;
            nodes.extend([leaf, leaf]);
        }
        let leaves = nodes.iter_mut().filter(|node| node.is_leaf());
        leaves.enumerate().for_each(|(number, node)| node.feature = number as u32);
        nodes
    }

    #[test]
    fn ordered_leaves_make_a_monotone_tree() {
        let mut stream = crate::random::Key::new(8).stream();
        for case in 0..40 {
            let nodes = random_tree(&mut stream, 3 + case % 9);
            let n_leaves = nodes.len() / 2 + 1;
            let signs: [i8; 6] = [1, -1, 0, (case % 3) as i8 - 1, 0, 1];
            let mut values: Vec<f64> = (0..2 * n_leaves).map(|_| stream.normals().0).collect();
            let weights: Vec<f64> = (0..n_leaves).map(|_| 0.1 + stream.uniform()).collect();
            let before = values.clone();
            order_leaves(&nodes, &[], &signs, &weights, &mut values);
            // Every point of a grid, 9 standing for a missing value, against its neighbours.
            let value = |k: usize| if k == 9 { f32::NAN } else { k as f32 };
            let at = |x: [usize; 3]| find_leaf::<false>(&nodes, &[], &x.map(value));
            for point in 0..1000 {
                let x = [point % 10, point / 10 % 10, point / 100];
                for feature in 0..3 {
                    if x[feature] >= 8 {
                        continue;
                    }
                    let mut next = x;
                    next[feature] += 1;
                    for output in 0..2 {
                        let rise = values[at(next) * 2 + output] - values[at(x) * 2 + output];
                        assert!(rise * f64::from(signs[output * 3 + feature]) >= 0.0);
                    }
                }
            }
            // Weighted means stay, and values in order are left alone.
            for output in 0..2 {
                let mean = |values: &[f64]| -> f64 {
                    (0..n_leaves).map(|leaf| weights[leaf] * values[leaf * 2 + output]).sum()
                };
                assert!((mean(&before) - mean(&values)).abs() < 1e-9);
            }
            let ordered = values.clone();
            order_leaves(&nodes, &[], &signs, &weights, &mut values);
            assert_eq!(values, ordered);
        }
    }

    #[test]
    fn a_chain_of_leaves_gets_its_isotonic_regression() {
        // Values 3, 1, 2, 5 with weights 1, 1, 2, 1 along one feature.
        let node = |feature, threshold, left| Node {
            feature,
            threshold,
            left,
            cover: 1.0,
            gain: 0.0,
            cut: 0,
        };
        let nodes = [
            node(0, 1.5, 1),
            node(0, 0.5, 3),
            node(0, 2.5, 5),
            node(0, 0.0, 0),
            node(1, 0.0, 0),
            node(2, 0.0, 0),
            node(3, 0.0, 0),
        ];
        let mut values = [3.0, 1.0, 2.0, 5.0];
        order_leaves(&nodes, &[], &[1], &[1.0, 1.0, 2.0, 1.0], &mut values);
        assert_eq!(values, [2.0, 2.0, 2.0, 5.0]);
        let mut values = [3.0, 1.0, 2.0, 5.0];
        order_leaves(&nodes, &[], &[-1], &[1.0; 4], &mut values);
        assert_eq!(values, [3.0, 8.0 / 3.0, 8.0 / 3.0, 8.0 / 3.0]);
    }
}
