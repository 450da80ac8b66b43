//! Random projections of the residuals: from d outputs to q components.

use std::ops::Range;

use crate::error::{Result, invalid};
use crate::lowlevel::widest;
use crate::memory::{collected, zeros};
use crate::parallel::Pool;
use crate::random::Key;

/// Distributions of the projection matrix (q × d).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Projection {
    /// N(0, 1/q).
    Gaussian,
    /// ±1/√q.
    Rademacher,
    /// ±√(3/q) with probability 1/6 each, else 0.
    Achlioptas,
    /// ±√(√d/q) with probability 1/(2√d) each, else 0.
    Sparse,
    /// Rows of the identity, drawn without replacement.
    Subsample,
}

/// Draws a q × d matrix, row-major. Rows without signal are drawn again: all-zero ones and, if the
/// residuals of neighbouring outputs sum to zero in each row (`zero_sums`, softmax), those that are
/// constant there and zero elsewhere.
pub fn draw(
    projection: Projection,
    n_components: usize,
    n_outputs: usize,
    zero_sums: &[Range<usize>],
    key: Key,
) -> Result<Vec<f32>> {
    let (q, d) = (n_components, n_outputs);
    let mut stream = key.stream();
    let mut phi = zeros::<f32>(q.saturating_mul(d))?;
    if projection == Projection::Subsample {
        if q > d {
            return invalid(format!("cannot draw {q} of {d} outputs without replacement"));
        }
        let mut outputs: Vec<usize> = collected(d, 0..d)?;
        for (c, row) in phi.chunks_mut(d).enumerate() {
            outputs.swap(c, c + stream.below(d - c));
            row[outputs[c]] = 1.0;
        }
        return Ok(phi);
    }
    let sparsity = match projection {
        Projection::Achlioptas => 3.0,
        Projection::Sparse => (d as f64).sqrt(),
        _ => 1.0,
    };
    let size = (sparsity / q as f64).sqrt() as f32;
    for row in phi.chunks_mut(d) {
        loop {
            if projection == Projection::Gaussian {
                for pair in row.chunks_mut(2) {
                    let (a, b) = stream.normals();
                    pair[0] = a as f32 * size;
                    if let Some(second) = pair.get_mut(1) {
                        *second = b as f32 * size;
                    }
                }
            } else {
                for value in row.iter_mut() {
                    let u = stream.uniform() * sparsity;
                    *value = if u < 0.5 {
                        size
                    } else if u < 1.0 {
                        -size
                    } else {
                        0.0
                    };
                }
            }
            if has_signal(row, zero_sums) {
                break;
            }
        }
    }
    Ok(phi)
}

/// Whether residuals, which sum to zero over each of some ranges of outputs, can leave a trace in
/// their product with a row.
fn has_signal(row: &[f32], zero_sums: &[Range<usize>]) -> bool {
    let mut rest = 0;
    for range in zero_sums.iter().filter(|range| range.len() > 1) {
        let block = &row[range.clone()];
        if block.iter().any(|&v| v != block[0]) || row[rest..range.start].iter().any(|&v| v != 0.0)
        {
            return true;
        }
        rest = range.end;
    }
    row[rest..].iter().any(|&v| v != 0.0)
}

/// A projection matrix, ready to be applied. If most entries are zero, zeros cost nothing.
#[derive(Debug, Clone)]
pub enum Phi {
    /// The matrix, row-major, and its number of columns.
    Dense(Vec<f32>, usize),
    /// The non-zero entries (output, value) of each row.
    Sparse(Vec<Vec<(u32, f32)>>),
}

impl Phi {
    /// Prepares a q × d matrix.
    pub fn new(phi: &[f32], n_outputs: usize) -> Result<Phi> {
        let n_entries = |row: &[f32]| row.iter().filter(|&&v| v != 0.0).count();
        if n_entries(phi) * 4 > phi.len() {
            return Ok(Phi::Dense(collected(phi.len(), phi.iter().copied())?, n_outputs));
        }
        let nonzero = |row: &[f32]| {
            let entries = row.iter().enumerate().filter(|e| *e.1 != 0.0);
            collected(n_entries(row), entries.map(|(j, &v)| (j as u32, v)))
        };
        Ok(Phi::Sparse(phi.chunks(n_outputs).map(nonzero).collect::<Result<_>>()?))
    }

