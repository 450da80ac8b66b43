//! Summing compressed features, whose most frequent bin is not stored.

use super::{Lane, NodeLanes, NodeRows};
use crate::binning::Compressed;
use crate::error::Result;
use crate::memory::{collected, grow, resize, zeros};

use super::accumulate::add_lanes;

/// A block of compressed features by rows: for each row, its listed bins.
#[derive(Debug)]
pub struct RowLists {
    /// First entry of each row, and one past the last.
    starts: Vec<u32>,
    entries: Vec<ListedBin>,
    n_features: usize,
    n_slots: usize,
}

/// A bin other than the default one.
#[derive(Debug, Clone, Copy, Default)]
struct ListedBin {
    /// Number of the feature within the block.
    feature: u32,
    /// Place of the bin in the histogram of the block.
    slot: u32,
}

impl RowLists {
    /// Lists the given columns, each with its first histogram slot, ascending; `n_slots` in all.
    pub fn new(
        n_rows: usize,
        columns: &[(&Compressed, usize)],
        n_slots: usize,
    ) -> Result<RowLists> {
        let mut starts = zeros::<u32>(n_rows + 1)?;
        for (column, _) in columns {
            column.rows.iter().for_each(|&row| starts[row as usize + 1] += 1);
        }
        for row in 0..n_rows {
            starts[row + 1] += starts[row];
        }
        let mut next = collected(starts.len(), starts.iter().copied())?;
        let mut entries = Vec::new();
        resize(&mut entries, starts[n_rows] as usize, ListedBin::default())?;
        for (feature, (column, first)) in columns.iter().enumerate() {
            for (&row, &bin) in column.rows.iter().zip(&column.bins) {
                let place = &mut next[row as usize];
                let slot = *first as u32 + u32::from(bin);
                entries[*place as usize] = ListedBin { feature: feature as u32, slot };
                *place += 1;
            }
        }
        Ok(RowLists { starts, entries, n_features: columns.len(), n_slots })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of listed bins.
    pub fn n_listed(&self) -> usize {
        self.entries.len()
    }

    #[inline(always)]
    fn of(&self, row: usize) -> &[ListedBin] {
        &self.entries[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    /// Calls `f(listed bins, place of the lanes)` for each row of a node.
    #[inline(always)]
    fn each_row(&self, rows: NodeRows<'_>, gathered: bool, mut f: impl FnMut(&[ListedBin], usize)) {
        match rows {
            NodeRows::All => (0..self.starts.len() - 1).for_each(|row| f(self.of(row), row)),
            NodeRows::Some(rows) => {
                for (k, &row) in rows.iter().enumerate() {
                    f(self.of(row as usize), if gathered { k } else { row as usize });
                }
            }
        }
    }

    /// Adds the lanes of a node's rows to the slots of all features.
    pub fn add<T: Lane>(&self, node: NodeLanes<'_, T>, histogram: &mut [i64]) {
        let NodeLanes { rows, lanes, gathered, width } = node;
        if width == 1 {
            self.each_row(rows, gathered, |entries, source| {
                let lane: i64 = lanes[source].into();
                entries.iter().for_each(|entry| histogram[entry.slot as usize] += lane);
            });
            return;
        }
        self.each_row(rows, gathered, |entries, source| {
            let lanes = &lanes[source * width..][..width];
            for entry in entries {
                add_lanes(&mut histogram[entry.slot as usize * width..][..width], lanes);
            }
        });
    }

    /// Counts the listed rows of each feature.
    pub fn count(&self, rows: NodeRows<'_>, counts: &mut [u32]) {
        self.each_row(rows, false, |entries, _| {
            entries.iter().for_each(|entry| counts[entry.feature as usize] += 1);
        });
    }

    /// Adds the lanes of a node's rows to the slots of the features that are `wanted`, and takes
    /// them off those of `parent`, if given.
    #[inline(always)]
    pub fn accumulate<T: Lane>(
        &self,
        node: NodeLanes<'_, T>,
        wanted: &[bool],
        histogram: &mut [i64],
        mut parent: Option<&mut [i64]>,
    ) {
        let NodeLanes { rows, lanes, gathered, width } = node;
        self.each_row(rows, gathered, |entries, source| {
            let lanes = &lanes[source * width..][..width];
            for &ListedBin { feature, slot } in entries {
                let place = slot as usize * width;
                if wanted[feature as usize] {
                    add_lanes(&mut histogram[place..][..width], lanes);
                }
                if let Some(parent) = &mut parent {
                    take_off(&mut parent[place..][..width], lanes);
                }
            }
        });
    }
}

/// Room for the sums of the listed bins of a small node. All is zero between uses.
#[derive(Debug, Default)]
pub struct ListedSums {
    sums: Vec<i64>,
    /// Listed rows of each feature.
    counts: Vec<u32>,
    /// Features with listed rows.
    features: Vec<u32>,
}

impl ListedSums {
    /// Calls `f(feature, count, sums of the block)` for each feature with listed rows; `f` sets the
    /// sums of the feature to zero.
    pub fn drain(&mut self, mut f: impl FnMut(usize, u32, &mut [i64])) {
        for feature in self.features.drain(..) {
            let count = std::mem::take(&mut self.counts[feature as usize]);
            f(feature as usize, count, &mut self.sums);
        }
    }
}

impl RowLists {
    /// Sums the listed bins of a small node, and takes them off those of its parent, if given.
    pub fn sum_listed<T: Lane>(
        &self,
        node: NodeLanes<'_, T>,
        room: &mut ListedSums,
        mut parent: Option<&mut [i64]>,
    ) -> Result<()> {
        let NodeLanes { rows, lanes, gathered, width } = node;
        let ListedSums { sums, counts, features } = room;
        if sums.len() < self.n_slots * width {
            resize(sums, self.n_slots * width, 0)?;
        }
        if counts.len() < self.n_features {
            resize(counts, self.n_features, 0)?;
        }
        grow(features, self.n_features)?;
        self.each_row(rows, gathered, |entries, source| {
            let lanes = &lanes[source * width..][..width];
            for &ListedBin { feature, slot } in entries {
                let count = &mut counts[feature as usize];
                if *count == 0 {
                    features.push(feature);
                }
                *count += 1;
                let place = slot as usize * width..(slot as usize + 1) * width;
                add_lanes(&mut sums[place.clone()], lanes);
                if let Some(parent) = &mut parent {
                    take_off(&mut parent[place], lanes);
                }
            }
        });
        Ok(())
    }
}

/// Takes lanes off sums. Those of features that a node has given up are arbitrary: they wrap.
#[inline(always)]
fn take_off<T: Lane>(sums: &mut [i64], lanes: &[T]) {
    for (sum, &lane) in sums.iter_mut().zip(lanes) {
        *sum = sum.wrapping_sub(lane.into());
    }
}

/// Looking up a row in a list costs as much as adding this many listed rows.
const LOOK_UP: usize = 8;

/// [`accumulate`](super::accumulate) for one compressed feature. The default bin stays zero.
///
/// `spread` has the lanes of all rows, zeros outside the node. With it, no row of the column needs to
/// be looked for in the node, unless the node has far fewer rows.
pub fn accumulate_compressed<T: Lane>(
    column: &Compressed,
    node: NodeLanes<'_, T>,
    spread: Option<&[T]>,
    histogram: &mut [i64],
) {
    let NodeLanes { rows, lanes, gathered, width } = node;
    histogram.fill(0);
    match (rows, spread) {
        (NodeRows::All, _) => add_listed(column, lanes, width, histogram),
        (NodeRows::Some(rows), Some(spread)) if rows.len() * LOOK_UP >= column.rows.len() => {
            add_listed(column, spread, width, histogram);
        }
        (NodeRows::Some(rows), _) => column.each_listed(rows, |k, listed| {
            let source = if gathered { k } else { rows[k] as usize };
            let bin = column.bins[listed] as usize;
            add_lanes(&mut histogram[bin * width..][..width], &lanes[source * width..][..width]);
        }),
    }
}

/// Adds the lanes of all listed rows.
fn add_listed<T: Lane>(column: &Compressed, lanes: &[T], width: usize, histogram: &mut [i64]) {
    // With two bins, all listed rows are in one: its sums stay in registers.
    if histogram.len() == 2 * width && width <= 2 {
        let listed = &mut histogram[usize::from(1 - column.default) * width..][..width];
        if width == 1 {
            listed.copy_from_slice(&sum_listed_rows::<T, 1>(column, lanes));
        } else {
            listed.copy_from_slice(&sum_listed_rows::<T, 2>(column, lanes));
        }
        return;
    }
    for (&row, &bin) in column.rows.iter().zip(&column.bins) {
        let lanes = &lanes[row as usize * width..][..width];
        add_lanes(&mut histogram[bin as usize * width..][..width], lanes);
    }
}

/// The sums of the lanes of all listed rows, `WIDTH` each.
#[inline(always)]
fn sum_listed_rows<T: Lane, const WIDTH: usize>(column: &Compressed, lanes: &[T]) -> [i64; WIDTH] {
    let mut sums = [0i64; WIDTH];
    for &row in &column.rows {
        add_lanes(&mut sums, &lanes[row as usize * WIDTH..][..WIDTH]);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::{accumulate, fill_default};

    #[test]
    fn columns_of_two_bins_sum_as_dense_ones_do() {
        let (n, rows) = (40usize, vec![3u32, 4, 17, 39]);
        for default in [0u8, 1] {
            let listed = Compressed { default, rows: rows.clone(), bins: vec![1 - default; 4] };
            let mut dense = vec![default; n];
            rows.iter().for_each(|&row| dense[row as usize] = 1 - default);
            for width in [1usize, 2, 3] {
                let lanes: Vec<i32> = (0..(n * width) as i32).map(|i| i * i % 23 - 11).collect();
                let rows = NodeRows::All;
                let node = NodeLanes { rows, lanes: &lanes, gathered: false, width };
                let (mut sums, mut expected) = (vec![5i64; 2 * width], vec![0i64; 2 * width]);
                accumulate(&dense, node, &mut expected);
                accumulate_compressed(&listed, node, None, &mut sums);
                let mut total = expected[..width].to_vec();
                total.iter_mut().zip(&expected[width..]).for_each(|(sum, more)| *sum += more);
                fill_default(&mut sums, default, &total);
                assert_eq!(sums, expected);
            }
        }
    }

    #[test]
    fn compressed_columns_sum_as_dense_ones_do() {
        let mut stream = crate::random::Key::new(4).stream();
        let (n, n_bins) = (80usize, 5usize);
        let dense: Vec<Vec<u8>> = (0..3)
            .map(|_| {
                let mut bin = || if stream.below(4) > 0 { 2 } else { stream.below(n_bins) as u8 };
                (0..n).map(|_| bin()).collect()
            })
            .collect();
        let compressed: Vec<Compressed> = dense
            .iter()
            .map(|bins| {
                let rows: Vec<u32> = (0..n as u32).filter(|&r| bins[r as usize] != 2).collect();
                let bins = rows.iter().map(|&r| bins[r as usize]).collect();
                Compressed { default: 2, rows, bins }
            })
            .collect();
        let placed: Vec<_> = compressed.iter().enumerate().map(|(k, c)| (c, k * n_bins)).collect();
        let lists = RowLists::new(n, &placed, 3 * n_bins).unwrap();
        let some: Vec<u32> = (0..n as u32).filter(|r| r % 3 != 0).collect();
        let few: Vec<u32> = vec![1, 5, 40, 41, 79];
        for width in [1usize, 3, 9] {
            let lanes: Vec<i32> = (0..(n * width) as i32).map(|i| i * i % 23 - 11).collect();
            for rows in [NodeRows::All, NodeRows::Some(&some), NodeRows::Some(&few)] {
                let node = NodeLanes { rows, lanes: &lanes, gathered: false, width };
                let mut by_lists = vec![0i64; 3 * n_bins * width];
                let mut less = vec![0i64; 3 * n_bins * width];
                lists.accumulate(node, &[true, true, true], &mut by_lists, Some(&mut less));
                assert!(by_lists.iter().zip(&less).all(|(sum, less)| *sum == -less));
                let mut counts = vec![0; 3];
                lists.count(rows, &mut counts);
                for (k, part) in by_lists.chunks_mut(n_bins * width).enumerate() {
                    let mut expected = vec![0i64; n_bins * width];
                    accumulate(&dense[k], node, &mut expected);
                    let mut total = vec![0i64; width];
                    expected.chunks(width).for_each(|bin| add_lanes(&mut total, bin));
                    fill_default(part, 2, &total);
                    assert_eq!(part, expected);
                    let listed = |row: u32| u32::from(dense[k][row as usize] != 2);
                    let count: u32 = match rows {
                        NodeRows::All => (0..n as u32).map(listed).sum(),
                        NodeRows::Some(rows) => rows.iter().map(|&row| listed(row)).sum(),
                    };
                    assert_eq!(counts[k], count);
                    let mut single = vec![0i64; n_bins * width];
                    let mut spread = vec![0i32; n * width];
                    if let NodeRows::Some(rows) = rows {
                        for place in rows.iter().map(|&row| row as usize * width) {
                            let lanes = &lanes[place..place + width];
                            spread[place..place + width].copy_from_slice(lanes);
                        }
                    }
                    for spread in [None, Some(&spread[..])] {
                        accumulate_compressed(&compressed[k], node, spread, &mut single);
                        fill_default(&mut single, 2, &total);
                        assert_eq!(single, expected);
                    }
                }
            }
        }
    }
}
