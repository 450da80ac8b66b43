//! Summing nodes whose rows have many narrow lanes.
//!
//! The histogram of one feature does not fit into the nearest cache, and adding row after row to it
//! would move all its bins back and forth. So rows are put in the order of their bins, and the sums of
//! one bin after the other are made in registers.

use super::accumulate::{Lane, NodeRows};
use crate::lowlevel::widest;

/// Fewest lanes worth the sorting.
const FEWEST_LANES: usize = 24;
/// Lanes of one vector.
const LANES: usize = 8;
/// Vectors of sums that are made at once.
const MOST_VECTORS: usize = 8;
/// Rows that are sorted at once.
const BLOCK_ROWS: usize = 1 << 13;

/// Some lanes of a row. Aligned, so that they do not lie on two lines of the cache.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(32))]
pub struct LaneVector([i32; LANES]);

/// Vectors for each row, if rows of `width` lanes of type `T` are summed in the order of their bins.
pub fn vectors_of<T: Lane>(width: usize) -> Option<usize> {
    (T::IS_NARROW && width >= FEWEST_LANES).then(|| width.div_ceil(LANES))
}

/// Copies the lanes of a row into vectors.
#[inline(always)]
pub fn to_vectors<T: Lane>(lanes: &[T], vectors: &mut [LaneVector]) {
    let narrow = |lane: T| {
        let lane: i64 = lane.into();
        lane as i32
    };
    let (whole, rest) = lanes.as_chunks::<LANES>();
    for (vector, &lanes) in vectors.iter_mut().zip(whole) {
        vector.0 = lanes.map(narrow);
    }
    if !rest.is_empty() {
        let lane = |k: usize| rest.get(k).copied().map_or(0, narrow);
        vectors[whole.len()].0 = std::array::from_fn(lane);
    }
}

/// Sums the rows of a node, whose vectors lie side by side, by their bins in one dense column.
pub fn accumulate_in_order(
    column: &[u8],
    rows: NodeRows<'_>,
    vectors: &[LaneVector],
    width: usize,
    histogram: &mut [i64],
) {
    let n_vectors = width.div_ceil(LANES);
    let mut order = Order::new();
    let is_parted = n_vectors > MOST_VECTORS;
    if vectors.is_empty() || is_parted {
        histogram.fill(0);
    }
    for (block, vectors) in vectors.chunks(BLOCK_ROWS * n_vectors).enumerate() {
        let from = block * BLOCK_ROWS;
        let n = vectors.len() / n_vectors;
        match rows {
            NodeRows::All => order.sort(n, |k| column[from + k]),
            NodeRows::Some(rows) => {
                let rows = &rows[from..from + n];
                order.sort(n, |k| column[rows[k] as usize]);
            }
        }
        for first in (0..n_vectors).step_by(MOST_VECTORS) {
            let part = Part { vectors, n_vectors, first, width, adds: block > 0 || is_parted };
            widest(
                #[inline(always)]
                || match n_vectors - first {
                    1 => part.sum::<1>(&order, histogram),
                    2 => part.sum::<2>(&order, histogram),
                    3 => part.sum::<3>(&order, histogram),
                    4 => part.sum::<4>(&order, histogram),
                    5 => part.sum::<5>(&order, histogram),
                    6 => part.sum::<6>(&order, histogram),
                    7 => part.sum::<7>(&order, histogram),
                    _ => part.sum::<MOST_VECTORS>(&order, histogram),
                },
            );
        }
    }
}

/// A block of rows in the order of their bins.
struct Order {
    /// Where the rows of each bin end in `rows`.
    ends: [u32; 256],
    rows: [u16; BLOCK_ROWS],
}

impl Order {
    fn new() -> Order {
        Order { ends: [0; 256], rows: [0; BLOCK_ROWS] }
    }

    #[inline(always)]
    fn sort(&mut self, n: usize, bin_of: impl Fn(usize) -> u8) {
        let mut bins = [0u8; BLOCK_ROWS];
        let mut counts = [0u32; 256];
        for (k, bin) in bins[..n].iter_mut().enumerate() {
            *bin = bin_of(k);
            counts[usize::from(*bin)] += 1;
        }
        let mut start = 0;
        for (end, count) in self.ends.iter_mut().zip(counts) {
            *end = start;
            start += count;
        }
        for (k, &bin) in bins[..n].iter().enumerate() {
            let end = &mut self.ends[usize::from(bin)];
            self.rows[*end as usize % BLOCK_ROWS] = k as u16;
            *end += 1;
        }
    }
}

