//! Four rows of one leaf, swept in one loop: constants, maxima and sums are touched once for all four.

use std::array::from_fn;

use super::row::{Columns, LANES, folded};
use crate::projection::sum_lanes;
use crate::reduce::round_with_offset;

/// Rows that are taken at once.
pub(super) const TOGETHER: usize = 4;

/// A lane of each row.
type Lanes<T> = [[T; LANES]; TOGETHER];

/// Rows of one leaf.
pub(super) struct FourRows<'a> {
    /// Where their cells start, ascending.
    pub starts: [usize; TOGETHER],
    /// What is subtracted from them first.
    pub moves: [&'a [f32]; TOGETHER],
    pub weights: [f64; TOGETHER],
    /// What residuals are multiplied by for the maxima.
    pub factors: [f32; TOGETHER],
}

/// Σ r² and φ r of each row, in lanes.
struct Taken {
    squares: Lanes<f64>,
    dots: Lanes<f32>,
}

impl FourRows<'_> {
    /// Moves the cells, raises the maxima, adds to the sums of the leaf; returns Σ r² and φ r of each.
    ///
    /// Does to each row what `Row::take` does. Lanes are copied before they are worked on: copies
    /// overlap with nothing, so that the compiler keeps them in registers.
    #[inline(always)]
    pub fn take(
        &self,
        columns: &Columns,
        d: usize,
        cells: &mut [f32],
        max: &mut [[u32; LANES]],
        sums: &mut [[i64; LANES]],
    ) -> ([f64; TOGETHER], [f32; TOGETHER]) {
        let mut taken = Taken { squares: [[0.0; LANES]; 4], dots: [[0.0; LANES]; 4] };
        let (n, m) = (d / LANES, d % LANES);
        let mut rows = self.split(cells, d);
        {
            let [a, b, c, d] = &mut rows;
            let rows = [a, b, c, d].map(|row| &mut row.as_chunks_mut::<LANES>().0[..n]);
            let moves: [&[[f32; LANES]]; TOGETHER] = from_fn(|a| &self.moves[a].as_chunks().0[..n]);
            let (phi, scales) = (&columns.phi[..n], &columns.scales[..n]);
            let (max, sums) = (&mut max[..n], &mut sums[..n]);
            for j in 0..n {
                let mut r: Lanes<f32> = from_fn(|a| rows[a][j]);
                let v: Lanes<f32> = from_fn(|a| moves[a][j]);
                (max[j], sums[j]) =
                    self.lanes((&mut r, v), (phi[j], scales[j]), (max[j], sums[j]), &mut taken);
                for a in 0..TOGETHER {
                    rows[a][j] = r[a];
                }
            }
        }
        if m > 0 {
            let (mut r, mut v): (Lanes<f32>, Lanes<f32>) = ([[0.0; LANES]; 4], [[0.0; LANES]; 4]);
            for a in 0..TOGETHER {
                r[a][..m].copy_from_slice(&rows[a][n * LANES..]);
                v[a][..m].copy_from_slice(&self.moves[a][n * LANES..]);
            }
            let constants = (columns.phi[n], columns.scales[n]);
            (max[n], sums[n]) = self.lanes((&mut r, v), constants, (max[n], sums[n]), &mut taken);
            for a in 0..TOGETHER {
                rows[a][n * LANES..].copy_from_slice(&r[a][..m]);
            }
        }
        (from_fn(|a| folded(taken.squares[a])), from_fn(|a| sum_lanes(taken.dots[a])))
    }

    /// The cells of each row.
    #[inline(always)]
    fn split<'c>(&self, cells: &'c mut [f32], d: usize) -> [&'c mut [f32]; TOGETHER] {
        let (mut rest, mut at) = (cells, 0);
        from_fn(|a| {
            let (_, from_row) = std::mem::take(&mut rest).split_at_mut(self.starts[a] - at);
            let (row, behind) = from_row.split_at_mut(d);
            (rest, at) = (behind, self.starts[a] + d);
            row
        })
    }

    /// Takes one lane of each row; returns the maxima and the sums.
    #[inline(always)]
    fn lanes(
        &self,
        (r, v): (&mut Lanes<f32>, Lanes<f32>),
        (phi, scale): ([f32; LANES], [f64; LANES]),
        (mut max, mut sums): ([u32; LANES], [i64; LANES]),
        taken: &mut Taken,
    ) -> ([u32; LANES], [i64; LANES]) {
        for k in 0..LANES {
            for a in 0..TOGETHER {
                r[a][k] -= v[a][k];
                let wide = f64::from(r[a][k]);
                max[k] = max[k].max((r[a][k] * self.factors[a]).abs().to_bits());
                taken.squares[a][k] += wide * wide;
                taken.dots[a][k] += r[a][k] * phi[k];
                let scaled = round_with_offset(wide * self.weights[a] * scale[k]);
                sums[k] = sums[k].wrapping_add(scaled);
            }
        }
        (max, sums)
    }
}
