//! Steps: the loss of every output along the direction of a new tree.
//!
//! Kernels only; how the minimum is searched is decided by the caller. A direction gives every row
//! one number (`scalar`) or one per output; it comes as leaf values or as a dense array.

use std::ops::Range;

use crate::error::Result;
use crate::losses::{Loss, Pointwise, Targets, softmax_row};
use crate::parallel::Pool;
use crate::reduce::{ExactSum, FixedPoint, add_up, largest, weighted_select};
use crate::{with_cells, with_pointwise};

/// Where a new tree (or other weak learner) would move the raw predictions.
#[derive(Debug, Clone, Copy)]
pub struct Direction<'a> {
    /// The leaf of each row; `None` if `values` has a row for each row.
    pub leaf_of_row: Option<&'a [u32]>,
    /// Values, row-major.
    pub values: &'a [f32],
    /// Number of columns: 1 serves all outputs.
    pub width: usize,
}

impl Direction<'_> {
    #[inline(always)]
    fn row(&self, i: usize) -> &[f32] {
        let at = self.leaf_of_row.map_or(i, |leaves| leaves[i] as usize);
        &self.values[at * self.width..(at + 1) * self.width]
    }

    /// Largest |value| for each of `n_outputs` outputs.
    fn max(&self, n_outputs: usize) -> Vec<f64> {
        let mut max = vec![0.0f64; self.width];
        for row in self.values.chunks_exact(self.width) {
            max.iter_mut().zip(row).for_each(|(m, &v)| *m = m.max(f64::from(v.abs())));
        }
        if self.width == 1 { vec![max[0]; n_outputs] } else { max }
    }
}

#[inline(always)]
fn pick(row: &[f32], k: usize) -> f32 {
    if row.len() == 1 { row[0] } else { row[k] }
}

fn max_weight(weight: Option<&[f32]>) -> f64 {
    weight.map_or(1.0, |w| w.iter().fold(0.0f64, |m, &v| m.max(f64::from(v))))
}

/// First and second derivative of each output's loss along the direction, at `rho`.
pub fn derivatives(
    pool: &Pool,
    loss: Loss,
    targets: Targets<'_>,
    raw: &[f32],
    offset: &[f32],
    param: &[f32],
    weight: Option<&[f32]>,
    direction: Direction<'_>,
    rho: &[f64],
    outputs: Range<usize>,
) -> Result<(Vec<f64>, Vec<f64>)> {
    with_cells!(targets, y => with_pointwise!(loss, formula => {
        derivatives_of(pool, formula, y, raw, offset, param, weight, direction, rho, outputs)
    }))
}

fn derivatives_of<L: Pointwise, Y: Copy + Sync + Into<f32>>(
    pool: &Pool,
    formula: L,
    y: &[Y],
    raw: &[f32],
    offset: &[f32],
    param: &[f32],
    weight: Option<&[f32]>,
    direction: Direction<'_>,
    rho: &[f64],
    outputs: Range<usize>,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let d = offset.len();
    let n = raw.len() / d;
    let width = outputs.len();
    let ranges = pool.row_ranges(n, width * 8);
    let work = n * width * 8;
    let cells = |i: usize| i * d + outputs.start..i * d + outputs.end;
    let maxima = pool.map(ranges.clone(), work / 4, |rows| {
        // Largest |y| of every output, then largest |f|.
        let mut max = vec![0.0f32; 2 * width];
        for i in rows {
            for (k, cell) in cells(i).enumerate() {
                let y: f32 = y[cell].into();
                max[k] = max[k].max(y.abs());
                let f = offset[outputs.start + k] + raw[cell];
                max[width + k] = max[width + k].max(f.abs());
            }
        }
        max
    })?;
    let max = largest(maxima, 2 * width);
    let heaviest = max_weight(weight);
    let direction_max = direction.max(width);
    let fixed: Vec<(FixedPoint, FixedPoint)> = (0..width)
        .map(|k| {
            let g = direction_max[k];
            let y_max = f64::from(max[k]);
            let f_max = f64::from(max[width + k]) + rho[k].abs() * g;
            let (r, h) = formula.bounds(y_max, f_max, f64::from(param[outputs.start + k]));
            let scale = |bound: f64| FixedPoint::for_sum(bound * 1.000_001, n);
            (scale(r * g * heaviest), scale(h * g * g * heaviest))
        })
        .collect();
    let parts = pool.map(ranges, work, |rows| {
        // Slopes of all outputs, then curvatures.
        let mut sums = vec![0i64; 2 * width];
        for i in rows {
            let g = direction.row(i);
            let w = weight.map_or(1.0, |w| f64::from(w[i]));
            for (k, cell) in cells(i).enumerate() {
                let j = outputs.start + k;
                let g = pick(g, k);
                let f = offset[j] + raw[cell] + (rho[k] * f64::from(g)) as f32;
                let y: f32 = y[cell].into();
                let r = formula.residual(y, f, param[j]);
                let h = formula.curvature(y, r, param[j]);
                let g = f64::from(g);
                sums[k] -= fixed[k].0.encode(f64::from(r) * g * w);
                sums[width + k] += fixed[k].1.encode(f64::from(h) * g * g * w);
            }
        }
        sums
    })?;
    let sums = add_up(parts, 2 * width);
    let decode = |k: usize| (fixed[k].0.decode(sums[k]), fixed[k].1.decode(sums[width + k]));
    Ok((0..width).map(decode).unzip())
}

