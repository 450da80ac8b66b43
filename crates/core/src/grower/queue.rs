//! The queue of leaves that can be split, largest gain first.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::histograms::{FreeHistograms, NodeHistogram};
use super::node::{Expansion, GrowNode, Outcome};
use super::sorted::SortedRows;
use crate::error::{Error, Result};
use crate::split::NodeSplit;

/// A leaf that can be split.
pub(super) struct OpenLeaf {
    pub node: GrowNode,
    pub split: NodeSplit,
    pub histogram: Option<NodeHistogram>,
    pub sorted: Option<SortedRows>,
    /// Its children, if they were prepared ahead of time.
    pub expansion: Option<Box<Expansion>>,
}

impl Ord for OpenLeaf {
    /// Largest gain first; ties go to the lowest feature, the lowest threshold, the oldest node.
    fn cmp(&self, other: &Self) -> Ordering {
        let place = |leaf: &OpenLeaf| (leaf.split.feature, leaf.split.bin, leaf.node.number);
        self.split.gain.total_cmp(&other.split.gain).then(place(other).cmp(&place(self)))
    }
}
impl PartialOrd for OpenLeaf {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for OpenLeaf {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for OpenLeaf {}

/// Leaves by gain.
pub(super) struct LeafQueue {
    leaves: BinaryHeap<OpenLeaf>,
    /// Most leaves that keep their histograms.
    most_kept: usize,
}

impl LeafQueue {
    pub fn new(most_kept: usize) -> LeafQueue {
        LeafQueue { leaves: BinaryHeap::new(), most_kept }
    }

    /// Adds a node if it has a split; what serves its children is kept unless many do.
    pub fn push(
        &mut self,
        node: GrowNode,
        outcome: Outcome,
        free: &mut FreeHistograms,
    ) -> Result<()> {
        let Outcome { split, mut histogram, mut sorted } = outcome;
        if split.is_none() || self.leaves.len() >= self.most_kept {
            free.put(histogram.take())?;
            sorted = None;
        }
        if let Some(split) = split {
            let bytes = 2 * self.leaves.len() * std::mem::size_of::<OpenLeaf>();
            self.leaves.try_reserve(1).map_err(|_| Error::OutOfMemory(bytes))?;
            self.leaves.push(OpenLeaf { node, split, histogram, sorted, expansion: None });
        }
        Ok(())
    }

    /// The leaf with the largest gain.
    pub fn pop(&mut self) -> Option<OpenLeaf> {
        self.leaves.pop()
    }

    /// A leaf just popped, followed by those of the next best `n_ahead` that are not expanded yet.
    pub fn batch(&mut self, first: OpenLeaf, n_ahead: usize) -> Vec<OpenLeaf> {
        let mut batch = vec![first];
        let mut expanded = Vec::new();
        while batch.len() + expanded.len() <= n_ahead {
            let Some(next) = self.leaves.pop() else { break };
            if next.expansion.is_none() { batch.push(next) } else { expanded.push(next) }
        }
        self.put_back(expanded);
        batch
    }

    /// Returns leaves that were popped.
    pub fn put_back(&mut self, leaves: Vec<OpenLeaf>) {
        self.leaves.extend(leaves);
    }

    /// The leaves that are left, in any order.
    pub fn into_leaves(self) -> impl Iterator<Item = OpenLeaf> {
        self.leaves.into_iter()
    }
}
