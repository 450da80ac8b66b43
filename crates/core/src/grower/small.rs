//! Search of small nodes, by sorted rows.
//!
//! A node with far fewer rows than a feature has bins has no histograms. Its rows are sorted by every
//! dense feature, once; when it is split, the sorted rows are split with it. So the cost of a search
//! follows the rows of the node, not the bins of the features. A small node with a large sibling
//! takes its sums off the histogram of their parent.

use std::ops::Range;
use std::sync::Arc;

use super::histograms::{FeatureRange, NodeHistogram};
use super::node::{GrowNode, Outcome};
use super::plan::{Block, Plan};
use super::rooms::{SearchRoom, SortedRoom};
use super::search::Search;
use super::sorted::{Columns, SortedRows};
use crate::error::Result;
use crate::histogram::{
    Lane, MAX_SORTED_ROWS, N_PLACES, NodeLanes, RunningSums, Side, SortKey, add_up, bin_of,
    place_of, sort_column, split_column,
};
use crate::lowlevel::widest;
use crate::partition::RowSlice;
use crate::split::{BestSplit, NodeSplit, NodeSums, RowsAside, SortedLanes, SortedNode};

/// Bins per row from which sorted rows are cheaper than histograms (1 to 2 measure alike).
const MANY_BINS_PER_ROW: usize = 2;

impl Plan {
    /// Nodes of fewer rows are small.
    pub fn small_rows(&self) -> usize {
        let n_bins = self.n_dense_slots() / self.n_dense.max(1);
        (n_bins / MANY_BINS_PER_ROW).min(MAX_SORTED_ROWS + 1)
    }
}

