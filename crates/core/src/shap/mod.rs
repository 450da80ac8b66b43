//! Shapley values of features: how far each moves the raw predictions of a row, for all outputs.
//!
//! This is path-dependent TreeSHAP. At the split of a known feature a tree goes down as the row does;
//! at the split of an unknown feature it goes both ways, in proportion to the covers.
//! A leaf ℓ is then reached with the weight Π oₖ · Π zₖ over the features of its path: oₖ ∈ {0, 1} says
//! whether the row meets the path's conditions on a known feature k, zₖ is the share of training rows
//! that went on at the splits of an unknown one. Averaged over all orders in which features become
//! known, feature k moves that weight by
//!
//! ```text
//! (oₖ − zₖ) ∫₀¹ Π_{j ≠ k} (oⱼ t + zⱼ (1 − t)) dt
//! ```
//!
//! since t^|S| (1 − t)^(u−1−|S|) integrates to the Shapley weight of a set S of u features. The
//! integrand is a polynomial of degree u − 1, so Gauss-Legendre quadrature with ⌈u / 2⌉ nodes is exact.
//! All factors are positive and nothing cancels. The weights of a path do not depend on the output:
//! they are computed once for a row, sixteen rows at a time, and then multiplied by leaf vectors or
//! by steps.
//!
//! The interaction of two features j ≠ k, half of which belongs to each, is
//!
//! ```text
//! ½ (oⱼ − zⱼ) (oₖ − zₖ) ∫₀¹ Π_{i ≠ j, k} (oᵢ t + zᵢ (1 − t)) dt
//! ```

mod group;
mod quadrature;

use group::{ROWS, TreeGroup};
use quadrature::rules;

use crate::ensemble::{Ensemble, FeatureRows, Kind};
use crate::error::Result;
use crate::lowlevel::widest;
use crate::parallel::Pool;
use crate::tree::Node;

/// Path weights of a row that a group of trees holds, unless one tree has more.
const SLOTS: usize = 1024;
/// Bytes of prepared trees that are held at a time, unless one group has more.
const READY: usize = 1 << 25;

impl Ensemble {
    /// Adds Shapley values, in units of raw predictions, to `out` (n × n_features × n_outputs).
    pub fn add_shap_values(&self, pool: &Pool, x: FeatureRows<'_>, out: &mut [f64]) -> Result<()> {
        self.add_values(pool, x, false, out)
    }

    /// Adds Shapley interaction values of features j < k to `out` (n × n_features × n_features ×
    /// n_outputs), at j, k. The other half of each, and what belongs to a feature alone, is left out.
    pub fn add_shap_interactions(
        &self,
        pool: &Pool,
        x: FeatureRows<'_>,
        out: &mut [f64],
    ) -> Result<()> {
        self.add_values(pool, x, true, out)
    }

