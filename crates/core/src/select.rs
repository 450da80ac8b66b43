//! Quantiles of rows on one machine or on several.
//!
//! One machine uses quickselect. Several machines sort their own values and descend together through
//! the digits of an integer key that orders as the values do: at every digit each machine reports the
//! mass of its values with each digit, and the sums say which digit to take. The size of an exchange
//! does not depend on the number of rows, and the result is the value that one machine with all rows
//! would have selected.

use std::ops::Range;

use crate::error::Result;
use crate::memory::{collected, room};
use crate::parallel::Pool;
use crate::reduce::{exchange, exchange_pieces, weighted_select};

/// Values with masses, of which a quantile is wanted.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// (value, mass) pairs; no mass is negative and no value is NaN.
    pub items: Vec<(f64, i64)>,
    /// Total masses of two kinds of items, from which the caller computes its target.
    pub masses: [i64; 2],
}

impl Query {
    /// A query in which all items are of one kind.
    pub fn of(items: Vec<(f64, i64)>) -> Query {
        let mass = items.iter().map(|item| item.1).sum();
        Query { items, masses: [mass, 0] }
    }
}

/// Items, over all machines, of the outputs whose quantiles are searched together.
const ITEMS_AT_A_TIME: usize = 1 << 22;

/// Answers the `n_queries` queries of each of some outputs. The answer is the smallest value whose
/// cumulative mass reaches `target`, which is called with the output and the masses of the query on
/// all machines; it is 0 if the query has no mass.
pub fn for_outputs(
    pool: &Pool,
    outputs: Range<usize>,
    n_rows: usize,
    n_queries: usize,
    queries_of: impl Fn(usize) -> Result<Vec<Query>> + Sync,
    target: impl Fn(usize, [i64; 2]) -> i128 + Sync,
) -> Result<Vec<Vec<f64>>> {
    let work = n_rows * 20;
    if pool.others().is_none() {
        return pool.try_map(outputs.clone(), work * outputs.len(), |j| {
            let answer = |mut query: Query| {
                let target = target(j, query.masses);
                weighted_select(&mut query.items, target).unwrap_or(0.0)
            };
            Ok(queries_of(j)?.into_iter().map(answer).collect())
        });
    }
    if n_queries == 0 {
        return Ok(vec![Vec::new(); outputs.len()]);
    }
    let mut answers = Vec::with_capacity(outputs.len());
    // The same on all machines, however many rows they have.
    let size = (ITEMS_AT_A_TIME / pool.all_rows(n_rows).max(1)).max(1);
    for start in outputs.clone().step_by(size) {
        let block = start..(start + size).min(outputs.end);
        let parts = pool.try_map(block.clone(), work * block.len(), |j| {
            let sort = |query: Query| Ok((query.masses, SortedItems::of(query.items)?));
            queries_of(j)?.into_iter().map(sort).collect::<Result<Vec<_>>>()
        })?;
        let (masses, sorted): (Vec<_>, Vec<_>) = parts.into_iter().flatten().unzip();
        let mut masses: Vec<i64> = masses.into_iter().flatten().collect();
        exchange(pool, &mut masses, &mut [])?;
        let masses = masses.chunks_exact(2).map(|pair| [pair[0], pair[1]]);
        let targets: Vec<Option<i64>> = masses
            .enumerate()
            .map(|(k, masses)| {
                let total = masses[0] + masses[1];
                let wanted = target(block.start + k / n_queries, masses);
                (total > 0).then(|| wanted.clamp(1, i128::from(total)) as i64)
            })
            .collect();
        let found = descend(pool, &sorted, &targets, false)?;
        let values: Vec<f64> = found.iter().map(|key| key.map_or(0.0, from_ordered_key)).collect();
        answers.extend(values.chunks_exact(n_queries).map(<[f64]>::to_vec));
    }
    Ok(answers)
}

/// A bound that separates the `count` smallest numbers of all machines from the others: at least the
/// largest of them, and below the next number. `None` if `count` is zero.
pub fn bound_of_smallest(pool: &Pool, numbers: &[u64], count: usize) -> Result<Option<u64>> {
    let mut keys = collected(numbers.len(), numbers.iter().copied())?;
    if pool.others().is_none() {
        let last = count.min(keys.len()).checked_sub(1);
        return Ok(last.map(|last| *keys.select_nth_unstable(last).1));
    }
    keys.sort_unstable();
    let masses = collected(keys.len() + 1, 0..=keys.len() as i64)?;
    let target = (count > 0).then_some(count as i64);
    Ok(descend(pool, &[SortedItems { keys, masses }], &[target], true)?[0])
}

