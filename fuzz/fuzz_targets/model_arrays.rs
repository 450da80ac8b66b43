//! Arrays of a model from arbitrary bytes: they are refused, or are a model that says what they say
//! and predicts.

#![no_main]

use std::borrow::Cow;

use libfuzzer_sys::fuzz_target;
use manyboost_core::ensemble::{Ensemble, FeatureRows, Kind};
use manyboost_core::format::{Arrays, from_arrays, to_arrays};
use manyboost_core::parallel::Pool;

/// Words taken from the front of the input. The layout, in words of four bytes: kind (and, in its
/// third bit, whether numbers of categories follow), outputs, features, lengths of eleven arrays,
/// numbers of categories, arrays.
struct Words<'a>(&'a [[u8; 4]]);

impl Words<'_> {
    fn next(&mut self) -> u32 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        u32::from_le_bytes(*first)
    }

    fn take(&mut self, n: usize) -> Vec<u32> {
        let n = n.min(self.0.len());
        (0..n).map(|_| self.next()).collect()
    }

    fn floats(&mut self, n: usize) -> Vec<f32> {
        self.take(n).into_iter().map(f32::from_bits).collect()
    }
}

fuzz_target!(|data: &[u8]| {
    let mut words = Words(data.as_chunks::<4>().0);
    let flags = words.next();
    let kind = [Kind::PerOutput, Kind::Vector, Kind::Scaled, Kind::Sparse][(flags & 3) as usize];
    let (n_outputs, n_features) = (words.next() as usize, words.next() as usize);
    let sizes: Vec<usize> = (0..11).map(|_| words.next() as usize).collect();
    let n_categories = (flags & 4 != 0).then(|| words.take(n_features));
    let arrays = Arrays {
        tree_sizes: Cow::Owned(words.take(sizes[0])),
        node_left: Cow::Owned(words.take(sizes[1])),
        node_cover: Cow::Owned(words.floats(sizes[2])),
        split_feature: Cow::Owned(words.take(sizes[3])),
        split_threshold: Cow::Owned(words.floats(sizes[4])),
        split_gain: Cow::Owned(words.floats(sizes[5])),
        split_categories: Cow::Owned(words.take(sizes[6])),
        leaf_values: Cow::Owned(words.floats(sizes[7])),
        tree_steps: Cow::Owned(words.floats(sizes[8])),
        leaf_sizes: Cow::Owned(words.take(sizes[9])),
        leaf_outputs: Cow::Owned(words.take(sizes[10])),
    };
    match from_arrays(kind, n_outputs, n_features, 1, &arrays, n_categories.as_deref()) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(model) => use_model(&model, &arrays, n_outputs, n_features),
    }
});

fn use_model(model: &Ensemble, arrays: &Arrays<'_>, n_outputs: usize, n_features: usize) {
    let again = to_arrays(model).expect("a model that was read can be written");
    assert!(same(arrays, &again), "a model that does not say what its arrays say");
    if n_outputs > 1000 || n_features > 1000 {
        return;
    }
    let rows: Vec<f32> = (0..3 * n_features)
        .map(|k| [0.0, f32::NAN, 1.0, -1e30, 255.0, 3.5][(k * 7 + k / n_features) % 6])
        .collect();
    let rounds = 0..model.n_trees() / model.trees_per_round();
    let mut raw = vec![0.0f32; 3 * n_outputs];
    model
        .add_to(&Pool::serial(), FeatureRows::Dense(&rows), rounds, &mut raw)
        .expect("a prediction");
    assert!(raw.iter().all(|v| !v.is_nan()) || overflows(arrays));
}

/// Bit by bit: −0 is not 0.
fn same(a: &Arrays<'_>, b: &Arrays<'_>) -> bool {
    let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<u32>>();
    let words = |x: &Arrays<'_>| {
        let all = [
            &x.tree_sizes,
            &x.node_left,
            &x.split_feature,
            &x.split_categories,
            &x.leaf_sizes,
            &x.leaf_outputs,
        ];
        all.map(|v| v.to_vec())
    };
    let floats = |x: &Arrays<'_>| {
        let all = [&x.node_cover, &x.split_threshold, &x.split_gain, &x.leaf_values, &x.tree_steps];
        all.map(|v| bits(v))
    };
    words(a) == words(b) && floats(a) == floats(b)
}

/// Whether sums of leaf values may leave single precision, so that +∞ and −∞ may meet.
fn overflows(arrays: &Arrays<'_>) -> bool {
    let largest = |values: &[f32]| values.iter().fold(0.0f64, |m, v| m.max(f64::from(v.abs())));
    let step = largest(&arrays.tree_steps).max(1.0);
    largest(&arrays.leaf_values) * step * arrays.tree_sizes.len() as f64 > 1e38
}
