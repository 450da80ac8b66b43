//! Growing a tree: best-first, by histograms.
//!
//! The leaf with the largest gain is split first, until `max_leaf_nodes`. Of two new nodes only the
//! smaller is summed; the other is its parent minus its sibling. One job per split goes over all
//! features: sum, subtract and search while a feature's histogram is in cache.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::binning::Binned;
use crate::error::Result;
use crate::histogram::{GROUP, accumulate, accumulate_four};
use crate::histogram::{Lane, Lanes, Layout, NodeRows, SplitGradients};
use crate::lowlevel::widest;
use crate::parallel::Pool;
use crate::partition::partition;
use crate::random::{Key, shuffle_prefix};
use crate::split::{Split, SplitLimits, improve_split};
use crate::tree::{MISSING_LEFT, Node, Tree};

/// Histograms kept for subtraction may take this many bytes in all.
const HISTOGRAM_BUDGET: usize = 1 << 30;

/// The shape of a tree.
#[derive(Debug, Clone, Copy)]
pub struct GrowParams {
    /// Most leaves.
    pub max_leaf_nodes: usize,
    /// Longest path from the root to a leaf.
    pub max_depth: usize,
    /// Fewest rows in a leaf.
    pub min_samples_leaf: usize,
    /// Smallest gain worth a split.
    pub min_split_gain: f64,
    /// Features looked at in a node.
    pub max_features: usize,
}

/// A tree and where it put the rows.
pub struct Grown {
    /// The tree.
    pub tree: Tree,
    /// The leaf of every row, sampled or not.
    pub leaf_of_row: Vec<u32>,
    /// Total weight of the sampled rows in each leaf.
    pub leaf_weights: Vec<f64>,
}

/// A leaf that may yet be split.
struct Open {
    node: usize,
    start: usize,
    end: usize,
    depth: usize,
    path: Key,
    total: Vec<i64>,
    histogram: Option<Vec<i64>>,
    split: Split,
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Open {}
impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Open {
    /// Largest gain first; ties go to the lowest feature, the lowest threshold, the oldest node.
    fn cmp(&self, other: &Self) -> Ordering {
        let place = |open: &Open| (open.split.feature, open.split.bin, open.node);
        self.split.gain.total_cmp(&other.split.gain).then(place(other).cmp(&place(self)))
    }
}

/// A new node before its split is known.
struct Fresh {
    node: usize,
    start: usize,
    end: usize,
    depth: usize,
    path: Key,
    total: Vec<i64>,
}

/// Grows trees on one set of binned features; keeps its buffers from tree to tree.
pub struct Grower {
    rows: Vec<u32>,
    scratch: Vec<u32>,
    free: Vec<Vec<i64>>,
    /// First histogram slot of each usable feature, and one past the last.
    slots: Vec<usize>,
    /// Features with at least two bins (or one and missing values).
    usable: Vec<u32>,
}

impl Grower {
    /// A grower for these features.
    pub fn new(binned: &Binned) -> Grower {
        let cuts = &binned.cuts;
        let n_slots = |f: usize| cuts.n_bins(f) + usize::from(cuts.has_missing[f]);
        let usable: Vec<u32> =
            (0..binned.n_features as u32).filter(|&f| n_slots(f as usize) > 1).collect();
        let mut slots = vec![0];
        for &f in &usable {
            slots.push(slots[slots.len() - 1] + n_slots(f as usize));
        }
        Grower { rows: Vec::new(), scratch: Vec::new(), free: Vec::new(), slots, usable }
    }

    /// Grows one tree on the given rows (all if `None`), with `key` for the draws of features.
    pub fn grow(
        &mut self,
        pool: &Pool,
        binned: &Binned,
        gradients: &SplitGradients,
        rows: Option<&[u32]>,
        params: &GrowParams,
        key: Key,
    ) -> Result<Grown> {
        self.rows.clear();
        match rows {
            Some(rows) => self.rows.extend_from_slice(rows),
            None => self.rows.extend(0..binned.n_rows as u32),
        }
        self.scratch.resize(self.rows.len(), 0);
        match &gradients.lanes {
            Lanes::Narrow(lanes) => {
                self.grow_on(pool, binned, gradients.layout, lanes, params, key)
            }
            Lanes::Wide(lanes) => self.grow_on(pool, binned, gradients.layout, lanes, params, key),
        }
    }

