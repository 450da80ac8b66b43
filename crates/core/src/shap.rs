//! Shapley values of features: how far each moves the raw predictions of a row, for all outputs.
//!
//! A tree that knows some features of a row alone goes down as the row does where it knows the
//! feature, and both ways, in proportion to the covers, where it does not (path-dependent TreeSHAP).
//! A leaf ℓ is then reached with the weight Π oₖ · Π zₖ over the features of its path: oₖ ∈ {0, 1} says
//! whether the row meets the path's conditions on a known feature k, zₖ is the share of training rows
//! that went on at the splits of an unknown one. Averaged over all orders in which features become
//! known, feature k moves that weight by
//!
//! ```text
//! (oₖ − zₖ) ∫₀¹ Π_{j ≠ k} (oⱼ t + zⱼ (1 − t)) dt
//! ```
//!
//! since t^|S| (1 − t)^(u−1−|S|) integrates to the Shapley weight of a set S of u features. The
//! integrand is a polynomial of degree u − 1, so Gauss-Legendre quadrature with ⌈u / 2⌉ nodes is exact;
//! all factors are positive and nothing cancels. The weights of a path depend on no output: they are
//! found once for a row, eight rows at a time, and then multiplied by leaf vectors or by steps.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::category::CategorySet;
use crate::ensemble::{Ensemble, Kind, Table};
use crate::error::Result;
use crate::lowlevel::widest;
use crate::parallel::Pool;
use crate::tree::Node;

/// Rows whose paths are weighed together, one in each lane.
const LANES: usize = 16;
/// Rows whose path weights exist at a time.
const ROWS: usize = 16;
/// Path weights of a row that exist at a time, unless one tree has more.
const SLOTS: usize = 1024;
/// Factors and numbers of trees that are ready at a time, in bytes, unless one group has more.
const READY: usize = 1 << 25;
/// Rows and outputs summed together: their sums take half the registers.
const TILE_ROWS: usize = 4;
const TILE_OUTPUTS: usize = 16;
/// Outputs summed together where few are left.
const HALF_TILE: usize = 8;
/// Products summed in single precision before they are added to sums in double.
const TILE_SLOTS: usize = 32;

type Lanes = [f64; LANES];

