//! Softmax along a direction: its outputs are searched together.

use super::{Direction, moved, pick};
use crate::error::{Result, invalid};
use crate::losses::{Objective, Targets, softmax_row};
use crate::parallel::Pool;
use crate::reduce::{ExactSum, FixedPoint, add_up};

/// The loss, its gradient with respect to ρ, and the product of its Hessian with a vector `v`.
pub fn softmax_along(
    pool: &Pool,
    objective: Objective<'_>,
    raw: &[f32],
    direction: Direction<'_>,
    rho: &[f64],
    v: &[f64],
) -> Result<(f64, Vec<f64>, Vec<f64>)> {
    let Targets::Classes(classes) = objective.targets else {
        return invalid("the targets of softmax are class numbers");
    };
    let (offset, weights) = (objective.offset(), objective.weights);
    let (n, d) = (objective.n_rows, offset.len());
    let heaviest = weights.max(pool)?;
    let n_all = pool.all_rows(n);
    let g_max = direction.max(pool, d)?;
    let gv_max = g_max.iter().zip(v).fold(0.0f64, |m, (g, v)| m.max(g * v.abs()));
    let fixed = g_max
        .iter()
        .map(|g| {
            let scale = |bound: f64| FixedPoint::for_sum(bound * 1.000_01, n_all);
            Ok((scale(g * heaviest)?, scale(2.0 * g * gv_max * heaviest)?))
        })
        .collect::<Result<Vec<_>>>()?;
    let ranges = pool.row_ranges(n, d * 8);
    let parts = pool.map(ranges, n * d * 8, |rows| {
        let mut loss = ExactSum::default();
        // The gradient, then the product.
        let mut sums = vec![0i64; 2 * d];
        let mut p = vec![0.0f32; d];
        for i in rows {
            let g = direction.row(i);
            let raw = &raw[i * d..(i + 1) * d];
            let f = |k: usize| moved(offset[k], raw[k], rho[k], pick(g, k));
            let class = classes[i] as usize;
            let normaliser = softmax_row(f, &mut p);
            let w = weights.row(i);
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
    let sums = add_up(pool, sums, 2 * d)?;
    Ok((
        ExactSum::merged(pool, &losses, &mut [], &mut [])?,
        (0..d).map(|k| fixed[k].0.decode(sums[k])).collect(),
        (0..d).map(|k| fixed[k].1.decode(sums[d + k])).collect(),
    ))
}
