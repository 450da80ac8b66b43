//! Kernels over the training state.

use std::ops::Range;

use manyboost_core as core;
use manyboost_core::leaf::{LeafValues, Summand};
use manyboost_core::losses::{Loss, WeightedProjection};
use manyboost_core::projection::{Phi, Projection};
use manyboost_core::random::{Key, Purpose};
use manyboost_core::runs::Run;
use manyboost_core::step::Direction;
use manyboost_core::weights::Weights;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arrays::{TargetArray, WeightArrays, check_len, matrix, optional, slice, slice_mut};
use crate::features::Tree;
use crate::pool::{Pool, to_py_err};

type Vector<'py> = Bound<'py, PyArray1<f64>>;
type Matrix<'py> = Bound<'py, PyArray2<f64>>;

/// The name of a loss for all outputs, or one for each.
#[derive(FromPyObject)]
enum LossNames {
    All(String),
    Each(Vec<String>),
}

fn loss_named(name: &str) -> PyResult<Loss> {
    Ok(match name {
        "squared_error" => Loss::Squared,
        "squared_labels" => Loss::SquaredLabels,
        "absolute_error" => Loss::Absolute,
        "huber" => Loss::Huber,
        "quantile" => Loss::Quantile,
        "poisson" => Loss::Poisson,
        "log_loss" => Loss::Logistic,
        "exponential" => Loss::Exponential,
        "softmax" => Loss::Softmax,
        other => return Err(PyValueError::new_err(format!("there is no loss {other:?}"))),
    })
}

/// Built-in losses with their constants: one offset and one parameter per output.
#[pyclass(frozen, module = "manyboost._core")]
pub struct Objective {
    runs: Vec<Run>,
    offset: Vec<f32>,
    param: Vec<f32>,
}

#[pymethods]
impl Objective {
    #[new]
    fn new(
        loss: LossNames,
        offset: PyReadonlyArray1<'_, f32>,
        param: PyReadonlyArray1<'_, f32>,
    ) -> PyResult<Objective> {
        let (offset, param) = (slice(&offset)?.to_vec(), slice(&param)?.to_vec());
        check_len("param", param.len(), offset.len())?;
        let losses = match loss {
            LossNames::All(name) => vec![loss_named(&name)?; offset.len()],
            LossNames::Each(names) => {
                check_len("loss", names.len(), offset.len())?;
                names.iter().map(|name| loss_named(name)).collect::<PyResult<Vec<Loss>>>()?
            }
        };
        let runs = Run::all(&losses);
        if runs.len() > 1 && losses.contains(&Loss::Softmax) {
            return Err(PyValueError::new_err("softmax cannot be mixed with other losses"));
        }
        Ok(Objective { runs, offset, param })
    }

