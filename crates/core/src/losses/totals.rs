//! Losses summed over rows, and the curvatures of all cells.

use std::ops::Range;

use super::rows::{Block, RowLosses, rows_per_block, tiled};
use super::{Objective, Targets};
use crate::error::{Result, invalid};
use crate::lowlevel::widest;
use crate::memory::zeros;
use crate::parallel::{Pool, take_front};
use crate::reduce::{ExactSum, FixedPoint, add_up, add_up_here, exchange, largest, round_scaled};

/// Losses that are kept rather than computed again: 16 MB.
const KEPT_CELLS: usize = 1 << 21;
/// What the losses of labels hardly ever reach: labels have no scale.
const LABEL_LOSS: f64 = 64.0;

/// The loss, weighted and summed over all rows and outputs.
pub fn loss_sum(pool: &Pool, objective: Objective<'_>, raw: &[f32]) -> Result<f64> {
    let d = objective.n_outputs();
    let n = objective.n_rows;
    let losses = RowLosses::new(pool, objective)?;
    let parts = pool.map(pool.row_ranges(n, d * 4), n * d * 4, |rows| {
        let (mut sum, mut block) = (ExactSum::default(), losses.room());
        let mut residuals = vec![0.0; losses.block * d];
        for rows in losses.blocks(rows) {
            let raw = &raw[rows.start * d..rows.end * d];
            let n = rows.len();
            losses.residuals(rows, raw, &mut residuals[..n * d], &mut block);
            block.losses[..n].iter().for_each(|&loss| sum.add(loss));
        }
        sum
    })?;
    ExactSum::merged(pool, &parts, &mut [], &mut [])
}

/// The loss of every output by itself, weighted and summed over the rows; infinite where that of a
/// cell is. The first output of a softmax has the loss of all its outputs, the others have none.
pub fn output_losses(pool: &Pool, objective: Objective<'_>, raw: &[f32]) -> Result<Vec<f64>> {
    if matches!(objective.targets, Targets::Classes(_)) {
        return invalid("class numbers have no losses of single outputs");
    }
    let losses = OutputLosses { rows: RowLosses::new(pool, objective)?, raw };
    let have_no_scale = matches!(objective.targets, Targets::Labels(_));
    if have_no_scale
        && objective.weights.is_trivial()
        && let Some(sums) = losses.sums_below(pool, LABEL_LOSS)?
    {
        return Ok(sums);
    }
    losses.sums(pool, raw.len() <= KEPT_CELLS)
}

struct OutputLosses<'a> {
    rows: RowLosses<'a>,
    raw: &'a [f32],
}

