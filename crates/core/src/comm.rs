//! Rows on several machines: the one seam through which they meet.
//!
//! Every machine runs the same kernels on its own rows. Where a sum or a maximum over rows is
//! needed, the machines exchange theirs ([`crate::reduce`]), and all go on with the same numbers.
//! Exchanges happen in the calling thread only, in the same order everywhere.

use std::sync::Arc;

use crate::error::Result;

/// A way to exchange numbers with the other machines.
pub trait Comm: Send + Sync {
    /// Sums integers (around the end of their range) and takes maxima, element by element, over all
    /// machines; both in place. The integers may lie in several pieces.
    fn reduce(&self, sums: &mut [&mut [i64]], maxima: &mut [f64]) -> Result<()>;
}

/// The machines among which rows are spread.
#[derive(Clone)]
pub struct Others {
    /// How to reach them.
    pub comm: Arc<dyn Comm>,
    /// Rows on all machines.
    pub n_rows: usize,
}
