//! Cuts of features whose rows are spread over several machines.

use std::ops::Range;

use super::cuts::{cut_between, from_ordered, midpoint};
use crate::error::Result;
use crate::memory::collected;
use crate::parallel::Pool;
use crate::reduce::exchange;
use crate::select::{Enquiry, SortedColumn, cumulated, search_columns};

/// Values, over all machines, of the features whose cuts are searched together.
const VALUES_AT_A_TIME: usize = 1 << 26;
/// Most features whose cuts are searched together: one exchange carries the questions of all.
const FEATURES_AT_A_TIME: usize = 64;
/// Fewest cuts that are guessed ahead.
const FEWEST_AHEAD: usize = 8;

/// Finds the cuts that [`cut_between`] would find in the rows of all machines. `columns_of` returns
/// the sorted values of some features on this machine, and whether any is missing.
pub(super) fn cut_together(
    pool: &Pool,
    (n_rows, n_features): (usize, usize),
    max_bins: usize,
    columns_of: impl Fn(Range<usize>) -> Result<Vec<(SortedColumn, bool)>>,
) -> Result<Vec<(Vec<f32>, bool)>> {
    let mut cut = Vec::with_capacity(n_features);
    let n_all = pool.all_rows(n_rows);
    // The same on all machines.
    let size = (VALUES_AT_A_TIME / n_all.max(1)).clamp(1, FEATURES_AT_A_TIME);
    for start in (0..n_features).step_by(size) {
        let features = start..(start + size).min(n_features);
        let (columns, missing): (Vec<_>, Vec<_>) = columns_of(features)?.into_iter().unzip();
        let mut missing: Vec<f64> = missing.into_iter().map(f64::from).collect();
        exchange(pool, &mut [], &mut missing)?;
        let begin = |few| if few { CutSearch::Few(Vec::new()) } else { CutSearch::many(max_bins) };
        let found = search_columns(pool, &columns, n_all, max_bins, begin, |search, enquiry| {
            search.advance(enquiry, max_bins);
        })?;
        for (search, missing) in found.into_iter().zip(missing) {
            let thresholds = match search {
                CutSearch::Few(distinct) => cut_between(distinct.iter().copied(), max_bins),
                CutSearch::Many { thresholds, .. } => thresholds,
            };
            cut.push((thresholds, missing > 0.0));
        }
    }
    Ok(cut)
}

/// Sorts the (key, mass) pairs of a column.
pub(super) fn sorted_column(mut values: Vec<(u32, i64)>) -> Result<SortedColumn> {
    values.sort_unstable_by_key(|&(key, _)| key);
    let keys = collected(values.len(), values.iter().map(|value| value.0))?;
    let masses = cumulated(values.len(), values.iter().map(|value| value.1))?;
    Ok(SortedColumn { keys, masses: Some(masses) })
}

/// What is known so far about the cuts of a feature.
enum CutSearch {
    /// The distinct values, if they may be few.
    Few(Vec<(f32, i64)>),
    /// The thresholds found, the mass below the last one, and how many to guess ahead.
    Many { thresholds: Vec<f32>, below: i128, ahead: usize },
}

impl CutSearch {
    fn many(max_bins: usize) -> CutSearch {
        CutSearch::Many { thresholds: Vec::new(), below: 0, ahead: max_bins }
    }

    /// Goes on as far as the answers reach and asks for more, to find what [`cut_between`] finds.
    fn advance(&mut self, enquiry: &mut Enquiry<'_>, max_bins: usize) {
        match self {
            CutSearch::Few(distinct) => {
                let values = enquiry.distinct().into_iter();
                *distinct = values.map(|(key, mass)| (from_ordered(key), mass)).collect();
            }
            CutSearch::Many { thresholds, below, ahead } => {
                let Some(total) = enquiry.total() else { return };
                let n_known = thresholds.len();
                // The current cut, which may be a guess.
                let (mut n_cuts, mut before) = (n_known, *below);
                while n_cuts + 1 < max_bins && n_cuts <= thresholds.len() + *ahead {
                    // The first value with which a bin holds its share of what is left.
                    let bins_left = (max_bins - n_cuts) as i128;
                    let share = (total - before + bins_left - 1) / bins_left;
                    let last = enquiry.select(before + share);
                    if last.up_to >= total {
                        break;
                    }
                    let next = enquiry.select(last.up_to + 1);
                    if enquiry.is_certain() {
                        thresholds.push(midpoint(from_ordered(last.key), from_ordered(next.key)));
                        *below = last.up_to;
                    }
                    (n_cuts, before) = (n_cuts + 1, last.up_to);
                }
                // If few guesses were right, only few are worth a question.
                let n_found = thresholds.len() - n_known;
                if n_found > 0 {
                    *ahead = (2 * n_found).max(FEWEST_AHEAD);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{apply_cuts, find_cuts};
    use crate::parallel::Pool;
    use crate::select::tests::on_machines;
    use std::sync::Arc;

    #[test]
    fn features_on_several_machines_are_cut_and_binned_as_on_one() {
        let (n, p) = (900, 5);
        let mut stream = crate::random::Key::new(5).stream();
        // Continuous, rounded, few values, mostly zero, and a constant.
        let x: Vec<f32> = (0..n)
            .flat_map(|_| {
                let v = stream.normals().0 as f32;
                let rare = if stream.below(20) == 0 { v } else { 0.0 };
                let gone = if stream.below(9) == 0 { f32::NAN } else { v };
                [gone, (v * 30.0).round(), (v * 2.0).round(), rare, 1.0]
            })
            .collect();
        let weights: Vec<f64> = (0..n).map(|_| 0.1 + stream.uniform()).collect();
        let alone = Pool::serial();
        for weight in [None, Some(&weights[..])] {
            for max_bins in [2, 17, 255] {
                let cuts = find_cuts(&alone, &x, p, weight, max_bins, &[]).unwrap();
                let binned = apply_cuts(&alone, &x, &Arc::new(cuts.clone())).unwrap();
                for ends in [vec![0, n], vec![0, 10, 500, n], vec![0, 0, 700, n]] {
                    let parts = on_machines(ends.len() - 1, n, |rank, pool| {
                        let rows = ends[rank]..ends[rank + 1];
                        let x = &x[rows.start * p..rows.end * p];
                        let weight = weight.map(|w| &w[rows]);
                        let cuts = find_cuts(pool, x, p, weight, max_bins, &[]).unwrap();
                        apply_cuts(pool, x, &Arc::new(cuts)).unwrap()
                    });
                    for (rank, part) in parts.iter().enumerate() {
                        assert_eq!(*part.cuts, cuts);
                        assert_eq!(part.uncommon, binned.uncommon);
                        for (column, whole) in part.columns.iter().zip(&binned.columns) {
                            let bins =
                                whole.to_vec(n).unwrap()[ends[rank]..ends[rank + 1]].to_vec();
                            assert_eq!(column.to_vec(part.n_rows).unwrap(), bins);
                            let form = std::mem::discriminant(column);
                            assert_eq!(form, std::mem::discriminant(whole));
                        }
                    }
                }
            }
        }
    }
}
