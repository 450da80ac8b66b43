//! Searching nodes for their best splits.
//!
//! A node is searched in one of three ways: by all features, with histograms kept for subtraction
//! (here); the same among ranks ([`super::exchange`]); by features of its own, drawn at random or
//! allowed by interactions, without keeping histograms ([`super::drawn`]).

use std::sync::Arc;

use super::gather::GatheredLanes;
use super::histograms::{FeatureRange, FreeHistograms, NodeHistogram};
use super::node::{Constraints, Expansion, Floor, GrowNode, Outcome};
use super::plan::Plan;
use super::queue::OpenLeaf;
use super::rooms::{LaneRooms, Rooms, SearchRoom};
use super::{Data, GrowParams};
use crate::binning::{Binned, Column};
use crate::error::Result;
use crate::histogram::{
    FeatureHistogram, Lane, LaneVector, Layout, SortKey, fill_default, subtract, sum_rows,
};
use crate::interaction::Interactions;
use crate::lowlevel::widest;
use crate::parallel::{Pool, take_front};
use crate::partition::RowSlice;
use crate::random::Key;
use crate::reduce::exchange;
use crate::split::{
    BestSplit, Bounds, NodeSplit, SplitLimits, SplitOrder, improve_split, improve_subset,
};

/// Everything that stays the same while one tree grows.
#[derive(Clone, Copy)]
pub(super) struct Search<'a, T> {
    pub pool: &'a Pool,
    pub binned: &'a Binned,
    pub layout: Layout,
    /// Lanes of all rows.
    pub lanes: &'a [T],
    pub rooms: SearchRooms<'a, T>,
    /// Nodes of fewer rows are small.
    pub small_rows: usize,
    pub plan: &'a Plan,
    pub interactions: Option<&'a Interactions>,
    /// How many usable features a node draws.
    pub n_drawn: usize,
    pub params: GrowParams,
    pub limits: SplitLimits,
    pub signs: Option<&'a [i8]>,
    /// Whether histograms are kept for subtraction.
    pub subtracts: bool,
}

/// The memory that searches work in.
#[derive(Clone, Copy)]
pub(super) struct SearchRooms<'a, T> {
    pub lanes: &'a LaneRooms<T>,
    pub packed: &'a Rooms<Vec<i64>>,
    pub vectors: &'a Rooms<Vec<LaneVector>>,
    pub search: &'a Rooms<Box<SearchRoom>>,
    pub keys: &'a Arc<Rooms<Vec<SortKey>>>,
}

/// Two siblings, what is wanted of them, and the histogram of their parent.
pub(super) struct Siblings<'a> {
    pub parent: NodeHistogram,
    pub children: &'a [GrowNode; 2],
    pub wanted: [bool; 2],
    pub outcomes: &'a mut [Outcome; 2],
}

/// A node in a search over features.
pub(super) struct Searched<'a> {
    pub node: &'a GrowNode,
    pub wanted: bool,
    pub best: &'a mut BestSplit,
}

