//! Links from raw predictions to predictions, applied to many rows.
//!
//! The formulas are those of `manyboost-predict`, which predicts where Python does not run: both have
//! the same bits.

pub use manyboost_predict::links::Link;

use crate::lowlevel::widest;

/// Turns raw predictions of `n_outputs` a row, of one link, into predictions.
pub fn apply(link: Link, n_outputs: usize, values: &mut [f64]) {
    // Outputs that do not depend on each other are one long row, however few a row has.
    let width = if link == Link::Softmax { n_outputs } else { values.len() }.max(1);
    widest(
        #[inline(always)]
        || {
            for row in values.chunks_mut(width) {
                link.apply(row);
            }
        },
    );
}

/// Divides probabilities of one class against the rest by their sum over the classes.
pub fn share(n_classes: usize, values: &mut [f64]) {
    values.chunks_mut(n_classes.max(1)).for_each(manyboost_predict::links::share);
}
