//! Predictions: rows through trees, and the sums of what their leaves add.

use std::ops::Range;

use super::{Ensemble, Kind};
use crate::error::{Result, invalid};
use crate::lowlevel::widest;
use crate::memory::{collected, zeros};
use crate::parallel::Pool;
use crate::ranking::{Ranked, rank};
use crate::tree::{ROWS_AT_ONCE, find_leaf, find_leaves};

/// Rows that go through all trees together.
const ROW_BLOCK: usize = 64;
/// Most values of sparse rows that are made dense at a time.
const SPREAD_VALUES: usize = 1 << 22;
/// Most raw predictions that each thread holds at a time while it ranks outputs.
const RANKED_VALUES: usize = 1 << 18;
/// Rows and outputs of `Kind::Scaled` summed together: a step is loaded once for all these rows.
const TILE_ROWS: usize = 4;
const TILE_OUTPUTS: usize = 16;
/// Outputs summed together: as many as fit eight registers of eight floats.
const OUTPUT_BLOCK: usize = 64;

/// Rows to predict for.
#[derive(Debug, Clone, Copy)]
pub enum FeatureRows<'a> {
    /// All values, row after row.
    Dense(&'a [f32]),
    /// Stored values, row after row; the others are zero.
    Sparse {
        /// First stored value of each row, and one past the last.
        starts: &'a [i64],
        /// Feature of each stored value.
        features: &'a [i32],
        /// Stored values.
        values: &'a [f32],
    },
}

impl Ensemble {
    /// The leaf of each row in each tree, into `out` (n × n_trees).
    pub fn leaves(&self, pool: &Pool, x: FeatureRows<'_>, out: &mut [u32]) -> Result<()> {
        let n_trees = self.n_trees();
        self.for_each_block(pool, x, 8 * n_trees, n_trees, out, |x, out| {
            for tree in 0..n_trees {
                let put = |row: usize, leaf: usize| out[row * n_trees + tree] = leaf as u32;
                if self.tree_sets(tree).is_empty() {
                    self.each_leaf::<false>(tree, x, put);
                } else {
                    self.each_leaf::<true>(tree, x, put);
                }
            }
            Ok(())
        })
    }

    /// Adds the trees of the given rounds to `raw` (n × n_outputs), tree by tree as training did:
    /// the sums agree with training to the last bit.
    pub fn add_to(
        &self,
        pool: &Pool,
        x: FeatureRows<'_>,
        rounds: Range<usize>,
        raw: &mut [f32],
    ) -> Result<()> {
        self.for_each_block(pool, x, self.sum_work(&rounds), self.n_outputs, raw, |x, raw| {
            self.sum_block(x, rounds.clone(), SumsInto::Add(raw))
        })
    }

    /// Raw predictions: `baseline` plus the trees of the given rounds, into `out` (n × n_outputs).
    pub fn predict(
        &self,
        pool: &Pool,
        x: FeatureRows<'_>,
        rounds: Range<usize>,
        baseline: &[f64],
        out: &mut [f64],
    ) -> Result<()> {
        self.for_each_block(pool, x, self.sum_work(&rounds), self.n_outputs, out, |x, out| {
            self.sum_block(x, rounds.clone(), SumsInto::Fill(out, baseline))
        })
    }

    /// The outputs of highest raw prediction, best first, into `out` (n × k). Raw predictions of all
    /// outputs are held for one block of rows at a time.
    pub fn top_k(
        &self,
        pool: &Pool,
        x: FeatureRows<'_>,
        rounds: Range<usize>,
        baseline: &[f64],
        k: usize,
        out: &mut [Ranked],
    ) -> Result<()> {
        let d = self.n_outputs;
        if k == 0 || k > d {
            return invalid(format!("{k} of {d} outputs were asked for"));
        }
        let rows = (RANKED_VALUES / d).clamp(ROWS_AT_ONCE, ROW_BLOCK);
        self.for_each_block(pool, x, self.sum_work(&rounds), k, out, |x, out| {
            let mut raw = zeros::<f64>(rows * d)?;
            for (x, out) in x.chunks(rows * self.n_features).zip(out.chunks_mut(rows * k)) {
                let raw = &mut raw[..out.len() / k * d];
                self.sum_block(x, rounds.clone(), SumsInto::Fill(raw, baseline))?;
                raw.chunks(d).zip(out.chunks_mut(k)).for_each(|(raw, out)| rank(raw, out));
            }
            Ok(())
        })
    }

