//! The model: trees, and what their leaves add to the outputs.

mod block;
mod masks;
mod members;
mod predict;
mod sparse;
mod sums;

pub use predict::FeatureRows;

use crate::category::CategorySet;
use crate::error::{Result, invalid};
use crate::memory::{collected, grow};
use crate::tree::{Node, Tree};
use masks::Masks;

/// How trees serve outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A tree for every output in turn, one number per leaf.
    PerOutput,
    /// One vector per leaf.
    Vector,
    /// One number per leaf and one step per output and tree.
    Scaled,
    /// Numbers for a few outputs per leaf; it adds nothing to the others.
    Sparse,
}

/// Trees in the order they were grown.
#[derive(Debug, Clone, PartialEq)]
pub struct Ensemble {
    /// How trees serve outputs.
    pub kind: Kind,
    /// Number of outputs.
    pub n_outputs: usize,
    /// Number of features.
    pub n_features: usize,
    /// Number of models whose mean this is; each has its own trees in every round.
    pub n_members: usize,
    /// Nodes of all trees.
    pub nodes: Vec<Node>,
    /// First node of each tree, and one past the last.
    pub node_starts: Vec<usize>,
    /// Category sets of all trees. A node stores the number of its set within its tree.
    pub sets: Vec<CategorySet>,
    /// First category set of each tree, and one past the last.
    pub set_starts: Vec<usize>,
    /// Leaf values of all trees.
    pub values: Vec<f32>,
    /// First leaf value of each tree, and one past the last.
    pub value_starts: Vec<usize>,
    /// Steps, n_trees × n_outputs for [`Kind::Scaled`], else empty.
    pub steps: Vec<f32>,
    /// Output of each leaf value for [`Kind::Sparse`], ascending in each leaf; else empty.
    pub outputs: Vec<u32>,
    /// First value of each leaf of all trees for [`Kind::Sparse`], and one past the last.
    pub leaf_starts: Vec<usize>,
    /// The trees once more, in the form that finds leaves fastest.
    masks: Masks,
}

impl Ensemble {
    /// A model without trees.
    pub fn new(kind: Kind, n_outputs: usize, n_features: usize) -> Ensemble {
        Ensemble {
            kind,
            n_outputs,
            n_features,
            n_members: 1,
            nodes: Vec::new(),
            node_starts: vec![0],
            sets: Vec::new(),
            set_starts: vec![0],
            values: Vec::new(),
            value_starts: vec![0],
            steps: Vec::new(),
            outputs: Vec::new(),
            leaf_starts: vec![0],
            masks: Masks::default(),
        }
    }

    /// Number of trees.
    pub fn n_trees(&self) -> usize {
        self.node_starts.len() - 1
    }

    /// Trees of one round: those of the first member, then those of the second, and so on.
    pub fn trees_per_round(&self) -> usize {
        self.n_members * self.trees_per_member()
    }

    /// Trees that one member grows in a round.
    fn trees_per_member(&self) -> usize {
        if self.kind == Kind::PerOutput { self.n_outputs } else { 1 }
    }

    /// Appends a tree with its leaf values and, for [`Kind::Scaled`], its steps.
    pub fn push(
        &mut self,
        nodes: &[Node],
        sets: &[CategorySet],
        values: &[f32],
        steps: &[f32],
    ) -> Result<()> {
        let n_leaves = nodes.iter().filter(|node| node.is_leaf()).count();
        if self.kind == Kind::Sparse {
            return invalid("leaves of a few outputs need the numbers of these".to_string());
        }
        let width = if self.kind == Kind::Vector { self.n_outputs } else { 1 };
        let n_steps = if self.kind == Kind::Scaled { self.n_outputs } else { 0 };
        if values.len() != n_leaves * width || steps.len() != n_steps {
            return invalid(format!(
                "a tree of {n_leaves} leaves came with {} values and {} steps",
                values.len(),
                steps.len()
            ));
        }
        grow(&mut self.steps, steps.len())?;
        self.append(nodes, sets, values)?;
        self.steps.extend_from_slice(steps);
        Ok(())
    }

    /// Appends nodes and leaf values, all of them or, if there is an error, none.
    fn append(&mut self, nodes: &[Node], sets: &[CategorySet], values: &[f32]) -> Result<()> {
        let n_sets = nodes.iter().filter(|node| node.is_categorical()).count();
        if sets.len() != n_sets {
            return invalid(format!(
                "a tree of {n_sets} categorical splits came with {} sets",
                sets.len()
            ));
        }
        if self.values.len() + values.len() > u32::MAX as usize {
            return invalid("the model would hold more than 2³² leaf values".to_string());
        }
        grow(&mut self.nodes, nodes.len())?;
        grow(&mut self.sets, sets.len())?;
        grow(&mut self.values, values.len())?;
        self.masks.reserve(nodes)?;
        self.masks.push(nodes);
        self.nodes.extend_from_slice(nodes);
        self.node_starts.push(self.nodes.len());
        self.sets.extend_from_slice(sets);
        self.set_starts.push(self.sets.len());
        self.values.extend_from_slice(values);
        self.value_starts.push(self.values.len());
        Ok(())
    }

