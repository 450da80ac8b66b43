//! Summing the lanes of a node's rows into the bins of a feature.

use crate::error::Result;
use crate::parallel::Pool;
use crate::reduce::add_up_here;

/// A lane type.
pub trait Lane: Copy + Default + Send + Sync + Into<i64> {
    /// Whether lanes have at most 32 bits.
    const IS_NARROW: bool;
}
impl Lane for i32 {
    const IS_NARROW: bool = true;
}
impl Lane for i64 {
    const IS_NARROW: bool = false;
}

/// The rows of a node.
#[derive(Debug, Clone, Copy)]
pub enum NodeRows<'a> {
    /// All rows, in order.
    All,
    /// These rows, ascending.
    Some(&'a [u32]),
}

/// The rows of a node and their lanes.
#[derive(Debug, Clone, Copy)]
pub struct NodeLanes<'a, T> {
    /// The rows.
    pub rows: NodeRows<'a>,
    /// Lanes of the node's rows side by side if `gathered`, else of all rows.
    pub lanes: &'a [T],
    /// See `lanes`.
    pub gathered: bool,
    /// Lanes per row.
    pub width: usize,
}

/// Sums the lanes of a node's rows by their bins in one dense column.
#[inline(always)]
pub fn accumulate<T: Lane>(column: &[u8], node: NodeLanes<'_, T>, histogram: &mut [i64]) {
    let NodeLanes { rows, lanes, gathered, width } = node;
    match (width, rows) {
        (1, NodeRows::All) => {
            // 256 sums for 8-bit bins: no index is ever out of bounds.
            let mut sums = [0i64; 256];
            for (&bin, &lane) in column.iter().zip(lanes) {
                sums[bin as usize] += lane.into();
            }
            histogram.copy_from_slice(&sums[..histogram.len()]);
        }
        (1, NodeRows::Some(rows)) if gathered => {
            let mut sums = [0i64; 256];
            for (&row, &lane) in rows.iter().zip(lanes) {
                sums[column[row as usize] as usize] += lane.into();
            }
            histogram.copy_from_slice(&sums[..histogram.len()]);
        }
        (_, NodeRows::All) => {
            histogram.fill(0);
            for (&bin, lanes) in column.iter().zip(lanes.chunks_exact(width)) {
                add_lanes(&mut histogram[bin as usize * width..][..width], lanes);
            }
        }
        (_, NodeRows::Some(rows)) => {
            histogram.fill(0);
            for (k, &row) in rows.iter().enumerate() {
                let source = if gathered { k } else { row as usize };
                let bin = column[row as usize] as usize;
                add_lanes(
                    &mut histogram[bin * width..][..width],
                    &lanes[source * width..][..width],
                );
            }
        }
    }
}

/// Features that [`accumulate_four`] sums together.
pub const FEATURES_AT_ONCE: usize = 4;

/// [`accumulate`] with one lane for four features at once: row number and lane are read once for all.
/// Adds to `sums`, which the caller owns: returned by value, they would be copied. Not inlined, so
/// that the loop has all registers to itself.
#[inline(never)]
pub fn accumulate_four<T: Lane>(
    columns: [&[u8]; FEATURES_AT_ONCE],
    rows: NodeRows<'_>,
    lanes: &[T],
    sums: &mut [[i64; 256]; FEATURES_AT_ONCE],
) {
    // With one length for all columns, one bounds check does for four.
    let n = columns[0].len();
    let [a, b, c, d] = columns.map(|column| &column[..n]);
    let mut add = |bins: [u8; FEATURES_AT_ONCE], lane: i64| {
        for (sums, bin) in sums.iter_mut().zip(bins) {
            sums[bin as usize] += lane;
        }
    };
    match rows {
        NodeRows::All => {
            for ((((&a, &b), &c), &d), &lane) in a.iter().zip(b).zip(c).zip(d).zip(lanes) {
                add([a, b, c, d], lane.into());
            }
        }
        NodeRows::Some(rows) => {
            for (&row, &lane) in rows.iter().zip(lanes) {
                let row = row as usize;
                add([a[row], b[row], c[row], d[row]], lane.into());
            }
        }
    }
}

/// The total of some rows on this rank; `lanes` holds all rows.
pub fn sum_rows<T: Lane>(pool: &Pool, rows: &[u32], lanes: &[T], width: usize) -> Result<Vec<i64>> {
    let ranges = pool.row_ranges(rows.len(), width);
    let sums = pool.map(ranges, rows.len() * width, |range| {
        let mut total = vec![0i64; width];
        for &row in &rows[range] {
            add_lanes(&mut total, &lanes[row as usize * width..(row as usize + 1) * width]);
        }
        total
    })?;
    add_up_here(sums, width)
}

/// Adds the lanes of a row to those of a bin, in whole vectors as far as they go.
#[inline(always)]
pub(super) fn add_lanes<T: Lane>(bin: &mut [i64], lanes: &[T]) {
    let (sums, last_sums) = bin.as_chunks_mut::<8>();
    let (lanes, last_lanes) = lanes.as_chunks::<8>();
    for (sums, lanes) in sums.iter_mut().zip(lanes) {
        // All loads before the first store: otherwise the compiler takes lanes one by one.
        let (lanes, mut added): ([i64; 8], _) = (lanes.map(Into::into), *sums);
        for k in 0..8 {
            added[k] += lanes[k];
        }
        *sums = added;
    }
    for (sum, &lane) in last_sums.iter_mut().zip(last_lanes) {
        *sum += lane.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathered_or_not_the_sums_are_those_of_a_plain_loop() {
        let column: Vec<u8> = (0..50).map(|i| (i * 7 % 5) as u8).collect();
        let rows: Vec<u32> = (0..50).filter(|i| i % 3 != 0).collect();
        for width in 1..5usize {
            let lanes: Vec<i32> = (0..50 * width as i32).map(|i| i * i % 23 - 11).collect();
            let copied: Vec<i32> = rows
                .iter()
                .flat_map(|&r| lanes[r as usize * width..(r as usize + 1) * width].to_vec())
                .collect();
            let mut expected = vec![0i64; 5 * width];
            for &row in &rows {
                for l in 0..width {
                    expected[column[row as usize] as usize * width + l] +=
                        i64::from(lanes[row as usize * width + l]);
                }
            }
            for (lanes, gathered) in [(&lanes, false), (&copied, true)] {
                let mut sums = vec![0i64; 5 * width];
                let node = NodeLanes { rows: NodeRows::Some(&rows), lanes, gathered, width };
                accumulate(&column, node, &mut sums);
                assert_eq!(sums, expected);
                if width == 1 && gathered {
                    let mut four = [[0; 256]; 4];
                    accumulate_four([&column[..]; 4], node.rows, lanes, &mut four);
                    assert!(four.iter().all(|sums| sums[..5] == expected));
                }
            }
        }
    }

    #[test]
    fn a_node_without_rows_sums_to_zero() {
        for width in [1, 3] {
            let node =
                NodeLanes { rows: NodeRows::Some(&[]), lanes: &[0i32; 0], gathered: true, width };
            let mut sums = vec![7i64; 2 * width];
            accumulate(&[0, 1, 1], node, &mut sums);
            assert_eq!(sums, vec![0; 2 * width]);
            let total = sum_rows(&Pool::serial(), &[], node.lanes, width).unwrap();
            assert_eq!(total, vec![0; width]);
        }
    }
}
