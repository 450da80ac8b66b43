//! Binned features, the grower and its trees.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use manyboost_core as core;
use manyboost_core::histogram::SplitWeights;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use crate::arrays::{SparseArrays, check_len, copied, matrix, optional, slice};
use crate::pool::{Pool, to_py_err};

/// Features as bins.
#[pyclass(frozen, module = "manyboost._core")]
pub struct Features {
    pub binned: Arc<core::binning::Binned>,
}

#[pymethods]
impl Features {
    /// Finds cuts in `x` (n × p, float32) and bins it. `n_categories` has the number of categories of
    /// each feature, 0 for numeric ones.
    #[staticmethod]
    #[pyo3(signature = (pool, x, weight, max_bins, n_categories=None))]
    fn fit(
        py: Python<'_>,
        pool: &Pool,
        x: PyReadonlyArray2<'_, f32>,
        weight: Option<PyReadonlyArray1<'_, f64>>,
        max_bins: usize,
        n_categories: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<Features> {
        let n_features = x.shape()[1];
        check_bins(n_features, max_bins)?;
        check_len("weight", weight.as_ref().map_or(x.shape()[0], |w| w.len()), x.shape()[0])?;
        let (x, weight) = (slice(&x)?, optional(&weight)?);
        let counts = optional(&n_categories)?.unwrap_or_default();
        let binned = pool.run(py, |pool| {
            let cuts = core::binning::find_cuts(pool, x, n_features, weight, max_bins, counts)?;
            core::binning::apply_cuts(pool, x, &Arc::new(cuts))
        })?;
        Ok(Features { binned: Arc::new(binned) })
    }

    /// Finds cuts in a sparse matrix of `n_rows` rows, given by columns, and bins it.
    #[staticmethod]
    #[pyo3(signature = (pool, x, n_rows, weight, max_bins))]
    fn fit_sparse(
        py: Python<'_>,
        pool: &Pool,
        x: SparseArrays<'_>,
        n_rows: usize,
        weight: Option<PyReadonlyArray1<'_, f64>>,
        max_bins: usize,
    ) -> PyResult<Features> {
        let columns = x.columns(n_rows)?;
        check_bins(columns.n_features(), max_bins)?;
        let weight = optional(&weight)?;
        check_len("weight", weight.map_or(n_rows, <[f64]>::len), n_rows)?;
        let binned = pool.run(py, |pool| {
            let cuts = core::binning::find_cuts_sparse(pool, columns, weight, max_bins)?;
            core::binning::apply_cuts_sparse(pool, columns, &Arc::new(cuts))
        })?;
        Ok(Features { binned: Arc::new(binned) })
    }

    /// Bins other sparse data with the same cuts.
    fn bin_sparse(
        &self,
        py: Python<'_>,
        pool: &Pool,
        x: SparseArrays<'_>,
        n_rows: usize,
    ) -> PyResult<Features> {
        let columns = x.columns(n_rows)?;
        check_len("x", columns.n_features(), self.binned.n_features)?;
        let cuts = &self.binned.cuts;
        let binned =
            pool.run_alone(py, |pool| core::binning::apply_cuts_sparse(pool, columns, cuts))?;
        Ok(Features { binned: Arc::new(binned) })
    }

    /// Bins other data with the same cuts.
    fn bin(&self, py: Python<'_>, pool: &Pool, x: PyReadonlyArray2<'_, f32>) -> PyResult<Features> {
        check_len("a row of x", x.shape()[1], self.binned.n_features)?;
        let x = slice(&x)?;
        let cuts = &self.binned.cuts;
        let binned = pool.run_alone(py, |pool| core::binning::apply_cuts(pool, x, cuts))?;
        Ok(Features { binned: Arc::new(binned) })
    }

    /// Some of the rows, ascending.
    fn take(
        &self,
        py: Python<'_>,
        pool: &Pool,
        rows: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<Features> {
        let rows = slice(&rows)?;
        let ascend = rows.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascend || rows.last().is_some_and(|&row| row as usize >= self.binned.n_rows) {
            return Err(PyValueError::new_err("rows must ascend, and exist"));
        }
        let binned = pool.run_alone(py, |pool| self.binned.take(pool, rows))?;
        Ok(Features { binned: Arc::new(binned) })
    }

    /// Thresholds of one feature.
    fn thresholds<'py>(
        &self,
        py: Python<'py>,
        feature: usize,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        self.check_feature(feature)?;
        Ok(self.binned.cuts.thresholds[feature].clone().into_pyarray(py))
    }

    /// Bins of one feature.
    fn column<'py>(&self, py: Python<'py>, feature: usize) -> PyResult<Bound<'py, PyArray1<u8>>> {
        self.check_feature(feature)?;
        let bins = self.binned.columns[feature].to_vec(self.binned.n_rows);
        Ok(bins.map_err(to_py_err)?.into_pyarray(py))
    }
}

