//! Growing a tree: best-first, by histograms.
//!
//! The leaf with the largest gain is split first, until `max_leaf_nodes`. Of two new nodes only the
//! smaller is summed; the other is its parent minus its sibling. One job per split goes over all
//! features: sum, subtract and search while a feature's histogram is in cache.
//!
//! Where rows are spread over machines, the children of several leaves are summed before their time,
//! so that one exchange serves them all; which leaves are split, and in which order, stays the same.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::binning::{Binned, Column};
use crate::category::{CategorySet, improve_subset};
use crate::error::{Error, Result};
use crate::histogram::{GROUP, accumulate, accumulate_compressed, accumulate_four, fill_default};
use crate::histogram::{Lane, Lanes, Layout, NodeRows, RowLists, SplitGradients};
use crate::interaction::{Allowed, Interactions};
use crate::lowlevel::widest;
use crate::memory::{collected, grow, resize, room, zeros};
use crate::monotone::{Bounds, Order};
use crate::parallel::Pool;
use crate::partition::{Rule, partition};
use crate::random::{Key, shuffle_prefix};
use crate::reduce::{add_up_here, exchange, exchange_pieces};
use crate::split::{Scratch, Split, SplitLimits, improve_split};
use crate::tree::{CATEGORICAL, MISSING_LEFT, Node, Tree};

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
    constraints: Constraints,
    histogram: Option<Histogram>,
    split: Split,
    expansion: Option<Box<Expansion>>,
}

/// What splitting a leaf leads to: itself as a node with a split, and its children.
struct Expansion {
    node: Node,
    children: [Fresh; 2],
    /// Splits of the children, unless they will not be split.
    found: [Found; 2],
}

/// What the splits above a node leave to it.
#[derive(Clone)]
struct Constraints {
    /// Bounds of its mean gradient, where there are monotonic constraints.
    bounds: Option<Bounds>,
    /// Features that it may be split by; `None`: all.
    allowed: Option<Arc<Allowed>>,
}

impl Constraints {
    fn allow(&self, feature: u32) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.contains(feature))
    }
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

/// The histograms of a node, all usable features side by side.
#[derive(Default)]
struct Histogram {
    sums: Vec<i64>,
    /// Whether a compressed feature may still split this node or those below it; where not, its
    /// sums are left unknown.
    alive: Vec<bool>,
}

/// A new node before its split is known; it gets its number when its parent is split.
struct Fresh {
    node: usize,
    start: usize,
    end: usize,
    depth: usize,
    path: Key,
    total: Vec<i64>,
    constraints: Constraints,
}

/// Grows trees on one set of binned features; keeps its buffers from tree to tree.
pub struct Grower {
    rows: Vec<u32>,
    scratch: Vec<u32>,
    spread: Vec<u8>,
    free: Vec<Histogram>,
    /// Those of the last tree, whose memory the next one uses.
    lanes: Option<Lanes>,
    plan: Plan,
    interactions: Option<Interactions>,
    /// Bytes that kept histograms may take.
    budget: usize,
}

/// Which features are looked at, and where their histograms are.
struct Plan {
    /// Features that can split at all: dense ones, then compressed ones, both ascending.
    usable: Vec<u32>,
    /// How many of them are dense.
    n_dense: usize,
    /// First histogram slot of each usable feature, and one past the last.
    slots: Vec<usize>,
    /// Blocks of compressed features by rows.
    blocks: Vec<(std::ops::Range<usize>, RowLists)>,
}

/// Listed bins of a row that make a block of compressed features worth its row starts.
const BINS_PER_ROW: usize = 4;
/// Most blocks of compressed features.
const MAX_BLOCKS: usize = 16;

impl Plan {
    fn new(binned: &Binned, min_samples_leaf: usize) -> Result<Plan> {
        // One side of a cut lies outside the most frequent bin: too few rows there, and no cut of
        // any node is allowed.
        let splits = |&f: &u32| binned.uncommon[f as usize] >= min_samples_leaf.max(1);
        let is_dense = |&f: &u32| matches!(binned.columns[f as usize], Column::Dense(_));
        let (mut usable, compressed): (Vec<u32>, Vec<u32>) =
            (0..binned.n_features as u32).filter(splits).partition(is_dense);
        let n_dense = usable.len();
        usable.extend(compressed);
        let mut slots = vec![0];
        for &f in &usable {
            let f = f as usize;
            let n_slots = binned.cuts.n_bins(f) + usize::from(binned.cuts.has_missing[f]);
            slots.push(slots[slots.len() - 1] + n_slots);
        }
        let mut plan = Plan { usable, n_dense, slots, blocks: Vec::new() };
        plan.list_rows(binned)?;
        Ok(plan)
    }

    /// Cuts the compressed features into blocks of about equally many listed bins.
    fn list_rows(&mut self, binned: &Binned) -> Result<()> {
        let columns: Vec<_> = (self.n_dense..self.usable.len())
            .filter_map(|i| match &binned.columns[self.usable[i] as usize] {
                Column::Compressed(column) => Some(column),
                Column::Dense(_) => None,
            })
            .collect();
        let listed: usize = columns.iter().map(|column| column.rows.len()).sum();
        let wanted = (listed / (binned.n_rows.max(1) * BINS_PER_ROW)).clamp(1, MAX_BLOCKS);
        // Row starts are 32-bit numbers.
        let size = listed.div_ceil(wanted).clamp(1, 1 << 31);
        let mut first = 0;
        while first < columns.len() {
            let mut last = first;
            let mut in_block = 0;
            while last < columns.len()
                && (last == first || in_block + columns[last].rows.len() <= size)
            {
                in_block += columns[last].rows.len();
                last += 1;
            }
            let start = self.slots[self.n_dense + first];
            let placed: Vec<_> =
                (first..last).map(|k| (columns[k], self.slots[self.n_dense + k] - start)).collect();
            let lists = RowLists::new(binned.n_rows, &placed)?;
            self.blocks.push((self.n_dense + first..self.n_dense + last, lists));
            first = last;
        }
        Ok(())
    }

    fn n_slots(&self) -> usize {
        self.slots[self.usable.len()]
    }
}

