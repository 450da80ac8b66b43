//! Random projections of the residuals, and the draws of rows.

use manyboost_core as core;
use manyboost_core::losses::Projected;
use manyboost_core::projection::{Phi, Projection};
use manyboost_core::random::{Key, Purpose};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{
    OutputNumbers, check_len, check_outputs, matrix, outputs_of, slice, slice_mut,
};
use crate::pool::{Pool, to_py_err};

/// A projection, if there is one.
pub fn optional_phi(phi: &Option<PyReadonlyArray2<'_, f32>>, d: usize) -> PyResult<Option<Phi>> {
    let Some(phi) = phi else { return Ok(None) };
    check_len("a row of phi", phi.shape()[1], d)?;
    Ok(Some(Phi::new(slice(phi)?, d).map_err(to_py_err)?))
}

/// The weights that components give to outputs, where there are components.
pub fn optional_shares(phi: &Option<PyReadonlyArray2<'_, f32>>, d: usize) -> PyResult<Option<Phi>> {
    let Some(phi) = phi else { return Ok(None) };
    check_len("a row of shares", phi.shape()[1], d)?;
    Ok(Some(Phi::shares(slice(phi)?, d).map_err(to_py_err)?))
}

/// Where a projection goes, if there is one.
pub fn optional_projection<'a>(
    phi: &'a Option<Phi>,
    z: &'a mut Option<PyReadwriteArray2<'_, f32>>,
    n: usize,
) -> PyResult<Option<Projected<'a>>> {
    match (phi, z) {
        (Some(phi), Some(z)) => {
            check_len("z", z.len(), n * phi.n_components())?;
            Ok(Some(Projected { phi, z: slice_mut(z)?, shares: None }))
        }
        _ => Ok(None),
    }
}

/// z = residuals · φᵀ into `z` (n × q), or by the weights that φ gives to outputs if `shares`.
#[pyfunction]
#[pyo3(signature = (pool, residuals, phi, z, shares=false))]
fn project(
    py: Python<'_>,
    pool: &Pool,
    residuals: PyReadonlyArray2<'_, f32>,
    phi: PyReadonlyArray2<'_, f32>,
    mut z: PyReadwriteArray2<'_, f32>,
    shares: bool,
) -> PyResult<()> {
    let d = residuals.shape()[1];
    check_outputs(d)?;
    check_len("a row of phi", phi.shape()[1], d)?;
    check_len("z", z.len(), residuals.shape()[0] * phi.shape()[0])?;
    let phi = if shares { Phi::shares(slice(&phi)?, d) } else { Phi::new(slice(&phi)?, d) };
    let phi = phi.map_err(to_py_err)?;
    let (residuals, z) = (slice(&residuals)?, slice_mut(&mut z)?);
    pool.run(py, |pool| core::projection::project(pool, residuals, d, &phi, z))
}

/// Draws the projection matrix (q × d) of a round. `zero_sums` are the half-open ranges of outputs
/// over which residuals sum to zero in each row, in ascending order.
#[pyfunction]
fn draw_projection<'py>(
    py: Python<'py>,
    name: &str,
    n_components: usize,
    n_outputs: usize,
    zero_sums: Vec<(usize, usize)>,
    seed: u64,
    round: u64,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let projection = match name {
        "gaussian" => Projection::Gaussian,
        "rademacher" => Projection::Rademacher,
        "achlioptas" => Projection::Achlioptas,
        "sparse" => Projection::Sparse,
        "subsample" => Projection::Subsample,
        other => return Err(PyValueError::new_err(format!("there is no projection {other:?}"))),
    };
    check_outputs(n_outputs)?;
    if n_components == 0 {
        return Err(PyValueError::new_err("a projection needs at least one component"));
    }
    let key = Key::of(seed, round, 0, Purpose::Projection);
    let ranges = |(start, stop)| outputs_of(Some(OutputNumbers::Range((start, stop))), n_outputs);
    let zero_sums = zero_sums.into_iter().map(|pair| Ok(ranges(pair)?.range));
    let zero_sums = zero_sums.collect::<PyResult<Vec<_>>>()?;
    let phi = core::projection::draw(projection, n_components, n_outputs, &zero_sums, key)
        .map_err(to_py_err)?;
    Ok(matrix(py, phi, n_outputs))
}

/// The rows that a tree is grown on, ascending, chosen by their global numbers.
#[pyfunction]
fn sample_rows<'py>(
    py: Python<'py>,
    pool: &Pool,
    global_rows: PyReadonlyArray1<'py, u64>,
    count: usize,
    seed: u64,
    round: u64,
    output: u64,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let key = Key::of(seed, round, output, Purpose::Rows);
    let rows = slice(&global_rows)?;
    let chosen = pool.run(py, |pool| core::random::choose_rows(pool, key, rows, count))?;
    Ok(chosen.into_pyarray(py))
}

/// The rows set apart for validation, ascending, chosen by their global numbers.
#[pyfunction]
fn validation_rows<'py>(
    py: Python<'py>,
    pool: &Pool,
    global_rows: PyReadonlyArray1<'py, u64>,
    count: usize,
    seed: u64,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let key = Key::of(seed, 0, 0, Purpose::Validation);
    let rows = slice(&global_rows)?;
    let chosen = pool.run(py, |pool| core::random::choose_rows(pool, key, rows, count))?;
    Ok(chosen.into_pyarray(py))
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(project, module)?)?;
    module.add_function(wrap_pyfunction!(draw_projection, module)?)?;
    module.add_function(wrap_pyfunction!(sample_rows, module)?)?;
    module.add_function(wrap_pyfunction!(validation_rows, module)?)
}
