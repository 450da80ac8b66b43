//! Steps: the loss of every output along the direction of a new tree.
//!
//! Kernels only; how the minimum is searched is decided by the caller. A direction gives every row
//! one number (`scalar`) or one per output; it comes as leaf values or as a dense array.

use std::ops::Range;

use crate::error::Result;
use crate::losses::{Loss, Pointwise, Targets, softmax_row};
use crate::lowlevel::widest;
use crate::memory::room;
use crate::parallel::Pool;
use crate::reduce::{
    ExactSum, FixedPoint, ROUNDED_OFFSET, add_up, exchange, largest, round_with_offset,
};
use crate::select::{self, Query};
use crate::weights::{Cell, Weights};
use crate::{with_cells, with_pointwise};

/// Where a new tree (or other weak learner) would move the raw predictions.
#[derive(Debug, Clone, Copy)]
pub struct Direction<'a> {
    /// The leaf of each row; `None` if `values` has a row for each row.
    pub leaf_of_row: Option<&'a [u32]>,
    /// Values, row-major.
    pub values: &'a [f32],
    /// Number of columns: 1 serves all outputs.
    pub width: usize,
}

impl Direction<'_> {
    #[inline(always)]
    fn row(&self, i: usize) -> &[f32] {
        let at = self.leaf_of_row.map_or(i, |leaves| leaves[i] as usize);
        &self.values[at * self.width..(at + 1) * self.width]
    }

    /// Largest |value| for each of `n_outputs` outputs. Leaf values are the same on all machines.
    fn max(&self, pool: &Pool, n_outputs: usize) -> Result<Vec<f64>> {
        let mut max = vec![0.0f64; self.width];
        for row in self.values.chunks_exact(self.width) {
            max.iter_mut().zip(row).for_each(|(m, &v)| *m = m.max(f64::from(v.abs())));
        }
        if self.leaf_of_row.is_none() {
            exchange(pool, &mut [], &mut max)?;
        }
        Ok(if self.width == 1 { vec![max[0]; n_outputs] } else { max })
    }
}

/// The prediction of a cell after a step.
#[inline(always)]
fn moved(offset: f32, raw: f32, rho: f64, g: f32) -> f32 {
    offset + raw + (rho * f64::from(g)) as f32
}

#[inline(always)]
fn pick(row: &[f32], k: usize) -> f32 {
    if row.len() == 1 { row[0] } else { row[k] }
}

/// First and second derivative of each output's loss along the direction, at `rho`.
///
/// Where `active` says that few outputs matter, only those are looked at; the others get zeros.
pub fn derivatives(
    pool: &Pool,
    loss: Loss,
    targets: Targets<'_>,
    raw: &[f32],
    offset: &[f32],
    param: &[f32],
    weights: Weights<'_>,
    direction: Direction<'_>,
    rho: &[f64],
    outputs: Range<usize>,
    active: Option<&[bool]>,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let chosen: Option<Vec<usize>> = active.and_then(|active| {
        let chosen: Vec<usize> = (0..active.len()).filter(|&k| active[k]).collect();
        (chosen.len() * 2 < active.len()).then_some(chosen)
    });
    with_cells!(targets, y => with_pointwise!(loss, formula => {
        let cells = Cells { y, raw, offset, param, weights, outputs };
        cells.derivatives(pool, formula, direction, rho, chosen.as_deref())
    }))
}

/// The cells of some outputs: targets, raw predictions, and what belongs to each output.
struct Cells<'a, Y> {
    y: &'a [Y],
    raw: &'a [f32],
    offset: &'a [f32],
    param: &'a [f32],
    weights: Weights<'a>,
    outputs: Range<usize>,
}