impl Grower {
    /// A grower for these features and leaves of at least `min_samples_leaf` rows.
    pub fn new(
        binned: &Binned,
        min_samples_leaf: usize,
        interactions: Option<Interactions>,
    ) -> Result<Grower> {
        Ok(Grower {
            rows: Vec::new(),
            scratch: Vec::new(),
            spread: Vec::new(),
            free: Vec::new(),
            lanes: None,
            plan: Plan::new(binned, min_samples_leaf)?,
            interactions,
            budget: HISTOGRAM_BUDGET,
        })
    }

    /// Memory of the last split gradients, for the next ones.
    pub fn take_lanes(&mut self) -> Option<Lanes> {
        self.lanes.take()
    }

    /// Grows one tree on the given rows (all if `None`), with `key` for the draws of features.
    /// `signs` are monotonic constraints, one for each feature; they need a single component.
    pub fn grow(
        &mut self,
        pool: &Pool,
        binned: &Binned,
        SplitGradients { layout, lanes }: SplitGradients,
        rows: Option<&[u32]>,
        signs: Option<&[i8]>,
        params: &GrowParams,
        key: Key,
    ) -> Result<Grown> {
        self.rows.clear();
        grow(&mut self.rows, rows.map_or(binned.n_rows, <[u32]>::len))?;
        match rows {
            Some(rows) => self.rows.extend_from_slice(rows),
            None => self.rows.extend(0..binned.n_rows as u32),
        }
        resize(&mut self.scratch, self.rows.len(), 0)?;
        let grown = match &lanes {
            Lanes::Narrow(lanes) => self.grow_on(pool, binned, layout, lanes, signs, params, key),
            Lanes::Wide(lanes) => self.grow_on(pool, binned, layout, lanes, signs, params, key),
        };
        self.lanes = Some(lanes);
        grown
    }

    fn grow_on<T: Lane>(
        &mut self,
        pool: &Pool,
        binned: &Binned,
        layout: Layout,
        lanes: &[T],
        signs: Option<&[i8]>,
        params: &GrowParams,
        key: Key,
    ) -> Result<Grown> {
        let Grower { rows, scratch, spread, free, plan, interactions, budget, .. } = self;
        let limits = SplitLimits::new(params.min_samples_leaf as i64, params.min_split_gain);
        let histogram_bytes = plan.n_slots() * layout.width * 8;
        // Leaves beyond these are split without their parents' histograms.
        let most_kept = *budget / histogram_bytes.max(1);
        let job = Job {
            pool,
            binned,
            layout,
            lanes,
            room: Mutex::new(Vec::new()),
            plan,
            limits,
            signs,
            interactions: interactions.as_ref(),
            n_drawn: drawn_features(params.max_features, binned.n_features, plan.usable.len()),
            keep: histogram_bytes.saturating_mul(params.max_leaf_nodes.min(64) + 1) <= *budget,
        };
        let can_split = |fresh: &Fresh| {
            layout.count(&fresh.total) >= 2 * limits.min_samples_leaf.max(1)
                && fresh.depth < params.max_depth
        };

        let mut nodes = room(2 * params.max_leaf_nodes.min(rows.len()))?;
        let mut sets = Vec::new();
        let mut open = BinaryHeap::new();
        let mut root = Fresh {
            node: 0,
            start: 0,
            end: rows.len(),
            depth: 0,
            path: key,
            total: sum_rows_here(pool, rows, lanes, layout.width)?,
            constraints: Constraints {
                bounds: signs.map(|_| Bounds::NONE),
                allowed: interactions.as_ref().map(|groups| Arc::new(groups.root())),
            },
        };
        let can_grow = |root: &Fresh| params.max_leaf_nodes > 1 && can_split(root);
        let found = job.search_root(rows, &mut root, can_grow, free)?;
        let mut weights = vec![node_weight(&layout, &root.total)];
        nodes.push(leaf_node(&layout, &root.total));
        push_open(&mut open, free, root, found, most_kept)?;

        let mut n_leaves = 1;
        // Where each leaf's rows are.
        let mut places = vec![(0, 0..rows.len())];
        while n_leaves < params.max_leaf_nodes {
            let Some(mut parent) = open.pop() else { break };
            n_leaves += 1;
            if parent.expansion.is_none() {
                let n_more = params.max_leaf_nodes - n_leaves;
                let mut batch = job.pop_batch(parent, &mut open, n_more);
                for leaf in &mut batch {
                    leaf.expansion = Some(Box::new(job.expand(leaf, rows, scratch, spread)?));
                }
                if n_more > 0 {
                    job.search_children(rows, &mut batch, can_split, free)?;
                }
                parent = batch.swap_remove(0);
                open.extend(batch);
            }
            free.extend(parent.histogram);
            let Some(expansion) = parent.expansion else { unreachable!("made above") };
            let Expansion { mut node, children: [mut left, mut right], found } = *expansion;
            left.node = nodes.len();
            right.node = nodes.len() + 1;
            node.left = left.node as u32;
            if let Some(categories) = parent.split.categories {
                node.cut = sets.len() as u32;
                sets.push(categories);
            }
            nodes[parent.node] = node;
            grow(&mut weights, 2)?;
            grow(&mut places, 2)?;
            for child in [&left, &right] {
                nodes.push(leaf_node(&layout, &child.total));
                weights.push(node_weight(&layout, &child.total));
                places.push((child.node, child.start..child.end));
            }
            let [found_left, found_right] = found;
            push_open(&mut open, free, left, found_left, most_kept)?;
            push_open(&mut open, free, right, found_right, most_kept)?;
        }
        for leaf in open {
            grow(free, 3)?;
            free.extend(leaf.histogram);
            let Some(expansion) = leaf.expansion else { continue };
            free.extend(expansion.found.into_iter().filter_map(|found| found.histogram));
            // Its rows were parted in vain: they ascend within both parts only.
            let [left, right] = &expansion.children;
            places[leaf.node].1 = left.start..left.end;
            grow(&mut places, 1)?;
            places.push((leaf.node, right.start..right.end));
        }

        let n_leaves = number_leaves(&mut nodes);
        let leaves = nodes.iter().zip(&weights).filter(|(node, _)| node.is_leaf());
        let leaf_weights = collected(n_leaves, leaves.map(|(_, &weight)| weight))?;
        number_sets(&mut nodes, &mut sets);
        let tree = Tree { nodes, sets, n_leaves };
        let leaf_of_row = place_rows(pool, binned, rows, &tree, &places)?;
        Ok(Grown { tree, leaf_of_row, leaf_weights })
    }
}

