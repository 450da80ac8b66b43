//! Thresholds of features: between all values if they are few, else at weighted quantiles.

use super::categories::{category_thresholds, count_of, look_at_categories};
use super::column::{ROW_BLOCK, row_pieces};
use super::together::{cut_together, sorted_column};
use crate::comm::check_rows;
use crate::error::{Result, invalid};
use crate::memory::{collected, zeros};
use crate::parallel::Pool;
use crate::reduce::{FixedPoint, largest_number};
use crate::select::SortedColumn;

/// Largest number of bins for values; one more index is kept for missing values.
pub const MAX_BINS: usize = 255;
/// Columns that are copied out of rows at once: neighbours share cache lines. More would take more
/// memory than growing trees does.
const COLUMNS_AT_ONCE: usize = 8;
/// Most threads that sort columns, one each, in memory of their own.
const MOST_SORTERS: usize = 16;

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

    /// Cuts from the thresholds of each feature and whether it has missing values. `n_categories` is as
    /// in [`find_cuts`].
    pub(super) fn new(cut: Vec<(Vec<f32>, bool)>, n_categories: &[u32]) -> Cuts {
        let (thresholds, has_missing): (Vec<_>, Vec<_>) = cut.into_iter().unzip();
        let is_categorical = |feature| count_of(feature, n_categories) > 0;
        let categorical = (0..thresholds.len()).map(is_categorical).collect();
        Cuts { thresholds, has_missing, categorical }
    }
}

/// Finds thresholds for row-major `x` (n_rows × n_features); `weight` is positive. `n_categories` is
/// empty or has the number of categories of each feature, 0 if it is numeric. Values of a categorical
/// feature are the codes 0, 1, … of its categories.
pub fn find_cuts(
    pool: &Pool,
    x: &[f32],
    n_features: usize,
    weight: Option<&[f64]>,
    max_bins: usize,
    n_categories: &[u32],
) -> Result<Cuts> {
    let n_rows = n_rows_of(x, n_features)?;
    check_max_bins(max_bins)?;
    let categories = look_at_categories(pool, x, n_features, n_categories)?;
    let masses = row_masses(pool, weight, n_rows)?;
    let numeric = (0..n_features).filter(|&feature| count_of(feature, n_categories) == 0);
    let numeric: Vec<usize> = numeric.collect();
    let cut = if pool.others().is_some() {
        cut_together(pool, (n_rows, numeric.len()), max_bins, |features| {
            map_columns(pool, x, n_features, &numeric[features], |keys, spare| {
                let sorted = sort_column(keys, spare, masses.as_deref())?;
                let has_missing = sorted.keys.len() < keys.len();
                Ok((sorted, has_missing))
            })
        })?
    } else {
        map_columns(pool, x, n_features, &numeric, |keys, spare| {
            cut_keys(keys, spare, masses.as_deref(), max_bins)
        })?
    };
    let mut all = vec![Default::default(); n_features];
    let of_categories = categories.into_iter().map(|(feature, has_missing)| {
        (feature, (category_thresholds(count_of(feature, n_categories)), has_missing))
    });
    for (feature, cut) in numeric.into_iter().zip(cut).chain(of_categories) {
        all[feature] = cut;
    }
    Ok(Cuts::new(all, n_categories))
}

/// The number of rows of row-major `x`.
pub(super) fn n_rows_of(x: &[f32], n_features: usize) -> Result<usize> {
    if n_features == 0 {
        return invalid("cannot bin a matrix without features");
    }
    if !x.len().is_multiple_of(n_features) {
        return invalid(format!("{} values are not rows of {n_features} features", x.len()));
    }
    let n_rows = x.len() / n_features;
    check_rows(n_rows)?;
    Ok(n_rows)
}

/// Fails unless bins can be numbered by bytes, and one threshold can part values.
pub(super) fn check_max_bins(max_bins: usize) -> Result<()> {
    if (2..=MAX_BINS).contains(&max_bins) {
        return Ok(());
    }
    invalid(format!("max_bins must be between 2 and {MAX_BINS}, got {max_bins}"))
}

/// Weights of `n_rows` rows as integers, whose sums are exact. Each is at least one: a row with a
/// tiny weight still has a value.
pub(super) fn row_masses(
    pool: &Pool,
    weight: Option<&[f64]>,
    n_rows: usize,
) -> Result<Option<Vec<i64>>> {
    let Some(weight) = weight else { return Ok(None) };
    if weight.len() != n_rows {
        return invalid(format!("{} weights were given for {n_rows} rows", weight.len()));
    }
    let max = largest_number(pool, weight.iter().fold(0.0f64, |m, &v| m.max(v)))?;
    let fixed = FixedPoint::for_sum(max, pool.all_rows(n_rows))?;
    Ok(Some(collected(n_rows, weight.iter().map(|&v| fixed.encode(v).max(1)))?))
}

