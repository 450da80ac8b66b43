//! Histograms: for every bin of a feature, the integer sums of a node's rows.
//!
//! A row contributes a short vector of integer *lanes*: its q split gradients, its weight if rows
//! are weighted (one per component if cells are weighted), and a one that counts it. With one
//! component and no weights, gradient and count share one 64-bit lane. Sums of integers do not
//! depend on their order, so threads and ranks cannot change a tree.

mod accumulate;
mod compressed;
mod in_order;
mod layout;
mod packed;
mod quantise;
mod sorted;
mod source;
mod subtract;

pub use accumulate::{
    FEATURES_AT_ONCE, Lane, NodeLanes, NodeRows, accumulate, accumulate_four, sum_rows,
};
pub use compressed::{ListedSums, RowLists, accumulate_compressed};
pub use in_order::{LaneVector, accumulate_in_order, to_vectors, vectors_of};
pub use layout::Layout;
pub use packed::{accumulate_packed, pack, packed_width};
pub use quantise::{RowLanes, SplitGradients, SplitWeights, quantise};
pub use sorted::{
    KeyRoom, MAX_SORTED_ROWS, N_PLACES, RunningSums, Side, SortKey, add_up, bin_of, place_of,
    sort_column, split_column,
};
pub use subtract::{fill_default, subtract};

/// The histogram of one feature in one node, as the split search reads it.
#[derive(Debug, Clone, Copy)]
pub struct FeatureHistogram<'a> {
    /// The feature.
    pub feature: u32,
    /// Number of bins for values; missing values, if any, have the bin after them.
    pub n_bins: usize,
    /// Whether there is a bin of missing values.
    pub has_missing: bool,
    /// How to read the lanes.
    pub layout: &'a Layout,
    /// Lanes of each bin, side by side.
    pub sums: &'a [i64],
    /// Lanes of the whole node.
    pub total: &'a [i64],
    /// The bins that have rows, ascending, if they are known.
    pub occupied: Option<&'a [u8]>,
}

impl<'a> FeatureHistogram<'a> {
    /// The lanes of a bin.
    #[inline(always)]
    pub fn bin(&self, bin: usize) -> &'a [i64] {
        let width = self.layout.width;
        &self.sums[bin * width..(bin + 1) * width]
    }

    /// The bins of values that have rows, if they are known.
    #[inline(always)]
    pub fn occupied_values(&self) -> Option<&'a [u8]> {
        let bins = self.occupied?;
        match bins.split_last() {
            Some((&last, values)) if usize::from(last) == self.n_bins => Some(values),
            _ => Some(bins),
        }
    }

    /// The sums of all bins up to one, and of the missing values if they go left.
    pub fn left_sums(&self, bin: usize, missing_left: bool) -> Vec<i64> {
        let mut left = vec![0i64; self.layout.width];
        let mut add = |bin: usize| {
            left.iter_mut().zip(self.bin(bin)).for_each(|(sum, lane)| *sum += lane);
        };
        match self.occupied_values() {
            Some(bins) => {
                bins.iter().map(|&b| b.into()).take_while(|&b| b <= bin).for_each(&mut add);
            }
            None => (0..=bin).for_each(&mut add),
        }
        if missing_left {
            add(self.n_bins);
        }
        left
    }

    /// The lanes of the missing values, if the node has any.
    #[inline(always)]
    pub fn missing(&self) -> Option<&'a [i64]> {
        let lanes = self.has_missing.then(|| self.bin(self.n_bins))?;
        (self.layout.count(lanes) > 0).then_some(lanes)
    }
}
