//! Losses: residuals (negative gradients), curvatures and values, cell by cell.
//!
//! The state `raw` is the trees' part of the raw prediction. The offset, one number per output, is
//! added before a formula sees it.
//!
//! - `formula`: the formulas of each loss, for one cell.
//! - `kernels`: the same over many cells, compiled for each instruction set.
//! - `softmax`: the loss that the outputs of a block share.
//! - `rows`: the losses of blocks of rows, with weights and missing targets.
//! - `advance`: the pass that ends a round and begins the next.
//! - `sweep`: the pass of squared error, whose residuals are all the state.
//! - `totals`: losses summed over rows.

mod advance;
mod fold;
mod formula;
mod kernels;
mod rows;
mod softmax;
mod sweep;
mod totals;

use std::ops::Range;

pub use advance::{Pass, Projected, Shares, advance};
pub(crate) use formula::curvature_of_probability;
pub use formula::{Extremes, Pointwise, Target};
pub(crate) use kernels::sum_of_four;
pub use kernels::{CellKernels, CellTargets, Cells, LeafRows, WeightedCells};
pub(crate) use rows::{rows_per_block, tiled};
pub use softmax::softmax_row;
pub use sweep::{Ahead, Sweep, look_ahead};
pub use totals::{curvatures, loss_sum, output_losses};

use crate::error::{Result, invalid};
use crate::weights::{Cell, Weights};

/// The built-in losses. Parameters, which can differ between outputs, are kept beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// ½ (y − f)².
    Squared,
    /// ½ (±1 − f)² for 0/1 labels.
    SquaredLabels,
    /// |y − f|.
    Absolute,
    /// Quadratic up to δ (the parameter), linear beyond.
    Huber,
    /// The pinball loss at a level (the parameter).
    Quantile,
    /// e^f − y f.
    Poisson,
    /// y e^−f + f.
    Gamma,
    /// y e^(−(p−1)f)/(p − 1) + e^((2−p)f)/(2 − p) with a power p (the parameter).
    Tweedie,
    /// ln(1 + e^∓f) for 0/1 labels.
    Logistic,
    /// e^(∓f/2) for 0/1 labels.
    Exponential,
    /// Cross-entropy of the softmax over the outputs of a run, for class numbers or cells of 0 and 1,
    /// one of which is 1.
    Softmax,
}

impl Loss {
    /// The loss over many cells.
    pub fn kernels(self) -> &'static dyn CellKernels {
        match self {
            Loss::Squared => &formula::Squared,
            Loss::SquaredLabels => &formula::SquaredLabels,
            Loss::Absolute => &formula::Absolute,
            Loss::Huber => &formula::Huber,
            Loss::Quantile => &formula::Quantile,
            Loss::Poisson => &formula::Poisson,
            Loss::Gamma => &formula::Gamma,
            Loss::Tweedie => &formula::Tweedie,
            Loss::Logistic => &formula::Logistic,
            Loss::Exponential => &formula::Exponential,
            Loss::Softmax => &softmax::Softmax,
        }
    }
}

/// What a model is trained on, row-major.
#[derive(Debug, Clone, Copy)]
pub enum Targets<'a> {
    /// Real values, n × d.
    Real(&'a [f32]),
    /// 0/1 labels, n × d.
    Labels(&'a [u8]),
    /// Class numbers, n.
    Classes(&'a [u32]),
}

impl Targets<'_> {
    /// Copies the targets at `places` to `out`, missing ones as 0. Class numbers have no cells, and
    /// leave `out` as it is.
    #[inline(always)]
    pub(crate) fn copy(&self, places: Range<usize>, out: &mut [f32]) {
        match self {
            Targets::Real(y) => copy_present(&y[places], out),
            Targets::Labels(y) => copy_present(&y[places], out),
            Targets::Classes(_) => {}
        }
    }
}

#[inline(always)]
fn copy_present<Y: Cell + Into<f32>>(y: &[Y], out: &mut [f32]) {
    for (out, &y) in out.iter_mut().zip(y) {
        let target: f32 = y.into();
        *out = if y.is_missing() { 0.0 } else { target };
    }
}

/// Runs `$body` with `$y` bound to the cells of real or label targets.
#[macro_export]
macro_rules! with_cells {
    ($targets:expr, $y:ident => $body:expr) => {
        match $targets {
            $crate::losses::Targets::Real($y) => $body,
            $crate::losses::Targets::Labels($y) => $body,
            $crate::losses::Targets::Classes(_) => unreachable!("classes belong to softmax"),
        }
    };
}

/// Neighbouring outputs that share a loss. Those of softmax share it in each row, so that two runs of
/// softmax may be neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The loss.
    pub loss: Loss,
    /// The outputs.
    pub outputs: Range<usize>,
}

