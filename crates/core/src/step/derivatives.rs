//! Derivatives of each output's loss along a direction.

use std::ops::Range;

use super::{Direction, moved, pick};
use crate::error::{Result, invalid};
use crate::losses::{CellKernels, Loss, Objective, rows_per_block, tiled};
use crate::lowlevel::widest;
use crate::outputs::Outputs;
use crate::parallel::Pool;
use crate::reduce::{FixedPoint, ROUNDED_OFFSET, add_up, largest, round_with_offset};
use crate::weights::{Cell, Weights};
use crate::with_cells;

/// Some outputs, which share a loss, on their way along a direction.
#[derive(Clone)]
pub struct Along<'a> {
    /// The loss.
    pub objective: Objective<'a>,
    /// Raw predictions where the way begins, n × d.
    pub raw: &'a [f32],
    /// The direction.
    pub direction: Direction<'a>,
    /// The outputs.
    pub outputs: Range<usize>,
}

/// First and second derivative of each output's loss along the direction, at `rho`.
///
/// If `active` says that few outputs matter, only those are looked at; the others get zeros.
pub fn derivatives(
    pool: &Pool,
    along: &Along<'_>,
    rho: &[f64],
    active: Option<&[bool]>,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let width = along.outputs.len();
    if along.objective.losses.loss_of(&along.outputs)? == Loss::Softmax {
        return invalid("the outputs of softmax share one loss");
    }
    let chosen = active.and_then(|active| {
        let chosen: Vec<usize> = (0..active.len()).filter(|&k| active[k]).collect();
        (chosen.len() * 2 < active.len()).then_some(chosen)
    });
    let search = Search::new(along, rho, chosen)?;
    let m = search.places.len();
    let fixed = search.scales(pool)?;
    let scales = Scales {
        slope: fixed.iter().map(|(slope, _)| slope.scale).collect(),
        curve: fixed.iter().map(|(_, curve)| curve.scale).collect(),
    };
    let n = along.objective.n_rows;
    let parts = pool.map(pool.row_ranges(n, m * 8), n * m * 8, |rows| {
        // Slopes, then curvatures.
        let mut sums = vec![0i64; 2 * m];
        let offset = (rows.len() as i64).wrapping_mul(ROUNDED_OFFSET);
        search.add(rows, &scales, &mut sums);
        sums.iter_mut().for_each(|sum| *sum = sum.wrapping_sub(offset));
        sums
    })?;
    let sums = add_up(pool, parts, 2 * m)?;
    let (mut slopes, mut curves) = (vec![0.0; width], vec![0.0; width]);
    for (place, &k) in search.places.iter().enumerate() {
        slopes[k] = -fixed[place].0.decode(sums[place]);
        curves[k] = fixed[place].1.decode(sums[m + place]);
    }
    Ok((slopes, curves))
}

/// Integers per unit of the sums of each output.
struct Scales {
    slope: Vec<f64>,
    curve: Vec<f64>,
}

/// The chosen ones of the outputs, at their steps.
struct Search<'a> {
    along: &'a Along<'a>,
    kernels: &'static dyn CellKernels,
    /// Whether all outputs are chosen.
    all: bool,
    /// The chosen outputs, counted from the first of `along`.
    places: Vec<usize>,
    rho: Vec<f64>,
    offset: Vec<f32>,
    /// Once for each row of a block.
    param: Vec<f32>,
}

/// The chosen cells of a block of rows, side by side.
struct Room {
    y: Vec<f32>,
    f: Vec<f32>,
    g: Vec<f32>,
    /// Weights, if they are by cell.
    w: Vec<f64>,
    residuals: Vec<f32>,
    curvatures: Vec<f32>,
}

/// The derivatives of some cells, and their directions.
struct RowDerivatives<'a> {
    r: &'a [f32],
    h: &'a [f32],
    g: &'a [f32],
}

