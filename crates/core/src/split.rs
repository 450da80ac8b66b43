//! The best split of one feature at one node, from its histogram.
//!
//! Variance reduction summed over the components: with left and right sums L, R and weights a, b,
//! gain = Σ_c (L_c b − R_c a)² / (a b (a + b)). Written so, a node of equal gradients gains exactly
//! nothing, and mirrored splits gain exactly the same: ties are true ties. Where cells are weighted
//! each component has its own a and b, and one that has no weight on a side gains nothing.

use crate::category::CategorySet;
use crate::histogram::Layout;
use crate::lowlevel::widest;
use crate::monotone::{Order, scan_ordered};

/// A way to cut a node in two.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// Feature to look at.
    pub feature: u32,
    /// Last bin that goes left; for a categorical feature, the last place in the order of its
    /// categories.
    pub bin: u8,
    /// The categories that go left, for a categorical feature.
    pub categories: Option<CategorySet>,
    /// Whether missing values go left.
    pub missing_left: bool,
    /// Variance reduction, in units of split gradients squared times weight.
    pub gain: f64,
    /// Lanes of the left child.
    pub left: Vec<i64>,
}

impl Split {
    /// Whether this split is better than another of that gain; the lower feature wins a tie.
    pub fn beats(&self, gain: f64, feature: u32) -> bool {
        self.gain > gain || (self.gain == gain && self.feature < feature)
    }
}

/// What a split must respect.
#[derive(Debug, Clone, Copy)]
pub struct SplitLimits {
    /// Fewest rows of a child.
    pub min_samples_leaf: i64,
    /// Smallest gain worth a split.
    pub min_split_gain: f64,
    /// Gains up to this many quanta² a row are rounding noise.
    pub noise: f64,
    /// The order that the two sides must keep, if any; needs a single component.
    pub order: Option<Order>,
}

impl SplitLimits {
    /// Limits without constraints.
    pub const fn new(min_samples_leaf: i64, min_split_gain: f64) -> SplitLimits {
        // Rounding to quanta alone gains about 1/12 quantum² a row; the best of many cuts a few
        // times it.
        SplitLimits { min_samples_leaf, min_split_gain, noise: 4.0, order: None }
    }
}

/// Looks for a split of a feature better than `best`, puts it there and tells whether there is one.
/// Within a feature the lowest threshold wins a tie, then missing to the right; between features the
/// lowest.
pub fn improve_split(
    layout: &Layout,
    histogram: &[i64],
    n_bins: usize,
    has_missing: bool,
    total: &[i64],
    feature: u32,
    limits: SplitLimits,
    scratch: &mut Scratch,
    best: &mut Option<Split>,
) -> bool {
    let found = match layout.count_bits {
        _ if limits.order.is_some_and(|order| !order.is_free()) => limits.order.and_then(|order| {
            scan_ordered(layout, histogram, n_bins, has_missing, total, limits, order)
        }),
        Some(bits) => widest(
            #[inline(always)]
            || scan_packed(bits, histogram, n_bins, has_missing, total[0], limits, scratch),
        ),
        None => widest(
            #[inline(always)]
            || match layout.small {
                true => scan_lanes(layout, histogram, n_bins, has_missing, total, limits, to_f64),
                false => scan_lanes(layout, histogram, n_bins, has_missing, total, limits, cast),
            },
        ),
    };
    let Some((score, bin, missing_left)) = found else { return false };
    // score · unit² is still to be divided by the node's weight, unless components did it.
    let square = layout.unit * layout.unit;
    let weight_unit = if layout.weight_lanes > 0 { layout.weight_unit } else { 1.0 };
    let smallest = smallest_weight(layout, total) * weight_unit;
    let gain = score * (square / if layout.by_component() { weight_unit } else { smallest });
    let noise = limits.noise * (square / smallest) * layout.count(total) as f64;
    let enough = gain > noise && gain >= limits.min_split_gain;
    if !enough || best.as_ref().is_some_and(|best| best.beats(gain, feature)) {
        return false;
    }
    let width = layout.width;
    let mut left = vec![0i64; width];
    for b in (0..=bin).chain(missing_left.then_some(n_bins)) {
        for (sum, lane) in left.iter_mut().zip(&histogram[b * width..(b + 1) * width]) {
            *sum += lane;
        }
    }
    let any_missing =
        has_missing && layout.count(&histogram[n_bins * width..(n_bins + 1) * width]) > 0;
    // Where nothing was learnt about missing values, they follow the larger child.
    let missing_left =
        if any_missing { missing_left } else { 2 * layout.count(&left) >= layout.count(total) };
    *best = Some(Split { feature, bin: bin as u8, categories: None, missing_left, gain, left });
    true
}

