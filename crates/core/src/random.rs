//! Random streams, addressed by their purpose.
//!
//! A stream depends on its key alone: (seed, round, output, purpose, node path or row number). No key
//! contains a strategy, a thread or a machine, so none of these can change a draw.

use crate::comm::check_rows;
use crate::error::Result;
use crate::memory::{collected, zeros};
use crate::parallel::Pool;
use crate::select::bound_of_smallest;

/// What a stream is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// The projection matrix of a round.
    Projection = 1,
    /// The features considered in a node.
    Features = 2,
    /// The rows a tree is grown on.
    Rows = 3,
    /// The rows set apart for validation.
    Validation = 4,
}

/// An address in the space of random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    /// The key of a seed.
    pub fn new(seed: u64) -> Key {
        Key(mix(seed))
    }

    /// The key of a round, an output (0 unless each output has its own trees) and a purpose.
    pub fn of(seed: u64, round: u64, output: u64, purpose: Purpose) -> Key {
        Key::new(seed).with(round).with(output).with(purpose as u64)
    }

    /// A key below this one.
    #[inline]
    pub fn with(self, word: u64) -> Key {
        Key(mix(self.0.rotate_left(17) ^ mix(word ^ 0x5851_f42d_4c95_7f2d)))
    }

    /// The number at `index` (a row, a feature) below this key.
    #[inline]
    pub fn number(self, index: u64) -> u64 {
        self.with(index).0
    }

    /// A sequence of numbers starting at this key.
    pub fn stream(self) -> Stream {
        Stream(self.0)
    }
}

/// A sequence of random numbers (SplitMix64).
pub struct Stream(u64);

impl Stream {
    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        finalise(self.0)
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in 0..n.
    pub fn below(&mut self, n: usize) -> usize {
        // The bias of the multiply-shift is below n / 2⁶⁴.
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Two independent standard normal numbers (Marsaglia's polar method).
    pub fn normals(&mut self) -> (f64, f64) {
        loop {
            let (u, v) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let s = u * u + v * v;
            if s > 0.0 && s < 1.0 {
                let factor = (-2.0 * crate::math::ln(s) / s).sqrt();
                return (u * factor, v * factor);
            }
        }
    }
}

fn mix(word: u64) -> u64 {
    finalise(word.wrapping_add(0x9e37_79b9_7f4a_7c15))
}

#[inline]
fn finalise(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Chooses the `count` rows of all machines with the smallest random numbers below `key`, and returns
/// those of this machine, ascending.
///
/// Rows have global numbers, so the choice does not depend on the machine that holds them. Different
/// rows have different random numbers, since [`Key::number`] maps no two indices to one.
pub fn choose_rows(pool: &Pool, key: Key, global_rows: &[u64], count: usize) -> Result<Vec<u32>> {
    check_rows(global_rows.len())?;
    let draws: Vec<u64> = collected(global_rows.len(), global_rows.iter().map(|&g| key.number(g)))?;
    let Some(bound) = bound_of_smallest(pool, &draws, count)? else { return Ok(Vec::new()) };
    let n_chosen = draws.iter().filter(|&&draw| draw <= bound).count();
    // Every row is written, and kept if it is chosen: no branch to mispredict.
    let mut chosen = zeros::<u32>(n_chosen + 1)?;
    let mut n = 0;
    for (row, &draw) in draws.iter().enumerate() {
        chosen[n] = row as u32;
        n += usize::from(draw <= bound);
    }
    chosen.truncate(n_chosen);
    Ok(chosen)
}

/// Moves `count` random elements of `order` to its front, in random order (Fisher-Yates).
pub fn shuffle_prefix(key: Key, order: &mut [u32], count: usize) {
    let mut stream = key.stream();
    let n = order.len();
    for i in 0..count.min(n) {
        order.swap(i, i + stream.below(n - i));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_by_every_part() {
        let base = Key::of(1, 2, 3, Purpose::Rows);
        assert_ne!(base, Key::of(2, 1, 3, Purpose::Rows));
        assert_ne!(base, Key::of(1, 3, 2, Purpose::Rows));
        assert_ne!(base, Key::of(1, 2, 3, Purpose::Features));
        assert_ne!(base.with(0), base.with(1));
    }

    #[test]
    fn normals_have_the_right_moments() {
        let mut stream = Key::new(7).stream();
        let draws: Vec<f64> =
            (0..50_000).flat_map(|_| <[f64; 2]>::from(stream.normals())).collect();
        let n = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / n;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / n;
        let fourth = draws.iter().map(|x| x.powi(4)).sum::<f64>() / n;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03 && (fourth - 3.0).abs() < 0.2);
    }

    #[test]
    fn chosen_rows_follow_their_global_numbers() {
        let key = Key::new(3);
        let choose = |rows: &[u64]| choose_rows(&Pool::serial(), key, rows, 30).unwrap();
        let all: Vec<u64> = (0..100).collect();
        let chosen = choose(&all);
        let reversed: Vec<u64> = (0..100).rev().collect();
        let again: Vec<u32> = choose(&reversed).into_iter().rev().map(|i| 99 - i).collect();
        assert_eq!(chosen, again);
        assert_eq!(chosen.len(), 30);
        let spread = crate::select::tests::on_machines(2, 100, |rank, pool| {
            choose_rows(pool, key, &all[rank * 50..][..50], 30).unwrap()
        });
        let there = spread[1].iter().map(|i| i + 50);
        assert_eq!(spread[0].iter().copied().chain(there).collect::<Vec<_>>(), chosen);
    }
}