/// The leaf of every row: by the partition where it was sampled, else down the tree. `places` says
/// where the rows of nodes are.
fn place_rows(
    pool: &Pool,
    binned: &Binned,
    rows: &[u32],
    tree: &Tree,
    places: &[(usize, std::ops::Range<usize>)],
) -> Result<Vec<u32>> {
    let mut leaf_of_row = zeros::<u32>(binned.n_rows)?;
    let leaves = places.iter().map(|(node, range)| (&tree.nodes[*node], range));
    let leaves = leaves.filter(|(node, _)| node.is_leaf());
    let rows_of =
        |(node, range): (&Node, &std::ops::Range<usize>)| (node.feature, &rows[range.clone()]);
    let leaves: Vec<(u32, &[u32])> = collected(places.len(), leaves.map(rows_of))?;
    let sampled = rows.len() < binned.n_rows;
    let size = binned.n_rows.div_ceil(pool.threads() * 4).max(1);
    let work = binned.n_rows * if sampled { 10 } else { 2 };
    pool.for_each(leaf_of_row.chunks_mut(size).enumerate(), work, |(chunk, places)| {
        let first = (chunk * size) as u32;
        if sampled {
            places.fill(u32::MAX);
        }
        for &(leaf, rows) in &leaves {
            // The rows of a leaf ascend.
            let from = rows.partition_point(|&row| row < first);
            let to = from + rows[from..].partition_point(|&row| row - first < places.len() as u32);
            rows[from..to].iter().for_each(|&row| places[(row - first) as usize] = leaf);
        }
        if sampled {
            for (k, leaf) in places.iter_mut().enumerate() {
                if *leaf == u32::MAX {
                    *leaf = tree.find_leaf_binned(binned, first as usize + k) as u32;
                }
            }
        }
    })?;
    Ok(leaf_of_row)
}

/// How many usable features a node draws, when `max_features` of all `n_features` are asked for.
fn drawn_features(max_features: usize, n_features: usize, n_usable: usize) -> usize {
    if max_features >= n_features { n_usable } else { max_features.min(n_usable) }
}

fn node_weight(layout: &Layout, total: &[i64]) -> f64 {
    let unit = if layout.weight_lanes > 0 { layout.weight_unit } else { 1.0 };
    layout.weight(total) * unit
}

fn leaf_node(layout: &Layout, total: &[i64]) -> Node {
    let cover = node_weight(layout, total) as f32;
    Node { feature: 0, threshold: 0.0, left: 0, cover, gain: 0.0, cut: 0 }
}

fn number_leaves(nodes: &mut [Node]) -> usize {
    let mut n_leaves = 0;
    for node in nodes.iter_mut().filter(|node| node.is_leaf()) {
        node.feature = n_leaves;
        n_leaves += 1;
    }
    n_leaves as usize
}

/// Brings the sets of categorical splits, made in the order of splitting, in that of their nodes.
fn number_sets(nodes: &mut [Node], sets: &mut Vec<CategorySet>) {
    let categorical = nodes.iter_mut().filter(|node| node.is_categorical());
    *sets = categorical
        .enumerate()
        .map(|(number, node)| sets[std::mem::replace(&mut node.cut, number as u32) as usize])
        .collect();
}

/// The lanes of rows on this machine, added up.
fn sum_rows_here<T: Lane>(
    pool: &Pool,
    rows: &[u32],
    lanes: &[T],
    width: usize,
) -> Result<Vec<i64>> {
    let ranges = pool.row_ranges(rows.len(), width);
    let sums = pool.map(ranges, rows.len() * width, |range| {
        let mut total = vec![0i64; width];
        for &row in &rows[range] {
            let lanes = &lanes[row as usize * width..(row as usize + 1) * width];
            total.iter_mut().zip(lanes).for_each(|(t, &l)| *t += l.into());
        }
        total
    })?;
    add_up_here(sums, width)
}

/// The outcome of a search: a split, and the histogram if it is kept.
#[derive(Default)]
struct Found {
    split: Option<Split>,
    histogram: Option<Histogram>,
}

/// Keeps a leaf that can be split, with its histogram unless there are many already.
fn push_open(
    open: &mut BinaryHeap<Open>,
    free: &mut Vec<Histogram>,
    fresh: Fresh,
    Found { split, mut histogram }: Found,
    most_kept: usize,
) -> Result<()> {
    if split.is_none() || open.len() >= most_kept {
        grow(free, 1)?;
        free.extend(histogram.take());
    }
    if let Some(split) = split {
        let Fresh { node, start, end, depth, path, total, constraints } = fresh;
        let bytes = 2 * open.len() * std::mem::size_of::<Open>();
        open.try_reserve(1).map_err(|_| Error::OutOfMemory(bytes))?;
        let expansion = None;
        open.push(Open {
            node,
            start,
            end,
            depth,
            path,
            total,
            constraints,
            histogram,
            split,
            expansion,
        });
    }
    Ok(())
}

/// Two new nodes, the histogram of their parent if it was kept, and what is to be found of them.
struct Pair<'a> {
    parent: Option<Histogram>,
    children: &'a [Fresh; 2],
    wanted: [bool; 2],
    found: &'a mut [Found; 2],
}

/// Everything that stays the same while one tree grows.
struct Job<'a, T> {
    pool: &'a Pool,
    binned: &'a Binned,
    layout: Layout,
    lanes: &'a [T],
    /// Room for the lanes of a node.
    room: Mutex<Vec<T>>,
    plan: &'a Plan,
    limits: SplitLimits,
    signs: Option<&'a [i8]>,
    interactions: Option<&'a Interactions>,
    n_drawn: usize,
    keep: bool,
}

