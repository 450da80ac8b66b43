//! NumPy arrays as slices, and back.

use manyboost_core::losses::Targets;
use numpy::ndarray::Array2;
use numpy::{
    Element, IntoPyArray, PyArray2, PyReadonlyArray, PyReadonlyArray1, PyReadonlyArray2,
    PyReadwriteArray2,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The elements of a C-contiguous array.
pub fn slice<'a, T: Element, D: numpy::ndarray::Dimension>(
    array: &'a PyReadonlyArray<'_, T, D>,
) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| PyValueError::new_err("arrays must be C-contiguous"))
}

/// The elements of a C-contiguous matrix, to be written.
pub fn slice_mut<'a, T: Element>(array: &'a mut PyReadwriteArray2<'_, T>) -> PyResult<&'a mut [T]> {
    array.as_slice_mut().map_err(|_| PyValueError::new_err("arrays must be C-contiguous"))
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
#[derive(FromPyObject)]
pub enum TargetArray<'py> {
    /// float32, n × d.
    Real(PyReadonlyArray2<'py, f32>),
    /// uint8, n × d.
    Labels(PyReadonlyArray2<'py, u8>),
    /// uint32, n.
    Classes(PyReadonlyArray1<'py, u32>),
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

/// Fails unless a length is as expected.
pub fn check_len(what: &str, len: usize, expected: usize) -> PyResult<()> {
    if len == expected {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{what} has {len} elements, expected {expected}")))
}
