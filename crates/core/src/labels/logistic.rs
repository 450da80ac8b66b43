//! The log loss of very many labels, from the cells that its derivatives depend on.
//!
//! An output that is no label of a row, and that no tree has moved there, has the residual −p, with p
//! the probability of its baseline b: one number for all such rows. So only the other cells are
//! visited, which are the labels of a row and the outputs that its leaves have values for. Nothing is
//! approximated.

use super::leaves::{OfOutput, by_leaf, keep_best};
use super::projected::{ROWS_AT_ONCE, by_output, dot};
use super::{LabelRows, LeafSums};
use crate::ensemble::{Ensemble, Kind};
use crate::error::{Result, invalid};
use crate::losses::curvature_of_probability;
use crate::math;
use crate::memory::{collected, zeros};
use crate::parallel::{Pool, take_front};

/// What a pass over rows with the log loss needs to know.
#[derive(Debug, Clone, Copy)]
pub struct LogRows<'a> {
    /// The trees that the rows were put into.
    pub model: &'a Ensemble,
    /// Raw predictions before the first tree.
    pub baseline: &'a [f32],
    /// Weights of the rows; without them all are 1.
    pub rows: Option<&'a [f32]>,
}

impl LogRows<'_> {
    fn weight(&self, row: usize) -> f64 {
        self.rows.map_or(1.0, |rows| f64::from(rows[row]))
    }

    /// The residual of each output where it is absent and no tree has moved it.
    fn resting(&self) -> Result<Vec<f32>> {
        collected(self.baseline.len(), self.baseline.iter().map(|&b| residual_and_loss(false, b).0))
    }
}

/// Residual and log loss of a cell with raw prediction f, in the steps of the dense loss.
#[inline(always)]
fn residual_and_loss(is_present: bool, f: f32) -> (f32, f32) {
    let wrong = if is_present { -f } else { f };
    let e = math::exp_down(-wrong.abs());
    let size = (if wrong > 0.0 { 1.0 } else { e }) / (1.0 + e);
    (if is_present { size } else { -size }, wrong.max(0.0) + math::ln_1p_unit(e))
}

/// The cells of one row that are not at rest.
struct Cells {
    /// Of all outputs; those that were not visited are stale.
    raw: Vec<f32>,
    /// The visit that last touched an output, and the one that last found it to be a label.
    touched_by: Vec<u32>,
    label_by: Vec<u32>,
    touched: Vec<u32>,
    /// The visit that last found an output to have a weight of its own in the row, and this weight.
    weighted_by: Vec<u32>,
    weights: Vec<f32>,
    visit: u32,
}

impl Cells {
    fn new(n_outputs: usize, marked: bool) -> Result<Cells> {
        let weighted = if marked { n_outputs } else { 0 };
        Ok(Cells {
            raw: zeros(n_outputs)?,
            touched_by: zeros(n_outputs)?,
            label_by: zeros(n_outputs)?,
            touched: Vec::new(),
            weighted_by: zeros(weighted)?,
            weights: zeros(weighted)?,
            visit: 0,
        })
    }

    #[inline(always)]
    fn add(&mut self, output: u32, value: f32, baseline: &[f32]) {
        let place = output as usize;
        if self.touched_by[place] == self.visit {
            self.raw[place] += value;
        } else {
            self.touched_by[place] = self.visit;
            self.raw[place] = baseline[place] + value;
            self.touched.push(output);
        }
    }

    /// Finds the cells of a row, with raw predictions that are added up as those of all outputs are.
    fn visit(&mut self, labels: &LabelRows, log: &LogRows<'_>, row: usize) {
        self.touched.clear();
        self.visit += 1; // fewer than rows, which are fewer than 2³²
        for (tree, place) in labels.places.iter().enumerate() {
            let (outputs, values) = log.model.sparse_leaf(tree, place.of(row));
            for (&output, &value) in outputs.iter().zip(values) {
                self.add(output, value, log.baseline);
            }
        }
        for &label in labels.labels_of(row) {
            self.add(label, 0.0, log.baseline);
            self.label_by[label as usize] = self.visit;
        }
        for cell in labels.marked_of(row) {
            self.add(cell.output, 0.0, log.baseline);
            self.weighted_by[cell.output as usize] = self.visit;
            self.weights[cell.output as usize] = cell.weight;
        }
    }