impl<'a, T: Lane> Search<'a, T> {
    pub fn new(
        data: Data<'a>,
        lanes: &'a [T],
        rooms: SearchRooms<'a, T>,
        plan: &'a Plan,
        params: GrowParams,
        interactions: Option<&'a Interactions>,
        budget: usize,
    ) -> Search<'a, T> {
        let Data { pool, binned, layout, signs } = data;
        let n_usable = plan.usable.len();
        let draws_all = params.max_features >= binned.n_features;
        let n_drawn = if draws_all { n_usable } else { params.max_features.min(n_usable) };
        // Otherwise nodes have features of their own.
        let searches_all = n_drawn == n_usable && interactions.is_none();
        // Small nodes keep none.
        let small_rows = if pool.others().is_none() { plan.small_rows() } else { 0 };
        // Of the rows of all ranks, which must decide alike.
        let n_large = pool.all_rows(binned.n_rows) / small_rows.max(1) + 1;
        let most = if plan.n_dense == 0 { n_large.min(64) } else { 64 };
        let kept =
            plan.histogram_bytes(&layout).saturating_mul(params.max_leaf_nodes.min(most) + 1);
        let subtracts = kept <= budget && searches_all;
        Search {
            pool,
            binned,
            layout,
            lanes,
            rooms,
            // Among ranks all histograms are exchanged; and if histograms are too large to be kept, so
            // is the room of small nodes.
            small_rows: if subtracts { small_rows } else { 0 },
            plan,
            interactions,
            n_drawn,
            params,
            limits: SplitLimits::new(params.min_samples_leaf as i64, params.min_split_gain),
            signs,
            subtracts,
        }
    }

    /// Whether rows are spread over several ranks.
    pub fn has_ranks(&self) -> bool {
        self.pool.others().is_some()
    }

    /// The monotonic constraint of a feature.
    pub fn sign(&self, feature: u32) -> i8 {
        self.signs.map_or(0, |signs| signs[feature as usize])
    }

    /// Fewest rows in a child.
    pub fn min_count(&self) -> i64 {
        self.limits.min_samples_leaf.max(1)
    }

    fn can_split(&self, node: &GrowNode) -> bool {
        self.layout.count(&node.total) >= 2 * self.min_count() && node.depth < self.params.max_depth
    }

    /// The root, with the total of the rows on this rank.
    pub fn root(&self, rows: &RowSlice<'_>, key: Key) -> Result<GrowNode> {
        let all = 0..rows.len();
        Ok(GrowNode {
            number: 0,
            depth: 0,
            path: key,
            total: sum_rows(self.pool, rows.of(&all), self.lanes, self.layout.width)?,
            rows: all,
            floor: Floor::default(),
            constraints: Constraints {
                bounds: self.signs.map(|_| Bounds::NONE),
                allowed: self.interactions.map(|groups| Arc::new(groups.root())),
            },
        })
    }

    /// Searches the root. Its total becomes that of the rows on all ranks.
    pub fn search_root(
        &self,
        rows: &RowSlice<'_>,
        root: &mut GrowNode,
        free: &FreeHistograms,
    ) -> Result<Outcome> {
        let wanted = |root: &GrowNode| self.params.max_leaf_nodes > 1 && self.can_split(root);
        if self.subtracts && self.has_ranks() {
            return self.search_root_among_ranks(rows, root, wanted, free);
        }
        exchange(self.pool, &mut root.total, &mut [])?;
        if !wanted(root) {
            return Ok(Outcome::default());
        }
        if !self.subtracts {
            let split = self.search_drawn(rows, &[root])?.into_iter().next().flatten();
            return Ok(Outcome { split, ..Outcome::default() });
        }
        let root = &*root;
        let root_rows = rows.of(&root.rows);
        if self.is_small(root) {
            return self.search_small(root_rows, root);
        }
        let lanes = self.gather(root_rows)?;
        let work = root_rows.len() * self.plan.usable.len() * self.layout.width;
        let mut histogram = free.take(self.plan, &self.layout)?;
        let ranges = self.plan.ranges(&mut histogram, &self.layout, self.pool.pieces(work));
        let splits = self.pool.map(ranges, work, |mut range| {
            self.rooms.search.with(|room| {
                let mut searched = Searched { node: root, wanted: true, best: &mut room.best };
                self.search_range(&mut range, &lanes, &mut searched, None);
                room.best.finish()
            })
        })?;
        Ok(Outcome { split: NodeSplit::best_of(splits), histogram: Some(histogram), sorted: None })
    }

    /// Searches the children of expanded leaves.
    pub fn search_children(
        &self,
        rows: &RowSlice<'_>,
        leaves: &mut [OpenLeaf],
        free: &FreeHistograms,
    ) -> Result<()> {
        let (mut with_parent, mut wanted) = (Vec::new(), Vec::new());
        for leaf in leaves {
            let Some(expansion) = &mut leaf.expansion else { continue };
            let Expansion { children, outcomes, .. } = &mut **expansion;
            let is_wanted = children.each_ref().map(|child| self.can_split(child));
            if let Some(parent) = leaf.sorted.take() {
                self.search_sorted_children(rows, &parent, children, is_wanted, outcomes)?;
                continue;
            }
            match leaf.histogram.take() {
                Some(parent) => {
                    with_parent.push(Siblings { parent, children, wanted: is_wanted, outcomes });
                }
                None => {
                    let each = children.iter().zip(outcomes).zip(is_wanted);
                    wanted.extend(each.filter(|(_, wanted)| *wanted).map(|(child, _)| child));
                }
            }
        }
        // Without the histogram of their parent, both children are summed.
        for (child, outcome) in wanted.extract_if(.., |(child, _)| self.is_small(child)) {
            *outcome = self.search_small(rows.of(&child.rows), child)?;
        }
        if !wanted.is_empty() {
            let (nodes, outcomes): (Vec<&GrowNode>, Vec<&mut Outcome>) = wanted.into_iter().unzip();
            for (outcome, split) in outcomes.into_iter().zip(self.search_drawn(rows, &nodes)?) {
                outcome.split = split;
            }
        }
        if self.has_ranks() {
            return self.search_siblings_among_ranks(rows, with_parent, free);
        }
        with_parent.into_iter().try_for_each(|siblings| self.search_siblings(rows, siblings, free))
    }

    /// Searches two siblings; the histogram of the parent becomes that of the larger one.
    fn search_siblings(
        &self,
        rows: &RowSlice<'_>,
        siblings: Siblings<'_>,
        free: &FreeHistograms,
    ) -> Result<()> {
        let Siblings { mut parent, children, wanted, outcomes } = siblings;
        let small = usize::from(children[0].rows.len() > children[1].rows.len());
        let large = 1 - small;
        if self.is_small(&children[small]) {
            if wanted[large] && !self.is_small(&children[large]) {
                let node_rows = rows.of(&children[small].rows);
                let siblings = [&children[small], &children[large]];
                let splits = self.search_beside(node_rows, siblings, wanted[small], &mut parent)?;
                let [small_outcome, large_outcome] = splits;
                outcomes[small] = small_outcome;
                outcomes[large] = Outcome { histogram: Some(parent), ..large_outcome };
                return Ok(());
            }
            free.put(Some(parent))?;
            for ((child, outcome), wanted) in children.iter().zip(outcomes).zip(wanted) {
                if wanted {
                    *outcome = self.search_small(rows.of(&child.rows), child)?;
                }
            }
            return Ok(());
        }
        if wanted == [false, false] {
            return free.put(Some(parent));
        }
        let mut histogram = free.take(self.plan, &self.layout)?;
        let small_rows = rows.of(&children[small].rows);
        let lanes = self.gather(small_rows)?;
        let work = (small_rows.len() * self.plan.usable.len() + self.plan.n_slots() * 4)
            * self.layout.width;
        let n_pieces = self.pool.pieces(work);
        let ranges = self.plan.ranges(&mut histogram, &self.layout, n_pieces);
        let parents = self.plan.ranges(&mut parent, &self.layout, n_pieces);
        let both: Vec<_> = ranges.into_iter().zip(parents).collect();
        let splits = self.pool.map(both, work, |(mut range, mut parent)| {
            self.rooms.search.with(|room| {
                let SearchRoom { best, sibling, .. } = &mut **room;
                let mut searched = Searched { node: &children[small], wanted: wanted[small], best };
                let mut sibling =
                    Searched { node: &children[large], wanted: wanted[large], best: sibling };
                let both = Some((&mut parent, &mut sibling));
                self.search_range(&mut range, &lanes, &mut searched, both);
                (searched.best.finish(), sibling.best.finish())
            })
        })?;
        let (small_splits, large_splits): (Vec<_>, Vec<_>) = splits.into_iter().unzip();
        for (side, splits, histogram) in
            [(small, small_splits, histogram), (large, large_splits, parent)]
        {
            let split = NodeSplit::best_of(splits);
            outcomes[side] = Outcome { split, histogram: Some(histogram), sorted: None };
        }
        Ok(())
    }

    /// Sums the histograms of a node in a range of features and searches them. With `sibling`, turns
    /// the parent's histograms into the sibling's and searches these too.
    fn search_range(
        &self,
        range: &mut FeatureRange<'_, '_>,
        lanes: &GatheredLanes<'_, T>,
        searched: &mut Searched<'_>,
        sibling: Option<(&mut FeatureRange<'_, '_>, &mut Searched<'_>)>,
    ) {
        if range.block.is_some() {
            return self.search_compressed_range(range, lanes.node(), searched, sibling);
        }
        let Searched { node, wanted, best } = searched;
        best.begin(&self.layout, &node.total);
        let mut sibling = sibling.map(|(parent, sibling)| {
            sibling.best.begin(&self.layout, &sibling.node.total);
            let parts = self.plan.each_feature(&parent.features, parent.sums, &self.layout);
            (parts, sibling)
        });
        let mut rest = &mut *range.sums;
        for features in self.plan.groups(&range.features, &self.layout) {
            let sums = take_front(&mut rest, self.plan.sums(&features, &self.layout).len());
            self.sum_dense(&features, sums, lanes);
            for (i, part) in self.plan.each_feature(&features, sums, &self.layout) {
                if let Some((parents, sibling)) = &mut sibling
                    && let Some((_, parent)) = parents.next()
                    && sibling.wanted
                {
                    widest(
                        #[inline(always)]
                        || subtract(parent, part),
                    );
                    self.improve(i, parent, None, sibling.node, sibling.best);
                }
                if *wanted {
                    self.improve(i, part, None, node, best);
                }
            }
        }
    }

    /// Searches a node by the histograms of a range of features.
    pub fn search_summed_range(
        &self,
        range: &mut FeatureRange<'_, '_>,
        node: &GrowNode,
        best: &mut BestSplit,
    ) {
        if range.block.is_some() {
            return self.search_compressed(range, node, best);
        }
        best.begin(&self.layout, &node.total);
        let parts = self.plan.each_feature(&range.features, range.sums, &self.layout);
        parts.for_each(|(i, part)| self.improve(i, part, None, node, best));
    }

    /// Completes the histogram of a usable feature and searches it.
    pub fn improve_drawn(&self, i: usize, sums: &mut [i64], node: &GrowNode, best: &mut BestSplit) {
        if let Column::Compressed(column) = self.column(i) {
            fill_default(sums, column.default, &node.total);
        }
        self.improve(i, sums, None, node, best);
    }

    /// Looks for a better split of the node by the usable feature `i`. `occupied` are the bins that
    /// have rows, if they are known.
    pub fn improve(
        &self,
        i: usize,
        sums: &[i64],
        occupied: Option<&[u8]>,
        node: &GrowNode,
        best: &mut BestSplit,
    ) {
        let feature = self.plan.usable[i];
        let cuts = &self.binned.cuts;
        best.raise_floor(node.floor.get());
        let histogram = FeatureHistogram {
            feature,
            n_bins: cuts.n_bins(feature as usize),
            has_missing: cuts.has_missing[feature as usize],
            layout: &self.layout,
            sums,
            total: &node.total,
            occupied,
        };
        let mut limits = &self.limits;
        let ordered;
        if let Some(bounds) = node.constraints.bounds {
            let order = Some(SplitOrder { sign: self.sign(feature), bounds });
            ordered = SplitLimits { order, ..self.limits };
            limits = &ordered;
        }
        let improved = if cuts.categorical[feature as usize] {
            improve_subset(&histogram, limits, best)
        } else {
            improve_split(&histogram, limits, best)
        };
        if improved {
            node.floor.raise(best.floor());
        }
    }
}