/// Σ w v g (or Σ w v g²) of each output, for values computed elsewhere (custom losses).
pub fn dots(
    pool: &Pool,
    values: &[f32],
    n_outputs: usize,
    outputs: Range<usize>,
    weight: Option<&[f32]>,
    direction: Direction<'_>,
    squared: bool,
) -> Result<Vec<f64>> {
    let d = n_outputs;
    let n = values.len() / d;
    let width = outputs.len();
    let term = |i: usize, g: &[f32], k: usize| {
        let g = f64::from(pick(g, k));
        let v = f64::from(values[i * d + outputs.start + k]);
        v * (if squared { g * g } else { g }) * weight.map_or(1.0, |w| f64::from(w[i]))
    };
    let ranges = pool.row_ranges(n, width * 2);
    let maxima = pool.map(ranges.clone(), n * width * 2, |rows| {
        let mut max = vec![0.0f64; width];
        for i in rows {
            let g = direction.row(i);
            max.iter_mut().enumerate().for_each(|(k, m)| *m = m.max(term(i, g, k).abs()));
        }
        max
    })?;
    let max = largest(maxima, width);
    let fixed: Vec<FixedPoint> = max.iter().map(|&m| FixedPoint::for_sum(m, n)).collect();
    let parts = pool.map(ranges, n * width * 2, |rows| {
        let mut sums = vec![0i64; width];
        for i in rows {
            let g = direction.row(i);
            sums.iter_mut().enumerate().for_each(|(k, s)| *s += fixed[k].encode(term(i, g, k)));
        }
        sums
    })?;
    let sums = add_up(parts, width);
    Ok(sums.iter().zip(fixed).map(|(&sum, fixed)| fixed.decode(sum)).collect())
}

/// The exact minimiser of Σ w ρ_level(y − f − ρ g) for each output: the lowest of the breakpoints
/// (y − f)/g, weighted by w |g|, at which the slope stops being negative. 0 where g is all zero.
pub fn quantile_steps(
    pool: &Pool,
    y: &[f32],
    raw: &[f32],
    n_outputs: usize,
    outputs: Range<usize>,
    levels: &[f32],
    weight: Option<&[f32]>,
    direction: Direction<'_>,
) -> Result<Vec<f64>> {
    let d = n_outputs;
    let n = y.len() / d;
    let width = outputs.len();
    let direction_max = direction.max(width);
    let heaviest = max_weight(weight);
    pool.map(0..width, n * width * 20, |k| {
        let j = outputs.start + k;
        let level = f64::from(levels[j]);
        let fixed = FixedPoint::for_sum(direction_max[k] * heaviest, n);
        let mut items = Vec::with_capacity(n);
        let (mut forward, mut backward) = (0i128, 0i128);
        for i in 0..n {
            let g = f64::from(pick(direction.row(i), k));
            let w = weight.map_or(1.0, |w| f64::from(w[i]));
            if g == 0.0 || w == 0.0 {
                continue;
            }
            let mass = fixed.encode(g.abs() * w).max(1);
            *(if g > 0.0 { &mut forward } else { &mut backward }) += i128::from(mass);
            items.push(((f64::from(y[i * d + j]) - f64::from(raw[i * d + j])) / g, mass));
        }
        // Rows with g < 0 see the mirrored loss.
        let target = level * forward as f64 + (1.0 - level) * backward as f64;
        let target = (target - 1e-9 * target.abs()).ceil() as i128;
        weighted_select(&mut items, target).unwrap_or(0.0)
    })
}

