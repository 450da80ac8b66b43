//! Sums over the rows of each leaf: residuals, curvatures, weights.

use std::ops::Range;

use super::Leaves;
use crate::error::Result;
use crate::losses::{CellKernels, Objective, Targets, rows_per_block, tiled};
use crate::lowlevel::widest;
use crate::memory::{room, zeros};
use crate::outputs::Outputs;
use crate::parallel::Pool;
use crate::reduce::{FixedPoint, ROUNDED_OFFSET, add_up, round_with_offset};
use crate::weights::{Cell, Weights};
use crate::{with_cells, with_weights};

/// Outputs summed together. Rows are read whole unless they are very long: the sums of all leaves
/// then exceed the nearest cache, but pieces of rows would defeat the prefetcher, which costs more.
const OUTPUT_BLOCK: usize = 2048;

/// Curvatures to be summed beside the residuals.
#[derive(Clone, Copy)]
pub enum Curvatures<'a> {
    /// None.
    Absent,
    /// Those of a built-in loss, from its formula. The outputs summed must share one loss.
    Formula(Objective<'a>),
    /// Those in a matrix, n × d.
    Given(&'a [f32]),
}

/// The largest weighted numbers of each of all outputs.
#[derive(Clone, Copy)]
pub struct SumBounds<'a> {
    /// |Residual|.
    pub residual: &'a [f64],
    /// Curvature.
    pub curvature: &'a [f64],
}

/// Sums over leaves, n_leaves × outputs.
pub struct LeafSums {
    /// Σ w r.
    pub residuals: Vec<f64>,
    /// Σ w h, if asked for.
    pub curvatures: Option<Vec<f64>>,
}

/// Sums residuals (and curvatures) of some outputs over the rows of each leaf.
pub fn leaf_sums(
    pool: &Pool,
    leaves: Leaves<'_>,
    outputs: &Outputs,
    residuals: &[f32],
    curvatures: Curvatures<'_>,
    weights: Weights<'_>,
    bounds: SumBounds<'_>,
) -> Result<LeafSums> {
    let n_all = pool.all_rows(leaves.leaf_of_row.len());
    let fixed = |bound: &[f64]| -> Result<Vec<FixedPoint>> {
        outputs.range.clone().map(|j| FixedPoint::for_sum(bound[j], n_all)).collect()
    };
    let curvatures = match curvatures {
        Curvatures::Absent => None,
        Curvatures::Given(given) => Some(Summand::Matrix(given)),
        Curvatures::Formula(objective) => {
            let kernels = objective.kernels_of(&outputs.range)?;
            let (targets, param) = (objective.targets, objective.param());
            Some(Summand::Curvature { kernels, targets, param, residuals })
        }
    };
    let mut tables = vec![(Summand::Matrix(residuals), fixed(bounds.residual)?)];
    if let Some(summand) = curvatures {
        tables.push((summand, fixed(bounds.curvature)?));
    }
    let mut sums = LeafTables { leaves, outputs, weights }.fill(pool, &tables)?.into_iter();
    let residuals = sums.next().unwrap_or_default();
    Ok(LeafSums { residuals, curvatures: sums.next() })
}

/// Sums the weights of the cells that have a target over the rows of each leaf.
pub fn leaf_weights(
    pool: &Pool,
    leaves: Leaves<'_>,
    outputs: &Outputs,
    targets: Targets<'_>,
    weights: Weights<'_>,
) -> Result<Vec<f64>> {
    // Each output has its own scale: its weights may be tiny beside those of another.
    let bounds = with_cells!(targets, y => weights.max_of_outputs(pool, y, outputs))?;
    let n_all = pool.all_rows(leaves.leaf_of_row.len());
    let fixed =
        bounds.iter().map(|&max| FixedPoint::for_sum(max, n_all)).collect::<Result<Vec<_>>>()?;
    let tables = [(Summand::Presence(targets), fixed)];
    let sums = LeafTables { leaves, outputs, weights }.fill(pool, &tables)?;
    Ok(sums.into_iter().flatten().collect())
}

