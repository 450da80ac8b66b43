//! The model: trees, and what their leaves add to the outputs.

use crate::error::{Result, invalid};
use crate::lowlevel::widest;
use crate::parallel::Pool;
use crate::tree::{Node, find_leaf};

/// Rows that go through all trees together.
const ROW_BLOCK: usize = 64;
/// Outputs summed together: as many as fit eight registers of eight floats.
const OUTPUT_BLOCK: usize = 64;

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
        let blocks =
            raw.chunks_mut(ROW_BLOCK * self.n_outputs).zip(x.chunks(ROW_BLOCK * self.n_features));
        pool.for_each(blocks, self.work(x, &rounds), |(raw, x)| {
            self.sum_block(x, rounds.clone(), Target::Add(raw));
        })
    }

    /// Raw predictions: `baseline` plus the trees of the given rounds, into `out` (n × n_outputs).
    pub fn predict(
        &self,
        pool: &Pool,
        x: &[f32],
        rounds: std::ops::Range<usize>,
        baseline: &[f64],
        out: &mut [f64],
    ) -> Result<()> {
        let blocks =
            out.chunks_mut(ROW_BLOCK * self.n_outputs).zip(x.chunks(ROW_BLOCK * self.n_features));
        pool.for_each(blocks, self.work(x, &rounds), |(out, x)| {
            self.sum_block(x, rounds.clone(), Target::Fill(out, baseline));
        })
    }

    fn work(&self, x: &[f32], rounds: &std::ops::Range<usize>) -> usize {
        let n = x.len() / self.n_features.max(1);
        n * rounds.len() * self.trees_per_round() * (8 + self.n_outputs / 4)
    }

    /// One block of rows through all trees: first the leaves, then the sums, a few outputs at a
    /// time, which stay in registers while the trees go by.
    fn sum_block(&self, x: &[f32], rounds: std::ops::Range<usize>, mut target: Target<'_>) {
        let (p, d) = (self.n_features, self.n_outputs);
        let trees = rounds.start * self.trees_per_round()..rounds.end * self.trees_per_round();
        let n_trees = trees.len();
        let n_rows = x.len() / p;
        // Where each tree's values for a row begin, row by row.
        let mut places = vec![0u32; n_rows * n_trees];
        let width = if self.kind == Kind::Vector { d } else { 1 };
        for (t, tree) in trees.clone().enumerate() {
            let nodes = self.tree(tree);
            for (i, row) in x.chunks_exact(p).enumerate() {
                places[i * n_trees + t] =
                    (self.value_starts[tree] + find_leaf(nodes, row) * width) as u32;
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
            return;
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
                    || self.sum_trees(places, trees.start, block.clone(), &mut sums),
                );
                for (&sum, j) in sums.iter().zip(block.clone()) {
                    target.put(i * d + j, j, sum);
                }
            }
        }
    }

    #[inline(always)]
    fn sum_trees(
        &self,
        places: &[u32],
        first_tree: usize,
        block: std::ops::Range<usize>,
        sums: &mut [f32; OUTPUT_BLOCK],
    ) {
        let whole = block.len() == OUTPUT_BLOCK;
        for (t, &place) in places.iter().enumerate() {
            let place = place as usize;
            let (row, value) = match self.kind {
                Kind::Scaled => {
                    let row = (first_tree + t) * self.n_outputs;
                    (&self.steps[row + block.start..row + block.end], Some(self.values[place]))
                }
                _ => (&self.values[place + block.start..place + block.end], None),
            };
            // The same operations as `add_leaf`, in the same order.
            match (whole, value) {
                (true, None) => {
                    for k in 0..OUTPUT_BLOCK {
                        sums[k] += row[k];
                    }
                }
                (true, Some(value)) => {
                    for k in 0..OUTPUT_BLOCK {
                        sums[k] += row[k] * value;
                    }
                }
                (false, None) => sums.iter_mut().zip(row).for_each(|(s, r)| *s += r),
                (false, Some(value)) => {
                    sums.iter_mut().zip(row).for_each(|(s, r)| *s += r * value);
                }
            }
        }
    }
}

/// Where the sums of a block go.
enum Target<'a> {
    /// On top of what is there.
    Add(&'a mut [f32]),
    /// With the baseline, in double precision.
    Fill(&'a mut [f64], &'a [f64]),
}

impl Target<'_> {
    #[inline(always)]
    fn start(&self, cell: usize) -> f32 {
        match self {
            Target::Add(raw) => raw[cell],
            Target::Fill(..) => 0.0,
        }
    }

    #[inline(always)]
    fn put(&mut self, cell: usize, output: usize, sum: f32) {
        match self {
            Target::Add(raw) => raw[cell] = sum,
            Target::Fill(out, baseline) => out[cell] = baseline[output] + f64::from(sum),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf::{LeafValues, add_leaf};

    /// Two trees over one feature; values and steps that tell outputs and leaves apart.
    fn model(kind: Kind, d: usize, rounds: usize) -> Ensemble {
        let node = |feature, threshold, left| Node {
            feature,
            threshold,
            left,
            cover: 1.0,
            gain: 0.0,
            bin: 0,
        };
        let nodes = [node(0, 0.5, 1), node(0, 0.0, 0), node(1, 0.0, 0)];
        let mut model = Ensemble::new(kind, d, 1);
        for t in 0..rounds * model.trees_per_round() {
            let width = if kind == Kind::Vector { d } else { 1 };
            let values: Vec<f32> = (0..2 * width).map(|k| (k * 7 + t * 3) as f32 / 11.0).collect();
            let steps: Vec<f32> = (0..d).map(|j| (j + t) as f32 / 7.0).collect();
            let steps = if kind == Kind::Scaled { &steps[..] } else { &[] };
            model.push(&nodes, &values, steps).unwrap();
        }
        model
    }

    #[test]
    fn blocks_of_outputs_add_what_leaf_by_leaf_addition_does() {
        let x: Vec<f32> = (0..70).map(|i| (i % 3) as f32 / 2.0).collect();
        for kind in [Kind::PerOutput, Kind::Vector, Kind::Scaled] {
            for d in [1, 5, OUTPUT_BLOCK, OUTPUT_BLOCK + 3] {
                let model = model(kind, d, 4);
                let mut expected = vec![0.0f32; 70 * d];
                for (row, raw) in x.iter().zip(expected.chunks_mut(d)) {
                    for t in 0..model.n_trees() {
                        let leaf = find_leaf(model.tree(t), &[*row]);
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
                model.add_to(&pool, &x, 0..1, &mut raw).unwrap();
                model.add_to(&pool, &x, 1..4, &mut raw).unwrap();
                assert_eq!(raw, expected);
                let mut out = vec![0.0f64; 70 * d];
                model.predict(&pool, &x, 0..4, &vec![2.0; d], &mut out).unwrap();
                assert!(out.iter().zip(&expected).all(|(o, &e)| *o == 2.0 + f64::from(e)));
            }
        }
    }
}