impl<Y: Cell + Into<f32>> Cells<'_, Y> {
    /// The places of a row.
    #[inline(always)]
    fn row(&self, i: usize) -> Range<usize> {
        let d = self.offset.len();
        i * d + self.outputs.start..i * d + self.outputs.end
    }

    /// Largest |r g| of every chosen output at its `rho`, then largest h g², where there is a target.
    fn maxima<L: Pointwise>(
        &self,
        pool: &Pool,
        formula: L,
        direction: Direction<'_>,
        rho: &[f64],
        places: &[usize],
    ) -> Result<Vec<f64>> {
        let (n, m) = (self.raw.len() / self.offset.len(), places.len());
        let offset = &self.offset[self.outputs.clone()];
        let param = &self.param[self.outputs.clone()];
        let maxima = pool.map(pool.row_ranges(n, m * 8), n * m * 8, |rows| {
            let (mut slopes, mut curves) = (vec![0.0f64; m], vec![0.0f64; m]);
            widest(
                #[inline(always)]
                || {
                    for i in rows {
                        let (y, raw, g) =
                            (&self.y[self.row(i)], &self.raw[self.row(i)], direction.row(i));
                        for (place, &k) in places.iter().enumerate() {
                            if self.weights.partial && y[k].is_missing() {
                                continue;
                            }
                            let g = pick(g, k);
                            let f = moved(offset[k], raw[k], rho[k], g);
                            let r = formula.residual(y[k].into(), f, param[k]);
                            let h = formula.curvature(y[k].into(), r, param[k]);
                            let g = f64::from(g);
                            slopes[place] = slopes[place].max((f64::from(r) * g).abs());
                            curves[place] = curves[place].max(f64::from(h) * g * g);
                        }
                    }
                },
            );
            slopes.extend(curves);
            slopes
        })?;
        largest(pool, maxima, 2 * m)
    }

    fn derivatives<L: Pointwise>(
        &self,
        pool: &Pool,
        formula: L,
        direction: Direction<'_>,
        rho: &[f64],
        chosen: Option<&[usize]>,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let n = self.raw.len() / self.offset.len();
        let width = self.outputs.len();
        let param = &self.param[self.outputs.clone()];
        let weights = self.weights;
        let d = self.offset.len();
        let heaviest = weights.max_of_outputs(pool, self.y, d, self.outputs.clone())?;
        let all: Vec<usize> = (0..width).collect();
        let places = chosen.unwrap_or(&all);
        let m = places.len();
        // Where the loss bounds its derivatives, direction and weights do the rest; where it grows
        // without end, a bound from the largest |f| can be so loose that all sums round to zero.
        let known: Option<Vec<(f64, f64)>> =
            places.iter().map(|&k| formula.bounds(f64::from(param[k]))).collect();
        let bounds = match known {
            Some(mut bounds) => {
                let direction_max = direction.max(pool, width)?;
                for ((r, h), &k) in bounds.iter_mut().zip(places) {
                    let g = direction_max[k];
                    (*r, *h) = (*r * g, *h * g * g);
                }
                bounds
            }
            None => {
                let max = self.maxima(pool, formula, direction, rho, places)?;
                (0..m).map(|place| (max[place], max[m + place])).collect()
            }
        };
        let n_all = pool.all_rows(n);
        let scale =
            |bound: f64, k: usize| FixedPoint::for_sum(bound * heaviest[k] * 1.000_001, n_all);
        let fixed = bounds
            .iter()
            .zip(places)
            .map(|(&(r, h), &k)| Ok((scale(r, k)?, scale(h, k)?)))
            .collect::<Result<Vec<_>>>()?;
        let pick_f32 = |values: &[f32]| places.iter().map(|&k| values[k]).collect::<Vec<f32>>();
        let along = Along {
            offset: pick_f32(&self.offset[self.outputs.clone()]),
            param: pick_f32(param),
            rho: places.iter().map(|&k| rho[k]).collect(),
            slope_scale: fixed.iter().map(|(slope, _)| slope.scale).collect(),
            curve_scale: fixed.iter().map(|(_, curve)| curve.scale).collect(),
        };
        let parts = pool.map(pool.row_ranges(n, m * 8), n * m * 8, |rows| {
            // Slopes, then curvatures.
            let mut sums = vec![0i64; 2 * m];
            let count = rows.len() as i64;
            let (slopes, curves) = sums.split_at_mut(m);
            // The chosen cells of a row, side by side.
            let mut y_row = vec![Y::default(); m];
            let mut raw_row = vec![0.0f32; m];
            let mut g_row = vec![0.0f32; m];
            let mut w_row = vec![0.0f64; m];
            widest(
                #[inline(always)]
                || {
                    for i in rows {
                        let (y, raw, g) =
                            (&self.y[self.row(i)], &self.raw[self.row(i)], direction.row(i));
                        let w = weights.row(i);
                        let by_cell = weights.by_cell();
                        if chosen.is_none() && g.len() == m && !by_cell {
                            along.add(formula, y, raw, g, |_| w, slopes, curves);
                            continue;
                        }
                        for (place, &k) in places.iter().enumerate() {
                            y_row[place] = y[k];
                            raw_row[place] = raw[k];
                            g_row[place] = pick(g, k);
                        }
                        if by_cell {
                            let first = self.row(i).start;
                            for (place, &k) in places.iter().enumerate() {
                                let cell = weights.target(i, first + k, y[k]);
                                (y_row[place], w_row[place]) = cell;
                                // Nothing to move, however far away.
                                raw_row[place] = if cell.1 > 0.0 { raw[k] } else { 0.0 };
                                g_row[place] = if cell.1 > 0.0 { g_row[place] } else { 0.0 };
                            }
                            let (y, raw, g) = (&y_row, &raw_row, &g_row);
                            along.add(formula, y, raw, g, |k| w_row[k], slopes, curves);
                        } else {
                            along.add(formula, &y_row, &raw_row, &g_row, |_| w, slopes, curves);
                        }
                    }
                },
            );
            let offset = count.wrapping_mul(ROUNDED_OFFSET);
            sums.iter_mut().for_each(|sum| *sum = sum.wrapping_sub(offset));
            sums
        })?;
        let sums = add_up(pool, parts, 2 * m)?;
        let (mut slopes, mut curves) = (vec![0.0; width], vec![0.0; width]);
        for (place, &k) in places.iter().enumerate() {
            slopes[k] = -fixed[place].0.decode(sums[place]);
            curves[k] = fixed[place].1.decode(sums[m + place]);
        }
        Ok((slopes, curves))
    }
}

