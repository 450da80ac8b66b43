//! Sums of residuals over the rows of each leaf, for the outputs that matter most in it.
//!
//! The residuals of a leaf are its labels, less what earlier trees gave its rows. Of an earlier tree
//! only the leaves matter that its rows were in, each with their weight: a cross-table of leaves. An
//! output that neither is a label of these rows nor was touched by a tree has the residual
//! −(1 + b) in all of them, so among these the most frequent ones of all have the largest sums.

use super::{LabelRows, Weighted};
use crate::ensemble::{Ensemble, Kind};
use crate::error::{Result, invalid};
use crate::memory::{collected, zeros};
use crate::parallel::Pool;

/// Sums of the kept outputs, leaf after leaf.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LeafSums {
    /// Number of outputs that each leaf keeps.
    pub sizes: Vec<usize>,
    /// Kept outputs, ascending in each leaf.
    pub outputs: Vec<u32>,
    /// Σ w r over the rows of the leaf.
    pub sums: Vec<f64>,
    /// Σ w h, with the curvature h of the loss, which is 1 for the squared error.
    pub curvatures: Vec<f64>,
}

/// An output of a leaf, Σ w r and Σ w h.
pub(super) type OfOutput = (u32, f64, f64);

impl LeafSums {
    /// Puts the kept outputs of all leaves one after the other.
    pub(super) fn of(leaves: &[Vec<OfOutput>]) -> Result<LeafSums> {
        let sizes: Vec<usize> = leaves.iter().map(Vec::len).collect();
        let n_values = sizes.iter().sum();
        let all = || leaves.iter().flatten();
        let outputs = collected(n_values, all().map(|of| of.0))?;
        let sums = collected(n_values, all().map(|of| of.1))?;
        let curvatures = collected(n_values, all().map(|of| of.2))?;
        Ok(LeafSums { sizes, outputs, sums, curvatures })
    }
}

/// Sums of one leaf in the making.
struct Sums {
    /// Of all outputs; those that were not added to are stale.
    of_outputs: Vec<f64>,
    /// The leaf, counted from 1, that last added to an output.
    added_by: Vec<u32>,
    /// Outputs that were added to.
    touched: Vec<u32>,
    /// Weight of the cells of an output less that of their rows, if cells have weights.
    excess: Vec<f64>,
    /// Weight of the rows that an earlier tree has in each of its leaves.
    shares: Vec<f64>,
    /// Leaves of an earlier tree with a share.
    met: Vec<u32>,
    /// Weight of the leaf.
    weight: f64,
}

impl Sums {
    fn new(n_outputs: usize, most_leaves: usize, marked: bool) -> Result<Sums> {
        Ok(Sums {
            of_outputs: zeros(n_outputs)?,
            added_by: zeros(n_outputs)?,
            touched: Vec::new(),
            excess: zeros(if marked { n_outputs } else { 0 })?,
            shares: zeros(most_leaves)?,
            met: Vec::new(),
            weight: 0.0,
        })
    }

    #[inline(always)]
    fn add(&mut self, leaf: u32, output: u32, value: f64) {
        let place = output as usize;
        if self.added_by[place] == leaf {
            self.of_outputs[place] += value;
        } else {
            self.added_by[place] = leaf;
            self.of_outputs[place] = value;
            self.touched.push(output);
            if let Some(excess) = self.excess.get_mut(place) {
                *excess = 0.0;
            }
        }
    }

    /// An output, Σ w r and Σ w of it.
    fn of(&self, leaf: u32, output: u32, start: &[f64]) -> OfOutput {
        let (place, rest) = (output as usize, start[output as usize] * self.weight);
        if self.added_by[place] != leaf {
            return (output, -rest, self.weight);
        }
        let weight = self.weight + self.excess.get(place).unwrap_or(&0.0);
        // Nothing exactly, if all its labels are missing: both are summed in the same order.
        let is_there = weight > 0.0;
        if is_there { (output, self.of_outputs[place] - rest, weight) } else { (output, 0.0, 0.0) }
    }
}

