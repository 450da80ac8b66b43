//! Leaves: sums and medians of the full gradients, and raw predictions moved by leaf values.

use std::ops::Range;

use crate::error::Result;
use crate::losses::{Loss, Pointwise, Targets};
use crate::lowlevel::widest;
use crate::memory::{collected, grow, resize, room, zeros};
use crate::parallel::Pool;
use crate::reduce::{FixedPoint, ROUNDED_OFFSET, add_up, round_with_offset, share};
use crate::select::{self, Query};
use crate::tree::Node;
use crate::weights::{Cell, Weights};
use crate::{with_cells, with_pointwise, with_weights};

/// Outputs summed together. Rows are read whole unless they are very long: the sums of all leaves
/// then exceed the nearest cache, but pieces of rows would defeat the prefetcher, which costs more.
const OUTPUT_BLOCK: usize = 2048;

/// What is summed over the rows of each leaf.
#[derive(Clone, Copy)]
pub enum Summand<'a> {
    /// The residuals alone.
    Residual,
    /// Residuals, and curvatures by the formula of a built-in loss.
    WithCurvature {
        /// The loss whose formula applies.
        loss: Loss,
        /// What it is trained on.
        targets: Targets<'a>,
        /// Its parameter for each output.
        param: &'a [f32],
    },
    /// Residuals, and curvatures given as an array.
    WithGiven(&'a [f32]),
}

/// Sums over leaves, n_leaves × n_outputs.
pub struct LeafSums {
    /// Σ w r.
    pub residuals: Vec<f64>,
    /// Σ w h, if asked for.
    pub curvatures: Option<Vec<f64>>,
}

/// Sums residuals (and curvatures) of the outputs `outputs` over the rows of each leaf.
///
/// `bounds` are the largest weighted |residual| and curvature of each of all outputs.
pub fn leaf_sums(
    pool: &Pool,
    leaf_of_row: &[u32],
    n_leaves: usize,
    residuals: &[f32],
    n_outputs: usize,
    outputs: Range<usize>,
    summand: Summand<'_>,
    weights: Weights<'_>,
    bounds: (&[f64], &[f64]),
) -> Result<LeafSums> {
    let n_all = pool.all_rows(leaf_of_row.len());
    let width = outputs.len();
    let fixed = |bound: &[f64]| -> Result<Vec<FixedPoint>> {
        outputs.clone().map(|j| FixedPoint::for_sum(bound[j], n_all)).collect()
    };
    let (residual_fixed, curvature_fixed) = (fixed(bounds.0)?, fixed(bounds.1)?);
    let scales = |fixed: &[FixedPoint]| fixed.iter().map(|f| f.scale).collect::<Vec<f64>>();
    let (residual_scale, curvature_scale) = (scales(&residual_fixed), scales(&curvature_fixed));
    let table = Table { leaf_of_row, n_leaves, n_outputs, outputs: outputs.clone() };
    let row_weight = |i: usize| weights.rows.map(|w| f64::from(w[i]));
    let (sums, curves) = match summand {
        Summand::Residual if weights.by_cell() => table.fill(
            pool,
            false,
            #[inline(always)]
            |i, cells, block, sums, _| {
                add_cells(residuals, weights, i, cells, &residual_scale[block], sums);
            },
        )?,
        Summand::WithGiven(given) if weights.by_cell() => table.fill(
            pool,
            true,
            #[inline(always)]
            |i, cells, block, sums, curves| {
                let scale = &residual_scale[block.clone()];
                add_cells(residuals, weights, i, cells.clone(), scale, sums);
                add_cells(given, weights, i, cells, &curvature_scale[block], curves);
            },
        )?,
        Summand::WithCurvature { loss, targets, param } if weights.by_cell() => {
            with_cells!(targets, y => with_pointwise!(loss, formula => {
                table.fill(pool, true, #[inline(always)] |i, cells, block, sums, curves| {
                    let scale = &residual_scale[block.clone()];
                    add_cells(residuals, weights, i, cells.clone(), scale, sums);
                    let param = &param[outputs.start + block.start..outputs.start + block.end];
                    let scale = &curvature_scale[block];
                    add_cell_curvatures(formula, y, residuals, weights, i, cells, param, scale, curves);
                })?
            }))
        }
        Summand::Residual => table.fill(
            pool,
            false,
            #[inline(always)]
            |i, cells, block, sums, _| {
                let w = row_weight(i);
                add_scaled(&residuals[cells], w, &residual_scale[block], sums);
            },
        )?,
        Summand::WithGiven(given) => table.fill(
            pool,
            true,
            #[inline(always)]
            |i, cells, block, sums, curves| {
                let w = row_weight(i);
                add_scaled(&residuals[cells.clone()], w, &residual_scale[block.clone()], sums);
                add_scaled(&given[cells], w, &curvature_scale[block], curves);
            },
        )?,
        Summand::WithCurvature { targets: Targets::Classes(_), .. } => table.fill(
            pool,
            true,
            #[inline(always)]
            |i, cells, block, sums, curves| {
                let w = row_weight(i);
                let r = &residuals[cells];
                add_scaled(r, w, &residual_scale[block.clone()], sums);
                for ((sum, r), &scale) in curves.iter_mut().zip(r).zip(&curvature_scale[block]) {
                    let h = r.abs() * (1.0 - r.abs());
                    *sum = sum.wrapping_add(encode(h, w.unwrap_or(1.0), scale));
                }
            },
        )?,
        Summand::WithCurvature { loss, targets, param } => {
            with_cells!(targets, y => with_pointwise!(loss, formula => {
                table.fill(pool, true, #[inline(always)] |i, cells, block, sums, curves| {
                    let w = row_weight(i);
                    let r = &residuals[cells.clone()];
                    add_scaled(r, w, &residual_scale[block.clone()], sums);
                    let param = &param[outputs.start + block.start..outputs.start + block.end];
                    let scale = &curvature_scale[block];
                    add_curvatures(formula, &y[cells], r, param, w, scale, curves);
                })?
            }))
        }
    };
    let decode = |table: Vec<i64>, fixed: &[FixedPoint]| -> Result<Vec<f64>> {
        let reals = table.iter().enumerate().map(|(k, &v)| fixed[k % width].decode(v));
        collected(table.len(), reals)
    };
    Ok(LeafSums {
        residuals: decode(sums, &residual_fixed)?,
        curvatures: curves.map(|curves| decode(curves, &curvature_fixed)).transpose()?,
    })
}

