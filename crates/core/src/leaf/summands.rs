//! What is summed over leaves: numbers in a matrix, or numbers to be evaluated first.

use std::ops::Range;

use super::tables::{LANES, LeafTables};
use crate::losses::{CellKernels, Targets, tiled};
use crate::weights::Cell;
use crate::with_cells;

/// What is summed, times the weight of its cell.
#[derive(Clone, Copy)]
pub(super) enum Summand<'a> {
    /// Numbers in a matrix, n × d, zero where a target is missing.
    Matrix(&'a [f32]),
    /// Curvatures by formula.
    Curvature {
        kernels: &'a dyn CellKernels,
        targets: Targets<'a>,
        param: &'a [f32],
        residuals: &'a [f32],
    },
    /// 1 where there is a target.
    Presence(Targets<'a>),
}

/// Cells of some rows and of a block of outputs, side by side.
pub(super) struct Room {
    /// The first output of the block, among those summed.
    pub first: usize,
    /// Outputs of the block.
    pub width: usize,
    pub y: Vec<f32>,
    /// Copied if there are curvatures.
    pub residuals: Vec<f32>,
    pub param: Vec<f32>,
    pub curvatures: Vec<f32>,
    pub presence: Vec<f32>,
    /// The scales of each table, zeros beyond the last output.
    pub scales: Vec<Vec<f64>>,
}

impl Room {
    pub fn new(tables: &LeafTables<'_>, block: &Range<usize>, n_rows: usize) -> Room {
        // Whole lanes are read, also those of the last row.
        let (width, cells) = (block.len(), n_rows * block.len() + LANES);
        let mut room = Room {
            first: block.start,
            width,
            y: vec![],
            residuals: vec![],
            param: vec![],
            curvatures: vec![],
            presence: vec![],
            scales: vec![],
        };
        for table in tables.tables {
            let mut scales: Vec<f64> = table.fixed[block.clone()].iter().map(|f| f.scale).collect();
            scales.resize(width.next_multiple_of(LANES), 0.0);
            room.scales.push(scales);
            match table.summand {
                Summand::Matrix(_) => {}
                Summand::Presence(_) => room.presence = vec![1.0; cells],
                Summand::Curvature { param, .. } => {
                    let first = tables.outputs.range.start;
                    room.param = tiled(&param[first + block.start..first + block.end], n_rows);
                    room.curvatures = vec![0.0; cells];
                    room.residuals = vec![0.0; cells];
                    room.y = vec![0.0; cells];
                }
            }
        }
        room
    }

    /// The cells of a row of a matrix.
    pub fn row_of<'b>(&self, tables: &LeafTables<'_>, matrix: &'b [f32], i: usize) -> &'b [f32] {
        &matrix[tables.outputs.row(i).start + self.first..][..self.width]
    }

    /// Takes what is not in a matrix, for `n` rows with the given numbers.
    pub fn evaluate(
        &mut self,
        tables: &LeafTables<'_>,
        n: usize,
        row: impl Fn(usize) -> usize,
        side_by_side: bool,
    ) {
        let (width, m) = (self.width, n * self.width);
        let places = |k: usize| {
            let start = tables.outputs.row(row(k)).start + self.first;
            start..start + width
        };
        let partial = tables.weights.partial;
        for table in tables.tables {
            match table.summand {
                Summand::Matrix(_) => {}
                Summand::Presence(targets) if partial => {
                    self.presence[..m].fill(1.0);
                    clear_missing(targets, places, &mut self.presence[..m], width);
                }
                Summand::Presence(_) => {}
                Summand::Curvature { kernels, targets, residuals, .. } => {
                    if kernels.curvature_uses_target() {
                        for (k, y) in self.y[..m].chunks_exact_mut(width).enumerate() {
                            targets.copy(places(k), y);
                        }
                    }
                    let residuals = if side_by_side {
                        &residuals[places(0).start..][..m]
                    } else {
                        for (k, row) in self.residuals[..m].chunks_exact_mut(width).enumerate() {
                            row.copy_from_slice(&residuals[places(k)]);
                        }
                        &self.residuals[..m]
                    };
                    let curvatures = &mut self.curvatures[..m];
                    kernels.curvatures(&self.y[..m], residuals, &self.param, curvatures);
                    if partial {
                        clear_missing(targets, places, curvatures, width);
                    }
                }
            }
        }
    }
}

/// Zeros where targets are missing.
fn clear_missing(
    targets: Targets<'_>,
    places: impl Fn(usize) -> Range<usize>,
    values: &mut [f32],
    width: usize,
) {
    with_cells!(targets, y => {
        for (k, values) in values.chunks_exact_mut(width).enumerate() {
            for (value, y) in values.iter_mut().zip(&y[places(k)]) {
                *value = if y.is_missing() { 0.0 } else { *value };
            }
        }
    });
}
