//! Summing large nodes whose rows have several narrow lanes.
//!
//! The count of a row moves into the low bits of its first lane: 3 lanes become 2, which one vector
//! instruction adds. Before the counts of a bin can overflow into the gradients, after 2¹⁶ rows, the
//! sums are taken apart and added to the histogram.

use super::accumulate::{FEATURES_AT_ONCE, Lane, NodeRows, accumulate_four};
use crate::lowlevel::widest;

/// Rows between two additions to the histogram.
const BLOCK_ROWS: usize = 1 << 16;
/// Low bits of the first lane that count rows.
const COUNT_BITS: u32 = 17;
/// Most lanes of packed rows.
const MAX_PACKED: usize = 8;

/// Lanes per packed row, if rows of `width` lanes of type `T` can be packed.
pub fn packed_width<T: Lane>(width: usize) -> Option<usize> {
    (T::IS_NARROW && width > 1 && width - 1 <= MAX_PACKED).then(|| width - 1)
}

/// Packs the lanes of a row.
#[inline(always)]
pub fn pack<T: Lane>(lanes: &[T], packed: &mut [i64]) {
    let (&count, lanes) = lanes.split_last().expect("rows have at least a count");
    packed.iter_mut().zip(lanes).for_each(|(packed, &lane)| *packed = lane.into());
    packed[0] = (packed[0] << COUNT_BITS) + count.into();
}

/// Sums up to four columns of a node, whose packed rows lie side by side, into their histograms.
pub fn accumulate_packed(
    columns: &[&[u8]],
    rows: NodeRows<'_>,
    lanes: &[i64],
    width: usize,
    histograms: &mut [&mut [i64]],
) {
    histograms.iter_mut().for_each(|histogram| histogram.fill(0));
    widest(
        #[inline(always)]
        || match width {
            1 => sum_single_lanes(columns, rows, lanes, histograms),
            2 => sum_columns::<2, 4>(columns, rows, lanes, histograms),
            3 => sum_columns::<3, 2>(columns, rows, lanes, histograms),
            4 => sum_columns::<4, 2>(columns, rows, lanes, histograms),
            5 => sum_columns::<5, 1>(columns, rows, lanes, histograms),
            6 => sum_columns::<6, 1>(columns, rows, lanes, histograms),
            7 => sum_columns::<7, 1>(columns, rows, lanes, histograms),
            8 => sum_columns::<8, 1>(columns, rows, lanes, histograms),
            _ => unreachable!("at most {MAX_PACKED} lanes are packed"),
        },
    );
}

/// Sums columns of rows with a single packed lane.
fn sum_single_lanes(
    columns: &[&[u8]],
    rows: NodeRows<'_>,
    lanes: &[i64],
    histograms: &mut [&mut [i64]],
) {
    // Four columns are always summed; without so many, the last one is repeated.
    let four: [&[u8]; FEATURES_AT_ONCE] =
        std::array::from_fn(|k| columns[k.min(columns.len() - 1)]);
    let mut sums = [[0i64; 256]; FEATURES_AT_ONCE];
    for (block, lanes) in lanes.chunks(BLOCK_ROWS).enumerate() {
        let from = block * BLOCK_ROWS;
        match rows {
            NodeRows::All => {
                let columns = four.map(|column| &column[from..from + lanes.len()]);
                accumulate_four(columns, NodeRows::All, lanes, &mut sums);
            }
            NodeRows::Some(rows) => {
                let rows = NodeRows::Some(&rows[from..from + lanes.len()]);
                accumulate_four(four, rows, lanes, &mut sums);
            }
        }
        for (sums, histogram) in sums.iter_mut().zip(&mut *histograms) {
            let (bins, _) = sums.as_chunks_mut::<1>();
            flush(bins, histogram);
        }
    }
}

/// Sums of all bins of one feature. Aligned, so that no bin of two or four lanes lies on two lines of the
/// cache: adding to such a bin takes twice as long.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Sums<const W: usize>([[i64; W]; 256]);

impl<const W: usize> Sums<W> {
    const ZERO: Sums<W> = Sums([[0; W]; 256]);
}

