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

impl OpenLeaf {
    pub fn rank(&self) -> Rank {
        let OpenLeaf { node, split, .. } = self;
        Rank { gain: split.gain, place: (split.feature, split.bin, node.number) }
    }
}

impl Ord for OpenLeaf {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
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

/// What decides which leaf is split first.
#[derive(Clone, Copy)]
pub(super) struct Rank {
    gain: f64,
    /// Feature, bin, node.
    place: (u32, u8, usize),
}

impl Ord for Rank {
    /// Largest gain first; ties go to the lowest feature, the lowest threshold, the oldest node.
    fn cmp(&self, other: &Self) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.place.cmp(&self.place))
    }
}
impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Rank {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Rank {}

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
    pub fn push(&mut self, node: GrowNode, outcome: Outcome, free: &FreeHistograms) -> Result<()> {
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

    /// The leaf with the largest gain, unless it waits to be expanded or one of these goes before it.
    pub fn pop_expanded(&mut self, others: &[Rank]) -> Option<OpenLeaf> {
        let first = self.leaves.peek()?;
        let goes_first = others.iter().all(|rank| *rank < first.rank());
        if goes_first && first.expansion.is_some() { self.leaves.pop() } else { None }
    }

    /// The first of the best `n` leaves that is not expanded.
    pub fn pop_unexpanded(&mut self, n: usize) -> Option<OpenLeaf> {
        let mut expanded = Vec::new();
        let mut found = None;
        while found.is_none() && expanded.len() < n {
            let Some(next) = self.leaves.pop() else { break };
            if next.expansion.is_none() { found = Some(next) } else { expanded.push(next) }
        }
        self.put_back(expanded);
        found
    }

    pub fn iter(&self) -> impl Iterator<Item = &OpenLeaf> {
        self.leaves.iter()
    }

    pub fn len(&self) -> usize {
        self.leaves.len()
    }

    /// Returns leaves that were popped.
    pub fn put_back(&mut self, leaves: impl IntoIterator<Item = OpenLeaf>) {
        self.leaves.extend(leaves);
    }

    /// The leaves that are left, in any order.
    pub fn into_leaves(self) -> impl Iterator<Item = OpenLeaf> {
        self.leaves.into_iter()
    }
}
