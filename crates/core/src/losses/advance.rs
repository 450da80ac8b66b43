//! The pass over all cells that ends a round and begins the next.
//!
//! It adds leaf values to the state, takes the residuals there, and projects them, block of rows by
//! block of rows while these are in cache.

use std::ops::Range;

use super::Objective;
use super::fold;
use super::rows::{Block, RowLosses, rows_per_block};
use crate::error::Result;
use crate::leaf::{LeafValues, Update, add_leaf, subtract_leaf};
use crate::lowlevel::widest;
use crate::parallel::Pool;
use crate::projection::Phi;
use crate::reduce::{ColumnMaxima, ExactSum, FixedPoint, largest_here};
use crate::weights::Weights;

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
    let rows = RowLosses::new(pool, objective)?;
    Advance { source: &rows, update, d: objective.n_outputs() }.run(pool, raw, residuals, projected)
}

/// [`advance`] for squared error, where the residuals are all the state: they are moved by −leaf
/// values in place.
pub fn advance_residuals(
    pool: &Pool,
    n_outputs: usize,
    weight: Option<&[f32]>,
    residuals: &mut [f32],
    update: Option<Update<'_>>,
    projected: Option<Projected<'_>>,
) -> Result<Pass> {
    let scale = Weights::of_rows(weight).scale(pool)?;
    let source = ResidualRows { weight, scale, d: n_outputs };
    Advance { source: &source, update, d: n_outputs }.run(pool, residuals, &mut [], projected)
}

/// Where the residuals of a pass come from.
trait ResidualSource: Sync {
    /// Elementary operations for a cell.
    const WORK: usize;
    /// The scale of weights.
    fn scale(&self) -> FixedPoint;
    /// Whether [`Block::weights`] and [`Block::weighted`] are in use.
    fn by_cell(&self) -> bool;
    fn room(&self) -> Block;
    /// Moves the state of a row to what it is after an update.
    fn update(values: LeafValues<'_>, leaf: usize, state: &mut [f32]);
    /// Takes the residuals of some rows into `out`, unless they are the state itself, and what
    /// [`Block`] says of them.
    fn take(&self, rows: Range<usize>, state: &[f32], out: &mut [f32], block: &mut Block);
    /// Where the residuals are.
    fn residuals<'b>(state: &'b [f32], out: &'b [f32]) -> &'b [f32];
}

impl ResidualSource for RowLosses<'_> {
    const WORK: usize = 4;

    fn scale(&self) -> FixedPoint {
        self.scale
    }

    fn by_cell(&self) -> bool {
        self.objective.weights.by_cell()
    }

    fn room(&self) -> Block {
        RowLosses::room(self)
    }

    #[inline(always)]
    fn update(values: LeafValues<'_>, leaf: usize, state: &mut [f32]) {
        add_leaf(values, leaf, state);
    }

    fn take(&self, rows: Range<usize>, state: &[f32], out: &mut [f32], block: &mut Block) {
        RowLosses::residuals(self, rows, state, out, block);
    }

    #[inline(always)]
    fn residuals<'b>(_state: &'b [f32], out: &'b [f32]) -> &'b [f32] {
        out
    }
}

/// Squared error, whose state is the residuals.
struct ResidualRows<'a> {
    weight: Option<&'a [f32]>,
    scale: FixedPoint,
    d: usize,
}

impl ResidualSource for ResidualRows<'_> {
    const WORK: usize = 2;

    fn scale(&self) -> FixedPoint {
        self.scale
    }

    fn by_cell(&self) -> bool {
        false
    }

    fn room(&self) -> Block {
        Block::of_rows(rows_per_block(self.d))
    }

    #[inline(always)]
    fn update(values: LeafValues<'_>, leaf: usize, state: &mut [f32]) {
        subtract_leaf(values, leaf, state);
    }

    #[inline(always)]
    fn take(&self, rows: Range<usize>, state: &[f32], _out: &mut [f32], block: &mut Block) {
        for (row, (i, residuals)) in rows.zip(state.chunks_exact(self.d)).enumerate() {
            let weight = self.weight.map_or(1.0, |w| f64::from(w[i]));
            block.losses[row] = 0.5 * fold::sum_of_squares(residuals) * weight;
            block.factors[row] = (weight * self.scale.scale) as f32;
        }
    }

    #[inline(always)]
    fn residuals<'b>(state: &'b [f32], _out: &'b [f32]) -> &'b [f32] {
        state
    }
}

