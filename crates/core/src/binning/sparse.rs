//! Sparse matrices: cuts and bins without a dense copy.

use std::sync::Arc;

use super::apply::bin_of;
use super::column::{Binned, Census, Column, Compressed, compresses};
use super::cuts::{Cuts, check_max_bins, cut_weighted, has_missing, ordered, row_masses};
use super::together::{cut_together, sorted_column};
use crate::comm::check_rows;
use crate::error::Result;
use crate::memory::collected;
use crate::parallel::Pool;
use crate::reduce::exchange;

/// A sparse matrix by columns; values that are not stored are zero.
#[derive(Debug, Clone, Copy)]
pub struct SparseColumns<'a> {
    /// Number of rows.
    pub n_rows: usize,
    /// First stored value of each column, and one past the last.
    pub starts: &'a [i64],
    /// Row of each stored value, ascending within a column.
    pub rows: &'a [i32],
    /// Stored values.
    pub values: &'a [f32],
}

impl<'a> SparseColumns<'a> {
    /// Number of columns.
    pub fn n_features(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    fn column(&self, feature: usize) -> (&'a [i32], &'a [f32]) {
        let stored = self.starts[feature] as usize..self.starts[feature + 1] as usize;
        (&self.rows[stored.clone()], &self.values[stored])
    }

    /// Calls `f` for every column, in order, and collects what it returns.
    fn map<R: Send>(
        &self,
        pool: &Pool,
        f: impl Fn(usize, &'a [i32], &'a [f32]) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let work = (self.values.len() + self.n_features()) * 8;
        let n = self.n_features();
        let pieces = pool.pieces(work).min(n.max(1));
        let ranges = (0..pieces).map(|i| n * i / pieces..n * (i + 1) / pieces);
        let parts = pool.try_map(ranges, work, |features| {
            let call = |feature| {
                let (rows, values) = self.column(feature);
                f(feature, rows, values)
            };
            features.map(call).collect::<Result<Vec<R>>>()
        })?;
        Ok(parts.into_iter().flatten().collect())
    }
}

/// Finds thresholds for a sparse matrix: the same as for its dense copy.
pub fn find_cuts_sparse(
    pool: &Pool,
    x: SparseColumns<'_>,
    weight: Option<&[f64]>,
    max_bins: usize,
) -> Result<Cuts> {
    check_max_bins(max_bins)?;
    check_rows(x.n_rows)?;
    let masses = row_masses(pool, weight, x.n_rows)?;
    let mass_of = |row: i32| masses.as_ref().map_or(1, |masses| masses[row as usize]);
    let total = masses.as_ref().map_or(x.n_rows as i64, |masses| masses.iter().sum());
    let keys_of = |rows: &[i32], values: &[f32]| -> Result<Vec<(u32, i64)>> {
        let zeros = total - rows.iter().map(|&row| mass_of(row)).sum::<i64>();
        let stored = rows.iter().zip(values).filter(|(_, v)| !v.is_nan());
        let mut keys =
            collected(rows.len() + 1, stored.map(|(&row, &v)| (ordered(v), mass_of(row))))?;
        if zeros > 0 {
            keys.push((ordered(0.0), zeros));
        }
        Ok(keys)
    };
    let cut = if pool.others().is_some() {
        cut_together(pool, (x.n_rows, x.n_features()), max_bins, |features| {
            let work = x.n_rows * features.len() * 20;
            pool.try_map(features, work, |feature| {
                let (rows, values) = x.column(feature);
                Ok((sorted_column(keys_of(rows, values)?)?, has_missing(values)))
            })
        })?
    } else {
        x.map(pool, |_, rows, values| {
            Ok((cut_weighted(keys_of(rows, values)?, max_bins), has_missing(values)))
        })?
    };
    Ok(Cuts::new(cut, &[]))
}

/// Bins a sparse matrix with known cuts, without a dense copy of it.
pub fn apply_cuts_sparse(pool: &Pool, x: SparseColumns<'_>, cuts: &Arc<Cuts>) -> Result<Binned> {
    check_rows(x.n_rows)?;
    let columns = x.map(pool, |feature, rows, values| {
        let thresholds = &cuts.thresholds[feature];
        let stored = rows.iter().zip(values);
        let binned = stored.map(|(&row, &value)| (row as u32, bin_of(value, thresholds)));
        Compressed::of(bin_of(0.0, thresholds), binned)
    })?;
    let mut listed: Vec<i64> = columns.iter().map(|column| column.rows.len() as i64).collect();
    exchange(pool, &mut listed, &mut [])?;
    let n_all = pool.all_rows(x.n_rows);
    let mut binned = Binned {
        n_rows: x.n_rows,
        n_features: columns.len(),
        columns: columns.into_iter().map(Column::Compressed).collect(),
        uncommon: listed.iter().map(|&n| n as usize).collect(),
        cuts: Arc::clone(cuts),
    };
    // If few rows are listed, the bin of zero is the most frequent one. Other features become dense,
    // unless most of their rows share another bin.
    for (column, uncommon) in binned.columns.iter_mut().zip(&mut binned.uncommon) {
        if !compresses(*uncommon, n_all) {
            let bins = vec![column.to_vec(x.n_rows)?];
            let census = Census::of(pool, &bins)?[0];
            *uncommon = census.uncommon;
            for bins in bins {
                *column = Column::of(bins, census, n_all)?;
            }
        }
    }
    Ok(binned)
}

#[cfg(test)]
mod tests {
    use super::super::{apply_cuts, find_cuts};
    use super::*;

