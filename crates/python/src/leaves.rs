//! Leaves: sums and quantiles over their rows, and raw predictions moved by their values.

use manyboost_core as core;
use manyboost_core::leaf::{Curvatures, LeafValues, Leaves, SumBounds, Update};
use manyboost_core::losses::Sweep;
use manyboost_core::lowlevel::widest;
use manyboost_core::outputs::Outputs;
use numpy::{
    IntoPyArray, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arrays::{
    Matrix, OutputNumbers, TargetArray, Vector, WeightArrays, check_len, check_outputs, matrix,
    optional, outputs_of, slice, slice_mut,
};
use crate::features::Tree;
use crate::pool::{Pool, to_py_err};
use crate::projection::{optional_phi, optional_projection};

type Sums<'py> = (Matrix<'py>, Option<Matrix<'py>>);

/// Fails if a row is in a leaf that does not exist.
pub fn check_leaves(leaf_of_row: &[u32], n_leaves: usize) -> PyResult<()> {
    // A maximum is found in whole vectors, the first of its kind is not.
    let largest = widest(
        #[inline(always)]
        || leaf_of_row.iter().fold(0, |largest, &leaf| largest.max(leaf)),
    );
    if largest as usize >= n_leaves && !leaf_of_row.is_empty() {
        return Err(PyValueError::new_err(format!(
            "leaf_of_row names leaf {largest}, but there are {n_leaves}"
        )));
    }
    Ok(())
}

/// The leaves of `n_rows` rows.
fn leaves_of<'a>(
    leaf_of_row: &'a PyReadonlyArray1<'_, u32>,
    n_leaves: usize,
    n_rows: usize,
) -> PyResult<Leaves<'a>> {
    check_len("leaf_of_row", leaf_of_row.len(), n_rows)?;
    let leaf_of_row = slice(leaf_of_row)?;
    check_leaves(leaf_of_row, n_leaves)?;
    Ok(Leaves { leaf_of_row, n_leaves })
}

/// What sums over leaves are taken of.
pub struct LeafSumArrays<'a, 'py> {
    pub leaf_of_row: &'a PyReadonlyArray1<'py, u32>,
    pub n_leaves: usize,
    pub residuals: &'a PyReadonlyArray2<'py, f32>,
    pub weights: &'a WeightArrays<'py>,
    pub max_residual: &'a PyReadonlyArray1<'py, f64>,
    pub max_curvature: &'a PyReadonlyArray1<'py, f64>,
}

impl<'py> LeafSumArrays<'_, 'py> {
    /// The sums of some outputs.
    pub fn sums(
        &self,
        py: Python<'py>,
        pool: &Pool,
        curvatures: Curvatures<'_>,
        outputs: &Outputs,
    ) -> PyResult<Sums<'py>> {
        let [n, d] = [self.residuals.shape()[0], self.residuals.shape()[1]];
        check_len("max_residual", self.max_residual.len(), d)?;
        check_len("max_curvature", self.max_curvature.len(), d)?;
        let leaves = leaves_of(self.leaf_of_row, self.n_leaves, n)?;
        let weights = self.weights.view(n, d)?;
        let residuals = slice(self.residuals)?;
        let (residual, curvature) = (slice(self.max_residual)?, slice(self.max_curvature)?);
        let bounds = SumBounds { residual, curvature };
        let sums = pool.run(py, |pool| {
            core::leaf::leaf_sums(pool, leaves, outputs, residuals, curvatures, weights, bounds)
        })?;
        let width = outputs.width();
        Ok((matrix(py, sums.residuals, width), sums.curvatures.map(|c| matrix(py, c, width))))
    }
}

/// Sums of residuals, and of curvatures if given as an array, over the rows of each leaf.
#[allow(clippy::too_many_arguments)] // the arrays of a call from Python
#[pyfunction]
#[pyo3(signature = (pool, leaf_of_row, n_leaves, residuals, curvatures, weights, max_residual, max_curvature, output=None))]
fn leaf_sums<'py>(
    py: Python<'py>,
    pool: &Pool,
    leaf_of_row: PyReadonlyArray1<'py, u32>,
    n_leaves: usize,
    residuals: PyReadonlyArray2<'py, f32>,
    curvatures: Option<PyReadonlyArray2<'py, f32>>,
    weights: WeightArrays<'py>,
    max_residual: PyReadonlyArray1<'py, f64>,
    max_curvature: PyReadonlyArray1<'py, f64>,
    output: Option<OutputNumbers>,
) -> PyResult<Sums<'py>> {
    let outputs = outputs_of(output, residuals.shape()[1])?;
    let given = match &curvatures {
        None => Curvatures::Absent,
        Some(given) => {
            check_len("curvatures", given.len(), residuals.len())?;
            Curvatures::Given(slice(given)?)
        }
    };
    let arrays = LeafSumArrays {
        leaf_of_row: &leaf_of_row,
        n_leaves,
        residuals: &residuals,
        weights: &weights,
        max_residual: &max_residual,
        max_curvature: &max_curvature,
    };
    arrays.sums(py, pool, given, &outputs)
}

