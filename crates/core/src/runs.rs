//! Outputs of different losses in one model: runs of neighbouring outputs that share a loss.
//!
//! Most kernels serve one run at a time and take its columns. Here is what looks at whole rows: the
//! pass that ends a round, and the loss of every output by itself.

use std::ops::Range;

use crate::error::Result;
use crate::leaf::LeafValues;
use crate::losses::{
    CellRow, Loss, Pass, Piece, Pointwise, Projected, Targets, advance_rows, cut, merge_passes,
    part, pointwise_residuals,
};
use crate::lowlevel::widest;
use crate::memory::zeros;
use crate::parallel::Pool;
use crate::projection::Phi;
use crate::reduce::{FixedPoint, add_up, largest, round_scaled};
use crate::weights::Weights;
use crate::{with_cells, with_pointwise};

/// Neighbouring outputs that share a loss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The loss.
    pub loss: Loss,
    /// The outputs.
    pub outputs: Range<usize>,
}

impl Run {
    /// The runs of a list with one loss per output.
    pub fn all(losses: &[Loss]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (j, &loss) in losses.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if run.loss == loss => run.outputs.end = j + 1,
                _ => runs.push(Run { loss, outputs: j..j + 1 }),
            }
        }
        runs
    }
}

/// [`crate::losses::advance`] for several runs.
pub fn advance(
    pool: &Pool,
    runs: &[Run],
    targets: Targets<'_>,
    raw: &mut [f32],
    offset: &[f32],
    param: &[f32],
    weight: Option<&[f32]>,
    update: Option<(&[u32], LeafValues<'_>)>,
    residuals: &mut [f32],
    projected: Option<Projected<'_>>,
) -> Result<Pass> {
    let d = offset.len();
    let n = raw.len() / d;
    let (phi, z) = projected.map_or((None, &mut [][..]), |(phi, z)| (Some(phi), z));
    let q = phi.map_or(0, Phi::n_components);
    let work_per_row = d * 4 + phi.map_or(0, Phi::work);
    let scale = Weights::of_rows(weight).scale(pool)?;
    let (mut raw, mut residuals, mut z) = (raw, residuals, z);
    let mut pieces = Vec::new();
    for rows in pool.row_ranges(n, work_per_row) {
        pieces.push(Piece {
            raw: cut(&mut raw, rows.len() * d),
            residuals: cut(&mut residuals, rows.len() * d),
            z: cut(&mut z, rows.len() * q),
            rows,
        });
    }
    let parts = pool.map(pieces, n * work_per_row, |piece| {
        let weight = weight.map(|w| &w[piece.rows.clone()]);
        let update = update.map(|(leaves, values)| (&leaves[piece.rows.clone()], values));
        with_cells!(targets, y => {
            let y = &y[piece.rows.start * d..piece.rows.end * d];
            widest(#[inline(always)] || advance_rows(piece, update, (weight, scale), phi, d,
                #[inline(always)] |i, raw: &[f32], out: &mut [f32]| {
                    let mut total = 0.0;
                    for Run { loss, outputs } in runs {
                        let of = |values| part(values, outputs);
                        let y = &y[i * d + outputs.start..i * d + outputs.end];
                        let out = &mut out[outputs.clone()];
                        total += with_pointwise!(*loss, formula => {
                            pointwise_residuals(formula, y, of(raw), of(offset), of(param), out)
                        });
                    }
                    total
                }))
        })
    })?;
    merge_passes(pool, parts, d, scale)
}

/// Losses that are kept rather than computed again: 16 MB.
const KEPT_CELLS: usize = 1 << 21;

/// The loss of every output by itself, weighted and summed over the rows; infinite where that of a
/// cell is.
pub fn output_losses(
    pool: &Pool,
    runs: &[Run],
    targets: Targets<'_>,
    raw: &[f32],
    offset: &[f32],
    param: &[f32],
    weights: Weights<'_>,
) -> Result<Vec<f64>> {
    let scale = weights.scale(pool)?;
    let losses = RowLosses { runs, targets, raw, offset, param, weights, scale };
    losses.sums(pool, raw.len() <= KEPT_CELLS)
}