impl Ensemble {
    /// Adds Shapley values, in units of raw predictions, to `out` (n × n_features × n_outputs).
    pub fn add_shap_values(&self, pool: &Pool, x: Table<'_>, out: &mut [f64]) -> Result<()> {
        let rules = rules(self.longest_path().div_ceil(2));
        let width = self.n_features * self.n_outputs;
        let mut tree = 0;
        while tree < self.n_trees() {
            let mut groups: Vec<Group<'_>> = vec![];
            while tree < self.n_trees() && groups.iter().map(Group::size).sum::<usize>() < READY {
                let mut group = Group::new(self, &rules);
                while tree < self.n_trees() && group.slots.len() < SLOTS {
                    group.push(tree);
                    tree += 1;
                }
                group.sort();
                groups.push(group);
            }
            let work = groups.iter().map(Group::work_per_row).sum();
            self.for_each_block(pool, x, work, width, out, |x, out| {
                // All trees for a few rows, whose values stay in cache.
                let rows = x.chunks(ROWS * self.n_features).zip(out.chunks_mut(ROWS * width));
                for (x, out) in rows {
                    for group in &groups {
                        widest(
                            #[inline(always)]
                            || group.add_rows(x, out),
                        );
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Most features on the way to a leaf.
    fn longest_path(&self) -> usize {
        let (mut longest, mut way) = (0, vec![]);
        for nodes in (0..self.n_trees()).map(|tree| self.tree(tree)) {
            let parents = parents(nodes);
            let mut depths = vec![0; nodes.len()];
            for k in 1..nodes.len() {
                depths[k] = depths[parents[k]] + 1;
                if nodes[k].is_leaf() && depths[k] > longest {
                    way_to(nodes, &parents, k, &mut way);
                    longest = longest.max(by_feature(&way).count());
                }
            }
        }
        longest
    }

    /// What the trees add to each output where no feature is known.
    pub fn expected(&self) -> Vec<f64> {
        let d = self.n_outputs;
        let mut sums = vec![0.0f64; d];
        for tree in 0..self.n_trees() {
            let (nodes, values) = (self.tree(tree), self.tree_values(tree));
            let mut reached = shares(nodes);
            for (k, node) in nodes.iter().enumerate() {
                if !node.is_leaf() {
                    let left = node.left as usize;
                    reached[left] *= reached[k];
                    reached[left + 1] *= reached[k];
                    continue;
                }
                let leaf = node.feature as usize;
                let mut add = |values: &[f32], factor: f64| {
                    for (sum, &value) in sums.iter_mut().zip(values) {
                        *sum += factor * f64::from(value);
                    }
                };
                match self.kind {
                    Kind::PerOutput => sums[tree % d] += reached[k] * f64::from(values[leaf]),
                    Kind::Vector => add(&values[leaf * d..(leaf + 1) * d], reached[k]),
                    Kind::Scaled => {
                        let steps = &self.steps[tree * d..(tree + 1) * d];
                        add(steps, reached[k] * f64::from(values[leaf]));
                    }
                }
            }
        }
        sums
    }
}

/// The part of its parent's rows that each node got; 1 for the root. Covers of leaves are summed up,
/// so that what goes left and what goes right is all.
fn shares(nodes: &[Node]) -> Vec<f64> {
    let mut covers: Vec<f64> = nodes.iter().map(|node| f64::from(node.cover)).collect();
    let mut shares = vec![1.0f64; nodes.len()];
    for (k, node) in nodes.iter().enumerate().rev().filter(|(_, node)| !node.is_leaf()) {
        let left = node.left as usize;
        let total = covers[left] + covers[left + 1];
        covers[k] = total;
        shares[left] = if total > 0.0 { covers[left] / total } else { 0.5 };
        shares[left + 1] = 1.0 - shares[left];
    }
    shares
}

/// Parent of each node; the root is its own.
fn parents(nodes: &[Node]) -> Vec<usize> {
    let mut parents = vec![0; nodes.len()];
    for (k, node) in nodes.iter().enumerate().filter(|(_, node)| !node.is_leaf()) {
        parents[node.left as usize] = k;
        parents[node.left as usize + 1] = k;
    }
    parents
}

/// The way to a node: each feature that was split by, and the node that was gone to, by feature.
fn way_to(nodes: &[Node], parents: &[usize], mut node: usize, way: &mut Vec<(usize, usize)>) {
    way.clear();
    while node != 0 {
        let parent = parents[node];
        way.push((nodes[parent].feature_index(), node));
        node = parent;
    }
    way.sort_unstable();
}

/// The steps of a way, feature by feature.
fn by_feature(way: &[(usize, usize)]) -> impl Iterator<Item = &[(usize, usize)]> {
    way.chunk_by(|a, b| a.0 == b.0)
}

/// Some trees, made ready for any number of rows.
struct Group<'a> {
    model: &'a Ensemble,
    /// Quadrature rules by their number of nodes, from 1 on.
    rules: &'a [Rule],
    /// Features that the trees look at, ascending.
    features: Vec<usize>,
    splits: Vec<Split<'a>>,
    paths: Vec<Path<'a>>,
    /// Features on the paths.
    elements: Vec<Element>,
    /// Sides of splits: twice the number of the split for left, one more for right.
    conditions: Vec<usize>,
    /// Of the elements of a path, for one node of its rule after the other.
    factors: Vec<Factor>,
    slots: Vec<Slot>,
    /// Leaf vectors or steps, `stride` apart, padded to whole tiles.
    sources: Vec<f32>,
    stride: usize,
}

/// A split, and its feature's place among those of the group.
struct Split<'a> {
    node: &'a Node,
    sets: &'a [CategorySet],
    place: usize,
}

/// The way to a leaf.
struct Path<'a> {
    /// Value of the leaf where it is one number, else 1.
    value: f64,
    rule: &'a Rule,
    elements: Range<usize>,
    /// The first of its factors.
    factors: usize,
}

/// A feature on the way to a leaf.
struct Element {
    conditions: Range<usize>,
    /// Where its weight goes.
    slot: usize,
}

/// Of an element with share z at a node t of weight w.
struct Factor {
    /// z (1 − t), its factor where a row does not meet the conditions; where it does, t is added.
    unmet: f64,
    /// w / ((1 − t) (t + z (1 − t))): (o − z) w divided by its factor is this much larger where the
    /// conditions are met than the −w / (1 − t) where they are not.
    gained: f64,
}

impl Factor {
    fn new(share: f64, node: &RuleNode) -> Factor {
        let unmet = share * (1.0 - node.at);
        Factor { unmet, gained: node.lost / (node.at + unmet) }
    }
}

/// Weights of a feature that are multiplied by the same numbers.
struct Slot {
    feature: usize,
    /// Number of a vector in [`Group::sources`]; the output if there are none.
    source: usize,
}

impl<'a> Group<'a> {
    fn new(model: &'a Ensemble, rules: &'a [Rule]) -> Group<'a> {
        Group {
            model,
            rules,
            features: vec![],
            splits: vec![],
            paths: vec![],
            elements: vec![],
            conditions: vec![],
            factors: vec![],
            slots: vec![],
            sources: vec![],
            stride: model.n_outputs.next_multiple_of(HALF_TILE),
        }
    }

    /// Whether leaves are vectors whose outputs must be told apart.
    fn has_vectors(&self) -> bool {
        self.model.kind == Kind::Vector && self.model.n_outputs > 1
    }

    /// Adds a tree.
    fn push(&mut self, tree: usize) {
        let model = self.model;
        let (nodes, sets) = (model.tree(tree), model.tree_sets(tree));
        let (shares, parents) = (shares(nodes), parents(nodes));
        let mut split_of_node = vec![0; nodes.len()];
        for (k, node) in nodes.iter().enumerate().filter(|(_, node)| !node.is_leaf()) {
            split_of_node[k] = self.splits.len();
            self.splits.push(Split { node, sets, place: 0 });
        }
        let mut slots: BTreeMap<usize, usize> = BTreeMap::new();
        let (mut way, mut path_shares) = (vec![], Vec::<f64>::new());
        let d = model.n_outputs;
        let steps = if model.kind == Kind::Scaled {
            self.push_source(&model.steps[tree * d..(tree + 1) * d])
        } else {
            tree % model.trees_per_round()
        };
        for (k, node) in nodes.iter().enumerate().filter(|(_, node)| node.is_leaf()) {
            let leaf = node.feature as usize;
            way_to(nodes, &parents, k, &mut way);
            let n_features = by_feature(&way).count();
            let Some(rule) = n_features.div_ceil(2).checked_sub(1) else { continue };
            let (rule, values) = (&self.rules[rule], model.tree_values(tree));
            let (value, source) = if self.has_vectors() {
                (1.0, self.push_source(&values[leaf * d..(leaf + 1) * d]))
            } else {
                (f64::from(values[leaf]), steps)
            };
            let (first, factors) = (self.elements.len(), self.factors.len());
            path_shares.clear();
            for steps in by_feature(&way) {
                let feature = steps[0].0;
                path_shares.push(steps.iter().map(|&(_, node)| shares[node]).product());
                let conditions = self.conditions.len();
                self.conditions.extend(steps.iter().map(|&(_, node)| {
                    let parent = parents[node];
                    2 * split_of_node[parent] + usize::from(nodes[parent].left as usize != node)
                }));
                // Where leaves are numbers, the paths of a tree share the slot of a feature.
                let known = slots.get(&feature).filter(|_| !self.has_vectors()).copied();
                let slot = known.unwrap_or(self.slots.len());
                if known.is_none() {
                    self.slots.push(Slot { feature, source });
                    slots.insert(feature, slot);
                }
                let conditions = conditions..self.conditions.len();
                self.elements.push(Element { conditions, slot });
            }
            for node in rule {
                self.factors.extend(path_shares.iter().map(|&share| Factor::new(share, node)));
            }
            let elements = first..self.elements.len();
            self.paths.push(Path { value, rule, elements, factors });
        }
    }

    fn push_source(&mut self, values: &[f32]) -> usize {
        let start = self.sources.len();
        self.sources.extend_from_slice(values);
        self.sources.resize(start + self.stride, 0.0);
        start / self.stride
    }

    /// Brings the slots of a feature together, and finds the features.
    fn sort(&mut self) {
        let mut order: Vec<usize> = (0..self.slots.len()).collect();
        order.sort_by_key(|&slot| self.slots[slot].feature);
        let mut new_place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, &old)| new_place[old] = new);
        self.slots.sort_by_key(|slot| slot.feature);
        self.elements.iter_mut().for_each(|element| element.slot = new_place[element.slot]);
        self.features = self.slots.iter().map(|slot| slot.feature).collect();
        self.features.dedup();
        for split in &mut self.splits {
            let feature = split.node.feature_index();
            split.place = self.features.partition_point(|&known| known < feature);
        }
    }

