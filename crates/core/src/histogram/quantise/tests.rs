//! Tests of the integer lanes.

use std::sync::Arc;

use super::*;
use crate::comm::Comm;
use crate::error::Error;

/// A pool on one of several ranks, all others without rows, which together have `n_rows`.
fn among(n_rows: usize) -> Pool {
    struct Alone;
    impl Comm for Alone {
        fn reduce(&self, _: &mut [&mut [i64]], _: &mut [f64]) -> Result<()> {
            Ok(())
        }
    }
    Pool::serial().among(Arc::new(Alone), n_rows)
}

fn plain(pool: &Pool, z: &[f32], q: usize) -> Result<SplitGradients> {
    quantise(pool, z, q, SplitWeights::Equal, None, None)
}

#[test]
fn packed_lanes_hold_sum_and_count() {
    let gradients = plain(&Pool::serial(), &[0.5, -1.0, 0.25, 0.75], 1).unwrap();
    let RowLanes::Wide(lanes) = &gradients.lanes else { panic!("expected packed lanes") };
    let total: i64 = lanes.iter().sum();
    assert_eq!(gradients.layout.count(&[total]), 4);
    let sum = gradients.layout.sum(&[total], 0) * gradients.layout.unit;
    assert!((sum - 0.5).abs() < 1e-9);
}

#[test]
fn heavy_tails_widen_the_lanes() {
    let mut z = vec![1e-6f32; 1000];
    z[0] = 1e6;
    let gradients = plain(&Pool::serial(), &z, 1).unwrap();
    assert_eq!(gradients.layout.count_bits, None);
    let RowLanes::Wide(lanes) = &gradients.lanes else { panic!("expected wide lanes") };
    let small = lanes[2] as f64 * gradients.layout.unit;
    assert!((small - 1e-6).abs() < 1e-7, "{small}");
}

#[test]
fn weighted_lanes_hold_weight_and_count() {
    let weights = SplitWeights::Rows(&[2.0, 0.5]);
    let gradients =
        quantise(&Pool::serial(), &[1.0, 2.0, 3.0, 4.0], 2, weights, None, None).unwrap();
    let RowLanes::Narrow(lanes) = &gradients.lanes else { panic!("expected narrow lanes") };
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
    let RowLanes::Narrow(lanes) = &gradients.lanes else { panic!("expected narrow lanes") };
    let layout = gradients.layout;
    let row = |i: usize| lanes[5 * i..5 * (i + 1)].iter().map(|&v| v.into()).collect();
    let (first, second): (Vec<i64>, Vec<i64>) = (row(0), row(1));
    assert_eq!(layout.sum(&first, 1) * layout.unit, 2.0);
    assert_eq!(layout.weights(&first)[1] as f64 * layout.weight_unit, 0.5);
    assert_eq!(layout.weight(&first) * layout.weight_unit, 1.25);
    assert_eq!((layout.count(&first), second), (1, vec![0; 5]));
}

#[test]
fn the_last_packed_table_and_the_first_unpacked_one_hold_the_largest_gradients() {
    let below_one = 1.0f32.next_down();
    let z = [1.0f32, -1.0, below_one, -below_one];
    for (n_rows, packed) in [((1 << 20) - 1, true), (1 << 20, false)] {
        let SplitGradients { layout, lanes } = plain(&among(n_rows), &z, 1).unwrap();
        assert_eq!(layout.count_bits.is_some(), packed);
        // At 2²⁰ rows even narrow sums may reach 2⁵⁰.
        assert_eq!(layout.small, packed);
        for (i, &z) in z.iter().enumerate() {
            let row: Vec<i64> = match &lanes {
                RowLanes::Wide(lanes) => lanes[i * layout.width..][..layout.width].to_vec(),
                RowLanes::Narrow(lanes) => {
                    lanes[i * layout.width..][..layout.width].iter().map(|&v| v.into()).collect()
                }
            };
            // As many equal rows as there are in all.
            let times = |&lane: &i64| i64::try_from(i128::from(lane) * n_rows as i128).unwrap();
            let total: Vec<i64> = row.iter().map(times).collect();
            assert_eq!(layout.count(&total), n_rows as i64);
            let mean = layout.sum(&total, 0) * layout.unit / n_rows as f64;
            assert!((mean - f64::from(z)).abs() <= layout.unit, "{mean} {z}");
        }
    }
}

#[test]
fn gradients_that_are_not_finite_are_named() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for pool in [Pool::serial(), Pool::new(2, Box::new(|| false)), among(9)] {
            for q in [1, 3] {
                let mut z = vec![1.0f32; 3 * q];
                z[q] = bad;
                let Err(Error::Invalid(message)) = plain(&pool, &z, q) else {
                    panic!("{bad} was taken for a gradient")
                };
                let value = format!("row 1, component 0 is {bad}");
                assert!(message.contains(&value), "{message}");
            }
        }
    }
    let rows = SplitWeights::Rows(&[1.0, f32::INFINITY]);
    let cells = SplitWeights::Components(&[1.0, f32::NAN]);
    for weights in [rows, cells] {
        let lanes = quantise(&Pool::serial(), &[1.0, 0.0], 1, weights, None, None);
        assert!(matches!(lanes, Err(Error::Invalid(_))));
    }
}

#[test]
fn a_gradient_is_named_with_the_weight_that_it_is_still_to_be_multiplied_by() {
    let refusal = |weights: SplitWeights<'_>| {
        let refused = quantise(&Pool::serial(), &[1.0, f32::INFINITY], 1, weights, None, None);
        refused.unwrap_err().to_string()
    };
    let said = refusal(SplitWeights::Rows(&[1.0, 2.5]));
    assert!(said.contains("row 1, component 0 is inf with weight 2.5, which is not finite"));
    for weights in [SplitWeights::Equal, SplitWeights::Components(&[1.0, 2.5])] {
        assert!(refusal(weights).contains("row 1, component 0 is inf, which is not finite; check"));
    }
}

#[test]
fn a_rank_fails_with_the_others() {
    struct Poisoned;
    impl Comm for Poisoned {
        fn reduce(&self, _: &mut [&mut [i64]], maxima: &mut [f64]) -> Result<()> {
            maxima[0] = f64::INFINITY;
            Ok(())
        }
    }
    let pool = Pool::serial().among(Arc::new(Poisoned), 4);
    let Err(Error::Invalid(message)) = plain(&pool, &[1.0, 2.0], 1) else { panic!("no error") };
    assert!(message.contains("another rank"), "{message}");
}

#[test]
fn empty_shapes_divide_by_nothing() {
    assert!(matches!(plain(&Pool::serial(), &[], 0), Err(Error::Invalid(_))));
    for q in [1, 2] {
        let gradients = plain(&Pool::serial(), &[], q).unwrap();
        assert_eq!(gradients.layout.components, q);
        assert_eq!(gradients.layout.count(&vec![0; gradients.layout.width]), 0);
    }
}
