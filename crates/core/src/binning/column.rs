//! The bins of a feature, dense or compressed.

use std::ops::{Deref, Range};
use std::sync::Arc;

use super::cuts::Cuts;
use crate::error::Result;
use crate::lowlevel::PrivateMap;
use crate::memory::{collected, resize};
use crate::parallel::{Pool, take_front};
use crate::reduce::exchange;

/// Features as bins.
#[derive(Debug, Clone)]
pub struct Binned {
    /// Number of rows.
    pub n_rows: usize,
    /// Number of features.
    pub n_features: usize,
    /// One column for each feature.
    pub columns: Vec<Column>,
    /// Number of rows, on all machines, outside the most frequent bin of each feature.
    pub uncommon: Vec<usize>,
    /// What the bins mean.
    pub cuts: Arc<Cuts>,
}

/// The bins of one feature, one for each row.
#[derive(Debug, Clone)]
pub enum Column {
    /// The bin of every row.
    Dense(Bins),
    /// Only the rows outside the most frequent bin.
    Compressed(Compressed),
}

/// The bins of all rows of a feature.
#[derive(Debug, Clone)]
pub enum Bins {
    /// In memory.
    Owned(Vec<u8>),
    /// Part of a mapped file.
    Mapped(Arc<PrivateMap>, Range<usize>),
}

impl Deref for Bins {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Bins::Owned(bins) => bins,
            Bins::Mapped(map, range) => &map[range.clone()],
        }
    }
}

/// A feature that has the same bin in most rows.
#[derive(Debug, Clone)]
pub struct Compressed {
    /// The bin of all rows that are not listed.
    pub default: u8,
    /// The listed rows, ascending.
    pub rows: Vec<u32>,
    /// The bins of the listed rows.
    pub bins: Vec<u8>,
}

/// A feature is compressed if at most one row in this many lies outside its most frequent bin.
const COMPRESSED_SHARE: usize = 8;

/// Whether `uncommon` rows outside the most frequent bin are few among `n_rows`.
pub(super) fn compresses(uncommon: usize, n_rows: usize) -> bool {
    uncommon * COMPRESSED_SHARE <= n_rows
}

/// How the rows of all machines are distributed over the bins of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Census {
    /// The most frequent bin; the lowest such bin if there are several.
    default: u8,
    /// Number of rows outside that bin.
    pub(super) uncommon: usize,
}

impl Census {
    /// Counts the bins of some columns.
    pub(super) fn of(pool: &Pool, columns: &[Vec<u8>]) -> Result<Vec<Census>> {
        let work = columns.iter().map(Vec::len).sum();
        let counts = pool.map(columns, work, |bins| bin_counts(bins))?;
        let mut counts = counts.into_iter().flatten().collect::<Vec<i64>>();
        exchange(pool, &mut counts, &mut [])?;
        Ok(counts.chunks_exact(256).map(Census::new).collect())
    }

    fn new(counts: &[i64]) -> Census {
        let default = (0..256).rev().max_by_key(|&bin| counts[bin]).unwrap_or(0);
        let uncommon = (counts.iter().sum::<i64>() - counts[default]) as usize;
        Census { default: default as u8, uncommon }
    }
}

fn bin_counts(bins: &[u8]) -> [i64; 256] {
    let mut counts = [0; 256];
    bins.iter().for_each(|&bin| counts[bin as usize] += 1);
    counts
}

impl Binned {
    /// Some of the rows, ascending, as if they had been binned with these cuts on this machine alone.
    pub fn take(&self, pool: &Pool, rows: &[u32]) -> Result<Binned> {
        let work = rows.len() * self.n_features;
        let taken = pool.try_map(&self.columns, work, |column| column.take(self.n_rows, rows))?;
        let (columns, uncommon) = taken.into_iter().unzip();
        let (n_rows, n_features) = (rows.len(), self.n_features);
        Ok(Binned { n_rows, n_features, columns, uncommon, cuts: Arc::clone(&self.cuts) })
    }
}

impl Column {
    /// A column in the shorter of its two forms; the choice is the same on all machines, which have
    /// `n_rows` rows together.
    pub(super) fn of(bins: Vec<u8>, census: Census, n_rows: usize) -> Result<Column> {
        if !compresses(census.uncommon, n_rows) {
            return Ok(Column::Dense(Bins::Owned(bins)));
        }
        let listed = bins.iter().enumerate().map(|(row, &bin)| (row as u32, bin));
        Ok(Column::Compressed(Compressed::of(census.default, listed)?))
    }

    /// Some of `n_rows` rows, and how many of them are outside their most frequent bin.
    fn take(&self, n_rows: usize, rows: &[u32]) -> Result<(Column, usize)> {
        if let Column::Compressed(column) = self {
            let mut listed = Vec::new();
            column.each_listed(rows, |k, place| listed.push((k as u32, column.bins[place])));
            // If few rows are listed, their bin is still the most frequent one.
            if compresses(listed.len(), rows.len()) {
                let taken = Compressed::of(column.default, listed.iter().copied())?;
                return Ok((Column::Compressed(taken), listed.len()));
            }
        }
        let mut buffer = Vec::new();
        let bins = self.spread(n_rows, &mut buffer)?;
        let taken = collected(rows.len(), rows.iter().map(|&row| bins[row as usize]))?;
        let census = Census::new(&bin_counts(&taken));
        Ok((Column::of(taken, census, rows.len())?, census.uncommon))
    }

