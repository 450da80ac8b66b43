//! Column statistics of the targets.

use manyboost_core as core;
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{Vector, WeightArrays, check_len, check_outputs, matrix, optional, slice};
use crate::pool::Pool;

/// Σ w v, or Σ w v², of each column; missing cells are left out.
#[pyfunction]
#[pyo3(signature = (pool, cells, weights, squared=false))]
fn column_sums<'py>(
    py: Python<'py>,
    pool: &Pool,
    cells: CellArray<'py>,
    weights: WeightArrays<'py>,
    squared: bool,
) -> PyResult<Vector<'py>> {
    macro_rules! sums {
        ($cells:expr) => {{
            check_outputs($cells.shape()[1])?;
            let weights = weights.view($cells.shape()[0], $cells.shape()[1])?;
            let (d, cells) = ($cells.shape()[1], slice($cells)?);
            pool.run(py, |pool| core::baseline::column_sums(pool, cells, d, weights, squared))
        }};
    }
    let sums = match &cells {
        CellArray::Double(cells) => sums!(cells),
        CellArray::Single(cells) => sums!(cells),
        CellArray::Byte(cells) => sums!(cells),
    }?;
    Ok(sums.into_pyarray(py))
}

/// cells − centre in single precision, or None if one of them does not fit.
#[pyfunction]
fn centred<'py>(
    py: Python<'py>,
    pool: &Pool,
    cells: RealArray<'py>,
    centre: PyReadonlyArray1<'py, f64>,
) -> PyResult<Option<Bound<'py, PyArray2<f32>>>> {
    let d = centre.len();
    let centre = slice(&centre)?;
    macro_rules! centred {
        ($cells:expr) => {{
            check_outputs(d)?;
            check_len("centre", d, $cells.shape()[1])?;
            let cells = slice($cells)?;
            pool.run(py, |pool| core::baseline::centred(pool, cells, d, centre))
        }};
    }
    let values = match &cells {
        RealArray::Double(cells) => centred!(cells),
        RealArray::Single(cells) => centred!(cells),
    }?;
    Ok(values.map(|values| matrix(py, values, d)))
}

/// Numbers in either precision.
#[derive(FromPyObject)]
enum RealArray<'py> {
    Double(PyReadonlyArray2<'py, f64>),
    Single(PyReadonlyArray2<'py, f32>),
}

/// Numbers in either precision, or labels.
#[derive(FromPyObject)]
enum CellArray<'py> {
    Double(PyReadonlyArray2<'py, f64>),
    Single(PyReadonlyArray2<'py, f32>),
    Byte(PyReadonlyArray2<'py, u8>),
}

/// Lower weighted quantiles of each column, or of |column − centre|.
#[pyfunction]
#[pyo3(signature = (pool, cells, weights, levels, centre=None))]
fn column_quantiles<'py>(
    py: Python<'py>,
    pool: &Pool,
    cells: RealArray<'py>,
    weights: WeightArrays<'py>,
    levels: PyReadonlyArray1<'py, f64>,
    centre: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Vector<'py>> {
    let d = levels.len();
    let (levels, centre) = (slice(&levels)?, optional(&centre)?);
    macro_rules! quantiles {
        ($cells:expr) => {{
            check_outputs(d)?;
            check_len("levels", d, $cells.shape()[1])?;
            check_len("centre", centre.map_or(d, <[f64]>::len), d)?;
            let weights = weights.view($cells.shape()[0], d)?;
            let cells = slice($cells)?;
            pool.run(py, |pool| {
                core::baseline::column_quantiles(pool, cells, d, weights, levels, centre)
            })
        }};
    }
    let quantiles = match &cells {
        RealArray::Double(cells) => quantiles!(cells),
        RealArray::Single(cells) => quantiles!(cells),
    }?;
    Ok(quantiles.into_pyarray(py))
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(centred, module)?)?;
    module.add_function(wrap_pyfunction!(column_sums, module)?)?;
    module.add_function(wrap_pyfunction!(column_quantiles, module)?)
}