    /// Most of its bytes.
    fn size(&self) -> usize {
        size_of_val(&self.factors[..]) + size_of_val(&self.sources[..])
    }

    /// A guess at the elementary operations for a row.
    fn work_per_row(&self) -> usize {
        let width = if self.sources.is_empty() { 1 } else { self.stride };
        4 * self.splits.len() + self.factors.len() + self.slots.len() * width / 4
    }

    /// Adds the Shapley values of the group to those of up to [`ROWS`] rows.
    #[inline(always)]
    fn add_rows(&self, x: &[f32], out: &mut [f64]) {
        let p = self.model.n_features;
        let mut columns = vec![0.0f32; self.features.len() * ROWS];
        let mut weights = vec![0.0f64; self.slots.len() * ROWS];
        let mut scratch = Scratch::new(self);
        for (i, row) in x.chunks_exact(p).enumerate() {
            for (place, &feature) in self.features.iter().enumerate() {
                columns[place * ROWS + i] = row[feature];
            }
        }
        for first in (0..x.len() / p).step_by(LANES) {
            self.weigh(&columns, first, &mut scratch, &mut weights);
        }
        if self.sources.is_empty() {
            self.add_numbers(&weights, out);
        } else {
            self.add_vectors(&weights, out);
        }
    }

    /// Path weights of a few rows from `first` on, into all slots.
    ///
    /// (Lanes are copied in and out of memory as wholes, or they would not be kept in registers.)
    #[inline(always)]
    fn weigh(&self, columns: &[f32], first: usize, scratch: &mut Scratch, weights: &mut [f64]) {
        for (split, sides) in self.splits.iter().zip(scratch.sides.chunks_exact_mut(2)) {
            let values = &columns[split.place * ROWS + first..][..LANES];
            let node = *split.node;
            let mut left = [0.0; LANES];
            if node.is_categorical() {
                for k in 0..LANES {
                    left[k] = f64::from(node.goes_left::<true>(split.sets, values[k]));
                }
            } else {
                for k in 0..LANES {
                    left[k] = f64::from(node.goes_left::<false>(&[], values[k]));
                }
            }
            sides[0] = left;
            sides[1] = left.map(|left| 1.0 - left);
        }
        for path in &self.paths {
            let elements = &self.elements[path.elements.clone()];
            let n = elements.len();
            let (met, sums) = (&mut scratch.met[..n], &mut scratch.sums[..n]);
            for (element, met) in elements.iter().zip(met.iter_mut()) {
                let mut all = [1.0; LANES];
                for &side in &self.conditions[element.conditions.clone()] {
                    let side = scratch.sides[side];
                    for k in 0..LANES {
                        all[k] *= side[k];
                    }
                }
                *met = all;
            }
            sums.fill([0.0; LANES]);
            let factors = self.factors[path.factors..].chunks_exact(n);
            for (node, factors) in path.rule.iter().zip(factors) {
                let (at, lost) = (node.at, node.lost);
                let mut product = [1.0; LANES];
                for (factor, met) in factors.iter().zip(met.iter()) {
                    for k in 0..LANES {
                        product[k] *= factor.unmet + met[k] * at;
                    }
                }
                for ((factor, met), sums) in factors.iter().zip(met.iter()).zip(sums.iter_mut()) {
                    let (gained, mut sum) = (factor.gained, *sums);
                    for k in 0..LANES {
                        sum[k] += product[k] * (met[k] * gained - lost);
                    }
                    *sums = sum;
                }
            }
            for (element, sums) in elements.iter().zip(sums.iter()) {
                let weights = &mut weights[element.slot * ROWS + first..][..LANES];
                let mut sum = [0.0; LANES];
                for k in 0..LANES {
                    sum[k] = weights[k] + path.value * sums[k];
                }
                weights.copy_from_slice(&sum);
            }
        }
    }

