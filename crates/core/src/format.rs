//! A model as plain arrays, and back, with every number checked on the way in.
//!
//! Nothing is kept twice: leaves have no feature, threshold or gain, and are numbered by their order.

use std::borrow::Cow;

use crate::category::CategorySet;
use crate::ensemble::{Ensemble, Kind};
use crate::error::{Error, Result, invalid};
use crate::memory::collected;
use crate::tree::{CATEGORICAL, FLAGS, Node};

/// Words of a category set.
pub const SET_WORDS: usize = 8;

/// The arrays of a model, tree after tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrays<'a> {
    /// Number of nodes of each tree.
    pub tree_sizes: Cow<'a, [u32]>,
    /// Left child of each node within its tree, the right child is the next; 0 in a leaf.
    pub node_left: Cow<'a, [u32]>,
    /// Weight of the training rows of each node.
    pub node_cover: Cow<'a, [f32]>,
    /// Feature of each split, in the order of the nodes, with its flags.
    pub split_feature: Cow<'a, [u32]>,
    /// Threshold of each split, 0 where a set decides.
    pub split_threshold: Cow<'a, [f32]>,
    /// Variance reduction of each split.
    pub split_gain: Cow<'a, [f32]>,
    /// The words of the set of each categorical split.
    pub split_categories: Cow<'a, [u32]>,
    /// Leaf values, one per leaf or one vector per leaf.
    pub leaf_values: Cow<'a, [f32]>,
    /// Steps of each tree, for [`Kind::Scaled`], else empty.
    pub tree_steps: Cow<'a, [f32]>,
    /// Number of values of each leaf, for [`Kind::Sparse`], else empty.
    pub leaf_sizes: Cow<'a, [u32]>,
    /// Output of each leaf value, for [`Kind::Sparse`], else empty.
    pub leaf_outputs: Cow<'a, [u32]>,
}

/// The arrays of a model. An error if [`from_arrays`] would refuse them.
pub fn to_arrays(model: &Ensemble) -> Result<Arrays<'_>> {
    check_finite(&model.values, &model.steps)?;
    let (nodes, sets, starts) = (&model.nodes, &model.sets, &model.leaf_starts);
    let splits = || nodes.iter().filter(|node| !node.is_leaf());
    let n_splits = splits().count();
    let sizes = (0..model.n_trees()).map(|t| model.tree(t).len() as u32);
    let leaf_sizes = starts.windows(2).map(|pair| (pair[1] - pair[0]) as u32);
    Ok(Arrays {
        tree_sizes: owned(model.n_trees(), sizes)?,
        node_left: owned(nodes.len(), nodes.iter().map(|node| node.left))?,
        node_cover: owned(nodes.len(), nodes.iter().map(|node| node.cover))?,
        split_feature: owned(n_splits, splits().map(|node| node.feature))?,
        split_threshold: owned(n_splits, splits().map(|node| node.threshold))?,
        split_gain: owned(n_splits, splits().map(|node| node.gain))?,
        split_categories: owned(
            sets.len() * SET_WORDS,
            sets.iter().flat_map(|set| set.to_words()),
        )?,
        leaf_values: Cow::Borrowed(&model.values),
        tree_steps: Cow::Borrowed(&model.steps),
        leaf_sizes: owned(starts.len(), leaf_sizes)?,
        leaf_outputs: Cow::Borrowed(&model.outputs),
    })
}

fn owned<'a, T: Clone>(len: usize, numbers: impl Iterator<Item = T>) -> Result<Cow<'a, [T]>> {
    Ok(Cow::Owned(collected(len, numbers)?))
}

