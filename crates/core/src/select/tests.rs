//! Tests of quantiles over rows.

use super::*;
use crate::comm::Comm;
use std::sync::{Arc, Barrier, Mutex};

/// Machines that are threads of one process.
pub struct Together {
    barrier: Barrier,
    sums: Mutex<(Vec<i64>, Vec<f64>)>,
}

impl Comm for Together {
    fn reduce(&self, sums: &mut [&mut [i64]], maxima: &mut [f64]) -> Result<()> {
        let lock = || self.sums.lock().unwrap();
        {
            let mut all = lock();
            all.0.resize(sums.iter().map(|piece| piece.len()).sum(), 0);
            all.1.resize(maxima.len(), f64::NEG_INFINITY);
            let mine = sums.iter().flat_map(|piece| piece.iter());
            all.0.iter_mut().zip(mine).for_each(|(a, s)| *a = a.wrapping_add(*s));
            all.1.iter_mut().zip(&*maxima).for_each(|(a, m)| *a = a.max(*m));
        }
        self.barrier.wait();
        let mine = sums.iter_mut().flat_map(|piece| piece.iter_mut());
        mine.zip(&lock().0).for_each(|(s, a)| *s = *a);
        maxima.copy_from_slice(&lock().1);
        if self.barrier.wait().is_leader() {
            *lock() = Default::default();
        }
        self.barrier.wait();
        Ok(())
    }
}

/// Runs `work(rank, pool)` on `size` machines, which hold `n_rows` rows together.
pub fn on_machines<R: Send>(
    size: usize,
    n_rows: usize,
    work: impl Fn(usize, &Pool) -> R + Sync,
) -> Vec<R> {
    let comm: Arc<dyn Comm> =
        Arc::new(Together { barrier: Barrier::new(size), sums: Mutex::default() });
    std::thread::scope(|scope| {
        let start = |rank| {
            let (comm, work) = (Arc::clone(&comm), &work);
            scope.spawn(move || work(rank, &Pool::serial().among(comm, n_rows)))
        };
        let threads: Vec<_> = (0..size).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn quantiles_are_those_of_one_machine_with_all_rows() {
    let mut stream = crate::random::Key::new(8).stream();
    let items: Vec<(f64, i64)> = (0..500)
        .map(|_| match stream.below(8) {
            0 => (0.0, 3),
            1 => (-0.0, 1),
            2 => (1e-310, 2),
            _ => (stream.normals().0 * 10f64.powi(stream.below(40) as i32 - 20), 1),
        })
        .collect();
    for level in [0.0, 0.1, 0.5, 0.77, 1.0] {
        let target = |_: usize, [total, _]: [i64; 2]| (total as f64 * level) as i128;
        let queries = |part: &[(f64, i64)]| Ok(vec![Query::of(part.to_vec()), Query::default()]);
        let pool = Pool::serial();
        let alone = for_outputs(&pool, 3..5, 500, 2, |_| queries(&items), target).unwrap();
        for cuts in [vec![0, 500], vec![0, 123, 500], vec![0, 0, 400, 500]] {
            let spread = on_machines(cuts.len() - 1, 500, |rank, pool| {
                let part = &items[cuts[rank]..cuts[rank + 1]];
                for_outputs(pool, 3..5, part.len(), 2, |_| queries(part), target).unwrap()
            });
            let bits = |v: &Vec<Vec<f64>>| -> Vec<u64> {
                v.iter().flatten().map(|v| v.to_bits()).collect()
            };
            spread.iter().for_each(|found| assert_eq!(bits(found), bits(&alone)));
        }
    }
}

#[test]
fn outputs_without_queries_have_no_answers() {
    let found = on_machines(2, 10, |_, pool| {
        for_outputs(pool, 0..3, 5, 0, |_| Ok(Vec::new()), |_, _| 1).unwrap()
    });
    assert!(found.iter().all(|answers| *answers == vec![Vec::<f64>::new(); 3]));
}

#[test]
fn the_bound_parts_the_smallest_numbers_from_the_others() {
    let key = crate::random::Key::new(1);
    let numbers: Vec<u64> = (0..300).map(|i| key.number(i)).collect();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    for count in [0usize, 1, 17, 300] {
        let bounds = on_machines(3, 300, |rank, pool| {
            bound_of_smallest(pool, &numbers[rank * 100..(rank + 1) * 100], count).unwrap()
        });
        for bound in bounds {
            let chosen = bound.map_or(0, |b| sorted.iter().filter(|&&n| n <= b).count());
            assert_eq!(chosen, count);
        }
    }
}