impl LabelRows {
    /// Σ w r and Σ w over the rows of each leaf for the `most` outputs that gain most, that is of the
    /// largest (Σ w r)² / (Σ w + λ); of equals those that come first, and zeros are left out. `order`
    /// has the outputs by descending `weighted.start`.
    pub fn leaf_sums(
        &self,
        pool: &Pool,
        model: &Ensemble,
        leaf_of_row: &[u32],
        n_leaves: usize,
        weighted: Weighted<'_>,
        (order, most, damping): (&[u32], usize, f64),
    ) -> Result<LeafSums> {
        if order.iter().any(|&output| output as usize >= self.n_outputs) {
            return invalid("the order of the outputs names some that do not exist");
        }
        let mut leaves: Vec<Vec<OfOutput>> = vec![Vec::new(); n_leaves];
        let arguments = (model, leaf_of_row, n_leaves, weighted);
        self.each_leaf(pool, arguments, &mut leaves, |leaf, sums, kept| {
            let start = weighted.start;
            let others = order.iter().filter(|&&output| sums.added_by[output as usize] != leaf);
            let candidates = sums.touched.iter().chain(others.take(most));
            let with_sums = candidates.map(|&output| sums.of(leaf, output, start));
            keep_best(kept, with_sums, most, damping);
        })?;
        LeafSums::of(&leaves)
    }

    /// Σ w r v over all rows and outputs, where v are values of the leaves, and Σ w v².
    pub fn leaf_products(
        &self,
        pool: &Pool,
        model: &Ensemble,
        leaf_of_row: &[u32],
        values: &LeafSums,
        weighted: Weighted<'_>,
    ) -> Result<(f64, f64)> {
        let n_leaves = values.sizes.len();
        let n_values: usize = values.sizes.iter().sum();
        let known = values.outputs.iter().all(|&output| (output as usize) < self.n_outputs);
        if n_values != values.outputs.len() || n_values != values.sums.len() || !known {
            return invalid("the leaves have values of outputs that do not exist");
        }
        let mut starts = vec![0; n_leaves + 1];
        for (leaf, size) in values.sizes.iter().enumerate() {
            starts[leaf + 1] = starts[leaf] + size;
        }
        let mut products = vec![(0.0, 0.0); n_leaves];
        let arguments = (model, leaf_of_row, n_leaves, weighted);
        self.each_leaf(pool, arguments, &mut products, |leaf, sums, (slope, curvature)| {
            let range = starts[leaf as usize - 1]..starts[leaf as usize];
            for (&output, value) in values.outputs[range.clone()].iter().zip(&values.sums[range]) {
                let (_, sum, weight) = sums.of(leaf, output, weighted.start);
                *slope += value * sum;
                *curvature += value * value * weight;
            }
        })?;
        let total = |sums: (f64, f64), of: &(f64, f64)| (sums.0 + of.0, sums.1 + of.1);
        Ok(products.iter().fold((0.0, 0.0), total))
    }

