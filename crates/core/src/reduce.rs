//! Sums, maxima and quantiles over rows: the one place where rows are combined.
//!
//! Every sum over rows is a sum of integers, because integers can be added in any order, by any
//! number of threads and machines, with the same result to the last bit. Real numbers become
//! integers in fixed point, with a power-of-two scale taken from the exact maximum.

use crate::error::{Error, Result};
use crate::memory::zeros;
use crate::parallel::Pool;

/// Adds up the partial sums of a job, element by element, here and on all other machines.
pub fn add_up(
    pool: &Pool,
    parts: impl IntoIterator<Item = Vec<i64>>,
    len: usize,
) -> Result<Vec<i64>> {
    let mut total = add_up_here(parts, len)?;
    exchange(pool, &mut total, &mut [])?;
    Ok(total)
}

/// Adds up the partial sums of a job on this machine, element by element, in the room of the first.
pub fn add_up_here(parts: impl IntoIterator<Item = Vec<i64>>, len: usize) -> Result<Vec<i64>> {
    let mut parts = parts.into_iter();
    let mut total = parts.next().map_or_else(|| zeros::<i64>(len), Ok)?;
    for part in parts {
        total.iter_mut().zip(part).for_each(|(t, v)| *t = t.wrapping_add(v));
    }
    Ok(total)
}

/// The largest of the partial maxima of a job, element by element, here and on all other machines.
/// No value is negative; NaN is ignored.
pub fn largest<T: Into<f64>>(
    pool: &Pool,
    parts: impl IntoIterator<Item = Vec<T>>,
    len: usize,
) -> Result<Vec<f64>> {
    let mut max = largest_here(parts, len)?;
    exchange(pool, &mut [], &mut max)?;
    Ok(max)
}

/// The largest of the partial maxima of a job on this machine. No value is negative; NaN is ignored.
pub fn largest_here<T: Into<f64>>(
    parts: impl IntoIterator<Item = Vec<T>>,
    len: usize,
) -> Result<Vec<f64>> {
    let mut max = zeros::<f64>(len)?;
    for part in parts {
        for (m, v) in max.iter_mut().zip(part) {
            let v = v.into();
            *m = if v > *m { v } else { *m };
        }
    }
    Ok(max)
}

/// The largest magnitude in each column of a matrix with `d` columns, on the bits of non-negative
/// floats, which order as they do.
pub struct ColumnMaxima {
    /// Maxima of the columns, several times side by side, so that short rows are compared together.
    tile: Vec<u32>,
    d: usize,
}

impl ColumnMaxima {
    /// Zeros.
    pub fn new(d: usize) -> ColumnMaxima {
        ColumnMaxima { tile: vec![0; d * (256 / d.max(1)).max(1)], d }
    }

    /// Takes whole rows into account, each number times a weight.
    #[inline(always)]
    pub fn raise(&mut self, rows: &[f32], weight: f32) {
        for rows in rows.chunks(self.tile.len().max(1)) {
            let cells = self.tile.iter_mut().zip(rows);
            if weight == 1.0 {
                cells.for_each(|(max, value)| *max = (*max).max(value.abs().to_bits()));
            } else {
                cells.for_each(|(max, value)| *max = (*max).max((value * weight).abs().to_bits()));
            }
        }
    }

    /// The maximum of each column.
    pub fn columns(&self) -> Vec<f32> {
        let mut max = vec![0; self.d];
        for row in self.tile.chunks_exact(self.d.max(1)) {
            max.iter_mut().zip(row).for_each(|(max, &bits)| *max = bits.max(*max));
        }
        max.into_iter().map(f32::from_bits).collect()
    }
}

/// Turns sums and maxima over the rows of this machine into those over all rows.
pub fn exchange(pool: &Pool, sums: &mut [i64], maxima: &mut [f64]) -> Result<()> {
    exchange_pieces(pool, &mut [sums], maxima)
}

/// Does what [`exchange`] does, for sums in several slices.
pub fn exchange_pieces(pool: &Pool, sums: &mut [&mut [i64]], maxima: &mut [f64]) -> Result<()> {
    let is_empty = maxima.is_empty() && sums.iter().all(|slice| slice.is_empty());
    match pool.others() {
        Some(others) if !is_empty => others.comm.reduce(sums, maxima),
        _ => Ok(()),
    }
}

