//! The pass over all cells that ends a round and begins the next.
//!
//! It adds leaf values to the state, takes the residuals there, and projects them, block of rows by
//! block of rows while these are in cache.

use std::ops::Range;

use super::Objective;
use super::rows::RowLosses;
use crate::error::Result;
use crate::leaf::{Update, add_leaf};
use crate::lowlevel::widest;
use crate::parallel::{Pool, take_front};
use crate::projection::Phi;
use crate::reduce::{ColumnMaxima, ExactSum, largest_here};

/// What a pass over the training cells tells beside the residuals.
pub struct Pass {
    /// Weighted sum of the loss over all rows and outputs.
    pub loss: f64,
    /// Largest weighted |residual| of each output.
    pub max_residual: Vec<f64>,
}

/// A projection to take along with the residuals.
pub struct Projected<'a> {
    /// φ, q × d.
    pub phi: &'a Phi,
    /// Where z = φ r goes, n × q. If weights are by cell, z = φ (w r).
    pub z: &'a mut [f32],
    /// Needed if weights are by cell, else not used.
    pub shares: Option<Shares<'a>>,
}

/// The weight of each row in each component.
pub struct Shares<'a> {
    /// The weights that components give to outputs, see [`Phi::shares`].
    pub phi: &'a Phi,
    /// Where the weights ω of components go, n × q.
    pub omega: &'a mut [f32],
}

/// Adds an update to `raw` (n × d), if there is one, takes the residuals there into `residuals`
/// (n × d), and projects them.
pub fn advance(
    pool: &Pool,
    objective: Objective<'_>,
    raw: &mut [f32],
    residuals: &mut [f32],
    update: Option<Update<'_>>,
    projected: Option<Projected<'_>>,
) -> Result<Pass> {
    let losses = RowLosses::new(pool, objective)?;
    Advance { losses, update }.run(pool, raw, residuals, projected)
}

/// Elementary operations for a cell.
const CELL_WORK: usize = 4;

/// The pass.
struct Advance<'a> {
    losses: RowLosses<'a>,
    update: Option<Update<'a>>,
}

/// Rows that one thread advances.
struct Stretch<'a> {
    rows: Range<usize>,
    raw: &'a mut [f32],
    residuals: &'a mut [f32],
    z: &'a mut [f32],
    omega: &'a mut [f32],
}

