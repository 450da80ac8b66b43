//! The model: trees, and what their leaves add to the outputs.

use crate::error::{Result, invalid};
use crate::leaf::{LeafValues, add_leaf};
use crate::lowlevel::widest;
use crate::parallel::Pool;
use crate::tree::{Node, find_leaf};

/// Rows that go through all trees together.
const ROW_BLOCK: usize = 64;

/// How trees serve outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A tree for every output in turn, one number per leaf.
    PerOutput,
    /// One vector per leaf.
    Vector,
    /// One number per leaf and one step per output and tree.
    Scaled,
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
    /// Nodes of all trees.
    pub nodes: Vec<Node>,
    /// First node of each tree, and one past the last.
    pub node_starts: Vec<usize>,
    /// Leaf values of all trees.
    pub values: Vec<f32>,
    /// First leaf value of each tree, and one past the last.
    pub value_starts: Vec<usize>,
    /// Steps, n_trees × n_outputs for [`Kind::Scaled`], else empty.
    pub steps: Vec<f32>,
}

impl Ensemble {
    /// A model without trees.
    pub fn new(kind: Kind, n_outputs: usize, n_features: usize) -> Ensemble {
        Ensemble {
            kind,
            n_outputs,
            n_features,
            nodes: Vec::new(),
            node_starts: vec![0],
            values: Vec::new(),
            value_starts: vec![0],
            steps: Vec::new(),
        }
    }

    /// Number of trees.
    pub fn n_trees(&self) -> usize {
        self.node_starts.len() - 1
    }

    /// Trees that one round grows.
    pub fn trees_per_round(&self) -> usize {
        if self.kind == Kind::PerOutput { self.n_outputs } else { 1 }
    }

    /// Appends a tree with its leaf values and, for [`Kind::Scaled`], its steps.
    pub fn push(&mut self, nodes: &[Node], values: &[f32], steps: &[f32]) -> Result<()> {
        let n_leaves = nodes.iter().filter(|node| node.is_leaf()).count();
        let width = if self.kind == Kind::Vector { self.n_outputs } else { 1 };
        let n_steps = if self.kind == Kind::Scaled { self.n_outputs } else { 0 };
        if values.len() != n_leaves * width || steps.len() != n_steps {
            return invalid(format!(
                "a tree of {n_leaves} leaves came with {} values and {} steps",
                values.len(),
                steps.len()
            ));
        }
        self.nodes.extend_from_slice(nodes);
        self.node_starts.push(self.nodes.len());
        self.values.extend_from_slice(values);
        self.value_starts.push(self.values.len());
        self.steps.extend_from_slice(steps);
        Ok(())
    }

    /// Keeps the first `n_trees` trees.
    pub fn truncate(&mut self, n_trees: usize) {
        if n_trees >= self.n_trees() {
            return;
        }
        self.node_starts.truncate(n_trees + 1);
        self.nodes.truncate(self.node_starts[n_trees]);
        self.value_starts.truncate(n_trees + 1);
        self.values.truncate(self.value_starts[n_trees]);
        if self.kind == Kind::Scaled {
            self.steps.truncate(n_trees * self.n_outputs);
        }
    }

    /// Nodes of one tree.
    pub fn tree(&self, tree: usize) -> &[Node] {
        &self.nodes[self.node_starts[tree]..self.node_starts[tree + 1]]
    }

    /// Adds the trees of the given rounds to `raw` (n × n_outputs) for row-major `x`, tree by tree
    /// as training did: the sums agree with training to the last bit.
    pub fn add_to(
        &self,
        pool: &Pool,
        x: &[f32],
        rounds: std::ops::Range<usize>,
        raw: &mut [f32],
    ) -> Result<()> {
        let (p, d) = (self.n_features, self.n_outputs);
        let n = raw.len() / d;
        let trees = rounds.start * self.trees_per_round()..rounds.end * self.trees_per_round();
        let width = if self.kind == Kind::PerOutput { 1 } else { d };
        let blocks = raw.chunks_mut(ROW_BLOCK * d).zip(x.chunks(ROW_BLOCK * p));
        pool.for_each(blocks, n * trees.len() * (8 + width / 4), |(raw, x)| {
            for tree in trees.clone() {
                self.add_tree(tree, x, raw);
            }
        })
    }

    fn add_tree(&self, tree: usize, x: &[f32], raw: &mut [f32]) {
        let (p, d) = (self.n_features, self.n_outputs);
        let nodes = self.tree(tree);
        let values = &self.values[self.value_starts[tree]..self.value_starts[tree + 1]];
        let values = match self.kind {
            Kind::Scaled => LeafValues::Scaled(values, &self.steps[tree * d..(tree + 1) * d]),
            _ => LeafValues::Vector(values),
        };
        let outputs = match self.kind {
            Kind::PerOutput => tree % d..tree % d + 1,
            _ => 0..d,
        };
        for (row, raw) in x.chunks_exact(p).zip(raw.chunks_exact_mut(d)) {
            let leaf = find_leaf(nodes, row);
            let raw = &mut raw[outputs.clone()];
            widest(
                #[inline(always)]
                || add_leaf(values, leaf, raw),
            );
        }
    }
}
