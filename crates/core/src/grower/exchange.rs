//! Search among ranks: each sums the histograms of its own rows, one exchange adds them up, and all
//! search the same sums.
//!
//! All decisions depend on sums over all ranks and on what is the same on all of them: cuts, parameters
//! and the number of all rows. So every rank takes the same ones.

use std::ops::Range;

use super::drawn::DrawnNode;
use super::histograms::{FreeHistograms, NodeHistogram};
use super::node::{GrowNode, Outcome};
use super::search::{Search, Siblings};
use crate::error::Result;
use crate::histogram::{Lane, subtract};
use crate::parallel::take_front;
use crate::partition::RowSlice;
use crate::reduce::{exchange, exchange_pieces};
use crate::split::NodeSplit;

/// Two siblings whose smaller one has been summed.
struct SummedSiblings<'a> {
    parent: NodeHistogram,
    children: &'a [GrowNode; 2],
    wanted: [bool; 2],
    outcomes: &'a mut [Outcome; 2],
    small: usize,
    histogram: NodeHistogram,
}

impl<T: Lane> Search<'_, T> {
    /// Searches the root; its total is exchanged together with its histogram.
    pub(super) fn search_root_among_ranks(
        &self,
        rows: &RowSlice<'_>,
        root: &mut GrowNode,
        wanted: impl Fn(&GrowNode) -> bool,
        free: &FreeHistograms,
    ) -> Result<Outcome> {
        let mut histogram = free.take(self.plan, &self.layout)?;
        histogram.alive.fill(true);
        self.sum_histogram(&mut histogram, rows.of(&root.rows))?;
        self.add_up(&mut [&mut histogram], &mut root.total)?;
        let split = if wanted(root) { self.search_histogram(&mut histogram, root)? } else { None };
        Ok(Outcome { split, histogram: Some(histogram), sorted: None })
    }

    /// Searches pairs of siblings with one exchange.
    pub(super) fn search_siblings_among_ranks(
        &self,
        rows: &RowSlice<'_>,
        pairs: Vec<Siblings<'_>>,
        free: &FreeHistograms,
    ) -> Result<()> {
        let mut summed = Vec::new();
        for Siblings { parent, children, wanted, outcomes } in pairs {
            if wanted == [false, false] {
                free.put(Some(parent))?;
                continue;
            }
            // The smaller one by the rows of all ranks.
            let [left, right] = children.each_ref().map(|child| self.layout.count(&child.total));
            let small = usize::from(left > right);
            let mut histogram = free.take(self.plan, &self.layout)?;
            histogram.alive.copy_from_slice(&parent.alive);
            self.sum_histogram(&mut histogram, rows.of(&children[small].rows))?;
            summed.push(SummedSiblings { parent, children, wanted, outcomes, small, histogram });
        }
        let mut histograms: Vec<_> = summed.iter_mut().map(|pair| &mut pair.histogram).collect();
        self.add_up(&mut histograms, &mut [])?;
        for pair in summed {
            let SummedSiblings { mut parent, children, wanted, outcomes, small, histogram } = pair;
            for range in self.exchanged(&histogram.alive) {
                subtract(&mut parent.sums[range.clone()], &histogram.sums[range]);
            }
            for (side, mut histogram) in [(1 - small, parent), (small, histogram)] {
                if wanted[side] {
                    let split = self.search_histogram(&mut histogram, &children[side])?;
                    outcomes[side] = Outcome { split, histogram: Some(histogram), sorted: None };
                } else {
                    free.put(Some(histogram))?;
                }
            }
        }
        Ok(())
    }

    /// Searches nodes by their drawn features with one exchange.
    pub(super) fn search_features_among_ranks(
        &self,
        rows: &RowSlice<'_>,
        drawn: &[DrawnNode<'_>],
    ) -> Result<Vec<Option<NodeSplit>>> {
        let mut sums = Vec::new();
        for drawn in drawn {
            sums.extend(self.sum_features(rows, drawn)?);
        }
        exchange(self.pool, &mut sums, &mut [])?;
        let mut sums = &mut sums[..];
        let search = |DrawnNode { node, features, .. }: &DrawnNode<'_>| {
            self.rooms.search.with(|room| {
                let best = &mut room.best;
                best.begin(&self.layout, &node.total);
                for &i in features {
                    let part = take_front(&mut sums, self.plan.n_sums(i as usize, &self.layout));
                    self.improve_drawn(i as usize, part, node, best);
                }
                best.finish()
            })
        };
        Ok(drawn.iter().map(search).collect())
    }

    /// The histograms of a node's drawn features on this rank, side by side.
    fn sum_features(&self, rows: &RowSlice<'_>, drawn: &DrawnNode<'_>) -> Result<Vec<i64>> {
        let DrawnNode { node, features, .. } = drawn;
        let lanes = self.gather(rows.of(&node.rows))?;
        let work = node.rows.len() * features.len() * self.layout.width;
        let parts = self.pool.map(features, work, |&i| {
            let mut sums = vec![0i64; self.plan.n_sums(i as usize, &self.layout)];
            self.sum_feature(i as usize, &lanes, &mut sums);
            sums
        })?;
        Ok(parts.concat())
    }

    /// Sums the histograms of some rows on this rank: all dense features, and the compressed ones
    /// that are alive, without their default bins.
    fn sum_histogram(&self, histogram: &mut NodeHistogram, rows: &[u32]) -> Result<()> {
        let lanes = self.gather(rows)?;
        let work = rows.len() * self.plan.usable.len() * self.layout.width;
        let ranges = self.plan.ranges(histogram, &self.layout, self.pool.pieces(work));
        self.pool.for_each(ranges, work, |range| {
            let Some(block) = range.block else {
                return self.sum_dense(&range.features, range.sums, &lanes);
            };
            range.sums.fill(0);
            block.lists.accumulate(lanes.node(), range.alive, range.sums, None);
        })
    }

    /// The best split of a node by its histograms.
    fn search_histogram(
        &self,
        histogram: &mut NodeHistogram,
        node: &GrowNode,
    ) -> Result<Option<NodeSplit>> {
        let work = self.plan.n_slots() * self.layout.width * 4;
        let ranges = self.plan.ranges(histogram, &self.layout, self.pool.pieces(work));
        let splits = self.pool.map(ranges, work, |mut range| {
            self.rooms.search.with(|room| {
                self.search_summed_range(&mut range, node, &mut room.best);
                room.best.finish()
            })
        })?;
        Ok(NodeSplit::best_of(splits))
    }

    /// Where the sums lie that ranks exchange: those of dense features, and of compressed features
    /// that are alive.
    fn exchanged(&self, alive: &[bool]) -> impl Iterator<Item = Range<usize>> {
        let (n_dense, n_usable) = (self.plan.n_dense, self.plan.usable.len());
        let compressed = (n_dense..n_usable).filter(|&i| alive[i]).map(|i| i..i + 1);
        let features = std::iter::once(0..n_dense).chain(compressed);
        features.map(|features| self.plan.sums(&features, &self.layout))
    }

    /// Adds up histograms and a node's total over all ranks, in one exchange.
    fn add_up(&self, histograms: &mut [&mut NodeHistogram], total: &mut [i64]) -> Result<()> {
        let mut pieces = vec![total];
        for NodeHistogram { sums, alive } in histograms.iter_mut().map(|histogram| &mut **histogram)
        {
            let (mut rest, mut at) = (&mut sums[..], 0);
            for range in self.exchanged(alive) {
                take_front(&mut rest, range.start - at);
                pieces.push(take_front(&mut rest, range.len()));
                at = range.end;
            }
        }
        exchange_pieces(self.pool, &mut pieces, &mut [])
    }
}