    /// The weights that the components of a q × d matrix give to outputs, φ² / Σ φ².
    pub fn shares(phi: &[f32], n_outputs: usize) -> Result<Phi> {
        let mut shares = collected(phi.len(), phi.iter().copied())?;
        for row in shares.chunks_mut(n_outputs) {
            let square = |v: &f32| f64::from(*v) * f64::from(*v);
            let total: f64 = row.iter().map(square).sum();
            if total > 0.0 {
                row.iter_mut().for_each(|v| *v = (square(v) / total) as f32);
            }
        }
        Phi::new(&shares, n_outputs)
    }

    /// Number of components q.
    pub fn n_components(&self) -> usize {
        match self {
            Phi::Dense(phi, d) => phi.len() / d,
            Phi::Sparse(rows) => rows.len(),
        }
    }

    /// The matrix, if it is one dense row.
    pub(crate) fn single(&self) -> Option<&[f32]> {
        match self {
            Phi::Dense(phi, d) if phi.len() == *d => Some(phi),
            _ => None,
        }
    }

    /// Elementary operations for one row.
    pub fn work(&self) -> usize {
        4 + match self {
            // Every inner product has a fixed cost, however short it is.
            Phi::Dense(phi, d) => phi.len() / 4 + phi.len() / d * 8,
            Phi::Sparse(rows) => rows.iter().map(Vec::len).sum(),
        }
    }

    /// Whether many rows at once are much cheaper to project than one by one: the matrix is so
    /// large that reading it for each row would take longer than the products.
    pub(crate) fn wants_many_rows(&self) -> bool {
        matches!(self, Phi::Dense(..)) && self.n_components() >= TILED_COMPONENTS
    }

    /// z = φ r for the residuals of some rows.
    #[inline(always)]
    pub fn apply(&self, residuals: &[f32], n_outputs: usize, z: &mut [f32]) {
        let q = self.n_components();
        if let (Phi::Dense(phi, _), true) = (self, self.wants_many_rows()) {
            return apply_in_tiles(phi, residuals, n_outputs, z);
        }
        for (residuals, z) in residuals.chunks_exact(n_outputs).zip(z.chunks_exact_mut(q)) {
            match self {
                Phi::Dense(phi, _) => {
                    for (c, z) in z.iter_mut().enumerate() {
                        *z = dot(residuals, &phi[c * n_outputs..(c + 1) * n_outputs]);
                    }
                }
                Phi::Sparse(rows) => {
                    for (z, entries) in z.iter_mut().zip(rows) {
                        *z = entries.iter().map(|&(j, v)| residuals[j as usize] * v).sum();
                    }
                }
            }
        }
    }
}

/// From so many components on, a dense matrix is applied to several rows at once.
const TILED_COMPONENTS: usize = 8;
/// Rows and components of a tile: their sixteen lanes each stay in registers.
const TILE: usize = 2;
/// Residuals of the rows that a tile of components goes through: they stay in the second cache.
const TILED_CELLS: usize = 1 << 15;

/// [`Phi::apply`] of a dense matrix, with the same bits: tiles of components, kept in the nearest
/// cache, go through a block of rows.
#[inline(always)]
fn apply_in_tiles(phi: &[f32], residuals: &[f32], d: usize, z: &mut [f32]) {
    let (q, rows) = (phi.len() / d, (TILED_CELLS / d).max(TILE));
    for (residuals, z) in residuals.chunks(rows * d).zip(z.chunks_mut(rows * q)) {
        for (tile, phi) in phi.chunks(TILE * d).enumerate() {
            let c = tile * TILE;
            for (residuals, z) in residuals.chunks(TILE * d).zip(z.chunks_mut(TILE * q)) {
                if residuals.len() == TILE * d && phi.len() == TILE * d {
                    let dots = dots_of_tile(residuals, phi, d);
                    for (z, dots) in z.chunks_exact_mut(q).zip(dots) {
                        z[c..c + TILE].copy_from_slice(&dots);
                    }
                } else {
                    for (z, row) in z.chunks_exact_mut(q).zip(residuals.chunks_exact(d)) {
                        for (z, phi) in z[c..].iter_mut().zip(phi.chunks_exact(d)) {
                            *z = dot(row, phi);
                        }
                    }
                }
            }
        }
    }
}

