//! Raw predictions moved by leaf values.

use crate::error::Result;
use crate::outputs::Outputs;
use crate::parallel::Pool;

/// Leaf values of one tree, as they are added to raw predictions.
#[derive(Debug, Clone, Copy)]
pub enum LeafValues<'a> {
    /// One vector per leaf, over the given outputs.
    Vector(&'a [f32]),
    /// One number per leaf, times one step per output.
    Scaled(&'a [f32], &'a [f32]),
}

/// What a tree adds to the raw predictions of its training rows.
#[derive(Debug, Clone, Copy)]
pub struct Update<'a> {
    /// The leaf of each row.
    pub leaf_of_row: &'a [u32],
    /// The values of its leaves.
    pub values: LeafValues<'a>,
}

/// raw[i, outputs] += the values of the leaf of row i.
pub fn add_leaves(
    pool: &Pool,
    update: Update<'_>,
    raw: &mut [f32],
    outputs: &Outputs,
) -> Result<()> {
    let n = update.leaf_of_row.len();
    let size = n.div_ceil(pool.threads() * 4).max(1);
    let pieces = raw.chunks_mut(size * outputs.total).enumerate();
    pool.for_each(pieces, n * outputs.width(), |(chunk, raw)| {
        for (k, row) in raw.chunks_exact_mut(outputs.total).enumerate() {
            let leaf = update.leaf_of_row[chunk * size + k] as usize;
            add_leaf(update.values, leaf, &mut row[outputs.range.clone()]);
        }
    })
}

/// row += the values of a leaf: the one place where a prediction grows, in training and after.
#[inline(always)]
pub fn add_leaf(values: LeafValues<'_>, leaf: usize, row: &mut [f32]) {
    move_row(values, leaf, row, |f, value| *f += value);
}

/// row −= the values of a leaf: what [`add_leaf`] does to predictions, done to residuals.
#[inline(always)]
pub fn subtract_leaf(values: LeafValues<'_>, leaf: usize, row: &mut [f32]) {
    move_row(values, leaf, row, |r, value| *r -= value);
}

#[inline(always)]
fn move_row(values: LeafValues<'_>, leaf: usize, row: &mut [f32], by: impl Fn(&mut f32, f32)) {
    match values {
        LeafValues::Vector(values) => {
            let width = row.len();
            for (cell, v) in row.iter_mut().zip(&values[leaf * width..(leaf + 1) * width]) {
                by(cell, *v);
            }
        }
        LeafValues::Scaled(values, step) => {
            let value = values[leaf];
            for (cell, s) in row.iter_mut().zip(step) {
                by(cell, s * value);
            }
        }
    }
}
