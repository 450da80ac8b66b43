//! The model.

use std::borrow::Cow;

use manyboost_core as core;
use manyboost_core::ensemble::Kind;
use manyboost_core::ranking::Ranked;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyReadwriteArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrays::{FeatureRowArrays, ModelArrays, check_len, copied, matrix, slice, slice_mut};
use crate::features::Tree;
use crate::labels::{SparseLeafArrays, sparse_leaves, starts_of};
use crate::pool::{Pool, to_py_err};

/// Trees in the order they were grown.
#[pyclass(module = "manyboost._core")]
pub struct Ensemble {
    pub inner: core::ensemble::Ensemble,
}

#[pymethods]
impl Ensemble {
    /// A model without trees; `kind` is "per_output", "vector", "scaled" or "sparse".
    #[new]
    fn new(kind: &str, n_outputs: usize, n_features: usize) -> PyResult<Ensemble> {
        let kind = kind_of(kind)?;
        if n_outputs == 0 || n_features == 0 {
            return Err(PyValueError::new_err(format!(
                "a model needs outputs and features, not {n_outputs} and {n_features}"
            )));
        }
        Ok(Ensemble { inner: core::ensemble::Ensemble::new(kind, n_outputs, n_features) })
    }

    /// Appends a tree with its leaf values and, for "scaled", one step per output.
    #[pyo3(signature = (tree, values, steps=None))]
    fn push(
        &mut self,
        tree: &Tree,
        values: PyReadonlyArray2<'_, f32>,
        steps: Option<PyReadonlyArray1<'_, f32>>,
    ) -> PyResult<()> {
        let steps = steps.as_ref().map_or(Ok(&[][..]), slice)?;
        let core::tree::Tree { nodes, sets, .. } = &tree.tree;
        self.inner.push(nodes, sets, slice(&values)?, steps).map_err(to_py_err)
    }

    /// Appends a tree to a "sparse" model; `values` are where each leaf begins, outputs, values.
    fn push_sparse(&mut self, tree: &Tree, values: SparseLeafArrays<'_>) -> PyResult<()> {
        let (sizes, outputs, values) = sparse_leaves(&values)?;
        let core::tree::Tree { nodes, sets, .. } = &tree.tree;
        self.inner.push_sparse(nodes, sets, &sizes, outputs, values).map_err(to_py_err)
    }

    /// Keeps the first rounds.
    fn truncate(&mut self, n_rounds: usize) {
        self.inner.truncate(n_rounds * self.inner.trees_per_round());
    }

    /// Undoes what output j got after its first `rounds[j]` rounds.
    fn keep(&mut self, rounds: PyReadonlyArray1<'_, u64>) -> PyResult<()> {
        check_len("rounds", rounds.len(), self.inner.n_outputs)?;
        let rounds: Vec<usize> = slice(&rounds)?.iter().map(|&r| r as usize).collect();
        self.inner.keep(&rounds);
        Ok(())
    }

    /// Adds the trees of rounds `start..stop` to `raw` (n × d) for `x`: an array n × p, or starts,
    /// features and values of a matrix that is sparse by rows.
    fn add_to(
        &self,
        py: Python<'_>,
        pool: &Pool,
        x: FeatureRowArrays<'_>,
        start: usize,
        stop: usize,
        mut raw: PyReadwriteArray2<'_, f32>,
    ) -> PyResult<()> {
        let (n_rows, x) = x.view(self.inner.n_features)?;
        check_len("a row of raw", raw.shape()[1], self.inner.n_outputs)?;
        check_len("raw", raw.shape()[0], n_rows)?;
        if start > stop || stop > self.n_rounds() {
            return Err(PyValueError::new_err(format!("no rounds {start} to {stop}")));
        }
        let raw = slice_mut(&mut raw)?;
        pool.run(py, |pool| self.inner.add_to(pool, x, start..stop, raw))
    }