/// Sorted keys, with the cumulative mass before each of them and before the end.
struct SortedItems {
    keys: Vec<u64>,
    masses: Vec<i64>,
}

impl SortedItems {
    fn of(mut items: Vec<(f64, i64)>) -> Result<SortedItems> {
        items.sort_unstable_by_key(|item| ordered_key(item.0));
        let keys = collected(items.len(), items.iter().map(|item| ordered_key(item.0)))?;
        let masses = cumulated(items.len(), items.iter().map(|item| item.1))?;
        Ok(SortedItems { keys, masses })
    }
}

/// The sums of the masses before each of `n` items, and before the end.
pub(crate) fn cumulated(n: usize, masses: impl Iterator<Item = i64>) -> Result<Vec<i64>> {
    let mut sums = room(n + 1)?;
    sums.push(0);
    sums.extend(masses.take(n).scan(0, |sum: &mut i64, mass| {
        *sum += mass;
        Some(*sum)
    }));
    Ok(sums)
}

/// Bits of a digit.
const DIGIT_BITS: u32 = 4;
/// Number of different digits.
const DIGITS: usize = 1 << DIGIT_BITS;

/// For every set, the smallest key whose cumulative mass on all machines reaches the target. With
/// `any_bound` any number will do that separates this key from the next, so the descent ends as soon
/// as the digits so far give one.
fn descend(
    pool: &Pool,
    sets: &[SortedItems],
    targets: &[Option<i64>],
    any_bound: bool,
) -> Result<Vec<Option<u64>>> {
    let mut prefixes = vec![0u64; sets.len()];
    let mut rest: Vec<i64> = targets.iter().map(|target| target.unwrap_or(0)).collect();
    let mut within: Vec<Range<usize>> = sets.iter().map(|set| 0..set.keys.len()).collect();
    let mut sums = vec![0i64; sets.len() * DIGITS];
    for shift in (0..u64::BITS).step_by(DIGIT_BITS as usize).rev() {
        let digit = |key: u64| (key >> shift) as usize % DIGITS;
        // Where the keys of each digit end.
        let mut ends = vec![[0usize; DIGITS]; sets.len()];
        for (k, set) in sets.iter().enumerate() {
            let Range { start, end } = within[k].clone();
            let mut from = start;
            for c in 0..DIGITS {
                let to = from + set.keys[from..end].partition_point(|&key| digit(key) <= c);
                sums[k * DIGITS + c] = set.masses[to] - set.masses[from];
                ends[k][c] = to;
                from = to;
            }
        }
        exchange(pool, &mut sums, &mut [])?;
        let mut all_parted = true;
        for (k, sums) in sums.chunks_exact(DIGITS).enumerate() {
            if targets[k].is_none() {
                continue;
            }
            let mut c = 0;
            while c + 1 < DIGITS && sums[c] < rest[k] {
                rest[k] -= sums[c];
                c += 1;
            }
            all_parted &= rest[k] == sums[c];
            prefixes[k] |= (c as u64) << shift;
            let start = if c == 0 { within[k].start } else { ends[k][c - 1] };
            within[k] = start..ends[k][c];
        }
        if any_bound && all_parted {
            let below = (1u64 << shift) - 1;
            prefixes.iter_mut().for_each(|prefix| *prefix |= below);
            break;
        }
    }
    Ok(prefixes.into_iter().zip(targets).map(|(key, target)| target.map(|_| key)).collect())
}

/// An integer that orders as [`f64::total_cmp`] does.
fn ordered_key(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

fn from_ordered_key(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key })
}

/// The sorted values of one column on this machine, as integers that order as they do.
pub struct SortedColumn {
    /// The integers.
    pub keys: Vec<u32>,
    /// Cumulative mass before each value and before the end; `None` if every value has mass one.
    pub masses: Option<Vec<i64>>,
}

impl SortedColumn {
    fn mass(&self, places: Range<usize>) -> i64 {
        match &self.masses {
            Some(masses) => masses[places.end] - masses[places.start],
            None => places.len() as i64,
        }
    }

