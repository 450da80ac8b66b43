//! Histograms of small nodes: only the bins that rows fall into are touched.
//!
//! A node of 30 rows occupies at most 30 of a feature's 256 bins. Its sums are made in room that is
//! zero before and after, with one bit for each bin that has rows. So the cost follows the rows of
//! the node, not the bins of the features.

use super::accumulate::{FEATURES_AT_ONCE, Lane, NodeLanes, NodeRows, add_lanes};
use crate::error::Result;
use crate::lowlevel::widest;
use crate::memory::resize;

/// Most bins of a feature, missing values included.
const MAX_BINS: usize = 256;
/// Rows of up to so many lanes are summed by loops of fixed width.
const MAX_FIXED_WIDTH: usize = 5;
/// Bins taken off a mask without a branch.
const AT_ONCE: usize = 8;
/// Room for the bins of a mask, and for what is taken in vain.
type BinList = [u8; MAX_BINS + 64];
/// One bit per bin.
type BinMask = [u64; MAX_BINS / 64];

/// Room for the histograms of a few features.
pub struct OccupiedBins {
    /// Sums of each feature and bin; zero between uses.
    sums: Vec<i64>,
    /// The bins of each feature that have rows.
    bins: [BinList; FEATURES_AT_ONCE],
    n_bins: [usize; FEATURES_AT_ONCE],
}

impl Default for OccupiedBins {
    fn default() -> OccupiedBins {
        let bins = [[0; MAX_BINS + 64]; FEATURES_AT_ONCE];
        OccupiedBins { sums: Vec::new(), bins, n_bins: [0; FEATURES_AT_ONCE] }
    }
}

impl OccupiedBins {
    /// How many columns of rows with `width` lanes are summed together. Wide rows gain nothing by it.
    pub fn columns_at_once(width: usize) -> usize {
        if width <= MAX_FIXED_WIDTH { FEATURES_AT_ONCE } else { 1 }
    }

    /// Makes room for rows of `width` lanes.
    pub fn fit(&mut self, width: usize) -> Result<()> {
        let size = OccupiedBins::columns_at_once(width) * MAX_BINS * width;
        if self.sums.len() < size { resize(&mut self.sums, size, 0) } else { Ok(()) }
    }

    /// Sums the rows of a node in at most [`OccupiedBins::columns_at_once`] dense columns, for which
    /// there is room. Calls `f(k, sums, bins)` for the `k`-th column with the sums of all bins and the
    /// bins that have rows, ascending.
    pub fn each<T: Lane>(
        &mut self,
        columns: &[&[u8]],
        node: NodeLanes<'_, T>,
        mut f: impl FnMut(usize, &[i64], &[u8]),
    ) {
        let (width, size) = (node.width, MAX_BINS * node.width);
        self.sum(columns, node);
        for k in 0..columns.len() {
            let bins = &self.bins[k][..self.n_bins[k]];
            let sums = &mut self.sums[k * size..(k + 1) * size];
            f(k, sums, bins);
            if width == 1 {
                bins.iter().for_each(|&bin| sums[usize::from(bin)] = 0);
            } else {
                bins.iter().for_each(|&bin| sums[usize::from(bin) * width..][..width].fill(0));
            }
        }
    }

    fn sum<T: Lane>(&mut self, columns: &[&[u8]], node: NodeLanes<'_, T>) {
        let OccupiedBins { sums, bins, n_bins } = self;
        widest(
            #[inline(always)]
            || {
                let masks = &mut [BinMask::default(); FEATURES_AT_ONCE];
                match node.width {
                    1 => sum_columns::<T, 1>(columns, node, sums, masks),
                    2 => sum_columns::<T, 2>(columns, node, sums, masks),
                    3 => sum_columns::<T, 3>(columns, node, sums, masks),
                    4 => sum_columns::<T, 4>(columns, node, sums, masks),
                    5 => sum_columns::<T, 5>(columns, node, sums, masks),
                    _ => {
                        let sums = sums.chunks_exact_mut(MAX_BINS * node.width);
                        for ((column, sums), mask) in columns.iter().zip(sums).zip(&mut *masks) {
                            sum_column(column, node, sums, mask);
                        }
                    }
                }
                for k in 0..columns.len() {
                    n_bins[k] = list_bins(&masks[k], &mut bins[k]);
                }
            },
        );
    }
}

/// Sums up to four columns of rows with `W` lanes.
#[inline(always)]
fn sum_columns<T: Lane, const W: usize>(
    columns: &[&[u8]],
    node: NodeLanes<'_, T>,
    sums: &mut [i64],
    masks: &mut [BinMask; FEATURES_AT_ONCE],
) {
    let (bins, _) = sums.as_chunks_mut::<W>();
    let (features, _) = bins.as_chunks_mut::<MAX_BINS>();
    if let (&[a, b, c, d], [sums_a, sums_b, sums_c, sums_d, ..]) = (columns, &mut *features) {
        // With one length for all columns, one bounds check does for four.
        let n = a.len();
        let (b, c, d) = (&b[..n], &c[..n], &d[..n]);
        let [mask_a, mask_b, mask_c, mask_d] = masks;
        each_row(
            node,
            #[inline(always)]
            |row, lanes: &[T; W]| {
                add_row(a[row], lanes, sums_a, mask_a);
                add_row(b[row], lanes, sums_b, mask_b);
                add_row(c[row], lanes, sums_c, mask_c);
                add_row(d[row], lanes, sums_d, mask_d);
            },
        );
        return;
    }
    for ((column, sums), mask) in columns.iter().zip(features).zip(masks) {
        each_row(
            node,
            #[inline(always)]
            |row, lanes: &[T; W]| add_row(column[row], lanes, sums, mask),
        );
    }
}

