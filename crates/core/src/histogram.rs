//! Histograms: for every bin of a feature, the integer sums of a node's rows.
//!
//! A row contributes one small vector of integer *lanes*: its q split gradients, its weight if rows
//! are weighted (one for each component if cells are), and a one that counts it. With one component
//! and no weights all of it is packed in one 64-bit lane, the sum above, the count below.

use crate::binning::Compressed;
use crate::error::Result;
use crate::memory::{collected, resize, zeros};
use crate::parallel::Pool;
use crate::reduce::{FixedPoint, add_up_here, bits_for, exchange, round_scaled};

/// Bits of a gradient in narrow lanes.
const NARROW_BITS: i32 = 30;
/// Fewest bits of a gradient worth packing.
const PACKED_BITS: i32 = 22;
/// Gradients of fewer quanta than this are coarse, and if one row in `COARSE_SHARE` has one, lanes
/// become wide: an outlier sets the quantum, but the other rows need their digits too.
const COARSE: f64 = 1024.0;
const COARSE_SHARE: usize = 16;

/// How the lanes of a row and of a bin are to be read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layout {
    /// Number of components q.
    pub components: usize,
    /// Lanes that hold weights: none, one, or one for each component.
    pub weight_lanes: usize,
    /// Lanes per row and per bin.
    pub width: usize,
    /// Low bits holding the count, when packed.
    pub count_bits: Option<u32>,
    /// Whether no sum can reach 2⁵⁰: exact in double precision, with room to spare.
    pub small: bool,
    /// Value of one gradient quantum.
    pub unit: f64,
    /// Value of one weight quantum.
    pub weight_unit: f64,
}

impl Layout {
    /// Rows counted in these lanes.
    #[inline(always)]
    pub fn count(&self, lanes: &[i64]) -> i64 {
        match self.count_bits {
            Some(bits) => lanes[0] & ((1 << bits) - 1),
            None => lanes[self.width - 1],
        }
    }

    /// Total weight in these lanes, in weight quanta (rows when unweighted); that of the average
    /// component where each has its own.
    #[inline(always)]
    pub fn weight(&self, lanes: &[i64]) -> f64 {
        match self.weight_lanes {
            0 => self.count(lanes) as f64,
            1 => lanes[self.components] as f64,
            m => self.weights(lanes).iter().map(|&w| w as f64).sum::<f64>() / m as f64,
        }
    }

    /// The lanes that hold weights.
    #[inline(always)]
    pub fn weights<'l>(&self, lanes: &'l [i64]) -> &'l [i64] {
        &lanes[self.components..self.components + self.weight_lanes]
    }

    /// Whether each component has weights of its own.
    #[inline(always)]
    pub fn by_component(&self) -> bool {
        self.weight_lanes > 1
    }

    /// Sum of a component in these lanes, in gradient quanta.
    #[inline(always)]
    pub fn sum(&self, lanes: &[i64], component: usize) -> f64 {
        match self.count_bits {
            Some(bits) => (lanes[0] >> bits) as f64,
            None => lanes[component] as f64,
        }
    }
}

/// The split gradients of all rows as integer lanes.
#[derive(Debug, Clone)]
pub struct SplitGradients {
    /// How to read them.
    pub layout: Layout,
    /// The lanes, row after row.
    pub lanes: Lanes,
}

/// Integer lanes, as narrow as the data allow.
#[derive(Debug, Clone)]
pub enum Lanes {
    /// 32 bits: most data.
    Narrow(Vec<i32>),
    /// 64 bits: packed lanes, or gradients with tails too heavy for 32 bits.
    Wide(Vec<i64>),
}