    #[test]
    fn a_sparse_matrix_is_binned_as_its_dense_copy() {
        let (n, p) = (300, 6);
        let mut stream = crate::random::Key::new(3).stream();
        // Densities from nearly empty to nearly full, negative values, stored zeros, missing ones.
        let mut dense = vec![0.0f32; n * p];
        let (mut starts, mut rows, mut values) = (vec![0i64], vec![], vec![]);
        for feature in 0..p {
            for row in 0..n {
                if stream.uniform() < [0.01, 0.05, 0.1, 0.5, 0.95, 1.0][feature] {
                    let value = match stream.below(12) {
                        0 => 0.0,
                        1 => f32::NAN,
                        _ => stream.normals().0 as f32,
                    };
                    dense[row * p + feature] = value;
                    rows.push(row as i32);
                    values.push(value);
                }
            }
            starts.push(rows.len() as i64);
        }
        let sparse = SparseColumns { n_rows: n, starts: &starts, rows: &rows, values: &values };
        let weights: Vec<f64> = (0..n).map(|_| 0.1 + stream.uniform()).collect();
        let pool = Pool::new(2, Box::new(|| false));
        for weight in [None, Some(&weights[..])] {
            for max_bins in [3, 20, 255] {
                let cuts = find_cuts(&pool, &dense, p, weight, max_bins, &[]).unwrap();
                assert_eq!(find_cuts_sparse(&pool, sparse, weight, max_bins).unwrap(), cuts);
                let cuts = Arc::new(cuts);
                let expected = apply_cuts(&pool, &dense, &cuts).unwrap();
                let binned = apply_cuts_sparse(&pool, sparse, &cuts).unwrap();
                assert_eq!(binned.uncommon, expected.uncommon);
                for (column, expected) in binned.columns.iter().zip(&expected.columns) {
                    assert_eq!(column.to_vec(n), expected.to_vec(n));
                }
                assert!(matches!(binned.columns[0], Column::Compressed(_)));
                assert!(matches!(binned.columns[3], Column::Dense(_)));
            }
        }
    }

    #[test]
    fn more_rows_than_32_bits_number_are_refused() {
        let pool = Pool::serial();
        let n_rows = u32::MAX as usize;
        let x = SparseColumns { n_rows, starts: &[0, 0], rows: &[], values: &[] };
        let cuts = Arc::new(find_cuts_sparse(&pool, x, None, 255).unwrap());
        assert_eq!(apply_cuts_sparse(&pool, x, &cuts).unwrap().n_rows, n_rows);
        let x = SparseColumns { n_rows: n_rows + 1, ..x };
        let refusal = apply_cuts_sparse(&pool, x, &cuts).unwrap_err();
        assert_eq!(find_cuts_sparse(&pool, x, None, 255), Err(refusal.clone()));
        assert_eq!(
            refusal.to_string(),
            "there are 4294967296 rows; one machine takes at most 4,294,967,295, spread them over \
             ranks"
        );
    }

    #[test]
    fn a_sparse_matrix_without_columns_has_no_cuts() {
        let pool = Pool::serial();
        let none = SparseColumns { n_rows: 3, starts: &[], rows: &[], values: &[] };
        let cuts = find_cuts_sparse(&pool, none, None, 255).unwrap();
        assert!(cuts.thresholds.is_empty());
        assert_eq!(apply_cuts_sparse(&pool, none, &Arc::new(cuts)).unwrap().n_features, 0);
    }
}
