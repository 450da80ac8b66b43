//! Which features are looked at, and where their histograms are.

use std::ops::Range;

use crate::binning::{Binned, Column, Compressed};
use crate::error::Result;
use crate::histogram::{Layout, RowLists};

/// Listed bins per row that make a block of compressed features worth its row starts.
const BINS_PER_ROW: usize = 4;
/// Most blocks of compressed features.
const MAX_BLOCKS: usize = 16;

/// Compressed features, worked on together.
pub(super) struct Block {
    pub features: Range<usize>,
    /// Their listed bins by rows.
    pub lists: RowLists,
    /// If all of them have two bins, no missing values and no categories.
    pub binary: Option<Vec<BinaryFeature>>,
}

/// The listed one of a feature's two bins.
#[derive(Clone, Copy)]
pub(super) struct BinaryFeature {
    /// Its slot within the block.
    pub slot: u32,
    /// Whether it is the upper one.
    pub is_upper: bool,
}

/// The features of a grower. A usable feature is named by its place in `usable`.
pub(super) struct Plan {
    /// Features that can split at all: dense ones, then compressed ones, both ascending.
    pub usable: Vec<u32>,
    /// How many of them are dense.
    pub n_dense: usize,
    /// First histogram slot of each usable feature, and one past the last.
    slots: Vec<usize>,
    /// Blocks of compressed features by rows.
    pub blocks: Vec<Block>,
}

impl Plan {
    pub fn new(binned: &Binned, min_samples_leaf: usize) -> Result<Plan> {
        // One side of every cut lies outside the most frequent bin. With too few rows there, no cut
        // is allowed in any node.
        let splits = |&f: &u32| binned.uncommon[f as usize] >= min_samples_leaf.max(1);
        let is_dense = |&f: &u32| matches!(binned.columns[f as usize], Column::Dense(_));
        let (mut usable, compressed): (Vec<u32>, Vec<u32>) =
            (0..binned.n_features as u32).filter(splits).partition(is_dense);
        let n_dense = usable.len();
        usable.extend(compressed);
        let mut slots = vec![0];
        for &f in &usable {
            let f = f as usize;
            let n_slots = binned.cuts.n_bins(f) + usize::from(binned.cuts.has_missing[f]);
            slots.push(slots[slots.len() - 1] + n_slots);
        }
        let mut plan = Plan { usable, n_dense, slots, blocks: Vec::new() };
        plan.list_rows(binned)?;
        Ok(plan)
    }

    /// Cuts the compressed features into blocks of about equally many listed bins.
    fn list_rows(&mut self, binned: &Binned) -> Result<()> {
        let columns: Vec<_> = (self.n_dense..self.usable.len())
            .filter_map(|i| match &binned.columns[self.usable[i] as usize] {
                Column::Compressed(column) => Some(column),
                Column::Dense(_) => None,
            })
            .collect();
        let listed: usize = columns.iter().map(|column| column.rows.len()).sum();
        let wanted = (listed / (binned.n_rows.max(1) * BINS_PER_ROW)).clamp(1, MAX_BLOCKS);
        // Row starts are 32-bit numbers.
        let size = listed.div_ceil(wanted).clamp(1, 1 << 31);
        let mut first = 0;
        while first < columns.len() {
            let mut last = first;
            let mut in_block = 0;
            while last < columns.len()
                && (last == first || in_block + columns[last].rows.len() <= size)
            {
                in_block += columns[last].rows.len();
                last += 1;
            }
            let start = self.slots[self.n_dense + first];
            let placed: Vec<_> =
                (first..last).map(|k| (columns[k], self.slots[self.n_dense + k] - start)).collect();
            let n_slots = self.slots[self.n_dense + last] - start;
            let lists = RowLists::new(binned.n_rows, &placed, n_slots)?;
            let features = self.n_dense + first..self.n_dense + last;
            let is_binary = |i: usize| {
                let (f, cuts) = (self.usable[i] as usize, &binned.cuts);
                cuts.n_bins(f) == 2 && !cuts.has_missing[f] && !cuts.categorical[f]
            };
            let binary_feature = |(column, start): &(&Compressed, usize)| {
                let listed = 1 - column.default;
                BinaryFeature { slot: *start as u32 + u32::from(listed), is_upper: listed == 1 }
            };
            let binary = features.clone().all(is_binary);
            let binary = binary.then(|| placed.iter().map(binary_feature).collect());
            self.blocks.push(Block { features, lists, binary });
            first = last;
        }
        Ok(())
    }

    /// Slots of all usable features.
    pub fn n_slots(&self) -> usize {
        self.slots[self.usable.len()]
    }

    /// Slots of the dense features.
    pub fn n_dense_slots(&self) -> usize {
        self.slots[self.n_dense]
    }

    /// Where the sums of some neighbouring usable features lie in a histogram.
    pub fn sums(&self, features: &Range<usize>, layout: &Layout) -> Range<usize> {
        self.slots[features.start] * layout.width..self.slots[features.end] * layout.width
    }

    /// Number of sums of one usable feature.
    pub fn n_sums(&self, i: usize, layout: &Layout) -> usize {
        (self.slots[i + 1] - self.slots[i]) * layout.width
    }

    /// Bytes of the histogram of a node.
    pub fn histogram_bytes(&self, layout: &Layout) -> usize {
        self.n_slots() * layout.width * size_of::<i64>()
    }
}