    /// Elementary operations to predict a row, roughly.
    fn sum_work(&self, rounds: &Range<usize>) -> usize {
        rounds.len() * self.trees_per_round() * (8 + self.n_outputs / 4)
    }

    /// Calls `f` with dense blocks of rows and their part of `out`, which has `width` elements a row.
    pub(crate) fn for_each_block<T: Send>(
        &self,
        pool: &Pool,
        x: FeatureRows<'_>,
        work_per_row: usize,
        width: usize,
        out: &mut [T],
        f: impl Fn(&[f32], &mut [T]) -> Result<()> + Sync,
    ) -> Result<()> {
        let (p, width) = (self.n_features.max(1), width.max(1));
        let n = out.len() / width;
        let work = n * work_per_row;
        match x {
            FeatureRows::Dense(x) => {
                let blocks = out.chunks_mut(ROW_BLOCK * width).zip(x.chunks(ROW_BLOCK * p));
                pool.try_for_each(blocks, work, |(out, x)| f(x, out))
            }
            FeatureRows::Sparse { starts, features, values } => {
                let block = (SPREAD_VALUES / p).clamp(1, ROW_BLOCK);
                let piece = n.div_ceil(pool.pieces(work)).next_multiple_of(block).max(block);
                let stored = |row: usize| {
                    let range = starts[row] as usize..starts[row + 1] as usize;
                    features[range.clone()].iter().map(|&f| f as usize).zip(&values[range])
                };
                pool.try_for_each(out.chunks_mut(piece * width).enumerate(), work, |(k, out)| {
                    let mut spread = zeros::<f32>(block.min(out.len() / width) * p)?;
                    for (b, out) in out.chunks_mut(block * width).enumerate() {
                        let first = k * piece + b * block;
                        let rows = out.len() / width;
                        for i in 0..rows {
                            stored(first + i).for_each(|(f, &v)| spread[i * p + f] = v);
                        }
                        f(&spread[..rows * p], out)?;
                        // Clear the stored values only.
                        for i in 0..rows {
                            stored(first + i).for_each(|(f, _)| spread[i * p + f] = 0.0);
                        }
                    }
                    Ok(())
                })
            }
        }
    }

    /// Sums one block of rows over all trees: first the leaves, then the values of a few outputs at
    /// a time, whose sums stay in registers.
    fn sum_block(&self, x: &[f32], rounds: Range<usize>, mut target: SumsInto<'_>) -> Result<()> {
        let (p, d) = (self.n_features, self.n_outputs);
        let trees = rounds.start * self.trees_per_round()..rounds.end * self.trees_per_round();
        let n_trees = trees.len();
        let n_rows = x.len() / p;
        // Where each tree's values for a row begin, row by row.
        let mut places = zeros::<u32>(n_rows * n_trees)?;
        let width = if self.kind == Kind::Vector { d } else { 1 };
        for (t, tree) in trees.clone().enumerate() {
            let place = |leaf: usize| (self.value_starts[tree] + leaf * width) as u32;
            let put = |row: usize, leaf: usize| places[row * n_trees + t] = place(leaf);
            if self.tree_sets(tree).is_empty() {
                self.each_leaf::<false>(tree, x, put);
            } else {
                self.each_leaf::<true>(tree, x, put);
            }
        }
        if self.kind == Kind::PerOutput {
            for i in 0..n_rows {
                for j in 0..d {
                    let mut sum = target.start(i * d + j);
                    for t in (j..n_trees).step_by(d) {
                        sum += self.values[places[i * n_trees + t] as usize];
                    }
                    target.put(i * d + j, j, sum);
                }
            }
            return Ok(());
        }
        if self.kind == Kind::Scaled {
            let all = places.iter().map(|&place| self.values[place as usize]);
            let values = collected(places.len(), all)?;
            widest(
                #[inline(always)]
                || self.sum_scaled(&values, trees, &mut target),
            );
            return Ok(());
        }
        for first in (0..d).step_by(OUTPUT_BLOCK) {
            let block = first..(first + OUTPUT_BLOCK).min(d);
            for i in 0..n_rows {
                let places = &places[i * n_trees..(i + 1) * n_trees];
                let mut sums = [0.0f32; OUTPUT_BLOCK];
                for (sum, j) in sums.iter_mut().zip(block.clone()) {
                    *sum = target.start(i * d + j);
                }
                widest(
                    #[inline(always)]
                    || self.sum_vectors(places, block.clone(), &mut sums),
                );
                for (&sum, j) in sums.iter().zip(block.clone()) {
                    target.put(i * d + j, j, sum);
                }
            }
        }
        Ok(())
    }

