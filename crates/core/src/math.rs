//! exp and log with the same bits on every machine, in a form that vectorises.
//!
//! The platform's libm differs between systems, and fused multiply-add between processors, so neither
//! is used. Errors stay within a few units in the last place.

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln 2 in two parts; the first has few bits, so that its product with a small integer is exact.
#[allow(clippy::excessive_precision)] // exact in nine bits
const LN2_HIGH: f32 = 0.693_359_375;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// Adding 1.5·2²³ rounds a float to the nearest integer n. With 127 on top, the low bits of the sum
/// are the exponent field of 2ⁿ.
const ROUNDER: f32 = 12_582_912.0 + 127.0;

/// e^x, saturating at the ends of the normal range of floats. Within 1 unit in the last place.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * LOG2_E + ROUNDER;
    let n = shifted - ROUNDER;
    let r = x - n * LN2_HIGH - n * LN2_LOW;
    // Short chains of operations: processors overlap what does not depend on each other.
    let square = r * r;
    let low = 0.499_999_94 + 1.666_643_2e-1 * r;
    let high = 4.166_8e-2 + 8.374_156e-3 * r;
    let p = low + square * (high + square * 1.384_365_4e-3);
    let p = p * square + r + 1.0;
    p * f32::from_bits(shifted.to_bits() << 23)
}

/// e^x for x ≤ 0, saturating at the end of the normal range of floats. Takes a third fewer operations
/// than [`exp`]: the result is that of an x rounded once more, within 2 units in the last place.
#[expect(clippy::approx_constant, reason = "a coefficient of a fitted polynomial, not ln 2")]
#[inline(always)]
pub fn exp_down(x: f32) -> f32 {
    let x = if x < -87.0 { -87.0 } else { x };
    let x = x * LOG2_E;
    let shifted = x + ROUNDER;
    let r = x - (shifted - ROUNDER);
    let square = r * r;
    let low = 0.240_222_42 + 5.550_733_6e-2 * r;
    let high = 9.671_513e-3 + 1.326_472_7e-3 * r;
    let p = (low + square * high) * square + 0.693_147 * r + 1.0;
    p * f32::from_bits(shifted.to_bits() << 23)
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

/// ln x for finite positive x, in double precision. Loops over it vectorise.
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    const TWO_52: u64 = 1075 << 52;
    let tiny = x < f64::MIN_POSITIVE;
    let x = if tiny { x * (1u64 << 54) as f64 } else { x };
    let bits = x.to_bits();
    // The exponent field as the low bits of a double from 2⁵² on.
    let field = f64::from_bits(TWO_52 | (bits >> 52)) - f64::from_bits(TWO_52);
    let exponent = field - if tiny { 1023.0 + 54.0 } else { 1023.0 };
    let m = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    let large = m > std::f64::consts::SQRT_2;
    let (m, exponent) = if large { (m * 0.5, exponent + 1.0) } else { (m, exponent) };
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut p = 0.0;
    for k in (1..=12).rev() {
        p = (p + 1.0 / (2 * k + 1) as f64) * z;
    }
    exponent * std::f64::consts::LN_2 + (2.0 * s + 2.0 * s * p)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units in the last place between a float and an exact value.
    fn ulps(value: f32, exact: f64) -> f64 {
        let nearest = exact as f32;
        let unit = f64::from(f32::from_bits(nearest.to_bits() + 1)) - f64::from(nearest);
        (f64::from(value) - exact).abs() / unit
    }

    #[test]
    fn exp_is_within_one_unit_in_the_last_place() {
        let off = |x: f32| ulps(exp(x), f64::from(x).exp());
        let most = (-87_000..=88_000).map(|i| off(i as f32 / 1000.0)).fold(0.0, f64::max);
        assert!(most < 1.1, "{most}");
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(-1e9) > 0.0 && exp(1e9).is_finite() && exp(f32::NAN).is_nan());
    }

    #[test]
    fn exp_down_is_exp_of_an_argument_rounded_once_more() {
        let mut most: f64 = 0.0;
        for i in 0..=87_000 {
            let x = -i as f32 / 1000.0;
            let off = ulps(exp_down(x), f64::from(x).exp());
            // A relative error of 2⁻²⁴ in x, and of its product, moves e^x by so many units.
            most = most.max(off - 1.3 * f64::from(x.abs()));
        }
        assert!(most < 2.0, "{most}");
        assert_eq!((exp_down(0.0), exp_down(-0.0)), (1.0, 1.0));
        assert!(exp_down(f32::NEG_INFINITY) > 0.0 && exp_down(f32::NAN).is_nan());
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