/// Calls `work` with the keys of each of some features of row-major `x`, and with spare memory of the
/// same size.
fn map_columns<R: Send>(
    pool: &Pool,
    x: &[f32],
    n_features: usize,
    features: &[usize],
    work: impl Fn(&mut Vec<u32>, &mut Vec<u32>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let n_rows = x.len() / n_features;
    let n_sorters = pool.threads().min(MOST_SORTERS);
    let n_at_once = (COLUMNS_AT_ONCE / n_sorters).max(1) * n_sorters;
    let n_at_once = n_at_once.min(features.len());
    let room = |_| zeros::<u32>(n_rows);
    // The same memory for all features: the system takes its time to provide it.
    let mut memory = (0..n_at_once).map(room).collect::<Result<Vec<_>>>()?;
    let mut spare = (0..n_sorters.min(n_at_once)).map(room).collect::<Result<Vec<_>>>()?;
    let mut results = Vec::with_capacity(features.len());
    for features in features.chunks(n_at_once.max(1)) {
        let columns = &mut memory[..features.len()];
        let pieces = row_pieces(pool, columns, n_rows);
        pool.for_each(pieces, n_rows * features.len(), |(rows, mut columns)| {
            let x = &x[rows.start * n_features..rows.end * n_features];
            for (k, x) in x.chunks(ROW_BLOCK * n_features).enumerate() {
                for (column, &feature) in columns.iter_mut().zip(features) {
                    let values = x[feature..].iter().step_by(n_features);
                    let keys = column[k * ROW_BLOCK..].iter_mut();
                    keys.zip(values).for_each(|(key, &value)| *key = ordered(value));
                }
            }
        })?;
        let pieces = columns.chunks_mut(features.len().div_ceil(n_sorters)).zip(&mut spare);
        let made = pool.try_map(pieces, n_rows * features.len() * 8, |(columns, spare)| {
            columns.iter_mut().map(|keys| work(keys, spare)).collect::<Result<Vec<R>>>()
        })?;
        results.extend(made.into_iter().flatten());
    }
    Ok(results)
}

pub(super) fn has_missing(values: &[f32]) -> bool {
    values.iter().any(|value| value.is_nan())
}

/// The values of a column on this machine, sorted.
fn sort_column(
    keys: &mut Vec<u32>,
    spare: &mut Vec<u32>,
    masses: Option<&[i64]>,
) -> Result<SortedColumn> {
    let Some(masses) = masses else {
        let sorted = sorted_values(keys, spare);
        let keys = collected(sorted.len(), sorted.iter().copied())?;
        return Ok(SortedColumn { keys, masses: None });
    };
    sorted_column(weighted_keys(keys, masses)?)
}

/// Thresholds of a column, and whether it has missing values.
pub(super) fn cut_feature(
    column: &[f32],
    masses: Option<&[i64]>,
    max_bins: usize,
) -> Result<(Vec<f32>, bool)> {
    let mut keys = collected(column.len(), column.iter().map(|&value| ordered(value)))?;
    cut_keys(&mut keys, &mut zeros(column.len())?, masses, max_bins)
}

/// [`cut_feature`] by the keys of the values, whose order is lost; `spare` is memory of their size.
fn cut_keys(
    keys: &mut Vec<u32>,
    spare: &mut Vec<u32>,
    masses: Option<&[i64]>,
    max_bins: usize,
) -> Result<(Vec<f32>, bool)> {
    let n_rows = keys.len();
    let (thresholds, n_values) = match masses {
        None => {
            let values = sorted_values(keys, spare);
            let distinct = values.chunk_by(|a, b| a == b);
            let distinct = distinct.map(|run| (from_ordered(run[0]), run.len() as i64));
            (cut_between(distinct, max_bins), values.len())
        }
        Some(masses) => {
            let values = weighted_keys(keys, masses)?;
            let n_values = values.len();
            (cut_weighted(values, max_bins), n_values)
        }
    };
    Ok((thresholds, n_values < n_rows))
}

/// Thresholds between (key, mass) pairs in any order.
pub(super) fn cut_weighted(mut keys: Vec<(u32, i64)>, max_bins: usize) -> Vec<f32> {
    keys.sort_unstable_by_key(|&(key, _)| key);
    let distinct = keys.chunk_by(|a, b| a.0 == b.0);
    let value = |run: &[(u32, i64)]| (from_ordered(run[0].0), run.iter().map(|v| v.1).sum());
    cut_between(distinct.map(value), max_bins)
}

/// Thresholds between distinct (value, mass) pairs, ascending. The pairs are never collected, since
/// there may be as many as rows.
pub(super) fn cut_between(
    distinct: impl Iterator<Item = (f32, i64)> + Clone,
    max_bins: usize,
) -> Vec<f32> {
    let pairs = || distinct.clone().zip(distinct.clone().skip(1));
    if distinct.clone().take(max_bins + 1).count() <= max_bins {
        return pairs().map(|(lower, upper)| midpoint(lower.0, upper.0)).collect();
    }
    // Close a bin as soon as it holds its share of what is left: a value heavier than its share then
    // takes one bin, and the other values share the rest.
    let mut thresholds = Vec::with_capacity(max_bins - 1);
    let mut rest: i128 = distinct.clone().map(|value| i128::from(value.1)).sum();
    let mut in_bin: i128 = 0;
    for ((value, mass), (next, _)) in pairs() {
        let bins_left = (max_bins - thresholds.len()) as i128;
        if bins_left == 1 {
            break;
        }
        in_bin += i128::from(mass);
        if in_bin * bins_left >= rest {
            thresholds.push(midpoint(value, next));
            rest -= in_bin;
            in_bin = 0;
        }
    }
    thresholds
}

/// A finite threshold t with lower ≤ t < upper, as near to the middle as floats allow. Nothing parts
/// −∞ from the lowest number.
pub(super) fn midpoint(lower: f32, upper: f32) -> f32 {
    let middle = ((f64::from(lower) + f64::from(upper)) / 2.0) as f32;
    (if middle < upper { middle } else { lower }).max(f32::MIN)
}

/// The key of a missing value, above those of all others.
const MISSING: u32 = u32::MAX;

/// The key of a value: an integer that orders as the float does; both zeros have the same one.
#[inline]
pub(super) fn ordered(value: f32) -> u32 {
    let bits = (value + 0.0).to_bits();
    match (value.is_nan(), bits >> 31) {
        (true, _) => MISSING,
        (false, 0) => bits | 0x8000_0000,
        (false, _) => !bits,
    }
}

pub(super) fn from_ordered(key: u32) -> f32 {
    f32::from_bits(if key >> 31 == 1 { key & 0x7fff_ffff } else { !key })
}

/// Sorts keys; returns those of the values that are not missing.
fn sorted_values<'k>(keys: &'k mut Vec<u32>, spare: &mut Vec<u32>) -> &'k [u32] {
    sort_keys(keys, spare);
    &keys[..keys.partition_point(|&key| key < MISSING)]
}

