//! Predictions: rows through trees, and the sums of what their leaves add.

use std::ops::Range;

use super::block::{FEW_LANES, LANES};
use super::{Ensemble, Kind};
use crate::error::{Result, invalid};
use crate::lowlevel::widest;
use crate::memory::zeros;
use crate::parallel::Pool;
use crate::ranking::{Ranked, rank};

/// Most rows that go through all trees together, and most of their features or outputs.
const ROW_BLOCK: usize = 256;
const BLOCK_VALUES: usize = 1 << 18;
/// Most values of sparse rows that are made dense at a time.
const SPREAD_VALUES: usize = 1 << 22;
/// Most raw predictions that each thread holds at a time while it ranks outputs.
const RANKED_VALUES: usize = 1 << 18;

/// Rows to predict for.
#[derive(Debug, Clone, Copy)]
pub enum FeatureRows<'a> {
    /// All values, row after row.
    Dense(&'a [f32]),
    /// The same in double precision.
    Double(&'a [f64]),
    /// Stored values, row after row; the others are zero.
    Sparse {
        /// First stored value of each row, and one past the last.
        starts: &'a [i64],
        /// Feature of each stored value.
        features: &'a [i32],
        /// Stored values.
        values: &'a [f32],
    },
}

impl Ensemble {
    /// The leaf of each row in each of some trees, into `out` (n × trees).
    pub fn leaves(
        &self,
        pool: &Pool,
        x: FeatureRows<'_>,
        trees: Range<usize>,
        out: &mut [u32],
    ) -> Result<()> {
        let n_trees = trees.len();
        self.for_each_block(pool, x, 3 * n_trees, n_trees, out, |x, out| {
            let block = self.block(x, trees.clone())?;
            self.each_leaf(
                &block,
                trees.clone(),
                #[inline(always)]
                |tree, row, leaves| {
                    let first = row * n_trees + tree - trees.start;
                    let out = out[first..].iter_mut().step_by(n_trees);
                    out.zip(leaves).for_each(|(out, &leaf)| *out = leaf);
                },
            );
            Ok(())
        })
    }

    /// Adds the trees of the given rounds to `raw` (n × n_outputs), tree by tree as training did:
    /// the sums agree with training to the last bit.
    pub fn add_to(
        &self,
        pool: &Pool,
        x: FeatureRows<'_>,
        rounds: Range<usize>,
        raw: &mut [f32],
    ) -> Result<()> {
        self.for_each_block(pool, x, self.sum_work(&rounds), self.n_outputs, raw, |x, raw| {
            self.add_rounds(x, rounds.clone(), raw)
        })
    }

    /// Raw predictions: `baseline` plus the trees of the given rounds, into `out` (n × n_outputs).
    pub fn predict(
        &self,
        pool: &Pool,
        x: FeatureRows<'_>,
        rounds: Range<usize>,
        baseline: &[f64],
        out: &mut [f64],
    ) -> Result<()> {
        self.for_each_block(pool, x, self.sum_work(&rounds), self.n_outputs, out, |x, out| {
            self.predict_block(x, rounds.clone(), baseline, out)
        })
    }

    /// The outputs of highest raw prediction, best first, into `out` (n × k). Raw predictions of all
    /// outputs are held for one block of rows at a time.
    pub fn top_k(
        &self,
        pool: &Pool,
        x: FeatureRows<'_>,
        rounds: Range<usize>,
        baseline: &[f64],
        k: usize,
        out: &mut [Ranked],
    ) -> Result<()> {
        let d = self.n_outputs;
        if k == 0 || k > d {
            return invalid(format!("{k} of {d} outputs were asked for"));
        }
        if self.kind == Kind::Sparse {
            return self.sparse_top_k(pool, x, rounds, baseline, k, out);
        }
        let rows = (RANKED_VALUES / d).clamp(FEW_LANES, ROW_BLOCK);
        self.for_each_block(pool, x, self.sum_work(&rounds), k, out, |x, out| {
            let mut raw = zeros::<f64>(rows * d)?;
            for (x, out) in x.chunks(rows * self.n_features).zip(out.chunks_mut(rows * k)) {
                let raw = &mut raw[..out.len() / k * d];
                self.predict_block(x, rounds.clone(), baseline, raw)?;
                raw.chunks(d).zip(out.chunks_mut(k)).for_each(|(raw, out)| rank(raw, out));
            }
            Ok(())
        })
    }

    /// Adds the trees of the given rounds to `raw`, for a block of rows.
    fn add_rounds(&self, x: &[f32], rounds: Range<usize>, raw: &mut [f32]) -> Result<()> {
        let trees = rounds.start * self.trees_per_round()..rounds.end * self.trees_per_round();
        self.add_block(&self.block(x, trees.clone())?, trees, raw)
    }

    fn predict_block(
        &self,
        x: &[f32],
        rounds: Range<usize>,
        baseline: &[f64],
        out: &mut [f64],
    ) -> Result<()> {
        let mut sums = zeros::<f32>(out.len())?;
        self.add_rounds(x, rounds, &mut sums)?;
        widest(
            #[inline(always)]
            || {
                for (out, sums) in out.chunks_mut(baseline.len()).zip(sums.chunks(baseline.len())) {
                    for ((out, &sum), base) in out.iter_mut().zip(sums).zip(baseline) {
                        *out = base + f64::from(sum);
                    }
                }
            },
        );
        Ok(())
    }

    /// Elementary operations to predict a row, roughly.
    pub(super) fn sum_work(&self, rounds: &Range<usize>) -> usize {
        rounds.len() * self.trees_per_round() * (3 + self.n_outputs / 8)
    }

    /// Calls `f` with dense blocks of rows and their part of `out`, which has `width` elements a row.
    pub(crate) fn for_each_block<T: Send>(
        &self,
        pool: &Pool,
        x: FeatureRows<'_>,
        work_per_row: usize,
        width: usize,
        out: &mut [T],
        f: impl Fn(&[f32], &mut [T]) -> Result<()> + Sync,
    ) -> Result<()> {
        let (p, width) = (self.n_features.max(1), width.max(1));
        let n = out.len() / width;
        let work = n * work_per_row;
        let most = (BLOCK_VALUES / p.max(width)).clamp(FEW_LANES, ROW_BLOCK);
        match x {
            FeatureRows::Dense(x) => {
                let block = n.div_ceil(pool.pieces(work)).next_multiple_of(LANES).clamp(1, most);
                let blocks = out.chunks_mut(block * width).zip(x.chunks(block * p));
                pool.try_for_each(blocks, work, |(out, x)| f(x, out))
            }
            FeatureRows::Double(x) => {
                let block = n.div_ceil(pool.pieces(work)).next_multiple_of(LANES).clamp(1, most);
                let blocks = out.chunks_mut(block * width).zip(x.chunks(block * p));
                pool.try_for_each(blocks, work, |(out, x)| f(&in_single(x)?, out))
            }
            FeatureRows::Sparse { starts, features, values } => {
                let block = (SPREAD_VALUES / p).clamp(1, most);
                let piece = n.div_ceil(pool.pieces(work)).next_multiple_of(block).max(block);
                let stored = |row: usize| {
                    let range = starts[row] as usize..starts[row + 1] as usize;
                    features[range.clone()].iter().map(|&f| f as usize).zip(&values[range])
                };
                pool.try_for_each(out.chunks_mut(piece * width).enumerate(), work, |(k, out)| {
                    let mut spread = zeros::<f32>(block.min(out.len() / width) * p)?;
                    for (b, out) in out.chunks_mut(block * width).enumerate() {
                        let first = k * piece + b * block;
                        let rows = out.len() / width;
                        for i in 0..rows {
                            stored(first + i).for_each(|(f, &v)| spread[i * p + f] = v);
                        }
                        f(&spread[..rows * p], out)?;
                        // Clear the stored values only.
                        for i in 0..rows {
                            stored(first + i).for_each(|(f, _)| spread[i * p + f] = 0.0);
                        }
                    }
                    Ok(())
                })
            }
        }
    }
}

/// Values in single precision. Those beyond its range become infinite.
fn in_single(x: &[f64]) -> Result<Vec<f32>> {
    let mut single = zeros(x.len())?;
    widest(
        #[inline(always)]
        || single.iter_mut().zip(x).for_each(|(single, &value)| *single = value as f32),
    );
    Ok(single)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ensemble::tests::model;
    use crate::leaf::{LeafValues, add_leaf};
    use crate::tree::find_leaf;

    #[test]
    fn blocks_of_outputs_add_what_leaf_by_leaf_addition_does() {
        let x: Vec<f32> = (0..70).map(|i| (i % 3) as f32 / 2.0).collect();
        for kind in [Kind::PerOutput, Kind::Vector, Kind::Scaled] {
            for d in [1, 5, 67, 67 + 3] {
                let model = model(kind, d, 4);
                let mut expected = vec![0.0f32; 70 * d];
                for (row, raw) in x.iter().zip(expected.chunks_mut(d)) {
                    for t in 0..model.n_trees() {
                        let leaf = find_leaf::<false>(model.tree(t), &[], &[*row]);
                        let values =
                            &model.values[model.value_starts[t]..model.value_starts[t + 1]];
                        match kind {
                            Kind::PerOutput => raw[t % d] += values[leaf],
                            Kind::Vector => add_leaf(LeafValues::Vector(values), leaf, raw),
                            Kind::Scaled => {
                                let steps = &model.steps[t * d..(t + 1) * d];
                                add_leaf(LeafValues::Scaled(values, steps), leaf, raw);
                            }
                            Kind::Sparse => unreachable!("not among these"),
                        }
                    }
                }
                let pool = Pool::serial();
                let mut raw = vec![0.0f32; 70 * d];
                model.add_to(&pool, FeatureRows::Dense(&x), 0..1, &mut raw).unwrap();
                model.add_to(&pool, FeatureRows::Dense(&x), 1..4, &mut raw).unwrap();
                assert_eq!(raw, expected);
                let mut out = vec![0.0f64; 70 * d];
                model
                    .predict(&pool, FeatureRows::Dense(&x), 0..4, &vec![2.0; d], &mut out)
                    .unwrap();
                assert!(out.iter().zip(&expected).all(|(o, &e)| *o == 2.0 + f64::from(e)));
                let (mut starts, mut values) = (vec![0i64], vec![]);
                for &value in &x {
                    values.extend((value != 0.0).then_some(value));
                    starts.push(values.len() as i64);
                }
                let features = vec![0i32; values.len()];
                let sparse =
                    FeatureRows::Sparse { starts: &starts, features: &features, values: &values };
                let mut from_sparse = vec![0.0f64; 70 * d];
                model.predict(&pool, sparse, 0..4, &vec![2.0; d], &mut from_sparse).unwrap();
                assert_eq!(from_sparse, out);
                model.predict(&pool, sparse, 0..0, &vec![2.0; d], &mut out).unwrap();
                assert_eq!(out, vec![2.0; 70 * d]);
            }
        }
    }

    #[test]
    fn doubles_are_predicted_as_singles_and_infinite_features_are_extreme_ones() {
        let model = model(Kind::Vector, 5, 4);
        let x: Vec<f64> = (0..300).map(|i| f64::from(i % 7) / 6.0 - 1e-9).collect();
        let single: Vec<f32> = x.iter().map(|&value| value as f32).collect();
        let pool = Pool::serial();
        let predict = |rows: FeatureRows<'_>| {
            let mut out = vec![f64::NAN; 300 * 5];
            model.predict(&pool, rows, 0..4, &[2.0; 5], &mut out).map(|()| out)
        };
        let expected = predict(FeatureRows::Dense(&single)).unwrap();
        assert_eq!(predict(FeatureRows::Double(&x)).unwrap(), expected);
        let (mut infinite, mut large) = (x.clone(), single.clone());
        for (value, place) in [(f64::INFINITY, 0), (f64::NEG_INFINITY, 299), (-1e39, 260)] {
            (infinite[place], large[place]) = (value, 1e30 * value.signum() as f32);
        }
        let expected = predict(FeatureRows::Dense(&large)).unwrap();
        assert_eq!(predict(FeatureRows::Double(&infinite)).unwrap(), expected);
    }

    #[test]
    fn the_best_outputs_are_those_of_a_sorted_prediction() {
        let x: Vec<f32> = (0..70).map(|i| (i % 3) as f32 / 2.0).collect();
        let pool = Pool::serial();
        for kind in [Kind::PerOutput, Kind::Vector, Kind::Scaled] {
            for (d, k) in [(1, 1), (5, 2), (67 + 3, 40)] {
                let model = model(kind, d, 4);
                // Ties between neighbours.
                let baseline: Vec<f64> = (0..d).map(|j| -((j * j) as f64) / 50.0).collect();
                let mut all = vec![0.0f64; 70 * d];
                model.predict(&pool, FeatureRows::Dense(&x), 0..4, &baseline, &mut all).unwrap();
                let mut best = vec![Ranked::default(); 70 * k];
                let rows = FeatureRows::Dense(&x);
                model.top_k(&pool, rows, 0..4, &baseline, k, &mut best).unwrap();
                for (row, best) in all.chunks(d).zip(best.chunks(k)) {
                    let mut order: Vec<usize> = (0..d).collect();
                    order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
                    let expected: Vec<Ranked> = order[..k]
                        .iter()
                        .map(|&j| Ranked { output: j as u32, score: row[j] })
                        .collect();
                    assert_eq!(best, expected);
                }
                for k in [0, d + 1] {
                    assert!(model.top_k(&pool, rows, 0..4, &baseline, k, &mut best).is_err());
                }
            }
        }
    }
}
