//! The leaf of every row.

use std::ops::Range;

use super::Data;
use crate::error::Result;
use crate::memory::{collected, zeros};
use crate::partition::RowPartition;
use crate::tree::{Node, Tree};

/// Reads the leaf of every row off the partition; sends all rows down the tree if some were not
/// sampled.
pub(super) fn place_rows(
    data: &Data<'_>,
    rows: &RowPartition,
    tree: &Tree,
    places: &[(usize, Range<usize>)],
) -> Result<Vec<u32>> {
    let Data { pool, binned, .. } = *data;
    let mut leaf_of_row = zeros::<u32>(binned.n_rows)?;
    if rows.len() < binned.n_rows {
        tree.leaves_of_binned(pool, binned, &mut leaf_of_row)?;
        return Ok(leaf_of_row);
    }
    let leaves = places.iter().map(|(node, range)| (&tree.nodes[*node], range));
    let leaves = leaves.filter(|(node, _)| node.is_leaf());
    let rows_of = |(node, range): (&Node, &Range<usize>)| (node.feature, rows.of(range));
    let leaves: Vec<(u32, &[u32])> = collected(places.len(), leaves.map(rows_of))?;
    let size = binned.n_rows.div_ceil(pool.threads() * 4).max(1);
    pool.for_each(
        leaf_of_row.chunks_mut(size).enumerate(),
        binned.n_rows * 2,
        |(chunk, places)| {
            let first = (chunk * size) as u32;
            for &(leaf, rows) in &leaves {
                // The rows of a leaf ascend.
                let from = rows.partition_point(|&row| row < first);
                let to =
                    from + rows[from..].partition_point(|&row| row - first < places.len() as u32);
                rows[from..to].iter().for_each(|&row| places[(row - first) as usize] = leaf);
            }
        },
    )?;
    Ok(leaf_of_row)
}