    /// Adds leaf values to `raw`, takes the residuals (negative gradients) there into `out` and
    /// projects them by `phi` into `z`, all in one pass; update and projection are optional.
    /// Where cells are weighted, `z` is that of the weighted residuals, and `omega` gets the weights
    /// of the components. Returns the weighted loss and the largest weighted |residual| of each
    /// output.
    #[pyo3(signature = (pool, y, raw, weights, out, *, leaf_of_row=None, values=None, steps=None, phi=None, z=None, omega=None))]
    fn advance<'py>(
        &self,
        py: Python<'py>,
        pool: &Pool,
        y: TargetArray<'py>,
        mut raw: PyReadwriteArray2<'py, f32>,
        weights: WeightArrays<'py>,
        mut out: PyReadwriteArray2<'py, f32>,
        leaf_of_row: Option<PyReadonlyArray1<'py, u32>>,
        values: Option<PyReadonlyArray2<'py, f32>>,
        steps: Option<PyReadonlyArray1<'py, f32>>,
        phi: Option<PyReadonlyArray2<'py, f32>>,
        mut z: Option<PyReadwriteArray2<'py, f32>>,
        mut omega: Option<PyReadwriteArray2<'py, f32>>,
    ) -> PyResult<(f64, Bound<'py, PyArray1<f32>>)> {
        let (n, d) = (raw.shape()[0], raw.shape()[1]);
        let weights = self.weights(&y, &weights, (n, d))?;
        check_len("out", out.len(), raw.len())?;
        let update = optional_update(&leaf_of_row, &values, &steps, n, d)?;
        let shares = if weights.by_cell() { optional_shares(&phi, d)? } else { None };
        let phi = optional_phi(&phi, d)?;
        let projected = optional_projection(&phi, &mut z, n)?;
        let y = y.view()?;
        let (raw, out) = (slice_mut(&mut raw)?, slice_mut(&mut out)?);
        let (offset, param) = (&self.offset[..], &self.param[..]);
        if weights.by_cell() {
            let projected = match (projected, &shares, &mut omega) {
                (Some((phi, z)), Some(shares), Some(omega)) => {
                    check_len("omega", omega.len(), z.len())?;
                    Some(WeightedProjection { phi, shares, z, omega: slice_mut(omega)? })
                }
                _ => None,
            };
            let pass = pool.run(py, |pool| {
                core::losses::advance_cells(
                    pool, &self.runs, y, raw, offset, param, weights, update, out, projected,
                )
            })?;
            return Ok((pass.loss, pass.max_residual.into_pyarray(py)));
        }
        let rows = weights.rows;
        let pass = pool.run(py, |pool| match &self.runs[..] {
            [Run { loss, .. }] => core::losses::advance(
                pool, *loss, y, raw, offset, param, rows, update, out, projected,
            ),
            runs => {
                core::runs::advance(pool, runs, y, raw, offset, param, rows, update, out, projected)
            }
        })?;
        Ok((pass.loss, pass.max_residual.into_pyarray(py)))
    }

    /// Weighted loss, summed over rows and outputs.
    #[pyo3(signature = (pool, y, raw, weights))]
    fn loss_sum(
        &self,
        py: Python<'_>,
        pool: &Pool,
        y: TargetArray<'_>,
        raw: PyReadonlyArray2<'_, f32>,
        weights: WeightArrays<'_>,
    ) -> PyResult<f64> {
        let weights = self.weights(&y, &weights, (raw.shape()[0], raw.shape()[1]))?;
        let loss = self.loss_of(&self.outputs(None)?)?;
        let (y, raw) = (y.view()?, slice(&raw)?);
        pool.run(py, |pool| {
            core::losses::loss_sum(pool, loss, y, raw, &self.offset, &self.param, weights)
        })
    }

    /// Weighted loss of every output by itself, summed over rows.
    #[pyo3(signature = (pool, y, raw, weights))]
    fn output_losses<'py>(
        &self,
        py: Python<'py>,
        pool: &Pool,
        y: TargetArray<'_>,
        raw: PyReadonlyArray2<'_, f32>,
        weights: WeightArrays<'_>,
    ) -> PyResult<Vector<'py>> {
        let weights = self.weights(&y, &weights, (raw.shape()[0], raw.shape()[1]))?;
        if matches!(y, TargetArray::Classes(_)) {
            return Err(PyValueError::new_err("the outputs of softmax share one loss"));
        }
        let (y, raw) = (y.view()?, slice(&raw)?);
        let (offset, param) = (&self.offset[..], &self.param[..]);
        let sums = pool.run(py, |pool| {
            core::runs::output_losses(pool, &self.runs, y, raw, offset, param, weights)
        })?;
        Ok(sums.into_pyarray(py))
    }

    /// Curvatures of all cells, from their residuals, into `out`.
    fn curvatures(
        &self,
        py: Python<'_>,
        pool: &Pool,
        y: TargetArray<'_>,
        residuals: PyReadonlyArray2<'_, f32>,
        mut out: PyReadwriteArray2<'_, f32>,
    ) -> PyResult<()> {
        self.check(&y, (residuals.shape()[0], residuals.shape()[1]))?;
        check_len("out", out.len(), residuals.len())?;
        let loss = self.loss_of(&self.outputs(None)?)?;
        let (y, residuals, out) = (y.view()?, slice(&residuals)?, slice_mut(&mut out)?);
        pool.run(py, |pool| core::losses::curvatures(pool, loss, y, residuals, &self.param, out))
    }

    /// Derivatives of each output's loss along a direction, at `rho`.
    #[pyo3(signature = (pool, y, raw, weights, leaf_of_row, values, rho, output=None, active=None))]
    fn derivatives<'py>(
        &self,
        py: Python<'py>,
        pool: &Pool,
        y: TargetArray<'py>,
        raw: PyReadonlyArray2<'py, f32>,
        weights: WeightArrays<'py>,
        leaf_of_row: Option<PyReadonlyArray1<'py, u32>>,
        values: PyReadonlyArray2<'py, f32>,
        rho: PyReadonlyArray1<'py, f64>,
        output: Option<Outputs>,
        active: Option<PyReadonlyArray1<'py, bool>>,
    ) -> PyResult<(Vector<'py>, Vector<'py>)> {
        let weights = self.weights(&y, &weights, (raw.shape()[0], raw.shape()[1]))?;
        let outputs = self.outputs(output)?;
        let loss = self.loss_of(&outputs)?;
        check_len("rho", rho.len(), outputs.len())?;
        let active = optional(&active)?;
        check_len("active", active.map_or(outputs.len(), <[bool]>::len), outputs.len())?;
        let direction = direction(&leaf_of_row, &values, raw.shape()[0], outputs.len())?;
        let (y, raw, rho) = (y.view()?, slice(&raw)?, slice(&rho)?);
        let (slope, curve) = pool.run(py, |pool| {
            core::step::derivatives(
                pool,
                loss,
                y,
                raw,
                &self.offset,
                &self.param,
                weights,
                direction,
                rho,
                outputs,
                active,
            )
        })?;
        Ok((slope.into_pyarray(py), curve.into_pyarray(py)))
    }

    /// Softmax along a direction: loss, gradient with respect to rho, Hessian times `v`.
    #[pyo3(signature = (pool, y, raw, weight, leaf_of_row, values, rho, v))]
    fn softmax_along<'py>(
        &self,
        py: Python<'py>,
        pool: &Pool,
        y: PyReadonlyArray1<'py, u32>,
        raw: PyReadonlyArray2<'py, f32>,
        weight: Option<PyReadonlyArray1<'py, f32>>,
        leaf_of_row: Option<PyReadonlyArray1<'py, u32>>,
        values: PyReadonlyArray2<'py, f32>,
        rho: PyReadonlyArray1<'py, f64>,
        v: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<(f64, Vector<'py>, Vector<'py>)> {
        let y = TargetArray::Classes(y);
        self.check(&y, (raw.shape()[0], raw.shape()[1]))?;
        let d = self.offset.len();
        check_len("rho", rho.len(), d)?;
        check_len("v", v.len(), d)?;
        let direction = direction(&leaf_of_row, &values, raw.shape()[0], d)?;
        let TargetArray::Classes(y) = &y else { unreachable!("made above") };
        let (y, raw, weight) = (slice(y)?, slice(&raw)?, optional(&weight)?);
        let (rho, v) = (slice(&rho)?, slice(&v)?);
        let (loss, slope, product) = pool.run(py, |pool| {
            core::step::softmax_along(pool, y, raw, &self.offset, weight, direction, rho, v)
        })?;
        Ok((loss, slope.into_pyarray(py), product.into_pyarray(py)))
    }

    /// Sums of residuals and curvatures over the rows of each leaf (n_leaves × outputs).
    #[pyo3(signature = (pool, tree_leaves, n_leaves, y, residuals, weights, max_residual, max_curvature, output=None))]
    fn leaf_sums<'py>(
        &self,
        py: Python<'py>,
        pool: &Pool,
        tree_leaves: PyReadonlyArray1<'py, u32>,
        n_leaves: usize,
        y: TargetArray<'py>,
        residuals: PyReadonlyArray2<'py, f32>,
        weights: WeightArrays<'py>,
        max_residual: PyReadonlyArray1<'py, f64>,
        max_curvature: PyReadonlyArray1<'py, f64>,
        output: Option<Outputs>,
    ) -> PyResult<(Matrix<'py>, Matrix<'py>)> {
        self.weights(&y, &weights, (residuals.shape()[0], residuals.shape()[1]))?;
        let outputs = self.outputs(output)?;
        let loss = self.loss_of(&outputs)?;
        let summand = Summand::WithCurvature { loss, targets: y.view()?, param: &self.param };
        let (sums, curves) = leaf_sums_with(
            py,
            pool,
            &tree_leaves,
            n_leaves,
            &residuals,
            summand,
            &weights,
            &max_residual,
            &max_curvature,
            outputs,
        )?;
        Ok((sums, curves.unwrap_or_else(|| unreachable!("curvatures were asked for"))))
    }
}

