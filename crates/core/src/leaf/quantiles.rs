//! Leaf values of the losses without curvature: quantiles.

use super::Leaves;
use crate::error::Result;
use crate::memory::{collected, grow, resize, zeros};
use crate::outputs::Outputs;
use crate::parallel::Pool;
use crate::reduce::{FixedPoint, share};
use crate::select::{self, Query};
use crate::weights::{Cell, Weights};

/// The lower weighted quantile of y − f in each leaf, for each of `outputs`: n_leaves × outputs.
pub fn leaf_quantiles(
    pool: &Pool,
    leaves: Leaves<'_>,
    y: &[f32],
    raw: &[f32],
    outputs: &Outputs,
    levels: &[f64],
    weights: Weights<'_>,
) -> Result<Vec<f64>> {
    let Leaves { leaf_of_row, n_leaves } = leaves;
    let (n, width) = (leaf_of_row.len(), outputs.width());
    // Each leaf has its own scale: its weights may be tiny beside those of another.
    let leaf = |i: usize| leaf_of_row[i] as usize;
    let heaviest = weights.max_of_leaves(pool, y, outputs, n_leaves, leaf)?;
    let n_all = pool.all_rows(n);
    let first = outputs.range.start;
    let queries_of = |j: usize| {
        let of_leaf = |leaf: usize| heaviest[leaf * width + j - first];
        let weights_of = (0..n_leaves).map(|leaf| integer_weights(weights, of_leaf(leaf), n_all));
        let weights_of = weights_of.collect::<Result<Vec<_>>>()?;
        let mut items: Vec<Vec<(f64, i64)>> = Vec::new();
        resize(&mut items, n_leaves, Vec::new())?;
        for i in 0..n {
            let cell = i * outputs.total + j;
            if !y[cell].is_missing() {
                let error = f64::from(y[cell]) - f64::from(raw[cell]);
                let items = &mut items[leaf(i)];
                grow(items, 1)?;
                items.push((error, weights_of[leaf(i)](i, cell)));
            }
        }
        collected(n_leaves, items.into_iter().map(Query::of))
    };
    let target = |j: usize, [total, _]: [i64; 2]| share(i128::from(total), levels[j]);
    let range = outputs.range.clone();
    let columns = select::for_outputs(pool, range, n, n_leaves, queries_of, target)?;
    let mut result = zeros::<f64>(n_leaves * width)?;
    for (k, column) in columns.iter().enumerate() {
        for (leaf, &value) in column.iter().enumerate() {
            result[leaf * width + k] = value;
        }
    }
    Ok(result)
}

/// Weights of cells, by row and place, of at most `heaviest`, as integers whose sum over `rows` rows
/// cannot overflow.
pub fn integer_weights<'a>(
    weights: Weights<'a>,
    heaviest: f64,
    rows: usize,
) -> Result<impl Fn(usize, usize) -> i64 + Sync + 'a> {
    let unweighted = weights.rows.is_none() && weights.cells.is_none();
    let fixed = FixedPoint::for_sum(heaviest, rows)?;
    Ok(move |i, place| {
        if unweighted {
            return 1;
        }
        let weight = weights.cell(i, place);
        if weight > 0.0 { fixed.encode(weight).max(1) } else { 0 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaf_medians_are_lower_medians() {
        let y = [1.0f32, 2.0, 3.0, 4.0, 10.0];
        let leaves = Leaves { leaf_of_row: &[0, 0, 0, 0, 1], n_leaves: 2 };
        let (pool, outputs, none) = (Pool::serial(), Outputs::all(1), Weights::default());
        let medians = leaf_quantiles(&pool, leaves, &y, &[0.0; 5], &outputs, &[0.5], none);
        assert_eq!(medians.unwrap(), vec![2.0, 10.0]);
    }
}
