//! Sums along a direction of values that were computed elsewhere.

use super::{Direction, pick};
use crate::error::Result;
use crate::outputs::Outputs;
use crate::parallel::Pool;
use crate::reduce::{FixedPoint, add_up, largest};
use crate::weights::Weights;

/// Σ w v g (or Σ w v g²) of each output, for values computed elsewhere (custom losses).
pub fn dots(
    pool: &Pool,
    values: &[f32],
    outputs: &Outputs,
    weights: Weights<'_>,
    direction: Direction<'_>,
    squared: bool,
) -> Result<Vec<f64>> {
    let n = values.len() / outputs.total;
    let width = outputs.width();
    let term = |i: usize, g: &[f32], k: usize| {
        let g = f64::from(pick(g, k));
        let place = outputs.row(i).start + k;
        f64::from(values[place]) * (if squared { g * g } else { g }) * weights.cell(i, place)
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
    let max = largest(pool, maxima, width)?;
    let n_all = pool.all_rows(n);
    let fixed = max.iter().map(|&m| FixedPoint::for_sum(m, n_all)).collect::<Result<Vec<_>>>()?;
    let parts = pool.map(ranges, n * width * 2, |rows| {
        let mut sums = vec![0i64; width];
        for i in rows {
            let g = direction.row(i);
            sums.iter_mut().enumerate().for_each(|(k, s)| *s += fixed[k].encode(term(i, g, k)));
        }
        sums
    })?;
    let sums = add_up(pool, parts, width)?;
    Ok(sums.iter().zip(fixed).map(|(&sum, fixed)| fixed.decode(sum)).collect())
}
