//! Rows on several machines: the one interface through which machines communicate.
//!
//! Every machine runs the same kernels on its own rows. When a kernel needs a sum or a maximum over
//! all rows, the machines exchange theirs ([`crate::reduce`]) and continue with the same numbers.
//! Exchanges happen in the calling thread only, in the same order on every machine.

use std::sync::Arc;

use crate::error::{Result, invalid};

/// A way to exchange numbers with the other machines.
pub trait Comm: Send + Sync {
    /// Replaces `sums` by their sums over all machines, with wrapping, and `maxima` by their maxima,
    /// element by element. The integers may be in several slices.
    fn reduce(&self, sums: &mut [&mut [i64]], maxima: &mut [f64]) -> Result<()>;
}

/// The machines over which rows are spread.
#[derive(Clone)]
pub struct Others {
    /// How to reach them.
    pub comm: Arc<dyn Comm>,
    /// Number of rows on all machines.
    pub n_rows: usize,
}

/// Fails if one machine has so many rows that 32 bits cannot number them.
pub fn check_rows(n_rows: usize) -> Result<()> {
    if n_rows <= u32::MAX as usize {
        return Ok(());
    }
    invalid(format!(
        "there are {n_rows} rows; one machine takes at most 4,294,967,295, spread them over ranks"
    ))
}
