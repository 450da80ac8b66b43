//! Weights of rows and of single cells, and cells without a target.
//!
//! A missing target is NaN among real ones and [`MISSING_LABEL`] among labels. Such a cell has
//! no weight, residual, curvature or loss. A weight of zero and a missing target mean the same, so
//! callers turn the former into the latter.

use crate::error::{Result, invalid};
use crate::lowlevel::widest;
use crate::memory::{collected, zeros};
use crate::outputs::Outputs;
use crate::parallel::Pool;
use crate::reduce::{ColumnMaxima, FixedPoint, exchange, largest};

/// The code of a missing 0/1 label.
pub const MISSING_LABEL: u8 = u8::MAX;

/// A target as it is stored.
pub trait Cell: Copy + Default + Send + Sync + Into<f64> {
    /// Whether the target is missing.
    fn is_missing(self) -> bool;
}

impl Cell for f64 {
    #[inline(always)]
    fn is_missing(self) -> bool {
        self.is_nan()
    }
}

impl Cell for f32 {
    #[inline(always)]
    fn is_missing(self) -> bool {
        self.is_nan()
    }
}

impl Cell for u8 {
    #[inline(always)]
    fn is_missing(self) -> bool {
        self == MISSING_LABEL
    }
}

/// Weights. The weight of a cell is the product of those given.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weights<'a> {
    /// One for each row.
    pub rows: Option<&'a [f32]>,
    /// One for each cell, row-major.
    pub cells: Option<&'a [f32]>,
    /// Whether targets are missing.
    pub partial: bool,
}

