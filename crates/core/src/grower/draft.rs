//! The tree under construction.

use std::ops::Range;

use super::histograms::FreeHistograms;
use super::node::{Expansion, GrowNode, Outcome};
use super::queue::{LeafQueue, OpenLeaf};
use crate::category::CategorySet;
use crate::error::Result;
use crate::histogram::Layout;
use crate::memory::{collected, grow, room};
use crate::tree::{Node, Tree, cover_scale};

/// Slices of the row partition and the nodes they belong to. Rows ascend within a slice.
pub(super) type Places = Vec<(usize, Range<usize>)>;

/// Nodes in the order in which they were made.
pub(super) struct Draft {
    layout: Layout,
    /// What weights are multiplied by to become covers.
    cover_scale: f64,
    nodes: Vec<Node>,
    /// Sets of categorical splits, in the order of splitting.
    sets: Vec<CategorySet>,
    /// Total weight of each node.
    weights: Vec<f64>,
    /// At least the slices of all leaves.
    places: Places,
}

impl Draft {
    /// A tree of one leaf, with room for `max_leaves`.
    pub fn new(layout: Layout, root: &GrowNode, max_leaves: usize) -> Result<Draft> {
        let mut draft = Draft {
            layout,
            cover_scale: cover_scale(node_weight(&layout, &root.total))?,
            nodes: room(2 * max_leaves)?,
            sets: Vec::new(),
            weights: Vec::new(),
            places: Vec::new(),
        };
        draft.add_leaf(root)?;
        Ok(draft)
    }

    /// Number of leaves.
    pub fn n_leaves(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    fn add_leaf(&mut self, node: &GrowNode) -> Result<()> {
        grow(&mut self.nodes, 1)?;
        grow(&mut self.weights, 1)?;
        grow(&mut self.places, 1)?;
        let weight = node_weight(&self.layout, &node.total);
        let cover = (weight * self.cover_scale) as f32;
        self.nodes.push(Node { feature: 0, threshold: 0.0, left: 0, cover, gain: 0.0, cut: 0 });
        self.weights.push(weight);
        self.places.push((node.number, node.rows.clone()));
        Ok(())
    }

    /// Turns an expanded leaf into an inner node; returns its children.
    pub fn split(&mut self, leaf: OpenLeaf) -> Result<[(GrowNode, Outcome); 2]> {
        let Some(expansion) = leaf.expansion else { unreachable!("leaves are expanded first") };
        let Expansion { mut node, children: [mut left, mut right], outcomes } = *expansion;
        left.number = self.nodes.len();
        right.number = self.nodes.len() + 1;
        node.left = left.number as u32;
        node.cover = self.nodes[leaf.node.number].cover;
        if let Some(categories) = leaf.split.categories {
            node.cut = self.sets.len() as u32;
            self.sets.push(categories);
        }
        self.nodes[leaf.node.number] = node;
        self.add_leaf(&left)?;
        self.add_leaf(&right)?;
        let [left_outcome, right_outcome] = outcomes;
        Ok([(left, left_outcome), (right, right_outcome)])
    }

    /// Closes the leaves that stay unsplit and frees their histograms.
    pub fn close(&mut self, queue: LeafQueue, free: &FreeHistograms) -> Result<()> {
        for leaf in queue.into_leaves() {
            free.put(leaf.histogram)?;
            let Some(expansion) = leaf.expansion else { continue };
            // Expanded in vain: its rows were reordered and ascend within both parts only.
            let [left, right] = expansion.children;
            self.places[leaf.node.number].1 = left.rows;
            grow(&mut self.places, 1)?;
            self.places.push((leaf.node.number, right.rows));
            expansion.outcomes.into_iter().try_for_each(|outcome| free.put(outcome.histogram))?;
        }
        Ok(())
    }

    /// The tree, the weights of its leaves, and the places of rows.
    pub fn finish(self) -> Result<(Tree, Vec<f64>, Places)> {
        let Draft { mut nodes, mut sets, weights, places, .. } = self;
        let n_leaves = number_leaves(&mut nodes);
        let leaves = nodes.iter().zip(&weights).filter(|(node, _)| node.is_leaf());
        let leaf_weights = collected(n_leaves, leaves.map(|(_, &weight)| weight))?;
        number_sets(&mut nodes, &mut sets);
        Ok((Tree { nodes, sets, n_leaves }, leaf_weights, places))
    }
}

fn node_weight(layout: &Layout, total: &[i64]) -> f64 {
    layout.weight(total) * layout.weight_unit
}

fn number_leaves(nodes: &mut [Node]) -> usize {
    let mut n_leaves = 0;
    for node in nodes.iter_mut().filter(|node| node.is_leaf()) {
        node.feature = n_leaves;
        n_leaves += 1;
    }
    n_leaves as usize
}

/// Brings the sets into the order of their nodes.
fn number_sets(nodes: &mut [Node], sets: &mut Vec<CategorySet>) {
    let categorical = nodes.iter_mut().filter(|node| node.is_categorical());
    *sets = categorical
        .enumerate()
        .map(|(number, node)| sets[std::mem::replace(&mut node.cut, number as u32) as usize])
        .collect();
}
