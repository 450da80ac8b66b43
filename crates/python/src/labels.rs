//! Rows with very many labels.

use manyboost_core as core;
use manyboost_core::labels::{LeafSums, Weighted};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray2};
use pyo3::prelude::*;

use crate::arrays::{Vector, optional, slice, slice_mut};
use crate::ensemble::Ensemble;
use crate::pool::{Pool, to_py_err};

/// Values of some outputs for each leaf: where each leaf begins, outputs, values.
pub type SparseLeafArrays<'py> =
    (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f32>);

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

    /// Puts the rows into the leaves of one more tree.
    fn push(&mut self, leaf_of_row: PyReadonlyArray1<'_, u32>, n_leaves: usize) -> PyResult<()> {
        self.inner.push(slice(&leaf_of_row)?, n_leaves).map_err(to_py_err)
    }

    /// Writes φ r into `z` (n × q); `start` (d) is 1 + b for the baseline b.
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

    /// Σ w r over the rows of each leaf, for the `most` outputs in which it is largest: where each
    /// leaf begins, outputs, sums. `order` has the outputs by descending `start`.
    #[allow(clippy::too_many_arguments, clippy::type_complexity)] // arrays from and to Python
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
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>, Vector<'py>)> {
        let weighted = Weighted { rows: optional(&weight)?, start: slice(&start)? };
        let (leaf_of_row, order) = (slice(&leaf_of_row)?, slice(&order)?);
        let LeafSums { sizes, outputs, sums } = pool.run(py, |pool| {
            let inner = &trees.inner;
            self.inner.leaf_sums(pool, inner, leaf_of_row, n_leaves, weighted, order, most)
        })?;
        let mut starts = vec![0i64];
        let mut end = 0;
        for size in sizes {
            end += size as i64;
            starts.push(end);
        }
        Ok((starts.into_pyarray(py), outputs.into_pyarray(py), sums.into_pyarray(py)))
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
        let sums = values.iter().map(|&value| f64::from(value)).collect();
        let values = LeafSums { sizes, outputs: outputs.to_vec(), sums };
        let leaf_of_row = slice(&leaf_of_row)?;
        pool.run(py, |pool| {
            self.inner.leaf_products(pool, &trees.inner, leaf_of_row, &values, weighted)
        })
    }
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