/// What belongs to each of the outputs that a search looks at.
struct Along {
    offset: Vec<f32>,
    param: Vec<f32>,
    rho: Vec<f64>,
    slope_scale: Vec<f64>,
    curve_scale: Vec<f64>,
}

impl Along {
    /// Adds a row's −slopes and curvatures, each with its offset.
    #[inline(always)]
    fn add<L: Pointwise, Y: Copy + Into<f32>>(
        &self,
        formula: L,
        y: &[Y],
        raw: &[f32],
        g: &[f32],
        weight: impl Fn(usize) -> f64,
        slopes: &mut [i64],
        curves: &mut [i64],
    ) {
        let m = slopes.len();
        // Slices of one length: no bounds are checked in the loop.
        let (y, raw, g, curves) = (&y[..m], &raw[..m], &g[..m], &mut curves[..m]);
        let (offset, param, rho) = (&self.offset[..m], &self.param[..m], &self.rho[..m]);
        let (slope_scale, curve_scale) = (&self.slope_scale[..m], &self.curve_scale[..m]);
        for k in 0..m {
            let f = moved(offset[k], raw[k], rho[k], g[k]);
            let y: f32 = y[k].into();
            let r = formula.residual(y, f, param[k]);
            let h = formula.curvature(y, r, param[k]);
            let (g, w) = (f64::from(g[k]), weight(k));
            let slope = round_with_offset(f64::from(r) * g * w * slope_scale[k]);
            let curve = round_with_offset(f64::from(h) * g * g * w * curve_scale[k]);
            slopes[k] = slopes[k].wrapping_add(slope);
            curves[k] = curves[k].wrapping_add(curve);
        }
    }
}

/// Σ w v g (or Σ w v g²) of each output, for values computed elsewhere (custom losses).
pub fn dots(
    pool: &Pool,
    values: &[f32],
    n_outputs: usize,
    outputs: Range<usize>,
    weights: Weights<'_>,
    direction: Direction<'_>,
    squared: bool,
) -> Result<Vec<f64>> {
    let d = n_outputs;
    let n = values.len() / d;
    let width = outputs.len();
    let term = |i: usize, g: &[f32], k: usize| {
        let g = f64::from(pick(g, k));
        let place = i * d + outputs.start + k;
        f64::from(values[place]) * (if squared { g * g } else { g }) * weights.cell(i, place)
    };
    let ranges = pool.row_ranges(n, width * 2);
    let maxima = pool.map(ranges.clone(), n * width * 2, |rows| {
        let mut max = vec![0.0f64; width];
        for i in rows {
            let g = direction.row(i);
            max.iter_mut().enumerate().for_each(|(k, m)| *m = m.max(term(i, g, k).abs()));
        }
        max
    })?;
    let max = largest(pool, maxima, width)?;
    let n_all = pool.all_rows(n);
    let fixed = max.iter().map(|&m| FixedPoint::for_sum(m, n_all)).collect::<Result<Vec<_>>>()?;
    let parts = pool.map(ranges, n * width * 2, |rows| {
        let mut sums = vec![0i64; width];
        for i in rows {
            let g = direction.row(i);
            sums.iter_mut().enumerate().for_each(|(k, s)| *s += fixed[k].encode(term(i, g, k)));
        }
        sums
    })?;
    let sums = add_up(pool, parts, width)?;
    Ok(sums.iter().zip(fixed).map(|(&sum, fixed)| fixed.decode(sum)).collect())
}

