//! Predictions of one thread, by number of outputs, of trees and of rows.

use divan::Bencher;
use divan::counter::ItemsCount;
use manyboost_core::ensemble::{Ensemble, FeatureRows, Kind};
use manyboost_core::parallel::Pool;
use manyboost_core::random::{Key, Stream};
use manyboost_core::tree::{MISSING_LEFT, Node};

fn main() {
    divan::main();
}

/// A model of random trees.
struct Shape {
    kind: Kind,
    n_outputs: usize,
    n_features: usize,
    rounds: usize,
    leaves: usize,
}

const SHAPE: Shape =
    Shape { kind: Kind::Vector, n_outputs: 1, n_features: 50, rounds: 100, leaves: 31 };

impl Shape {
    fn model(&self, stream: &mut Stream) -> Ensemble {
        let mut model = Ensemble::new(self.kind, self.n_outputs, self.n_features);
        let width = if self.kind == Kind::Vector { self.n_outputs } else { 1 };
        let n_steps = if self.kind == Kind::Scaled { self.n_outputs } else { 0 };
        for _ in 0..self.rounds * model.trees_per_round() {
            let nodes = tree(stream, self.leaves, self.n_features);
            let mut normals = |n: usize| -> Vec<f32> {
                (0..n).map(|_| stream.normals().0 as f32 / 100.0).collect()
            };
            let (values, steps) = (normals(self.leaves * width), normals(n_steps));
            model.push(&nodes, &[], &values, &steps).unwrap();
        }
        model
    }

    fn predict(&self, bencher: Bencher<'_, '_>, n: usize) {
        let mut stream = Key::new(1).stream();
        let model = self.model(&mut stream);
        let x: Vec<f32> = (0..n * self.n_features).map(|_| stream.normals().0 as f32).collect();
        let baseline = vec![0.5; self.n_outputs];
        let mut out = vec![0.0f64; n * self.n_outputs];
        let pool = Pool::serial();
        bencher.counter(ItemsCount::new(n)).bench_local(|| {
            let rows = FeatureRows::Dense(&x);
            model.predict(&pool, rows, 0..self.rounds, &baseline, &mut out).unwrap();
        });
    }
}

/// A tree whose leaves are split in random order: about as deep as trees grown best first.
fn tree(stream: &mut Stream, n_leaves: usize, p: usize) -> Vec<Node> {
    let leaf = Node { feature: 0, threshold: 0.0, left: 0, cover: 1.0, gain: 0.0, cut: 0 };
    let mut nodes = vec![leaf];
    let mut leaves = vec![0];
    let below = |stream: &mut Stream, n: usize| (stream.uniform() * n as f64) as usize;
    while leaves.len() < n_leaves {
        let chosen = below(stream, leaves.len());
        let at = leaves.swap_remove(chosen);
        let missing = if stream.uniform() < 0.5 { MISSING_LEFT } else { 0 };
        nodes[at].feature = below(stream, p) as u32 | missing;
        nodes[at].threshold = stream.normals().0 as f32;
        nodes[at].left = nodes.len() as u32;
        leaves.extend([nodes.len(), nodes.len() + 1]);
        nodes.extend([leaf, leaf]);
    }
    for (number, node) in nodes.iter_mut().filter(|node| node.is_leaf()).enumerate() {
        node.feature = number as u32;
    }
    nodes
}

#[divan::bench(args = [1, 10, 50, 983])]
fn vectors(bencher: Bencher<'_, '_>, n_outputs: usize) {
    Shape { n_outputs, ..SHAPE }.predict(bencher, if n_outputs > 100 { 2000 } else { 10_000 });
}

#[divan::bench(args = [1, 10, 50, 983])]
fn vectors_of_10_rounds(bencher: Bencher<'_, '_>, n_outputs: usize) {
    let n = if n_outputs > 100 { 2000 } else { 10_000 };
    Shape { n_outputs, rounds: 10, ..SHAPE }.predict(bencher, n);
}

#[divan::bench(args = [1, 50])]
fn vectors_of_500_rounds(bencher: Bencher<'_, '_>, n_outputs: usize) {
    Shape { n_outputs, rounds: 500, ..SHAPE }.predict(bencher, 5000);
}

#[divan::bench(args = [50, 983])]
fn steps(bencher: Bencher<'_, '_>, n_outputs: usize) {
    Shape { kind: Kind::Scaled, n_outputs, ..SHAPE }.predict(bencher, 2000);
}

#[divan::bench(args = [10, 50])]
fn trees_per_output(bencher: Bencher<'_, '_>, n_outputs: usize) {
    Shape { kind: Kind::PerOutput, n_outputs, ..SHAPE }.predict(bencher, 1000);
}

#[divan::bench(args = [64, 127, 1000])]
fn larger_trees(bencher: Bencher<'_, '_>, leaves: usize) {
    Shape { leaves, ..SHAPE }.predict(bencher, 10_000);
}

#[divan::bench(args = [1, 10])]
fn stumps(bencher: Bencher<'_, '_>, n_outputs: usize) {
    Shape { n_outputs, leaves: 2, rounds: 10_000, ..SHAPE }.predict(bencher, 1000);
}

/// Another row each time: the processor must not learn the way of one.
#[divan::bench(args = [1, 50, 983])]
fn one_row(bencher: Bencher<'_, '_>, n_outputs: usize) {
    let shape = Shape { n_outputs, ..SHAPE };
    let mut stream = Key::new(1).stream();
    let model = shape.model(&mut stream);
    let x: Vec<f32> = (0..1000 * shape.n_features).map(|_| stream.normals().0 as f32).collect();
    let mut rows = x.chunks(shape.n_features).cycle();
    let (baseline, mut out) = (vec![0.5; n_outputs], vec![0.0f64; n_outputs]);
    let pool = Pool::serial();
    bencher.bench_local(|| {
        let row = FeatureRows::Dense(rows.next().unwrap());
        model.predict(&pool, row, 0..shape.rounds, &baseline, &mut out).unwrap();
    });
}

#[divan::bench(args = [1, 50, 983])]
fn a_hundred_rows(bencher: Bencher<'_, '_>, n_outputs: usize) {
    Shape { n_outputs, ..SHAPE }.predict(bencher, 100);
}

#[divan::bench(args = [50, 1000])]
fn one_round(bencher: Bencher<'_, '_>, n_features: usize) {
    Shape { n_features, rounds: 1, ..SHAPE }.predict(bencher, 10_000);
}

#[divan::bench]
fn building(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| SHAPE.model(&mut Key::new(1).stream()));
}
