//! The pass over all cells that ends a round, loss by loss, and the sums over leaves, on one thread.
//!
//! Shapes are (rows, outputs): two million cells each, and one that stays in the second cache, where
//! the arithmetic shows. `copy` is the yardstick: it moves the cells once.

use divan::Bencher;
use divan::counter::ItemsCount;
use manyboost_core::leaf::{
    Curvatures, LeafValues, Leaves, SumBounds, Update, leaf_sums as sum_leaves,
};
use manyboost_core::losses::{Loss, Losses, Objective, Projected, Sweep, Targets, advance};
use manyboost_core::outputs::Outputs;
use manyboost_core::parallel::Pool;
use manyboost_core::projection::{self, Phi, Projection, draw};
use manyboost_core::random::Key;
use manyboost_core::weights::Weights;

fn main() {
    divan::main();
}

const SHAPES: [(usize, usize); 4] = [(400_000, 5), (40_000, 50), (2_000, 1_000), (50, 1_000)];
const N_LEAVES: usize = 31;

/// Rows of a fit in the middle of its rounds.
struct Table {
    d: usize,
    raw: Vec<f32>,
    residuals: Vec<f32>,
    real: Vec<f32>,
    labels: Vec<u8>,
    classes: Vec<u32>,
    leaf_of_row: Vec<u32>,
    values: Vec<f32>,
    phi: Phi,
    z: Vec<f32>,
}

impl Table {
    fn new((n, d): (usize, usize)) -> Table {
        let mut stream = Key::new(1).stream();
        let mut normals = |count: usize, scale: f64| -> Vec<f32> {
            (0..count).map(|_| (scale * stream.normals().0) as f32).collect()
        };
        let (raw, real, values) =
            (normals(n * d, 1.5), normals(n * d, 1.0), normals(N_LEAVES * d, 1e-3));
        let phi = draw(Projection::Gaussian, 1, d, &[], Key::new(2)).unwrap();
        Table {
            d,
            labels: real.iter().map(|&y| u8::from(y > 0.7)).collect(),
            real: real.iter().map(|y| y.abs()).collect(),
            classes: (0..n).map(|i| (i * 7 % d) as u32).collect(),
            leaf_of_row: (0..n).map(|i| (i * 17 % N_LEAVES) as u32).collect(),
            residuals: raw.iter().map(|f| f / 16.0).collect(),
            raw,
            values,
            phi: Phi::new(&phi, d).unwrap(),
            z: vec![0.0; n],
        }
    }

    /// Benchmarks the pass of a loss.
    fn pass(&mut self, bencher: Bencher<'_, '_>, loss: Loss) {
        let (pool, d, n) = (Pool::serial(), self.d, self.z.len());
        let losses = Losses::new(&vec![loss; d], vec![-0.5; d], vec![0.0; d]).unwrap();
        let targets = match loss {
            Loss::Softmax => Targets::Classes(&self.classes),
            Loss::Logistic => Targets::Labels(&self.labels),
            _ => Targets::Real(&self.real),
        };
        let objective = Objective::new(&losses, targets, Weights::default(), n).unwrap();
        let values = LeafValues::Vector(&self.values);
        let update = Update { leaf_of_row: &self.leaf_of_row, values };
        let (raw, residuals) = (&mut self.raw, &mut self.residuals);
        let leaves = Leaves { leaf_of_row: &self.leaf_of_row, n_leaves: N_LEAVES };
        let most = vec![10.0; d];
        let pending = [update];
        let sweep =
            Sweep { n_outputs: d, weight: None, pending: &pending, leaves: Some((leaves, &most)) };
        bencher.counter(ItemsCount::new(n * d)).bench_local(|| {
            let projected = Some(Projected { phi: &self.phi, z: &mut self.z, shares: None });
            if loss == Loss::Squared {
                sweep.run(&pool, residuals, projected).unwrap().0
            } else {
                advance(&pool, objective, raw, residuals, Some(update), projected).unwrap()
            }
        });
    }

    /// Benchmarks the sums over leaves.
    fn sums(&self, bencher: Bencher<'_, '_>, with_curvatures: bool) {
        let (pool, d, n) = (Pool::serial(), self.d, self.z.len());
        let losses = Losses::new(&vec![Loss::Logistic; d], vec![-0.5; d], vec![0.0; d]).unwrap();
        let weights = Weights::default();
        let objective = Objective::new(&losses, Targets::Labels(&self.labels), weights, n).unwrap();
        let leaves = Leaves { leaf_of_row: &self.leaf_of_row, n_leaves: N_LEAVES };
        let (outputs, most) = (Outputs::all(d), vec![1.0; d]);
        bencher.counter(ItemsCount::new(n * d)).bench_local(|| {
            let curvatures = match with_curvatures {
                true => Curvatures::Formula(objective),
                false => Curvatures::Absent,
            };
            let bounds = SumBounds { residual: &most, curvature: &most };
            let residuals = &self.residuals;
            sum_leaves(&pool, leaves, &outputs, residuals, curvatures, weights, bounds).unwrap()
        });
    }
}

#[divan::bench(args = SHAPES)]
fn squared_error(bencher: Bencher<'_, '_>, shape: (usize, usize)) {
    Table::new(shape).pass(bencher, Loss::Squared);
}

#[divan::bench(args = SHAPES)]
fn log_loss(bencher: Bencher<'_, '_>, shape: (usize, usize)) {
    Table::new(shape).pass(bencher, Loss::Logistic);
}

#[divan::bench(args = SHAPES)]
fn softmax(bencher: Bencher<'_, '_>, shape: (usize, usize)) {
    Table::new(shape).pass(bencher, Loss::Softmax);
}

#[divan::bench(args = SHAPES)]
fn poisson(bencher: Bencher<'_, '_>, shape: (usize, usize)) {
    Table::new(shape).pass(bencher, Loss::Poisson);
}

/// 2,000 rows and 1,000 outputs, projected to some components.
#[divan::bench(args = [1, 10, 100])]
fn project(bencher: Bencher<'_, '_>, n_components: usize) {
    let (table, pool) = (Table::new((2_000, 1_000)), Pool::serial());
    let drawn = draw(Projection::Gaussian, n_components, table.d, &[], Key::new(2)).unwrap();
    let phi = Phi::new(&drawn, table.d).unwrap();
    let mut z = vec![0.0; table.z.len() * n_components];
    let products = ItemsCount::new(table.residuals.len() * n_components);
    bencher.counter(products).bench_local(|| {
        projection::project(&pool, &table.residuals, table.d, &phi, &mut z).unwrap();
    });
}

#[divan::bench(args = SHAPES)]
fn copy(bencher: Bencher<'_, '_>, shape: (usize, usize)) {
    let mut table = Table::new(shape);
    let cells = ItemsCount::new(table.raw.len());
    bencher.counter(cells).bench_local(|| table.residuals.copy_from_slice(&table.raw));
}

#[divan::bench(args = SHAPES)]
fn leaf_sums(bencher: Bencher<'_, '_>, shape: (usize, usize)) {
    Table::new(shape).sums(bencher, false);
}

#[divan::bench(args = SHAPES)]
fn leaf_sums_with_curvatures(bencher: Bencher<'_, '_>, shape: (usize, usize)) {
    Table::new(shape).sums(bencher, true);
}
