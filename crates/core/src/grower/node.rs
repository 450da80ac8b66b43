//! Nodes while the tree grows.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::histograms::NodeHistogram;
use super::sorted::SortedRows;
use crate::interaction::Allowed;
use crate::random::Key;
use crate::split::{Bounds, NodeSplit};
use crate::tree::Node;

/// A node before it is split.
pub(super) struct GrowNode {
    /// Its number in the tree, known once its parent is split.
    pub number: usize,
    /// Its slice of the row partition.
    pub rows: Range<usize>,
    pub depth: usize,
    /// Key of its random draws: the path from the root.
    pub path: Key,
    /// Lanes of its rows on all ranks.
    pub total: Vec<i64>,
    pub floor: Floor,
    pub constraints: Constraints,
}

/// The score that a cut of a node must exceed to be the best, as far as all threads know.
#[derive(Default)]
pub(super) struct Floor(AtomicU64);

impl Floor {
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// Scores are not negative: they are ordered as their bits are.
    pub fn raise(&self, score: f64) {
        self.0.fetch_max(score.to_bits(), Ordering::Relaxed);
    }
}

/// The constraints that the splits above a node leave to it.
#[derive(Clone)]
pub(super) struct Constraints {
    /// Bounds of its mean gradient, if there are monotonic constraints.
    pub bounds: Option<Bounds>,
    /// Features that it may be split by; `None`: all.
    pub allowed: Option<Arc<Allowed>>,
}

impl Constraints {
    pub fn allow(&self, feature: u32) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.contains(feature))
    }
}

/// What the search for a node's split has found.
#[derive(Default)]
pub(super) struct Outcome {
    pub split: Option<NodeSplit>,
    /// The node's histogram, if it can serve its children.
    pub histogram: Option<NodeHistogram>,
    /// Its sorted rows, if it is small.
    pub sorted: Option<SortedRows>,
}

/// What splitting a leaf leads to.
pub(super) struct Expansion {
    /// The leaf as an inner node; its children have no numbers yet.
    pub node: Node,
    pub children: [GrowNode; 2],
    /// Splits of the children, unless they stay leaves.
    pub outcomes: [Outcome; 2],
}