/// Sums the weights of the cells that have a target over the rows of each leaf, for `outputs`.
pub fn leaf_weights(
    pool: &Pool,
    leaf_of_row: &[u32],
    n_leaves: usize,
    targets: Targets<'_>,
    n_outputs: usize,
    outputs: Range<usize>,
    weights: Weights<'_>,
) -> Result<Vec<f64>> {
    // Each output has its own scale: the weights of one may be as nothing to those of another.
    let range = outputs.clone();
    let bounds = with_cells!(targets, y => weights.max_of_outputs(pool, y, n_outputs, range))?;
    let n_all = pool.all_rows(leaf_of_row.len());
    let fixed =
        bounds.iter().map(|&max| FixedPoint::for_sum(max, n_all)).collect::<Result<Vec<_>>>()?;
    let scale: Vec<f64> = fixed.iter().map(|fixed| fixed.scale).collect();
    let width = outputs.len();
    let table = Table { leaf_of_row, n_leaves, n_outputs, outputs };
    let (sums, _) = with_cells!(targets, y => table.fill(
        pool,
        false,
        #[inline(always)]
        |i, cells, block, sums, _| {
            let (y, scale) = (&y[cells.clone()], &scale[block]);
            with_weights!(weights, i, cells, weight => for (k, sum) in sums.iter_mut().enumerate() {
                let w = if y[k].is_missing() { 0.0 } else { weight(k) };
                *sum = sum.wrapping_add(round_with_offset(w * scale[k]));
            });
        },
    )?);
    Ok(sums.into_iter().enumerate().map(|(k, sum)| fixed[k % width].decode(sum)).collect())
}

/// The rows of a tree's leaves, to be summed into tables of n_leaves × outputs integers.
struct Table<'a> {
    leaf_of_row: &'a [u32],
    n_leaves: usize,
    n_outputs: usize,
    outputs: Range<usize>,
}

