//! The candidates of one feature, scored many at a time.

use super::SplitLimits;
use crate::histogram::Layout;

/// Most candidates of one feature: a cut after each bin, twice if values are missing, and one that
/// cuts off the missing values alone; rounded up to whole groups.
pub(super) const MAX_CANDIDATES: usize = 2 * 256 + GROUP;

/// Candidates scored together.
pub(super) const GROUP: usize = 8;

/// The cuts of one feature and their scores. Kept from feature to feature.
pub(super) struct Candidates {
    pub n: usize,
    /// Left sums, if gradient and count share a lane.
    pub lefts: [i64; MAX_CANDIDATES],
    /// D² of their scores.
    pub squares: [f64; MAX_CANDIDATES],
    /// a b of their scores.
    pub products: [f64; MAX_CANDIDATES],
    /// Twice the bin, plus one if missing values go left.
    pub places: [u16; MAX_CANDIDATES],
    /// Σ D² / (a b), or Σ D² / (a b (a + b)) if each component has its own weights. 0 if the cut is
    /// not allowed.
    pub scores: [f64; MAX_CANDIDATES],
    /// Left lanes of the last few candidates that have no score yet, lane by lane.
    group: Vec<[i64; GROUP]>,
}

impl Default for Candidates {
    fn default() -> Candidates {
        Candidates {
            n: 0,
            lefts: [0; MAX_CANDIDATES],
            squares: [0.0; MAX_CANDIDATES],
            products: [0.0; MAX_CANDIDATES],
            places: [0; MAX_CANDIDATES],
            scores: [0.0; MAX_CANDIDATES],
            group: Vec::new(),
        }
    }
}

impl Candidates {
    /// Begins with the next feature.
    pub fn clear(&mut self, width: usize) {
        self.n = 0;
        if self.group.len() != width {
            self.group.resize(width, [0; GROUP]);
        }
    }

    /// Adds a candidate with its score.
    pub fn push_scored(&mut self, bin: usize, missing_left: bool, score: f64) {
        self.places[self.n] = place(bin, missing_left);
        self.scores[self.n] = score;
        self.n += 1;
    }

    /// Adds a candidate by its left lanes; scores a group of them when it is full.
    #[inline(always)]
    pub fn push(
        &mut self,
        bin: usize,
        missing_left: bool,
        left: impl Iterator<Item = i64>,
        scoring: &Scoring<'_, impl Fn(i64) -> f64 + Copy>,
    ) {
        let k = self.n % GROUP;
        for (group, lane) in self.group.iter_mut().zip(left) {
            group[k] = lane;
        }
        self.places[self.n] = place(bin, missing_left);
        self.n += 1;
        if self.n.is_multiple_of(GROUP) {
            self.score_group(scoring);
        }
    }

    /// Scores the candidates that have no score yet.
    #[inline(always)]
    pub fn finish(&mut self, scoring: &Scoring<'_, impl Fn(i64) -> f64 + Copy>) {
        let n = self.n;
        if !n.is_multiple_of(GROUP) {
            // The rest of the group is stale; its scores are not looked at.
            self.n = n.next_multiple_of(GROUP);
            self.score_group(scoring);
            self.n = n;
        }
    }

    #[inline(always)]
    fn score_group(&mut self, scoring: &Scoring<'_, impl Fn(i64) -> f64 + Copy>) {
        let scores = scoring.of_group(&self.group);
        self.scores[self.n - GROUP..self.n].copy_from_slice(&scores);
    }

    /// The highest score; 0 if no cut is allowed.
    #[inline(always)]
    pub fn best_score(&mut self) -> f64 {
        // Several running maxima do not wait for each other.
        let padded = self.n.next_multiple_of(GROUP);
        self.scores[self.n..padded].fill(0.0);
        let mut best = [0.0f64; GROUP];
        for scores in self.scores[..padded].chunks_exact(GROUP) {
            for k in 0..GROUP {
                best[k] = if scores[k] > best[k] { scores[k] } else { best[k] };
            }
        }
        best.into_iter().fold(0.0, |best, score| if score > best { score } else { best })
    }