/// What split gradients weigh.
#[derive(Debug, Clone, Copy)]
pub enum SplitWeights<'a> {
    /// Each row the same.
    Equal,
    /// Rows as given, n.
    Rows(&'a [f32]),
    /// Each component of a row as given, n × q; the gradients are already multiplied by weights.
    Components(&'a [f32]),
}

/// Turns weighted split gradients (n × q) into integers; the scale comes from the exact maximum.
/// `rows` are those that will be looked at (all if `None`): no others have a say in the scale of
/// weights. `spare` is memory that may be used.
pub fn quantise(
    pool: &Pool,
    z: &[f32],
    n_components: usize,
    weights: SplitWeights<'_>,
    rows: Option<&[u32]>,
    spare: Option<Lanes>,
) -> Result<SplitGradients> {
    let q = n_components;
    let n = z.len() / q;
    let source = Source { z, q, weights, n };
    let n_all = pool.all_rows(n);
    let max =
        source.fold(pool, 0.0, |max: f64, size| if size > max { size } else { max }, f64::max)?;
    let (weight_lanes, weight_max) = match weights {
        SplitWeights::Equal => (0, 1.0),
        SplitWeights::Rows(w) => (1, largest_of(w, 1, rows)),
        SplitWeights::Components(w) => (q, largest_of(w, q, rows)),
    };
    // Which of them are coarse, machines cannot tell before they know the largest of all; so they
    // count them by their exponents, and exchange both at once.
    let mut exponents = match pool.others() {
        Some(_) => source.exponents(pool)?,
        None => Vec::new(),
    };
    let mut maxima = [max, weight_max];
    exchange(pool, &mut exponents, &mut maxima)?;
    let [max, weight_max] = maxima;
    let fine_enough = |fixed: FixedPoint| -> Result<bool> {
        // A power of two.
        let limit = COARSE * fixed.unit;
        let n_coarse = if pool.others().is_some() {
            exponents[..exponent_bits(limit)].iter().sum::<i64>() as usize
        } else {
            let count = |count, size| count + usize::from((size < limit) & (size > 0.0));
            source.fold(pool, 0usize, count, |a, b| a + b)?
        };
        Ok(n_coarse * COARSE_SHARE <= n_all * q)
    };

    let count_bits = bits_for(n_all);
    // The sum sits above the count, and must itself stay below 2⁵⁰ for the split search.
    let packed_bits = (62 - 2 * count_bits).min(50 - count_bits);
    if q == 1 && weight_lanes == 0 && packed_bits >= PACKED_BITS {
        let fixed = FixedPoint::with_bits(max, packed_bits)?;
        if fine_enough(fixed)? {
            let layout = Layout {
                components: 1,
                weight_lanes,
                width: 1,
                count_bits: Some(count_bits as u32),
                small: true,
                unit: fixed.unit,
                weight_unit: 1.0,
            };
            let mut lanes = wide_lanes(spare, n)?;
            source.encode(pool, &mut lanes, 1, |_, _, z, lanes| {
                lanes[0] = (round_scaled(f64::from(z[0]) * fixed.scale) << count_bits) + 1;
            })?;
            return Ok(SplitGradients { layout, lanes: Lanes::Wide(lanes) });
        }
    }
    let width = q + weight_lanes + 1;
    let narrow = FixedPoint::with_bits(max, NARROW_BITS)?;
    let is_narrow = fine_enough(narrow)?;
    let fixed = if is_narrow { narrow } else { FixedPoint::for_sum(max, n_all)? };
    let weight_fixed = FixedPoint::with_bits(weight_max, NARROW_BITS)?;
    let layout = Layout {
        components: q,
        weight_lanes,
        width,
        count_bits: None,
        small: is_narrow && NARROW_BITS + count_bits <= 50,
        unit: fixed.unit,
        weight_unit: weight_fixed.unit,
    };
    let lanes = if is_narrow {
        let mut lanes = narrow_lanes(spare, n * width)?;
        source.encode(pool, &mut lanes, width, |i, w, z, lanes| {
            let scale = fixed.scale * w;
            for (lane, &z) in lanes.iter_mut().zip(z) {
                *lane = round_scaled(f64::from(z) * scale) as i32;
            }
            for (lane, w) in lanes[q..].iter_mut().zip(source.weights_of(i)) {
                *lane = weight_fixed.encode(w) as i32;
            }
            lanes[width - 1] = i32::from(source.counts(i));
        })?;
        Lanes::Narrow(lanes)
    } else {
        let mut lanes = wide_lanes(spare, n * width)?;
        source.encode(pool, &mut lanes, width, |i, w, z, lanes| {
            for (lane, &z) in lanes.iter_mut().zip(z) {
                *lane = fixed.encode(f64::from(z) * w);
            }
            for (lane, w) in lanes[q..].iter_mut().zip(source.weights_of(i)) {
                *lane = weight_fixed.encode(w);
            }
            lanes[width - 1] = i64::from(source.counts(i));
        })?;
        Lanes::Wide(lanes)
    };
    Ok(SplitGradients { layout, lanes })
}

fn wide_lanes(spare: Option<Lanes>, len: usize) -> Result<Vec<i64>> {
    match spare {
        Some(Lanes::Wide(lanes)) => of_len(lanes, len),
        _ => zeros(len),
    }
}

fn narrow_lanes(spare: Option<Lanes>, len: usize) -> Result<Vec<i32>> {
    match spare {
        Some(Lanes::Narrow(lanes)) => of_len(lanes, len),
        _ => zeros(len),
    }
}

fn of_len<T: Copy + Default>(mut lanes: Vec<T>, len: usize) -> Result<Vec<T>> {
    resize(&mut lanes, len, T::default())?;
    Ok(lanes)
}

/// The largest number in some rows of `width` numbers each.
fn largest_of(values: &[f32], width: usize, rows: Option<&[u32]>) -> f64 {
    let largest = |values: &[f32]| values.iter().fold(0.0f64, |m, &v| m.max(f64::from(v)));
    match rows {
        None => largest(values),
        Some(rows) => rows
            .iter()
            .map(|&row| largest(&values[row as usize * width..][..width]))
            .fold(0.0, f64::max),
    }
}

/// The eleven bits of the exponent.
fn exponent_bits(size: f64) -> usize {
    (size.to_bits() >> 52) as usize & 0x7ff
}

/// Split gradients and weights, to be gone over in pieces.
struct Source<'a> {
    z: &'a [f32],
    q: usize,
    weights: SplitWeights<'a>,
    n: usize,
}