    fn grow_on<T: Lane>(
        &mut self,
        pool: &Pool,
        binned: &Binned,
        layout: Layout,
        lanes: &[T],
        params: &GrowParams,
        key: Key,
    ) -> Result<Grown> {
        let Grower { rows, scratch, free, slots, usable } = self;
        let limits = SplitLimits {
            min_samples_leaf: params.min_samples_leaf as i64,
            min_split_gain: params.min_split_gain,
        };
        let histogram_bytes = slots[usable.len()] * layout.width * 8;
        let job = Job {
            pool,
            binned,
            layout,
            lanes,
            usable,
            slots,
            limits,
            n_drawn: drawn_features(params.max_features, binned.n_features, usable.len()),
            keep: histogram_bytes.saturating_mul(params.max_leaf_nodes.min(64) + 1)
                <= HISTOGRAM_BUDGET,
        };
        let can_split = |fresh: &Fresh| {
            layout.count(&fresh.total) >= 2 * limits.min_samples_leaf.max(1)
                && fresh.depth < params.max_depth
        };

        let mut nodes = Vec::with_capacity(2 * params.max_leaf_nodes.min(rows.len()));
        let mut open = BinaryHeap::new();
        let root = Fresh {
            node: 0,
            start: 0,
            end: rows.len(),
            depth: 0,
            path: key,
            total: sum_rows(rows, lanes, layout.width),
        };
        let mut weights = vec![node_weight(&layout, &root.total)];
        nodes.push(leaf_node(&layout, &root.total));
        if params.max_leaf_nodes > 1 && can_split(&root) {
            let found = job.search_root(rows, &root, free)?;
            push_open(&mut open, free, root, found);
        }

        let mut n_leaves = 1;
        // Where each leaf's rows are.
        let mut ranges = std::iter::once(0..rows.len()).collect::<Vec<_>>();
        while n_leaves < params.max_leaf_nodes {
            let Some(parent) = open.pop() else { break };
            let (left, right) = split_node(rows, scratch, &parent, binned, &layout, &mut nodes);
            weights.push(node_weight(&layout, &left.total));
            weights.push(node_weight(&layout, &right.total));
            ranges.resize(nodes.len(), 0..0);
            ranges[left.node] = left.start..left.end;
            ranges[right.node] = right.start..right.end;
            n_leaves += 1;
            if n_leaves == params.max_leaf_nodes {
                break;
            }
            let wanted = (can_split(&left), can_split(&right));
            let found =
                job.search_children(rows, parent.histogram, [&left, &right], wanted, free)?;
            let [found_left, found_right] = found;
            push_open(&mut open, free, left, found_left);
            push_open(&mut open, free, right, found_right);
        }
        free.extend(open.into_iter().filter_map(|o| o.histogram));

        let n_leaves = number_leaves(&mut nodes);
        let leaves = nodes.iter().zip(&weights).filter(|(node, _)| node.is_leaf());
        let leaf_weights = leaves.map(|(_, &weight)| weight).collect();
        let tree = Tree { nodes, n_leaves };
        let leaf_of_row = place_rows(pool, binned, rows, &tree, &ranges)?;
        Ok(Grown { tree, leaf_of_row, leaf_weights })
    }
}

/// Turns an open leaf into a node with two children.
fn split_node(
    rows: &mut [u32],
    scratch: &mut [u32],
    parent: &Open,
    binned: &Binned,
    layout: &Layout,
    nodes: &mut Vec<Node>,
) -> (Fresh, Fresh) {
    let split = &parent.split;
    let feature = split.feature as usize;
    let n_bins = binned.cuts.n_bins(feature);
    let n_left = partition(
        &mut rows[parent.start..parent.end],
        scratch,
        binned.column(feature),
        split.bin,
        n_bins as u8,
        split.missing_left,
    );
    let middle = parent.start + n_left;
    let left_total = split.left.clone();
    let right_total: Vec<i64> = parent.total.iter().zip(&left_total).map(|(t, l)| t - l).collect();
    let left = nodes.len();
    let node = &mut nodes[parent.node];
    node.feature = split.feature | if split.missing_left { MISSING_LEFT } else { 0 };
    node.threshold =
        binned.cuts.thresholds[feature].get(split.bin as usize).copied().unwrap_or(f32::INFINITY);
    node.bin = split.bin;
    node.left = left as u32;
    node.gain = split.gain as f32;
    nodes.push(leaf_node(layout, &left_total));
    nodes.push(leaf_node(layout, &right_total));
    let child = |node, start, end, side, total| Fresh {
        node,
        start,
        end,
        depth: parent.depth + 1,
        path: parent.path.with(side),
        total,
    };
    (
        child(left, parent.start, middle, 0, left_total),
        child(left + 1, middle, parent.end, 1, right_total),
    )
}

/// The leaf of every row: by the partition where it was sampled, else down the tree.
fn place_rows(
    pool: &Pool,
    binned: &Binned,
    rows: &[u32],
    tree: &Tree,
    ranges: &[std::ops::Range<usize>],
) -> Result<Vec<u32>> {
    let mut leaf_of_row = vec![u32::MAX; binned.n_rows];
    for (node, range) in tree.nodes.iter().zip(ranges) {
        if node.is_leaf() {
            for &row in &rows[range.clone()] {
                leaf_of_row[row as usize] = node.feature;
            }
        }
    }
    if rows.len() < binned.n_rows {
        let size = binned.n_rows.div_ceil(pool.threads() * 4).max(1);
        let chunks = leaf_of_row.chunks_mut(size).enumerate();
        pool.for_each(chunks, binned.n_rows * 10, |(chunk, leaves)| {
            for (k, leaf) in leaves.iter_mut().enumerate() {
                if *leaf == u32::MAX {
                    *leaf = tree.find_leaf_binned(binned, chunk * size + k) as u32;
                }
            }
        })?;
    }
    Ok(leaf_of_row)
}

/// How many usable features a node draws, when `max_features` of all `n_features` are asked for.
fn drawn_features(max_features: usize, n_features: usize, n_usable: usize) -> usize {
    if max_features >= n_features { n_usable } else { max_features.min(n_usable) }
}

fn node_weight(layout: &Layout, total: &[i64]) -> f64 {
    let unit = if layout.weighted { layout.weight_unit } else { 1.0 };
    layout.weight(total) * unit
}

fn leaf_node(layout: &Layout, total: &[i64]) -> Node {
    let cover = node_weight(layout, total) as f32;
    Node { feature: 0, threshold: 0.0, left: 0, cover, gain: 0.0, bin: 0 }
}

fn number_leaves(nodes: &mut [Node]) -> usize {
    let mut n_leaves = 0;
    for node in nodes.iter_mut().filter(|node| node.is_leaf()) {
        node.feature = n_leaves;
        n_leaves += 1;
    }
    n_leaves as usize
}

fn sum_rows<T: Lane>(rows: &[u32], lanes: &[T], width: usize) -> Vec<i64> {
    let mut total = vec![0i64; width];
    for &row in rows {
        let lanes = &lanes[row as usize * width..(row as usize + 1) * width];
        total.iter_mut().zip(lanes).for_each(|(t, &l)| *t += l.into());
    }
    total
}

/// The outcome of a search: a split, and the histogram if it is kept.
#[derive(Default)]
struct Found {
    split: Option<Split>,
    histogram: Option<Vec<i64>>,
}

fn push_open(open: &mut BinaryHeap<Open>, free: &mut Vec<Vec<i64>>, fresh: Fresh, found: Found) {
    match found.split {
        Some(split) => {
            let Fresh { node, start, end, depth, path, total } = fresh;
            let histogram = found.histogram;
            open.push(Open { node, start, end, depth, path, total, histogram, split });
        }
        None => free.extend(found.histogram),
    }
}

/// Everything that stays the same while one tree grows.
struct Job<'a, T> {
    pool: &'a Pool,
    binned: &'a Binned,
    layout: Layout,
    lanes: &'a [T],
    usable: &'a [u32],
    slots: &'a [usize],
    limits: SplitLimits,
    n_drawn: usize,
    keep: bool,
}

