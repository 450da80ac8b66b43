//! The formulas of a loss over many cells.
//!
//! Passes choose a loss once and call its kernels for blocks of cells. So a pass is compiled once
//! for each instruction set, and not once more for each loss and kind of target.

use std::ops::Range;

use super::fold;
use super::formula::{Extremes, Pointwise};
use crate::lowlevel::widest;
use crate::math;

/// Targets of cells, none of them missing.
#[derive(Clone, Copy)]
pub enum CellTargets<'a> {
    /// Real values.
    Real(&'a [f32]),
    /// 0/1 labels.
    Labels(&'a [u8]),
}

impl<'a> CellTargets<'a> {
    /// Those of some of the cells.
    #[inline(always)]
    pub(super) fn part(self, cells: Range<usize>) -> CellTargets<'a> {
        match self {
            CellTargets::Real(y) => CellTargets::Real(&y[cells]),
            CellTargets::Labels(y) => CellTargets::Labels(&y[cells]),
        }
    }
}

/// Cells side by side, in slices of one length: some outputs of one row, or of rows that follow each
/// other.
#[derive(Clone, Copy)]
pub struct Cells<'a, Y = CellTargets<'a>> {
    /// Targets, 0 where they are missing.
    pub y: Y,
    /// The trees' part of the raw predictions.
    pub raw: &'a [f32],
    /// The constant part of the raw predictions.
    pub offset: &'a [f32],
    /// Parameters of the loss.
    pub param: &'a [f32],
}

impl<'a, Y> Cells<'a, Y> {
    /// The same cells with targets of a known type.
    #[inline(always)]
    fn with<Z>(&self, y: Z) -> Cells<'a, Z> {
        Cells { y, raw: self.raw, offset: self.offset, param: self.param }
    }
}

impl<'a, Y> Cells<'a, &'a [Y]> {
    #[inline(always)]
    fn part(&self, start: usize, end: usize) -> Cells<'a, &'a [Y]> {
        Cells {
            y: &self.y[start..end],
            raw: &self.raw[start..end],
            offset: &self.offset[start..end],
            param: &self.param[start..end],
        }
    }
}

/// What cells with weights of their own give.
pub struct WeightedCells<'a> {
    /// Residuals.
    pub residuals: &'a mut [f32],
    /// Residuals times weights.
    pub weighted: &'a mut [f32],
    /// Losses times weights.
    pub values: &'a mut [f64],
}

