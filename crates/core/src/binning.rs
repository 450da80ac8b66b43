//! Features to bins: the first thing that happens to X.
//!
//! Each feature is cut at up to `max_bins - 1` thresholds. A feature with at most `max_bins`
//! distinct values is cut between every two neighbours, so that nothing is lost; others at weighted
//! quantiles. Bin `b` holds the values in `(threshold[b-1], threshold[b]]`; the bin after the last
//! one stands for a missing value.

use std::sync::Arc;

use crate::error::Result;
use crate::memory::{collected, grow, resize, zeros};
use crate::parallel::Pool;
use crate::reduce::FixedPoint;

/// Largest number of bins for values; one more index is kept for missing values.
pub const MAX_BINS: usize = 255;
/// Features handled by one piece of work: their floats share the cache lines of a row.
const FEATURE_BLOCK: usize = 16;

/// The thresholds of all features.
#[derive(Debug, Clone, PartialEq)]
pub struct Cuts {
    /// Ascending thresholds of each feature.
    pub thresholds: Vec<Vec<f32>>,
    /// Whether the feature had a missing value in training.
    pub has_missing: Vec<bool>,
    /// Whether the feature holds categories.
    pub categorical: Vec<bool>,
}

impl Cuts {
    /// Number of bins for values of a feature; also the bin of its missing values.
    pub fn n_bins(&self, feature: usize) -> usize {
        self.thresholds[feature].len() + 1
    }

    fn new(cut: Vec<(Vec<f32>, bool)>) -> Cuts {
        let (thresholds, has_missing): (Vec<_>, Vec<_>) = cut.into_iter().unzip();
        let categorical = vec![false; thresholds.len()];
        Cuts { thresholds, has_missing, categorical }
    }

    /// The same with `n_categories` of each feature, 0 for those that hold numbers. The codes of
    /// categories, 0, 1, …, become bins of their own, whether training has rows of them or not.
    pub fn with_categories(mut self, n_categories: &[u32]) -> Cuts {
        for (feature, &n) in n_categories.iter().enumerate().filter(|(_, n)| **n > 0) {
            self.thresholds[feature] = (1..n).map(|code| code as f32 - 0.5).collect();
            self.categorical[feature] = true;
        }
        self
    }
}

/// The bins of one feature, one for each row.
#[derive(Debug, Clone)]
pub enum Column {
    /// The bin of every row.
    Dense(Vec<u8>),
    /// Only the rows outside the most frequent bin.
    Compressed(Compressed),
}

/// A feature that has one and the same bin in most rows.
#[derive(Debug, Clone)]
pub struct Compressed {
    /// The bin of all rows that are not listed.
    pub default: u8,
    /// The other rows, ascending.
    pub rows: Vec<u32>,
    /// Their bins.
    pub bins: Vec<u8>,
}

/// A feature is compressed when at most one row in this many lies outside its most frequent bin.
const COMPRESSED_SHARE: usize = 8;

impl Column {
    /// Takes the shorter of the two forms.
    fn of(bins: Vec<u8>) -> Result<Column> {
        let (default, common) = most_frequent(&bins);
        let n_listed = bins.len() - common;
        if n_listed * COMPRESSED_SHARE > bins.len() {
            return Ok(Column::Dense(bins));
        }
        let listed = || bins.iter().enumerate().filter(|&(_, &bin)| bin != default);
        let rows = collected(n_listed, listed().map(|(row, _)| row as u32))?;
        let bins = collected(n_listed, listed().map(|(_, &bin)| bin))?;
        Ok(Column::Compressed(Compressed { default, rows, bins }))
    }

    /// A column of `n_rows` rows from those (ascending) that are not in the bin `default`.
    fn of_listed(n_rows: usize, default: u8, rows: Vec<u32>, bins: Vec<u8>) -> Result<Column> {
        let listed = Column::Compressed(Compressed { default, rows, bins });
        match &listed {
            Column::Compressed(column) if column.rows.len() * COMPRESSED_SHARE > n_rows => {
                Column::of(listed.to_vec(n_rows)?)
            }
            _ => Ok(listed),
        }
    }