/// The model that arrays hold. An error says what is inconsistent.
///
/// `n_categories`, if known, has the number of categories of each feature, 0 for numeric ones.
pub fn from_arrays(
    kind: Kind,
    n_outputs: usize,
    n_features: usize,
    n_members: usize,
    arrays: &Arrays<'_>,
    n_categories: Option<&[u32]>,
) -> Result<Ensemble> {
    let (n_trees, n_nodes) = (arrays.tree_sizes.len(), arrays.node_left.len());
    let n_splits = arrays.node_left.iter().filter(|&&left| left != 0).count();
    let n_leaves = n_nodes - n_splits;
    if n_outputs == 0 || n_features == 0 || n_features > CATEGORICAL as usize {
        return invalid(format!("{n_outputs} outputs and {n_features} features cannot be"));
    }
    let mut model = Ensemble::new(kind, n_outputs, n_features);
    model.n_members = n_members;
    if n_categories.is_some_and(|counts| counts.len() != n_features) {
        return invalid("the numbers of categories are not those of the features");
    }
    let per_round = n_outputs.checked_mul(n_members).map(|_| model.trees_per_round());
    if !per_round.is_some_and(|trees| trees > 0 && n_trees.is_multiple_of(trees)) {
        return invalid(format!(
            "{n_trees} trees do not serve {n_outputs} outputs and {n_members} members in turn"
        ));
    }
    let n_steps = if kind == Kind::Scaled { n_trees.checked_mul(n_outputs) } else { Some(0) };
    let width = if kind == Kind::Vector { n_outputs } else { 1 };
    let is_sparse = kind == Kind::Sparse;
    let sparse_values =
        arrays.leaf_sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size as usize));
    let n_values = if is_sparse { sparse_values } else { n_leaves.checked_mul(width) };
    let sizes: [(&str, usize, Option<usize>); 8] = [
        ("covers", arrays.node_cover.len(), Some(n_nodes)),
        ("features", arrays.split_feature.len(), Some(n_splits)),
        ("thresholds", arrays.split_threshold.len(), Some(n_splits)),
        ("gains", arrays.split_gain.len(), Some(n_splits)),
        ("leaf values", arrays.leaf_values.len(), n_values),
        ("steps", arrays.tree_steps.len(), n_steps),
        ("sizes of leaves", arrays.leaf_sizes.len(), Some(if is_sparse { n_leaves } else { 0 })),
        (
            "outputs of leaves",
            arrays.leaf_outputs.len(),
            if is_sparse { n_values } else { Some(0) },
        ),
    ];
    for (what, found, expected) in sizes {
        if Some(found) != expected {
            return invalid(format!(
                "the trees have {found} {what}, which are too many or too few"
            ));
        }
    }
    check_finite(&arrays.leaf_values, &arrays.tree_steps)?;
    let (sets, rest) = arrays.split_categories.as_chunks::<SET_WORDS>();
    if !rest.is_empty() {
        return invalid("the last category set of the trees is cut short");
    }
    let mut reader = Reader { arrays, n_features, n_categories, sets, node: 0, split: 0, set: 0 };
    let (mut value, mut step, mut leaf) = (0, 0, 0);
    for (t, &size) in arrays.tree_sizes.iter().enumerate() {
        let (nodes, sets) = reader
            .tree(size as usize)
            .map_err(|why| Error::Invalid(format!("tree {t} does not hold together: {why}")))?;
        // The lengths were checked above, so values and steps are there.
        let n_leaves = nodes.len() / 2 + 1;
        let leaf_sizes = arrays.leaf_sizes.get(leaf..leaf + n_leaves).unwrap_or(&[]);
        let leaf_sizes: Vec<usize> = leaf_sizes.iter().map(|&size| size as usize).collect();
        let n_values = if is_sparse { leaf_sizes.iter().sum() } else { n_leaves * width };
        let n_steps = if kind == Kind::Scaled { n_outputs } else { 0 };
        let values = arrays.leaf_values.get(value..value + n_values);
        let steps = arrays.tree_steps.get(step..step + n_steps);
        let (Some(values), Some(steps)) = (values, steps) else {
            return invalid(format!("tree {t} has too few leaf values or steps"));
        };
        if is_sparse {
            let outputs = arrays.leaf_outputs.get(value..value + n_values).unwrap_or(&[]);
            model
                .push_sparse(&nodes, &sets, &leaf_sizes, outputs, values)
                .map_err(|why| Error::Invalid(format!("tree {t} does not hold together: {why}")))?;
        } else {
            model.push(&nodes, &sets, values, steps)?;
        }
        (value, step, leaf) = (value + n_values, step + n_steps, leaf + n_leaves);
    }
    if reader.node != n_nodes || reader.set != sets.len() {
        return invalid("there are nodes or category sets that belong to no tree");
    }
    Ok(model)
}

