//! The pass of squared error, whose residuals are all the state of training.
//!
//! A round needs one pass: it brings the residuals up to date, sums them by leaf, and projects them
//! for the next round. That projection can be taken before the leaves have values v, since
//! φ (r − v) = φ r − φ v: [`look_ahead`] takes φ v off when v is known, and tells the loss.
//!
//! The residuals may lack the moves of earlier rounds; a pass writes these into them, one after the
//! other, before it looks at a row.

mod four;
mod row;

use std::array::from_fn;
use std::ops::Range;

use super::advance::{Pass, Projected};
use crate::error::Result;
use crate::leaf::{ByLeaf, LeafValues, Leaves, Update, remove_offsets, subtract_leaf};
use crate::lowlevel::widest;
use crate::memory::{room, zeros};
use crate::parallel::{Pool, take_front};
use crate::projection::Phi;
use crate::reduce::{ExactSum, FixedPoint, add_up_here, largest_here};
use crate::weights::Weights;
use four::{FourRows, TOGETHER};
use row::{Columns, LANES, Row};

/// A pass over residuals, which writes the pending updates into them.
#[derive(Clone, Copy)]
pub struct Sweep<'a> {
    /// Number of outputs.
    pub n_outputs: usize,
    /// Weights of rows.
    pub weight: Option<&'a [f32]>,
    /// Updates that the residuals do not contain yet, in order.
    pub pending: &'a [Update<'a>],
    /// Leaves to sum by, and bounds on the weighted |residual| of each output.
    pub leaves: Option<(Leaves<'a>, &'a [f64])>,
}

/// Bytes of the sums by leaf up to which rows are taken as they come.
const NEAR: usize = 1 << 16;
/// Rows for each leaf that are sorted by leaf together.
const ROWS_PER_LEAF: usize = 32;

/// Rows that are swept together.
struct Stretch<'a> {
    rows: Range<usize>,
    residuals: &'a mut [f32],
    z: &'a mut [f32],
}

/// What some rows give.
struct Part {
    loss: ExactSum,
    /// Bits of the largest scaled |residual| of each output, in lanes.
    max: Vec<[u32; LANES]>,
    /// Sums by leaf, in lanes: n_leaves × outputs.
    sums: Vec<i64>,
    /// Room for a row that has no next one.
    last: Vec<f32>,
}