    /// The bin of a row.
    #[inline]
    pub fn bin(&self, row: usize) -> u8 {
        match self {
            Column::Dense(bins) => bins[row],
            Column::Compressed(column) => match column.rows.binary_search(&(row as u32)) {
                Ok(place) => column.bins[place],
                Err(_) => column.default,
            },
        }
    }

    /// The bins of all rows, spread out in `buffer` if they are not at hand.
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

    /// Number of rows outside the most frequent bin.
    pub fn n_uncommon(&self) -> usize {
        match self {
            Column::Dense(bins) => bins.len() - most_frequent(bins).1,
            Column::Compressed(column) => column.rows.len(),
        }
    }
}

/// The bin that most rows have, and how many; the lowest such bin.
fn most_frequent(bins: &[u8]) -> (u8, usize) {
    let mut counts = [0usize; 256];
    bins.iter().for_each(|&bin| counts[bin as usize] += 1);
    let best = (0..256).rev().max_by_key(|&bin| counts[bin]).unwrap_or(0);
    (best as u8, counts[best])
}

/// Features as bins.
#[derive(Debug, Clone)]
pub struct Binned {
    /// Number of rows.
    pub n_rows: usize,
    /// Number of features.
    pub n_features: usize,
    /// One column for each feature.
    pub columns: Vec<Column>,
    /// What the bins mean.
    pub cuts: Arc<Cuts>,
}

/// A sparse matrix by columns; what is not stored is zero.
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
        self.starts.len() - 1
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

/// Weights as integers, so that their sums are exact; at least one each: a row with a tiny weight
/// still has a value.
fn integer_weights(weight: &[f64]) -> Result<Vec<i64>> {
    let max = weight.iter().fold(0.0f64, |m, &v| m.max(v));
    let fixed = FixedPoint::for_sum(max, weight.len());
    collected(weight.len(), weight.iter().map(|&v| fixed.encode(v).max(1)))
}

/// Finds thresholds for a sparse matrix: the same as for its dense copy.
pub fn find_cuts_sparse(
    pool: &Pool,
    x: SparseColumns<'_>,
    weight: Option<&[f64]>,
    max_bins: usize,
) -> Result<Cuts> {
    let weights = weight.map(integer_weights).transpose()?;
    let weight_of = |row: i32| weights.as_ref().map_or(1, |w| w[row as usize]);
    let total = weights.as_ref().map_or(x.n_rows as i64, |w| w.iter().sum());
    let cut = x.map(pool, |_, rows, values| {
        let zeros = total - rows.iter().map(|&row| weight_of(row)).sum::<i64>();
        let stored = rows.iter().zip(values).filter(|(_, v)| !v.is_nan());
        let mut keys =
            collected(rows.len() + 1, stored.map(|(&row, &v)| (ordered(v), weight_of(row))))?;
        if zeros > 0 {
            keys.push((ordered(0.0), zeros));
        }
        keys.sort_unstable_by_key(|&(key, _)| key);
        let thresholds = cut_between(&merge_equal(keys.into_iter())?, max_bins);
        Ok((thresholds, values.iter().any(|v| v.is_nan())))
    })?;
    Ok(Cuts::new(cut))
}

/// Bins a sparse matrix with known cuts, without ever spreading it out.
pub fn apply_cuts_sparse(pool: &Pool, x: SparseColumns<'_>, cuts: &Arc<Cuts>) -> Result<Binned> {
    let columns = x.map(pool, |feature, rows, values| {
        let thresholds = &cuts.thresholds[feature];
        let default = bin_of(0.0, thresholds);
        let listed = || {
            let stored = rows.iter().zip(values);
            stored
                .map(|(&row, &value)| (row as u32, bin_of(value, thresholds)))
                .filter(|&(_, bin)| bin != default)
        };
        let n_listed = listed().count();
        let bins = collected(n_listed, listed().map(|(_, bin)| bin))?;
        let rows = collected(n_listed, listed().map(|(row, _)| row))?;
        Column::of_listed(x.n_rows, default, rows, bins)
    })?;
    Ok(Binned { n_rows: x.n_rows, n_features: columns.len(), columns, cuts: Arc::clone(cuts) })
}

