//! NumPy arrays as slices, and back.

use std::ops::Range;

use manyboost_core as core;
use manyboost_core::binning::SparseColumns;
use manyboost_core::ensemble::FeatureRows;
use manyboost_core::losses::Targets;
use manyboost_core::outputs::Outputs;
use manyboost_core::weights::Weights;
use numpy::ndarray::Array2;
use numpy::{
    Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray, PyReadonlyArray1,
    PyReadonlyArray2, PyReadwriteArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::pool::to_py_err;

/// A new vector of doubles.
pub type Vector<'py> = Bound<'py, PyArray1<f64>>;
/// A new matrix of doubles.
pub type Matrix<'py> = Bound<'py, PyArray2<f64>>;

/// The elements of an array, row by row. The array must be C-contiguous.
pub fn slice<'a, T: Element, D: numpy::ndarray::Dimension>(
    array: &'a PyReadonlyArray<'_, T, D>,
) -> PyResult<&'a [T]> {
    // The elements of a Fortran-contiguous matrix would come column by column.
    let elements = if array.is_c_contiguous() { array.as_slice().ok() } else { None };
    elements.ok_or_else(not_contiguous)
}

/// The elements of a matrix, row by row, to be written. The matrix must be C-contiguous.
pub fn slice_mut<'a, T: Element>(array: &'a mut PyReadwriteArray2<'_, T>) -> PyResult<&'a mut [T]> {
    let elements = if array.is_c_contiguous() { array.as_slice_mut().ok() } else { None };
    elements.ok_or_else(not_contiguous)
}

fn not_contiguous() -> PyErr {
    PyValueError::new_err("arrays must be C-contiguous")
}

/// A copy of some numbers.
pub fn copied<T: Copy>(numbers: &[T]) -> PyResult<Vec<T>> {
    core::memory::collected(numbers.len(), numbers.iter().copied()).map_err(to_py_err)
}

/// The elements of an optional vector.
pub fn optional<'a, T: Element>(
    array: &'a Option<PyReadonlyArray1<'_, T>>,
) -> PyResult<Option<&'a [T]>> {
    array.as_ref().map(slice).transpose()
}

/// A new matrix of the given number of columns.
pub fn matrix<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    columns: usize,
) -> Bound<'_, PyArray2<T>> {
    let rows = values.len().checked_div(columns).unwrap_or(0);
    // The vector has rows × columns elements by construction.
    let array = Array2::from_shape_vec((rows, columns), values);
    array.unwrap_or_else(|_| unreachable!("a matrix of whole rows")).into_pyarray(py)
}

/// Targets in any of their forms.
pub enum TargetArray<'py> {
    /// float32, n × d.
    Real(PyReadonlyArray2<'py, f32>),
    /// uint8, n × d.
    Labels(PyReadonlyArray2<'py, u8>),
    /// uint32, n.
    Classes(PyReadonlyArray1<'py, u32>),
}

impl<'py> FromPyObject<'_, 'py> for TargetArray<'py> {
    type Error = PyErr;

    /// Asks for the type first: the derived conversion would write an error message for each form
    /// that does not fit, in every call of a round.
    fn extract(array: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(labels) = array.cast::<PyArray2<u8>>() {
            Ok(TargetArray::Labels(labels.try_readonly()?))
        } else if let Ok(classes) = array.cast::<PyArray1<u32>>() {
            Ok(TargetArray::Classes(classes.try_readonly()?))
        } else {
            Ok(TargetArray::Real(array.extract()?))
        }
    }
}

impl TargetArray<'_> {
    /// The targets as the core takes them.
    pub fn view(&self) -> PyResult<Targets<'_>> {
        Ok(match self {
            TargetArray::Real(y) => Targets::Real(slice(y)?),
            TargetArray::Labels(y) => Targets::Labels(slice(y)?),
            TargetArray::Classes(y) => Targets::Classes(slice(y)?),
        })
    }
}

/// Weights: an object with the attributes `rows` (n, or None), `cells` (n × d, or None) and
/// `partial`, which says whether targets are missing.
#[derive(FromPyObject)]
pub struct WeightArrays<'py> {
    rows: Option<PyReadonlyArray1<'py, f32>>,
    cells: Option<PyReadonlyArray2<'py, f32>>,
    partial: bool,
}

impl WeightArrays<'_> {
    /// The weights as the core takes them, if they fit n × d cells.
    pub fn view(&self, n_rows: usize, n_outputs: usize) -> PyResult<Weights<'_>> {
        let (rows, cells) = (optional(&self.rows)?, self.cells.as_ref().map(slice).transpose()?);
        let weights = Weights { rows, cells, partial: self.partial };
        weights.check(n_rows, n_outputs).map_err(to_py_err)?;
        Ok(weights)
    }
}

/// The three arrays of a compressed sparse matrix: starts, indices, values.
#[derive(FromPyObject)]
pub struct SparseArrays<'py>(
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i32>,
    PyReadonlyArray1<'py, f32>,
);

