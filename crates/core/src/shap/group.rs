//! Some trees, made ready for the Shapley values of any number of rows.
//!
//! What gets a value is an *item*: a feature, or a pair of features.

use std::collections::BTreeMap;
use std::ops::Range;

use super::quadrature::{Quadrature, QuadratureNode};
use super::{by_feature, parents, shares, way_to};
use crate::category::CategorySet;
use crate::ensemble::{Ensemble, Kind};
use crate::tree::Node;

/// Rows whose paths are weighed together, one in each lane.
const LANES: usize = 16;
/// Rows whose path weights exist at a time.
pub(super) const ROWS: usize = 16;
/// Rows and outputs summed together: their sums take half the registers.
const TILE_ROWS: usize = 4;
const TILE_OUTPUTS: usize = 16;
/// Outputs summed together where few are left.
const HALF_TILE: usize = 8;
/// Products summed in single precision before they are added to sums in double.
const TILE_SLOTS: usize = 32;

type RowLanes = [f64; LANES];

/// Some trees, made ready for any number of rows.
pub(super) struct TreeGroup<'a> {
    model: &'a Ensemble,
    /// Quadrature rules by their number of nodes, from 1 on.
    rules: &'a [Quadrature],
    /// Features that the trees look at, ascending.
    features: Vec<usize>,
    splits: Vec<GroupSplit<'a>>,
    paths: Vec<Path<'a>>,
    /// Features on the paths.
    elements: Vec<Element>,
    /// Whether values are those of pairs of features, and not of features.
    of_pairs: bool,
    /// Where the weights of the items of a path go, path after path.
    places: Vec<usize>,
    /// Sides of splits: twice the number of the split for left, one more for right.
    conditions: Vec<usize>,
    /// Factors of the elements of a path, for one quadrature node after the other.
    factors: Vec<Factor>,
    pub slots: Vec<Slot>,
    /// Leaf vectors or steps, `stride` apart, padded to whole tiles.
    sources: Vec<f32>,
    stride: usize,
}

/// A split, and its feature's place among those of the group.
struct GroupSplit<'a> {
    node: &'a Node,
    sets: &'a [CategorySet],
    place: usize,
}

/// The way to a leaf.
struct Path<'a> {
    /// Value of the leaf where it is one number, else 1.
    value: f64,
    rule: &'a Quadrature,
    elements: Range<usize>,
    /// The first of its factors.
    factors: usize,
    /// Its items: their slots are in [`TreeGroup::places`].
    items: Range<usize>,
}

/// A feature on the way to a leaf.
struct Element {
    feature: usize,
    conditions: Range<usize>,
}

/// The factor of an element with share z at a quadrature node t of weight w.
struct Factor {
    /// z (1 − t), its factor where a row does not meet the conditions; where it does, t is added.
    unmet: f64,
    /// w / ((1 − t) (t + z (1 − t))): (o − z) w divided by its factor is this much larger where the
    /// conditions are met than the −w / (1 − t) where they are not.
    gained: f64,
}

impl Factor {
    fn new(share: f64, node: &QuadratureNode) -> Factor {
        let unmet = share * (1.0 - node.at);
        Factor { unmet, gained: node.lost / (node.at + unmet) }
    }
}

/// Weights of an item that are multiplied by the same numbers.
pub(super) struct Slot {
    /// The number of a feature; of the pair of features j < k it is j p + k.
    item: usize,
    /// Number of a vector in [`TreeGroup::sources`]; the output if there are none.
    source: usize,
}

