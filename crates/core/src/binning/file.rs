//! Features that arrive a few columns at a time, binned into a file.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::apply::BinLookup;
use super::categories::{category_thresholds, count_of, is_code, no_codes};
use super::column::{Binned, Bins, Census, Column, Compressed};
use super::cuts::{Cuts, MAX_BINS, check_max_bins, cut_feature, has_missing, row_masses};
use crate::comm::check_rows;
use crate::error::{Error, Result, invalid};
use crate::lowlevel::PrivateFile;
use crate::memory::zeros;
use crate::parallel::Pool;

/// Bins features that arrive a few columns at a time. Dense columns go to a scratch file, which
/// only this process can open.
pub struct ColumnBinner {
    n_rows: usize,
    source: CutSource,
    file: PrivateFile,
    /// Where the file was created, for messages.
    path: PathBuf,
    cut: Vec<(Vec<f32>, bool)>,
    columns: Vec<StoredColumn>,
    uncommon: Vec<usize>,
}

/// Where the cuts of a [`ColumnBinner`] come from.
enum CutSource {
    /// They are found in the columns.
    Find { masses: Option<Vec<i64>>, max_bins: usize, n_categories: Vec<u32> },
    /// They are those of other data.
    Known(Arc<Cuts>),
}

/// A column of which the dense form is in the file.
enum StoredColumn {
    /// The bytes of the file that hold the bins.
    Dense(Range<usize>),
    Compressed(Compressed),
}

impl ColumnBinner {
    /// Finds cuts and bins, as [`find_cuts`](super::find_cuts) and [`apply_cuts`](super::apply_cuts)
    /// do for all features at once. `n_categories` is empty or has a number for each feature, as in
    /// [`find_cuts`](super::find_cuts). No file may exist at `path`.
    pub fn find(
        pool: &Pool,
        path: &Path,
        n_rows: usize,
        weight: Option<&[f64]>,
        max_bins: usize,
        n_categories: &[u32],
    ) -> Result<ColumnBinner> {
        check_max_bins(max_bins)?;
        let masses = row_masses(pool, weight, n_rows)?;
        let n_categories = n_categories.to_vec();
        ColumnBinner::new(path, n_rows, CutSource::Find { masses, max_bins, n_categories })
    }

    /// Bins other data with known cuts.
    pub fn known(path: &Path, n_rows: usize, cuts: &Arc<Cuts>) -> Result<ColumnBinner> {
        ColumnBinner::new(path, n_rows, CutSource::Known(Arc::clone(cuts)))
    }

