//! How much each split of a tree gains each output.

use crate::error::Result;
use crate::lowlevel::widest;
use crate::memory::{room, zeros};
use crate::tree::Node;

/// Gain of every split of a tree for every output, from leaf sums added up the tree.
///
/// Returns (features, gains) with one row of `n_outputs` gains per split, in node order. Leaves have
/// one weight, or one for each output.
pub fn split_gains(
    nodes: &[Node],
    leaf_residuals: &[f64],
    leaf_weights: &[f64],
    n_outputs: usize,
) -> Result<(Vec<u32>, Vec<f64>)> {
    let d = n_outputs;
    let n_leaves = nodes.iter().filter(|node| node.is_leaf()).count();
    let sums = sums_up_the_tree(nodes, leaf_residuals, d)?;
    // Number of weights of a leaf.
    let m = leaf_weights.len() / n_leaves;
    let weights = sums_up_the_tree(nodes, leaf_weights, m)?;
    let mut features = room(nodes.len() - n_leaves)?;
    let mut gains = zeros::<f64>((nodes.len() - n_leaves) * d)?;
    let splits = nodes.iter().filter(|node| !node.is_leaf());
    for (node, gains) in splits.zip(gains.chunks_exact_mut(d.max(1))) {
        let left = node.left as usize;
        features.push(node.feature_index() as u32);
        let [s, w] = [&sums[left * d..][..2 * d], &weights[left * m..][..2 * m]];
        widest(|| {
            if m == 1 {
                fill_gains(gains, s, |_| (w[0], w[1]));
            } else {
                let (a, b) = w.split_at(d);
                fill_gains(gains, s, |k| (a[k], b[k]));
            }
        });
    }
    Ok((features, gains))
}

/// Gains of one split, from the residual sums of its children and their weights for each output.
#[inline(always)]
fn fill_gains(gains: &mut [f64], sums: &[f64], weights: impl Fn(usize) -> (f64, f64)) {
    let (left, right) = sums.split_at(gains.len());
    for (k, ((gain, l), r)) in gains.iter_mut().zip(left).zip(right).enumerate() {
        let (a, b) = weights(k);
        let (distance, scale) = (l * b - r * a, a * b * (a + b));
        *gain = if scale > 0.0 { distance * distance / scale } else { 0.0 };
    }
}

/// Sums of every node, given those of the leaves, `width` numbers each.
fn sums_up_the_tree(nodes: &[Node], leaves: &[f64], width: usize) -> Result<Vec<f64>> {
    let mut sums = zeros::<f64>(nodes.len() * width)?;
    // Children come after their parents: going backwards, they are ready when needed.
    for (at, node) in nodes.iter().enumerate().rev() {
        if node.is_leaf() {
            let leaf = node.feature as usize;
            sums[at * width..(at + 1) * width]
                .copy_from_slice(&leaves[leaf * width..(leaf + 1) * width]);
        } else {
            let (head, tail) = sums.split_at_mut(node.left as usize * width);
            for k in 0..width {
                head[at * width + k] = tail[k] + tail[width + k];
            }
        }
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_add_up_to_the_variance_explained() {
        let node =
            |feature, left| Node { feature, threshold: 0.0, left, cover: 0.0, gain: 0.0, cut: 0 };
        let nodes = [node(5, 1), node(0, 0), node(6, 3), node(1, 0), node(2, 0)];
        let (features, gains) =
            split_gains(&nodes, &[3.0, -1.0, 4.0], &[1.0, 2.0, 4.0], 1).unwrap();
        assert_eq!(features, vec![5, 6]);
        let explained = 9.0 / 1.0 + 1.0 / 2.0 + 16.0 / 4.0 - 36.0 / 7.0;
        assert!((gains.iter().sum::<f64>() - explained).abs() < 1e-12);
        // Two outputs, the second with weights of its own.
        let sums = [3.0, 3.0, -1.0, -1.0, 4.0, 4.0];
        let (_, both) = split_gains(&nodes, &sums, &[1.0, 1.0, 2.0, 0.0, 4.0, 1.0], 2).unwrap();
        assert_eq!((both[0], both[2]), (gains[0], gains[1]));
        assert!((both[1] - (9.0 + 9.0 - 36.0 / 2.0)).abs() < 1e-12 && both[3] == 0.0);
    }
}