    /// Calls `f(leaf, sums, out)` for every leaf, counted from 1, and its part of `out`.
    fn each_leaf<T: Send>(
        &self,
        pool: &Pool,
        (model, leaf_of_row, n_leaves, weighted): (&Ensemble, &[u32], usize, Weighted<'_>),
        out: &mut [T],
        f: impl Fn(u32, &Sums, &mut T) + Sync,
    ) -> Result<()> {
        self.check(leaf_of_row, n_leaves, Some(weighted))?;
        let n_trees = self.n_trees();
        let fits = model.n_outputs == self.n_outputs && model.n_trees() >= n_trees;
        if model.kind != Kind::Sparse || !fits {
            return invalid("the trees are not those that the rows were put into");
        }
        let (starts, rows) = by_leaf(leaf_of_row, n_leaves)?;
        let most_leaves = (0..n_trees).map(|tree| model.leaf_sizes(tree).len()).max().unwrap_or(0);
        let per_leaf = model.values.len() / model.leaf_starts.len();
        let work = self.n_rows() * (n_trees * (4 + per_leaf) + 1) + self.labels.len();
        let start = || Sums::new(self.n_outputs, most_leaves, self.marked.is_some());
        let items = out.iter_mut().enumerate();
        pool.fold(items, work, start, |sums, (leaf, out)| {
            let rows = &rows[starts[leaf]..starts[leaf + 1]];
            let leaf = leaf as u32 + 1;
            self.sum_leaf(model, leaf, rows, weighted, sums);
            f(leaf, sums, out);
            Ok(())
        })?;
        Ok(())
    }

    /// Sums what the labels of some rows are, less what the trees gave them.
    fn sum_leaf(
        &self,
        model: &Ensemble,
        leaf: u32,
        rows: &[u32],
        weighted: Weighted<'_>,
        sums: &mut Sums,
    ) {
        sums.touched.clear();
        sums.weight = 0.0;
        for (tree, place) in self.places.iter().enumerate() {
            for &row in rows {
                let (weight, leaf) = (weighted.of(row as usize), place.of(row as usize));
                if sums.shares[leaf] == 0.0 && weight > 0.0 {
                    sums.met.push(leaf as u32);
                }
                sums.shares[leaf] += weight;
            }
            let mut met = std::mem::take(&mut sums.met);
            for earlier in met.drain(..) {
                let share = std::mem::take(&mut sums.shares[earlier as usize]);
                let (outputs, values) = model.sparse_leaf(tree, earlier as usize);
                for (&output, &value) in outputs.iter().zip(values) {
                    sums.add(leaf, output, -share * f64::from(value));
                }
            }
            sums.met = met;
        }
        for &row in rows {
            let weight = weighted.of(row as usize);
            sums.weight += weight;
            if weight > 0.0 {
                for &label in self.labels_of(row as usize) {
                    sums.add(leaf, label, 2.0 * weight);
                }
                for cell in self.marked_of(row as usize) {
                    let extra = weight * cell.excess();
                    sums.add(leaf, cell.output, extra * cell.residual(weighted.start));
                    sums.excess[cell.output as usize] += extra;
                }
            }
        }
    }
}

/// Keeps the outputs that gain most, of equals those that come first, in ascending order.
pub(super) fn keep_best(
    kept: &mut Vec<OfOutput>,
    candidates: impl Iterator<Item = OfOutput>,
    most: usize,
    damping: f64,
) {
    kept.extend(candidates.filter(|&(_, sum, _)| sum != 0.0));
    if kept.len() > most {
        let gain = |of: &OfOutput| of.1 * of.1 / (of.2 + damping);
        kept.select_nth_unstable_by(most, |a, b| gain(b).total_cmp(&gain(a)).then(a.0.cmp(&b.0)));
        kept.truncate(most);
        kept.shrink_to_fit();
    }
    kept.sort_unstable_by_key(|of| of.0);
}

/// Rows leaf by leaf, ascending in each, and where each leaf begins.
pub(super) fn by_leaf(leaf_of_row: &[u32], n_leaves: usize) -> Result<(Vec<usize>, Vec<u32>)> {
    let mut starts = zeros::<usize>(n_leaves + 1)?;
    leaf_of_row.iter().for_each(|&leaf| starts[leaf as usize + 1] += 1);
    for leaf in 0..n_leaves {
        starts[leaf + 1] += starts[leaf];
    }
    let (mut rows, mut next) = (zeros::<u32>(leaf_of_row.len())?, starts.clone());
    for (row, &leaf) in leaf_of_row.iter().enumerate() {
        rows[next[leaf as usize]] = row as u32;
        next[leaf as usize] += 1;
    }
    Ok((starts, rows))
}
