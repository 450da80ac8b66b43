//! Threads that wait for a job, and the lending of a borrowed job to them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::TryLockError;
use std::time::{Duration, Instant};

// Loom tries every order of what threads do; its types then stand in for those of the standard
// library.
#[cfg(loom)]
use loom::{cell::UnsafeCell, hint, sync, thread};
#[cfg(not(loom))]
use std::{hint, sync, thread};

use sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use sync::{Arc, Condvar, Mutex};

type Job = *const (dyn Fn() + Sync);

/// How long an idle worker stays awake before it goes to sleep: the next job of a round usually
/// comes sooner.
const AWAKE: Duration = Duration::from_micros(500);
/// Spins between two looks at the clock, which cost as much as several spins.
const SPINS: u32 = 64;

/// The interface of loom's cell.
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

/// `Shared::state` packs three fields: the number of workers inside the job (16 bits), whether the
/// job may still be entered (one bit), and the number of the job.
const OPEN: u64 = 1 << 16;
const INSIDE: u64 = OPEN - 1;
const NUMBER: u32 = 17;

/// The most workers that can be inside a job: as many as the 16 bits of the state can count.
pub const MAX_WORKERS: usize = INSIDE as usize;

type Panic = Box<dyn Any + Send>;

struct Shared {
    state: AtomicU64,
    /// Written only while no job is open and no worker is inside; read only from inside.
    job: UnsafeCell<Option<Job>>,
    sleepers: AtomicUsize,
    stop: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
    /// The panic of a worker in the current job.
    panic: Mutex<Option<Panic>>,
}

// SAFETY: `job` is only accessed as its comment says, and `state` orders the accesses.
unsafe impl Sync for Shared {}
// SAFETY: the pointer in `job` is only dereferenced while its job is open, on any thread.
unsafe impl Send for Shared {}

/// Threads that wait for jobs: awake for a moment, then asleep.
pub struct Workers {
    shared: Arc<Shared>,
    /// Held while a job runs; a second caller finds the workers busy.
    caller: Mutex<()>,
}

impl Workers {
    /// Starts `n` threads, at most [`MAX_WORKERS`].
    pub fn start(n: usize) -> std::io::Result<Workers> {
        if n > MAX_WORKERS {
            let message = format!("cannot start {n} threads; ask for at most {MAX_WORKERS}");
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, message));
        }
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

    /// Runs `job` in the caller and in every worker that enters before the caller is done. `job`
    /// must take its pieces from a shared queue and return when none are left. If the workers are
    /// busy with the job of another thread, the caller runs `job` alone. If `job` panics, so does
    /// this function, with the panic of the caller if there are several.
    pub fn run(&self, job: &(dyn Fn() + Sync)) {
        let alone = match self.caller.try_lock() {
            Ok(alone) => alone,
            // The lock guards no data.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                job();
                return;
            }
        };
        let shared = &*self.shared;
        // SAFETY: only the lifetime changes. Workers call the job only from inside it, and `Closing`
        // waits until the last one has left, before the borrow ends, also if `job` panics here.
        let lent = unsafe {
            std::mem::transmute::<*const (dyn Fn() + Sync + '_), Job>(std::ptr::from_ref(job))
        };
        // SAFETY: no job is open and no worker is inside, since the last `Closing` waited for them.
        shared.job.with_mut(|place| unsafe { *place = Some(lent) });
        let number = (shared.state.load(Ordering::Relaxed) >> NUMBER) + 1;
        shared.state.store((number << NUMBER) | OPEN, Ordering::SeqCst);
        let closing = Closing(shared);
        if shared.sleepers.load(Ordering::SeqCst) > 0 {
            let _guard = shared.lock.lock().unwrap_or_else(|e| e.into_inner());
            shared.wake.notify_all();
        }
        let own_panic = catch_unwind(AssertUnwindSafe(job)).err();
        drop(closing);
        // Taken in any case: the next job must not find it.
        let panic_of_worker = shared.panic.lock().unwrap_or_else(|e| e.into_inner()).take();
        drop(alone);
        if let Some(panic) = own_panic.or(panic_of_worker) {
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

/// Closes the job and waits until the last worker has left it, when dropped.
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
    let mut idle = Idle::start();
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
                idle = Idle::start();
            }
            continue;
        }
        if idle.stays_awake() {
            hint::spin_loop();
            continue;
        }
        let guard = shared.lock.lock().unwrap_or_else(|e| e.into_inner());
        shared.sleepers.fetch_add(1, Ordering::SeqCst);
        // Look once more: a caller that published its job before we counted as asleep wakes nobody.
        let state = shared.state.load(Ordering::SeqCst);
        let no_job = state & OPEN == 0 || state >> NUMBER == done;
        if no_job && !shared.stop.load(Ordering::SeqCst) {
            drop(shared.wake.wait(guard).unwrap_or_else(|e| e.into_inner()));
        }
        shared.sleepers.fetch_sub(1, Ordering::SeqCst);
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        idle = Idle::start();
    }
}

/// How long a worker has had nothing to do.
struct Idle {
    since: Instant,
    spins: u32,
}

impl Idle {
    fn start() -> Idle {
        Idle { since: Instant::now(), spins: 0 }
    }

    fn stays_awake(&mut self) -> bool {
        self.spins += 1;
        if cfg!(any(loom, miri)) {
            return self.spins < 2;
        }
        !self.spins.is_multiple_of(SPINS) || self.since.elapsed() < AWAKE
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
        // The worker that panicked still takes part: the caller waits for it.
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
    fn when_caller_and_worker_panic_the_next_job_knows_of_neither() {
        let workers = Workers::start(1).unwrap();
        let main = std::thread::current().id();
        let entered = AtomicBool::new(false);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            workers.run(&|| {
                if std::thread::current().id() != main {
                    entered.store(true, Ordering::SeqCst);
                    panic!("in a worker");
                }
                while !entered.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                panic!("in the caller");
            });
        }));
        assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&"in the caller"));
        let done = AtomicUsize::new(0);
        workers.run(&|| {
            done.fetch_add(1, Ordering::SeqCst);
        });
        assert!(done.into_inner() >= 1);
    }

    #[test]
    fn more_workers_than_the_state_can_count_are_refused() {
        let refused = Workers::start(MAX_WORKERS + 1).err().unwrap();
        assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
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
