//! Scanning the bins of a histogram for the best cut.

use super::{Candidate, SplitLimits};
use crate::histogram::{FeatureHistogram, Layout};
use crate::lowlevel::widest;

/// Most candidates of one feature: a cut after each bin, twice if values are missing, and one that
/// cuts off the missing values alone; rounded up for vectors of eight.
const MAX_CANDIDATES: usize = 2 * 256 + 8;

/// Room for the candidates of one feature, kept from one to the next.
pub(super) struct CandidateBuffer {
    lefts: [i64; MAX_CANDIDATES],
    /// Twice the bin, plus one if missing values go left.
    places: [u16; MAX_CANDIDATES],
    scores: [f64; MAX_CANDIDATES],
}

impl Default for CandidateBuffer {
    fn default() -> CandidateBuffer {
        CandidateBuffer {
            lefts: [0; MAX_CANDIDATES],
            places: [0; MAX_CANDIDATES],
            scores: [0.0; MAX_CANDIDATES],
        }
    }
}

/// The best cut of a feature.
pub(super) fn scan_feature(
    histogram: &FeatureHistogram<'_>,
    limits: SplitLimits,
    buffer: &mut CandidateBuffer,
) -> Option<Candidate> {
    match histogram.layout.count_bits {
        Some(bits) => widest(
            #[inline(always)]
            || scan_packed(bits, *histogram, limits, buffer),
        ),
        None => widest(
            #[inline(always)]
            || match histogram.layout.small {
                true => scan_lanes(*histogram, limits, small_to_f64),
                false => scan_lanes(*histogram, limits, to_f64),
            },
        ),
    }
}

/// The best cut if gradient and count share a lane.
#[inline(always)]
fn scan_packed(
    count_bits: u32,
    histogram: FeatureHistogram<'_>,
    limits: SplitLimits,
    buffer: &mut CandidateBuffer,
) -> Option<Candidate> {
    let FeatureHistogram { n_bins, has_missing, sums, total, .. } = histogram;
    let CandidateBuffer { lefts, places, scores } = buffer;
    let total = total[0];
    let mask = (1i64 << count_bits) - 1;
    let missing = if has_missing { sums[n_bins] } else { 0 };
    let any_missing = missing & mask != 0;
    // A first pass from bin to bin keeps the left sums of the cuts worth a look; a second one
    // computes the gains of all of them at once.
    let mut n = 0;
    let mut left = 0i64;
    if any_missing {
        for (bin, &lane) in sums[..n_bins - 1].iter().enumerate() {
            left += lane;
            lefts[n] = left;
            lefts[n + 1] = left + missing;
            places[n] = 2 * bin as u16;
            places[n + 1] = 2 * bin as u16 + 1;
            n += if lane != 0 { 2 } else { 0 };
        }
        lefts[n] = total - missing;
        places[n] = 2 * (n_bins as u16 - 1);
        n += 1;
    } else if total & mask >= 2 * n_bins as i64 {
        // Few bins are empty, and an empty one only repeats the score of the cut before it.
        for (place, &lane) in lefts.iter_mut().zip(&sums[..n_bins - 1]) {
            left += lane;
            *place = left;
        }
        for (bin, place) in places[..n_bins - 1].iter_mut().enumerate() {
            *place = 2 * bin as u16;
        }
        n = n_bins - 1;
    } else {
        let min = limits.min_samples_leaf;
        let max = (total & mask) - min;
        for (bin, &lane) in sums[..n_bins - 1].iter().enumerate() {
            left += lane;
            lefts[n] = left;
            places[n] = 2 * bin as u16;
            let count = left & mask;
            n += usize::from((lane != 0) & (count >= min) & (count <= max));
        }
    }
    let min = small_to_f64(limits.min_samples_leaf.max(1));
    let padded = n.next_multiple_of(8);
    for (score, &left) in scores[..padded].iter_mut().zip(&lefts[..padded]) {
        let right = total - left;
        let (a, b) = (small_to_f64(left & mask), small_to_f64(right & mask));
        let distance = small_to_f64(left >> count_bits) * b - small_to_f64(right >> count_bits) * a;
        let gain = distance * distance / (a * b);
        *score = if (a >= min) & (b >= min) { gain } else { 0.0 };
    }
    let mut best = 0.0f64;
    for &score in &scores[..n] {
        best = if score > best { score } else { best };
    }
    if best <= 0.0 {
        return None;
    }
    let at = scores[..n].iter().position(|&score| score == best)?;
    let place = places[at];
    Some(Candidate { score: best, bin: place as usize / 2, missing_left: place % 2 == 1 })
}