    /// Raw predictions of `x` (n × p), the baseline plus the trees of rounds `0..stop`, into `out`
    /// (n × d), whatever it holds.
    fn predict(
        &self,
        py: Python<'_>,
        pool: &Pool,
        x: FeatureRowArrays<'_>,
        stop: usize,
        baseline: PyReadonlyArray1<'_, f64>,
        mut out: PyReadwriteArray2<'_, f64>,
    ) -> PyResult<()> {
        let (n_rows, x) = x.view(self.inner.n_features)?;
        check_len("baseline", baseline.len(), self.inner.n_outputs)?;
        check_len("a row of out", out.shape()[1], self.inner.n_outputs)?;
        check_len("out", out.shape()[0], n_rows)?;
        self.check_rounds(stop)?;
        let (baseline, out) = (slice(&baseline)?, slice_mut(&mut out)?);
        pool.run(py, |pool| self.inner.predict(pool, x, 0..stop, baseline, out))
    }

    /// The `k` outputs of highest raw prediction in each row, best first, and these predictions
    /// (n × k each).
    #[allow(clippy::type_complexity)]
    fn top_k<'py>(
        &self,
        py: Python<'py>,
        pool: &Pool,
        x: FeatureRowArrays<'_>,
        stop: usize,
        baseline: PyReadonlyArray1<'_, f64>,
        k: usize,
    ) -> PyResult<(Bound<'py, PyArray2<u32>>, Bound<'py, PyArray2<f64>>)> {
        let (n_rows, x) = x.view(self.inner.n_features)?;
        check_len("baseline", baseline.len(), self.inner.n_outputs)?;
        self.check_rounds(stop)?;
        let mut best = Vec::new();
        core::memory::resize(&mut best, n_rows * k, Ranked::default()).map_err(to_py_err)?;
        let baseline = slice(&baseline)?;
        pool.run(py, |pool| self.inner.top_k(pool, x, 0..stop, baseline, k, &mut best))?;
        let outputs = core::memory::collected(best.len(), best.iter().map(|each| each.output));
        let scores = core::memory::collected(best.len(), best.iter().map(|each| each.score));
        let (outputs, scores) = (outputs.map_err(to_py_err)?, scores.map_err(to_py_err)?);
        Ok((matrix(py, outputs, k), matrix(py, scores, k)))
    }

    /// The outputs that the trees of a "sparse" model change in each row, and their raw predictions:
    /// where each row begins, outputs, predictions. The others are at the baseline.
    #[allow(clippy::type_complexity)]
    fn support<'py>(
        &self,
        py: Python<'py>,
        pool: &Pool,
        x: FeatureRowArrays<'_>,
        stop: usize,
        baseline: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<f64>>)>
    {
        let (n_rows, x) = x.view(self.inner.n_features)?;
        check_len("baseline", baseline.len(), self.inner.n_outputs)?;
        self.check_rounds(stop)?;
        if self.inner.kind != Kind::Sparse {
            return Err(PyValueError::new_err("the trees of this model change all outputs"));
        }
        let mut rows = Vec::new();
        core::memory::resize(&mut rows, n_rows, Vec::new()).map_err(to_py_err)?;
        let baseline = slice(&baseline)?;
        pool.run(py, |pool| self.inner.support(pool, x, 0..stop, baseline, &mut rows))?;
        let (n, all) = (rows.iter().map(Vec::len).sum(), || rows.iter().flatten());
        let outputs = core::memory::collected(n, all().map(|each| each.output as i32));
        let raw = core::memory::collected(n, all().map(|each| each.score));
        let (outputs, raw) = (outputs.map_err(to_py_err)?, raw.map_err(to_py_err)?);
        let starts = starts_of(rows.iter().map(Vec::len))?;
        Ok((starts.into_pyarray(py), outputs.into_pyarray(py), raw.into_pyarray(py)))
    }

    /// Adds Shapley values in units of raw predictions to `out` (n × p·d), outputs of a feature side
    /// by side.
    fn add_shap_values(
        &self,
        py: Python<'_>,
        pool: &Pool,
        x: FeatureRowArrays<'_>,
        mut out: PyReadwriteArray2<'_, f64>,
    ) -> PyResult<()> {
        let (n_rows, x) = x.view(self.inner.n_features)?;
        let width = self.inner.n_features * self.inner.n_outputs;
        check_len("a row of out", out.shape()[1], width)?;
        check_len("out", out.shape()[0], n_rows)?;
        let out = slice_mut(&mut out)?;
        pool.run(py, |pool| self.inner.add_shap_values(pool, x, out))
    }

    /// Adds Shapley interaction values of features j < k to `out` (n × p·p·d), at the place of j, k.
    fn add_shap_interactions(
        &self,
        py: Python<'_>,
        pool: &Pool,
        x: FeatureRowArrays<'_>,
        mut out: PyReadwriteArray2<'_, f64>,
    ) -> PyResult<()> {
        let p = self.inner.n_features;
        let (n_rows, x) = x.view(p)?;
        check_len("a row of out", out.shape()[1], p * p * self.inner.n_outputs)?;
        check_len("out", out.shape()[0], n_rows)?;
        let out = slice_mut(&mut out)?;
        pool.run(py, |pool| self.inner.add_shap_interactions(pool, x, out))
    }

    /// What the trees add to each output (d) if no feature is known.
    fn expected<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.inner.expected().into_pyarray(py)
    }

    /// The leaf of each row in each of the trees `start..stop`, n × trees.
    #[pyo3(signature = (pool, x, start=0, stop=None))]
    fn leaves<'py>(
        &self,
        py: Python<'py>,
        pool: &Pool,
        x: FeatureRowArrays<'_>,
        start: usize,
        stop: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let (n_rows, x) = x.view(self.inner.n_features)?;
        let trees = start..stop.unwrap_or(self.inner.n_trees());
        if trees.start > trees.end || trees.end > self.inner.n_trees() {
            return Err(PyValueError::new_err(format!("there are no trees {trees:?}")));
        }
        let n_trees = trees.len();
        let mut out = core::memory::zeros::<u32>(n_rows * n_trees).map_err(to_py_err)?;
        pool.run(py, |pool| self.inner.leaves(pool, x, trees, &mut out))?;
        Ok(matrix(py, out, n_trees))
    }

    /// The model of some outputs alone, in the order given.
    fn of_outputs(&self, outputs: Vec<usize>) -> PyResult<Ensemble> {
        Ok(Ensemble { inner: self.inner.of_outputs(&outputs).map_err(to_py_err)? })
    }

    /// The mean of models, round by round.
    #[staticmethod]
    fn mean(members: Vec<PyRef<'_, Ensemble>>) -> PyResult<Ensemble> {
        let members: Vec<_> = members.iter().map(|member| &member.inner).collect();
        Ok(Ensemble { inner: core::ensemble::Ensemble::mean(&members).map_err(to_py_err)? })
    }

    /// One of the models whose mean this is.
    fn member(&self, member: usize) -> PyResult<Ensemble> {
        Ok(Ensemble { inner: self.inner.member(member).map_err(to_py_err)? })
    }

    /// One tree, filled with other rows: the leaf of each, and the weight of each leaf.
    fn refilled(
        &self,
        tree: usize,
        leaf_of_row: Py<PyArray1<u32>>,
        leaf_weights: &Bound<'_, PyArray1<f64>>,
    ) -> PyResult<Tree> {
        if tree >= self.inner.n_trees() {
            return Err(PyValueError::new_err(format!("there is no tree {tree}")));
        }
        let weights = leaf_weights.readonly();
        let refilled = self.inner.refilled(tree, slice(&weights)?).map_err(to_py_err)?;
        Ok(Tree { tree: refilled, leaf_of_row, leaf_weights: leaf_weights.clone().unbind() })
    }

    /// Number of models whose mean this is.
    #[getter]
    fn n_members(&self) -> usize {
        self.inner.n_members
    }

    /// "per_output", "vector", "scaled" or "sparse".
    #[getter]
    fn kind(&self) -> &'static str {
        match self.inner.kind {
            Kind::PerOutput => "per_output",
            Kind::Vector => "vector",
            Kind::Scaled => "scaled",
            Kind::Sparse => "sparse",
        }
    }

    /// Number of outputs.
    #[getter]
    fn n_outputs(&self) -> usize {
        self.inner.n_outputs
    }

    /// Number of features.
    #[getter]
    fn n_features(&self) -> usize {
        self.inner.n_features
    }

    /// Number of rounds.
    #[getter]
    fn n_rounds(&self) -> usize {
        self.inner.n_trees() / self.inner.trees_per_round().max(1)
    }

    /// Steps of "scaled" trees, n_trees × n_outputs.
    fn steps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        Ok(matrix(py, copied(&self.inner.steps)?, self.inner.n_outputs))
    }

    /// Leaf values of one tree of a "sparse" model: where each leaf begins, outputs, values.
    #[allow(clippy::type_complexity)]
    fn sparse_leaf_values<'py>(
        &self,
        py: Python<'py>,
        tree: usize,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f32>>)>
    {
        if tree >= self.inner.n_trees() || self.inner.kind != Kind::Sparse {
            return Err(PyValueError::new_err(format!("there is no sparse tree {tree}")));
        }
        let starts = starts_of(self.inner.leaf_sizes(tree).into_iter())?;
        let outputs = copied(self.inner.tree_outputs(tree))?;
        let values = copied(self.inner.tree_values(tree))?;
        Ok((starts.into_pyarray(py), outputs.into_pyarray(py), values.into_pyarray(py)))
    }

    /// Leaf values of one tree, n_leaves × n_outputs for "vector", else n_leaves × 1.
    fn leaf_values<'py>(
        &self,
        py: Python<'py>,
        tree: usize,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        if tree >= self.inner.n_trees() {
            return Err(PyValueError::new_err(format!("there is no tree {tree}")));
        }
        let width = if self.inner.kind == Kind::Vector { self.inner.n_outputs } else { 1 };
        Ok(matrix(py, copied(self.inner.tree_values(tree))?, width))
    }

    /// Number of nodes of each tree.
    fn tree_sizes<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        let sizes = (0..self.inner.n_trees()).map(|t| self.inner.tree(t).len() as u32);
        sizes.collect::<Vec<_>>().into_pyarray(py)
    }

    /// (feature, threshold, left, missing_left, cover, gain, left_categories) of the nodes of one
    /// tree. If a split sends a set of categories left, its threshold is NaN and `left_categories`
    /// has their codes; codes without rows in the node go where missing values go. Else it has None.
    #[allow(clippy::type_complexity)]
    fn tree<'py>(
        &self,
        py: Python<'py>,
        tree: usize,
    ) -> PyResult<(
        Bound<'py, PyArray1<u32>>,
        Bound<'py, PyArray1<f32>>,
        Bound<'py, PyArray1<u32>>,
        Bound<'py, PyArray1<bool>>,
        Bound<'py, PyArray1<f32>>,
        Bound<'py, PyArray1<f32>>,
        Vec<Option<Bound<'py, PyArray1<u8>>>>,
    )> {
        if tree >= self.inner.n_trees() {
            return Err(PyValueError::new_err(format!("there is no tree {tree}")));
        }
        let nodes = self.inner.tree(tree);
        let feature: Vec<u32> = nodes.iter().map(|n| n.feature_index() as u32).collect();
        let threshold: Vec<f32> =
            nodes.iter().map(|n| if n.is_categorical() { f32::NAN } else { n.threshold }).collect();
        let left: Vec<u32> = nodes.iter().map(|n| n.left).collect();
        let missing_left: Vec<bool> = nodes.iter().map(|n| n.missing_left()).collect();
        let cover: Vec<f32> = nodes.iter().map(|n| n.cover).collect();
        let gain: Vec<f32> = nodes.iter().map(|n| n.gain).collect();
        let sets = self.inner.tree_sets(tree);
        let members = |n: &core::tree::Node| {
            let set = n.is_categorical().then(|| sets[n.cut as usize].members());
            set.map(|codes| codes.collect::<Vec<u8>>().into_pyarray(py))
        };
        let left_categories = nodes.iter().map(members).collect();
        Ok((
            feature.into_pyarray(py),
            threshold.into_pyarray(py),
            left.into_pyarray(py),
            missing_left.into_pyarray(py),
            cover.into_pyarray(py),
            gain.into_pyarray(py),
            left_categories,
        ))
    }

    /// The arrays that the model is stored as, by name.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Ensemble { inner } = self;
        let parts = core::format::to_arrays(inner).map_err(to_py_err)?;
        let arrays = PyDict::new(py);
        arrays.set_item("tree_sizes", owned(parts.tree_sizes)?.into_pyarray(py))?;
        arrays.set_item("node_left", owned(parts.node_left)?.into_pyarray(py))?;
        arrays.set_item("node_cover", owned(parts.node_cover)?.into_pyarray(py))?;
        arrays.set_item("split_feature", owned(parts.split_feature)?.into_pyarray(py))?;
        arrays.set_item("split_threshold", owned(parts.split_threshold)?.into_pyarray(py))?;
        arrays.set_item("split_gain", owned(parts.split_gain)?.into_pyarray(py))?;
        let sets = owned(parts.split_categories)?;
        arrays.set_item("split_categories", matrix(py, sets, core::format::SET_WORDS))?;
        let width = if inner.kind == Kind::Vector { inner.n_outputs } else { 1 };
        arrays.set_item("leaf_values", matrix(py, owned(parts.leaf_values)?, width))?;
        if inner.kind == Kind::Scaled {
            let steps = owned(parts.tree_steps)?;
            arrays.set_item("tree_steps", matrix(py, steps, inner.n_outputs))?;
        }
        if inner.kind == Kind::Sparse {
            arrays.set_item("leaf_sizes", owned(parts.leaf_sizes)?.into_pyarray(py))?;
            arrays.set_item("leaf_outputs", owned(parts.leaf_outputs)?.into_pyarray(py))?;
        }
        Ok(arrays)
    }

    /// The model that such arrays hold, all of it checked. `n_categories`, if known, has the number
    /// of categories of each feature, 0 for numbers.
    #[staticmethod]
    #[pyo3(signature = (kind, n_outputs, n_features, n_members, arrays, n_categories=None))]
    fn from_arrays(
        kind: &str,
        n_outputs: usize,
        n_features: usize,
        n_members: usize,
        arrays: ModelArrays<'_>,
        n_categories: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<Ensemble> {
        let arrays = arrays.view()?;
        let counts = n_categories.as_ref().map(slice).transpose()?;
        let kind = kind_of(kind)?;
        let inner =
            core::format::from_arrays(kind, n_outputs, n_features, n_members, &arrays, counts);
        Ok(Ensemble { inner: inner.map_err(to_py_err)? })
    }

    /// The model as the bytes of a model file that holds nothing else.
    fn to_bytes<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyBytes>> {
        let files = slf.py().import("manyboost.persistence")?;
        Ok(files.call_method1("trees_to_bytes", (slf,))?.cast_into()?)
    }

    /// The model that these bytes hold.
    #[staticmethod]
    fn from_bytes<'py>(
        py: Python<'py>,
        bytes: &Bound<'py, PyBytes>,
    ) -> PyResult<Bound<'py, PyAny>> {
        py.import("manyboost.persistence")?.call_method1("trees_from_bytes", (bytes,))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (Ensemble::to_bytes(slf)?,)))
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Ensemble {
        Ensemble { inner: self.inner.clone() }
    }
}

impl Ensemble {
    fn check_rounds(&self, n_rounds: usize) -> PyResult<()> {
        if n_rounds <= self.n_rounds() {
            return Ok(());
        }
        Err(PyValueError::new_err(format!("there are no {n_rounds} rounds")))
    }
}

/// Numbers to keep, copied if they are borrowed.
fn owned<T: Copy>(numbers: Cow<'_, [T]>) -> PyResult<Vec<T>> {
    match numbers {
        Cow::Owned(numbers) => Ok(numbers),
        Cow::Borrowed(numbers) => copied(numbers),
    }
}

fn kind_of(name: &str) -> PyResult<Kind> {
    Ok(match name {
        "per_output" => Kind::PerOutput,
        "vector" => Kind::Vector,
        "scaled" => Kind::Scaled,
        "sparse" => Kind::Sparse,
        other => return Err(PyValueError::new_err(format!("unknown kind of trees {other:?}"))),
    })
}