impl<T: Lane> Job<'_, T> {
    /// Where every node has features of its own, drawn or allowed, there is nothing to subtract.
    fn subtracts(&self) -> bool {
        self.keep && self.n_drawn == self.plan.usable.len() && self.interactions.is_none()
    }

    /// The leaf to be split, first, and those that are expanded with it: none on one machine; on
    /// several, the next best of as many as may yet be split.
    fn pop_batch(&self, best: Open, open: &mut BinaryHeap<Open>, n_more: usize) -> Vec<Open> {
        let mut batch = vec![best];
        if self.pool.others().is_none() {
            return batch;
        }
        let mut passed = Vec::new();
        while batch.len() + passed.len() <= n_more {
            let Some(next) = open.pop() else { break };
            if next.expansion.is_none() { batch.push(next) } else { passed.push(next) }
        }
        open.extend(passed);
        batch
    }

    /// Parts the rows of a leaf by its split.
    fn expand(
        &self,
        leaf: &Open,
        rows: &mut [u32],
        scratch: &mut [u32],
        spread: &mut Vec<u8>,
    ) -> Result<Expansion> {
        let (binned, split) = (self.binned, &leaf.split);
        let feature = split.feature as usize;
        let column = binned.columns[feature].spread(binned.n_rows, spread)?;
        let leaf_rows = &mut rows[leaf.start..leaf.end];
        let mut node = Node {
            feature: split.feature | if split.missing_left { MISSING_LEFT } else { 0 },
            gain: split.gain as f32,
            ..leaf_node(&self.layout, &leaf.total)
        };
        let n_left = if let Some(left) = split.categories {
            node.feature |= CATEGORICAL;
            partition(self.pool, leaf_rows, scratch, |row| left.contains(column[row as usize]))?
        } else {
            let thresholds = &binned.cuts.thresholds[feature];
            node.threshold = thresholds.get(split.bin as usize).copied().unwrap_or(f32::INFINITY);
            node.cut = split.bin.into();
            let rule = Rule {
                column,
                bin: split.bin,
                missing_bin: binned.cuts.n_bins(feature) as u8,
                missing_left: split.missing_left,
            };
            partition(self.pool, leaf_rows, scratch, |row| rule.goes_left(row))?
        };
        // (A node whose left child has the number 0 would count as a leaf.)
        node.left = 1;
        let middle = leaf.start + n_left;
        let right_total = leaf.total.iter().zip(&split.left).map(|(t, l)| t - l).collect();
        let child = |start, end, side, total| Fresh {
            node: 0,
            start,
            end,
            depth: leaf.depth + 1,
            path: leaf.path.with(side),
            total,
            constraints: leaf.constraints.clone(),
        };
        let left = child(leaf.start, middle, 0, split.left.clone());
        let right = child(middle, leaf.end, 1, right_total);
        let mut children = [left, right];
        self.constrain(leaf, &node, &mut children);
        Ok(Expansion { node, children, found: Default::default() })
    }

    /// Hands the constraints of a node that has just been split on to its children.
    fn constrain(&self, parent: &Open, node: &Node, children: &mut [Fresh; 2]) {
        let Open { constraints, split, total, .. } = parent;
        if let Some(bounds) = constraints.bounds {
            let sign = if node.orders_values() { self.sign(split.feature) } else { 0 };
            let parted = Order { sign, bounds }.parted(&self.layout, &split.left, total);
            let children = children.iter_mut().zip(parted);
            children.for_each(|(child, bounds)| child.constraints.bounds = Some(bounds));
        }
        if let (Some(interactions), Some(allowed)) = (self.interactions, &constraints.allowed) {
            let below = Arc::new(interactions.below(allowed, split.feature));
            let children = children.iter_mut();
            children.for_each(|child| child.constraints.allowed = Some(Arc::clone(&below)));
        }
    }

    /// The monotonic constraint of a feature.
    fn sign(&self, feature: u32) -> i8 {
        self.signs.map_or(0, |signs| signs[feature as usize])
    }

    /// The split of the root, if it is wanted. Its total is that of the rows here, and becomes that
    /// of all; machines exchange it with the histogram.
    fn search_root(
        &self,
        rows: &[u32],
        root: &mut Fresh,
        wanted: impl Fn(&Fresh) -> bool,
        free: &mut Vec<Histogram>,
    ) -> Result<Found> {
        let root_rows = &rows[root.start..root.end];
        if self.subtracts() && self.pool.others().is_some() {
            let mut histogram = self.buffer(free)?;
            histogram.alive.fill(true);
            self.sum_histogram(&mut histogram, root_rows)?;
            self.exchange(&mut [&mut histogram], &mut root.total)?;
            let search = || self.search_histogram(&mut histogram, root);
            let split = wanted(root).then(search).transpose()?.flatten();
            return Ok(Found { split, histogram: Some(histogram) });
        }
        exchange(self.pool, &mut root.total, &mut [])?;
        if !wanted(root) {
            return Ok(Found::default());
        }
        if !self.subtracts() {
            let found = self.search_drawn(rows, &[root])?;
            return Ok(found.into_iter().next().unwrap_or_default());
        }
        let mut histogram = self.buffer(free)?;
        let root = &*root;
        let lanes = self.gather(root_rows)?;
        let work = root_rows.len() * self.plan.usable.len() * self.layout.width;
        let pieces = self.pieces(&mut histogram, work);
        let best = self.pool.map(pieces, work, |mut piece| {
            let mut best = Default::default();
            self.search_piece(&mut piece, None, root_rows, &lanes, [root, root], &mut best);
            best[0].split.take()
        })?;
        Ok(Found { split: best_in_order(best), histogram: Some(histogram) })
    }

    /// Splits of the children of expanded leaves.
    fn search_children(
        &self,
        rows: &[u32],
        batch: &mut [Open],
        can_split: impl Fn(&Fresh) -> bool,
        free: &mut Vec<Histogram>,
    ) -> Result<()> {
        let mut pairs = Vec::new();
        for leaf in batch {
            let Some(expansion) = &mut leaf.expansion else { continue };
            let Expansion { children, found, .. } = &mut **expansion;
            let wanted = [can_split(&children[0]), can_split(&children[1])];
            pairs.push(Pair { parent: leaf.histogram.take(), children, wanted, found });
        }
        // Without the histogram of their parent, both are summed.
        let all = pairs.iter_mut().filter(|pair| pair.parent.is_none()).flat_map(|pair| {
            let wanted = pair.wanted.into_iter();
            wanted.zip(pair.children.iter()).zip(pair.found.iter_mut())
        });
        let (wanted, found): (Vec<&Fresh>, Vec<&mut Found>) = all
            .filter(|((wanted, _), _)| *wanted)
            .map(|((_, child), found)| (child, found))
            .unzip();
        if !wanted.is_empty() {
            for (found, new) in found.into_iter().zip(self.search_drawn(rows, &wanted)?) {
                *found = new;
            }
        }
        if self.pool.others().is_some() {
            return self.search_pairs(rows, pairs, free);
        }
        for pair in pairs {
            let Pair { parent: Some(parent), children, wanted, found } = pair else { continue };
            *found = self.search_pair(rows, parent, children.each_ref(), wanted, free)?;
        }
        Ok(())
    }

    /// [`Job::search_pair`] for several pairs, with one exchange between machines.
    fn search_pairs(
        &self,
        rows: &[u32],
        pairs: Vec<Pair<'_>>,
        free: &mut Vec<Histogram>,
    ) -> Result<()> {
        let mut work = Vec::new();
        for Pair { parent, children, wanted, found } in pairs {
            let Some(parent) = parent else { continue };
            if wanted == [false, false] {
                free.push(parent);
                continue;
            }
            // By the rows of all machines, which are the same everywhere.
            let count = |child: &Fresh| self.layout.count(&child.total);
            let small = usize::from(count(&children[0]) > count(&children[1]));
            let mut histogram = self.buffer(free)?;
            histogram.alive.copy_from_slice(&parent.alive);
            let child = &children[small];
            self.sum_histogram(&mut histogram, &rows[child.start..child.end])?;
            work.push((parent, histogram, children, wanted, found, small));
        }
        let mut sums: Vec<&mut Histogram> = work.iter_mut().map(|item| &mut item.1).collect();
        self.exchange(&mut sums, &mut [])?;
        for (mut parent, histogram, children, wanted, found, small) in work {
            for range in self.sent(&histogram.alive) {
                let (from, sums) = (&mut parent.sums[range.clone()], &histogram.sums[range]);
                from.iter_mut().zip(sums).for_each(|(p, s)| *p -= s);
            }
            for (side, mut histogram) in [(1 - small, parent), (small, histogram)] {
                if wanted[side] {
                    let split = self.search_histogram(&mut histogram, &children[side])?;
                    found[side] = Found { split, histogram: Some(histogram) };
                } else {
                    free.push(histogram);
                }
            }
        }
        Ok(())
    }

    /// Sums the histograms of a node's rows on this machine: of all dense features, and of the
    /// compressed ones that are alive, without their most frequent bins.
    fn sum_histogram(&self, histogram: &mut Histogram, rows: &[u32]) -> Result<()> {
        let lanes = self.gather(rows)?;
        let work = rows.len() * self.plan.usable.len() * self.layout.width;
        let pieces = self.pieces(histogram, work);
        self.pool.for_each(pieces, work, |mut piece| {
            let Some(lists) = piece.lists else {
                return self.sum_dense(&mut piece, rows, &lanes, &[]);
            };
            piece.sums.fill(0);
            let (node_rows, node_lanes, gathered) = self.node(rows, &lanes);
            let source = (node_lanes, gathered, self.layout.width);
            lists.accumulate(node_rows, source, piece.alive, piece.sums, None);
        })
    }

    /// The best split of a node by its histograms.
    fn search_histogram(&self, histogram: &mut Histogram, node: &Fresh) -> Result<Option<Split>> {
        let work = self.plan.n_slots() * self.layout.width * 4;
        let pieces = self.pieces(histogram, work);
        let best = self.pool.map(pieces, work, |mut piece| {
            let mut best = Best::default();
            if piece.lists.is_some() {
                self.search_compressed(&mut piece, node, &mut best);
            } else {
                for (i, part) in self.each_feature(piece.features.clone(), piece.sums) {
                    self.improve(i, part, node, &mut best);
                }
            }
            best.split
        })?;
        Ok(best_in_order(best))
    }

    /// Where the sums are that machines have to exchange: those of dense features, and of compressed
    /// ones that are alive.
    fn sent(&self, alive: &[bool]) -> impl Iterator<Item = std::ops::Range<usize>> {
        let (slots, width) = (&self.plan.slots, self.layout.width);
        let n_dense = self.plan.n_dense;
        let compressed = (n_dense..self.plan.usable.len()).filter(|&i| alive[i]);
        let range = move |first: usize, last: usize| slots[first] * width..slots[last] * width;
        std::iter::once(range(0, n_dense)).chain(compressed.map(move |i| range(i, i + 1)))
    }

    /// Adds up histograms over all machines, and some `totals`, in one exchange.
    fn exchange(&self, histograms: &mut [&mut Histogram], totals: &mut [i64]) -> Result<()> {
        let mut pieces = vec![totals];
        for Histogram { sums, alive } in histograms.iter_mut().map(|histogram| &mut **histogram) {
            let (mut rest, mut at) = (&mut sums[..], 0);
            for range in self.sent(alive) {
                take_front(&mut rest, range.start - at);
                pieces.push(take_front(&mut rest, range.len()));
                at = range.end;
            }
        }
        exchange_pieces(self.pool, &mut pieces, &mut [])
    }

    /// Splits of two siblings; the parent's histogram becomes that of the larger one.
    fn search_pair(
        &self,
        rows: &[u32],
        mut large_histogram: Histogram,
        children: [&Fresh; 2],
        [left_wanted, right_wanted]: [bool; 2],
        free: &mut Vec<Histogram>,
    ) -> Result<[Found; 2]> {
        if !left_wanted && !right_wanted {
            grow(free, 1)?;
            free.push(large_histogram);
            return Ok(Default::default());
        }
        let size = |child: &Fresh| child.end - child.start;
        let left_is_small = size(children[0]) <= size(children[1]);
        let [small, large] = if left_is_small { children } else { [children[1], children[0]] };
        let (small_wanted, large_wanted) =
            if left_is_small { (left_wanted, right_wanted) } else { (right_wanted, left_wanted) };

        let mut small_histogram = self.buffer(free)?;
        let small_rows = &rows[small.start..small.end];
        let lanes = self.gather(small_rows)?;
        let work =
            (size(small) * self.plan.usable.len() + self.plan.n_slots() * 4) * self.layout.width;
        let small_pieces = self.pieces(&mut small_histogram, work);
        let large_pieces = self.pieces(&mut large_histogram, work);
        let pieces: Vec<_> = small_pieces.into_iter().zip(large_pieces).collect();
        let best = self.pool.map(pieces, work, |(mut piece, mut large_piece)| {
            let mut best: [Best; 2] = Default::default();
            let parent = Some((&mut large_piece, small_wanted, large_wanted));
            self.search_piece(&mut piece, parent, small_rows, &lanes, [small, large], &mut best);
            best.map(|best| best.split)
        })?;
        let (small_best, large_best) =
            best.into_iter().map(|[small, large]| (small, large)).unzip();
        let small = Found { split: best_in_order(small_best), histogram: Some(small_histogram) };
        let large = Found { split: best_in_order(large_best), histogram: Some(large_histogram) };
        Ok(if left_is_small { [small, large] } else { [large, small] })
    }

    /// Search by features drawn for each node, or all, without keeping histograms. When none of the
    /// drawn ones can be split, more are drawn, as in random forests.
    fn search_drawn(&self, rows: &[u32], nodes: &[&Fresh]) -> Result<Vec<Found>> {
        let size = self.n_drawn.max(1);
        let orders: Vec<Vec<u32>> = nodes.iter().map(|node| self.order(node)).collect();
        let mut found: Vec<Found> = nodes.iter().map(|_| Found::default()).collect();
        let mut pending: Vec<usize> = (0..nodes.len()).collect();
        for draw in 0.. {
            pending.retain(|&k| found[k].split.is_none() && draw * size < orders[k].len());
            if pending.is_empty() {
                break;
            }
            let drawn: Vec<(usize, Vec<u32>)> = pending
                .iter()
                .map(|&k| {
                    let order = &orders[k][draw * size..];
                    let mut features = order[..size.min(order.len())].to_vec();
                    features.sort_unstable();
                    (k, features)
                })
                .collect();
            if self.pool.others().is_none() {
                for (k, features) in drawn {
                    found[k].split = self.search_features(rows, nodes[k], &features)?;
                }
                continue;
            }
            let mut sums = Vec::new();
            for (k, features) in &drawn {
                sums.extend(self.sum_features(rows, nodes[*k], features)?);
            }
            exchange(self.pool, &mut sums, &mut [])?;
            let mut sums = &mut sums[..];
            for (k, features) in drawn {
                let mut best = Best::default();
                for i in features {
                    let i = i as usize;
                    let n_slots = self.plan.slots[i + 1] - self.plan.slots[i];
                    let histogram = take_front(&mut sums, n_slots * self.layout.width);
                    if let Column::Compressed(column) = self.column(i) {
                        fill_default(histogram, column.default, &nodes[k].total);
                    }
                    self.improve(i, histogram, nodes[k], &mut best);
                }
                found[k].split = best.split;
            }
        }
        Ok(found)
    }

    /// The features that a node may be split by, in the order in which they are drawn.
    fn order(&self, node: &Fresh) -> Vec<u32> {
        let allowed = |&i: &u32| node.constraints.allow(self.plan.usable[i as usize]);
        let mut order: Vec<u32> = (0..self.plan.usable.len() as u32).filter(allowed).collect();
        if self.n_drawn < order.len() {
            let n = order.len();
            shuffle_prefix(node.path, &mut order, n);
        }
        order
    }

    /// The best split of a node by some features.
    fn search_features(
        &self,
        rows: &[u32],
        node: &Fresh,
        features: &[u32],
    ) -> Result<Option<Split>> {
        let node_rows = &rows[node.start..node.end];
        let lanes = self.gather(node_rows)?;
        let work = node_rows.len() * features.len() * self.layout.width;
        let size = features.len().div_ceil(self.pool.pieces(work)).max(1);
        let best = self.pool.map(features.chunks(size), work, |features| {
            let mut best = Best::default();
            let mut histogram = Vec::new();
            for &i in features {
                let i = i as usize;
                let n_slots = self.plan.slots[i + 1] - self.plan.slots[i];
                histogram.resize(n_slots * self.layout.width, 0);
                self.sum_feature(i, node_rows, &lanes, &node.total, &mut histogram);
                self.improve(i, &histogram, node, &mut best);
            }
            best.split
        })?;
        Ok(best_in_order(best))
    }

    /// The histograms of a node's rows on this machine, by some features, side by side; those of
    /// compressed ones without their most frequent bins.
    fn sum_features(&self, rows: &[u32], node: &Fresh, features: &[u32]) -> Result<Vec<i64>> {
        let node_rows = &rows[node.start..node.end];
        let lanes = self.gather(node_rows)?;
        let work = node_rows.len() * features.len() * self.layout.width;
        let parts = self.pool.map(features, work, |&i| {
            let i = i as usize;
            let n_slots = self.plan.slots[i + 1] - self.plan.slots[i];
            let mut histogram = vec![0i64; n_slots * self.layout.width];
            let (rows, lanes, gathered) = self.node(node_rows, &lanes);
            let width = self.layout.width;
            match self.column(i) {
                Column::Dense(column) => {
                    accumulate(column, rows, lanes, gathered, width, &mut histogram);
                }
                Column::Compressed(column) => {
                    accumulate_compressed(column, rows, lanes, gathered, width, &mut histogram);
                }
            }
            histogram
        })?;
        Ok(parts.concat())
    }

    /// Sums a node's histograms of one piece, turns its parent's into those of its sibling, and
    /// looks for the best split of both, where `wanted`.
    fn search_piece(
        &self,
        piece: &mut Piece<'_, '_>,
        mut parent: Option<(&mut Piece<'_, '_>, bool, bool)>,
        rows: &[u32],
        lanes: &Gathered<'_, T>,
        [node, sibling]: [&Fresh; 2],
        [best, sibling_best]: &mut [Best; 2],
    ) {
        let Some(lists) = piece.lists else {
            self.sum_dense(piece, rows, lanes, &node.total);
            let Some((parent, wanted, sibling_wanted)) = parent else {
                for (i, part) in self.each_feature(piece.features.clone(), piece.sums) {
                    self.improve(i, part, node, best);
                }
                return;
            };
            let parts = self.each_feature(piece.features.clone(), piece.sums);
            let parent_parts = self.each_feature(parent.features.clone(), parent.sums);
            for ((i, part), (_, parent_part)) in parts.zip(parent_parts) {
                if sibling_wanted {
                    parent_part.iter_mut().zip(part.iter()).for_each(|(p, s)| *p -= s);
                    self.improve(i, parent_part, sibling, sibling_best);
                }
                if wanted {
                    self.improve(i, part, node, best);
                }
            }
            return;
        };
        // Compressed features: only those with enough listed rows are summed, and the parent's are
        // changed in place, so that the cost follows the stored values of the smaller node.
        let (node_rows, node_lanes, gathered) = self.node(rows, lanes);
        let mut counts = vec![0u32; piece.features.len()];
        lists.count(node_rows, &mut counts);
        let node_wanted = parent.as_ref().is_none_or(|parent| parent.1);
        for (k, (_, part)) in self.each_feature(piece.features.clone(), piece.sums).enumerate() {
            let inherited = parent.as_ref().is_none_or(|parent| parent.0.alive[k]);
            let enough = i64::from(counts[k]) >= self.limits.min_samples_leaf.max(1);
            piece.alive[k] = node_wanted && inherited && enough;
            if piece.alive[k] {
                part.fill(0);
            }
        }
        let sibling_sums = match &mut parent {
            Some((parent, _, true)) => Some(&mut *parent.sums),
            _ => None,
        };
        let source = (node_lanes, gathered, self.layout.width);
        widest(
            #[inline(always)]
            || lists.accumulate(node_rows, source, piece.alive, piece.sums, sibling_sums),
        );
        self.search_compressed(piece, node, best);
        if let Some((parent, _, true)) = parent {
            self.search_compressed(parent, sibling, sibling_best);
        }
    }

    /// Looks for the best split by the compressed features that are alive, and gives up those that
    /// cannot split the node or any below it.
    fn search_compressed(&self, piece: &mut Piece<'_, '_>, node: &Fresh, best: &mut Best) {
        let layout = &self.layout;
        for (k, (i, part)) in self.each_feature(piece.features.clone(), piece.sums).enumerate() {
            let Column::Compressed(column) = self.column(i) else { continue };
            if !piece.alive[k] {
                continue;
            }
            fill_default(part, column.default, &node.total);
            let common = &part[column.default as usize * layout.width..][..layout.width];
            let listed = layout.count(&node.total) - layout.count(common);
            piece.alive[k] = listed >= self.limits.min_samples_leaf.max(1);
            if piece.alive[k] {
                self.improve(i, part, node, best);
            }
        }
    }

    /// Looks for a better split of the node by the usable feature `i`.
    fn improve(&self, i: usize, histogram: &[i64], fresh: &Fresh, best: &mut Best) {
        let feature = self.plan.usable[i];
        let n_bins = self.binned.cuts.n_bins(feature as usize);
        let has_missing = self.binned.cuts.has_missing[feature as usize];
        let (layout, total) = (&self.layout, &fresh.total[..]);
        let Best { split, scratch } = best;
        let bounds = fresh.constraints.bounds;
        let order = bounds.map(|bounds| Order { sign: self.sign(feature), bounds });
        let limits = SplitLimits { order, ..self.limits };
        if self.binned.cuts.categorical[feature as usize] {
            improve_subset(
                layout,
                histogram,
                n_bins,
                has_missing,
                total,
                feature,
                limits,
                scratch,
                split,
            );
        } else {
            improve_split(
                layout,
                histogram,
                n_bins,
                has_missing,
                total,
                feature,
                limits,
                scratch,
                split,
            );
        }
    }

    /// Sums the histograms of a piece of dense features, of a node with this total.
    fn sum_dense(
        &self,
        piece: &mut Piece<'_, '_>,
        rows: &[u32],
        lanes: &Gathered<'_, T>,
        total: &[i64],
    ) {
        let mut parts = self.each_feature(piece.features.clone(), piece.sums);
        let mut i = piece.features.start;
        if self.layout.width == 1 {
            let (node_rows, lanes, _) = self.node(rows, lanes);
            while i + GROUP <= piece.features.end {
                let columns = std::array::from_fn(|k| match self.column(i + k) {
                    Column::Dense(bins) => &bins[..],
                    Column::Compressed(_) => unreachable!("dense features come first"),
                });
                let sums = accumulate_four(columns, node_rows, lanes);
                for (sums, (_, part)) in sums.iter().zip(&mut parts) {
                    part.copy_from_slice(&sums[..part.len()]);
                }
                i += GROUP;
            }
        }
        for (i, part) in parts {
            self.sum_feature(i, rows, lanes, total, part);
        }
    }

    fn column(&self, i: usize) -> &Column {
        &self.binned.columns[self.plan.usable[i] as usize]
    }

    fn sum_feature(
        &self,
        i: usize,
        rows: &[u32],
        lanes: &Gathered<'_, T>,
        total: &[i64],
        histogram: &mut [i64],
    ) {
        let (rows, lanes, gathered) = self.node(rows, lanes);
        let width = self.layout.width;
        match self.column(i) {
            Column::Dense(column) => widest(
                #[inline(always)]
                || accumulate(column, rows, lanes, gathered, width, histogram),
            ),
            Column::Compressed(column) => {
                accumulate_compressed(column, rows, lanes, gathered, width, histogram);
                fill_default(histogram, column.default, total);
            }
        }
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
            Gathered::Copied(copied) => (rows, &copied.lanes[..copied.len], true),
            Gathered::InPlace(lanes) => (rows, lanes, false),
        }
    }

    /// The lanes of a node's rows side by side, read once per feature; wide rows stay in place.
    fn gather(&self, rows: &[u32]) -> Result<Gathered<'_, T>> {
        let width = self.layout.width;
        if width > 8 || rows.len() == self.binned.n_rows {
            return Ok(Gathered::InPlace(self.lanes));
        }
        let mut lanes = std::mem::take(&mut *self.locked_room());
        let len = rows.len() * width;
        if lanes.len() < len {
            resize(&mut lanes, len, self.lanes[0])?;
        }
        let size = rows.len().div_ceil(self.pool.pieces(len * 2)).max(1);
        let pieces = lanes[..len].chunks_mut(size * width).zip(rows.chunks(size));
        self.pool.for_each(pieces, len * 2, |(lanes, rows)| {
            if width == 1 {
                lanes
                    .iter_mut()
                    .zip(rows)
                    .for_each(|(copy, &row)| *copy = self.lanes[row as usize]);
                return;
            }
            for (copy, &row) in lanes.chunks_exact_mut(width).zip(rows) {
                copy.copy_from_slice(&self.lanes[row as usize * width..(row as usize + 1) * width]);
            }
        })?;
        Ok(Gathered::Copied(Copied { job: self, lanes, len }))
    }

    fn locked_room(&self) -> MutexGuard<'_, Vec<T>> {
        self.room.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A histogram to be filled; it holds anything.
    fn buffer(&self, free: &mut Vec<Histogram>) -> Result<Histogram> {
        let mut buffer = free.pop().unwrap_or_default();
        resize(&mut buffer.sums, self.plan.n_slots() * self.layout.width, 0)?;
        buffer.alive.resize(self.plan.usable.len(), false);
        Ok(buffer)
    }

    /// Cuts a histogram into pieces of work: a few of dense features, and the compressed blocks.
    fn pieces<'h>(&self, histogram: &'h mut Histogram, work: usize) -> Vec<Piece<'_, 'h>> {
        let Plan { n_dense, slots, blocks, .. } = self.plan;
        let n = *n_dense;
        let pieces = self.pool.pieces(work).min(n);
        let dense = (0..pieces).map(|k| (n * k / pieces..n * (k + 1) / pieces, None));
        let compressed = blocks.iter().map(|(features, lists)| (features.clone(), Some(lists)));
        let (mut sums, mut alive) = (&mut histogram.sums[..], &mut histogram.alive[..]);
        dense
            .chain(compressed)
            .map(|(features, lists)| {
                let size = (slots[features.end] - slots[features.start]) * self.layout.width;
                Piece {
                    sums: take_front(&mut sums, size),
                    alive: take_front(&mut alive, features.len()),
                    features,
                    lists,
                }
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
            let size = (self.plan.slots[i + 1] - self.plan.slots[i]) * self.layout.width;
            (i, take_front(&mut rest, size))
        })
    }
}