impl Objective {
    fn outputs(&self, output: Option<Outputs>) -> PyResult<Range<usize>> {
        outputs_of(output, self.offset.len())
    }

    fn is_softmax(&self) -> bool {
        self.runs.first().is_some_and(|run| run.loss == Loss::Softmax)
    }

    /// The loss that outputs share.
    fn loss_of(&self, outputs: &Range<usize>) -> PyResult<Loss> {
        let within =
            |run: &&Run| run.outputs.start <= outputs.start && outputs.end <= run.outputs.end;
        let run = self.runs.iter().find(within);
        run.map(|run| run.loss)
            .ok_or_else(|| PyValueError::new_err("these outputs have several losses"))
    }

    /// The weights, if they and the targets fit n × d cells.
    fn weights<'a>(
        &self,
        y: &TargetArray<'_>,
        weights: &'a WeightArrays<'_>,
        (n, d): (usize, usize),
    ) -> PyResult<Weights<'a>> {
        self.check(y, (n, d))?;
        let weights = weights.view(n, d)?;
        if weights.by_cell() && self.is_softmax() {
            return Err(PyValueError::new_err("the cells of a row share one softmax loss"));
        }
        Ok(weights)
    }

    fn check(&self, y: &TargetArray<'_>, (n, d): (usize, usize)) -> PyResult<()> {
        check_len("a row", d, self.offset.len())?;
        match y {
            TargetArray::Real(y) => check_len("y", y.len(), n * d)?,
            TargetArray::Labels(y) => check_len("y", y.len(), n * d)?,
            TargetArray::Classes(y) => {
                check_len("y", y.len(), n)?;
                if slice(y)?.iter().any(|&class| class as usize >= d) {
                    return Err(PyValueError::new_err("a class number is out of range"));
                }
            }
        }
        if matches!(y, TargetArray::Classes(_)) != self.is_softmax() {
            return Err(PyValueError::new_err("class numbers and softmax belong together"));
        }
        Ok(())
    }
}