impl Source<'_> {
    /// What the gradients of a row are still to be multiplied by.
    fn weight(&self, row: usize) -> f64 {
        match self.weights {
            SplitWeights::Rows(w) => f64::from(w[row]),
            SplitWeights::Equal | SplitWeights::Components(_) => 1.0,
        }
    }

    /// What goes into the weight lanes of a row.
    fn weights_of(&self, row: usize) -> impl Iterator<Item = f64> {
        let lanes = match self.weights {
            SplitWeights::Equal => &[],
            SplitWeights::Rows(w) => &w[row..row + 1],
            SplitWeights::Components(w) => &w[row * self.q..(row + 1) * self.q],
        };
        lanes.iter().map(|&w| f64::from(w))
    }

    /// Whether a row is there at all.
    fn counts(&self, row: usize) -> bool {
        match self.weights {
            SplitWeights::Components(_) => self.weights_of(row).any(|w| w > 0.0),
            SplitWeights::Equal | SplitWeights::Rows(_) => true,
        }
    }

    /// Folds the |w z| of all cells.
    fn fold<A: Copy + Send + Sync>(
        &self,
        pool: &Pool,
        start: A,
        step: impl Fn(A, f64) -> A + Sync,
        merge: impl Fn(A, A) -> A,
    ) -> Result<A> {
        let q = self.q;
        let parts = pool.map(pool.row_ranges(self.n, q), self.n * q, |rows| {
            let mut folded = start;
            for i in rows {
                let w = self.weight(i);
                for &z in &self.z[i * q..(i + 1) * q] {
                    folded = step(folded, (f64::from(z) * w).abs());
                }
            }
            folded
        })?;
        Ok(parts.into_iter().fold(start, merge))
    }

    /// How many of the |w z| that are not zero have each binary exponent.
    fn exponents(&self, pool: &Pool) -> Result<Vec<i64>> {
        let q = self.q;
        let parts = pool.map(pool.row_ranges(self.n, q), self.n * q, |rows| {
            let mut counts = vec![0i64; 1 << 11];
            for i in rows {
                let w = self.weight(i);
                for &z in &self.z[i * q..(i + 1) * q] {
                    let size = (f64::from(z) * w).abs();
                    counts[exponent_bits(size)] += i64::from(size > 0.0);
                }
            }
            counts
        })?;
        add_up_here(parts, 1 << 11)
    }

    /// Calls `fill(row, weight, z, lanes)` for every row.
    fn encode<T: Send>(
        &self,
        pool: &Pool,
        lanes: &mut [T],
        width: usize,
        fill: impl Fn(usize, f64, &[f32], &mut [T]) + Sync,
    ) -> Result<()> {
        let q = self.q;
        let size = self.n.div_ceil(pool.threads() * 4).max(1);
        let pieces = lanes.chunks_mut(size * width).enumerate();
        pool.for_each(pieces, self.n * q * 2, |(piece, lanes)| {
            for (k, lanes) in lanes.chunks_exact_mut(width).enumerate() {
                let i = piece * size + k;
                fill(i, self.weight(i), &self.z[i * q..(i + 1) * q], lanes);
            }
        })
    }
}

