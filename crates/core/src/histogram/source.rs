//! Split gradients and weights before they become integers: how large they are, and their encoding.

use super::layout::Layout;
use super::quantise::{RowLanes, SplitGradients, SplitWeights};
use crate::error::{Result, invalid};
use crate::lowlevel::widest;
use crate::memory::{resize, zeros};
use crate::parallel::Pool;
use crate::reduce::{FixedPoint, add_up_here, exchange, round_scaled};

/// A gradient of fewer quanta than this is coarse.
const COARSE: f64 = 1024.0;
/// A scale is too coarse if more than one gradient in this many is.
const COARSE_SHARE: usize = 16;
/// Number of binary exponents of a double.
const N_EXPONENTS: usize = 1 << 11;

/// The largest gradient and weight of all ranks.
pub(super) struct Sizes {
    pub gradient: f64,
    pub weight: f64,
    /// On several ranks: how many gradients, zeros aside, have each binary exponent.
    exponents: Vec<i64>,
}

#[derive(Clone, Copy)]
pub(super) struct Scales {
    pub gradient: FixedPoint,
    pub weight: FixedPoint,
}

/// Split gradients and their weights on this rank.
pub(super) struct Source<'a> {
    pub z: &'a [f32],
    pub q: usize,
    pub weights: SplitWeights<'a>,
    pub n: usize,
}

