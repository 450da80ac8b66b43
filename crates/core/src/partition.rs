//! The row partition: one array of row numbers in which every node is a slice.
//!
//! Splitting a node reorders its slice in place, left rows first, both sides in ascending order:
//! `[a c e g | b d f h]`. The left child is the first part, the right child the second.

use std::ops::Range;

use crate::binning::{Binned, Column, Compressed};
use crate::category::CategorySet;
use crate::error::Result;
use crate::memory::{grow, resize};
use crate::parallel::{Pool, take_front};
use crate::split::NodeSplit;

/// Rows below which one thread is enough.
pub const LARGE_NODE: usize = 1 << 12;

/// The rows that a tree is grown on, node by node.
#[derive(Default)]
pub struct RowPartition {
    rows: Vec<u32>,
    scratch: Vec<u32>,
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

    /// All rows, to be reordered.
    pub fn all(&mut self) -> RowSlice<'_> {
        RowSlice { start: 0, rows: &mut self.rows, scratch: &mut self.scratch }
    }
}

/// The rows of a node and of all nodes below it.
pub struct RowSlice<'a> {
    start: usize,
    rows: &'a mut [u32],
    scratch: &'a mut [u32],
}

impl<'a> RowSlice<'a> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Where it starts in the partition.
    pub fn start(&self) -> usize {
        self.start
    }

    /// The rows of a node, by its range in the partition.
    pub fn of(&self, node: &Range<usize>) -> &[u32] {
        &self.rows[node.start - self.start..node.end - self.start]
    }

    /// The rows before a place in the partition, and those from there on.
    pub fn cut(self, middle: usize) -> [RowSlice<'a>; 2] {
        let (rows, right_rows) = self.rows.split_at_mut(middle - self.start);
        let (scratch, right_scratch) = self.scratch.split_at_mut(middle - self.start);
        let left = RowSlice { start: self.start, rows, scratch };
        [left, RowSlice { start: middle, rows: right_rows, scratch: right_scratch }]
    }

    /// Reorders the rows of a node by a split; returns where those of the right child start.
    pub fn split(
        &mut self,
        pool: &Pool,
        binned: &Binned,
        node: &Range<usize>,
        split: &NodeSplit,
    ) -> Result<usize> {
        let rows = &mut self.rows[node.start - self.start..node.end - self.start];
        let feature = split.feature as usize;
        let rule = BinRule {
            categories: split.categories,
            bin: split.bin,
            missing_bin: binned.cuts.n_bins(feature) as u8,
            missing_left: split.missing_left,
        };
        let n_left = partition_by(pool, rows, self.scratch, &binned.columns[feature], &rule)?;
        Ok(node.start + n_left)
    }
}

/// Which bins of a feature go left.
#[derive(Debug, Clone, Copy)]
pub struct BinRule {
    /// The bins themselves, for a categorical feature.
    pub categories: Option<CategorySet>,
    /// Otherwise the last bin that goes left.
    pub bin: u8,
    /// The bin of missing values.
    pub missing_bin: u8,
    /// Whether missing values go left.
    pub missing_left: bool,
}

/// [`partition`] by the bins of a column. The rows ascend.
pub fn partition_by(
    pool: &Pool,
    rows: &mut [u32],
    scratch: &mut [u32],
    column: &Column,
    rule: &BinRule,
) -> Result<usize> {
    match column {
        Column::Compressed(column) => Ok(partition_compressed(rows, scratch, column, rule)),
        // A choice of the kind of split outside the loop over rows.
        Column::Dense(bins) => match rule.categories {
            Some(left) => partition(pool, rows, scratch, |row| left.contains(bins[row as usize])),
            None => partition(pool, rows, scratch, |row| rule.orders_left(bins[row as usize])),
        },
    }
}

impl BinRule {
    fn goes_left(&self, bin: u8) -> bool {
        self.categories.map_or_else(|| self.orders_left(bin), |left| left.contains(bin))
    }

    /// The side of a bin of a numeric feature.
    #[inline(always)]
    fn orders_left(&self, bin: u8) -> bool {
        if bin == self.missing_bin { self.missing_left } else { bin <= self.bin }
    }
}

