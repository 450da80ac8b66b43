//! From raw predictions to predictions. Python uses these functions too (through `manyboost-core`).
//!
//! They have the same bits on every machine: no platform's `libm`, no fused multiply-add.

use std::f64::consts::LOG2_E;

/// ln 2 in two parts; the first has 32 bits, so that its product with a small integer is exact.
const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Adding 1.5·2⁵² rounds a double to the nearest integer, which the low bits of the sum then are.
const ROUNDER: f64 = 6_755_399_441_055_744.0;
/// The least probability that squared error of labels gives: exact in single precision, and below 1
/// when taken from it.
const LEAST: f64 = 1.0 / 16_777_216.0;
/// 1 / k! for k from 13 down to 3.
const FACTORIALS: [f64; 11] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
];

/// e^x within 1 unit in the last place, from 0 to infinity. Loops over it vectorise.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    let x = x.clamp(-746.0, 710.0);
    let shifted = x * LOG2_E + ROUNDER;
    let n = shifted - ROUNDER;
    let r = x - n * LN2_HIGH - n * LN2_LOW;
    let mut p = 0.0;
    for factor in FACTORIALS {
        p = (p + factor) * r;
    }
    let p = (p + 0.5) * (r * r) + r + 1.0;
    // 2ⁿ in two factors, since it may be beyond the range of normal numbers.
    let n = shifted.to_bits().wrapping_sub(ROUNDER.to_bits());
    let half = n.wrapping_add(2048) >> 1;
    let power = |n: u64| f64::from_bits(n.wrapping_add(1023) << 52);
    p * power(half.wrapping_sub(1024)) * power(n.wrapping_sub(half).wrapping_add(1024))
}

/// How raw predictions become predictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Stay as they are.
    Identity,
    /// e^f: counts and amounts.
    Exponential,
    /// 1 / (1 + e^-f): probabilities of labels.
    Logistic,
    /// From [-1, 1] to [0, 1]: squared error of labels.
    Halved,
    /// Probabilities of classes, which sum to one.
    Softmax,
}

impl Link {
    /// The link of a name.
    pub fn named(name: &str) -> Option<Link> {
        Some(match name {
            "identity" => Link::Identity,
            "exponential" => Link::Exponential,
            "logistic" => Link::Logistic,
            "halved" => Link::Halved,
            "softmax" => Link::Softmax,
            _ => return None,
        })
    }

    /// Turns the raw predictions of a row, of all its outputs with this link, into predictions.
    ///
    /// (Loops, not closures: the core compiles them for wider registers, into which they are inlined.)
    #[inline(always)]
    pub fn apply(self, row: &mut [f64]) {
        match self {
            Link::Identity => {}
            Link::Exponential => {
                for f in row {
                    *f = exp(*f);
                }
            }
            Link::Logistic => {
                for f in row {
                    *f = 1.0 / (1.0 + exp(-*f));
                }
            }
            Link::Halved => {
                for f in row {
                    *f = ((*f + 1.0) / 2.0).clamp(LEAST, 1.0 - LEAST);
                }
            }
            Link::Softmax => softmax(row),
        }
    }
}

#[inline(always)]
fn softmax(row: &mut [f64]) {
    let mut top = f64::NEG_INFINITY;
    for f in row.iter() {
        top = if *f > top { *f } else { top };
    }
    for f in row.iter_mut() {
        *f = exp(*f - top);
    }
    let total = total(row);
    for f in row.iter_mut() {
        *f /= total;
    }
}

/// Divides the probabilities of a row, of one class against the rest each, by their sum; all are
/// equal where there is none.
#[inline(always)]
pub fn share(row: &mut [f64]) {
    let (total, even) = (total(row), 1.0 / row.len() as f64);
    for p in row {
        *p = if total > 0.0 { *p / total } else { even };
    }
}

#[inline(always)]
fn total(row: &[f64]) -> f64 {
    let mut sum = 0.0;
    for value in row {
        sum += value;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units in the last place between two positive doubles.
    fn apart(a: f64, b: f64) -> u64 {
        (a.to_bits() as i64 - b.to_bits() as i64).unsigned_abs()
    }

    #[test]
    fn exp_is_within_one_unit_of_the_library() {
        for i in -745_000..=709_700 {
            let x = i as f64 / 1000.0 + 1e-5;
            assert!(apart(exp(x), x.exp()) <= 1, "{x}");
        }
        assert_eq!((exp(0.0), exp(-0.0), exp(-1e9), exp(f64::NEG_INFINITY)), (1.0, 1.0, 0.0, 0.0));
        assert_eq!((exp(1e9), exp(709.79)), (f64::INFINITY, f64::INFINITY));
        assert!(exp(709.78).is_finite() && exp(-745.1) > 0.0 && exp(f64::NAN).is_nan());
    }

    #[test]
    fn links_give_what_their_names_say() {
        let after = |link: Link, mut row: Vec<f64>| {
            link.apply(&mut row);
            row
        };
        assert_eq!(after(Link::Identity, vec![-3.0]), [-3.0]);
        assert_eq!(after(Link::Logistic, vec![0.0, -800.0, 800.0]), [0.5, 0.0, 1.0]);
        assert_eq!(after(Link::Halved, vec![0.0, -9.0, 9.0]), [0.5, LEAST, 1.0 - LEAST]);
        assert_eq!(after(Link::Softmax, vec![1e5, 1e5, -1e5]), [0.5, 0.5, 0.0]);
        let mut row = [0.0, 0.0];
        share(&mut row);
        assert_eq!(row, [0.5, 0.5]);
        let mut row = [0.25, 0.75, 1.0];
        share(&mut row);
        assert_eq!(row, [0.125, 0.375, 0.5]);
    }
}
