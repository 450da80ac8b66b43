//! A quick look at the cuts of a feature: most features have none that beats the best one so far.
//!
//! It errs on the safe side, and does without right sums and divisions. With sums T and weight n in the
//! node, L and a on the left, b = n − a on the right, the score Σ D²/(a b) exceeds the floor if
//! Σ (L − a T/n)² > a b · floor/n². Rounding changes L − a T/n by less than a quantum here, and D/n by less
//! than one in the exact score, since all sums are below 2⁵⁰; so two quanta are added to each |L − a T/n|.
//! Without weight on one side the right side is 0: such a cut has no score.

use super::candidates::BLOCK;
use super::scan::{MANY_COMPONENTS, small_to_f64};
use crate::histogram::Layout;

/// Most components that are looked at.
const MAX_COMPONENTS: usize = MANY_COMPONENTS - 1;

/// What the cuts of a node are held against.
#[derive(Clone, Copy)]
struct Bar<const Q: usize> {
    /// T/n.
    means: [f64; Q],
    /// n.
    weight: f64,
    /// floor/n².
    floor: f64,
}

impl<const Q: usize> Bar<Q> {
    #[inline(always)]
    fn new(sums: [f64; Q], weight: f64, floor: f64) -> Bar<Q> {
        Bar { means: sums.map(|sum| sum / weight), weight, floor: floor / (weight * weight) }
    }

    /// Whether a cut with these left sums and this left weight may exceed it.
    #[inline(always)]
    fn may_be_exceeded(&self, lefts: [f64; Q], a: f64) -> bool {
        let mut apart = 0.0;
        for (left, mean) in lefts.into_iter().zip(self.means) {
            let each = (left - mean * a).abs() + 2.0;
            apart += each * each;
        }
        let least = self.floor * a * (self.weight - a);
        (apart > least) & (least > 0.0)
    }
}

/// Whether a cut with one of these left sums may score more than `floor`, if gradient and count share a
/// lane.
#[inline(always)]
pub(super) fn may_exceed_packed(floor: f64, count_bits: u32, total: i64, lefts: &[i64]) -> bool {
    if floor <= 0.0 {
        return true;
    }
    let mask = (1i64 << count_bits) - 1;
    let read = |lane: i64| ([small_to_f64(lane >> count_bits)], small_to_f64(lane & mask));
    let (sums, weight) = read(total);
    let bar = Bar::new(sums, weight, floor);
    let mut exceeds = 0u64;
    for &left in lefts {
        let (sums, a) = read(left);
        exceeds |= u64::from(bar.may_be_exceeded(sums, a));
    }
    exceeds != 0
}

/// A quick look at cuts of several lanes.
pub(super) struct QuickLook {
    components: usize,
    /// None if all cuts may exceed the floor, or a look would be no quicker than scores.
    bar: Option<Bar<MAX_COMPONENTS>>,
}

impl QuickLook {
    pub fn new(layout: &Layout, total: &[i64], floor: f64) -> QuickLook {
        let q = layout.components;
        let looks = floor > 0.0 && layout.small && q <= MAX_COMPONENTS && !layout.by_component();
        let bar = looks.then(|| {
            let mut sums = [0.0; MAX_COMPONENTS];
            sums.iter_mut().zip(&total[..q]).for_each(|(sum, &lane)| *sum = small_to_f64(lane));
            Bar::new(sums, small_to_f64(total[q]), floor)
        });
        QuickLook { components: q, bar }
    }

    /// Whether one of the first `n` cuts of a block, given by their left lanes, may exceed the floor.
    #[inline(always)]
    pub fn may_exceed(&self, lefts: &[[i64; BLOCK]], n: usize) -> bool {
        let Some(bar) = self.bar else { return true };
        match self.components {
            1 => look::<1>(bar, lefts, n),
            2 => look::<2>(bar, lefts, n),
            3 => look::<3>(bar, lefts, n),
            4 => look::<4>(bar, lefts, n),
            5 => look::<5>(bar, lefts, n),
            6 => look::<6>(bar, lefts, n),
            _ => look::<MAX_COMPONENTS>(bar, lefts, n),
        }
    }
}

