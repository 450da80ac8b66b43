//! The formulas of each loss, for one cell.

use crate::math;

/// A target as it is stored: a real value or a 0/1 label.
pub trait Target: Copy {
    /// Its value.
    fn real(self) -> f32;
    /// The sign bit of a float if the label is 1, else no bit.
    fn label_bit(self) -> u32;
}

impl Target for f32 {
    #[inline(always)]
    fn real(self) -> f32 {
        self
    }
    #[inline(always)]
    fn label_bit(self) -> u32 {
        // The lowest bit of the exponent is set in 1, not in 0.
        self.to_bits() << 8
    }
}

impl Target for u8 {
    #[inline(always)]
    fn real(self) -> f32 {
        f32::from(self)
    }
    #[inline(always)]
    fn label_bit(self) -> u32 {
        u32::from(self) << 31
    }
}

/// Formulas of a loss that treats each cell on its own. To add a loss, implement this trait and
/// name the loss in [`crate::losses::Loss`].
pub trait Pointwise: Copy + Sync {
    /// Whether the value has a part ln(1 + e). A row then needs one logarithm, of a product.
    const HAS_LOG: bool = false;
    /// Whether the value grows like a square, beyond single precision. Then ℓ = r v, in doubles.
    const IS_PRODUCT: bool = false;
    /// Whether the curvature, and so its bound, depends on the target.
    const CURVATURE_USES_TARGET: bool = false;

    /// −∂ℓ/∂f.
    #[inline(always)]
    fn residual<Y: Target>(self, y: Y, f: f32, param: f32) -> f32 {
        self.parts(y, f, param).0
    }

    /// ∂²ℓ/∂f², given the residual.
    fn curvature(self, y: f32, residual: f32, param: f32) -> f32;

    /// The residual r, and the value as (v, e) with ℓ = v + ln(1 + e) and 0 ≤ e ≤ 1, or ℓ = r v.
    fn parts<Y: Target>(self, y: Y, f: f32, param: f32) -> (f32, f32, f32);

    /// Bounds on |residual| and curvature that hold for every target and prediction, if any.
    fn bounds(self, _param: f64) -> Option<(f64, f64)> {
        None
    }

    /// A bound on the weighted curvature of an output, given what the last pass has seen of it.
    /// Fixed-point sums of curvatures are scaled by this bound, so it must hold in every cell.
    fn curvature_bound(self, seen: Extremes) -> f64;

    /// ℓ, from what [`Pointwise::parts`] returns.
    #[inline(always)]
    fn joined(self, (r, v, e): (f32, f32, f32)) -> f64 {
        if Self::IS_PRODUCT {
            f64::from(r) * f64::from(v)
        } else if Self::HAS_LOG {
            f64::from(v + math::ln_1p_unit(e))
        } else {
            f64::from(v)
        }
    }

    /// ℓ.
    #[inline(always)]
    fn value<Y: Target>(self, y: Y, f: f32, param: f32) -> f64 {
        self.joined(self.parts(y, f, param))
    }
}

/// The largest numbers of one output over all rows.
#[derive(Debug, Clone, Copy)]
pub struct Extremes {
    /// Weight of a cell.
    pub weight: f64,
    /// Weighted |residual|.
    pub residual: f64,
    /// Target.
    pub target: f64,
}

/// −1 for label 0, 1 for label 1.
#[inline(always)]
fn sign_of_label(y: f32) -> f32 {
    2.0 * y - 1.0
}

/// The sign of u, 0 at 0 (f32::signum is ±1 there).
#[inline(always)]
fn sign(u: f32) -> f32 {
    (if u > 0.0 { 1.0 } else { 0.0 }) - (if u < 0.0 { 1.0 } else { 0.0 })
}

/// ½ (y − f)².
#[derive(Debug, Clone, Copy)]
pub struct Squared;

impl Pointwise for Squared {
    const IS_PRODUCT: bool = true;
    #[inline(always)]
    fn curvature(self, _y: f32, _residual: f32, _param: f32) -> f32 {
        1.0
    }
    #[inline(always)]
    fn parts<Y: Target>(self, y: Y, f: f32, _param: f32) -> (f32, f32, f32) {
        let y = y.real();
        (y - f, 0.5 * (y - f), 0.0)
    }
    fn curvature_bound(self, seen: Extremes) -> f64 {
        seen.weight
    }
}

