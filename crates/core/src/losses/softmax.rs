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
    p.iter_mut().for_each(|p| *p = math::exp_down(*p - top));
    let sum = fold::sum(p);
    let scale = (1.0 / sum) as f32;
    p.iter_mut().for_each(|p| *p *= scale);
    f64::from(top) + math::ln(sum)
}

/// Residuals of rows of one length into `out`, and their losses, given the class of each row.
#[inline(always)]
pub(super) fn softmax_residuals(
    classes: &[u32],
    raw: &[f32],
    offset: &[f32],
    out: &mut [f32],
    losses: &mut [f64],
) {
    let d = offset.len();
    let m = classes.len() * d;
    let (raw, out, losses) = (&raw[..m], &mut out[..m], &mut losses[..classes.len()]);
    for ((&class, loss), (raw, out)) in
        classes.iter().zip(losses.iter_mut()).zip(raw.chunks_exact(d).zip(out.chunks_exact_mut(d)))
    {
        for j in 0..d {
            out[j] = offset[j] + raw[j];
        }
        let top = fold::largest(out);
        *loss = f64::from(top) - f64::from(out[class as usize]);
        out.iter_mut().for_each(|f| *f -= top);
    }
    // All rows at once, so that lanes are full.
    out.iter_mut().for_each(|f| *f = math::exp_down(*f));
    for ((&class, loss), out) in classes.iter().zip(losses).zip(out.chunks_exact_mut(d)) {
        // 1 − p of the true class as the sum of the others: exact where p is near one.
        let own = f64::from(std::mem::take(&mut out[class as usize]));
        let others = fold::sum(out);
        let scale = 1.0 / (others + own);
        out.iter_mut().for_each(|e| *e *= -scale as f32);
        out[class as usize] = (others * scale) as f32;
        *loss += math::ln(others + own);
    }
}