    /// The first candidate of this score, if the score is more than none.
    pub fn position(&self, score: f64) -> Option<usize> {
        let mut scores = self.scores[..self.n].iter();
        if score > 0.0 { scores.position(|&each| each == score) } else { None }
    }

    /// The first cut of this score: its bin, and whether missing values go left.
    pub fn first_with(&self, score: f64) -> Option<(usize, bool)> {
        let place = self.places[self.position(score)?];
        Some((usize::from(place / 2), place % 2 == 1))
    }
}

/// A cut as one number.
#[inline(always)]
pub(super) fn place(bin: usize, missing_left: bool) -> u16 {
    2 * bin as u16 + u16::from(missing_left)
}

/// How candidates of several lanes are scored; sums are read by `real`.
pub(super) struct Scoring<'a, F> {
    pub layout: &'a Layout,
    pub total: &'a [i64],
    pub min_count: i64,
    pub real: F,
}

impl<'a, F: Fn(i64) -> f64 + Copy> Scoring<'a, F> {
    pub fn new(layout: &'a Layout, total: &'a [i64], limits: &SplitLimits, real: F) -> Self {
        Scoring { layout, total, min_count: limits.min_samples_leaf.max(1), real }
    }

    #[inline(always)]
    fn of_group(&self, lefts: &[[i64; GROUP]]) -> [f64; GROUP] {
        let width = self.layout.width;
        let scores =
            if self.layout.by_component() { self.by_component(lefts) } else { self.by_row(lefts) };
        let (counts, total) = (&lefts[width - 1], self.total[width - 1]);
        std::array::from_fn(|k| {
            let allowed = (counts[k] >= self.min_count) & (total - counts[k] >= self.min_count);
            if allowed { scores[k] } else { 0.0 }
        })
    }

    /// Real sums of a lane on both sides.
    #[inline(always)]
    fn sides(&self, lefts: &[[i64; GROUP]], lane: usize) -> ([f64; GROUP], [f64; GROUP]) {
        let (left, total) = (&lefts[lane], self.total[lane]);
        let real = self.real;
        (left.map(real), std::array::from_fn(|k| real(total - left[k])))
    }

    /// All components share the weights of rows.
    #[inline(always)]
    fn by_row(&self, lefts: &[[i64; GROUP]]) -> [f64; GROUP] {
        let q = self.layout.components;
        // The lane after the gradients is the weight, or the count if rows are not weighted.
        let (a, b) = self.sides(lefts, q);
        // Four partial sums over the components: the same on every machine.
        let mut partial = [[0.0f64; GROUP]; 4];
        for c in 0..q {
            let (left, right) = self.sides(lefts, c);
            let partial = &mut partial[c % 4];
            for k in 0..GROUP {
                let distance = left[k] * b[k] - right[k] * a[k];
                partial[k] += distance * distance;
            }
        }
        std::array::from_fn(|k| {
            let sum = (partial[0][k] + partial[2][k]) + (partial[1][k] + partial[3][k]);
            if (a[k] > 0.0) & (b[k] > 0.0) { sum / (a[k] * b[k]) } else { 0.0 }
        })
    }

    /// Each component has its own weights; without weight on one side it gains nothing.
    #[inline(always)]
    fn by_component(&self, lefts: &[[i64; GROUP]]) -> [f64; GROUP] {
        let q = self.layout.components;
        let mut scores = [0.0f64; GROUP];
        for c in 0..q {
            let ((left, right), (a, b)) = (self.sides(lefts, c), self.sides(lefts, q + c));
            for k in 0..GROUP {
                let distance = left[k] * b[k] - right[k] * a[k];
                let score = distance * distance / (a[k] * b[k] * (a[k] + b[k]));
                scores[k] += if (a[k] > 0.0) & (b[k] > 0.0) { score } else { 0.0 };
            }
        }
        scores
    }
}
