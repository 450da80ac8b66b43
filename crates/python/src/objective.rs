//! Built-in losses over the training state.

use manyboost_core as core;
use manyboost_core::leaf::Curvatures;
use manyboost_core::losses::{self, Extremes, Loss, Losses, Run, Shares};
use manyboost_core::step::Along;
use manyboost_core::weights::Weights;
use numpy::{
    IntoPyArray, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{
    Matrix, OutputNumbers, TargetArray, Vector, WeightArrays, check_len, optional, outputs_of,
    slice, slice_mut,
};
use crate::leaves::{LeafSumArrays, optional_update};
use crate::pool::{Pool, to_py_err};
use crate::projection::{optional_phi, optional_projection, optional_shares};
use crate::steps::direction;

/// The name of a loss for all outputs, or those of neighbouring outputs with their number.
#[derive(FromPyObject)]
enum LossNames {
    All(String),
    Runs(Vec<(String, usize)>),
}

fn loss_named(name: &str) -> PyResult<Loss> {
    Ok(match name {
        "squared_error" => Loss::Squared,
        "squared_labels" => Loss::SquaredLabels,
        "absolute_error" => Loss::Absolute,
        "huber" => Loss::Huber,
        "quantile" => Loss::Quantile,
        "poisson" => Loss::Poisson,
        "gamma" => Loss::Gamma,
        "tweedie" => Loss::Tweedie,
        "log_loss" => Loss::Logistic,
        "exponential" => Loss::Exponential,
        "softmax" => Loss::Softmax,
        other => return Err(PyValueError::new_err(format!("there is no loss {other:?}"))),
    })
}

/// Built-in losses with their constants: one offset and one parameter per output.
#[pyclass(frozen, module = "manyboost._core")]
pub struct Objective {
    losses: Losses,
}

// The arguments are the arrays of a call from Python, most of them by name.
#[allow(clippy::too_many_arguments)]
#[pymethods]
impl Objective {
    #[new]
    fn new(
        loss: LossNames,
        offset: PyReadonlyArray1<'_, f32>,
        param: PyReadonlyArray1<'_, f32>,
    ) -> PyResult<Objective> {
        let (offset, param) = (slice(&offset)?.to_vec(), slice(&param)?.to_vec());
        let named = match loss {
            LossNames::All(name) => vec![(name, offset.len())],
            LossNames::Runs(runs) => runs,
        };
        let (mut runs, mut start) = (Vec::new(), 0usize);
        for (name, count) in named {
            let end = start.saturating_add(count);
            runs.push(Run { loss: loss_named(&name)?, outputs: start..end });
            start = end;
        }
        Ok(Objective { losses: Losses::of_runs(runs, offset, param).map_err(to_py_err)? })
    }

    /// Adds leaf values to `raw`, takes the residuals (negative gradients) there into `out`, and
    /// projects them by `phi` into `z`, all in one pass; update and projection are optional. If
    /// cells are weighted, `z` is that of the weighted residuals, and `omega` gets the weights of the
    /// components, by the squares of `shares`. Returns the weighted loss and the largest weighted
    /// |residual| of each output.
    #[pyo3(signature = (pool, y, raw, weights, out, *, leaf_of_row=None, values=None, steps=None, phi=None, z=None, omega=None, shares=None))]
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
        shares: Option<PyReadonlyArray2<'py, f32>>,
    ) -> PyResult<(f64, Vector<'py>)> {
        let (n, d) = (raw.shape()[0], raw.shape()[1]);
        let weights = weights.view(n, d)?;
        let objective = self.bind(&y, weights, [n, d])?;
        check_len("out", out.len(), raw.len())?;
        let update = optional_update(&leaf_of_row, &values, &steps, n, d)?;
        let phi = optional_phi(&phi, d)?;
        let shares = if weights.by_cell() { optional_shares(&shares, d)? } else { None };
        let mut projected = optional_projection(&phi, &mut z, n)?;
        if let Some(projected) = projected.as_mut().filter(|_| weights.by_cell()) {
            let (Some(phi), Some(omega)) = (&shares, &mut omega) else {
                return Err(PyValueError::new_err(
                    "cells have weights of their own: a projection needs shares and omega",
                ));
            };
            check_len("omega", omega.len(), n * phi.n_components())?;
            projected.shares = Some(Shares { phi, omega: slice_mut(omega)? });
        }
        let (raw, out) = (slice_mut(&mut raw)?, slice_mut(&mut out)?);
        let pass =
            pool.run(py, |pool| losses::advance(pool, objective, raw, out, update, projected))?;
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
        let objective = self.objective(&y, &weights, &raw)?;
        let raw = slice(&raw)?;
        pool.run(py, |pool| losses::loss_sum(pool, objective, raw))
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
        let objective = self.objective(&y, &weights, &raw)?;
        let raw = slice(&raw)?;
        let sums = pool.run(py, |pool| losses::output_losses(pool, objective, raw))?;
        Ok(sums.into_pyarray(py))
    }

    /// Bounds on the weighted curvature of each output. All arrays have one number per output: the
    /// largest weight of a cell, the largest weighted |residual|, and the largest target, which only
    /// matters if `curvature_uses_target`.
    fn curvature_bound<'py>(
        &self,
        py: Python<'py>,
        heaviest: PyReadonlyArray1<'_, f64>,
        max_residual: PyReadonlyArray1<'_, f64>,
        largest_target: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Vector<'py>> {
        let d = self.losses.n_outputs();
        check_len("heaviest", heaviest.len(), d)?;
        check_len("max_residual", max_residual.len(), d)?;
        check_len("largest_target", largest_target.len(), d)?;
        let (weight, residual) = (slice(&heaviest)?, slice(&max_residual)?);
        let target = slice(&largest_target)?;
        let seen =
            |j: usize| Extremes { weight: weight[j], residual: residual[j], target: target[j] };
        Ok(self.losses.curvature_bounds(seen).into_pyarray(py))
    }

    /// Whether the curvature of any output, and so its bound, depends on the targets.
    #[getter]
    fn curvature_uses_target(&self) -> bool {
        self.losses.curvature_uses_target()
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
        let shape = [residuals.shape()[0], residuals.shape()[1]];
        let objective = self.bind(&y, Weights::default(), shape)?;
        check_len("out", out.len(), residuals.len())?;
        let (residuals, out) = (slice(&residuals)?, slice_mut(&mut out)?);
        pool.run(py, |pool| losses::curvatures(pool, objective, residuals, out))
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
        output: Option<OutputNumbers>,
        active: Option<PyReadonlyArray1<'py, bool>>,
    ) -> PyResult<(Vector<'py>, Vector<'py>)> {
        let objective = self.objective(&y, &weights, &raw)?;
        let outputs = outputs_of(output, self.losses.n_outputs())?.range;
        check_len("rho", rho.len(), outputs.len())?;
        let active = optional(&active)?;
        check_len("active", active.map_or(outputs.len(), <[bool]>::len), outputs.len())?;
        let direction = direction(&leaf_of_row, &values, raw.shape()[0], outputs.len())?;
        let (raw, rho) = (slice(&raw)?, slice(&rho)?);
        let along = Along { objective, raw, direction, outputs };
        let (slope, curve) =
            pool.run(py, |pool| core::step::derivatives(pool, &along, rho, active))?;
        Ok((slope.into_pyarray(py), curve.into_pyarray(py)))
    }

    /// Softmax along a direction: loss, gradient with respect to rho, Hessian times `v`.
    #[pyo3(signature = (pool, y, raw, weights, leaf_of_row, values, rho, v, output=None))]
    fn softmax_along<'py>(
        &self,
        py: Python<'py>,
        pool: &Pool,
        y: TargetArray<'py>,
        raw: PyReadonlyArray2<'py, f32>,
        weights: WeightArrays<'py>,
        leaf_of_row: Option<PyReadonlyArray1<'py, u32>>,
        values: PyReadonlyArray2<'py, f32>,
        rho: PyReadonlyArray1<'py, f64>,
        v: PyReadonlyArray1<'py, f64>,
        output: Option<OutputNumbers>,
    ) -> PyResult<(f64, Vector<'py>, Vector<'py>)> {
        let objective = self.objective(&y, &weights, &raw)?;
        let outputs = outputs_of(output, self.losses.n_outputs())?.range;
        check_len("rho", rho.len(), outputs.len())?;
        check_len("v", v.len(), outputs.len())?;
        let direction = direction(&leaf_of_row, &values, raw.shape()[0], outputs.len())?;
        let (raw, rho, v) = (slice(&raw)?, slice(&rho)?, slice(&v)?);
        let along = Along { objective, raw, direction, outputs };
        let (loss, slope, product) =
            pool.run(py, |pool| core::step::softmax_along(pool, &along, rho, v))?;
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
        output: Option<OutputNumbers>,
    ) -> PyResult<(Matrix<'py>, Matrix<'py>)> {
        let objective = self.objective(&y, &weights, &residuals)?;
        let outputs = outputs_of(output, self.losses.n_outputs())?;
        let arrays = LeafSumArrays {
            leaf_of_row: &tree_leaves,
            n_leaves,
            residuals: &residuals,
            weights: &weights,
            max_residual: &max_residual,
            max_curvature: &max_curvature,
        };
        let (sums, curves) = arrays.sums(py, pool, Curvatures::Formula(objective), &outputs)?;
        Ok((sums, curves.unwrap_or_else(|| unreachable!("curvatures were asked for"))))
    }
}

impl Objective {
    /// The losses bound to targets and weights, if they fit the cells of a matrix.
    fn objective<'a>(
        &'a self,
        y: &'a TargetArray<'_>,
        weights: &'a WeightArrays<'_>,
        cells: &PyReadonlyArray2<'_, f32>,
    ) -> PyResult<losses::Objective<'a>> {
        let [n, d] = [cells.shape()[0], cells.shape()[1]];
        self.bind(y, weights.view(n, d)?, [n, d])
    }

    fn bind<'a>(
        &'a self,
        y: &'a TargetArray<'_>,
        weights: Weights<'a>,
        [n, d]: [usize; 2],
    ) -> PyResult<losses::Objective<'a>> {
        check_len("a row", d, self.losses.n_outputs())?;
        losses::Objective::new(&self.losses, y.view()?, weights, n).map_err(to_py_err)
    }
}
