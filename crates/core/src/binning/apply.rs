//! Values to bins, with known cuts.

use std::sync::Arc;

use super::column::{Binned, Census, Column, ROW_BLOCK, row_pieces};
use super::cuts::{Cuts, n_rows_of};
use crate::error::Result;
use crate::memory::zeros;
use crate::parallel::Pool;

/// Features that are binned together: their floats share the cache lines of a row.
const FEATURE_BLOCK: usize = 16;

/// Bins row-major `x` with known cuts.
pub fn apply_cuts(pool: &Pool, x: &[f32], cuts: &Arc<Cuts>) -> Result<Binned> {
    let n_features = cuts.thresholds.len();
    let n_rows = n_rows_of(x, n_features)?;
    let n_all = pool.all_rows(n_rows);
    let (mut columns, mut uncommon) = (Vec::with_capacity(n_features), Vec::new());
    for first in (0..n_features).step_by(FEATURE_BLOCK) {
        let thresholds = &cuts.thresholds[first..(first + FEATURE_BLOCK).min(n_features)];
        let mut block =
            thresholds.iter().map(|_| zeros::<u8>(n_rows)).collect::<Result<Vec<_>>>()?;
        let pieces = row_pieces(pool, &mut block, n_rows);
        let lookups: Vec<BinLookup> = thresholds.iter().map(|t| BinLookup::new(t)).collect();
        pool.for_each(pieces, n_rows * thresholds.len() * 8, |(rows, mut columns)| {
            let x = &x[rows.start * n_features..rows.end * n_features];
            for (k, x) in x.chunks(ROW_BLOCK * n_features).enumerate() {
                for (f, (bins, lookup)) in columns.iter_mut().zip(&lookups).enumerate() {
                    let values = x[first + f..].iter().step_by(n_features);
                    let bins = &mut bins[k * ROW_BLOCK..][..values.len()];
                    lookup.apply(values, bins);
                }
            }
        })?;
        let census = Census::of(pool, &block)?;
        uncommon.extend(census.iter().map(|census| census.uncommon));
        let block = block.into_iter().zip(census);
        let form = |(bins, census)| Column::of(bins, census, n_all);
        columns.extend(pool.try_map(block, n_rows * thresholds.len(), form)?);
    }
    Ok(Binned { n_rows, n_features, columns, uncommon, cuts: Arc::clone(cuts) })
}

/// The number of thresholds below `value`; the bin after the last one if it is missing.
#[inline]
pub(super) fn bin_of(value: f32, thresholds: &[f32]) -> u8 {
    if value.is_nan() {
        return (thresholds.len() + 1) as u8;
    }
    let mut low = 0;
    let mut size = thresholds.len();
    while size > 0 {
        let half = size / 2;
        let right = thresholds[low + half] < value;
        low = if right { low + half + 1 } else { low };
        size = if right { size - half - 1 } else { half };
    }
    low as u8
}

/// Values that are looked up together: their comparisons do not wait for each other.
const TOGETHER: usize = 16;

/// The thresholds of a column, arranged to find the bins of many values by eight comparisons each.
pub(super) struct BinLookup {
    /// Padded with +∞, which no value exceeds.
    thresholds: [f32; 256],
    of_missing: u8,
}

impl BinLookup {
    /// A table of at most 255 ascending thresholds.
    pub(super) fn new(given: &[f32]) -> BinLookup {
        let mut thresholds = [f32::INFINITY; 256];
        thresholds[..given.len()].copy_from_slice(given);
        BinLookup { thresholds, of_missing: (given.len() + 1) as u8 }
    }

    /// Writes what [`bin_of`] returns for each value.
    pub(super) fn apply<'x>(&self, mut values: impl Iterator<Item = &'x f32>, bins: &mut [u8]) {
        for bins in bins.chunks_mut(TOGETHER) {
            let mut some = [f32::NAN; TOGETHER];
            some.iter_mut().zip(values.by_ref().take(bins.len())).for_each(|(s, &v)| *s = v);
            // How many thresholds lie below each value.
            let mut below = [0usize; TOGETHER];
            for bit in (0..8).rev() {
                for (below, &value) in below.iter_mut().zip(&some) {
                    let is_above = self.thresholds[(*below + (1 << bit) - 1) % 256] < value;
                    // Without a branch, which would be mispredicted every other time.
                    *below += usize::from(is_above) << bit;
                }
            }
            for ((bin, below), value) in bins.iter_mut().zip(below).zip(some) {
                *bin = if value.is_nan() { self.of_missing } else { below as u8 };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::find_cuts;
    use super::*;

    fn random_floats(n: usize) -> Vec<f32> {
        let mut stream = crate::random::Key::new(n as u64).stream();
        (0..n).map(|_| stream.normals().0 as f32).collect()
    }

    #[test]
    fn bins_agree_with_thresholds() {
        let x = random_floats(600 * 20);
        let pool = Pool::serial();
        let cuts = Arc::new(find_cuts(&pool, &x, 20, None, 17, &[]).unwrap());
        let binned = apply_cuts(&pool, &x, &cuts).unwrap();
        for feature in 0..20 {
            for row in 0..600 {
                let value = x[row * 20 + feature];
                let below = cuts.thresholds[feature].iter().filter(|&&t| t < value).count();
                assert_eq!(binned.columns[feature].bin(row) as usize, below);
            }
        }
    }

    #[test]
    fn a_matrix_without_features_is_refused() {
        let none = Cuts { thresholds: vec![], has_missing: vec![], categorical: vec![] };
        assert!(apply_cuts(&Pool::serial(), &[], &Arc::new(none)).is_err());
    }
}
