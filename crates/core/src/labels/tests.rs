//! Sums and projections against residuals that are written out for all rows and outputs.

use super::*;
use crate::ensemble::{Ensemble, Kind};
use crate::random::Key;
use crate::tree::Node;

const N: usize = 41;
const D: usize = 11;
const L: usize = 3;

/// Three leaves: the nodes do not matter here.
fn nodes() -> Vec<Node> {
    let node =
        |feature, left| Node { feature, threshold: 0.0, left, cover: 1.0, gain: 0.0, cut: 0 };
    vec![node(0, 1), node(0, 0), node(0, 3), node(1, 0), node(2, 0)]
}

struct Problem {
    rows: LabelRows,
    model: Ensemble,
    start: Vec<f64>,
    weights: Vec<f32>,
    /// r = 2p − (1 + b) − Σ v, (N × D).
    residuals: Vec<f64>,
    /// Weights of cells, (N × D).
    cells: Vec<f64>,
    leaf_of_row: Vec<u32>,
}

/// Rows in the leaves of some trees; with `marked`, cells have weights.
fn problem(kind: Kind, n_trees: usize, marked: bool) -> Problem {
    let mut stream = Key::new(3).stream();
    let mut uniform = || stream.uniform();
    let (mut starts, mut labels, mut present) = (vec![0i64], vec![], vec![0.0; N * D]);
    for i in 0..N {
        for j in 0..D {
            // The last output is nobody's label.
            if uniform() < 0.5 / (j + 1) as f64 && j + 1 < D {
                labels.push(j as i32);
                present[i * D + j] = 1.0;
            }
        }
        starts.push(labels.len() as i64);
    }
    let mut rows = LabelRows::new(D, &starts, &labels).unwrap();
    let mut cells = vec![1.0; N * D];
    if marked {
        let (mut starts, mut outputs, mut weights) = (vec![0i64], vec![], vec![]);
        for (i, row) in cells.chunks_mut(D).enumerate() {
            for (j, cell) in row.iter_mut().enumerate().filter(|(j, _)| (i + j) % 3 == 0) {
                *cell = [0.0, 0.5, 4.0][(i + 2 * j) % 3];
                outputs.push(j as i32);
                weights.push(*cell as f32);
            }
            starts.push(outputs.len() as i64);
        }
        rows.mark(&starts, &outputs, &weights).unwrap();
    }
    let start: Vec<f64> =
        (0..D).map(|j| 2.0 * present[j..].iter().step_by(D).sum::<f64>() / N as f64).collect();
    let mut residuals: Vec<f64> =
        present.iter().enumerate().map(|(cell, p)| 2.0 * p - start[cell % D]).collect();
    let mut model = Ensemble::new(kind, D, 1);
    for _ in 0..n_trees {
        let leaf_of_row: Vec<u32> = (0..N).map(|_| (uniform() * L as f64) as u32).collect();
        let mut vectors = [0.0f32; L * D];
        if kind == Kind::Scaled {
            let values: Vec<f32> = (0..L).map(|_| uniform() as f32 - 0.5).collect();
            let steps: Vec<f32> = (0..D).map(|_| uniform() as f32 - 0.5).collect();
            for (cell, vector) in vectors.iter_mut().enumerate() {
                *vector = values[cell / D] * steps[cell % D];
            }
            model.push(&nodes(), &[], &values, &steps).unwrap();
        } else {
            let (mut sizes, mut outputs, mut values) = (vec![], vec![], vec![]);
            for leaf in 0..L {
                let first = outputs.len();
                for j in (0..D).filter(|j| (j + leaf) % 3 == 0) {
                    vectors[leaf * D + j] = uniform() as f32 - 0.5;
                    outputs.push(j as u32);
                    values.push(vectors[leaf * D + j]);
                }
                sizes.push(outputs.len() - first);
            }
            model.push_sparse(&nodes(), &[], &sizes, &outputs, &values).unwrap();
        }
        for (cell, residual) in residuals.iter_mut().enumerate() {
            *residual -= f64::from(vectors[leaf_of_row[cell / D] as usize * D + cell % D]);
        }
        rows.push(&model, &leaf_of_row, L).unwrap();
    }
    let weights = (0..N).map(|i| [1.0, 0.0, 2.5][i % 3]).collect();
    let leaf_of_row = (0..N).map(|_| (uniform() * L as f64) as u32).collect();
    Problem { rows, model, start, weights, residuals, cells, leaf_of_row }
}

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
    }
}