impl Table<'_> {
    /// Calls `add(row, cells, block, sums, curves)` for every row and block of outputs: `cells` are
    /// its places in an n × d matrix, `block` the outputs counted from the first one summed,
    /// `sums` and `curves` the same block of the row's leaf. `add` brings values with their offset.
    fn fill<F>(
        &self,
        pool: &Pool,
        with_curves: bool,
        add: F,
    ) -> Result<(Vec<i64>, Option<Vec<i64>>)>
    where
        F: Fn(usize, Range<usize>, Range<usize>, &mut [i64], &mut [i64]) + Sync,
    {
        let n = self.leaf_of_row.len();
        let width = self.outputs.len();
        let size = self.n_leaves * width;
        let parts = pool.try_map(pool.row_ranges(n, width * 2), n * width * 2, |rows| {
            let mut sums = zeros::<i64>(size)?;
            let mut curves = zeros::<i64>(if with_curves { size } else { 0 })?;
            for first in (0..width).step_by(OUTPUT_BLOCK) {
                let block = first..(first + OUTPUT_BLOCK).min(width);
                widest(
                    #[inline(always)]
                    || {
                        for i in rows.clone() {
                            let leaf = self.leaf_of_row[i] as usize * width;
                            let into = leaf + block.start..leaf + block.end;
                            let row = i * self.n_outputs + self.outputs.start;
                            let cells = row + block.start..row + block.end;
                            let sums = &mut sums[into.clone()];
                            let curves = if with_curves { &mut curves[into] } else { &mut [] };
                            add(i, cells, block.clone(), sums, curves);
                        }
                    },
                );
            }
            // Every cell of a leaf brought one offset per row.
            let mut counts = zeros::<i64>(self.n_leaves)?;
            self.leaf_of_row[rows].iter().for_each(|&leaf| counts[leaf as usize] += 1);
            for table in [&mut sums, &mut curves] {
                for (sums, &count) in table.chunks_mut(width).zip(&counts) {
                    let offset = count.wrapping_mul(ROUNDED_OFFSET);
                    sums.iter_mut().for_each(|sum| *sum = sum.wrapping_sub(offset));
                }
            }
            Ok((sums, curves))
        })?;
        let (sums, curves): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        // Both in one exchange with other machines.
        let parts = sums.into_iter().zip(curves).map(|(mut sums, curves)| {
            sums.extend(curves);
            sums
        });
        let mut sums = add_up(pool, parts, if with_curves { 2 * size } else { size })?;
        let curves = with_curves.then(|| sums.split_off(size));
        Ok((sums, curves))
    }
}

/// An integer with its offset, see [`round_with_offset`].
#[inline(always)]
fn encode(value: f32, weight: f64, scale: f64) -> i64 {
    round_with_offset(f64::from(value) * weight * scale)
}

#[inline(always)]
fn add_curvatures<L: Pointwise, Y: Copy + Into<f32>>(
    formula: L,
    y: &[Y],
    residuals: &[f32],
    param: &[f32],
    weight: Option<f64>,
    scale: &[f64],
    sums: &mut [i64],
) {
    let weight = weight.unwrap_or(1.0);
    let cells = y.iter().zip(residuals).zip(param).zip(scale);
    for (sum, (((&y, &r), &param), &scale)) in sums.iter_mut().zip(cells) {
        let h = formula.curvature(y.into(), r, param);
        *sum = sum.wrapping_add(encode(h, weight, scale));
    }
}

/// Adds the curvatures of some cells of row `i`, each with its weight.
#[inline(always)]
fn add_cell_curvatures<L: Pointwise, Y: Cell + Into<f32>>(
    formula: L,
    y: &[Y],
    residuals: &[f32],
    weights: Weights<'_>,
    i: usize,
    places: Range<usize>,
    param: &[f32],
    scale: &[f64],
    sums: &mut [i64],
) {
    let m = sums.len();
    let (y, residuals) = (&y[places.clone()][..m], &residuals[places.clone()][..m]);
    let (param, scale) = (&param[..m], &scale[..m]);
    with_weights!(weights, i, places, weight => for k in 0..m {
        let target: f32 = y[k].into();
        let (target, w) = if y[k].is_missing() { (0.0, 0.0) } else { (target, weight(k)) };
        let h = formula.curvature(target, residuals[k], param[k]);
        sums[k] = sums[k].wrapping_add(encode(h, w, scale[k]));
    });
}

