//! Search by features of a node's own: drawn at random, or allowed by interactions.
//!
//! Also the way to search without the parent's histogram. If none of the drawn features can split
//! the node, more are drawn, as in random forests.

use super::gather::GatheredLanes;
use super::node::GrowNode;
use super::plan::Block;
use super::search::Search;
use crate::binning::Column;
use crate::error::Result;
use crate::histogram::Lane;
use crate::partition::RowSlice;
use crate::random::shuffle_prefix;
use crate::split::{BestSplit, NodeSplit};

/// A node and the usable features drawn for it, ascending.
pub(super) struct DrawnNode<'a> {
    /// Which of the nodes it is.
    place: usize,
    pub node: &'a GrowNode,
    pub features: Vec<u32>,
}

/// Some of a node's drawn features, and how they are summed.
enum Part<'a> {
    /// One by one.
    Each(&'a [u32]),
    /// With all features of their block: row by row.
    Block(&'a Block, &'a [u32]),
}

impl<T: Lane> Search<'_, T> {
    /// The best splits of some nodes.
    pub(super) fn search_drawn(
        &self,
        rows: &RowSlice<'_>,
        nodes: &[&GrowNode],
    ) -> Result<Vec<Option<NodeSplit>>> {
        let size = self.n_drawn.max(1);
        let orders: Vec<Vec<u32>> = nodes.iter().map(|node| self.drawing_order(node)).collect();
        let mut found = vec![None; nodes.len()];
        let mut pending: Vec<usize> = (0..nodes.len()).collect();
        for draw in 0.. {
            pending.retain(|&k| found[k].is_none() && draw * size < orders[k].len());
            if pending.is_empty() {
                break;
            }
            let draw_features = |&place: &usize| {
                let rest = &orders[place][draw * size..];
                let mut features = rest[..size.min(rest.len())].to_vec();
                features.sort_unstable();
                DrawnNode { place, node: nodes[place], features }
            };
            let drawn: Vec<DrawnNode<'_>> = pending.iter().map(draw_features).collect();
            let splits = if self.has_ranks() {
                self.search_features_among_ranks(rows, &drawn)?
            } else {
                drawn
                    .iter()
                    .map(|drawn| self.search_features(rows, drawn))
                    .collect::<Result<_>>()?
            };
            drawn.iter().zip(splits).for_each(|(drawn, split)| found[drawn.place] = split);
        }
        Ok(found)
    }

    /// The usable features that a node may be split by, in the order in which they are drawn.
    fn drawing_order(&self, node: &GrowNode) -> Vec<u32> {
        let allowed = |&i: &u32| node.constraints.allow(self.plan.usable[i as usize]);
        let mut order: Vec<u32> = (0..self.plan.usable.len() as u32).filter(allowed).collect();
        if self.n_drawn < order.len() {
            let n = order.len();
            shuffle_prefix(node.path, &mut order, n);
        }
        order
    }

    /// The best split of a node by its drawn features.
    fn search_features(
        &self,
        rows: &RowSlice<'_>,
        drawn: &DrawnNode<'_>,
    ) -> Result<Option<NodeSplit>> {
        let DrawnNode { node, features, .. } = drawn;
        let lanes = self.gather(rows.of(&node.rows))?;
        let work = node.rows.len() * features.len() * self.layout.width;
        let parts = self.drawn_parts(drawn, self.pool.pieces(work));
        let splits = self.pool.map(parts, work, |part| match part {
            Part::Each(features) => Ok(self.search_each(features, &lanes, node)),
            Part::Block(block, features) => self.search_block(block, features, &lanes, node),
        })?;
        Ok(NodeSplit::best_of(splits.into_iter().collect::<Result<Vec<_>>>()?))
    }

    /// The drawn features of a node in parts for a job.
    fn drawn_parts<'d>(&'d self, drawn: &'d DrawnNode<'_>, n_pieces: usize) -> Vec<Part<'d>> {
        let features = &drawn.features;
        let size = features.len().div_ceil(n_pieces).max(1);
        let up_to = |features: &[u32], end| features.partition_point(|&i| (i as usize) < end);
        let (dense, mut rest) = features.split_at(up_to(features, self.plan.n_dense));
        let mut parts: Vec<Part<'_>> = dense.chunks(size).map(Part::Each).collect();
        for block in &self.plan.blocks {
            let (here, after) = rest.split_at(up_to(rest, block.features.end));
            rest = after;
            if self.lists_pay(block, here, drawn.node.rows.len()) {
                parts.push(Part::Block(block, here));
            } else {
                parts.extend(here.chunks(size).map(Part::Each));
            }
        }
        parts
    }

    /// Whether it takes less time to sum all features of a block row by row than to look for the
    /// rows of a node in the lists of the drawn ones.
    fn lists_pay(&self, block: &Block, drawn: &[u32], n_rows: usize) -> bool {
        if n_rows == self.binned.n_rows {
            return false;
        }
        let (mut n_searched, mut n_listed) = (0, 0);
        for &i in drawn {
            if let Column::Compressed(column) = self.column(i as usize) {
                n_searched += column.rows.len().min(n_rows);
                n_listed += column.rows.len();
            }
        }
        // In the time that a lane takes to add.
        let (entry, step, lanes) = (8.0, 48.0, self.layout.width as f64);
        let share = n_rows as f64 / self.binned.n_rows as f64;
        let one_by_one = step * n_searched as f64 + lanes * share * n_listed as f64;
        (entry + lanes) * share * (block.lists.n_entries() as f64) < one_by_one
    }

    fn search_each(
        &self,
        features: &[u32],
        lanes: &GatheredLanes<'_, T>,
        node: &GrowNode,
    ) -> Option<NodeSplit> {
        let mut best = BestSplit::default();
        best.begin(&self.layout, &node.total);
        let mut sums = Vec::new();
        for &i in features {
            let i = i as usize;
            sums.resize(self.plan.n_sums(i, &self.layout), 0);
            self.sum_feature(i, lanes, &mut sums);
            self.improve_drawn(i, &mut sums, node, &mut best);
        }
        best.finish()
    }

    fn search_block(
        &self,
        block: &Block,
        features: &[u32],
        lanes: &GatheredLanes<'_, T>,
        node: &GrowNode,
    ) -> Result<Option<NodeSplit>> {
        let first = block.features.start;
        let mut is_drawn = vec![false; block.features.len()];
        features.iter().for_each(|&i| is_drawn[i as usize - first] = true);
        self.rooms.search.with(|room| {
            room.best.begin(&self.layout, &node.total);
            self.search_listed(block, lanes.node(), node, |k| is_drawn[k], None, room)?;
            Ok(room.best.finish())
        })
    }
}