impl<T: Lane> Search<'_, T> {
    pub(super) fn is_small(&self, node: &GrowNode) -> bool {
        node.rows.len() < self.small_rows
    }

    /// Searches a small node.
    pub(super) fn search_small(&self, rows: &[u32], node: &GrowNode) -> Result<Outcome> {
        let sorted = self.sort(rows)?;
        let dense = self.search_sorted(&sorted, node)?;
        let split = NodeSplit::best_of([dense, self.search_small_blocks(rows, node)?]);
        Ok(Outcome { split, sorted: Some(sorted), histogram: None })
    }

    /// Searches a small node, if `wanted`, and its large sibling. The histogram of their parent
    /// becomes that of the sibling.
    pub(super) fn search_beside(
        &self,
        rows: &[u32],
        [node, sibling]: [&GrowNode; 2],
        wanted: bool,
        parent: &mut NodeHistogram,
    ) -> Result<[Outcome; 2]> {
        let sorted = if wanted { Some(self.sort(rows)?) } else { None };
        let dense = match &sorted {
            Some(sorted) => self.search_sorted(sorted, node)?,
            None => None,
        };
        let lanes = self.gather(rows)?;
        let work = rows.len() * self.plan.usable.len() * self.layout.width
            + self.plan.n_slots() * self.layout.width * 4;
        let ranges = self.plan.ranges(parent, &self.layout, self.pool.pieces(work));
        let splits = self.pool.try_map(ranges, work, |mut range| {
            self.rooms.search.with(|room| {
                room.best.begin(&self.layout, &node.total);
                if range.block.is_some() {
                    self.search_small_compressed(lanes.node(), node, wanted, &mut range, room)?;
                } else {
                    self.take_off(rows, lanes.node(), &mut range);
                }
                self.search_summed_range(&mut range, sibling, &mut room.sibling);
                Ok((room.best.finish(), room.sibling.finish()))
            })
        })?;
        let (mut small, large): (Vec<_>, Vec<_>) = splits.into_iter().unzip();
        small.push(dense);
        let [small, large] = [small, large].map(NodeSplit::best_of);
        Ok([
            Outcome { split: small, sorted, histogram: None },
            Outcome { split: large, ..Outcome::default() },
        ])
    }

    /// Searches the children of a node whose rows are sorted.
    pub(super) fn search_sorted_children(
        &self,
        rows: &RowSlice<'_>,
        parent: &SortedRows,
        children: &[GrowNode; 2],
        wanted: [bool; 2],
        outcomes: &mut [Outcome; 2],
    ) -> Result<()> {
        if wanted == [false, false] {
            return Ok(());
        }
        let (n_dense, home) = (self.plan.n_dense, self.rooms.keys);
        let child_rows = children.each_ref().map(|child| rows.of(&child.rows));
        let [mut left, mut right] = {
            let [n_left, n_right] = child_rows.map(<[u32]>::len);
            let room = |n| SortedRows::new(Arc::clone(&parent.places), n, n_dense, home);
            [room(n_left)?, room(n_right)?]
        };
        let work = parent.n * n_dense * self.layout.width;
        let n_pieces = self.pool.pieces(work);
        let pieces = left.pieces(n_dense, n_pieces).zip(right.pieces(n_dense, n_pieces));
        let splits = self.pool.map(pieces, work, |((features, left), (_, right))| {
            self.rooms.search.with(|room| {
                let SearchRoom { best, sibling, sorted, .. } = &mut **room;
                self.fill_values(&parent.places, sorted);
                sorted.sides = sides(&parent.places, child_rows[0], &sorted.values[0]);
                let best = [best, sibling];
                self.split_columns(parent, features, [left, right], children, wanted, sorted, best)
            })
        })?;
        let (lefts, rights): (Vec<_>, Vec<_>) = splits.into_iter().map(<(_, _)>::from).unzip();
        for (side, (sorted, splits)) in [(left, lefts), (right, rights)].into_iter().enumerate() {
            if wanted[side] {
                let blocks = self.search_small_blocks(child_rows[side], &children[side])?;
                let split = NodeSplit::best_of(splits.into_iter().chain([blocks]));
                outcomes[side] = Outcome { split, sorted: Some(sorted), histogram: None };
            }
        }
        Ok(())
    }

    /// Splits the columns of some features, and searches both children.
    #[allow(clippy::too_many_arguments)]
    fn split_columns(
        &self,
        parent: &SortedRows,
        features: Range<usize>,
        [mut left, mut right]: [Columns<'_>; 2],
        children: &[GrowNode; 2],
        wanted: [bool; 2],
        room: &mut SortedRoom,
        best: [&mut BestSplit; 2],
    ) -> [Option<NodeSplit>; 2] {
        let SortedRoom { sides, values, sums: [left_sums, right_sums], aside, by_bins } = room;
        let ([best_left, best_right], [aside_left, aside_right]) = (best, aside);
        let mut left_node = SmallNode::begin(self, &children[0], best_left, aside_left);
        let mut right_node = SmallNode::begin(self, &children[1], best_right, aside_right);
        let places = &parent.places[..];
        // The first lane is added up while a column is split.
        let others = &values[1..];
        widest(
            #[inline(always)]
            || {
                for i in features {
                    let (left_keys, right_keys) = (left.room(i), right.room(i));
                    let keys = [&mut *left_keys, &mut *right_keys];
                    let first_sums = [&mut left_sums[0], &mut right_sums[0]];
                    split_column(parent.column(i), sides, keys, first_sums);
                    if wanted[0] {
                        left_node.improve(self, i, left_keys, others, left_sums, places, by_bins);
                    }
                    if wanted[1] {
                        right_node
                            .improve(self, i, right_keys, others, right_sums, places, by_bins);
                    }
                }
            },
        );
        [left_node.best.finish(), right_node.best.finish()]
    }

    /// Sorts rows by every dense feature.
    fn sort(&self, rows: &[u32]) -> Result<SortedRows> {
        let n_dense = self.plan.n_dense;
        let mut sorted = SortedRows::of_rows(rows, n_dense, self.rooms.keys)?;
        let work = (rows.len() + N_PLACES / 8) * n_dense;
        let pieces = sorted.pieces(n_dense, self.pool.pieces(work));
        self.pool.for_each(pieces, work, |(features, mut columns)| {
            widest(
                #[inline(always)]
                || {
                    for i in features {
                        sort_column(self.dense_column(i), rows, columns.room(i));
                    }
                },
            );
        })?;
        Ok(sorted)
    }

    /// The best split of a node by its dense features.
    fn search_sorted(&self, sorted: &SortedRows, node: &GrowNode) -> Result<Option<NodeSplit>> {
        let work = sorted.n * self.plan.n_dense * self.layout.width;
        let ranges = self.plan.ranges_of_features(self.pool.pieces(work));
        let dense = ranges.take_while(|(_, block)| block.is_none());
        let splits = self.pool.map(dense.collect::<Vec<_>>(), work, |(features, _)| {
            self.rooms.search.with(|room| {
                let SearchRoom { best, sorted: room, .. } = &mut **room;
                let places = &sorted.places[..];
                self.fill_values(places, room);
                let SortedRoom { values, sums: [sums, _], aside: [aside, _], by_bins, .. } = room;
                let mut small = SmallNode::begin(self, node, best, aside);
                widest(
                    #[inline(always)]
                    || {
                        for i in features {
                            let keys = sorted.column(i);
                            small.improve(self, i, keys, values, sums, places, by_bins);
                        }
                    },
                );
                small.best.finish()
            })
        })?;
        Ok(NodeSplit::best_of(splits))
    }

    /// Fills in the lanes of rows by their places, and makes room for their sums. If cuts between rows
    /// cannot be scored, there is one lane, of arbitrary values.
    fn fill_values(&self, places: &[u32], SortedRoom { values, sums, .. }: &mut SortedRoom) {
        let lanes = self.sorted_lanes();
        let n_lanes = lanes.map_or(1, |lanes| lanes.width());
        values.resize(n_lanes, [0; N_PLACES]);
        sums.iter_mut().for_each(|sums| sums.resize(n_lanes, [0; N_PLACES]));
        let Some(lanes) = lanes else { return };
        for (place, &row) in places.iter().enumerate() {
            let row_lanes = &self.lanes[row as usize * self.layout.width..];
            for (lane, values) in values.iter_mut().enumerate() {
                values[place] = lanes.of_row(row_lanes, lane);
            }
        }
    }

    /// How sorted rows are summed and read, if cuts between them can be scored.
    fn sorted_lanes(&self) -> Option<SortedLanes> {
        SortedLanes::new(&self.layout, T::IS_NARROW)
    }

    /// Takes the sums of some rows off the histograms of a range of dense features.
    fn take_off(&self, rows: &[u32], node: NodeLanes<'_, T>, range: &mut FeatureRange<'_, '_>) {
        let NodeLanes { lanes, gathered, width, .. } = node;
        for (i, part) in self.plan.each_feature(&range.features, range.sums, &self.layout) {
            let column = self.dense_column(i);
            if width == 1 && gathered {
                for (&row, &lane) in rows.iter().zip(lanes) {
                    part[usize::from(column[row as usize])] -= lane.into();
                }
                continue;
            }
            for (k, &row) in rows.iter().enumerate() {
                let source = if gathered { k } else { row as usize };
                let bin = usize::from(column[row as usize]);
                let sums = part[bin * width..][..width].iter_mut();
                sums.zip(&lanes[source * width..]).for_each(|(sum, &lane)| *sum -= lane.into());
            }
        }
    }

    /// The best split of a small node by compressed features.
    fn search_small_blocks(&self, rows: &[u32], node: &GrowNode) -> Result<Option<NodeSplit>> {
        if self.plan.blocks.is_empty() {
            return Ok(None);
        }
        let lanes = self.gather(rows)?;
        let work = rows.len() * (self.plan.usable.len() - self.plan.n_dense) * self.layout.width;
        let splits = self.pool.try_map(&self.plan.blocks, work, |block| {
            self.rooms.search.with(|room| {
                let features = block.features.clone();
                let mut range =
                    FeatureRange { features, block: Some(block), sums: &mut [], alive: &mut [] };
                room.best.begin(&self.layout, &node.total);
                self.search_small_compressed(lanes.node(), node, true, &mut range, room)?;
                Ok(room.best.finish())
            })
        })?;
        Ok(NodeSplit::best_of(splits))
    }

    /// Searches a small node in a block of compressed features, if `wanted`, and takes its sums off
    /// those of its parent, unless the range has none.
    fn search_small_compressed(
        &self,
        lanes: NodeLanes<'_, T>,
        node: &GrowNode,
        wanted: bool,
        parent: &mut FeatureRange<'_, '_>,
        room: &mut SearchRoom,
    ) -> Result<()> {
        let Some(block) = parent.block else { return Ok(()) };
        let parent_sums = (!parent.sums.is_empty()).then_some(&mut *parent.sums);
        self.search_listed(block, lanes, node, |_| wanted, parent_sums, room)
    }

    /// Searches a node by the features of a block that are `wanted`, by their places in it, and
    /// takes its sums off those of its parent, if given.
    pub(super) fn search_listed(
        &self,
        block: &Block,
        lanes: NodeLanes<'_, T>,
        node: &GrowNode,
        wanted: impl Fn(usize) -> bool,
        parent: Option<&mut [i64]>,
        SearchRoom { listed, best, .. }: &mut SearchRoom,
    ) -> Result<()> {
        block.lists.sum_listed(lanes, listed, parent)?;
        let first = block.features.start;
        let start = self.plan.sums(&(first..first), &self.layout).start;
        listed.drain(|feature, count, sums| {
            let i = first + feature;
            let place = self.plan.sums(&(i..i + 1), &self.layout);
            let part = &mut sums[place.start - start..place.end - start];
            if wanted(feature) && i64::from(count) >= self.min_count() {
                self.improve_drawn(i, part, node, best);
            }
            part.fill(0);
        });
        Ok(())
    }
}

