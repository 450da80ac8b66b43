//! Sums over the rows of each leaf: residuals, curvatures, weights.

use super::Leaves;
use super::summands::Summand;
use super::tables::{LeafTables, Table};
use crate::error::Result;
use crate::losses::{Objective, Targets};
use crate::outputs::Outputs;
use crate::parallel::Pool;
use crate::reduce::FixedPoint;
use crate::weights::Weights;
use crate::with_cells;

/// Curvatures to be summed beside the residuals.
#[derive(Clone, Copy)]
pub enum Curvatures<'a> {
    /// None.
    Absent,
    /// Those of a built-in loss, from its formula. The outputs summed must share one loss.
    Formula(Objective<'a>),
    /// Those in a matrix, n × d.
    Given(&'a [f32]),
}

/// The largest weighted numbers of each of all outputs.
#[derive(Clone, Copy)]
pub struct SumBounds<'a> {
    /// |Residual|.
    pub residual: &'a [f64],
    /// Curvature.
    pub curvature: &'a [f64],
}

/// Sums over leaves, n_leaves × outputs.
pub struct LeafSums {
    /// Σ w r.
    pub residuals: Vec<f64>,
    /// Σ w h, if asked for.
    pub curvatures: Option<Vec<f64>>,
}

/// Sums residuals (and curvatures) of some outputs over the rows of each leaf.
pub fn leaf_sums(
    pool: &Pool,
    leaves: Leaves<'_>,
    outputs: &Outputs,
    residuals: &[f32],
    curvatures: Curvatures<'_>,
    weights: Weights<'_>,
    bounds: SumBounds<'_>,
) -> Result<LeafSums> {
    let n_all = pool.all_rows(leaves.leaf_of_row.len());
    let fixed = |bound: &[f64]| -> Result<Vec<FixedPoint>> {
        outputs.range.clone().map(|j| FixedPoint::for_sum(bound[j], n_all)).collect()
    };
    let curvatures = match curvatures {
        Curvatures::Absent => None,
        Curvatures::Given(given) => Some(Summand::Matrix(given)),
        Curvatures::Formula(objective) => {
            let kernels = objective.kernels_of(&outputs.range)?;
            let (targets, param) = (objective.targets, objective.param());
            Some(Summand::Curvature { kernels, targets, param, residuals })
        }
    };
    let summand = Summand::Matrix(residuals);
    let mut tables = vec![Table { summand, fixed: fixed(bounds.residual)? }];
    if let Some(summand) = curvatures {
        tables.push(Table { summand, fixed: fixed(bounds.curvature)? });
    }
    let tables = LeafTables { leaves, outputs, weights, tables: &tables };
    let mut sums = tables.fill(pool)?.into_iter();
    let residuals = sums.next().unwrap_or_default();
    Ok(LeafSums { residuals, curvatures: sums.next() })
}

/// Sums the weights of the cells that have a target over the rows of each leaf.
pub fn leaf_weights(
    pool: &Pool,
    leaves: Leaves<'_>,
    outputs: &Outputs,
    targets: Targets<'_>,
    weights: Weights<'_>,
) -> Result<Vec<f64>> {
    // Each output has its own scale: its weights may be tiny beside those of another.
    let bounds = with_cells!(targets, y => weights.max_of_outputs(pool, y, outputs))?;
    let n_all = pool.all_rows(leaves.leaf_of_row.len());
    let fixed =
        bounds.iter().map(|&max| FixedPoint::for_sum(max, n_all)).collect::<Result<Vec<_>>>()?;
    let tables = [Table { summand: Summand::Presence(targets), fixed }];
    let sums = LeafTables { leaves, outputs, weights, tables: &tables }.fill(pool)?;
    Ok(sums.into_iter().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::{Loss, Losses};

    #[test]
    fn leaf_sums_are_sums_over_leaves() {
        let (n, d, n_leaves) = (100, 3, 4);
        let leaf_of_row: Vec<u32> = (0..n).map(|i| (i * 7 % n_leaves) as u32).collect();
        let residuals: Vec<f32> = (0..n * d).map(|k| (k * 13 % 31) as f32 / 7.0 - 2.0).collect();
        let weight: Vec<f32> = (0..n).map(|i| 0.5 + (i % 5) as f32).collect();
        let max = [20.0; 3];
        let sums = leaf_sums(
            &Pool::serial(),
            Leaves { leaf_of_row: &leaf_of_row, n_leaves },
            &Outputs { total: d, range: 1..3 },
            &residuals,
            Curvatures::Given(&residuals),
            Weights::of_rows(Some(&weight)),
            SumBounds { residual: &max, curvature: &max },
        )
        .unwrap();
        for leaf in 0..n_leaves {
            for j in 1..3 {
                let expected: f64 = (0..n)
                    .filter(|&i| leaf_of_row[i] as usize == leaf)
                    .map(|i| f64::from(residuals[i * d + j]) * f64::from(weight[i]))
                    .sum();
                let at = leaf * 2 + j - 1;
                assert!((sums.residuals[at] - expected).abs() < 1e-9);
                assert!((sums.curvatures.as_ref().unwrap()[at] - expected).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn cells_are_summed_with_their_own_weights() {
        let y = [1.0f32, f32::NAN, 2.0, 3.0, f32::NAN, 5.0, 0.0, 1.0];
        let residuals = [1.0f32, 0.0, -2.0, 0.5, 0.0, 3.0, 1.0, 1.0];
        let cells = [2.0f32, 1.0, 1.0, 4.0, 1.0, 3.0, 0.5, 1.0];
        let rows = [1.0f32, 0.0, 2.0, 1.0];
        let leaves = Leaves { leaf_of_row: &[0, 0, 1, 1], n_leaves: 2 };
        let weights = Weights { rows: Some(&rows), cells: Some(&cells), partial: true };
        let (pool, targets, both) = (Pool::serial(), Targets::Real(&y), Outputs::all(2));
        let losses = Losses::new(&[Loss::Squared; 2], vec![0.0; 2], vec![0.0; 2]).unwrap();
        let objective = Objective::new(&losses, targets, weights, 4).unwrap();
        let curvatures = Curvatures::Formula(objective);
        let bounds = SumBounds { residual: &[20.0; 2], curvature: &[20.0; 2] };
        let sums =
            leaf_sums(&pool, leaves, &both, &residuals, curvatures, weights, bounds).unwrap();
        assert_eq!(sums.residuals, [2.0, 0.0, 0.5, 19.0]);
        let expected = [2.0, 0.0, 0.5, 7.0];
        assert_eq!(sums.curvatures.unwrap(), expected);
        assert_eq!(leaf_weights(&pool, leaves, &both, targets, weights).unwrap(), expected);
    }
}
