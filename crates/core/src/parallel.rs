//! A thread pool in which the calling thread takes part.
//!
//! Between two pieces of work the caller checks whether it should stop, so that Ctrl-C takes effect
//! after one piece of work, even deep inside a round. Jobs too small to be worth a wake-up run in the
//! caller alone. No result may depend on which thread runs which piece: pieces either own their
//! output or are merged by exact sums.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::comm::{Comm, Others};
use crate::error::{Error, Result};
use crate::lowlevel::{MAX_WORKERS, Workers};

/// Elementary operations below which waking another thread costs more than it saves.
const SMALL_JOB: usize = 20_000;
/// Elementary operations that one piece of work should not exceed, so that an interrupt takes effect
/// soon.
const LARGE_PIECE: usize = 40_000_000;
/// How often the caller checks for an interrupt.
const POLL_EVERY: Duration = Duration::from_millis(40);

/// Returns whether the user has asked to stop.
pub type Interrupt = Box<dyn Fn() -> bool + Send + Sync>;

/// A set of worker threads plus the caller, and the other machines that hold rows, if there are any.
pub struct Pool {
    threads: Arc<Threads>,
    others: Option<Others>,
}

struct Threads {
    number: usize,
    /// Started by the first job that is worth it; `None` if the system refused to start them.
    workers: OnceLock<Option<Workers>>,
    interrupt: Option<Interrupt>,
}

thread_local! {
    /// When this thread last checked for an interrupt. The pool cannot keep this time: only one thread
    /// of a process receives signals, and checks by other threads must not replace its checks.
    static LAST_POLL: Cell<Option<Instant>> = const { Cell::new(None) };
}

impl Pool {
    /// A pool of `threads` threads, the caller included: at least one, at most [`MAX_WORKERS`] + 1.
    pub fn new(threads: usize, interrupt: Interrupt) -> Pool {
        let number = threads.clamp(1, MAX_WORKERS + 1);
        Pool::of(Threads { number, workers: OnceLock::new(), interrupt: Some(interrupt) })
    }

    fn of(threads: Threads) -> Pool {
        Pool { threads: Arc::new(threads), others: None }
    }

    /// The same threads for one part of `n_rows` rows; sums over rows go through `comm`.
    pub fn among(&self, comm: Arc<dyn Comm>, n_rows: usize) -> Pool {
        Pool { threads: Arc::clone(&self.threads), others: Some(Others { comm, n_rows }) }
    }

    /// The other machines, if rows are spread over several.
    pub fn others(&self) -> Option<&Others> {
        self.others.as_ref()
    }

    /// The number of rows on all machines, given that this one has `n`.
    pub fn all_rows(&self, n: usize) -> usize {
        self.others.as_ref().map_or(n, |others| others.n_rows)
    }

    /// A pool without threads of its own and without interrupts: for tests, tiny jobs, and jobs within
    /// jobs.
    pub fn serial() -> Pool {
        Pool::of(Threads { number: 1, workers: OnceLock::new(), interrupt: None })
    }

    /// Number of threads, the caller included.
    pub fn threads(&self) -> usize {
        self.threads.number
    }