    fn new(path: &Path, n_rows: usize, source: CutSource) -> Result<ColumnBinner> {
        check_rows(n_rows)?;
        Ok(ColumnBinner {
            n_rows,
            source,
            file: PrivateFile::create(path).map_err(|e| file_error("create", path, &e))?,
            path: path.to_path_buf(),
            cut: Vec::new(),
            columns: Vec::new(),
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
            return invalid(format!("{} values are not columns of {n_rows} rows", values.len()));
        }
        let columns = values.chunks_exact(n_rows).enumerate().map(|(k, c)| (first + k, c));
        let n_features = first + columns.len();
        if let Some(expected) = self.source.n_features()
            && n_features > expected
        {
            return wrong_number(n_features, expected);
        }
        let made = pool.try_map(columns, values.len() * 16, |(feature, column)| {
            let (thresholds, has_missing) = self.source.cut(feature, column)?;
            let mut bins = zeros::<u8>(column.len())?;
            BinLookup::new(&thresholds).apply(column.iter(), &mut bins);
            Ok(((thresholds, has_missing), bins))
        })?;
        let (cut, block): (Vec<_>, Vec<_>) = made.into_iter().unzip();
        let census = Census::of(pool, &block)?;
        for ((cut, bins), census) in cut.into_iter().zip(block).zip(census) {
            let column = match Column::of(bins, census, n_rows)? {
                Column::Dense(bins) => StoredColumn::Dense(self.write(&bins)?),
                Column::Compressed(column) => StoredColumn::Compressed(column),
            };
            self.cut.push(cut);
            self.uncommon.push(census.uncommon);
            self.columns.push(column);
        }
        Ok(())
    }

    /// Appends bins to the file and tells where they are.
    fn write(&mut self, bins: &[u8]) -> Result<Range<usize>> {
        let start = self.file.len();
        self.file.write(bins).map_err(|error| file_error("write", &self.path, &error))?;
        Ok(start..self.file.len())
    }

    /// All features; the dense ones stay in the file, mapped into memory.
    pub fn finish(self) -> Result<Binned> {
        let n_features = self.columns.len();
        if let Some(expected) = self.source.n_features()
            && n_features != expected
        {
            return wrong_number(n_features, expected);
        }
        let cuts = match self.source {
            CutSource::Known(cuts) => cuts,
            CutSource::Find { n_categories, .. } => Arc::new(Cuts::new(self.cut, &n_categories)),
        };
        let map = self.file.map().map_err(|error| file_error("map", &self.path, &error))?;
        let map = Arc::new(map);
        let column = |stored| match stored {
            StoredColumn::Dense(range) => Column::Dense(Bins::Mapped(Arc::clone(&map), range)),
            StoredColumn::Compressed(column) => Column::Compressed(column),
        };
        let columns = self.columns.into_iter().map(column).collect();
        Ok(Binned { n_rows: self.n_rows, n_features, columns, uncommon: self.uncommon, cuts })
    }
}

impl CutSource {
    /// The number of features that must be given, if it is known.
    fn n_features(&self) -> Option<usize> {
        match self {
            CutSource::Known(cuts) => Some(cuts.thresholds.len()),
            CutSource::Find { n_categories, .. } if n_categories.is_empty() => None,
            CutSource::Find { n_categories, .. } => Some(n_categories.len()),
        }
    }

    /// Thresholds of a feature, and whether its column has missing values.
    fn cut(&self, feature: usize, column: &[f32]) -> Result<(Vec<f32>, bool)> {
        match self {
            CutSource::Known(cuts) => {
                Ok((cuts.thresholds[feature].clone(), cuts.has_missing[feature]))
            }
            CutSource::Find { masses, max_bins, n_categories } => {
                let n = count_of(feature, n_categories);
                if n == 0 {
                    return cut_feature(column, masses.as_deref(), *max_bins);
                }
                if n as usize > MAX_BINS || !column.iter().all(|&value| is_code(value, n)) {
                    return no_codes(feature, n);
                }
                Ok((category_thresholds(n), has_missing(column)))
            }
        }
    }
}

fn wrong_number<T>(n_features: usize, expected: usize) -> Result<T> {
    invalid(format!("{n_features} features were given, expected {expected}"))
}

fn file_error(action: &str, path: &Path, error: &std::io::Error) -> Error {
    let sentence = format!("could not {action} the scratch file {}: {error}", path.display());
    Error::File { code: error.raw_os_error(), sentence }
}

#[cfg(test)]
mod tests {
    use super::super::{apply_cuts, find_cuts};
    use super::*;

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
            let cuts = find_cuts(&pool, &x, p, weight, 40, &categories).unwrap();
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
        assert!(binner.push(&pool, &[0.0; 6]).is_err());
        let refused = ColumnBinner::find(&pool, &path, u32::MAX as usize + 1, None, 255, &[]).err();
        assert!(matches!(refused, Some(Error::Invalid(_))) && !path.exists());
        // Fewer features than numbers of categories.
        assert!(binner.finish().is_err());
        std::fs::write(&path, b"mine").unwrap();
        assert!(ColumnBinner::find(&pool, &path, 3, None, 255, &[]).is_err());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_created_is_an_error_with_the_number_of_the_system() {
        let path = std::env::temp_dir().join("manyboost-no-such-folder").join("bins");
        let refused = ColumnBinner::find(&Pool::serial(), &path, 3, None, 255, &[]).err();
        assert!(matches!(refused, Some(Error::File { code: Some(_), .. })));
    }
}