/// Softmax along a direction: the loss, its gradient with respect to ρ, and the product of its
/// Hessian with a vector `v`.
pub fn softmax_along(
    pool: &Pool,
    classes: &[u32],
    raw: &[f32],
    offset: &[f32],
    weight: Option<&[f32]>,
    direction: Direction<'_>,
    rho: &[f64],
    v: &[f64],
) -> Result<(f64, Vec<f64>, Vec<f64>)> {
    let d = offset.len();
    let n = raw.len() / d;
    let heaviest = max_weight(weight);
    let g_max = direction.max(d);
    let gv_max = g_max.iter().zip(v).fold(0.0f64, |m, (g, v)| m.max(g * v.abs()));
    let fixed: Vec<(FixedPoint, FixedPoint)> = g_max
        .iter()
        .map(|g| {
            let scale = |bound: f64| FixedPoint::for_sum(bound * 1.000_01, n);
            (scale(g * heaviest), scale(2.0 * g * gv_max * heaviest))
        })
        .collect();
    let ranges = pool.row_ranges(n, d * 8);
    let parts = pool.map(ranges, n * d * 8, |rows| {
        let mut loss = ExactSum::default();
        // The gradient, then the product.
        let mut sums = vec![0i64; 2 * d];
        let mut p = vec![0.0f32; d];
        for i in rows {
            let g = direction.row(i);
            let raw = &raw[i * d..(i + 1) * d];
            let f = |k: usize| offset[k] + raw[k] + (rho[k] * f64::from(pick(g, k))) as f32;
            let class = classes[i] as usize;
            let normaliser = softmax_row(f, &mut p);
            let w = weight.map_or(1.0, |w| f64::from(w[i]));
            loss.add((normaliser - f64::from(f(class))) * w);
            let mean: f64 = (0..d).map(|k| f64::from(p[k]) * f64::from(pick(g, k)) * v[k]).sum();
            for k in 0..d {
                let (g, p) = (f64::from(pick(g, k)), f64::from(p[k]));
                let y = if k == class { 1.0 } else { 0.0 };
                sums[k] += fixed[k].0.encode((p - y) * g * w);
                sums[d + k] += fixed[k].1.encode(p * g * (g * v[k] - mean) * w);
            }
        }
        (loss, sums)
    })?;
    let (losses, sums): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let sums = add_up(sums, 2 * d);
    Ok((
        ExactSum::merged(&losses),
        (0..d).map(|k| fixed[k].0.decode(sums[k])).collect(),
        (0..d).map(|k| fixed[k].1.decode(sums[d + k])).collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_of_squared_error_are_exact() {
        let y = [1.0f32, 2.0, -1.0, 0.5];
        let raw = [0.0f32; 4];
        let direction =
            Direction { leaf_of_row: Some(&[0, 1]), values: &[0.5, 1.0, -2.0, 1.0], width: 2 };
        let (slope, curve) = derivatives(
            &Pool::serial(),
            Loss::Squared,
            Targets::Real(&y),
            &raw,
            &[0.0; 2],
            &[0.0; 2],
            None,
            direction,
            &[0.0, 1.0],
            0..2,
        )
        .unwrap();
        assert!((slope[0] + (0.5 + 2.0)).abs() < 1e-9);
        assert!((slope[1] + (1.0 - 0.5)).abs() < 1e-9);
        assert!((curve[0] - 4.25).abs() < 1e-9 && (curve[1] - 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_quantile_step_minimises_the_pinball_loss() {
        let mut stream = crate::random::Key::new(2).stream();
        for case in 0..20 {
            let n = 30;
            let y: Vec<f32> = (0..n).map(|_| stream.normals().0 as f32).collect();
            let g: Vec<f32> = (0..n).map(|_| stream.normals().0 as f32).collect();
            let level = [0.5f32, 0.2, 0.9][case % 3];
            let direction = Direction { leaf_of_row: None, values: &g, width: 1 };
            let rho = quantile_steps(
                &Pool::serial(),
                &y,
                &vec![0.0; n],
                1,
                0..1,
                &[level],
                None,
                direction,
            )
            .unwrap()[0];
            let loss = |rho: f64| -> f64 {
                (0..n)
                    .map(|i| {
                        let u = f64::from(y[i]) - rho * f64::from(g[i]);
                        (f64::from(level) * u).max((f64::from(level) - 1.0) * u)
                    })
                    .sum()
            };
            for i in 0..n {
                assert!(loss(rho) <= loss(f64::from(y[i]) / f64::from(g[i])) + 1e-6);
            }
        }
    }
}