    /// Calls `f(row, leaf)` for a block of rows. `CATEGORIES` says whether the tree has sets.
    #[inline(always)]
    fn each_leaf<const CATEGORIES: bool>(
        &self,
        tree: usize,
        x: &[f32],
        mut f: impl FnMut(usize, usize),
    ) {
        let (nodes, sets, p) = (self.tree(tree), self.tree_sets(tree), self.n_features);
        let groups = x.chunks_exact(ROWS_AT_ONCE * p);
        let rest = groups.remainder().chunks_exact(p);
        let n_grouped = groups.len() * ROWS_AT_ONCE;
        for (g, rows) in groups.enumerate() {
            let leaves = find_leaves::<CATEGORIES>(nodes, sets, rows, p);
            leaves.into_iter().enumerate().for_each(|(k, leaf)| f(g * ROWS_AT_ONCE + k, leaf));
        }
        for (i, row) in rest.enumerate() {
            f(n_grouped + i, find_leaf::<CATEGORIES>(nodes, sets, row));
        }
    }

    /// Sums a few outputs of a row over its leaf vectors, in the order of `add_leaf`.
    #[inline(always)]
    fn sum_vectors(&self, places: &[u32], block: Range<usize>, sums: &mut [f32; OUTPUT_BLOCK]) {
        for &place in places {
            let place = place as usize;
            let row = &self.values[place + block.start..place + block.end];
            if block.len() == OUTPUT_BLOCK {
                for k in 0..OUTPUT_BLOCK {
                    sums[k] += row[k];
                }
            } else {
                sums.iter_mut().zip(row).for_each(|(s, r)| *s += r);
            }
        }
    }

    /// Sums value × steps for all rows of a block, tile by tile, in the order of `add_leaf`.
    #[inline(always)]
    fn sum_scaled(&self, values: &[f32], trees: Range<usize>, target: &mut SumsInto<'_>) {
        let (d, n_trees) = (self.n_outputs, trees.len());
        if n_trees == 0 {
            return target.put_nothing();
        }
        let n_rows = values.len() / n_trees;
        let steps = &self.steps[trees.start * d..trees.end * d];
        for first in (0..d).step_by(TILE_OUTPUTS) {
            let width = TILE_OUTPUTS.min(d - first);
            for top in (0..n_rows).step_by(TILE_ROWS) {
                let height = TILE_ROWS.min(n_rows - top);
                let mut sums = [[0.0f32; TILE_OUTPUTS]; TILE_ROWS];
                for (r, sums) in sums.iter_mut().enumerate().take(height) {
                    for (k, sum) in sums.iter_mut().enumerate().take(width) {
                        *sum = target.start((top + r) * d + first + k);
                    }
                }
                if height == TILE_ROWS && width == TILE_OUTPUTS {
                    let rows: [&[f32]; TILE_ROWS] =
                        std::array::from_fn(|r| &values[(top + r) * n_trees..][..n_trees]);
                    add_tile(&mut sums, rows, &steps[first..], d);
                } else {
                    for (r, sums) in sums.iter_mut().enumerate().take(height) {
                        for t in 0..n_trees {
                            let value = values[(top + r) * n_trees + t];
                            let steps = &steps[t * d + first..][..width];
                            sums.iter_mut().zip(steps).for_each(|(s, step)| *s += step * value);
                        }
                    }
                }
                for (r, sums) in sums.iter().enumerate().take(height) {
                    for (k, &sum) in sums.iter().enumerate().take(width) {
                        target.put((top + r) * d + first + k, first + k, sum);
                    }
                }
            }
        }
    }
}

/// Adds value × step of all trees to a whole tile of sums; `steps` begins with the tile's first
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

/// Where the sums of a block go.
enum SumsInto<'a> {
    /// On top of what is there.
    Add(&'a mut [f32]),
    /// With the baseline, in double precision.
    Fill(&'a mut [f64], &'a [f64]),
}