/// What the losses of single rows are computed from.
struct RowLosses<'a> {
    runs: &'a [Run],
    targets: Targets<'a>,
    raw: &'a [f32],
    offset: &'a [f32],
    param: &'a [f32],
    weights: Weights<'a>,
    scale: FixedPoint,
}

impl RowLosses<'_> {
    /// Sums over the rows. The maxima come before them: losses are kept in between, or computed
    /// twice, so that there is no other array of rows × outputs.
    fn sums(&self, pool: &Pool, keep: bool) -> Result<Vec<f64>> {
        let d = self.offset.len();
        let n = self.raw.len() / d;
        let mut kept = zeros::<f64>(if keep { n * d } else { 0 })?;
        let mut rest = &mut kept[..];
        let mut pieces = Vec::new();
        for rows in pool.row_ranges(n, d * 4) {
            pieces.push((cut(&mut rest, if keep { rows.len() * d } else { 0 }), rows));
        }
        let maxima = pool.map(pieces, n * d * 4, |(kept, rows)| {
            let (mut max, mut kept) = (vec![0.0f64; d], kept.chunks_exact_mut(d));
            self.each(
                rows,
                #[inline(always)]
                |i, values| {
                    let weight = self.weight(i);
                    for (m, v) in max.iter_mut().zip(values) {
                        let size = (v * weight).abs();
                        *m = if size > *m { size } else { *m };
                    }
                    if let Some(kept) = kept.next() {
                        kept.copy_from_slice(values);
                    }
                },
            );
            max
        })?;
        let max = largest(pool, maxima, d)?;
        let n_all = pool.all_rows(n);
        // An infinite loss makes an infinite total, whatever its scale.
        let scale_of = |&m: &f64| FixedPoint::for_sum(m, n_all).unwrap_or(FixedPoint::ONE);
        let fixed: Vec<FixedPoint> = max.iter().map(scale_of).collect();
        let scale: Vec<f64> = fixed.iter().map(|fixed| fixed.scale).collect();
        let parts = pool.map(pool.row_ranges(n, d * 2), n * d * 2, |rows| {
            let mut sums = vec![0i64; d];
            if keep {
                widest(
                    #[inline(always)]
                    || {
                        for i in rows {
                            let values = &kept[i * d..(i + 1) * d];
                            add_scaled(&mut sums, values, self.weight(i), &scale);
                        }
                    },
                );
            } else {
                self.each(
                    rows,
                    #[inline(always)]
                    |i, values| add_scaled(&mut sums, values, self.weight(i), &scale),
                );
            }
            sums
        })?;
        let total = |((max, fixed), sum): ((f64, FixedPoint), i64)| {
            if max.is_finite() { fixed.decode(sum) } else { f64::INFINITY }
        };
        let sums = add_up(pool, parts, d)?;
        Ok(max.into_iter().zip(fixed).zip(sums).map(total).collect())
    }

    /// What is still to be multiplied to the losses of row `i`.
    #[inline(always)]
    fn weight(&self, i: usize) -> f64 {
        if self.weights.by_cell() { self.scale.unit } else { self.weights.row(i) }
    }

    /// Shows the number and the losses of every row; where cells have weights of their own, these
    /// multiply the losses, in their scale.
    fn each(&self, rows: Range<usize>, mut look: impl FnMut(usize, &[f64])) {
        let RowLosses { runs, targets, raw, offset, param, weights, scale } = *self;
        let d = offset.len();
        if weights.by_cell() {
            let (mut row, mut residuals) = (CellRow::new(d, scale), vec![0.0f32; d]);
            with_cells!(targets, y => {
                widest(#[inline(always)] || {
                    for i in rows {
                        let cells = i * d..(i + 1) * d;
                        row.take(weights, i, &y[cells.clone()]);
                        for Run { loss, outputs } in runs {
                            with_pointwise!(*loss, formula => {
                                let (raw, outputs) = (&raw[cells.clone()], outputs.clone());
                                row.residuals(formula, outputs, raw, offset, param, &mut residuals);
                            });
                        }
                        look(i, &row.values);
                    }
                });
            });
            return;
        }
        let mut values = vec![0.0f64; d];
        with_cells!(targets, y => {
            widest(#[inline(always)] || {
                for i in rows {
                    let cells = i * d..(i + 1) * d;
                    let (y, raw) = (&y[cells.clone()], &raw[cells]);
                    for Run { loss, outputs } in runs {
                        let of = |values| part(values, outputs);
                        let (y, out) = (&y[outputs.clone()], &mut values[outputs.clone()]);
                        with_pointwise!(*loss, formula => {
                            cell_losses(formula, y, of(raw), of(offset), of(param), out);
                        });
                    }
                    look(i, &values);
                }
            });
        });
    }
}