/// [`partition`] by a compressed column. Only rows that are listed can leave the side of the others,
/// and listed rows are found by joining two ascending lists.
fn partition_compressed(
    rows: &mut [u32],
    scratch: &mut [u32],
    column: &Compressed,
    rule: &BinRule,
) -> usize {
    let default_left = rule.goes_left(column.default);
    let mut n_leaving = 0;
    column.each_listed(rows, |place, listed| {
        // A store without a branch: which rows leave is hard to predict.
        scratch[n_leaving] = place as u32;
        n_leaving += usize::from(rule.goes_left(column.bins[listed]) != default_left);
    });
    // The others close ranks.
    let (mut kept, mut next) = (0, 0);
    for place in &mut scratch[..n_leaving] {
        let leaving = *place as usize;
        *place = rows[leaving];
        rows.copy_within(next..leaving, kept);
        kept += leaving - next;
        next = leaving + 1;
    }
    rows.copy_within(next.., kept);
    let kept = rows.len() - n_leaving;
    if default_left {
        rows[kept..].copy_from_slice(&scratch[..n_leaving]);
        return kept;
    }
    rows.copy_within(..kept, n_leaving);
    rows[..n_leaving].copy_from_slice(&scratch[..n_leaving]);
    n_leaving
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
    let (n_left, work) = (lefts.iter().sum(), rows.len());
    let mut places = Vec::with_capacity(2 * lefts.len());
    let (mut left, mut right) = rows.split_at_mut(n_left);
    for (sorted, &n) in scratch.chunks(size).zip(&lefts) {
        let sorted = &sorted[..size.min(left.len() + right.len())];
        places.push((take_front(&mut left, n), &sorted[..n], false));
        places.push((take_front(&mut right, sorted.len() - n), &sorted[n..], true));
    }
    pool.for_each(places, work, |(place, sorted, backwards)| {
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
        let rule = BinRule { categories: None, bin: 1, missing_bin: 4, missing_left: true };
        let goes_left = |row: u32| rule.goes_left(column[row as usize]);
        let n_left = partition(&Pool::serial(), &mut rows, &mut [0; 8], goes_left).unwrap();
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
                BinRule { categories: None, bin, missing_bin: 6, missing_left: bin % 2 == 0 };
            let goes_left = |row: u32| rule.goes_left(column[row as usize]);
            let mut scratch = vec![0; 100_000];
            let mut alone = rows.clone();
            let expected = partition_alone(&mut alone, &mut scratch, goes_left);
            for threads in [2, 3, 5] {
                let pool = Pool::new(threads, Box::new(|| false));
                let mut together = rows.clone();
                let n_left = partition(&pool, &mut together, &mut scratch, goes_left).unwrap();
                assert_eq!((n_left, &together), (expected, &alone));
            }
        }
    }

    #[test]
    fn compressed_columns_order_as_dense_ones_do() {
        let mut stream = crate::random::Key::new(6).stream();
        let n = 3000usize;
        for default in [0u8, 2, 4] {
            let bin = |_| if stream.below(9) > 0 { default } else { stream.below(5) as u8 };
            let dense: Vec<u8> = (0..n).map(bin).collect();
            let listed: Vec<u32> =
                (0..n as u32).filter(|&r| dense[r as usize] != default).collect();
            let bins = listed.iter().map(|&row| dense[row as usize]).collect();
            let column = Compressed { default, rows: listed.clone(), bins };
            let mut set = CategorySet::filled(false);
            set.put(2, true);
            let rule = |categories, bin, missing_left| BinRule {
                categories,
                bin,
                missing_bin: 4,
                missing_left,
            };
            for rule in [rule(None, 0, false), rule(None, 2, true), rule(Some(set), 0, false)] {
                for every in [1, 2, 40] {
                    let rows: Vec<u32> = (7..n as u32).step_by(every).collect();
                    for rows in [rows, listed.clone(), vec![], vec![listed[3]]] {
                        let mut scratch = vec![0; n];
                        let (mut expected, mut found) = (rows.clone(), rows);
                        let goes_left = |row: u32| rule.goes_left(dense[row as usize]);
                        let n_left = partition_alone(&mut expected, &mut scratch, goes_left);
                        let n_found =
                            partition_compressed(&mut found, &mut scratch, &column, &rule);
                        assert_eq!((n_found, &found), (n_left, &expected));
                    }
                }
            }
        }
    }
}