    /// Weight, residual and log loss of an output that was touched.
    #[inline(always)]
    fn of(&self, output: u32) -> (f64, f32, f32) {
        let place = output as usize;
        let is_weighted = self.weighted_by.get(place) == Some(&self.visit);
        let weight = if is_weighted { f64::from(self.weights[place]) } else { 1.0 };
        let (residual, loss) =
            residual_and_loss(self.label_by[place] == self.visit, self.raw[place]);
        (weight, residual, loss)
    }
}

/// Sums of one leaf in the making, less those of cells at rest.
struct Sums {
    cells: Cells,
    residuals: Vec<f64>,
    curvatures: Vec<f64>,
    /// The leaf, counted from 1, that last added to an output.
    added_by: Vec<u32>,
    touched: Vec<u32>,
    /// Weight of the cells of an output less that of their rows, if cells have weights.
    excess: Vec<f64>,
}

impl Sums {
    fn new(n_outputs: usize, marked: bool) -> Result<Sums> {
        Ok(Sums {
            cells: Cells::new(n_outputs, marked)?,
            residuals: zeros(n_outputs)?,
            curvatures: zeros(n_outputs)?,
            added_by: zeros(n_outputs)?,
            touched: Vec::new(),
            excess: zeros(if marked { n_outputs } else { 0 })?,
        })
    }

    #[inline(always)]
    fn add(&mut self, leaf: u32, output: u32, residual: f64, curvature: f64) {
        let place = output as usize;
        if self.added_by[place] != leaf {
            self.added_by[place] = leaf;
            (self.residuals[place], self.curvatures[place]) = (0.0, 0.0);
            self.touched.push(output);
            if let Some(excess) = self.excess.get_mut(place) {
                *excess = 0.0;
            }
        }
        self.residuals[place] += residual;
        self.curvatures[place] += curvature;
    }

    /// Output, Σ w r and Σ w p (1 − p) in a leaf of weight `total`.
    fn of(&self, leaf: u32, output: u32, resting: &[f32], total: f64) -> OfOutput {
        let (place, at_rest) = (output as usize, resting[output as usize]);
        let mut residual = f64::from(at_rest) * total;
        let mut curvature = f64::from(curvature_of_probability(at_rest)) * total;
        if self.added_by[place] == leaf {
            residual += self.residuals[place];
            curvature += self.curvatures[place];
            // All labels of the output are missing.
            if self.excess.get(place).is_some_and(|excess| total + excess <= 0.0) {
                return (output, 0.0, 0.0);
            }
        }
        (output, residual, curvature.max(0.0))
    }
}

impl LabelRows {
    /// The log loss, summed over all outputs and weighted rows. Writes φ (c r) into `z` (n × q) for a
    /// projection φ (q × d), if there is one, and weights c of cells.
    pub fn log_loss(
        &self,
        pool: &Pool,
        log: LogRows<'_>,
        projection: Option<(&[f32], &mut [f32])>,
    ) -> Result<f64> {
        self.check_log(&log)?;
        let (n, d) = (self.n_rows(), self.n_outputs);
        let (phi, z) = projection.unwrap_or_default();
        let q = phi.len() / d.max(1);
        if phi.len() != q * d || z.len() != n * q {
            return invalid("the projection does not fit the rows and outputs");
        }
        let resting = log.resting()?;
        let constants: Vec<f64> = phi.chunks(d.max(1)).map(|phi| dot(phi, &resting)).collect();
        let losses_at_rest: Vec<f64> =
            log.baseline.iter().map(|&b| f64::from(residual_and_loss(false, b).1)).collect();
        let at_rest: f64 = losses_at_rest.iter().sum();
        let phi = by_output(phi, d)?;
        let mut rest = z;
        let mut blocks = Vec::new();
        for first in (0..n).step_by(ROWS_AT_ONCE) {
            let rows = first..(first + ROWS_AT_ONCE).min(n);
            let z = take_front(&mut rest, rows.len() * q);
            blocks.push((rows, z));
        }
        let start = || Ok((Cells::new(d, self.marked.is_some())?, Vec::new()));
        let work = self.work_of_log(&log);
        let parts = pool.fold(blocks, work, start, |(cells, losses), (rows, z)| {
            let (first, mut loss) = (rows.start, 0.0);
            let mut sums = zeros::<f64>(q)?;
            for row in rows {
                cells.visit(self, &log, row);
                sums.copy_from_slice(&constants);
                let mut of_row = at_rest;
                for &output in &cells.touched {
                    let place = output as usize;
                    let (weight, residual, moved) = cells.of(output);
                    of_row += weight * f64::from(moved) - losses_at_rest[place];
                    let change = weight * f64::from(residual) - f64::from(resting[place]);
                    let phi = &phi[place * q..][..q];
                    sums.iter_mut()
                        .zip(phi)
                        .for_each(|(sum, &phi)| *sum += f64::from(phi) * change);
                }
                loss += log.weight(row) * of_row;
                let z = &mut z[(row - first) * q..][..q];
                z.iter_mut().zip(&sums).for_each(|(z, &sum)| *z = sum as f32);
            }
            losses.push((first, loss));
            Ok(())
        })?;
        // In the order of the rows, whatever thread took which.
        let mut losses: Vec<(usize, f64)> = parts.into_iter().flat_map(|(_, l)| l).collect();
        losses.sort_unstable_by_key(|&(first, _)| first);
        Ok(losses.iter().map(|(_, loss)| loss).sum())
    }