impl Source<'_> {
    /// What the gradients of a row are still to be multiplied by.
    fn weight(&self, row: usize) -> f64 {
        match self.weights {
            SplitWeights::Rows(w) => f64::from(w[row]),
            SplitWeights::Equal | SplitWeights::Components(_) => 1.0,
        }
    }

    /// The weight lanes of a row.
    fn weights_of(&self, row: usize) -> impl Iterator<Item = f64> {
        let lanes = match self.weights {
            SplitWeights::Equal => &[],
            SplitWeights::Rows(w) => &w[row..row + 1],
            SplitWeights::Components(w) => &w[row * self.q..(row + 1) * self.q],
        };
        lanes.iter().map(|&w| f64::from(w))
    }

    pub fn weight_lanes(&self) -> usize {
        match self.weights {
            SplitWeights::Equal => 0,
            SplitWeights::Rows(_) => 1,
            SplitWeights::Components(_) => self.q,
        }
    }

    pub fn is_packable(&self) -> bool {
        self.q == 1 && self.weight_lanes() == 0
    }

    /// Whether a row counts: one of which no component has a weight does not.
    fn counts(&self, row: usize) -> bool {
        match self.weights {
            SplitWeights::Components(_) => self.weights_of(row).any(|w| w > 0.0),
            SplitWeights::Equal | SplitWeights::Rows(_) => true,
        }
    }

    pub fn sizes(&self, pool: &Pool, rows: Option<&[u32]>) -> Result<Sizes> {
        // Without their sign, doubles are ordered as their bits are, with infinity and NaN on top.
        let bits = self.fold(pool, 0, |max: u64, size| max.max(size.to_bits()), u64::max)?;
        let weight = match self.weights {
            SplitWeights::Equal => 1.0,
            SplitWeights::Rows(w) => largest_of(pool, w, 1, rows)?,
            SplitWeights::Components(w) => largest_of(pool, w, self.q, rows)?,
        };
        // What is coarse is known only after the exchange of maxima; counts by exponent spare ranks
        // a second exchange.
        let mut exponents = match pool.others() {
            Some(_) => self.exponents(pool)?,
            None => Vec::new(),
        };
        // Ranks need not agree on the maximum of NaN and a number, but they do on infinity.
        let mut maxima = [f64::from_bits(bits), weight].map(finite_or_infinite);
        exchange(pool, &mut exponents, &mut maxima)?;
        let [gradient, weight] = maxima;
        if !gradient.is_finite() {
            return invalid(self.name_non_finite());
        }
        if !weight.is_finite() {
            return invalid("a weight of split gradients is not finite; check the sample weights");
        }
        Ok(Sizes { gradient, weight, exponents })
    }

    /// The message for a gradient that is not finite, here or on another rank.
    fn name_non_finite(&self) -> String {
        const REMEDY: &str = "check targets, weights and custom losses for NaN or huge values";
        let is_finite = |k: usize| (f64::from(self.z[k]) * self.weight(k / self.q)).is_finite();
        match (0..self.n * self.q).find(|&k| !is_finite(k)) {
            Some(k) => {
                // Weights of components are in the gradients already.
                let weight = match self.weights {
                    SplitWeights::Rows(w) => format!(" with weight {}", w[k / self.q]),
                    SplitWeights::Equal | SplitWeights::Components(_) => String::new(),
                };
                format!(
                    "the split gradient of row {}, component {} is {}{weight}, which is not finite; \
                     {REMEDY}",
                    k / self.q,
                    k % self.q,
                    self.z[k],
                )
            }
            None => format!("a split gradient on another rank is not finite; {REMEDY}"),
        }
    }

    /// Whether few enough gradients are coarse at this scale.
    pub fn is_fine(&self, pool: &Pool, sizes: &Sizes, fixed: FixedPoint) -> Result<bool> {
        // A power of two: an exponent tells on which side a gradient lies.
        let limit = COARSE * fixed.unit;
        let n_coarse = if pool.others().is_some() {
            sizes.exponents[..exponent_bits(limit)].iter().sum::<i64>() as usize
        } else {
            let count = |count, size| count + usize::from((size < limit) & (size > 0.0));
            self.fold(pool, 0usize, count, |a, b| a + b)?
        };
        Ok(n_coarse * COARSE_SHARE <= pool.all_rows(self.n) * self.q)
    }

    /// Folds the |w z| of all cells.
    fn fold<A: Copy + Send + Sync>(
        &self,
        pool: &Pool,
        start: A,
        step: impl Fn(A, f64) -> A + Sync,
        merge: impl Fn(A, A) -> A,
    ) -> Result<A> {
        let q = self.q;
        let parts = pool.map(pool.row_ranges(self.n, q), self.n * q, |rows| {
            let z = &self.z[rows.start * q..rows.end * q];
            let add = |folded: A, z: f32, w: f64| step(folded, (f64::from(z) * w).abs());
            widest(
                #[inline(always)]
                || match self.weights {
                    SplitWeights::Rows(w) if q == 1 => {
                        z.iter().zip(&w[rows]).fold(start, |a, (&z, &w)| add(a, z, w.into()))
                    }
                    SplitWeights::Rows(w) => z.chunks_exact(q).zip(&w[rows]).fold(
                        start,
                        #[inline(always)]
                        |a, (z, &w)| z.iter().fold(a, |a, &z| add(a, z, w.into())),
                    ),
                    SplitWeights::Equal | SplitWeights::Components(_) => {
                        z.iter().fold(start, |a, &z| add(a, z, 1.0))
                    }
                },
            )
        })?;
        Ok(parts.into_iter().fold(start, merge))
    }

    /// How many of the |w z| that are not zero have each binary exponent.
    fn exponents(&self, pool: &Pool) -> Result<Vec<i64>> {
        let q = self.q;
        let parts = pool.map(pool.row_ranges(self.n, q), self.n * q, |rows| {
            let mut counts = vec![0i64; N_EXPONENTS];
            for i in rows {
                let w = self.weight(i);
                for &z in &self.z[i * q..(i + 1) * q] {
                    let size = (f64::from(z) * w).abs();
                    counts[exponent_bits(size)] += i64::from(size > 0.0);
                }
            }
            counts
        })?;
        add_up_here(parts, N_EXPONENTS)
    }

    /// One lane per row: the gradient above the count.
    pub fn packed(
        &self,
        pool: &Pool,
        fixed: FixedPoint,
        count_bits: i32,
        spare: Option<RowLanes>,
    ) -> Result<SplitGradients> {
        let layout = Layout {
            components: 1,
            weight_lanes: 0,
            width: 1,
            count_bits: Some(count_bits as u32),
            small: true,
            unit: fixed.unit,
            weight_unit: 1.0,
        };
        let mut lanes = wide_lanes(spare, self.n)?;
        self.encode(pool, &mut lanes, 1, |_, _, z, lanes| {
            lanes[0] = (round_scaled(f64::from(z[0]) * fixed.scale) << count_bits) + 1;
        })?;
        Ok(SplitGradients { layout, lanes: RowLanes::Wide(lanes) })
    }

    pub fn narrow(
        &self,
        pool: &Pool,
        scales: Scales,
        width: usize,
        spare: Option<RowLanes>,
    ) -> Result<RowLanes> {
        let mut lanes = narrow_lanes(spare, self.n * width)?;
        if let (1, SplitWeights::Rows(w) | SplitWeights::Components(w)) = (self.q, self.weights) {
            self.narrow_pairs(pool, scales, w, &mut lanes)?;
            return Ok(RowLanes::Narrow(lanes));
        }
        let fill = |i: usize, w: f64, z: &[f32], lanes: &mut [i32]| {
            let scale = scales.gradient.scale * w;
            for (lane, &z) in lanes.iter_mut().zip(z) {
                *lane = round_scaled(f64::from(z) * scale) as i32;
            }
            for (lane, w) in lanes[z.len()..].iter_mut().zip(self.weights_of(i)) {
                *lane = scales.weight.encode(w) as i32;
            }
            lanes[width - 1] = i32::from(self.counts(i));
        };
        self.encode(pool, &mut lanes, width, fill)?;
        Ok(RowLanes::Narrow(lanes))
    }

    /// [`Source::narrow`] of one gradient and one weight a row, without a choice for each row.
    fn narrow_pairs(
        &self,
        pool: &Pool,
        scales: Scales,
        w: &[f32],
        lanes: &mut [i32],
    ) -> Result<()> {
        let is_multiplied = matches!(self.weights, SplitWeights::Components(_));
        let Scales { gradient, weight } = scales;
        let size = self.n.div_ceil(pool.threads() * 4).max(1);
        let (rows, _) = lanes.as_chunks_mut::<3>();
        let pieces = rows.chunks_mut(size).zip(self.z.chunks(size)).zip(w.chunks(size));
        pool.for_each(pieces, self.n * 2, |((rows, z), w)| {
            widest(
                #[inline(always)]
                || {
                    for ((lanes, &z), &w) in rows.iter_mut().zip(z).zip(w) {
                        let factor = if is_multiplied { 1.0 } else { f64::from(w) };
                        let scaled = f64::from(z) * (gradient.scale * factor);
                        let counts = i32::from(!is_multiplied | (w > 0.0));
                        let mass = weight.encode(w.into()) as i32;
                        *lanes = [round_scaled(scaled) as i32, mass, counts];
                    }
                },
            );
        })
    }

    pub fn wide(
        &self,
        pool: &Pool,
        scales: Scales,
        width: usize,
        spare: Option<RowLanes>,
    ) -> Result<RowLanes> {
        let q = self.q;
        let mut lanes = wide_lanes(spare, self.n * width)?;
        self.encode(pool, &mut lanes, width, |i, w, z, lanes| {
            for (lane, &z) in lanes.iter_mut().zip(z) {
                *lane = scales.gradient.encode(f64::from(z) * w);
            }
            for (lane, w) in lanes[q..].iter_mut().zip(self.weights_of(i)) {
                *lane = scales.weight.encode(w);
            }
            lanes[width - 1] = i64::from(self.counts(i));
        })?;
        Ok(RowLanes::Wide(lanes))
    }

    /// Calls `fill(row, weight, z, lanes)` for every row.
    fn encode<T: Send>(
        &self,
        pool: &Pool,
        lanes: &mut [T],
        width: usize,
        fill: impl Fn(usize, f64, &[f32], &mut [T]) + Sync,
    ) -> Result<()> {
        let q = self.q;
        let size = self.n.div_ceil(pool.threads() * 4).max(1);
        let pieces = lanes.chunks_mut(size * width).enumerate();
        pool.for_each(pieces, self.n * q * 2, |(piece, lanes)| {
            let first = piece * size;
            // With widths known to the compiler, there are no loops over the lanes of a row.
            widest(
                #[inline(always)]
                || match (q, width) {
                    (1, 1) => self.encode_rows(first, lanes, 1, 1, &fill),
                    (1, 2) => self.encode_rows(first, lanes, 1, 2, &fill),
                    (4, 5) => self.encode_rows(first, lanes, 4, 5, &fill),
                    _ => self.encode_rows(first, lanes, q, width, &fill),
                },
            );
        })
    }

    /// [`Source::encode`] for rows from `first` on, with q gradients and `width` lanes each.
    #[inline(always)]
    fn encode_rows<T>(
        &self,
        first: usize,
        lanes: &mut [T],
        q: usize,
        width: usize,
        fill: &impl Fn(usize, f64, &[f32], &mut [T]),
    ) {
        let rows = self.z[first * q..].chunks_exact(q).zip(lanes.chunks_exact_mut(width));
        for (k, (z, lanes)) in rows.enumerate() {
            fill(first + k, self.weight(first + k), z, lanes);
        }
    }
}

