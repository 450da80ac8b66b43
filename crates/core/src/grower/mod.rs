//! Growing a tree: best-first, by histograms.
//!
//! The leaf with the largest gain is split first, until there are `max_leaf_nodes` leaves. Only the
//! smaller of two children is summed; the histogram of the other is its parent's minus its sibling's.
//! One job per split handles all features: it sums, subtracts and searches a feature while its
//! histogram is in cache. Threads share the features of a large node; once all leaves are small, each
//! thread expands leaves of its own.
//!
//! If rows are spread over ranks, several leaves are expanded ahead of time so that one exchange
//! serves them all. Which leaves are split, and in which order, stays the same.

mod compressed;
mod draft;
mod drawn;
mod exchange;
mod expand;
mod gather;
mod histograms;
mod node;
mod place;
mod plan;
mod queue;
mod rooms;
mod search;
mod small;
mod sorted;
mod together;

use crate::binning::Binned;
use crate::error::Result;
use crate::histogram::{Lane, Layout, RowLanes, SplitGradients};
use crate::interaction::Interactions;
use crate::parallel::Pool;
use crate::partition::RowPartition;
use crate::random::Key;
use crate::split::Chance;
use crate::tree::Tree;

use draft::Draft;
use histograms::FreeHistograms;
use place::place_rows;
use plan::Plan;
use queue::LeafQueue;
use rooms::{GrowRooms, LaneRooms};
use search::{Search, SearchRooms};

/// Bytes that the histograms kept for subtraction may take in all.
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
    /// Number of features looked at in a node.
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

/// Grows trees on one set of binned features; keeps its buffers from tree to tree.
pub struct Grower {
    params: GrowParams,
    interactions: Option<Interactions>,
    plan: Plan,
    rows: RowPartition,
    free: FreeHistograms,
    rooms: GrowRooms,
    /// Lanes of the last tree, as memory for the next one.
    lanes: Option<RowLanes>,
    /// Bytes that kept histograms may take.
    budget: usize,
}

impl Grower {
    /// A grower of trees of this shape on these features.
    pub fn new(
        binned: &Binned,
        params: GrowParams,
        interactions: Option<Interactions>,
    ) -> Result<Grower> {
        Ok(Grower {
            params,
            interactions,
            plan: Plan::new(binned, params.min_samples_leaf)?,
            rows: RowPartition::default(),
            free: FreeHistograms::default(),
            rooms: GrowRooms::default(),
            lanes: None,
            budget: HISTOGRAM_BUDGET,
        })
    }

    /// Memory of the last split gradients, for the next ones.
    pub fn take_lanes(&mut self) -> Option<RowLanes> {
        self.lanes.take()
    }

    /// Grows one tree on the given rows, ascending (all if `None`); `key` is for draws of features.
    /// `signs` are monotonic constraints, one per feature; they need a single component.
    pub fn grow(
        &mut self,
        pool: &Pool,
        binned: &Binned,
        SplitGradients { layout, lanes }: SplitGradients,
        rows: Option<&[u32]>,
        signs: Option<&[i8]>,
        key: Key,
    ) -> Result<Grown> {
        self.rows.reset(rows, binned.n_rows)?;
        let data = Data { pool, binned, layout, signs };
        let grown = match &lanes {
            RowLanes::Narrow(lanes) => self.grow_best_first(data, lanes, |r| &r.narrow, key),
            RowLanes::Wide(lanes) => self.grow_best_first(data, lanes, |r| &r.wide, key),
        };
        self.lanes = Some(lanes);
        grown
    }

    fn grow_best_first<T: Lane>(
        &mut self,
        data: Data<'_>,
        lanes: &[T],
        lane_rooms: impl Fn(&GrowRooms) -> &LaneRooms<T>,
        key: Key,
    ) -> Result<Grown> {
        let Grower { params, interactions, plan, rows, free, rooms, budget, .. } = self;
        let rooms = SearchRooms {
            lanes: lane_rooms(rooms),
            packed: &rooms.packed,
            vectors: &rooms.vectors,
            search: &rooms.search,
            keys: &rooms.keys,
        };
        let mut slice = rows.all();
        let mut search =
            Search::new(data, lanes, rooms, plan, *params, interactions.as_ref(), *budget);
        if data.binned.cuts.categorical.contains(&true) {
            let rows = slice.of(&(0..slice.len()));
            search.limits.chance =
                Chance::new(data.pool, rows, lanes, &data.layout, search.n_drawn)?;
        }
        // Leaves beyond these wait without their histograms.
        let most_kept = *budget / plan.histogram_bytes(&data.layout).max(1);

        let mut root = search.root(&slice, key)?;
        let outcome = search.search_root(&slice, &mut root, free)?;
        let mut draft = Draft::new(data.layout, &root, params.max_leaf_nodes.min(slice.len()))?;
        let mut queue = LeafQueue::new(most_kept);
        queue.push(root, outcome, free)?;
        while draft.n_leaves() < params.max_leaf_nodes {
            let n_more = params.max_leaf_nodes - draft.n_leaves() - 1;
            if search.has_small_leaves(&queue, n_more) {
                (draft, queue) = search.grow_together(draft, queue, slice, free)?;
                break;
            }
            let Some(leaf) = queue.pop() else { break };
            let leaf = search.expand(leaf, n_more, &mut queue, &mut slice, free)?;
            for (child, outcome) in draft.split(leaf)? {
                queue.push(child, outcome, free)?;
            }
        }
        draft.close(queue, free)?;

        let (tree, leaf_weights, places) = draft.finish()?;
        let leaf_of_row = place_rows(&data, rows, &tree, &places)?;
        Ok(Grown { tree, leaf_of_row, leaf_weights })
    }
}