    /// Adds weights where every tree serves one output.
    #[inline(always)]
    fn add_numbers(&self, weights: &[f64], out: &mut [f64]) {
        let d = self.model.n_outputs;
        let width = self.model.n_features * d;
        for (slot, weights) in self.slots.iter().zip(weights.chunks_exact(ROWS)) {
            for (row, weight) in out.chunks_exact_mut(width).zip(weights) {
                row[slot.feature * d + slot.source] += weight;
            }
        }
    }

    /// Adds weights times vectors of all outputs: a matrix product for each feature, tile by tile.
    #[inline(always)]
    fn add_vectors(&self, weights: &[f64], out: &mut [f64]) {
        let (d, n_slots) = (self.model.n_outputs, self.slots.len());
        // The weights of the rows of a tile side by side.
        let mut by_tile = vec![[0.0f32; TILE_ROWS]; n_slots * ROWS / TILE_ROWS];
        for (slot, weights) in weights.as_chunks::<ROWS>().0.iter().enumerate() {
            for (tile, weights) in weights.as_chunks::<TILE_ROWS>().0.iter().enumerate() {
                by_tile[tile * n_slots + slot] = weights.map(|weight| weight as f32);
            }
        }
        let mut start = 0;
        for slots in self.slots.chunk_by(|a, b| a.feature == b.feature) {
            let weights = &by_tile[start..];
            start += slots.len();
            let mut output = 0;
            while output < d {
                if output + HALF_TILE < d {
                    self.add_tiles::<TILE_OUTPUTS>(slots, weights, output, out);
                    output += TILE_OUTPUTS;
                } else {
                    self.add_tiles::<HALF_TILE>(slots, weights, output, out);
                    output += HALF_TILE;
                }
            }
        }
    }