/// The best cut for any number of lanes. Sums stay integers and are read by `real`.
#[inline(always)]
fn scan_lanes(
    histogram: FeatureHistogram<'_>,
    limits: SplitLimits,
    real: impl Fn(i64) -> f64 + Copy,
) -> Option<Candidate> {
    let FeatureHistogram { n_bins, layout, total, .. } = histogram;
    let width = layout.width;
    let any_missing = histogram.missing().is_some();
    let min = limits.min_samples_leaf.max(1);
    let count_total = layout.count(total);
    let mut best: Option<Candidate> = None;
    let mut keep = |score: f64, bin: usize, missing_left: bool| {
        if score > best.map_or(0.0, |best| best.score) {
            best = Some(Candidate { score, bin, missing_left });
        }
    };
    let missing = histogram.missing().map_or_else(|| vec![0i64; width], <[i64]>::to_vec);
    let mut left = vec![0i64; width];
    let mut with_missing = vec![0i64; width];
    // The last candidate has all values on the left and only the missing ones on the right.
    for bin in 0..n_bins - 1 + usize::from(any_missing) {
        let lanes = histogram.bin(bin);
        let is_last = bin == n_bins - 1;
        if lanes[width - 1] == 0 && !is_last {
            continue;
        }
        let count = left[width - 1] + lanes[width - 1];
        for (left, lane) in left.iter_mut().zip(lanes) {
            *left += lane;
        }
        if count >= min && count_total - count >= min {
            keep(score_of(layout, &left, total, real), bin, false);
        }
        let count = count + missing[width - 1];
        if any_missing && !is_last && count >= min && count_total - count >= min {
            for ((sum, left), missing) in with_missing.iter_mut().zip(&left).zip(&missing) {
                *sum = left + missing;
            }
            keep(score_of(layout, &with_missing, total, real), bin, true);
        }
    }
    best
}

/// The score of a cut, from the lanes of its left side; see [`Candidate::score`].
#[inline(always)]
fn score_of(layout: &Layout, left: &[i64], total: &[i64], real: impl Fn(i64) -> f64 + Copy) -> f64 {
    let q = layout.components;
    if layout.by_component() {
        return (0..q).map(|c| component_score(q, c, left, total, real)).sum();
    }
    // The lane after the gradients is the weight, or the count if rows are not weighted.
    let (a, b) = (real(left[q]), real(total[q] - left[q]));
    if a <= 0.0 || b <= 0.0 {
        return 0.0;
    }
    squared_distance(&left[..q], &total[..q], a, b, real) / (a * b)
}

/// D² / (a b (a + b)) of one component, 0 if it has no weight on one side.
#[inline(always)]
fn component_score(
    q: usize,
    c: usize,
    left: &[i64],
    total: &[i64],
    real: impl Fn(i64) -> f64,
) -> f64 {
    let (a, b) = (real(left[q + c]), real(total[q + c] - left[q + c]));
    if a <= 0.0 || b <= 0.0 {
        return 0.0;
    }
    let distance = real(left[c]) * b - real(total[c] - left[c]) * a;
    distance * distance / (a * b * (a + b))
}

/// Σ_c (L_c b − R_c a)², in four partial sums: the same on every machine.
#[inline(always)]
fn squared_distance(left: &[i64], total: &[i64], a: f64, b: f64, real: impl Fn(i64) -> f64) -> f64 {
    let mut lanes = [0.0f64; 4];
    let (left4, total4) = (left.chunks_exact(4), total.chunks_exact(4));
    let rest = left4.remainder().iter().zip(total4.remainder());
    for (left, total) in left4.zip(total4) {
        for k in 0..4 {
            let distance = real(left[k]) * b - real(total[k] - left[k]) * a;
            lanes[k] += distance * distance;
        }
    }
    for (lane, (&left, &total)) in lanes.iter_mut().zip(rest) {
        let distance = real(left) * b - real(total - left) * a;
        *lane += distance * distance;
    }
    (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
}

/// An integer of magnitude below 2⁵¹ as a double; vectorises, unlike the plain cast.
#[inline(always)]
fn small_to_f64(value: i64) -> f64 {
    const MAGIC: f64 = 6_755_399_441_055_744.0; // 1.5 · 2⁵²
    f64::from_bits((MAGIC.to_bits() as i64).wrapping_add(value) as u64) - MAGIC
}

#[inline(always)]
fn to_f64(value: i64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_integers_become_doubles_exactly() {
        for value in [0, 1, -1, 12345, (1 << 50) - 1, 1 - (1 << 50), (1 << 51) - 1, 1 - (1 << 51)] {
            assert_eq!(small_to_f64(value), value as f64);
        }
    }
}
