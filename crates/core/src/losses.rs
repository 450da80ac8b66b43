//! Losses: residuals (negative gradients), curvatures and values, cell by cell.
//!
//! A pointwise loss is a small type with four formulas; [`with_pointwise!`] turns the runtime
//! choice into a monomorphic loop. Softmax couples the outputs of a row and has its own loops.
//! The state `raw` is the trees' part of the raw prediction; `offset` (one number per output) is
//! added before a formula sees it.

use crate::error::Result;
use crate::leaf::{LeafValues, add_leaf, subtract_leaf};
use crate::lowlevel::widest;
use crate::math;
use crate::parallel::Pool;
use crate::projection::Phi;
use crate::reduce::{ExactSum, FixedPoint, largest_here};
use crate::runs::Run;
use crate::weights::{Cell, Weights};
use crate::with_weights;

/// The built-in losses. Parameters that differ between outputs come beside them, as `param`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// ½ (y − f)².
    Squared,
    /// ½ (±1 − f)² for 0/1 labels.
    SquaredLabels,
    /// |y − f|.
    Absolute,
    /// Quadratic up to δ (the parameter), linear beyond.
    Huber,
    /// The pinball loss at a level (the parameter).
    Quantile,
    /// e^f − y f.
    Poisson,
    /// ln(1 + e^∓f) for 0/1 labels.
    Logistic,
    /// e^(∓f/2) for 0/1 labels.
    Exponential,
    /// Cross-entropy of the softmax over the outputs, for class numbers.
    Softmax,
}

