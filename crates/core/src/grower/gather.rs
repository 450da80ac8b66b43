//! Summing histograms on this rank: the lanes of a node side by side, then feature by feature.

use std::ops::Range;

use super::rooms::Rooms;
use super::search::Search;
use crate::binning::Column;
use crate::error::Result;
use crate::histogram::{
    FEATURES_AT_ONCE, Lane, LaneVector, NodeLanes, NodeRows, accumulate, accumulate_compressed,
    accumulate_four, accumulate_in_order, accumulate_packed, pack, packed_width, to_vectors,
    vectors_of,
};
use crate::lowlevel::widest;
use crate::memory::resize;

/// Rows of more lanes than this are read in place.
const MOST_GATHERED_LANES: usize = 8;

/// The lanes of a node's rows, copied side by side unless that does not pay.
pub(super) struct GatheredLanes<'a, T: Lane> {
    search: &'a Search<'a, T>,
    rows: NodeRows<'a>,
    /// A copy. Its memory belongs to the search: new memory for every node would cost more than the
    /// copy.
    copied: Option<Vec<T>>,
    /// A packed copy, see [`accumulate_packed`].
    packed: Option<Vec<i64>>,
    /// A copy in vectors, see [`accumulate_in_order`].
    vectors: Option<Vec<LaneVector>>,
    /// The lanes of all rows, zeros outside the node, see [`accumulate_compressed`].
    spread: Option<Vec<T>>,
}

impl<T: Lane> GatheredLanes<'_, T> {
    pub fn node(&self) -> NodeLanes<'_, T> {
        let (lanes, gathered) = match &self.copied {
            Some(copied) => (&copied[..], true),
            None => (self.search.lanes, false),
        };
        NodeLanes { rows: self.rows, lanes, gathered, width: self.search.layout.width }
    }
}

impl<T: Lane> Drop for GatheredLanes<'_, T> {
    fn drop(&mut self) {
        let rooms = &self.search.rooms;
        self.copied.take().into_iter().for_each(|memory| rooms.lanes.gathered.put(memory));
        self.packed.take().into_iter().for_each(|memory| rooms.packed.put(memory));
        self.vectors.take().into_iter().for_each(|memory| rooms.vectors.put(memory));
        if let (Some(mut spread), NodeRows::Some(rows)) = (self.spread.take(), self.rows) {
            let width = self.search.layout.width;
            rows.iter().for_each(|&row| spread[row as usize * width..][..width].fill(T::default()));
            rooms.lanes.spread.put(spread);
        }
    }
}

