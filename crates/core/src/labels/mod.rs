//! Rows with very many labels, of which each has a few.
//!
//! Raw predictions of all outputs never exist. What a row is predicted follows from the leaves that it
//! is in and from the trees themselves: f = b + Σ v_t(leaf_t). So the state of training is one small
//! number for each row and tree, and residuals are known by their projections and sums alone, since
//! the squared error is linear in them: r = y − f with labels of ±1, that is y = 2p − 1 for p of 0
//! and 1. With the baseline b, the part of r that no tree changes is 2p − (1 + b).
//!
//! Sums over rows are taken in the order of the rows, by one thread for each sum: they do not depend
//! on the number of threads. Rows are not spread over several machines.
//!
//! A cell has the weight of its row, unless it is marked.

mod leaves;
mod logistic;
mod marked;
mod places;
mod projected;
mod slopes;

pub use leaves::LeafSums;
pub use logistic::LogRows;

use crate::ensemble::Ensemble;
use crate::error::{Result, invalid};
use crate::memory::zeros;
use crate::parallel::Pool;
use marked::Marked;
use places::Place;

/// Outputs that one piece of work sums.
const OUTPUTS_AT_ONCE: usize = 4096;

/// Rows, their labels, and the leaves that they are in.
#[derive(Debug, Clone)]
pub struct LabelRows {
    /// Number of outputs.
    pub n_outputs: usize,
    /// First label of each row, and one past the last.
    starts: Vec<usize>,
    /// Labels of the rows.
    labels: Vec<u32>,
    /// First row of each label, and one past the last.
    row_starts: Vec<usize>,
    /// Rows of the labels, ascending.
    rows: Vec<u32>,
    /// The leaf of each row, tree by tree.
    places: Vec<Place>,
    /// Cells with a weight of their own, if there are any.
    marked: Option<Marked>,
}

/// What sums over rows are taken with.
#[derive(Debug, Clone, Copy)]
pub struct Weighted<'a> {
    /// Weights of the rows; without them all are 1.
    pub rows: Option<&'a [f32]>,
    /// 1 + b for the baseline b of each output.
    pub start: &'a [f64],
}

impl Weighted<'_> {
    #[inline]
    fn of(&self, row: usize) -> f64 {
        self.rows.map_or(1.0, |rows| f64::from(rows[row]))
    }
}

impl LabelRows {
    /// Rows whose labels, ascending, are stored one row after the other.
    pub fn new(n_outputs: usize, starts: &[i64], labels: &[i32]) -> Result<LabelRows> {
        let fits = starts.first() == Some(&0)
            && starts.last() == Some(&(labels.len() as i64))
            && starts.windows(2).all(|pair| pair[0] <= pair[1])
            && starts.len() <= u32::MAX as usize;
        if !fits {
            return invalid("the labels have starts that do not fit them");
        }
        let mut own = zeros::<usize>(starts.len())?;
        own.iter_mut().zip(starts).for_each(|(own, &start)| *own = start as usize);
        for pair in own.windows(2) {
            let row = &labels[pair[0]..pair[1]];
            let in_order = row.windows(2).all(|pair| pair[0] < pair[1]);
            let first = row.first().is_none_or(|&label| label >= 0);
            if !in_order || !first || row.last().is_some_and(|&l| l as usize >= n_outputs) {
                return invalid("the labels of a row do not ascend, or do not exist");
            }
        }
        let mut numbers = zeros::<u32>(labels.len())?;
        numbers.iter_mut().zip(labels).for_each(|(own, &label)| *own = label as u32);
        let mut row_starts = zeros::<usize>(n_outputs + 1)?;
        numbers.iter().for_each(|&label| row_starts[label as usize + 1] += 1);
        for j in 0..n_outputs {
            row_starts[j + 1] += row_starts[j];
        }
        let (mut rows, mut next) = (zeros::<u32>(labels.len())?, row_starts.clone());
        for (row, pair) in own.windows(2).enumerate() {
            for &label in &numbers[pair[0]..pair[1]] {
                rows[next[label as usize]] = row as u32;
                next[label as usize] += 1;
            }
        }
        Ok(LabelRows {
            n_outputs,
            starts: own,
            labels: numbers,
            row_starts,
            rows,
            places: Vec::new(),
            marked: None,
        })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of trees that the rows were put into.
    pub fn n_trees(&self) -> usize {
        self.places.len()
    }

    /// Puts the rows into the leaves of the next tree of a model.
    pub fn push(&mut self, model: &Ensemble, leaf_of_row: &[u32], n_leaves: usize) -> Result<()> {
        self.check(leaf_of_row, n_leaves, None)?;
        self.move_marked(model, leaf_of_row)?;
        self.places.push(Place::new(leaf_of_row, n_leaves)?);
        Ok(())
    }

    /// For each output the sum of numbers over the rows that have it as a label.
    fn label_sums(&self, pool: &Pool, of_rows: &[f64]) -> Result<Vec<f64>> {
        let mut sums = zeros::<f64>(self.n_outputs)?;
        let work = self.labels.len() + self.n_outputs;
        let blocks = sums.chunks_mut(OUTPUTS_AT_ONCE).enumerate();
        pool.for_each(blocks, work, |(block, sums)| {
            let first = block * OUTPUTS_AT_ONCE;
            for (j, sum) in sums.iter_mut().enumerate() {
                let rows = self.row_starts[first + j]..self.row_starts[first + j + 1];
                *sum = self.rows[rows].iter().map(|&row| of_rows[row as usize]).sum();
            }
        })?;
        Ok(sums)
    }

    fn labels_of(&self, row: usize) -> &[u32] {
        &self.labels[self.starts[row]..self.starts[row + 1]]
    }

    fn check(
        &self,
        leaf_of_row: &[u32],
        n_leaves: usize,
        weighted: Option<Weighted<'_>>,
    ) -> Result<()> {
        let n = self.n_rows();
        if leaf_of_row.len() != n || leaf_of_row.iter().any(|&leaf| leaf as usize >= n_leaves) {
            return invalid("rows are in leaves that do not exist, or in none");
        }
        let fits = weighted.is_none_or(|weighted| {
            weighted.start.len() == self.n_outputs
                && weighted.rows.is_none_or(|rows| rows.len() == n)
        });
        if fits { Ok(()) } else { invalid("there are too few or too many weights or outputs") }
    }
}

#[cfg(test)]
mod tests;