    /// Adds a few outputs of one feature for all rows; `weights` begins with those of the first tile.
    /// Few products at a time are summed in single precision, that of leaf values; their sums in
    /// double.
    #[inline(always)]
    fn add_tiles<const WIDTH: usize>(
        &self,
        slots: &[Slot],
        weights: &[[f32; TILE_ROWS]],
        output: usize,
        out: &mut [f64],
    ) {
        let d = self.model.n_outputs;
        let width = self.model.n_features * d;
        let n_rows = out.len() / width;
        let mut sources = [[0.0f32; WIDTH]; TILE_SLOTS];
        for (first, slots) in slots.chunks(TILE_SLOTS).enumerate() {
            // Side by side, which all row tiles profit from.
            let sources = &mut sources[..slots.len()];
            for (source, slot) in sources.iter_mut().zip(slots) {
                let place = slot.source * self.stride + output;
                source.copy_from_slice(&self.sources[place..place + WIDTH]);
            }
            for top in (0..n_rows).step_by(TILE_ROWS) {
                let place = top / TILE_ROWS * self.slots.len() + first * TILE_SLOTS;
                let sums = tile(sources, &weights[place..place + slots.len()]);
                for (sums, row) in sums.iter().zip(top..n_rows) {
                    let place = row * width + slots[0].feature * d + output;
                    let out = &mut out[place..place + WIDTH.min(d - output)];
                    out.iter_mut().zip(sums).for_each(|(out, &sum)| *out += f64::from(sum));
                }
            }
        }
    }
}