/// The inner products, like [`dot`], of both rows of a tile with both of its components.
#[inline(always)]
fn dots_of_tile(rows: &[f32], components: &[f32], d: usize) -> [[f32; TILE]; TILE] {
    let ((row_0, row_1), (phi_0, phi_1)) = (rows.split_at(d), components.split_at(d));
    let [(a_0, rest_0), (a_1, rest_1)] = [row_0, row_1].map(<[f32]>::as_chunks::<16>);
    let [(b_0, phi_rest_0), (b_1, phi_rest_1)] = [phi_0, phi_1].map(<[f32]>::as_chunks::<16>);
    // (One name each: the compiler keeps an array of them in memory.)
    let (mut sum_00, mut sum_01) = ([0.0; 16], [0.0; 16]);
    let (mut sum_10, mut sum_11) = ([0.0; 16], [0.0; 16]);
    for (((a_0, a_1), b_0), b_1) in a_0.iter().zip(a_1).zip(b_0).zip(b_1) {
        for k in 0..16 {
            sum_00[k] += a_0[k] * b_0[k];
            sum_01[k] += a_0[k] * b_1[k];
            sum_10[k] += a_1[k] * b_0[k];
            sum_11[k] += a_1[k] * b_1[k];
        }
    }
    for k in 0..rest_0.len() {
        sum_00[k] += rest_0[k] * phi_rest_0[k];
        sum_01[k] += rest_0[k] * phi_rest_1[k];
        sum_10[k] += rest_1[k] * phi_rest_0[k];
        sum_11[k] += rest_1[k] * phi_rest_1[k];
    }
    [[sum_lanes(sum_00), sum_lanes(sum_01)], [sum_lanes(sum_10), sum_lanes(sum_11)]]
}

/// z = residuals · φᵀ, row-major n × q.
pub fn project(
    pool: &Pool,
    residuals: &[f32],
    n_outputs: usize,
    phi: &Phi,
    z: &mut [f32],
) -> Result<()> {
    let (d, q) = (n_outputs, phi.n_components());
    let n = residuals.len() / d;
    let size = n.div_ceil(pool.threads() * 4).max(1);
    let pieces = z.chunks_mut(size * q).zip(residuals.chunks(size * d));
    pool.for_each(pieces, n * phi.work(), |(z, residuals)| {
        widest(
            #[inline(always)]
            || phi.apply(residuals, d, z),
        );
    })
}

/// Inner product in sixteen lanes, added in a fixed pattern.
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    match a.len() {
        1 => dot_short::<1>(a, b),
        2 => dot_short::<2>(a, b),
        3 => dot_short::<3>(a, b),
        4 => dot_short::<4>(a, b),
        5 => dot_short::<5>(a, b),
        6 => dot_short::<6>(a, b),
        7 => dot_short::<7>(a, b),
        8 => dot_short::<8>(a, b),
        _ => dot_long(a, b),
    }
}

/// [`dot`] of at most half as many numbers as lanes.
#[inline(always)]
fn dot_short<const N: usize>(a: &[f32], b: &[f32]) -> f32 {
    let (a, b) = (&a[..N], &b[..N]);
    // (Adding 0 turns −0 into 0, as the longer sums do.)
    let lane = |k: usize| if k < N { a[k] * b[k] + 0.0 } else { 0.0 };
    let four: [f32; 4] = std::array::from_fn(|k| lane(k) + lane(k + 4));
    (four[0] + four[2]) + (four[1] + four[3])
}

#[inline(always)]
fn dot_long(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 16];
    let (a16, b16) = (a.chunks_exact(16), b.chunks_exact(16));
    let (a_rest, b_rest) = (a16.remainder(), b16.remainder());
    for (a, b) in a16.zip(b16) {
        for k in 0..16 {
            lanes[k] += a[k] * b[k];
        }
    }
    for k in 0..a_rest.len() {
        lanes[k] += a_rest[k] * b_rest[k];
    }
    sum_lanes(lanes)
}