#[inline(always)]
fn add_scaled(sums: &mut [i64], values: &[f64], weight: f64, scale: &[f64]) {
    for (sum, (&value, &scale)) in sums.iter_mut().zip(values.iter().zip(scale)) {
        *sum = sum.wrapping_add(round_scaled(value * weight * scale));
    }
}

#[inline(always)]
fn cell_losses<L: Pointwise, Y: Copy + Into<f32>>(
    formula: L,
    y: &[Y],
    raw: &[f32],
    offset: &[f32],
    param: &[f32],
    out: &mut [f64],
) {
    let m = out.len();
    let (y, raw, offset, param) = (&y[..m], &raw[..m], &offset[..m], &param[..m]);
    for k in 0..m {
        out[k] = formula.value(y[k].into(), offset[k] + raw[k], param[k]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOSSES: [Loss; 5] =
        [Loss::Logistic, Loss::Squared, Loss::Squared, Loss::Poisson, Loss::Quantile];

    fn cells(n: usize) -> (Vec<f32>, Vec<f32>, [f32; 5], [f32; 5]) {
        let mut stream = crate::random::Key::new(4).stream();
        let y = (0..n * 5).map(|_| stream.below(2) as f32).collect();
        let raw = (0..n * 5).map(|_| stream.normals().0 as f32).collect();
        (y, raw, [0.5, 0.0, 0.0, -1.0, 0.0], [0.5, 0.5, 0.5, 0.5, 0.2])
    }

    #[test]
    fn equal_neighbours_make_a_run() {
        let runs = Run::all(&LOSSES);
        let ends: Vec<usize> = runs.iter().map(|run| run.outputs.end).collect();
        assert_eq!(ends, [1, 3, 4, 5]);
        assert_eq!(runs[1].loss, Loss::Squared);
    }

    #[test]
    fn each_run_has_the_residuals_of_its_own_loss() {
        let n = 50;
        let (y, mut raw, offset, param) = cells(n);
        let weight: Vec<f32> = (0..n).map(|i| 0.5 + (i % 3) as f32).collect();
        let mut all = vec![0.0f32; n * 5];
        let pool = Pool::new(2, Box::new(|| false));
        let runs = Run::all(&LOSSES);
        let targets = Targets::Real(&y);
        let pass = advance(
            &pool,
            &runs,
            targets,
            &mut raw,
            &offset,
            &param,
            Some(&weight),
            None,
            &mut all,
            None,
        )
        .unwrap();
        let sums = output_losses(
            &pool,
            &runs,
            targets,
            &raw,
            &offset,
            &param,
            Weights::of_rows(Some(&weight)),
        )
        .unwrap();
        assert!((pass.loss - sums.iter().sum::<f64>()).abs() < 1e-5 * pass.loss);
        for (j, &loss) in LOSSES.iter().enumerate() {
            let column =
                |cells: &[f32]| cells.iter().skip(j).step_by(5).copied().collect::<Vec<_>>();
            let (y, mut raw) = (column(&y), column(&raw));
            let mut alone = vec![0.0f32; n];
            let pass = crate::losses::advance(
                &pool,
                loss,
                Targets::Real(&y),
                &mut raw,
                &[offset[j]],
                &[param[j]],
                Some(&weight),
                None,
                &mut alone,
                None,
            )
            .unwrap();
            assert_eq!(column(&all), alone);
            assert!((pass.loss - sums[j]).abs() < 1e-5 * (1.0 + pass.loss.abs()), "{loss:?}");
        }
    }

    #[test]
    fn losses_that_are_not_kept_have_the_same_sums() {
        let n = 50;
        let (mut y, raw, offset, param) = cells(n);
        let (runs, pool) = (Run::all(&LOSSES), Pool::new(2, Box::new(|| false)));
        let weight: Vec<f32> = (0..n).map(|i| 0.5 + (i % 3) as f32).collect();
        for partial in [false, true] {
            if partial {
                y[12] = f32::NAN;
            }
            let losses = RowLosses {
                runs: &runs,
                targets: Targets::Real(&y),
                raw: &raw,
                offset: &offset,
                param: &param,
                weights: Weights { partial, ..Weights::of_rows(Some(&weight)) },
                scale: Weights::of_rows(Some(&weight)).scale(&Pool::serial()).unwrap(),
            };
            assert_eq!(losses.sums(&pool, true).unwrap(), losses.sums(&pool, false).unwrap());
        }
    }

    #[test]
    fn losses_beyond_single_precision_are_what_they_are() {
        let runs = Run::all(&[Loss::Squared, Loss::Huber, Loss::Squared]);
        let raw = [1e30f32, 1e30, 1e-30];
        let y = Targets::Real(&[0.0; 3]);
        let (zeros, param) = ([0.0; 3], [0.0, 1e25, 0.0]);
        for (rows, by_cell) in [(1.0, false), (1e12, false), (1e-12, false), (1e12, true)] {
            let rows = [rows as f32];
            let weights = Weights { partial: by_cell, ..Weights::of_rows(Some(&rows)) };
            let pool = Pool::serial();
            let sums = output_losses(&pool, &runs, y, &raw, &zeros, &param, weights).unwrap();
            let expected = [5e59, 1e55, 5e-61].map(|value| value * f64::from(rows[0]));
            for (sum, expected) in sums.iter().zip(expected) {
                assert!((sum / expected - 1.0).abs() < 1e-4, "{sum} {expected}");
            }
        }
    }

    #[test]
    fn cells_weigh_in_their_own_output_alone() {
        let n = 60;
        let (mut y, mut raw, offset, param) = cells(n);
        (0..n).step_by(7).for_each(|i| y[i * 5 + i % 5] = f32::NAN);
        let rows: Vec<f32> = (0..n).map(|i| 0.5 + (i % 3) as f32).collect();
        let cells: Vec<f32> = (0..n * 5).map(|k| 0.25 + (k % 4) as f32).collect();
        let weights = Weights { rows: Some(&rows), cells: Some(&cells), partial: true };
        let pool = Pool::new(2, Box::new(|| false));
        let (runs, targets) = (Run::all(&LOSSES), Targets::Real(&y));
        let sums = output_losses(&pool, &runs, targets, &raw, &offset, &param, weights).unwrap();
        let mut all = vec![0.0f32; n * 5];
        let pass = crate::losses::advance_cells(
            &pool, &runs, targets, &mut raw, &offset, &param, weights, None, &mut all, None,
        )
        .unwrap();
        assert!((pass.loss - sums.iter().sum::<f64>()).abs() < 1e-5 * pass.loss);
        for (j, &loss) in LOSSES.iter().enumerate() {
            let mut sum = 0.0;
            for i in 0..n {
                let (k, f) = (i * 5 + j, offset[j] + raw[i * 5 + j]);
                if y[k].is_nan() {
                    assert_eq!(all[k], 0.0);
                    continue;
                }
                let (residual, value) = with_pointwise!(loss, formula => {
                    (formula.residual(y[k], f, param[j]), formula.value(y[k], f, param[j]))
                });
                assert_eq!(all[k], residual);
                sum += f64::from(rows[i]) * f64::from(cells[k]) * value;
            }
            assert!((sum - sums[j]).abs() < 1e-5 * (1.0 + sum.abs()), "{loss:?}");
        }
    }
}
