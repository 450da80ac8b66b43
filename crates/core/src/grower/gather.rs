//! Summing histograms on this rank: the lanes of a node side by side, then feature by feature.

use super::histograms::FeatureRange;
use super::search::Search;
use crate::binning::Column;
use crate::error::Result;
use crate::histogram::{
    FEATURES_AT_ONCE, Lane, NodeLanes, NodeRows, accumulate, accumulate_compressed, accumulate_four,
};
use crate::lowlevel::widest;
use crate::memory::resize;

/// Rows of more lanes than this are read in place.
const MOST_GATHERED_LANES: usize = 8;

/// The lanes of a node's rows, copied side by side unless that does not pay.
pub(super) struct GatheredLanes<'a, T: Lane> {
    search: &'a Search<'a, T>,
    rows: NodeRows<'a>,
    /// The copy and its length. Its memory belongs to the search: new memory for every node would
    /// cost more than the copy.
    copied: Option<(Vec<T>, usize)>,
}

impl<T: Lane> GatheredLanes<'_, T> {
    pub fn node(&self) -> NodeLanes<'_, T> {
        let (lanes, gathered) = match &self.copied {
            Some((copied, len)) => (&copied[..*len], true),
            None => (self.search.lanes, false),
        };
        NodeLanes { rows: self.rows, lanes, gathered, width: self.search.layout.width }
    }
}

impl<T: Lane> Drop for GatheredLanes<'_, T> {
    fn drop(&mut self) {
        if let Some((memory, _)) = self.copied.take() {
            self.search.rooms.lanes.put(memory);
        }
    }
}

impl<T: Lane> Search<'_, T> {
    /// The lanes of some rows. Rows ascend, so as many as there are in all means all in order.
    pub(super) fn gather<'s>(&'s self, rows: &'s [u32]) -> Result<GatheredLanes<'s, T>> {
        let width = self.layout.width;
        let all = rows.len() == self.binned.n_rows;
        let node_rows = if all { NodeRows::All } else { NodeRows::Some(rows) };
        if all || width > MOST_GATHERED_LANES {
            return Ok(GatheredLanes { search: self, rows: node_rows, copied: None });
        }
        let mut lanes = self.rooms.lanes.take();
        let len = rows.len() * width;
        if lanes.len() < len {
            resize(&mut lanes, len, self.lanes[0])?;
        }
        let size = rows.len().div_ceil(self.pool.pieces(len * 2)).max(1);
        let pieces = lanes[..len].chunks_mut(size * width).zip(rows.chunks(size));
        self.pool.for_each(pieces, len * 2, |(lanes, rows)| {
            if width == 1 {
                lanes
                    .iter_mut()
                    .zip(rows)
                    .for_each(|(copy, &row)| *copy = self.lanes[row as usize]);
                return;
            }
            for (copy, &row) in lanes.chunks_exact_mut(width).zip(rows) {
                copy.copy_from_slice(&self.lanes[row as usize * width..(row as usize + 1) * width]);
            }
        })?;
        Ok(GatheredLanes { search: self, rows: node_rows, copied: Some((lanes, len)) })
    }

    /// Sums the histograms of a range of dense features.
    pub(super) fn sum_dense(&self, range: &mut FeatureRange<'_, '_>, node: NodeLanes<'_, T>) {
        let (mut i, end) = (range.features.start, range.features.end);
        let mut parts = self.plan.each_feature(&range.features, range.sums, &self.layout);
        if self.layout.width == 1 {
            while i + FEATURES_AT_ONCE <= end {
                let columns = std::array::from_fn(|k| self.dense_column(i + k));
                let mut sums = [[0i64; 256]; FEATURES_AT_ONCE];
                accumulate_four(columns, node.rows, node.lanes, &mut sums);
                for (sums, (_, part)) in sums.iter().zip(&mut parts) {
                    part.copy_from_slice(&sums[..part.len()]);
                }
                i += FEATURES_AT_ONCE;
            }
        }
        for (i, part) in parts {
            self.sum_feature(i, node, part);
        }
    }

    /// Sums the histogram of one usable feature; the default bin of a compressed one stays zero.
    pub(super) fn sum_feature(&self, i: usize, node: NodeLanes<'_, T>, sums: &mut [i64]) {
        match self.column(i) {
            Column::Dense(column) => widest(
                #[inline(always)]
                || accumulate(column, node, sums),
            ),
            Column::Compressed(column) => accumulate_compressed(column, node, sums),
        }
    }

    /// The bins of a usable feature that is dense.
    pub(super) fn dense_column(&self, i: usize) -> &[u8] {
        match self.column(i) {
            Column::Dense(bins) => bins,
            Column::Compressed(_) => unreachable!("dense features come first"),
        }
    }

    /// The bins of a usable feature.
    pub(super) fn column(&self, i: usize) -> &Column {
        &self.binned.columns[self.plan.usable[i] as usize]
    }
}