impl<'a> Search<'a> {
    fn new(along: &'a Along<'a>, rho: &[f64], chosen: Option<Vec<usize>>) -> Result<Search<'a>> {
        let all = chosen.is_none();
        let places = chosen.unwrap_or_else(|| (0..along.outputs.len()).collect());
        let first = along.outputs.start;
        let picked =
            |values: &[f32]| places.iter().map(|&k| values[first + k]).collect::<Vec<f32>>();
        Ok(Search {
            kernels: along.objective.kernels_of(&along.outputs)?,
            all,
            rho: places.iter().map(|&k| rho[k]).collect(),
            offset: picked(along.objective.offset()),
            param: tiled(&picked(along.objective.param()), rows_per_block(places.len())),
            along,
            places,
        })
    }

    fn weights(&self) -> Weights<'a> {
        self.along.objective.weights
    }

    /// The scales of the sums of slopes and curvatures of each chosen output.
    fn scales(&self, pool: &Pool) -> Result<Vec<(FixedPoint, FixedPoint)>> {
        let Along { objective, direction, outputs, .. } = self.along;
        let (m, first) = (self.places.len(), outputs.start);
        let outputs = Outputs { total: objective.n_outputs(), range: outputs.clone() };
        let heaviest = with_cells!(objective.targets, y => {
            self.weights().max_of_outputs(pool, y, &outputs)?
        });
        // If the loss bounds its derivatives, direction and weights do the rest. If it grows without
        // end, a bound from the largest |f| can be so loose that all sums round to zero.
        let param = |k: usize| f64::from(objective.param()[first + k]);
        let known: Option<Vec<(f64, f64)>> =
            self.places.iter().map(|&k| self.kernels.bounds(param(k))).collect();
        let bounds: Vec<(f64, f64)> = match known {
            Some(mut bounds) => {
                let direction_max = direction.max(pool, outputs.width())?;
                for ((r, h), &k) in bounds.iter_mut().zip(&self.places) {
                    let g = direction_max[k];
                    (*r, *h) = (*r * g, *h * g * g);
                }
                bounds
            }
            None => {
                let max = self.maxima(pool)?;
                (0..m).map(|place| (max[place], max[m + place])).collect()
            }
        };
        let n_all = pool.all_rows(objective.n_rows);
        let scale =
            |bound: f64, k: usize| FixedPoint::for_sum(bound * heaviest[k] * 1.000_001, n_all);
        let fixed = bounds.iter().zip(&self.places);
        fixed.map(|(&(r, h), &k)| Ok((scale(r, k)?, scale(h, k)?))).collect()
    }

    /// Largest |r g| of every chosen output, then largest h g², where there is a target.
    fn maxima(&self, pool: &Pool) -> Result<Vec<f64>> {
        let (n, m) = (self.along.objective.n_rows, self.places.len());
        let partial = self.weights().partial;
        let maxima = pool.map(pool.row_ranges(n, m * 8), n * m * 8, |rows| {
            let mut max = vec![0.0f64; 2 * m];
            let (slopes, curves) = max.split_at_mut(m);
            self.each_block(
                rows,
                |missing, _| !(partial && missing),
                |rows, room| {
                    widest(
                        #[inline(always)]
                        || {
                            for row in 0..rows.len() {
                                raise(room.rows(row * m..(row + 1) * m), slopes, curves);
                            }
                        },
                    );
                },
            );
            max
        })?;
        largest(pool, maxima, 2 * m)
    }

    /// Adds the −slopes and curvatures of some rows, each with its offset.
    fn add(&self, rows: Range<usize>, scales: &Scales, sums: &mut [i64]) {
        let m = self.places.len();
        let weights = self.weights();
        let (slopes, curves) = sums.split_at_mut(m);
        // Cells without weight do not move, however far away they are.
        let moves = |_, weight: f64| weight > 0.0;
        self.each_block(rows, moves, |rows, room| {
            widest(
                #[inline(always)]
                || {
                    if m == 1 && !weights.by_cell() {
                        let weight = |row: usize| weights.row(rows.start + row);
                        let sums = add_column(room.rows(0..rows.len()), weight, scales);
                        slopes[0] = slopes[0].wrapping_add(sums[0]);
                        curves[0] = curves[0].wrapping_add(sums[1]);
                        return;
                    }
                    for (row, i) in rows.enumerate() {
                        let cells = row * m..(row + 1) * m;
                        let derivatives = room.rows(cells.clone());
                        if weights.by_cell() {
                            let w = &room.w[cells];
                            add_row(derivatives, |k| w[k], scales, (slopes, curves));
                        } else {
                            let w = weights.row(i);
                            add_row(derivatives, |_| w, scales, (slopes, curves));
                        }
                    }
                },
            );
        });
    }

    /// Calls `look` with blocks of rows and their derivatives. If weights are by cell, cells stay
    /// where they are unless `moves(missing, weight)`.
    #[inline(always)]
    fn each_block(
        &self,
        rows: Range<usize>,
        moves: impl Fn(bool, f64) -> bool + Copy,
        mut look: impl FnMut(Range<usize>, &Room),
    ) {
        let m = self.places.len();
        let block = rows_per_block(m);
        let zeros = || vec![0.0f32; m * block];
        let mut room = Room {
            y: zeros(),
            f: zeros(),
            g: zeros(),
            w: vec![0.0; if self.weights().by_cell() { m * block } else { 0 }],
            residuals: zeros(),
            curvatures: zeros(),
        };
        for start in rows.clone().step_by(block) {
            let rows = start..(start + block).min(rows.end);
            let m = rows.len() * m;
            with_cells!(self.along.objective.targets, y => widest(#[inline(always)] || {
                if self.places.len() == 1 && !self.weights().by_cell() {
                    self.prepare_column(y, rows.clone(), &mut room);
                    return;
                }
                for (row, i) in rows.clone().enumerate() {
                    self.prepare(y, (i, row), moves, &mut room);
                }
            }));
            let into = (&mut room.residuals[..m], &mut room.curvatures[..m]);
            self.kernels.derivatives(&room.y[..m], &room.f, &self.param, into);
            look(rows, &room);
        }
    }

    /// [`Search::prepare`] for all rows of a block, if one output is chosen.
    #[inline(always)]
    fn prepare_column<Y: Cell + Into<f32>>(&self, y: &[Y], rows: Range<usize>, room: &mut Room) {
        let Along { objective, raw, direction, outputs } = self.along;
        let (k, rho, offset) = (self.places[0], self.rho[0], self.offset[0]);
        let first = outputs.start + k;
        let cells = room.y.iter_mut().zip(&mut room.f).zip(&mut room.g);
        for (i, ((y_cell, f), g_cell)) in rows.zip(cells) {
            let at = i * objective.n_outputs() + first;
            let g = pick(direction.row(i), k);
            (*y_cell, *g_cell) = (y[at].into(), g);
            *f = moved(offset, raw[at], rho, g);
        }
    }

    /// Targets, predictions, directions and weights of the chosen cells of row `i`, which is `row`
    /// in its block.
    #[inline(always)]
    fn prepare<Y: Cell + Into<f32>>(
        &self,
        y: &[Y],
        (i, row): (usize, usize),
        moves: impl Fn(bool, f64) -> bool,
        room: &mut Room,
    ) {
        let Along { objective, raw, direction, outputs } = self.along;
        let d = objective.n_outputs();
        let at = i * d + outputs.start..i * d + outputs.end;
        let first = at.start;
        let (y, raw, g) = (&y[at.clone()], &raw[at], direction.row(i));
        let m = self.places.len();
        let cells = row * m..(row + 1) * m;
        let (y_row, f_row) = (&mut room.y[cells.clone()], &mut room.f[cells.clone()]);
        let g_row = &mut room.g[cells.clone()];
        let (rho, offset) = (&self.rho[..m], &self.offset[..m]);
        if self.weights().by_cell() {
            let w_row = &mut room.w[cells];
            for (place, &k) in self.places.iter().enumerate() {
                let missing = y[k].is_missing();
                let (target, weight) = self.weights().target(i, first + k, y[k]);
                let stays = !moves(missing, weight);
                g_row[place] = if stays { 0.0 } else { pick(g, k) };
                let raw = if stays { 0.0 } else { raw[k] };
                f_row[place] = moved(offset[place], raw, rho[place], g_row[place]);
                (y_row[place], w_row[place]) = (target.into(), weight);
            }
        } else if self.all && g.len() == m {
            let (y, raw, g) = (&y[..m], &raw[..m], &g[..m]);
            for k in 0..m {
                y_row[k] = y[k].into();
                f_row[k] = moved(offset[k], raw[k], rho[k], g[k]);
                g_row[k] = g[k];
            }
        } else if self.all {
            let (y, raw, g) = (&y[..m], &raw[..m], g[0]);
            for k in 0..m {
                y_row[k] = y[k].into();
                f_row[k] = moved(offset[k], raw[k], rho[k], g);
            }
            g_row.fill(g);
        } else {
            for (place, &k) in self.places.iter().enumerate() {
                y_row[place] = y[k].into();
                g_row[place] = pick(g, k);
                f_row[place] = moved(offset[place], raw[k], rho[place], g_row[place]);
            }
        }
    }
}

