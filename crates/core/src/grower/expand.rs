//! Expanding a leaf: its rows are partitioned and its children searched for splits.

use std::ops::Range;
use std::sync::Arc;

use super::histograms::FreeHistograms;
use super::node::{Expansion, Floor, GrowNode};
use super::queue::{LeafQueue, OpenLeaf};
use super::search::Search;
use crate::error::Result;
use crate::histogram::Lane;
use crate::partition::RowSlice;
use crate::split::SplitOrder;
use crate::tree::{CATEGORICAL, MISSING_LEFT, Node};

impl<T: Lane> Search<'_, T> {
    /// Expands a leaf, unless it was expanded ahead of time; `n_more` leaves may be split after it.
    pub(super) fn expand(
        &self,
        mut leaf: OpenLeaf,
        n_more: usize,
        queue: &mut LeafQueue,
        rows: &mut RowSlice<'_>,
        free: &FreeHistograms,
    ) -> Result<OpenLeaf> {
        if leaf.expansion.is_none() {
            // Among ranks, one exchange serves all leaves that are likely to be next: hardly any of
            // the best two thirds stays a leaf.
            let n_ahead = if self.has_ranks() { 2 * n_more / 3 } else { 0 };
            let mut batch = queue.batch(leaf, n_ahead);
            for leaf in &mut batch {
                leaf.expansion = Some(Box::new(self.split_rows(leaf, rows)?));
            }
            if n_more > 0 {
                self.search_children(rows, &mut batch, free)?;
            }
            leaf = batch.swap_remove(0);
            queue.put_back(batch);
        }
        free.put(leaf.histogram.take())?;
        Ok(leaf)
    }

    /// Splits the rows of a leaf.
    pub(super) fn split_rows(&self, leaf: &OpenLeaf, rows: &mut RowSlice<'_>) -> Result<Expansion> {
        let OpenLeaf { node: parent, split, .. } = leaf;
        let middle = rows.split(self.pool, self.binned, &parent.rows, split)?;
        let node = self.inner_node(leaf);
        let right_total = parent.total.iter().zip(&split.left).map(|(t, l)| t - l).collect();
        let child = |rows: Range<usize>, side, total| GrowNode {
            number: 0,
            rows,
            depth: parent.depth + 1,
            path: parent.path.with(side),
            total,
            floor: Floor::default(),
            constraints: parent.constraints.clone(),
        };
        let left = child(parent.rows.start..middle, 0, split.left.clone());
        let right = child(middle..parent.rows.end, 1, right_total);
        let mut children = [left, right];
        self.constrain(leaf, &node, &mut children);
        Ok(Expansion { node, children, outcomes: Default::default() })
    }

    /// A leaf as an inner node of the tree, with placeholders for its left child and its cover.
    fn inner_node(&self, leaf: &OpenLeaf) -> Node {
        let split = &leaf.split;
        let mut node = Node {
            feature: split.feature | if split.missing_left { MISSING_LEFT } else { 0 },
            threshold: 0.0,
            // 0 would mark a leaf.
            left: 1,
            cover: 0.0,
            // The squares of gradients may leave single precision where these do not.
            gain: split.gain.min(f32::MAX.into()) as f32,
            cut: 0,
        };
        if split.categories.is_some() {
            node.feature |= CATEGORICAL;
        } else {
            let thresholds = &self.binned.cuts.thresholds[split.feature as usize];
            node.threshold = thresholds.get(split.bin as usize).copied().unwrap_or(f32::INFINITY);
            node.cut = split.bin.into();
        }
        node
    }

    /// Passes the constraints of a node and its split on to its children.
    fn constrain(&self, parent: &OpenLeaf, node: &Node, children: &mut [GrowNode; 2]) {
        let OpenLeaf { node: GrowNode { constraints, total, .. }, split, .. } = parent;
        if let Some(bounds) = constraints.bounds {
            let sign = if node.orders_values() { self.sign(split.feature) } else { 0 };
            let parted = SplitOrder { sign, bounds }.parted(&self.layout, &split.left, total);
            let children = children.iter_mut().zip(parted);
            children.for_each(|(child, bounds)| child.constraints.bounds = Some(bounds));
        }
        if let (Some(interactions), Some(allowed)) = (self.interactions, &constraints.allowed) {
            let below = Arc::new(interactions.below(allowed, split.feature));
            let children = children.iter_mut();
            children.for_each(|child| child.constraints.allowed = Some(Arc::clone(&below)));
        }
    }
}
