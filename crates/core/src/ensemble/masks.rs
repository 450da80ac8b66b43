//! Trees as masks: each split says which leaves are left if a row goes right.
//!
//! A row's leaf is the leftmost one that no split on the left of it rules out. All splits of a tree
//! are asked, not only those on the row's path, but without branches and for many rows at once: a
//! comparison and two bit operations for all rows in a register (QuickScorer, Lucchese et al. 2015).

use std::hint::black_box;
use std::ops::{BitAndAssign, BitOr, Range};

use crate::category::CategorySet;
use crate::error::{Result, invalid};
use crate::memory::grow;
use crate::tree::{Node, goes_left};

/// Most leaves of a tree that has masks.
const MOST_LEAVES: usize = 64;
/// Leaves up to which a mask has 32 bits.
const NARROW_LEAVES: usize = 32;

/// The trees of an ensemble as masks, if they have at most 64 leaves.
///
/// Takes 12 bytes per split (16 if the tree has more than 32 leaves, 24 if the split is by
/// categories), and 48 bytes per tree (80): about a third of what the nodes take.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Masks {
    trees: Vec<Tree>,
    narrow: Vec<Split<u32>>,
    wide: Vec<Split<u64>>,
    categorical: Vec<CategoricalSplit>,
    /// Leaf numbers of all trees, from left to right; as many for each tree as a mask has bits, so
    /// that no place is out of bounds.
    leaves: Vec<u8>,
}

