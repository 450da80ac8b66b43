//! Softmax, whose outputs share one loss: the cross-entropy of the class of a row.

use super::formula::{Extremes, Logistic};
use super::kernels::{CellKernels, CellTargets, Cells, LeafRows, WeightedCells};
use super::{Targets, fold};
use crate::lowlevel::widest;
use crate::math;

/// Softmax over cells of 0 and 1. A row without a 1 has no class: its target is missing.
pub struct Softmax;

/// The place of the 1 among the cells of a row.
#[inline(always)]
fn class_of<Y: Copy + Into<f32>>(y: &[Y]) -> Option<usize> {
    y.iter().position(|&y| Into::<f32>::into(y) == 1.0)
}

impl Targets<'_> {
    /// The class of row `i` whose softmax has the cells at `places`, None if it is missing.
    #[inline(always)]
    pub(crate) fn class(&self, i: usize, places: std::ops::Range<usize>) -> Option<usize> {
        match self {
            Targets::Classes(y) => Some(y[i] as usize),
            Targets::Real(y) => class_of(&y[places]),
            Targets::Labels(y) => class_of(&y[places]),
        }
    }
}

/// Residuals of one row into `out`; returns its loss.
fn row_residuals<Y>(class: Option<usize>, cells: &Cells<'_, Y>, out: &mut [f32]) -> f64 {
    let (Some(class), mut loss) = (class, [0.0]) else {
        out.fill(0.0);
        return 0.0;
    };
    widest(
        #[inline(always)]
        || softmax_residuals(&[class as u32], cells.raw, cells.offset, out, &mut loss),
    );
    loss[0]
}

/// Curvatures are the diagonal, which has the formula of log loss. Losses of single cells are those of
/// whole rows, in the first cell.
impl CellKernels for Softmax {
    fn residuals(&self, cells: Cells<'_>, width: usize, out: &mut [f32], losses: &mut [f64]) {
        for (row, (loss, out)) in losses.iter_mut().zip(out.chunks_exact_mut(width)).enumerate() {
            let cells = cells.between(row * width, (row + 1) * width);
            let class = match cells.y {
                CellTargets::Real(y) => class_of(y),
                CellTargets::Labels(y) => class_of(y),
            };
            *loss += row_residuals(class, &cells, out);
        }
    }

    fn weighted_residuals(
        &self,
        cells: Cells<'_, &[f32]>,
        weights: &[f32],
        into: WeightedCells<'_>,
    ) {
        let class = class_of(cells.y).filter(|&class| weights[class] > 0.0);
        let weight = class.map_or(0.0, |class| weights[class]);
        let loss = row_residuals(class, &cells, into.residuals);
        for (weighted, residual) in into.weighted.iter_mut().zip(&*into.residuals) {
            *weighted = weight * residual;
        }
        into.values.fill(0.0);
        into.values[0] = f64::from(weight) * loss;
    }

    fn values(&self, cells: Cells<'_>, out: &mut [f64]) {
        let mut residuals = vec![0.0; out.len()];
        let mut loss = [0.0];
        self.residuals(cells, out.len(), &mut residuals, &mut loss);
        out.fill(0.0);
        out[0] = loss[0];
    }

    fn curvatures(&self, y: &[f32], residuals: &[f32], param: &[f32], out: &mut [f32]) {
        Logistic.curvatures(y, residuals, param, out);
    }

    fn add_leaf_rows(
        &self,
        rows: LeafRows<'_>,
        param: &[f32],
        scales: [&[f64]; 2],
        sums: [&mut [i64]; 2],
    ) {
        Logistic.add_leaf_rows(rows, param, scales, sums);
    }

    fn derivatives(&self, _: &[f32], _: &[f32], _: &[f32], _: (&mut [f32], &mut [f32])) {
        unreachable!("the outputs of softmax are searched together");
    }

    fn bounds(&self, param: f64) -> Option<(f64, f64)> {
        CellKernels::bounds(&Logistic, param)
    }

    fn curvature_bound(&self, seen: Extremes) -> f64 {
        CellKernels::curvature_bound(&Logistic, seen)
    }

    fn curvature_uses_target(&self) -> bool {
        false
    }
}

/// Softmax probabilities of one row into `p`; returns ln Σ e^f.
#[inline(always)]
pub fn softmax_row(f: impl Fn(usize) -> f32, p: &mut [f32]) -> f64 {
    for (j, p) in p.iter_mut().enumerate() {
        *p = f(j);
    }
    let top = fold::largest(p);
    p.iter_mut().for_each(|p| *p = math::exp_down(*p - top));
    let sum = fold::sum(p);
    let scale = (1.0 / sum) as f32;
    p.iter_mut().for_each(|p| *p *= scale);
    f64::from(top) + math::ln(sum)
}

/// Residuals of rows of one length into `out`, and their losses, given the class of each row.
#[inline(always)]
pub(super) fn softmax_residuals(
    classes: &[u32],
    raw: &[f32],
    offset: &[f32],
    out: &mut [f32],
    losses: &mut [f64],
) {
    let d = offset.len();
    let m = classes.len() * d;
    let (raw, out, losses) = (&raw[..m], &mut out[..m], &mut losses[..classes.len()]);
    for ((&class, loss), (raw, out)) in
        classes.iter().zip(losses.iter_mut()).zip(raw.chunks_exact(d).zip(out.chunks_exact_mut(d)))
    {
        for j in 0..d {
            out[j] = offset[j] + raw[j];
        }
        let top = fold::largest(out);
        *loss = f64::from(top) - f64::from(out[class as usize]);
        out.iter_mut().for_each(|f| *f -= top);
    }
    // All rows at once, so that lanes are full.
    out.iter_mut().for_each(|f| *f = math::exp_down(*f));
    for ((&class, loss), out) in classes.iter().zip(losses).zip(out.chunks_exact_mut(d)) {
        // 1 − p of the true class as the sum of the others: exact where p is near one.
        let own = f64::from(std::mem::take(&mut out[class as usize]));
        let others = fold::sum(out);
        let scale = 1.0 / (others + own);
        out.iter_mut().for_each(|e| *e *= -scale as f32);
        out[class as usize] = (others * scale) as f32;
        *loss += math::ln(others + own);
    }
}