impl Room {
    #[inline(always)]
    fn rows(&self, cells: Range<usize>) -> RowDerivatives<'_> {
        RowDerivatives {
            r: &self.residuals[cells.clone()],
            h: &self.curvatures[cells.clone()],
            g: &self.g[cells],
        }
    }
}

#[inline(always)]
fn raise(row: RowDerivatives<'_>, slopes: &mut [f64], curves: &mut [f64]) {
    let m = slopes.len();
    let (r, h, g, curves) = (&row.r[..m], &row.h[..m], &row.g[..m], &mut curves[..m]);
    for k in 0..m {
        let g = f64::from(g[k]);
        slopes[k] = slopes[k].max((f64::from(r[k]) * g).abs());
        curves[k] = curves[k].max(f64::from(h[k]) * g * g);
    }
}

/// −Slope and curvature of one output, summed over the rows of a block.
#[inline(always)]
fn add_column(
    column: RowDerivatives<'_>,
    weight: impl Fn(usize) -> f64,
    scales: &Scales,
) -> [i64; 2] {
    let m = column.r.len();
    let (r, h, g) = (column.r, &column.h[..m], &column.g[..m]);
    let (slope_scale, curve_scale) = (scales.slope[0], scales.curve[0]);
    let mut sums = [0i64; 2];
    for k in 0..m {
        let (g, w) = (f64::from(g[k]), weight(k));
        let slope = round_with_offset(f64::from(r[k]) * g * w * slope_scale);
        let curve = round_with_offset(f64::from(h[k]) * g * g * w * curve_scale);
        sums = [sums[0].wrapping_add(slope), sums[1].wrapping_add(curve)];
    }
    sums
}