/// What is summed, times the weight of its cell.
#[derive(Clone, Copy)]
enum Summand<'a> {
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

/// Tables of n_leaves × outputs integers, one for each summand.
struct LeafTables<'a> {
    leaves: Leaves<'a>,
    outputs: &'a Outputs,
    weights: Weights<'a>,
}

impl LeafTables<'_> {
    /// The sums of each summand, with the scales of its outputs.
    fn fill(
        &self,
        pool: &Pool,
        tables: &[(Summand<'_>, Vec<FixedPoint>)],
    ) -> Result<Vec<Vec<f64>>> {
        let Leaves { leaf_of_row, n_leaves } = self.leaves;
        let (n, width) = (leaf_of_row.len(), self.outputs.width());
        let size = n_leaves * width;
        let scales: Vec<Vec<f64>> =
            tables.iter().map(|(_, fixed)| fixed.iter().map(|f| f.scale).collect()).collect();
        let parts = pool.try_map(pool.row_ranges(n, width * 2), n * width * 2, |rows| {
            let mut sums = zeros::<i64>(tables.len() * size)?;
            for first in (0..width).step_by(OUTPUT_BLOCK) {
                let block = first..(first + OUTPUT_BLOCK).min(width);
                let mut room = Room::new(self, tables, &block);
                let n_rows = rows_per_block(block.len());
                for start in rows.clone().step_by(n_rows) {
                    let rows = start..(start + n_rows).min(rows.end);
                    for (k, (summand, _)) in tables.iter().enumerate() {
                        let sums = &mut sums[k * size..(k + 1) * size];
                        let scale = &scales[k][block.clone()];
                        self.add_block(
                            *summand,
                            (rows.clone(), block.clone()),
                            scale,
                            &mut room,
                            sums,
                        );
                    }
                }
            }
            for sums in sums.chunks_mut(size.max(1)) {
                remove_offsets(&leaf_of_row[rows.clone()], width, sums);
            }
            Ok(sums)
        })?;
        // All tables in one exchange with other machines.
        let sums = add_up(pool, parts, tables.len() * size)?;
        let decode = |(k, (_, fixed)): (usize, &(Summand<'_>, Vec<FixedPoint>))| {
            let mut real = room(size)?;
            for leaf in sums[k * size..(k + 1) * size].chunks_exact(width.max(1)) {
                real.extend(leaf.iter().zip(fixed).map(|(&sum, fixed)| fixed.decode(sum)));
            }
            Ok(real)
        };
        tables.iter().enumerate().map(decode).collect()
    }

    /// Adds a block of rows and outputs to the sums of the rows' leaves.
    fn add_block(
        &self,
        summand: Summand<'_>,
        (rows, block): (Range<usize>, Range<usize>),
        scale: &[f64],
        room: &mut Room,
        sums: &mut [i64],
    ) {
        let width = self.outputs.width();
        let (first, places) = (rows.start, |i: usize| {
            let row = self.outputs.row(i).start;
            row + block.start..row + block.end
        });
        self.evaluate(summand, rows.clone(), places, room);
        widest(
            #[inline(always)]
            || {
                for i in rows {
                    let values = match summand {
                        Summand::Matrix(values) => &values[places(i)],
                        _ => &room.values[(i - first) * block.len()..][..block.len()],
                    };
                    let leaf = self.leaves.leaf_of_row[i] as usize * width;
                    let sums = &mut sums[leaf + block.start..leaf + block.end];
                    if self.weights.by_cell() {
                        add_cells(values, self.weights, (i, places(i)), scale, sums);
                    } else {
                        let weight = self.weights.rows.map(|w| f64::from(w[i]));
                        add_scaled(values, weight, scale, sums);
                    }
                }
            },
        );
    }

    /// Puts what is not in a matrix into `room.values`, row by row.
    fn evaluate(
        &self,
        summand: Summand<'_>,
        rows: Range<usize>,
        places: impl Fn(usize) -> Range<usize>,
        room: &mut Room,
    ) {
        let width = room.width;
        match summand {
            Summand::Matrix(_) => {}
            Summand::Presence(targets) => {
                room.values.fill(1.0);
                self.clear_missing(targets, rows, places, room);
            }
            Summand::Curvature { kernels, targets, residuals, .. } => {
                let m = rows.len() * width;
                if kernels.curvature_uses_target() {
                    for (i, y) in rows.clone().zip(room.y.chunks_exact_mut(width)) {
                        targets.copy(places(i), y);
                    }
                }
                let side_by_side = rows.len() == 1 || width == self.outputs.total;
                let residuals = if side_by_side {
                    &residuals[places(rows.start).start..][..m]
                } else {
                    for (i, row) in rows.clone().zip(room.residuals.chunks_exact_mut(width)) {
                        row.copy_from_slice(&residuals[places(i)]);
                    }
                    &room.residuals[..m]
                };
                kernels.curvatures(&room.y[..m], residuals, &room.param, &mut room.values[..m]);
                if self.weights.by_cell() {
                    self.clear_missing(targets, rows, places, room);
                }
            }
        }
    }

    /// Zeros where targets are missing.
    fn clear_missing(
        &self,
        targets: Targets<'_>,
        rows: Range<usize>,
        places: impl Fn(usize) -> Range<usize>,
        room: &mut Room,
    ) {
        with_cells!(targets, y => {
            for (i, values) in rows.zip(room.values.chunks_exact_mut(room.width)) {
                for (value, y) in values.iter_mut().zip(&y[places(i)]) {
                    *value = if y.is_missing() { 0.0 } else { *value };
                }
            }
        });
    }
}

/// The cells of a block of rows and outputs, side by side.
struct Room {
    width: usize,
    y: Vec<f32>,
    residuals: Vec<f32>,
    param: Vec<f32>,
    values: Vec<f32>,
}

impl Room {
    fn new(
        tables: &LeafTables<'_>,
        summands: &[(Summand<'_>, Vec<FixedPoint>)],
        block: &Range<usize>,
    ) -> Room {
        let n_rows = rows_per_block(block.len());
        let mut room = Room {
            width: block.len(),
            y: vec![],
            residuals: vec![],
            param: vec![],
            values: vec![],
        };
        for (summand, _) in summands {
            if !matches!(summand, Summand::Matrix(_)) {
                room.values.resize(n_rows * block.len(), 0.0);
            }
            if let Summand::Curvature { param, .. } = summand {
                let first = tables.outputs.range.start;
                room.param = tiled(&param[first + block.start..first + block.end], n_rows);
                room.y.resize(room.param.len(), 0.0);
                room.residuals.resize(room.param.len(), 0.0);
            }
        }
        room
    }
}

/// Adds some cells of row `i`, each with its weight, and each with its offset.
#[inline(always)]
fn add_cells(
    values: &[f32],
    weights: Weights<'_>,
    (i, places): (usize, Range<usize>),
    scale: &[f64],
    sums: &mut [i64],
) {
    let m = sums.len();
    let (values, scale) = (&values[..m], &scale[..m]);
    with_weights!(weights, i, places, weight => for k in 0..m {
        let value = round_with_offset(f64::from(values[k]) * weight(k) * scale[k]);
        sums[k] = sums[k].wrapping_add(value);
    });
}

/// Takes off what [`add_scaled`] and [`add_cells`] added too much: each row has brought one offset to
/// every sum of its leaf.
pub(crate) fn remove_offsets(leaf_of_row: &[u32], width: usize, sums: &mut [i64]) {
    let mut counts = vec![0i64; sums.len().checked_div(width).unwrap_or(0)];
    leaf_of_row.iter().for_each(|&leaf| counts[leaf as usize] += 1);
    for (sums, &count) in sums.chunks_mut(width.max(1)).zip(&counts) {
        let offset = count.wrapping_mul(ROUNDED_OFFSET);
        sums.iter_mut().for_each(|sum| *sum = sum.wrapping_sub(offset));
    }
}

/// Adds some cells of a row, each with its offset.
#[inline(always)]
fn add_scaled(values: &[f32], weight: Option<f64>, scale: &[f64], sums: &mut [i64]) {
    let cells = values.iter().zip(scale);
    match weight {
        None => {
            for (sum, (&value, &scale)) in sums.iter_mut().zip(cells) {
                *sum = sum.wrapping_add(round_with_offset(f64::from(value) * scale));
            }
        }
        Some(weight) => {
            for (sum, (&value, &scale)) in sums.iter_mut().zip(cells) {
                *sum = sum.wrapping_add(round_with_offset(f64::from(value) * weight * scale));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::{Loss, Losses};

    #[test]
    fn leaf_sums_are_sums_over_leaves() {
        let (n, d, n_leaves) = (100, 3, 4);
        let leaf_of_row: Vec<u32> = (0..n).map(|i| (i * 7 % n_leaves) as u32).collect();
        let residuals: Vec<f32> = (0..n * d).map(|k| (k * 13 % 31) as f32 / 7.0 - 2.0).collect();
        let weight: Vec<f32> = (0..n).map(|i| 0.5 + (i % 5) as f32).collect();
        let max = [20.0; 3];
        let sums = leaf_sums(
            &Pool::serial(),
            Leaves { leaf_of_row: &leaf_of_row, n_leaves },
            &Outputs { total: d, range: 1..3 },
            &residuals,
            Curvatures::Given(&residuals),
            Weights::of_rows(Some(&weight)),
            SumBounds { residual: &max, curvature: &max },
        )
        .unwrap();
        for leaf in 0..n_leaves {
            for j in 1..3 {
                let expected: f64 = (0..n)
                    .filter(|&i| leaf_of_row[i] as usize == leaf)
                    .map(|i| f64::from(residuals[i * d + j]) * f64::from(weight[i]))
                    .sum();
                let at = leaf * 2 + j - 1;
                assert!((sums.residuals[at] - expected).abs() < 1e-9);
                assert!((sums.curvatures.as_ref().unwrap()[at] - expected).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn cells_are_summed_with_their_own_weights() {
        let y = [1.0f32, f32::NAN, 2.0, 3.0, f32::NAN, 5.0, 0.0, 1.0];
        let residuals = [1.0f32, 0.0, -2.0, 0.5, 0.0, 3.0, 1.0, 1.0];
        let cells = [2.0f32, 1.0, 1.0, 4.0, 1.0, 3.0, 0.5, 1.0];
        let rows = [1.0f32, 0.0, 2.0, 1.0];
        let leaves = Leaves { leaf_of_row: &[0, 0, 1, 1], n_leaves: 2 };
        let weights = Weights { rows: Some(&rows), cells: Some(&cells), partial: true };
        let (pool, targets, both) = (Pool::serial(), Targets::Real(&y), Outputs::all(2));
        let losses = Losses::new(&[Loss::Squared; 2], vec![0.0; 2], vec![0.0; 2]).unwrap();
        let objective = Objective::new(&losses, targets, weights, 4).unwrap();
        let curvatures = Curvatures::Formula(objective);
        let bounds = SumBounds { residual: &[20.0; 2], curvature: &[20.0; 2] };
        let sums =
            leaf_sums(&pool, leaves, &both, &residuals, curvatures, weights, bounds).unwrap();
        assert_eq!(sums.residuals, [2.0, 0.0, 0.5, 19.0]);
        let expected = [2.0, 0.0, 0.5, 7.0];
        assert_eq!(sums.curvatures.unwrap(), expected);
        assert_eq!(leaf_weights(&pool, leaves, &both, targets, weights).unwrap(), expected);
    }
}
