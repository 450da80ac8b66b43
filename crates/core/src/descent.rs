//! The leaf of every row of binned data.
//!
//! Rows go down a tree in blocks, node by node, as rows do when a tree is grown: each split reorders
//! those of its node. Columns are read in order and stay in cache, and no branch depends on a bin.

use crate::binning::Binned;
use crate::error::Result;
use crate::memory::{collected, zeros};
use crate::parallel::Pool;
use crate::partition::{BinRule, LARGE_NODE, partition_by};
use crate::tree::{Node, Tree};

/// Rows of a block: one thread goes down with them.
const BLOCK: usize = LARGE_NODE / 2;

impl Tree {
    /// The leaf of every row of data binned with the cuts of training.
    pub fn leaves_of_binned(&self, pool: &Pool, binned: &Binned, leaves: &mut [u32]) -> Result<()> {
        let work = leaves.len() * 10;
        pool.try_for_each(leaves.chunks_mut(BLOCK).enumerate(), work, |(block, leaves)| {
            self.leaves_of_block(pool, binned, block * BLOCK, leaves)
        })
    }

    fn leaves_of_block(
        &self,
        pool: &Pool,
        binned: &Binned,
        first: usize,
        leaves: &mut [u32],
    ) -> Result<()> {
        let n = leaves.len();
        let mut rows: Vec<u32> = collected(n, first as u32..(first + n) as u32)?;
        let mut scratch = zeros::<u32>(n)?;
        // Where the rows of each node begin and end.
        let n_nodes = self.nodes.len();
        let mut places: Vec<[usize; 2]> = collected(n_nodes, std::iter::repeat_n([0; 2], n_nodes))?;
        places[0] = [0, n];
        for (number, node) in self.nodes.iter().enumerate() {
            let [start, end] = places[number];
            let rows = &mut rows[start..end];
            if node.is_leaf() {
                rows.iter().for_each(|&row| leaves[row as usize - first] = node.feature);
            } else if !rows.is_empty() {
                let column = &binned.columns[node.feature_index()];
                let rule = self.bin_rule(node, binned);
                let middle = start + partition_by(pool, rows, &mut scratch, column, &rule)?;
                places[node.left as usize] = [start, middle];
                places[node.left as usize + 1] = [middle, end];
            }
        }
        Ok(())
    }

    fn bin_rule(&self, node: &Node, binned: &Binned) -> BinRule {
        BinRule {
            categories: node.is_categorical().then(|| self.sets[node.cut as usize]),
            bin: node.cut as u8,
            missing_bin: binned.cuts.n_bins(node.feature_index()) as u8,
            missing_left: node.missing_left(),
        }
    }
}