    fn has_few(&self, max_few: usize) -> bool {
        self.keys.chunk_by(|a, b| a == b).nth(max_few).is_none()
    }

    /// The children of a branch whose keys are at `places`.
    fn children(&self, branch: Branch, places: Range<usize>) -> Children {
        let mut children = Children { masses: [0; DIGITS], ends: [places.end; DIGITS] };
        let mut rest = &self.keys[places.clone()];
        let mut from = places.start;
        for child in 0..DIGITS {
            let is_within = |key: &u32| branch.child_of(*key) <= child;
            let n_within = if rest.len() < FEW_KEYS {
                rest.iter().take_while(|key| is_within(key)).count()
            } else {
                rest.partition_point(is_within)
            };
            let to = from + n_within;
            children.masses[child] = self.mass(from..to);
            children.ends[child] = to;
            (rest, from) = (&rest[n_within..], to);
            if rest.is_empty() {
                break;
            }
        }
        children
    }
}

/// Among fewer keys, a scan is faster than a bisection.
const FEW_KEYS: usize = 256;

/// The children of a branch: their masses on all machines, and where their keys end on this one.
struct Children {
    masses: [i64; DIGITS],
    ends: [usize; DIGITS],
}

/// A branch of the tree of all keys, with one digit per level: the keys that begin with `prefix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Branch {
    level: u32,
    prefix: u32,
}

impl Branch {
    const ROOT: Branch = Branch { level: 0, prefix: 0 };
    const LAST_LEVEL: u32 = u32::BITS / DIGIT_BITS - 1;

    /// The child that holds a key of this branch.
    fn child_of(self, key: u32) -> usize {
        (key >> (DIGIT_BITS * (Self::LAST_LEVEL - self.level))) as usize % DIGITS
    }

    /// The prefix of a child.
    fn prefix_of(self, child: usize) -> u32 {
        self.prefix << DIGIT_BITS | child as u32
    }

    /// The child as a branch; on the last level children are keys, not branches.
    fn below(self, child: usize) -> Branch {
        Branch { level: self.level + 1, prefix: self.prefix_of(child) }
    }
}

/// A value that was selected or guessed.
#[derive(Debug, Clone, Copy)]
pub struct Selected {
    /// The key of the value; without meaning for a guess.
    pub key: u32,
    /// Mass of all values up to and including this one.
    pub up_to: i128,
}

/// A branch that is known.
struct KnownBranch {
    children: Children,
    /// Where its children are among the known branches; [`UNKNOWN`] where they are not.
    below: [usize; DIGITS],
}

const UNKNOWN: usize = usize::MAX;

/// A branch on the way down, known or not.
#[derive(Clone)]
struct Place {
    branch: Branch,
    /// Where it is among the known branches.
    index: usize,
    /// Its parent there, and which child of it this is.
    above: (usize, usize),
    /// Where its keys are on this machine.
    keys: Range<usize>,
}

impl Place {
    fn below(&self, known: &KnownBranch, child: usize) -> Place {
        let ends = &known.children.ends;
        let start = if child == 0 { self.keys.start } else { ends[child - 1] };
        Place {
            branch: self.branch.below(child),
            index: known.below[child],
            above: (self.index, child),
            keys: start..ends[child],
        }
    }
}

/// A view of a column that is spread over machines. An unknown branch becomes a question, and its
/// answer is guessed until the next exchange: later questions that depend on it can then be asked in
/// the same exchange.
pub struct Enquiry<'a> {
    /// The branches that are known so far, the root first.
    known: &'a [KnownBranch],
    /// Branches to ask for.
    questions: Vec<Place>,
    n_keys: usize,
    /// Mass of one value, on average.
    unit: i128,
}

impl<'a> Enquiry<'a> {
    /// Whether nothing was guessed so far.
    pub fn is_certain(&self) -> bool {
        self.questions.is_empty()
    }

    /// The mass of all values, if known.
    pub fn total(&mut self) -> Option<i128> {
        let root = self.look(&self.root())?;
        Some(root.children.masses.iter().map(|&mass| i128::from(mass)).sum())
    }