#[cfg(test)]
mod tests {
    use crate::losses::{Loss, Losses, Objective, Run, Targets, advance, loss_sum, output_losses};
    use crate::parallel::Pool;
    use crate::weights::{MISSING_LABEL, Weights};

    const OFFSET: [f32; 7] = [0.3, -0.2, 0.1, 0.4, -1.0, 0.25, 0.5];

    /// Three classes, a label, three classes.
    fn blocks() -> Losses {
        let run = |loss, outputs| Run { loss, outputs };
        let runs = [run(Loss::Softmax, 0..3), run(Loss::Logistic, 3..4), run(Loss::Softmax, 4..7)];
        Losses::of_runs(runs.to_vec(), OFFSET.to_vec(), vec![0.0; 7]).unwrap()
    }

    fn residuals(objective: Objective<'_>, raw: &[f32]) -> (Vec<f32>, f64) {
        let (mut raw, mut out) = (raw.to_vec(), vec![0.0; raw.len()]);
        let pass = advance(&Pool::serial(), objective, &mut raw, &mut out, None, None).unwrap();
        (out, pass.loss)
    }

    /// Class numbers of both blocks, and the same as cells, with the label between them.
    fn targets(n: usize) -> ([Vec<u32>; 2], Vec<u8>) {
        let classes = [1, 2].map(|k| (0..n).map(|i| (i * k % 3) as u32).collect::<Vec<_>>());
        let mut cells = vec![0u8; n * 7];
        for i in 0..n {
            cells[i * 7 + classes[0][i] as usize] = 1;
            cells[i * 7 + 3] = (i % 2) as u8;
            cells[i * 7 + 4 + classes[1][i] as usize] = 1;
        }
        (classes, cells)
    }

    fn raw_of(n: usize) -> Vec<f32> {
        let mut stream = crate::random::Key::new(6).stream();
        (0..n * 7).map(|_| stream.normals().0 as f32).collect()
    }

    #[test]
    fn blocks_of_cells_are_softmaxes_of_class_numbers() {
        let n = 40;
        let ((classes, cells), raw) = (targets(n), raw_of(n));
        let weight: Vec<f32> = (0..n).map(|i| 0.5 + (i % 3) as f32).collect();
        let (losses, weights) = (blocks(), Weights::of_rows(Some(&weight)));
        let objective = Objective::new(&losses, Targets::Labels(&cells), weights, n).unwrap();
        let (all, loss) = residuals(objective, &raw);
        let sums = output_losses(&Pool::serial(), objective, &raw).unwrap();
        assert!((sums.iter().sum::<f64>() - loss).abs() < 1e-9 * loss);
        assert_eq!(loss_sum(&Pool::serial(), objective, &raw).unwrap(), loss);
        let real: Vec<f32> = cells.iter().map(|&y| f32::from(y)).collect();
        let of_numbers = Objective::new(&losses, Targets::Real(&real), weights, n).unwrap();
        assert_eq!(residuals(of_numbers, &raw), (all.clone(), loss));
        for (block, start) in [(0, 0), (1, 4)] {
            let of_block = |cells: &[f32]| -> Vec<f32> {
                cells.chunks(7).flat_map(|row| row[start..start + 3].to_vec()).collect()
            };
            let offset = OFFSET[start..start + 3].to_vec();
            let one = Losses::new(&[Loss::Softmax; 3], offset, vec![0.0; 3]).unwrap();
            let y = Targets::Classes(&classes[block]);
            let alone = Objective::new(&one, y, weights, n).unwrap();
            let (expected, loss) = residuals(alone, &of_block(&raw));
            assert_eq!(of_block(&all), expected);
            assert!((sums[start] - loss).abs() < 1e-9 * loss);
            assert_eq!(sums[start + 1..start + 3], [0.0, 0.0]);
        }
    }

    #[test]
    fn a_missing_class_is_a_block_of_weight_zero() {
        let n = 12;
        let ((_, mut cells), raw) = (targets(n), raw_of(n));
        let losses = blocks();
        let whole = Objective::new(&losses, Targets::Labels(&cells), Weights::default(), n);
        let (expected, _) = residuals(whole.unwrap(), &raw);
        let mut masses = vec![1.0f32; n * 7];
        cells[7 * 5 + 4..7 * 5 + 7].fill(MISSING_LABEL);
        masses[7 * 2..7 * 2 + 3].fill(2.5);
        let weights = Weights { cells: Some(&masses), partial: true, rows: None };
        let objective = Objective::new(&losses, Targets::Labels(&cells), weights, n).unwrap();
        let (found, loss) = residuals(objective, &raw);
        assert_eq!(found[7 * 5 + 4..7 * 5 + 7], [0.0; 3]);
        assert_eq!(found[..7 * 5 + 4], expected[..7 * 5 + 4]);
        assert_eq!(found[7 * 6..], expected[7 * 6..]);
        let sums = output_losses(&Pool::serial(), objective, &raw).unwrap();
        assert!((sums.iter().sum::<f64>() - loss).abs() < 1e-6 * loss);
        assert!(Losses::new(&[Loss::Softmax], vec![0.0], vec![0.0]).is_err());
    }
}
