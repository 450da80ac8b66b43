//! Links from raw predictions to predictions, in place.

use manyboost_core::links::{self, Link};
use numpy::{PyReadwriteArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::slice_mut;

/// Turns raw predictions (n × d) of one link into predictions.
#[pyfunction]
fn apply_link(py: Python<'_>, link: &str, mut raw: PyReadwriteArray2<'_, f64>) -> PyResult<()> {
    let link = Link::named(link)
        .ok_or_else(|| PyValueError::new_err(format!("there is no link {link:?}")))?;
    let (d, raw) = (raw.shape()[1], slice_mut(&mut raw)?);
    py.detach(|| links::apply(link, d, raw));
    Ok(())
}

/// Divides probabilities of one class against the rest (n × classes) by their sum over the classes.
#[pyfunction]
fn share(py: Python<'_>, mut proba: PyReadwriteArray2<'_, f64>) -> PyResult<()> {
    let (d, proba) = (proba.shape()[1], slice_mut(&mut proba)?);
    py.detach(|| links::share(d, proba));
    Ok(())
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(apply_link, module)?)?;
    module.add_function(wrap_pyfunction!(share, module)?)
}