/// The keys of the values that are not missing, with their masses, in the order of rows.
fn weighted_keys(keys: &[u32], masses: &[i64]) -> Result<Vec<(u32, i64)>> {
    let present = keys.iter().zip(masses).filter(|(key, _)| **key < MISSING);
    collected(keys.len(), present.map(|(&key, &mass)| (key, mass)))
}

/// Radix sort: three passes of 11 bits, between the keys and spare memory of their size.
fn sort_keys(keys: &mut Vec<u32>, spare: &mut Vec<u32>) {
    const BITS: u32 = 11;
    if keys.len() < 1 << 9 {
        return keys.sort_unstable();
    }
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
            spare[*place] = key;
            *place += 1;
        }
        std::mem::swap(keys, spare);
    }
}

#[cfg(test)]
mod tests {
    use super::super::apply::bin_of;
    use super::*;
    use crate::error::Error;

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
    fn infinite_values_are_the_lowest_and_the_highest() {
        let (low, high) = (f32::NEG_INFINITY, f32::INFINITY);
        for column in [vec![low, -2.0, 0.0, f32::MAX, high], vec![low, high], vec![0.0, high]] {
            let (thresholds, missing) = cut_feature(&column, None, 255).unwrap();
            assert!(!missing && thresholds.iter().all(|t| t.is_finite()));
            let bins: Vec<u8> = column.iter().map(|&v| bin_of(v, &thresholds)).collect();
            assert_eq!(bins, (0..column.len() as u8).collect::<Vec<_>>());
        }
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
        sort_keys(&mut keys, &mut vec![0; 3000]);
        assert_eq!(keys, expected);
    }

    #[test]
    fn shapes_that_cannot_be_binned_are_refused() {
        let pool = Pool::serial();
        let refused = |x: &[f32], n_features, weight, max_bins| {
            matches!(find_cuts(&pool, x, n_features, weight, max_bins, &[]), Err(Error::Invalid(_)))
        };
        assert!(refused(&[], 0, None, 255));
        assert!(refused(&[1.0, 2.0, 3.0], 2, None, 255));
        assert!(refused(&[1.0, 2.0], 2, Some(&[1.0, 1.0]), 255));
        assert!([0, 1, 256].iter().all(|&max_bins| refused(&[1.0, 2.0], 1, None, max_bins)));
        let empty = find_cuts(&pool, &[], 2, None, 255, &[]).unwrap();
        assert_eq!(empty.thresholds, [[0.0f32; 0]; 2]);
    }

    #[test]
    fn an_infinite_weight_is_refused() {
        let cuts =
            find_cuts(&Pool::serial(), &[1.0, 2.0], 1, Some(&[1.0, f64::INFINITY]), 255, &[]);
        assert_eq!(cuts, Err(Error::NotFinite));
    }
}