impl OutputLosses<'_> {
    /// Sums over the rows, in one pass, if no loss reaches a limit. Weights are 1.
    fn sums_below(&self, pool: &Pool, limit: f64) -> Result<Option<Vec<f64>>> {
        let d = self.rows.objective.n_outputs();
        let n = self.rows.objective.n_rows;
        let fixed = FixedPoint::for_sum(limit, pool.all_rows(n))?;
        let parts = pool.map(pool.row_ranges(n, d * 4), n * d * 4, |rows| {
            let (mut sums, mut max) = (vec![0i64; d], 0);
            self.each(rows, |_, values| add_and_compare(&mut sums, values, fixed.scale, &mut max));
            (sums, f64::from_bits(max))
        })?;
        let (sums, maxima): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let mut sums = add_up_here(sums, d)?;
        // A loss that is not a number is not below the limit either, and stays so on its way.
        let below = maxima.iter().all(|&max| max < limit);
        let mut above = [if below { 0.0 } else { 1.0 }];
        exchange(pool, &mut sums, &mut above)?;
        Ok((above == [0.0]).then(|| sums.into_iter().map(|sum| fixed.decode(sum)).collect()))
    }

    /// Sums over the rows. The maxima come before them: losses are kept in between, or computed
    /// twice, so that there is no other array of rows × outputs.
    fn sums(&self, pool: &Pool, keep: bool) -> Result<Vec<f64>> {
        let d = self.rows.objective.n_outputs();
        let n = self.rows.objective.n_rows;
        let mut kept = zeros::<f64>(if keep { n * d } else { 0 })?;
        let mut rest = &mut kept[..];
        let mut pieces = Vec::new();
        for rows in pool.row_ranges(n, d * 4) {
            pieces.push((take_front(&mut rest, if keep { rows.len() * d } else { 0 }), rows));
        }
        let maxima = pool.map(pieces, n * d * 4, |(kept, rows)| {
            let (mut max, mut kept) = (vec![0.0f64; d], kept.chunks_exact_mut(d));
            self.each(rows, |weight, values| {
                raise_max(&mut max, values, weight);
                if let Some(kept) = kept.next() {
                    kept.copy_from_slice(values);
                }
            });
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
                for i in rows {
                    add_scaled(&mut sums, &kept[i * d..(i + 1) * d], self.weight(i), &scale);
                }
            } else {
                self.each(rows, |weight, values| add_scaled(&mut sums, values, weight, &scale));
            }
            sums
        })?;
        let total = |((max, fixed), sum): ((f64, FixedPoint), i64)| {
            if max.is_finite() { fixed.decode(sum) } else { f64::INFINITY }
        };
        let sums = add_up(pool, parts, d)?;
        Ok(max.into_iter().zip(fixed).zip(sums).map(total).collect())
    }

    /// What the losses of row `i` are still to be multiplied by.
    fn weight(&self, i: usize) -> f64 {
        let weights = self.rows.objective.weights;
        if weights.by_cell() { self.rows.scale.unit } else { weights.row(i) }
    }

    /// Calls `look(weight, losses)` for every row.
    fn each(&self, rows: Range<usize>, mut look: impl FnMut(f64, &[f64])) {
        let d = self.rows.objective.n_outputs();
        let mut block: Block = self.rows.room();
        for rows in self.rows.blocks(rows) {
            let raw = &self.raw[rows.start * d..rows.end * d];
            self.rows.values(rows.clone(), raw, &mut block);
            for (i, values) in rows.zip(block.values.chunks_exact(d)) {
                look(self.weight(i), values);
            }
        }
    }
}

/// Adds losses to sums; raises `max` to the bits of the largest, which order as losses do: none is
/// negative.
fn add_and_compare(sums: &mut [i64], losses: &[f64], scale: f64, max: &mut u64) {
    widest(
        #[inline(always)]
        || {
            let mut most = *max;
            for (sum, &loss) in sums.iter_mut().zip(losses) {
                *sum = sum.wrapping_add(round_scaled(loss * scale));
                most = most.max(loss.to_bits());
            }
            *max = most;
        },
    );
}

fn raise_max(max: &mut [f64], values: &[f64], weight: f64) {
    widest(
        #[inline(always)]
        || {
            for (max, value) in max.iter_mut().zip(values) {
                let size = (value * weight).abs();
                *max = if size > *max { size } else { *max };
            }
        },
    );
}

fn add_scaled(sums: &mut [i64], values: &[f64], weight: f64, scale: &[f64]) {
    widest(
        #[inline(always)]
        || {
            for (sum, (&value, &scale)) in sums.iter_mut().zip(values.iter().zip(scale)) {
                *sum = sum.wrapping_add(round_scaled(value * weight * scale));
            }
        },
    );
}