#[test]
fn projections_are_those_of_the_residuals() {
    for (kind, n_trees, marked) in [
        (Kind::Scaled, 0, false),
        (Kind::Scaled, 4, false),
        (Kind::Scaled, 4, true),
        (Kind::Sparse, 4, false),
        (Kind::Sparse, 4, true),
    ] {
        let p = problem(kind, n_trees, marked);
        for q in [1, 3] {
            let phi: Vec<f32> = (0..q * D).map(|k| ((k * 7 % 13) as f32 - 6.0) / 5.0).collect();
            let mut z = vec![0.0f32; N * q];
            p.rows.project(&Pool::serial(), &p.model, &phi, &p.start, &mut z).unwrap();
            let mut expected = vec![];
            let mut shares = vec![];
            for (r, cells) in p.residuals.chunks(D).zip(p.cells.chunks(D)) {
                for phi in phi.chunks(D) {
                    let phi = || phi.iter().map(|&phi| f64::from(phi));
                    expected.push(
                        r.iter().zip(cells).zip(phi()).map(|((r, c), phi)| c * r * phi).sum(),
                    );
                    let weighted: f64 = cells.iter().zip(phi()).map(|(c, phi)| c * phi * phi).sum();
                    shares.push(weighted / phi().map(|phi| phi * phi).sum::<f64>());
                }
            }
            close(&z.iter().map(|&z| f64::from(z)).collect::<Vec<_>>(), &expected);
            p.rows.cell_shares(&phi, &mut z).unwrap();
            close(&z.iter().map(|&z| f64::from(z)).collect::<Vec<_>>(), &shares);
        }
        assert!(p.rows.cell_shares(&[0.0; D], &mut []).is_err());
        assert!(
            p.rows.project(&Pool::serial(), &p.model, &[0.0; D - 1], &p.start, &mut []).is_err()
        );
    }
}

#[test]
fn slopes_are_sums_of_residuals_along_leaf_values() {
    for (n_trees, marked) in [(0, false), (4, false), (0, true), (4, true)] {
        let p = problem(Kind::Scaled, n_trees, marked);
        let values = [0.5, -1.0, 0.25];
        for rows in [None, Some(&p.weights[..])] {
            let weighted = Weighted { rows, start: &p.start };
            let pool = Pool::serial();
            let found = p.rows.slopes(&pool, &p.model, &p.leaf_of_row, &values, weighted).unwrap();
            let (mut expected, mut squares) = (vec![0.0; D], vec![0.0; D]);
            for (cell, r) in p.residuals.iter().enumerate() {
                let i = cell / D;
                let (weight, g) = (weighted.of(i), values[p.leaf_of_row[i] as usize]);
                expected[cell % D] += p.cells[cell] * weight * g * r;
                squares[cell % D] += (p.cells[cell] - 1.0) * weight * g * g;
            }
            close(&found, &expected);
            close(&p.rows.marked_squares(&p.leaf_of_row, &values, rows).unwrap(), &squares);
            assert!(p.rows.marked_squares(&p.leaf_of_row, &values, Some(&[1.0])).is_err());
        }
    }
}