    /// Keeps the first `n_trees` trees.
    pub fn truncate(&mut self, n_trees: usize) {
        if n_trees >= self.n_trees() {
            return;
        }
        self.masks.truncate(n_trees);
        self.node_starts.truncate(n_trees + 1);
        self.nodes.truncate(self.node_starts[n_trees]);
        self.set_starts.truncate(n_trees + 1);
        self.sets.truncate(self.set_starts[n_trees]);
        self.value_starts.truncate(n_trees + 1);
        self.values.truncate(self.value_starts[n_trees]);
        match self.kind {
            Kind::Scaled => self.steps.truncate(n_trees * self.n_outputs),
            Kind::Sparse => {
                self.outputs.truncate(self.values.len());
                self.leaf_starts.truncate(self.first_leaf(n_trees) + 1);
            }
            Kind::PerOutput | Kind::Vector => {}
        }
    }

    /// Undoes what output j got after its first `rounds[j]` rounds: the trees stay, but add zero to
    /// the output.
    pub fn keep(&mut self, rounds: &[usize]) {
        let d = self.n_outputs;
        for tree in 0..self.n_trees() {
            let round = tree / self.trees_per_round();
            let values = self.value_starts[tree]..self.value_starts[tree + 1];
            match self.kind {
                Kind::PerOutput if round >= rounds[tree % d] => self.values[values].fill(0.0),
                Kind::PerOutput => {}
                Kind::Vector => {
                    for leaf in self.values[values].chunks_exact_mut(d) {
                        clear_after(round, rounds, leaf);
                    }
                }
                Kind::Scaled => clear_after(round, rounds, &mut self.steps[tree * d..][..d]),
                Kind::Sparse => {
                    let outputs = &self.outputs[values.clone()];
                    for (value, &output) in self.values[values].iter_mut().zip(outputs) {
                        *value = if round >= rounds[output as usize] { 0.0 } else { *value };
                    }
                }
            }
        }
    }

    /// Nodes of one tree.
    pub fn tree(&self, tree: usize) -> &[Node] {
        &self.nodes[self.node_starts[tree]..self.node_starts[tree + 1]]
    }

    /// Category sets of one tree.
    pub fn tree_sets(&self, tree: usize) -> &[CategorySet] {
        &self.sets[self.set_starts[tree]..self.set_starts[tree + 1]]
    }

    /// Leaf values of one tree.
    pub fn tree_values(&self, tree: usize) -> &[f32] {
        &self.values[self.value_starts[tree]..self.value_starts[tree + 1]]
    }

    /// One tree as it would have been grown on rows whose weight in each leaf is `leaf_weights`.
    pub fn refilled(&self, tree: usize, leaf_weights: &[f64]) -> Result<Tree> {
        let nodes = self.tree(tree).to_vec();
        let n_leaves = nodes.iter().filter(|node| node.is_leaf()).count();
        Tree { nodes, sets: self.tree_sets(tree).to_vec(), n_leaves }.with_covers(leaf_weights)
    }

    /// The model of some outputs alone. It predicts what this one does, to the last bit.
    pub fn of_outputs(&self, outputs: &[usize]) -> Result<Ensemble> {
        let d = self.n_outputs;
        if let Some(output) = outputs.iter().find(|&&output| output >= d) {
            return invalid(format!("there is no output {output} among {d}"));
        }
        if self.kind == Kind::Sparse {
            return self.sparse_of_outputs(outputs);
        }
        let mut part = Ensemble::new(self.kind, outputs.len(), self.n_features);
        part.n_members = self.n_members;
        for tree in 0..self.n_trees() {
            let values = &self.values[self.value_starts[tree]..self.value_starts[tree + 1]];
            // Of rows of d numbers.
            let chosen = |all: &[f32]| {
                let numbers = all.chunks(d).flat_map(|row| outputs.iter().map(|&j| row[j]));
                collected(all.len() / d * outputs.len(), numbers)
            };
            match self.kind {
                Kind::Vector => {
                    part.push(self.tree(tree), self.tree_sets(tree), &chosen(values)?, &[])?;
                }
                Kind::Scaled => {
                    let steps = &self.steps[tree * d..(tree + 1) * d];
                    part.push(self.tree(tree), self.tree_sets(tree), values, &chosen(steps)?)?;
                }
                // All trees of a round at once, in the order asked for.
                Kind::PerOutput if tree % d == 0 => {
                    for tree in outputs.iter().map(|j| tree + j) {
                        let range = self.value_starts[tree]..self.value_starts[tree + 1];
                        let values = &self.values[range];
                        part.push(self.tree(tree), self.tree_sets(tree), values, &[])?;
                    }
                }
                Kind::PerOutput | Kind::Sparse => {}
            }
        }
        Ok(part)
    }
}

