//! The candidates of one feature, scored many at a time.

use super::SplitLimits;
use super::quick_look::QuickLook;
use crate::histogram::Layout;

/// Most candidates of one feature: a cut after each bin, twice if values are missing, and one that
/// cuts off the missing values alone; rounded up to whole groups.
pub(super) const MAX_CANDIDATES: usize = 2 * 256 + GROUP;

/// Candidates scored together.
pub(super) const GROUP: usize = 8;

/// Candidates of several lanes that are listed before they are looked at: what was just written lane by
/// lane cannot be read as vectors at once.
pub(super) const BLOCK: usize = 8 * GROUP;

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
    /// Left lanes of the last candidates, those without a score, lane by lane.
    block: Vec<[i64; BLOCK]>,
    /// Number of candidates with a score.
    n_scored: usize,
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
            block: Vec::new(),
            n_scored: 0,
        }
    }
}

impl Candidates {
    /// Begins with the next feature.
    pub fn clear(&mut self, width: usize) {
        self.n = 0;
        self.n_scored = 0;
        if self.block.len() != width {
            self.block.resize(width, [0; BLOCK]);
        }
    }

    /// Adds a candidate with its score.
    pub fn push_scored(&mut self, bin: usize, missing_left: bool, score: f64) {
        self.places[self.n] = place(bin, missing_left);
        self.scores[self.n] = score;
        self.n += 1;
    }

    /// Adds a candidate by its left lanes if `is_cut`; scores a block of them when it is full.
    #[inline(always)]
    pub fn push(
        &mut self,
        (bin, missing_left): (usize, bool),
        is_cut: bool,
        left: impl ExactSizeIterator<Item = i64>,
        scoring: &Scoring<'_, impl Fn(i64) -> f64 + Copy>,
    ) {
        // Written in any case, and overwritten if it is no cut.
        let k = (self.n - self.n_scored) % BLOCK;
        for (lanes, lane) in self.block[..left.len()].iter_mut().zip(left) {
            lanes[k] = lane;
        }
        self.places[self.n] = place(bin, missing_left);
        self.n += usize::from(is_cut);
        if self.n - self.n_scored == BLOCK {
            self.score_block(scoring);
        }
    }

    /// Adds and scores candidates after the next `n` bins, at most a block, by their left lanes.
    #[inline(always)]
    pub fn push_block<const W: usize>(
        &mut self,
        n: usize,
        scoring: &Scoring<'_, impl Fn(i64) -> f64 + Copy>,
        fill: impl FnOnce(&mut [[i64; BLOCK]; W]),
    ) {
        let Some(block) = self.block.first_chunk_mut::<W>() else { return };
        fill(block);
        let next = self.n..self.n + n;
        for (at, bin) in self.places[next.clone()].iter_mut().zip(next) {
            *at = place(bin, false);
        }
        self.n += n;
        self.score_block(scoring);
    }

    /// Scores the candidates that have no score yet.
    #[inline(always)]
    pub fn finish(&mut self, scoring: &Scoring<'_, impl Fn(i64) -> f64 + Copy>) {
        if self.n > self.n_scored {
            self.score_block(scoring);
        }
    }

    #[inline(always)]
    fn score_block(&mut self, scoring: &Scoring<'_, impl Fn(i64) -> f64 + Copy>) {
        let unscored = self.n_scored..self.n;
        // The rest of the last group is stale; its scores are not looked at.
        let groups = self.scores[unscored.start..].as_chunks_mut::<GROUP>().0.iter_mut();
        let groups = groups.take(unscored.len().div_ceil(GROUP));
        if scoring.quick_look.may_exceed(&self.block, unscored.len()) {
            groups.enumerate().for_each(|(k, scores)| *scores = scoring.of_group(&self.block, k));
        } else {
            groups.for_each(|scores| *scores = [0.0; GROUP]);
        }
        self.n_scored = self.n;
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

/// How candidates of several lanes are scored; sums are read by `real`. Those that a quick look tells not
/// to exceed the floor have no score.
pub(super) struct Scoring<'a, F> {
    layout: &'a Layout,
    total: &'a [i64],
    min_count: i64,
    quick_look: QuickLook,
    real: F,
}

impl<'a, F: Fn(i64) -> f64 + Copy> Scoring<'a, F> {
    pub fn new(
        layout: &'a Layout,
        total: &'a [i64],
        limits: &SplitLimits,
        floor: f64,
        real: F,
    ) -> Self {
        let min_count = limits.min_samples_leaf.max(1);
        let quick_look = QuickLook::new(layout, total, floor);
        Scoring { layout, total, min_count, quick_look, real }
    }

    /// The scores of the `k`-th group of a block.
    #[inline(always)]
    fn of_group(&self, block: &[[i64; BLOCK]], k: usize) -> [f64; GROUP] {
        let width = self.layout.width;
        let lane = |l: usize| &block[l].as_chunks::<GROUP>().0[k];
        let scores =
            if self.layout.by_component() { self.by_component(lane) } else { self.by_row(lane) };
        let (counts, total) = (lane(width - 1), self.total[width - 1]);
        std::array::from_fn(|k| {
            let allowed = (counts[k] >= self.min_count) & (total - counts[k] >= self.min_count);
            if allowed { scores[k] } else { 0.0 }
        })
    }

    /// Real sums of a lane on both sides.
    #[inline(always)]
    fn sides<'l>(
        &self,
        lefts: impl Fn(usize) -> &'l [i64; GROUP],
        lane: usize,
    ) -> ([f64; GROUP], [f64; GROUP]) {
        let (left, total) = (lefts(lane), self.total[lane]);
        let real = self.real;
        (left.map(real), std::array::from_fn(|k| real(total - left[k])))
    }

    /// All components share the weights of rows.
    #[inline(always)]
    fn by_row<'l>(&self, lefts: impl Fn(usize) -> &'l [i64; GROUP] + Copy) -> [f64; GROUP] {
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
    fn by_component<'l>(&self, lefts: impl Fn(usize) -> &'l [i64; GROUP] + Copy) -> [f64; GROUP] {
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