    /// The smallest value whose cumulative mass reaches `target`, which is between one and the total.
    pub fn select(&mut self, target: i128) -> Selected {
        let mut place = self.root();
        let (mut before, mut up_to) = (0i128, i128::MAX);
        loop {
            let Some(known) = self.look(&place) else {
                // Guess that the target lies in the middle of a value of average mass.
                let guess = (target + (self.unit - 1) / 2).min(up_to);
                return Selected { key: 0, up_to: guess };
            };
            let masses = &known.children.masses;
            let mut child = 0;
            while child + 1 < DIGITS && before + i128::from(masses[child]) < target {
                before += i128::from(masses[child]);
                child += 1;
            }
            up_to = before + i128::from(masses[child]);
            if place.branch.level == Branch::LAST_LEVEL {
                return Selected { key: place.branch.prefix_of(child), up_to };
            }
            place = place.below(known, child);
        }
    }

    /// All distinct values that are known, with their masses.
    pub fn distinct(&mut self) -> Vec<(u32, i64)> {
        let mut values = Vec::new();
        let mut open = vec![self.root()];
        while let Some(place) = open.pop() {
            let Some(known) = self.look(&place) else { continue };
            let masses = &known.children.masses;
            if place.branch.level == Branch::LAST_LEVEL {
                let found = masses.iter().enumerate().filter(|(_, mass)| **mass > 0);
                values.extend(found.map(|(child, &mass)| (place.branch.prefix_of(child), mass)));
            } else {
                let children = (0..DIGITS).rev().filter(|&child| masses[child] > 0);
                open.extend(children.map(|child| place.below(known, child)));
            }
        }
        values
    }

    fn root(&self) -> Place {
        Place { branch: Branch::ROOT, index: 0, above: (UNKNOWN, 0), keys: 0..self.n_keys }
    }

    /// What is known about a branch; if nothing is, it is asked for.
    fn look(&mut self, place: &Place) -> Option<&'a KnownBranch> {
        let known = self.known.get(place.index);
        if known.is_none() {
            self.questions.push(place.clone());
        }
        known
    }
}

/// Runs one search per column, all in step, until none has a question left. `n_rows` counts the rows
/// of all machines. `start` is called with whether no machine holds more than `max_few` distinct
/// values of the column.
pub fn search_columns<S>(
    pool: &Pool,
    columns: &[SortedColumn],
    n_rows: usize,
    max_few: usize,
    start: impl Fn(bool) -> S,
    mut advance: impl FnMut(&mut S, &mut Enquiry<'_>),
) -> Result<Vec<S>> {
    let mut many: Vec<f64> = columns.iter().map(|c| f64::from(!c.has_few(max_few))).collect();
    let mut totals: Vec<i64> = columns.iter().map(|c| c.mass(0..c.keys.len())).collect();
    exchange(pool, &mut totals, &mut many)?;
    let unit_of = |total: i64| (total / n_rows.max(1) as i64).max(1).into();
    let mut searches: Vec<(S, Vec<KnownBranch>)> =
        many.iter().map(|&many| (start(many == 0.0), Vec::new())).collect();
    let mut open: Vec<usize> = (0..columns.len()).collect();
    loop {
        let mut answers = Vec::new();
        for &k in &open {
            let (search, known) = &mut searches[k];
            let (n_keys, unit) = (columns[k].keys.len(), unit_of(totals[k]));
            let mut enquiry = Enquiry { known, questions: Vec::new(), n_keys, unit };
            advance(search, &mut enquiry);
            let mut questions = enquiry.questions;
            questions.sort_unstable_by_key(|place| place.branch);
            questions.dedup_by_key(|place| place.branch);
            let answer = |place: Place| {
                let children = columns[k].children(place.branch, place.keys.clone());
                (k, place.above, children)
            };
            answers.extend(questions.into_iter().map(answer));
        }
        if answers.is_empty() {
            return Ok(searches.into_iter().map(|(search, _)| search).collect());
        }
        let masses = answers.iter_mut().map(|answer| &mut answer.2.masses[..]);
        exchange_pieces(pool, &mut masses.collect::<Vec<_>>(), &mut [])?;
        open = answers.iter().map(|answer| answer.0).collect();
        open.dedup();
        for (k, (parent, child), children) in answers {
            let known = &mut searches[k].1;
            let index = known.len();
            if let Some(parent) = known.get_mut(parent) {
                parent.below[child] = index;
            }
            known.push(KnownBranch { children, below: [UNKNOWN; DIGITS] });
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
