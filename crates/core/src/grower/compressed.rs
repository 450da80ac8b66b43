//! Search by compressed features, block by block.

use super::histograms::FeatureRange;
use super::node::GrowNode;
use super::plan::BinaryFeature;
use super::search::{Search, Searched};
use crate::binning::Column;
use crate::histogram::{Lane, NodeLanes, RowLists, fill_default, subtract};
use crate::lowlevel::widest;
use crate::split::{BestSplit, improve_binary};

impl<T: Lane> Search<'_, T> {
    /// [`Search::search_range`] for compressed features. Only those with enough listed rows are
    /// summed, and the parent's are changed in place: the cost follows the listed values of the
    /// smaller node.
    pub(super) fn search_compressed_range(
        &self,
        range: &mut FeatureRange<'_, '_>,
        lanes: NodeLanes<'_, T>,
        searched: &mut Searched<'_>,
        mut sibling: Option<(&mut FeatureRange<'_, '_>, &mut Searched<'_>)>,
    ) {
        let Some(block) = range.block else { return };
        if block.binary.is_some() {
            return self.search_binary_range(range, &block.lists, lanes, searched, sibling);
        }
        let lists = &block.lists;
        let mut counts = vec![0u32; range.features.len()];
        lists.count(lanes.rows, &mut counts);
        let parts = self.plan.each_feature(&range.features, range.sums, &self.layout);
        for (k, (_, part)) in parts.enumerate() {
            let inherited = sibling.as_ref().is_none_or(|(parent, _)| parent.alive[k]);
            let enough = i64::from(counts[k]) >= self.min_count();
            range.alive[k] = searched.wanted && inherited && enough;
            if range.alive[k] {
                part.fill(0);
            }
        }
        let sibling_sums = match &mut sibling {
            Some((parent, sibling)) if sibling.wanted => Some(&mut *parent.sums),
            _ => None,
        };
        widest(
            #[inline(always)]
            || lists.accumulate(lanes, range.alive, range.sums, sibling_sums),
        );
        self.search_compressed(range, searched.node, searched.best);
        if let Some((parent, sibling)) = sibling
            && sibling.wanted
        {
            self.search_compressed(parent, sibling.node, sibling.best);
        }
    }

    /// [`Search::search_range`] for features of two bins. They are so cheap to search that none is
    /// given up.
    fn search_binary_range(
        &self,
        range: &mut FeatureRange<'_, '_>,
        lists: &RowLists,
        lanes: NodeLanes<'_, T>,
        searched: &mut Searched<'_>,
        sibling: Option<(&mut FeatureRange<'_, '_>, &mut Searched<'_>)>,
    ) {
        range.sums.fill(0);
        lists.add(lanes, range.sums);
        range.alive.fill(true);
        if searched.wanted {
            self.search_compressed(range, searched.node, searched.best);
        }
        if let Some((parent, sibling)) = sibling
            && sibling.wanted
        {
            subtract(parent.sums, range.sums);
            self.search_compressed(parent, sibling.node, sibling.best);
        }
    }

    /// Searches a block of features of two bins.
    fn search_binary(
        &self,
        range: &mut FeatureRange<'_, '_>,
        listed: &[BinaryFeature],
        node: &GrowNode,
        best: &mut BestSplit,
    ) {
        let layout = &self.layout;
        let width = layout.width;
        for (alive, bin) in range.alive.iter_mut().zip(listed) {
            let lanes = &range.sums[bin.slot as usize * width..][..width];
            *alive &= layout.count(lanes) >= self.min_count();
        }
        let (sums, alive, total) = (&*range.sums, &*range.alive, &node.total[..]);
        let features = &self.plan.usable[range.features.clone()];
        improve_binary(
            features,
            layout,
            total,
            &self.limits,
            best,
            #[inline(always)]
            |k, lane| {
                let BinaryFeature { slot, is_upper } = listed[k];
                let sum = sums[slot as usize * width + lane];
                let left = if is_upper { total[lane] - sum } else { sum };
                if alive[k] { left } else { 0 }
            },
        );
    }

    /// Searches the compressed features that are alive. Gives up those that can split neither the
    /// node nor any node below it.
    pub(super) fn search_compressed(
        &self,
        range: &mut FeatureRange<'_, '_>,
        node: &GrowNode,
        best: &mut BestSplit,
    ) {
        let layout = &self.layout;
        best.begin(layout, &node.total);
        if let Some(binary) = range.block.and_then(|block| block.binary.as_ref())
            && node.constraints.bounds.is_none()
        {
            return self.search_binary(range, binary, node, best);
        }
        let parts = self.plan.each_feature(&range.features, range.sums, layout);
        for (k, (i, part)) in parts.enumerate() {
            let Column::Compressed(column) = self.column(i) else { continue };
            if !range.alive[k] {
                continue;
            }
            fill_default(part, column.default, &node.total);
            let common = &part[column.default as usize * layout.width..][..layout.width];
            let listed = layout.count(&node.total) - layout.count(common);
            range.alive[k] = listed >= self.min_count();
            if range.alive[k] {
                self.improve(i, part, None, node, best);
            }
        }
    }
}
