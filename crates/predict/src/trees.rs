//! Trees: read and checked, and what their leaves add to the outputs of a row.

use crate::codes::{of_feature, Codes};
use crate::entries::Entries;
use crate::{broken, Error, Result};

const MISSING_LEFT: u32 = 1 << 31;
const CATEGORICAL: u32 = 1 << 30;
const FLAGS: u32 = MISSING_LEFT | CATEGORICAL;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    PerOutput,
    Vector,
    Scaled,
    Sparse,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    left: u32,      // within the tree, the right child is the next; 0 in a leaf
    feature: u32,   // with flags; in a leaf its number within the tree
    threshold: f32, // values up to this one go left
    set: u32,       // of categories, if they decide
}

/// The trees of a model.
#[derive(Debug)]
pub struct Trees {
    kind: Kind,
    n_outputs: usize,
    nodes: Vec<Node>,
    starts: Vec<usize>,       // where the nodes of each tree begin
    value_starts: Vec<usize>, // and its leaf values, or its leaves if they have a few values each
    sets: Vec<u32>,           // of eight words each
    values: Vec<f32>,
    steps: Vec<f32>,
    leaves: SparseLeaves,
}

/// Leaves with values for a few outputs.
#[derive(Debug)]
struct SparseLeaves {
    starts: Vec<usize>, // where the values of each leaf begin
    outputs: Vec<u32>,
}

impl SparseLeaves {
    fn read(entries: &Entries<'_>, n_leaves: usize, n_values: usize) -> Result<SparseLeaves> {
        let outputs = entries.u32s("leaf_outputs");
        let mut starts = vec![0usize];
        for size in entries.u32s("leaf_sizes") {
            let start = starts[starts.len() - 1];
            let end = start.saturating_add(size as usize);
            let in_order = match outputs.get(start..end) {
                Some(leaf) => {
                    leaf.windows(2).all(|pair| pair[0] < pair[1])
                        && leaf.last().map_or(true, |last| (*last as usize) < entries.n_outputs)
                }
                None => false,
            };
            if !in_order {
                return broken("a leaf has outputs out of order, or that do not exist");
            }
            starts.push(end);
        }
        let all = starts[starts.len() - 1];
        if starts.len() != n_leaves + 1 || all != outputs.len() || all != n_values {
            return broken("its leaves have too many or too few values");
        }
        Ok(SparseLeaves { starts, outputs })
    }
}