/// The exact minimiser of Σ w ρ_level(y − f − ρ g) for each output: the lowest of the breakpoints
/// (y − f)/g, weighted by w |g|, at which the slope stops being negative. 0 where g is all zero.
pub fn quantile_steps(
    pool: &Pool,
    y: &[f32],
    raw: &[f32],
    n_outputs: usize,
    outputs: Range<usize>,
    levels: &[f64],
    weights: Weights<'_>,
    direction: Direction<'_>,
) -> Result<Vec<f64>> {
    let d = n_outputs;
    let n = y.len() / d;
    let width = outputs.len();
    let direction_max = direction.max(pool, width)?;
    let heaviest = weights.max_of_outputs(pool, y, d, outputs.clone())?;
    let n_all = pool.all_rows(n);
    // Rows that move with ρ, and those that move against it.
    let query_of = |j: usize| {
        let k = j - outputs.start;
        let fixed = FixedPoint::for_sum(direction_max[k] * heaviest[k], n_all)?;
        let mut query = Query { items: room(n)?, masses: [0, 0] };
        for i in 0..n {
            let g = f64::from(pick(direction.row(i), k));
            let place = i * d + j;
            let (y, w) = weights.target(i, place, y[place]);
            if g == 0.0 || w == 0.0 {
                continue;
            }
            let mass = fixed.encode(g.abs() * w).max(1);
            query.masses[usize::from(g < 0.0)] += mass;
            query.items.push(((f64::from(y) - f64::from(raw[place])) / g, mass));
        }
        Ok(vec![query])
    };
    let target = |j: usize, [forward, backward]: [i64; 2]| {
        // Rows with g < 0 see the mirrored loss.
        let target = levels[j] * forward as f64 + (1.0 - levels[j]) * backward as f64;
        (target - 1e-9 * target.abs()).ceil() as i128
    };
    let steps = select::for_outputs(pool, outputs.clone(), n, 1, query_of, target)?;
    Ok(steps.into_iter().flatten().collect())
}