impl<'a> Weights<'a> {
    /// Weights of rows alone, or none.
    pub fn of_rows(rows: Option<&'a [f32]>) -> Weights<'a> {
        Weights { rows, cells: None, partial: false }
    }

    /// An error unless the weights fit n × d cells.
    pub fn check(&self, n_rows: usize, n_outputs: usize) -> Result<()> {
        for (name, given, expected) in
            [("rows", self.rows, n_rows), ("cells", self.cells, n_rows * n_outputs)]
        {
            let len = given.map_or(expected, <[f32]>::len);
            if len != expected {
                return invalid(format!("weights.{name} has {len} elements, expected {expected}"));
            }
        }
        Ok(())
    }

    /// Whether the cells of a row may differ in weight.
    pub fn by_cell(&self) -> bool {
        self.partial || self.cells.is_some()
    }

    /// Whether all weights are 1.
    pub fn is_trivial(&self) -> bool {
        self.rows.is_none() && !self.by_cell()
    }

    /// Weight of row `i`, without those of its cells.
    #[inline(always)]
    pub fn row(&self, i: usize) -> f64 {
        self.rows.map_or(1.0, |w| f64::from(w[i]))
    }

    /// Weight of the cell of row `i` at `place` in the matrix, if it has a target.
    #[inline(always)]
    pub fn cell(&self, i: usize, place: usize) -> f64 {
        self.row(i) * self.cells.map_or(1.0, |w| f64::from(w[place]))
    }

    /// A cell's target and weight, both 0 if the target is missing.
    #[inline(always)]
    pub fn target<Y: Cell>(&self, i: usize, place: usize, y: Y) -> (Y, f64) {
        if y.is_missing() { (Y::default(), 0.0) } else { (y, self.cell(i, place)) }
    }

    /// The largest weight of the cells of each of `outputs` that have a target, on any machine. The
    /// scale of an output must not depend on heavy rows that have no target for it.
    pub fn max_of_outputs<Y: Cell>(
        &self,
        pool: &Pool,
        y: &[Y],
        outputs: &Outputs,
    ) -> Result<Vec<f64>> {
        if self.cells.is_none() && !(self.partial && self.rows.is_some()) {
            return Ok(vec![self.max(pool)?; outputs.width()]);
        }
        match self.cells {
            Some(cells) if self.rows.is_none() && !self.partial => {
                largest_of_outputs(pool, cells, outputs)
            }
            _ => self.max_of_leaves(pool, y, outputs, 1, |_| 0),
        }
    }

    /// The same in each leaf, n_leaves × outputs.
    pub fn max_of_leaves<Y: Cell>(
        &self,
        pool: &Pool,
        y: &[Y],
        outputs: &Outputs,
        n_leaves: usize,
        leaf_of: impl Fn(usize) -> usize + Sync,
    ) -> Result<Vec<f64>> {
        let (n, width) = (y.len() / outputs.total, outputs.width());
        let size = n_leaves * width;
        if self.rows.is_none() && self.cells.is_none() {
            return collected(size, std::iter::repeat(1.0));
        }
        // A table for each thread, not for each piece: it may be large.
        let (ranges, start) = (pool.row_ranges(n, width * 2), || zeros::<f64>(size));
        let maxima = pool.fold(ranges, n * width * 2, start, |max, rows| {
            for i in rows {
                let first = outputs.row(i).start;
                let max = &mut max[leaf_of(i) * width..][..width];
                for (k, max) in max.iter_mut().enumerate() {
                    let (_, weight) = self.target(i, first + k, y[first + k]);
                    *max = if weight > *max { weight } else { *max };
                }
            }
            Ok(())
        })?;
        largest(pool, maxima, size)
    }

    /// The largest weight that a cell can have, on any machine.
    pub fn max(&self, pool: &Pool) -> Result<f64> {
        if self.rows.is_none() && self.cells.is_none() {
            return Ok(1.0);
        }
        let of = |weights: Option<&[f32]>| weights.map_or(Ok(1.0), |w| largest_weight(pool, w));
        let mut max = [of(self.rows)?, of(self.cells)?];
        exchange(pool, &mut [], &mut max)?;
        Ok(max[0] * max[1])
    }

    /// The power of two that brings all weights below one, so that products with them stay within
    /// single precision. A power of two changes no digit. 1 without weights.
    pub fn scale(&self, pool: &Pool) -> Result<FixedPoint> {
        let weighted = self.rows.is_some() || self.cells.is_some();
        if weighted { FixedPoint::with_bits(self.max(pool)?, 0) } else { Ok(FixedPoint::ONE) }
    }
}

/// The largest weight of each of some outputs, on any machine.
fn largest_of_outputs(pool: &Pool, cells: &[f32], outputs: &Outputs) -> Result<Vec<f64>> {
    let d = outputs.total;
    let n = cells.len() / d;
    let maxima = pool.map(pool.row_ranges(n, d), n * d, |rows| {
        let mut max = ColumnMaxima::new(d);
        widest(
            #[inline(always)]
            || max.raise(&cells[rows.start * d..rows.end * d], 1.0),
        );
        max.columns()[outputs.range.clone()].to_vec()
    })?;
    largest(pool, maxima, outputs.width())
}

fn largest_weight(pool: &Pool, weights: &[f32]) -> Result<f64> {
    let n = weights.len();
    let parts = pool.map(pool.row_ranges(n, 1), n, |part| {
        widest(
            #[inline(always)]
            // On the bits of non-negative floats, which order as they do; those of −0 do not.
            || weights[part].iter().fold(0u32, |m, &w| m.max(w.abs().to_bits())),
        )
    })?;
    Ok(f64::from(f32::from_bits(parts.into_iter().fold(0, u32::max))))
}

/// Runs `$body` with `$weight(k)` bound to the weight of the k-th of the cells `$places` of row `$i`,
/// if it has a target. The body is compiled once for weights of cells and once for those of rows.
#[macro_export]
macro_rules! with_weights {
    ($weights:expr, $i:expr, $places:expr, $weight:ident => $body:expr) => {{
        let row = $weights.row($i);
        match $weights.cells {
            None => {
                let $weight = |_: usize| row;
                $body
            }
            Some(cells) => {
                let cells = &cells[$places];
                let $weight = |k: usize| row * f64::from(cells[k]);
                $body
            }
        }
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_multiply_and_missing_cells_have_none() {
        let (rows, cells) = ([2.0f32, 3.0], [1.0f32, 4.0, 0.5, 1.0]);
        let weights = Weights { rows: Some(&rows), cells: Some(&cells), partial: true };
        assert_eq!(weights.target(0, 1, 7.0f32), (7.0, 8.0));
        assert_eq!(weights.target(1, 2, f32::NAN), (0.0, 0.0));
        assert_eq!(weights.target(1, 2, MISSING_LABEL), (0, 0.0));
        let pool = Pool::serial();
        assert_eq!(weights.max(&pool), Ok(12.0));
        let y = [1.0f32, 0.0, f32::NAN, 1.0];
        assert_eq!(weights.max_of_outputs(&pool, &y, &Outputs::all(2)).unwrap(), [2.0, 8.0]);
        let second = Outputs { total: 2, range: 1..2 };
        assert_eq!(weights.max_of_outputs(&pool, &y, &second).unwrap(), [8.0]);
        let of_rows = Weights { cells: None, ..weights };
        assert_eq!(of_rows.max_of_outputs(&pool, &y, &Outputs::all(2)).unwrap(), [2.0, 3.0]);
        let zero = Weights::of_rows(Some(&[0.25, -0.0]));
        assert_eq!(zero.max(&pool), Ok(0.25));
        assert_eq!(weights.scale(&pool), Ok(FixedPoint { scale: 1.0 / 16.0, unit: 16.0 }));
        assert_eq!(Weights::default().scale(&pool), Ok(FixedPoint::ONE));
        assert_eq!(Weights::default().max(&pool), Ok(1.0));
        assert!(!Weights::of_rows(Some(&rows)).by_cell());
    }
}