/// The pass.
struct Advance<'a, S> {
    source: &'a S,
    update: Option<Update<'a>>,
    d: usize,
}

/// Rows that one thread advances.
struct Stretch<'a> {
    rows: Range<usize>,
    state: &'a mut [f32],
    /// Empty if the state is the residuals.
    residuals: &'a mut [f32],
    z: &'a mut [f32],
    omega: &'a mut [f32],
}

impl<S: ResidualSource> Advance<'_, S> {
    fn run(
        &self,
        pool: &Pool,
        state: &mut [f32],
        residuals: &mut [f32],
        projected: Option<Projected<'_>>,
    ) -> Result<Pass> {
        let d = self.d;
        let n = state.len() / d;
        let (mut phi, mut shares) = (None, None);
        let (mut z, mut omega) = (&mut [][..], &mut [][..]);
        if let Some(projected) = projected {
            (phi, z) = (Some(projected.phi), projected.z);
            if let Some(by_cell) = projected.shares.filter(|_| self.source.by_cell()) {
                (shares, omega) = (Some(by_cell.phi), by_cell.omega);
            }
        }
        let per_row = |values: &[f32]| values.len().checked_div(n).unwrap_or(0);
        let (stored, q, q_shares) = (per_row(residuals), per_row(z), per_row(omega));
        let work =
            d * S::WORK + [phi, shares].iter().flatten().map(|phi| phi.work()).sum::<usize>();
        let (mut state, mut residuals) = (state, residuals);
        let mut stretches = Vec::new();
        for rows in pool.row_ranges(n, work) {
            stretches.push(Stretch {
                state: cut(&mut state, rows.len() * d),
                residuals: cut(&mut residuals, rows.len() * stored),
                z: cut(&mut z, rows.len() * q),
                omega: cut(&mut omega, rows.len() * q_shares),
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
        let mut max = largest_here(maxima, d);
        let loss = ExactSum::merged(pool, &sums, &mut max)?;
        let real = |max: f64| max * self.source.scale().unit;
        Ok(Pass { loss, max_residual: max.into_iter().map(real).collect() })
    }

    #[inline(always)]
    fn stretch(
        &self,
        stretch: Stretch<'_>,
        phi: Option<&Phi>,
        shares: Option<&Phi>,
    ) -> (ExactSum, Vec<f32>) {
        let d = self.d;
        let Stretch { rows, state, residuals, z, omega } = stretch;
        let unit = self.source.scale().unit;
        let (mut sum, mut max) = (ExactSum::default(), ColumnMaxima::new(d));
        let mut block = self.source.room();
        let size = rows_per_block(d);
        let stored = if residuals.is_empty() { 0 } else { d };
        for first in rows.clone().step_by(size) {
            let n = size.min(rows.end - first);
            let start = first - rows.start;
            let state = &mut state[start * d..(start + n) * d];
            let out = &mut residuals[start * stored..(start + n) * stored];
            if let Some(Update { leaf_of_row, values }) = self.update {
                let leaves = &leaf_of_row[first..first + n];
                for (&leaf, state) in leaves.iter().zip(state.chunks_exact_mut(d)) {
                    S::update(values, leaf as usize, state);
                }
            }
            self.source.take(first..first + n, state, out, &mut block);
            let by_cell = self.source.by_cell();
            let residuals = if by_cell { &block.weighted } else { S::residuals(state, out) };
            let residuals = &residuals[..n * d];
            block.losses[..n].iter().for_each(|&loss| sum.add(loss));
            if block.factors[..n].iter().all(|&factor| factor == 1.0) {
                max.raise(residuals, 1.0);
            } else {
                let rows = residuals.chunks_exact(d).zip(&block.factors);
                rows.for_each(|(residuals, &factor)| max.raise(residuals, factor));
            }
            if let Some(phi) = phi {
                let z = &mut z[start * phi.n_components()..][..n * phi.n_components()];
                apply(phi, residuals, d, z, by_cell.then_some(unit));
            }
            if let Some(shares) = shares {
                let q = shares.n_components();
                let omega = &mut omega[start * q..(start + n) * q];
                apply(shares, &block.weights[..n * d], d, omega, Some(unit));
            }
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

/// Takes the first `n` elements off a slice.
pub(super) fn cut<'a, T>(rest: &mut &'a mut [T], n: usize) -> &'a mut [T] {
    let (head, tail) = std::mem::take(rest).split_at_mut(n);
    *rest = tail;
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::{Loss, Losses, Targets};

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
