//! Rows in the order of their leaves.

use std::ops::Range;

use super::Leaves;
use crate::error::Result;
use crate::memory::zeros;

/// Some neighbouring rows, leaf by leaf, those of a leaf ascending.
pub(crate) struct ByLeaf {
    rows: Vec<u32>,
    /// Where the rows of each leaf end.
    ends: Vec<usize>,
}

impl ByLeaf {
    pub fn sorted(leaves: Leaves<'_>, rows: Range<usize>) -> Result<ByLeaf> {
        let of_rows = &leaves.leaf_of_row[rows.clone()];
        let mut ends = zeros::<usize>(leaves.n_leaves)?;
        of_rows.iter().for_each(|&leaf| ends[leaf as usize] += 1);
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut sorted = zeros::<u32>(of_rows.len())?;
        for (&leaf, i) in of_rows.iter().zip(rows) {
            sorted[ends[leaf as usize]] = i as u32;
            ends[leaf as usize] += 1;
        }
        Ok(ByLeaf { rows: sorted, ends })
    }

    /// Each leaf with its rows.
    pub fn runs(&self) -> impl Iterator<Item = (u32, &[u32])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        (0..).zip(starts.zip(&self.ends).map(|(start, &end)| &self.rows[start..end]))
    }
}