/// Adds some cells of row `i`, each with its weight; those without a target hold zeros.
#[inline(always)]
fn add_cells(
    values: &[f32],
    weights: Weights<'_>,
    i: usize,
    places: Range<usize>,
    scale: &[f64],
    sums: &mut [i64],
) {
    let m = sums.len();
    let (values, scale) = (&values[places.clone()][..m], &scale[..m]);
    with_weights!(weights, i, places, weight => for k in 0..m {
        sums[k] = sums[k].wrapping_add(encode(values[k], weight(k), scale[k]));
    });
}

#[inline(always)]
fn add_scaled(values: &[f32], weight: Option<f64>, scale: &[f64], sums: &mut [i64]) {
    let cells = values.iter().zip(scale);
    match weight {
        None => {
            for (sum, (&value, &scale)) in sums.iter_mut().zip(cells) {
                *sum = sum.wrapping_add(round_with_offset(f64::from(value) * scale));
            }
        }
        Some(weight) => {
            for (sum, (&value, &scale)) in sums.iter_mut().zip(cells) {
                *sum = sum.wrapping_add(encode(value, weight, scale));
            }
        }
    }
}

/// The lower weighted quantile of y − f in each leaf, for each of `outputs`: n_leaves × outputs.
pub fn leaf_quantiles(
    pool: &Pool,
    leaf_of_row: &[u32],
    n_leaves: usize,
    y: &[f32],
    raw: &[f32],
    n_outputs: usize,
    outputs: Range<usize>,
    levels: &[f64],
    weights: Weights<'_>,
) -> Result<Vec<f64>> {
    let n = leaf_of_row.len();
    let width = outputs.len();
    // Each leaf has its own scale: the weights of one may be as nothing to those of another.
    let leaf = |i: usize| leaf_of_row[i] as usize;
    let heaviest = weights.max_of_leaves(pool, y, n_outputs, outputs.clone(), n_leaves, leaf)?;
    let n_all = pool.all_rows(n);
    let first = outputs.start;
    let queries_of = |j: usize| {
        let of_leaf = |leaf: usize| heaviest[leaf * width + j - first];
        let weights_of = (0..n_leaves).map(|leaf| integer_weights(weights, of_leaf(leaf), n_all));
        let weights_of = weights_of.collect::<Result<Vec<_>>>()?;
        let mut items: Vec<Vec<(f64, i64)>> = Vec::new();
        resize(&mut items, n_leaves, Vec::new())?;
        for i in 0..n {
            let cell = i * n_outputs + j;
            if !y[cell].is_missing() {
                let error = f64::from(y[cell]) - f64::from(raw[cell]);
                let items = &mut items[leaf(i)];
                grow(items, 1)?;
                items.push((error, weights_of[leaf(i)](i, cell)));
            }
        }
        collected(n_leaves, items.into_iter().map(Query::of))
    };
    let target = |j: usize, [total, _]: [i64; 2]| share(i128::from(total), levels[j]);
    let columns = select::for_outputs(pool, outputs, n, n_leaves, queries_of, target)?;
    let mut result = zeros::<f64>(n_leaves * width)?;
    for (k, column) in columns.iter().enumerate() {
        for (leaf, &value) in column.iter().enumerate() {
            result[leaf * width + k] = value;
        }
    }
    Ok(result)
}

/// Weights of cells, by row and place, of at most `heaviest`, as integers whose sum over `rows` rows
/// cannot overflow.
pub fn integer_weights<'a>(
    weights: Weights<'a>,
    heaviest: f64,
    rows: usize,
) -> Result<impl Fn(usize, usize) -> i64 + Sync + 'a> {
    let unweighted = weights.rows.is_none() && weights.cells.is_none();
    let fixed = FixedPoint::for_sum(heaviest, rows)?;
    Ok(move |i, place| {
        if unweighted {
            return 1;
        }
        let weight = weights.cell(i, place);
        if weight > 0.0 { fixed.encode(weight).max(1) } else { 0 }
    })
}

/// Leaf values of one tree, as they are added to raw predictions.
#[derive(Debug, Clone, Copy)]
pub enum LeafValues<'a> {
    /// One vector per leaf, over the given outputs.
    Vector(&'a [f32]),
    /// One number per leaf, times one step per output.
    Scaled(&'a [f32], &'a [f32]),
}