/// One output, or those from a first to before a last.
#[derive(FromPyObject)]
enum Outputs {
    One(usize),
    Range((usize, usize)),
}

fn outputs_of(output: Option<Outputs>, n_outputs: usize) -> PyResult<Range<usize>> {
    let range = match output {
        None => 0..n_outputs,
        Some(Outputs::One(j)) => j..j.saturating_add(1),
        Some(Outputs::Range((start, stop))) => start..stop,
    };
    if range.end > n_outputs || (range.is_empty() && n_outputs > 0) {
        let Range { start, end } = range;
        return Err(PyValueError::new_err(format!(
            "there are no outputs {start} to {end} of {n_outputs}"
        )));
    }
    Ok(range)
}

fn direction<'a>(
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
            if leaves.iter().any(|&leaf| leaf as usize >= size) {
                return Err(PyValueError::new_err("a row is in a leaf that does not exist"));
            }
        }
    }
    Ok(Direction { leaf_of_row, values: slice(values)?, width })
}

type Sums<'py> = (Matrix<'py>, Option<Matrix<'py>>);

fn leaf_sums_with<'py>(
    py: Python<'py>,
    pool: &Pool,
    leaf_of_row: &PyReadonlyArray1<'py, u32>,
    n_leaves: usize,
    residuals: &PyReadonlyArray2<'py, f32>,
    summand: Summand<'_>,
    weights: &WeightArrays<'py>,
    max_residual: &PyReadonlyArray1<'py, f64>,
    max_curvature: &PyReadonlyArray1<'py, f64>,
    outputs: Range<usize>,
) -> PyResult<Sums<'py>> {
    let d = residuals.shape()[1];
    check_len("leaf_of_row", leaf_of_row.len(), residuals.shape()[0])?;
    check_len("max_residual", max_residual.len(), d)?;
    check_len("max_curvature", max_curvature.len(), d)?;
    let leaves = slice(leaf_of_row)?;
    if leaves.iter().any(|&leaf| leaf as usize >= n_leaves) {
        return Err(PyValueError::new_err("a row is in a leaf that does not exist"));
    }
    let bounds = (slice(max_residual)?, slice(max_curvature)?);
    let weights = weights.view(residuals.shape()[0], d)?;
    let residuals = slice(residuals)?;
    let width = outputs.len();
    let sums = pool.run(py, |pool| {
        core::leaf::leaf_sums(
            pool, leaves, n_leaves, residuals, d, outputs, summand, weights, bounds,
        )
    })?;
    Ok((matrix(py, sums.residuals, width), sums.curvatures.map(|c| matrix(py, c, width))))
}

