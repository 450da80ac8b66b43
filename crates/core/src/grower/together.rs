//! Growing on several threads, each with leaves of its own.
//!
//! Threads that share the features of a small node mostly wait for each other. So once all leaves are
//! small, every thread takes one from the queue, expands it alone, and takes the next. Some leaves are
//! expanded ahead of time, but they are split in the same order as by one thread.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::draft::Draft;
use super::histograms::FreeHistograms;
use super::queue::{LeafQueue, OpenLeaf, Rank};
use super::search::Search;
use crate::error::{Error, Result};
use crate::histogram::Lane;
use crate::parallel::Pool;
use crate::partition::RowSlice;

/// Elementary operations of summing a node up to which its leaf is small.
const SMALL_LEAF: usize = 1 << 20;
/// Elementary operations of summing all leaves below which one thread is enough.
const SMALL_TREE: usize = 10_000;

/// A tree that several threads work on.
struct Shared<'r> {
    draft: Draft,
    queue: LeafQueue,
    /// Rows of the leaves that wait to be expanded, by where they start.
    rows: BTreeMap<usize, RowSlice<'r>>,
    /// Leaves that a thread is expanding.
    taken: Vec<Rank>,
    /// How it ended.
    end: Option<Result<()>>,
}

/// A leaf to be expanded by the thread that took it.
struct Taken<'r> {
    leaf: OpenLeaf,
    rows: RowSlice<'r>,
    /// Whether its children may be split.
    searches: bool,
}

impl<T: Lane> Search<'_, T> {
    /// Whether it is time for [`Search::grow_together`]: all leaves are small, and there are enough for
    /// all threads. After the next split, there may be `n_more`.
    pub(super) fn has_small_leaves(&self, queue: &LeafQueue, n_more: usize) -> bool {
        let row_work = self.plan.usable.len() * self.layout.width;
        let work = || queue.iter().map(|leaf| leaf.node.rows.len() * row_work);
        self.pool.threads() > 1
            && self.pool.threads() <= n_likely(n_more)
            && self.subtracts
            && !self.has_ranks()
            && queue.len() >= self.pool.threads()
            && work().all(|work| work <= SMALL_LEAF)
            && work().sum::<usize>() >= SMALL_TREE
    }

    /// Grows the tree to its end.
    pub(super) fn grow_together(
        &self,
        draft: Draft,
        queue: LeafQueue,
        rows: RowSlice<'_>,
        free: &FreeHistograms,
    ) -> Result<(Draft, LeafQueue)> {
        let mut starts: Vec<usize> = queue.iter().map(|leaf| leaf.node.rows.start).collect();
        starts.sort_unstable();
        let (mut rest, mut slices) = (rows, BTreeMap::new());
        for &start in starts.iter().rev() {
            let [before, slice] = rest.cut(start);
            slices.insert(start, slice);
            rest = before;
        }
        let shared = Shared { draft, queue, rows: slices, taken: Vec::new(), end: None };
        let shared = Together { tree: Mutex::new(shared), n_changes: AtomicUsize::new(0) };
        let serial = Pool::serial();
        let alone = Search { pool: &serial, ..*self };
        let caller = std::thread::current().id();
        // As many items as threads: each is the work of one thread to the end.
        self.pool.for_each(0..self.pool.threads(), usize::MAX, |_| {
            let is_caller = std::thread::current().id() == caller;
            shared.work(&alone, free, || is_caller && self.pool.interrupted());
        })?;
        let Shared { draft, queue, end, .. } =
            shared.tree.into_inner().unwrap_or_else(PoisonError::into_inner);
        end.unwrap_or(Ok(())).map(|()| (draft, queue))
    }
}

/// A tree that several threads work on, and how often it has changed.
struct Together<'r> {
    tree: Mutex<Shared<'r>>,
    n_changes: AtomicUsize,
}

