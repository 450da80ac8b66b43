//! Search by features of a node's own: drawn at random, or allowed by interactions.
//!
//! Also the way to search without the parent's histogram. If none of the drawn features can split
//! the node, more are drawn, as in random forests.

use super::node::GrowNode;
use super::search::Search;
use crate::error::Result;
use crate::histogram::Lane;
use crate::partition::RowSlice;
use crate::random::shuffle_prefix;
use crate::split::NodeSplit;

/// A node and the usable features drawn for it, ascending.
pub(super) struct DrawnNode<'a> {
    /// Which of the nodes it is.
    place: usize,
    pub node: &'a GrowNode,
    pub features: Vec<u32>,
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
        let lanes = self.gather_drawn(rows.of(&node.rows))?;
        let work = node.rows.len() * features.len() * self.layout.width;
        let size = features.len().div_ceil(self.pool.pieces(work)).max(1);
        let splits = self.pool.map(features.chunks(size), work, |features| {
            self.rooms.search.with(|room| {
                let best = &mut room.best;
                best.begin(&self.layout, &node.total);
                let mut sums = Vec::new();
                for &i in features {
                    let i = i as usize;
                    sums.resize(self.plan.n_sums(i, &self.layout), 0);
                    self.sum_feature(i, &lanes, &mut sums);
                    self.improve_drawn(i, &mut sums, node, best);
                }
                best.finish()
            })
        })?;
        Ok(NodeSplit::best_of(splits))
    }
}