    /// Runs `f` on every item; `work` is a rough guess of the total number of elementary operations.
    pub fn for_each<T, I>(&self, items: I, work: usize, f: impl Fn(T) + Sync) -> Result<()>
    where
        T: Send,
        I: IntoIterator<Item = T>,
        I::IntoIter: Send,
    {
        let queue = Mutex::new(items.into_iter().collect::<VecDeque<T>>());
        let stop = AtomicBool::new(false);
        // The caller begins with the first item, workers with the last: in the next job on the same
        // rows or features, they find much of them in their caches.
        let next = |is_caller: bool| {
            let mut queue = queue.lock().unwrap_or_else(|e| e.into_inner());
            if is_caller { queue.pop_front() } else { queue.pop_back() }
        };
        let drain = |is_caller: bool| {
            while !stop.load(Ordering::Relaxed) {
                let Some(item) = next(is_caller) else { break };
                f(item);
                if is_caller && self.interrupted() {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        };
        let workers = if self.threads() > 1 && work >= SMALL_JOB { self.workers() } else { None };
        match workers {
            Some(workers) => {
                let caller = std::thread::current().id();
                workers.run(&|| drain(std::thread::current().id() == caller));
            }
            None => drain(true),
        }
        if stop.into_inner() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Like [`Pool::for_each`], for work that may fail; after a failure no further item is started.
    pub fn try_for_each<T, I>(
        &self,
        items: I,
        work: usize,
        f: impl Fn(T) -> Result<()> + Sync,
    ) -> Result<()>
    where
        T: Send,
        I: IntoIterator<Item = T>,
        I::IntoIter: Send,
    {
        let failure = OnceLock::new();
        self.for_each(items, work, |item| {
            if failure.get().is_none()
                && let Err(error) = f(item)
            {
                let _ = failure.set(error);
            }
        })?;
        failure.into_inner().map_or(Ok(()), Err)
    }

    /// Like [`Pool::map`], for work that may fail.
    pub fn try_map<T, R, I>(
        &self,
        items: I,
        work: usize,
        f: impl Fn(T) -> Result<R> + Sync,
    ) -> Result<Vec<R>>
    where
        T: Send,
        R: Send,
        I: IntoIterator<Item = T>,
        I::IntoIter: Send,
    {
        self.map(items, work, f)?.into_iter().collect()
    }

    /// Like [`Pool::for_each`], collecting what `f` returns in the order of the items.
    pub fn map<T, R, I>(&self, items: I, work: usize, f: impl Fn(T) -> R + Sync) -> Result<Vec<R>>
    where
        T: Send,
        R: Send,
        I: IntoIterator<Item = T>,
        I::IntoIter: Send,
    {
        let results: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
        self.for_each(items.into_iter().enumerate(), work, |(index, item)| {
            let result = f(item);
            results.lock().unwrap_or_else(|e| e.into_inner()).push((index, result));
        })?;
        let mut results = results.into_inner().unwrap_or_else(|e| e.into_inner());
        results.sort_by_key(|(index, _)| *index);
        Ok(results.into_iter().map(|(_, result)| result).collect())
    }

    /// Like [`Pool::try_for_each`], with a state that `f` adds to: one for each thread that takes part,
    /// made by `start`. Returns the states in no particular order.
    pub fn fold<T, S, I>(
        &self,
        items: I,
        work: usize,
        start: impl Fn() -> Result<S> + Sync,
        f: impl Fn(&mut S, T) -> Result<()> + Sync,
    ) -> Result<Vec<S>>
    where
        T: Send,
        S: Send,
        I: IntoIterator<Item = T>,
        I::IntoIter: Send,
    {
        let idle: Mutex<Vec<S>> = Mutex::new(Vec::new());
        let states = || idle.lock().unwrap_or_else(|e| e.into_inner());
        self.try_for_each(items, work, |item| {
            let waiting = states().pop();
            let mut state = waiting.map_or_else(&start, Ok)?;
            f(&mut state, item)?;
            states().push(state);
            Ok(())
        })?;
        Ok(idle.into_inner().unwrap_or_else(|e| e.into_inner()))
    }

    /// Cuts `0..n` into ranges for one job: a few per thread, so that no thread is waited for long.
    pub fn row_ranges(&self, n: usize, work_per_row: usize) -> Vec<std::ops::Range<usize>> {
        let pieces = self.pieces(n * work_per_row);
        let pieces = pieces.min(n.max(1));
        (0..pieces).map(|i| n * i / pieces..n * (i + 1) / pieces).collect()
    }

    /// How many pieces a job should have: one if the job is small, otherwise one to four for each thread
    /// as it grows. A job so large that an interrupt would wait for such pieces has more, whatever the
    /// number of threads.
    pub fn pieces(&self, work: usize) -> usize {
        let threads = self.threads();
        let shared = match threads {
            2.. if work >= SMALL_JOB => {
                (work / SMALL_JOB).next_multiple_of(threads).clamp(threads, 4 * threads)
            }
            _ => 1,
        };
        shared.max(work / LARGE_PIECE)
    }

    fn workers(&self) -> Option<&Workers> {
        let start = || Workers::start(self.threads() - 1).ok();
        self.threads.workers.get_or_init(start).as_ref()
    }

    /// Whether the user has asked to stop. Only the thread that called the pool may ask.
    pub fn interrupted(&self) -> bool {
        let Some(interrupt) = &self.threads.interrupt else { return false };
        let last = LAST_POLL.get();
        if last.is_some_and(|last| last.elapsed() < POLL_EVERY) {
            return false;
        }
        LAST_POLL.set(Some(Instant::now()));
        interrupt()
    }
}

/// Cuts the first `n` elements off a slice, for a piece of work that has them to itself.
#[inline]
pub fn take_front<'a, T>(rest: &mut &'a mut [T], n: usize) -> &'a mut [T] {
    let Some(front) = rest.split_off_mut(..n) else { unreachable!("pieces make up the whole") };
    front
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_visited_once_and_results_keep_their_order() {
        let pool = Pool::new(3, Box::new(|| false));
        let squares = pool.map(0..1000usize, usize::MAX, |i| i * i).unwrap();
        assert_eq!(squares, (0..1000).map(|i| i * i).collect::<Vec<_>>());
    }

    #[test]
    fn the_caller_begins_with_the_first_item_and_workers_with_the_last() {
        let pool = Pool::new(2, Box::new(|| false));
        let caller = std::thread::current().id();
        let done = Mutex::new([Vec::new(), Vec::new()]);
        let take = |i: usize| {
            let is_worker = usize::from(std::thread::current().id() != caller);
            done.lock().unwrap()[is_worker].push(i);
            // Until both have an item.
            while done.lock().unwrap().iter().any(Vec::is_empty) {
                std::thread::yield_now();
            }
        };
        pool.for_each(0..20, usize::MAX, take).unwrap();
        let [callers, workers] = done.into_inner().unwrap();
        assert!(callers.is_sorted() && callers[0] == 0);
        assert!(workers.is_sorted_by(|a, b| a > b) && workers[0] == 19);
    }

    #[test]
    fn every_thread_has_as_many_pieces() {
        for threads in [2, 3, 5] {
            let pool = Pool::new(threads, Box::new(|| false));
            for work in (SMALL_JOB..30 * SMALL_JOB).step_by(SMALL_JOB / 2) {
                assert!(pool.pieces(work).is_multiple_of(threads));
            }
        }
    }

    #[test]
    fn an_interrupt_stops_the_job() {
        let pool = Pool::new(2, Box::new(|| true));
        let slow = |_| std::thread::sleep(Duration::from_millis(5));
        assert_eq!(pool.for_each(0..100_000, usize::MAX, slow), Err(Error::Interrupted));
    }

    /// Only one thread of a process receives signals: checks by others must not replace its checks.
    #[test]
    fn a_thread_looks_for_interrupts_right_after_another_did() {
        let looked = std::sync::Arc::new(Mutex::new(Vec::new()));
        let seen = looked.clone();
        let look = move || {
            seen.lock().unwrap().push(std::thread::current().id());
            false
        };
        let pool = Pool::new(1, Box::new(look));
        let job = || {
            pool.for_each(0..1, 1, |_| ()).unwrap();
            std::thread::current().id()
        };
        let first = std::thread::scope(|scope| scope.spawn(job).join().unwrap());
        let second = std::thread::scope(|scope| scope.spawn(job).join().unwrap());
        assert_eq!(*looked.lock().unwrap(), [first, second]);
    }

    #[test]
    fn a_failure_ends_the_job() {
        let pool = Pool::new(2, Box::new(|| false));
        let fail = |i: usize| if i == 7 { Err(Error::OutOfMemory(i)) } else { Ok(i) };
        let nothing = |i| fail(i).map(|_| ());
        assert_eq!(pool.try_for_each(0..100, usize::MAX, nothing), Err(Error::OutOfMemory(7)));
        assert_eq!(pool.try_map(0..100, usize::MAX, fail), Err(Error::OutOfMemory(7)));
        assert_eq!(pool.try_map(0..3, usize::MAX, fail), Ok(vec![0, 1, 2]));
    }

    #[test]
    fn a_fold_has_at_most_one_state_for_each_thread() {
        let pool = Pool::new(3, Box::new(|| false));
        let add = |sum: &mut usize, i: usize| {
            *sum += i;
            Ok(())
        };
        let sums = pool.fold(0..1000, usize::MAX, || Ok(0), add).unwrap();
        assert!(sums.len() <= 3 && sums.iter().sum::<usize>() == 499_500, "{sums:?}");
        let fail = || Err::<usize, _>(Error::OutOfMemory(7));
        assert_eq!(pool.fold(0..10, usize::MAX, fail, add), Err(Error::OutOfMemory(7)));
    }

    #[test]
    fn a_pool_has_no_more_threads_than_workers_can_count() {
        let pool = |threads| Pool::new(threads, Box::new(|| false));
        assert_eq!(
            [0, 1, 65_536, 65_537, usize::MAX].map(|n| pool(n).threads()),
            [1, 1, 65_536, 65_536, 65_536]
        );
        assert_eq!(pool(usize::MAX).pieces(SMALL_JOB), 65_536);
    }

    #[test]
    fn ranges_cover_all_rows() {
        let pool = Pool::new(2, Box::new(|| false));
        for n in [0, 1, 7, 100_000] {
            let ranges = pool.row_ranges(n, 100);
            assert_eq!(ranges.iter().map(|r| r.len()).sum::<usize>(), n);
        }
    }
}
