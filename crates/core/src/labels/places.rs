//! The leaf of each row in one tree, in as few bytes as the number of leaves allows.

use crate::error::Result;
use crate::memory::{collected, zeros};

/// Leaf numbers of all rows.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// Up to 256 leaves.
    Byte(Vec<u8>),
    /// Up to 65,536 leaves.
    Short(Vec<u16>),
    /// More.
    Word(Vec<u32>),
}

impl Place {
    pub fn new(leaf_of_row: &[u32], n_leaves: usize) -> Result<Place> {
        let (n, leaves) = (leaf_of_row.len(), leaf_of_row.iter());
        Ok(match n_leaves {
            0..=0x100 => Place::Byte(collected(n, leaves.map(|&leaf| leaf as u8))?),
            0x101..=0x1_0000 => Place::Short(collected(n, leaves.map(|&leaf| leaf as u16))?),
            _ => Place::Word(collected(n, leaves.copied())?),
        })
    }

    /// The leaf of one row.
    #[inline(always)]
    pub fn of(&self, row: usize) -> usize {
        match self {
            Place::Byte(leaves) => usize::from(leaves[row]),
            Place::Short(leaves) => usize::from(leaves[row]),
            Place::Word(leaves) => leaves[row] as usize,
        }
    }

    /// Calls `f(k, leaf)` for the rows from `first` on, of which there are `count`.
    #[inline(always)]
    pub fn each(&self, first: usize, count: usize, mut f: impl FnMut(usize, usize)) {
        macro_rules! each {
            ($leaves:expr) => {
                for (k, &leaf) in $leaves[first..first + count].iter().enumerate() {
                    f(k, leaf as usize);
                }
            };
        }
        match self {
            Place::Byte(leaves) => each!(leaves),
            Place::Short(leaves) => each!(leaves),
            Place::Word(leaves) => each!(leaves),
        }
    }

    /// For each leaf the sum of numbers over its rows.
    pub fn sums(&self, of_rows: &[f64], n_leaves: usize) -> Result<Vec<f64>> {
        let mut sums = zeros::<f64>(n_leaves)?;
        self.each(0, of_rows.len(), |row, leaf| sums[leaf] += of_rows[row]);
        Ok(sums)
    }
}
