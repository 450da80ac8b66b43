//! Folds over the cells of a row, in a fixed pattern: the same bits on every instruction set.

/// Σ a b in eight lanes of doubles.
#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut lanes = [0.0f64; 8];
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = a.remainder().iter().zip(b.remainder());
    for (a, b) in a.zip(b) {
        for k in 0..8 {
            lanes[k] += f64::from(a[k]) * f64::from(b[k]);
        }
    }
    for (lane, (&a, &b)) in lanes.iter_mut().zip(rest) {
        *lane += f64::from(a) * f64::from(b);
    }
    let four: [f64; 4] = std::array::from_fn(|k| lanes[k] + lanes[k + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

/// Σ v.
#[inline(always)]
pub(super) fn sum<T: Copy + Into<f64>>(values: &[T]) -> f64 {
    fold(values, 0.0, |lane, value| lane + value, |a, b| a + b)
}

/// Π (1 + v).
#[inline(always)]
pub(super) fn product_of_one_plus(values: &[f32]) -> f64 {
    fold(values, 1.0, |lane, value| lane * (1.0 + value), |a, b| a * b)
}

/// Folds numbers in eight lanes of doubles, and then the lanes.
#[inline(always)]
fn fold<T: Copy + Into<f64>>(
    values: &[T],
    start: f64,
    step: impl Fn(f64, f64) -> f64,
    merge: impl Fn(f64, f64) -> f64,
) -> f64 {
    match values.len() {
        1 => fold_short::<1, T>(values, start, step, merge),
        2 => fold_short::<2, T>(values, start, step, merge),
        3 => fold_short::<3, T>(values, start, step, merge),
        4 => fold_short::<4, T>(values, start, step, merge),
        5 => fold_short::<5, T>(values, start, step, merge),
        6 => fold_short::<6, T>(values, start, step, merge),
        7 => fold_short::<7, T>(values, start, step, merge),
        _ => fold_long(values, start, step, merge),
    }
}

/// [`fold`] of fewer numbers than lanes.
#[inline(always)]
fn fold_short<const N: usize, T: Copy + Into<f64>>(
    values: &[T],
    start: f64,
    step: impl Fn(f64, f64) -> f64,
    merge: impl Fn(f64, f64) -> f64,
) -> f64 {
    let values = &values[..N];
    let lane = |k: usize| if k < N { step(start, values[k].into()) } else { start };
    let four: [f64; 4] = std::array::from_fn(|k| merge(lane(k), lane(k + 4)));
    merge(merge(four[0], four[2]), merge(four[1], four[3]))
}

#[inline(always)]
fn fold_long<T: Copy + Into<f64>>(
    values: &[T],
    start: f64,
    step: impl Fn(f64, f64) -> f64,
    merge: impl Fn(f64, f64) -> f64,
) -> f64 {
    let mut lanes = [[start; 4]; 2];
    let eights = values.chunks_exact(8);
    let rest = eights.remainder();
    for eight in eights {
        for (half, lanes) in lanes.iter_mut().enumerate() {
            let four: [f64; 4] = std::array::from_fn(|k| eight[4 * half + k].into());
            for k in 0..4 {
                lanes[k] = step(lanes[k], four[k]);
            }
        }
    }
    for (k, &value) in rest.iter().enumerate() {
        lanes[k / 4][k % 4] = step(lanes[k / 4][k % 4], value.into());
    }
    let four: [f64; 4] = std::array::from_fn(|k| merge(lanes[0][k], lanes[1][k]));
    merge(merge(four[0], four[2]), merge(four[1], four[3]))
}

/// The largest of some floats, eight at a time.
#[inline(always)]
pub(super) fn largest(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; 8];
    let eights = values.chunks_exact(8);
    let rest = eights.remainder();
    for eight in eights {
        for k in 0..8 {
            lanes[k] = if eight[k] > lanes[k] { eight[k] } else { lanes[k] };
        }
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |top, &v| if v > top { v } else { top })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_rows_are_folded_like_long_ones() {
        let values: Vec<f32> = (0..7).map(|k| 0.1 + 1.3 * k as f32).collect();
        for n in 0..=7 {
            let (values, add) = (&values[..n], |a: f64, b: f64| a + b);
            assert_eq!(sum(values), fold_long(values, 0.0, add, add));
            let exact: f64 = values.iter().map(|&v| f64::from(v)).sum();
            assert!((sum(values) - exact).abs() < 1e-12);
            let product: f64 = values.iter().map(|&v| 1.0 + f64::from(v)).product();
            assert!((product_of_one_plus(values) / product - 1.0).abs() < 1e-12);
        }
    }
}