/// Neighbouring vectors of a block of rows.
#[derive(Clone, Copy)]
struct Part<'a> {
    vectors: &'a [LaneVector],
    /// Vectors of a row.
    n_vectors: usize,
    /// The first of them to sum.
    first: usize,
    /// Lanes of a row.
    width: usize,
    /// Whether the histogram holds sums of blocks before.
    adds: bool,
}

impl Part<'_> {
    /// Sums `N` vectors of all rows.
    #[allow(clippy::manual_memcpy)] // a copy of slices could keep the sums in memory
    #[inline(always)]
    fn sum<const N: usize>(&self, order: &Order, histogram: &mut [i64]) {
        let Part { vectors, n_vectors, first, width, adds } = *self;
        let n_bins = histogram.len() / width;
        // What fills up the last vector of a row is zero. Stored behind a bin, it is added to the next
        // one, or overwritten by it. Only the last bin needs a room of its own.
        let mut room = [[0i64; LANES]; N];
        let last = (n_bins - 1) * width + first * LANES
            ..histogram.len().min((n_bins - 1) * width + (first + N) * LANES);
        let n_last = last.len();
        if adds {
            room.as_flattened_mut()[..n_last].copy_from_slice(&histogram[last.clone()]);
        }
        let mut start = 0;
        for (bin, &end) in order.ends[..n_bins].iter().enumerate() {
            let mut sums = [[0i64; LANES]; N];
            for &row in &order.rows[start as usize..end as usize] {
                let row = &vectors[usize::from(row) * n_vectors + first..][..N];
                for v in 0..N {
                    let lanes = row[v].0.map(i64::from);
                    for l in 0..LANES {
                        sums[v][l] += lanes[l];
                    }
                }
            }
            start = end;
            let place = bin * width + first * LANES;
            let bin: &mut [[i64; LANES]] = match histogram.get_mut(place..place + N * LANES) {
                Some(bin) => bin.as_chunks_mut().0,
                None => &mut room,
            };
            let bin = &mut bin[..N];
            if adds {
                for v in 0..N {
                    for l in 0..LANES {
                        sums[v][l] += bin[v][l];
                    }
                }
            }
            for v in 0..N {
                bin[v] = sums[v];
            }
        }
        // (If it has whole vectors, the last bin is in its place already.)
        if n_last < N * LANES {
            histogram[last].copy_from_slice(&room.as_flattened()[..n_last]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::{NodeLanes, accumulate};

    #[test]
    fn sums_in_the_order_of_bins_are_those_of_a_plain_loop() {
        let mut stream = crate::random::Key::new(6).stream();
        let n = BLOCK_ROWS + 77;
        for (width, n_bins) in
            [(24usize, 5usize), (31, 256), (51, 255), (64, 2), (65, 100), (130, 9)]
        {
            let column: Vec<u8> = (0..n).map(|_| stream.below(n_bins) as u8).collect();
            let lanes: Vec<i32> =
                (0..n * width).map(|_| stream.below(1 << 31) as i32 - (1 << 30)).collect();
            let some: Vec<u32> = (0..n as u32).filter(|row| row % 13 > 0).collect();
            let all: Vec<u32> = (0..n as u32).collect();
            for rows in [NodeRows::All, NodeRows::Some(&some), NodeRows::Some(&[])] {
                let chosen = if let NodeRows::Some(rows) = rows { rows } else { &all };
                let n_vectors = vectors_of::<i32>(width).unwrap();
                let mut vectors = vec![LaneVector::default(); chosen.len() * n_vectors];
                for (vectors, &row) in vectors.chunks_mut(n_vectors).zip(chosen) {
                    to_vectors(&lanes[row as usize * width..][..width], vectors);
                }
                let mut sums = vec![7i64; n_bins * width];
                accumulate_in_order(&column, rows, &vectors, width, &mut sums);
                let mut expected = vec![0i64; n_bins * width];
                let node = NodeLanes { rows, lanes: &lanes, gathered: false, width };
                accumulate(&column, node, &mut expected);
                assert_eq!(sums, expected);
            }
        }
    }
}