/// Sums of residuals, and of curvatures if given as an array, over the rows of each leaf.
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
    output: Option<Outputs>,
) -> PyResult<Sums<'py>> {
    let outputs = outputs_of(output, residuals.shape()[1])?;
    let summand = match &curvatures {
        None => Summand::Residual,
        Some(given) => {
            check_len("curvatures", given.len(), residuals.len())?;
            Summand::WithGiven(slice(given)?)
        }
    };
    leaf_sums_with(
        py,
        pool,
        &leaf_of_row,
        n_leaves,
        &residuals,
        summand,
        &weights,
        &max_residual,
        &max_curvature,
        outputs,
    )
}

/// Lower weighted quantiles of y − raw in each leaf (n_leaves × outputs).
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
    output: Option<Outputs>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let d = raw.shape()[1];
    let outputs = outputs_of(output, d)?;
    check_len("levels", levels.len(), d)?;
    check_len("y", y.len(), raw.len())?;
    check_len("leaf_of_row", leaf_of_row.len(), raw.shape()[0])?;
    let weights = weights.view(raw.shape()[0], d)?;
    let (leaves, levels) = (slice(&leaf_of_row)?, slice(&levels)?);
    if leaves.iter().any(|&leaf| leaf as usize >= n_leaves) {
        return Err(PyValueError::new_err("a row is in a leaf that does not exist"));
    }
    let (y, raw) = (slice(&y)?, slice(&raw)?);
    let width = outputs.len();
    let values = pool.run(py, |pool| {
        core::leaf::leaf_quantiles(pool, leaves, n_leaves, y, raw, d, outputs, levels, weights)
    })?;
    Ok(matrix(py, values, width))
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
    output: Option<Outputs>,
) -> PyResult<Matrix<'py>> {
    let (n, d) = match &y {
        TargetArray::Real(y) => (y.shape()[0], y.shape()[1]),
        TargetArray::Labels(y) => (y.shape()[0], y.shape()[1]),
        TargetArray::Classes(_) => {
            return Err(PyValueError::new_err("class numbers have no cells"));
        }
    };
    check_len("leaf_of_row", leaf_of_row.len(), n)?;
    let leaves = slice(&leaf_of_row)?;
    if leaves.iter().any(|&leaf| leaf as usize >= n_leaves) {
        return Err(PyValueError::new_err("a row is in a leaf that does not exist"));
    }
    let outputs = outputs_of(output, d)?;
    let (weights, y, width) = (weights.view(n, d)?, y.view()?, outputs.len());
    let sums = pool
        .run(py, |pool| core::leaf::leaf_weights(pool, leaves, n_leaves, y, d, outputs, weights))?;
    Ok(matrix(py, sums, width))
}

