//! Features as bins: the first thing that happens to X.
//!
//! Each feature is cut at up to `max_bins - 1` thresholds. A feature with at most `max_bins`
//! distinct values is cut between all neighbouring values, so that nothing is lost; other features
//! are cut at weighted quantiles. Bin `b` holds the values in `(threshold[b-1], threshold[b]]`; the
//! bin after the last one holds missing values.

mod apply;
mod categories;
mod column;
mod cuts;
mod file;
mod sparse;
mod together;

pub use apply::apply_cuts;
pub use column::{Binned, Bins, Column, Compressed};
pub use cuts::{Cuts, MAX_BINS, find_cuts};
pub use file::ColumnBinner;
pub use sparse::{SparseColumns, apply_cuts_sparse, find_cuts_sparse};
