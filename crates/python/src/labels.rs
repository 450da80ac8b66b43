//! Rows with very many labels.

use manyboost_core as core;
use manyboost_core::labels::{LeafSums, LogRows, Weighted};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray2};
use pyo3::prelude::*;

use crate::arrays::{Vector, copied, optional, slice, slice_mut};
use crate::ensemble::Ensemble;
use crate::pool::{Pool, to_py_err};

/// Values of some outputs for each leaf: where each leaf begins, outputs, values.
pub type SparseLeafArrays<'py> =
    (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f32>);

/// The outputs that leaves keep: where each leaf begins, outputs, Σ w r, and Σ w h.
type LeafSumArrays<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>, Vector<'py>, Vector<'py>);

/// Rows, their labels, and the leaves that they are in: all the state of training on sparse labels.
#[pyclass(module = "manyboost._core")]
pub struct LabelRows {
    inner: core::labels::LabelRows,
}

#[pymethods]
impl LabelRows {
    /// Rows whose labels, ascending, are stored one row after the other from `starts` on.
    #[new]
    fn new(
        n_outputs: usize,
        starts: PyReadonlyArray1<'_, i64>,
        labels: PyReadonlyArray1<'_, i32>,
    ) -> PyResult<LabelRows> {
        let inner = core::labels::LabelRows::new(n_outputs, slice(&starts)?, slice(&labels)?);
        Ok(LabelRows { inner: inner.map_err(to_py_err)? })
    }

