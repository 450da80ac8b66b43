//! The only `unsafe` code of the project: loops compiled for wider registers, a borrowed job lent to
//! threads, zeroed memory that may be refused, and a file in the place of memory.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{OnceLock, TryLockError};

// Under loom, which tries all orders of what threads do, its types stand for those of the standard
// library.
#[cfg(loom)]
use loom::{cell::UnsafeCell, hint, sync, thread};
#[cfg(not(loom))]
use std::{hint, sync, thread};

use sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use sync::{Arc, Condvar, Mutex};

// ---------------------------------------------------------------------------------- dispatch

/// Instruction sets that kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every processor of the architecture has.
    Portable,
    /// 256-bit vectors.
    Avx2,
    /// 512-bit vectors.
    Avx512,
}

/// The level in use: the processor's best, or lower if `MANYBOOST_SIMD` names a lower one.
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let wanted = match std::env::var("MANYBOOST_SIMD").as_deref() {
            Ok("portable") => Level::Portable,
            Ok("avx2") => Level::Avx2,
            _ => Level::Avx512,
        };
        wanted.min(detect())
    })
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
    {
        Level::Avx512
    } else if is_x86_feature_detected!("avx2") {
        Level::Avx2
    } else {
        Level::Portable
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Portable
}

/// Runs `kernel`, an ordinary loop, compiled for the widest registers in use. The compiler neither
/// reorders float additions nor fuses multiply-adds, so all paths give the same bits.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn widest<R>(kernel: impl FnOnce() -> R) -> R {
    match level() {
        // SAFETY: `level` is at most what the processor was detected to support.
        Level::Avx512 => unsafe { with_avx512(kernel) },
        // SAFETY: as above.
        Level::Avx2 => unsafe { with_avx2(kernel) },
        Level::Portable => kernel(),
    }
}

/// Runs `kernel` as it is: there is one path on this architecture.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn widest<R>(kernel: impl FnOnce() -> R) -> R {
    kernel()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<R>(kernel: impl FnOnce() -> R) -> R {
    kernel()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
fn with_avx512<R>(kernel: impl FnOnce() -> R) -> R {
    kernel()
}

// ---------------------------------------------------------------------------------- memory

/// Numbers, of which all bits zero is one.
///
/// # Safety
///
/// Any pattern of bits, all zeros at least, must be a value.
pub unsafe trait Plain: Copy {}

macro_rules! plain {
    // SAFETY: integers and floats have no invalid bits.
    ($($number:ty),*) => { $(unsafe impl Plain for $number {})* };
}
plain!(u8, u32, u64, i32, i64, f32, f64, usize);

/// A vector of zeros, which the system hands out without touching them; `None` if it has no room.
pub fn zeroed<T: Plain>(len: usize) -> Option<Vec<T>> {
    let layout = Layout::array::<T>(len).ok()?;
    if layout.size() == 0 {
        return Some(Vec::new());
    }
    // SAFETY: the layout is not of size zero. The memory comes from the allocator of vectors, with
    // the layout of `len` elements, all of them values since `T` is plain.
    unsafe {
        let start = alloc_zeroed(layout).cast::<T>();
        (!start.is_null()).then(|| Vec::from_raw_parts(start, len, len))
    }
}

// ---------------------------------------------------------------------------------- threads

type Job = *const (dyn Fn() + Sync);

/// Rounds of waiting, about a tenth of a millisecond, before an idle worker goes to sleep: the next
/// job of a round usually comes sooner.
const SPINS: usize = if cfg!(any(loom, miri)) { 2 } else { 20_000 };

/// A cell that is asked for as loom's is.
#[cfg(not(loom))]
struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    fn with<R>(&self, look: impl FnOnce(*const T) -> R) -> R {
        look(self.0.get())
    }

    fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
        change(self.0.get())
    }
}