impl Trees {
    pub fn read(entries: &Entries<'_>, categories: &[Codes], cuts: &[Codes]) -> Result<Trees> {
        let kind = match entries.key("kind").text() {
            Some("per_output") => Kind::PerOutput,
            Some("vector") => Kind::Vector,
            Some("scaled") => Kind::Scaled,
            Some("sparse") => Kind::Sparse,
            _ => return broken("its trees are of a kind that this release does not know"),
        };
        if entries.array("tree_steps").is_some() != (kind == Kind::Scaled) {
            return broken("its trees lack steps, or need none");
        }
        for name in ["leaf_sizes", "leaf_outputs"] {
            if entries.array(name).is_some() != (kind == Kind::Sparse) {
                return broken(format!("its trees lack {name:?}, or need none"));
            }
        }
        let d = entries.n_outputs;
        let sizes = entries.u32s("tree_sizes");
        let lefts = entries.u32s("node_left");
        let n_splits = lefts.iter().filter(|left| **left != 0).count();
        let width = if kind == Kind::Vector { d } else { 1 };
        let mut trees = Trees {
            kind,
            n_outputs: d,
            nodes: Vec::with_capacity(lefts.len()),
            starts: Vec::with_capacity(sizes.len()),
            value_starts: Vec::with_capacity(sizes.len()),
            sets: entries.u32s("split_categories"),
            values: entries.f32s("leaf_values"),
            steps: entries.f32s("tree_steps"),
            leaves: SparseLeaves { starts: Vec::new(), outputs: Vec::new() },
        };
        let per_round = entries.n_members * if kind == Kind::PerOutput { d } else { 1 };
        if sizes.len() % per_round != 0 {
            return broken(format!("{} trees do not serve all outputs in turn", sizes.len()));
        }
        let splits = Splits {
            features: entries.u32s("split_feature"),
            thresholds: entries.f32s("split_threshold"),
            gains: entries.f32s("split_gain"),
            n_features: entries.n_features,
            categories,
            cuts,
        };
        let n_leaves = lefts.len() - n_splits;
        if kind == Kind::Sparse {
            trees.leaves = SparseLeaves::read(entries, n_leaves, trees.values.len())?;
        }
        let fits = kind == Kind::Sparse || Some(trees.values.len()) == n_leaves.checked_mul(width);
        if splits.features.len() != n_splits || !fits {
            return broken("its trees have too many or too few splits or leaf values");
        }
        if !trees.values.iter().chain(&trees.steps).all(|value| value.is_finite()) {
            return broken("a leaf value or a step of its trees is not finite");
        }
        let covers = entries.f32s("node_cover");
        if covers.iter().any(|cover| cover.is_nan() || *cover < 0.0) {
            return broken("a node of its trees has a negative cover");
        }
        let (mut split, mut set, mut value) = (0, 0, 0);
        for (t, size) in sizes.into_iter().enumerate() {
            let start = trees.nodes.len();
            let end = start.saturating_add(size as usize);
            let lefts = match lefts.get(start..end).filter(|lefts| !lefts.is_empty()) {
                Some(lefts) => lefts,
                None => return broken(format!("tree {t} cannot have {size} nodes")),
            };
            let within =
                |why: String| Error::Broken(format!("tree {t} does not hold together: {why}"));
            check_children(lefts).map_err(within)?;
            trees.starts.push(start);
            trees.value_starts.push(value);
            let mut n_leaves = 0;
            for left in lefts {
                let mut node = Node { left: *left, feature: n_leaves, threshold: 0.0, set };
                if *left == 0 {
                    n_leaves += 1;
                } else {
                    node.feature = splits.features[split];
                    node.threshold = splits.thresholds[split];
                    splits.check(split).map_err(within)?;
                    if node.feature & CATEGORICAL != 0 {
                        splits.check_set(split, trees.set(set)).map_err(within)?;
                        set += 1;
                    }
                    split += 1;
                }
                trees.nodes.push(node);
            }
            value += n_leaves as usize * width;
        }
        if trees.nodes.len() != lefts.len() || set as usize * 8 != trees.sets.len() {
            return broken("it has nodes or category sets that belong to no tree");
        }
        Ok(trees)
    }

    fn set(&self, number: u32) -> Option<&[u32]> {
        self.sets.get(8 * number as usize..8 * number as usize + 8)
    }

    /// Adds what the leaves of a row add to its outputs, tree by tree, in single precision.
    pub fn add_to(&self, row: &[f32], sums: &mut [f32]) {
        for tree in 0..self.starts.len() {
            let (first, d) = (self.value_starts[tree], self.n_outputs);
            let leaf = self.leaf(tree, row);
            match self.kind {
                Kind::PerOutput => sums[tree % d] += self.values[first + leaf],
                Kind::Vector => {
                    let values = &self.values[first + leaf * d..][..d];
                    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
                }
                Kind::Scaled => {
                    let (value, steps) = (self.values[first + leaf], &self.steps[tree * d..][..d]);
                    sums.iter_mut().zip(steps).for_each(|(sum, step)| *sum += step * value);
                }
                Kind::Sparse => {
                    let starts = &self.leaves.starts[first + leaf..];
                    let outputs = &self.leaves.outputs[starts[0]..starts[1]];
                    for (output, value) in outputs.iter().zip(&self.values[starts[0]..]) {
                        sums[*output as usize] += value;
                    }
                }
            }
        }
    }