impl Run {
    /// The runs of a list with one loss per output.
    fn all(losses: &[Loss]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (j, &loss) in losses.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if run.loss == loss => run.outputs.end = j + 1,
                _ => runs.push(Run { loss, outputs: j..j + 1 }),
            }
        }
        runs
    }
}

/// The losses of all outputs with their constants.
#[derive(Debug, Clone)]
pub struct Losses {
    runs: Vec<Run>,
    offset: Vec<f32>,
    param: Vec<f32>,
}

impl Losses {
    /// One loss, one offset of the raw prediction and one parameter for each output. Neighbours of
    /// the same loss form a run.
    pub fn new(losses: &[Loss], offset: Vec<f32>, param: Vec<f32>) -> Result<Losses> {
        Losses::of_runs(Run::all(losses), offset, param)
    }

    /// The same with runs of outputs, one after the other.
    pub fn of_runs(runs: Vec<Run>, offset: Vec<f32>, param: Vec<f32>) -> Result<Losses> {
        let d = runs.last().map_or(0, |run| run.outputs.end);
        if d == 0 || offset.len() != d || param.len() != d {
            return invalid(format!(
                "{d} losses, {} offsets and {} parameters do not serve the same outputs",
                offset.len(),
                param.len()
            ));
        }
        let mut end = 0;
        for Run { loss, outputs } in &runs {
            let least = if *loss == Loss::Softmax { 2 } else { 1 };
            if outputs.start != end || outputs.len() < least {
                return invalid(format!("{loss:?} needs {least} outputs or more, got {outputs:?}"));
            }
            end = outputs.end;
        }
        Ok(Losses { runs, offset, param })
    }

    /// Number of outputs.
    pub fn n_outputs(&self) -> usize {
        self.offset.len()
    }

    /// Whether some outputs are those of a softmax, and all of them.
    pub(crate) fn has_softmax(&self, outputs: &Range<usize>) -> bool {
        self.runs.iter().any(|run| run.loss == Loss::Softmax && run.outputs == *outputs)
    }

    /// Whether the curvature of any output, and so its bound, depends on the targets.
    pub fn curvature_uses_target(&self) -> bool {
        self.runs.iter().any(|run| run.loss.kernels().curvature_uses_target())
    }

    /// Bounds on the weighted curvature of each output, given the largest weight of a cell, weighted
    /// |residual| and target of each.
    pub fn curvature_bounds(&self, seen: impl Fn(usize) -> Extremes) -> Vec<f64> {
        let of_run = |run: &Run| {
            let kernels = run.loss.kernels();
            run.outputs.clone().map(|j| kernels.curvature_bound(seen(j))).collect::<Vec<_>>()
        };
        self.runs.iter().flat_map(of_run).collect()
    }

    /// The loss that some outputs share.
    pub(crate) fn loss_of(&self, outputs: &Range<usize>) -> Result<Loss> {
        let shared =
            |run: &&Run| run.outputs.start <= outputs.start && outputs.end <= run.outputs.end;
        match self.runs.iter().find(shared) {
            Some(run) => Ok(run.loss),
            None => invalid(format!("outputs {outputs:?} have several losses")),
        }
    }
}

/// Losses bound to targets and weights.
#[derive(Debug, Clone, Copy)]
pub struct Objective<'a> {
    pub(crate) losses: &'a Losses,
    pub(crate) targets: Targets<'a>,
    pub(crate) weights: Weights<'a>,
    pub(crate) n_rows: usize,
}

