//! The best outputs of a row, without sorting the others.

use std::cmp::Ordering;

/// An output and its score.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Ranked {
    /// Number of the output.
    pub output: u32,
    /// Its score.
    pub score: f64,
}

impl Ranked {
    /// The higher score first; among equals the lower number.
    pub(crate) fn before(&self, other: &Ranked) -> Ordering {
        // Adding 0 turns −0 into 0, so that both are equal.
        let better = (other.score + 0.0).total_cmp(&(self.score + 0.0));
        better.then(self.output.cmp(&other.output))
    }
}

/// Fills `best`, which is no longer than `scores`, with the outputs of the highest scores, best first.
pub fn rank(scores: &[f64], best: &mut [Ranked]) {
    let of = |(output, &score): (usize, &f64)| Ranked { output: output as u32, score };
    let mut scores = scores.iter().enumerate().map(of);
    for (place, first) in best.iter_mut().zip(&mut scores) {
        *place = first;
    }
    best.sort_unstable_by(Ranked::before);
    let Some(last) = best.len().checked_sub(1) else { return };
    for next in scores {
        // Later outputs lose ties, so one comparison rules out most of them.
        if next.score <= best[last].score {
            continue;
        }
        let place = best.partition_point(|each| each.before(&next).is_lt());
        if place <= last {
            best[place..].rotate_right(1);
            best[place] = next;
        }
    }
}

/// Keeps the `k` best of some outputs, best first.
pub fn keep_best(outputs: &mut Vec<Ranked>, k: usize) {
    if k < outputs.len() {
        outputs.select_nth_unstable_by(k, Ranked::before);
        outputs.truncate(k);
    }
    outputs.sort_unstable_by(Ranked::before);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_to_the_lower_number_and_signs_of_zero_do_not_matter() {
        let scores = [-0.0, 1.0, 0.0, 1.0, -2.0, 3.0, 0.0];
        let order = [5, 1, 3, 0, 2, 6, 4];
        for k in 0..=scores.len() {
            let mut best = vec![Ranked::default(); k];
            rank(&scores, &mut best);
            assert_eq!(best.iter().map(|each| each.output).collect::<Vec<_>>(), order[..k]);
            assert!(best.iter().all(|each| each.score == scores[each.output as usize]));
        }
    }
}
