//! Slopes of all outputs along one number for each leaf: Σ w r g.

use super::{LabelRows, OUTPUTS_AT_ONCE, Weighted};
use crate::ensemble::{Ensemble, Kind};
use crate::error::{Result, invalid};
use crate::lowlevel::widest;
use crate::memory::zeros;
use crate::parallel::Pool;

impl LabelRows {
    /// Σ w r g over all rows for every output, where g is the value of a row's leaf.
    pub fn slopes(
        &self,
        pool: &Pool,
        model: &Ensemble,
        leaf_of_row: &[u32],
        values: &[f64],
        weighted: Weighted<'_>,
    ) -> Result<Vec<f64>> {
        self.check(leaf_of_row, values.len(), Some(weighted))?;
        let (n, d, n_trees) = (self.n_rows(), self.n_outputs, self.n_trees());
        if model.kind != Kind::Scaled || model.n_outputs != d || model.n_trees() < n_trees {
            return invalid("the trees are not those that the rows were put into");
        }
        let mut along = zeros::<f64>(n)?;
        for (row, (along, &leaf)) in along.iter_mut().zip(leaf_of_row).enumerate() {
            *along = weighted.of(row) * values[leaf as usize];
        }
        let total: f64 = along.iter().sum();
        // How much of each earlier tree lies along this one.
        let shares = pool.try_map(0..n_trees, n * n_trees, |tree| {
            let values = model.tree_values(tree);
            let sums = self.places[tree].sums(&along, values.len())?;
            Ok(sums.iter().zip(values).map(|(sum, &value)| sum * f64::from(value)).sum::<f64>())
        })?;
        let mut slopes = self.label_sums(pool, &along)?;
        let work = n_trees * d;
        let blocks = slopes.chunks_mut(OUTPUTS_AT_ONCE).enumerate();
        pool.for_each(blocks, work, |(block, slopes)| {
            let first = block * OUTPUTS_AT_ONCE;
            let start = &weighted.start[first..][..slopes.len()];
            widest(
                #[inline(always)]
                || {
                    for (slope, start) in slopes.iter_mut().zip(start) {
                        *slope = 2.0 * *slope - start * total;
                    }
                    for (tree, share) in shares.iter().enumerate() {
                        let steps = &model.steps[tree * d + first..][..slopes.len()];
                        for (slope, &step) in slopes.iter_mut().zip(steps) {
                            *slope -= share * f64::from(step);
                        }
                    }
                },
            );
        })?;
        self.add_marked_slopes(&along, weighted, &mut slopes);
        Ok(slopes)
    }
}
