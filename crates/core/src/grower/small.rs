//! Search of small nodes, by the bins that their rows occupy.
//!
//! A node with far fewer rows than a feature has bins is summed from its rows whenever it is searched:
//! that costs less than to subtract and scan histograms of mostly empty bins. So small nodes have no
//! histograms of their own; one with a large sibling takes its sums off those of their parent.

use super::histograms::{FeatureRange, NodeHistogram};
use super::node::{GrowNode, Outcome};
use super::plan::Plan;
use super::rooms::SearchRoom;
use super::search::Search;
use crate::error::Result;
use crate::histogram::{FEATURES_AT_ONCE, Lane, NodeLanes, OccupiedBins, subtract};
use crate::split::NodeSplit;

/// Bins per row from which it pays to touch only those that rows occupy (2 to 4 measure alike).
const MANY_BINS_PER_ROW: usize = 3;

impl Plan {
    /// Nodes of fewer rows are small.
    pub fn small_rows(&self) -> usize {
        self.n_dense_slots() / (MANY_BINS_PER_ROW * self.n_dense.max(1))
    }
}

impl<T: Lane> Search<'_, T> {
    pub(super) fn is_small(&self, node: &GrowNode) -> bool {
        node.rows.len() < self.small_rows
    }

    /// Searches a small node.
    pub(super) fn search_small(&self, rows: &[u32], node: &GrowNode) -> Result<Outcome> {
        let lanes = self.gather(rows)?;
        let work = self.small_work(rows.len());
        let ranges = self.plan.ranges_of_features(self.pool.pieces(work));
        let splits = self.pool.try_map(ranges, work, |(features, block)| {
            self.rooms.search.with(|room| {
                let mut range = FeatureRange { features, block, sums: &mut [], alive: &mut [] };
                self.search_small_range(lanes.node(), node, true, &mut range, room)?;
                Ok(room.best.finish())
            })
        })?;
        Ok(Outcome { split: NodeSplit::best_of(splits), histogram: None })
    }

    /// Searches a small node, if `wanted`, and its large sibling. The histogram of their parent
    /// becomes that of the sibling.
    pub(super) fn search_beside(
        &self,
        rows: &[u32],
        [node, sibling]: [&GrowNode; 2],
        wanted: bool,
        parent: &mut NodeHistogram,
    ) -> Result<[Option<NodeSplit>; 2]> {
        let lanes = self.gather(rows)?;
        let work = self.small_work(rows.len()) + self.plan.n_slots() * self.layout.width * 4;
        let ranges = self.plan.ranges(parent, &self.layout, self.pool.pieces(work));
        let splits = self.pool.try_map(ranges, work, |mut range| {
            self.rooms.search.with(|room| {
                self.search_small_range(lanes.node(), node, wanted, &mut range, room)?;
                self.search_summed_range(&mut range, sibling, &mut room.sibling);
                Ok((room.best.finish(), room.sibling.finish()))
            })
        })?;
        let (small, large): (Vec<_>, Vec<_>) = splits.into_iter().unzip();
        Ok([small, large].map(NodeSplit::best_of))
    }

    /// Elementary operations to search a small node, roughly.
    fn small_work(&self, n_rows: usize) -> usize {
        n_rows * self.plan.usable.len() * self.layout.width * 4
    }

    /// Searches a small node in a range of features, and takes its sums off those of its parent,
    /// unless the range has none.
    fn search_small_range(
        &self,
        lanes: NodeLanes<'_, T>,
        node: &GrowNode,
        wanted: bool,
        parent: &mut FeatureRange<'_, '_>,
        room: &mut SearchRoom,
    ) -> Result<()> {
        room.best.begin(&self.layout, &node.total);
        if parent.block.is_some() {
            self.search_small_compressed(lanes, node, wanted, parent, room)
        } else {
            self.search_small_dense(lanes, node, wanted, parent, room)
        }
    }

    fn search_small_dense(
        &self,
        lanes: NodeLanes<'_, T>,
        node: &GrowNode,
        wanted: bool,
        parent: &mut FeatureRange<'_, '_>,
        SearchRoom { occupied, best, .. }: &mut SearchRoom,
    ) -> Result<()> {
        let width = self.layout.width;
        let at_once = OccupiedBins::columns_at_once(width);
        occupied.fit(width)?;
        let mut parents = (!parent.sums.is_empty())
            .then(|| self.plan.each_feature(&parent.features, parent.sums, &self.layout));
        let end = parent.features.end;
        for first in parent.features.clone().step_by(at_once) {
            let features = first..(first + at_once).min(end);
            let mut columns = [&[][..]; FEATURES_AT_ONCE];
            for (column, i) in columns.iter_mut().zip(features.clone()) {
                *column = self.dense_column(i);
            }
            occupied.each(&columns[..features.len()], lanes, |k, sums, bins| {
                if let Some((_, part)) = parents.as_mut().and_then(Iterator::next) {
                    for &bin in bins {
                        let place = usize::from(bin) * width;
                        subtract(&mut part[place..place + width], &sums[place..place + width]);
                    }
                }
                if wanted && bins.len() > 1 {
                    self.improve(first + k, sums, Some(bins), node, best);
                }
            });
        }
        Ok(())
    }

    fn search_small_compressed(
        &self,
        lanes: NodeLanes<'_, T>,
        node: &GrowNode,
        wanted: bool,
        parent: &mut FeatureRange<'_, '_>,
        SearchRoom { listed, best, .. }: &mut SearchRoom,
    ) -> Result<()> {
        let Some(block) = parent.block else { return Ok(()) };
        let parent_sums = (!parent.sums.is_empty()).then_some(&mut *parent.sums);
        block.lists.sum_listed(lanes, listed, parent_sums)?;
        let first = parent.features.start;
        let start = self.plan.sums(&(first..first), &self.layout).start;
        listed.drain(|feature, count, sums| {
            let i = first + feature;
            let place = self.plan.sums(&(i..i + 1), &self.layout);
            let part = &mut sums[place.start - start..place.end - start];
            if wanted && i64::from(count) >= self.min_count() {
                self.improve_drawn(i, part, node, best);
            }
            part.fill(0);
        });
        Ok(())
    }
}