/// Lower weighted quantiles of y − raw in each leaf (n_leaves × outputs).
#[allow(clippy::too_many_arguments)] // the arrays of a call from Python
#[pyfunction]
#[pyo3(signature = (pool, leaf_of_row, n_leaves, y, raw, levels, weights, output=None))]
fn leaf_quantiles<'py>(
    py: Python<'py>,
    pool: &Pool,
    leaf_of_row: PyReadonlyArray1<'py, u32>,
    n_leaves: usize,
    y: PyReadonlyArray2<'py, f32>,
    raw: PyReadonlyArray2<'py, f32>,
    levels: PyReadonlyArray1<'py, f64>,
    weights: WeightArrays<'py>,
    output: Option<OutputNumbers>,
) -> PyResult<Matrix<'py>> {
    let [n, d] = [raw.shape()[0], raw.shape()[1]];
    let outputs = outputs_of(output, d)?;
    check_len("levels", levels.len(), d)?;
    check_len("y", y.len(), raw.len())?;
    let leaves = leaves_of(&leaf_of_row, n_leaves, n)?;
    let weights = weights.view(n, d)?;
    let (y, raw, levels) = (slice(&y)?, slice(&raw)?, slice(&levels)?);
    let values = pool.run(py, |pool| {
        core::leaf::leaf_quantiles(pool, leaves, y, raw, &outputs, levels, weights)
    })?;
    Ok(matrix(py, values, outputs.width()))
}

/// Sums of the weights of cells that have a target over the rows of each leaf (n_leaves × outputs).
#[pyfunction]
#[pyo3(signature = (pool, leaf_of_row, n_leaves, y, weights, output=None))]
fn leaf_weights<'py>(
    py: Python<'py>,
    pool: &Pool,
    leaf_of_row: PyReadonlyArray1<'py, u32>,
    n_leaves: usize,
    y: TargetArray<'py>,
    weights: WeightArrays<'py>,
    output: Option<OutputNumbers>,
) -> PyResult<Matrix<'py>> {
    let [n, d] = match &y {
        TargetArray::Real(y) => [y.shape()[0], y.shape()[1]],
        TargetArray::Labels(y) => [y.shape()[0], y.shape()[1]],
        TargetArray::Classes(_) => {
            return Err(PyValueError::new_err("class numbers have no cells"));
        }
    };
    let leaves = leaves_of(&leaf_of_row, n_leaves, n)?;
    let outputs = outputs_of(output, d)?;
    let (weights, y) = (weights.view(n, d)?, y.view()?);
    let sums = pool.run(py, |pool| core::leaf::leaf_weights(pool, leaves, &outputs, y, weights))?;
    Ok(matrix(py, sums, outputs.width()))
}