/// Finds thresholds for row-major `x` (n_rows × n_features); `weight` is positive.
pub fn find_cuts(
    pool: &Pool,
    x: &[f32],
    n_features: usize,
    weight: Option<&[f64]>,
    max_bins: usize,
) -> Result<Cuts> {
    let n_rows = x.len() / n_features;
    let weights = weight.map(integer_weights).transpose()?;
    let mut cut = Vec::with_capacity(n_features);
    for start in (0..n_features).step_by(FEATURE_BLOCK) {
        let features = start..(start + FEATURE_BLOCK).min(n_features);
        let mut columns =
            features.clone().map(|_| zeros::<f32>(n_rows)).collect::<Result<Vec<_>>>()?;
        let pieces = row_pieces(pool, &mut columns, n_rows);
        pool.for_each(pieces, n_rows * features.len(), |(rows, mut columns)| {
            for (i, row) in x[rows.start * n_features..rows.end * n_features]
                .chunks_exact(n_features)
                .enumerate()
            {
                for (column, &value) in columns.iter_mut().zip(&row[features.clone()]) {
                    column[i] = value;
                }
            }
        })?;
        let work = n_rows * features.len() * 8;
        cut.extend(
            pool.try_map(columns, work, |column| {
                cut_feature(&column, weights.as_deref(), max_bins)
            })?,
        );
    }
    Ok(Cuts::new(cut))
}

