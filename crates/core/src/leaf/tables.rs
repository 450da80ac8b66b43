//! Tables of sums over the rows of each leaf: the pass over all cells that labels leaves.
//!
//! A table has a row of integers for each leaf. Small tables stay in the nearest cache, and rows are
//! added as they come. If tables are large, rows are added leaf by leaf and several at once, so that
//! the pass reads the cells, and hardly touches the tables.

use std::ops::Range;

use super::Leaves;
use super::order::ByLeaf;
use super::summands::{Room, Summand};
use crate::error::Result;
use crate::losses::{LeafRows, rows_per_block, sum_of_four};
use crate::lowlevel::widest;
use crate::memory::{room, zeros};
use crate::outputs::Outputs;
use crate::parallel::Pool;
use crate::reduce::{FixedPoint, ROUNDED_OFFSET, add_up, round_with_offset};
use crate::weights::Weights;

/// Sums that are added to at once. Rows of a table are whole numbers of these.
pub(super) const LANES: usize = 8;
/// Lanes of a row from which the compiler turns a plain loop into better code: of a loop over lanes, it
/// would then work on every eighth sum at once.
const WIDE: usize = 8;
/// Rows of a leaf that are added at once.
const TOGETHER: usize = 4;
/// Rows of a piece for each leaf from which sorting them by leaf is worth it.
const ROWS_PER_LEAF: usize = 2 * TOGETHER;
/// Bytes of tables up to which rows are added as they come.
const NEAR: usize = 1 << 14;
/// Outputs summed together. Rows are read whole unless they are very long: pieces of rows would
/// defeat the prefetcher.
const OUTPUT_BLOCK: usize = 2048;

/// A table of n_leaves × outputs sums.
pub(super) struct Table<'a> {
    pub summand: Summand<'a>,
    /// The scale of each output.
    pub fixed: Vec<FixedPoint>,
}

/// Tables to be filled in one pass.
pub(super) struct LeafTables<'a> {
    pub leaves: Leaves<'a>,
    pub outputs: &'a Outputs,
    pub weights: Weights<'a>,
    pub tables: &'a [Table<'a>],
}

/// The sums that one thread has made.
struct Sums {
    /// n_leaves rows of whole lanes for each table, in which every row of the data has left an offset.
    tables: Vec<Vec<i64>>,
    /// Rows of the data in each leaf.
    counts: Vec<i64>,
}

