//! Gauss-Legendre quadrature on [0, 1].

/// A node of a quadrature rule on [0, 1].
pub(super) struct QuadratureNode {
    /// Where the integrand is evaluated: t.
    pub at: f64,
    /// w / (1 − t) for its weight w.
    pub lost: f64,
}

pub(super) type Quadrature = Vec<QuadratureNode>;

/// Gauss-Legendre rules with 1, 2, … `largest` nodes.
pub(super) fn rules(largest: usize) -> Vec<Quadrature> {
    let mut ends = vec![-1.0, 1.0];
    let mut rules = vec![];
    for n in 1..=largest {
        // Each root lies between two roots of the previous polynomial.
        let roots: Vec<f64> = ends.windows(2).map(|pair| root(n, pair[0], pair[1])).collect();
        let node = |&x: &f64| {
            let (_, slope) = legendre(n, x);
            let (at, weight) = ((1.0 + x) / 2.0, 1.0 / ((1.0 - x * x) * slope * slope));
            QuadratureNode { at, lost: weight / (1.0 - at) }
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
    // Newton's method; if a step would leave the interval, halve the interval instead.
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
}
