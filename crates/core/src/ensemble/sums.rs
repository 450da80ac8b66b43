//! Sums over trees for a block of rows. Every output is summed tree by tree, as in training: the
//! sums agree with training to the last bit.

use std::ops::Range;

use super::block::Block;
use super::{Ensemble, Kind};
use crate::error::Result;
use crate::lowlevel::widest;
use crate::memory::zeros;

/// Trees whose leaves are found before their values are summed: the values of a tile of outputs stay
/// in the second cache while all rows of a block go by.
const TREE_BLOCK: usize = 32;
/// Most outputs of vectors summed together: as many as fit eight registers of eight floats.
const TILE: usize = 64;
/// Rows and outputs of `Kind::Scaled` summed together: a step is loaded once for all these rows.
const TILE_ROWS: usize = 4;
const TILE_OUTPUTS: usize = 16;

impl Ensemble {
    /// Adds trees to the sums of a block of rows (n_rows × n_outputs).
    pub(super) fn add_block(
        &self,
        block: &Block<'_>,
        trees: Range<usize>,
        sums: &mut [f32],
    ) -> Result<()> {
        match self.kind {
            Kind::Scaled => self.add_scaled(block, trees, sums),
            Kind::Vector if self.n_outputs > 1 => self.add_vectors(block, trees, sums),
            Kind::Sparse => {
                self.add_sparse(block, trees, sums);
                Ok(())
            }
            _ => {
                self.add_numbers(block, trees, sums);
                Ok(())
            }
        }
    }

    /// Adds leaves of one number, each tree to one output.
    fn add_numbers(&self, block: &Block<'_>, trees: Range<usize>, sums: &mut [f32]) {
        let d = self.n_outputs;
        self.each_leaf(
            block,
            trees,
            #[inline(always)]
            |tree, row, leaves| {
                let values = self.tree_values(tree);
                let sums = &mut sums[row * d + tree % d..];
                let add = |(sum, &leaf): (&mut f32, &u32)| *sum += values[leaf as usize];
                if d == 1 {
                    sums.iter_mut().zip(leaves).for_each(add);
                } else {
                    sums.iter_mut().step_by(d).zip(leaves).for_each(add);
                }
            },
        );
    }

    /// Adds leaf vectors, a few trees and outputs at a time: sums stay in registers.
    fn add_vectors(&self, block: &Block<'_>, trees: Range<usize>, sums: &mut [f32]) -> Result<()> {
        let d = self.n_outputs;
        // Where the values of each row begin, tree by tree. Not a power of two apart: the places of a
        // row would share few lines of the nearest cache.
        let apart = block.n_rows + block.n_rows / 16;
        let mut places = zeros::<u32>(TREE_BLOCK.min(trees.len()) * apart)?;
        for first in trees.clone().step_by(TREE_BLOCK) {
            let trees = first..(first + TREE_BLOCK).min(trees.end);
            self.each_leaf(
                block,
                trees.clone(),
                #[inline(always)]
                |tree, row, leaves| {
                    let start = self.value_starts[tree] as u32;
                    let places = &mut places[(tree - first) * apart + row..][..leaves.len()];
                    for (place, leaf) in places.iter_mut().zip(leaves) {
                        *place = start + leaf * d as u32;
                    }
                },
            );
            for output in (0..d).step_by(TILE) {
                let places = Places { places: &places[..trees.len() * apart], apart };
                add_tile_of_vectors(&self.values[output..], places, d, output, sums);
            }
        }
        Ok(())
    }

    /// Adds value × steps, tile by tile.
    fn add_scaled(&self, block: &Block<'_>, trees: Range<usize>, sums: &mut [f32]) -> Result<()> {
        let size = TREE_BLOCK.min(trees.len());
        let mut values = zeros::<f32>(size * block.n_rows)?;
        for first in trees.clone().step_by(TREE_BLOCK) {
            let trees = first..(first + TREE_BLOCK).min(trees.end);
            self.each_leaf(
                block,
                trees.clone(),
                #[inline(always)]
                |tree, row, leaves| {
                    let found = self.tree_values(tree);
                    let values = values[row * size + tree - first..].iter_mut().step_by(size);
                    for (value, &leaf) in values.zip(leaves) {
                        *value = found[leaf as usize];
                    }
                },
            );
            widest(
                #[inline(always)]
                || self.add_tiles(&values, size, trees, sums),
            );
        }
        Ok(())
    }

    /// Adds value × steps of a few trees for all rows; `values` has `size` elements a row.
    #[inline(always)]
    fn add_tiles(&self, values: &[f32], size: usize, trees: Range<usize>, sums: &mut [f32]) {
        let (d, n_rows) = (self.n_outputs, values.len() / size);
        let steps = &self.steps[trees.start * d..trees.end * d];
        for first in (0..d).step_by(TILE_OUTPUTS) {
            let width = TILE_OUTPUTS.min(d - first);
            for top in (0..n_rows).step_by(TILE_ROWS) {
                let height = TILE_ROWS.min(n_rows - top);
                let row = |r: usize| &values[(top + r) * size..][..trees.len()];
                if height == TILE_ROWS && width == TILE_OUTPUTS {
                    let mut tile = [[0.0f32; TILE_OUTPUTS]; TILE_ROWS];
                    for (r, tile) in tile.iter_mut().enumerate() {
                        tile.copy_from_slice(&sums[(top + r) * d + first..][..TILE_OUTPUTS]);
                    }
                    add_tile(&mut tile, std::array::from_fn(row), &steps[first..], d);
                    for (r, tile) in tile.iter().enumerate() {
                        sums[(top + r) * d + first..][..TILE_OUTPUTS].copy_from_slice(tile);
                    }
                } else {
                    for r in 0..height {
                        let sums = &mut sums[(top + r) * d + first..][..width];
                        for (value, steps) in row(r).iter().zip(steps[first..].chunks(d)) {
                            sums.iter_mut().zip(steps).for_each(|(s, step)| *s += step * value);
                        }
                    }
                }
            }
        }
    }
}

