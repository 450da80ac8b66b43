//! Some neighbouring outputs among all of them.

use std::ops::Range;

/// A half-open range of outputs; matrices have a column for each of `total` outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outputs {
    /// Number of all outputs.
    pub total: usize,
    /// The outputs meant.
    pub range: Range<usize>,
}

impl Outputs {
    /// All of `total` outputs.
    pub fn all(total: usize) -> Outputs {
        Outputs { total, range: 0..total }
    }

    /// How many outputs are meant.
    #[inline(always)]
    pub fn width(&self) -> usize {
        self.range.len()
    }

    /// The places of row `i` in a row-major matrix.
    #[inline(always)]
    pub fn row(&self, i: usize) -> Range<usize> {
        i * self.total + self.range.start..i * self.total + self.range.end
    }
}