/// What a tree adds to raw predictions: leaf of each row, leaf values, steps.
type MoveArrays<'py> =
    (PyReadonlyArray1<'py, u32>, PyReadonlyArray2<'py, f32>, Option<PyReadonlyArray1<'py, f32>>);

/// The pass of squared error, where the residuals are all the state. `pending` are moves that they do
/// not contain yet, and are written into them. Returns the weighted loss, the largest
/// weighted |residual| of each output and, if leaves are given with bounds on the latter, the sums
/// over their rows (n_leaves × outputs). Residuals are projected by `phi` into `z`.
#[allow(clippy::too_many_arguments)] // the arrays of a call from Python
#[pyfunction]
#[pyo3(signature = (pool, residuals, weight, pending, *, leaf_of_row=None, bounds=None, n_leaves=0, phi=None, z=None))]
fn sweep<'py>(
    py: Python<'py>,
    pool: &Pool,
    mut residuals: PyReadwriteArray2<'py, f32>,
    weight: Option<PyReadonlyArray1<'py, f32>>,
    pending: Vec<MoveArrays<'py>>,
    leaf_of_row: Option<PyReadonlyArray1<'py, u32>>,
    bounds: Option<PyReadonlyArray1<'py, f64>>,
    n_leaves: usize,
    phi: Option<PyReadonlyArray2<'py, f32>>,
    mut z: Option<PyReadwriteArray2<'py, f32>>,
) -> PyResult<(f64, Vector<'py>, Matrix<'py>)> {
    let [n, d] = [residuals.shape()[0], residuals.shape()[1]];
    check_outputs(d)?;
    check_len("weight", weight.as_ref().map_or(n, |weight| weight.len()), n)?;
    let pending = pending
        .iter()
        .map(|(leaf_of_row, values, steps)| checked_update(leaf_of_row, values, steps, n, d))
        .collect::<PyResult<Vec<Update<'_>>>>()?;
    let leaves = match (&leaf_of_row, &bounds) {
        (Some(leaf_of_row), Some(bounds)) => {
            check_len("bounds", bounds.len(), d)?;
            Some((leaves_of(leaf_of_row, n_leaves, n)?, slice(bounds)?))
        }
        _ => None,
    };
    let phi = optional_phi(&phi, d)?;
    let projected = optional_projection(&phi, &mut z, n)?;
    let (residuals, weight) = (slice_mut(&mut residuals)?, optional(&weight)?);
    let sweep = Sweep { n_outputs: d, weight, pending: &pending, leaves };
    let (pass, sums) = pool.run(py, |pool| sweep.run(pool, residuals, projected))?;
    Ok((pass.loss, pass.max_residual.into_pyarray(py), matrix(py, sums, d)))
}

/// Takes a move off `z`, which a `sweep` projected before it. Returns the change of the loss (0 unless
/// the sums of residuals, n_leaves × outputs, and of weights over its leaves are given), and the
/// largest |value| of each output.
#[pyfunction]
#[pyo3(signature = (pool, update, n_outputs, sums=None, *, phi=None, z=None))]
fn look_ahead<'py>(
    py: Python<'py>,
    pool: &Pool,
    update: MoveArrays<'py>,
    n_outputs: usize,
    sums: Option<(PyReadonlyArray2<'py, f64>, PyReadonlyArray1<'py, f64>)>,
    phi: Option<PyReadonlyArray2<'py, f32>>,
    mut z: Option<PyReadwriteArray2<'py, f32>>,
) -> PyResult<(f64, Vector<'py>)> {
    let (leaf_of_row, values, steps) = &update;
    let (n, n_leaves) = (leaf_of_row.len(), values.shape()[0]);
    check_outputs(n_outputs)?;
    let sums = match &sums {
        None => None,
        Some((sums, weights)) => {
            check_len("sums", sums.len(), n_leaves * n_outputs)?;
            check_len("leaf weights", weights.len(), n_leaves)?;
            Some((slice(sums)?, slice(weights)?))
        }
    };
    let update = checked_update(leaf_of_row, values, steps, n, n_outputs)?;
    let phi = optional_phi(&phi, n_outputs)?;
    let projected = optional_projection(&phi, &mut z, n)?;
    let ahead = pool.run(py, |pool| {
        core::losses::look_ahead(pool, update, n_leaves, n_outputs, sums, projected)
    })?;
    Ok((ahead.loss, ahead.reach.into_pyarray(py)))
}

/// An update of raw predictions by leaves, if there is one.
pub fn optional_update<'a>(
    leaf_of_row: &'a Option<PyReadonlyArray1<'_, u32>>,
    values: &'a Option<PyReadonlyArray2<'_, f32>>,
    steps: &'a Option<PyReadonlyArray1<'_, f32>>,
    n: usize,
    d: usize,
) -> PyResult<Option<Update<'a>>> {
    match (leaf_of_row, values) {
        (Some(leaf_of_row), Some(values)) => {
            checked_update(leaf_of_row, values, steps, n, d).map(Some)
        }
        _ => Ok(None),
    }
}