/// The pass of `Objective.advance` for squared error, where the residuals are all the state.
#[pyfunction]
#[pyo3(signature = (pool, residuals, weight, *, leaf_of_row=None, values=None, steps=None, phi=None, z=None))]
fn advance_residuals<'py>(
    py: Python<'py>,
    pool: &Pool,
    mut residuals: PyReadwriteArray2<'py, f32>,
    weight: Option<PyReadonlyArray1<'py, f32>>,
    leaf_of_row: Option<PyReadonlyArray1<'py, u32>>,
    values: Option<PyReadonlyArray2<'py, f32>>,
    steps: Option<PyReadonlyArray1<'py, f32>>,
    phi: Option<PyReadonlyArray2<'py, f32>>,
    mut z: Option<PyReadwriteArray2<'py, f32>>,
) -> PyResult<(f64, Bound<'py, PyArray1<f32>>)> {
    let (n, d) = (residuals.shape()[0], residuals.shape()[1]);
    let update = optional_update(&leaf_of_row, &values, &steps, n, d)?;
    let phi = optional_phi(&phi, d)?;
    let projected = optional_projection(&phi, &mut z, n)?;
    let (residuals, weight) = (slice_mut(&mut residuals)?, optional(&weight)?);
    let pass = pool.run(py, |pool| {
        core::losses::advance_residuals(pool, d, weight, update, residuals, projected)
    })?;
    Ok((pass.loss, pass.max_residual.into_pyarray(py)))
}

fn optional_phi(phi: &Option<PyReadonlyArray2<'_, f32>>, d: usize) -> PyResult<Option<Phi>> {
    let Some(phi) = phi else { return Ok(None) };
    check_len("a row of phi", phi.shape()[1], d)?;
    Ok(Some(Phi::new(slice(phi)?, d)))
}

/// The weights that components give to outputs, where there are components.
fn optional_shares(phi: &Option<PyReadonlyArray2<'_, f32>>, d: usize) -> PyResult<Option<Phi>> {
    let Some(phi) = phi else { return Ok(None) };
    check_len("a row of phi", phi.shape()[1], d)?;
    Ok(Some(Phi::shares(slice(phi)?, d)))
}

fn optional_projection<'a>(
    phi: &'a Option<Phi>,
    z: &'a mut Option<PyReadwriteArray2<'_, f32>>,
    n: usize,
) -> PyResult<Option<core::losses::Projected<'a>>> {
    match (phi, z) {
        (Some(phi), Some(z)) => {
            check_len("z", z.len(), n * phi.n_components())?;
            Ok(Some((phi, slice_mut(z)?)))
        }
        _ => Ok(None),
    }
}

type UpdateSlices<'a> = (&'a [u32], LeafValues<'a>);

fn optional_update<'a>(
    leaf_of_row: &'a Option<PyReadonlyArray1<'_, u32>>,
    values: &'a Option<PyReadonlyArray2<'_, f32>>,
    steps: &'a Option<PyReadonlyArray1<'_, f32>>,
    n: usize,
    d: usize,
) -> PyResult<Option<UpdateSlices<'a>>> {
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
) -> PyResult<UpdateSlices<'a>> {
    check_len("leaf_of_row", leaf_of_row.len(), n_rows)?;
    let leaves = slice(leaf_of_row)?;
    if leaves.iter().any(|&leaf| leaf as usize >= values.shape()[0]) {
        return Err(PyValueError::new_err("a row is in a leaf that does not exist"));
    }
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
    Ok((leaves, values))
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
    output: Option<Outputs>,
) -> PyResult<()> {
    let d = raw.shape()[1];
    let outputs = outputs_of(output, d)?;
    let n = raw.shape()[0];
    let (leaves, values) = checked_update(&leaf_of_row, &values, &steps, n, outputs.len())?;
    let raw = slice_mut(&mut raw)?;
    pool.run(py, |pool| core::leaf::add_leaves(pool, leaves, values, raw, d, outputs))
}

