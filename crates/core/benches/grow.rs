//! Growing one tree of 31 leaves, by shape of the table and kind of lanes; on one thread unless told.

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
        Table::of(n, p, q, |row, c, noise| row[c % p] * row[(c + 1) % p] + noise)
    }

    /// Split gradients that depend on all features: most splits are balanced.
    fn linear(n: usize, p: usize, q: usize) -> Table {
        Table::of(n, p, q, |row, c, _| {
            row.iter().enumerate().map(|(j, x)| ((j * (c + 3)) as f32).sin() * x).sum()
        })
    }

    /// Split gradients by row, component and a normal number.
    fn of(n: usize, p: usize, q: usize, z: impl Fn(&[f32], usize, f32) -> f32) -> Table {
        let mut stream = Key::new(1).stream();
        let x: Vec<f32> = (0..n * p).map(|_| stream.normals().0 as f32).collect();
        let z =
            (0..n * q).map(|k| z(&x[k / q * p..][..p], k % q, stream.normals().0 as f32)).collect();
        let weights = (0..n).map(|_| 0.5 + stream.uniform() as f32).collect();
        let pool = Pool::serial();
        let cuts = Arc::new(find_cuts(&pool, &x, p, None, 255, &[]).unwrap());
        Table { binned: apply_cuts(&pool, &x, &cuts).unwrap(), z, weights, q }
    }

    fn grow(&self, bencher: Bencher<'_, '_>, weights: SplitWeights<'_>, max_leaf_nodes: usize) {
        self.grow_with(Pool::serial(), bencher, weights, max_leaf_nodes);
    }

    fn grow_with(
        &self,
        pool: Pool,
        bencher: Bencher<'_, '_>,
        weights: SplitWeights<'_>,
        max_leaf_nodes: usize,
    ) {
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

#[divan::bench(args = SMALL)]
fn small_tables_weighted_rows(bencher: Bencher<'_, '_>, (n, p): (usize, usize)) {
    let table = Table::new(n, p, 1);
    table.grow(bencher, SplitWeights::Rows(&table.weights), 31);
}

#[divan::bench(args = SMALL)]
fn small_tables_4_components(bencher: Bencher<'_, '_>, (n, p): (usize, usize)) {
    Table::new(n, p, 4).grow(bencher, SplitWeights::Equal, 31);
}

#[divan::bench(args = ["one lane", "weighted rows", "4 components", "both"], sample_count = 10)]
fn tall(bencher: Bencher<'_, '_>, lanes: &str) {
    let q = if matches!(lanes, "4 components" | "both") { 4 } else { 1 };
    let table = Table::linear(200_000, 20, q);
    let is_weighted = matches!(lanes, "weighted rows" | "both");
    let weights =
        if is_weighted { SplitWeights::Rows(&table.weights) } else { SplitWeights::Equal };
    table.grow(bencher, weights, 31);
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

#[divan::bench(args = [1, 2], max_time = 1)]
fn balanced(bencher: Bencher<'_, '_>, threads: usize) {
    let pool = Pool::new(threads, Box::new(|| false));
    Table::linear(20_000, 50, 1).grow_with(pool, bencher, SplitWeights::Equal, 31);
}

#[divan::bench(args = [1, 2], sample_count = 10)]
fn balanced_large(bencher: Bencher<'_, '_>, threads: usize) {
    let pool = Pool::new(threads, Box::new(|| false));
    Table::linear(1_000_000, 28, 1).grow_with(pool, bencher, SplitWeights::Equal, 31);
}

#[divan::bench(args = [1, 2], max_time = 1)]
fn balanced_50_components(bencher: Bencher<'_, '_>, threads: usize) {
    let pool = Pool::new(threads, Box::new(|| false));
    Table::linear(20_000, 50, 50).grow_with(pool, bencher, SplitWeights::Equal, 31);
}