    /// Σ w r and Σ w p (1 − p) over the rows of each leaf for the `most` outputs that gain most, that
    /// is of the largest (Σ w r)² / (Σ w p (1 − p) + λ); of equals those that come first. `order` has
    /// the outputs by descending baseline.
    pub fn log_leaf_sums(
        &self,
        pool: &Pool,
        log: LogRows<'_>,
        leaf_of_row: &[u32],
        n_leaves: usize,
        (order, most, damping): (&[u32], usize, f64),
    ) -> Result<LeafSums> {
        self.check_log(&log)?;
        self.check(leaf_of_row, n_leaves, None)?;
        if order.iter().any(|&output| output as usize >= self.n_outputs) {
            return invalid("the order of the outputs names some that do not exist");
        }
        let (starts, rows) = by_leaf(leaf_of_row, n_leaves)?;
        let resting = log.resting()?;
        let mut leaves: Vec<Vec<OfOutput>> = vec![Vec::new(); n_leaves];
        let start = || Sums::new(self.n_outputs, self.marked.is_some());
        let items = leaves.iter_mut().enumerate();
        pool.fold(items, self.work_of_log(&log), start, |sums, (leaf, kept)| {
            let rows = &rows[starts[leaf]..starts[leaf + 1]];
            let leaf = leaf as u32 + 1;
            let total = self.sum_leaf_of_log(&log, &resting, leaf, rows, sums);
            let others = order.iter().filter(|&&output| sums.added_by[output as usize] != leaf);
            let candidates = sums.touched.iter().chain(others.take(most));
            let with_sums = candidates.map(|&output| sums.of(leaf, output, &resting, total));
            keep_best(kept, with_sums, most, damping);
            Ok(())
        })?;
        LeafSums::of(&leaves)
    }

    /// Sums the cells of some rows, less what they are at rest; returns the weight of the rows.
    fn sum_leaf_of_log(
        &self,
        log: &LogRows<'_>,
        resting: &[f32],
        leaf: u32,
        rows: &[u32],
        sums: &mut Sums,
    ) -> f64 {
        sums.touched.clear();
        let mut total = 0.0;
        for &row in rows {
            let weight = log.weight(row as usize);
            total += weight;
            if weight == 0.0 {
                continue;
            }
            sums.cells.visit(self, log, row as usize);
            for k in 0..sums.cells.touched.len() {
                let output = sums.cells.touched[k];
                let (cell, residual, _) = sums.cells.of(output);
                let at_rest = resting[output as usize];
                let change = cell * f64::from(residual) - f64::from(at_rest);
                let curvature = cell * f64::from(curvature_of_probability(residual))
                    - f64::from(curvature_of_probability(at_rest));
                sums.add(leaf, output, weight * change, weight * curvature);
                if let Some(excess) = sums.excess.get_mut(output as usize) {
                    *excess += weight * (cell - 1.0);
                }
            }
        }
        total
    }

    /// Additions of a pass over all rows.
    fn work_of_log(&self, log: &LogRows<'_>) -> usize {
        let per_leaf = log.model.values.len() / log.model.leaf_starts.len();
        self.n_rows() * (self.n_trees() * (4 + per_leaf) + 1) + self.labels.len()
    }

    fn check_log(&self, log: &LogRows<'_>) -> Result<()> {
        let LogRows { model, baseline, rows } = log;
        let fits = model.n_outputs == self.n_outputs && model.n_trees() >= self.n_trees();
        if model.kind != Kind::Sparse || !fits {
            return invalid("the trees are not those that the rows were put into");
        }
        let weighted = rows.is_none_or(|rows| rows.len() == self.n_rows());
        match baseline.len() == self.n_outputs && weighted {
            true => Ok(()),
            false => invalid("there are too few or too many weights or outputs"),
        }
    }
}
