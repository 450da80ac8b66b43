//! The leaf of every row of binned data.
//!
//! Rows go down a tree in blocks, node by node, as rows do when a tree is grown: each split reorders
//! those of its node. Columns are read in order and stay in cache, and no branch depends on a bin.

use super::{Node, Tree};
use crate::binning::Binned;
use crate::error::Result;
use crate::memory::{collected, zeros};
use crate::parallel::Pool;
use crate::partition::{BinRule, LARGE_NODE, partition_by};

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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::binning::{Bins, Column, Compressed, Cuts};
    use crate::category::CategorySet;
    use crate::random::{Key, Stream};
    use crate::tree::{CATEGORICAL, MISSING_LEFT};

    const N_BINS: usize = 5;

    /// A dense feature, a compressed one and a categorical one, all with missing values.
    fn features(stream: &mut Stream, n_rows: usize) -> Binned {
        let mut column = || (0..n_rows).map(|_| stream.below(N_BINS + 1) as u8).collect::<Vec<_>>();
        let dense = |bins| Column::Dense(Bins::Owned(bins));
        let full = column();
        let rows: Vec<u32> = (0..n_rows as u32).filter(|row| full[*row as usize] > 3).collect();
        let bins = rows.iter().map(|&row| full[row as usize]).collect();
        let compressed = Column::Compressed(Compressed { default: 1, rows, bins });
        let cuts = Cuts {
            thresholds: vec![vec![0.0, 1.0, 2.0, 3.0]; 3],
            has_missing: vec![true; 3],
            categorical: vec![false, false, true],
        };
        Binned {
            n_rows,
            n_features: 3,
            columns: vec![dense(column()), compressed, dense(column())],
            uncommon: vec![n_rows; 3],
            cuts: Arc::new(cuts),
        }
    }

    /// A tree of random splits.
    fn tree(stream: &mut Stream, n_leaves: usize) -> Tree {
        let leaf = Node { feature: 0, threshold: 0.0, left: 0, cover: 0.0, gain: 0.0, cut: 0 };
        let mut tree = Tree { nodes: vec![leaf], sets: Vec::new(), n_leaves };
        while tree.nodes.len() + 1 < 2 * n_leaves {
            let parent = stream.below(tree.nodes.len());
            if !tree.nodes[parent].is_leaf() {
                continue;
            }
            let (left, feature) = (tree.nodes.len() as u32, stream.below(3) as u32);
            let missing_left = stream.below(2) == 0;
            let mut node = Node { feature, left, cut: stream.below(N_BINS) as u32, ..leaf };
            if feature == 2 {
                let mut set = CategorySet::filled(missing_left);
                (0..N_BINS as u8).for_each(|bin| set.put(bin, stream.below(2) == 0));
                node.feature |= CATEGORICAL;
                node.cut = tree.sets.len() as u32;
                tree.sets.push(set);
            }
            node.feature |= if missing_left { MISSING_LEFT } else { 0 };
            tree.nodes[parent] = node;
            tree.nodes.extend([leaf, leaf]);
        }
        let leaves = tree.nodes.iter_mut().filter(|node| node.is_leaf());
        leaves.enumerate().for_each(|(number, leaf)| leaf.feature = number as u32);
        tree
    }

    fn leaf_of_row(tree: &Tree, binned: &Binned, row: usize) -> u32 {
        let mut node = tree.nodes[0];
        while !node.is_leaf() {
            let bin = binned.columns[node.feature_index()].bin(row);
            let left = match (usize::from(bin) == N_BINS, node.is_categorical()) {
                (true, _) => node.missing_left(),
                (false, true) => tree.sets[node.cut as usize].contains(bin),
                (false, false) => u32::from(bin) <= node.cut,
            };
            node = tree.nodes[node.left as usize + usize::from(!left)];
        }
        node.feature
    }

    #[test]
    fn rows_in_blocks_end_where_each_would_alone() {
        let mut stream = Key::new(11).stream();
        for (n_rows, n_leaves) in [(0, 3), (1, 1), (50, 40), (2 * BLOCK + 77, 31)] {
            let binned = features(&mut stream, n_rows);
            let tree = tree(&mut stream, n_leaves);
            let expected: Vec<u32> = (0..n_rows).map(|i| leaf_of_row(&tree, &binned, i)).collect();
            for threads in [1, 3] {
                let mut leaves = vec![u32::MAX; n_rows];
                let pool = Pool::new(threads, Box::new(|| false));
                tree.leaves_of_binned(&pool, &binned, &mut leaves).unwrap();
                assert!(leaves == expected);
            }
        }
    }
}
