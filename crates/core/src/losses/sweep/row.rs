//! One row, swept in one loop.

use crate::projection::sum_lanes;
use crate::reduce::{FixedPoint, round_with_offset};

/// Cells that are handled together.
pub(super) const LANES: usize = 16;

/// Constants of each output, in lanes; the last are padded with zeros.
pub(super) struct Columns {
    /// All bits of the outputs, none of what fills up the last lanes.
    pub masks: Vec<[u32; LANES]>,
    /// φ, if it is dense and has one component; else nothing.
    pub phi: Vec<[f32; LANES]>,
    /// Scales of the sums by leaf; nothing without leaves.
    pub scales: Vec<[f64; LANES]>,
}

impl Columns {
    pub fn new(d: usize, phi: &[f32], fixed: &[FixedPoint]) -> Columns {
        let scales: Vec<f64> = fixed.iter().map(|fixed| fixed.scale).collect();
        Columns {
            masks: lanes_of(&vec![u32::MAX; d]),
            phi: lanes_of(phi),
            scales: lanes_of(&scales),
        }
    }
}

fn lanes_of<T: Copy + Default>(values: &[T]) -> Vec<[T; LANES]> {
    let padded = |part: &[T]| std::array::from_fn(|k| part.get(k).copied().unwrap_or_default());
    values.chunks(LANES).map(padded).collect()
}

/// One row.
pub(super) struct Row<'a> {
    /// Its residuals in whole lanes; what fills up the last ones can be anything.
    pub cells: &'a [f32],
    pub weight: f64,
    /// What residuals are multiplied by for the maxima.
    pub factor: f32,
}

impl Row<'_> {
    /// Raises the maxima, adds to the sums of a leaf; returns Σ r² and φ r.
    #[inline(always)]
    pub fn take<const SUM: bool, const PROJECT: bool>(
        &self,
        columns: &Columns,
        max: &mut [[u32; LANES]],
        sums: &mut [[i64; LANES]],
    ) -> (f64, f32) {
        let (mut squares, mut dot) = ([0.0f64; LANES], [0.0f32; LANES]);
        let n = max.len();
        let (cells, masks) = (&self.cells.as_chunks::<LANES>().0[..n], &columns.masks[..n]);
        let phi = if PROJECT { &columns.phi[..n] } else { &[] };
        let scales = if SUM { &columns.scales[..n] } else { &[] };
        let sums = if SUM { &mut sums[..n] } else { &mut [] };
        for j in 0..n {
            // One loop for everything: loops of their own would each wait for their additions.
            for k in 0..LANES {
                let r = f32::from_bits(cells[j][k].to_bits() & masks[j][k]);
                let wide = f64::from(r);
                max[j][k] = max[j][k].max((r * self.factor).abs().to_bits());
                squares[k] += wide * wide;
                if PROJECT {
                    dot[k] += r * phi[j][k];
                }
                if SUM {
                    let scaled = round_with_offset(wide * self.weight * scales[j][k]);
                    sums[j][k] = sums[j][k].wrapping_add(scaled);
                }
            }
        }
        (folded(squares), sum_lanes(dot))
    }
}

/// The sum of lanes, in a fixed pattern.
#[inline(always)]
pub(super) fn folded(lanes: [f64; LANES]) -> f64 {
    let eight: [f64; 8] = std::array::from_fn(|k| lanes[k] + lanes[k + 8]);
    let four: [f64; 4] = std::array::from_fn(|k| eight[k] + eight[k + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}