/// Cuts the first `n` elements off a slice.
fn take_front<'a, T>(rest: &mut &'a mut [T], n: usize) -> &'a mut [T] {
    let (front, tail) = std::mem::take(rest).split_at_mut(n);
    *rest = tail;
    front
}

/// Histograms of neighbouring usable features; `lists` if they are compressed.
struct Piece<'p, 'h> {
    features: std::ops::Range<usize>,
    lists: Option<&'p RowLists>,
    sums: &'h mut [i64],
    alive: &'h mut [bool],
}

/// The best split so far, and room to look for others.
#[derive(Default)]
struct Best {
    split: Option<Split>,
    scratch: Scratch,
}

/// The lanes of a node's rows.
enum Gathered<'a, T: Lane> {
    Copied(Copied<'a, T>),
    InPlace(&'a [T]),
}

/// Lanes in memory of the job, which gets it back: new memory for every node would cost more than
/// the copy.
struct Copied<'a, T: Lane> {
    job: &'a Job<'a, T>,
    lanes: Vec<T>,
    len: usize,
}

impl<T: Lane> Drop for Copied<'_, T> {
    fn drop(&mut self) {
        *self.job.locked_room() = std::mem::take(&mut self.lanes);
    }
}

/// The best of several splits; the lower feature wins a tie.
fn best_in_order(candidates: Vec<Option<Split>>) -> Option<Split> {
    candidates
        .into_iter()
        .flatten()
        .reduce(|best, next| if next.beats(best.gain, best.feature) { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binning::{apply_cuts, find_cuts};
    use crate::histogram::{SplitWeights, quantise};

    /// A deep tree on six features, one of them mostly zero, and the most histograms that existed.
    fn grown(budget: Option<usize>, q: usize) -> (Vec<Node>, Vec<u32>, usize) {
        let pool = Pool::serial();
        let (n, p) = (3000, 6);
        let mut stream = Key::new(7).stream();
        let mut x: Vec<f32> = (0..n * p).map(|_| stream.normals().0 as f32).collect();
        x.iter_mut().skip(5).step_by(p).for_each(|v| *v = (*v - 1.5).max(0.0));
        let z: Vec<f32> = (0..n * q).map(|k| (x[k / q * p + k % q]).sin()).collect();
        let cuts = Arc::new(find_cuts(&pool, &x, p, None, 255).unwrap());
        let binned = apply_cuts(&pool, &x, &cuts).unwrap();
        let gradients = quantise(&pool, &z, q, SplitWeights::Equal, None, None).unwrap();
        let mut grower = Grower::new(&binned, 2, None).unwrap();
        grower.budget = budget.unwrap_or(grower.budget);
        let params = GrowParams {
            max_leaf_nodes: 500,
            max_depth: 60,
            min_samples_leaf: 2,
            min_split_gain: 0.0,
            max_features: p,
        };
        let key = Key::new(1);
        let grown = grower.grow(&pool, &binned, gradients, None, None, &params, key).unwrap();
        (grown.tree.nodes, grown.leaf_of_row, grower.free.len())
    }

    #[test]
    fn histograms_that_are_not_kept_change_no_tree() {
        for q in [1, 2] {
            let (nodes, leaves, n_histograms) = grown(None, q);
            assert!(n_histograms > 100);
            let width = if q == 1 { 1 } else { q + 1 };
            let bytes = 6 * 256 * width * 8;
            // Room for 70 of them, and for none.
            let (some_nodes, some_leaves, n_kept) = grown(Some(70 * bytes), q);
            assert!(n_kept < 90, "{n_kept} histograms were kept");
            assert!(nodes == some_nodes && leaves == some_leaves);
            let (no_nodes, no_leaves, none) = grown(Some(0), q);
            assert!(nodes == no_nodes && leaves == no_leaves && none == 0);
        }
    }
}
