//! The losses of blocks of rows: targets of any kind, any mixture of losses, weights of any kind.

use std::ops::Range;

use super::fold;
use super::kernels::{CellKernels, CellTargets, Cells, WeightedCells};
use super::softmax::softmax_residuals;
use super::{Loss, Objective, Targets};
use crate::error::Result;
use crate::lowlevel::widest;
use crate::parallel::Pool;
use crate::reduce::FixedPoint;
use crate::weights::{Cell, Weights};
use crate::{with_cells, with_weights};

/// Cells of the rows that are handled together: they stay in the nearest cache.
const BLOCK_CELLS: usize = 1024;

/// How many rows of `width` cells are handled together.
pub(crate) fn rows_per_block(width: usize) -> usize {
    (BLOCK_CELLS / width.max(1)).max(1)
}

/// `values` once for each of `n_rows` rows.
pub(crate) fn tiled(values: &[f32], n_rows: usize) -> Vec<f32> {
    values.iter().copied().cycle().take(values.len() * n_rows).collect()
}

/// An objective, ready to be evaluated for blocks of rows.
pub(super) struct RowLosses<'a> {
    pub objective: Objective<'a>,
    /// What weights are multiplied by so that products with them stay within single precision.
    pub scale: FixedPoint,
    /// Most rows of a block.
    pub block: usize,
    /// Constants of each cell of a block.
    offset: Vec<f32>,
    param: Vec<f32>,
}

/// What the rows of a block give beside their residuals.
pub(super) struct Block {
    /// Targets, 0 where they are missing. Unused unless weights are by cell.
    y: Vec<f32>,
    /// Scaled weight of each cell, 0 where the target is missing. Unused unless weights are by cell.
    pub weights: Vec<f32>,
    /// Residuals times these weights.
    pub weighted: Vec<f32>,
    /// Losses of single cells, times these weights if weights are by cell.
    pub values: Vec<f64>,
    /// Weighted loss of each row.
    pub losses: Vec<f64>,
    /// What the residuals of each row are to be multiplied by to be weighted, scaled.
    pub factors: Vec<f32>,
}