/// Sums `F` columns at a time: as many as fit half the nearest cache.
#[inline(always)]
fn sum_columns<const W: usize, const F: usize>(
    columns: &[&[u8]],
    rows: NodeRows<'_>,
    lanes: &[i64],
    histograms: &mut [&mut [i64]],
) {
    const { assert!(F <= FEATURES_AT_ONCE) };
    let (lanes, _) = lanes.as_chunks::<W>();
    for (columns, histograms) in columns.chunks(F).zip(histograms.chunks_mut(F)) {
        let mut sums = [Sums::<W>::ZERO; F];
        for (block, lanes) in lanes.chunks(BLOCK_ROWS).enumerate() {
            let from = block * BLOCK_ROWS;
            match <[&[u8]; F]>::try_from(columns) {
                Ok(columns) => sum_block(columns, rows, from, lanes, &mut sums),
                Err(_) => {
                    for (&column, sums) in columns.iter().zip(&mut sums) {
                        sum_block([column], rows, from, lanes, std::array::from_mut(sums));
                    }
                }
            }
            histograms.iter_mut().zip(&mut sums).for_each(|(h, sums)| flush(&mut sums.0, h));
        }
    }
}

/// Adds a block of rows to the sums of some columns.
#[inline(always)]
fn sum_block<const W: usize, const F: usize>(
    columns: [&[u8]; F],
    rows: NodeRows<'_>,
    from: usize,
    lanes: &[[i64; W]],
    sums: &mut [Sums<W>; F],
) {
    // With one length for all columns, one bounds check does for all.
    let n = columns[0].len();
    let columns = columns.map(|column| &column[..n]);
    let mut add = |row: usize, lanes: &[i64; W]| {
        for k in 0..F {
            let bin = &mut sums[k].0[usize::from(columns[k][row])];
            for l in 0..W {
                bin[l] += lanes[l];
            }
        }
    };
    match rows {
        NodeRows::All => {
            for (k, lanes) in lanes.iter().enumerate() {
                add(from + k, lanes);
            }
        }
        NodeRows::Some(rows) => {
            for (&row, lanes) in rows[from..].iter().zip(lanes) {
                add(row as usize, lanes);
            }
        }
    }
}

/// Adds the sums of a block of rows to the histogram, and sets them to zero.
#[inline(always)]
fn flush<const W: usize>(sums: &mut [[i64; W]], histogram: &mut [i64]) {
    for (bin, sums) in histogram.chunks_exact_mut(W + 1).zip(sums) {
        let first = sums[0];
        sums[0] >>= COUNT_BITS;
        for l in 0..W {
            bin[l] += sums[l];
        }
        bin[W] += first & ((1 << COUNT_BITS) - 1);
        *sums = [0; W];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::{NodeLanes, accumulate};

    #[test]
    fn packed_sums_are_those_of_single_lanes_however_many_rows_there_are() {
        let mut stream = crate::random::Key::new(5).stream();
        let n = 2 * BLOCK_ROWS + 7;
        let n_bins = 5usize;
        let columns: Vec<Vec<u8>> =
            (0..3).map(|_| (0..n).map(|_| stream.below(n_bins) as u8).collect()).collect();
        let columns: Vec<&[u8]> = columns.iter().map(|column| &column[..]).collect();
        let some: Vec<u32> = (0..n as u32).filter(|row| row % 13 > 0).collect();
        for width in [2usize, 3, 5, 9] {
            // The largest gradients of either sign, all rows in one bin: nothing overflows.
            let top = 1 << 30;
            let lane = |k: usize| match (k % width == width - 1, k % 3) {
                (true, _) => i32::from(!k.is_multiple_of(7)),
                (false, 0) => -top,
                (false, _) => top - (k % 5) as i32,
            };
            let lanes: Vec<i32> = (0..n * width).map(lane).collect();
            let constant = vec![0u8; n];
            let columns = [columns[0], columns[1], &constant[..], columns[2]];
            for rows in [NodeRows::All, NodeRows::Some(&some)] {
                let all = (0..n as u32).collect::<Vec<_>>();
                let chosen = if let NodeRows::Some(rows) = rows { rows } else { &all };
                let mut packed = vec![0i64; chosen.len() * (width - 1)];
                for (packed, &row) in packed.chunks_mut(width - 1).zip(chosen) {
                    pack(&lanes[row as usize * width..][..width], packed);
                }
                for n_columns in 1..=4 {
                    let mut sums = vec![vec![9i64; n_bins * width]; n_columns];
                    let mut parts: Vec<&mut [i64]> = sums.iter_mut().map(|s| &mut s[..]).collect();
                    let columns = &columns[..n_columns];
                    accumulate_packed(columns, rows, &packed, width - 1, &mut parts);
                    for (column, sums) in columns.iter().zip(&sums) {
                        let mut expected = vec![0i64; n_bins * width];
                        let node = NodeLanes { rows, lanes: &lanes, gathered: false, width };
                        accumulate(column, node, &mut expected);
                        assert_eq!(*sums, expected);
                    }
                }
            }
        }
    }
}
