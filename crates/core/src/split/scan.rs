//! Scanning the bins of a histogram for cuts.

use super::SplitLimits;
use super::candidates::{BLOCK, Candidates, GROUP, Scoring, place};
use super::quick_look::{LongLook, may_exceed_packed};
use crate::histogram::{FeatureHistogram, Layout};
use crate::lowlevel::widest;

/// Components from which a cut is scored by itself: fewer do not fill vectors.
pub(super) const MANY_COMPONENTS: usize = 8;

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
                let (total, lefts) = (histogram.total[0], &candidates.lefts[..candidates.n]);
                if !may_exceed_packed(floor, bits, total, lefts) {
                    return 0.0;
                }
                score_packed(bits, total, limits, floor, candidates)
            },
        ),
        None => widest(
            #[inline(always)]
            || {
                match histogram.layout.small {
                    true => scan_lanes(*histogram, limits, floor, small_to_f64, candidates),
                    false => scan_lanes(*histogram, limits, floor, to_f64, candidates),
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
    let missing = if has_missing { sums[n_bins] } else { 0 };
    if missing != 0 {
        match histogram.occupied_values() {
            Some(bins) => list_missing(sums, missing, bins.iter().map(|&b| b.into()), candidates),
            None => list_missing(sums, missing, 0..n_bins - 1, candidates),
        }
        // All values go left.
        candidates.lefts[candidates.n] = total[0] - missing;
        candidates.places[candidates.n] = place(n_bins - 1, false);
        candidates.n += 1;
        return;
    }
    let Candidates { n, lefts, places, .. } = candidates;
    let mut left = 0i64;
    if let Some(bins) = histogram.occupied_values() {
        for ((into, at), &bin) in lefts.iter_mut().zip(places.iter_mut()).zip(bins) {
            left += sums[usize::from(bin)];
            *into = left;
            *at = place(bin.into(), false);
        }
        *n = bins.len();
    } else {
        // An empty bin only repeats the score of the cut before it.
        for (into, &lane) in lefts.iter_mut().zip(&sums[..n_bins - 1]) {
            left += lane;
            *into = left;
        }
        for (bin, at) in places[..n_bins - 1].iter_mut().enumerate() {
            *at = place(bin, false);
        }
        *n = n_bins - 1;
    }
}

/// Two cuts after each bin that has rows: with the missing values on the right, and on the left.
#[inline(always)]
fn list_missing(
    sums: &[i64],
    missing: i64,
    bins: impl Iterator<Item = usize>,
    Candidates { n, lefts, places, .. }: &mut Candidates,
) {
    let mut left = 0i64;
    for bin in bins {
        left += sums[bin];
        lefts[*n] = left;
        lefts[*n + 1] = left + missing;
        places[*n] = place(bin, false);
        places[*n + 1] = place(bin, true);
        *n += if sums[bin] != 0 { 2 } else { 0 };
    }
}

/// Scores listed cuts, all at once; returns the highest score, or 0 if it does not exceed `floor`.
#[inline(always)]
pub(super) fn score_packed(
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

/// Scores the cuts for any number of lanes. Sums stay integers and are read by `real`.
#[inline(always)]
fn scan_lanes(
    histogram: FeatureHistogram<'_>,
    limits: &SplitLimits,
    floor: f64,
    real: impl Fn(i64) -> f64 + Copy,
    candidates: &mut Candidates,
) {
    let FeatureHistogram { n_bins, layout, total, .. } = histogram;
    if layout.small && layout.components >= MANY_COMPONENTS && !layout.by_component() {
        return match histogram.occupied_values() {
            Some(bins) => {
                let bins = bins.iter().map(|&b| b.into());
                scan_components(histogram, bins, limits, floor, candidates);
            }
            None => scan_components(histogram, 0..n_bins - 1, limits, floor, candidates),
        };
    }
    let scoring = Scoring::new(layout, total, limits, floor, real);
    match histogram.occupied_values() {
        Some(bins) => {
            let left = &mut vec![0; layout.width];
            scan_bins(histogram, bins.iter().map(|&b| b.into()), left, &scoring, candidates);
        }
        None if histogram.missing().is_none() && matches!(layout.width, 2 | 3 | 5 | 6) => {
            match layout.width {
                2 => scan_all_bins::<2>(histogram, &scoring, candidates),
                3 => scan_all_bins::<3>(histogram, &scoring, candidates),
                5 => scan_all_bins::<5>(histogram, &scoring, candidates),
                _ => scan_all_bins::<6>(histogram, &scoring, candidates),
            }
        }
        None => {
            let bins = 0..n_bins - 1;
            // With a width known to the compiler, left sums stay in registers.
            match layout.width {
                2 => scan_bins(histogram, bins, &mut [0; 2], &scoring, candidates),
                3 => scan_bins(histogram, bins, &mut [0; 3], &scoring, candidates),
                5 => scan_bins(histogram, bins, &mut [0; 5], &scoring, candidates),
                6 => scan_bins(histogram, bins, &mut [0; 6], &scoring, candidates),
                width => scan_bins(histogram, bins, &mut vec![0; width], &scoring, candidates),
            }
        }
    }
    if let Some(missing) = histogram.missing() {
        // All values go left.
        let values = total.iter().zip(missing).map(|(total, missing)| total - missing);
        candidates.push((n_bins - 1, false), true, values, &scoring);
    }
    candidates.finish(&scoring);
}

/// [`scan_lanes`] for many components of small sums: cut by cut, several components at once.
#[inline(always)]
fn scan_components(
    histogram: FeatureHistogram<'_>,
    bins: impl Iterator<Item = usize>,
    limits: &SplitLimits,
    floor: f64,
    candidates: &mut Candidates,
) {
    let FeatureHistogram { n_bins, layout, total, .. } = histogram;
    let min = limits.min_samples_leaf.max(1);
    let totals: Vec<f64> = total.iter().map(|&sum| small_to_f64(sum)).collect();
    let look = LongLook::new(layout, &totals, floor);
    let missing = histogram.missing();
    let (mut left, mut with_missing) = (look.lanes(), look.lanes());
    for bin in bins {
        let lanes = histogram.bin(bin);
        if layout.count(lanes) == 0 {
            continue;
        }
        for (left, lane) in left.as_flattened_mut().iter_mut().zip(lanes) {
            *left += lane;
        }
        let flat = left.as_flattened();
        if look.may_exceed(&left, flat[layout.components]) {
            let score = score_components(&flat[..layout.width], &totals, layout, min);
            candidates.push_scored(bin, false, score);
        }
        if let Some(missing) = missing {
            let both = with_missing.as_flattened_mut();
            for ((both, left), missing) in both.iter_mut().zip(flat).zip(missing) {
                *both = left + missing;
            }
            let score = score_components(&both[..layout.width], &totals, layout, min);
            candidates.push_scored(bin, true, score);
        }
    }
    if let Some(missing) = missing {
        // All values go left.
        let values = with_missing.as_flattened_mut();
        for ((value, total), missing) in values.iter_mut().zip(total).zip(missing) {
            *value = total - missing;
        }
        let score = score_components(&values[..layout.width], &totals, layout, min);
        candidates.push_scored(n_bins - 1, false, score);
    }
}

/// The score of a cut with these left lanes; 0 if it is not allowed. Adds up the components in the order
/// of [`Scoring`]. Small sums are exact as doubles, and so are their differences.
#[inline(always)]
fn score_components(left: &[i64], totals: &[f64], layout: &Layout, min_count: i64) -> f64 {
    let (q, last) = (layout.components, layout.width - 1);
    let count = small_to_f64(left[last]);
    let min = small_to_f64(min_count);
    let a = small_to_f64(left[q]);
    let b = totals[q] - a;
    if (count < min) | (totals[last] - count < min) | (a <= 0.0) | (b <= 0.0) {
        return 0.0;
    }
    let (lefts, last_lefts) = left[..q].as_chunks::<4>();
    let (totals, last_totals) = totals[..q].as_chunks::<4>();
    let mut partial = [0.0f64; 4];
    for (lefts, totals) in lefts.iter().zip(totals) {
        for k in 0..4 {
            let left = small_to_f64(lefts[k]);
            let distance = left * b - (totals[k] - left) * a;
            partial[k] += distance * distance;
        }
    }
    for ((partial, &left), &total) in partial.iter_mut().zip(last_lefts).zip(last_totals) {
        let left = small_to_f64(left);
        let distance = left * b - (total - left) * a;
        *partial += distance * distance;
    }
    ((partial[0] + partial[2]) + (partial[1] + partial[3])) / (a * b)
}

/// Scores the cuts after all bins of a histogram without missing values, `W` lanes each. A bin without
/// rows repeats the cut before it, which comes first; so no bin has to be left out.
#[inline(always)]
fn scan_all_bins<const W: usize>(
    histogram: FeatureHistogram<'_>,
    scoring: &Scoring<'_, impl Fn(i64) -> f64 + Copy>,
    candidates: &mut Candidates,
) {
    let (bins, _) = histogram.sums.as_chunks::<W>();
    let mut left = [0i64; W];
    for bins in bins[..histogram.n_bins - 1].chunks(BLOCK) {
        candidates.push_block(bins.len(), scoring, |block: &mut [[i64; BLOCK]; W]| {
            for (k, lanes) in bins.iter().enumerate() {
                for l in 0..W {
                    left[l] += lanes[l];
                    block[l][k % BLOCK] = left[l];
                }
            }
        });
    }
}

/// Scores the cuts after those bins that have rows. `left` is zero, as long as a bin has lanes.
#[inline(always)]
fn scan_bins(
    histogram: FeatureHistogram<'_>,
    bins: impl Iterator<Item = usize>,
    left: &mut [i64],
    scoring: &Scoring<'_, impl Fn(i64) -> f64 + Copy>,
    candidates: &mut Candidates,
) {
    let width = left.len();
    let missing = histogram.missing();
    for bin in bins {
        let lanes = &histogram.sums[bin * width..][..width];
        let is_cut = lanes[width - 1] > 0;
        for (left, lane) in left.iter_mut().zip(lanes) {
            *left += lane;
        }
        candidates.push((bin, false), is_cut, left.iter().copied(), scoring);
        if let Some(missing) = missing {
            let both = left.iter().zip(missing).map(|(left, missing)| left + missing);
            candidates.push((bin, true), is_cut, both, scoring);
        }
    }
}

/// An integer of magnitude below 2⁵¹ as a double; vectorises, unlike the plain cast.
#[inline(always)]
pub(super) fn small_to_f64(value: i64) -> f64 {
    const MAGIC: f64 = 6_755_399_441_055_744.0; // 1.5 · 2⁵²
    f64::from_bits((MAGIC.to_bits() as i64).wrapping_add(value) as u64) - MAGIC
}

#[inline(always)]
pub(super) fn to_f64(value: i64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::super::tests::Summed;
    use super::*;
    use crate::histogram::SplitWeights;
    use crate::random::Key;

    #[test]
    fn cut_by_cut_or_in_groups_the_scores_of_many_components_have_the_same_bits() {
        let mut stream = Key::new(3).stream();
        for q in [8usize, 9, 10, 11, 50] {
            for has_missing in [false, true] {
                let (n, n_bins) = (200, 20);
                let slots = n_bins + usize::from(has_missing);
                let column: Vec<u8> = (0..n).map(|_| stream.below(slots) as u8).collect();
                let z: Vec<f32> = (0..n * q).map(|_| stream.normals().0 as f32).collect();
                let weights: Vec<f32> = (0..n).map(|_| stream.uniform() as f32).collect();
                for weights in [SplitWeights::Equal, SplitWeights::Rows(&weights)] {
                    let summed = Summed::new(&column, &z, q, weights, (n_bins, has_missing));
                    let histogram = summed.of_feature(0);
                    let limits = SplitLimits::new(3, 0.0);
                    let mut single = Candidates::default();
                    single.clear(histogram.layout.width);
                    scan_components(histogram, 0..n_bins - 1, &limits, 0.0, &mut single);
                    let mut groups = Candidates::default();
                    groups.clear(histogram.layout.width);
                    let scoring =
                        Scoring::new(histogram.layout, histogram.total, &limits, 0.0, small_to_f64);
                    let left = &mut vec![0; histogram.layout.width];
                    scan_bins(histogram, 0..n_bins - 1, left, &scoring, &mut groups);
                    groups.finish(&scoring);
                    let n = groups.n;
                    assert!(n > 0 && single.n == n + usize::from(has_missing));
                    assert_eq!(single.scores[..n], groups.scores[..n]);
                    assert_eq!(single.places[..n], groups.places[..n]);
                }
            }
        }
    }

    #[test]
    fn small_integers_become_doubles_exactly() {
        for value in [0, 1, -1, 12345, (1 << 50) - 1, 1 - (1 << 50), (1 << 51) - 1, 1 - (1 << 51)] {
            assert_eq!(small_to_f64(value), value as f64);
        }
    }
}
