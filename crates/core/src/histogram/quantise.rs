//! Split gradients as integer lanes.
//!
//! The scale is a power of two taken from the largest gradient of all rows. An outlier would leave
//! the other rows few digits, so lanes become wider if many gradients are small next to it.

use super::layout::{Layout, SMALL_SUM_BITS, packed_bits};
use super::source::{Scales, Source};
use crate::error::{Result, invalid};
use crate::parallel::Pool;
use crate::reduce::{FixedPoint, bits_for};

/// Bits of a gradient or a weight in narrow lanes.
const NARROW_BITS: i32 = 30;

/// The split gradients of all rows as integer lanes.
#[derive(Debug, Clone)]
pub struct SplitGradients {
    /// How to read them.
    pub layout: Layout,
    /// The lanes, row after row.
    pub lanes: RowLanes,
}

/// The lanes of all rows, as narrow as the data allow.
#[derive(Debug, Clone)]
pub enum RowLanes {
    /// 32 bits: most data.
    Narrow(Vec<i32>),
    /// 64 bits: packed lanes, or gradients with tails too heavy for 32 bits.
    Wide(Vec<i64>),
}

/// The weights of split gradients.
#[derive(Debug, Clone, Copy)]
pub enum SplitWeights<'a> {
    /// All rows weigh the same.
    Equal,
    /// One weight per row (n).
    Rows(&'a [f32]),
    /// One weight per component of a row (n × q); the gradients are already multiplied by them.
    Components(&'a [f32]),
}

/// Turns weighted split gradients (n × q) into integers.
///
/// `rows` are the rows that the tree will see (all if `None`): only they set the scale of weights.
/// `spare` is memory to reuse. Fails on all ranks if a gradient on any of them is not finite.
pub fn quantise(
    pool: &Pool,
    z: &[f32],
    n_components: usize,
    weights: SplitWeights<'_>,
    rows: Option<&[u32]>,
    spare: Option<RowLanes>,
) -> Result<SplitGradients> {
    if n_components == 0 {
        return invalid("split gradients have no column; a tree needs at least one to grow on");
    }
    let source = Source { z, q: n_components, weights, n: z.len() / n_components };
    let n_all = pool.all_rows(source.n);
    let sizes = source.sizes(pool, rows)?;

    if let Some(bits) = packed_bits(n_all).filter(|_| source.is_packable()) {
        let fixed = FixedPoint::with_bits(sizes.gradient, bits)?;
        if source.is_fine(pool, &sizes, fixed)? {
            return source.packed(pool, fixed, bits_for(n_all), spare);
        }
    }
    let narrow = FixedPoint::with_bits(sizes.gradient, NARROW_BITS)?;
    let is_narrow = source.is_fine(pool, &sizes, narrow)?;
    let gradient = if is_narrow { narrow } else { FixedPoint::for_sum(sizes.gradient, n_all)? };
    let weight = FixedPoint::with_bits(sizes.weight, NARROW_BITS)?;
    let weight_lanes = source.weight_lanes();
    let layout = Layout {
        components: n_components,
        weight_lanes,
        width: n_components + weight_lanes + 1,
        count_bits: None,
        small: is_narrow && NARROW_BITS + bits_for(n_all) <= SMALL_SUM_BITS,
        unit: gradient.unit,
        weight_unit: if weight_lanes > 0 { weight.unit } else { 1.0 },
    };
    let scales = Scales { gradient, weight };
    let lanes = if is_narrow {
        source.narrow(pool, scales, layout.width, spare)?
    } else {
        source.wide(pool, scales, layout.width, spare)?
    };
    Ok(SplitGradients { layout, lanes })
}

#[cfg(test)]
mod tests;