/// Where a split with these left rows sends the rows of each place, with these values.
fn sides(places: &[u32], left: &[u32], values: &RunningSums) -> [Side; N_PLACES] {
    let mut sides = values.map(|value| Side { left: 0, right: value, n_left: 0 });
    let mut places = places.iter().zip(&mut sides);
    for &row in left {
        // Both ascend.
        let Some((_, side)) = places.find(|(place, _)| **place == row) else { break };
        *side = Side { left: side.right, right: 0, n_left: 1 };
    }
    sides
}

/// A small node while it is searched.
struct SmallNode<'a> {
    node: &'a GrowNode,
    best: &'a mut BestSplit,
    aside: &'a RowsAside,
    /// What cuts between its rows are scored by. If there is none, features are searched by their bins.
    total: Option<NodeSums>,
}

impl<'a> SmallNode<'a> {
    fn begin<T: Lane>(
        search: &Search<'_, T>,
        node: &'a GrowNode,
        best: &'a mut BestSplit,
        aside: &'a mut RowsAside,
    ) -> SmallNode<'a> {
        let layout = &search.layout;
        best.begin(layout, &node.total);
        aside.count(node.rows.len(), &search.limits);
        // Not if the order of values is constrained, or if a row does not count.
        let is_plain = node.constraints.bounds.is_none()
            && layout.count(&node.total) == node.rows.len() as i64;
        let lanes = search.sorted_lanes().filter(|_| is_plain);
        let total = lanes.map(|lanes| NodeSums::new(lanes, layout, &node.total));
        SmallNode { node, best, aside, total }
    }

    /// Looks for a better split by the usable feature `i`, of which `keys` is the sorted column. `values`
    /// are lanes of rows by place, still to be added up into the last of the `sums`.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn improve<T: Lane>(
        &mut self,
        search: &Search<'_, T>,
        i: usize,
        keys: &[SortKey],
        values: &[RunningSums],
        sums: &mut [RunningSums],
        places: &[u32],
        by_bins: &mut BinSums,
    ) {
        let keys = &keys[..self.node.rows.len()];
        let feature = search.plan.usable[i];
        let cuts = &search.binned.cuts;
        let is_plain = !cuts.has_missing[feature as usize] && !cuts.categorical[feature as usize];
        match self.total.as_ref().filter(|_| is_plain) {
            Some(total) => {
                let first = sums.len() - values.len();
                for (values, sums) in values.iter().zip(&mut sums[first..]) {
                    add_up(keys, values, sums);
                }
                let node = SortedNode { feature, keys, sums, aside: self.aside, total };
                self.best.improve_between(node, &search.limits);
            }
            None => by_bins.improve(search, i, keys, places, self.node, self.best),
        }
    }
}