#[inline(always)]
fn look<const Q: usize>(bar: Bar<MAX_COMPONENTS>, lefts: &[[i64; BLOCK]], n: usize) -> bool {
    let Bar { means, weight, floor } = bar;
    let bar = Bar::<Q> { means: std::array::from_fn(|c| means[c]), weight, floor };
    // The lane after the gradients is the weight, or the count if rows are not weighted.
    let (sums, weights): ([_; Q], _) = (std::array::from_fn(|c| &lefts[c]), &lefts[Q]);
    let mut exceeds = 0u64;
    for k in 0..n.min(BLOCK) {
        let lefts = std::array::from_fn(|c| small_to_f64(sums[c][k]));
        exceeds |= u64::from(bar.may_be_exceeded(lefts, small_to_f64(weights[k])));
    }
    exceeds != 0
}

/// Lanes of a cut of many components that are looked at together.
const LONG: usize = 8;

/// A quick look at cuts of many components, one at a time.
pub(super) struct LongLook {
    /// T/n of each component, and what takes off a itself and nothing else from the lanes behind.
    means: Vec<[f64; LONG]>,
    weight: f64,
    /// floor/n², or 0 if all cuts may exceed it.
    floor: f64,
}

impl LongLook {
    pub fn new(layout: &Layout, totals: &[f64], floor: f64) -> LongLook {
        let (q, weight) = (layout.components, totals[layout.components]);
        let mut means = vec![[0.0; LONG]; layout.width.div_ceil(LONG)];
        let flat = means.as_flattened_mut();
        flat[..q].copy_from_slice(&totals[..q]);
        flat[..q].iter_mut().for_each(|mean| *mean /= weight);
        flat[q] = 1.0;
        LongLook { means, weight, floor: floor / (weight * weight) }
    }

    /// Room for the lanes of a cut: zeros, as many as are looked at.
    pub fn lanes(&self) -> Vec<[i64; LONG]> {
        vec![[0; LONG]; self.means.len()]
    }

    /// Whether a cut with these left lanes, `a` of weight, may exceed the floor. The lanes behind the
    /// components only add to what is held against it: next to nothing, since they count rows.
    #[inline(always)]
    pub fn may_exceed(&self, lefts: &[[i64; LONG]], a: i64) -> bool {
        if self.floor <= 0.0 {
            return true;
        }
        let a = small_to_f64(a);
        let mut apart = [0.0f64; LONG];
        for (lefts, means) in lefts.iter().zip(&self.means) {
            for k in 0..LONG {
                let each = (small_to_f64(lefts[k]) - means[k] * a).abs() + 2.0;
                apart[k] += each * each;
            }
        }
        // Sums of so many may be rounded down by more than the quanta that were added.
        apart.iter().sum::<f64>() * (1.0 + 1e-12) > self.floor * a * (self.weight - a)
    }
}

#[cfg(test)]
mod tests {
    use super::super::SplitLimits;
    use super::super::candidates::Candidates;
    use super::super::scan::scan_feature;
    use super::super::tests::Summed;
    use crate::histogram::SplitWeights;
    use crate::random::Key;

    #[test]
    fn it_hides_no_cut_above_the_floor_and_most_below() {
        let mut stream = Key::new(4).stream();
        let kinds =
            [(1, false), (1, true), (2, false), (3, true), (7, false), (8, true), (50, false)];
        for (q, is_weighted) in kinds {
            let mut n_hidden = 0;
            for case in 0..200 {
                let (n, n_bins) = (2 + case, 16);
                let column: Vec<u8> = (0..n).map(|_| stream.below(n_bins) as u8).collect();
                // Far from zero, so that sums nearly cancel.
                let offset = if case % 2 == 0 { 0.0 } else { 1e4 };
                let mut draw = || stream.normals().0 as f32;
                let z: Vec<f32> = (0..n * q).map(|_| offset + draw()).collect();
                // Of very different sizes, some zero.
                let weights: Vec<f32> = (0..n).map(|_| (2.0 * draw()).exp() - 0.1).collect();
                let weights: Vec<f32> = weights.into_iter().map(|w| w.max(0.0)).collect();
                let weights =
                    if is_weighted { SplitWeights::Rows(&weights) } else { SplitWeights::Equal };
                let summed = Summed::new(&column, &z, q, weights, (n_bins, false));
                let histogram = summed.of_feature(0);
                let limits = SplitLimits::new(1, 0.0);
                let mut candidates = Candidates::default();
                let mut score =
                    |floor: f64| scan_feature(&histogram, &limits, floor, &mut candidates);
                let highest = score(0.0);
                assert_eq!(score(highest * (1.0 - 1e-9)), highest);
                n_hidden += usize::from(score(highest * 1.1) == 0.0);
            }
            assert!(n_hidden > 190, "{q} {is_weighted} {n_hidden}");
        }
    }
}
