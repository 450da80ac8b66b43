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

    /// Listed bins in all.
    pub fn n_entries(&self) -> usize {
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

/// [`accumulate`](super::accumulate) for one compressed feature. The cost follows the shorter of the
/// node's rows and the listed rows. The default bin stays zero.
pub fn accumulate_compressed<T: Lane>(
    column: &Compressed,
    node: NodeLanes<'_, T>,
    histogram: &mut [i64],
) {
    let NodeLanes { rows, lanes, gathered, width } = node;
    histogram.fill(0);
    let mut add = |listed: usize, source: usize| {
        let bin = column.bins[listed] as usize;
        add_lanes(&mut histogram[bin * width..][..width], &lanes[source * width..][..width]);
    };
    let NodeRows::Some(rows) = rows else {
        column.rows.iter().enumerate().for_each(|(listed, &row)| add(listed, row as usize));
        return;
    };
    column.each_listed(rows, |k, listed| add(listed, if gathered { k } else { rows[k] as usize }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::{accumulate, fill_default};

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
                    accumulate_compressed(&compressed[k], node, &mut single);
                    fill_default(&mut single, 2, &total);
                    assert_eq!(single, expected);
                }
            }
        }
    }
}
