//! Growing one tree of 31 leaves on one thread, by shape of the table and kind of lanes.

use std::sync::Arc;

use divan::Bencher;
use manyboost_core::binning::{Binned, apply_cuts, find_cuts};
use manyboost_core::grower::{GrowParams, Grower};
use manyboost_core::histogram::{SplitWeights, quantise};
use manyboost_core::parallel::Pool;
use manyboost_core::random::Key;

fn main() {
    divan::main();
}

/// A table of normal features and split gradients that depend on a few of them.
struct Table {
    binned: Binned,
    z: Vec<f32>,
    weights: Vec<f32>,
    q: usize,
}

impl Table {
    fn new(n: usize, p: usize, q: usize) -> Table {
        let mut stream = Key::new(1).stream();
        let x: Vec<f32> = (0..n * p).map(|_| stream.normals().0 as f32).collect();
        let z = (0..n * q)
            .map(|k| {
                let row = &x[k / q * p..][..p];
                row[k % q % p] * row[(k % q + 1) % p] + stream.normals().0 as f32
            })
            .collect();
        let weights = (0..n).map(|_| 0.5 + stream.uniform() as f32).collect();
        let pool = Pool::serial();
        let cuts = Arc::new(find_cuts(&pool, &x, p, None, 255).unwrap());
        Table { binned: apply_cuts(&pool, &x, &cuts).unwrap(), z, weights, q }
    }

    fn grow(&self, bencher: Bencher<'_, '_>, weights: SplitWeights<'_>, max_leaf_nodes: usize) {
        let pool = Pool::serial();
        let params = GrowParams {
            max_leaf_nodes,
            max_depth: 60,
            min_samples_leaf: 1,
            min_split_gain: 0.0,
            max_features: self.binned.n_features,
        };
        let mut grower = Grower::new(&self.binned, params, None).unwrap();
        bencher.bench_local(|| {
            let spare = grower.take_lanes();
            let gradients = quantise(&pool, &self.z, self.q, weights, None, spare).unwrap();
            grower.grow(&pool, &self.binned, gradients, None, None, Key::new(2)).unwrap()
        });
    }
}

const SMALL: [(usize, usize); 4] = [(168, 411), (391, 72), (1211, 294), (1500, 103)];

#[divan::bench(args = SMALL)]
fn small_tables_31_leaves(bencher: Bencher<'_, '_>, (n, p): (usize, usize)) {
    Table::new(n, p, 1).grow(bencher, SplitWeights::Equal, 31);
}

#[divan::bench(args = SMALL)]
fn small_tables_4_leaves(bencher: Bencher<'_, '_>, (n, p): (usize, usize)) {
    Table::new(n, p, 1).grow(bencher, SplitWeights::Equal, 4);
}

#[divan::bench(args = [1, 2, 4, 8, 50], max_time = 1)]
fn components(bencher: Bencher<'_, '_>, q: usize) {
    Table::new(20_000, 50, q).grow(bencher, SplitWeights::Equal, 31);
}

#[divan::bench(args = [1, 4], max_time = 1)]
fn weighted_rows(bencher: Bencher<'_, '_>, q: usize) {
    let table = Table::new(20_000, 50, q);
    table.grow(bencher, SplitWeights::Rows(&table.weights), 31);
}

#[divan::bench(args = [1, 4], max_time = 1)]
fn weighted_cells(bencher: Bencher<'_, '_>, q: usize) {
    let table = Table::new(20_000, 50, q);
    let weights: Vec<f32> = table.z.iter().map(|z| 0.5 + z.abs()).collect();
    table.grow(bencher, SplitWeights::Components(&weights), 31);
}

#[divan::bench(args = [1_040_000, 1_060_000], sample_count = 5)]
fn beyond_a_million_rows(bencher: Bencher<'_, '_>, n: usize) {
    Table::new(n, 20, 1).grow(bencher, SplitWeights::Equal, 31);
}