/// raw[i, outputs] += the values of the leaf of row i.
pub fn add_leaves(
    pool: &Pool,
    leaf_of_row: &[u32],
    values: LeafValues<'_>,
    raw: &mut [f32],
    n_outputs: usize,
    outputs: Range<usize>,
) -> Result<()> {
    let n = leaf_of_row.len();
    let width = outputs.len();
    let size = n.div_ceil(pool.threads() * 4).max(1);
    pool.for_each(raw.chunks_mut(size * n_outputs).enumerate(), n * width, |(chunk, raw)| {
        for (k, row) in raw.chunks_exact_mut(n_outputs).enumerate() {
            let leaf = leaf_of_row[chunk * size + k] as usize;
            add_leaf(values, leaf, &mut row[outputs.clone()]);
        }
    })
}

/// row += the values of a leaf: the one place where a prediction grows, in training and after.
#[inline(always)]
pub fn add_leaf(values: LeafValues<'_>, leaf: usize, row: &mut [f32]) {
    match values {
        LeafValues::Vector(values) => {
            let width = row.len();
            for (f, v) in row.iter_mut().zip(&values[leaf * width..(leaf + 1) * width]) {
                *f += v;
            }
        }
        LeafValues::Scaled(values, step) => {
            let value = values[leaf];
            for (f, s) in row.iter_mut().zip(step) {
                *f += s * value;
            }
        }
    }
}

/// row −= the values of a leaf: what [`add_leaf`] does to predictions, done to residuals.
#[inline(always)]
pub fn subtract_leaf(values: LeafValues<'_>, leaf: usize, row: &mut [f32]) {
    match values {
        LeafValues::Vector(values) => {
            let width = row.len();
            for (r, v) in row.iter_mut().zip(&values[leaf * width..(leaf + 1) * width]) {
                *r -= v;
            }
        }
        LeafValues::Scaled(values, step) => {
            let value = values[leaf];
            for (r, s) in row.iter_mut().zip(step) {
                *r -= s * value;
            }
        }
    }
}

/// Gain of every split of a tree for every output, from leaf sums added up the tree.
///
/// Returns (features, gains) with one row of `n_outputs` gains per split, in node order. Leaves have
/// one weight, or one for each output.
pub fn split_gains(
    nodes: &[Node],
    leaf_residuals: &[f64],
    leaf_weights: &[f64],
    n_outputs: usize,
) -> Result<(Vec<u32>, Vec<f64>)> {
    let d = n_outputs;
    let n_leaves = nodes.iter().filter(|node| node.is_leaf()).count();
    let sums = sums_up_the_tree(nodes, leaf_residuals, d)?;
    // Number of weights of a leaf.
    let m = leaf_weights.len() / n_leaves;
    let weights = sums_up_the_tree(nodes, leaf_weights, m)?;
    let mut features = room(nodes.len() - n_leaves)?;
    let mut gains = room((nodes.len() - n_leaves) * d)?;
    for node in nodes.iter().filter(|node| !node.is_leaf()) {
        let left = node.left as usize;
        features.push(node.feature_index() as u32);
        for k in 0..d {
            let (a, b) = (weights[left * m + k % m], weights[(left + 1) * m + k % m]);
            let distance = sums[left * d + k] * b - sums[(left + 1) * d + k] * a;
            let scale = a * b * (a + b);
            gains.push(if scale > 0.0 { distance * distance / scale } else { 0.0 });
        }
    }
    Ok((features, gains))
}