/// `state` holds how many workers are inside the job (low bits), whether the job may still be
/// entered, and its number.
const OPEN: u64 = 1 << 16;
const INSIDE: u64 = OPEN - 1;
const NUMBER: u32 = 17;

struct Shared {
    state: AtomicU64,
    /// Written only while no job is open and nobody is inside; read only from inside.
    job: UnsafeCell<Option<Job>>,
    sleepers: AtomicUsize,
    stop: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
    panic: Mutex<Option<Box<dyn std::any::Any + Send>>>,
}

// SAFETY: `job` is only touched as its comment says, ordered by `state`.
unsafe impl Sync for Shared {}
// SAFETY: the pointer in `job` is only dereferenced while its job is open, on any thread.
unsafe impl Send for Shared {}

/// Threads that wait for jobs, briefly awake and then asleep.
pub struct Workers {
    shared: Arc<Shared>,
    /// One job at a time; a second caller finds the workers busy.
    caller: Mutex<()>,
}

impl Workers {
    /// Starts `n` threads.
    pub fn start(n: usize) -> std::io::Result<Workers> {
        let shared = Arc::new(Shared {
            state: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            sleepers: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            lock: Mutex::new(()),
            wake: Condvar::new(),
            panic: Mutex::new(None),
        });
        let workers = Workers { shared, caller: Mutex::new(()) };
        for i in 0..n {
            let shared = Arc::clone(&workers.shared);
            let name = format!("manyboost-{i}");
            thread::Builder::new().name(name).spawn(move || work(&shared))?;
        }
        Ok(workers)
    }

    /// Runs `job` in the caller and in every worker that comes in time. `job` must take its pieces
    /// from a shared queue and return when none are left. When the workers are busy with the job of
    /// another thread, the caller runs it alone.
    pub fn run(&self, job: &(dyn Fn() + Sync)) {
        let alone = match self.caller.try_lock() {
            Ok(alone) => alone,
            // A job that panicked here left nothing behind.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                job();
                return;
            }
        };
        let shared = &*self.shared;
        // SAFETY: only the lifetime changes. Workers call the job only from inside it, and `close`
        // returns after the last one has left, before the borrow ends; also when `job` panics here.
        let lent = unsafe {
            std::mem::transmute::<*const (dyn Fn() + Sync + '_), Job>(std::ptr::from_ref(job))
        };
        // SAFETY: no job is open and nobody is inside: the last `close` saw to it.
        shared.job.with_mut(|place| unsafe { *place = Some(lent) });
        let number = (shared.state.load(Ordering::Relaxed) >> NUMBER) + 1;
        shared.state.store((number << NUMBER) | OPEN, Ordering::SeqCst);
        let closing = Closing(shared);
        if shared.sleepers.load(Ordering::SeqCst) > 0 {
            let _guard = shared.lock.lock().unwrap_or_else(|e| e.into_inner());
            shared.wake.notify_all();
        }
        job();
        drop(closing);
        let panic = shared.panic.lock().unwrap_or_else(|e| e.into_inner()).take();
        drop(alone);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        let _guard = self.shared.lock.lock().unwrap_or_else(|e| e.into_inner());
        self.shared.wake.notify_all();
    }
}

/// Closes the job and waits until the last worker has left it.
struct Closing<'a>(&'a Shared);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_and(!OPEN, Ordering::SeqCst);
        let mut spins = 0usize;
        while self.0.state.load(Ordering::Acquire) & INSIDE != 0 {
            spins += 1;
            if spins.is_multiple_of(1024) { thread::yield_now() } else { hint::spin_loop() }
        }
    }
}