#[inline(always)]
fn add_row<T: Lane, const W: usize>(
    bin: u8,
    lanes: &[T; W],
    sums: &mut [[i64; W]; MAX_BINS],
    mask: &mut BinMask,
) {
    let sums = &mut sums[usize::from(bin)];
    for k in 0..W {
        sums[k] += lanes[k].into();
    }
    mask[usize::from(bin / 64)] |= 1 << (bin % 64);
}

/// Calls `f(row, lanes)` for each row of a node.
#[inline(always)]
fn each_row<T: Lane, const W: usize>(node: NodeLanes<'_, T>, mut f: impl FnMut(usize, &[T; W])) {
    let (lanes, _) = node.lanes.as_chunks::<W>();
    // Plain loops: `for_each` would be compiled without the instructions of `widest`.
    match node.rows {
        NodeRows::All => {
            for (row, lanes) in lanes.iter().enumerate() {
                f(row, lanes);
            }
        }
        NodeRows::Some(rows) if node.gathered => {
            for (&row, lanes) in rows.iter().zip(lanes) {
                f(row as usize, lanes);
            }
        }
        NodeRows::Some(rows) => {
            for &row in rows {
                f(row as usize, &lanes[row as usize]);
            }
        }
    }
}

/// Sums one column of rows with any number of lanes.
#[inline(always)]
fn sum_column<T: Lane>(
    column: &[u8],
    node: NodeLanes<'_, T>,
    sums: &mut [i64],
    mask: &mut BinMask,
) {
    let NodeLanes { rows, lanes, gathered, width } = node;
    let mut add = |row: usize, source: usize| {
        let bin = usize::from(column[row]);
        add_lanes(&mut sums[bin * width..][..width], &lanes[source * width..][..width]);
        mask[bin / 64] |= 1 << (bin % 64);
    };
    match rows {
        NodeRows::All => (0..lanes.len() / width).for_each(|row| add(row, row)),
        NodeRows::Some(rows) => {
            for (k, &row) in rows.iter().enumerate() {
                add(row as usize, if gathered { k } else { row as usize });
            }
        }
    }
}

/// Lists the bins of a mask, ascending; returns how many there are. Takes the first bits of a word
/// without looking how many it has: a loop that ends at the last bit is mispredicted for each word.
#[inline(always)]
fn list_bins(mask: &BinMask, bins: &mut BinList) -> usize {
    let mut n = 0;
    for (k, &word) in mask.iter().enumerate() {
        let count = word.count_ones() as usize;
        let mut word = word;
        let mut take = |bins: &mut [u8; AT_ONCE]| {
            for bin in bins {
                *bin = (64 * k) as u8 + word.trailing_zeros() as u8;
                word &= word.wrapping_sub(1);
            }
        };
        let (groups, _) = bins[n..n + 64].as_chunks_mut::<AT_ONCE>();
        take(&mut groups[0]);
        if count > AT_ONCE {
            groups[1..count.div_ceil(AT_ONCE)].iter_mut().for_each(take);
        }
        n += count;
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::accumulate;

    #[test]
    fn sums_are_those_of_the_dense_histogram_and_the_room_is_left_empty() {
        let mut stream = crate::random::Key::new(8).stream();
        let n = 60usize;
        let columns: Vec<Vec<u8>> =
            (0..7).map(|_| (0..n).map(|_| stream.below(256) as u8).collect()).collect();
        let columns: Vec<&[u8]> = columns.iter().map(|column| &column[..]).collect();
        let some: Vec<u32> = (0..n as u32).filter(|row| row % 3 > 0).collect();
        let mut room = OccupiedBins::default();
        for width in 1..8usize {
            let lanes: Vec<i32> = (0..(n * width) as i32).map(|i| i * i % 23 - 11).collect();
            let of = |&row: &u32| lanes[row as usize * width..][..width].to_vec();
            let copied: Vec<i32> = some.iter().flat_map(of).collect();
            for (rows, lanes, gathered) in [
                (NodeRows::All, &lanes, false),
                (NodeRows::Some(&some), &lanes, false),
                (NodeRows::Some(&some), &copied, true),
            ] {
                let node = NodeLanes { rows, lanes, gathered, width };
                let mut n_seen = 0;
                let mut check = |column: &[u8], sums: &[i64], bins: &[u8]| {
                    let mut expected = vec![0i64; 256 * width];
                    accumulate(column, node, &mut expected);
                    assert_eq!(sums, expected);
                    let row_bin = |row: usize| column[row];
                    let mut occupied: Vec<u8> = match rows {
                        NodeRows::All => (0..n).map(row_bin).collect(),
                        NodeRows::Some(rows) => rows.iter().map(|&r| row_bin(r as usize)).collect(),
                    };
                    occupied.sort_unstable();
                    occupied.dedup();
                    assert_eq!(bins, occupied);
                    n_seen += 1;
                };
                room.fit(width).unwrap();
                for columns in columns.chunks(OccupiedBins::columns_at_once(width)) {
                    room.each(columns, node, |k, sums, bins| check(columns[k], sums, bins));
                }
                assert_eq!(n_seen, columns.len());
                assert!(room.sums.iter().all(|&sum| sum == 0));
            }
        }
    }
}
