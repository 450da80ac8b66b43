//! Split gradients z = φ r: the labels projected, less what the trees have added.

use std::borrow::Cow;

use super::LabelRows;
use crate::ensemble::{Ensemble, Kind};
use crate::error::{Result, invalid};
use crate::lowlevel::widest;
use crate::memory::zeros;
use crate::parallel::Pool;

/// Rows that go through all trees together.
pub(super) const ROWS_AT_ONCE: usize = 1024;
/// Lanes of sums over outputs, the same on every machine.
const LANES: usize = 16;

impl LabelRows {
    /// Writes φ (c r) into `z` (n × q), for the residuals r after the trees that rows were put into,
    /// and weights c of cells.
    pub fn project(
        &self,
        pool: &Pool,
        model: &Ensemble,
        phi: &[f32],
        start: &[f64],
        z: &mut [f32],
    ) -> Result<()> {
        let (n, d) = (self.n_rows(), self.n_outputs);
        let q = phi.len() / d.max(1);
        if phi.len() != q * d || q == 0 || z.len() != n * q || start.len() != d {
            return invalid("the projection does not fit the rows and outputs");
        }
        let tables = self.tables(pool, model, phi)?;
        let constants: Vec<f64> = phi.chunks(d).map(|phi| dot_with(phi, start)).collect();
        let phi = by_output(phi, d)?;
        let work = (n * self.n_trees() + self.labels.len()) * q;
        let blocks = z.chunks_mut(ROWS_AT_ONCE * q).enumerate();
        pool.try_for_each(blocks, work, |(block, z)| {
            let (first, count) = (block * ROWS_AT_ONCE, z.len() / q);
            let mut sums = zeros::<f64>(z.len())?;
            for (k, sums) in sums.chunks_mut(q).enumerate() {
                for &label in self.labels_of(first + k) {
                    let phi = &phi[label as usize * q..][..q];
                    sums.iter_mut().zip(phi).for_each(|(sum, &phi)| *sum += f64::from(phi));
                }
                sums.iter_mut().zip(&constants).for_each(|(sum, constant)| {
                    *sum = 2.0 * *sum - constant;
                });
            }
            for (place, table) in self.places.iter().zip(&tables) {
                if q == 1 {
                    place.each(first, count, |k, leaf| sums[k] -= table[leaf]);
                } else {
                    place.each(first, count, |k, leaf| {
                        let (sums, table) = (&mut sums[k * q..][..q], &table[leaf * q..][..q]);
                        sums.iter_mut().zip(table).for_each(|(sum, value)| *sum -= value);
                    });
                }
            }
            for (k, sums) in sums.chunks_mut(q).enumerate() {
                for cell in self.marked_of(first + k) {
                    let extra = cell.excess() * cell.residual(start);
                    let phi = &phi[cell.output as usize * q..][..q];
                    sums.iter_mut().zip(phi).for_each(|(sum, &phi)| *sum += f64::from(phi) * extra);
                }
            }
            z.iter_mut().zip(&sums).for_each(|(z, &sum)| *z = sum as f32);
            Ok(())
        })
    }

    /// For each tree φ v, (n_leaves × q), of its leaf vectors v.
    fn tables(&self, pool: &Pool, model: &Ensemble, phi: &[f32]) -> Result<Vec<Vec<f64>>> {
        let (d, q) = (self.n_outputs, phi.len() / self.n_outputs);
        if model.n_outputs != d || model.n_trees() < self.n_trees() || model.n_members != 1 {
            return invalid("the trees are not those that the rows were put into");
        }
        let work = match model.kind {
            Kind::Scaled => self.n_trees() * d * q,
            _ => model.values.len() * q,
        };
        pool.try_map(0..self.n_trees(), work, |tree| match model.kind {
            Kind::Scaled => {
                let steps = &model.steps[tree * d..][..d];
                let along: Vec<f64> = phi.chunks(d).map(|phi| dot(phi, steps)).collect();
                let values = model.tree_values(tree).iter();
                Ok(values.flat_map(|&v| along.iter().map(move |a| f64::from(v) * a)).collect())
            }
            Kind::Sparse => {
                let n_leaves = model.leaf_sizes(tree).len();
                let mut table = zeros::<f64>(n_leaves * q)?;
                for (leaf, sums) in table.chunks_mut(q).enumerate() {
                    let (outputs, values) = model.sparse_leaf(tree, leaf);
                    for (c, sum) in sums.iter_mut().enumerate() {
                        let phi = &phi[c * d..][..d];
                        for (&output, &value) in outputs.iter().zip(values) {
                            *sum += f64::from(phi[output as usize]) * f64::from(value);
                        }
                    }
                }
                Ok(table)
            }
            Kind::PerOutput | Kind::Vector => invalid("such trees are not for sparse labels"),
        })
    }
}

/// A projection (q × d) with the components of an output side by side, so that a label is found once.
pub(super) fn by_output(phi: &[f32], d: usize) -> Result<Cow<'_, [f32]>> {
    let q = phi.len() / d.max(1);
    if q <= 1 {
        return Ok(Cow::Borrowed(phi));
    }
    let mut turned = zeros::<f32>(q * d)?;
    for (c, row) in phi.chunks(d).enumerate() {
        turned[c..].iter_mut().step_by(q).zip(row).for_each(|(turned, &phi)| *turned = phi);
    }
    Ok(Cow::Owned(turned))
}

/// Σ a b in lanes, the order of which does not depend on the machine.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f64 {
    widest(
        #[inline(always)]
        || {
            let mut lanes = [0.0f64; LANES];
            let (a, rest_a) = a.as_chunks::<LANES>();
            let (b, rest_b) = b.as_chunks::<LANES>();
            for (a, b) in a.iter().zip(b) {
                for k in 0..LANES {
                    lanes[k] += f64::from(a[k]) * f64::from(b[k]);
                }
            }
            for ((lane, &a), &b) in lanes.iter_mut().zip(rest_a).zip(rest_b) {
                *lane += f64::from(a) * f64::from(b);
            }
            lanes.iter().sum()
        },
    )
}

/// The same where one of them is in double precision.
fn dot_with(a: &[f32], b: &[f64]) -> f64 {
    let mut lanes = [0.0f64; LANES];
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        for ((lane, &a), &b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += f64::from(a) * b;
        }
    }
    lanes.iter().sum()
}
