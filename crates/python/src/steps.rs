//! Steps along the direction of a new tree.

use manyboost_core as core;
use manyboost_core::step::Direction;
use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{OutputNumbers, Vector, WeightArrays, check_len, optional, outputs_of, slice};
use crate::leaves::check_leaves;
use crate::pool::Pool;

/// A direction, if it fits.
pub fn direction<'a>(
    leaf_of_row: &'a Option<PyReadonlyArray1<'_, u32>>,
    values: &'a PyReadonlyArray2<'_, f32>,
    n_rows: usize,
    n_outputs: usize,
) -> PyResult<Direction<'a>> {
    let (size, width) = (values.shape()[0], values.shape()[1]);
    if width != 1 {
        check_len("a row of the direction", width, n_outputs)?;
    }
    let leaf_of_row = optional(leaf_of_row)?;
    match leaf_of_row {
        None => check_len("the direction", size, n_rows)?,
        Some(leaves) => {
            check_len("leaf_of_row", leaves.len(), n_rows)?;
            check_leaves(leaves, size)?;
        }
    }
    Ok(Direction { leaf_of_row, values: slice(values)?, width })
}

/// Exact steps along a direction for the pinball loss.
#[allow(clippy::too_many_arguments)] // the arrays of a call from Python
#[pyfunction]
#[pyo3(signature = (pool, y, raw, levels, weights, leaf_of_row, values, output=None))]
fn quantile_steps<'py>(
    py: Python<'py>,
    pool: &Pool,
    y: PyReadonlyArray2<'py, f32>,
    raw: PyReadonlyArray2<'py, f32>,
    levels: PyReadonlyArray1<'py, f64>,
    weights: WeightArrays<'py>,
    leaf_of_row: Option<PyReadonlyArray1<'py, u32>>,
    values: PyReadonlyArray2<'py, f32>,
    output: Option<OutputNumbers>,
) -> PyResult<Vector<'py>> {
    let d = raw.shape()[1];
    let outputs = outputs_of(output, d)?;
    check_len("levels", levels.len(), d)?;
    check_len("y", y.len(), raw.len())?;
    let direction = direction(&leaf_of_row, &values, raw.shape()[0], outputs.width())?;
    let weights = weights.view(raw.shape()[0], d)?;
    let (y, raw, levels) = (slice(&y)?, slice(&raw)?, slice(&levels)?);
    let steps = pool.run(py, |pool| {
        core::step::quantile_steps(pool, y, raw, &outputs, levels, weights, direction)
    })?;
    Ok(steps.into_pyarray(py))
}

/// Σ w v g, or Σ w v g², of each output along a direction.
#[allow(clippy::too_many_arguments)] // the arrays of a call from Python
#[pyfunction]
#[pyo3(signature = (pool, cells, weights, leaf_of_row, values, squared, output=None))]
fn dots<'py>(
    py: Python<'py>,
    pool: &Pool,
    cells: PyReadonlyArray2<'py, f32>,
    weights: WeightArrays<'py>,
    leaf_of_row: Option<PyReadonlyArray1<'py, u32>>,
    values: PyReadonlyArray2<'py, f32>,
    squared: bool,
    output: Option<OutputNumbers>,
) -> PyResult<Vector<'py>> {
    let d = cells.shape()[1];
    let outputs = outputs_of(output, d)?;
    let direction = direction(&leaf_of_row, &values, cells.shape()[0], outputs.width())?;
    let weights = weights.view(cells.shape()[0], d)?;
    let cells = slice(&cells)?;
    let sums =
        pool.run(py, |pool| core::step::dots(pool, cells, &outputs, weights, direction, squared))?;
    Ok(sums.into_pyarray(py))
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(quantile_steps, module)?)?;
    module.add_function(wrap_pyfunction!(dots, module)?)
}