impl Sweep<'_> {
    /// Runs the pass; returns what it tells, and the sums by leaf (n_leaves × d, or empty).
    pub fn run(
        &self,
        pool: &Pool,
        residuals: &mut [f32],
        projected: Option<Projected<'_>>,
    ) -> Result<(Pass, Vec<f64>)> {
        let d = self.n_outputs;
        let (n, width) = (residuals.len() / d, d.div_ceil(LANES));
        let unit = Weights::of_rows(self.weight).scale(pool)?;
        let (n_leaves, bounds) =
            self.leaves.map_or((0, &[][..]), |(leaves, bounds)| (leaves.n_leaves, bounds));
        let n_all = pool.all_rows(n);
        let fixed = bounds.iter().map(|&bound| FixedPoint::for_sum(bound, n_all));
        let fixed = fixed.collect::<Result<Vec<FixedPoint>>>()?;
        let (phi, mut z) = match projected {
            Some(projected) => (Some(projected.phi), projected.z),
            None => (None, &mut [][..]),
        };
        let later = phi.is_some_and(Phi::wants_many_rows);
        let columns = Columns::new(d, phi.and_then(Phi::single).unwrap_or(&[]), &fixed);
        let q = z.len().checked_div(n).unwrap_or(0);
        let work = d * (2 + self.pending.len()) + phi.map_or(0, Phi::work);
        let mut residuals = residuals;
        let mut stretches = Vec::new();
        for rows in pool.row_ranges(n, work) {
            stretches.push(Stretch {
                residuals: take_front(&mut residuals, rows.len() * d),
                z: take_front(&mut z, rows.len() * q),
                rows,
            });
        }
        let start = || {
            let sums = zeros(n_leaves * width * LANES)?;
            let (max, last) = (vec![[0; LANES]; width], vec![0.0; width * LANES]);
            Ok(Part { loss: ExactSum::default(), max, sums, last })
        };
        let parts = pool.fold(stretches, n * work, start, |part, stretch| {
            let mut taker =
                Taker { sweep: self, unit, phi, later, columns: &columns, stretch, part };
            widest(
                #[inline(always)]
                || match (columns.scales.is_empty(), columns.phi.is_empty()) {
                    (true, true) => taker.in_order::<false, false>(),
                    (true, false) => taker.in_order::<false, true>(),
                    (false, true) => taker.in_order::<true, false>(),
                    (false, false) => match (self.by_leaf(), self.weight) {
                        (None, _) => taker.in_order::<true, true>(),
                        (Some(moved), None) => taker.by_leaf(moved, |_| 1.0),
                        (Some(moved), Some(weight)) => taker.by_leaf(moved, |i| weight[i].into()),
                    },
                },
            )
        })?;
        let (mut losses, mut maxima, mut sums) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            losses.push(part.loss);
            maxima.push(part.max.as_flattened()[..d].to_vec());
            sums.push(part.sums);
        }
        let mut sums = add_up_here(sums, n_leaves * width * LANES)?;
        if let Some((leaves, _)) = self.leaves {
            remove_offsets(leaves, &mut sums)?;
        }
        // (The bits of non-negative floats order as they do.)
        let mut max = largest_here(maxima, d)?;
        let loss = ExactSum::merged(pool, &losses, &mut sums, &mut max)?;
        let real = |bits: f64| f64::from(f32::from_bits(bits as u32)) * unit.unit;
        let max_residual = max.into_iter().map(real).collect();
        let mut leaf_sums = room(n_leaves * d)?;
        for sums in sums.chunks_exact(width * LANES) {
            leaf_sums.extend(sums.iter().zip(&fixed).map(|(&sum, fixed)| fixed.decode(sum)));
        }
        Ok((Pass { loss, max_residual }, leaf_sums))
    }

    /// The one pending update and the leaves to sum by, if rows should be taken leaf by leaf.
    fn by_leaf(&self) -> Option<Moved<'_>> {
        let (leaves, _) = self.leaves?;
        let bytes = leaves.n_leaves * self.n_outputs * size_of::<i64>();
        match self.pending {
            [Update { leaf_of_row, values: LeafValues::Vector(values) }] if bytes > NEAR => {
                Some(Moved { leaves, leaf_of_row, values })
            }
            _ => None,
        }
    }
}

/// A move that is written while rows are taken leaf by leaf.
#[derive(Clone, Copy)]
struct Moved<'a> {
    /// The leaves to sum by.
    leaves: Leaves<'a>,
    /// The leaves and the values of the move.
    leaf_of_row: &'a [u32],
    values: &'a [f32],
}

/// A stretch and what it adds to.
struct Taker<'a> {
    sweep: &'a Sweep<'a>,
    /// The unit of the weights.
    unit: FixedPoint,
    phi: Option<&'a Phi>,
    /// Whether φ is applied once all rows are there.
    later: bool,
    columns: &'a Columns,
    stretch: Stretch<'a>,
    part: &'a mut Part,
}

