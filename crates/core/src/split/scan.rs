//! Scanning the bins of a histogram for cuts.

use super::SplitLimits;
use super::candidates::{Candidates, GROUP, Scoring};
use crate::histogram::FeatureHistogram;
use crate::lowlevel::widest;

/// Scores the cuts of a feature; returns the highest score, or 0 if it does not exceed `floor`.
pub(super) fn scan_feature(
    histogram: &FeatureHistogram<'_>,
    limits: &SplitLimits,
    floor: f64,
    candidates: &mut Candidates,
) -> f64 {
    candidates.clear(histogram.layout.width);
    match histogram.layout.count_bits {
        Some(bits) => widest(
            #[inline(always)]
            || {
                list_packed(*histogram, candidates);
                score_packed(bits, histogram.total[0], limits, floor, candidates)
            },
        ),
        None => widest(
            #[inline(always)]
            || {
                match histogram.layout.small {
                    true => scan_lanes(*histogram, limits, small_to_f64, candidates),
                    false => scan_lanes(*histogram, limits, to_f64, candidates),
                }
                candidates.best_score()
            },
        ),
    }
}

/// The cuts and their left sums, if gradient and count share a lane.
#[inline(always)]
fn list_packed(histogram: FeatureHistogram<'_>, candidates: &mut Candidates) {
    let FeatureHistogram { n_bins, has_missing, sums, total, .. } = histogram;
    let Candidates { n, lefts, places, .. } = candidates;
    let missing = if has_missing { sums[n_bins] } else { 0 };
    if missing != 0 {
        let mut left = 0i64;
        let mut add = |bin: usize| {
            left += sums[bin];
            lefts[*n] = left;
            lefts[*n + 1] = left + missing;
            places[*n] = 2 * bin as u16;
            places[*n + 1] = 2 * bin as u16 + 1;
            *n += if sums[bin] != 0 { 2 } else { 0 };
        };
        match histogram.occupied_values() {
            Some(bins) => bins.iter().for_each(|&bin| add(bin.into())),
            None => (0..n_bins - 1).for_each(add),
        }
        // All values go left.
        lefts[*n] = total[0] - missing;
        places[*n] = 2 * (n_bins as u16 - 1);
        *n += 1;
    } else if let Some(bins) = histogram.occupied_values() {
        let mut left = 0i64;
        for ((place, at), &bin) in lefts.iter_mut().zip(places.iter_mut()).zip(bins) {
            left += sums[usize::from(bin)];
            *place = left;
            *at = 2 * u16::from(bin);
        }
        *n = bins.len();
    } else {
        // An empty bin only repeats the score of the cut before it.
        let mut left = 0i64;
        for (place, &lane) in lefts.iter_mut().zip(&sums[..n_bins - 1]) {
            left += lane;
            *place = left;
        }
        for (bin, place) in places[..n_bins - 1].iter_mut().enumerate() {
            *place = 2 * bin as u16;
        }
        *n = n_bins - 1;
    }
}

/// Scores listed cuts, all at once; returns the highest score, or 0 if it does not exceed `floor`.
#[inline(always)]
fn score_packed(
    count_bits: u32,
    total: i64,
    limits: &SplitLimits,
    floor: f64,
    candidates: &mut Candidates,
) -> f64 {
    let mask = (1i64 << count_bits) - 1;
    let min = small_to_f64(limits.min_samples_leaf.max(1));
    let padded = candidates.n.next_multiple_of(GROUP);
    candidates.lefts[candidates.n..padded].fill(0);
    let Candidates { lefts, squares, products, scores, .. } = candidates;
    let each = lefts[..padded].iter().zip(&mut squares[..padded]).zip(&mut products[..padded]);
    // Most features do not beat the best one so far, and need no division to tell.
    let mut exceeds = 0u64;
    for ((&left, square), product) in each {
        let right = total - left;
        let (a, b) = (small_to_f64(left & mask), small_to_f64(right & mask));
        let distance = small_to_f64(left >> count_bits) * b - small_to_f64(right >> count_bits) * a;
        let allowed = (a >= min) & (b >= min);
        *square = if allowed { distance * distance } else { 0.0 };
        *product = a * b;
        exceeds |= u64::from(*square > floor * *product);
    }
    if exceeds == 0 {
        return 0.0;
    }
    let each = scores[..padded].iter_mut().zip(&squares[..padded]).zip(&products[..padded]);
    for ((score, &square), &product) in each {
        *score = if square > 0.0 { square / product } else { 0.0 };
    }
    candidates.best_score()
}

/// The cuts for any number of lanes. Sums stay integers and are read by `real`.
#[inline(always)]
fn scan_lanes(
    histogram: FeatureHistogram<'_>,
    limits: &SplitLimits,
    real: impl Fn(i64) -> f64 + Copy,
    candidates: &mut Candidates,
) {
    let FeatureHistogram { n_bins, layout, total, .. } = histogram;
    let scoring = Scoring::new(layout, total, limits, real);
    let missing = histogram.missing();
    let mut left = vec![0i64; layout.width];
    let mut add = |bin: usize| {
        let lanes = histogram.bin(bin);
        if layout.count(lanes) == 0 {
            return;
        }
        left.iter_mut().zip(lanes).for_each(|(left, lane)| *left += lane);
        candidates.push(bin, false, left.iter().copied(), &scoring);
        if let Some(missing) = missing {
            let both = left.iter().zip(missing).map(|(left, missing)| left + missing);
            candidates.push(bin, true, both, &scoring);
        }
    };
    match histogram.occupied_values() {
        Some(bins) => bins.iter().for_each(|&bin| add(bin.into())),
        None => (0..n_bins - 1).for_each(add),
    }
    if let Some(missing) = missing {
        // All values go left.
        let values = total.iter().zip(missing).map(|(total, missing)| total - missing);
        candidates.push(n_bins - 1, false, values, &scoring);
    }
    candidates.finish(&scoring);
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