/// Where a tree is. Its splits that send missing values right come first.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tree {
    first_split: u32,
    first_categorical: u32,
    first_leaf: u32,
    n_leaves: u8,
    n_missing_right: u8,
    n_categorical: u8,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Narrow,
    Wide,
    /// No masks: the tree is walked node by node.
    Nodes,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Split<M> {
    feature: u32,
    threshold: f32,
    /// The leaves that are left if a row goes right, the leftmost one in the lowest bit.
    right: M,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct CategoricalSplit {
    feature: u32,
    /// Number of the set within the tree.
    set: u32,
    right: u64,
    missing_left: bool,
}

impl Masks {
    /// Makes room for a tree.
    pub fn reserve(&mut self, nodes: &[Node]) -> Result<()> {
        let n_leaves = nodes.len() / 2 + 1;
        grow(&mut self.trees, 1)?;
        match form_of(n_leaves) {
            Form::Narrow => make_room(&mut self.narrow, n_leaves)?,
            Form::Wide => make_room(&mut self.wide, n_leaves)?,
            Form::Nodes => return Ok(()),
        }
        make_room(&mut self.leaves, MOST_LEAVES)?;
        let n_categorical = nodes.iter().filter(|node| node.is_categorical()).count();
        make_room(&mut self.categorical, n_categorical)
    }

    /// Appends a tree.
    pub fn push(&mut self, nodes: &[Node]) {
        let n_leaves = nodes.len() / 2 + 1;
        let form = form_of(n_leaves);
        let n_splits = if form == Form::Wide { self.wide.len() } else { self.narrow.len() };
        let mut tree = Tree {
            first_split: n_splits as u32,
            first_categorical: self.categorical.len() as u32,
            first_leaf: self.leaves.len() as u32,
            n_leaves: 0,
            n_missing_right: 0,
            n_categorical: 0,
            form,
        };
        if form != Form::Nodes {
            tree.n_leaves = n_leaves as u8;
            self.push_splits(nodes, &mut tree);
        }
        self.trees.push(tree);
    }

    /// Appends splits and leaves of a tree, and counts the splits.
    fn push_splits(&mut self, nodes: &[Node], tree: &mut Tree) {
        // Leaves below each node, and leaves on its left. Children come after their parents.
        let (mut below, mut before) = ([1u8; 2 * MOST_LEAVES], [0u8; 2 * MOST_LEAVES]);
        let splits = || nodes.iter().enumerate().filter(|(_, node)| !node.is_leaf());
        for (k, node) in splits().rev() {
            below[k] = below[node.left as usize] + below[node.left as usize + 1];
        }
        let first_leaf = self.leaves.len();
        let n_bits = if tree.form == Form::Narrow { NARROW_LEAVES } else { MOST_LEAVES };
        self.leaves.resize(first_leaf + n_bits, 0);
        for (k, node) in nodes.iter().enumerate() {
            if node.is_leaf() {
                self.leaves[first_leaf + usize::from(before[k])] = node.feature as u8;
            } else {
                let left = node.left as usize;
                before[left] = before[k];
                before[left + 1] = before[k] + below[left];
            }
        }
        // Fewer than 64 leaves are on the left of a split, so shifts are by less than all bits.
        let right_of =
            |k: usize, node: &Node| !(((1u64 << below[node.left as usize]) - 1) << before[k]);
        for missing_left in [false, true] {
            for (k, node) in splits().filter(|(_, node)| node.missing_left() == missing_left) {
                let (feature, threshold) = (node.feature_index() as u32, node.threshold);
                let right = right_of(k, node);
                if node.is_categorical() {
                    let set = node.cut;
                    self.categorical.push(CategoricalSplit { feature, set, right, missing_left });
                    tree.n_categorical += 1;
                    continue;
                }
                if tree.form == Form::Narrow {
                    self.narrow.push(Split { feature, threshold, right: right as u32 });
                } else {
                    self.wide.push(Split { feature, threshold, right });
                }
                tree.n_missing_right += u8::from(!missing_left);
            }
        }
    }

    /// Keeps the first `n_trees` trees.
    pub fn truncate(&mut self, n_trees: usize) {
        let Some(tree) = self.trees.get(n_trees) else { return };
        self.leaves.truncate(tree.first_leaf as usize);
        self.categorical.truncate(tree.first_categorical as usize);
        let gone = &self.trees[n_trees..];
        let first = |form| gone.iter().find(|tree| tree.form == form).map(|tree| tree.first_split);
        let (narrow, wide) = (first(Form::Narrow), first(Form::Wide));
        narrow.into_iter().for_each(|first| self.narrow.truncate(first as usize));
        wide.into_iter().for_each(|first| self.wide.truncate(first as usize));
        self.trees.truncate(n_trees);
    }

    /// Whether so many trees of a range have masks.
    pub fn has(&self, trees: Range<usize>, n_trees: usize) -> bool {
        let with_masks = self.trees[trees].iter().filter(|tree| tree.form != Form::Nodes);
        with_masks.take(n_trees).count() == n_trees
    }

    /// Finds the leaves of L rows in a tree, given by columns; returns whether the tree has masks.
    #[inline(always)]
    pub fn find<'a, const L: usize>(
        &self,
        tree: usize,
        sets: impl FnOnce() -> &'a [CategorySet],
        columns: &[[f32; L]],
        found: &mut [u32; L],
    ) -> bool {
        let tree = &self.trees[tree];
        // Loops, not `map`, which is not always inlined.
        let mut places = [0; L];
        match tree.form {
            Form::Narrow => {
                let masks = self.left_of(tree, &self.narrow, sets, columns);
                for k in 0..L {
                    places[k] = lowest_bit(masks[k]);
                }
                self.look_up::<NARROW_LEAVES, L>(tree, places, found);
            }
            Form::Wide => {
                let masks = self.left_of(tree, &self.wide, sets, columns);
                for k in 0..L {
                    places[k] = (masks[k] | 1 << 63).trailing_zeros();
                }
                self.look_up::<MOST_LEAVES, L>(tree, places, found);
            }
            Form::Nodes => return false,
        }
        true
    }

    /// The leaves at some places, from left to right, of a tree with masks of N bits.
    #[inline(always)]
    fn look_up<const N: usize, const L: usize>(
        &self,
        tree: &Tree,
        places: [u32; L],
        found: &mut [u32; L],
    ) {
        let Some(leaves) = self.leaves[tree.first_leaf as usize..].first_chunk::<N>() else {
            return;
        };
        // Through memory: to take registers apart and put them together again takes longer.
        for (leaf, &place) in found.iter_mut().zip(&black_box(places)) {
            *leaf = u32::from(leaves[place as usize % N]);
        }
    }

    /// The leaves that are left for each row.
    #[inline(always)]
    fn left_of<'a, M: Mask, const L: usize>(
        &self,
        tree: &Tree,
        splits: &[Split<M>],
        sets: impl FnOnce() -> &'a [CategorySet],
        columns: &[[f32; L]],
    ) -> [M; L] {
        let n_splits = usize::from(tree.n_leaves) - 1 - usize::from(tree.n_categorical);
        let splits = &splits[tree.first_split as usize..][..n_splits];
        let masks = left_by_thresholds(splits, usize::from(tree.n_missing_right), columns);
        if tree.n_categorical == 0 {
            return masks;
        }
        let first = tree.first_categorical as usize;
        let splits = &self.categorical[first..][..usize::from(tree.n_categorical)];
        left_by_sets(splits, sets(), columns, masks)
    }
}

