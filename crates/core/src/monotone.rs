//! Monotonic constraints on leaf values: trees that rise, or fall, with a feature.
//!
//! Leaves get their values after the tree has grown, from other sums and for every output, so the
//! order kept while splitting ([`crate::split::SplitOrder`]) is not enough. Leaf A must not lie above
//! leaf B if a row of A can move to B by changing constrained features only, each in its direction.
//! [`order_leaves`] brings the values into that order, which makes the tree monotone. Missing values
//! have no order.

use crate::category::CategorySet;
use crate::tree::Node;

/// The values of a feature that lead to a leaf.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// Numbers are greater than this.
    above: f32,
    /// Numbers are at most this.
    up_to: f32,
    categories: CategorySet,
    missing: bool,
}

/// How the values that lead to one leaf compare with those that lead to another.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Relation {
    /// They overlap.
    Meet,
    Below,
    Above,
    /// They are disjoint and have no order.
    Apart,
}

impl Span {
    const ALL: Span = Span {
        above: f32::NEG_INFINITY,
        up_to: f32::INFINITY,
        categories: CategorySet::ALL,
        missing: true,
    };

    /// The part of it on one side of a split.
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

/// A leaf and the spans of the features on its path.
struct Region {
    leaf: usize,
    spans: Vec<(usize, Span)>,
}

impl Region {
    fn span(&self, feature: usize) -> Span {
        self.spans.iter().find(|(f, _)| *f == feature).map_or(Span::ALL, |(_, span)| *span)
    }

    /// Whether the leaf must not lie above the other.
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

/// The leaves of a tree, the lower side of every constrained split first: a leaf comes after all
/// leaves that must not lie above it.
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
        // The side pushed last is visited first.
        open.push(side(!left_first));
        open.push(side(left_first));
    }
    found
}

/// Which leaves must be in order.
struct LeafOrder {
    /// The leaves, each after all that must not lie above it.
    leaves: Vec<usize>,
    /// For each place in that list, the earlier places that must not lie above it.
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

    /// Pools adjacent violators (Burdakov, Sysoev, Grimvall and Hussian 2006): leaf by leaf, each
    /// absorbs the highest group of leaves that must not lie above it, while that group does.
    /// Exact if the leaves form a chain, else close to the nearest ordered values.
    fn pool(&self, values: &mut [f64], weights: &[f64]) {
        let lies_above = |t: usize, s: u32| values[s as usize] > values[t];
        if !self.below.iter().enumerate().any(|(t, below)| below.iter().any(|&s| lies_above(t, s)))
        {
            return;
        }
        let n = values.len();
        let mut weights = weights.to_vec();
        // A group is named by its latest leaf, which holds its value and weight.
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
                // Rounding must not move the mean out of the range of the two values.
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
/// ask for.
///
/// `weights` (n_leaves × n_outputs, or n_leaves × 1 for all outputs) are the weights of values that
/// are merged. Empty values or weights are left alone.
pub fn order_leaves(
    nodes: &[Node],
    sets: &[CategorySet],
    signs: &[i8],
    weights: &[f64],
    values: &mut [f64],
) {
    if nodes.is_empty() || values.is_empty() || weights.is_empty() {
        return;
    }
    let n_leaves = nodes.iter().filter(|node| node.is_leaf()).count();
    let n_outputs = values.len() / n_leaves;
    let n_features = signs.len() / n_outputs;
    let weight_columns = weights.len() / n_leaves;
    // Outputs usually have the same constraints, and then share an order.
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
    fn no_outputs_and_no_leaves_are_left_alone() {
        let leaf = Node { feature: 0, threshold: 0.0, left: 0, cover: 1.0, gain: 0.0, cut: 0 };
        order_leaves(&[leaf], &[], &[], &[1.0], &mut []);
        order_leaves(&[leaf], &[], &[], &[], &mut [1.0]);
        order_leaves(&[], &[], &[], &[], &mut []);
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
