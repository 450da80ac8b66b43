//! The row partition: one array of row numbers in which every node is a slice.
//!
//! Splitting a node reorders its slice in place, left rows first, both sides in ascending order:
//! `[a c e g | b d f h]`. The left child is the first part, the right child the second.

use std::ops::Range;

use crate::binning::Binned;
use crate::error::Result;
use crate::memory::{grow, resize};
use crate::parallel::Pool;
use crate::split::NodeSplit;

/// Rows below which one thread is enough.
const LARGE_NODE: usize = 1 << 14;

/// The rows that a tree is grown on, node by node.
#[derive(Default)]
pub struct RowPartition {
    rows: Vec<u32>,
    scratch: Vec<u32>,
    /// Room for the bins of a compressed column, spread over all rows.
    spread: Vec<u8>,
}

impl RowPartition {
    /// Starts with these rows, ascending, of all `n_rows`; with all if `None`.
    pub fn reset(&mut self, rows: Option<&[u32]>, n_rows: usize) -> Result<()> {
        self.rows.clear();
        grow(&mut self.rows, rows.map_or(n_rows, <[u32]>::len))?;
        match rows {
            Some(rows) => self.rows.extend_from_slice(rows),
            None => self.rows.extend(0..n_rows as u32),
        }
        resize(&mut self.scratch, self.rows.len(), 0)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows of a node, by its range in the partition.
    pub fn of(&self, node: &Range<usize>) -> &[u32] {
        &self.rows[node.clone()]
    }

    /// Reorders the rows of a node by a split; returns where those of the right child start.
    pub fn split(
        &mut self,
        pool: &Pool,
        binned: &Binned,
        node: &Range<usize>,
        split: &NodeSplit,
    ) -> Result<usize> {
        let RowPartition { rows, scratch, spread } = self;
        let feature = split.feature as usize;
        let column = binned.columns[feature].spread(binned.n_rows, spread)?;
        let rows = &mut rows[node.clone()];
        let n_left = if let Some(left) = split.categories {
            partition(pool, rows, scratch, |row| left.contains(column[row as usize]))?
        } else {
            let rule = ThresholdRule {
                column,
                bin: split.bin,
                missing_bin: binned.cuts.n_bins(feature) as u8,
                missing_left: split.missing_left,
            };
            partition(pool, rows, scratch, |row| rule.goes_left(row))?
        };
        Ok(node.start + n_left)
    }
}

/// The split rule of a numeric feature.
#[derive(Debug, Clone, Copy)]
pub struct ThresholdRule<'a> {
    /// Bins of all rows.
    pub column: &'a [u8],
    /// Last bin that goes left.
    pub bin: u8,
    /// Bin of missing values.
    pub missing_bin: u8,
    /// Whether missing values go left.
    pub missing_left: bool,
}

impl ThresholdRule<'_> {
    /// The side of a row.
    #[inline(always)]
    pub fn goes_left(&self, row: u32) -> bool {
        let value = self.column[row as usize];
        if value == self.missing_bin { self.missing_left } else { value <= self.bin }
    }
}

/// Reorders `rows` so that those going left come first; returns how many do. `scratch` is at least
/// as long as `rows`.
pub fn partition(
    pool: &Pool,
    rows: &mut [u32],
    scratch: &mut [u32],
    goes_left: impl Fn(u32) -> bool + Sync,
) -> Result<usize> {
    if pool.threads() == 1 || rows.len() < LARGE_NODE {
        return Ok(partition_alone(rows, scratch, goes_left));
    }
    // Each piece writes its left rows to the front of its part of `scratch` and its right rows to
    // the end, in reverse; then all are copied to their places.
    let size = rows.len().div_ceil(pool.threads() * 2);
    let pieces = rows.chunks(size).zip(scratch.chunks_mut(size));
    let lefts = pool.map(pieces, rows.len() * 2, |(rows, scratch)| {
        let (mut front, mut back) = (0, rows.len());
        for &row in rows {
            let left = goes_left(row);
            scratch[front] = row;
            scratch[back - 1] = row;
            front += usize::from(left);
            back -= usize::from(!left);
        }
        front
    })?;
    let n_left = lefts.iter().sum();
    let mut places = Vec::with_capacity(2 * lefts.len());
    let (mut left, mut right) = rows.split_at_mut(n_left);
    for (sorted, &n) in scratch.chunks(size).zip(&lefts) {
        let sorted = &sorted[..size.min(left.len() + right.len())];
        let (place, rest) = std::mem::take(&mut left).split_at_mut(n);
        places.push((place, &sorted[..n], false));
        left = rest;
        let (place, rest) = std::mem::take(&mut right).split_at_mut(sorted.len() - n);
        places.push((place, &sorted[n..], true));
        right = rest;
    }
    pool.for_each(places, n_left * 2, |(place, sorted, backwards)| {
        if backwards {
            place.iter_mut().zip(sorted.iter().rev()).for_each(|(to, &row)| *to = row);
        } else {
            place.copy_from_slice(sorted);
        }
    })?;
    Ok(n_left)
}

fn partition_alone(
    rows: &mut [u32],
    scratch: &mut [u32],
    goes_left: impl Fn(u32) -> bool,
) -> usize {
    let mut n_left = 0;
    let mut n_right = 0;
    for k in 0..rows.len() {
        let row = rows[k];
        let left = goes_left(row);
        // Write to both sides and keep one: no branch to mispredict.
        rows[n_left] = row;
        scratch[n_right] = row;
        n_left += usize::from(left);
        n_right += usize::from(!left);
    }
    rows[n_left..].copy_from_slice(&scratch[..n_right]);
    n_left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_keep_their_order() {
        let column = [0u8, 3, 1, 2, 0, 4, 3, 4];
        let mut rows: Vec<u32> = (0..8).collect();
        let rule = ThresholdRule { column: &column, bin: 1, missing_bin: 4, missing_left: true };
        let n_left =
            partition(&Pool::serial(), &mut rows, &mut [0; 8], |row| rule.goes_left(row)).unwrap();
        assert_eq!(&rows[..n_left], &[0, 2, 4, 5, 7]);
        assert_eq!(&rows[n_left..], &[1, 3, 6]);
    }

    #[test]
    fn several_threads_order_as_one_does() {
        let mut stream = crate::random::Key::new(5).stream();
        let column: Vec<u8> = (0..100_000).map(|_| stream.below(7) as u8).collect();
        let rows: Vec<u32> = (0..100_000).filter(|_| stream.below(3) > 0).collect();
        for bin in 0..6 {
            let rule =
                ThresholdRule { column: &column, bin, missing_bin: 6, missing_left: bin % 2 == 0 };
            let mut scratch = vec![0; 100_000];
            let mut alone = rows.clone();
            let expected = partition_alone(&mut alone, &mut scratch, |row| rule.goes_left(row));
            for threads in [2, 3, 5] {
                let pool = Pool::new(threads, Box::new(|| false));
                let mut together = rows.clone();
                let n_left =
                    partition(&pool, &mut together, &mut scratch, |row| rule.goes_left(row))
                        .unwrap();
                assert_eq!((n_left, &together), (expected, &alone));
            }
        }
    }
}