/// A lane type.
pub trait Lane: Copy + Send + Sync + Into<i64> {}
impl Lane for i32 {}
impl Lane for i64 {}

/// The rows of a node.
#[derive(Debug, Clone, Copy)]
pub enum NodeRows<'a> {
    /// All rows, in order.
    All,
    /// These rows.
    Some(&'a [u32]),
}

/// Sums the lanes of a node's rows into the bins of one feature. `lanes` holds the node's rows side
/// by side if `gathered`, else all rows.
#[inline(always)]
pub fn accumulate<T: Lane>(
    column: &[u8],
    rows: NodeRows<'_>,
    lanes: &[T],
    gathered: bool,
    width: usize,
    histogram: &mut [i64],
) {
    match (width, rows) {
        (1, NodeRows::All) => {
            // 256 sums for 8-bit bins: no index is ever out of bounds.
            let mut sums = [0i64; 256];
            for (&bin, &lane) in column.iter().zip(lanes) {
                sums[bin as usize] += lane.into();
            }
            histogram.copy_from_slice(&sums[..histogram.len()]);
        }
        (1, NodeRows::Some(rows)) if gathered => {
            let mut sums = [0i64; 256];
            for (&row, &lane) in rows.iter().zip(lanes) {
                sums[column[row as usize] as usize] += lane.into();
            }
            histogram.copy_from_slice(&sums[..histogram.len()]);
        }
        (_, NodeRows::All) => {
            histogram.fill(0);
            for (&bin, lanes) in column.iter().zip(lanes.chunks_exact(width)) {
                add_lanes(&mut histogram[bin as usize * width..][..width], lanes);
            }
        }
        (_, NodeRows::Some(rows)) => {
            histogram.fill(0);
            for (k, &row) in rows.iter().enumerate() {
                let source = if gathered { k } else { row as usize };
                let bin = column[row as usize] as usize;
                add_lanes(
                    &mut histogram[bin * width..][..width],
                    &lanes[source * width..][..width],
                );
            }
        }
    }
}

/// Features summed together in [`accumulate_four`].
pub const GROUP: usize = 4;

/// Like [`accumulate`] with one lane, for four features at once: a row's number and lane are read
/// once for all of them.
#[inline]
pub fn accumulate_four<T: Lane>(
    columns: [&[u8]; GROUP],
    rows: NodeRows<'_>,
    lanes: &[T],
) -> [[i64; 256]; GROUP] {
    let mut sums = [[0i64; 256]; GROUP];
    let [a, b, c, d] = columns;
    let mut add = |bins: [u8; GROUP], lane: i64| {
        for (sums, bin) in sums.iter_mut().zip(bins) {
            sums[bin as usize] += lane;
        }
    };
    match rows {
        NodeRows::All => {
            for ((((&a, &b), &c), &d), &lane) in a.iter().zip(b).zip(c).zip(d).zip(lanes) {
                add([a, b, c, d], lane.into());
            }
        }
        NodeRows::Some(rows) => {
            for (&row, &lane) in rows.iter().zip(lanes) {
                let row = row as usize;
                add([a[row], b[row], c[row], d[row]], lane.into());
            }
        }
    }
    sums
}

/// Compressed features by rows: for each row, its listed bins.
#[derive(Debug)]
pub struct RowLists {
    /// First entry of each row, and one past the last.
    starts: Vec<u32>,
    entries: Vec<Entry>,
}