/// An update of raw predictions by leaves, if it fits them.
fn checked_update<'a>(
    leaf_of_row: &'a PyReadonlyArray1<'_, u32>,
    values: &'a PyReadonlyArray2<'_, f32>,
    steps: &'a Option<PyReadonlyArray1<'_, f32>>,
    n_rows: usize,
    n_outputs: usize,
) -> PyResult<Update<'a>> {
    let Leaves { leaf_of_row, .. } = leaves_of(leaf_of_row, values.shape()[0], n_rows)?;
    let values = match steps {
        None => {
            check_len("a row of values", values.shape()[1], n_outputs)?;
            LeafValues::Vector(slice(values)?)
        }
        Some(steps) => {
            check_len("steps", steps.len(), n_outputs)?;
            check_len("a row of values", values.shape()[1], 1)?;
            LeafValues::Scaled(slice(values)?, slice(steps)?)
        }
    };
    Ok(Update { leaf_of_row, values })
}

/// raw[:, outputs] += leaf values (n_leaves × outputs), or leaf values (n_leaves × 1) × steps.
#[pyfunction]
#[pyo3(signature = (pool, leaf_of_row, values, steps, raw, output=None))]
fn add_leaves(
    py: Python<'_>,
    pool: &Pool,
    leaf_of_row: PyReadonlyArray1<'_, u32>,
    values: PyReadonlyArray2<'_, f32>,
    steps: Option<PyReadonlyArray1<'_, f32>>,
    mut raw: PyReadwriteArray2<'_, f32>,
    output: Option<OutputNumbers>,
) -> PyResult<()> {
    let [n, d] = [raw.shape()[0], raw.shape()[1]];
    let outputs = outputs_of(output, d)?;
    let update = checked_update(&leaf_of_row, &values, &steps, n, outputs.width())?;
    let raw = slice_mut(&mut raw)?;
    pool.run(py, |pool| core::leaf::add_leaves(pool, update, raw, &outputs))
}

/// A round, a tree, the sums of residuals (n_leaves × d) and of weights (n_leaves × 1 or × d) in its
/// leaves, and its outputs.
type Gains<'py> = (
    usize,
    PyRef<'py, Tree>,
    PyReadonlyArray2<'py, f64>,
    PyReadonlyArray2<'py, f64>,
    Option<OutputNumbers>,
);

/// Adds the gain of every split, for every output, of the trees of rounds before `n_rounds` to
/// `importances` (p × d), and takes them off the list. One call, so that no signal can interrupt it.
#[pyfunction]
fn book_gains(
    pending: &Bound<'_, PyList>,
    n_rounds: usize,
    mut importances: PyReadwriteArray2<'_, f64>,
) -> PyResult<()> {
    let [p, d] = [importances.shape()[0], importances.shape()[1]];
    let importances = slice_mut(&mut importances)?;
    let mut n_booked = 0;
    for entry in pending.iter() {
        let (round, tree, leaf_residuals, leaf_weights, output): Gains<'_> = entry.extract()?;
        // Entries come in the order of their rounds.
        if round >= n_rounds {
            break;
        }
        n_booked += 1;
        let outputs = outputs_of(output, d)?;
        check_len("leaf_residuals", leaf_residuals.len(), tree.tree.n_leaves * outputs.width())?;
        let n_weights = if leaf_weights.shape()[1] == 1 { 1 } else { outputs.width() };
        check_len("leaf_weights", leaf_weights.len(), tree.tree.n_leaves * n_weights)?;
        let (features, gains) = core::leaf::split_gains(
            &tree.tree.nodes,
            slice(&leaf_residuals)?,
            slice(&leaf_weights)?,
            outputs.width(),
        )
        .map_err(to_py_err)?;
        for (&feature, gains) in features.iter().zip(gains.chunks(outputs.width())) {
            check_len("importances", p.max(feature as usize + 1), p)?;
            let row = &mut importances[feature as usize * d..][outputs.range.clone()];
            row.iter_mut().zip(gains).for_each(|(sum, gain)| *sum += gain);
        }
    }
    pending.del_slice(0, n_booked)
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(leaf_sums, module)?)?;
    module.add_function(wrap_pyfunction!(leaf_weights, module)?)?;
    module.add_function(wrap_pyfunction!(leaf_quantiles, module)?)?;
    module.add_function(wrap_pyfunction!(sweep, module)?)?;
    module.add_function(wrap_pyfunction!(look_ahead, module)?)?;
    module.add_function(wrap_pyfunction!(add_leaves, module)?)?;
    module.add_function(wrap_pyfunction!(book_gains, module)?)
}
