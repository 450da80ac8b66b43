//! A grown tree: nodes in one array, the two children of a node side by side.

mod descent;

use crate::category::CategorySet;
use crate::error::{Result, invalid};
use crate::reduce::FixedPoint;

/// Flag in [`Node::feature`]: missing values go left.
pub const MISSING_LEFT: u32 = 1 << 31;
/// Flag in [`Node::feature`]: a set of categories goes left, not the values up to a threshold.
pub const CATEGORICAL: u32 = 1 << 30;
/// The flags of [`Node::feature`].
pub const FLAGS: u32 = MISSING_LEFT | CATEGORICAL;
/// Covers are at most two to this power: floats end at 2¹²⁸.
const COVER_BITS: i32 = 126;

/// A node. The root is node 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Node {
    /// Feature to look at, with [`FLAGS`] on top; the leaf number in a leaf.
    pub feature: u32,
    /// Values up to this one go left; +∞ sends all values left and only the missing ones right. 0 in
    /// a categorical split.
    pub threshold: f32,
    /// Left child; the right child is the next node. 0 marks a leaf.
    pub left: u32,
    /// Total weight of the training rows in this node, times [`cover_scale`].
    pub cover: f32,
    /// Variance reduction of the split, in split gradients; 0 in a leaf.
    pub gain: f32,
    /// Last bin that goes left, for data binned as in training; in a categorical split, the number
    /// of its set within the tree.
    pub cut: u32,
}

impl Node {
    /// Whether this is a leaf.
    #[inline(always)]
    pub fn is_leaf(&self) -> bool {
        self.left == 0
    }

    /// The feature without its flags.
    #[inline(always)]
    pub fn feature_index(&self) -> usize {
        (self.feature & !FLAGS) as usize
    }

    /// Whether missing values go left.
    #[inline(always)]
    pub fn missing_left(&self) -> bool {
        self.feature & MISSING_LEFT != 0
    }

    /// Whether a set of categories goes left.
    #[inline(always)]
    pub fn is_categorical(&self) -> bool {
        self.feature & CATEGORICAL != 0 && !self.is_leaf()
    }

    /// Whether the split separates low values from high ones.
    pub fn orders_values(&self) -> bool {
        !self.is_leaf() && !self.is_categorical() && self.threshold < f32::INFINITY
    }

    /// Whether a value goes left. Without `CATEGORIES` the split must be by a threshold.
    #[inline(always)]
    pub fn goes_left<const CATEGORIES: bool>(&self, sets: &[CategorySet], value: f32) -> bool {
        if CATEGORIES && self.is_categorical() {
            goes_left(&sets[self.cut as usize], self.missing_left(), value)
        } else if value.is_nan() {
            self.missing_left()
        } else {
            value <= self.threshold
        }
    }
}

/// Whether a value goes left if a set of categories does. A value that is no category, such as NaN,
/// counts as missing.
#[inline(always)]
pub fn goes_left(set: &CategorySet, missing_left: bool, value: f32) -> bool {
    let category = value as u8;
    let is_category = f32::from(category) == value;
    if is_category { set.contains(category) } else { missing_left }
}

/// A tree as it comes from the grower.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// All nodes, children after their parents.
    pub nodes: Vec<Node>,
    /// The categories that go left in each categorical split, in the order of the nodes.
    pub sets: Vec<CategorySet>,
    /// Number of leaves; leaves are numbered in the order of their nodes.
    pub n_leaves: usize,
}

impl Tree {
    /// The same tree with the covers of rows whose weight in each leaf is `leaf_weights`.
    pub fn with_covers(mut self, leaf_weights: &[f64]) -> Result<Tree> {
        if leaf_weights.len() != self.n_leaves {
            return invalid(format!(
                "a tree of {} leaves came with {} weights",
                self.n_leaves,
                leaf_weights.len()
            ));
        }
        let mut weights = vec![0.0; self.nodes.len()];
        // Children come after their parents.
        for (k, node) in self.nodes.iter().enumerate().rev() {
            weights[k] = if node.is_leaf() {
                leaf_weights[node.feature as usize]
            } else {
                weights[node.left as usize] + weights[node.left as usize + 1]
            };
        }
        let scale = cover_scale(weights.first().copied().unwrap_or(0.0))?;
        for (node, weight) in self.nodes.iter_mut().zip(weights) {
            node.cover = (weight * scale) as f32;
        }
        Ok(self)
    }
}

/// The power of two that weights are multiplied by to become covers, given the weight of the root: 1,
/// unless that would be infinite in single precision. Only ratios of covers are ever used.
pub fn cover_scale(root_weight: f64) -> Result<f64> {
    Ok(FixedPoint::with_bits(root_weight, COVER_BITS)?.scale.min(1.0))
}

/// The leaf that a row of values ends in. `CATEGORIES` says whether the tree has sets.
#[inline(always)]
pub fn find_leaf<const CATEGORIES: bool>(
    nodes: &[Node],
    sets: &[CategorySet],
    row: &[f32],
) -> usize {
    let mut node = &nodes[0];
    while !node.is_leaf() {
        let left = node.goes_left::<CATEGORIES>(sets, row[node.feature_index()]);
        node = &nodes[node.left as usize + usize::from(!left)];
    }
    node.feature as usize
}

/// Rows that go down a tree together, so that the processor need not wait for one of them.
pub const ROWS_AT_ONCE: usize = 8;

/// The leaves that [`ROWS_AT_ONCE`] rows of `p` values end in. `CATEGORIES` says whether the tree has sets.
#[inline(always)]
pub fn find_leaves<const CATEGORIES: bool>(
    nodes: &[Node],
    sets: &[CategorySet],
    rows: &[f32],
    p: usize,
) -> [usize; ROWS_AT_ONCE] {
    let mut at = [0usize; ROWS_AT_ONCE];
    loop {
        let mut moved = false;
        for (k, at) in at.iter_mut().enumerate() {
            let node = &nodes[*at];
            // A leaf stays where it is. Selects, not branches: half of them would be mispredicted.
            let is_leaf = node.is_leaf();
            let feature = if is_leaf { 0 } else { node.feature_index() };
            let value = rows[k * p + feature];
            let left = if CATEGORIES {
                node.goes_left::<CATEGORIES>(sets, value)
            } else {
                (value <= node.threshold) | (value.is_nan() & node.missing_left())
            };
            let next = node.left as usize + usize::from(!left);
            *at = if is_leaf { *at } else { next };
            moved |= !is_leaf;
        }
        if !moved {
            return at.map(|at| nodes[at].feature as usize);
        }
    }
}
