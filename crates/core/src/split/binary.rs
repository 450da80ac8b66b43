//! Features of two bins, many at once: each has a single cut.

use std::ops::Range;

use super::candidates::{Candidates, GROUP, MAX_CANDIDATES, Scoring};
use super::scan::{score_packed, small_to_f64, to_f64};
use super::{BestSplit, NodeSplit, SplitLimits};
use crate::histogram::Layout;
use crate::lowlevel::widest;

/// [`improve_split`](super::improve_split) for many features of two bins without missing values; they
/// ascend. `left(k, lane)` is a lane of the left side of the k-th. All are 0 if it cannot split the node.
pub fn improve_binary(
    features: &[u32],
    layout: &Layout,
    total: &[i64],
    limits: &SplitLimits,
    best: &mut BestSplit,
    left: impl Fn(usize, usize) -> i64,
) {
    let size = MAX_CANDIDATES - GROUP;
    for start in (0..features.len()).step_by(size) {
        let end = (start + size).min(features.len());
        let BestSplit { candidates, floor, .. } = best;
        candidates.clear(layout.width);
        let score = widest(
            #[inline(always)]
            || {
                if let Some(bits) = layout.count_bits {
                    for (place, k) in candidates.lefts.iter_mut().zip(start..end) {
                        *place = left(k, 0);
                    }
                    candidates.n = end - start;
                    return score_packed(bits, total[0], limits, *floor, candidates);
                }
                match layout.small {
                    true => {
                        let scoring = Scoring::new(layout, total, limits, *floor, small_to_f64);
                        push_cuts(&left, start..end, layout.width, &scoring, candidates);
                    }
                    false => {
                        let scoring = Scoring::new(layout, total, limits, *floor, to_f64);
                        push_cuts(&left, start..end, layout.width, &scoring, candidates);
                    }
                }
                candidates.best_score()
            },
        );
        let Some(at) = best.candidates.position(score) else { continue };
        let k = start + at;
        if let Some(gain) = best.better_gain(score, features[k], limits) {
            let left: Vec<i64> = (0..layout.width).map(|lane| left(k, lane)).collect();
            best.keep(NodeSplit {
                feature: features[k],
                bin: 0,
                categories: None,
                // Without missing values in the node, they follow the larger child.
                missing_left: 2 * layout.count(&left) >= layout.count(total),
                gain,
                left,
            });
        }
    }
}

#[inline(always)]
fn push_cuts(
    left: &impl Fn(usize, usize) -> i64,
    features: Range<usize>,
    width: usize,
    scoring: &Scoring<'_, impl Fn(i64) -> f64 + Copy>,
    candidates: &mut Candidates,
) {
    for k in features {
        candidates.push((0, false), true, (0..width).map(|lane| left(k, lane)), scoring);
    }
    candidates.finish(scoring);
}
