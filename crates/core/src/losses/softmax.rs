//! Softmax, whose outputs share one loss: the cross-entropy of the class of a row.

use super::fold;
use crate::math;

/// Softmax probabilities of one row into `p`; returns ln Σ e^f.
#[inline(always)]
pub fn softmax_row(f: impl Fn(usize) -> f32, p: &mut [f32]) -> f64 {
    for (j, p) in p.iter_mut().enumerate() {
        *p = f(j);
    }
    let top = fold::largest(p);
    for p in p.iter_mut() {
        *p = math::exp(*p - top);
    }
    let sum = fold::sum(p);
    let scale = (1.0 / sum) as f32;
    p.iter_mut().for_each(|p| *p *= scale);
    f64::from(top) + math::ln(sum)
}

/// Residuals of one row; returns the row's loss.
#[inline(always)]
pub(super) fn softmax_residuals(class: usize, raw: &[f32], offset: &[f32], out: &mut [f32]) -> f64 {
    let d = out.len();
    let (raw, offset) = (&raw[..d], &offset[..d]);
    let normaliser = softmax_row(
        #[inline(always)]
        |j| offset[j] + raw[j],
        out,
    );
    // 1 − p of the true class as the sum of the others: exact where p is near one.
    out[class] = 0.0;
    let others = fold::sum(out);
    out.iter_mut().for_each(|p| *p = -*p);
    out[class] = others as f32;
    normaliser - f64::from(offset[class] + raw[class])
}
