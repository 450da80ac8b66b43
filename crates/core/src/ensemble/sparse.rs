//! Leaves with numbers for a few outputs: what they add costs as many additions as they hold.

use std::collections::HashMap;
use std::ops::Range;

use super::block::Block;
use super::{Ensemble, FeatureRows, Kind};
use crate::category::CategorySet;
use crate::error::{Result, invalid};
use crate::memory::{collected, grow, zeros};
use crate::parallel::Pool;
use crate::ranking::{Ranked, keep_best};
use crate::tree::Node;

impl Ensemble {
    /// Appends a tree whose leaves have so many values each, one for each of the given outputs.
    pub fn push_sparse(
        &mut self,
        nodes: &[Node],
        sets: &[CategorySet],
        sizes: &[usize],
        outputs: &[u32],
        values: &[f32],
    ) -> Result<()> {
        let n_leaves = nodes.iter().filter(|node| node.is_leaf()).count();
        let total = sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size));
        if self.kind != Kind::Sparse
            || sizes.len() != n_leaves
            || total != Some(values.len())
            || outputs.len() != values.len()
        {
            return invalid(format!(
                "a tree of {n_leaves} leaves came with {} values for {} outputs",
                values.len(),
                outputs.len()
            ));
        }
        let mut rest = outputs;
        for &size in sizes {
            let (leaf, others) = rest.split_at(size);
            rest = others;
            let in_order = leaf.windows(2).all(|pair| pair[0] < pair[1]);
            if !in_order || leaf.last().is_some_and(|&last| last as usize >= self.n_outputs) {
                return invalid("a leaf has outputs out of order, or that do not exist");
            }
        }
        grow(&mut self.outputs, outputs.len())?;
        grow(&mut self.leaf_starts, sizes.len())?;
        let mut start = self.values.len();
        self.append(nodes, sets, values)?;
        self.outputs.extend_from_slice(outputs);
        for size in sizes {
            start += size;
            self.leaf_starts.push(start);
        }
        Ok(())
    }

    /// The number of leaves of the trees before one: a tree of n leaves has 2n − 1 nodes.
    pub(super) fn first_leaf(&self, tree: usize) -> usize {
        (self.node_starts[tree] + tree) / 2
    }

    /// Outputs and values of a leaf of a tree of [`Kind::Sparse`].
    #[inline]
    pub fn sparse_leaf(&self, tree: usize, leaf: usize) -> (&[u32], &[f32]) {
        let leaf = self.first_leaf(tree) + leaf;
        let range = self.leaf_starts[leaf]..self.leaf_starts[leaf + 1];
        (&self.outputs[range.clone()], &self.values[range])
    }

    /// Outputs of the leaf values of one tree.
    pub fn tree_outputs(&self, tree: usize) -> &[u32] {
        let range = self.value_starts[tree]..self.value_starts[tree + 1];
        self.outputs.get(range).unwrap_or(&[])
    }

    /// Number of values of each leaf of one tree of [`Kind::Sparse`].
    pub fn leaf_sizes(&self, tree: usize) -> Vec<usize> {
        let leaves = self.first_leaf(tree)..self.first_leaf(tree + 1);
        self.leaf_starts[leaves.start..=leaves.end]
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect()
    }

    /// The model of some outputs alone.
    pub(super) fn sparse_of_outputs(&self, outputs: &[usize]) -> Result<Ensemble> {
        let mut places: HashMap<u32, Vec<u32>> = HashMap::new();
        for (place, &output) in outputs.iter().enumerate() {
            places.entry(output as u32).or_default().push(place as u32);
        }
        let mut part = Ensemble::new(self.kind, outputs.len(), self.n_features);
        part.n_members = self.n_members;
        for tree in 0..self.n_trees() {
            let (mut sizes, mut kept) = (Vec::new(), Vec::new());
            for leaf in 0..self.leaf_sizes(tree).len() {
                let first = kept.len();
                let (of_leaf, values) = self.sparse_leaf(tree, leaf);
                for (output, &value) in of_leaf.iter().zip(values) {
                    let found = places.get(output).map_or(&[][..], Vec::as_slice);
                    grow(&mut kept, found.len())?;
                    kept.extend(found.iter().map(|&place| (place, value)));
                }
                kept[first..].sort_unstable_by_key(|&(place, _)| place);
                sizes.push(kept.len() - first);
            }
            let outputs = collected(kept.len(), kept.iter().map(|&(place, _)| place))?;
            let values = collected(kept.len(), kept.iter().map(|&(_, value)| value))?;
            part.push_sparse(self.tree(tree), self.tree_sets(tree), &sizes, &outputs, &values)?;
        }
        Ok(part)
    }

    /// Adds leaves to the sums of a block of rows (n_rows × n_outputs).
    pub(super) fn add_sparse(&self, block: &Block<'_>, trees: Range<usize>, sums: &mut [f32]) {
        let d = self.n_outputs;
        self.each_leaf(block, trees, |tree, row, leaves| {
            for (sums, &leaf) in sums[row * d..].chunks_mut(d).zip(leaves) {
                let (outputs, values) = self.sparse_leaf(tree, leaf as usize);
                for (&output, value) in outputs.iter().zip(values) {
                    sums[output as usize] += value;
                }
            }
        });
    }

    /// The outputs that the trees of some rounds change in each row, ascending, with their raw
    /// predictions; all others are at the baseline.
    pub fn support(
        &self,
        pool: &Pool,
        x: FeatureRows<'_>,
        rounds: Range<usize>,
        baseline: &[f64],
        out: &mut [Vec<Ranked>],
    ) -> Result<()> {
        self.each_support(pool, x, rounds, 1, out, |touched, sums, out| {
            let mut all: Vec<Ranked> = touched
                .iter()
                .map(|&output| ranked(output, sums[output as usize], baseline))
                .collect();
            all.sort_unstable_by_key(|each| each.output);
            out[0] = all;
        })
    }

    /// The outputs of highest raw prediction, best first, into `out` (n × k).
    pub(super) fn sparse_top_k(
        &self,
        pool: &Pool,
        x: FeatureRows<'_>,
        rounds: Range<usize>,
        baseline: &[f64],
        k: usize,
        out: &mut [Ranked],
    ) -> Result<()> {
        // Outputs that no tree changes keep the order of their baselines.
        let mut order = zeros::<u32>(self.n_outputs)?;
        order.iter_mut().enumerate().for_each(|(j, place)| *place = j as u32);
        let constant = |output: u32| ranked(output, 0.0, baseline);
        order.sort_unstable_by(|&a, &b| constant(a).before(&constant(b)));
        self.each_support(pool, x, rounds, k, out, |touched, sums, out| {
            let mut all: Vec<Ranked> = touched
                .iter()
                .map(|&output| ranked(output, sums[output as usize], baseline))
                .collect();
            // −0 marks outputs that no tree changes; sums of leaves never are −0.
            let others = order.iter().filter(|&&output| is_untouched(sums[output as usize]));
            all.extend(others.take(k).map(|&output| constant(output)));
            keep_best(&mut all, k);
            out.copy_from_slice(&all);
        })
    }

    /// Calls `f(outputs, sums, out)` for every row with the outputs that trees change, and their sums
    /// among those of all outputs; the others are −0.
    fn each_support<T: Send>(
        &self,
        pool: &Pool,
        x: FeatureRows<'_>,
        rounds: Range<usize>,
        width: usize,
        out: &mut [T],
        f: impl Fn(&[u32], &[f32], &mut [T]) + Sync,
    ) -> Result<()> {
        let trees = rounds.start * self.trees_per_round()..rounds.end * self.trees_per_round();
        let n_trees = trees.len();
        let per_tree = self.values.len() / self.leaf_starts.len();
        self.for_each_block(pool, x, n_trees * (3 + per_tree), width, out, |x, out| {
            let block = self.block(x, trees.clone())?;
            let mut leaves = zeros::<u32>(block.n_rows * n_trees)?;
            self.each_leaf(&block, trees.clone(), |tree, row, found| {
                let places = leaves[row * n_trees + tree - trees.start..].iter_mut();
                places.step_by(n_trees).zip(found).for_each(|(place, &leaf)| *place = leaf);
            });
            let mut sums = zeros::<f32>(self.n_outputs)?;
            sums.fill(-0.0);
            let mut touched = Vec::new();
            // Without trees there are no leaves, but rows.
            for (row, out) in out.chunks_mut(width).enumerate() {
                for (tree, &leaf) in trees.clone().zip(&leaves[row * n_trees..]) {
                    let (outputs, values) = self.sparse_leaf(tree, leaf as usize);
                    for (&output, value) in outputs.iter().zip(values) {
                        let sum = &mut sums[output as usize];
                        if is_untouched(*sum) {
                            touched.push(output);
                            // Adding 0 first: a value of −0 is a value.
                            *sum = 0.0;
                        }
                        *sum += value;
                    }
                }
                f(&touched, &sums, out);
                touched.drain(..).for_each(|output| sums[output as usize] = -0.0);
            }
            Ok(())
        })
    }
}