impl<T: Lane> Job<'_, T> {
    fn subtracts(&self) -> bool {
        self.keep && self.n_drawn == self.usable.len()
    }

    fn search_root(&self, rows: &[u32], root: &Fresh, free: &mut Vec<Vec<i64>>) -> Result<Found> {
        if !self.subtracts() {
            return self.search_drawn(rows, root);
        }
        let mut histogram = self.buffer(free);
        let lanes = self.gather(&rows[root.start..root.end]);
        let work = (root.end - root.start) * self.usable.len() * self.layout.width;
        let blocks = self.feature_blocks(&mut histogram, work);
        let best = self.pool.map(blocks, work, |(features, histogram)| {
            let mut best = None;
            self.sum_features(features.clone(), &rows[root.start..root.end], &lanes, histogram);
            for (i, histogram) in self.each_feature(features, histogram) {
                self.improve(i, histogram, root, &mut best);
            }
            best
        })?;
        Ok(Found { split: best_in_order(best), histogram: Some(histogram) })
    }

    /// Splits of two siblings; the parent's histogram becomes that of the larger one.
    fn search_children(
        &self,
        rows: &[u32],
        parent: Option<Vec<i64>>,
        children: [&Fresh; 2],
        wanted: (bool, bool),
        free: &mut Vec<Vec<i64>>,
    ) -> Result<[Found; 2]> {
        let Some(mut large_histogram) = parent else {
            let search = |wanted: bool, child| {
                if wanted { self.search_drawn(rows, child) } else { Ok(Found::default()) }
            };
            return Ok([search(wanted.0, children[0])?, search(wanted.1, children[1])?]);
        };
        if !wanted.0 && !wanted.1 {
            free.push(large_histogram);
            return Ok(Default::default());
        }
        let size = |child: &Fresh| child.end - child.start;
        let left_is_small = size(children[0]) <= size(children[1]);
        let [small, large] = if left_is_small { children } else { [children[1], children[0]] };
        let (small_wanted, large_wanted) =
            if left_is_small { wanted } else { (wanted.1, wanted.0) };

        let mut small_histogram = self.buffer(free);
        let small_rows = &rows[small.start..small.end];
        let lanes = self.gather(small_rows);
        let n_slots = self.slots[self.usable.len()];
        let work = (size(small) * self.usable.len() + n_slots * 4) * self.layout.width;
        let blocks = self.feature_blocks(&mut small_histogram, work);
        let mut rest = &mut large_histogram[..];
        let blocks: Vec<_> = blocks
            .into_iter()
            .map(|(features, small)| {
                let (piece, tail) = std::mem::take(&mut rest).split_at_mut(small.len());
                rest = tail;
                (features, small, piece)
            })
            .collect();
        let best = self.pool.map(blocks, work, |(features, small_part, large_part)| {
            let (mut small_best, mut large_best) = (None, None);
            self.sum_features(features.clone(), small_rows, &lanes, small_part);
            let small_parts = self.each_feature(features.clone(), small_part);
            let large_parts = self.each_feature(features, large_part);
            for ((i, small_part), (_, large_part)) in small_parts.zip(large_parts) {
                if large_wanted {
                    large_part.iter_mut().zip(small_part.iter()).for_each(|(l, s)| *l -= s);
                    self.improve(i, large_part, large, &mut large_best);
                }
                if small_wanted {
                    self.improve(i, small_part, small, &mut small_best);
                }
            }
            (small_best, large_best)
        })?;
        let (small_best, large_best): (Vec<_>, Vec<_>) = best.into_iter().unzip();
        let small = Found { split: best_in_order(small_best), histogram: Some(small_histogram) };
        let large = Found { split: best_in_order(large_best), histogram: Some(large_histogram) };
        Ok(if left_is_small { [small, large] } else { [large, small] })
    }

    /// Search by features drawn for this node, or all, without keeping histograms. When none of the
    /// drawn ones can be split, more are drawn, as in random forests.
    fn search_drawn(&self, rows: &[u32], fresh: &Fresh) -> Result<Found> {
        let n_usable = self.usable.len();
        let mut order: Vec<u32> = (0..n_usable as u32).collect();
        if self.n_drawn < n_usable {
            shuffle_prefix(fresh.path, &mut order, n_usable);
        }
        let node_rows = &rows[fresh.start..fresh.end];
        let lanes = self.gather(node_rows);
        for drawn in order.chunks(self.n_drawn.max(1)) {
            let mut drawn = drawn.to_vec();
            drawn.sort_unstable();
            let work = node_rows.len() * drawn.len() * self.layout.width;
            let size = drawn.len().div_ceil(self.pool.pieces(work)).max(1);
            let best = self.pool.map(drawn.chunks(size), work, |features| {
                let mut best = None;
                let mut histogram = Vec::new();
                for &i in features {
                    let i = i as usize;
                    histogram.resize((self.slots[i + 1] - self.slots[i]) * self.layout.width, 0);
                    self.sum_feature(i, node_rows, &lanes, &mut histogram);
                    self.improve(i, &histogram, fresh, &mut best);
                }
                best
            })?;
            let split = best_in_order(best);
            if split.is_some() {
                return Ok(Found { split, histogram: None });
            }
        }
        Ok(Found::default())
    }

    /// Looks for a better split of the node by the usable feature `i`.
    fn improve(&self, i: usize, histogram: &[i64], fresh: &Fresh, best: &mut Option<Split>) {
        let feature = self.usable[i];
        let n_bins = self.binned.cuts.n_bins(feature as usize);
        let has_missing = self.binned.cuts.has_missing[feature as usize];
        let (layout, total) = (&self.layout, &fresh.total[..]);
        improve_split(layout, histogram, n_bins, has_missing, total, feature, self.limits, best);
    }

    /// Sums the histograms of a range of usable features, which lie side by side.
    fn sum_features(
        &self,
        features: std::ops::Range<usize>,
        rows: &[u32],
        lanes: &Gathered<'_, T>,
        histogram: &mut [i64],
    ) {
        let mut parts = self.each_feature(features.clone(), histogram);
        let mut i = features.start;
        if self.layout.width == 1 {
            let (node_rows, lanes, _) = self.node(rows, lanes);
            while i + GROUP <= features.end {
                let columns =
                    std::array::from_fn(|k| self.binned.column(self.usable[i + k] as usize));
                let sums = accumulate_four(columns, node_rows, lanes);
                for (sums, (_, part)) in sums.iter().zip(&mut parts) {
                    part.copy_from_slice(&sums[..part.len()]);
                }
                i += GROUP;
            }
        }
        for (i, part) in parts {
            self.sum_feature(i, rows, lanes, part);
        }
    }

    fn sum_feature(&self, i: usize, rows: &[u32], lanes: &Gathered<'_, T>, histogram: &mut [i64]) {
        let column = self.binned.column(self.usable[i] as usize);
        let (rows, lanes, gathered) = self.node(rows, lanes);
        widest(
            #[inline(always)]
            || accumulate(column, rows, lanes, gathered, self.layout.width, histogram),
        );
    }

    /// The rows of a node and their lanes; rows keep their order, so as many as there are is all.
    fn node<'n>(
        &self,
        rows: &'n [u32],
        lanes: &'n Gathered<'_, T>,
    ) -> (NodeRows<'n>, &'n [T], bool) {
        let all = rows.len() == self.binned.n_rows;
        let rows = if all { NodeRows::All } else { NodeRows::Some(rows) };
        match lanes {
            Gathered::Copied(lanes) => (rows, lanes, true),
            Gathered::InPlace(lanes) => (rows, lanes, false),
        }
    }

    /// The lanes of a node's rows side by side, read once per feature; wide rows stay in place.
    fn gather(&self, rows: &[u32]) -> Gathered<'_, T> {
        let width = self.layout.width;
        if width > 8 || rows.len() == self.binned.n_rows {
            return Gathered::InPlace(self.lanes);
        }
        if width == 1 {
            return Gathered::Copied(rows.iter().map(|&row| self.lanes[row as usize]).collect());
        }
        let lanes_of = |&row: &u32| {
            self.lanes[row as usize * width..(row as usize + 1) * width].iter().copied()
        };
        Gathered::Copied(rows.iter().flat_map(lanes_of).collect())
    }

    fn buffer(&self, free: &mut Vec<Vec<i64>>) -> Vec<i64> {
        let size = self.slots[self.usable.len()] * self.layout.width;
        let mut buffer = free.pop().unwrap_or_default();
        buffer.resize(size, 0);
        buffer
    }

    /// Cuts a histogram into blocks of features, one piece of work each.
    fn feature_blocks<'h>(
        &self,
        histogram: &'h mut [i64],
        work: usize,
    ) -> Vec<(std::ops::Range<usize>, &'h mut [i64])> {
        let n = self.usable.len();
        let pieces = self.pool.pieces(work).min(n.max(1));
        let mut rest = histogram;
        (0..pieces)
            .map(|piece| {
                let features = n * piece / pieces..n * (piece + 1) / pieces;
                let size =
                    (self.slots[features.end] - self.slots[features.start]) * self.layout.width;
                let (part, tail) = std::mem::take(&mut rest).split_at_mut(size);
                rest = tail;
                (features, part)
            })
            .collect()
    }

    /// The part of a block of histograms that belongs to each of its features.
    fn each_feature<'h>(
        &self,
        features: std::ops::Range<usize>,
        block: &'h mut [i64],
    ) -> impl Iterator<Item = (usize, &'h mut [i64])> {
        let mut rest = block;
        features.map(move |i| {
            let size = (self.slots[i + 1] - self.slots[i]) * self.layout.width;
            let (part, tail) = std::mem::take(&mut rest).split_at_mut(size);
            rest = tail;
            (i, part)
        })
    }
}

enum Gathered<'a, T> {
    Copied(Vec<T>),
    InPlace(&'a [T]),
}

/// The best of several splits; the earlier (lower) feature wins a tie.
fn best_in_order(candidates: Vec<Option<Split>>) -> Option<Split> {
    let better = |best: Split, next: Split| if next.gain > best.gain { next } else { best };
    candidates.into_iter().flatten().reduce(better)
}