fn check_finite(values: &[f32], steps: &[f32]) -> Result<()> {
    if values.iter().chain(steps).all(|v| v.is_finite()) {
        return Ok(());
    }
    invalid("a leaf value or a step of the trees is not finite")
}

/// Reads one tree after the other from arrays whose lengths agree.
struct Reader<'a> {
    arrays: &'a Arrays<'a>,
    n_features: usize,
    n_categories: Option<&'a [u32]>,
    sets: &'a [[u32; SET_WORDS]],
    node: usize,
    split: usize,
    set: usize,
}

impl Reader<'_> {
    fn tree(&mut self, size: usize) -> std::result::Result<(Vec<Node>, Vec<CategorySet>), String> {
        let arrays = self.arrays;
        let end = self.node.saturating_add(size);
        let Some(lefts) = arrays.node_left.get(self.node..end).filter(|lefts| !lefts.is_empty())
        else {
            return Err(format!("it cannot have {size} nodes"));
        };
        check_children(lefts)?;
        let covers = &arrays.node_cover[self.node..end];
        let mut nodes = Vec::with_capacity(size);
        let mut sets = Vec::new();
        let mut n_leaves = 0;
        for (k, (&left, &cover)) in lefts.iter().zip(covers).enumerate() {
            if cover.is_nan() || cover < 0.0 {
                return Err(format!("node {k} has a cover of {cover}"));
            }
            if left == 0 {
                let feature = n_leaves;
                n_leaves += 1;
                nodes.push(Node { feature, threshold: 0.0, left, cover, gain: 0.0, cut: 0 });
                continue;
            }
            let mut node = Node {
                feature: arrays.split_feature[self.split],
                threshold: arrays.split_threshold[self.split],
                left,
                cover,
                gain: arrays.split_gain[self.split],
                cut: 0,
            };
            self.split += 1;
            self.check_split(k, &node)?;
            if node.is_categorical() {
                node.cut = sets.len() as u32;
                sets.push(self.category_set(k, &node)?);
            }
            nodes.push(node);
        }
        self.node = end;
        Ok((nodes, sets))
    }

    fn check_split(&self, k: usize, node: &Node) -> std::result::Result<(), String> {
        let feature = node.feature_index();
        if feature >= self.n_features {
            return Err(format!("node {k} looks at feature {feature} of {}", self.n_features));
        }
        if node.threshold.is_nan() || node.threshold == f32::NEG_INFINITY {
            return Err(format!("node {k} has a threshold of {}", node.threshold));
        }
        // Compare bits: writing the model again would lose a negative zero.
        if node.is_categorical() && node.threshold.to_bits() != 0 {
            return Err(format!("node {k} has a threshold beside its categories"));
        }
        if node.gain.is_nan() || node.gain < 0.0 {
            return Err(format!("node {k} has a gain of {}", node.gain));
        }
        match self.n_categories.map(|counts| counts[feature]) {
            Some(count) if (count > 0) != node.is_categorical() => {
                let kind = if count > 0 { "categories" } else { "numbers" };
                Err(format!("node {k} does not treat feature {feature} as {kind}"))
            }
            _ => Ok(()),
        }
    }

    /// The next set. Categories that the feature does not have must go where missing values go.
    fn category_set(&mut self, k: usize, node: &Node) -> std::result::Result<CategorySet, String> {
        let Some(&words) = self.sets.get(self.set) else {
            return Err(format!("node {k} has no category set"));
        };
        self.set += 1;
        let set = CategorySet::from_words(words);
        let count = self.n_categories.map_or(256, |counts| counts[node.feature_index()]);
        match (count..256).find(|&c| set.contains(c as u8) != node.missing_left()) {
            Some(c) => Err(format!("node {k} treats category {c} of {count} as if it were there")),
            None => Ok(set),
        }
    }
}