/// ½ (±1 − f)² for 0/1 labels.
#[derive(Debug, Clone, Copy)]
pub struct SquaredLabels;

impl Pointwise for SquaredLabels {
    const IS_PRODUCT: bool = true;
    #[inline(always)]
    fn curvature(self, _y: f32, _residual: f32, _param: f32) -> f32 {
        1.0
    }
    #[inline(always)]
    fn parts<Y: Target>(self, y: Y, f: f32, _param: f32) -> (f32, f32, f32) {
        let y = y.real();
        let r = sign_of_label(y) - f;
        (r, 0.5 * r, 0.0)
    }
    fn curvature_bound(self, seen: Extremes) -> f64 {
        seen.weight
    }
}

/// |y − f|.
#[derive(Debug, Clone, Copy)]
pub struct Absolute;

impl Pointwise for Absolute {
    #[inline(always)]
    fn curvature(self, _y: f32, _residual: f32, _param: f32) -> f32 {
        0.0
    }
    #[inline(always)]
    fn parts<Y: Target>(self, y: Y, f: f32, _param: f32) -> (f32, f32, f32) {
        let y = y.real();
        (sign(y - f), (y - f).abs(), 0.0)
    }
    fn bounds(self, _param: f64) -> Option<(f64, f64)> {
        Some((1.0, 1.0))
    }
    fn curvature_bound(self, seen: Extremes) -> f64 {
        seen.weight
    }
}

/// Quadratic up to δ (the parameter), linear beyond.
#[derive(Debug, Clone, Copy)]
pub struct Huber;

impl Pointwise for Huber {
    const IS_PRODUCT: bool = true;
    #[inline(always)]
    fn curvature(self, _y: f32, residual: f32, delta: f32) -> f32 {
        if residual.abs() < delta { 1.0 } else { 0.0 }
    }
    #[inline(always)]
    fn parts<Y: Target>(self, y: Y, f: f32, delta: f32) -> (f32, f32, f32) {
        let y = y.real();
        let r = (y - f).clamp(-delta, delta);
        (r, (y - f) - 0.5 * r, 0.0)
    }
    fn bounds(self, delta: f64) -> Option<(f64, f64)> {
        Some((delta, 1.0))
    }
    fn curvature_bound(self, seen: Extremes) -> f64 {
        seen.weight
    }
}

/// The pinball loss: level · u above (level is the parameter), (level − 1) · u below.
#[derive(Debug, Clone, Copy)]
pub struct Quantile;

impl Pointwise for Quantile {
    #[inline(always)]
    fn curvature(self, _y: f32, _residual: f32, _level: f32) -> f32 {
        0.0
    }
    #[inline(always)]
    fn parts<Y: Target>(self, y: Y, f: f32, level: f32) -> (f32, f32, f32) {
        let y = y.real();
        let value = (level * (y - f)).max((level - 1.0) * (y - f));
        let residual = if y > f {
            level
        } else if y < f {
            level - 1.0
        } else {
            0.0
        };
        (residual, value, 0.0)
    }
    fn bounds(self, _level: f64) -> Option<(f64, f64)> {
        Some((1.0, 1.0))
    }
    fn curvature_bound(self, seen: Extremes) -> f64 {
        seen.weight
    }
}

/// e^f − y f.
#[derive(Debug, Clone, Copy)]
pub struct Poisson;

impl Pointwise for Poisson {
    const CURVATURE_USES_TARGET: bool = true;
    #[inline(always)]
    fn curvature(self, y: f32, residual: f32, _param: f32) -> f32 {
        y - residual
    }
    #[inline(always)]
    fn parts<Y: Target>(self, y: Y, f: f32, _param: f32) -> (f32, f32, f32) {
        let y = y.real();
        let e = math::exp(f);
        (y - e, e - y * f, 0.0)
    }
    fn curvature_bound(self, seen: Extremes) -> f64 {
        seen.target * seen.weight + seen.residual
    }
}