    fn leaf(&self, tree: usize, row: &[f32]) -> usize {
        let nodes = &self.nodes[self.starts[tree]..];
        let mut node = &nodes[0];
        while node.left != 0 {
            let value = row[(node.feature & !FLAGS) as usize];
            let category = value as u8;
            let missing_left = node.feature & MISSING_LEFT != 0;
            let left = if node.feature & CATEGORICAL == 0 {
                value <= node.threshold || (value.is_nan() && missing_left)
            } else if f32::from(category) == value {
                contains(&self.sets[8 * node.set as usize..], category)
            } else {
                missing_left
            };
            node = &nodes[node.left as usize + usize::from(!left)];
        }
        node.feature as usize
    }
}

fn contains(set: &[u32], category: u8) -> bool {
    set[usize::from(category >> 5)] >> (category & 31) & 1 == 1
}

/// Every node but the root is the child of one node before it.
fn check_children(lefts: &[u32]) -> std::result::Result<(), String> {
    let mut has_parent = vec![false; lefts.len()];
    for (k, left) in lefts.iter().enumerate().filter(|(_, left)| **left != 0) {
        let left = *left as usize;
        if left <= k || left + 1 >= lefts.len() {
            return Err(format!("node {k} has child {left} of {} nodes", lefts.len()));
        }
        for child in [left, left + 1] {
            if std::mem::replace(&mut has_parent[child], true) {
                return Err(format!("node {child} has two parents"));
            }
        }
    }
    match has_parent.iter().skip(1).position(|parent| !parent) {
        Some(k) => Err(format!("node {} has no parent", k + 1)),
        None => Ok(()),
    }
}

/// The splits of all trees, and what they are checked against.
struct Splits<'a> {
    features: Vec<u32>,
    thresholds: Vec<f32>,
    gains: Vec<f32>,
    n_features: usize,
    categories: &'a [Codes],
    cuts: &'a [Codes],
}

impl Splits<'_> {
    fn check(&self, split: usize) -> std::result::Result<(), String> {
        let (word, threshold) = (self.features[split], self.thresholds[split]);
        let (feature, is_categorical) = (word & !FLAGS, word & CATEGORICAL != 0);
        if feature as usize >= self.n_features {
            return Err(format!("a split looks at feature {feature} of {}", self.n_features));
        }
        if threshold.is_nan() || threshold == f32::NEG_INFINITY {
            return Err(format!("a split has a threshold of {threshold}"));
        }
        if is_categorical && threshold.to_bits() != 0 {
            return Err("a split has a threshold beside its categories".into());
        }
        if self.gains[split].is_nan() || self.gains[split] < 0.0 {
            return Err(format!("a split has a gain of {}", self.gains[split]));
        }
        let known = of_feature(self.categories, feature).map_or(false, |codes| codes.n_codes() > 0);
        if known != is_categorical {
            return Err(format!("a split does not treat feature {feature} as what it is"));
        }
        let has_cut = |codes: &Codes| threshold.is_infinite() || codes.has_cut(threshold);
        if !of_feature(self.cuts, feature).map_or(true, has_cut) {
            return Err(format!("a split is by a cut that feature {feature} does not have"));
        }
        Ok(())
    }

    /// Categories that the feature does not have must go where missing values go.
    fn check_set(&self, split: usize, set: Option<&[u32]>) -> std::result::Result<(), String> {
        let word = self.features[split];
        let count = of_feature(self.categories, word & !FLAGS).map_or(0, Codes::n_codes);
        let missing_left = word & MISSING_LEFT != 0;
        match set {
            None => Err("a split has no category set".into()),
            Some(set) if (count..256).any(|c| contains(set, c as u8) != missing_left) => {
                Err(format!("a split treats more than {count} categories as if they were there"))
            }
            Some(_) => Ok(()),
        }
    }
}
