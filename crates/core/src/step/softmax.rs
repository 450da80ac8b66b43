//! Softmax along a direction: its outputs are searched together.

use super::{Along, moved, pick};
use crate::error::{Result, invalid};
use crate::losses::{Targets, softmax_row};
use crate::outputs::Outputs;
use crate::parallel::Pool;
use crate::reduce::{ExactSum, FixedPoint, add_up};

/// The loss, its gradient with respect to ρ, and the product of its Hessian with a vector `v`.
pub fn softmax_along(
    pool: &Pool,
    along: &Along<'_>,
    rho: &[f64],
    v: &[f64],
) -> Result<(f64, Vec<f64>, Vec<f64>)> {
    let Along { objective, raw, direction, outputs } = along;
    if !objective.losses.has_softmax(outputs) {
        return invalid(format!("outputs {outputs:?} are not those of a softmax"));
    }
    let (targets, weights) = (objective.targets, objective.weights);
    let offset = &objective.offset()[outputs.clone()];
    let (n, d) = (objective.n_rows, offset.len());
    let outputs = Outputs { total: objective.n_outputs(), range: outputs.clone() };
    let heaviest = match targets {
        Targets::Real(y) => weights.max_of_outputs(pool, y, &outputs)?[0],
        Targets::Labels(y) => weights.max_of_outputs(pool, y, &outputs)?[0],
        Targets::Classes(_) => weights.max(pool)?,
    };
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
            let places = outputs.row(i);
            let Some(class) = targets.class(i, places.clone()) else { continue };
            let g = direction.row(i);
            let w = weights.cell(i, places.start);
            let raw = &raw[places];
            let f = |k: usize| moved(offset[k], raw[k], rho[k], pick(g, k));
            let normaliser = softmax_row(f, &mut p);
            loss.add((normaliser - f64::from(f(class))) * w);
            // In single precision they do not quite sum to one, and the loss would seem to change
            // with what all classes share.
            let share = 1.0 / p.iter().map(|&p| f64::from(p)).sum::<f64>();
            let p = |k: usize| f64::from(p[k]) * share;
            let mean: f64 = (0..d).map(|k| p(k) * f64::from(pick(g, k)) * v[k]).sum();
            for k in 0..d {
                let (g, p) = (f64::from(pick(g, k)), p(k));
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