/// What a model is trained on, row-major.
#[derive(Debug, Clone, Copy)]
pub enum Targets<'a> {
    /// Real values, n × d.
    Real(&'a [f32]),
    /// 0/1 labels, n × d.
    Labels(&'a [u8]),
    /// Class numbers, n.
    Classes(&'a [u32]),
}

/// Formulas of a loss that treats each cell on its own.
pub trait Pointwise: Copy + Sync {
    /// −∂ℓ/∂f.
    fn residual(self, y: f32, f: f32, param: f32) -> f32;
    /// ∂²ℓ/∂f², given the residual.
    fn curvature(self, y: f32, residual: f32, param: f32) -> f32;
    /// Whether the value has a part ln(1 + e); a row then needs one logarithm, of a product.
    const HAS_LOG: bool = false;
    /// Whether the value grows like a square, beyond single precision: ℓ = r v then, in doubles.
    const IS_PRODUCT: bool = false;
    /// The residual r, and the value as (v, e) with ℓ = v + ln(1 + e) and 0 ≤ e ≤ 1, or ℓ = r v.
    fn parts(self, y: f32, f: f32, param: f32) -> (f32, f32, f32);
    /// ℓ, of what [`Pointwise::parts`] returns.
    #[inline(always)]
    fn joined(self, (r, v, e): (f32, f32, f32)) -> f64 {
        if Self::IS_PRODUCT {
            f64::from(r) * f64::from(v)
        } else if Self::HAS_LOG {
            f64::from(v + math::ln_1p_unit(e))
        } else {
            f64::from(v)
        }
    }
    /// ℓ.
    #[inline(always)]
    fn value(self, y: f32, f: f32, param: f32) -> f64 {
        self.joined(self.parts(y, f, param))
    }
    /// Bounds on |residual| and curvature, if there are any.
    fn bounds(self, param: f64) -> Option<(f64, f64)>;
}

macro_rules! pointwise {
    ($(#[$doc:meta])* $name:ident, |$y:ident, $f:ident, $p:ident| $residual:expr,
     |$cy:ident, $r:ident, $cp:ident| $curvature:expr,
     |$vy:ident, $vf:ident, $vp:ident| $value:expr,
     |$bp:ident| $bounds:expr $(, is_product = $is_product:literal)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name;
        impl Pointwise for $name {
            #[inline(always)]
            fn residual(self, $y: f32, $f: f32, $p: f32) -> f32 { $residual }
            #[inline(always)]
            fn curvature(self, $cy: f32, $r: f32, $cp: f32) -> f32 { $curvature }
            $(const IS_PRODUCT: bool = $is_product;)?
            #[inline(always)]
            fn parts(self, $vy: f32, $vf: f32, $vp: f32) -> (f32, f32, f32) {
                (self.residual($vy, $vf, $vp), $value, 0.0)
            }
            fn bounds(self, $bp: f64) -> Option<(f64, f64)> { $bounds }
        }
    };
}

#[inline(always)]
fn sign_of_label(y: f32) -> f32 {
    2.0 * y - 1.0
}

/// The sign of u, 0 at 0 (f32::signum is ±1 there).
#[inline(always)]
fn sign(u: f32) -> f32 {
    (if u > 0.0 { 1.0 } else { 0.0 }) - (if u < 0.0 { 1.0 } else { 0.0 })
}

pointwise!(
    /// ½ (y − f)².
    Squared, |y, f, _p| y - f, |_y, _r, _p| 1.0, |y, f, _p| 0.5 * (y - f),
    |_p| None, is_product = true
);
pointwise!(
    /// ½ (±1 − f)².
    SquaredLabels, |y, f, _p| sign_of_label(y) - f, |_y, _r, _p| 1.0,
    |y, f, _p| 0.5 * (sign_of_label(y) - f),
    |_p| None, is_product = true
);
pointwise!(
    /// |y − f|.
    Absolute, |y, f, _p| sign(y - f), |_y, _r, _p| 0.0, |y, f, _p| (y - f).abs(),
    |_p| Some((1.0, 1.0))
);
pointwise!(
    /// Quadratic up to δ, linear beyond.
    Huber, |y, f, delta| (y - f).clamp(-delta, delta),
    |_y, r, delta| if r.abs() < delta { 1.0 } else { 0.0 },
    |y, f, delta| (y - f) - 0.5 * (y - f).clamp(-delta, delta),
    |delta| Some((delta, 1.0)), is_product = true
);
pointwise!(
    /// level · u above, (level − 1) · u below.
    Quantile, |y, f, level| if y > f { level } else if y < f { level - 1.0 } else { 0.0 },
    |_y, _r, _level| 0.0,
    |y, f, level| (level * (y - f)).max((level - 1.0) * (y - f)),
    |_level| Some((1.0, 1.0))
);
pointwise!(
    /// e^f − y f.
    Poisson, |y, f, _p| y - math::exp(f), |y, r, _p| y - r, |y, f, _p| math::exp(f) - y * f,
    |_p| None
);
/// ln(1 + e^(−s f)).
#[derive(Debug, Clone, Copy)]
pub struct Logistic;

impl Pointwise for Logistic {
    const HAS_LOG: bool = true;
    #[inline(always)]
    fn residual(self, y: f32, f: f32, param: f32) -> f32 {
        self.parts(y, f, param).0
    }
    #[inline(always)]
    fn curvature(self, _y: f32, residual: f32, _param: f32) -> f32 {
        residual.abs() * (1.0 - residual.abs())
    }
    /// One exponential for all: with e = e^−|m| of the margin m, the residual is s/(1 + e) or
    /// s e/(1 + e), and neither loses digits at its small end.
    #[inline(always)]
    fn parts(self, y: f32, f: f32, _param: f32) -> (f32, f32, f32) {
        let s = sign_of_label(y);
        let margin = s * f;
        let e = math::exp(-margin.abs());
        let numerator = if margin > 0.0 { e } else { 1.0 };
        (s * (numerator / (1.0 + e)), (-margin).max(0.0), e)
    }
    fn bounds(self, _param: f64) -> Option<(f64, f64)> {
        Some((1.0, 0.25))
    }
}

pointwise!(
    /// e^(−s f / 2).
    Exponential, |y, f, _p| {
        let s = sign_of_label(y);
        0.5 * s * math::exp(-0.5 * s * f)
    },
    |_y, r, _p| 0.5 * r.abs(),
    |y, f, _p| math::exp(-0.5 * sign_of_label(y) * f),
    |_p| None
);

/// Runs `$body` with `$loss` bound to the formulas of a pointwise loss.
#[macro_export]
macro_rules! with_pointwise {
    ($choice:expr, $loss:ident => $body:expr) => {{
        use $crate::losses as l;
        match $choice {
            l::Loss::Squared => {
                let $loss = l::Squared;
                $body
            }
            l::Loss::SquaredLabels => {
                let $loss = l::SquaredLabels;
                $body
            }
            l::Loss::Absolute => {
                let $loss = l::Absolute;
                $body
            }
            l::Loss::Huber => {
                let $loss = l::Huber;
                $body
            }
            l::Loss::Quantile => {
                let $loss = l::Quantile;
                $body
            }
            l::Loss::Poisson => {
                let $loss = l::Poisson;
                $body
            }
            l::Loss::Logistic => {
                let $loss = l::Logistic;
                $body
            }
            l::Loss::Exponential => {
                let $loss = l::Exponential;
                $body
            }
            l::Loss::Softmax => unreachable!("softmax is not pointwise"),
        }
    }};
}

/// Runs `$body` with `$y` bound to the cells of real or label targets.
#[macro_export]
macro_rules! with_cells {
    ($targets:expr, $y:ident => $body:expr) => {
        match $targets {
            $crate::losses::Targets::Real($y) => $body,
            $crate::losses::Targets::Labels($y) => $body,
            $crate::losses::Targets::Classes(_) => unreachable!("classes belong to softmax"),
        }
    };
}

/// What a pass over the training cells tells beside the residuals.
pub struct Pass {
    /// Weighted sum of the loss over all rows and outputs.
    pub loss: f64,
    /// Largest weighted |residual| of each output.
    pub max_residual: Vec<f64>,
}

/// A projection to take along with the residuals: φ (q × d) and where z = φ r (n × q) goes.
pub type Projected<'a> = (&'a Phi, &'a mut [f32]);

/// The pass over all cells that ends a round and begins the next: adds leaf values to `raw` (if
/// there is an update), takes the residuals there into `residuals` (n × d), and projects them,
/// row by row while the row is in cache.
pub fn advance(
    pool: &Pool,
    loss: Loss,
    targets: Targets<'_>,
    raw: &mut [f32],
    offset: &[f32],
    param: &[f32],
    weight: Option<&[f32]>,
    update: Option<(&[u32], LeafValues<'_>)>,
    residuals: &mut [f32],
    projected: Option<Projected<'_>>,
) -> Result<Pass> {
    let d = offset.len();
    let n = raw.len() / d;
    let (phi, z) = projected.map_or((None, &mut [][..]), |(phi, z)| (Some(phi), z));
    let q = phi.map_or(0, Phi::n_components);
    let work_per_row = d * 4 + phi.map_or(0, Phi::work);
    let ranges = pool.row_ranges(n, work_per_row);
    let scale = Weights::of_rows(weight).scale(pool)?;
    let (mut raw, mut residuals, mut z) = (raw, residuals, z);
    let mut pieces = Vec::with_capacity(ranges.len());
    for rows in ranges {
        pieces.push(Piece {
            raw: cut(&mut raw, rows.len() * d),
            residuals: cut(&mut residuals, rows.len() * d),
            z: cut(&mut z, rows.len() * q),
            rows,
        });
    }
    let parts = pool.map(pieces, n * work_per_row, |piece| {
        let weight = weight.map(|w| &w[piece.rows.clone()]);
        let update = update.map(|(leaves, values)| (&leaves[piece.rows.clone()], values));
        match targets {
            Targets::Classes(y) => {
                let y = &y[piece.rows.clone()];
                widest(#[inline(always)] || advance_rows(piece, update, (weight, scale), phi, d,
                    #[inline(always)] |i, raw: &[f32], out: &mut [f32]| softmax_residuals(y[i] as usize, raw, offset, out)))
            }
            cells => with_cells!(cells, y => with_pointwise!(loss, formula => {
                let y = &y[piece.rows.start * d..piece.rows.end * d];
                widest(#[inline(always)] || advance_rows(piece, update, (weight, scale), phi, d,
                    #[inline(always)] |i, raw: &[f32], out: &mut [f32]| {
                        pointwise_residuals(formula, &y[i * d..(i + 1) * d], raw, offset, param, out)
                    }))
            })),
        }
    })?;
    merge_passes(pool, parts, d, scale)
}

/// Where a projection goes when cells have weights: z = φ (w r), already weighted, and ω = the
/// shares of a row in the weight of each component, both n × q.
pub struct WeightedProjection<'a> {
    /// φ.
    pub phi: &'a Phi,
    /// The weights that components give to outputs, see [`Phi::shares`].
    pub shares: &'a Phi,
    /// z.
    pub z: &'a mut [f32],
    /// ω.
    pub omega: &'a mut [f32],
}

/// The pass of [`advance`] where cells have weights of their own or targets are missing. Softmax,
/// whose outputs share one loss, has no such cells.
pub fn advance_cells(
    pool: &Pool,
    runs: &[Run],
    targets: Targets<'_>,
    raw: &mut [f32],
    offset: &[f32],
    param: &[f32],
    weights: Weights<'_>,
    update: Option<(&[u32], LeafValues<'_>)>,
    residuals: &mut [f32],
    projected: Option<WeightedProjection<'_>>,
) -> Result<Pass> {
    let d = offset.len();
    let n = raw.len() / d;
    let (phi, mut z, mut omega) = match projected {
        Some(WeightedProjection { phi, shares, z, omega }) => (Some((phi, shares)), z, omega),
        None => (None, &mut [][..], &mut [][..]),
    };
    let q = phi.map_or(0, |(phi, _)| phi.n_components());
    let work_per_row = d * 6 + phi.map_or(0, |(phi, shares)| phi.work() + shares.work());
    let scale = weights.scale(pool)?;
    let (mut raw, mut residuals) = (raw, residuals);
    let mut pieces = Vec::new();
    for rows in pool.row_ranges(n, work_per_row) {
        let omega = cut(&mut omega, rows.len() * q);
        let piece = Piece {
            raw: cut(&mut raw, rows.len() * d),
            residuals: cut(&mut residuals, rows.len() * d),
            z: cut(&mut z, rows.len() * q),
            rows,
        };
        pieces.push((piece, omega));
    }
    let parts = pool.map(pieces, n * work_per_row, |(piece, omega)| {
        with_cells!(targets, y => widest(#[inline(always)] || {
            let mut max = vec![0u32; d];
            let mut sum = ExactSum::default();
            let mut row = CellRow::new(d, scale);
            let rows = piece.raw.chunks_exact_mut(d).zip(piece.residuals.chunks_exact_mut(d));
            for (k, (i, (raw, out))) in piece.rows.zip(rows).enumerate() {
                if let Some((leaves, values)) = update {
                    add_leaf(values, leaves[i] as usize, raw);
                }
                row.take(weights, i, &y[i * d..(i + 1) * d]);
                let mut total = 0.0;
                for Run { loss, outputs } in runs {
                    total += with_pointwise!(*loss, formula => {
                        row.residuals(formula, outputs.clone(), raw, offset, param, out)
                    });
                }
                sum.add(total * scale.unit);
                raise_max(&mut max, &row.weighted, 1.0);
                if let Some((phi, shares)) = phi {
                    let (z, omega) = (&mut piece.z[k * q..(k + 1) * q], &mut omega[k * q..(k + 1) * q]);
                    phi.apply(&row.weighted, z);
                    shares.apply(&row.weights, omega);
                    for v in z.iter_mut().chain(omega) {
                        *v = (f64::from(*v) * scale.unit) as f32;
                    }
                }
            }
            (sum, max)
        }))
    })?;
    merge_passes(pool, parts, d, scale)
}

/// The cells of one row: targets (0 where missing), weights (0 there), and what they give; all that
/// is weighted is multiplied by the scale of the weights.
pub(crate) struct CellRow {
    scale: FixedPoint,
    y: Vec<f32>,
    weights: Vec<f32>,
    weighted: Vec<f32>,
    /// Weighted losses.
    pub values: Vec<f64>,
}

impl CellRow {
    pub fn new(d: usize, scale: FixedPoint) -> CellRow {
        let zeros = || vec![0.0; d];
        CellRow { scale, y: zeros(), weights: zeros(), weighted: zeros(), values: vec![0.0; d] }
    }

    #[inline(always)]
    pub fn take<Y: Cell + Into<f32>>(&mut self, weights: Weights<'_>, i: usize, y: &[Y]) {
        let d = y.len();
        let (targets, masses) = (&mut self.y[..d], &mut self.weights[..d]);
        with_weights!(weights, i, i * d..(i + 1) * d, weight => for j in 0..d {
            let target: f32 = y[j].into();
            targets[j] = if y[j].is_missing() { 0.0 } else { target };
            // The lightest stay positive: their cells are there.
            let mass = ((weight(j) * self.scale.scale) as f32).max(f32::MIN_POSITIVE);
            masses[j] = if y[j].is_missing() { 0.0 } else { mass };
        });
    }

    /// Residuals of some outputs into `out`, and weighted ones; returns their weighted loss.
    #[inline(always)]
    pub fn residuals<L: Pointwise>(
        &mut self,
        formula: L,
        outputs: std::ops::Range<usize>,
        raw: &[f32],
        offset: &[f32],
        param: &[f32],
        out: &mut [f32],
    ) -> f64 {
        let of = |values| part(values, &outputs);
        let (raw, offset, param) = (of(raw), of(offset), of(param));
        let (y, weights) = (part(&self.y, &outputs), part(&self.weights, &outputs));
        let weighted = &mut self.weighted[outputs.clone()];
        let values = &mut self.values[outputs.clone()];
        let out = &mut out[outputs];
        for j in 0..out.len() {
            let f = offset[j] + raw[j];
            let parts = formula.parts(y[j], f, param[j]);
            let (r, value) = (parts.0, formula.joined(parts));
            let observed = weights[j] > 0.0;
            out[j] = if observed { r } else { 0.0 };
            weighted[j] = if observed { weights[j] * r } else { 0.0 };
            values[j] = if observed { f64::from(weights[j]) * value } else { 0.0 };
        }
        fold_lanes(values, [0.0; 4], |lane, value| lane + value, |a, b| a + b)
    }
}

#[inline(always)]
pub(crate) fn part<'a, T>(values: &'a [T], outputs: &std::ops::Range<usize>) -> &'a [T] {
    &values[outputs.clone()]
}