/// The largest of the numbers of all machines; none is negative.
pub fn largest_number(pool: &Pool, number: f64) -> Result<f64> {
    let mut max = [number];
    exchange(pool, &mut [], &mut max)?;
    Ok(max[0])
}

/// Adding 1.5·2⁵² to a double of magnitude below 2⁵¹ leaves its nearest integer in the low bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;
const ROUNDER_BITS: i64 = ROUNDER.to_bits() as i64;
/// Bits of magnitude that this way of rounding leaves.
const MAX_BITS: i32 = 50;

/// Number of bits needed to count up to `n`.
pub fn bits_for(n: usize) -> i32 {
    (usize::BITS - n.leading_zeros()) as i32
}

/// Reals as integers: `integer = round(real · scale)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FixedPoint {
    /// Integers per unit, a power of two.
    pub scale: f64,
    /// Units per integer, `1 / scale`.
    pub unit: f64,
}

impl FixedPoint {
    /// Integers as they are.
    pub const ONE: FixedPoint = FixedPoint { scale: 1.0, unit: 1.0 };

    /// The finest scale at which a sum of `rows` values of magnitude at most `max` cannot overflow;
    /// [`Error::NotFinite`] if `max` is infinite or NaN.
    pub fn for_sum(max: f64, rows: usize) -> Result<FixedPoint> {
        Self::with_bits(max, MAX_BITS.min(62 - bits_for(rows)))
    }

    /// The scale at which magnitudes up to `max` need `bits` bits; [`Error::NotFinite`] if `max` is
    /// infinite or NaN.
    pub fn with_bits(max: f64, bits: i32) -> Result<FixedPoint> {
        if !max.is_finite() {
            return Err(Error::NotFinite);
        }
        if max == 0.0 {
            return Ok(FixedPoint::ONE);
        }
        // Beyond ±1000 the power itself would leave the range of doubles.
        let power = (bits - exponent(max)).clamp(-1000, 1000);
        Ok(FixedPoint { scale: power_of_two(power), unit: power_of_two(-power) })
    }

    /// The integer nearest to `value · scale`.
    #[inline(always)]
    pub fn encode(self, value: f64) -> i64 {
        round_scaled(value * self.scale)
    }

    /// The real that an integer (a sum of encoded values) stands for.
    #[inline(always)]
    pub fn decode(self, integer: i64) -> f64 {
        integer as f64 * self.unit
    }
}

/// The integer nearest to `scaled`, for magnitudes below 2⁵¹; vectorises.
#[inline(always)]
pub fn round_scaled(scaled: f64) -> i64 {
    ((scaled + ROUNDER).to_bits() as i64).wrapping_sub(ROUNDER_BITS)
}

/// [`round_scaled`] plus [`ROUNDED_OFFSET`]: a sum of many subtracts all offsets at once.
#[inline(always)]
pub fn round_with_offset(scaled: f64) -> i64 {
    (scaled + ROUNDER).to_bits() as i64
}

/// What each [`round_with_offset`] adds; sums wrap.
pub const ROUNDED_OFFSET: i64 = ROUNDER_BITS;

/// Smallest e with |x| < 2^e, for finite positive x.
fn exponent(x: f64) -> i32 {
    let bits = x.to_bits();
    let field = ((bits >> 52) & 0x7ff) as i32;
    if field == 0 {
        // Subnormal: the position of the highest set bit decides.
        return bits_for((bits & ((1 << 52) - 1)) as usize) - 1074;
    }
    field - 1022
}

/// 2^power for |power| ≤ 1022, exactly.
fn power_of_two(power: i32) -> f64 {
    f64::from_bits(((power + 1023) as u64) << 52)
}

/// A sum of doubles that does not depend on their order: one wide integer per 32 binary exponents.
#[derive(Clone)]
pub struct ExactSum {
    bins: [i128; 64],
    special: f64,
}

impl Default for ExactSum {
    fn default() -> Self {
        ExactSum { bins: [0; 64], special: 0.0 }
    }
}

impl ExactSum {
    /// Adds one value.
    #[inline]
    pub fn add(&mut self, value: f64) {
        let bits = value.to_bits();
        let field = (bits >> 52) & 0x7ff;
        let fraction = bits & ((1 << 52) - 1);
        if field == 0x7ff {
            self.special += value;
            return;
        }
        let (mantissa, position) =
            if field == 0 { (fraction, 0) } else { (fraction | (1 << 52), field - 1) };
        let shifted = i128::from(mantissa) << (position & 31);
        let bin = &mut self.bins[(position >> 5) as usize];
        *bin += if bits >> 63 == 0 { shifted } else { -shifted };
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &ExactSum) {
        for (a, b) in self.bins.iter_mut().zip(&other.bins) {
            *a += b;
        }
        self.special += other.special;
    }