/// The sum of sixteen lanes, added in a fixed pattern.
#[inline(always)]
pub(crate) fn sum_lanes(lanes: [f32; 16]) -> f32 {
    let eight: [f32; 8] = std::array::from_fn(|k| lanes[k] + lanes[k + 8]);
    let four: [f32; 4] = std::array::from_fn(|k| eight[k] + eight[k + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Projection; 4] =
        [Projection::Gaussian, Projection::Rademacher, Projection::Achlioptas, Projection::Sparse];

    #[test]
    fn entries_have_mean_zero_and_variance_one_over_q() {
        for projection in ALL {
            let (q, d) = (50, 400);
            let phi = draw(projection, q, d, &[], Key::new(5)).unwrap();
            let n = phi.len() as f64;
            let mean = phi.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
            let variance = phi.iter().map(|&v| f64::from(v * v)).sum::<f64>() / n;
            assert!(mean.abs() < 5e-3, "{projection:?} {mean}");
            assert!((variance * q as f64 - 1.0).abs() < 0.1, "{projection:?} {variance}");
        }
    }

    #[test]
    fn no_row_is_useless() {
        for projection in ALL {
            for seed in 0..300 {
                let phi =
                    draw(projection, 2, 3, std::slice::from_ref(&(0..3)), Key::new(seed)).unwrap();
                assert!(phi.chunks(3).all(|row| row.iter().any(|&v| v != row[0])));
                let phi = draw(projection, 2, 6, &[0..2, 3..6], Key::new(seed)).unwrap();
                let signal = |row: &[f32]| {
                    row[0] != row[1] || row[2] != 0.0 || { row[3] != row[4] || row[4] != row[5] }
                };
                assert!(phi.chunks(6).all(signal));
                let phi = draw(projection, 2, 1, &[], Key::new(seed)).unwrap();
                assert!(phi.iter().all(|&v| v != 0.0));
            }
        }
    }

    #[test]
    fn subsample_draws_different_outputs() {
        let phi = draw(Projection::Subsample, 4, 4, &[], Key::new(1)).unwrap();
        for j in 0..4 {
            assert_eq!((0..4).map(|c| phi[c * 4 + j]).sum::<f32>(), 1.0);
        }
        assert!(draw(Projection::Subsample, 5, 4, &[], Key::new(1)).is_err());
    }

    #[test]
    fn shares_of_a_component_add_up_to_one() {
        let phi = [3.0f32, -4.0, 0.0, 0.0, 0.0, 2.0];
        let mut omega = [0.0f32; 2];
        Phi::shares(&phi, 3).unwrap().apply(&[1.0, 1.0, 1.0], 3, &mut omega);
        assert_eq!(omega, [1.0, 1.0]);
        Phi::shares(&phi, 3).unwrap().apply(&[1.0, 0.0, 0.5], 3, &mut omega);
        assert_eq!(omega, [0.36, 0.5]);
    }

    #[test]
    fn short_inner_products_are_those_of_long_ones() {
        let a: Vec<f32> = (0..8).map(|k| 0.3 - 1.7 * k as f32).collect();
        let b: Vec<f32> = (0..8).map(|k| if k == 3 { 0.0 } else { 0.7 + 0.9 * k as f32 }).collect();
        for n in 0..=8 {
            let (short, long) = (dot(&a[..n], &b[..n]), dot_long(&a[..n], &b[..n]));
            assert_eq!(short.to_bits(), long.to_bits());
        }
        assert_eq!(dot(&[-0.0], &[1.0]).to_bits(), 0);
    }

    #[test]
    fn tiles_give_the_bits_of_single_products() {
        let mut stream = Key::new(3).stream();
        let mut normals =
            |count: usize| (0..count).map(|_| stream.normals().0 as f32).collect::<Vec<f32>>();
        for (n, q, d) in [(1, 8, 5), (6, 9, 16), (9, 12, 37), (70, 11, 1000)] {
            let (residuals, phi) = (normals(n * d), normals(q * d));
            let mut z = vec![0.0; n * q];
            let matrix = Phi::new(&phi, d).unwrap();
            assert!(matrix.wants_many_rows());
            project(&Pool::serial(), &residuals, d, &matrix, &mut z).unwrap();
            for (row, z) in residuals.chunks(d).zip(z.chunks(q)) {
                for (component, z) in phi.chunks(d).zip(z) {
                    assert_eq!(z.to_bits(), dot(row, component).to_bits());
                }
            }
        }
    }

    #[test]
    fn sparse_and_dense_products_agree() {
        let (n, d) = (7, 40);
        let residuals: Vec<f32> =
            (0..n * d).map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect();
        let mut phi = vec![0.0; 2 * d];
        phi[3] = 2.0;
        phi[d + 39] = -1.0;
        let mut z = vec![0.0; n * 2];
        project(&Pool::serial(), &residuals, d, &Phi::new(&phi, d).unwrap(), &mut z).unwrap();
        for i in 0..n {
            assert_eq!(z[i * 2], dot(&residuals[i * d..(i + 1) * d], &phi[..d]));
            assert_eq!(z[i * 2 + 1], -residuals[i * d + 39]);
        }
    }
}