fn work(shared: &Shared) {
    let mut done = 0;
    let mut spins = 0;
    loop {
        let state = shared.state.load(Ordering::Acquire);
        if state & OPEN != 0 && state >> NUMBER != done {
            let entered = shared.state.compare_exchange(
                state,
                state + 1,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if entered.is_ok() {
                done = state >> NUMBER;
                // SAFETY: the job was open when we entered, so it was set before, and the caller
                // keeps it alive until we have left.
                let job = shared.job.with(|place| unsafe { *place });
                let outcome = catch_unwind(AssertUnwindSafe(|| {
                    if let Some(job) = job {
                        // SAFETY: as above.
                        unsafe { (*job)() }
                    }
                }));
                if let Err(panic) = outcome {
                    *shared.panic.lock().unwrap_or_else(|e| e.into_inner()) = Some(panic);
                }
                shared.state.fetch_sub(1, Ordering::Release);
                spins = 0;
            }
            continue;
        }
        spins += 1;
        if spins < SPINS {
            hint::spin_loop();
            continue;
        }
        spins = 0;
        let guard = shared.lock.lock().unwrap_or_else(|e| e.into_inner());
        shared.sleepers.fetch_add(1, Ordering::SeqCst);
        // Look once more: a job published before we counted as asleep wakes nobody.
        let state = shared.state.load(Ordering::SeqCst);
        let idle = state & OPEN == 0 || state >> NUMBER == done;
        if idle && !shared.stop.load(Ordering::SeqCst) {
            drop(shared.wake.wait(guard).unwrap_or_else(|e| e.into_inner()));
        }
        shared.sleepers.fetch_sub(1, Ordering::SeqCst);
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
    }
}

// ---------------------------------------------------------------------------------- files

/// The bytes of a file that belongs to this process alone.
#[derive(Debug)]
pub struct PrivateMap(memmap2::Mmap);

impl PrivateMap {
    /// Maps a file that the caller has just created, at a path that was free, and written. Its name
    /// is removed where the system allows that of an open file, so that nobody can open it.
    pub fn of(file: std::fs::File, path: &std::path::Path) -> std::io::Result<PrivateMap> {
        if cfg!(unix) {
            std::fs::remove_file(path)?;
        }
        // SAFETY: the bytes must not change while they are mapped. The file was created by the
        // caller, who gives up the only handle, which is closed here; on Unix it has no name any
        // more, elsewhere an open mapping keeps it from being cut short, and its name is known to
        // this process alone.
        let map = unsafe { memmap2::Mmap::map(&file) }?;
        Ok(PrivateMap(map))
    }
}

impl std::ops::Deref for PrivateMap {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_done_once_in_many_jobs() {
        let workers = Workers::start(3).unwrap();
        for round in 0..if cfg!(miri) { 20 } else { 2000 } {
            let next = AtomicUsize::new(0);
            let sum = AtomicUsize::new(0);
            workers.run(&|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= 50 {
                        break;
                    }
                    sum.fetch_add(i + round, Ordering::Relaxed);
                }
            });
            assert_eq!(sum.into_inner(), 1225 + 50 * round);
        }
    }

    #[test]
    fn a_panic_in_a_worker_reaches_the_caller_and_the_pool_survives() {
        let workers = Workers::start(2).unwrap();
        let main = std::thread::current().id();
        let entered = AtomicUsize::new(0);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            workers.run(&|| {
                if std::thread::current().id() == main {
                    while entered.load(Ordering::SeqCst) == 0 {
                        std::hint::spin_loop();
                    }
                } else {
                    entered.fetch_add(1, Ordering::SeqCst);
                    panic!("in a worker");
                }
            });
        }));
        assert!(outcome.is_err());
        // A worker comes, and not the caller alone: it waits for one.
        let helped = AtomicBool::new(false);
        workers.run(&|| {
            if std::thread::current().id() != main {
                helped.store(true, Ordering::SeqCst);
            }
            while !helped.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn sleeping_workers_wake_up() {
        let workers = Workers::start(1).unwrap();
        for _ in 0..5 {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let main = std::thread::current().id();
            let helped = AtomicBool::new(false);
            workers.run(&|| {
                if std::thread::current().id() == main {
                    while !helped.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                } else {
                    helped.store(true, Ordering::SeqCst);
                }
            });
            assert!(helped.into_inner());
        }
    }
}