/// Whether a sum is −0, which marks outputs without one. (0 + −0 is 0.)
#[inline]
fn is_untouched(sum: f32) -> bool {
    sum.to_bits() == (-0.0f32).to_bits()
}

#[inline]
fn ranked(output: u32, sum: f32, baseline: &[f64]) -> Ranked {
    Ranked { output, score: baseline[output as usize] + f64::from(sum) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const D: usize = 9;

    /// Trees over one feature with a few outputs in each leaf, and the same trees with all outputs.
    pub(crate) fn models(rounds: usize) -> (Ensemble, Ensemble) {
        let node = |feature, threshold, left| Node {
            feature,
            threshold,
            left,
            cover: 1.0,
            gain: 0.0,
            cut: 0,
        };
        let nodes = [node(0, 0.5, 1), node(0, 0.0, 0), node(1, 0.0, 0)];
        let (mut few, mut all) =
            (Ensemble::new(Kind::Sparse, D, 1), Ensemble::new(Kind::Vector, D, 1));
        for t in 0..rounds {
            let outputs = [t as u32 % 3, 4, 6, 1, 4 + t as u32 % 4];
            let values = [0.5, -1.0 - t as f32, 0.25, 2.0, -0.0];
            few.push_sparse(&nodes, &[], &[3, 2], &outputs, &values).unwrap();
            let mut dense = [0.0; 2 * D];
            for (k, (&output, &value)) in outputs.iter().zip(&values).enumerate() {
                dense[if k < 3 { 0 } else { D } + output as usize] = value;
            }
            all.push(&nodes, &[], &dense, &[]).unwrap();
        }
        (few, all)
    }

    fn predictions(model: &Ensemble, x: &[f32], rounds: usize) -> Vec<f64> {
        let baseline: Vec<f64> = (0..model.n_outputs).map(|j| -((j / 2) as f64) / 3.0).collect();
        let mut out = vec![0.0; x.len() * model.n_outputs];
        let rows = FeatureRows::Dense(x);
        model.predict(&Pool::serial(), rows, 0..rounds, &baseline, &mut out).unwrap();
        out
    }

    #[test]
    fn they_predict_as_trees_with_all_outputs_do() {
        let x = [0.0, 1.0, 0.3, f32::NAN];
        let (few, all) = models(5);
        for rounds in 0..=5 {
            assert_eq!(predictions(&few, &x, rounds), predictions(&all, &x, rounds));
        }
        let outputs = [4, 1, 4, 8];
        let (few, all) = (few.of_outputs(&outputs).unwrap(), all.of_outputs(&outputs).unwrap());
        assert_eq!(predictions(&few, &x, 5), predictions(&all, &x, 5));
    }

    #[test]
    fn the_best_outputs_and_the_support_are_those_of_all_predictions() {
        let (pool, x) = (Pool::serial(), [0.0, 1.0, 0.3]);
        let (few, all) = models(5);
        let baseline: Vec<f64> = (0..D).map(|j| -((j / 2) as f64) / 3.0).collect();
        let rows = FeatureRows::Dense(&x);
        for rounds in [0, 1, 5] {
            for k in [1, 4, D] {
                let mut expected = vec![Ranked::default(); x.len() * k];
                let mut found = expected.clone();
                all.top_k(&pool, rows, 0..rounds, &baseline, k, &mut expected).unwrap();
                few.top_k(&pool, rows, 0..rounds, &baseline, k, &mut found).unwrap();
                assert_eq!(found, expected);
            }
            let mut support = vec![Vec::new(); x.len()];
            few.support(&pool, rows, 0..rounds, &baseline, &mut support).unwrap();
            let all = predictions(&all, &x, rounds);
            for (row, support) in all.chunks(D).zip(&support) {
                let mut spread = baseline.clone();
                support.iter().for_each(|each| spread[each.output as usize] = each.score);
                assert_eq!(spread, row);
                assert_eq!(support.is_empty(), rounds == 0);
            }
        }
    }

    #[test]
    fn rounds_can_be_taken_back_and_means_taken() {
        let (few, all) = models(5);
        let x = [0.0, 1.0];
        let (mut cut, mut full) = (few.clone(), all.clone());
        cut.truncate(2);
        assert_eq!(cut, models(2).0);
        let kept = [3, 1, 5, 5, 2, 0, 5, 5, 5];
        cut = few.clone();
        cut.keep(&kept);
        full.keep(&kept);
        assert_eq!(predictions(&cut, &x, 5), predictions(&full, &x, 5));
        let mean = Ensemble::mean(&[&few, &models(3).0]).unwrap();
        let expected = Ensemble::mean(&[&all, &models(3).1]).unwrap();
        assert_eq!(predictions(&mean, &x, 5), predictions(&expected, &x, 5));
        assert_eq!(mean.member(0).unwrap().n_trees(), 5);
    }

    #[test]
    fn leaves_that_do_not_hold_together_are_refused() {
        let (mut few, mut all) = models(1);
        let nodes = few.tree(0).to_vec();
        for (sizes, outputs) in [
            (vec![2], vec![0, 1]),
            (vec![1, 2], vec![0, 1]),
            (vec![2, 0], vec![1, 1]),
            (vec![2, 0], vec![2, 1]),
            (vec![2, 0], vec![2, D as u32]),
        ] {
            let values = vec![0.0; outputs.len()];
            assert!(few.push_sparse(&nodes, &[], &sizes, &outputs, &values).is_err());
        }
        assert!(few.push(&nodes, &[], &[0.0, 1.0], &[]).is_err());
        assert!(all.push_sparse(&nodes, &[], &[1, 1], &[0, 0], &[0.0, 1.0]).is_err());
        assert_eq!(few, models(1).0);
    }
}