/// A loss as passes use it. Every [`Pointwise`] loss is one.
pub trait CellKernels: Sync {
    /// Residuals into `out`; adds the loss of each row of `width` cells to `losses`.
    fn residuals(&self, cells: Cells<'_>, width: usize, out: &mut [f32], losses: &mut [f64]);
    /// Residuals and weighted losses of single cells. Cells of weight 0 get zeros, whatever their
    /// formulas give.
    fn weighted_residuals(
        &self,
        cells: Cells<'_, &[f32]>,
        weights: &[f32],
        into: WeightedCells<'_>,
    );
    /// Losses of single cells.
    fn values(&self, cells: Cells<'_>, out: &mut [f64]);
    /// Curvatures, given the residuals.
    fn curvatures(&self, y: &[f32], residuals: &[f32], param: &[f32], out: &mut [f32]);
    /// Residuals and curvatures of cells with targets `y` and raw predictions `f`.
    fn derivatives(&self, y: &[f32], f: &[f32], param: &[f32], into: (&mut [f32], &mut [f32]));
    /// [`Pointwise::bounds`].
    fn bounds(&self, param: f64) -> Option<(f64, f64)>;
    /// [`Pointwise::curvature_bound`].
    fn curvature_bound(&self, seen: Extremes) -> f64;
    /// [`Pointwise::IS_QUADRATIC`].
    fn is_quadratic(&self) -> bool;
    /// [`Pointwise::CURVATURE_USES_TARGET`].
    fn curvature_uses_target(&self) -> bool;
}

/// Cells evaluated together: factors of at most 2, whose product fits a double.
const BLOCK: usize = 256;

impl<L: Pointwise> CellKernels for L {
    fn residuals(&self, cells: Cells<'_>, width: usize, out: &mut [f32], losses: &mut [f64]) {
        match cells.y {
            CellTargets::Real(y) => rows_residuals(*self, cells.with(y), width, out, losses),
            CellTargets::Labels(y) => rows_residuals(*self, cells.with(y), width, out, losses),
        }
    }

    fn weighted_residuals(
        &self,
        cells: Cells<'_, &[f32]>,
        weights: &[f32],
        into: WeightedCells<'_>,
    ) {
        let formula = *self;
        widest(
            #[inline(always)]
            || {
                let m = weights.len();
                let Cells { y, raw, offset, param } = cells.part(0, m);
                let (residuals, weighted) = (&mut into.residuals[..m], &mut into.weighted[..m]);
                let values = &mut into.values[..m];
                for k in 0..m {
                    let parts = formula.parts(y[k], offset[k] + raw[k], param[k]);
                    let (r, value) = (parts.0, formula.joined(parts));
                    let observed = weights[k] > 0.0;
                    residuals[k] = if observed { r } else { 0.0 };
                    weighted[k] = if observed { weights[k] * r } else { 0.0 };
                    values[k] = if observed { f64::from(weights[k]) * value } else { 0.0 };
                }
            },
        );
    }

    fn values(&self, cells: Cells<'_>, out: &mut [f64]) {
        match cells.y {
            CellTargets::Real(y) => values(*self, cells.with(y), out),
            CellTargets::Labels(y) => values(*self, cells.with(y), out),
        }
    }

    fn curvatures(&self, y: &[f32], residuals: &[f32], param: &[f32], out: &mut [f32]) {
        let formula = *self;
        widest(
            #[inline(always)]
            || {
                let m = out.len();
                let (y, residuals, param) = (&y[..m], &residuals[..m], &param[..m]);
                for k in 0..m {
                    out[k] = formula.curvature(y[k], residuals[k], param[k]);
                }
            },
        );
    }

    fn derivatives(&self, y: &[f32], f: &[f32], param: &[f32], into: (&mut [f32], &mut [f32])) {
        let formula = *self;
        widest(
            #[inline(always)]
            || {
                let m = y.len();
                let (f, param) = (&f[..m], &param[..m]);
                let (residuals, curvatures) = (&mut into.0[..m], &mut into.1[..m]);
                for k in 0..m {
                    let r = formula.residual(y[k], f[k], param[k]);
                    residuals[k] = r;
                    curvatures[k] = formula.curvature(y[k], r, param[k]);
                }
            },
        );
    }

    fn bounds(&self, param: f64) -> Option<(f64, f64)> {
        Pointwise::bounds(*self, param)
    }

    fn curvature_bound(&self, seen: Extremes) -> f64 {
        Pointwise::curvature_bound(*self, seen)
    }

    fn is_quadratic(&self) -> bool {
        L::IS_QUADRATIC
    }

    fn curvature_uses_target(&self) -> bool {
        L::CURVATURE_USES_TARGET
    }
}

/// Values and factors of up to [`BLOCK`] cells.
type Room = ([f32; BLOCK], [f32; BLOCK]);

/// [`CellKernels::residuals`] for one type of targets.
fn rows_residuals<L: Pointwise, Y: Copy + Into<f32>>(
    formula: L,
    cells: Cells<'_, &[Y]>,
    width: usize,
    out: &mut [f32],
    losses: &mut [f64],
) {
    widest(
        #[inline(always)]
        || {
            let mut room = ([0.0; BLOCK], [0.0; BLOCK]);
            if width > BLOCK {
                for (row, loss) in losses.iter_mut().enumerate() {
                    let row = row * width..(row + 1) * width;
                    *loss += row_loss(formula, cells, row, out, &mut room);
                }
                return;
            }
            // Short rows: several at once, so that lanes are full.
            let rows = BLOCK / width.max(1);
            for (chunk, losses) in losses.chunks_mut(rows).enumerate() {
                let start = chunk * rows * width;
                let end = start + losses.len() * width;
                let out = &mut out[start..end];
                evaluate(formula, cells.part(start, end), out, &mut room);
                for (row, loss) in losses.iter_mut().enumerate() {
                    let cells = row * width..(row + 1) * width;
                    let (values, factors) = (&room.0[cells.clone()], &room.1[cells.clone()]);
                    *loss += add_loss::<L>(0.0, &out[cells], values, factors);
                }
            }
        },
    );
}

/// [`CellKernels::values`] for one type of targets.
fn values<L: Pointwise, Y: Copy + Into<f32>>(formula: L, cells: Cells<'_, &[Y]>, out: &mut [f64]) {
    widest(
        #[inline(always)]
        || {
            let cells = cells.part(0, out.len());
            for (k, out) in out.iter_mut().enumerate() {
                let f = cells.offset[k] + cells.raw[k];
                *out = formula.value(cells.y[k].into(), f, cells.param[k]);
            }
        },
    );
}

/// Residuals of one long row; returns its loss.
#[inline(always)]
fn row_loss<L: Pointwise, Y: Copy + Into<f32>>(
    formula: L,
    cells: Cells<'_, &[Y]>,
    row: Range<usize>,
    out: &mut [f32],
    room: &mut Room,
) -> f64 {
    let mut total = 0.0;
    for start in row.clone().step_by(BLOCK) {
        let end = (start + BLOCK).min(row.end);
        let out = &mut out[start..end];
        evaluate(formula, cells.part(start, end), out, room);
        total = add_loss::<L>(total, out, &room.0[..out.len()], &room.1[..out.len()]);
    }
    total
}

/// Residuals into `out`, and the two parts of the values.
#[inline(always)]
fn evaluate<L: Pointwise, Y: Copy + Into<f32>>(
    formula: L,
    cells: Cells<'_, &[Y]>,
    out: &mut [f32],
    room: &mut Room,
) {
    let m = out.len();
    let Cells { y, raw, offset, param } = cells.part(0, m);
    let (values, factors) = (&mut room.0[..m], &mut room.1[..m]);
    for k in 0..m {
        let (r, value, e) = formula.parts(y[k].into(), offset[k] + raw[k], param[k]);
        out[k] = r;
        values[k] = value;
        if L::HAS_LOG {
            factors[k] = e;
        }
    }
}

/// Adds the losses of up to [`BLOCK`] cells of one row.
#[inline(always)]
fn add_loss<L: Pointwise>(total: f64, residuals: &[f32], values: &[f32], factors: &[f32]) -> f64 {
    if L::IS_PRODUCT {
        return total + fold::dot(residuals, values);
    }
    let total = total + fold::sum(values);
    if L::HAS_LOG { total + math::ln(fold::product_of_one_plus(factors)) } else { total }
}