impl LeafTables<'_> {
    /// Outputs, filled up to whole lanes.
    fn stride(&self) -> usize {
        self.outputs.width().next_multiple_of(LANES)
    }

    /// The sums of each table.
    pub fn fill(&self, pool: &Pool) -> Result<Vec<Vec<f64>>> {
        let Leaves { leaf_of_row, n_leaves } = self.leaves;
        let (n, width, stride) = (leaf_of_row.len(), self.outputs.width(), self.stride());
        let size = n_leaves * stride;
        let start = || {
            let tables = self.tables.iter().map(|_| zeros(size)).collect::<Result<_>>()?;
            Ok(Sums { tables, counts: zeros(n_leaves)? })
        };
        let (cells, sort) = (n * width * 2, self.worth_sorting());
        let parts = pool.fold(pool.row_ranges(n, width * 2), cells, start, |sums, rows| {
            leaf_of_row[rows.clone()].iter().for_each(|&leaf| sums.counts[leaf as usize] += 1);
            if width == 1 && !self.weights.by_cell() {
                self.add_column(rows, &mut sums.tables);
            } else if sort && rows.len() >= ROWS_PER_LEAF * n_leaves {
                self.add_by_leaf(rows, &mut sums.tables)?;
            } else {
                self.add_in_order(rows, &mut sums.tables);
            }
            Ok(())
        })?;
        // All tables in one exchange with other machines.
        let parts = parts.into_iter().map(|sums| sums.narrow(width, stride));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let sums = add_up(pool, parts, self.tables.len() * n_leaves * width)?;
        let decode = |(k, table): (usize, &Table<'_>)| {
            let mut real = room(n_leaves * width)?;
            for leaf in sums[k * n_leaves * width..][..n_leaves * width].chunks_exact(width.max(1))
            {
                real.extend(leaf.iter().zip(&table.fixed).map(|(&sum, fixed)| fixed.decode(sum)));
            }
            Ok(real)
        };
        self.tables.iter().enumerate().map(decode).collect()
    }

    /// Adds rows one by one.
    fn add_in_order(&self, rows: Range<usize>, sums: &mut [Vec<i64>]) {
        for block in self.output_blocks() {
            let size = rows_per_block(block.len());
            let mut room = Room::new(self, &block, size);
            for first in rows.clone().step_by(size) {
                let n = size.min(rows.end - first);
                let side_by_side = block.len() == self.outputs.total;
                room.evaluate(self, n, |k| first + k, side_by_side);
                let leaf_of_row = &self.leaves.leaf_of_row[first..first + n];
                let rows = || leaf_of_row.iter().enumerate();
                self.add(&room, sums, || rows().map(|(k, &leaf)| (leaf, (k, first + k))));
            }
        }
    }

    /// Adds the rows of a single output. Its cells may be far apart: each is read once.
    fn add_column(&self, rows: Range<usize>, sums: &mut [Vec<i64>]) {
        let (size, stride) = (rows_per_block(1), self.stride());
        let mut room = Room::new(self, &(0..1), size);
        let has_residuals = !room.residuals.is_empty();
        for first in rows.clone().step_by(size) {
            let n = size.min(rows.end - first);
            room.evaluate(self, n, |k| first + k, false);
            let leaf_of_row = &self.leaves.leaf_of_row[first..first + n];
            for (k, (table, sums)) in self.tables.iter().zip(&mut *sums).enumerate() {
                let scale = room.scales[k][0];
                let mut add = |k: usize, value: f32| {
                    let weighted = f64::from(value) * self.weights.row(first + k);
                    let sum = &mut sums[leaf_of_row[k] as usize * stride];
                    *sum = sum.wrapping_add(round_with_offset(weighted * scale));
                };
                match table.summand {
                    Summand::Matrix(values) if !has_residuals => {
                        (0..n).for_each(|k| add(k, values[self.outputs.row(first + k).start]));
                    }
                    Summand::Matrix(_) => (0..n).for_each(|k| add(k, room.residuals[k])),
                    Summand::Curvature { .. } => (0..n).for_each(|k| add(k, room.curvatures[k])),
                    Summand::Presence(_) => (0..n).for_each(|k| add(k, room.presence[k])),
                }
            }
        }
    }

    /// Whether tables are large, and made of what can be added several rows at once.
    fn worth_sorting(&self) -> bool {
        let bytes = self.tables.len() * self.leaves.n_leaves * self.stride() * size_of::<i64>();
        let is_matrix = |table: &Table<'_>| matches!(table.summand, Summand::Matrix(_));
        let together = match self.tables {
            [first, Table { summand: Summand::Curvature { .. }, .. }] => is_matrix(first),
            tables => tables.iter().all(is_matrix),
        };
        bytes > NEAR && together && !self.weights.by_cell()
    }

    /// Adds the rows of each leaf, several at once.
    fn add_by_leaf(&self, rows: Range<usize>, sums: &mut [Vec<i64>]) -> Result<()> {
        let by_leaf = ByLeaf::sorted(self.leaves, rows)?;
        for block in self.output_blocks() {
            let mut room = Room::new(self, &block, TOGETHER);
            for (leaf, rows) in by_leaf.runs() {
                let (fours, rest) = rows.as_chunks::<TOGETHER>();
                for rows in fours {
                    self.add_four(rows.map(|i| i as usize), leaf as usize, &mut room, sums);
                }
                room.evaluate(self, rest.len(), |k| rest[k] as usize, false);
                let each = || rest.iter().enumerate().map(|(k, &i)| (leaf, (k, i as usize)));
                self.add(&room, sums, each);
            }
        }
        Ok(())
    }

    /// Adds four rows of one leaf, whose cells have no weights of their own.
    fn add_four(
        &self,
        rows: [usize; TOGETHER],
        leaf: usize,
        room: &mut Room,
        sums: &mut [Vec<i64>],
    ) {
        let (m, first) = (room.width, leaf * self.stride() + room.first);
        let weights = rows.map(|i| self.weights.row(i));
        if let ([first_sums, second], [residuals, curvatures]) = (&mut sums[..], self.tables)
            && let Summand::Matrix(values) = residuals.summand
            && let Summand::Curvature { kernels, targets, .. } = curvatures.summand
        {
            if kernels.curvature_uses_target() {
                for (y, i) in room.y.chunks_exact_mut(m).zip(rows) {
                    let start = self.outputs.row(i).start + room.first;
                    targets.copy(start..start + m, y);
                }
            }
            let y = std::array::from_fn(|k| &room.y[k * m..(k + 1) * m]);
            let sums = [&mut first_sums[first..first + m], &mut second[first..first + m]];
            let scales = [&room.scales[0][..m], &room.scales[1][..m]];
            let residuals = rows.map(|i| room.row_of(self, values, i));
            kernels.add_leaf_rows(LeafRows { y, residuals, weights }, &room.param, scales, sums);
            return;
        }
        for ((table, sums), scale) in self.tables.iter().zip(sums).zip(&room.scales) {
            if let Summand::Matrix(values) = table.summand {
                let values = rows.map(|i| room.row_of(self, values, i));
                let (scale, sums) = (&scale[..m], &mut sums[first..first + m]);
                widest(
                    #[inline(always)]
                    || match weights {
                        [1.0, 1.0, 1.0, 1.0] => add_four(values, [1.0; TOGETHER], scale, sums),
                        _ => add_four(values, weights, scale, sums),
                    },
                );
            }
        }
    }

    /// Outputs that are summed together.
    fn output_blocks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let width = self.outputs.width();
        (0..width).step_by(OUTPUT_BLOCK).map(move |first| first..(first + OUTPUT_BLOCK).min(width))
    }

    /// Adds single rows: the leaf of each, its place in the room, and its number.
    #[inline(always)]
    fn add<I: Iterator<Item = (u32, (usize, usize))>>(
        &self,
        room: &Room,
        sums: &mut [Vec<i64>],
        each: impl Fn() -> I,
    ) {
        let rows = |i: usize| self.weights.rows.map_or(1.0, |weight| f64::from(weight[i]));
        for (k, sums) in sums.iter_mut().enumerate() {
            let add = Addition { tables: self, room, table: k };
            widest(
                #[inline(always)]
                || match (self.weights.rows, self.weights.cells) {
                    (_, None) if room.width >= WIDE * LANES => add.wide(each(), sums),
                    (None, None) => add.all(each(), sums, |_, _| [1.0; LANES]),
                    (Some(_), None) => add.all(each(), sums, |i, _| [rows(i); LANES]),
                    (_, Some(cells)) => add.all(each(), sums, |i, at| {
                        let cells = &cells[at..at + LANES];
                        std::array::from_fn(|k| rows(i) * f64::from(cells[k]))
                    }),
                },
            );
        }
    }
}

