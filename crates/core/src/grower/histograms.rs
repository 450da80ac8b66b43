//! The histograms of a node, and the ranges of features in which they are worked on.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::plan::{Block, Plan};
use crate::error::Result;
use crate::histogram::{FEATURES_AT_ONCE, Layout};
use crate::memory::{grow, resize};
use crate::parallel::take_front;

/// Histograms of more lanes than this fill the cache one by one.
const WIDE: usize = 9;

/// The histograms of a node, all usable features side by side.
#[derive(Default)]
pub(super) struct NodeHistogram {
    pub sums: Vec<i64>,
    /// Whether a compressed feature can still split this node or those below it. If not, its sums
    /// are arbitrary.
    pub alive: Vec<bool>,
}

/// Histograms not in use, whose memory serves the next ones.
#[derive(Default)]
pub(super) struct FreeHistograms(Mutex<Vec<NodeHistogram>>);

impl FreeHistograms {
    /// A histogram with arbitrary content.
    pub fn take(&self, plan: &Plan, layout: &Layout) -> Result<NodeHistogram> {
        let mut histogram = self.all().pop().unwrap_or_default();
        resize(&mut histogram.sums, plan.n_slots() * layout.width, 0)?;
        histogram.alive.resize(plan.usable.len(), false);
        Ok(histogram)
    }

    /// Takes back a histogram, if there is one.
    pub fn put(&self, histogram: Option<NodeHistogram>) -> Result<()> {
        if let Some(histogram) = histogram {
            let mut all = self.all();
            grow(&mut all, 1)?;
            all.push(histogram);
        }
        Ok(())
    }

    fn all(&self) -> MutexGuard<'_, Vec<NodeHistogram>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.all().len()
    }
}

/// The histograms of some neighbouring usable features, all dense or all compressed.
pub(super) struct FeatureRange<'p, 'h> {
    pub features: Range<usize>,
    /// The block of compressed features.
    pub block: Option<&'p Block>,
    pub sums: &'h mut [i64],
    pub alive: &'h mut [bool],
}

impl Plan {
    /// Cuts a histogram into the ranges of a job.
    pub fn ranges<'h>(
        &self,
        histogram: &'h mut NodeHistogram,
        layout: &Layout,
        n_pieces: usize,
    ) -> Vec<FeatureRange<'_, 'h>> {
        let (mut sums, mut alive) = (&mut histogram.sums[..], &mut histogram.alive[..]);
        self.ranges_of_features(n_pieces)
            .map(|(features, block)| FeatureRange {
                sums: take_front(&mut sums, self.sums(&features, layout).len()),
                alive: take_front(&mut alive, features.len()),
                features,
                block,
            })
            .collect()
    }

    /// The usable features in ranges for a job: at most `n_pieces` of dense features, and the
    /// compressed blocks.
    pub fn ranges_of_features(
        &self,
        n_pieces: usize,
    ) -> impl Iterator<Item = (Range<usize>, Option<&Block>)> {
        let n = self.n_dense;
        let n_pieces = n_pieces.min(n);
        // Large ranges consist of whole groups, which are summed together.
        let group = if n >= n_pieces * FEATURES_AT_ONCE { FEATURES_AT_ONCE } else { 1 };
        let bound = move |k: usize| (n.div_ceil(group) * k / n_pieces * group).min(n);
        let dense = (0..n_pieces).map(move |k| (bound(k)..bound(k + 1), None));
        let compressed = self.blocks.iter();
        dense.chain(compressed.map(|block| (block.features.clone(), Some(block))))
    }

    /// Neighbouring dense features in the groups that are summed, subtracted and searched before the
    /// next, while they are in cache.
    pub fn groups(
        &self,
        features: &Range<usize>,
        layout: &Layout,
    ) -> impl Iterator<Item = Range<usize>> {
        let size = if layout.width > WIDE { 1 } else { FEATURES_AT_ONCE };
        let end = features.end;
        features.clone().step_by(size).map(move |first| first..(first + size).min(end))
    }

    /// Some neighbouring usable features, each with its part of their `sums`.
    pub fn each_feature<'h>(
        &self,
        features: &Range<usize>,
        mut sums: &'h mut [i64],
        layout: &Layout,
    ) -> impl Iterator<Item = (usize, &'h mut [i64])> {
        let layout = *layout;
        features.clone().map(move |i| (i, take_front(&mut sums, self.n_sums(i, &layout))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binning::{apply_cuts, find_cuts};
    use crate::histogram::{SplitWeights, quantise};
    use crate::parallel::Pool;

    #[test]
    fn ranges_cover_all_features_in_whole_groups_if_there_are_many() {
        let pool = Pool::serial();
        let layout = quantise(&pool, &[1.0], 1, SplitWeights::Equal, None, None).unwrap().layout;
        for p in 1..60 {
            let x: Vec<f32> = (0..8 * p).map(|k| (k / p) as f32).collect();
            let cuts = find_cuts(&pool, &x, p, None, 255, &[]).unwrap();
            let binned = apply_cuts(&pool, &x, &std::sync::Arc::new(cuts)).unwrap();
            let plan = Plan::new(&binned, 1).unwrap();
            let mut histogram = FreeHistograms::default().take(&plan, &layout).unwrap();
            for n_pieces in [1, 2, 3, 8, 100] {
                let ranges = plan.ranges(&mut histogram, &layout, n_pieces);
                let mut next = 0;
                for range in &ranges {
                    assert!(range.features.start == next && range.features.end > next);
                    assert!(p < 4 * n_pieces || next % 4 == 0);
                    next = range.features.end;
                }
                assert_eq!((next, ranges.len()), (p, n_pieces.min(p)));
            }
        }
    }
}