#[inline(always)]
fn add_row(
    row: RowDerivatives<'_>,
    weight: impl Fn(usize) -> f64,
    scales: &Scales,
    (slopes, curves): (&mut [i64], &mut [i64]),
) {
    let m = slopes.len();
    // Slices of one length: no bounds are checked in the loop.
    let (r, h, g, curves) = (&row.r[..m], &row.h[..m], &row.g[..m], &mut curves[..m]);
    let (slope_scale, curve_scale) = (&scales.slope[..m], &scales.curve[..m]);
    for k in 0..m {
        let (g, w) = (f64::from(g[k]), weight(k));
        let slope = round_with_offset(f64::from(r[k]) * g * w * slope_scale[k]);
        let curve = round_with_offset(f64::from(h[k]) * g * g * w * curve_scale[k]);
        slopes[k] = slopes[k].wrapping_add(slope);
        curves[k] = curves[k].wrapping_add(curve);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::{Loss, Losses, Targets};

    fn losses(loss: Loss, d: usize) -> Losses {
        Losses::new(&vec![loss; d], vec![0.0; d], vec![0.0; d]).unwrap()
    }

    #[test]
    fn derivatives_of_squared_error_are_exact() {
        let y = [1.0f32, 2.0, -1.0, 0.5];
        let direction =
            Direction { leaf_of_row: Some(&[0, 1]), values: &[0.5, 1.0, -2.0, 1.0], width: 2 };
        let losses = losses(Loss::Squared, 2);
        let objective = Objective::new(&losses, Targets::Real(&y), Weights::default(), 2).unwrap();
        let along = Along { objective, raw: &[0.0; 4], direction, outputs: 0..2 };
        let (slope, curve) = derivatives(&Pool::serial(), &along, &[0.0, 1.0], None).unwrap();
        assert!((slope[0] + (0.5 + 2.0)).abs() < 1e-9);
        assert!((slope[1] + (1.0 - 0.5)).abs() < 1e-9);
        assert!((curve[0] - 4.25).abs() < 1e-9 && (curve[1] - 2.0).abs() < 1e-9);
    }

    #[test]
    fn derivatives_have_room_for_large_raw_predictions() {
        let (y, raw) = ([0.0f32, 1.0, 1.0], [9.0f32, -12.0, 3.0]);
        let direction = Direction { leaf_of_row: None, values: &[1.0, 0.5, -1.0], width: 1 };
        for loss in [Loss::Exponential, Loss::Poisson, Loss::Logistic, Loss::Squared] {
            let losses = losses(loss, 1);
            let targets = Targets::Real(&y);
            let objective = Objective::new(&losses, targets, Weights::default(), 3).unwrap();
            let along = Along { objective, raw: &raw, direction, outputs: 0..1 };
            let (slope, curve) = derivatives(&Pool::serial(), &along, &[0.0], None).unwrap();
            let (mut r, mut h) = ([0.0f32; 3], [0.0f32; 3]);
            loss.kernels().derivatives(&y, &raw, &[0.0; 3], (&mut r, &mut h));
            let (mut expected_slope, mut expected_curve) = (0.0, 0.0);
            for i in 0..3 {
                let g = f64::from(direction.values[i]);
                expected_slope -= f64::from(r[i]) * g;
                expected_curve += f64::from(h[i]) * g * g;
            }
            assert!((slope[0] - expected_slope).abs() <= 1e-9 * expected_slope.abs(), "{loss:?}");
            assert!((curve[0] - expected_curve).abs() <= 1e-9 * expected_curve.abs(), "{loss:?}");
        }
    }

    #[test]
    fn inactive_outputs_change_nothing_for_the_others() {
        let (n, d) = (40, 7);
        let mut stream = crate::random::Key::new(9).stream();
        let y: Vec<u8> = (0..n * d).map(|_| stream.below(2) as u8).collect();
        let raw: Vec<f32> = (0..n * d).map(|_| stream.normals().0 as f32).collect();
        let leaves: Vec<u32> = (0..n).map(|_| stream.below(3) as u32).collect();
        let rho = [0.5, 1.0, -1.0, 2.0, 0.1, 3.0, 0.7];
        let active = [false, true, false, false, false, true, false];
        let pool = Pool::new(2, Box::new(|| false));
        let losses = Losses::new(&[Loss::Logistic; 7], vec![0.25; 7], vec![0.0; 7]).unwrap();
        let targets = Targets::Labels(&y);
        let objective = Objective::new(&losses, targets, Weights::default(), n).unwrap();
        for width in [1, d] {
            let values: Vec<f32> = (0..3 * width).map(|_| stream.normals().0 as f32).collect();
            let direction = Direction { leaf_of_row: Some(&leaves), values: &values, width };
            let along = Along { objective, raw: &raw, direction, outputs: 0..d };
            let at = |active| derivatives(&pool, &along, &rho, active).unwrap();
            let (all, some) = (at(None), at(Some(&active)));
            for (k, &active) in active.iter().enumerate() {
                let expected = if active { (all.0[k], all.1[k]) } else { (0.0, 0.0) };
                assert_eq!((some.0[k], some.1[k]), expected);
            }
        }
    }

    #[test]
    fn missing_cells_have_no_slope_however_far_their_predictions_are() {
        let y = [3.0f32, f32::NAN, 1.0, 2.0];
        let (far, near) = ([0.5f32, 85.0, -1.0, 1.0], [0.5f32, 0.0, -1.0, 1.0]);
        let cells = [2.0f32, 1.0, 1.0, 3.0];
        let weights = Weights { rows: None, cells: Some(&cells), partial: true };
        let direction = Direction { leaf_of_row: None, values: &[1.0; 4], width: 2 };
        let losses = losses(Loss::Poisson, 2);
        let objective = Objective::new(&losses, Targets::Real(&y), weights, 2).unwrap();
        let at = |raw: &[f32]| {
            let along = Along { objective, raw, direction, outputs: 0..2 };
            derivatives(&Pool::serial(), &along, &[0.25, 0.5], None).unwrap()
        };
        assert_eq!(at(&far), at(&near));
        let expected = 3.0 * (1.5f64.exp() - 2.0);
        assert!((at(&far).0[1] - expected).abs() < 1e-5);
    }
}
