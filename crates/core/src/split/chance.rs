//! What sets of categories gain by chance.
//!
//! The order of the categories follows the gradients, so that the best cut finds a gain even where
//! there is nothing to find: with normal means of k categories that have nothing to do with the
//! target, 2 / π of their whole variance, which is k times that of a row. A search that compared such
//! gains with those of numbers would split by identifiers of rows. So what chance gains with categories
//! beyond what it gains with numbers is taken off.

use crate::error::Result;
use crate::histogram::{Lane, Layout};
use crate::math::ln;
use crate::parallel::Pool;
use crate::reduce::add_up;

/// Integers that a sum of squares is sent as.
const LIMBS: usize = 4;

/// What chance gains in a tree.
#[derive(Debug, Clone, Copy)]
pub struct Chance {
    /// Of the split gradients of a row, in units of gains.
    row_variance: f64,
    n_components: usize,
    n_features: usize,
}

impl Chance {
    /// Nothing, where there are no categories.
    pub const NONE: Chance = Chance { row_variance: 0.0, n_components: 1, n_features: 1 };

    /// For a tree on these rows, whose nodes look at so many features each.
    pub fn new<T: Lane>(
        pool: &Pool,
        rows: &[u32],
        lanes: &[T],
        layout: &Layout,
        n_features: usize,
    ) -> Result<Chance> {
        let row_variance = row_variance(pool, rows, lanes, layout)?;
        Ok(Chance { row_variance, n_components: layout.components, n_features })
    }

    /// What the best set of so many categories gains by chance beyond the best of the features.
    pub fn gain(&self, n_categories: usize) -> f64 {
        let &Chance { row_variance, n_components: q, n_features } = self;
        if n_categories <= 2 || row_variance == 0.0 {
            return 0.0; // two categories are as good as a number
        }
        row_variance * (of_categories(n_categories, q) - of_numbers(n_features, q)).max(0.0)
    }
}

/// What the best set of categories gains by chance, in variances of a row, beyond two categories.
///
/// One direction gains 2 / π of the largest eigenvalue of a matrix of noise (Marchenko and Pastur
/// 1967), which is (√k + √q)² for k categories and q components; in the q − 1 other directions any
/// cut gains as much.
fn of_categories(n_categories: usize, n_components: usize) -> f64 {
    let (k, q) = ((n_categories - 2) as f64, (n_components - 1) as f64);
    std::f64::consts::FRAC_2_PI * (k + 2.0 * (k * q).sqrt())
}

/// What the best of several features with one cut each gains by chance, in variances of a row, beyond
/// one feature: the largest of so many χ² of q degrees of freedom (Laurent and Massart 2000).
fn of_numbers(n_features: usize, n_components: usize) -> f64 {
    let (log, q) = (ln(n_features.max(1) as f64), (n_components - 1) as f64);
    2.0 * log + 2.0 * (q * log).sqrt()
}

/// Variance of the split gradients of a row, in units of gains: the mean over the components of
/// Σ (w z)² / Σ w over the rows of a tree on all ranks. Sums are exact, so that threads and ranks agree.
fn row_variance<T: Lane>(pool: &Pool, rows: &[u32], lanes: &[T], layout: &Layout) -> Result<f64> {
    let &Layout { components: q, width, .. } = layout;
    let n_sums = LIMBS * q + width;
    let parts = pool.map(pool.row_ranges(rows.len(), width), rows.len() * width, |range| {
        let (mut squares, mut sums) = (vec![0i128; q], vec![0i64; width]);
        let mut row_lanes = vec![0i64; width];
        for &row in &rows[range] {
            let start = row as usize * width;
            for (k, &lane) in lanes[start..start + width].iter().enumerate() {
                row_lanes[k] = lane.into();
                sums[k] += row_lanes[k];
            }
            for (c, square) in squares.iter_mut().enumerate() {
                let gradient = i128::from(layout.gradient(&row_lanes, c));
                *square += gradient * gradient;
            }
        }
        squares.into_iter().flat_map(limbs).chain(sums).collect()
    })?;
    let all = add_up(pool, parts, n_sums)?;
    let (squares, sums) = all.split_at(LIMBS * q);
    let of_component = |c: usize| {
        let weight = match layout.by_component() {
            true => layout.weights(sums)[c] as f64,
            false => layout.weight(sums),
        };
        let square: f64 = from_limbs(&squares[LIMBS * c..LIMBS * (c + 1)]);
        if weight > 0.0 { square / weight } else { 0.0 }
    };
    let mean = (0..q).map(of_component).sum::<f64>() / q as f64;
    Ok(mean * layout.unit * layout.unit / layout.weight_unit)
}

/// A sum of squares as integers that ranks can add, 32 bits in each.
fn limbs(square: i128) -> [i64; LIMBS] {
    std::array::from_fn(|k| (square >> (32 * k)) as i64 & 0xffff_ffff)
}