impl<'a> TreeGroup<'a> {
    pub fn new(model: &'a Ensemble, rules: &'a [Quadrature], of_pairs: bool) -> TreeGroup<'a> {
        TreeGroup {
            model,
            rules,
            features: vec![],
            splits: vec![],
            paths: vec![],
            elements: vec![],
            of_pairs,
            places: vec![],
            conditions: vec![],
            factors: vec![],
            slots: vec![],
            sources: vec![],
            stride: model.n_outputs.next_multiple_of(HALF_TILE),
        }
    }

    /// Whether leaves are vectors of several outputs.
    fn has_vectors(&self) -> bool {
        self.model.kind == Kind::Vector && self.model.n_outputs > 1
    }

    /// Numbers of a row: an item has one for each output.
    pub fn width(&self) -> usize {
        let p = self.model.n_features;
        self.model.n_outputs * if self.of_pairs { p * p } else { p }
    }

    /// Adds a tree.
    pub fn push(&mut self, tree: usize) {
        let model = self.model;
        let (nodes, sets) = (model.tree(tree), model.tree_sets(tree));
        let (shares, parents) = (shares(nodes), parents(nodes));
        let mut split_of_node = vec![0; nodes.len()];
        for (k, node) in nodes.iter().enumerate().filter(|(_, node)| !node.is_leaf()) {
            split_of_node[k] = self.splits.len();
            self.splits.push(GroupSplit { node, sets, place: 0 });
        }
        let mut slots: BTreeMap<usize, usize> = BTreeMap::new();
        let (mut way, mut path_shares) = (vec![], Vec::<f64>::new());
        let d = model.n_outputs;
        let steps = if model.kind == Kind::Scaled {
            self.push_source(&model.steps[tree * d..(tree + 1) * d])
        } else {
            if model.kind == Kind::PerOutput { tree % d } else { 0 }
        };
        for (k, node) in nodes.iter().enumerate().filter(|(_, node)| node.is_leaf()) {
            let leaf = node.feature as usize;
            way_to(nodes, &parents, k, &mut way);
            let n_features = by_feature(&way).count();
            if self.of_pairs && n_features < 2 {
                continue;
            }
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
                path_shares.push(steps.iter().map(|&(_, node)| shares[node]).product());
                let conditions = self.conditions.len();
                self.conditions.extend(steps.iter().map(|&(_, node)| {
                    let parent = parents[node];
                    2 * split_of_node[parent] + usize::from(nodes[parent].left as usize != node)
                }));
                let conditions = conditions..self.conditions.len();
                self.elements.push(Element { feature: steps[0].0, conditions });
            }
            let start = self.places.len();
            for item in self.items_of(first..self.elements.len()) {
                // Where leaves are numbers, the paths of a tree share the slot of an item.
                let known = slots.get(&item).filter(|_| !self.has_vectors()).copied();
                let slot = known.unwrap_or(self.slots.len());
                if known.is_none() {
                    self.slots.push(Slot { item, source });
                    slots.insert(item, slot);
                }
                self.places.push(slot);
            }
            for node in rule {
                self.factors.extend(path_shares.iter().map(|&share| Factor::new(share, node)));
            }
            let (elements, items) = (first..self.elements.len(), start..self.places.len());
            self.paths.push(Path { value, rule, elements, factors, items });
        }
    }

    /// The items of a path with the given elements, whose features ascend.
    fn items_of(&self, elements: Range<usize>) -> Vec<usize> {
        let features: Vec<usize> = self.elements[elements].iter().map(|e| e.feature).collect();
        if !self.of_pairs {
            return features;
        }
        let p = self.model.n_features;
        let pairs = |(k, &j): (usize, &usize)| features[k + 1..].iter().map(move |&k| j * p + k);
        features.iter().enumerate().flat_map(pairs).collect()
    }

    fn push_source(&mut self, values: &[f32]) -> usize {
        let start = self.sources.len();
        self.sources.extend_from_slice(values);
        self.sources.resize(start + self.stride, 0.0);
        start / self.stride
    }

    /// Brings the slots of an item together, and finds the features.
    pub fn sort(&mut self) {
        let mut order: Vec<usize> = (0..self.slots.len()).collect();
        order.sort_by_key(|&slot| self.slots[slot].item);
        let mut new_place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, &old)| new_place[old] = new);
        self.slots.sort_by_key(|slot| slot.item);
        self.places.iter_mut().for_each(|slot| *slot = new_place[*slot]);
        self.features = self.splits.iter().map(|split| split.node.feature_index()).collect();
        self.features.sort_unstable();
        self.features.dedup();
        for split in &mut self.splits {
            let feature = split.node.feature_index();
            split.place = self.features.partition_point(|&known| known < feature);
        }
    }

    /// Its size in bytes, roughly.
    pub fn size(&self) -> usize {
        size_of_val(&self.factors[..]) + size_of_val(&self.sources[..])
    }

    /// Elementary operations for a row, roughly.
    pub fn work_per_row(&self) -> usize {
        let width = if self.sources.is_empty() { 1 } else { self.stride };
        4 * self.splits.len()
            + self.factors.len()
            + self.places.len()
            + self.slots.len() * width / 4
    }

    /// Adds the Shapley values of the group to those of up to [`ROWS`] rows.
    #[inline(always)]
    pub fn add_rows(&self, x: &[f32], out: &mut [f64]) {
        let p = self.model.n_features;
        let mut columns = vec![0.0f32; self.features.len() * ROWS];
        let mut weights = vec![0.0f64; self.slots.len() * ROWS];
        let mut scratch = LaneRoom::new(self);
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
    /// Lanes are copied in and out of memory whole, so that the compiler keeps them in registers.
    #[inline(always)]
    fn weigh(&self, columns: &[f32], first: usize, scratch: &mut LaneRoom, weights: &mut [f64]) {
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
            let (n, slots) = (elements.len(), &self.places[path.items.clone()]);
            let (met, sums) = (&mut scratch.met[..n], &mut scratch.sums[..slots.len()]);
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
                if self.of_pairs {
                    let gains = &mut scratch.gains[..n];
                    add_pairs(node, &product, factors, met, gains, sums);
                    continue;
                }
                for ((factor, met), sums) in factors.iter().zip(met.iter()).zip(sums.iter_mut()) {
                    let (gained, mut sum) = (factor.gained, *sums);
                    for k in 0..LANES {
                        sum[k] += product[k] * (met[k] * gained - lost);
                    }
                    *sums = sum;
                }
            }
            for (&slot, sums) in slots.iter().zip(sums.iter()) {
                let weights = &mut weights[slot * ROWS + first..][..LANES];
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
        let (d, width) = (self.model.n_outputs, self.width());
        for (slot, weights) in self.slots.iter().zip(weights.chunks_exact(ROWS)) {
            for (row, weight) in out.chunks_exact_mut(width).zip(weights) {
                row[slot.item * d + slot.source] += weight;
            }
        }
    }

    /// Adds weights times vectors of all outputs: a matrix product for each item, tile by tile.
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
        for slots in self.slots.chunk_by(|a, b| a.item == b.item) {
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

    /// Adds a few outputs of one item for all rows; `weights` begins with those of the first tile.
    /// A few products at a time are summed in single precision, the precision of leaf values; their
    /// sums are added in double.
    #[inline(always)]
    fn add_tiles<const WIDTH: usize>(
        &self,
        slots: &[Slot],
        weights: &[[f32; TILE_ROWS]],
        output: usize,
        out: &mut [f64],
    ) {
        let (d, width) = (self.model.n_outputs, self.width());
        let n_rows = out.len() / width;
        let mut sources = [[0.0f32; WIDTH]; TILE_SLOTS];
        for (first, slots) in slots.chunks(TILE_SLOTS).enumerate() {
            // Copied side by side once, for all tiles of rows.
            let sources = &mut sources[..slots.len()];
            for (source, slot) in sources.iter_mut().zip(slots) {
                let place = slot.source * self.stride + output;
                source.copy_from_slice(&self.sources[place..place + WIDTH]);
            }
            for top in (0..n_rows).step_by(TILE_ROWS) {
                let place = top / TILE_ROWS * self.slots.len() + first * TILE_SLOTS;
                let sums = tile(sources, &weights[place..place + slots.len()]);
                for (sums, row) in sums.iter().zip(top..n_rows) {
                    let place = row * width + slots[0].item * d + output;
                    let out = &mut out[place..place + WIDTH.min(d - output)];
                    out.iter_mut().zip(sums).for_each(|(out, &sum)| *out += f64::from(sum));
                }
            }
        }
    }
}

/// Adds what one quadrature node gives to each pair of the elements of a path.
#[inline(always)]
fn add_pairs(
    node: &QuadratureNode,
    product: &RowLanes,
    factors: &[Factor],
    met: &[RowLanes],
    gains: &mut [RowLanes],
    sums: &mut [RowLanes],
) {
    // (o − z) w over the factor of each element; two of them have one weight w too many, and half of
    // an interaction belongs to each of its features.
    for ((gain, factor), met) in gains.iter_mut().zip(factors).zip(met) {
        *gain = met.map(|met| met * factor.gained - node.lost);
    }
    let half = 0.5 / (node.lost * (1.0 - node.at));
    let mut sums = sums.iter_mut();
    for (k, gain) in gains.iter().enumerate() {
        let mut own = [0.0; LANES];
        for lane in 0..LANES {
            own[lane] = half * product[lane] * gain[lane];
        }
        for (other, sums) in gains[k + 1..].iter().zip(&mut sums) {
            for lane in 0..LANES {
                sums[lane] += own[lane] * other[lane];
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
struct LaneRoom {
    /// 1 where a row goes left, and 1 where it goes right, for each split.
    sides: Vec<RowLanes>,
    /// 1 where a row meets the conditions on a feature, for each element of a path.
    met: Vec<RowLanes>,
    /// Weights of the items of a path.
    sums: Vec<RowLanes>,
    /// What each element of a path gains at a quadrature node.
    gains: Vec<RowLanes>,
}

impl LaneRoom {
    fn new(group: &TreeGroup<'_>) -> LaneRoom {
        let longest = group.paths.iter().map(|path| path.elements.len()).max().unwrap_or(0);
        let most = group.paths.iter().map(|path| path.items.len()).max().unwrap_or(0);
        let zeros = |n: usize| vec![[0.0; LANES]; n];
        LaneRoom {
            sides: zeros(2 * group.splits.len()),
            met: zeros(longest),
            sums: zeros(most),
            gains: zeros(if group.of_pairs { longest } else { 0 }),
        }
    }
}