/// What one tree is grown on.
#[derive(Clone, Copy)]
struct Data<'a> {
    pool: &'a Pool,
    binned: &'a Binned,
    layout: Layout,
    signs: Option<&'a [i8]>,
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::Arc;

    use super::*;
    use crate::binning::{Cuts, apply_cuts, find_cuts};
    use crate::comm::Comm;
    use crate::histogram::{SplitWeights, quantise};
    use crate::select::tests::on_machines;
    use crate::tree::Node;

    const P: usize = 6;
    const MAX_BINS: usize = 7;
    const PARAMS: GrowParams = GrowParams {
        max_leaf_nodes: 500,
        max_depth: 60,
        min_samples_leaf: 2,
        min_split_gain: 0.0,
        max_features: P,
    };

    /// Grows a deep tree on six features, one of them mostly zero.
    fn grow_deep(
        pool: &Pool,
        params: GrowParams,
        interactions: Option<Interactions>,
        (budget, max_bins): (Option<usize>, usize),
        q: usize,
    ) -> (Grown, Grower) {
        let n = 3000;
        let mut stream = Key::new(7).stream();
        let mut x: Vec<f32> = (0..n * P).map(|_| stream.normals().0 as f32).collect();
        x.iter_mut().skip(5).step_by(P).for_each(|v| *v = (*v - 1.5).max(0.0));
        let z: Vec<f32> = (0..n * q).map(|k| (x[k / q * P + k % q]).sin()).collect();
        let cuts = Arc::new(find_cuts(&Pool::serial(), &x, P, None, max_bins, &[]).unwrap());
        let binned = apply_cuts(&Pool::serial(), &x, &cuts).unwrap();
        let gradients = quantise(pool, &z, q, SplitWeights::Equal, None, None).unwrap();
        let mut grower = Grower::new(&binned, params, interactions).unwrap();
        grower.budget = budget.unwrap_or(grower.budget);
        let grown = grower.grow(pool, &binned, gradients, None, None, Key::new(1)).unwrap();
        (grown, grower)
    }

    /// [`grow_deep`] with the most histograms that existed. Few bins: few nodes are small.
    fn with_budget(budget: Option<usize>, q: usize) -> (Vec<Node>, Vec<u32>, usize) {
        let (grown, grower) = grow_deep(&Pool::serial(), PARAMS, None, (budget, MAX_BINS), q);
        (grown.tree.nodes, grown.leaf_of_row, grower.free.len())
    }

    #[test]
    fn histograms_that_are_not_kept_change_no_tree() {
        for q in [1, 2] {
            let (nodes, leaves, n_histograms) = with_budget(None, q);
            assert!(n_histograms > 100);
            let width = if q == 1 { 1 } else { q + 1 };
            let bytes = P * MAX_BINS * width * 8;
            // Room for 70 of them, and for none.
            let (some_nodes, some_leaves, n_kept) = with_budget(Some(70 * bytes), q);
            assert!(n_kept < 90, "{n_kept} histograms were kept");
            assert!(nodes == some_nodes && leaves == some_leaves);
            let (no_nodes, no_leaves, none) = with_budget(Some(0), q);
            assert!(nodes == no_nodes && leaves == no_leaves && none == 0);
        }
    }

    /// The only rank with rows.
    struct Alone;

    impl Comm for Alone {
        fn reduce(&self, _: &mut [&mut [i64]], _: &mut [f64]) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn threads_and_ranks_change_no_tree() {
        let groups = || Interactions::new(vec![vec![0, 1, 5], vec![2, 3, 4, 5]], P);
        let drawn = GrowParams { max_features: 2, max_leaf_nodes: 60, ..PARAMS };
        for (q, max_bins) in [(1, 255), (2, 255), (1, MAX_BINS), (2, MAX_BINS)] {
            for (params, interactions) in [
                (PARAMS, None),
                (GrowParams { max_leaf_nodes: 9, ..PARAMS }, None),
                (drawn, None),
                (drawn, Some(groups())),
            ] {
                let serial = Pool::serial();
                let grow = |pool: &Pool| {
                    grow_deep(pool, params, interactions.clone(), (None, max_bins), q).0
                };
                let expected = grow(&serial);
                // More threads than processors, too.
                let threads = |n| Pool::new(n, Box::new(|| false));
                for pool in [serial.among(Arc::new(Alone), 3000), threads(2), threads(9)] {
                    let grown = grow(&pool);
                    assert!(grown.tree == expected.tree);
                    assert!(grown.leaf_of_row == expected.leaf_of_row);
                    assert!(grown.leaf_weights == expected.leaf_weights);
                }
            }
        }
    }

    #[test]
    fn ranks_with_few_and_many_rows_agree_on_keeping_histograms() {
        // Rare labels alone, and memory for fewer histograms than leaves.
        let (n, p, q) = (100, 24, 2);
        let x: Vec<f32> =
            (0..n * p).map(|k| f32::from(u8::from(k / p % (n - 7) == k % p))).collect();
        let z: Vec<f32> = (0..n * q).map(|k| (k * k % 31) as f32).collect();
        let params =
            GrowParams { max_leaf_nodes: 31, max_features: p, min_samples_leaf: 1, ..PARAMS };
        let cuts = Arc::new(find_cuts(&Pool::serial(), &x, p, None, 255, &[]).unwrap());
        let grow = |pool: &Pool, rows: Range<usize>| {
            let binned = apply_cuts(pool, &x[rows.start * p..rows.end * p], &cuts).unwrap();
            let z = &z[rows.start * q..rows.end * q];
            let gradients = quantise(pool, z, q, SplitWeights::Equal, None, None).unwrap();
            let mut grower = Grower::new(&binned, params, None).unwrap();
            assert_eq!(grower.plan.n_dense, 0);
            grower.budget = 16 * grower.plan.histogram_bytes(&gradients.layout);
            grower.grow(pool, &binned, gradients, None, None, Key::new(1)).unwrap()
        };
        let alone = grow(&Pool::serial(), 0..n);
        assert!(alone.tree.n_leaves > 20);
        let ends = [0, n - 3, n];
        let parts = on_machines(2, n, |rank, pool| grow(pool, ends[rank]..ends[rank + 1]));
        for (rank, part) in parts.iter().enumerate() {
            assert_eq!(part.tree, alone.tree);
            assert_eq!(part.leaf_of_row, alone.leaf_of_row[ends[rank]..ends[rank + 1]]);
        }
    }

    #[test]
    fn without_rows_or_features_the_tree_is_a_leaf() {
        let pool = Pool::new(2, Box::new(|| false));
        for (n_rows, n_features) in [(0, 0), (0, 2), (5, 0), (5, 2)] {
            let cuts = Cuts {
                thresholds: vec![vec![0.5]; n_features],
                has_missing: vec![false; n_features],
                categorical: vec![false; n_features],
            };
            let bins = crate::binning::Bins::Owned((0..n_rows).map(|i| i as u8 % 2).collect());
            let binned = Binned {
                n_rows,
                n_features,
                columns: vec![crate::binning::Column::Dense(bins); n_features],
                uncommon: vec![n_rows / 2; n_features],
                cuts: Arc::new(cuts),
            };
            for (q, max_features) in [(1, 2), (3, 2), (1, 1)] {
                let z: Vec<f32> = (0..n_rows * q).map(|k| (k / q % 2) as f32).collect();
                let gradients = || quantise(&pool, &z, q, SplitWeights::Equal, None, None).unwrap();
                let params = GrowParams { min_samples_leaf: 1, max_features, ..PARAMS };
                let mut grower = Grower::new(&binned, params, None).unwrap();
                // On all rows, and on none of them.
                for rows in [None, Some(&[][..])] {
                    let key = Key::new(1);
                    let grown = grower.grow(&pool, &binned, gradients(), rows, None, key).unwrap();
                    let splits = rows.is_none() && n_rows > 0 && n_features > 0;
                    assert_eq!(grown.tree.n_leaves, 1 + usize::from(splits));
                    assert_eq!(grown.leaf_of_row.len(), n_rows);
                    let expected = if rows.is_none() { n_rows as f64 } else { 0.0 };
                    assert_eq!(grown.leaf_weights.iter().sum::<f64>(), expected);
                }
            }
        }
    }
}