/// Softmax along a direction: the loss, its gradient with respect to ρ, and the product of its
/// Hessian with a vector `v`.
pub fn softmax_along(
    pool: &Pool,
    classes: &[u32],
    raw: &[f32],
    offset: &[f32],
    weight: Option<&[f32]>,
    direction: Direction<'_>,
    rho: &[f64],
    v: &[f64],
) -> Result<(f64, Vec<f64>, Vec<f64>)> {
    let d = offset.len();
    let n = raw.len() / d;
    let weights = Weights::of_rows(weight);
    let heaviest = weights.max(pool)?;
    let n_all = pool.all_rows(n);
    let g_max = direction.max(pool, d)?;
    let gv_max = g_max.iter().zip(v).fold(0.0f64, |m, (g, v)| m.max(g * v.abs()));
    let fixed = g_max
        .iter()
        .map(|g| {
            let scale = |bound: f64| FixedPoint::for_sum(bound * 1.000_01, n_all);
            Ok((scale(g * heaviest)?, scale(2.0 * g * gv_max * heaviest)?))
        })
        .collect::<Result<Vec<_>>>()?;
    let ranges = pool.row_ranges(n, d * 8);
    let parts = pool.map(ranges, n * d * 8, |rows| {
        let mut loss = ExactSum::default();
        // The gradient, then the product.
        let mut sums = vec![0i64; 2 * d];
        let mut p = vec![0.0f32; d];
        for i in rows {
            let g = direction.row(i);
            let raw = &raw[i * d..(i + 1) * d];
            let f = |k: usize| offset[k] + raw[k] + (rho[k] * f64::from(pick(g, k))) as f32;
            let class = classes[i] as usize;
            let normaliser = softmax_row(f, &mut p);
            let w = weights.row(i);
            loss.add((normaliser - f64::from(f(class))) * w);
            let mean: f64 = (0..d).map(|k| f64::from(p[k]) * f64::from(pick(g, k)) * v[k]).sum();
            for k in 0..d {
                let (g, p) = (f64::from(pick(g, k)), f64::from(p[k]));
                let y = if k == class { 1.0 } else { 0.0 };
                sums[k] += fixed[k].0.encode((p - y) * g * w);
                sums[d + k] += fixed[k].1.encode(p * g * (g * v[k] - mean) * w);
            }
        }
        (loss, sums)
    })?;
    let (losses, sums): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let sums = add_up(pool, sums, 2 * d)?;
    Ok((
        ExactSum::merged(pool, &losses, &mut [])?,
        (0..d).map(|k| fixed[k].0.decode(sums[k])).collect(),
        (0..d).map(|k| fixed[k].1.decode(sums[d + k])).collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_of_squared_error_are_exact() {
        let y = [1.0f32, 2.0, -1.0, 0.5];
        let raw = [0.0f32; 4];
        let direction =
            Direction { leaf_of_row: Some(&[0, 1]), values: &[0.5, 1.0, -2.0, 1.0], width: 2 };
        let (slope, curve) = derivatives(
            &Pool::serial(),
            Loss::Squared,
            Targets::Real(&y),
            &raw,
            &[0.0; 2],
            &[0.0; 2],
            Weights::default(),
            direction,
            &[0.0, 1.0],
            0..2,
            None,
        )
        .unwrap();
        assert!((slope[0] + (0.5 + 2.0)).abs() < 1e-9);
        assert!((slope[1] + (1.0 - 0.5)).abs() < 1e-9);
        assert!((curve[0] - 4.25).abs() < 1e-9 && (curve[1] - 2.0).abs() < 1e-9);
    }

    #[test]
    fn derivatives_have_room_for_large_raw_predictions() {
        let (y, raw) = ([0.0f32, 1.0, 1.0], [9.0f32, -12.0, 3.0]);
        let direction = Direction { leaf_of_row: None, values: &[1.0, 0.5, -1.0], width: 1 };
        for loss in [Loss::Exponential, Loss::Poisson, Loss::Logistic, Loss::Squared] {
            let (slope, curve) = derivatives(
                &Pool::serial(),
                loss,
                Targets::Real(&y),
                &raw,
                &[0.0],
                &[0.0],
                Weights::default(),
                direction,
                &[0.0],
                0..1,
                None,
            )
            .unwrap();
            let (mut expected_slope, mut expected_curve) = (0.0, 0.0);
            with_pointwise!(loss, formula => for i in 0..3 {
                let r = formula.residual(y[i], raw[i], 0.0);
                let g = f64::from(direction.values[i]);
                expected_slope -= f64::from(r) * g;
                expected_curve += f64::from(formula.curvature(y[i], r, 0.0)) * g * g;
            });
            assert!((slope[0] - expected_slope).abs() <= 1e-9 * expected_slope.abs(), "{loss:?}");
            assert!((curve[0] - expected_curve).abs() <= 1e-9 * expected_curve.abs(), "{loss:?}");
        }
    }

    #[test]
    fn the_quantile_step_minimises_the_pinball_loss() {
        let mut stream = crate::random::Key::new(2).stream();
        for case in 0..20 {
            let n = 30;
            let y: Vec<f32> = (0..n).map(|_| stream.normals().0 as f32).collect();
            let g: Vec<f32> = (0..n).map(|_| stream.normals().0 as f32).collect();
            let level = [0.5f64, 0.2, 0.9][case % 3];
            let direction = Direction { leaf_of_row: None, values: &g, width: 1 };
            let rho = quantile_steps(
                &Pool::serial(),
                &y,
                &vec![0.0; n],
                1,
                0..1,
                &[level],
                Weights::default(),
                direction,
            )
            .unwrap()[0];
            let loss = |rho: f64| -> f64 {
                (0..n)
                    .map(|i| {
                        let u = f64::from(y[i]) - rho * f64::from(g[i]);
                        (level * u).max((level - 1.0) * u)
                    })
                    .sum()
            };
            for i in 0..n {
                assert!(loss(rho) <= loss(f64::from(y[i]) / f64::from(g[i])) + 1e-6);
            }
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
        for width in [1, d] {
            let values: Vec<f32> = (0..3 * width).map(|_| stream.normals().0 as f32).collect();
            let direction = Direction { leaf_of_row: Some(&leaves), values: &values, width };
            let at = |active| {
                let (offset, param) = (&[0.25f32; 7], &[0.0f32; 7]);
                let y = Targets::Labels(&y);
                derivatives(
                    &pool,
                    Loss::Logistic,
                    y,
                    &raw,
                    offset,
                    param,
                    Weights::default(),
                    direction,
                    &rho,
                    0..d,
                    active,
                )
                .unwrap()
            };
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
        let at = |raw: &[f32]| {
            derivatives(
                &Pool::serial(),
                Loss::Poisson,
                Targets::Real(&y),
                raw,
                &[0.0; 2],
                &[0.0; 2],
                weights,
                direction,
                &[0.25, 0.5],
                0..2,
                None,
            )
            .unwrap()
        };
        assert_eq!(at(&far), at(&near));
        let expected = 3.0 * (1.5f64.exp() - 2.0);
        assert!((at(&far).0[1] - expected).abs() < 1e-5);
    }
}