    /// The total of several sums, here and on all other machines. The same exchange adds up the integers
    /// of `sums` and takes the largest of `maxima`.
    pub fn merged(
        pool: &Pool,
        parts: &[ExactSum],
        sums: &mut [i64],
        maxima: &mut [f64],
    ) -> Result<f64> {
        let mut total = ExactSum::default();
        parts.iter().for_each(|part| total.merge(part));
        if pool.others().is_some() {
            let mut words = total.words();
            exchange_pieces(pool, &mut [sums, &mut words], maxima)?;
            total = ExactSum::of_words(&words);
        }
        Ok(total.value())
    }

    /// The sum as integers that machines can add: four for each wide integer, 32 bits at a time, then
    /// whether an infinity of either sign or a NaN was added.
    fn words(&self) -> Vec<i64> {
        let limb = |bin: i128, k: u32| (bin >> (32 * k)) as u32;
        let mut words: Vec<i64> = self
            .bins
            .iter()
            .flat_map(|&bin| {
                let [a, b, c] = std::array::from_fn(|k| i64::from(limb(bin, k as u32)));
                [a, b, c, (bin >> 96) as i64]
            })
            .collect();
        let special = self.special;
        let is = [special == f64::INFINITY, special == f64::NEG_INFINITY, special.is_nan()];
        words.extend(is.map(i64::from));
        words
    }

    fn of_words(words: &[i64]) -> ExactSum {
        let mut sum = ExactSum::default();
        for (bin, four) in sum.bins.iter_mut().zip(words.chunks_exact(4)) {
            *bin = (0..4).map(|k| i128::from(four[k]) << (32 * k)).sum();
        }
        let special = &words[4 * sum.bins.len()..];
        for (&count, value) in special.iter().zip([f64::INFINITY, f64::NEG_INFINITY, f64::NAN]) {
            if count > 0 {
                sum.special += value;
            }
        }
        sum
    }

    /// The sum as a double.
    pub fn value(&self) -> f64 {
        let mut total = 0.0;
        for (k, &bin) in self.bins.iter().enumerate().rev() {
            if bin != 0 {
                // Two factors, since 2^-1074 alone is subnormal.
                let power = 32 * k as i32 - 1074;
                total += bin as f64 * power_of_two(power / 2) * power_of_two(power - power / 2);
            }
        }
        total + self.special
    }
}

/// The smallest value whose cumulative weight reaches `target`, by weighted quickselect.
///
/// `items` are (value, weight) with non-negative integer weights and no NaN; they are reordered.
/// `target` is clamped to the total; `None` when the total weight is zero.
pub fn weighted_select(items: &mut [(f64, i64)], target: i128) -> Option<f64> {
    let total: i128 = items.iter().map(|&(_, w)| i128::from(w)).sum();
    if total == 0 {
        return None;
    }
    let mut target = target.clamp(1, total);
    let mut rest = items;
    loop {
        if rest.len() <= 32 {
            rest.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            let mut cumulative = 0i128;
            for &(value, weight) in rest.iter() {
                cumulative += i128::from(weight);
                if cumulative >= target {
                    return Some(value);
                }
            }
            return rest.last().map(|item| item.0);
        }
        let middle = rest.len() / 2;
        let (low, pivot, high) = rest.select_nth_unstable_by(middle, |a, b| a.0.total_cmp(&b.0));
        let below: i128 = low.iter().map(|&(_, w)| i128::from(w)).sum();
        if target <= below {
            rest = low;
        } else if target <= below + i128::from(pivot.1) {
            return Some(pivot.0);
        } else {
            target -= below + i128::from(pivot.1);
            rest = high;
        }
    }
}