/// A round, a tree, the sums of residuals (n_leaves × d) and of weights (n_leaves × 1 or × d) in its
/// leaves, and its outputs.
type Gains<'py> = (
    usize,
    PyRef<'py, Tree>,
    PyReadonlyArray2<'py, f64>,
    PyReadonlyArray2<'py, f64>,
    Option<Outputs>,
);

/// Adds the gain of every split, for every output, of the trees of rounds before `n_rounds` to
/// `importances` (p × d), and empties the list. One call, so that no signal comes in between.
#[pyfunction]
fn book_gains(
    pending: &Bound<'_, PyList>,
    n_rounds: usize,
    mut importances: PyReadwriteArray2<'_, f64>,
) -> PyResult<()> {
    let [p, d] = [importances.shape()[0], importances.shape()[1]];
    let importances = slice_mut(&mut importances)?;
    for entry in pending.iter() {
        let (round, tree, leaf_residuals, leaf_weights, output): Gains<'_> = entry.extract()?;
        if round >= n_rounds {
            continue;
        }
        let outputs = outputs_of(output, d)?;
        check_len("leaf_residuals", leaf_residuals.len(), tree.tree.n_leaves * outputs.len())?;
        let n_weights = if leaf_weights.shape()[1] == 1 { 1 } else { outputs.len() };
        check_len("leaf_weights", leaf_weights.len(), tree.tree.n_leaves * n_weights)?;
        let (features, gains) = core::leaf::split_gains(
            &tree.tree.nodes,
            slice(&leaf_residuals)?,
            slice(&leaf_weights)?,
            outputs.len(),
        )
        .map_err(to_py_err)?;
        for (&feature, gains) in features.iter().zip(gains.chunks(outputs.len())) {
            check_len("importances", p.max(feature as usize + 1), p)?;
            let row = &mut importances[feature as usize * d..][outputs.clone()];
            row.iter_mut().zip(gains).for_each(|(sum, gain)| *sum += gain);
        }
    }
    pending.del_slice(0, pending.len())
}

/// Exact steps along a direction for the pinball loss.
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
    output: Option<Outputs>,
) -> PyResult<Vector<'py>> {
    let d = raw.shape()[1];
    let outputs = outputs_of(output, d)?;
    check_len("levels", levels.len(), d)?;
    check_len("y", y.len(), raw.len())?;
    let direction = direction(&leaf_of_row, &values, raw.shape()[0], outputs.len())?;
    let weights = weights.view(raw.shape()[0], d)?;
    let (y, raw, levels) = (slice(&y)?, slice(&raw)?, slice(&levels)?);
    let steps = pool.run(py, |pool| {
        core::step::quantile_steps(pool, y, raw, d, outputs, levels, weights, direction)
    })?;
    Ok(steps.into_pyarray(py))
}

