//! Splits under monotonic constraints.
//!
//! While a tree with one component grows, a split by a constrained feature must keep the order of
//! the mean gradients. It also puts a value between its two sides: no node below the lower side may
//! rise above it, no node below the upper side may fall below it.

use super::SplitLimits;
use super::candidates::Candidates;
use crate::histogram::{FeatureHistogram, Layout};

/// The range that values below a node must stay in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    low: f64,
    high: f64,
}

impl Bounds {
    /// Any value.
    pub const NONE: Bounds = Bounds { low: f64::NEG_INFINITY, high: f64::INFINITY };

    fn clip(&self, value: f64) -> f64 {
        value.max(self.low).min(self.high)
    }

    /// Bounds of the left and right child, with `middle` between them, under a constraint's `sign`.
    fn parted(self, sign: i8, middle: f64) -> [Bounds; 2] {
        let middle = self.clip(middle);
        let below = Bounds { low: self.low, high: middle };
        let above = Bounds { low: middle, high: self.high };
        match sign {
            0 => [self, self],
            1.. => [below, above],
            _ => [above, below],
        }
    }
}

/// The order that the two sides of a split must keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SplitOrder {
    /// 1: the right side may not be lower; -1: not higher; 0: either.
    pub sign: i8,
    /// The range that the mean gradients of both sides are clipped to, in quanta of gradient by
    /// quanta of weight.
    pub bounds: Bounds,
}

impl SplitOrder {
    /// Whether every split keeps it.
    pub fn is_free(&self) -> bool {
        self.sign == 0 && self.bounds == Bounds::NONE
    }

    /// Bounds of the children of a split with these left and total lanes.
    pub fn parted(&self, layout: &Layout, left: &[i64], total: &[i64]) -> [Bounds; 2] {
        let [a, b] = sides(layout, left, total).map(|side| self.bounds.clip(side.mean()));
        self.bounds.parted(self.sign, (a + b) / 2.0)
    }
}

/// Sum and weight of one side of a split, in quanta.
#[derive(Clone, Copy)]
struct Side {
    sum: f64,
    weight: f64,
}

impl Side {
    fn mean(&self) -> f64 {
        self.sum / self.weight
    }

    /// By how much the sum of squares falls if the whole side is given one value.
    fn fall(&self, value: f64) -> f64 {
        value * (2.0 * self.sum - value * self.weight)
    }
}

fn sides(layout: &Layout, left: &[i64], total: &[i64]) -> [Side; 2] {
    let (sum, weight) = (layout.sum(left, 0), layout.weight(left));
    let rest = Side { sum: layout.sum(total, 0) - sum, weight: layout.weight(total) - weight };
    [Side { sum, weight }, rest]
}

/// Scores the cuts of one component; those in which both sides, clipped to the bounds, break their
/// order have no score. Returns the highest. The candidates and their order are those of the scan
/// without constraints.
pub(super) fn scan_ordered(
    histogram: &FeatureHistogram<'_>,
    limits: &SplitLimits,
    order: SplitOrder,
    candidates: &mut Candidates,
) -> f64 {
    let &FeatureHistogram { n_bins, layout, total, .. } = histogram;
    let min = limits.min_samples_leaf.max(1);
    candidates.clear(layout.width);
    let mut keep = |left: &[i64], bin: usize, missing_left: bool, sign: i8| {
        let count = layout.count(left);
        if count >= min && layout.count(total) - count >= min {
            let score = score_of(layout, left, total, SplitOrder { sign, ..order });
            candidates.push_scored(bin, missing_left, score);
        }
    };
    let mut left = vec![0i64; layout.width];
    let mut with_missing = vec![0i64; layout.width];
    for bin in 0..n_bins {
        let lanes = histogram.bin(bin);
        left.iter_mut().zip(lanes).for_each(|(left, lane)| *left += lane);
        if bin == n_bins - 1 {
            // All values are left, only the missing ones right: these have no order.
            keep(&left, bin, false, 0);
        } else if layout.count(lanes) > 0 {
            keep(&left, bin, false, order.sign);
            if let Some(missing) = histogram.missing() {
                for ((sum, left), missing) in with_missing.iter_mut().zip(&left).zip(missing) {
                    *sum = left + missing;
                }
                keep(&with_missing, bin, true, order.sign);
            }
        }
    }
    candidates.best_score()
}

/// Gain of a cut times the node's weight, in quanta; 0 if it breaks the order.
fn score_of(layout: &Layout, left: &[i64], total: &[i64], order: SplitOrder) -> f64 {
    let [a, b] = sides(layout, left, total);
    if a.weight <= 0.0 || b.weight <= 0.0 {
        return 0.0;
    }
    let [value_a, value_b] = [a, b].map(|side| order.bounds.clip(side.mean()));
    if f64::from(order.sign) * (value_b - value_a) < 0.0 {
        return 0.0;
    }
    if value_a == a.mean() && value_b == b.mean() {
        let distance = a.sum * b.weight - b.sum * a.weight;
        return distance * distance / (a.weight * b.weight);
    }
    let node = Side { sum: a.sum + b.sum, weight: a.weight + b.weight };
    let before = node.fall(order.bounds.clip(node.mean()));
    (a.fall(value_a) + b.fall(value_b) - before) * node.weight
}
