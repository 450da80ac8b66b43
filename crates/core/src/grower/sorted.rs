//! The rows of a small node, sorted by every dense feature.

use std::ops::Range;
use std::sync::Arc;

use super::rooms::Rooms;
use crate::error::Result;
use crate::histogram::{KeyRoom, N_PLACES, SortKey};
use crate::memory::{collected, resize};

/// Features whose keys lie on one shelf. Threads share the work by shelves.
const SHELF: usize = 64;

/// The rows of a node, sorted by every dense feature. A node below it takes over the places of rows,
/// so that its keys are some of these.
pub(super) struct SortedRows {
    /// The rows of the node that was sorted first, by their places.
    pub places: Arc<Vec<u32>>,
    /// Number of rows of the node.
    pub n: usize,
    /// Shelf by shelf, feature by feature. Each shelf ends with room for a whole column, since
    /// columns are written with arbitrary keys behind their end.
    keys: Vec<SortKey>,
    /// Where the memory goes in the end.
    home: Arc<Rooms<Vec<SortKey>>>,
}

impl Drop for SortedRows {
    fn drop(&mut self) {
        self.home.put(std::mem::take(&mut self.keys));
    }
}

impl SortedRows {
    /// Room for the `n` rows of a node, by `n_features` features.
    pub fn new(
        places: Arc<Vec<u32>>,
        n: usize,
        n_features: usize,
        home: &Arc<Rooms<Vec<SortKey>>>,
    ) -> Result<SortedRows> {
        let mut sorted = SortedRows { places, n, keys: home.take(), home: Arc::clone(home) };
        let len = n_features.div_ceil(SHELF) * sorted.shelf_len();
        if sorted.keys.len() < len {
            resize(&mut sorted.keys, len, 0)?;
        }
        Ok(sorted)
    }

    /// [`SortedRows::new`] for rows that have no places yet.
    pub fn of_rows(
        rows: &[u32],
        n_features: usize,
        home: &Arc<Rooms<Vec<SortKey>>>,
    ) -> Result<SortedRows> {
        let places = Arc::new(collected(rows.len(), rows.iter().copied())?);
        SortedRows::new(places, rows.len(), n_features, home)
    }

    fn shelf_len(&self) -> usize {
        SHELF * self.n + N_PLACES
    }

    /// The sorted column of a feature.
    #[inline(always)]
    pub fn column(&self, feature: usize) -> &[SortKey] {
        let start = feature / SHELF * self.shelf_len() + feature % SHELF * self.n;
        &self.keys[start..start + self.n]
    }

    /// The features in at most `n_pieces` ranges of whole shelves, each with its columns.
    pub fn pieces(
        &mut self,
        n_features: usize,
        n_pieces: usize,
    ) -> impl Iterator<Item = (Range<usize>, Columns<'_>)> {
        let (n, len) = (self.n, self.shelf_len());
        let n_shelves = n_features.div_ceil(SHELF);
        let each = n_shelves.div_ceil(n_pieces).max(1);
        let shelves = self.keys[..n_shelves * len].chunks_mut(each * len);
        shelves.enumerate().map(move |(k, keys)| {
            let first = k * each * SHELF;
            (first..(first + each * SHELF).min(n_features), Columns { first, n, len, keys })
        })
    }
}

/// The columns of some neighbouring features, to be written in their order.
pub(super) struct Columns<'a> {
    first: usize,
    n: usize,
    len: usize,
    keys: &'a mut [SortKey],
}

impl Columns<'_> {
    /// Room for the column of a feature. What lies behind it may be overwritten.
    #[inline(always)]
    pub fn room(&mut self, feature: usize) -> &mut KeyRoom {
        let k = feature - self.first;
        let start = k / SHELF * self.len + k % SHELF * self.n;
        match self.keys[start..].first_chunk_mut() {
            Some(room) => room,
            None => unreachable!("a shelf ends with room for a column"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_where_they_were_written() {
        let home = Arc::default();
        for (n, n_features) in [(1, 1), (5, 64), (255, 65), (7, 200)] {
            for n_pieces in [1, 2, 9] {
                let rows: Vec<u32> = (0..n as u32).collect();
                let mut sorted = SortedRows::of_rows(&rows, n_features, &home).unwrap();
                let mut next = 0;
                for (features, mut columns) in sorted.pieces(n_features, n_pieces) {
                    assert_eq!(features.start, next);
                    next = features.end;
                    for i in features {
                        columns.room(i).fill(i as SortKey);
                    }
                }
                assert_eq!(next, n_features);
                assert!((0..n_features).all(|i| sorted.column(i) == vec![i as SortKey; n]));
            }
        }
    }
}