    /// Number of rows, and of outputs.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.inner.n_rows(), self.inner.n_outputs)
    }

    fn __len__(&self) -> usize {
        self.inner.n_rows()
    }

    /// Number of trees that the rows were put into.
    #[getter]
    fn n_trees(&self) -> usize {
        self.inner.n_trees()
    }

    /// Gives cells a weight of their own, zero if the label is missing.
    fn mark(
        &mut self,
        starts: PyReadonlyArray1<'_, i64>,
        outputs: PyReadonlyArray1<'_, i32>,
        weights: PyReadonlyArray1<'_, f32>,
    ) -> PyResult<()> {
        let (starts, outputs, weights) = (slice(&starts)?, slice(&outputs)?, slice(&weights)?);
        self.inner.mark(starts, outputs, weights).map_err(to_py_err)
    }

    /// Mean weight of the cells of each row, by components of φ (q × d), into `shares` (n × q).
    fn cell_shares(
        &self,
        phi: PyReadonlyArray2<'_, f32>,
        mut shares: PyReadwriteArray2<'_, f32>,
    ) -> PyResult<()> {
        self.inner.cell_shares(slice(&phi)?, slice_mut(&mut shares)?).map_err(to_py_err)
    }

    /// What cells with a weight of their own add to Σ w g² of each output.
    fn marked_squares<'py>(
        &self,
        py: Python<'py>,
        leaf_of_row: PyReadonlyArray1<'py, u32>,
        values: PyReadonlyArray1<'py, f64>,
        weight: Option<PyReadonlyArray1<'py, f32>>,
    ) -> PyResult<Vector<'py>> {
        let (leaf_of_row, values, rows) =
            (slice(&leaf_of_row)?, slice(&values)?, optional(&weight)?);
        let squares = self.inner.marked_squares(leaf_of_row, values, rows).map_err(to_py_err)?;
        Ok(squares.into_pyarray(py))
    }

    /// Puts the rows into the leaves of the next tree.
    fn push(
        &mut self,
        trees: &Ensemble,
        leaf_of_row: PyReadonlyArray1<'_, u32>,
        n_leaves: usize,
    ) -> PyResult<()> {
        self.inner.push(&trees.inner, slice(&leaf_of_row)?, n_leaves).map_err(to_py_err)
    }

    /// Writes φ (c r) into `z` (n × q); `start` (d) is 1 + b for the baseline b.
    fn project(
        &self,
        py: Python<'_>,
        pool: &Pool,
        trees: &Ensemble,
        phi: PyReadonlyArray2<'_, f32>,
        start: PyReadonlyArray1<'_, f64>,
        mut z: PyReadwriteArray2<'_, f32>,
    ) -> PyResult<()> {
        let (phi, start, z) = (slice(&phi)?, slice(&start)?, slice_mut(&mut z)?);
        pool.run(py, |pool| self.inner.project(pool, &trees.inner, phi, start, z))
    }

    /// Σ w r g for each output (d), where g is the value of a row's leaf.
    #[allow(clippy::too_many_arguments)] // the arrays of a call from Python
    fn slopes<'py>(
        &self,
        py: Python<'py>,
        pool: &Pool,
        trees: &Ensemble,
        leaf_of_row: PyReadonlyArray1<'py, u32>,
        values: PyReadonlyArray1<'py, f64>,
        weight: Option<PyReadonlyArray1<'py, f32>>,
        start: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Vector<'py>> {
        let weighted = Weighted { rows: optional(&weight)?, start: slice(&start)? };
        let (leaf_of_row, values) = (slice(&leaf_of_row)?, slice(&values)?);
        let slopes = pool
            .run(py, |pool| self.inner.slopes(pool, &trees.inner, leaf_of_row, values, weighted))?;
        Ok(slopes.into_pyarray(py))
    }

    /// Σ w r and Σ w over the rows of each leaf, for the `most` outputs that gain most with the
    /// damping λ. `order` has the outputs by descending `start`.
    #[allow(clippy::too_many_arguments)] // the arrays of a call from Python
    fn leaf_sums<'py>(
        &self,
        py: Python<'py>,
        pool: &Pool,
        trees: &Ensemble,
        leaf_of_row: PyReadonlyArray1<'py, u32>,
        n_leaves: usize,
        weight: Option<PyReadonlyArray1<'py, f32>>,
        start: PyReadonlyArray1<'py, f64>,
        order: PyReadonlyArray1<'py, u32>,
        most: usize,
        damping: f64,
    ) -> PyResult<LeafSumArrays<'py>> {
        let weighted = Weighted { rows: optional(&weight)?, start: slice(&start)? };
        let (leaf_of_row, order) = (slice(&leaf_of_row)?, slice(&order)?);
        let sums = pool.run(py, |pool| {
            let (inner, kept) = (&trees.inner, (order, most, damping));
            self.inner.leaf_sums(pool, inner, leaf_of_row, n_leaves, weighted, kept)
        })?;
        leaf_sum_arrays(py, sums)
    }

    /// The log loss, summed over all outputs and weighted rows, for raw predictions that begin with
    /// `baseline` (d). Writes φ (c r) into `z` (n × q), if there is a projection φ (q × d).
    #[pyo3(signature = (pool, trees, baseline, weight, phi=None, z=None))]
    #[allow(clippy::too_many_arguments)] // the arrays of a call from Python
    fn log_loss(
        &self,
        py: Python<'_>,
        pool: &Pool,
        trees: &Ensemble,
        baseline: PyReadonlyArray1<'_, f32>,
        weight: Option<PyReadonlyArray1<'_, f32>>,
        phi: Option<PyReadonlyArray2<'_, f32>>,
        z: Option<PyReadwriteArray2<'_, f32>>,
    ) -> PyResult<f64> {
        let (baseline, rows) = (slice(&baseline)?, optional(&weight)?);
        let log = LogRows { model: &trees.inner, baseline, rows };
        let mut z = z;
        let projection = match (&phi, &mut z) {
            (Some(phi), Some(z)) => Some((slice(phi)?, slice_mut(z)?)),
            _ => None,
        };
        pool.run(py, |pool| self.inner.log_loss(pool, log, projection))
    }

    /// Σ w r and Σ w p (1 − p) over the rows of each leaf, for the `most` outputs that gain most with
    /// the damping λ. `order` has the outputs by descending `baseline`.
    #[allow(clippy::too_many_arguments)] // the arrays of a call from Python
    fn log_leaf_sums<'py>(
        &self,
        py: Python<'py>,
        pool: &Pool,
        trees: &Ensemble,
        leaf_of_row: PyReadonlyArray1<'py, u32>,
        n_leaves: usize,
        baseline: PyReadonlyArray1<'py, f32>,
        weight: Option<PyReadonlyArray1<'py, f32>>,
        order: PyReadonlyArray1<'py, u32>,
        most: usize,
        damping: f64,
    ) -> PyResult<LeafSumArrays<'py>> {
        let (baseline, rows) = (slice(&baseline)?, optional(&weight)?);
        let log = LogRows { model: &trees.inner, baseline, rows };
        let (leaf_of_row, order) = (slice(&leaf_of_row)?, slice(&order)?);
        let sums = pool.run(py, |pool| {
            self.inner.log_leaf_sums(pool, log, leaf_of_row, n_leaves, (order, most, damping))
        })?;
        leaf_sum_arrays(py, sums)
    }

    /// Σ w r v over all rows and outputs for such leaf values v, and Σ w v².
    #[allow(clippy::too_many_arguments)] // the arrays of a call from Python
    fn leaf_products(
        &self,
        py: Python<'_>,
        pool: &Pool,
        trees: &Ensemble,
        leaf_of_row: PyReadonlyArray1<'_, u32>,
        values: SparseLeafArrays<'_>,
        weight: Option<PyReadonlyArray1<'_, f32>>,
        start: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<(f64, f64)> {
        let weighted = Weighted { rows: optional(&weight)?, start: slice(&start)? };
        let (sizes, outputs, values) = sparse_leaves(&values)?;
        let sums = values.iter().map(|&value| f64::from(value));
        let sums = core::memory::collected(values.len(), sums).map_err(to_py_err)?;
        let values = LeafSums { sizes, outputs: copied(outputs)?, sums, curvatures: Vec::new() };
        let leaf_of_row = slice(&leaf_of_row)?;
        pool.run(py, |pool| {
            self.inner.leaf_products(pool, &trees.inner, leaf_of_row, &values, weighted)
        })
    }
}

fn leaf_sum_arrays(py: Python<'_>, leaves: LeafSums) -> PyResult<LeafSumArrays<'_>> {
    let LeafSums { sizes, outputs, sums, curvatures } = leaves;
    Ok((
        starts_of(sizes.into_iter())?.into_pyarray(py),
        outputs.into_pyarray(py),
        sums.into_pyarray(py),
        curvatures.into_pyarray(py),
    ))
}

/// Where parts of such sizes begin, and where the last one ends.
pub fn starts_of(sizes: impl ExactSizeIterator<Item = usize>) -> PyResult<Vec<i64>> {
    let mut starts = core::memory::room(sizes.len() + 1).map_err(to_py_err)?;
    starts.push(0);
    starts.extend(sizes.scan(0, |end, size| {
        *end += size as i64;
        Some(*end)
    }));
    Ok(starts)
}

/// Number of values of each leaf, outputs and values.
pub fn sparse_leaves<'a>(
    (starts, outputs, values): &'a SparseLeafArrays<'_>,
) -> PyResult<(Vec<usize>, &'a [u32], &'a [f32])> {
    let starts = slice(starts)?;
    // A leaf that begins after its end has more values than there are, and is refused as such.
    let sizes = starts.windows(2).map(|pair| (pair[1].wrapping_sub(pair[0])) as usize).collect();
    Ok((sizes, slice(outputs)?, slice(values)?))
}