impl<'a> RowLosses<'a> {
    pub fn new(pool: &Pool, objective: Objective<'a>) -> Result<RowLosses<'a>> {
        let scale = objective.weights.scale(pool)?;
        Ok(RowLosses::scaled(objective, scale))
    }

    pub fn scaled(objective: Objective<'a>, scale: FixedPoint) -> RowLosses<'a> {
        let block = rows_per_block(objective.n_outputs());
        let tiled = |values: &[f32]| tiled(values, block);
        let (offset, param) = (tiled(&objective.losses.offset), tiled(&objective.losses.param));
        RowLosses { objective, scale, block, offset, param }
    }

    /// Room for a block.
    pub fn room(&self) -> Block {
        let size = self.offset.len();
        let by_cell = if self.objective.weights.by_cell() { size } else { 0 };
        Block {
            y: vec![0.0; by_cell],
            weights: vec![0.0; by_cell],
            weighted: vec![0.0; by_cell],
            values: vec![0.0; size],
            losses: vec![0.0; self.block],
            factors: vec![0.0; self.block],
        }
    }

    /// Blocks of the given rows.
    pub fn blocks(&self, rows: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let (end, block) = (rows.end, self.block);
        rows.step_by(block).map(move |start| start..(start + block).min(end))
    }

    /// Residuals of a block of rows into `out`, and what [`Block`] says of them. `raw` and `out`
    /// begin with the first row of the block.
    pub fn residuals(&self, rows: Range<usize>, raw: &[f32], out: &mut [f32], block: &mut Block) {
        let Objective { targets, weights, .. } = self.objective;
        block.losses[..rows.len()].fill(0.0);
        if weights.by_cell() {
            self.weighted_residuals(rows.clone(), raw, out, block);
            for row in 0..rows.len() {
                block.losses[row] *= self.scale.unit;
                block.factors[row] = 1.0;
            }
            return;
        }
        if let Targets::Classes(y) = targets {
            self.softmax_residuals(&y[rows.clone()], raw, out, &mut block.losses);
        } else {
            let (y, losses) = (self.targets(rows.clone()), &mut block.losses);
            self.each_segment(rows.len(), |kernels, row, cells, width| {
                let (at, losses) =
                    (self.cells(y.part(cells.clone()), raw, &cells), &mut losses[row]);
                kernels.residuals(at, width, &mut out[cells], losses);
            });
        }
        for (row, i) in rows.enumerate() {
            let weight = weights.row(i);
            block.losses[row] *= weight;
            block.factors[row] = (weight * self.scale.scale) as f32;
        }
    }

    /// Losses of the single cells of a block of rows, into [`Block::values`].
    pub fn values(&self, rows: Range<usize>, raw: &[f32], block: &mut Block) {
        let weights = self.objective.weights;
        let m = rows.len() * self.objective.n_outputs();
        if weights.by_cell() {
            self.take_cells(rows.clone(), block);
        }
        let Block { y, values, weights: masses, .. } = block;
        let y = if weights.by_cell() { CellTargets::Real(y) } else { self.targets(rows.clone()) };
        self.each_segment(rows.len(), |kernels, _, cells, _| {
            let at = self.cells(y.part(cells.clone()), raw, &cells);
            kernels.values(at, &mut values[cells]);
        });
        if weights.by_cell() {
            for (value, &weight) in values[..m].iter_mut().zip(&masses[..]) {
                *value = if weight > 0.0 { f64::from(weight) * *value } else { 0.0 };
            }
        }
    }

    /// Calls `f(kernels, rows, cells, width)` for cells that lie side by side and share a loss:
    /// rows of the block, places in the block, cells of a row. Those of softmax are of one row.
    fn each_segment(
        &self,
        n_rows: usize,
        mut f: impl FnMut(&dyn CellKernels, Range<usize>, Range<usize>, usize),
    ) {
        let d = self.objective.n_outputs();
        match &self.objective.losses.runs[..] {
            [run] if run.loss != Loss::Softmax => {
                f(run.loss.kernels(), 0..n_rows, 0..n_rows * d, d);
            }
            runs => {
                for row in 0..n_rows {
                    for run in runs {
                        let cells = row * d + run.outputs.start..row * d + run.outputs.end;
                        f(run.loss.kernels(), row..row + 1, cells, run.outputs.len());
                    }
                }
            }
        }
    }

    fn cells<'b, Y>(&'b self, y: Y, raw: &'b [f32], cells: &Range<usize>) -> Cells<'b, Y> {
        Cells {
            y,
            raw: &raw[cells.clone()],
            offset: &self.offset[cells.clone()],
            param: &self.param[cells.clone()],
        }
    }

    /// The targets of a block of rows, none of them missing.
    fn targets(&self, rows: Range<usize>) -> CellTargets<'a> {
        let d = self.objective.n_outputs();
        let cells = rows.start * d..rows.end * d;
        match self.objective.targets {
            Targets::Real(y) => CellTargets::Real(&y[cells]),
            Targets::Labels(y) => CellTargets::Labels(&y[cells]),
            Targets::Classes(_) => CellTargets::Real(&[]),
        }
    }

    fn softmax_residuals(&self, y: &[u32], raw: &[f32], out: &mut [f32], losses: &mut [f64]) {
        let offset = &self.offset[..self.objective.n_outputs()];
        widest(
            #[inline(always)]
            || softmax_residuals(y, raw, offset, out, losses),
        );
    }

    /// [`RowLosses::residuals`] where cells have weights of their own or targets are missing.
    fn weighted_residuals(
        &self,
        rows: Range<usize>,
        raw: &[f32],
        out: &mut [f32],
        block: &mut Block,
    ) {
        self.take_cells(rows.clone(), block);
        let Block { y, weights, weighted, values, losses, .. } = block;
        self.each_segment(rows.len(), |kernels, rows, cells, width| {
            let at = self.cells(&y[cells.clone()], raw, &cells);
            let into = WeightedCells {
                residuals: &mut out[cells.clone()],
                weighted: &mut weighted[cells.clone()],
                values: &mut values[cells.clone()],
            };
            kernels.weighted_residuals(at, &weights[cells.clone()], into);
            let rows = losses[rows].iter_mut().zip(values[cells].chunks_exact(width));
            widest(
                #[inline(always)]
                || rows.for_each(|(loss, values)| *loss += fold::sum(values)),
            );
        });
    }

    /// Targets and weights of the cells of a block of rows, both 0 where a target is missing.
    fn take_cells(&self, rows: Range<usize>, block: &mut Block) {
        let Objective { targets, weights, .. } = self.objective;
        let d = self.objective.n_outputs();
        // Rows without a weight of their own are one long row.
        let n_rows = if weights.rows.is_none() { rows.len() } else { 1 };
        let width = n_rows * d;
        let into = block.y.chunks_mut(width).zip(block.weights.chunks_mut(width));
        with_cells!(targets, y => widest(#[inline(always)] || {
            for (i, (targets, masses)) in rows.clone().step_by(n_rows).zip(into) {
                let y = &y[i * d..i * d + width];
                take_row(weights, (i, i * d), y, self.scale.scale, (targets, masses));
            }
        }));
    }
}

#[inline(always)]
fn take_row<Y: Cell + Into<f32>>(
    weights: Weights<'_>,
    (i, first): (usize, usize),
    y: &[Y],
    scale: f64,
    (targets, masses): (&mut [f32], &mut [f32]),
) {
    let d = y.len();
    let (targets, masses) = (&mut targets[..d], &mut masses[..d]);
    with_weights!(weights, i, first..first + d, weight => for j in 0..d {
        let target: f32 = y[j].into();
        targets[j] = if y[j].is_missing() { 0.0 } else { target };
        // The lightest stay positive: their cells are there.
        let mass = ((weight(j) * scale) as f32).max(f32::MIN_POSITIVE);
        masses[j] = if y[j].is_missing() { 0.0 } else { mass };
    });
}