impl<'a> Objective<'a> {
    /// Binds losses to `n_rows` rows; an error says what does not fit.
    pub fn new(
        losses: &'a Losses,
        targets: Targets<'a>,
        weights: Weights<'a>,
        n_rows: usize,
    ) -> Result<Objective<'a>> {
        let d = losses.n_outputs();
        let (len, expected) = match targets {
            Targets::Real(y) => (y.len(), n_rows * d),
            Targets::Labels(y) => (y.len(), n_rows * d),
            Targets::Classes(y) => (y.len(), n_rows),
        };
        if len != expected {
            return invalid(format!("y has {len} elements, expected {expected}"));
        }
        weights.check(n_rows, d)?;
        if let Targets::Classes(y) = targets {
            if !losses.has_softmax(&(0..d)) {
                return invalid("class numbers belong to one softmax");
            }
            if let Some(class) = y.iter().find(|&&class| class as usize >= d) {
                return invalid(format!("there is no class {class} among {d}"));
            }
            if weights.by_cell() {
                return invalid("class numbers have no cells that could have weights");
            }
        }
        Ok(Objective { losses, targets, weights, n_rows })
    }

    /// Number of outputs.
    pub fn n_outputs(&self) -> usize {
        self.losses.n_outputs()
    }

    /// The kernels of the loss that some outputs share.
    pub(crate) fn kernels_of(&self, outputs: &Range<usize>) -> Result<&'static dyn CellKernels> {
        Ok(self.losses.loss_of(outputs)?.kernels())
    }

    /// Offset of each output.
    pub(crate) fn offset(&self) -> &'a [f32] {
        &self.losses.offset
    }

    /// Parameter of each output.
    pub(crate) fn param(&self) -> &'a [f32] {
        &self.losses.param
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_neighbours_make_a_run() {
        use Loss::{Logistic, Poisson, Squared};
        let runs = Run::all(&[Logistic, Squared, Squared, Poisson]);
        let ends: Vec<usize> = runs.iter().map(|run| run.outputs.end).collect();
        assert_eq!(ends, [1, 3, 4]);
        assert_eq!(runs[1].loss, Squared);
    }

    #[test]
    fn outputs_of_one_run_share_a_loss() {
        let losses = [Loss::Logistic, Loss::Squared, Loss::Squared];
        let losses = Losses::new(&losses, vec![0.0; 3], vec![0.0; 3]).unwrap();
        assert_eq!(losses.loss_of(&(1..3)), Ok(Loss::Squared));
        assert!(losses.loss_of(&(0..2)).is_err());
        assert!(Losses::new(&[Loss::Softmax, Loss::Squared], vec![0.0; 2], vec![0.0; 2]).is_err());
        assert!(Losses::new(&[], vec![], vec![]).is_err());
        let run = |outputs| Run { loss: Loss::Squared, outputs };
        for runs in [vec![run(0..1), run(1..1), run(1..3)], vec![run(0..1), run(2..3)]] {
            assert!(Losses::of_runs(runs, vec![0.0; 3], vec![0.0; 3]).is_err());
        }
    }

    #[test]
    fn each_output_has_the_curvature_bound_of_its_loss() {
        let losses = [Loss::Logistic, Loss::Poisson, Loss::Exponential];
        let losses = Losses::new(&losses, vec![0.0; 3], vec![0.0; 3]).unwrap();
        let seen = |_| Extremes { weight: 2.0, residual: 5.0, target: 7.0 };
        assert_eq!(losses.curvature_bounds(seen), [2.0, 19.0, 5.0]);
        assert!(losses.curvature_uses_target());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let losses = Losses::new(&[Loss::Squared; 2], vec![0.0; 2], vec![0.0; 2]).unwrap();
        let softmax = Losses::new(&[Loss::Softmax; 2], vec![0.0; 2], vec![0.0; 2]).unwrap();
        let none = Weights::default();
        let y = Targets::Real(&[0.0; 4]);
        assert!(Objective::new(&losses, y, none, 2).is_ok());
        assert!(Objective::new(&losses, y, none, 3).is_err());
        assert!(Objective::new(&softmax, y, none, 2).is_ok());
        assert!(Objective::new(&losses, y, Weights::of_rows(Some(&[1.0])), 2).is_err());
        let classes = Targets::Classes(&[1, 2]);
        assert!(Objective::new(&softmax, classes, none, 2).is_err());
        let classes = Targets::Classes(&[1, 0]);
        assert!(Objective::new(&softmax, classes, none, 2).is_ok());
        assert!(Objective::new(&losses, classes, none, 2).is_err());
        let partial = Weights { partial: true, ..none };
        assert!(Objective::new(&softmax, classes, partial, 2).is_err());
    }
}