/// Cuts columns into pieces of the same rows: one range and its part of every column each.
fn row_pieces<'a, T, C: AsMut<[T]> + 'a>(
    pool: &Pool,
    columns: impl IntoIterator<Item = &'a mut C>,
    n_rows: usize,
) -> Vec<(std::ops::Range<usize>, Vec<&'a mut [T]>)>
where
    T: 'a,
{
    let mut rests: Vec<&mut [T]> = columns.into_iter().map(|column| column.as_mut()).collect();
    let pieces = pool.row_ranges(n_rows, rests.len() * 100);
    let mut cut = Vec::with_capacity(pieces.len());
    for rows in pieces {
        let mut parts = Vec::with_capacity(rests.len());
        for rest in &mut rests {
            let (part, tail) = std::mem::take(rest).split_at_mut(rows.len());
            *rest = tail;
            parts.push(part);
        }
        cut.push((rows, parts));
    }
    cut
}

/// Bins row-major `x` with known cuts.
pub fn apply_cuts(pool: &Pool, x: &[f32], cuts: &Arc<Cuts>) -> Result<Binned> {
    let n_features = cuts.thresholds.len();
    let n_rows = x.len() / n_features;
    let mut columns = Vec::with_capacity(n_features);
    for first in (0..n_features).step_by(FEATURE_BLOCK) {
        let thresholds = &cuts.thresholds[first..(first + FEATURE_BLOCK).min(n_features)];
        let mut block =
            thresholds.iter().map(|_| zeros::<u8>(n_rows)).collect::<Result<Vec<_>>>()?;
        let pieces = row_pieces(pool, &mut block, n_rows);
        pool.for_each(pieces, n_rows * thresholds.len() * 8, |(rows, mut columns)| {
            for (k, i) in rows.enumerate() {
                let row = &x[i * n_features + first..][..thresholds.len()];
                for ((bins, &value), thresholds) in columns.iter_mut().zip(row).zip(thresholds) {
                    bins[k] = bin_of(value, thresholds);
                }
            }
        })?;
        columns.extend(pool.try_map(block, n_rows * thresholds.len(), Column::of)?);
    }
    Ok(Binned { n_rows, n_features, columns, cuts: Arc::clone(cuts) })
}

/// The number of thresholds below `value`; one more than the last bin for a missing value.
#[inline]
fn bin_of(value: f32, thresholds: &[f32]) -> u8 {
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

fn cut_feature(
    column: &[f32],
    weights: Option<&[i64]>,
    max_bins: usize,
) -> Result<(Vec<f32>, bool)> {
    let n = column.len();
    let distinct = match weights {
        None => {
            let values = column.iter().filter(|v| !v.is_nan());
            let mut keys = collected(n, values.map(|&v| ordered(v)))?;
            sort_keys(&mut keys)?;
            merge_equal(keys.into_iter().map(|key| (key, 1)))?
        }
        Some(weights) => {
            let weighted = column.iter().zip(weights).filter(|(v, _)| !v.is_nan());
            let mut keys = collected(n, weighted.map(|(&v, &w)| (ordered(v), w)))?;
            keys.sort_unstable_by_key(|&(key, _)| key);
            merge_equal(keys.into_iter())?
        }
    };
    let has_missing = column.iter().any(|v| v.is_nan());
    Ok((cut_between(&distinct, max_bins), has_missing))
}

/// Thresholds between distinct (value, weight) pairs, ascending.
fn cut_between(distinct: &[(f32, i64)], max_bins: usize) -> Vec<f32> {
    let between = |i: usize| midpoint(distinct[i].0, distinct[i + 1].0);
    if distinct.len() <= max_bins {
        return (1..distinct.len()).map(|i| between(i - 1)).collect();
    }
    // Walk up the values and close a bin when it holds its share of what is left, so that a value
    // heavier than its share takes one bin and the others keep the rest.
    let mut thresholds = Vec::with_capacity(max_bins - 1);
    let mut rest: i128 = distinct.iter().map(|d| i128::from(d.1)).sum();
    let mut in_bin: i128 = 0;
    for (i, &(_, weight)) in distinct.iter().enumerate().take(distinct.len() - 1) {
        let bins_left = (max_bins - thresholds.len()) as i128;
        if bins_left == 1 {
            break;
        }
        in_bin += i128::from(weight);
        if in_bin * bins_left >= rest {
            thresholds.push(between(i));
            rest -= in_bin;
            in_bin = 0;
        }
    }
    thresholds
}

/// (value, weight) of each distinct value, ascending.
fn merge_equal(sorted: impl Iterator<Item = (u32, i64)>) -> Result<Vec<(f32, i64)>> {
    let mut distinct: Vec<(f32, i64)> = Vec::new();
    for (key, weight) in sorted {
        let value = from_ordered(key);
        match distinct.last_mut() {
            Some(last) if last.0 == value => last.1 += weight,
            _ => {
                grow(&mut distinct, 1)?;
                distinct.push((value, weight));
            }
        }
    }
    Ok(distinct)
}

/// A threshold t with lower ≤ t < upper, as near to the middle as floats allow.
fn midpoint(lower: f32, upper: f32) -> f32 {
    let middle = ((f64::from(lower) + f64::from(upper)) / 2.0) as f32;
    if middle < upper { middle } else { lower }
}

/// An integer that orders as the float does; both zeros are one.
fn ordered(value: f32) -> u32 {
    let bits = (value + 0.0).to_bits();
    if bits >> 31 == 0 { bits | 0x8000_0000 } else { !bits }
}

fn from_ordered(key: u32) -> f32 {
    f32::from_bits(if key >> 31 == 1 { key & 0x7fff_ffff } else { !key })
}

/// Radix sort: three passes of 11 bits.
fn sort_keys(keys: &mut Vec<u32>) -> Result<()> {
    const BITS: u32 = 11;
    if keys.len() < 1 << 9 {
        keys.sort_unstable();
        return Ok(());
    }
    let mut other = zeros::<u32>(keys.len())?;
    for pass in 0..3 {
        let digit = |key: u32| (key >> (BITS * pass)) as usize & ((1 << BITS) - 1);
        let mut starts = [0usize; (1 << BITS) + 1];
        for &key in keys.iter() {
            starts[digit(key) + 1] += 1;
        }
        if starts.contains(&keys.len()) {
            continue;
        }
        for i in 0..1 << BITS {
            starts[i + 1] += starts[i];
        }
        for &key in keys.iter() {
            let place = &mut starts[digit(key)];
            other[*place] = key;
            *place += 1;
        }
        std::mem::swap(keys, &mut other);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_floats(n: usize) -> Vec<f32> {
        let mut stream = crate::random::Key::new(n as u64).stream();
        (0..n).map(|_| stream.normals().0 as f32).collect()
    }

    #[test]
    fn few_values_are_cut_between_all_neighbours() {
        let (thresholds, missing) =
            cut_feature(&[3.0, 1.0, f32::NAN, 1.0, -0.0, 0.0], None, 255).unwrap();
        assert_eq!(thresholds, vec![0.5, 2.0]);
        assert!(missing);
    }

    #[test]
    fn neighbouring_floats_are_kept_apart() {
        let upper = f32::from_bits(1.0f32.to_bits() + 1);
        let (thresholds, _) = cut_feature(&[1.0, upper], None, 255).unwrap();
        assert_eq!((bin_of(1.0, &thresholds), bin_of(upper, &thresholds)), (0, 1));
    }

    #[test]
    fn many_values_fall_into_bins_of_equal_weight() {
        let column = random_floats(10_000);
        let (thresholds, _) = cut_feature(&column, None, 100).unwrap();
        assert_eq!(thresholds.len(), 99);
        let mut counts = vec![0; 100];
        column.iter().for_each(|&v| counts[bin_of(v, &thresholds) as usize] += 1);
        assert!(counts.iter().all(|&c| (95..=105).contains(&c)), "{counts:?}");
    }

    #[test]
    fn integer_weights_cut_as_repeated_rows_do() {
        let column = random_floats(2000);
        let weights: Vec<i64> = (0..2000).map(|i| i % 4 + 1).collect();
        let repeated: Vec<f32> =
            column.iter().zip(&weights).flat_map(|(&v, &w)| vec![v; w as usize]).collect();
        assert_eq!(
            cut_feature(&column, Some(&weights), 64).unwrap().0,
            cut_feature(&repeated, None, 64).unwrap().0
        );
    }

    #[test]
    fn a_heavy_value_does_not_eat_the_bins_of_others() {
        let mut column = vec![0.0; 5000];
        column.extend(random_floats(1000));
        let (thresholds, _) = cut_feature(&column, None, 50).unwrap();
        assert_eq!(thresholds.len(), 49);
    }

    #[test]
    fn radix_sort_sorts() {
        let mut keys: Vec<u32> = random_floats(3000).into_iter().map(ordered).collect();
        let mut expected = keys.clone();
        expected.sort_unstable();
        sort_keys(&mut keys).unwrap();
        assert_eq!(keys, expected);
    }

    #[test]
    fn bins_agree_with_thresholds() {
        let x = random_floats(600 * 20);
        let pool = Pool::serial();
        let cuts = Arc::new(find_cuts(&pool, &x, 20, None, 17).unwrap());
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
                let cuts = find_cuts(&pool, &dense, p, weight, max_bins).unwrap();
                assert_eq!(find_cuts_sparse(&pool, sparse, weight, max_bins).unwrap(), cuts);
                let cuts = Arc::new(cuts);
                let expected = apply_cuts(&pool, &dense, &cuts).unwrap();
                let binned = apply_cuts_sparse(&pool, sparse, &cuts).unwrap();
                for (column, expected) in binned.columns.iter().zip(&expected.columns) {
                    assert_eq!(column.to_vec(n), expected.to_vec(n));
                    assert_eq!(column.n_uncommon(), expected.n_uncommon());
                }
                assert!(matches!(binned.columns[0], Column::Compressed(_)));
                assert!(matches!(binned.columns[3], Column::Dense(_)));
            }
        }
    }
}
