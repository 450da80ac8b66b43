//! Features that hold categories, as the codes 0, 1, …

use super::cuts::MAX_BINS;
use crate::error::{Result, invalid};
use crate::parallel::Pool;
use crate::reduce::exchange;

/// The number of categories of a feature, 0 if it is numeric.
pub(super) fn count_of(feature: usize, n_categories: &[u32]) -> u32 {
    n_categories.get(feature).copied().unwrap_or(0)
}

/// Whether a value is missing or the code of one of `n` categories.
#[inline(always)]
pub(super) fn is_code(value: f32, n: u32) -> bool {
    // (A cast, not `fract`, which calls a function for each value.)
    value.is_nan() || (value < n as f32 && (value as u32) as f32 == value)
}

/// Thresholds between the codes of `n` categories: each has its own bin, even if no training row has it.
pub(super) fn category_thresholds(n: u32) -> Vec<f32> {
    (1..n).map(|code| code as f32 - 0.5).collect()
}

/// The error for a feature whose values are not all codes of `n` categories.
pub(super) fn no_codes<T>(feature: usize, n: u32) -> Result<T> {
    invalid(format!("feature {feature} holds other values than the codes of {n} categories"))
}

/// The categorical features of row-major `x`, and whether any machine has missing values of them. An
/// error if other values are not codes.
pub(super) fn look_at_categories(
    pool: &Pool,
    x: &[f32],
    n_features: usize,
    n_categories: &[u32],
) -> Result<Vec<(usize, bool)>> {
    if !n_categories.is_empty() && n_categories.len() != n_features {
        return invalid(format!(
            "n_categories has {} elements, expected {n_features}",
            n_categories.len()
        ));
    }
    let all = n_categories.iter().copied().enumerate();
    let features: Vec<(usize, u32)> = all.filter(|&(_, n)| n > 0).collect();
    if let Some(&(feature, n)) = features.iter().find(|(_, n)| *n as usize > MAX_BINS) {
        return no_codes(feature, n);
    }
    if features.is_empty() {
        return Ok(Vec::new());
    }
    // All features of a row at once: it is read once.
    let (n_rows, n_cells) = (x.len() / n_features, x.len() / n_features * features.len());
    let found = pool.map(pool.row_ranges(n_rows, features.len()), n_cells, |rows| {
        let mut found = vec![(false, false); features.len()];
        for row in x[rows.start * n_features..rows.end * n_features].chunks_exact(n_features) {
            for ((has_missing, has_others), &(feature, n)) in found.iter_mut().zip(&features) {
                let value = row[feature];
                *has_missing |= value.is_nan();
                *has_others |= !is_code(value, n);
            }
        }
        found
    })?;
    let any = |k: usize, of: fn(&(bool, bool)) -> bool| found.iter().any(|part| of(&part[k]));
    let others = (0..features.len()).find(|&k| any(k, |found| found.1));
    if let Some((feature, n)) = others.map(|k| features[k]) {
        return no_codes(feature, n);
    }
    let missing = (0..features.len()).map(|k| f64::from(any(k, |found| found.0)));
    let mut missing: Vec<f64> = missing.collect();
    exchange(pool, &mut [], &mut missing)?;
    Ok(features.iter().zip(missing).map(|(&(feature, _), any)| (feature, any > 0.0)).collect())
}

#[cfg(test)]
mod tests {
    use super::super::find_cuts;
    use crate::parallel::Pool;
    use crate::select::tests::on_machines;

    #[test]
    fn categories_have_a_bin_each_and_may_be_missing() {
        let gone = f32::NAN;
        let x = [0.5, 0.0, 2.0, 1.5, gone, 0.0, gone, 3.0, 2.0, 0.5, 1.0, 1.0];
        let find = |pool: &Pool, x: &[f32], n: &[u32]| find_cuts(pool, x, 3, None, 255, n);
        let pool = Pool::serial();
        let cuts = find(&pool, &x, &[0, 4, 3]).unwrap();
        assert_eq!(cuts.thresholds, [vec![1.0], vec![0.5, 1.5, 2.5], vec![0.5, 1.5]]);
        assert_eq!(cuts.has_missing, [true, true, false]);
        assert_eq!(cuts.categorical, [false, true, true]);
        let all = find(&pool, &[0.0, 1.0, 2.0], &[1, 2, 3]).unwrap();
        assert_eq!(all.thresholds, [vec![], vec![0.5], vec![0.5, 1.5]]);
        // Missing on one machine of two.
        let parts = on_machines(2, 4, |rank, pool| find(pool, &x[rank * 6..][..6], &[0, 4, 3]));
        parts.into_iter().for_each(|part| assert_eq!(part.as_ref(), Ok(&cuts)));
    }

    #[test]
    fn values_that_are_no_codes_are_refused() {
        let refusal = |x: &[f32], n_categories: &[u32]| {
            find_cuts(&Pool::serial(), x, 2, None, 255, n_categories).unwrap_err().to_string()
        };
        for other in [2.0, -1.0, 0.5, f32::INFINITY] {
            assert_eq!(
                refusal(&[0.0, 7.5, 1.0, 0.0, other, 0.0], &[2, 0]),
                "feature 0 holds other values than the codes of 2 categories"
            );
        }
        let many = refusal(&[0.0, 0.0], &[0, 256]);
        assert_eq!(many, "feature 1 holds other values than the codes of 256 categories");
        assert_eq!(refusal(&[0.0, 0.0], &[2]), "n_categories has 1 elements, expected 2");
    }
}