/// Makes room for a tree in a list of all trees, in which its place has 32 bits.
fn make_room<T>(list: &mut Vec<T>, more: usize) -> Result<()> {
    if !has_places(list.len(), more) {
        return invalid("the model would hold more splits, or more trees, than can be numbered");
    }
    grow(list, more)
}

/// Whether 32 bits number the places of so many elements and of some more.
fn has_places(len: usize, more: usize) -> bool {
    len.saturating_add(more) <= u32::MAX as usize
}

/// The form of a tree of so many leaves.
fn form_of(n_leaves: usize) -> Form {
    if n_leaves <= NARROW_LEAVES {
        Form::Narrow
    } else if n_leaves <= MOST_LEAVES {
        Form::Wide
    } else {
        Form::Nodes
    }
}

/// A set of leaves, one bit each.
trait Mask: Copy + BitOr<Output = Self> + BitAndAssign {
    /// All leaves, or none. Arithmetic, not a choice: the compiler would make branches of it.
    fn all_if(condition: bool) -> Self;
    /// The leaves of a mask of 64 bits.
    fn of(mask: u64) -> Self;
}

impl Mask for u32 {
    #[inline(always)]
    fn all_if(condition: bool) -> u32 {
        u32::from(condition).wrapping_neg()
    }

    #[inline(always)]
    fn of(mask: u64) -> u32 {
        mask as u32
    }
}

impl Mask for u64 {
    #[inline(always)]
    fn all_if(condition: bool) -> u64 {
        u64::from(condition).wrapping_neg()
    }

    #[inline(always)]
    fn of(mask: u64) -> u64 {
        mask
    }
}

/// The leaves that are left for each row; the first splits send missing values right.
#[inline(always)]
fn left_by_thresholds<M: Mask, const L: usize>(
    splits: &[Split<M>],
    missing_right: usize,
    columns: &[[f32; L]],
) -> [M; L] {
    let mut masks = [M::all_if(true); L];
    let (to_right, to_left) = splits.split_at(missing_right);
    for split in to_right {
        let values = &columns[split.feature as usize];
        for k in 0..L {
            masks[k] &= split.right | M::all_if(values[k] <= split.threshold);
        }
    }
    for split in to_left {
        let values = &columns[split.feature as usize];
        for k in 0..L {
            let is_right = values[k] > split.threshold;
            masks[k] &= split.right | M::all_if(!is_right);
        }
    }
    masks
}

/// What splits by categories leave of the masks. Not inlined, so that masks stay in registers where
/// there are no such splits.
#[inline(never)]
fn left_by_sets<M: Mask, const L: usize>(
    splits: &[CategoricalSplit],
    sets: &[CategorySet],
    columns: &[[f32; L]],
    mut masks: [M; L],
) -> [M; L] {
    for split in splits {
        let values = &columns[split.feature as usize];
        let set = &sets[split.set as usize];
        for k in 0..L {
            let is_left = goes_left(set, split.missing_left, values[k]);
            masks[k] &= M::of(split.right) | M::all_if(is_left);
        }
    }
    masks
}

/// The place of the lowest bit that is set: the exponent of its value, which registers of many masks
/// find at once.
#[inline(always)]
fn lowest_bit(mask: u32) -> u32 {
    let bit = (mask & mask.wrapping_neg()) as i32;
    ((bit as f32).to_bits() >> 23 & 0xff).wrapping_sub(127)
}