/// y e^−f + f: half the deviance of the gamma distribution, without what f does not change.
#[derive(Debug, Clone, Copy)]
pub struct Gamma;

impl Pointwise for Gamma {
    #[inline(always)]
    fn curvature(self, _y: f32, residual: f32, _param: f32) -> f32 {
        residual + 1.0
    }
    #[inline(always)]
    fn parts<Y: Target>(self, y: Y, f: f32, _param: f32) -> (f32, f32, f32) {
        let ratio = y.real() * math::exp(-f);
        (ratio - 1.0, ratio + f, 0.0)
    }
    fn curvature_bound(self, seen: Extremes) -> f64 {
        seen.residual + seen.weight
    }
}

/// a/(p − 1) + b/(2 − p) with a = y e^(−(p−1)f), b = e^((2−p)f) and the power p (the parameter): half
/// the deviance of the Tweedie distribution, without what f does not change.
#[derive(Debug, Clone, Copy)]
pub struct Tweedie;

/// Newton steps after which the curvature is exact in single precision, for powers of 1.1 to 1.9.
const TWEEDIE_STEPS: usize = 5;

impl Pointwise for Tweedie {
    const CURVATURE_USES_TARGET: bool = true;
    /// (p − 1) a + (2 − p) b. The residual is r = a − b, so f must be found first: with s = f − ln y,
    /// r / y^(2−p) = e^(−(p−1)s) − e^((2−p)s), which falls with s. The root is between 0 and where
    /// only one of the terms changes.
    #[inline(always)]
    fn curvature(self, y: f32, residual: f32, power: f32) -> f32 {
        let (low, high) = (power - 1.0, 2.0 - power);
        if y <= 0.0 {
            return -high * residual;
        }
        let scale = math::exp(high * math::ln(f64::from(y)) as f32);
        let ratio = residual / scale;
        let reach = math::ln(1.0 + f64::from(ratio.abs())) as f32;
        let end = if ratio > 0.0 { -reach / low } else { reach / high };
        let (first, last) = if ratio > 0.0 { (end, 0.0) } else { (0.0, end) };
        let mut s = end;
        for _ in 0..TWEEDIE_STEPS {
            let (a, b) = (math::exp(-low * s), math::exp(high * s));
            s = (s + (a - b - ratio) / (low * a + high * b)).clamp(first, last);
        }
        scale * (low * math::exp(-low * s) + high * math::exp(high * s))
    }
    #[inline(always)]
    fn parts<Y: Target>(self, y: Y, f: f32, power: f32) -> (f32, f32, f32) {
        let (low, high) = (power - 1.0, 2.0 - power);
        let (a, b) = (y.real() * math::exp(-low * f), math::exp(high * f));
        (a - b, a / low + b / high, 0.0)
    }
    /// At most one of a and b exceeds y^(2−p), by at most |r|.
    fn curvature_bound(self, seen: Extremes) -> f64 {
        seen.target.max(1.0) * seen.weight + seen.residual
    }
}

/// ln(1 + e^∓f) for 0/1 labels.
#[derive(Debug, Clone, Copy)]
pub struct Logistic;

impl Pointwise for Logistic {
    const HAS_LOG: bool = true;
    #[inline(always)]
    fn curvature(self, _y: f32, residual: f32, _param: f32) -> f32 {
        curvature_of_probability(residual)
    }
    /// One exponential serves all: with e = e^−|m| of the margin m, the residual is s/(1 + e) or
    /// s e/(1 + e), and neither loses digits at its small end.
    #[inline(always)]
    fn parts<Y: Target>(self, y: Y, f: f32, _param: f32) -> (f32, f32, f32) {
        let bit = y.label_bit();
        // How far f is on the wrong side of 0: the margin with the other sign.
        let wrong = f32::from_bits(f.to_bits() ^ bit);
        let e = math::exp_down(-wrong.abs());
        let is_right = (wrong.to_bits() as i32) < 0;
        let minus_p = (if is_right { e } else { 1.0 }) / (-1.0 - e);
        let residual = f32::from_bits(minus_p.to_bits() ^ bit);
        (residual, if wrong > 0.0 { wrong } else { 0.0 }, e)
    }
    fn bounds(self, _param: f64) -> Option<(f64, f64)> {
        Some((1.0, 0.25))
    }
    fn curvature_bound(self, seen: Extremes) -> f64 {
        seen.weight
    }
}