/// Rows to be added to a table.
#[derive(Clone, Copy)]
struct Addition<'a> {
    tables: &'a LeafTables<'a>,
    room: &'a Room,
    table: usize,
}

impl Addition<'_> {
    /// Adds rows, each cell with its offset. `weights(i, at)` are those of row i from a place of the
    /// matrix on.
    #[inline(always)]
    fn all(
        self,
        rows: impl Iterator<Item = (u32, (usize, usize))>,
        sums: &mut [i64],
        weights: impl Fn(usize, usize) -> [f64; LANES],
    ) {
        let Addition { tables, room, table } = self;
        let (stride, m) = (tables.stride(), room.width);
        let scale = room.scales[table].as_chunks::<LANES>().0;
        let n = scale.len();
        let (values, in_room) = match tables.tables[table].summand {
            Summand::Matrix(values) => (values, false),
            Summand::Curvature { .. } => (&room.curvatures[..], true),
            Summand::Presence(_) => (&room.presence[..], true),
        };
        let end = tables.leaves.leaf_of_row.len() * tables.outputs.total;
        for (leaf, (at, i)) in rows {
            let sums = &mut sums[leaf as usize * stride + room.first..][..n * LANES];
            let place = tables.outputs.row(i).start + room.first;
            if place + n * LANES > end {
                self.last((at, i), sums);
                continue;
            }
            let start = if in_room { at * m } else { place };
            let values = values[start..][..n * LANES].as_chunks::<LANES>().0;
            let sums = &mut sums.as_chunks_mut::<LANES>().0[..n];
            for chunk in 0..n {
                let mut total = sums[chunk];
                let weights = weights(i, place + chunk * LANES);
                for lane in 0..LANES {
                    let value = f64::from(values[chunk][lane]) * weights[lane];
                    let value = round_with_offset(value * scale[chunk][lane]);
                    total[lane] = total[lane].wrapping_add(value);
                }
                sums[chunk] = total;
            }
        }
    }

    /// Adds rows of many outputs, each cell with its offset.
    #[inline(always)]
    fn wide(self, rows: impl Iterator<Item = (u32, (usize, usize))>, sums: &mut [i64]) {
        let Addition { tables, room, table } = self;
        let (stride, m) = (tables.stride(), room.width);
        let scale = &room.scales[table][..m];
        for (leaf, (at, i)) in rows {
            let values = match tables.tables[table].summand {
                Summand::Matrix(values) => room.row_of(tables, values, i),
                Summand::Curvature { .. } => &room.curvatures[at * m..][..m],
                Summand::Presence(_) => &room.presence[at * m..][..m],
            };
            let (values, weight) = (&values[..m], tables.weights.row(i));
            let sums = &mut sums[leaf as usize * stride + room.first..][..m];
            for j in 0..m {
                let value = round_with_offset(f64::from(values[j]) * weight * scale[j]);
                sums[j] = sums[j].wrapping_add(value);
            }
        }
    }

    /// Adds one of the last rows, after which there is nothing that could fill up lanes.
    #[cold]
    fn last(self, (at, i): (usize, usize), sums: &mut [i64]) {
        let Addition { tables, room, table } = self;
        let place = tables.outputs.row(i).start + room.first;
        for j in 0..room.width {
            let value = match tables.tables[table].summand {
                Summand::Matrix(values) => values[place + j],
                Summand::Curvature { .. } => room.curvatures[at * room.width + j],
                Summand::Presence(_) => room.presence[at * room.width + j],
            };
            let weight = tables.weights.cell(i, place + j);
            let value = f64::from(value) * weight * room.scales[table][j];
            sums[j] = sums[j].wrapping_add(round_with_offset(value));
        }
    }
}

