//! Steps: the loss of every output along the direction of a new tree.
//!
//! Kernels only; the caller decides how to search for the minimum. A direction gives every row one
//! number or one per output. It comes as leaf values or as a dense array.

mod derivatives;
mod dots;
mod quantiles;
mod softmax;

pub use derivatives::{Along, derivatives};
pub use dots::dots;
pub use quantiles::quantile_steps;
pub use softmax::softmax_along;

use crate::error::Result;
use crate::parallel::Pool;
use crate::reduce::exchange;

/// Where a new tree (or other weak learner) would move the raw predictions.
#[derive(Debug, Clone, Copy)]
pub struct Direction<'a> {
    /// The leaf of each row; `None` if `values` has a row for each row.
    pub leaf_of_row: Option<&'a [u32]>,
    /// Values, row-major.
    pub values: &'a [f32],
    /// Number of columns: 1 serves all outputs.
    pub width: usize,
}

impl Direction<'_> {
    #[inline(always)]
    fn row(&self, i: usize) -> &[f32] {
        let at = self.leaf_of_row.map_or(i, |leaves| leaves[i] as usize);
        &self.values[at * self.width..(at + 1) * self.width]
    }

    /// Largest |value| for each of `n_outputs` outputs. Leaf values are the same on all machines.
    fn max(&self, pool: &Pool, n_outputs: usize) -> Result<Vec<f64>> {
        let mut max = vec![0.0f64; self.width];
        for row in self.values.chunks_exact(self.width) {
            max.iter_mut().zip(row).for_each(|(m, &v)| *m = m.max(f64::from(v.abs())));
        }
        if self.leaf_of_row.is_none() {
            exchange(pool, &mut [], &mut max)?;
        }
        Ok(if self.width == 1 { vec![max[0]; n_outputs] } else { max })
    }
}

/// The k-th of a direction's values for a row; a single value serves all outputs.
#[inline(always)]
fn pick(row: &[f32], k: usize) -> f32 {
    if row.len() == 1 { row[0] } else { row[k] }
}

/// The prediction of a cell after a step.
#[inline(always)]
fn moved(offset: f32, raw: f32, rho: f64, g: f32) -> f32 {
    offset + raw + (rho * f64::from(g)) as f32
}
