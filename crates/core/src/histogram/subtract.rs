//! Sums known by subtraction: a sibling's histogram, and the bin that compressed features leave out.

/// Takes a child's sums off its parent's, which leaves those of the sibling.
#[inline(always)]
pub fn subtract(parent: &mut [i64], child: &[i64]) {
    for (parent, child) in parent.iter_mut().zip(child) {
        *parent -= child;
    }
}

/// Fills the default bin of a compressed feature: the node's total minus all other bins. What the
/// bin held before does not matter.
#[inline(always)]
pub fn fill_default(sums: &mut [i64], default: u8, total: &[i64]) {
    let width = total.len();
    if width == 1 {
        let all: i64 = sums.iter().sum();
        sums[default as usize] += total[0] - all;
        return;
    }
    let (before, from) = sums.split_at_mut(default as usize * width);
    let (default, after) = from.split_at_mut(width);
    default.copy_from_slice(total);
    for bin in before.chunks_exact(width).chain(after.chunks_exact(width)) {
        subtract(default, bin);
    }
}