/// Curvatures of all cells into `out`, from the residuals (softmax: the diagonal). All outputs must
/// share one loss.
pub fn curvatures(
    pool: &Pool,
    objective: Objective<'_>,
    residuals: &[f32],
    out: &mut [f32],
) -> Result<()> {
    let d = objective.n_outputs();
    let kernels = objective.losses.loss_of(&(0..d))?.kernels();
    let block = rows_per_block(d);
    let param = tiled(&objective.losses.param, block);
    let mut rest = out;
    let mut pieces = Vec::new();
    for rows in pool.row_ranges(objective.n_rows, d) {
        pieces.push((take_front(&mut rest, rows.len() * d), rows));
    }
    pool.for_each(pieces, residuals.len(), |(out, rows)| {
        let mut y = vec![0.0; block * d];
        for (k, out) in out.chunks_mut(block * d).enumerate() {
            let first = (rows.start + k * block) * d;
            let cells = first..first + out.len();
            objective.targets.copy(cells.clone(), &mut y);
            kernels.curvatures(&y[..out.len()], &residuals[cells], &param, out);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::formula::{Logistic, Poisson, Quantile, Squared};
    use crate::losses::{Loss, Losses, Pointwise, advance};
    use crate::weights::Weights;

    const LOSSES: [Loss; 5] =
        [Loss::Logistic, Loss::Squared, Loss::Squared, Loss::Poisson, Loss::Quantile];
    const OFFSET: [f32; 5] = [0.5, 0.0, 0.0, -1.0, 0.0];
    const PARAM: [f32; 5] = [0.5, 0.5, 0.5, 0.5, 0.2];

    fn cells(n: usize) -> (Vec<f32>, Vec<f32>) {
        let mut stream = crate::random::Key::new(4).stream();
        let y = (0..n * 5).map(|_| stream.below(2) as f32).collect();
        let raw = (0..n * 5).map(|_| stream.normals().0 as f32).collect();
        (y, raw)
    }

    fn losses() -> Losses {
        Losses::new(&LOSSES, OFFSET.to_vec(), PARAM.to_vec()).unwrap()
    }

    #[test]
    fn each_run_has_the_residuals_of_its_own_loss() {
        let n = 50;
        let (y, mut raw) = cells(n);
        let weight: Vec<f32> = (0..n).map(|i| 0.5 + (i % 3) as f32).collect();
        let weights = Weights::of_rows(Some(&weight));
        let mut all = vec![0.0f32; n * 5];
        let pool = Pool::new(2, Box::new(|| false));
        let losses = losses();
        let objective = Objective::new(&losses, Targets::Real(&y), weights, n).unwrap();
        let pass = advance(&pool, objective, &mut raw, &mut all, None, None).unwrap();
        let sums = output_losses(&pool, objective, &raw).unwrap();
        assert!((pass.loss - sums.iter().sum::<f64>()).abs() < 1e-5 * pass.loss);
        assert_eq!(loss_sum(&pool, objective, &raw).unwrap(), pass.loss);
        for (j, &loss) in LOSSES.iter().enumerate() {
            let column =
                |cells: &[f32]| cells.iter().skip(j).step_by(5).copied().collect::<Vec<_>>();
            let (y, mut raw) = (column(&y), column(&raw));
            let mut alone = vec![0.0f32; n];
            let losses = Losses::new(&[loss], vec![OFFSET[j]], vec![PARAM[j]]).unwrap();
            let objective = Objective::new(&losses, Targets::Real(&y), weights, n).unwrap();
            let pass = advance(&pool, objective, &mut raw, &mut alone, None, None).unwrap();
            assert_eq!(column(&all), alone);
            assert!((pass.loss - sums[j]).abs() < 1e-5 * (1.0 + pass.loss.abs()), "{loss:?}");
        }
    }

    #[test]
    fn losses_that_are_not_kept_have_the_same_sums() {
        let n = 50;
        let (mut y, raw) = cells(n);
        let (losses, pool) = (losses(), Pool::new(2, Box::new(|| false)));
        let weight: Vec<f32> = (0..n).map(|i| 0.5 + (i % 3) as f32).collect();
        for partial in [false, true] {
            if partial {
                y[12] = f32::NAN;
            }
            let weights = Weights { partial, ..Weights::of_rows(Some(&weight)) };
            let objective = Objective::new(&losses, Targets::Real(&y), weights, n).unwrap();
            let rows = RowLosses::new(&Pool::serial(), objective).unwrap();
            let losses = OutputLosses { rows, raw: &raw };
            assert_eq!(losses.sums(&pool, true).unwrap(), losses.sums(&pool, false).unwrap());
        }
    }

    #[test]
    fn losses_of_labels_have_their_sums_in_one_pass_unless_one_is_large() {
        let n = 70;
        let (_, raw) = cells(n);
        let y: Vec<u8> = (0..n * 5).map(|k| u8::from(k % 3 == 0)).collect();
        let (names, zeros) =
            ([Loss::Logistic, Loss::SquaredLabels, Loss::Exponential], vec![0.0; 5]);
        let pool = Pool::new(2, Box::new(|| false));
        for loss in names {
            let losses = Losses::new(&[loss; 5], zeros.clone(), zeros.clone()).unwrap();
            let objective =
                Objective::new(&losses, Targets::Labels(&y), Weights::of_rows(None), n).unwrap();
            let rows = || RowLosses::new(&pool, objective).unwrap();
            let sums = OutputLosses { rows: rows(), raw: &raw }.sums(&pool, true).unwrap();
            let below = |raw: &[f32]| {
                OutputLosses { rows: rows(), raw }.sums_below(&pool, LABEL_LOSS).unwrap()
            };
            let at_once = below(&raw).unwrap();
            assert_eq!(at_once, output_losses(&pool, objective, &raw).unwrap());
            for (a, b) in at_once.iter().zip(sums) {
                assert!((a - b).abs() < 1e-12 * b, "{loss:?}: {a} {b}");
            }
            for large in [500.0, f32::INFINITY, f32::NAN] {
                assert_eq!(below(&[&[-large, large], &raw[2..]].concat()), None, "{loss:?}");
            }
        }
    }

    #[test]
    fn losses_beyond_single_precision_are_what_they_are() {
        let losses = [Loss::Squared, Loss::Huber, Loss::Squared];
        let losses = Losses::new(&losses, vec![0.0; 3], vec![0.0, 1e25, 0.0]).unwrap();
        let raw = [1e30f32, 1e30, 1e-30];
        let y = Targets::Real(&[0.0; 3]);
        for (rows, by_cell) in [(1.0, false), (1e12, false), (1e-12, false), (1e12, true)] {
            let rows = [rows as f32];
            let weights = Weights { partial: by_cell, ..Weights::of_rows(Some(&rows)) };
            let objective = Objective::new(&losses, y, weights, 1).unwrap();
            let sums = output_losses(&Pool::serial(), objective, &raw).unwrap();
            let expected = [5e59, 1e55, 5e-61].map(|value| value * f64::from(rows[0]));
            for (sum, expected) in sums.iter().zip(expected) {
                assert!((sum / expected - 1.0).abs() < 1e-4, "{sum} {expected}");
            }
        }
    }

    #[test]
    fn cells_weigh_in_their_own_output_alone() {
        let n = 60;
        let (mut y, mut raw) = cells(n);
        (0..n).step_by(7).for_each(|i| y[i * 5 + i % 5] = f32::NAN);
        let rows: Vec<f32> = (0..n).map(|i| 0.5 + (i % 3) as f32).collect();
        let cells: Vec<f32> = (0..n * 5).map(|k| 0.25 + (k % 4) as f32).collect();
        let weights = Weights { rows: Some(&rows), cells: Some(&cells), partial: true };
        let pool = Pool::new(2, Box::new(|| false));
        let losses = losses();
        let objective = Objective::new(&losses, Targets::Real(&y), weights, n).unwrap();
        let sums = output_losses(&pool, objective, &raw).unwrap();
        let mut all = vec![0.0f32; n * 5];
        let pass = advance(&pool, objective, &mut raw, &mut all, None, None).unwrap();
        assert!((pass.loss - sums.iter().sum::<f64>()).abs() < 1e-5 * pass.loss);
        for j in 0..5 {
            let mut sum = 0.0;
            for i in 0..n {
                let (k, f) = (i * 5 + j, OFFSET[j] + raw[i * 5 + j]);
                if y[k].is_nan() {
                    assert_eq!(all[k], 0.0);
                    continue;
                }
                fn of<L: Pointwise>(formula: L, y: f32, f: f32, param: f32) -> (f32, f64) {
                    (formula.residual(y, f, param), formula.value(y, f, param))
                }
                let (residual, value) = match j {
                    0 => of(Logistic, y[k], f, PARAM[j]),
                    3 => of(Poisson, y[k], f, PARAM[j]),
                    4 => of(Quantile, y[k], f, PARAM[j]),
                    _ => of(Squared, y[k], f, PARAM[j]),
                };
                assert_eq!(all[k], residual);
                sum += f64::from(rows[i]) * f64::from(cells[k]) * value;
            }
            assert!((sum - sums[j]).abs() < 1e-5 * (1.0 + sum.abs()), "output {j}");
        }
    }
}
