//! The pool's threads in all orders: jobs are lent, done and taken back without a race or a deadlock.
#![cfg(loom)]

#[allow(dead_code, missing_docs)]
#[path = "../../../../crates/core/src/lowlevel/workers.rs"]
mod workers;

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicUsize, Ordering};
    use loom::thread;

    use crate::workers::Workers;

    fn every_order(test: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(3));
        builder.check(test);
    }

    /// What a job looks at is lent: the caller may change it before and after, and nobody looks
    /// then. (Loom's cell panics if someone does.)
    struct Lent(UnsafeCell<usize>);
    unsafe impl Sync for Lent {}
    unsafe impl Send for Lent {}

    impl Lent {
        fn look(&self) -> usize {
            self.0.with(|value| unsafe { *value })
        }

        fn change(&self, to: usize) {
            self.0.with_mut(|value| unsafe { *value = to });
        }
    }

    fn take_pieces(next: &AtomicUsize, done: &AtomicUsize, n: usize) {
        while next.fetch_add(1, Ordering::Relaxed) < n {
            done.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn every_piece_is_done_once_and_what_was_lent_comes_back() {
        every_order(|| {
            let workers = Workers::start(1).unwrap();
            let lent = Lent(UnsafeCell::new(0));
            for round in 1..3 {
                lent.change(round);
                let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
                workers.run(&|| {
                    assert_eq!(lent.look(), round);
                    take_pieces(&next, &done, 2);
                });
                assert_eq!(done.load(Ordering::Relaxed), 2);
            }
            lent.change(9);
        });
    }

    #[test]
    fn two_workers_share_a_job() {
        every_order(|| {
            let workers = Workers::start(2).unwrap();
            let lent = Lent(UnsafeCell::new(7));
            let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
            workers.run(&|| {
                assert_eq!(lent.look(), 7);
                take_pieces(&next, &done, 1);
            });
            assert_eq!(done.load(Ordering::Relaxed), 1);
            lent.change(9);
        });
    }

    #[test]
    fn two_callers_at_once_each_get_their_job_done() {
        every_order(|| {
            let workers = Arc::new(Workers::start(1).unwrap());
            let others = Arc::clone(&workers);
            let call = |workers: &Workers| {
                let lent = Lent(UnsafeCell::new(3));
                let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
                workers.run(&|| {
                    assert_eq!(lent.look(), 3);
                    take_pieces(&next, &done, 1);
                });
                assert_eq!(done.load(Ordering::Relaxed), 1);
                lent.change(4);
            };
            let other = thread::spawn(move || call(&others));
            call(&workers);
            other.join().unwrap();
        });
    }

    #[test]
    fn a_panic_in_a_worker_reaches_the_caller_and_the_next_job_is_done() {
        every_order(|| {
            let workers = Workers::start(1).unwrap();
            let caller = thread::current().id();
            let entered = AtomicUsize::new(0);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                workers.run(&|| {
                    if thread::current().id() != caller {
                        entered.store(1, Ordering::Relaxed);
                        // (Without the message: there are thousands of orders.)
                        std::panic::resume_unwind(Box::new("in a worker"));
                    }
                });
            }));
            assert_eq!(outcome.is_err(), entered.load(Ordering::Relaxed) == 1);
            let done = AtomicUsize::new(0);
            workers.run(&|| {
                done.fetch_add(1, Ordering::Relaxed);
            });
            assert!(done.load(Ordering::Relaxed) >= 1);
        });
    }

    #[test]
    fn when_caller_and_worker_panic_the_next_job_knows_of_neither() {
        every_order(|| {
            let workers = Workers::start(1).unwrap();
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                workers.run(&|| std::panic::resume_unwind(Box::new("everywhere")));
            }));
            assert!(outcome.is_err());
            workers.run(&|| ());
        });
    }

    #[test]
    fn threads_end_with_the_pool() {
        every_order(|| drop(Workers::start(2).unwrap()));
    }
}
