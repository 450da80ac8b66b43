//! Leaves: sums and quantiles of the full gradients, and raw predictions moved by leaf values.

mod gains;
mod order;
mod quantiles;
mod summands;
mod sums;
mod tables;
mod values;

pub use gains::split_gains;
pub(crate) use order::ByLeaf;
pub use quantiles::{integer_weights, leaf_quantiles};
pub use sums::{Curvatures, LeafSums, SumBounds, leaf_sums, leaf_weights};
pub(crate) use tables::remove_offsets;
pub use values::{LeafValues, Update, add_leaf, add_leaves, subtract_leaf};

/// Where a tree put its training rows.
#[derive(Debug, Clone, Copy)]
pub struct Leaves<'a> {
    /// The leaf of each row.
    pub leaf_of_row: &'a [u32],
    /// Number of leaves.
    pub n_leaves: usize,
}
