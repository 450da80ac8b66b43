//! Features to bins: the first thing that happens to X.
//!
//! Each feature is cut at up to `max_bins - 1` thresholds. A feature with at most `max_bins`
//! distinct values is cut between every two neighbours, so that nothing is lost; others at weighted
//! quantiles. Bin `b` holds the values in `(threshold[b-1], threshold[b]]`; the bin after the last
//! one stands for a missing value.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Result, invalid};
use crate::lowlevel::PrivateMap;
use crate::memory::{collected, resize, zeros};
use crate::parallel::Pool;
use crate::reduce::{FixedPoint, exchange, largest_number};
use crate::select::{Enquiry, SortedColumn, search_columns};

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
            self.thresholds[feature] = category_thresholds(n);
            self.categorical[feature] = true;
        }
        self
    }
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
    /// Part of a file.
    Mapped(Arc<PrivateMap>, std::ops::Range<usize>),
}

impl std::ops::Deref for Bins {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Bins::Owned(bins) => bins,
            Bins::Mapped(map, range) => &map[range.clone()],
        }
    }
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

/// How the bins of a column are spread over all rows, on all machines.
#[derive(Debug, Clone, Copy)]
struct Census {
    /// The bin that most rows have; the lowest such bin.
    default: u8,
    /// Number of rows outside of it.
    uncommon: usize,
}

impl Census {
    /// Counts the bins of some columns.
    fn of(pool: &Pool, columns: &[Vec<u8>]) -> Result<Vec<Census>> {
        let work = columns.iter().map(Vec::len).sum();
        let counts = pool.map(columns, work, |bins| {
            let mut counts = [0i64; 256];
            bins.iter().for_each(|&bin| counts[bin as usize] += 1);
            counts
        })?;
        let mut counts = counts.into_iter().flatten().collect::<Vec<i64>>();
        exchange(pool, &mut counts, &mut [])?;
        let census = |counts: &[i64]| {
            let default = (0..256).rev().max_by_key(|&bin| counts[bin]).unwrap_or(0);
            let uncommon = (counts.iter().sum::<i64>() - counts[default]) as usize;
            Census { default: default as u8, uncommon }
        };
        Ok(counts.chunks_exact(256).map(census).collect())
    }

    /// Whether the rows outside of the most frequent bin are few among `n_rows`.
    fn compresses(self, n_rows: usize) -> bool {
        self.uncommon * COMPRESSED_SHARE <= n_rows
    }
}