    fn add_values(
        &self,
        pool: &Pool,
        x: FeatureRows<'_>,
        of_pairs: bool,
        out: &mut [f64],
    ) -> Result<()> {
        let rules = rules(self.longest_path().div_ceil(2));
        let width = TreeGroup::new(self, &rules, of_pairs).width();
        let mut tree = 0;
        while tree < self.n_trees() {
            let mut groups: Vec<TreeGroup<'_>> = vec![];
            while tree < self.n_trees() && groups.iter().map(TreeGroup::size).sum::<usize>() < READY
            {
                let mut group = TreeGroup::new(self, &rules, of_pairs);
                while tree < self.n_trees() && group.slots.len() < SLOTS {
                    group.push(tree);
                    tree += 1;
                }
                group.sort();
                groups.push(group);
            }
            let work = groups.iter().map(TreeGroup::work_per_row).sum();
            self.for_each_block(pool, x, work, width, out, |x, out| {
                // All trees for a few rows, whose values stay in cache.
                let rows = x.chunks(ROWS * self.n_features).zip(out.chunks_mut(ROWS * width));
                for (x, out) in rows {
                    for group in &groups {
                        widest(
                            #[inline(always)]
                            || group.add_rows(x, out),
                        );
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Most features on the way to a leaf.
    fn longest_path(&self) -> usize {
        let (mut longest, mut way) = (0, vec![]);
        for nodes in (0..self.n_trees()).map(|tree| self.tree(tree)) {
            let parents = parents(nodes);
            let mut depths = vec![0; nodes.len()];
            for k in 1..nodes.len() {
                depths[k] = depths[parents[k]] + 1;
                if nodes[k].is_leaf() && depths[k] > longest {
                    way_to(nodes, &parents, k, &mut way);
                    longest = longest.max(by_feature(&way).count());
                }
            }
        }
        longest
    }

    /// What the trees add to each output where no feature is known.
    pub fn expected(&self) -> Vec<f64> {
        let d = self.n_outputs;
        let mut sums = vec![0.0f64; d];
        for tree in 0..self.n_trees() {
            let (nodes, values) = (self.tree(tree), self.tree_values(tree));
            let mut reached = shares(nodes);
            for (k, node) in nodes.iter().enumerate() {
                if !node.is_leaf() {
                    let left = node.left as usize;
                    reached[left] *= reached[k];
                    reached[left + 1] *= reached[k];
                    continue;
                }
                let leaf = node.feature as usize;
                let mut add = |values: &[f32], factor: f64| {
                    for (sum, &value) in sums.iter_mut().zip(values) {
                        *sum += factor * f64::from(value);
                    }
                };
                match self.kind {
                    Kind::PerOutput => sums[tree % d] += reached[k] * f64::from(values[leaf]),
                    Kind::Vector => add(&values[leaf * d..(leaf + 1) * d], reached[k]),
                    Kind::Scaled => {
                        let steps = &self.steps[tree * d..(tree + 1) * d];
                        add(steps, reached[k] * f64::from(values[leaf]));
                    }
                }
            }
        }
        sums
    }
}

/// The share of its parent's rows that went to each node; 1 for the root. Covers are summed up from
/// the leaves, so that the shares of two children add up to one.
fn shares(nodes: &[Node]) -> Vec<f64> {
    let mut covers: Vec<f64> = nodes.iter().map(|node| f64::from(node.cover)).collect();
    let mut shares = vec![1.0f64; nodes.len()];
    for (k, node) in nodes.iter().enumerate().rev().filter(|(_, node)| !node.is_leaf()) {
        let left = node.left as usize;
        let total = covers[left] + covers[left + 1];
        covers[k] = total;
        shares[left] = if total > 0.0 { covers[left] / total } else { 0.5 };
        shares[left + 1] = 1.0 - shares[left];
    }
    shares
}

/// Parent of each node; the root is its own.
fn parents(nodes: &[Node]) -> Vec<usize> {
    let mut parents = vec![0; nodes.len()];
    for (k, node) in nodes.iter().enumerate().filter(|(_, node)| !node.is_leaf()) {
        parents[node.left as usize] = k;
        parents[node.left as usize + 1] = k;
    }
    parents
}

/// The way to a node: the feature of each split and the child that was taken, sorted by feature.
fn way_to(nodes: &[Node], parents: &[usize], mut node: usize, way: &mut Vec<(usize, usize)>) {
    way.clear();
    while node != 0 {
        let parent = parents[node];
        way.push((nodes[parent].feature_index(), node));
        node = parent;
    }
    way.sort_unstable();
}

/// The steps of a way, feature by feature.
fn by_feature(way: &[(usize, usize)]) -> impl Iterator<Item = &[(usize, usize)]> {
    way.chunk_by(|a, b| a.0 == b.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A split of feature 0, whose left side is split by feature 1; covers 1, 2 and 5.
    fn nodes() -> [Node; 5] {
        let node = |feature, threshold, left, cover| Node {
            feature,
            threshold,
            left,
            cover,
            gain: 0.0,
            cut: 0,
        };
        [
            node(0, 0.5, 1, 8.0),
            node(1, 0.5, 3, 3.0),
            node(0, 0.0, 0, 5.0),
            node(1, 0.0, 0, 1.0),
            node(2, 0.0, 0, 2.0),
        ]
    }

    #[test]
    fn a_small_tree_has_the_values_of_the_definition() {
        // Leaves: feature 0 right; then feature 1 left and right.
        let (a, b, c) = (8.0, -4.0, 2.0);
        let nothing = (5.0 * a + b + 2.0 * c) / 8.0;
        let mean_below = (b + 2.0 * c) / 3.0;
        // The row goes left, then right.
        let (first, second, both) = (mean_below, (5.0 * a + 3.0 * c) / 8.0, c);
        let expected =
            [(first - nothing + both - second) / 2.0, (second - nothing + both - first) / 2.0, 0.0];
        let d = 3;
        for kind in [Kind::PerOutput, Kind::Vector, Kind::Scaled] {
            let mut model = Ensemble::new(kind, d, 3);
            let leaves = [a as f32, b as f32, c as f32];
            let scales = [1.0f32, -2.0, 0.5];
            match kind {
                Kind::PerOutput => scales.iter().for_each(|scale| {
                    model.push(&nodes(), &[], &leaves.map(|leaf| leaf * scale), &[]).unwrap();
                }),
                Kind::Vector => {
                    let values = leaves.map(|leaf| scales.map(|scale| leaf * scale));
                    model.push(&nodes(), &[], values.as_flattened(), &[]).unwrap();
                }
                Kind::Scaled => model.push(&nodes(), &[], &leaves, &scales).unwrap(),
            }
            let n = ROWS + 3;
            let mut out = vec![0.0; n * 3 * d];
            let x = [0.0f32, 1.0, 7.0].repeat(n);
            model.add_shap_values(&Pool::serial(), FeatureRows::Dense(&x), &mut out).unwrap();
            for row in out.chunks(3 * d) {
                for (k, of_feature) in row.chunks(d).enumerate() {
                    for (value, scale) in of_feature.iter().zip(scales) {
                        assert!((value - f64::from(scale) * expected[k]).abs() < 1e-6);
                    }
                }
            }
            // The row that is known in both features, less what each tells alone.
            let interaction = (both - first - second + nothing) / 2.0;
            let mut out = vec![0.0; n * 9 * d];
            model.add_shap_interactions(&Pool::serial(), FeatureRows::Dense(&x), &mut out).unwrap();
            for row in out.chunks(9 * d) {
                for (pair, values) in row.chunks(d).enumerate() {
                    for (value, scale) in values.iter().zip(scales) {
                        let expected = if pair == 1 { interaction } else { 0.0 };
                        assert!((value - f64::from(scale) * expected).abs() < 1e-6);
                    }
                }
            }
            let mean: Vec<f64> = scales.iter().map(|&scale| f64::from(scale) * nothing).collect();
            assert_eq!(model.expected(), mean);
        }
    }
}