/// Room for the histogram of one feature.
#[derive(Default)]
pub(super) struct BinSums {
    /// Zero between uses.
    sums: Vec<i64>,
    /// The bins that have rows.
    bins: Vec<u8>,
}

impl BinSums {
    /// Looks for a better split by the bins of a sorted column.
    #[inline(never)]
    fn improve<T: Lane>(
        &mut self,
        search: &Search<'_, T>,
        i: usize,
        keys: &[SortKey],
        places: &[u32],
        node: &GrowNode,
        best: &mut BestSplit,
    ) {
        let width = search.layout.width;
        self.bins.clear();
        if self.sums.len() < N_PLACES * width {
            self.sums.resize(N_PLACES * width, 0);
        }
        for &key in keys {
            let bin = bin_of(key);
            if self.bins.last() != Some(&bin) {
                self.bins.push(bin);
            }
            let row = places[place_of(key)] as usize;
            let lanes = &search.lanes[row * width..][..width];
            let sums = &mut self.sums[usize::from(bin) * width..][..width];
            sums.iter_mut().zip(lanes).for_each(|(sum, &lane)| *sum += lane.into());
        }
        if self.bins.len() > 1 {
            search.improve(i, &self.sums, Some(&self.bins), node, best);
        }
        for &bin in &self.bins {
            self.sums[usize::from(bin) * width..][..width].fill(0);
        }
    }
}
