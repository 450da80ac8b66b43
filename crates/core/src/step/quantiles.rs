//! Exact steps for the losses without curvature.

use super::{Direction, pick};
use crate::error::Result;
use crate::memory::room;
use crate::outputs::Outputs;
use crate::parallel::Pool;
use crate::reduce::FixedPoint;
use crate::select::{self, Query};
use crate::weights::Weights;

/// The exact minimiser of Σ w ρ_level(y − f − ρ g) for each output: the lowest of the breakpoints
/// (y − f)/g, weighted by w |g|, at which the slope stops being negative. 0 where g is all zero.
pub fn quantile_steps(
    pool: &Pool,
    y: &[f32],
    raw: &[f32],
    outputs: &Outputs,
    levels: &[f64],
    weights: Weights<'_>,
    direction: Direction<'_>,
) -> Result<Vec<f64>> {
    let n = y.len() / outputs.total;
    let direction_max = direction.max(pool, outputs.width())?;
    let heaviest = weights.max_of_outputs(pool, y, outputs)?;
    let n_all = pool.all_rows(n);
    // Rows that move with ρ, and those that move against it.
    let query_of = |j: usize| {
        let k = j - outputs.range.start;
        let fixed = FixedPoint::for_sum(direction_max[k] * heaviest[k], n_all)?;
        let mut query = Query { items: room(n)?, masses: [0, 0] };
        for i in 0..n {
            let g = f64::from(pick(direction.row(i), k));
            let place = i * outputs.total + j;
            let (y, w) = weights.target(i, place, y[place]);
            if g == 0.0 || w == 0.0 {
                continue;
            }
            let mass = fixed.encode(g.abs() * w).max(1);
            query.masses[usize::from(g < 0.0)] += mass;
            query.items.push(((f64::from(y) - f64::from(raw[place])) / g, mass));
        }
        Ok(vec![query])
    };
    let target = |j: usize, [forward, backward]: [i64; 2]| {
        // Rows with g < 0 see the mirrored loss.
        let target = levels[j] * forward as f64 + (1.0 - levels[j]) * backward as f64;
        (target - 1e-9 * target.abs()).ceil() as i128
    };
    let steps = select::for_outputs(pool, outputs.range.clone(), n, 1, query_of, target)?;
    Ok(steps.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_step_minimises_the_pinball_loss() {
        let mut stream = crate::random::Key::new(2).stream();
        for case in 0..20 {
            let n = 30;
            let y: Vec<f32> = (0..n).map(|_| stream.normals().0 as f32).collect();
            let g: Vec<f32> = (0..n).map(|_| stream.normals().0 as f32).collect();
            let level = [0.5f64, 0.2, 0.9][case % 3];
            let direction = Direction { leaf_of_row: None, values: &g, width: 1 };
            let (pool, outputs, none) = (Pool::serial(), Outputs::all(1), Weights::default());
            let raw = vec![0.0; n];
            let rho = quantile_steps(&pool, &y, &raw, &outputs, &[level], none, direction);
            let rho = rho.unwrap()[0];
            let loss = |rho: f64| -> f64 {
                (0..n)
                    .map(|i| {
                        let u = f64::from(y[i]) - rho * f64::from(g[i]);
                        (level * u).max((level - 1.0) * u)
                    })
                    .sum()
            };
            for i in 0..n {
                assert!(loss(rho) <= loss(f64::from(y[i]) / f64::from(g[i])) + 1e-6);
            }
        }
    }
}
