//! The row partition: one array of row numbers in which every node is a slice.
//!
//! Splitting a node reorders its slice in place, left rows first, both sides in ascending order:
//! `[a c e g | b d f h]` — the left child is the first part, the right child the second.

/// Reorders `rows` so that those going left come first; returns how many do. `scratch` is at least
/// as long as `rows`.
pub fn partition(
    rows: &mut [u32],
    scratch: &mut [u32],
    column: &[u8],
    bin: u8,
    missing_bin: u8,
    missing_left: bool,
) -> usize {
    let mut n_left = 0;
    let mut n_right = 0;
    for k in 0..rows.len() {
        let row = rows[k];
        let value = column[row as usize];
        let left = if value == missing_bin { missing_left } else { value <= bin };
        // Both writes happen, one of them is kept: no branch to mispredict.
        rows[n_left] = row;
        scratch[n_right] = row;
        n_left += usize::from(left);
        n_right += usize::from(!left);
    }
    rows[n_left..].copy_from_slice(&scratch[..n_right]);
    n_left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_keep_their_order() {
        let column = [0u8, 3, 1, 2, 0, 4, 3, 4];
        let mut rows: Vec<u32> = (0..8).collect();
        let mut scratch = vec![0; 8];
        let n_left = partition(&mut rows, &mut scratch, &column, 1, 4, true);
        assert_eq!(&rows[..n_left], &[0, 2, 4, 5, 7]);
        assert_eq!(&rows[n_left..], &[1, 3, 6]);
    }
}