/// Adds four rows, each cell with its offset.
#[inline(always)]
fn add_four(values: [&[f32]; TOGETHER], weights: [f64; TOGETHER], scale: &[f64], sums: &mut [i64]) {
    let m = sums.len();
    let (values, scale) = (values.map(|values| &values[..m]), &scale[..m]);
    for j in 0..m {
        let sum = sum_of_four(values.map(|values| values[j]), weights, scale[j]);
        sums[j] = sums[j].wrapping_add(sum);
    }
}

impl Sums {
    /// The sums alone, table after table: without offsets, and without what fills lanes up.
    fn narrow(self, width: usize, stride: usize) -> Result<Vec<i64>> {
        let mut narrow = room(self.tables.len() * self.counts.len() * width)?;
        for table in &self.tables {
            for (sums, &count) in table.chunks_exact(stride.max(1)).zip(&self.counts) {
                let offset = count.wrapping_mul(ROUNDED_OFFSET);
                narrow.extend(sums[..width].iter().map(|sum| sum.wrapping_sub(offset)));
            }
        }
        Ok(narrow)
    }
}

/// Takes off what sums with offsets have too much: each row has left one offset in every sum of its leaf.
pub(crate) fn remove_offsets(leaves: Leaves<'_>, sums: &mut [i64]) -> Result<()> {
    let mut counts = zeros::<i64>(leaves.n_leaves)?;
    leaves.leaf_of_row.iter().for_each(|&leaf| counts[leaf as usize] += 1);
    let width = sums.len() / leaves.n_leaves.max(1);
    for (sums, &count) in sums.chunks_mut(width.max(1)).zip(&counts) {
        let offset = count.wrapping_mul(ROUNDED_OFFSET);
        sums.iter_mut().for_each(|sum| *sum = sum.wrapping_sub(offset));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::sums::{Curvatures, SumBounds, leaf_sums};
    use super::*;
    use crate::losses::{Loss, Losses, Objective, Targets};
    use crate::random::Key;

    const N: usize = 803;
    const D: usize = 103;
    const N_LEAVES: usize = 9;

    /// Sums one by one, in doubles: Σ w r and Σ w h.
    fn expected(
        leaf_of_row: &[u32],
        outputs: &Outputs,
        weight: impl Fn(usize, usize) -> f64,
        cell: impl Fn(usize) -> (f32, f32),
    ) -> (Vec<f64>, Vec<f64>) {
        let mut sums =
            (vec![0.0; N_LEAVES * outputs.width()], vec![0.0; N_LEAVES * outputs.width()]);
        for (i, &leaf) in leaf_of_row.iter().enumerate() {
            for (k, place) in outputs.row(i).enumerate() {
                let (at, (r, h)) = (leaf as usize * outputs.width() + k, cell(place));
                sums.0[at] += f64::from(r) * weight(i, place);
                sums.1[at] += f64::from(h) * weight(i, place);
            }
        }
        sums
    }

    #[test]
    fn rows_one_by_one_and_leaf_by_leaf_have_the_sums_of_their_cells() {
        let mut stream = Key::new(8).stream();
        let mut unit = |n: usize| (0..n).map(|_| stream.uniform() as f32).collect::<Vec<f32>>();
        let (r, y, rows, cells) = (unit(N * D), unit(N * D), unit(N), unit(N * D));
        let leaf_of_row: Vec<u32> = (0..N).map(|i| (i * i % N_LEAVES) as u32).collect();
        let leaves = Leaves { leaf_of_row: &leaf_of_row, n_leaves: N_LEAVES };
        let all = [
            Weights::default(),
            Weights::of_rows(Some(&rows)),
            Weights { rows: Some(&rows), cells: Some(&cells), partial: false },
        ];
        let pool = Pool::new(2, Box::new(|| false));
        for (weights, loss) in
            all.into_iter().flat_map(|w| [(w, Loss::Logistic), (w, Loss::Poisson)])
        {
            let losses = Losses::new(&[loss; D], vec![0.0; D], vec![0.0; D]).unwrap();
            let objective = Objective::new(&losses, Targets::Real(&y), weights, N).unwrap();
            // Small tables and large ones, whole lanes and others, the last cells and others.
            for range in [0..D, 3..D, 0..96, D - 1..D, 1..4] {
                let outputs = Outputs { total: D, range };
                let bounds = SumBounds { residual: &[1.0; D], curvature: &[2.0; D] };
                let curvatures = Curvatures::Formula(objective);
                let sums =
                    leaf_sums(&pool, leaves, &outputs, &r, curvatures, weights, bounds).unwrap();
                let curvature = |place: usize| match loss {
                    Loss::Poisson => y[place] - r[place],
                    _ => r[place] * (1.0 - r[place]),
                };
                let (residuals, curvatures) = expected(
                    &leaf_of_row,
                    &outputs,
                    |i, place| weights.cell(i, place),
                    |place| (r[place], curvature(place)),
                );
                let near =
                    |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
                assert!(near(&sums.residuals, &residuals));
                assert!(near(&sums.curvatures.unwrap(), &curvatures));
            }
        }
    }

    #[test]
    fn both_orders_give_the_same_integers() {
        let r: Vec<f32> = (0..N * D).map(|k| (k * 13 % 31) as f32 / 7.0 - 2.0).collect();
        let rows: Vec<f32> = (0..N).map(|i| 0.5 + (i % 5) as f32).collect();
        let leaf_of_row: Vec<u32> = (0..N).map(|i| (i * 7 % N_LEAVES) as u32).collect();
        let leaves = Leaves { leaf_of_row: &leaf_of_row, n_leaves: N_LEAVES };
        let fixed = vec![FixedPoint::for_sum(20.0, N).unwrap(); D];
        let tables = [Table { summand: Summand::Matrix(&r), fixed }];
        let (outputs, weights) = (Outputs::all(D), Weights::of_rows(Some(&rows)));
        let tables = LeafTables { leaves, outputs: &outputs, weights, tables: &tables };
        let size = N_LEAVES * tables.stride();
        let (mut in_order, mut by_leaf) = ([vec![0; size]], [vec![0; size]]);
        tables.add_in_order(0..N, &mut in_order);
        tables.add_by_leaf(0..N, &mut by_leaf).unwrap();
        let sums = |[table]: [Vec<i64>; 1]| {
            let sums = Sums { tables: vec![table], counts: vec![0; N_LEAVES] };
            sums.narrow(D, D.next_multiple_of(LANES)).unwrap()
        };
        assert_eq!(sums(in_order), sums(by_leaf));
    }
}