/// One tile of the product of weights and vectors.
#[inline(always)]
fn tile<const WIDTH: usize>(
    sources: &[[f32; WIDTH]],
    weights: &[[f32; TILE_ROWS]],
) -> [[f32; WIDTH]; TILE_ROWS] {
    // Each row's sums by themselves: arrays that the compiler keeps in registers.
    let mut a = [0.0; WIDTH];
    let (mut b, mut c, mut e) = (a, a, a);
    for (source, weights) in sources.iter().zip(weights) {
        for k in 0..WIDTH {
            a[k] += weights[0] * source[k];
        }
        for k in 0..WIDTH {
            b[k] += weights[1] * source[k];
        }
        for k in 0..WIDTH {
            c[k] += weights[2] * source[k];
        }
        for k in 0..WIDTH {
            e[k] += weights[3] * source[k];
        }
    }
    [a, b, c, e]
}

/// What is computed for a few rows, one in each lane.
struct Scratch {
    /// 1 where a row goes left, and 1 where it goes right, for each split.
    sides: Vec<Lanes>,
    /// 1 where a row meets the conditions on a feature, for each element of a path.
    met: Vec<Lanes>,
    /// Weights of the elements of a path.
    sums: Vec<Lanes>,
}

impl Scratch {
    fn new(group: &Group<'_>) -> Scratch {
        let longest = group.paths.iter().map(|path| path.elements.len()).max().unwrap_or(0);
        let zeros = |n: usize| vec![[0.0; LANES]; n];
        Scratch { sides: zeros(2 * group.splits.len()), met: zeros(longest), sums: zeros(longest) }
    }
}

// ------------------------------------------------------------------------------- quadrature

/// A node of a quadrature rule on [0, 1].
struct RuleNode {
    /// Where the integrand is evaluated: t.
    at: f64,
    /// w / (1 − t) for its weight w.
    lost: f64,
}

type Rule = Vec<RuleNode>;

/// Gauss-Legendre rules with 1, 2, … `largest` nodes.
fn rules(largest: usize) -> Vec<Rule> {
    let mut ends = vec![-1.0, 1.0];
    let mut rules = vec![];
    for n in 1..=largest {
        // Between two roots of the last polynomial there is one of this.
        let roots: Vec<f64> = ends.windows(2).map(|pair| root(n, pair[0], pair[1])).collect();
        let node = |&x: &f64| {
            let (_, slope) = legendre(n, x);
            let (at, weight) = ((1.0 + x) / 2.0, 1.0 / ((1.0 - x * x) * slope * slope));
            RuleNode { at, lost: weight / (1.0 - at) }
        };
        rules.push(roots.iter().map(node).collect());
        ends.splice(1..n, roots);
    }
    rules
}

/// The root of the nth Legendre polynomial between `low` and `high`.
fn root(n: usize, mut low: f64, mut high: f64) -> f64 {
    let rises = legendre(n, high).0 > 0.0;
    let mut x = (low + high) / 2.0;
    // Newton's method, which halves the interval wherever it would leave it.
    for _ in 0..64 {
        let (value, slope) = legendre(n, x);
        if (value > 0.0) == rises {
            high = x;
        } else {
            low = x;
        }
        let newton = x - value / slope;
        let next = if low < newton && newton < high { newton } else { (low + high) / 2.0 };
        if next == x {
            break;
        }
        x = next;
    }
    x
}