/// Total weight of a node, that of its lightest component if each has its own.
fn smallest_weight(layout: &Layout, total: &[i64]) -> f64 {
    if !layout.by_component() {
        return layout.weight(total);
    }
    let weights = layout.weights(total).iter().filter(|&&w| w > 0);
    weights.min().map_or(1.0, |&w| w as f64)
}

/// Best (score, bin, missing_left) with score = Σ D² / (a b), or Σ D² / (a b (a + b)) where each
/// component has its own weights.
pub type Found = Option<(f64, usize, bool)>;

/// Candidates of one feature: a cut after each occupied bin, twice when values are missing, and one
/// that cuts off the missing values alone.
const MAX_CANDIDATES: usize = 2 * 256 + 8;

/// Room for the candidates of one feature, kept from one to the next.
pub struct Scratch {
    lefts: [i64; MAX_CANDIDATES],
    places: [u16; MAX_CANDIDATES],
    scores: [f64; MAX_CANDIDATES],
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch {
            lefts: [0; MAX_CANDIDATES],
            places: [0; MAX_CANDIDATES],
            scores: [0.0; MAX_CANDIDATES],
        }
    }
}

#[inline(always)]
fn scan_packed(
    count_bits: u32,
    histogram: &[i64],
    n_bins: usize,
    has_missing: bool,
    total: i64,
    limits: SplitLimits,
    scratch: &mut Scratch,
) -> Found {
    let Scratch { lefts, places, scores } = scratch;
    let mask = (1i64 << count_bits) - 1;
    let missing = if has_missing { histogram[n_bins] } else { 0 };
    let any_missing = missing & mask != 0;
    // First a pass from bin to bin that keeps the left sums of the cuts worth a look, then the
    // gains of all of them at once.
    let mut n = 0;
    let mut left = 0i64;
    if any_missing {
        for (bin, &lane) in histogram[..n_bins - 1].iter().enumerate() {
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
        // Hardly a bin is empty, and an empty one repeats the score of the cut before it.
        for (place, &lane) in lefts.iter_mut().zip(&histogram[..n_bins - 1]) {
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
        for (bin, &lane) in histogram[..n_bins - 1].iter().enumerate() {
            left += lane;
            lefts[n] = left;
            places[n] = 2 * bin as u16;
            let count = left & mask;
            n += usize::from((lane != 0) & (count >= min) & (count <= max));
        }
    }
    let min = to_f64(limits.min_samples_leaf.max(1));
    let padded = n.next_multiple_of(8);
    for (score, &left) in scores[..padded].iter_mut().zip(&lefts[..padded]) {
        let right = total - left;
        let (a, b) = (to_f64(left & mask), to_f64(right & mask));
        let distance = to_f64(left >> count_bits) * b - to_f64(right >> count_bits) * a;
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
    Some((best, places[at] as usize / 2, places[at] % 2 == 1))
}

/// An integer of magnitude below 2⁵¹ as a double; vectorises where the plain cast does not.
#[inline(always)]
fn to_f64(value: i64) -> f64 {
    const MAGIC: f64 = 6_755_399_441_055_744.0; // 1.5 · 2⁵²
    f64::from_bits((MAGIC.to_bits() as i64).wrapping_add(value) as u64) - MAGIC
}

/// Σ_c (L_c b − R_c a)².
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

#[inline(always)]
fn cast(value: i64) -> f64 {
    value as f64
}

/// Any number of lanes; left and right sums are kept as integers and read by `real`.
#[inline(always)]
fn scan_lanes(
    layout: &Layout,
    histogram: &[i64],
    n_bins: usize,
    has_missing: bool,
    total: &[i64],
    limits: SplitLimits,
    real: impl Fn(i64) -> f64 + Copy,
) -> Found {
    let width = layout.width;
    let bin_lanes = |bin: usize| &histogram[bin * width..(bin + 1) * width];
    let any_missing = has_missing && layout.count(bin_lanes(n_bins)) > 0;
    let min = limits.min_samples_leaf.max(1);
    let count_total = layout.count(total);
    let mut best: Found = None;
    let mut keep = |score: f64, bin: usize, missing_left: bool| {
        if score > best.map_or(0.0, |best| best.0) {
            best = Some((score, bin, missing_left));
        }
    };
    let missing = if any_missing { bin_lanes(n_bins).to_vec() } else { vec![0i64; width] };
    let mut left = vec![0i64; width];
    let mut with_missing = vec![0i64; width];
    // One pass over the bins; the last candidate has all values left, only the missing right.
    for bin in 0..n_bins - 1 + usize::from(any_missing) {
        let lanes = bin_lanes(bin);
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

/// Σ_c D_c² / (a b) of a cut, from the lanes of its left side; divided by a + b as well where each
/// component has its own weights.
#[inline(always)]
fn score_of(layout: &Layout, left: &[i64], total: &[i64], real: impl Fn(i64) -> f64 + Copy) -> f64 {
    let q = layout.components;
    if layout.by_component() {
        return (0..q).map(|c| component_score(q, c, left, total, real)).sum();
    }
    // The lane after the gradients is the weight, or the count when rows are not weighted.
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::histogram::{Lanes, NodeRows, SplitWeights, accumulate, quantise};

    pub(crate) fn histogram_of(
        column: &[u8],
        z: &[f32],
        q: usize,
        weights: SplitWeights<'_>,
        slots: usize,
    ) -> (Layout, Vec<i64>, Vec<i64>) {
        let gradients =
            quantise(&crate::parallel::Pool::serial(), z, q, weights, None, None).unwrap();
        let layout = gradients.layout;
        let rows: Vec<u32> = (0..column.len() as u32).collect();
        let mut histogram = vec![0i64; slots * layout.width];
        match &gradients.lanes {
            Lanes::Narrow(lanes) => {
                accumulate(column, NodeRows::Some(&rows), lanes, true, layout.width, &mut histogram)
            }
            Lanes::Wide(lanes) => {
                accumulate(column, NodeRows::Some(&rows), lanes, true, layout.width, &mut histogram)
            }
        }
        let mut total = vec![0i64; layout.width];
        for bin in histogram.chunks(layout.width) {
            total.iter_mut().zip(bin).for_each(|(t, b)| *t += b);
        }
        (layout, histogram, total)
    }

    /// Tries every split by summing rows; `z` and `w` by row and component.
    fn brute(
        column: &[u8],
        z: impl Fn(usize, usize) -> f64,
        w: impl Fn(usize, usize) -> f64,
        q: usize,
        n_bins: usize,
        min: usize,
    ) -> Option<(f64, usize, bool)> {
        let mut best: Option<(f64, usize, bool)> = None;
        let counts = |i: usize| (0..q).any(|c| w(i, c) > 0.0);
        for bin in 0..n_bins {
            // With no row in it, a bin repeats the cut before it, or cuts off the missing values.
            let occupied = (0..column.len()).any(|i| column[i] as usize == bin && counts(i));
            if !occupied && bin < n_bins - 1 {
                continue;
            }
            for missing_left in [false, true] {
                let goes_left = |i: usize| {
                    if column[i] as usize == n_bins {
                        missing_left
                    } else {
                        column[i] as usize <= bin
                    }
                };
                let n = column.len();
                let n_left = (0..n).filter(|&i| goes_left(i) && counts(i)).count();
                let n_right = (0..n).filter(|&i| !goes_left(i) && counts(i)).count();
                if n_left < min || n_right < min {
                    continue;
                }
                let mut gain = 0.0;
                for c in 0..q {
                    let weight = |side: bool| -> f64 {
                        (0..n).filter(|&i| goes_left(i) == side).map(|i| w(i, c)).sum()
                    };
                    let sum = |side: bool| -> f64 {
                        let terms = (0..n).filter(|&i| goes_left(i) == side);
                        terms.map(|i| w(i, c) * z(i, c)).sum()
                    };
                    let (a, b) = (weight(true), weight(false));
                    if a > 0.0 && b > 0.0 {
                        gain += (sum(true) * b - sum(false) * a).powi(2) / (a * b * (a + b));
                    }
                }
                if best.is_none_or(|(g, _, _)| gain > g * (1.0 + 1e-9)) {
                    best = Some((gain, bin, missing_left));
                }
            }
        }
        best
    }

    #[test]
    fn the_best_split_is_the_one_that_brute_force_finds() {
        let mut stream = crate::random::Key::new(11).stream();
        for case in 0..60 {
            let (n, q) = (40, 1 + case % 3);
            let n_bins = 6;
            let missing = case % 2 == 0;
            let slots = n_bins + usize::from(missing);
            let column: Vec<u8> = (0..n).map(|_| stream.below(slots) as u8).collect();
            let z: Vec<f32> = (0..n * q).map(|_| stream.normals().0 as f32).collect();
            // No weights, weights of rows, or weights of components, some of them zero.
            let kind = case % 5;
            let m = if kind < 2 { 1 } else { q };
            let mut draw = || (stream.uniform() as f32 * 2.0 - 0.5).max(0.0);
            let given: Vec<f32> =
                (0..n * m).map(|_| if kind < 2 { 0.5 + draw() } else { draw() }).collect();
            let w = |i: usize, c: usize| if kind == 4 { 1.0 } else { given[i * m + c % m] };
            let weighted: Vec<f32> = (0..n * q).map(|k| z[k] * w(k / q, k % q)).collect();
            let (source, weights) = match kind {
                0 | 1 => (&z, SplitWeights::Rows(&given)),
                2 | 3 => (&weighted, SplitWeights::Components(&given)),
                _ => (&z, SplitWeights::Equal),
            };
            let (layout, histogram, total) = histogram_of(&column, source, q, weights, slots);
            let limits = SplitLimits::new(3, 0.0);
            let mut best = None;
            improve_split(
                &layout,
                &histogram,
                n_bins,
                missing,
                &total,
                0,
                limits,
                &mut Scratch::default(),
                &mut best,
            );
            let split = best.unwrap();
            let real = |i: usize, c: usize| f64::from(z[i * q + c]);
            let weight = |i: usize, c: usize| f64::from(w(i, c));
            let (gain, bin, missing_left) = brute(&column, real, weight, q, n_bins, 3).unwrap();
            assert!((split.gain - gain).abs() < 1e-5 * gain, "{} {gain}", split.gain);
            assert_eq!(split.bin as usize, bin);
            assert!(!missing || split.missing_left == missing_left);
        }
    }

    #[test]
    fn equal_gradients_gain_nothing() {
        let column: Vec<u8> = (0..30).map(|i| i % 4).collect();
        for q in [1, 2] {
            let z = vec![0.3f32; 30 * q];
            let (layout, histogram, total) = histogram_of(&column, &z, q, SplitWeights::Equal, 4);
            let limits = SplitLimits::new(1, 0.0);
            let mut best = None;
            improve_split(
                &layout,
                &histogram,
                4,
                false,
                &total,
                0,
                limits,
                &mut Scratch::default(),
                &mut best,
            );
            assert_eq!(best, None);
        }
    }
}