impl<T: Lane> Search<'_, T> {
    /// The lanes of some rows. Rows ascend, so as many as there are in all means all in order.
    pub(super) fn gather<'s>(&'s self, rows: &'s [u32]) -> Result<GatheredLanes<'s, T>> {
        let width = self.layout.width;
        let all = rows.len() == self.binned.n_rows;
        let node_rows = if all { NodeRows::All } else { NodeRows::Some(rows) };
        let mut gathered = GatheredLanes {
            search: self,
            rows: node_rows,
            copied: None,
            packed: None,
            vectors: None,
            spread: None,
        };
        let is_small = rows.len() < self.small_rows;
        if let Some(n_vectors) = vectors_of::<T>(width).filter(|_| !is_small) {
            let copy = |lanes: &[T], copy: &mut [LaneVector]| to_vectors(lanes, copy);
            gathered.vectors = Some(self.copy_lanes(rows, n_vectors, self.rooms.vectors, copy)?);
            return Ok(gathered);
        }
        // Small nodes and drawn features are summed without packing.
        let packs = self.subtracts && !is_small;
        if let Some(packed) = packed_width::<T>(width).filter(|_| packs) {
            let copy = |lanes: &[T], copy: &mut [i64]| pack(lanes, copy);
            gathered.packed = Some(self.copy_lanes(rows, packed, self.rooms.packed, copy)?);
            if self.plan.n_dense == self.plan.usable.len() {
                return Ok(gathered);
            }
        }
        if !all && width <= MOST_GATHERED_LANES {
            let copy = |lanes: &[T], copy: &mut [T]| copy.copy_from_slice(lanes);
            gathered.copied =
                Some(self.copy_lanes(rows, width, &self.rooms.lanes.gathered, copy)?);
        }
        Ok(gathered)
    }

    /// [`Search::gather`] for a node that looks at features of its own.
    pub(super) fn gather_drawn<'s>(&'s self, rows: &'s [u32]) -> Result<GatheredLanes<'s, T>> {
        let mut gathered = self.gather(rows)?;
        let (width, n_rows) = (self.layout.width, self.binned.n_rows);
        let all_dense = self.plan.n_dense == self.plan.usable.len();
        if all_dense || rows.len() == n_rows || width > MOST_GATHERED_LANES {
            return Ok(gathered);
        }
        let mut spread = self.rooms.lanes.spread.take();
        // It is all zeros between uses, and so is what is added here.
        resize(&mut spread, n_rows * width, T::default())?;
        for place in rows.iter().map(|&row| row as usize * width) {
            spread[place..place + width].copy_from_slice(&self.lanes[place..place + width]);
        }
        gathered.spread = Some(spread);
        Ok(gathered)
    }

    /// Copies the lanes of some rows by `copy`, which fills `width` elements for each row.
    fn copy_lanes<C: Copy + Default + Send + Sync>(
        &self,
        rows: &[u32],
        width: usize,
        rooms: &Rooms<Vec<C>>,
        copy: impl Fn(&[T], &mut [C]) + Sync,
    ) -> Result<Vec<C>> {
        let row_width = self.layout.width;
        let mut copied = rooms.take();
        let len = rows.len() * width;
        resize(&mut copied, len, C::default())?;
        let size = rows.len().div_ceil(self.pool.pieces(len * 2)).max(1);
        let pieces = copied.chunks_mut(size * width).zip(rows.chunks(size));
        self.pool.for_each(pieces, len * 2, |(copied, rows)| {
            // With widths known to the compiler, a copy is an instruction, not a call.
            match (row_width, width) {
                (1, 1) => copy_each(self.lanes, rows, copied, 1, 1, &copy),
                (2, 1) => copy_each(self.lanes, rows, copied, 2, 1, &copy),
                (3, 2) => copy_each(self.lanes, rows, copied, 3, 2, &copy),
                (5, 4) => copy_each(self.lanes, rows, copied, 5, 4, &copy),
                _ => copy_each(self.lanes, rows, copied, row_width, width, &copy),
            }
        })?;
        Ok(copied)
    }

    /// Sums the histograms of some neighbouring dense features.
    pub(super) fn sum_dense(
        &self,
        features: &Range<usize>,
        sums: &mut [i64],
        lanes: &GatheredLanes<'_, T>,
    ) {
        let (node, width) = (lanes.node(), self.layout.width);
        let (mut i, end) = (features.start, features.end);
        let mut parts = self.plan.each_feature(features, sums, &self.layout);
        if let Some(packed) = &lanes.packed {
            while i < end {
                let n = FEATURES_AT_ONCE.min(end - i);
                let columns: [_; FEATURES_AT_ONCE] =
                    std::array::from_fn(|k| self.dense_column(i + k.min(n - 1)));
                let mut sums: [_; FEATURES_AT_ONCE] =
                    std::array::from_fn(|_| parts.next().map_or(&mut [][..], |(_, part)| part));
                let (columns, sums) = (&columns[..n], &mut sums[..n]);
                accumulate_packed(columns, node.rows, packed, width - 1, sums);
                i += n;
            }
            return;
        }
        if width == 1 {
            while i + FEATURES_AT_ONCE <= end {
                let mut sums = [[0i64; 256]; FEATURES_AT_ONCE];
                let columns = std::array::from_fn(|k| self.dense_column(i + k));
                accumulate_four(columns, node.rows, node.lanes, &mut sums);
                for (sums, (_, part)) in sums.iter().zip(&mut parts) {
                    part.copy_from_slice(&sums[..part.len()]);
                }
                i += FEATURES_AT_ONCE;
            }
        }
        for (i, part) in parts {
            self.sum_feature(i, lanes, part);
        }
    }

    /// Sums the histogram of one usable feature; the default bin of a compressed one stays zero.
    pub(super) fn sum_feature(&self, i: usize, lanes: &GatheredLanes<'_, T>, sums: &mut [i64]) {
        let node = lanes.node();
        match (self.column(i), &lanes.vectors) {
            (Column::Dense(column), Some(vectors)) => {
                accumulate_in_order(column, node.rows, vectors, node.width, sums);
            }
            (Column::Dense(column), None) => widest(
                #[inline(always)]
                || accumulate(column, node, sums),
            ),
            (Column::Compressed(column), _) => {
                accumulate_compressed(column, node, lanes.spread.as_deref(), sums);
            }
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

/// Copies the lanes of some rows, `row_width` each, as `width` elements each.
#[inline(always)]
fn copy_each<T, C>(
    lanes: &[T],
    rows: &[u32],
    copied: &mut [C],
    row_width: usize,
    width: usize,
    copy: &impl Fn(&[T], &mut [C]),
) {
    for (into, &row) in copied.chunks_exact_mut(width).zip(rows) {
        copy(&lanes[row as usize * row_width..][..row_width], into);
    }
}