impl Features {
    fn check_feature(&self, feature: usize) -> PyResult<()> {
        let n_features = self.binned.n_features;
        if feature < n_features {
            return Ok(());
        }
        Err(PyIndexError::new_err(format!("there is no feature {feature} of {n_features}")))
    }
}

/// Bins features that come some columns at a time, into a file.
#[pyclass(module = "manyboost._core")]
pub struct ColumnBinner {
    inner: Option<core::binning::ColumnBinner>,
}

#[pymethods]
impl ColumnBinner {
    /// Finds cuts in columns of `n_rows` rows as they come, and writes bins to a new file at `path`.
    #[new]
    #[pyo3(signature = (pool, path, n_rows, weight, max_bins, n_categories=None))]
    fn new(
        py: Python<'_>,
        pool: &Pool,
        path: PathBuf,
        n_rows: usize,
        weight: Option<PyReadonlyArray1<'_, f64>>,
        max_bins: usize,
        n_categories: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<ColumnBinner> {
        check_bins(1, max_bins)?;
        let weight = optional(&weight)?;
        check_len("weight", weight.map_or(n_rows, <[f64]>::len), n_rows)?;
        let counts = optional(&n_categories)?.unwrap_or_default();
        let inner = pool.run_alone(py, |pool| {
            core::binning::ColumnBinner::find(pool, &path, n_rows, weight, max_bins, counts)
        })?;
        Ok(ColumnBinner { inner: Some(inner) })
    }

    /// Bins columns with the cuts of other features.
    #[staticmethod]
    fn known(path: PathBuf, n_rows: usize, features: &Features) -> PyResult<ColumnBinner> {
        let cuts = &features.binned.cuts;
        let inner = core::binning::ColumnBinner::known(&path, n_rows, cuts).map_err(to_py_err)?;
        Ok(ColumnBinner { inner: Some(inner) })
    }

    /// Adds features (k × n_rows, float32).
    fn push(
        &mut self,
        py: Python<'_>,
        pool: &Pool,
        columns: PyReadonlyArray2<'_, f32>,
    ) -> PyResult<()> {
        let inner = self.inner.as_mut().ok_or_else(finished)?;
        let columns = slice(&columns)?;
        pool.run_alone(py, |pool| inner.push(pool, columns))
    }

    /// All features. Nothing can be added afterwards.
    fn finish(&mut self) -> PyResult<Features> {
        let inner = self.inner.take().ok_or_else(finished)?;
        Ok(Features { binned: Arc::new(inner.finish().map_err(to_py_err)?) })
    }
}

fn finished() -> PyErr {
    PyValueError::new_err("this binner is finished; make a new one")
}

fn check_bins(n_features: usize, max_bins: usize) -> PyResult<()> {
    if n_features == 0 || !(2..=core::binning::MAX_BINS).contains(&max_bins) {
        return Err(PyValueError::new_err(format!(
            "cannot bin {n_features} features with max_bins={max_bins}; it must be 2 to {}",
            core::binning::MAX_BINS
        )));
    }
    Ok(())
}

/// Grows trees on one set of features.
#[pyclass(frozen, module = "manyboost._core")]
pub struct Grower {
    binned: Arc<core::binning::Binned>,
    seed: u64,
    inner: Mutex<core::grower::Grower>,
}

#[pymethods]
impl Grower {
    #[allow(clippy::too_many_arguments)] // named in Python
    #[new]
    #[pyo3(signature = (features, *, max_leaf_nodes, max_depth, min_samples_leaf, min_split_gain, max_features, seed, interactions=None))]
    fn new(
        features: &Features,
        max_leaf_nodes: usize,
        max_depth: usize,
        min_samples_leaf: usize,
        min_split_gain: f64,
        max_features: usize,
        seed: u64,
        interactions: Option<Vec<Vec<u32>>>,
    ) -> PyResult<Grower> {
        let n_features = features.binned.n_features;
        let mut named = interactions.iter().flatten().flatten();
        if named.any(|&feature| feature as usize >= n_features) {
            return Err(PyValueError::new_err(
                "an interaction names a feature that does not exist",
            ));
        }
        let interactions =
            interactions.map(|groups| core::interaction::Interactions::new(groups, n_features));
        let params = core::grower::GrowParams {
            max_leaf_nodes,
            max_depth,
            min_samples_leaf,
            min_split_gain,
            max_features,
        };
        let grower =
            core::grower::Grower::new(&features.binned, params, interactions).map_err(to_py_err)?;
        Ok(Grower { binned: Arc::clone(&features.binned), seed, inner: Mutex::new(grower) })
    }