impl Taker<'_> {
    /// Takes the rows as they come; `SUM` if there are leaves, `PROJECT` if φ is one of the columns.
    #[inline(always)]
    fn in_order<const SUM: bool, const PROJECT: bool>(&mut self) -> Result<()> {
        for i in self.stretch.rows.clone() {
            self.one::<SUM, PROJECT>(i);
        }
        if let Some(phi) = self.phi.filter(|_| self.later) {
            phi.apply(self.stretch.residuals, self.sweep.n_outputs, self.stretch.z);
        }
        Ok(())
    }

    /// Takes the rows leaf by leaf, four of a leaf at once.
    #[inline(always)]
    fn by_leaf(&mut self, moved: Moved<'_>, weight: impl Fn(usize) -> f64) -> Result<()> {
        let rows = self.stretch.rows.clone();
        let size = ROWS_PER_LEAF * moved.leaves.n_leaves;
        for first in rows.clone().step_by(size) {
            let by_leaf = ByLeaf::sorted(moved.leaves, first..rows.end.min(first + size))?;
            for (leaf, rows) in by_leaf.runs() {
                // (No closures here: they would be compiled for any processor.)
                let (fours, rest) = rows.as_chunks::<TOGETHER>();
                for &rows in fours {
                    self.four(rows, leaf as usize, moved, &weight);
                }
                for &row in rest {
                    self.one::<true, true>(row as usize);
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn one<const SUM: bool, const PROJECT: bool>(&mut self, i: usize) {
        let Taker { sweep, unit, phi, later, columns, stretch, part } = self;
        let (d, width, k) = (sweep.n_outputs, columns.masks.len(), i - stretch.rows.start);
        let row = &mut stretch.residuals[k * d..(k + 1) * d];
        for update in sweep.pending {
            subtract_leaf(update.values, update.leaf_of_row[i] as usize, row);
        }
        // Whole lanes are read, with the first cells of the next row, if there is one.
        let cells = match stretch.residuals.get(k * d..k * d + width * LANES) {
            Some(cells) => cells,
            None => {
                part.last[..d].copy_from_slice(&stretch.residuals[k * d..(k + 1) * d]);
                &part.last
            }
        };
        let leaf = sweep.leaves.map_or(0, |(leaves, _)| leaves.leaf_of_row[i] as usize);
        let tables = part.sums.as_chunks_mut::<LANES>().0;
        let sums = if SUM { &mut tables[leaf * width..(leaf + 1) * width] } else { &mut [] };
        let weight = sweep.weight.map_or(1.0, |weight| f64::from(weight[i]));
        let row_of = Row { cells, weight, factor: (weight * unit.scale) as f32 };
        let (squares, dot) = row_of.take::<SUM, PROJECT>(columns, &mut part.max, sums);
        part.loss.add(0.5 * squares * weight);
        if PROJECT {
            stretch.z[k] = dot;
        } else if let Some(phi) = phi.filter(|_| !*later) {
            let (q, row) = (phi.n_components(), &stretch.residuals[k * d..(k + 1) * d]);
            phi.apply(row, d, &mut stretch.z[k * q..(k + 1) * q]);
        }
    }

    #[inline(always)]
    fn four(
        &mut self,
        rows: [u32; TOGETHER],
        leaf: usize,
        moved: Moved<'_>,
        weight: impl Fn(usize) -> f64,
    ) {
        let Taker { sweep, unit, columns, stretch, part, .. } = self;
        let (d, width) = (sweep.n_outputs, columns.masks.len());
        let rows: [usize; TOGETHER] = from_fn(|a| rows[a] as usize);
        let places: [usize; TOGETHER] = from_fn(|a| rows[a] - stretch.rows.start);
        let weights: [f64; TOGETHER] = from_fn(|a| weight(rows[a]));
        let four = FourRows {
            starts: from_fn(|a| places[a] * d),
            moves: from_fn(|a| &moved.values[moved.leaf_of_row[rows[a]] as usize * d..][..d]),
            weights,
            factors: from_fn(|a| (weights[a] * unit.scale) as f32),
        };
        let tables = part.sums.as_chunks_mut::<LANES>().0;
        let sums = &mut tables[leaf * width..(leaf + 1) * width];
        let (squares, dots) = four.take(columns, d, stretch.residuals, &mut part.max, sums);
        for a in 0..TOGETHER {
            part.loss.add(0.5 * squares[a] * weights[a]);
            stretch.z[places[a]] = dots[a];
        }
    }
}

/// What a move changes after a pass that did not know it.
pub struct Ahead {
    /// By how much the loss grows; 0 if the leaf sums are unknown.
    pub loss: f64,
    /// The largest |value| of each output.
    pub reach: Vec<f64>,
}

/// Takes a move off the projections of residuals that do not contain it, and tells what else it changes.
///
/// `sums` are those of the residuals (n_leaves × d) and of the weights (n_leaves) over its leaves, if
/// they are known.
pub fn look_ahead(
    pool: &Pool,
    update: Update<'_>,
    n_leaves: usize,
    n_outputs: usize,
    sums: Option<(&[f64], &[f64])>,
    projected: Option<Projected<'_>>,
) -> Result<Ahead> {
    let d = n_outputs;
    let q = projected.as_ref().map_or(0, |projected| projected.phi.n_components());
    let mut shift = zeros::<f32>(n_leaves * q)?;
    let mut ahead = Ahead { loss: 0.0, reach: vec![0.0; d] };
    let mut value = vec![0.0f32; d];
    for leaf in 0..n_leaves {
        // −v, which is what residuals get.
        value.fill(0.0);
        subtract_leaf(update.values, leaf, &mut value);
        for (reach, &v) in ahead.reach.iter_mut().zip(&value) {
            let size = f64::from(v.abs());
            *reach = if size > *reach { size } else { *reach };
        }
        if let Some((sums, weights)) = sums {
            for (&v, &sum) in value.iter().zip(&sums[leaf * d..(leaf + 1) * d]) {
                let v = f64::from(v);
                ahead.loss += v * (sum + 0.5 * weights[leaf] * v);
            }
        }
        if let Some(projected) = &projected {
            projected.phi.apply(&value, d, &mut shift[leaf * q..(leaf + 1) * q]);
        }
    }
    if let Some(Projected { z, .. }) = projected {
        let n = update.leaf_of_row.len();
        let size = n.div_ceil(pool.threads() * 4).max(1);
        let pieces = z.chunks_mut(size * q).zip(update.leaf_of_row.chunks(size));
        pool.for_each(pieces, n * (q + 1), |(z, leaves)| {
            for (z, &leaf) in z.chunks_exact_mut(q).zip(leaves) {
                let shift = &shift[leaf as usize * q..][..q];
                z.iter_mut().zip(shift).for_each(|(z, shift)| *z += shift);
            }
        })?;
    }
    Ok(ahead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf::LeafValues;

    const N: usize = 90;
    const N_LEAVES: usize = 4;

    struct Table {
        residuals: Vec<f32>,
        values: Vec<f32>,
        leaf_of_row: Vec<u32>,
        weight: Vec<f32>,
        phi: Phi,
    }

    fn table(d: usize, q: usize) -> Table {
        let mut stream = crate::random::Key::new(d as u64).stream();
        let mut normals = |n: usize| -> Vec<f32> {
            (0..n).map(|_| stream.normals().0 as f32).collect::<Vec<f32>>()
        };
        Table {
            residuals: normals(N * d),
            values: normals(N_LEAVES * d),
            leaf_of_row: (0..N as u32).map(|i| i * 7 % N_LEAVES as u32).collect(),
            weight: (0..N).map(|i| 0.5 + (i % 5) as f32).collect(),
            phi: Phi::new(&normals(q * d), d).unwrap(),
        }
    }

    /// Runs a pass; returns what it tells, the sums by leaf and the projections.
    fn swept(
        table: &Table,
        residuals: &mut [f32],
        pending: &[Update<'_>],
        bounds: Option<&[f64]>,
        threads: usize,
    ) -> (Pass, Vec<f64>, Vec<f32>) {
        let leaves = Leaves { leaf_of_row: &table.leaf_of_row, n_leaves: N_LEAVES };
        let sweep = Sweep {
            n_outputs: residuals.len() / N,
            weight: Some(&table.weight),
            pending,
            leaves: bounds.map(|bounds| (leaves, bounds)),
        };
        let mut z = vec![0.0; N * table.phi.n_components()];
        let projected = Some(Projected { phi: &table.phi, z: &mut z, shares: None });
        let pool = Pool::new(threads, Box::new(|| false));
        let (pass, sums) = sweep.run(&pool, residuals, projected).unwrap();
        (pass, sums, z)
    }

    #[test]
    fn a_pass_gives_sums_maxima_loss_and_projections_of_moved_residuals() {
        for (d, q) in [(1, 1), (5, 2), (16, 1), (37, 1), (700, 3)] {
            let table = table(d, q);
            let values = LeafValues::Vector(&table.values);
            let update = Update { leaf_of_row: &table.leaf_of_row, values };
            let (mut moved, bounds) = (table.residuals.clone(), vec![200.0; d]);
            let (pass, sums, z) = swept(&table, &mut moved, &[update; 2], Some(&bounds), 1);
            let (mut loss, mut max) = (0.0, vec![0.0f64; d]);
            let mut expected = vec![0.0; N_LEAVES * d];
            for i in 0..N {
                let (weight, leaf) = (f64::from(table.weight[i]), table.leaf_of_row[i] as usize);
                let row = &moved[i * d..(i + 1) * d];
                for j in 0..d {
                    let v = table.values[leaf * d + j];
                    let r = table.residuals[i * d + j] - v - v;
                    assert_eq!(row[j], r);
                    loss += 0.5 * weight * f64::from(r) * f64::from(r);
                    max[j] = max[j].max(f64::from(r.abs()) * weight);
                    expected[leaf * d + j] += f64::from(r) * weight;
                }
                let mut components = vec![0.0; q];
                table.phi.apply(row, d, &mut components);
                assert_eq!(z[i * q..(i + 1) * q], components);
            }
            assert!((pass.loss / loss - 1.0).abs() < 1e-12);
            for (found, expected) in pass.max_residual.iter().zip(&max) {
                assert!((found / expected - 1.0).abs() < 1e-6);
            }
            for (sum, expected) in sums.iter().zip(&expected) {
                assert!((sum - expected).abs() < 1e-9);
            }
            let mut again = table.residuals.clone();
            let (other, other_sums, other_z) =
                swept(&table, &mut again, &[update; 2], Some(&bounds), 3);
            assert_eq!((other.loss, other_sums, other_z), (pass.loss, sums, z));
            assert_eq!((other.max_residual, again), (pass.max_residual, moved));
        }
    }

    #[test]
    fn rows_of_a_leaf_together_give_what_rows_one_by_one_give() {
        for d in [2500, 2512] {
            assert!(N_LEAVES * d * size_of::<i64>() > NEAR);
            let (table, bounds) = (table(d, 1), vec![200.0; d]);
            let values = LeafValues::Vector(&table.values);
            let update = Update { leaf_of_row: &table.leaf_of_row, values };
            let mut one_by_one = table.residuals.clone();
            for (row, &leaf) in one_by_one.chunks_exact_mut(d).zip(&table.leaf_of_row) {
                subtract_leaf(values, leaf as usize, row);
            }
            let (pass, sums, z) = swept(&table, &mut one_by_one, &[], Some(&bounds), 1);
            for threads in [1, 3] {
                let mut together = table.residuals.clone();
                let (other, other_sums, other_z) =
                    swept(&table, &mut together, &[update], Some(&bounds), threads);
                assert_eq!((other.loss, other_sums, other_z), (pass.loss, sums.clone(), z.clone()));
                assert_eq!(other.max_residual, pass.max_residual);
                assert_eq!(together, one_by_one);
            }
        }
    }

    #[test]
    fn looking_ahead_tells_what_the_next_pass_finds() {
        let steps: Vec<f32> = (0..37).map(|j| 0.1 * j as f32 - 1.0).collect();
        for (d, q) in [(1, 1), (5, 2), (37, 1)] {
            let table = table(d, q);
            let scalars = &table.values[..N_LEAVES];
            for values in
                [LeafValues::Vector(&table.values), LeafValues::Scaled(scalars, &steps[..d])]
            {
                let update = Update { leaf_of_row: &table.leaf_of_row, values };
                let (mut residuals, bounds) = (table.residuals.clone(), vec![200.0; d]);
                let (before, sums, mut z) = swept(&table, &mut residuals, &[], Some(&bounds), 1);
                let mut weights = [0.0; N_LEAVES];
                for (&leaf, &weight) in table.leaf_of_row.iter().zip(&table.weight) {
                    weights[leaf as usize] += f64::from(weight);
                }
                let projected = Some(Projected { phi: &table.phi, z: &mut z, shares: None });
                let known = Some((&sums[..], &weights[..]));
                let pool = Pool::serial();
                let ahead = look_ahead(&pool, update, N_LEAVES, d, known, projected).unwrap();
                let (after, _, expected) = swept(&table, &mut residuals, &[update], None, 1);
                assert!(((before.loss + ahead.loss) / after.loss - 1.0).abs() < 1e-6);
                for (z, expected) in z.iter().zip(expected) {
                    assert!((z - expected).abs() < 1e-4 * d as f32, "{z} {expected}");
                }
                for j in 0..d {
                    let bound = before.max_residual[j] + 4.5 * ahead.reach[j];
                    assert!(after.max_residual[j] <= bound * (1.0 + 1e-6));
                }
            }
        }
    }
}