/// Sums of every node, given those of the leaves, `width` numbers each.
fn sums_up_the_tree(nodes: &[Node], leaves: &[f64], width: usize) -> Result<Vec<f64>> {
    let mut sums = zeros::<f64>(nodes.len() * width)?;
    // Children come after their parents: going backwards, they are ready when needed.
    for (at, node) in nodes.iter().enumerate().rev() {
        if node.is_leaf() {
            let leaf = node.feature as usize;
            sums[at * width..(at + 1) * width]
                .copy_from_slice(&leaves[leaf * width..(leaf + 1) * width]);
        } else {
            let (head, tail) = sums.split_at_mut(node.left as usize * width);
            for k in 0..width {
                head[at * width + k] = tail[k] + tail[width + k];
            }
        }
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaf_sums_are_sums_over_leaves() {
        let (n, d, n_leaves) = (100, 3, 4);
        let leaf_of_row: Vec<u32> = (0..n).map(|i| (i * 7 % n_leaves) as u32).collect();
        let residuals: Vec<f32> = (0..n * d).map(|k| (k * 13 % 31) as f32 / 7.0 - 2.0).collect();
        let weight: Vec<f32> = (0..n).map(|i| 0.5 + (i % 5) as f32).collect();
        let max = [20.0; 3];
        let sums = leaf_sums(
            &Pool::serial(),
            &leaf_of_row,
            n_leaves,
            &residuals,
            d,
            1..3,
            Summand::WithGiven(&residuals),
            Weights::of_rows(Some(&weight)),
            (&max, &max),
        )
        .unwrap();
        for leaf in 0..n_leaves {
            for j in 1..3 {
                let expected: f64 = (0..n)
                    .filter(|&i| leaf_of_row[i] as usize == leaf)
                    .map(|i| f64::from(residuals[i * d + j]) * f64::from(weight[i]))
                    .sum();
                assert!((sums.residuals[leaf * 2 + j - 1] - expected).abs() < 1e-9);
                assert!(
                    (sums.curvatures.as_ref().unwrap()[leaf * 2 + j - 1] - expected).abs() < 1e-9
                );
            }
        }
    }

    #[test]
    fn cells_are_summed_with_their_own_weights() {
        let y = [1.0f32, f32::NAN, 2.0, 3.0, f32::NAN, 5.0, 0.0, 1.0];
        let residuals = [1.0f32, 0.0, -2.0, 0.5, 0.0, 3.0, 1.0, 1.0];
        let cells = [2.0f32, 1.0, 1.0, 4.0, 1.0, 3.0, 0.5, 1.0];
        let rows = [1.0f32, 0.0, 2.0, 1.0];
        let leaves = [0, 0, 1, 1];
        let weights = Weights { rows: Some(&rows), cells: Some(&cells), partial: true };
        let pool = Pool::serial();
        let summand = Summand::WithCurvature {
            loss: Loss::Squared,
            targets: Targets::Real(&y),
            param: &[0.0; 2],
        };
        let bounds = (&[20.0f64; 2][..], &[20.0f64; 2][..]);
        let sums =
            leaf_sums(&pool, &leaves, 2, &residuals, 2, 0..2, summand, weights, bounds).unwrap();
        assert_eq!(sums.residuals, [2.0, 0.0, 0.5, 19.0]);
        let expected = [2.0, 0.0, 0.5, 7.0];
        assert_eq!(sums.curvatures.unwrap(), expected);
        let targets = Targets::Real(&y);
        let totals = leaf_weights(&pool, &leaves, 2, targets, 2, 0..2, weights).unwrap();
        assert_eq!(totals, expected);
    }

    #[test]
    fn leaf_medians_are_lower_medians() {
        let y = [1.0f32, 2.0, 3.0, 4.0, 10.0];
        let medians = leaf_quantiles(
            &Pool::serial(),
            &[0, 0, 0, 0, 1],
            2,
            &y,
            &[0.0; 5],
            1,
            0..1,
            &[0.5],
            Weights::default(),
        );
        assert_eq!(medians.unwrap(), vec![2.0, 10.0]);
    }

    #[test]
    fn gains_add_up_to_the_variance_explained() {
        let node =
            |feature, left| Node { feature, threshold: 0.0, left, cover: 0.0, gain: 0.0, cut: 0 };
        let nodes = [node(5, 1), node(0, 0), node(6, 3), node(1, 0), node(2, 0)];
        let (features, gains) =
            split_gains(&nodes, &[3.0, -1.0, 4.0], &[1.0, 2.0, 4.0], 1).unwrap();
        assert_eq!(features, vec![5, 6]);
        let explained = 9.0 / 1.0 + 1.0 / 2.0 + 16.0 / 4.0 - 36.0 / 7.0;
        assert!((gains.iter().sum::<f64>() - explained).abs() < 1e-12);
        // Two outputs, the second with weights of its own.
        let sums = [3.0, 3.0, -1.0, -1.0, 4.0, 4.0];
        let (_, both) = split_gains(&nodes, &sums, &[1.0, 1.0, 2.0, 0.0, 4.0, 1.0], 2).unwrap();
        assert_eq!((both[0], both[2]), (gains[0], gains[1]));
        assert!((both[1] - (9.0 + 9.0 - 36.0 / 2.0)).abs() < 1e-12 && both[3] == 0.0);
    }
}