/// e^(∓f/2) for 0/1 labels.
#[derive(Debug, Clone, Copy)]
pub struct Exponential;

impl Pointwise for Exponential {
    #[inline(always)]
    fn curvature(self, _y: f32, residual: f32, _param: f32) -> f32 {
        0.5 * residual.abs()
    }
    #[inline(always)]
    fn parts<Y: Target>(self, y: Y, f: f32, _param: f32) -> (f32, f32, f32) {
        let y = y.real();
        let s = sign_of_label(y);
        let value = math::exp(-0.5 * s * f);
        (0.5 * s * value, value, 0.0)
    }
    fn curvature_bound(self, seen: Extremes) -> f64 {
        seen.residual
    }
}

/// p (1 − p) from the residual ±p or ±(1 − p) of a probability: log loss, and softmax's diagonal.
#[inline(always)]
pub(crate) fn curvature_of_probability(residual: f32) -> f32 {
    residual.abs() * (1.0 - residual.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<L: Pointwise + std::fmt::Debug>(formula: L, ys: &[f32], param: f32) {
        for &y in ys {
            for i in -20..20 {
                let f = i as f32 / 7.0 + 0.013;
                let step = 1e-2;
                let up = formula.value(y, f + step, param);
                let down = formula.value(y, f - step, param);
                let slope = (up - down) / f64::from(2.0 * step);
                let r = formula.residual(y, f, param);
                let off = (slope + f64::from(r)).abs();
                assert!(off < 5e-3 * (1.0 + slope.abs()), "{formula:?} {y} {f}");
                let h = f64::from(formula.curvature(y, r, param));
                if let Some((bound, curve)) = formula.bounds(f64::from(param)) {
                    assert!(f64::from(r.abs()) <= bound * (1.0 + 1e-6));
                    assert!(h <= curve * (1.0 + 1e-6));
                }
                let (residual, target) = (3.0 * f64::from(r.abs()), f64::from(y));
                let bound = formula.curvature_bound(Extremes { weight: 3.0, residual, target });
                assert!(3.0 * h <= bound * (1.0 + 1e-6), "{formula:?} {y} {f}");
            }
        }
    }

    #[test]
    fn the_curvature_of_tweedie_is_found_from_its_residual() {
        for power in [1.1f32, 1.2, 1.5, 1.8, 1.9] {
            let (low, high) = (f64::from(power) - 1.0, 2.0 - f64::from(power));
            for y in [0.0f32, 1e-6, 1e-3, 0.3, 1.0, 7.0, 1e3, 1e6] {
                for i in -70..=70 {
                    let f = i as f32 / 5.0;
                    let a = f64::from(y) * (-low * f64::from(f)).exp();
                    let exact = low * a + high * (high * f64::from(f)).exp();
                    let r = Tweedie.residual(y, f, power);
                    let found = f64::from(Tweedie.curvature(y, r, power));
                    // What a rounded residual cannot tell.
                    let slack = 1e-5 * exact + 1e-6 * f64::from(r.abs());
                    assert!((found - exact).abs() < slack, "{power} {y} {f}: {found} {exact}");
                }
            }
        }
    }

    #[test]
    fn residuals_are_negative_derivatives_and_bounds_hold() {
        check(Squared, &[0.0, 1.0, 2.5], 0.7);
        check(Absolute, &[0.0, 1.0, 2.5], 0.7);
        check(Huber, &[0.0, 1.0, 2.5], 0.7);
        check(Quantile, &[0.0, 1.0, 2.5], 0.7);
        check(Poisson, &[0.0, 1.0, 2.5], 0.7);
        check(Gamma, &[0.1, 1.0, 2.5], 0.7);
        for power in [1.1, 1.5, 1.9] {
            check(Tweedie, &[0.0, 0.1, 1.0, 2.5, 100.0], power);
        }
        check(SquaredLabels, &[0.0, 1.0], 0.0);
        check(Logistic, &[0.0, 1.0], 0.0);
        check(Exponential, &[0.0, 1.0], 0.0);
    }
}