impl<'r> Together<'r> {
    fn tree(&self) -> MutexGuard<'_, Shared<'r>> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Expands leaves until the tree is done.
    fn work<T: Lane>(
        &self,
        search: &Search<'_, T>,
        free: &FreeHistograms,
        interrupted: impl Fn() -> bool,
    ) {
        let _leaving = Leaving(self);
        loop {
            let seen = self.n_changes.load(Ordering::Acquire);
            let next = self.tree().next(search, free);
            let expanded = match next {
                Ok(Next::Expand(_)) if interrupted() => Err(Error::Interrupted),
                Ok(Next::Expand(taken)) => search.expand_alone(*taken, free),
                Ok(Next::Wait) => {
                    self.wait(seen);
                    continue;
                }
                Ok(Next::End) => return,
                Err(error) => Err(error),
            };
            let mut tree = self.tree();
            match expanded {
                Ok(taken) => tree.put_back(taken),
                Err(error) => tree.end = Some(Err(error)),
            }
            self.n_changes.fetch_add(1, Ordering::Release);
        }
    }

    /// Waits until the tree has changed.
    fn wait(&self, seen: usize) {
        let mut spins = 0usize;
        while self.n_changes.load(Ordering::Acquire) == seen {
            spins += 1;
            if spins.is_multiple_of(256) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

/// A thread that leaves for any reason, a panic too, takes the others along: they must not wait for a
/// leaf that it took.
struct Leaving<'a, 'r>(&'a Together<'r>);

impl Drop for Leaving<'_, '_> {
    fn drop(&mut self) {
        self.0.tree().end.get_or_insert(Ok(()));
        self.0.n_changes.fetch_add(1, Ordering::Release);
    }
}

impl<'r> Shared<'r> {
    /// Splits leaves as far as they are expanded. Returns the next leaf to expand: one that is likely
    /// to be split.
    fn next<T: Lane>(&mut self, search: &Search<'_, T>, free: &FreeHistograms) -> Result<Next<'r>> {
        if self.end.is_some() {
            return Ok(Next::End);
        }
        let max_leaves = search.params.max_leaf_nodes;
        while self.draft.n_leaves() < max_leaves {
            let Some(mut leaf) = self.queue.pop_expanded(&self.taken) else { break };
            free.put(leaf.histogram.take())?;
            for (child, outcome) in self.draft.split(leaf)? {
                self.queue.push(child, outcome, free)?;
            }
        }
        let nothing_left = self.queue.len() == 0 && self.taken.is_empty();
        if self.draft.n_leaves() == max_leaves || nothing_left {
            return Ok(Next::End);
        }
        let n_more = max_leaves - self.draft.n_leaves() - 1;
        let n_free = n_likely(n_more).saturating_sub(self.taken.len());
        let Some(leaf) = self.queue.pop_unexpanded(n_free) else { return Ok(Next::Wait) };
        let Some(rows) = self.rows.remove(&leaf.node.rows.start) else {
            unreachable!("a leaf that was not expanded has its rows")
        };
        self.taken.push(leaf.rank());
        Ok(Next::Expand(Box::new(Taken { leaf, rows, searches: n_more > 0 })))
    }

    /// Takes back a leaf that has been expanded.
    fn put_back(&mut self, Taken { leaf, rows, .. }: Taken<'r>) {
        let rank = leaf.rank();
        self.taken.retain(|taken| *taken != rank);
        if let Some(expansion) = &leaf.expansion {
            for part in rows.cut(expansion.children[1].rows.start) {
                self.rows.insert(part.start(), part);
            }
        }
        self.queue.put_back([leaf]);
    }
}

/// How many of the best leaves are likely to be split, if there may be `n_more` splits after the next.
fn n_likely(n_more: usize) -> usize {
    n_more / 2 + 1
}

/// What a thread does next.
enum Next<'r> {
    Expand(Box<Taken<'r>>),
    Wait,
    End,
}

impl<T: Lane> Search<'_, T> {
    fn expand_alone<'r>(&self, mut taken: Taken<'r>, free: &FreeHistograms) -> Result<Taken<'r>> {
        let Taken { leaf, rows, searches } = &mut taken;
        leaf.expansion = Some(Box::new(self.split_rows(leaf, rows)?));
        if *searches {
            self.search_children(rows, std::slice::from_mut(leaf), free)?;
        }
        Ok(taken)
    }
}