/// Where the values of some trees begin for each row.
#[derive(Clone, Copy)]
struct Places<'a> {
    /// Tree by tree.
    places: &'a [u32],
    /// From one tree to the next.
    apart: usize,
}

impl<'a> Places<'a> {
    #[inline(always)]
    fn of(self, row: usize) -> impl Iterator<Item = &'a u32> {
        self.places[row..].iter().step_by(self.apart)
    }
}

/// Adds the values of a tile of outputs, the first of which is `output`.
fn add_tile_of_vectors(
    values: &[f32],
    places: Places<'_>,
    d: usize,
    output: usize,
    sums: &mut [f32],
) {
    let width = TILE.min(d - output);
    let rows = sums.chunks_exact_mut(d).map(|sums| &mut sums[output..][..width]).enumerate();
    macro_rules! add {
        ($add:ident::<$n:literal>) => {
            // A loop, not `for_each`, which is not inlined.
            widest(
                #[inline(always)]
                || {
                    for (row, sums) in rows {
                        $add::<$n>(values, places.of(row), sums);
                    }
                },
            )
        };
    }
    match width {
        1 => add!(add_few::<1>),
        2 => add!(add_few::<2>),
        3 => add!(add_few::<3>),
        4 => add!(add_few::<4>),
        5 => add!(add_few::<5>),
        6 => add!(add_few::<6>),
        7 => add!(add_few::<7>),
        8 => add!(add_many::<0>),
        9..=16 => add!(add_many::<8>),
        17..=24 => add!(add_many::<16>),
        25..=32 => add!(add_many::<24>),
        33..=40 => add!(add_many::<32>),
        41..=48 => add!(add_many::<40>),
        49..=56 => add!(add_many::<48>),
        _ => add!(add_many::<56>),
    }
}

/// Adds values of fewer outputs than a register holds.
#[inline(always)]
fn add_few<'a, const N: usize>(
    values: &[f32],
    places: impl Iterator<Item = &'a u32>,
    sums: &mut [f32],
) {
    let Some((sums, _)) = sums.split_first_chunk_mut::<N>() else { return };
    let mut all = *sums;
    for &place in places {
        let values = &values[place as usize..][..N];
        for k in 0..N {
            all[k] += values[k];
        }
    }
    *sums = all;
}

/// Adds values of N outputs and, in one more register, of the last eight: some of them may be computed
/// twice, with the same result.
#[inline(always)]
fn add_many<'a, const N: usize>(
    values: &[f32],
    places: impl Iterator<Item = &'a u32>,
    sums: &mut [f32],
) {
    let last = sums.len() - 8;
    let Some(mut all) = sums.first_chunk::<N>().copied() else { return };
    let Some(mut rest) = sums.last_chunk::<8>().copied() else { return };
    for &place in places {
        let values = &values[place as usize..];
        let Some(end) = values[last..].first_chunk::<8>() else { return };
        let Some(values) = values.first_chunk::<N>() else { return };
        for k in 0..N {
            all[k] += values[k];
        }
        for k in 0..8 {
            rest[k] += end[k];
        }
    }
    sums[..N].copy_from_slice(&all);
    sums[last..].copy_from_slice(&rest);
}

/// Adds value × step of some trees to a whole tile of sums; `steps` begins with the tile's first
/// output, `d` apart from tree to tree.
#[inline(always)]
fn add_tile(
    sums: &mut [[f32; TILE_OUTPUTS]; TILE_ROWS],
    rows: [&[f32]; TILE_ROWS],
    steps: &[f32],
    d: usize,
) {
    // Each row's sums by themselves: arrays that the compiler keeps in registers.
    let [mut a, mut b, mut c, mut e] = *sums;
    let [values_a, values_b, values_c, values_e] = rows;
    let values = values_a.iter().zip(values_b).zip(values_c).zip(values_e);
    for ((((&va, &vb), &vc), &ve), steps) in values.zip(steps.chunks(d)) {
        let steps = &steps[..TILE_OUTPUTS];
        for k in 0..TILE_OUTPUTS {
            a[k] += steps[k] * va;
        }
        for k in 0..TILE_OUTPUTS {
            b[k] += steps[k] * vb;
        }
        for k in 0..TILE_OUTPUTS {
            c[k] += steps[k] * vc;
        }
        for k in 0..TILE_OUTPUTS {
            e[k] += steps[k] * ve;
        }
    }
    *sums = [a, b, c, e];
}
