//! How lanes are read, and when gradient and count fit into one lane.

use crate::reduce::bits_for;

/// Fewest bits of a gradient worth packing.
const PACKED_BITS: i32 = 22;
/// The split search reads sums as doubles by a trick that needs them below 2⁵⁰.
pub(super) const SMALL_SUM_BITS: i32 = 50;

/// How to read the lanes of a row or a bin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layout {
    /// Number of components q.
    pub components: usize,
    /// Lanes that hold weights: none, one, or one per component.
    pub weight_lanes: usize,
    /// Lanes per row and per bin.
    pub width: usize,
    /// If packed, the number of low bits that hold the count; the gradient sits above them.
    pub count_bits: Option<u32>,
    /// Whether no sum can reach 2⁵⁰.
    pub small: bool,
    /// Value of one gradient quantum.
    pub unit: f64,
    /// Value of one weight quantum; 1 if rows are not weighted.
    pub weight_unit: f64,
}

impl Layout {
    /// Number of rows counted in these lanes.
    #[inline(always)]
    pub fn count(&self, lanes: &[i64]) -> i64 {
        match self.count_bits {
            Some(bits) => lanes[0] & ((1 << bits) - 1),
            None => lanes[self.width - 1],
        }
    }

    /// Total weight in these lanes, in weight quanta (rows if unweighted). If each component has
    /// its own weight, this is their mean.
    #[inline(always)]
    pub fn weight(&self, lanes: &[i64]) -> f64 {
        match self.weight_lanes {
            0 => self.count(lanes) as f64,
            1 => lanes[self.components] as f64,
            m => self.weights(lanes).iter().map(|&w| w as f64).sum::<f64>() / m as f64,
        }
    }

    /// The lanes that hold weights.
    #[inline(always)]
    pub fn weights<'l>(&self, lanes: &'l [i64]) -> &'l [i64] {
        &lanes[self.components..self.components + self.weight_lanes]
    }

    /// Whether each component has weights of its own.
    #[inline(always)]
    pub fn by_component(&self) -> bool {
        self.weight_lanes > 1
    }

    /// Sum of a component in these lanes, in gradient quanta.
    #[inline(always)]
    pub fn sum(&self, lanes: &[i64], component: usize) -> f64 {
        self.gradient(lanes, component) as f64
    }

    /// A component of these lanes, in gradient quanta.
    #[inline(always)]
    pub fn gradient(&self, lanes: &[i64], component: usize) -> i64 {
        match self.count_bits {
            Some(bits) => lanes[0] >> bits,
            None => lanes[component],
        }
    }
}

/// Bits of a gradient in a packed lane, if `n_rows` rows leave enough of them.
///
/// ```text
/// 64-bit sum:  sign | gradients of n rows (gradient bits + count bits) | count (count bits)
/// ```
///
/// Needs gradient bits + 2 · count bits ≤ 62 and sums of gradients below 2⁵⁰: n < 2²⁰.
pub(super) fn packed_bits(n_rows: usize) -> Option<i32> {
    let count_bits = bits_for(n_rows);
    let bits = (62 - 2 * count_bits).min(SMALL_SUM_BITS - count_bits);
    (bits >= PACKED_BITS).then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_packed_below_2_to_the_20_rows() {
        assert_eq!(packed_bits(1), Some(49));
        assert_eq!(packed_bits((1 << 20) - 1), Some(22));
        assert_eq!(packed_bits(1 << 20), None);
        assert_eq!(packed_bits(usize::MAX), None);
    }

    #[test]
    fn the_largest_packed_sums_leave_gradient_and_count_apart() {
        for n_rows in [1, 2, 1000, (1 << 16) - 1, 1 << 16, (1 << 20) - 1] {
            let (bits, count_bits) = (packed_bits(n_rows).unwrap(), bits_for(n_rows) as u32);
            let layout = Layout {
                components: 1,
                weight_lanes: 0,
                width: 1,
                count_bits: Some(count_bits),
                small: true,
                unit: 1.0,
                weight_unit: 1.0,
            };
            // Rounding may lift the largest gradient to 2^bits itself.
            for gradient in [1i64 << bits, -(1i64 << bits), 0, -1] {
                let lane = (gradient << count_bits) + 1;
                let total = i64::try_from(i128::from(lane) * n_rows as i128).unwrap();
                assert_eq!(layout.count(&[total]), n_rows as i64);
                assert_eq!(layout.sum(&[total], 0), gradient as f64 * n_rows as f64);
                assert!(layout.sum(&[total], 0).abs() < (1i64 << 51) as f64);
            }
        }
    }
}