    /// The bin of a row.
    #[cfg(test)]
    pub fn bin(&self, row: usize) -> u8 {
        match self {
            Column::Dense(bins) => bins[row],
            Column::Compressed(column) => match column.rows.binary_search(&(row as u32)) {
                Ok(place) => column.bins[place],
                Err(_) => column.default,
            },
        }
    }

    /// The bins of all rows; those of a compressed column are written to `buffer`.
    pub fn spread<'a>(&'a self, n_rows: usize, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        Ok(match self {
            Column::Dense(bins) => bins,
            Column::Compressed(column) => {
                buffer.clear();
                resize(buffer, n_rows, column.default)?;
                for (&row, &bin) in column.rows.iter().zip(&column.bins) {
                    buffer[row as usize] = bin;
                }
                buffer
            }
        })
    }

    /// The bins of all rows.
    pub fn to_vec(&self, n_rows: usize) -> Result<Vec<u8>> {
        let mut buffer = Vec::new();
        let bins = self.spread(n_rows, &mut buffer)?;
        collected(n_rows, bins.iter().copied())
    }
}

impl Compressed {
    /// Calls `f(place in rows, place in the list)` for each of some rows, ascending, that is listed. The
    /// cost follows the shorter of the two lists.
    #[inline(always)]
    pub fn each_listed(&self, rows: &[u32], mut f: impl FnMut(usize, usize)) {
        // Both lists ascend, so the next match lies beyond the last one.
        let mut rest = 0;
        if rows.len() < self.rows.len() {
            for (k, row) in rows.iter().enumerate() {
                rest += n_below(&self.rows[rest..], *row);
                if self.rows.get(rest) == Some(row) {
                    f(k, rest);
                }
            }
        } else {
            for (listed, row) in self.rows.iter().enumerate() {
                rest += n_below(&rows[rest..], *row);
                if rows.get(rest) == Some(row) {
                    f(rest, listed);
                }
            }
        }
    }

    /// Lists those of some rows, ascending with their bins, that are not in the bin `default`.
    pub(super) fn of(
        default: u8,
        rows: impl Iterator<Item = (u32, u8)> + Clone,
    ) -> Result<Compressed> {
        let listed = rows.filter(|&(_, bin)| bin != default);
        let n_listed = listed.clone().count();
        let rows = collected(n_listed, listed.clone().map(|(row, _)| row))?;
        let bins = collected(n_listed, listed.map(|(_, bin)| bin))?;
        Ok(Compressed { default, rows, bins })
    }
}

/// How many of some rows, ascending, are below `row`. The cost follows the logarithm of that number.
#[inline(always)]
fn n_below(rows: &[u32], row: u32) -> usize {
    let mut reach = 1;
    while reach <= rows.len() && rows[reach - 1] < row {
        reach *= 2;
    }
    let from = reach / 2;
    from + rows[from..rows.len().min(reach)].partition_point(|&other| other < row)
}

/// Rows of row-major data that are read column by column, while they are in cache.
pub(super) const ROW_BLOCK: usize = 128;

/// Cuts columns into ranges of rows: each range comes with its part of every column.
pub(super) fn row_pieces<'a, T>(
    pool: &Pool,
    columns: &'a mut [Vec<T>],
    n_rows: usize,
) -> Vec<(Range<usize>, Vec<&'a mut [T]>)> {
    let mut rests: Vec<&mut [T]> = columns.iter_mut().map(Vec::as_mut_slice).collect();
    let ranges = pool.row_ranges(n_rows, rests.len() * 100);
    let mut cut = Vec::with_capacity(ranges.len());
    for rows in ranges {
        let parts = rests.iter_mut().map(|rest| take_front(rest, rows.len())).collect();
        cut.push((rows, parts));
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::super::{apply_cuts, find_cuts};
    use super::*;

    #[test]
    fn rows_are_taken_as_they_would_be_binned() {
        let (n, p) = (400, 6);
        let mut stream = crate::random::Key::new(7).stream();
        // Columns whose rows outside the most frequent bin are none, few, about an eighth, many, all.
        let x: Vec<f32> = (0..n * p)
            .map(|k| {
                let v = stream.normals().0 as f32;
                let is_listed = stream.uniform() < [0.0, 0.02, 0.125, 0.13, 0.5, 1.0][k % p];
                if is_listed { if stream.below(9) == 0 { f32::NAN } else { v } } else { 0.0 }
            })
            .collect();
        let pool = Pool::new(2, Box::new(|| false));
        let cuts = Arc::new(find_cuts(&pool, &x, p, None, 20, &[]).unwrap());
        let all = apply_cuts(&pool, &x, &cuts).unwrap();
        for share in [0.0, 0.05, 0.5, 0.8, 1.0] {
            let rows: Vec<u32> = (0..n as u32).filter(|_| stream.uniform() < share).collect();
            let x: Vec<f32> =
                rows.iter().flat_map(|&row| &x[row as usize * p..][..p]).copied().collect();
            let (taken, expected) =
                (all.take(&pool, &rows).unwrap(), apply_cuts(&pool, &x, &cuts).unwrap());
            assert_eq!((taken.n_rows, &taken.uncommon), (rows.len(), &expected.uncommon));
            for (column, expected) in taken.columns.iter().zip(&expected.columns) {
                assert_eq!(std::mem::discriminant(column), std::mem::discriminant(expected));
                assert_eq!(column.to_vec(rows.len()), expected.to_vec(rows.len()));
            }
        }
    }
}
