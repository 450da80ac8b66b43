//! Rows of a small node in the order of a feature's bins.
//!
//! A sorted column is a list of keys, one for each row: its bin, then its place among the rows of the
//! node that was sorted. All loops run over places and counters of eight bits, so that no index needs
//! to be checked.

/// Most rows that can be sorted: eight bits count them.
pub const MAX_SORTED_ROWS: usize = 255;
/// One more than the largest place, bin or counter.
pub const N_PLACES: usize = 256;

/// A bin and a place: keys ascend by bin.
pub type SortKey = u16;

/// Room for a sorted column: keys are written to its front, and arbitrary ones up to its end.
pub type KeyRoom = [SortKey; N_PLACES];
/// Running sums along a sorted column.
pub type RunningSums = [i64; N_PLACES];

#[inline(always)]
fn key_of(bin: u8, place: usize) -> SortKey {
    SortKey::from(bin) << 8 | place as SortKey
}

/// The bin of a key.
#[inline(always)]
pub fn bin_of(key: SortKey) -> u8 {
    (key >> 8) as u8
}

/// The place of a key.
#[inline(always)]
pub fn place_of(key: SortKey) -> usize {
    usize::from(key as u8)
}

/// Sorts some rows, at most [`MAX_SORTED_ROWS`], by their bins in a dense column. Rows of one bin keep
/// their order.
#[inline(always)]
pub fn sort_column(column: &[u8], rows: &[u32], keys: &mut KeyRoom) {
    let mut bins = [0u8; N_PLACES];
    let mut ends = [0u8; N_PLACES];
    for (bin, &row) in bins.iter_mut().zip(rows) {
        *bin = column[row as usize];
        ends[usize::from(*bin)] += 1;
    }
    starts_of_counts(&mut ends);
    for (place, &bin) in bins[..rows.len()].iter().enumerate() {
        let end = &mut ends[usize::from(bin)];
        keys[usize::from(*end)] = key_of(bin, place);
        *end += 1;
    }
}

/// Turns counts, at most [`MAX_SORTED_ROWS`] in all, into where each bin starts. Eight at a time: a
/// product with ones adds up the bytes of a word.
#[inline(always)]
fn starts_of_counts(counts: &mut [u8; N_PLACES]) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut before = 0u64;
    for eight in counts.as_chunks_mut::<8>().0 {
        let word = u64::from_le_bytes(*eight);
        let up_to = word.wrapping_mul(ONES);
        *eight = (up_to.wrapping_sub(word)).wrapping_add(before * ONES).to_le_bytes();
        before += up_to >> 56;
    }
}

/// Adds up values by places in the order of a column.
#[inline(always)]
pub fn add_up(keys: &[SortKey], values: &RunningSums, sums: &mut RunningSums) {
    let mut sum = 0;
    for (into, &key) in sums.iter_mut().zip(keys) {
        sum += values[place_of(key)];
        *into = sum;
    }
}

/// Where a split sends a row.
#[derive(Debug, Clone, Copy, Default)]
pub struct Side {
    /// The value of the row if it goes left, else 0.
    pub left: i64,
    /// The value of the row if it goes right, else 0.
    pub right: i64,
    /// 1 if it goes left.
    pub n_left: u8,
}

/// Splits a sorted column; both sides stay sorted, and their values are added up.
#[inline(always)]
pub fn split_column(
    keys: &[SortKey],
    sides: &[Side; N_PLACES],
    [left_keys, right_keys]: [&mut KeyRoom; 2],
    [left_sums, right_sums]: [&mut RunningSums; 2],
) {
    let (mut n_left, mut n_right) = (0u8, 0u8);
    let (mut left, mut right) = (0, 0);
    for &key in keys {
        let side = &sides[place_of(key)];
        left += side.left;
        right += side.right;
        // Written to both: which way a row goes is hard to predict. The wrong one is overwritten.
        left_keys[usize::from(n_left)] = key;
        left_sums[usize::from(n_left)] = left;
        right_keys[usize::from(n_right)] = key;
        right_sums[usize::from(n_right)] = right;
        n_left = n_left.wrapping_add(side.n_left);
        n_right = n_right.wrapping_add(1 - side.n_left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of a column of 600, every other one, with ties.
    fn sorted(n: usize, n_bins: usize) -> (Vec<u8>, Vec<u32>, KeyRoom) {
        let mut stream = crate::random::Key::new(3).stream();
        let column: Vec<u8> = (0..600).map(|_| stream.below(n_bins) as u8).collect();
        let rows: Vec<u32> = (0..n as u32).map(|k| 2 * k + 1).collect();
        let mut keys = [0; N_PLACES];
        sort_column(&column, &rows, &mut keys);
        (column, rows, keys)
    }

    #[test]
    fn columns_are_sorted_by_bin_then_by_place() {
        for (n, n_bins) in [(0, 1), (1, 256), (7, 3), (100, 256), (255, 1), (255, 256)] {
            let (column, rows, keys) = sorted(n, n_bins);
            let mut expected: Vec<(u8, usize)> =
                rows.iter().enumerate().map(|(k, &row)| (column[row as usize], k)).collect();
            expected.sort_unstable();
            let found: Vec<_> = keys[..n].iter().map(|&key| (bin_of(key), place_of(key))).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn the_sides_of_a_split_are_sorted_and_added_up() {
        for n in [2, 9, 254, 255] {
            let (_, _, keys) = sorted(n, 40);
            let mut values = [0; N_PLACES];
            let mut sides = [Side::default(); N_PLACES];
            for place in 0..n {
                let (value, goes_left) = (place as i64 * 7 - 300, place % 3 > 0);
                values[place] = value;
                sides[place] = if goes_left {
                    Side { left: value, right: 0, n_left: 1 }
                } else {
                    Side { left: 0, right: value, n_left: 0 }
                };
            }
            let (mut left_keys, mut right_keys) = ([0; N_PLACES], [0; N_PLACES]);
            let (mut left_sums, mut right_sums) = ([0; N_PLACES], [0; N_PLACES]);
            let key_rooms = [&mut left_keys, &mut right_keys];
            split_column(&keys[..n], &sides, key_rooms, [&mut left_sums, &mut right_sums]);
            for (goes_left, found, sums) in
                [(true, &left_keys, &left_sums), (false, &right_keys, &right_sums)]
            {
                let is_there = |key: &SortKey| (sides[place_of(*key)].n_left == 1) == goes_left;
                let expected: Vec<SortKey> = keys[..n].iter().copied().filter(is_there).collect();
                assert_eq!(found[..expected.len()], expected);
                let mut expected_sums = [0; N_PLACES];
                add_up(&expected, &values, &mut expected_sums);
                assert_eq!(sums[..expected.len()], expected_sums[..expected.len()]);
            }
        }
    }
}