/// `level · total`, rounded up to an integer.
pub fn share(total: i128, level: f64) -> i128 {
    // Levels are given in decimal (0.1, 0.9): tolerate their binary rounding.
    let exact = total as f64 * level;
    let near = exact.round();
    if (exact - near).abs() <= 1e-9 * exact.abs().max(1.0) {
        near as i128
    } else {
        exact.ceil() as i128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_keep_their_largest_magnitudes() {
        let mut max = ColumnMaxima::new(3);
        let rows: Vec<f32> = (0..3 * 1000).map(|k| if k == 2500 { -7.0 } else { 1.0 }).collect();
        max.raise(&rows, 1.0);
        assert_eq!(max.columns(), [1.0, 7.0, 1.0]);
        max.raise(&[1.0, -1.0, -2.5], 4.0);
        assert_eq!(max.columns(), [4.0, 7.0, 10.0]);
        assert_eq!(ColumnMaxima::new(2000).columns(), [0.0; 2000]);
    }

    #[test]
    fn fixed_point_sums_do_not_depend_on_order() {
        let values: Vec<f64> =
            (0..1000).map(|i| ((i * 7919) % 1009) as f64 / 37.0 - 13.0).collect();
        let max = values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let fixed = FixedPoint::for_sum(max, values.len()).unwrap();
        let forward: i64 = values.iter().map(|&v| fixed.encode(v)).sum();
        let backward: i64 = values.iter().rev().map(|&v| fixed.encode(v)).sum();
        assert_eq!(forward, backward);
        let exact: f64 = values.iter().sum();
        assert!((fixed.decode(forward) - exact).abs() < 1e-9);
    }

    #[test]
    fn the_scale_fits_the_largest_value() {
        for max in [1e-280, 1e-30, 1.0, 2.0, 1e30, 1e300] {
            let fixed = FixedPoint::for_sum(max, 1 << 20).unwrap();
            assert!(max * fixed.scale <= (1u64 << 50) as f64);
            assert!((fixed.encode(max) as f64 * fixed.unit - max).abs() <= 1e-9 * max);
        }
    }

    #[test]
    fn values_that_are_not_finite_have_no_scale() {
        for max in [f64::INFINITY, f64::NAN] {
            assert_eq!(FixedPoint::for_sum(max, 10), Err(Error::NotFinite));
            assert_eq!(FixedPoint::with_bits(max, 20), Err(Error::NotFinite));
        }
        assert_eq!(FixedPoint::for_sum(0.0, 10), Ok(FixedPoint::ONE));
    }

    #[test]
    fn exact_sum_survives_cancellation_in_any_order() {
        let values = [1e300, 1.0, -1e300, 1e-300, 3.5, -1e-300, 0.0, 2e-310];
        let mut forward = ExactSum::default();
        let mut backward = ExactSum::default();
        values.iter().for_each(|&v| forward.add(v));
        values.iter().rev().for_each(|&v| backward.add(v));
        assert_eq!(forward.value().to_bits(), backward.value().to_bits());
        assert_eq!(forward.value(), 4.5);
    }

    #[test]
    fn exact_sums_survive_the_way_to_other_machines() {
        let values = [1e300, -3.5, -1e-300, 0.1, -1e22, 7e-320];
        let mut sum = ExactSum::default();
        values.iter().for_each(|&v| sum.add(v));
        let words = sum.words();
        let twice: Vec<i64> = words.iter().map(|&word| word + word).collect();
        assert_eq!(ExactSum::of_words(&words).value().to_bits(), sum.value().to_bits());
        let mut both = sum.clone();
        both.merge(&sum);
        assert_eq!(ExactSum::of_words(&twice).value().to_bits(), both.value().to_bits());
        sum.add(f64::NEG_INFINITY);
        assert_eq!(ExactSum::of_words(&sum.words()).value(), f64::NEG_INFINITY);
        sum.add(f64::INFINITY);
        assert!(ExactSum::of_words(&sum.words()).value().is_nan());
    }

    #[test]
    fn weighted_select_agrees_with_sorting() {
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        for size in [1usize, 2, 40, 500] {
            let items: Vec<(f64, i64)> =
                (0..size).map(|_| ((random() % 50) as f64, (random() % 4) as i64)).collect();
            let total: i128 = items.iter().map(|i| i128::from(i.1)).sum();
            let mut sorted = items.clone();
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
            for target in 1..=total {
                let mut cumulative = 0;
                let expected = sorted.iter().find(|item| {
                    cumulative += i128::from(item.1);
                    cumulative >= target
                });
                let selected = weighted_select(&mut items.clone(), target);
                assert_eq!(selected, expected.map(|i| i.0));
            }
        }
        assert_eq!(weighted_select(&mut [(1.0, 0)], 1), None);
    }
}