impl Advance<'_> {
    fn run(
        &self,
        pool: &Pool,
        raw: &mut [f32],
        residuals: &mut [f32],
        projected: Option<Projected<'_>>,
    ) -> Result<Pass> {
        let Objective { n_rows: n, weights, .. } = self.losses.objective;
        let d = self.losses.objective.n_outputs();
        let (mut phi, mut shares) = (None, None);
        let (mut z, mut omega) = (&mut [][..], &mut [][..]);
        if let Some(projected) = projected {
            (phi, z) = (Some(projected.phi), projected.z);
            if let Some(by_cell) = projected.shares.filter(|_| weights.by_cell()) {
                (shares, omega) = (Some(by_cell.phi), by_cell.omega);
            }
        }
        let per_row = |values: &[f32]| values.len().checked_div(n).unwrap_or(0);
        let (q, q_shares) = (per_row(z), per_row(omega));
        let work =
            d * CELL_WORK + [phi, shares].iter().flatten().map(|phi| phi.work()).sum::<usize>();
        let (mut raw, mut residuals) = (raw, residuals);
        let mut stretches = Vec::new();
        for rows in pool.row_ranges(n, work) {
            stretches.push(Stretch {
                raw: take_front(&mut raw, rows.len() * d),
                residuals: take_front(&mut residuals, rows.len() * d),
                z: take_front(&mut z, rows.len() * q),
                omega: take_front(&mut omega, rows.len() * q_shares),
                rows,
            });
        }
        let parts = pool.map(stretches, n * work, |stretch| {
            widest(
                #[inline(always)]
                || self.stretch(stretch, phi, shares),
            )
        })?;
        let (sums, maxima): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let mut max = largest_here(maxima, d)?;
        let loss = ExactSum::merged(pool, &sums, &mut [], &mut max)?;
        let real = |max: f64| max * self.losses.scale.unit;
        Ok(Pass { loss, max_residual: max.into_iter().map(real).collect() })
    }

    #[inline(always)]
    fn stretch(
        &self,
        stretch: Stretch<'_>,
        phi: Option<&Phi>,
        shares: Option<&Phi>,
    ) -> (ExactSum, Vec<f32>) {
        let d = self.losses.objective.n_outputs();
        let Stretch { rows, raw, residuals, z, omega } = stretch;
        let (unit, by_cell) = (self.losses.scale.unit, self.losses.objective.weights.by_cell());
        let (mut sum, mut max) = (ExactSum::default(), ColumnMaxima::new(d));
        let mut block = self.losses.room();
        // Weighted residuals are known for a block of rows at a time only.
        let later = !by_cell && phi.is_some_and(Phi::wants_many_rows);
        for of_block in self.losses.blocks(rows.clone()) {
            let (start, n) = (of_block.start - rows.start, of_block.len());
            let raw = &mut raw[start * d..(start + n) * d];
            let out = &mut residuals[start * d..(start + n) * d];
            if let Some(Update { leaf_of_row, values }) = self.update {
                let leaves = &leaf_of_row[of_block.clone()];
                for (&leaf, raw) in leaves.iter().zip(raw.chunks_exact_mut(d)) {
                    add_leaf(values, leaf as usize, raw);
                }
            }
            self.losses.residuals(of_block, raw, out, &mut block);
            let residuals = if by_cell { &block.weighted[..n * d] } else { out };
            block.losses[..n].iter().for_each(|&loss| sum.add(loss));
            if block.factors[..n].iter().all(|&factor| factor == 1.0) {
                max.raise(residuals, 1.0);
            } else {
                let rows = residuals.chunks_exact(d).zip(&block.factors);
                rows.for_each(|(residuals, &factor)| max.raise(residuals, factor));
            }
            if let Some(phi) = phi.filter(|_| !later) {
                let z = &mut z[start * phi.n_components()..][..n * phi.n_components()];
                apply(phi, residuals, d, z, by_cell.then_some(unit));
            }
            if let Some(shares) = shares {
                let q = shares.n_components();
                let omega = &mut omega[start * q..(start + n) * q];
                apply(shares, &block.weights[..n * d], d, omega, Some(unit));
            }
        }
        if let Some(phi) = phi.filter(|_| later) {
            phi.apply(residuals, d, z);
        }
        (sum, max.columns())
    }
}

/// Projects the cells of rows; what was scaled becomes real again by `unit`.
#[inline(always)]
fn apply(phi: &Phi, cells: &[f32], d: usize, into: &mut [f32], unit: Option<f64>) {
    phi.apply(cells, d, into);
    if let Some(unit) = unit {
        into.iter_mut().for_each(|v| *v = (f64::from(*v) * unit) as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::{Loss, Losses, Targets};
    use crate::weights::Weights;

    #[test]
    fn softmax_residuals_sum_to_zero() {
        let mut raw = [0.3f32, -1.0, 2.0, 90.0, -80.0, 0.0];
        let mut out = [0.0f32; 6];
        let losses = Losses::new(&[Loss::Softmax; 3], vec![0.0; 3], vec![0.0; 3]).unwrap();
        let targets = Targets::Classes(&[2, 0]);
        let objective = Objective::new(&losses, targets, Weights::default(), 2).unwrap();
        let pass = advance(&Pool::serial(), objective, &mut raw, &mut out, None, None).unwrap();
        for row in out.chunks(3) {
            assert!(row.iter().sum::<f32>().abs() < 1e-6);
        }
        assert!(pass.loss > 0.0 && pass.loss < 1.0);
    }
}