#[test]
fn leaves_keep_the_outputs_of_largest_sums() {
    for (n_trees, marked) in [(0, false), (4, false), (0, true), (4, true)] {
        let p = problem(Kind::Sparse, n_trees, marked);
        let mut order: Vec<u32> = (0..D as u32).collect();
        order.sort_by(|&a, &b| p.start[b as usize].total_cmp(&p.start[a as usize]));
        for rows in [None, Some(&p.weights[..])] {
            let (weighted, pool) = (Weighted { rows, start: &p.start }, Pool::serial());
            let mut all = [[0.0; D]; L];
            let mut weights = [[0.0; D]; L];
            for (cell, r) in p.residuals.iter().enumerate() {
                let (i, j) = (cell / D, cell % D);
                let (leaf, weight) = (p.leaf_of_row[i] as usize, p.cells[cell] * weighted.of(i));
                weights[leaf][j] += weight;
                all[leaf][j] += weight * r;
            }
            for most in [1, 4, D] {
                let found = p
                    .rows
                    .leaf_sums(&pool, &p.model, &p.leaf_of_row, L, weighted, (&order, most, 0.5))
                    .unwrap();
                let (mut place, mut products) = (0, (0.0, 0.0));
                for (leaf, &size) in found.sizes.iter().enumerate() {
                    let mut best: Vec<usize> =
                        (0..D).filter(|&j| all[leaf][j].abs() > 1e-9).collect();
                    let gain = |j: usize| all[leaf][j].powi(2) / (weights[leaf][j] + 0.5);
                    best.sort_by(|&a, &b| gain(b).total_cmp(&gain(a)));
                    best.truncate(most);
                    best.sort_unstable();
                    let outputs = &found.outputs[place..place + size];
                    assert_eq!(outputs, best.iter().map(|&j| j as u32).collect::<Vec<_>>());
                    let of = |table: &[[f64; D]; L]| -> Vec<f64> {
                        best.iter().map(|&j| table[leaf][j]).collect()
                    };
                    close(&found.sums[place..place + size], &of(&all));
                    close(&found.curvatures[place..place + size], &of(&weights));
                    for (sum, weight) in of(&all).into_iter().zip(of(&weights)) {
                        products.0 += sum * sum;
                        products.1 += weight * sum * sum;
                    }
                    place += size;
                }
                let (slope, curvature) = p
                    .rows
                    .leaf_products(&pool, &p.model, &p.leaf_of_row, &found, weighted)
                    .unwrap();
                assert!((slope - products.0).abs() < 1e-4 && (curvature - products.1).abs() < 1e-3);
            }
        }
    }
}

/// Raw predictions (N × D) from a baseline, and which cells are labels.
fn raw_of(p: &Problem, baseline: &[f32]) -> (Vec<f64>, Vec<bool>) {
    let present: Vec<bool> =
        (0..N * D).map(|cell| p.rows.labels_of(cell / D).contains(&((cell % D) as u32))).collect();
    let raw = p.residuals.iter().enumerate().map(|(cell, r)| {
        let trees = 2.0 * f64::from(present[cell]) - p.start[cell % D] - r;
        f64::from(baseline[cell % D]) + trees
    });
    (raw.collect(), present)
}

