//! exp and log with the same bits on every machine, in a form that vectorises.
//!
//! The platform's libm differs between systems, and fused multiply-add between processors, so neither
//! is used. Errors stay within a few units in the last place.

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln 2 in two parts; the first has few bits, so that its product with a small integer is exact.
#[allow(clippy::excessive_precision)] // exact in nine bits
const LN2_HIGH: f32 = 0.693_359_375;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// Adding 1.5·2²³ rounds a float to the nearest integer.
const ROUNDER: f32 = 12_582_912.0;

/// e^x, saturating at the ends of the normal range of floats.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * LOG2_E + ROUNDER;
    let n = shifted - ROUNDER;
    let r = x - n * LN2_HIGH - n * LN2_LOW;
    let p = 1.987_569_2e-4;
    let p = p * r + 1.398_2e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let p = p * (r * r) + r + 1.0;
    // shifted holds n in its low mantissa bits.
    let exponent = (shifted.to_bits() << 23).wrapping_add(0x3f80_0000);
    p * f32::from_bits(exponent)
}

/// ln(1 + x) for 0 ≤ x ≤ 1.
#[inline(always)]
pub fn ln_1p_unit(x: f32) -> f32 {
    // ln(1 + x) = 2 atanh(x / (2 + x)).
    let s = x / (2.0 + x);
    let z = s * s;
    let p = 0.076_923_08;
    let p = p * z + 0.090_909_09;
    let p = p * z + 0.111_111_11;
    let p = p * z + 0.142_857_15;
    let p = p * z + 0.2;
    let p = p * z + 0.333_333_34;
    2.0 * s + 2.0 * s * (z * p)
}

/// ln x for finite positive x, in double precision (scalar uses only).
pub fn ln(x: f64) -> f64 {
    let (x, shift) = if x < f64::MIN_POSITIVE { (x * (1u64 << 54) as f64, 54) } else { (x, 0) };
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1023 - shift;
    let mut m = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        exponent += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut p = 0.0;
    for k in (1..=12).rev() {
        p = (p + 1.0 / (2 * k + 1) as f64) * z;
    }
    exponent as f64 * std::f64::consts::LN_2 + (2.0 * s + 2.0 * s * p)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_accurate_to_a_few_ulps() {
        for i in -8700..=8800 {
            let x = i as f32 / 100.0;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) - exact).abs() <= 3e-7 * exact, "exp({x})");
        }
        assert_eq!(exp(0.0), 1.0);
    }

    #[test]
    fn ln_1p_is_accurate_in_relative_terms() {
        for i in 0..=1000 {
            for x in [i as f32 / 1000.0, i as f32 * 1e-12] {
                let exact = f64::from(x).ln_1p();
                assert!((f64::from(ln_1p_unit(x)) - exact).abs() <= 3e-7 * exact, "ln_1p({x})");
            }
        }
    }

    #[test]
    fn ln_agrees_with_the_library() {
        for i in 1..2000 {
            for x in [i as f64 / 700.0, i as f64 * 1e-310, i as f64 * 1e200] {
                assert!((ln(x) - x.ln()).abs() <= 4e-16 * x.ln().abs().max(1e-2), "ln({x})");
            }
        }
    }
}