fn wide_lanes(spare: Option<RowLanes>, len: usize) -> Result<Vec<i64>> {
    match spare {
        Some(RowLanes::Wide(lanes)) => of_len(lanes, len),
        _ => zeros(len),
    }
}

fn narrow_lanes(spare: Option<RowLanes>, len: usize) -> Result<Vec<i32>> {
    match spare {
        Some(RowLanes::Narrow(lanes)) => of_len(lanes, len),
        _ => zeros(len),
    }
}

fn of_len<T: Copy + Default>(mut lanes: Vec<T>, len: usize) -> Result<Vec<T>> {
    resize(&mut lanes, len, T::default())?;
    Ok(lanes)
}

/// The largest number in some rows of `width` numbers each; NaN if there is one, 0 if there is none.
fn largest_of(pool: &Pool, values: &[f32], width: usize, rows: Option<&[u32]>) -> Result<f64> {
    // Floats that are not negative are ordered as their bits are, with NaN on top.
    let bits = |value: f32| if value <= 0.0 { 0 } else { value.abs().to_bits() };
    let largest = |values: &[f32]| values.iter().fold(0, |m, &v| bits(v).max(m));
    let n = rows.map_or(values.len() / width, <[u32]>::len);
    let parts = pool.map(pool.row_ranges(n, width), n * width, |part| {
        widest(
            #[inline(always)]
            || match rows {
                None => largest(&values[part.start * width..part.end * width]),
                Some(rows) => rows[part]
                    .iter()
                    .fold(0, |m, &row| largest(&values[row as usize * width..][..width]).max(m)),
            },
        )
    })?;
    Ok(f32::from_bits(parts.into_iter().fold(0, u32::max)).into())
}

fn finite_or_infinite(size: f64) -> f64 {
    if size.is_finite() { size } else { f64::INFINITY }
}

/// The eleven bits of the exponent.
fn exponent_bits(size: f64) -> usize {
    (size.to_bits() >> 52) as usize & (N_EXPONENTS - 1)
}