    /// Grows one tree on split gradients `z` (n × q). Weights are those of rows (n), or of components
    /// (n × q), by which `z` is then already multiplied. `signs` (p) are monotonic constraints, for
    /// q = 1.
    #[allow(clippy::too_many_arguments)] // the arrays of a call from Python
    #[pyo3(signature = (pool, z, weight, rows, round, output, signs=None))]
    fn grow(
        &self,
        py: Python<'_>,
        pool: &Pool,
        z: PyReadonlyArray2<'_, f32>,
        weight: Option<SplitWeightArray<'_>>,
        rows: Option<PyReadonlyArray1<'_, u32>>,
        round: u64,
        output: u64,
        signs: Option<PyReadonlyArray1<'_, i8>>,
    ) -> PyResult<Tree> {
        let n_components = z.shape()[1];
        if n_components == 0 {
            return Err(PyValueError::new_err("z has no components to grow a tree on"));
        }
        let signs = optional(&signs)?;
        if let Some(signs) = signs {
            check_len("signs", signs.len(), self.binned.n_features)?;
            check_len("a row of z under monotonic constraints", n_components, 1)?;
        }
        check_len("z", z.shape()[0], self.binned.n_rows)?;
        let weights = match &weight {
            None => SplitWeights::Equal,
            Some(SplitWeightArray::Rows(w)) => {
                check_len("weight", w.len(), self.binned.n_rows)?;
                SplitWeights::Rows(slice(w)?)
            }
            Some(SplitWeightArray::Components(w)) => {
                check_len("weight", w.len(), z.len())?;
                SplitWeights::Components(slice(w)?)
            }
        };
        let (z, rows) = (slice(&z)?, optional(&rows)?);
        if rows.is_some_and(|rows| rows.iter().any(|&r| r as usize >= self.binned.n_rows)) {
            return Err(PyValueError::new_err("a sampled row does not exist"));
        }
        let key = core::random::Key::of(self.seed, round, output, core::random::Purpose::Features);
        let grown = pool.run(py, |pool| {
            let mut grower = self.inner.lock().unwrap_or_else(|e| e.into_inner());
            let spare = grower.take_lanes();
            let gradients = core::histogram::quantise(pool, z, n_components, weights, rows, spare)?;
            grower.grow(pool, &self.binned, gradients, rows, signs, key)
        })?;
        Ok(Tree {
            tree: grown.tree,
            leaf_of_row: grown.leaf_of_row.into_pyarray(py).unbind(),
            leaf_weights: grown.leaf_weights.into_pyarray(py).unbind(),
        })
    }
}

/// Weights of rows, or of the components of rows.
#[derive(FromPyObject)]
enum SplitWeightArray<'py> {
    Rows(PyReadonlyArray1<'py, f32>),
    Components(PyReadonlyArray2<'py, f32>),
}

/// A grown tree and where it put the training rows.
#[pyclass(frozen, module = "manyboost._core")]
pub struct Tree {
    pub tree: core::tree::Tree,
    /// The leaf of every training row.
    #[pyo3(get)]
    pub leaf_of_row: Py<PyArray1<u32>>,
    /// Total weight of each leaf.
    #[pyo3(get)]
    pub leaf_weights: Py<PyArray1<f64>>,
}

#[pymethods]
impl Tree {
    /// A tree of one leaf, without training rows.
    #[staticmethod]
    fn leaf(py: Python<'_>) -> Tree {
        let root =
            core::tree::Node { feature: 0, threshold: 0.0, left: 0, cover: 0.0, gain: 0.0, cut: 0 };
        Tree {
            tree: core::tree::Tree { nodes: vec![root], sets: Vec::new(), n_leaves: 1 },
            leaf_of_row: Vec::new().into_pyarray(py).unbind(),
            leaf_weights: vec![0.0].into_pyarray(py).unbind(),
        }
    }

    /// Number of leaves.
    #[getter]
    fn n_leaves(&self) -> usize {
        self.tree.n_leaves
    }

    /// The same tree with the covers of rows that weigh `leaf_weights` in its leaves.
    fn with_covers(
        &self,
        py: Python<'_>,
        leaf_weights: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Tree> {
        let tree = self.tree.clone().with_covers(slice(&leaf_weights)?).map_err(to_py_err)?;
        let (leaf_of_row, leaf_weights) = (&self.leaf_of_row, &self.leaf_weights);
        let leaf_weights = leaf_weights.clone_ref(py);
        Ok(Tree { tree, leaf_of_row: leaf_of_row.clone_ref(py), leaf_weights })
    }

    /// Features that the tree splits into low and high values, ascending.
    fn ordered_features<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        let splits = self.tree.nodes.iter().filter(|node| node.orders_values());
        let features: BTreeSet<u32> = splits.map(|node| node.feature_index() as u32).collect();
        features.into_iter().collect::<Vec<_>>().into_pyarray(py)
    }

    /// Leaf values (n_leaves × k) brought into the order that `signs` (k × p) ask for; `weights`
    /// (n_leaves × k, or n_leaves × 1) say how much each matters.
    fn order_leaves<'py>(
        &self,
        py: Python<'py>,
        signs: PyReadonlyArray2<'_, i8>,
        weights: PyReadonlyArray2<'_, f64>,
        values: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let [n_leaves, n_outputs] = [values.shape()[0], values.shape()[1]];
        check_len("values", n_leaves, self.tree.n_leaves)?;
        check_len("weights", weights.shape()[0], n_leaves)?;
        if weights.shape()[1] != 1 {
            check_len("a row of weights", weights.shape()[1], n_outputs)?;
        }
        check_len("signs", signs.shape()[0], n_outputs)?;
        let n_features = signs.shape()[1];
        if self.tree.nodes.iter().any(|n| !n.is_leaf() && n.feature_index() >= n_features) {
            return Err(PyValueError::new_err("signs lack a feature of the tree"));
        }
        let mut ordered = copied(slice(&values)?)?;
        let core::tree::Tree { nodes, sets, .. } = &self.tree;
        let (signs, weights) = (slice(&signs)?, slice(&weights)?);
        core::monotone::order_leaves(nodes, sets, signs, weights, &mut ordered);
        Ok(matrix(py, ordered, n_outputs))
    }

    /// The leaf of every row of other binned data.
    fn apply<'py>(
        &self,
        py: Python<'py>,
        pool: &Pool,
        features: &Features,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let [n_rows, n_features] = [features.binned.n_rows, features.binned.n_features];
        if self.tree.nodes.iter().any(|n| !n.is_leaf() && n.feature_index() >= n_features) {
            return Err(PyValueError::new_err("the tree splits by a feature that x does not have"));
        }
        let mut leaves = core::memory::zeros::<u32>(n_rows).map_err(to_py_err)?;
        pool.run(py, |pool| self.tree.leaves_of_binned(pool, &features.binned, &mut leaves))?;
        Ok(leaves.into_pyarray(py))
    }
}
