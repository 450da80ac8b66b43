//! Leaves of a block of rows: by masks where trees have them, else node by node.

use std::ops::Range;

use super::Ensemble;
use super::masks::columns_of;
use crate::error::Result;
use crate::lowlevel::widest;
use crate::memory::zeros;
use crate::tree::{ROWS_AT_ONCE, find_leaf, find_leaves};

/// Rows that are compared with a threshold together.
pub(super) const LANES: usize = 64;
/// The same for the last rows of a block, or a few.
const SOME_LANES: usize = 32;
/// The same for a single row.
pub(super) const FEW_LANES: usize = 8;
/// Features that may be turned into columns for each tree: walking a tree takes as long.
const FEATURES_PER_TREE: usize = 32;
/// A block of rows, ready to go through trees.
pub(super) struct Block<'a> {
    x: &'a [f32],
    pub n_rows: usize,
    /// The values of each group of rows by columns; empty if the trees are too few to be worth it.
    columns: Vec<f32>,
}

/// Lanes of a group of rows.
fn lanes_of(n_rows: usize) -> usize {
    let widths = [FEW_LANES, SOME_LANES];
    widths.into_iter().find(|&lanes| n_rows <= lanes).unwrap_or(LANES)
}

impl Ensemble {
    /// A block of rows, for some trees.
    pub(super) fn block<'a>(&self, x: &'a [f32], trees: Range<usize>) -> Result<Block<'a>> {
        let p = self.n_features;
        let n_rows = x.len() / p;
        if !self.masks.has(trees, p.div_ceil(FEATURES_PER_TREE)) {
            return Ok(Block { x, n_rows, columns: Vec::new() });
        }
        let rest = n_rows % LANES;
        let lanes = n_rows - rest + rest.next_multiple_of(lanes_of(rest));
        let mut columns = zeros(lanes * p)?;
        for (x, columns) in x.chunks(LANES * p).zip(columns.chunks_mut(LANES * p)) {
            match lanes_of(x.len() / p) {
                LANES => columns_of::<LANES>(x, p, columns.as_chunks_mut().0),
                SOME_LANES => columns_of::<SOME_LANES>(x, p, columns.as_chunks_mut().0),
                _ => columns_of::<FEW_LANES>(x, p, columns.as_chunks_mut().0),
            }
        }
        Ok(Block { x, n_rows, columns })
    }

    /// Calls `f(tree, row, leaves)` with the leaves of a few rows from `row` on, for all trees and rows;
    /// for each row in the order of the trees.
    #[inline(always)]
    pub(super) fn each_leaf(
        &self,
        block: &Block<'_>,
        trees: Range<usize>,
        mut f: impl FnMut(usize, usize, &[u32]),
    ) {
        let p = self.n_features;
        let size = LANES * p;
        for (g, x) in block.x.chunks(size).enumerate() {
            let columns = &block.columns[(g * size).min(block.columns.len())..];
            let (row, trees, f) = (g * LANES, trees.clone(), &mut f);
            match lanes_of(x.len() / p) {
                LANES => self.each_leaf_of::<LANES>(x, columns, trees, row, f),
                SOME_LANES => self.each_leaf_of::<SOME_LANES>(x, columns, trees, row, f),
                _ => self.each_leaf_of::<FEW_LANES>(x, columns, trees, row, f),
            }
        }
    }

    #[inline(always)]
    fn each_leaf_of<const L: usize>(
        &self,
        x: &[f32],
        columns: &[f32],
        trees: Range<usize>,
        row: usize,
        f: &mut impl FnMut(usize, usize, &[u32]),
    ) {
        let p = self.n_features;
        let mut leaves = [0; L];
        let n_rows = (x.len() / p).min(L);
        let columns = columns.as_chunks::<L>().0;
        let columns = &columns[..p.min(columns.len())];
        widest(
            #[inline(always)]
            || {
                for tree in trees {
                    let sets = || self.tree_sets(tree);
                    if columns.is_empty() || !self.masks.find(tree, sets, columns, &mut leaves) {
                        self.walk(tree, x, &mut leaves[..n_rows]);
                    }
                    f(tree, row, &leaves[..n_rows]);
                }
            },
        );
    }

    /// Finds the leaves of a few rows node by node.
    #[inline(never)]
    fn walk(&self, tree: usize, x: &[f32], leaves: &mut [u32]) {
        let (nodes, sets, p) = (self.tree(tree), self.tree_sets(tree), self.n_features);
        let groups = x.chunks_exact(ROWS_AT_ONCE * p);
        let rest = groups.remainder().chunks_exact(p);
        let n_grouped = groups.len() * ROWS_AT_ONCE;
        for (rows, leaves) in groups.zip(leaves.chunks_exact_mut(ROWS_AT_ONCE)) {
            let found = match sets.is_empty() {
                true => find_leaves::<false>(nodes, sets, rows, p),
                false => find_leaves::<true>(nodes, sets, rows, p),
            };
            leaves.iter_mut().zip(found).for_each(|(leaf, found)| *leaf = found as u32);
        }
        for (row, leaf) in rest.zip(&mut leaves[n_grouped..]) {
            *leaf = match sets.is_empty() {
                true => find_leaf::<false>(nodes, sets, row),
                false => find_leaf::<true>(nodes, sets, row),
            } as u32;
        }
    }
}
