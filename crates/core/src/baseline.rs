//! Column statistics of the targets: where boosting starts.

use crate::error::Result;
use crate::parallel::Pool;
use crate::reduce::{FixedPoint, share, weighted_select};

/// Σ w v or Σ w v² of every column of a row-major matrix with `n_outputs` columns.
pub fn column_sums<T: Copy + Sync + Into<f64>>(
    pool: &Pool,
    values: &[T],
    n_outputs: usize,
    weight: Option<&[f32]>,
    squared: bool,
) -> Result<Vec<f64>> {
    let d = n_outputs;
    let n = values.len() / d;
    let term = |i: usize, v: T| {
        let v: f64 = v.into();
        (if squared { v * v } else { v }) * weight.map_or(1.0, |w| f64::from(w[i]))
    };
    let ranges = pool.row_ranges(n, d);
    let maxima = pool.map(ranges.clone(), n * d, |rows| {
        let mut max = vec![0.0f64; d];
        for i in rows {
            for (m, &v) in max.iter_mut().zip(&values[i * d..(i + 1) * d]) {
                *m = m.max(term(i, v).abs());
            }
        }
        max
    })?;
    let mut max = vec![0.0f64; d];
    for part in maxima {
        max.iter_mut().zip(part).for_each(|(m, v)| *m = m.max(v));
    }
    let fixed: Vec<FixedPoint> = max.iter().map(|&m| FixedPoint::for_sum(m, n)).collect();
    let parts = pool.map(ranges, n * d, |rows| {
        let mut sums = vec![0i64; d];
        for i in rows {
            for (k, &v) in values[i * d..(i + 1) * d].iter().enumerate() {
                sums[k] += fixed[k].encode(term(i, v));
            }
        }
        sums
    })?;
    let mut sums = vec![0i64; d];
    for part in parts {
        sums.iter_mut().zip(part).for_each(|(s, v)| *s += v);
    }
    Ok(sums.iter().zip(fixed).map(|(&s, f)| f.decode(s)).collect())
}

/// The lower weighted quantile of every column of |v − centre| (or of v, without `centre`).
pub fn column_quantiles(
    pool: &Pool,
    values: &[f64],
    n_outputs: usize,
    weight: Option<&[f32]>,
    levels: &[f64],
    centre: Option<&[f64]>,
) -> Result<Vec<f64>> {
    let n = values.len() / n_outputs;
    let weights = crate::leaf::integer_weights(weight, n);
    pool.map(0..n_outputs, n * n_outputs * 20, |j| {
        let mut items: Vec<(f64, i64)> = (0..n)
            .map(|i| {
                let value = values[i * n_outputs + j];
                let value = centre.map_or(value, |c| (value - c[j]).abs());
                (value, weights.as_ref().map_or(1, |w| w[i]))
            })
            .collect();
        let total: i128 = items.iter().map(|item| i128::from(item.1)).sum();
        weighted_select(&mut items, share(total, levels[j])).unwrap_or(0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_quantiles_of_columns() {
        let pool = Pool::serial();
        let values = [1.0f64, -1.0, 2.0, 5.0, 6.0, 0.0];
        let weight = [1.0f32, 2.0, 1.0];
        assert_eq!(column_sums(&pool, &values, 2, Some(&weight), false).unwrap(), [11.0, 9.0]);
        assert_eq!(column_sums(&pool, &values, 2, None, true).unwrap(), [41.0, 26.0]);
        let quantile = |levels: &[f64], w| column_quantiles(&pool, &values, 2, w, levels, None);
        assert_eq!(quantile(&[0.5, 0.5], None).unwrap(), [2.0, 0.0]);
        assert_eq!(quantile(&[0.2, 0.9], Some(&weight[..])).unwrap(), [1.0, 5.0]);
    }
}