/// The number that added limbs stand for.
fn from_limbs(limbs: &[i64]) -> f64 {
    let sum = |(k, &limb): (usize, &i64)| i128::from(limb) << (32 * k);
    limbs.iter().enumerate().map(sum).sum::<i128>() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::{RowLanes, SplitWeights, quantise};
    use crate::random::Key;

    fn variance(z: &[f32], q: usize, weights: SplitWeights<'_>, rows: &[u32]) -> f64 {
        let pool = Pool::new(2, Box::new(|| false));
        let found = quantise(&pool, z, q, weights, None, None).unwrap();
        match found.lanes {
            RowLanes::Narrow(lanes) => row_variance(&pool, rows, &lanes, &found.layout),
            RowLanes::Wide(lanes) => row_variance(&pool, rows, &lanes, &found.layout),
        }
        .unwrap()
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-6 * expected, "{found} instead of {expected}");
    }

    #[test]
    fn the_variance_is_that_of_the_rows_of_the_tree() {
        let z: Vec<f32> = (0..60).map(|i| (i * i % 17) as f32 - 8.0).collect();
        let w: Vec<f32> = (0..60).map(|i| 0.5 + (i % 4) as f32).collect();
        let all: Vec<u32> = (0..60).collect();
        let some: Vec<u32> = (0..60).step_by(3).collect();
        let square = |i: u32| f64::from(z[i as usize]).powi(2);
        for rows in [&all, &some] {
            let mean = rows.iter().map(|&i| square(i)).sum::<f64>() / rows.len() as f64;
            close(variance(&z, 1, SplitWeights::Equal, rows), mean);
        }
        let weight = |i: u32| f64::from(w[i as usize]);
        let weighted = all.iter().map(|&i| weight(i).powi(2) * square(i)).sum::<f64>()
            / all.iter().map(|&i| weight(i)).sum::<f64>();
        close(variance(&z, 1, SplitWeights::Rows(&w), &all), weighted);
        // Two components of 30 rows.
        let rows: Vec<u32> = (0..30).collect();
        let mean = z.iter().map(|&z| f64::from(z).powi(2)).sum::<f64>() / 60.0;
        close(variance(&z, 2, SplitWeights::Equal, &rows), mean);
        // With weights of their own, gradients are already multiplied by them.
        let products: Vec<f32> = z.iter().zip(&w).map(|(z, w)| z * w).collect();
        let of_component = |c: usize| {
            let of = |v: &[f32], power| -> f64 {
                v.iter().skip(c).step_by(2).map(|&v| f64::from(v).powi(power)).sum()
            };
            of(&products, 2) / of(&w, 1)
        };
        let expected = (of_component(0) + of_component(1)) / 2.0;
        close(variance(&products, 2, SplitWeights::Components(&w), &rows), expected);
    }

    #[test]
    fn no_rows_and_no_weight_have_no_variance() {
        assert_eq!(variance(&[1.0, 2.0], 1, SplitWeights::Equal, &[]), 0.0);
        assert_eq!(variance(&[1.0, 2.0], 1, SplitWeights::Rows(&[0.0, 0.0]), &[0, 1]), 0.0);
    }

    #[test]
    fn limbs_hold_the_largest_squares() {
        for square in [0, 1, (1i128 << 100) + 12345, (1i128 << 118) - 1] {
            assert_eq!(from_limbs(&limbs(square)), square as f64);
        }
        let twice: Vec<i64> = limbs(1 << 90).iter().map(|limb| 2 * limb).collect();
        assert_eq!(from_limbs(&twice), (1i128 << 91) as f64);
    }

    /// The gain of the best cut of categories of equal size whose means are noise of variance 1.
    fn gain_of_noise(k: usize, key: Key) -> f64 {
        let mut stream = key.stream();
        let mut means: Vec<f64> = (0..k).map(|_| stream.normals().0).collect();
        means.sort_unstable_by(f64::total_cmp);
        let mean = means.iter().sum::<f64>() / k as f64;
        let mut left = 0.0;
        let gain = |(i, &each): (usize, &f64)| {
            left += each - mean;
            let (a, b) = ((i + 1) as f64, (k - i - 1) as f64);
            left * left * (1.0 / a + 1.0 / b)
        };
        means[..k - 1].iter().enumerate().map(gain).fold(0.0, f64::max)
    }

    #[test]
    fn noise_gains_what_is_taken_off_and_what_two_categories_gain() {
        for k in [5, 20, 100, 250] {
            let trials = 300;
            let total: f64 = (0..trials).map(|t| gain_of_noise(k, Key::new(t))).sum();
            let expected = of_categories(k, 1) + 1.0;
            let found = total / trials as f64;
            assert!((found / expected - 1.0).abs() < 0.25, "{k}: {found} and {expected}");
        }
    }

    #[test]
    fn the_more_features_the_less_is_taken_off() {
        let chance = |n_features| Chance { row_variance: 2.0, n_components: 1, n_features };
        assert_eq!(chance(1).gain(2), 0.0);
        assert_eq!(chance(1).gain(102), 2.0 * of_categories(102, 1));
        assert!(chance(10).gain(102) < chance(1).gain(102));
        assert_eq!(chance(1000).gain(12), 0.0);
        assert_eq!(Chance::NONE.gain(100), 0.0);
    }
}