/// Every node but the root is the child of one node before it.
fn check_children(lefts: &[u32]) -> std::result::Result<(), String> {
    let mut has_parent = vec![false; lefts.len()];
    for (k, &left) in lefts.iter().enumerate().filter(|(_, left)| **left != 0) {
        let left = left as usize;
        if left <= k || left + 1 >= lefts.len() {
            return Err(format!("node {k} has child {left} of {} nodes", lefts.len()));
        }
        for child in [left, left + 1] {
            if std::mem::replace(&mut has_parent[child], true) {
                return Err(format!("node {child} has two parents"));
            }
        }
    }
    match has_parent.iter().skip(1).position(|parent| !parent) {
        Some(k) => Err(format!("node {} has no parent", k + 1)),
        None => Ok(()),
    }
}

// The flags and the feature share a word.
const _: () = assert!(FLAGS & (CATEGORICAL - 1) == 0);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ensemble::FeatureRows;
    use crate::parallel::Pool;
    use crate::tree::MISSING_LEFT;

    fn model(kind: Kind) -> Ensemble {
        let node = |feature, threshold, left, gain| Node {
            feature,
            threshold,
            left,
            cover: 2.0,
            gain,
            cut: 0,
        };
        let nodes = [
            node(1 | MISSING_LEFT, 0.5, 1, 0.5),
            node(0, 0.0, 0, 0.0),
            node(CATEGORICAL, 0.0, 3, 0.25),
            node(1, 0.0, 0, 0.0),
            node(2, 0.0, 0, 0.0),
        ];
        let mut model = Ensemble::new(kind, 2, 3);
        if kind == Kind::Sparse {
            let left = CategorySet::filled(true);
            model.push_sparse(&nodes, &[left], &[1, 0, 2], &[1, 0, 1], &[0.5, 1.0, 2.0]).unwrap();
            model.push_sparse(&nodes, &[left], &[0, 0, 1], &[0], &[-1.0]).unwrap();
            return model;
        }
        let values: Vec<f32> =
            (0..if kind == Kind::Vector { 6 } else { 3 }).map(|v| v as f32).collect();
        let steps: &[f32] = if kind == Kind::Scaled { &[1.0, -2.0] } else { &[] };
        let mut left = CategorySet::filled(false);
        [0, 3, 70, 255].into_iter().for_each(|category| left.put(category, true));
        model.push(&nodes, &[left], &values, steps).unwrap();
        model.push(&nodes, &[CategorySet::filled(true)], &values, steps).unwrap();
        model
    }

    fn read(kind: Kind, arrays: &Arrays<'_>) -> Result<Ensemble> {
        from_arrays(kind, 2, 3, 1, arrays, None)
    }

    #[test]
    fn models_survive_the_round_trip() {
        for kind in [Kind::PerOutput, Kind::Vector, Kind::Scaled, Kind::Sparse] {
            let model = model(kind);
            assert_eq!(read(kind, &to_arrays(&model).unwrap()).unwrap(), model);
        }
    }

    /// Every word of every array changed, every array cut and lengthened.
    #[test]
    fn damaged_models_are_refused_or_harmless_but_never_crash() {
        fn damage<'a, T: Copy + Default>(
            array: &Cow<'a, [T]>,
            changed: impl Fn(T) -> Vec<T>,
        ) -> Vec<Cow<'a, [T]>> {
            let mut versions = vec![array[..array.len().saturating_sub(1)].to_vec()];
            versions.push(array.iter().copied().chain([T::default()]).collect());
            versions.push(Vec::new());
            for at in 0..array.len() {
                for value in changed(array[at]) {
                    let mut version = array.to_vec();
                    version[at] = value;
                    versions.push(version);
                }
            }
            versions.into_iter().map(Cow::Owned).collect()
        }
        let words = |w: u32| vec![w ^ 1, w ^ 2, w ^ FLAGS, !w, u32::MAX, 0];
        let floats = |f: f32| vec![-f - 1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0];
        for kind in [Kind::PerOutput, Kind::Vector, Kind::Scaled, Kind::Sparse] {
            let model = model(kind);
            let good = to_arrays(&model).unwrap();
            let mut all = Vec::new();
            macro_rules! vary {
                ($field:ident, $changed:expr) => {
                    for $field in damage(&good.$field, $changed) {
                        all.push(Arrays { $field, ..good.clone() });
                    }
                };
            }
            vary!(tree_sizes, words);
            vary!(node_left, words);
            vary!(node_cover, floats);
            vary!(split_feature, words);
            vary!(split_threshold, floats);
            vary!(split_gain, floats);
            vary!(split_categories, words);
            vary!(leaf_values, floats);
            vary!(tree_steps, floats);
            vary!(leaf_sizes, words);
            vary!(leaf_outputs, words);
            let mut refused = 0;
            for arrays in &all {
                let Ok(model) = read(kind, arrays) else {
                    refused += 1;
                    continue;
                };
                // An accepted model writes the same arrays again.
                assert!(format!("{:?}", to_arrays(&model).unwrap()) == format!("{arrays:?}"));
                let x = [0.0, f32::NAN, 3.0, 1.0, 1.0, 1.0];
                let mut raw = [0.0; 4];
                let rounds = 0..model.n_trees() / model.trees_per_round();
                model.add_to(&Pool::serial(), FeatureRows::Dense(&x), rounds, &mut raw).unwrap();
            }
            assert!(refused > all.len() / 3);
        }
    }

    #[test]
    fn what_does_not_hold_together_is_refused() {
        let model = model(Kind::Vector);
        let good = to_arrays(&model).unwrap();
        let refused = |arrays: Arrays<'_>, why: &str| {
            let Err(Error::Invalid(sentence)) = read(Kind::Vector, &arrays) else {
                panic!("not refused: {why}");
            };
            assert!(sentence.contains(why), "{sentence}");
        };
        let lefts = |lefts: &[u32]| Arrays { node_left: lefts.to_vec().into(), ..good.clone() };
        refused(lefts(&[1, 0, 1, 0, 0, 1, 0, 3, 0, 0]), "child 1 of 5");
        refused(lefts(&[3, 0, 3, 0, 0, 1, 0, 3, 0, 0]), "two parents");
        refused(lefts(&[3, 0, 4, 0, 0, 1, 0, 3, 0, 0]), "child 4 of 5");
        refused(lefts(&[1, 0, 3, 0, 0, 1, 0, 3, 0, 3]), "too many or too few");
        refused(lefts(&[1, 0, 0, 0, 0, 1, 0, 3, 3, 0]), "node 3 has no parent");
        refused(Arrays { tree_sizes: vec![5].into(), ..good.clone() }, "belong to no tree");
        refused(Arrays { tree_sizes: vec![5, 5, 0].into(), ..good.clone() }, "0 nodes");
        refused(Arrays { tree_sizes: vec![3, 7].into(), ..good.clone() }, "tree 0");
    }

    #[test]
    fn sets_go_with_categories() {
        let model = model(Kind::PerOutput);
        let arrays = to_arrays(&model).unwrap();
        let read = |counts: [u32; 3]| from_arrays(Kind::PerOutput, 2, 3, 1, &arrays, Some(&counts));
        // The first set has category 255. The second belongs to a split that sends missing values
        // right, and has all categories.
        assert!(read([256, 0, 0]).is_ok());
        assert!(read([255, 0, 0]).is_err());
        assert!(read([0, 0, 0]).is_err());
        assert!(read([256, 2, 0]).is_err());
        assert!(from_arrays(Kind::PerOutput, 2, 3, 1, &arrays, Some(&[256])).is_err());
    }
}