impl SumsInto<'_> {
    #[inline(always)]
    fn start(&self, cell: usize) -> f32 {
        match self {
            SumsInto::Add(raw) => raw[cell],
            SumsInto::Fill(..) => 0.0,
        }
    }

    /// The baseline alone, if there are no trees.
    fn put_nothing(&mut self) {
        if let SumsInto::Fill(out, baseline) = self {
            out.chunks_mut(baseline.len().max(1)).for_each(|row| row.copy_from_slice(baseline));
        }
    }

    #[inline(always)]
    fn put(&mut self, cell: usize, output: usize, sum: f32) {
        match self {
            SumsInto::Add(raw) => raw[cell] = sum,
            SumsInto::Fill(out, baseline) => out[cell] = baseline[output] + f64::from(sum),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ensemble::tests::model;
    use crate::leaf::{LeafValues, add_leaf};

    #[test]
    fn blocks_of_outputs_add_what_leaf_by_leaf_addition_does() {
        let x: Vec<f32> = (0..70).map(|i| (i % 3) as f32 / 2.0).collect();
        for kind in [Kind::PerOutput, Kind::Vector, Kind::Scaled] {
            for d in [1, 5, OUTPUT_BLOCK, OUTPUT_BLOCK + 3] {
                let model = model(kind, d, 4);
                let mut expected = vec![0.0f32; 70 * d];
                for (row, raw) in x.iter().zip(expected.chunks_mut(d)) {
                    for t in 0..model.n_trees() {
                        let leaf = find_leaf::<false>(model.tree(t), &[], &[*row]);
                        let values =
                            &model.values[model.value_starts[t]..model.value_starts[t + 1]];
                        match kind {
                            Kind::PerOutput => raw[t % d] += values[leaf],
                            Kind::Vector => add_leaf(LeafValues::Vector(values), leaf, raw),
                            Kind::Scaled => {
                                let steps = &model.steps[t * d..(t + 1) * d];
                                add_leaf(LeafValues::Scaled(values, steps), leaf, raw);
                            }
                        }
                    }
                }
                let pool = Pool::serial();
                let mut raw = vec![0.0f32; 70 * d];
                model.add_to(&pool, FeatureRows::Dense(&x), 0..1, &mut raw).unwrap();
                model.add_to(&pool, FeatureRows::Dense(&x), 1..4, &mut raw).unwrap();
                assert_eq!(raw, expected);
                let mut out = vec![0.0f64; 70 * d];
                model
                    .predict(&pool, FeatureRows::Dense(&x), 0..4, &vec![2.0; d], &mut out)
                    .unwrap();
                assert!(out.iter().zip(&expected).all(|(o, &e)| *o == 2.0 + f64::from(e)));
                let (mut starts, mut values) = (vec![0i64], vec![]);
                for &value in &x {
                    values.extend((value != 0.0).then_some(value));
                    starts.push(values.len() as i64);
                }
                let features = vec![0i32; values.len()];
                let sparse =
                    FeatureRows::Sparse { starts: &starts, features: &features, values: &values };
                let mut from_sparse = vec![0.0f64; 70 * d];
                model.predict(&pool, sparse, 0..4, &vec![2.0; d], &mut from_sparse).unwrap();
                assert_eq!(from_sparse, out);
                model.predict(&pool, sparse, 0..0, &vec![2.0; d], &mut out).unwrap();
                assert_eq!(out, vec![2.0; 70 * d]);
            }
        }
    }

    #[test]
    fn the_best_outputs_are_those_of_a_sorted_prediction() {
        let x: Vec<f32> = (0..70).map(|i| (i % 3) as f32 / 2.0).collect();
        let pool = Pool::serial();
        for kind in [Kind::PerOutput, Kind::Vector, Kind::Scaled] {
            for (d, k) in [(1, 1), (5, 2), (OUTPUT_BLOCK + 3, 40)] {
                let model = model(kind, d, 4);
                // Ties between neighbours.
                let baseline: Vec<f64> = (0..d).map(|j| -((j * j) as f64) / 50.0).collect();
                let mut all = vec![0.0f64; 70 * d];
                model.predict(&pool, FeatureRows::Dense(&x), 0..4, &baseline, &mut all).unwrap();
                let mut best = vec![Ranked::default(); 70 * k];
                let rows = FeatureRows::Dense(&x);
                model.top_k(&pool, rows, 0..4, &baseline, k, &mut best).unwrap();
                for (row, best) in all.chunks(d).zip(best.chunks(k)) {
                    let mut order: Vec<usize> = (0..d).collect();
                    order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
                    let expected: Vec<Ranked> = order[..k]
                        .iter()
                        .map(|&j| Ranked { output: j as u32, score: row[j] })
                        .collect();
                    assert_eq!(best, expected);
                }
                for k in [0, d + 1] {
                    assert!(model.top_k(&pool, rows, 0..4, &baseline, k, &mut best).is_err());
                }
            }
        }
    }
}
