//! Column statistics of the targets: where boosting starts.

use crate::error::Result;
use crate::leaf::integer_weights;
use crate::lowlevel::widest;
use crate::memory::{collected, zeros};
use crate::outputs::Outputs;
use crate::parallel::Pool;
use crate::reduce::{FixedPoint, add_up, largest, round_scaled, share};
use crate::select::{self, Query};
use crate::weights::{Cell, Weights};

/// Σ w v or Σ w v² of every column of a row-major matrix with `n_outputs` columns.
pub fn column_sums<T: Cell>(
    pool: &Pool,
    values: &[T],
    n_outputs: usize,
    weights: Weights<'_>,
    squared: bool,
) -> Result<Vec<f64>> {
    let d = n_outputs;
    let n = values.len() / d;
    let by_cell = weights.by_cell();
    let term = |i: usize, j: usize, v: T| {
        let (v, w) = if by_cell { weights.target(i, i * d + j, v) } else { (v, weights.row(i)) };
        let v: f64 = v.into();
        (if squared { v * v } else { v }) * w
    };
    let ranges = pool.row_ranges(n, d);
    let maxima = pool.map(ranges.clone(), n * d, |rows| {
        let mut max = vec![0.0f64; d];
        widest(
            #[inline(always)]
            || {
                for i in rows {
                    let cells = values[i * d..(i + 1) * d].iter().enumerate();
                    for (m, (j, &v)) in max.iter_mut().zip(cells) {
                        let size = term(i, j, v).abs();
                        *m = if size > *m { size } else { *m };
                    }
                }
            },
        );
        max
    })?;
    let max = largest(pool, maxima, d)?;
    let n_all = pool.all_rows(n);
    let fixed = max.iter().map(|&m| FixedPoint::for_sum(m, n_all)).collect::<Result<Vec<_>>>()?;
    let scale: Vec<f64> = fixed.iter().map(|f| f.scale).collect();
    let parts = pool.map(ranges, n * d, |rows| {
        let mut sums = vec![0i64; d];
        widest(
            #[inline(always)]
            || {
                for i in rows {
                    let cells = values[i * d..(i + 1) * d].iter().zip(&scale).enumerate();
                    for (sum, (j, (&v, &scale))) in sums.iter_mut().zip(cells) {
                        *sum += round_scaled(term(i, j, v) * scale);
                    }
                }
            },
        );
        sums
    })?;
    let sums = add_up(pool, parts, d)?;
    Ok(sums.iter().zip(fixed).map(|(&s, f)| f.decode(s)).collect())
}

/// (values − centre) in single precision, or `None` if one of them does not fit. Missing values stay
/// missing.
pub fn centred<T: Cell>(
    pool: &Pool,
    values: &[T],
    n_outputs: usize,
    centre: &[f64],
) -> Result<Option<Vec<f32>>> {
    let mut out = zeros::<f32>(values.len())?;
    let size = (values.len() / n_outputs).div_ceil(pool.threads() * 4).max(1) * n_outputs;
    let fits = std::sync::atomic::AtomicBool::new(true);
    let pieces = out.chunks_mut(size).zip(values.chunks(size));
    pool.for_each(pieces, values.len(), |(out, values)| {
        let mut finite = true;
        for (out, values) in out.chunks_mut(n_outputs).zip(values.chunks(n_outputs)) {
            for ((out, &value), centre) in out.iter_mut().zip(values).zip(centre) {
                let value: f64 = value.into();
                *out = (value - centre) as f32;
                finite &= out.is_finite() | value.is_nan();
            }
        }
        if !finite {
            fits.store(false, std::sync::atomic::Ordering::Relaxed);
        }
    })?;
    Ok(fits.into_inner().then_some(out))
}

/// The lower weighted quantile of every column of |v − centre| (or of v, without `centre`).
pub fn column_quantiles<T: Cell>(
    pool: &Pool,
    values: &[T],
    n_outputs: usize,
    weights: Weights<'_>,
    levels: &[f64],
    centre: Option<&[f64]>,
) -> Result<Vec<f64>> {
    let n = values.len() / n_outputs;
    let heaviest = weights.max_of_outputs(pool, values, &Outputs::all(n_outputs))?;
    let n_all = pool.all_rows(n);
    let query_of = |j: usize| {
        let weight_of = integer_weights(weights, heaviest[j], n_all)?;
        let observed = (0..n)
            .map(|i| (i, i * n_outputs + j))
            .filter(|&(_, place)| !values[place].is_missing())
            .map(|(i, place)| {
                let value: f64 = values[place].into();
                (centre.map_or(value, |c| (value - c[j]).abs()), weight_of(i, place))
            });
        Ok(vec![Query::of(collected(n, observed)?)])
    };
    let target = |j: usize, [total, _]: [i64; 2]| share(i128::from(total), levels[j]);
    let quantiles = select::for_outputs(pool, 0..n_outputs, n, 1, query_of, target)?;
    Ok(quantiles.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_quantiles_of_columns() {
        let pool = Pool::serial();
        let values = [1.0f64, -1.0, 2.0, 5.0, 6.0, 0.0];
        let rows = Weights::of_rows(Some(&[1.0f32, 2.0, 1.0]));
        let none = Weights::default();
        assert_eq!(column_sums(&pool, &values, 2, rows, false).unwrap(), [11.0, 9.0]);
        assert_eq!(column_sums(&pool, &values, 2, none, true).unwrap(), [41.0, 26.0]);
        let quantile = |levels: &[f64], w| column_quantiles(&pool, &values, 2, w, levels, None);
        assert_eq!(quantile(&[0.5, 0.5], none).unwrap(), [2.0, 0.0]);
        assert_eq!(quantile(&[0.2, 0.9], rows).unwrap(), [1.0, 5.0]);
    }

    #[test]
    fn missing_cells_are_not_there() {
        let pool = Pool::serial();
        let values = [1.0f64, f64::NAN, 2.0, 5.0, f64::NAN, 3.0];
        let cells = [1.0f32, 1.0, 3.0, 0.5, 1.0, 2.0];
        let weights = Weights { rows: None, cells: Some(&cells), partial: true };
        assert_eq!(column_sums(&pool, &values, 2, weights, false).unwrap(), [7.0, 8.5]);
        let medians = column_quantiles(&pool, &values, 2, weights, &[0.5, 0.5], None).unwrap();
        assert_eq!(medians, [2.0, 3.0]);
        let kept = centred(&pool, &values, 2, &[1.0, 1.0]).unwrap().unwrap();
        assert!(kept[1].is_nan() && kept[3] == 4.0);
    }
}