/// Turns rows of `p` values into columns of L rows; rows that are missing are zero.
#[inline(always)]
pub(super) fn columns_of<const L: usize>(x: &[f32], p: usize, columns: &mut [[f32; L]]) {
    if x.len() < L * p {
        columns.fill([0.0; L]);
    }
    let fours = x.chunks_exact(4 * p);
    let rest = fours.remainder();
    let n_grouped = fours.len() * 4;
    // Four rows at a time: a quarter of the stores.
    for (k, rows) in fours.enumerate() {
        let (a, b) = rows.split_at(2 * p);
        let ((a, b), (c, d)) = (a.split_at(p), b.split_at(p));
        let values = a.iter().zip(b).zip(c.iter().zip(d));
        for (column, ((&a, &b), (&c, &d))) in columns.iter_mut().zip(values) {
            column[4 * k..][..4].copy_from_slice(&[a, b, c, d]);
        }
    }
    for (k, row) in rest.chunks_exact(p).enumerate() {
        for (column, &value) in columns.iter_mut().zip(row) {
            column[n_grouped + k] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_LEAVES, has_places, make_room};
    use crate::category::CategorySet;
    use crate::ensemble::{Ensemble, FeatureRows, Kind};
    use crate::parallel::Pool;
    use crate::random::{Key, Stream};
    use crate::tree::{CATEGORICAL, MISSING_LEFT, Node, find_leaf};

    const P: usize = 5;

    /// A random tree. Features 3 and 4 are categorical if `categories` is set.
    fn tree(
        stream: &mut Stream,
        n_leaves: usize,
        categories: bool,
    ) -> (Vec<Node>, Vec<CategorySet>) {
        let leaf = Node { feature: 0, threshold: 0.0, left: 0, cover: 1.0, gain: 0.0, cut: 0 };
        let (mut nodes, mut sets, mut leaves) = (vec![leaf], vec![], vec![0]);
        while leaves.len() < n_leaves {
            let at = leaves.swap_remove(stream.below(leaves.len()));
            let feature = stream.below(P);
            let node: &mut Node = &mut nodes[at];
            node.feature = feature as u32 | if stream.below(2) == 0 { MISSING_LEFT } else { 0 };
            if categories && feature >= 3 {
                node.feature |= CATEGORICAL;
            } else {
                // Ties with values of rows, and splits of missing values alone.
                node.threshold = [0.0, 1.0, 2.0, f32::INFINITY][stream.below(4)];
            }
            let left = nodes.len();
            nodes[at].left = left as u32;
            leaves.extend([left, left + 1]);
            nodes.extend([leaf, leaf]);
        }
        let mut numbers = 0..;
        for node in &mut nodes {
            if node.is_leaf() {
                node.feature = numbers.next().unwrap();
            } else if node.is_categorical() {
                node.cut = sets.len() as u32;
                let words = std::array::from_fn(|_| stream.bits() as u32);
                sets.push(CategorySet::from_words(words));
            }
        }
        (nodes, sets)
    }

    /// Values with ties, missing ones, infinite ones and some that are no category.
    fn rows(stream: &mut Stream, n: usize) -> Vec<f32> {
        let values = [0.0, -0.0, 1.0, 2.0, 3.0, 0.5, -1.0, 300.0, f32::NAN, f32::INFINITY];
        (0..n * P).map(|_| values[stream.below(values.len())]).collect()
    }

    #[test]
    fn masks_find_the_leaves_that_a_walk_finds() {
        let mut stream = Key::new(3).stream();
        let pool = Pool::serial();
        for categories in [false, true] {
            let mut model = Ensemble::new(Kind::PerOutput, 1, P);
            for n_leaves in (1..=70).chain([2, 31, 32, 33, 64, 65, 200]) {
                let (nodes, sets) = tree(&mut stream, n_leaves, categories);
                let values: Vec<f32> = (0..n_leaves).map(|_| stream.uniform() as f32).collect();
                model.push(&nodes, &sets, &values, &[]).unwrap();
            }
            for n in [1, 7, 8, 9, 31, 32, 33, 40, 41, 300] {
                let x = rows(&mut stream, n);
                let mut found = vec![0; n * model.n_trees()];
                model
                    .leaves(&pool, FeatureRows::Dense(&x), 0..model.n_trees(), &mut found)
                    .unwrap();
                let expected: Vec<u32> = x
                    .chunks(P)
                    .flat_map(|row| {
                        let leaf = |t| find_leaf::<true>(model.tree(t), model.tree_sets(t), row);
                        (0..model.n_trees()).map(move |t| leaf(t) as u32)
                    })
                    .collect();
                assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn places_beyond_32_bits_are_refused() {
        let most = u32::MAX as usize;
        assert!(has_places(most - MOST_LEAVES, MOST_LEAVES) && has_places(most, 0));
        assert!(!has_places(most - MOST_LEAVES + 1, MOST_LEAVES) && !has_places(most, usize::MAX));
        assert!(make_room(&mut vec![0u8; 3], most).is_err());
    }

    #[test]
    fn a_model_cut_short_is_the_model_of_fewer_trees() {
        for kept in [0, 1, 40, 76, 77] {
            let mut stream = Key::new(4).stream();
            let (mut model, mut short) =
                (Ensemble::new(Kind::PerOutput, 1, P), Ensemble::new(Kind::PerOutput, 1, P));
            for (t, n_leaves) in (1..=70).chain([2, 31, 32, 33, 64, 65, 200]).enumerate() {
                let (nodes, sets) = tree(&mut stream, n_leaves, t % 2 == 0);
                model.push(&nodes, &sets, &vec![1.0; n_leaves], &[]).unwrap();
                if t < kept {
                    short.push(&nodes, &sets, &vec![1.0; n_leaves], &[]).unwrap();
                }
            }
            model.truncate(kept);
            assert_eq!(model, short);
        }
    }
}