/// Clears the values of the outputs that do not keep this round.
fn clear_after(round: usize, rounds: &[usize], values: &mut [f32]) {
    for (value, &kept) in values.iter_mut().zip(rounds) {
        if round >= kept {
            *value = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::Pool;

    /// Trees over one feature, whose values and steps differ between outputs and leaves.
    pub(super) fn model(kind: Kind, d: usize, rounds: usize) -> Ensemble {
        let node = |feature, threshold, left| Node {
            feature,
            threshold,
            left,
            cover: 1.0,
            gain: 0.0,
            cut: 0,
        };
        let nodes = [node(0, 0.5, 1), node(0, 0.0, 0), node(1, 0.0, 0)];
        let mut model = Ensemble::new(kind, d, 1);
        for t in 0..rounds * model.trees_per_round() {
            let width = if kind == Kind::Vector { d } else { 1 };
            let values: Vec<f32> = (0..2 * width).map(|k| (k * 7 + t * 3) as f32 / 11.0).collect();
            let steps: Vec<f32> = (0..d).map(|j| (j + t) as f32 / 7.0).collect();
            let steps = if kind == Kind::Scaled { &steps[..] } else { &[] };
            model.push(&nodes, &[], &values, steps).unwrap();
        }
        model
    }

    #[test]
    fn a_part_of_the_outputs_is_predicted_as_in_the_whole() {
        let x: Vec<f32> = (0..70).map(|i| (i % 3) as f32 / 2.0).collect();
        let pool = Pool::serial();
        for kind in [Kind::PerOutput, Kind::Vector, Kind::Scaled] {
            for d in [1, 5, 67] {
                let model = model(kind, d, 4);
                let baseline: Vec<f64> = (0..d).map(|j| j as f64 / 3.0).collect();
                let mut all = vec![0.0f64; 70 * d];
                model.predict(&pool, FeatureRows::Dense(&x), 0..3, &baseline, &mut all).unwrap();
                let outputs: Vec<usize> = (0..d).rev().step_by(2).collect();
                let part = model.of_outputs(&outputs).unwrap();
                assert_eq!(part.n_trees(), 4 * part.trees_per_round());
                let chosen: Vec<f64> = outputs.iter().map(|&j| baseline[j]).collect();
                let mut some = vec![0.0f64; 70 * outputs.len()];
                part.predict(&pool, FeatureRows::Dense(&x), 0..3, &chosen, &mut some).unwrap();
                let expected: Vec<f64> =
                    all.chunks(d).flat_map(|row| outputs.iter().map(|&j| row[j])).collect();
                assert_eq!(some, expected);
                assert!(model.of_outputs(&[d]).is_err());
            }
        }
    }

    #[test]
    fn a_refilled_tree_has_the_covers_of_its_rows() {
        let model = model(Kind::Vector, 2, 1);
        let tree = model.refilled(0, &[3.0, 5.0]).unwrap();
        let covers: Vec<f32> = tree.nodes.iter().map(|node| node.cover).collect();
        assert_eq!(covers, [8.0, 3.0, 5.0]);
        assert_eq!((tree.n_leaves, tree.nodes[0].threshold), (2, 0.5));
        let huge = model.refilled(0, &[3e40, 5e40]).unwrap();
        let covers: Vec<f32> = huge.nodes.iter().map(|node| node.cover).collect();
        assert!(covers[0].is_finite() && (covers[1] / covers[0] - 3.0 / 8.0).abs() < 1e-6);
        assert!(model.refilled(0, &[1.0, f64::INFINITY]).is_err());
        assert!(model.refilled(0, &[1.0]).is_err());
    }

    #[test]
    fn an_output_keeps_its_first_rounds_alone() {
        let x: Vec<f32> = (0..9).map(|i| (i % 3) as f32 / 2.0).collect();
        let (d, kept) = (3, [4usize, 0, 2]);
        let pool = Pool::serial();
        for kind in [Kind::PerOutput, Kind::Vector, Kind::Scaled] {
            let full = model(kind, d, 4);
            let mut cut = full.clone();
            cut.keep(&kept);
            let mut found = vec![0.0f32; 9 * d];
            cut.add_to(&pool, FeatureRows::Dense(&x), 0..4, &mut found).unwrap();
            for (j, &rounds) in kept.iter().enumerate() {
                let mut expected = vec![0.0f32; 9 * d];
                full.add_to(&pool, FeatureRows::Dense(&x), 0..rounds, &mut expected).unwrap();
                for i in 0..9 {
                    assert_eq!(found[i * d + j], expected[i * d + j]);
                }
            }
        }
    }
}