/// A listed bin: its feature, counted within the block, and its slot in the block's histogram.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    feature: u32,
    slot: u32,
}

impl RowLists {
    /// Lists the given columns, each with its first histogram slot, ascending.
    pub fn new(n_rows: usize, columns: &[(&Compressed, usize)]) -> Result<RowLists> {
        let mut starts = zeros::<u32>(n_rows + 1)?;
        for (column, _) in columns {
            column.rows.iter().for_each(|&row| starts[row as usize + 1] += 1);
        }
        for row in 0..n_rows {
            starts[row + 1] += starts[row];
        }
        let mut next = collected(starts.len(), starts.iter().copied())?;
        let mut entries = Vec::new();
        resize(&mut entries, starts[n_rows] as usize, Entry::default())?;
        for (feature, (column, first)) in columns.iter().enumerate() {
            for (&row, &bin) in column.rows.iter().zip(&column.bins) {
                let place = &mut next[row as usize];
                let slot = *first as u32 + u32::from(bin);
                entries[*place as usize] = Entry { feature: feature as u32, slot };
                *place += 1;
            }
        }
        Ok(RowLists { starts, entries })
    }

    #[inline(always)]
    fn of(&self, row: usize) -> &[Entry] {
        &self.entries[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    /// Calls `f(row, place of its lanes)` for each row of a node.
    #[inline(always)]
    fn each_row(&self, rows: NodeRows<'_>, gathered: bool, mut f: impl FnMut(&[Entry], usize)) {
        match rows {
            NodeRows::All => (0..self.starts.len() - 1).for_each(|row| f(self.of(row), row)),
            NodeRows::Some(rows) => {
                for (k, &row) in rows.iter().enumerate() {
                    f(self.of(row as usize), if gathered { k } else { row as usize });
                }
            }
        }
    }

    /// Counts the listed rows of each feature.
    pub fn count(&self, rows: NodeRows<'_>, counts: &mut [u32]) {
        self.each_row(rows, false, |entries, _| {
            entries.iter().for_each(|entry| counts[entry.feature as usize] += 1);
        });
    }

    /// Adds the lanes of a node's rows to the slots of the features that are `wanted`, and takes
    /// them from those of `parent`, if given.
    #[inline(always)]
    pub fn accumulate<T: Lane>(
        &self,
        rows: NodeRows<'_>,
        (lanes, gathered, width): (&[T], bool, usize),
        wanted: &[bool],
        histogram: &mut [i64],
        mut parent: Option<&mut [i64]>,
    ) {
        self.each_row(rows, gathered, |entries, source| {
            let lanes = &lanes[source * width..][..width];
            for &Entry { feature, slot } in entries {
                let place = slot as usize * width;
                if wanted[feature as usize] {
                    add_lanes(&mut histogram[place..][..width], lanes);
                }
                if let Some(parent) = &mut parent {
                    // Features that the parent has given up hold anything.
                    for (sum, &lane) in parent[place..][..width].iter_mut().zip(lanes) {
                        *sum = sum.wrapping_sub(lane.into());
                    }
                }
            }
        });
    }
}

/// Like [`accumulate`] for a compressed feature: cost follows the shorter of the node's rows and the
/// listed ones. The default bin is left at zero.
pub fn accumulate_compressed<T: Lane>(
    column: &Compressed,
    rows: NodeRows<'_>,
    lanes: &[T],
    gathered: bool,
    width: usize,
    histogram: &mut [i64],
) {
    histogram.fill(0);
    let mut add = |listed: usize, source: usize| {
        let bin = column.bins[listed] as usize;
        add_lanes(&mut histogram[bin * width..][..width], &lanes[source * width..][..width]);
    };
    let NodeRows::Some(rows) = rows else {
        column.rows.iter().enumerate().for_each(|(listed, &row)| add(listed, row as usize));
        return;
    };
    // Both lists ascend: the next match lies beyond the last one.
    let mut rest = 0;
    if rows.len() < column.rows.len() {
        for (k, &row) in rows.iter().enumerate() {
            rest += column.rows[rest..].partition_point(|&listed| listed < row);
            if column.rows.get(rest) == Some(&row) {
                add(rest, if gathered { k } else { row as usize });
            }
        }
    } else {
        for (listed, &row) in column.rows.iter().enumerate() {
            rest += rows[rest..].partition_point(|&other| other < row);
            if rows.get(rest) == Some(&row) {
                add(listed, if gathered { rest } else { row as usize });
            }
        }
    }
}

/// Fills in the default bin of a compressed feature, whatever it holds: the node's total minus all
/// other bins.
#[inline(always)]
pub fn fill_default(histogram: &mut [i64], default: u8, total: &[i64]) {
    let width = total.len();
    if width == 1 {
        let rest: i64 = histogram.iter().sum();
        histogram[default as usize] += total[0] - rest;
        return;
    }
    let (before, from) = histogram.split_at_mut(default as usize * width);
    let (default, after) = from.split_at_mut(width);
    default.copy_from_slice(total);
    for bin in before.chunks_exact(width).chain(after.chunks_exact(width)) {
        default.iter_mut().zip(bin).for_each(|(d, b)| *d -= b);
    }
}

#[inline(always)]
fn add_lanes<T: Lane>(bin: &mut [i64], lanes: &[T]) {
    for (sum, &lane) in bin.iter_mut().zip(lanes) {
        *sum += lane.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_lanes_hold_sum_and_count() {
        let z = [0.5f32, -1.0, 0.25, 0.75];
        let gradients = quantise(&Pool::serial(), &z, 1, SplitWeights::Equal, None, None).unwrap();
        let Lanes::Wide(lanes) = &gradients.lanes else { panic!("expected packed lanes") };
        let total: i64 = lanes.iter().sum();
        assert_eq!(gradients.layout.count(&[total]), 4);
        let sum = gradients.layout.sum(&[total], 0) * gradients.layout.unit;
        assert!((sum - 0.5).abs() < 1e-9);
    }

    #[test]
    fn heavy_tails_widen_the_lanes() {
        let mut z = vec![1e-6f32; 1000];
        z[0] = 1e6;
        let gradients = quantise(&Pool::serial(), &z, 1, SplitWeights::Equal, None, None).unwrap();
        assert_eq!(gradients.layout.count_bits, None);
        let Lanes::Wide(lanes) = &gradients.lanes else { panic!("expected wide lanes") };
        let small = lanes[2] as f64 * gradients.layout.unit;
        assert!((small - 1e-6).abs() < 1e-7, "{small}");
    }

    #[test]
    fn weighted_lanes_hold_weight_and_count() {
        let weights = SplitWeights::Rows(&[2.0, 0.5]);
        let gradients =
            quantise(&Pool::serial(), &[1.0, 2.0, 3.0, 4.0], 2, weights, None, None).unwrap();
        let Lanes::Narrow(lanes) = &gradients.lanes else { panic!("expected narrow lanes") };
        let layout = gradients.layout;
        let first: Vec<i64> = lanes[..4].iter().map(|&v| v.into()).collect();
        assert_eq!(layout.sum(&first, 1) * layout.unit, 4.0);
        assert_eq!(layout.weight(&first) * layout.weight_unit, 2.0);
        assert_eq!(layout.count(&first), 1);
    }

    #[test]
    fn components_can_have_weights_of_their_own() {
        let weights = SplitWeights::Components(&[2.0, 0.5, 0.0, 0.0]);
        let gradients =
            quantise(&Pool::serial(), &[1.0, 2.0, 0.0, 0.0], 2, weights, None, None).unwrap();
        let Lanes::Narrow(lanes) = &gradients.lanes else { panic!("expected narrow lanes") };
        let layout = gradients.layout;
        let row = |i: usize| lanes[5 * i..5 * (i + 1)].iter().map(|&v| v.into()).collect();
        let (first, second): (Vec<i64>, Vec<i64>) = (row(0), row(1));
        assert_eq!(layout.sum(&first, 1) * layout.unit, 2.0);
        assert_eq!(layout.weights(&first)[1] as f64 * layout.weight_unit, 0.5);
        assert_eq!(layout.weight(&first) * layout.weight_unit, 1.25);
        assert_eq!((layout.count(&first), second), (1, vec![0; 5]));
    }

    #[test]
    fn gathered_or_not_the_sums_are_those_of_a_plain_loop() {
        let column: Vec<u8> = (0..50).map(|i| (i * 7 % 5) as u8).collect();
        let rows: Vec<u32> = (0..50).filter(|i| i % 3 != 0).collect();
        for width in 1..5usize {
            let lanes: Vec<i32> = (0..50 * width as i32).map(|i| i * i % 23 - 11).collect();
            let gathered: Vec<i32> = rows
                .iter()
                .flat_map(|&r| lanes[r as usize * width..(r as usize + 1) * width].to_vec())
                .collect();
            let mut expected = vec![0i64; 5 * width];
            for &row in &rows {
                for l in 0..width {
                    expected[column[row as usize] as usize * width + l] +=
                        i64::from(lanes[row as usize * width + l]);
                }
            }
            let mut direct = vec![0i64; 5 * width];
            accumulate(&column, NodeRows::Some(&rows), &lanes, false, width, &mut direct);
            let mut by_gather = vec![0i64; 5 * width];
            accumulate(&column, NodeRows::Some(&rows), &gathered, true, width, &mut by_gather);
            assert_eq!((&direct, &by_gather), (&expected, &expected));
        }
    }

    #[test]
    fn compressed_columns_sum_as_spread_ones_do() {
        let mut stream = crate::random::Key::new(4).stream();
        let (n, n_bins) = (80usize, 5usize);
        let dense: Vec<Vec<u8>> = (0..3)
            .map(|_| {
                let mut bin = || if stream.below(4) > 0 { 2 } else { stream.below(n_bins) as u8 };
                (0..n).map(|_| bin()).collect()
            })
            .collect();
        let compressed: Vec<Compressed> = dense
            .iter()
            .map(|bins| {
                let rows: Vec<u32> = (0..n as u32).filter(|&r| bins[r as usize] != 2).collect();
                let bins = rows.iter().map(|&r| bins[r as usize]).collect();
                Compressed { default: 2, rows, bins }
            })
            .collect();
        let placed: Vec<_> = compressed.iter().enumerate().map(|(k, c)| (c, k * n_bins)).collect();
        let lists = RowLists::new(n, &placed).unwrap();
        let some: Vec<u32> = (0..n as u32).filter(|r| r % 3 != 0).collect();
        let few: Vec<u32> = vec![1, 5, 40, 41, 79];
        for width in [1usize, 3, 9] {
            let lanes: Vec<i32> = (0..(n * width) as i32).map(|i| i * i % 23 - 11).collect();
            for rows in [NodeRows::All, NodeRows::Some(&some), NodeRows::Some(&few)] {
                let mut by_lists = vec![0i64; 3 * n_bins * width];
                let mut less = vec![0i64; 3 * n_bins * width];
                let source = (&lanes[..], false, width);
                let both = (&mut by_lists[..], Some(&mut less[..]));
                lists.accumulate(rows, source, &[true, true, true], both.0, both.1);
                assert!(by_lists.iter().zip(&less).all(|(sum, less)| *sum == -less));
                let mut counts = vec![0; 3];
                lists.count(rows, &mut counts);
                for (k, part) in by_lists.chunks_mut(n_bins * width).enumerate() {
                    let mut expected = vec![0i64; n_bins * width];
                    let gathered = matches!(rows, NodeRows::All);
                    accumulate(&dense[k], rows, &lanes, gathered, width, &mut expected);
                    let mut total = vec![0i64; width];
                    for bin in expected.chunks(width) {
                        total.iter_mut().zip(bin).for_each(|(t, b)| *t += b);
                    }
                    fill_default(part, 2, &total);
                    assert_eq!(part, expected);
                    let listed = |row: u32| u32::from(dense[k][row as usize] != 2);
                    let count: u32 = match rows {
                        NodeRows::All => (0..n as u32).map(listed).sum(),
                        NodeRows::Some(rows) => rows.iter().map(|&row| listed(row)).sum(),
                    };
                    assert_eq!(counts[k], count);
                    let mut single = vec![0i64; n_bins * width];
                    accumulate_compressed(&compressed[k], rows, &lanes, false, width, &mut single);
                    fill_default(&mut single, 2, &total);
                    assert_eq!(single, expected);
                }
            }
        }
    }
}
