//! The formulas of a loss over many cells.
//!
//! Passes choose a loss once and call its kernels for blocks of cells. So a pass is compiled once
//! for each instruction set, and not once more for each loss and kind of target.

use std::ops::Range;

use super::fold;
use super::formula::{Extremes, Pointwise, Target};
use crate::lowlevel::widest;
use crate::math;
use crate::reduce::round_with_offset;

/// Targets of cells, none of them missing.
#[derive(Clone, Copy)]
pub enum CellTargets<'a> {
    /// Real values.
    Real(&'a [f32]),
    /// 0/1 labels.
    Labels(&'a [u8]),
}

impl<'a> Cells<'a> {
    /// Some of the cells.
    #[inline(always)]
    pub(super) fn between(&self, start: usize, end: usize) -> Cells<'a> {
        Cells {
            y: self.y.part(start..end),
            raw: &self.raw[start..end],
            offset: &self.offset[start..end],
            param: &self.param[start..end],
        }
    }
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

/// Four rows of one leaf, in slices of one length.
#[derive(Clone, Copy)]
pub struct LeafRows<'a> {
    /// Targets, unused unless curvatures depend on them.
    pub y: [&'a [f32]; 4],
    /// Residuals.
    pub residuals: [&'a [f32]; 4],
    /// Weights of the rows.
    pub weights: [f64; 4],
}

/// What four cells of one output add to its sum: integers, each with its offset.
#[inline(always)]
pub(crate) fn sum_of_four(values: [f32; 4], weights: [f64; 4], scale: f64) -> i64 {
    let value = |k: usize| round_with_offset(f64::from(values[k]) * weights[k] * scale);
    (value(0).wrapping_add(value(1))).wrapping_add(value(2).wrapping_add(value(3)))
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
    /// Adds residuals and curvatures of rows of one leaf to its sums, given the parameters of the
    /// outputs and the scales of both sums.
    fn add_leaf_rows(
        &self,
        rows: LeafRows<'_>,
        param: &[f32],
        scales: [&[f64]; 2],
        sums: [&mut [i64]; 2],
    );
    /// Residuals and curvatures of cells with targets `y` and raw predictions `f`.
    fn derivatives(&self, y: &[f32], f: &[f32], param: &[f32], into: (&mut [f32], &mut [f32]));
    /// [`Pointwise::bounds`].
    fn bounds(&self, param: f64) -> Option<(f64, f64)>;
    /// [`Pointwise::curvature_bound`].
    fn curvature_bound(&self, seen: Extremes) -> f64;
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

    fn add_leaf_rows(
        &self,
        rows: LeafRows<'_>,
        param: &[f32],
        scales: [&[f64]; 2],
        sums: [&mut [i64]; 2],
    ) {
        let formula = *self;
        widest(
            #[inline(always)]
            || {
                let [sums, curvatures] = sums;
                // Compiled apart, since most rows have no weight.
                if rows.weights == [1.0; 4] {
                    let rows = LeafRows { weights: [1.0; 4], ..rows };
                    add_leaf_rows(formula, rows, param, scales, sums, curvatures);
                } else {
                    add_leaf_rows(formula, rows, param, scales, sums, curvatures);
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

    fn curvature_uses_target(&self) -> bool {
        L::CURVATURE_USES_TARGET
    }
}

/// Values and factors of up to [`BLOCK`] cells.
type Room = ([f32; BLOCK], [f32; BLOCK]);

/// [`CellKernels::residuals`] for one type of targets.
fn rows_residuals<L: Pointwise, Y: Target>(
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
            let mut products = [1.0; BLOCK];
            for (chunk, losses) in losses.chunks_mut(rows).enumerate() {
                let start = chunk * rows * width;
                let end = start + losses.len() * width;
                let out = &mut out[start..end];
                evaluate(formula, cells.part(start, end), out, &mut room);
                for (row, loss) in losses.iter_mut().enumerate() {
                    let cells = row * width..(row + 1) * width;
                    *loss += plain_loss::<L>(&out[cells.clone()], &room.0[cells.clone()]);
                    if L::HAS_LOG {
                        products[row] = fold::product_of_one_plus(&room.1[cells]);
                    }
                }
                if L::HAS_LOG {
                    losses.iter_mut().zip(&products).for_each(|(loss, &p)| *loss += math::ln(p));
                }
            }
        },
    );
}

/// [`CellKernels::add_leaf_rows`].
#[inline(always)]
fn add_leaf_rows<L: Pointwise>(
    formula: L,
    rows: LeafRows<'_>,
    param: &[f32],
    scales: [&[f64]; 2],
    sums: &mut [i64],
    curvatures: &mut [i64],
) {
    let m = sums.len();
    let (r, y) = (rows.residuals.map(|r| &r[..m]), rows.y.map(|y| &y[..m]));
    let (param, curvatures) = (&param[..m], &mut curvatures[..m]);
    let [scale, curvature_scale] = scales.map(|scale| &scale[..m]);
    for j in 0..m {
        let h = std::array::from_fn(|k| formula.curvature(y[k][j], r[k][j], param[j]));
        let sum = sum_of_four(r.map(|r| r[j]), rows.weights, scale[j]);
        let curvature = sum_of_four(h, rows.weights, curvature_scale[j]);
        sums[j] = sums[j].wrapping_add(sum);
        curvatures[j] = curvatures[j].wrapping_add(curvature);
    }
}

/// [`CellKernels::values`] for one type of targets.
fn values<L: Pointwise, Y: Target>(formula: L, cells: Cells<'_, &[Y]>, out: &mut [f64]) {
    widest(
        #[inline(always)]
        || {
            let cells = cells.part(0, out.len());
            for (k, out) in out.iter_mut().enumerate() {
                let f = cells.offset[k] + cells.raw[k];
                *out = formula.value(cells.y[k], f, cells.param[k]);
            }
        },
    );
}

/// Residuals of one long row; returns its loss.
#[inline(always)]
fn row_loss<L: Pointwise, Y: Target>(
    formula: L,
    cells: Cells<'_, &[Y]>,
    row: Range<usize>,
    out: &mut [f32],
    room: &mut Room,
) -> f64 {
    let mut total = 0.0;
    let size = if L::HAS_LOG { LOG_BLOCK } else { BLOCK };
    for start in row.clone().step_by(size) {
        let end = (start + size).min(row.end);
        let (cells, out) = (cells.part(start, end), &mut out[start..end]);
        if L::HAS_LOG {
            total += logged_loss(formula, cells, out);
        } else {
            evaluate(formula, cells, out, room);
            total += plain_loss::<L>(out, &room.0[..out.len()]);
        }
    }
    total
}

/// Lanes of [`logged_loss`].
const LANES: usize = 16;
/// Cells of a long row that share a logarithm: 32 factors of at most 2 in each lane, and 32 values whose
/// sum stays finite, since offsets are at most 1e37.
const LOG_BLOCK: usize = 32 * LANES;

/// Residuals of up to [`LOG_BLOCK`] cells of one row; returns their loss, of which a part is
/// ln Π (1 + e).
#[inline(always)]
fn logged_loss<L: Pointwise, Y: Target>(
    formula: L,
    cells: Cells<'_, &[Y]>,
    out: &mut [f32],
) -> f64 {
    // Σ v and Π (1 + e) − 1 in each lane. Without the 1, small e keep their digits.
    let (mut sum, mut product) = ([0.0f32; LANES], [0.0f32; LANES]);
    let Cells { y, raw, offset, param } = cells.part(0, out.len());
    let full = out.len() / LANES * LANES;
    for start in (0..full).step_by(LANES) {
        let at = start..start + LANES;
        let (y, raw) = (&y[at.clone()], &raw[at.clone()]);
        let (offset, param, out) = (&offset[at.clone()], &param[at.clone()], &mut out[at]);
        for k in 0..LANES {
            let (r, v, e) = formula.parts(y[k], offset[k] + raw[k], param[k]);
            out[k] = r;
            sum[k] += v;
            product[k] += e + product[k] * e;
        }
    }
    for (k, at) in (full..out.len()).enumerate() {
        let (r, v, e) = formula.parts(y[at], offset[at] + raw[at], param[at]);
        out[at] = r;
        sum[k] += v;
        product[k] += e + product[k] * e;
    }
    fold::sum(&sum) + math::ln(fold::product_of_one_plus(&product))
}

/// Residuals into `out`, and the two parts of the values.
#[inline(always)]
fn evaluate<L: Pointwise, Y: Target>(
    formula: L,
    cells: Cells<'_, &[Y]>,
    out: &mut [f32],
    room: &mut Room,
) {
    let m = out.len();
    let Cells { y, raw, offset, param } = cells.part(0, m);
    let (values, factors) = (&mut room.0[..m], &mut room.1[..m]);
    for k in 0..m {
        let (r, value, e) = formula.parts(y[k], offset[k] + raw[k], param[k]);
        out[k] = r;
        values[k] = value;
        if L::HAS_LOG {
            factors[k] = e;
        }
    }
}

/// The losses of up to [`BLOCK`] cells of one row, without their logarithms.
#[inline(always)]
fn plain_loss<L: Pointwise>(residuals: &[f32], values: &[f32]) -> f64 {
    if L::IS_PRODUCT { fold::dot(residuals, values) } else { fold::sum(values) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::formula::Logistic;

    const D: usize = 1003;

    /// Labels and raw predictions, on the right side of 0 at a distance of `far` or more if given.
    fn cells(far: Option<f32>) -> (Vec<u8>, Vec<f32>) {
        let mut stream = crate::random::Key::new(3).stream();
        let labels: Vec<u8> = (0..D).map(|_| stream.below(2) as u8).collect();
        let raw = labels.iter().map(|&y| {
            let f = 4.0 * stream.normals().0 as f32;
            let sign = f32::from(y) * 2.0 - 1.0;
            far.map_or(f, |far| sign * (far + f.abs()))
        });
        let raw = raw.collect();
        (labels, raw)
    }

    #[inline(always)]
    fn evaluated<Y: Target>(y: &[Y], raw: &[f32]) -> (f64, Vec<f32>) {
        let (zeros, mut out) = (vec![0.0; D], vec![0.0; D]);
        let cells = Cells { y, raw, offset: &zeros, param: &zeros };
        let mut room = ([0.0; BLOCK], [0.0; BLOCK]);
        let loss = row_loss(Logistic, cells, 0..D, &mut out, &mut room);
        (loss, out)
    }

    #[test]
    fn the_loss_of_a_long_row_keeps_its_digits() {
        for far in [None, Some(0.0), Some(12.0)] {
            let (labels, raw) = cells(far);
            let (loss, residuals) = evaluated(&labels, &raw);
            let mut exact = 0.0;
            for ((&y, &f), &r) in labels.iter().zip(&raw).zip(&residuals) {
                let margin = f64::from(f) * (2.0 * f64::from(y) - 1.0);
                exact += (-margin).exp().ln_1p();
                let p = (2.0 * f64::from(y) - 1.0) / (1.0 + margin.exp());
                assert!((f64::from(r) - p).abs() <= 3e-6 * p.abs(), "{r} {p}");
            }
            assert!((loss - exact).abs() <= 1e-6 * exact, "{far:?} {loss} {exact}");
        }
    }

    #[test]
    fn the_loss_of_the_largest_offsets_is_finite() {
        let (loss, _) = evaluated(&[1u8; D], &[-1e37; D]);
        assert!((loss / (D as f64 * 1e37) - 1.0).abs() < 1e-5, "{loss}");
    }

    #[test]
    fn kinds_of_targets_and_instruction_sets_give_the_same_bits() {
        let (labels, raw) = cells(None);
        let real: Vec<f32> = labels.iter().map(|&y| f32::from(y)).collect();
        let expected = evaluated(&labels, &raw);
        assert_eq!(evaluated(&real, &raw), expected);
        let widest = widest(
            #[inline(always)]
            || evaluated(&labels, &raw),
        );
        assert_eq!(widest, expected);
    }
}
