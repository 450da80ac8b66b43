//! Single cells with a weight of their own; a missing label has none.
//!
//! All other sums take cells with the weight of their row. Here is what the few others add to that:
//! their weight less 1, times what they are. So these cells, and no others, keep what the trees have
//! added to their raw predictions.

use super::{LabelRows, Weighted};
use crate::ensemble::{Ensemble, Kind};
use crate::error::{Result, invalid};
use crate::memory::{room, zeros};

/// Cells with a weight of their own, row by row.
#[derive(Debug, Clone)]
pub(super) struct Marked {
    starts: Vec<usize>,
    cells: Vec<Cell>,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub output: u32,
    /// Its weight, which multiplies that of its row.
    pub weight: f32,
    /// Whether it is a label.
    pub is_label: bool,
    /// What the trees have added to the raw prediction.
    moved: f64,
}

impl Cell {
    /// What the weight is more than 1.
    pub fn excess(&self) -> f64 {
        f64::from(self.weight) - 1.0
    }

    /// r = 2p − (1 + b) − Σ v.
    pub fn residual(&self, start: &[f64]) -> f64 {
        2.0 * f64::from(self.is_label) - start[self.output as usize] - self.moved
    }
}

impl Marked {
    /// The cells of a row, in the order of their outputs.
    pub fn of(&self, row: usize) -> &[Cell] {
        &self.cells[self.starts[row]..self.starts[row + 1]]
    }
}

impl LabelRows {
    /// Gives cells a weight of their own, which multiplies that of their row; zero if the label is
    /// missing. Outputs ascend in each row, and no tree has been grown.
    pub fn mark(&mut self, starts: &[i64], outputs: &[i32], weights: &[f32]) -> Result<()> {
        let cells = LabelRows::new(self.n_outputs, starts, outputs)?;
        let allowed = weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0);
        let fits = cells.n_rows() == self.n_rows() && weights.len() == outputs.len();
        if !allowed || !fits || self.n_trees() > 0 {
            return invalid("the weights of cells do not fit the rows");
        }
        let mut marked = room(weights.len())?;
        for row in 0..self.n_rows() {
            let labels = self.labels_of(row);
            let weights = &weights[cells.starts[row]..cells.starts[row + 1]];
            for (&output, &weight) in cells.labels_of(row).iter().zip(weights) {
                let is_label = labels.binary_search(&output).is_ok();
                marked.push(Cell { output, weight, is_label, moved: 0.0 });
            }
        }
        self.marked = Some(Marked { starts: cells.starts, cells: marked });
        Ok(())
    }

    /// The cells of a row that have a weight of their own.
    pub(super) fn marked_of(&self, row: usize) -> &[Cell] {
        self.marked.as_ref().map_or(&[], |marked| marked.of(row))
    }

    /// Adds what the next tree gives to cells with a weight of their own.
    pub(super) fn move_marked(&mut self, model: &Ensemble, leaf_of_row: &[u32]) -> Result<()> {
        let (tree, d) = (self.n_trees(), self.n_outputs);
        let Some(marked) = &mut self.marked else { return Ok(()) };
        if model.n_outputs != d || model.n_trees() <= tree {
            return invalid("the trees are not those that the rows were put into");
        }
        for (row, &leaf) in leaf_of_row.iter().enumerate() {
            for cell in &mut marked.cells[marked.starts[row]..marked.starts[row + 1]] {
                cell.moved += match model.kind {
                    Kind::Scaled => {
                        let step = model.steps[tree * d + cell.output as usize];
                        f64::from(model.tree_values(tree)[leaf as usize]) * f64::from(step)
                    }
                    Kind::Sparse => {
                        let (outputs, values) = model.sparse_leaf(tree, leaf as usize);
                        let place = outputs.binary_search(&cell.output);
                        place.map_or(0.0, |place| f64::from(values[place]))
                    }
                    Kind::PerOutput | Kind::Vector => {
                        return invalid("such trees are not for sparse labels");
                    }
                };
            }
        }
        Ok(())
    }

    /// Mean weights of the cells of each row, by components of a projection φ (q × d):
    /// Σ φ² w / Σ φ², into `shares` (n × q).
    pub fn cell_shares(&self, phi: &[f32], shares: &mut [f32]) -> Result<()> {
        let d = self.n_outputs;
        let q = phi.len() / d.max(1);
        if phi.len() != q * d || q == 0 || shares.len() != self.n_rows() * q {
            return invalid("the projection does not fit the rows and outputs");
        }
        let square = |phi: f32| f64::from(phi) * f64::from(phi);
        let totals: Vec<f64> =
            phi.chunks(d).map(|phi| phi.iter().map(|&phi| square(phi)).sum()).collect();
        for (row, shares) in shares.chunks_mut(q).enumerate() {
            for (c, share) in shares.iter_mut().enumerate() {
                let cells = self.marked_of(row).iter();
                let excess: f64 = cells
                    .map(|cell| cell.excess() * square(phi[c * d + cell.output as usize]))
                    .sum();
                let total = totals[c];
                *share = if total > 0.0 { (1.0 + excess / total).max(0.0) as f32 } else { 0.0 };
            }
        }
        Ok(())
    }

    /// What cells add to Σ w g² of each output, where g is the value of a row's leaf.
    pub fn marked_squares(
        &self,
        leaf_of_row: &[u32],
        values: &[f64],
        rows: Option<&[f32]>,
    ) -> Result<Vec<f64>> {
        self.check(leaf_of_row, values.len(), None)?;
        if rows.is_some_and(|rows| rows.len() != self.n_rows()) {
            return invalid("there are too few or too many weights or outputs");
        }
        let mut squares = zeros::<f64>(self.n_outputs)?;
        for (row, &leaf) in leaf_of_row.iter().enumerate() {
            let weight = rows.map_or(1.0, |rows| f64::from(rows[row]));
            let square = weight * values[leaf as usize] * values[leaf as usize];
            for cell in self.marked_of(row) {
                squares[cell.output as usize] += cell.excess() * square;
            }
        }
        Ok(squares)
    }

    /// Adds what cells add to Σ w r g, where `along` is w g of each row.
    pub(super) fn add_marked_slopes(
        &self,
        along: &[f64],
        weighted: Weighted<'_>,
        slopes: &mut [f64],
    ) {
        for (row, along) in along.iter().enumerate() {
            for cell in self.marked_of(row) {
                slopes[cell.output as usize] +=
                    along * cell.excess() * cell.residual(weighted.start);
            }
        }
    }
}