/// Σ w v g, or Σ w v g², of each output along a direction.
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
    output: Option<Outputs>,
) -> PyResult<Vector<'py>> {
    let d = cells.shape()[1];
    let outputs = outputs_of(output, d)?;
    let direction = direction(&leaf_of_row, &values, cells.shape()[0], outputs.len())?;
    let weights = weights.view(cells.shape()[0], d)?;
    let cells = slice(&cells)?;
    let sums = pool
        .run(py, |pool| core::step::dots(pool, cells, d, outputs, weights, direction, squared))?;
    Ok(sums.into_pyarray(py))
}

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
    cells: PyReadonlyArray2<'py, f64>,
    centre: PyReadonlyArray1<'py, f64>,
) -> PyResult<Option<Bound<'py, PyArray2<f32>>>> {
    let d = cells.shape()[1];
    check_len("centre", centre.len(), d)?;
    let (cells, centre) = (slice(&cells)?, slice(&centre)?);
    let values = pool.run(py, |pool| core::baseline::centred(pool, cells, d, centre))?;
    Ok(values.map(|values| matrix(py, values, d)))
}

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
    cells: PyReadonlyArray2<'py, f64>,
    weights: WeightArrays<'py>,
    levels: PyReadonlyArray1<'py, f64>,
    centre: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Vector<'py>> {
    let d = cells.shape()[1];
    check_len("levels", levels.len(), d)?;
    let weights = weights.view(cells.shape()[0], d)?;
    let (cells, levels, centre) = (slice(&cells)?, slice(&levels)?, optional(&centre)?);
    let quantiles = pool.run(py, |pool| {
        core::baseline::column_quantiles(pool, cells, d, weights, levels, centre)
    })?;
    Ok(quantiles.into_pyarray(py))
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
    check_len("a row of phi", phi.shape()[1], d)?;
    check_len("z", z.len(), residuals.shape()[0] * phi.shape()[0])?;
    let phi = if shares { Phi::shares(slice(&phi)?, d) } else { Phi::new(slice(&phi)?, d) };
    let (residuals, z) = (slice(&residuals)?, slice_mut(&mut z)?);
    pool.run(py, |pool| core::projection::project(pool, residuals, d, &phi, z))
}

/// Draws the projection matrix (q × d) of a round.
#[pyfunction]
fn draw_projection<'py>(
    py: Python<'py>,
    name: &str,
    n_components: usize,
    n_outputs: usize,
    sums_to_zero: bool,
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
    let key = Key::of(seed, round, 0, Purpose::Projection);
    let phi = core::projection::draw(projection, n_components, n_outputs, sums_to_zero, key)
        .map_err(to_py_err)?;
    Ok(matrix(py, phi, n_outputs))
}

/// The rows that a tree is grown on, ascending, chosen by their global numbers.
#[pyfunction]
fn sample_rows<'py>(
    py: Python<'py>,
    global_rows: PyReadonlyArray1<'py, u64>,
    count: usize,
    seed: u64,
    round: u64,
    output: u64,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let key = Key::of(seed, round, output, Purpose::Rows);
    let rows = slice(&global_rows)?;
    let chosen = py.detach(|| core::random::choose_rows(key, rows, count)).map_err(to_py_err)?;
    Ok(chosen.into_pyarray(py))
}

/// The rows set apart for validation, ascending, chosen by their global numbers.
#[pyfunction]
fn validation_rows<'py>(
    py: Python<'py>,
    global_rows: PyReadonlyArray1<'py, u64>,
    count: usize,
    seed: u64,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let key = Key::of(seed, 0, 0, Purpose::Validation);
    let rows = slice(&global_rows)?;
    let chosen = py.detach(|| core::random::choose_rows(key, rows, count)).map_err(to_py_err)?;
    Ok(chosen.into_pyarray(py))
}

/// Adds all functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(leaf_sums, module)?)?;
    module.add_function(wrap_pyfunction!(leaf_weights, module)?)?;
    module.add_function(wrap_pyfunction!(leaf_quantiles, module)?)?;
    module.add_function(wrap_pyfunction!(advance_residuals, module)?)?;
    module.add_function(wrap_pyfunction!(add_leaves, module)?)?;
    module.add_function(wrap_pyfunction!(book_gains, module)?)?;
    module.add_function(wrap_pyfunction!(quantile_steps, module)?)?;
    module.add_function(wrap_pyfunction!(dots, module)?)?;
    module.add_function(wrap_pyfunction!(centred, module)?)?;
    module.add_function(wrap_pyfunction!(column_sums, module)?)?;
    module.add_function(wrap_pyfunction!(column_quantiles, module)?)?;
    module.add_function(wrap_pyfunction!(project, module)?)?;
    module.add_function(wrap_pyfunction!(draw_projection, module)?)?;
    module.add_function(wrap_pyfunction!(sample_rows, module)?)?;
    module.add_function(wrap_pyfunction!(validation_rows, module)?)?;
    Ok(())
}