impl Column {
    /// Takes the shorter of the two forms, for all of `n_rows` rows.
    fn of(bins: Vec<u8>, census: Census, n_rows: usize) -> Result<Column> {
        if !census.compresses(n_rows) {
            return Ok(Column::Dense(Bins::Owned(bins)));
        }
        let default = census.default;
        let listed = || bins.iter().enumerate().filter(|&(_, &bin)| bin != default);
        let n_listed = listed().count();
        let rows = collected(n_listed, listed().map(|(row, _)| row as u32))?;
        let bins = collected(n_listed, listed().map(|(_, &bin)| bin))?;
        Ok(Column::Compressed(Compressed { default, rows, bins }))
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
    /// Number of rows of each feature, on all machines, outside of its most frequent bin.
    pub uncommon: Vec<usize>,
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
fn integer_weights(pool: &Pool, weight: Option<&[f64]>) -> Result<Option<Vec<i64>>> {
    let Some(weight) = weight else { return Ok(None) };
    let max = largest_number(pool, weight.iter().fold(0.0f64, |m, &v| m.max(v)))?;
    let fixed = FixedPoint::for_sum(max, pool.all_rows(weight.len()));
    Ok(Some(collected(weight.len(), weight.iter().map(|&v| fixed.encode(v).max(1)))?))
}

/// Values that machines keep in order while they look for cuts together.
const VALUES_AT_A_TIME: usize = 1 << 26;
/// Most features that they look at together: questions of all are asked in one exchange.
const FEATURES_AT_A_TIME: usize = 64;

/// Cuts features whose values are spread over machines, as [`cut_between`] cuts those of one. The
/// columns of features are those of their values here; also told is whether some are missing.
fn cut_together(
    pool: &Pool,
    (n_rows, n_features): (usize, usize),
    max_bins: usize,
    columns_of: impl Fn(Range<usize>) -> Result<Vec<(SortedColumn, bool)>>,
) -> Result<Cuts> {
    let mut cut = Vec::with_capacity(n_features);
    let n_all = pool.all_rows(n_rows);
    // The same on all machines.
    let size = (VALUES_AT_A_TIME / n_all.max(1)).clamp(1, FEATURES_AT_A_TIME);
    for start in (0..n_features).step_by(size) {
        let features = start..(start + size).min(n_features);
        let (columns, missing): (Vec<_>, Vec<_>) = columns_of(features)?.into_iter().unzip();
        let mut missing: Vec<f64> = missing.into_iter().map(f64::from).collect();
        exchange(pool, &mut [], &mut missing)?;
        let begin = |few| if few { Search::Few(Vec::new()) } else { Search::many(max_bins) };
        let found = search_columns(pool, &columns, n_all, max_bins, begin, |search, enquiry| {
            search.advance(enquiry, max_bins);
        })?;
        for (search, missing) in found.into_iter().zip(missing) {
            let thresholds = match search {
                Search::Few(distinct) => cut_between(distinct.iter().copied(), max_bins),
                Search::Many { thresholds, .. } => thresholds,
            };
            cut.push((thresholds, missing > 0.0));
        }
    }
    Ok(Cuts::new(cut))
}

/// The values of a feature, in order, with their masses.
fn sorted_column(mut values: Vec<(u32, i64)>) -> SortedColumn {
    values.sort_unstable_by_key(|&(key, _)| key);
    let mut masses = vec![0];
    masses.extend(values.iter().scan(0i64, |sum, value| {
        *sum += value.1;
        Some(*sum)
    }));
    SortedColumn { keys: values.into_iter().map(|value| value.0).collect(), masses: Some(masses) }
}

/// What is found so far of the cuts of a feature.
enum Search {
    /// Its distinct values, if there may be few of them.
    Few(Vec<(f32, i64)>),
    /// Its thresholds, the mass below the last one, and how many to guess ahead.
    Many { thresholds: Vec<f32>, below: i128, ahead: usize },
}

impl Search {
    fn many(max_bins: usize) -> Search {
        Search::Many { thresholds: Vec::new(), below: 0, ahead: max_bins }
    }

    /// Goes on as far as the answers reach, and asks for more; does what [`cut_between`] does.
    fn advance(&mut self, enquiry: &mut Enquiry<'_>, max_bins: usize) {
        match self {
            Search::Few(distinct) => {
                let values = enquiry.distinct().into_iter();
                *distinct = values.map(|(key, mass)| (from_ordered(key), mass)).collect();
            }
            Search::Many { thresholds, below, ahead } => {
                let Some(total) = enquiry.total() else { return };
                let n_known = thresholds.len();
                // Of the cut that is looked at, which may be guessed.
                let (mut n_cuts, mut before) = (n_known, *below);
                while n_cuts + 1 < max_bins && n_cuts <= thresholds.len() + *ahead {
                    // The first value with which a bin holds its share of what is left.
                    let bins_left = (max_bins - n_cuts) as i128;
                    let share = (total - before + bins_left - 1) / bins_left;
                    let place = enquiry.select(before + share);
                    if place.after >= total {
                        break;
                    }
                    let next = enquiry.select(place.after + 1);
                    if enquiry.is_certain() {
                        thresholds.push(midpoint(from_ordered(place.key), from_ordered(next.key)));
                        *below = place.after;
                    }
                    (n_cuts, before) = (n_cuts + 1, place.after);
                }
                // Where few guesses were right, few are worth a question.
                let n_found = thresholds.len() - n_known;
                if n_found > 0 {
                    *ahead = (2 * n_found).max(FEWEST_AHEAD);
                }
            }
        }
    }
}

/// Cuts that are guessed ahead in any case.
const FEWEST_AHEAD: usize = 8;

/// Finds thresholds for a sparse matrix: the same as for its dense copy.
pub fn find_cuts_sparse(
    pool: &Pool,
    x: SparseColumns<'_>,
    weight: Option<&[f64]>,
    max_bins: usize,
) -> Result<Cuts> {
    let weights = integer_weights(pool, weight)?;
    let weight_of = |row: i32| weights.as_ref().map_or(1, |w| w[row as usize]);
    let total = weights.as_ref().map_or(x.n_rows as i64, |w| w.iter().sum());
    let keys_of = |rows: &[i32], values: &[f32]| -> Result<Vec<(u32, i64)>> {
        let zeros = total - rows.iter().map(|&row| weight_of(row)).sum::<i64>();
        let stored = rows.iter().zip(values).filter(|(_, v)| !v.is_nan());
        let mut keys =
            collected(rows.len() + 1, stored.map(|(&row, &v)| (ordered(v), weight_of(row))))?;
        if zeros > 0 {
            keys.push((ordered(0.0), zeros));
        }
        Ok(keys)
    };
    let has_missing = |values: &[f32]| values.iter().any(|v| v.is_nan());
    if pool.others().is_some() {
        return cut_together(pool, (x.n_rows, x.n_features()), max_bins, |features| {
            let work = x.n_rows * features.len() * 20;
            pool.try_map(features, work, |feature| {
                let (rows, values) = x.column(feature);
                Ok((sorted_column(keys_of(rows, values)?), has_missing(values)))
            })
        });
    }
    let cut = x.map(pool, |_, rows, values| {
        let mut keys = keys_of(rows, values)?;
        keys.sort_unstable_by_key(|&(key, _)| key);
        Ok((cut_between(weighted_values(&keys), max_bins), has_missing(values)))
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
        Ok(Compressed { default, rows, bins })
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
    // Features with many values are spread out; of others zero has the most frequent bin.
    for (column, uncommon) in binned.columns.iter_mut().zip(&mut binned.uncommon) {
        if *uncommon * COMPRESSED_SHARE > n_all {
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

/// Finds thresholds for row-major `x` (n_rows × n_features); `weight` is positive.
pub fn find_cuts(
    pool: &Pool,
    x: &[f32],
    n_features: usize,
    weight: Option<&[f64]>,
    max_bins: usize,
) -> Result<Cuts> {
    let n_rows = x.len() / n_features;
    let weights = integer_weights(pool, weight)?;
    if pool.others().is_some() {
        return cut_together(pool, (n_rows, n_features), max_bins, |features| {
            map_columns(pool, x, n_features, features, |column| {
                let values = || column.iter().enumerate().filter(|(_, v)| !v.is_nan());
                let sorted = match &weights {
                    Some(w) => {
                        let weighted = values().map(|(row, &v)| (ordered(v), w[row]));
                        sorted_column(collected(n_rows, weighted)?)
                    }
                    None => {
                        let mut keys = collected(n_rows, values().map(|(_, &v)| ordered(v)))?;
                        sort_keys(&mut keys)?;
                        SortedColumn { keys, masses: None }
                    }
                };
                Ok((sorted, column.iter().any(|v| v.is_nan())))
            })
        });
    }
    let cut = map_columns(pool, x, n_features, 0..n_features, |column| {
        cut_feature(column, weights.as_deref(), max_bins)
    })?;
    Ok(Cuts::new(cut))
}

/// Calls `work` with the values of each of some features of row-major `x`.
fn map_columns<R: Send>(
    pool: &Pool,
    x: &[f32],
    n_features: usize,
    features: Range<usize>,
    work: impl Fn(&[f32]) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let n_rows = x.len() / n_features;
    let mut results = Vec::with_capacity(features.len());
    for start in features.clone().step_by(FEATURE_BLOCK) {
        let features = start..(start + FEATURE_BLOCK).min(features.end);
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
        let amount = n_rows * features.len() * 8;
        results.extend(pool.try_map(columns, amount, |column: Vec<f32>| work(&column))?);
    }
    Ok(results)
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
    let n_all = pool.all_rows(n_rows);
    let (mut columns, mut uncommon) = (Vec::with_capacity(n_features), Vec::new());
    for first in (0..n_features).step_by(FEATURE_BLOCK) {
        let thresholds = &cuts.thresholds[first..(first + FEATURE_BLOCK).min(n_features)];
        let mut block =
            thresholds.iter().map(|_| zeros::<u8>(n_rows)).collect::<Result<Vec<_>>>()?;
        let pieces = row_pieces(pool, &mut block, n_rows);
        let steps: Vec<Steps> = thresholds.iter().map(|of_column| Steps::new(of_column)).collect();
        pool.for_each(pieces, n_rows * thresholds.len() * 8, |(rows, mut columns)| {
            let x = &x[rows.start * n_features..rows.end * n_features];
            for (k, x) in x.chunks(ROW_BLOCK * n_features).enumerate() {
                for (f, (bins, steps)) in columns.iter_mut().zip(&steps).enumerate() {
                    let values = x[first + f..].iter().step_by(n_features);
                    let bins = &mut bins[k * ROW_BLOCK..][..values.len()];
                    steps.apply(values, bins);
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

/// Bins features that come some columns at a time, into a file.
pub struct ColumnBinner {
    n_rows: usize,
    rule: BinRule,
    file: std::fs::File,
    path: std::path::PathBuf,
    /// Bytes in the file.
    written: usize,
    cut: Vec<(Vec<f32>, bool)>,
    columns: Vec<Column>,
    /// Where the file has the bins of features that are dense.
    places: Vec<(usize, std::ops::Range<usize>)>,
    uncommon: Vec<usize>,
}

/// Where the cuts of a [`ColumnBinner`] come from.
enum BinRule {
    /// They are found in the columns.
    Find { weights: Option<Vec<i64>>, max_bins: usize, n_categories: Vec<u32> },
    /// They are those of other data.
    Known(Arc<Cuts>),
}

impl ColumnBinner {
    /// Finds cuts and bins, as [`find_cuts`] and [`apply_cuts`] do for all features at once.
    /// `n_categories` is empty or has a number for each feature, as in [`Cuts::with_categories`].
    /// The file at `path` must not exist.
    pub fn find(
        pool: &Pool,
        path: &std::path::Path,
        n_rows: usize,
        weight: Option<&[f64]>,
        max_bins: usize,
        n_categories: &[u32],
    ) -> Result<ColumnBinner> {
        let weights = integer_weights(pool, weight)?;
        let n_categories = n_categories.to_vec();
        ColumnBinner::new(path, n_rows, BinRule::Find { weights, max_bins, n_categories })
    }

    /// Bins other data with known cuts.
    pub fn known(path: &std::path::Path, n_rows: usize, cuts: &Arc<Cuts>) -> Result<ColumnBinner> {
        ColumnBinner::new(path, n_rows, BinRule::Known(Arc::clone(cuts)))
    }

    fn new(path: &std::path::Path, n_rows: usize, rule: BinRule) -> Result<ColumnBinner> {
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(path);
        Ok(ColumnBinner {
            n_rows,
            rule,
            file: file.or_else(|error| file_failed("create", path, &error))?,
            path: path.to_path_buf(),
            written: 0,
            cut: Vec::new(),
            columns: Vec::new(),
            places: Vec::new(),
            uncommon: Vec::new(),
        })
    }

    /// Number of features so far.
    pub fn n_features(&self) -> usize {
        self.columns.len()
    }

    /// Adds features: `values` holds one column after the other.
    pub fn push(&mut self, pool: &Pool, values: &[f32]) -> Result<()> {
        let (n_rows, first) = (self.n_rows, self.columns.len());
        if n_rows == 0 || !values.len().is_multiple_of(n_rows) {
            return invalid("columns of other lengths than the number of rows");
        }
        let columns = || values.chunks_exact(n_rows).enumerate().map(|(k, c)| (first + k, c));
        let n_new = columns().len();
        if let BinRule::Known(cuts) = &self.rule
            && first + n_new > cuts.thresholds.len()
        {
            return invalid("more columns than features");
        }
        let rule = &self.rule;
        let made = pool.map(columns(), values.len() * 16, |(feature, column)| {
            let (thresholds, has_missing) = rule.cut(feature, column)?;
            let mut bins = zeros::<u8>(column.len())?;
            Steps::new(&thresholds).apply(column.iter(), &mut bins);
            Ok((thresholds, has_missing, bins))
        })?;
        let mut block = Vec::with_capacity(n_new);
        for each in made {
            let (thresholds, has_missing, bins): (_, _, Vec<u8>) = each?;
            self.cut.push((thresholds, has_missing));
            block.push(bins);
        }
        let census = Census::of(pool, &block)?;
        for (bins, census) in block.into_iter().zip(census) {
            self.uncommon.push(census.uncommon);
            let column = match Column::of(bins, census, n_rows)? {
                Column::Dense(bins) => {
                    self.write(&bins)?;
                    // Until the file is complete.
                    Column::Dense(Bins::Owned(Vec::new()))
                }
                compressed => compressed,
            };
            self.columns.push(column);
        }
        Ok(())
    }

    fn write(&mut self, bins: &[u8]) -> Result<()> {
        use std::io::Write;
        self.file.write_all(bins).or_else(|error| file_failed("write", &self.path, &error))?;
        let place = self.written..self.written + bins.len();
        self.written = place.end;
        self.places.push((self.columns.len(), place));
        Ok(())
    }

    /// The features; the file has no name any more where the system allows that.
    pub fn finish(mut self) -> Result<Binned> {
        if self.written > 0 {
            let map = PrivateMap::of(self.file, &self.path);
            let map = Arc::new(map.or_else(|error| file_failed("map", &self.path, &error))?);
            if map.len() != self.written {
                return invalid("the file of bins was changed");
            }
            for (feature, place) in self.places {
                self.columns[feature] = Column::Dense(Bins::Mapped(Arc::clone(&map), place));
            }
        }
        let cuts = match self.rule {
            BinRule::Known(cuts) => cuts,
            BinRule::Find { n_categories, .. } => {
                Arc::new(Cuts::new(self.cut).with_categories(&n_categories))
            }
        };
        if cuts.thresholds.len() != self.columns.len() {
            return invalid("fewer columns than features");
        }
        Ok(Binned {
            n_rows: self.n_rows,
            n_features: self.columns.len(),
            columns: self.columns,
            uncommon: self.uncommon,
            cuts,
        })
    }
}

impl BinRule {
    /// Thresholds of a feature, and whether its column has missing values.
    fn cut(&self, feature: usize, column: &[f32]) -> Result<(Vec<f32>, bool)> {
        match self {
            BinRule::Known(cuts) => {
                Ok((cuts.thresholds[feature].clone(), cuts.has_missing[feature]))
            }
            BinRule::Find { weights, max_bins, n_categories } => {
                let n = n_categories.get(feature).copied().unwrap_or(0);
                if n == 0 {
                    return cut_feature(column, weights.as_deref(), *max_bins);
                }
                if n as usize > MAX_BINS || !column.iter().all(|&value| is_code(value, n)) {
                    return invalid(format!(
                        "feature {feature} holds other values than the codes of {n} categories"
                    ));
                }
                Ok((category_thresholds(n), column.iter().any(|value| value.is_nan())))
            }
        }
    }
}

/// Whether a value is missing or the code of one of `n` categories.
pub fn is_code(value: f32, n: u32) -> bool {
    value.is_nan() || (value >= 0.0 && value < n as f32 && value.fract() == 0.0)
}

fn category_thresholds(n: u32) -> Vec<f32> {
    (1..n).map(|code| code as f32 - 0.5).collect()
}

fn file_failed<T>(what: &str, path: &std::path::Path, error: &std::io::Error) -> Result<T> {
    invalid(format!("could not {what} the scratch file {}: {error}", path.display()))
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

/// Rows whose values are binned column by column, while they are in cache.
const ROW_BLOCK: usize = 128;
/// Values that are looked up at once: their steps do not wait for each other.
const LANES: usize = 16;

/// The thresholds of a column for [`bin_of`] many values, in eight steps each.
struct Steps {
    /// Filled up with +∞, below which nothing more is counted.
    thresholds: [f32; 256],
    of_missing: u8,
}

impl Steps {
    fn new(given: &[f32]) -> Steps {
        let mut thresholds = [f32::INFINITY; 256];
        thresholds[..given.len()].copy_from_slice(given);
        Steps { thresholds, of_missing: (given.len() + 1) as u8 }
    }

    fn apply<'x>(&self, mut values: impl Iterator<Item = &'x f32>, bins: &mut [u8]) {
        for bins in bins.chunks_mut(LANES) {
            let mut lanes = [f32::NAN; LANES];
            lanes.iter_mut().zip(values.by_ref().take(bins.len())).for_each(|(lane, &v)| *lane = v);
            // How many thresholds lie below each value.
            let mut below = [0usize; LANES];
            for bit in (0..8).rev() {
                for (below, &value) in below.iter_mut().zip(&lanes) {
                    let is_above = self.thresholds[(*below + (1 << bit) - 1) % 256] < value;
                    // (A branch would be guessed wrong every other time.)
                    *below += usize::from(is_above) << bit;
                }
            }
            for ((bin, below), value) in bins.iter_mut().zip(below).zip(lanes) {
                *bin = if value.is_nan() { self.of_missing } else { below as u8 };
            }
        }
    }
}

fn cut_feature(
    column: &[f32],
    weights: Option<&[i64]>,
    max_bins: usize,
) -> Result<(Vec<f32>, bool)> {
    let n = column.len();
    let thresholds = match weights {
        None => {
            let present = column.iter().filter(|v| !v.is_nan());
            let mut keys = collected(n, present.map(|&v| ordered(v)))?;
            sort_keys(&mut keys)?;
            let distinct = keys.chunk_by(|a, b| a == b);
            cut_between(distinct.map(|run| (from_ordered(run[0]), run.len() as i64)), max_bins)
        }
        Some(weights) => {
            let weighted = column.iter().zip(weights).filter(|(v, _)| !v.is_nan());
            let mut keys = collected(n, weighted.map(|(&v, &w)| (ordered(v), w)))?;
            keys.sort_unstable_by_key(|&(key, _)| key);
            cut_between(weighted_values(&keys), max_bins)
        }
    };
    Ok((thresholds, column.iter().any(|v| v.is_nan())))
}

/// Thresholds between distinct (value, weight) pairs, ascending. They are walked through and never
/// listed, since there may be as many as rows.
fn cut_between(distinct: impl Iterator<Item = (f32, i64)> + Clone, max_bins: usize) -> Vec<f32> {
    let pairs = || distinct.clone().zip(distinct.clone().skip(1));
    if distinct.clone().take(max_bins + 1).count() <= max_bins {
        return pairs().map(|(lower, upper)| midpoint(lower.0, upper.0)).collect();
    }
    // Walk up the values and close a bin when it holds its share of what is left, so that a value
    // heavier than its share takes one bin and the others keep the rest.
    let mut thresholds = Vec::with_capacity(max_bins - 1);
    let mut rest: i128 = distinct.clone().map(|value| i128::from(value.1)).sum();
    let mut in_bin: i128 = 0;
    for ((value, weight), (next, _)) in pairs() {
        let bins_left = (max_bins - thresholds.len()) as i128;
        if bins_left == 1 {
            break;
        }
        in_bin += i128::from(weight);
        if in_bin * bins_left >= rest {
            thresholds.push(midpoint(value, next));
            rest -= in_bin;
            in_bin = 0;
        }
    }
    thresholds
}

/// (value, weight) of each distinct value of sorted (key, weight) pairs.
fn weighted_values(sorted: &[(u32, i64)]) -> impl Iterator<Item = (f32, i64)> + Clone {
    sorted
        .chunk_by(|a, b| a.0 == b.0)
        .map(|run| (from_ordered(run[0].0), run.iter().map(|value| value.1).sum()))
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
    use crate::select::tests::on_machines;

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
    fn columns_binned_into_a_file_are_those_binned_in_memory() {
        let (n, p) = (700, 6);
        let mut stream = crate::random::Key::new(11).stream();
        // Continuous with missing values, rounded, mostly zero, codes of categories, a constant.
        let columns: Vec<Vec<f32>> = (0..p)
            .map(|feature| {
                let mut value = || {
                    let v = stream.normals().0 as f32;
                    match feature {
                        0 if stream.below(9) == 0 => f32::NAN,
                        1 => (v * 3.0).round(),
                        2 if stream.below(20) > 0 => 0.0,
                        3 => stream.below(4) as f32,
                        4 => 1.0,
                        _ => v,
                    }
                };
                (0..n).map(|_| value()).collect()
            })
            .collect();
        let x: Vec<f32> = (0..n).flat_map(|i| columns.iter().map(move |c| c[i])).collect();
        let weights: Vec<f64> = (0..n).map(|_| 0.1 + stream.uniform()).collect();
        let categories = [0, 0, 0, 5, 0, 0];
        let pool = Pool::new(2, Box::new(|| false));
        let path = |k: usize| {
            let name = format!("manyboost-bins-{}-{k}", std::process::id());
            std::env::temp_dir().join(name)
        };
        for (k, weight) in [None, Some(&weights[..])].into_iter().enumerate() {
            let cuts = find_cuts(&pool, &x, p, weight, 40).unwrap().with_categories(&categories);
            let expected = apply_cuts(&pool, &x, &Arc::new(cuts)).unwrap();
            let mut binner =
                ColumnBinner::find(&pool, &path(k), n, weight, 40, &categories).unwrap();
            binner.push(&pool, &columns[..4].concat()).unwrap();
            assert_eq!(binner.n_features(), 4);
            binner.push(&pool, &columns[4..].concat()).unwrap();
            let found = binner.finish().unwrap();
            let mut again = ColumnBinner::known(&path(k + 2), n, &expected.cuts).unwrap();
            again.push(&pool, &columns.concat()).unwrap();
            for binned in [found, again.finish().unwrap()] {
                assert_eq!(binned.cuts, expected.cuts);
                assert_eq!(binned.uncommon, expected.uncommon);
                for (column, expected) in binned.columns.iter().zip(&expected.columns) {
                    assert_eq!(column.to_vec(n), expected.to_vec(n));
                    let form = std::mem::discriminant(column);
                    assert_eq!(form, std::mem::discriminant(expected));
                }
            }
        }
    }

    #[test]
    fn columns_that_do_not_fit_are_refused() {
        let pool = Pool::serial();
        let path = std::env::temp_dir().join(format!("manyboost-misfit-{}", std::process::id()));
        let mut binner = ColumnBinner::find(&pool, &path, 3, None, 255, &[2]).unwrap();
        assert!(binner.push(&pool, &[0.0, 1.0]).is_err());
        assert!(binner.push(&pool, &[0.0, 1.0, 2.0]).is_err());
        assert!(ColumnBinner::find(&pool, &path, 3, None, 255, &[]).is_err());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn features_on_several_machines_are_cut_and_binned_as_on_one() {
        let (n, p) = (900, 5);
        let mut stream = crate::random::Key::new(5).stream();
        // Continuous, rounded, few values, mostly zero, and a constant.
        let x: Vec<f32> = (0..n)
            .flat_map(|_| {
                let v = stream.normals().0 as f32;
                let rare = if stream.below(20) == 0 { v } else { 0.0 };
                let gone = if stream.below(9) == 0 { f32::NAN } else { v };
                [gone, (v * 30.0).round(), (v * 2.0).round(), rare, 1.0]
            })
            .collect();
        let weights: Vec<f64> = (0..n).map(|_| 0.1 + stream.uniform()).collect();
        let alone = Pool::serial();
        for weight in [None, Some(&weights[..])] {
            for max_bins in [2, 17, 255] {
                let cuts = find_cuts(&alone, &x, p, weight, max_bins).unwrap();
                let binned = apply_cuts(&alone, &x, &Arc::new(cuts.clone())).unwrap();
                for ends in [vec![0, n], vec![0, 10, 500, n], vec![0, 0, 700, n]] {
                    let parts = on_machines(ends.len() - 1, n, |rank, pool| {
                        let rows = ends[rank]..ends[rank + 1];
                        let x = &x[rows.start * p..rows.end * p];
                        let weight = weight.map(|w| &w[rows]);
                        let cuts = find_cuts(pool, x, p, weight, max_bins).unwrap();
                        apply_cuts(pool, x, &Arc::new(cuts)).unwrap()
                    });
                    for (rank, part) in parts.iter().enumerate() {
                        assert_eq!(*part.cuts, cuts);
                        assert_eq!(part.uncommon, binned.uncommon);
                        for (column, whole) in part.columns.iter().zip(&binned.columns) {
                            let bins =
                                whole.to_vec(n).unwrap()[ends[rank]..ends[rank + 1]].to_vec();
                            assert_eq!(column.to_vec(part.n_rows).unwrap(), bins);
                            let form = std::mem::discriminant(column);
                            assert_eq!(form, std::mem::discriminant(whole));
                        }
                    }
                }
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
                assert_eq!(binned.uncommon, expected.uncommon);
                for (column, expected) in binned.columns.iter().zip(&expected.columns) {
                    assert_eq!(column.to_vec(n), expected.to_vec(n));
                }
                assert!(matches!(binned.columns[0], Column::Compressed(_)));
                assert!(matches!(binned.columns[3], Column::Dense(_)));
            }
        }
    }
}