/// The nth Legendre polynomial and its slope at x within (−1, 1).
fn legendre(n: usize, x: f64) -> (f64, f64) {
    let (mut last, mut value) = (1.0, x);
    for k in 2..=n {
        let k = k as f64;
        (last, value) = (value, ((2.0 * k - 1.0) * x * value - (k - 1.0) * last) / k);
    }
    (value, n as f64 * (x * value - last) / (x * x - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_integrate_the_polynomials_they_should() {
        for (n, rule) in rules(40).iter().enumerate() {
            assert_eq!(rule.len(), n + 1);
            assert!(rule.iter().all(|node| 0.0 < node.at && node.at < 1.0 && node.lost > 0.0));
            for degree in [0, 1, n, 2 * n, 2 * n + 1] {
                let powers = rule.iter().map(|node| {
                    let weight = node.lost * (1.0 - node.at);
                    weight * node.at.powi(degree as i32)
                });
                let integral: f64 = powers.sum();
                let expected = 1.0 / (degree + 1) as f64;
                assert!((integral - expected).abs() < 1e-14, "{} nodes, t^{degree}", n + 1);
            }
        }
    }

    /// A split of feature 0, whose left side is split by feature 1; covers 1, 2 and 5.
    fn nodes() -> [Node; 5] {
        let node = |feature, threshold, left, cover| Node {
            feature,
            threshold,
            left,
            cover,
            gain: 0.0,
            cut: 0,
        };
        [
            node(0, 0.5, 1, 8.0),
            node(1, 0.5, 3, 3.0),
            node(0, 0.0, 0, 5.0),
            node(1, 0.0, 0, 1.0),
            node(2, 0.0, 0, 2.0),
        ]
    }

    #[test]
    fn a_small_tree_has_the_values_of_the_definition() {
        // Leaves: feature 0 right; then feature 1 left and right.
        let (a, b, c) = (8.0, -4.0, 2.0);
        let nothing = (5.0 * a + b + 2.0 * c) / 8.0;
        let mean_below = (b + 2.0 * c) / 3.0;
        // The row goes left, then right.
        let (first, second, both) = (mean_below, (5.0 * a + 3.0 * c) / 8.0, c);
        let expected =
            [(first - nothing + both - second) / 2.0, (second - nothing + both - first) / 2.0, 0.0];
        let d = 3;
        for kind in [Kind::PerOutput, Kind::Vector, Kind::Scaled] {
            let mut model = Ensemble::new(kind, d, 3);
            let leaves = [a as f32, b as f32, c as f32];
            let scales = [1.0f32, -2.0, 0.5];
            match kind {
                Kind::PerOutput => scales.iter().for_each(|scale| {
                    model.push(&nodes(), &[], &leaves.map(|leaf| leaf * scale), &[]).unwrap();
                }),
                Kind::Vector => {
                    let values = leaves.map(|leaf| scales.map(|scale| leaf * scale));
                    model.push(&nodes(), &[], values.as_flattened(), &[]).unwrap();
                }
                Kind::Scaled => model.push(&nodes(), &[], &leaves, &scales).unwrap(),
            }
            let n = ROWS + 3;
            let mut out = vec![0.0; n * 3 * d];
            let x = [0.0f32, 1.0, 7.0].repeat(n);
            model.add_shap_values(&Pool::serial(), Table::Dense(&x), &mut out).unwrap();
            for row in out.chunks(3 * d) {
                for (k, of_feature) in row.chunks(d).enumerate() {
                    for (value, scale) in of_feature.iter().zip(scales) {
                        assert!((value - f64::from(scale) * expected[k]).abs() < 1e-6);
                    }
                }
            }
            let mean: Vec<f64> = scales.iter().map(|&scale| f64::from(scale) * nothing).collect();
            assert_eq!(model.expected(), mean);
        }
    }
}