#[test]
fn the_log_loss_and_its_sums_are_those_of_all_cells() {
    for (n_trees, marked) in [(0, false), (4, false), (0, true), (4, true)] {
        let p = problem(Kind::Sparse, n_trees, marked);
        let baseline: Vec<f32> = (0..D).map(|j| -0.5 - 0.3 * j as f32).collect();
        let order: Vec<u32> = (0..D as u32).collect();
        let (raw, present) = raw_of(&p, &baseline);
        let probability: Vec<f64> = raw.iter().map(|f| 1.0 / (1.0 + (-f).exp())).collect();
        let residual = |cell: usize| f64::from(present[cell]) - probability[cell];
        for rows in [None, Some(&p.weights[..])] {
            let log = LogRows { model: &p.model, baseline: &baseline, rows };
            let weight = |i: usize| rows.map_or(1.0, |rows: &[f32]| f64::from(rows[i]));
            let pool = Pool::serial();
            let phi: Vec<f32> = (0..2 * D).map(|k| ((k * 7 % 13) as f32 - 6.0) / 5.0).collect();
            let mut z = vec![0.0f32; N * 2];
            let loss = p.rows.log_loss(&pool, log, Some((&phi, &mut z))).unwrap();
            let weight = |cell: usize| weight(cell / D) * p.cells[cell];
            let of_cell = |cell: usize| -(1.0 - residual(cell).abs()).ln() * weight(cell);
            close(&[loss], &[(0..N * D).map(of_cell).sum()]);
            assert_eq!(p.rows.log_loss(&pool, log, None).unwrap(), loss);
            let mut expected = vec![];
            for i in 0..N {
                for phi in phi.chunks(D) {
                    let of = |cell: usize| p.cells[cell] * residual(cell);
                    expected.push((0..D).map(|j| f64::from(phi[j]) * of(i * D + j)).sum());
                }
            }
            close(&z.iter().map(|&z| f64::from(z)).collect::<Vec<_>>(), &expected);
            let mut sums = [[(0.0, 0.0); D]; L];
            for cell in 0..N * D {
                let (w, sum) = (weight(cell), &mut sums[p.leaf_of_row[cell / D] as usize]);
                sum[cell % D].0 += w * residual(cell);
                sum[cell % D].1 += w * probability[cell] * (1.0 - probability[cell]);
            }
            for most in [1, 4, D] {
                let kept = (&order[..], most, 0.5);
                let found = p.rows.log_leaf_sums(&pool, log, &p.leaf_of_row, L, kept).unwrap();
                let mut place = 0;
                for (leaf, &size) in found.sizes.iter().enumerate() {
                    let gain = |j: usize| sums[leaf][j].0.powi(2) / (sums[leaf][j].1 + 0.5);
                    let mut best: Vec<usize> = (0..D).filter(|&j| sums[leaf][j].0 != 0.0).collect();
                    best.sort_by(|&a, &b| gain(b).total_cmp(&gain(a)));
                    best.truncate(most);
                    best.sort_unstable();
                    let kept = place..place + size;
                    let outputs: Vec<usize> =
                        found.outputs[kept.clone()].iter().map(|&j| j as usize).collect();
                    assert_eq!(outputs, best);
                    let of = |part: fn(&(f64, f64)) -> f64| -> Vec<f64> {
                        best.iter().map(|&j| part(&sums[leaf][j])).collect()
                    };
                    close(&found.sums[kept.clone()], &of(|sums| sums.0));
                    close(&found.curvatures[kept], &of(|sums| sums.1));
                    place += size;
                }
            }
            let short = LogRows { baseline: &baseline[1..], ..log };
            assert!(p.rows.log_loss(&pool, short, None).is_err());
            assert!(p.rows.log_loss(&pool, log, Some((&phi[1..], &mut z))).is_err());
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    assert!(LabelRows::new(3, &[0, 2], &[1, 1]).is_err());
    assert!(LabelRows::new(3, &[0, 2], &[2, 3]).is_err());
    assert!(LabelRows::new(3, &[0, 1], &[-1]).is_err());
    assert!(LabelRows::new(3, &[0, 2], &[1]).is_err());
    assert!(LabelRows::new(3, &[], &[]).is_err());
    let mut rows = LabelRows::new(3, &[0, 1, 2], &[1, 2]).unwrap();
    assert!(rows.mark(&[0, 1, 1], &[2], &[0.5]).is_ok());
    assert!(rows.mark(&[0, 1, 1], &[2], &[-0.5]).is_err());
    assert!(rows.mark(&[0, 1, 1], &[2], &[f32::NAN]).is_err());
    assert!(rows.mark(&[0, 1, 1], &[3], &[1.0]).is_err());
    assert!(rows.mark(&[0, 1], &[2], &[1.0]).is_err());
    assert!(rows.mark(&[0, 1, 1], &[2], &[]).is_err());
    assert!(rows.push(&Ensemble::new(Kind::Sparse, 3, 1), &[0, 0], 1).is_err());
    let mut p = problem(Kind::Sparse, 1, false);
    let weighted = Weighted { rows: None, start: &p.start };
    let pool = Pool::serial();
    assert!(p.rows.slopes(&pool, &p.model, &p.leaf_of_row, &[0.0; L], weighted).is_err());
    p.model.truncate(0);
    let sums = p.rows.leaf_sums(&pool, &p.model, &p.leaf_of_row, L, weighted, (&[], 1, 0.0));
    assert!(sums.is_err());
    assert!(p.rows.push(&p.model, &[L as u32; N], L).is_err());
    assert!(p.rows.push(&p.model, &[0; N - 1], L).is_err());
}