impl SparseArrays<'_> {
    /// The starts, indices and values, if they describe a matrix with `n_minor` places in each
    /// compressed row or column, filled in ascending order.
    pub fn checked(&self, n_minor: usize) -> PyResult<(&[i64], &[i32], &[f32])> {
        let (starts, indices, values) = (slice(&self.0)?, slice(&self.1)?, slice(&self.2)?);
        let bad = |what: &str| Err(PyValueError::new_err(format!("the sparse matrix {what}")));
        if starts.first() != Some(&0)
            || starts.last().is_none_or(|&last| last != values.len() as i64)
            || starts.windows(2).any(|pair| pair[0] > pair[1])
            || indices.len() != values.len()
        {
            return bad("has starts that do not fit its values");
        }
        if indices.iter().any(|&i| i < 0 || i as usize >= n_minor) {
            return bad("has an index out of range");
        }
        for pair in starts.windows(2) {
            let indices = &indices[pair[0] as usize..pair[1] as usize];
            if indices.windows(2).any(|pair| pair[0] >= pair[1]) {
                return bad("has indices that do not ascend");
            }
        }
        Ok((starts, indices, values))
    }

    /// A matrix stored by columns.
    pub fn columns(&self, n_rows: usize) -> PyResult<SparseColumns<'_>> {
        let (starts, rows, values) = self.checked(n_rows)?;
        Ok(SparseColumns { n_rows, starts, rows, values })
    }
}

/// Rows to predict for, dense (n × p) or sparse by rows.
#[derive(FromPyObject)]
pub enum FeatureRowArrays<'py> {
    /// float32, n × p.
    Dense(PyReadonlyArray2<'py, f32>),
    /// float64, n × p.
    Double(PyReadonlyArray2<'py, f64>),
    /// Starts, features, values.
    Sparse(SparseArrays<'py>),
}

impl FeatureRowArrays<'_> {
    /// Number of rows, and the rows as the core takes them.
    pub fn view(&self, n_features: usize) -> PyResult<(usize, FeatureRows<'_>)> {
        match self {
            FeatureRowArrays::Dense(x) => {
                check_len("a row of x", x.shape()[1], n_features)?;
                Ok((x.shape()[0], FeatureRows::Dense(slice(x)?)))
            }
            FeatureRowArrays::Double(x) => {
                check_len("a row of x", x.shape()[1], n_features)?;
                Ok((x.shape()[0], FeatureRows::Double(slice(x)?)))
            }
            FeatureRowArrays::Sparse(x) => {
                let (starts, features, values) = x.checked(n_features)?;
                Ok((starts.len() - 1, FeatureRows::Sparse { starts, features, values }))
            }
        }
    }
}

/// The arrays of [`core::format::Arrays`], by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct ModelArrays<'py> {
    tree_sizes: PyReadonlyArray1<'py, u32>,
    node_left: PyReadonlyArray1<'py, u32>,
    node_cover: PyReadonlyArray1<'py, f32>,
    split_feature: PyReadonlyArray1<'py, u32>,
    split_threshold: PyReadonlyArray1<'py, f32>,
    split_gain: PyReadonlyArray1<'py, f32>,
    split_categories: PyReadonlyArray2<'py, u32>,
    leaf_values: PyReadonlyArray2<'py, f32>,
    #[pyo3(default)]
    tree_steps: Option<PyReadonlyArray2<'py, f32>>,
    #[pyo3(default)]
    leaf_sizes: Option<PyReadonlyArray1<'py, u32>>,
    #[pyo3(default)]
    leaf_outputs: Option<PyReadonlyArray1<'py, u32>>,
}

impl ModelArrays<'_> {
    /// The arrays as the core takes them.
    pub fn view(&self) -> PyResult<core::format::Arrays<'_>> {
        Ok(core::format::Arrays {
            tree_sizes: slice(&self.tree_sizes)?.into(),
            node_left: slice(&self.node_left)?.into(),
            node_cover: slice(&self.node_cover)?.into(),
            split_feature: slice(&self.split_feature)?.into(),
            split_threshold: slice(&self.split_threshold)?.into(),
            split_gain: slice(&self.split_gain)?.into(),
            split_categories: slice(&self.split_categories)?.into(),
            leaf_values: slice(&self.leaf_values)?.into(),
            tree_steps: self.tree_steps.as_ref().map_or(Ok(&[][..]), slice)?.into(),
            leaf_sizes: self.leaf_sizes.as_ref().map_or(Ok(&[][..]), slice)?.into(),
            leaf_outputs: self.leaf_outputs.as_ref().map_or(Ok(&[][..]), slice)?.into(),
        })
    }
}

/// Fails unless a length is as expected.
pub fn check_len(what: &str, len: usize, expected: usize) -> PyResult<()> {
    if len == expected {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{what} has {len} elements, expected {expected}")))
}

/// One output, or a half-open range of outputs.
#[derive(FromPyObject)]
pub enum OutputNumbers {
    /// One output.
    One(usize),
    /// First, and one past the last.
    Range((usize, usize)),
}

/// The outputs meant; all of them if none are named.
pub fn outputs_of(output: Option<OutputNumbers>, n_outputs: usize) -> PyResult<Outputs> {
    let range = match output {
        None => 0..n_outputs,
        Some(OutputNumbers::One(j)) => j..j.saturating_add(1),
        Some(OutputNumbers::Range((start, stop))) => start..stop,
    };
    if range.end > n_outputs || range.is_empty() {
        let Range { start, end } = range;
        return Err(PyValueError::new_err(format!(
            "there are no outputs {start} to {end} of {n_outputs}"
        )));
    }
    Ok(Outputs { total: n_outputs, range })
}

/// Fails if a matrix has no columns for outputs: kernels divide by their number.
pub fn check_outputs(n_outputs: usize) -> PyResult<()> {
    if n_outputs > 0 {
        return Ok(());
    }
    Err(PyValueError::new_err("there must be at least one output"))
}