/// Takes the first `n` elements off a slice.
pub(crate) fn cut<'a, T>(rest: &mut &'a mut [T], n: usize) -> &'a mut [T] {
    let (head, tail) = std::mem::take(rest).split_at_mut(n);
    *rest = tail;
    head
}

/// Rows of the training state that are advanced together.
pub(crate) struct Piece<'a> {
    pub rows: std::ops::Range<usize>,
    pub raw: &'a mut [f32],
    pub residuals: &'a mut [f32],
    pub z: &'a mut [f32],
}

#[inline(always)]
pub(crate) fn advance_rows(
    piece: Piece<'_>,
    update: Option<(&[u32], LeafValues<'_>)>,
    (weight, scale): (Option<&[f32]>, FixedPoint),
    phi: Option<&Phi>,
    d: usize,
    residuals_of: impl Fn(usize, &[f32], &mut [f32]) -> f64,
) -> (ExactSum, Vec<u32>) {
    let mut max = vec![0u32; d];
    let mut sum = ExactSum::default();
    let q = phi.map_or(0, Phi::n_components);
    let rows = piece.raw.chunks_exact_mut(d).zip(piece.residuals.chunks_exact_mut(d));
    for (i, (raw, out)) in rows.enumerate() {
        if let Some((leaves, values)) = update {
            add_leaf(values, leaves[i] as usize, raw);
        }
        let loss = residuals_of(i, raw, out);
        match weight {
            None => {
                sum.add(loss);
                raise_max(&mut max, out, 1.0);
            }
            Some(weight) => {
                let weight = f64::from(weight[i]);
                sum.add(loss * weight);
                raise_max(&mut max, out, (weight * scale.scale) as f32);
            }
        }
        if let Some(phi) = phi {
            phi.apply(out, &mut piece.z[i * q..(i + 1) * q]);
        }
    }
    (sum, max)
}

/// max[j] = max(max[j], |w r[j]|), on the bits of non-negative floats, which order as they do.
#[inline(always)]
pub(crate) fn raise_max(max: &mut [u32], residuals: &[f32], weight: f32) {
    for (m, r) in max.iter_mut().zip(residuals) {
        *m = (*m).max((r * weight).abs().to_bits());
    }
}

/// Residuals of one row; returns the row's loss.
#[inline(always)]
pub(crate) fn pointwise_residuals<L: Pointwise, Y: Copy + Into<f32>>(
    formula: L,
    y: &[Y],
    raw: &[f32],
    offset: &[f32],
    param: &[f32],
    out: &mut [f32],
) -> f64 {
    let mut total = 0.0;
    let (mut values, mut factors) = ([0.0f32; BLOCK], [0.0f32; BLOCK]);
    let constants = offset.chunks(BLOCK).zip(param.chunks(BLOCK));
    let cells = y.chunks(BLOCK).zip(raw.chunks(BLOCK)).zip(out.chunks_mut(BLOCK));
    for (((y, raw), out), (offset, param)) in cells.zip(constants) {
        let m = out.len();
        let (y, raw, offset, param) = (&y[..m], &raw[..m], &offset[..m], &param[..m]);
        let (values, factors) = (&mut values[..m], &mut factors[..m]);
        for k in 0..m {
            let (r, value, e) = formula.parts(y[k].into(), offset[k] + raw[k], param[k]);
            out[k] = r;
            values[k] = value;
            if L::HAS_LOG {
                factors[k] = e;
            }
        }
        if L::IS_PRODUCT {
            total += dot_lanes(out, values);
            continue;
        }
        total += fold_lanes(values, [0.0; 4], |lane, value| lane + value, |a, b| a + b);
        if L::HAS_LOG {
            let product = |lane, e| lane * (1.0 + e);
            total += math::ln(fold_lanes(factors, [1.0; 4], product, |a, b| a * b));
        }
    }
    total
}

/// Cells of a row handled together: factors of at most 2, whose product fits a double.
const BLOCK: usize = 256;

/// Σ a b in eight lanes of doubles, which are added in a fixed pattern.
#[inline(always)]
fn dot_lanes(a: &[f32], b: &[f32]) -> f64 {
    let mut lanes = [0.0f64; 8];
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = a.remainder().iter().zip(b.remainder());
    for (a, b) in a.zip(b) {
        for k in 0..8 {
            lanes[k] += f64::from(a[k]) * f64::from(b[k]);
        }
    }
    for (lane, (&a, &b)) in lanes.iter_mut().zip(rest) {
        *lane += f64::from(a) * f64::from(b);
    }
    let four: [f64; 4] = std::array::from_fn(|k| lanes[k] + lanes[k + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

/// Folds floats in eight lanes of doubles, and the lanes in a fixed pattern.
#[inline(always)]
fn fold_lanes<T: Copy + Into<f64>>(
    values: &[T],
    start: [f64; 4],
    step: impl Fn(f64, f64) -> f64,
    merge: impl Fn(f64, f64) -> f64,
) -> f64 {
    let mut lanes = [start; 2];
    let eights = values.chunks_exact(8);
    let rest = eights.remainder();
    for eight in eights {
        for (half, lanes) in lanes.iter_mut().enumerate() {
            let four: [f64; 4] = std::array::from_fn(|k| eight[4 * half + k].into());
            for k in 0..4 {
                lanes[k] = step(lanes[k], four[k]);
            }
        }
    }
    for (k, &value) in rest.iter().enumerate() {
        lanes[k / 4][k % 4] = step(lanes[k / 4][k % 4], value.into());
    }
    let four: [f64; 4] = std::array::from_fn(|k| merge(lanes[0][k], lanes[1][k]));
    merge(merge(four[0], four[2]), merge(four[1], four[3]))
}

/// The pass of [`advance`] for squared error, where the residuals are all the state there is: they
/// are moved by −leaf values in place.
pub fn advance_residuals(
    pool: &Pool,
    n_outputs: usize,
    weight: Option<&[f32]>,
    update: Option<(&[u32], LeafValues<'_>)>,
    residuals: &mut [f32],
    projected: Option<Projected<'_>>,
) -> Result<Pass> {
    let d = n_outputs;
    let n = residuals.len() / d;
    let (phi, z) = projected.map_or((None, &mut [][..]), |(phi, z)| (Some(phi), z));
    let q = phi.map_or(0, Phi::n_components);
    let scale = Weights::of_rows(weight).scale(pool)?;
    let (mut residuals, mut z) = (residuals, z);
    let mut pieces = Vec::new();
    let work_per_row = d * 2 + phi.map_or(0, Phi::work);
    for rows in pool.row_ranges(n, work_per_row) {
        let len = rows.len();
        pieces.push((rows, cut(&mut residuals, len * d), cut(&mut z, len * q)));
    }
    let parts = pool.map(pieces, n * work_per_row, |(rows, residuals, z)| {
        widest(
            #[inline(always)]
            || {
                let mut max = vec![0u32; d];
                let mut sum = ExactSum::default();
                for (k, (i, row)) in rows.zip(residuals.chunks_exact_mut(d)).enumerate() {
                    if let Some((leaves, values)) = update {
                        subtract_leaf(values, leaves[i] as usize, row);
                    }
                    let w = weight.map_or(1.0, |w| f64::from(w[i]));
                    let squares = fold_lanes(row, [0.0; 4], |lane, r| lane + r * r, |a, b| a + b);
                    sum.add(0.5 * squares * w);
                    match weight {
                        None => raise_max(&mut max, row, 1.0),
                        Some(_) => raise_max(&mut max, row, (w * scale.scale) as f32),
                    }
                    if let Some(phi) = phi {
                        phi.apply(row, &mut z[k * q..(k + 1) * q]);
                    }
                }
                (sum, max)
            },
        )
    })?;
    merge_passes(pool, parts, d, scale)
}

/// The loss alone, weighted and summed over all rows and outputs.
pub fn loss_sum(
    pool: &Pool,
    loss: Loss,
    targets: Targets<'_>,
    raw: &[f32],
    offset: &[f32],
    param: &[f32],
    weights: Weights<'_>,
) -> Result<f64> {
    let d = offset.len();
    let n = raw.len() / d;
    let scale = weights.scale(pool)?;
    let parts = pool.map(pool.row_ranges(n, d * 4), n * d * 4, |rows| {
        let mut scratch = vec![0.0; d];
        let mut sum = ExactSum::default();
        if weights.by_cell() {
            let mut cells = CellRow::new(d, scale);
            with_cells!(targets, y => with_pointwise!(loss, formula => {
                widest(#[inline(always)] || for i in rows {
                    let row = &raw[i * d..(i + 1) * d];
                    cells.take(weights, i, &y[i * d..(i + 1) * d]);
                    let loss = cells.residuals(formula, 0..d, row, offset, param, &mut scratch);
                    sum.add(loss * scale.unit);
                });
            }));
            return sum;
        }
        for i in rows {
            let row = &raw[i * d..(i + 1) * d];
            let loss = match targets {
                Targets::Classes(y) => softmax_residuals(y[i] as usize, row, offset, &mut scratch),
                cells => with_cells!(cells, y => with_pointwise!(loss, formula => {
                    let y = &y[i * d..(i + 1) * d];
                    widest(#[inline(always)] || pointwise_residuals(formula, y, row, offset, param, &mut scratch))
                })),
            };
            sum.add(loss * weights.row(i));
        }
        sum
    })?;
    ExactSum::merged(pool, &parts, &mut [])
}

/// Puts the pieces of a pass together, whose maxima have weights of the given scale.
pub(crate) fn merge_passes(
    pool: &Pool,
    parts: Vec<(ExactSum, Vec<u32>)>,
    d: usize,
    scale: FixedPoint,
) -> Result<Pass> {
    let (sums, maxima): (Vec<_>, Vec<Vec<u32>>) = parts.into_iter().unzip();
    // (The bits of non-negative floats order as they do.)
    let mut max = largest_here(maxima, d);
    let loss = ExactSum::merged(pool, &sums, &mut max)?;
    let real = |bits: f64| f64::from(f32::from_bits(bits as u32)) * scale.unit;
    Ok(Pass { loss, max_residual: max.into_iter().map(real).collect() })
}

/// Softmax probabilities of one row into `p`; returns ln Σ e^f.
#[inline(always)]
pub fn softmax_row(f: impl Fn(usize) -> f32, p: &mut [f32]) -> f64 {
    for (j, p) in p.iter_mut().enumerate() {
        *p = f(j);
    }
    let top = largest(p);
    for p in p.iter_mut() {
        *p = math::exp(*p - top);
    }
    let sum = fold_lanes(p, [0.0; 4], |lane, p| lane + p, |a, b| a + b);
    let scale = (1.0 / sum) as f32;
    p.iter_mut().for_each(|p| *p *= scale);
    f64::from(top) + math::ln(sum)
}

/// The largest of some floats, eight at a time.
#[inline(always)]
fn largest(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; 8];
    let eights = values.chunks_exact(8);
    let rest = eights.remainder();
    for eight in eights {
        for k in 0..8 {
            lanes[k] = if eight[k] > lanes[k] { eight[k] } else { lanes[k] };
        }
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |top, &v| if v > top { v } else { top })
}

/// Residuals of one row; returns the row's loss.
#[inline(always)]
fn softmax_residuals(class: usize, raw: &[f32], offset: &[f32], out: &mut [f32]) -> f64 {
    let d = out.len();
    let (raw, offset) = (&raw[..d], &offset[..d]);
    let normaliser = softmax_row(
        #[inline(always)]
        |j| offset[j] + raw[j],
        out,
    );
    // 1 − p of the true class as the sum of the others: exact where p is near one.
    out[class] = 0.0;
    let others = fold_lanes(out, [0.0; 4], |lane, p| lane + p, |a, b| a + b);
    out.iter_mut().for_each(|p| *p = -*p);
    out[class] = others as f32;
    normaliser - f64::from(offset[class] + raw[class])
}

/// Curvatures of all cells into `out`, from the residuals (softmax: the diagonal).
pub fn curvatures(
    pool: &Pool,
    loss: Loss,
    targets: Targets<'_>,
    residuals: &[f32],
    param: &[f32],
    out: &mut [f32],
) -> Result<()> {
    let d = param.len();
    let n = residuals.len() / d;
    let mut rest = out;
    let pieces: Vec<_> = pool
        .row_ranges(n, d)
        .into_iter()
        .map(|rows| {
            let (piece, tail) = std::mem::take(&mut rest).split_at_mut(rows.len() * d);
            rest = tail;
            (rows, piece)
        })
        .collect();
    pool.for_each(pieces, n * d, |(rows, out)| {
        let residuals = &residuals[rows.start * d..rows.end * d];
        match targets {
            Targets::Classes(_) => {
                out.iter_mut().zip(residuals).for_each(|(h, r)| *h = r.abs() * (1.0 - r.abs()));
            }
            cells => with_cells!(cells, y => with_pointwise!(loss, formula => {
                let y = &y[rows.start * d..rows.end * d];
                curvature_rows(formula, y, residuals, param, out);
            })),
        }
    })
}

fn curvature_rows<L: Pointwise, Y: Copy + Into<f32>>(
    formula: L,
    y: &[Y],
    residuals: &[f32],
    param: &[f32],
    out: &mut [f32],
) {
    for (k, h) in out.iter_mut().enumerate() {
        *h = formula.curvature(y[k].into(), residuals[k], param[k % param.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residuals_are_negative_derivatives() {
        let check = |loss: Loss, ys: &[f32], param: f32| {
            with_pointwise!(loss, formula => for &y in ys {
                for i in -20..20 {
                    let f = i as f32 / 7.0 + 0.013;
                    let step = 1e-2;
                    let up = formula.value(y, f + step, param);
                    let down = formula.value(y, f - step, param);
                    let slope = (up - down) / f64::from(2.0 * step);
                    let r = formula.residual(y, f, param);
                    assert!((slope + f64::from(r)).abs() < 5e-3 * (1.0 + slope.abs()), "{loss:?} {y} {f}");
                    if let Some((bound, curve)) = formula.bounds(f64::from(param)) {
                        assert!(f64::from(r.abs()) <= bound * (1.0 + 1e-6));
                        assert!(f64::from(formula.curvature(y, r, param)) <= curve * (1.0 + 1e-6));
                    }
                }
            });
        };
        for loss in [Loss::Squared, Loss::Absolute, Loss::Huber, Loss::Quantile, Loss::Poisson] {
            check(loss, &[0.0, 1.0, 2.5], 0.7);
        }
        for loss in [Loss::SquaredLabels, Loss::Logistic, Loss::Exponential] {
            check(loss, &[0.0, 1.0], 0.0);
        }
    }

    #[test]
    fn softmax_residuals_sum_to_zero() {
        let raw = [0.3f32, -1.0, 2.0, 90.0, -80.0, 0.0];
        let mut raw = raw;
        let mut out = [0.0f32; 6];
        let pass = advance(
            &Pool::serial(),
            Loss::Softmax,
            Targets::Classes(&[2, 0]),
            &mut raw,
            &[0.0; 3],
            &[0.0; 3],
            None,
            None,
            &mut out,
            None,
        )
        .unwrap();
        for row in out.chunks(3) {
            assert!(row.iter().sum::<f32>().abs() < 1e-6);
        }
        assert!(pass.loss > 0.0 && pass.loss < 1.0);
    }
}
