//! What happens to the probabilities of labels after the link: calibrators and hierarchies.

use crate::entries::Entries;
use crate::links::Link;
use crate::{broken, Result};

/// From raw predictions to the shares of rows that had the label.
#[derive(Debug)]
pub enum Calibrator {
    /// 1 / (1 + exp(−slope · raw − intercept)), NaN: as it is.
    Sigmoids(Vec<(f64, f64)>),
    /// Lines between knots, constant beyond; none: as it is.
    Isotonics(Vec<Vec<(f64, f64)>>),
}

impl Calibrator {
    pub fn read(entries: &Entries<'_>) -> Result<Option<Calibrator>> {
        let names = [
            &["sigmoid_slopes", "sigmoid_intercepts"][..],
            &["isotonic_counts", "isotonic_knots", "isotonic_values"][..],
        ];
        let counts = names.map(|all| all.iter().filter(|n| entries.array(n).is_some()).count());
        match counts {
            [0, 0] => Ok(None),
            [2, 0] => Calibrator::sigmoids(entries).map(Some),
            [0, 3] => Calibrator::isotonics(entries).map(Some),
            _ => broken("it does not have all arrays of its calibrator"),
        }
    }

    fn sigmoids(entries: &Entries<'_>) -> Result<Calibrator> {
        let (slopes, intercepts) =
            (entries.f64s("sigmoid_slopes"), entries.f64s("sigmoid_intercepts"));
        let pairs: Vec<(f64, f64)> = slopes.into_iter().zip(intercepts).collect();
        let absent = |pair: &(f64, f64)| pair.0.is_nan() && pair.1.is_nan();
        let sound = |pair: &(f64, f64)| pair.0 >= 0.0 && pair.0.is_finite() && pair.1.is_finite();
        match pairs.iter().all(|pair| absent(pair) || sound(pair)) {
            true => Ok(Calibrator::Sigmoids(pairs)),
            false => broken("a sigmoid of its calibrator is not finite, or falls"),
        }
    }

    fn isotonics(entries: &Entries<'_>) -> Result<Calibrator> {
        let (knots, values) = (entries.f64s("isotonic_knots"), entries.f64s("isotonic_values"));
        let points: Vec<(f64, f64)> = knots.into_iter().zip(values).collect();
        let sound = |point: &(f64, f64)| point.0.is_finite() && (0.0..=1.0).contains(&point.1);
        let (mut curves, mut rest) = (Vec::new(), &points[..]);
        for count in entries.u32s("isotonic_counts") {
            let curve = match rest.get(..count as usize) {
                Some(curve) => curve,
                None => return broken("a curve of its calibrator is cut short"),
            };
            rest = &rest[curve.len()..];
            let rises = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
            if !curve.iter().all(sound) || !curve.windows(2).all(rises) {
                return broken("a curve of its calibrator is out of order");
            }
            curves.push(curve.to_vec());
        }
        match rest.is_empty() {
            true => Ok(Calibrator::Isotonics(curves)),
            false => broken("its calibrator has knots of no label"),
        }
    }

    /// Changes probabilities by the raw predictions that they came from.
    pub fn apply(&self, raw: &[f64], probabilities: &mut [f64]) {
        for (j, (raw, probability)) in raw.iter().zip(probabilities).enumerate() {
            match self {
                Calibrator::Sigmoids(pairs) if !pairs[j].0.is_nan() => {
                    let mut value = [pairs[j].0 * raw + pairs[j].1];
                    Link::Logistic.apply(&mut value);
                    *probability = value[0];
                }
                Calibrator::Isotonics(curves) if !curves[j].is_empty() => {
                    *probability = between(&curves[j], *raw);
                }
                _ => {}
            }
        }
    }
}

/// The value at x of lines between points.
fn between(points: &[(f64, f64)], x: f64) -> f64 {
    let n_up_to = points.partition_point(|point| point.0 <= x);
    if n_up_to == 0 {
        return points[0].1;
    }
    let low = points[n_up_to - 1];
    match points.get(n_up_to) {
        Some(high) => (high.1 - low.1) / (high.0 - low.0) * (x - low.0) + low.1,
        None => low.1,
    }
}

/// Pairs of a label and one above it, in the order in which values rise.
#[derive(Debug)]
pub struct Hierarchy {
    upwards: Vec<(usize, usize)>,
}

impl Hierarchy {
    pub fn read(entries: &Entries<'_>) -> Result<Option<Hierarchy>> {
        let names = ["hierarchy_children", "hierarchy_parents"];
        match names.iter().filter(|name| entries.array(name).is_some()).count() {
            0 => return Ok(None),
            1 => return broken("it does not have all arrays of its hierarchy"),
            _ => {}
        }
        let d = entries.n_outputs;
        let [children, parents] = names.map(|name| entries.u32s(name));
        let mut pairs: Vec<(usize, usize)> =
            children.iter().zip(&parents).map(|(c, p)| (*c as usize, *p as usize)).collect();
        let exist = pairs.iter().all(|(child, parent)| *child < d && *parent < d);
        if !exist || !pairs.windows(2).all(|two| two[0] < two[1]) {
            return broken("the pairs of its hierarchy are out of order, or of no labels");
        }
        // How far down a label is: after all above it.
        let (mut n_above, mut below) = (vec![0usize; d], vec![Vec::new(); d]);
        for (child, parent) in &pairs {
            n_above[*child] += 1;
            below[*parent].push(*child);
        }
        let mut order: Vec<usize> = (0..d).filter(|label| n_above[*label] == 0).collect();
        let mut rank = vec![0; d];
        let mut at = 0;
        while let Some(label) = order.get(at).copied() {
            rank[label] = at;
            at += 1;
            for child in &below[label] {
                n_above[*child] -= 1;
                if n_above[*child] == 0 {
                    order.push(*child);
                }
            }
        }
        if order.len() != d {
            return broken("its hierarchy has a cycle");
        }
        pairs.sort_by_key(|(child, _)| std::cmp::Reverse(rank[*child]));
        Ok(Some(Hierarchy { upwards: pairs }))
    }

    /// Gives each label the most of itself and all below it.
    pub fn apply(&self, values: &mut [f64]) {
        for (child, parent) in &self.upwards {
            if values[*child] > values[*parent] {
                values[*parent] = values[*child];
            }
        }
    }
}
