"""The oracle itself against independent knowledge: scipy, scikit-learn and brute force."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

from reference import STEP_LIMIT, boost, cut_points, grow_tree, lower_quantile, make_loss

LABEL_LOSSES = ["log_loss", "exponential", "squared_labels"]
REAL_LOSSES = ["squared_error", "absolute_error", "huber", "quantile"]
POSITIVE_LOSSES = ["poisson", "gamma", "tweedie"]
SEPARABLE = [*REAL_LOSSES, *POSITIVE_LOSSES, *LABEL_LOSSES]
SMOOTH = ["squared_error", "huber", *POSITIVE_LOSSES, *LABEL_LOSSES]
STRATEGIES = ["independent", "multioutput", "project", "relabel"]


def loss_named(name):
    return make_loss(name, quantile=0.3, huber_delta=0.8 if name == "huber" else None)


def outputs_for(name, rng, n, d):
    """Y of the kind the loss takes, correlated with the first normal it is drawn from."""
    if name == "softmax":
        return rng.permutation(np.arange(n) % d)
    if name in LABEL_LOSSES:
        return (rng.random((n, d)) < 0.4).astype(float)
    if name == "poisson":
        return rng.poisson(2.0, (n, d)).astype(float)
    if name == "gamma":
        return rng.gamma(2.0, 1.0, (n, d))
    if name == "tweedie":
        return rng.gamma(2.0, 1.0, (n, d)) * (rng.random((n, d)) < 0.7)
    return rng.standard_normal((n, d)) + np.arange(d)


def projections_for(strategy, rng, rounds, d, q=2):
    if strategy == "project":
        return list(rng.standard_normal((rounds, 1, d)))
    if strategy == "relabel":
        return list(rng.standard_normal((rounds, q, d)) / np.sqrt(q))
    return None


# Losses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SEPARABLE)
def test_residual_and_hessian_are_derivatives_of_the_value(name):
    rng = np.random.default_rng(0)
    loss, h = loss_named(name), 1e-5
    y, f = outputs_for(name, rng, 200, 3), rng.standard_normal((200, 3))
    # Differences are meaningless across a kink: at u = 0, or at |u| = delta.
    u = np.abs(y - f)
    smooth = (u > 0.01) & (np.abs(u - 0.8) > 0.01)
    slope = (loss.value(y, f + h) - loss.value(y, f - h)) / (2 * h)
    curvature = (loss.residual(y, f - h) - loss.residual(y, f + h)) / (2 * h)
    np.testing.assert_allclose(loss.residual(y, f)[smooth], -slope[smooth], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(loss.hessian(y, f)[smooth], curvature[smooth], rtol=1e-7, atol=1e-8)


def test_softmax_residual_and_hessian_are_derivatives_of_the_value():
    rng = np.random.default_rng(1)
    loss, h = make_loss("softmax"), 1e-5
    y, f = rng.integers(0, 4, 50), rng.standard_normal((50, 4))
    for k in range(4):
        e = h * np.eye(4)[k]
        slope = (loss.value(y, f + e) - loss.value(y, f - e)) / (2 * h)
        curvature = (loss.residual(y, f - e) - loss.residual(y, f + e))[:, k] / (2 * h)
        np.testing.assert_allclose(loss.residual(y, f)[:, k], -slope, atol=1e-8)
        np.testing.assert_allclose(loss.hessian(y, f)[:, k], curvature, atol=1e-8)


def test_values_follow_their_formulas():
    y, f, s = np.array([1.0]), np.array([0.3]), 1.0
    expected = {
        "squared_error": 0.5 * 0.7**2,
        "absolute_error": 0.7,
        "huber": 0.5 * 0.7**2,
        "quantile": 0.3 * 0.7,
        "poisson": np.exp(0.3) - 0.3,
        "gamma": np.exp(-0.3) + 0.3,
        "tweedie": 2 * np.exp(-0.15) + 2 * np.exp(0.15),
        "log_loss": np.log(1 + np.exp(-s * 0.3)),
        "exponential": np.exp(-s * 0.3 / 2),
        "squared_labels": 0.5 * (s - 0.3) ** 2,
    }
    for name, value in expected.items():
        assert loss_named(name).value(y, f)[0] == pytest.approx(value, rel=1e-14)
    assert loss_named("huber").value(y, f - 2)[0] == pytest.approx(0.8 * (2.7 - 0.4), rel=1e-14)


def test_residuals_at_a_kink_are_zero():
    y = np.array([[1.0, -2.0]])
    assert not make_loss("absolute_error").residual(y, y).any()
    assert not make_loss("quantile", quantile=0.8).residual(y, y).any()


@pytest.mark.parametrize("name", SEPARABLE)
def test_baseline_minimises_the_weighted_loss(name):
    rng = np.random.default_rng(2)
    loss, y, w = loss_named(name), outputs_for(name, rng, 101, 3), rng.random(101)
    baseline = loss.baseline(y, w)
    for j in range(3):

        def total(f, j=j):
            return np.sum(w * loss.value(y[:, j], np.full(101, f)))

        best = minimize_scalar(total, bracket=(-1.0, 1.0), tol=1e-12)
        assert total(baseline[j]) <= best.fun * (1 + 1e-12)
        assert baseline[j] == pytest.approx(best.x, abs=1e-6)


def test_huber_baseline_is_the_root_of_the_derivative_to_full_precision():
    rng = np.random.default_rng(3)
    loss, y, w = make_loss("huber", huber_delta=0.5), rng.standard_normal((200, 2)), rng.random(200)
    slope = w @ loss.residual(y, np.tile(loss.baseline(y, w), (200, 1)))
    np.testing.assert_allclose(slope, 0, atol=1e-12)


def test_huber_delta_defaults_to_the_median_distance_to_the_median():
    y = np.array([0.0, 1, 3, 6, 10, 15, 21, 28, 36, 100])[:, None]
    loss = make_loss("huber").prepare(y, np.ones(10))
    assert loss.delta == 9  # median 10; distances 0 4 5 7 9 10 11 18 26 90, the fifth
    heavy = make_loss("huber").prepare(y, np.where(y[:, 0] == 100, 9.0, 1.0))
    assert heavy.delta == 36 - 0  # 36 reaches half the weight exactly, so do the nine others


def test_huber_takes_the_smallest_of_many_minimisers():
    y = np.array([[0.0], [10.0]])
    assert make_loss("huber", huber_delta=1.0).baseline(y, np.ones(2))[0] == 1


def test_huber_delta_is_positive_when_most_values_are_equal():
    y = np.array([[0.0]] * 19 + [[3.0]])
    assert make_loss("huber").prepare(y, np.ones(20)).delta == 3.0
    y = np.array([[0.0]] * 12 + [[2.0]] * 7 + [[50.0]])
    assert make_loss("huber").prepare(y, np.ones(20)).delta == 2.0


def test_softmax_baseline_gives_the_class_frequencies():
    y, w = np.array([0, 0, 1, 2, 2, 2]), np.array([1.0, 2, 3, 1, 1, 2])
    baseline = make_loss("softmax").baseline(y, w)
    np.testing.assert_allclose(np.exp(baseline) / np.exp(baseline).sum(), [0.3, 0.3, 0.4])
    assert baseline.sum() == pytest.approx(0, abs=1e-14)


def test_constant_outputs_have_clipped_baselines():
    y, w = np.array([[0.0, 1.0]] * 5), np.ones(5)
    for name in ["log_loss", "exponential"]:
        np.testing.assert_array_equal(make_loss(name).baseline(y, w), [-15, 15])
    np.testing.assert_array_equal(make_loss("poisson").baseline(y, w), [-15, 0])


def test_lower_quantile_takes_the_smaller_value_on_a_tie():
    values, ones = np.array([4.0, 1, 3, 2]), np.ones(4)
    assert lower_quantile(values, ones, 2.0) == 2
    assert lower_quantile(values, ones, 2.5) == 3
    assert lower_quantile(values, np.array([0.0, 0, 1, 1]), 1.0) == 2
    assert lower_quantile(np.arange(100.0), np.ones(100), 0.55 * 100) == 54


# Line search ----------------------------------------------------------------------------------


def brute_minimum(total):
    """Minimum of a convex function: a grid, then golden section around its best point."""
    grid = np.linspace(-60, 60, 2401)
    best = grid[np.argmin([total(t) for t in grid])]
    found = minimize_scalar(
        total, bounds=(best - 0.1, best + 0.1), method="bounded", options={"xatol": 1e-11}
    )
    return found.x, found.fun


@pytest.mark.parametrize("name", SEPARABLE)
def test_line_search_finds_the_minimum(name):
    rng = np.random.default_rng(4)
    n, d, loss = 41, 4, loss_named(name)
    y, f, w = outputs_for(name, rng, n, d), rng.standard_normal((n, d)), rng.random(n)
    g = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.9)
    g[:, 3] = 0
    rho = loss.line_search(y, f, g, w)
    assert rho[3] == 0
    for j in range(3):

        def total(t, j=j):
            return np.sum(w * loss.value(y[:, j], f[:, j] + t * g[:, j]))

        x, value = brute_minimum(total)
        assert total(rho[j]) <= value * (1 + 1e-12)
        assert rho[j] == pytest.approx(x, abs=1e-5)


@pytest.mark.parametrize("name", SMOOTH)
def test_line_search_zeroes_the_derivative_to_double_precision(name):
    rng = np.random.default_rng(5)
    n, loss = 60, loss_named(name)
    y, f, w = outputs_for(name, rng, n, 2), rng.standard_normal((n, 2)), rng.random(n)
    g = rng.standard_normal((n, 2))
    terms = w[:, None] * g * loss.residual(y, f + loss.line_search(y, f, g, w) * g)
    np.testing.assert_array_less(np.abs(terms.sum(axis=0)), 1e-13 * np.abs(terms).sum(axis=0))


def test_absolute_line_search_takes_the_lower_of_two_minimisers():
    y, f = np.array([[1.0], [2.0], [3.0], [6.0]]), np.zeros((4, 1))
    rho = make_loss("absolute_error").line_search(y, f, np.ones((4, 1)), np.ones(4))
    assert rho[0] == 2
    # Mirrored directions: breakpoints -6 -3 -2 -1, of which the lower median is -3.
    rho = make_loss("absolute_error").line_search(y, f, -np.ones((4, 1)), np.ones(4))
    assert rho[0] == -3


@pytest.mark.parametrize("name", ["log_loss", "exponential"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_pure_rows_step_to_the_limit(name, sign):
    y, g = np.array([[1.0], [1], [1], [0]]), sign * np.array([[0.1], [0.2], [0.4], [9]])
    weight = np.array([1.0, 1, 1, 0])  # the last row would hold the others back
    rho = make_loss(name).line_search(y, np.zeros((4, 1)), g, weight)
    assert rho[0] * sign * 0.4 == pytest.approx(STEP_LIMIT)


def test_a_far_minimiser_is_kept():
    y, f, g = np.array([[1.0], [0.0]]), np.array([[-30.0], [-30.0]]), np.ones((2, 1))
    assert make_loss("log_loss").line_search(y, f, g, np.ones(2))[0] == pytest.approx(30)


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("shared", [False, True], ids=["vector", "scalar"])
def test_softmax_line_search_finds_the_joint_minimum(classes, shared):
    rng = np.random.default_rng(6)
    n, loss = 80, make_loss("softmax")
    y, f, w = rng.integers(0, classes, n), rng.standard_normal((n, classes)), rng.random(n)
    g = rng.standard_normal((n, classes))
    g = np.repeat(g[:, :1], classes, axis=1) if shared else g - g.mean(axis=1, keepdims=True)

    def total(rho):
        return np.sum(w * loss.value(y, f + rho * g))

    def slope(rho):
        return -np.sum(w[:, None] * g * loss.residual(y, f + rho * g), axis=0)

    rho = loss.line_search(y, f, g, w)
    best = minimize(total, np.zeros(classes), jac=slope, method="BFGS", options={"gtol": 1e-9})
    assert total(rho) <= best.fun * (1 + 1e-13)
    np.testing.assert_allclose(slope(rho), 0, atol=1e-11)
    if shared:  # adding a constant to rho changes nothing: the least norm is taken
        assert rho.sum() == pytest.approx(0, abs=1e-10)


def test_softmax_line_search_is_the_minimum_within_its_limits():
    rng = np.random.default_rng(7)
    n, loss = 40, make_loss("softmax")
    y, f, w = rng.integers(0, 3, n), np.zeros((n, 3)), np.ones(n)
    g = 0.3 * rng.standard_normal((n, 3))
    g[:, 0] = np.where(y == 0, 0.2, -0.1)  # separates class 0: its step has no finite minimiser
    bound = STEP_LIMIT / np.abs(g).max(axis=0)

    def total(rho):
        return np.sum(w * loss.value(y, f + rho * g))

    rho = loss.line_search(y, f, g, w)
    best = minimize(
        total,
        np.zeros(3),
        method="L-BFGS-B",
        bounds=list(zip(-bound, bound, strict=True)),
        options={"ftol": 1e-15, "gtol": 1e-10},
    )
    assert rho[0] == bound[0]
    assert total(rho) <= best.fun * (1 + 1e-12)
    np.testing.assert_allclose(rho, best.x, rtol=1e-4)


@pytest.mark.parametrize("seed", range(30))
def test_softmax_line_search_is_optimal_where_classes_meet_their_limits(seed):
    # A convex function in a box: no slope inside, and only outward pull at a bound.
    rng = np.random.default_rng(seed)
    n, loss, spread = 16, make_loss("softmax"), rng.choice([1, 4, 10])
    y = rng.integers(0, 3, n)
    f = spread * (rng.standard_normal((n, 3)) + rng.choice([0, 1, 2]) * np.eye(3)[y])
    leaf_values = rng.standard_normal((3, 3)) * 10.0 ** rng.integers(-1, 2, 3)
    g = np.take_along_axis(leaf_values, rng.integers(0, 3, (n, 3)), axis=0)
    reach = np.abs(g).max(axis=0)
    rho = loss.line_search(y, f, g, np.ones(n))
    pull = np.sum(g / reach * loss.residual(y, f + rho * g), axis=0)
    at_bound = np.abs(rho) * reach > STEP_LIMIT * (1 - 1e-9)
    assert np.all(np.abs(rho) * reach <= STEP_LIMIT * (1 + 1e-12))
    np.testing.assert_allclose(pull[~at_bound], 0, atol=1e-10)
    assert np.all(pull[at_bound] * rho[at_bound] >= 0)


def test_softmax_line_search_leaves_a_class_without_direction_alone():
    rng = np.random.default_rng(25)
    y, g = rng.integers(0, 3, 30), rng.standard_normal((30, 3))
    g[:, 1] = 0
    rho = make_loss("softmax").line_search(y, np.zeros((30, 3)), g, np.ones(30))
    assert rho[1] == 0
    assert rho[0] != 0
    assert not make_loss("softmax").line_search(y, np.zeros((30, 3)), 0 * g, np.ones(30)).any()


def test_softmax_line_search_moves_a_class_of_tiny_gradients():
    rng = np.random.default_rng(8)
    n, loss = 60, make_loss("softmax")
    y, f, w = rng.integers(0, 3, n), rng.standard_normal((n, 3)), np.ones(n)
    g = rng.standard_normal((n, 3))
    small = g * np.array([1.0, 1.0, 1e-9])
    expected = loss.line_search(y, f, g, w) / np.array([1.0, 1.0, 1e-9])
    np.testing.assert_allclose(loss.line_search(y, f, small, w), expected, rtol=1e-10)


# Trees ----------------------------------------------------------------------------------------


def mean_prediction(tree, X, Z, w):
    leaf = tree.apply(X)
    means = [np.average(Z[leaf == k], axis=0, weights=w[leaf == k]) for k in range(tree.n_leaves)]
    return np.array(means)[leaf]


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize(
    "limits",
    [
        {"max_leaf_nodes": 2},
        {"max_leaf_nodes": 12},
        {"max_leaf_nodes": 12, "min_samples_leaf": 9},
        {"max_leaf_nodes": 60, "max_depth": 4},
    ],
    ids=str,
)
def test_trees_agree_with_scikit_learn(limits, q):
    rng = np.random.default_rng(9)
    X = rng.standard_normal((250, 4)).astype(np.float32)
    Z = np.sin(2 * X[:, :1]) * X[:, 1:2] + 0.3 * rng.standard_normal((250, q))
    w = rng.random(250) + 0.1
    tree = grow_tree(X, Z, w, **limits)
    peer = DecisionTreeRegressor(random_state=0, **limits).fit(X, Z, w)
    assert tree.n_leaves == peer.get_n_leaves()
    expected = peer.predict(X).reshape(250, q)
    np.testing.assert_allclose(mean_prediction(tree, X, Z, w), expected, atol=1e-12)


def variance(z, w):
    """Weighted sum of squares around the mean, over all columns."""
    return np.sum(w[:, None] * (z - np.average(z, axis=0, weights=w)) ** 2) if len(z) else 0.0


def test_the_root_split_is_the_best_of_all_partitions_with_missing_values():
    rng = np.random.default_rng(10)
    for _ in range(20):
        X = rng.integers(0, 4, (14, 2)).astype(float)
        X[rng.random((14, 2)) < 0.3] = np.nan
        Z, w = rng.standard_normal((14, 2)), rng.random(14) + 0.1
        best = (0.0,)
        for k, missing_left in itertools.product(range(2), [False, True]):
            for t in [0.5, 1.5, 2.5, np.inf]:
                left = np.where(np.isnan(X[:, k]), missing_left, X[:, k] <= t)
                if min(left.sum(), (~left).sum()) >= 3:
                    inside = variance(Z[left], w[left]) + variance(Z[~left], w[~left])
                    best = max(best, (variance(Z, w) - inside, k, t, missing_left))
        split = grow_tree(X, Z, w, max_leaf_nodes=2, min_samples_leaf=3).nodes[0].split
        assert split.gain == pytest.approx(best[0], rel=1e-10)
        left = split.goes_left(X.astype(np.float32))
        inside = variance(Z[left], w[left]) + variance(Z[~left], w[~left])
        assert variance(Z, w) - inside == pytest.approx(best[0], rel=1e-10)


def test_missing_rows_can_stand_alone():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    Z = np.array([[0.0], [0.0], [5.0], [5.0]])
    split = grow_tree(X, Z, np.ones(4)).nodes[0].split
    assert (split.threshold, split.missing_left) == (np.inf, False)


def test_unseen_missing_values_follow_the_larger_child():
    Z = np.array([[0.0], [1.0], [1.0], [1.0]])
    x = np.arange(4.0)[:, None]
    assert not grow_tree(x, Z, np.ones(4)).nodes[0].split.missing_left
    assert grow_tree(-x, Z, np.ones(4)).nodes[0].split.missing_left
    tied = grow_tree(x, Z[[0, 0, 1, 1]], np.array([1.0, 1, 5, 5])).nodes[0].split
    assert tied.missing_left  # rows count, not weight; left on a tie


def test_ties_go_to_the_lowest_feature_then_threshold_then_oldest_node():
    # Both features separate the rows alike; both children gain alike from a second split.
    X = np.array([[0.0, 0], [1, 1], [2, 2], [3, 3]])
    Z = np.array([[0.0], [1.0], [10.0], [11.0]])
    tree = grow_tree(X, Z, np.ones(4), max_leaf_nodes=3)
    assert (tree.nodes[0].split.feature, tree.nodes[0].split.threshold) == (0, 1.5)
    assert tree.nodes[1].split.threshold == 0.5
    assert tree.nodes[2].split is None
    symmetric = grow_tree(X, np.array([[1.0], [0], [0], [1.0]]), np.ones(4), max_leaf_nodes=2)
    assert symmetric.nodes[0].split.threshold == 0.5


def test_ties_between_nodes_go_to_the_lowest_feature_then_to_the_oldest():
    X = np.array([[0.0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1]])
    Z = np.array([[0.0], [1.0], [10.0], [11.0]])
    same_cut = grow_tree(X, Z, np.ones(4), max_leaf_nodes=3)
    assert [node.split is not None for node in same_cut.nodes[:3]] == [True, True, False]
    X[2:, 1:] = X[2:, :0:-1]  # the younger child now splits on feature 1
    lower_feature = grow_tree(X, Z, np.ones(4), max_leaf_nodes=3)
    assert [node.split is not None for node in lower_feature.nodes[:3]] == [True, False, True]


def test_gains_equal_but_for_rounding_are_ties():
    rng = np.random.default_rng(26)
    for _ in range(30):
        x, Z, w = rng.standard_normal((40, 1)), rng.standard_normal((40, 1)), rng.random(40)
        for columns in ([x, -x], [-x, x]):
            assert grow_tree(np.hstack(columns), Z, w, max_leaf_nodes=2).nodes[0].split.feature == 0


def test_gains_within_the_rounding_of_the_gradients_are_no_gain():
    noise = np.random.default_rng(27).standard_normal((50, 1))
    X = np.arange(50.0)[:, None]
    assert grow_tree(X, 1 + 1e-7 * noise, np.ones(50)).n_leaves == 1
    assert grow_tree(X, 1 + 1e-4 * noise, np.ones(50)).n_leaves > 1


def test_thresholds_come_from_the_whole_column():
    # The right child holds 2 and 6 only, but 3 of another node makes 2.5 the lowest cut.
    X = np.array([[0.0, 0], [3, 0], [2, 1], [6, 1]])
    Z = np.array([[0.0], [0.0], [10.0], [15.0]])
    tree = grow_tree(X, Z, np.ones(4), max_leaf_nodes=3)
    assert (tree.nodes[0].split.feature, tree.nodes[2].split.threshold) == (1, 2.5)


def test_nodes_and_leaves_are_numbered_in_order_of_creation():
    X = np.arange(8.0)[:, None]
    Z = np.array([0.0, 0, 1, 1, 20, 20, 40, 44])[:, None]
    tree = grow_tree(X, Z, np.ones(8), max_leaf_nodes=4)
    assert [(node.left, node.right) for node in tree.nodes if node.split] == [
        (1, 2),
        (3, 4),
        (5, 6),
    ]
    assert tree.leaf_nodes.tolist() == [1, 3, 5, 6]
    assert tree.apply(X).tolist() == [0, 0, 0, 0, 1, 1, 2, 3]


def test_cuts_lie_between_their_values_in_float32():
    one = np.float32(1)
    above = np.nextafter(one, np.float32(2))
    x = np.array([one, above, np.nextafter(above, np.float32(2)), 3, np.nan, 3], dtype=np.float32)
    cuts, values = cut_points(x), np.unique(x[~np.isnan(x)])
    assert cuts.dtype == np.float32
    assert np.all((values[:-1] <= cuts) & (cuts < values[1:]))


def test_neighbouring_floats_can_be_separated():
    x = np.array([[1.0], [np.nextafter(np.float32(1), np.float32(2))]], dtype=np.float32)
    tree = grow_tree(x, np.array([[0.0], [1.0]]), np.ones(2))
    assert tree.nodes[0].split.threshold == 1
    assert tree.apply(x).tolist() == [0, 1]


def test_constant_gradients_grow_no_split():
    X = np.random.default_rng(11).standard_normal((50, 3))
    assert grow_tree(X, np.full((50, 2), 0.1), np.ones(50)).n_leaves == 1
    assert grow_tree(X, np.zeros((50, 2)), np.ones(50)).n_leaves == 1


def test_min_split_gain_is_a_floor_on_the_gain():
    X, Z = np.arange(4.0)[:, None], np.array([[0.0], [0], [2], [2]])
    assert grow_tree(X, Z, np.ones(4), min_split_gain=4.0).n_leaves == 2  # the gain is 4
    assert grow_tree(X, Z, np.ones(4), min_split_gain=4.01).n_leaves == 1


def test_integer_weights_are_repetitions_and_zero_is_absence():
    rng = np.random.default_rng(12)
    X, Z = rng.integers(0, 6, (60, 3)).astype(float), rng.standard_normal((60, 2))
    w = rng.integers(0, 4, 60)
    X[w == 0] = X[np.flatnonzero(w)[0]]  # no cut points of their own
    weighted = grow_tree(X, Z, w.astype(float), max_leaf_nodes=8)
    repeated = grow_tree(
        np.repeat(X, w, axis=0), np.repeat(Z, w, axis=0), np.ones(w.sum()), max_leaf_nodes=8
    )
    assert weighted.n_leaves == 8
    np.testing.assert_array_equal(weighted.apply(X), repeated.apply(X))


# Boosting -------------------------------------------------------------------------------------


def friedman(rng, n, d):
    """Rows, and d correlated real outputs."""
    X = rng.random((n, 5))
    base = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3]
    return X, base[:, None] * rng.standard_normal(d) + rng.standard_normal((n, d))


@pytest.mark.parametrize("step", ["line_search", "newton"])
@pytest.mark.parametrize("strategy", ["independent", "multioutput"])
def test_one_output_of_squared_error_is_scikit_learns_gradient_boosting(strategy, step):
    X, Y = friedman(np.random.default_rng(13), 200, 1)
    X = X.astype(np.float32)
    limits = {"max_leaf_nodes": 8, "min_samples_leaf": 3, "learning_rate": 0.2}
    peer = GradientBoostingRegressor(n_estimators=15, max_depth=None, random_state=0, **limits)
    peer.fit(X, Y[:, 0])
    model = boost(
        X, Y, strategy=strategy, loss=make_loss("squared_error"), step=step, max_iter=15, **limits
    )
    np.testing.assert_allclose(model.raw[:, 0], peer.predict(X), rtol=1e-10)
    np.testing.assert_allclose(2 * np.array(model.train_loss[1:]), peer.train_score_, rtol=1e-10)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", [*SEPARABLE, "softmax"])
def test_line_search_never_raises_the_training_loss(name, strategy):
    rng = np.random.default_rng(14)
    X, Y = rng.standard_normal((60, 3)), outputs_for(name, rng, 60, 3)
    model = boost(
        X,
        Y,
        strategy=strategy,
        loss=make_loss(name, quantile=0.3),
        step="line_search",
        projections=projections_for(strategy, rng, 6, 3),
        max_iter=6,
        learning_rate=0.7,
        max_leaf_nodes=5,
        sample_weight=rng.random(60),
    )
    losses = np.array(model.train_loss)
    assert np.all(np.diff(losses) <= 1e-12 * losses[:-1])
    assert losses[-1] < 0.97 * losses[0]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", [*SEPARABLE, "softmax"])
def test_newton_steps_lower_the_training_loss_and_predict_what_they_trained(name, strategy):
    rng = np.random.default_rng(15)
    X, Y = rng.standard_normal((60, 3)), outputs_for(name, rng, 60, 3)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = boost(
        X,
        Y,
        strategy=strategy,
        loss=make_loss(name, quantile=0.3),
        step="newton",
        projections=projections_for(strategy, rng, 6, 3),
        max_iter=6,
        max_leaf_nodes=5,
        min_samples_leaf=5,
    )
    assert model.train_loss[-1] < model.train_loss[0]
    np.testing.assert_allclose(model.predict_raw(X), model.raw, rtol=1e-12, atol=1e-14)
    falls_back = strategy == "project"
    assert all((made["rho"] is not None) == falls_back for made in model.rounds)


def test_newton_leaves_follow_the_formula():
    rng = np.random.default_rng(16)
    X, Y = rng.standard_normal((40, 2)), outputs_for("log_loss", rng, 40, 2)
    raw, w = rng.standard_normal((40, 2)), rng.random(40)
    common = {"loss": make_loss("log_loss"), "step": "newton", "max_iter": 1, "max_leaf_nodes": 4}
    common |= {"raw": raw, "sample_weight": w}
    p = 1 / (1 + np.exp(-raw))
    r, h = Y - p, p * (1 - p)
    made = boost(X, Y, strategy="multioutput", **common).rounds[0]
    inside = made["trees"][0].apply(X) == 2
    expected = (w[inside] @ r[inside]) / (w[inside] @ h[inside] + 1)
    np.testing.assert_allclose(made["leaf_values"][0][2], expected, rtol=1e-12)

    made = boost(X, Y, strategy="project", projections=[[[1.0, -2.0]]], **common).rounds[0]
    leaf, values = made["trees"][0].apply(X), made["leaf_values"][0]
    z = r @ [1.0, -2.0]
    assert values[1, 0] == pytest.approx(np.average(z[leaf == 1], weights=w[leaf == 1]))
    g = values[leaf]
    expected = (w @ (r * g)) / (w @ (h * g**2) + np.mean(values**2))
    np.testing.assert_allclose(made["rho"], expected, rtol=1e-12)


def test_newton_leaves_of_flat_losses_are_quantiles():
    rng = np.random.default_rng(17)
    X, Y = friedman(rng, 50, 2)
    common = {"strategy": "relabel", "projections": [[[1.0, 1.0]]], "max_iter": 1}
    made = boost(X, Y, loss=make_loss("absolute_error"), step="newton", max_leaf_nodes=3, **common)
    leaf = made.rounds[0]["trees"][0].apply(X)
    for k in range(3):
        u = np.sort((Y - made.baseline)[leaf == k], axis=0)
        np.testing.assert_array_equal(made.rounds[0]["leaf_values"][0][k], u[(len(u) - 1) // 2])


def test_newton_leaf_without_curvature_is_the_mean_residual():
    X, Y = np.array([[0.0], [0], [1], [1]]), np.array([[-9.0], [-8], [8], [9]])
    model = boost(
        X, Y, strategy="multioutput", loss=make_loss("huber", huber_delta=1.0), step="newton",
        max_iter=1, raw=np.zeros((4, 1)),
    )  # fmt: skip
    np.testing.assert_array_equal(model.rounds[0]["leaf_values"][0], [[-1], [1]])


@pytest.mark.parametrize("step", ["line_search", "newton"])
@pytest.mark.parametrize("name", ["squared_error", "log_loss", "absolute_error", "softmax"])
def test_identity_relabelling_is_multioutput(name, step):
    rng = np.random.default_rng(18)
    X, Y = rng.standard_normal((50, 3)), outputs_for(name, rng, 50, 3)
    common = {"loss": make_loss(name), "step": step, "max_iter": 3, "max_leaf_nodes": 4}
    relabel = boost(X, Y, strategy="relabel", projections=[np.eye(3)] * 3, **common)
    multioutput = boost(X, Y, strategy="multioutput", **common)
    np.testing.assert_allclose(relabel.raw, multioutput.raw, rtol=1e-12)


@pytest.mark.parametrize("name", ["squared_error", "log_loss", "poisson", "absolute_error"])
def test_all_strategies_agree_on_one_output(name):
    rng = np.random.default_rng(19)
    X, Y = rng.standard_normal((50, 3)), outputs_for(name, rng, 50, 1)
    common = {"loss": make_loss(name), "step": "line_search", "max_iter": 3, "max_leaf_nodes": 4}
    common["sample_weight"] = rng.random(50)  # unequal: no step has two minimisers
    phi = [[[-2.0]]] * 3  # sign and scale vanish in the step
    independent = boost(X, Y, strategy="independent", **common).raw
    for strategy in ["multioutput", "project", "relabel"]:
        phis = None if strategy == "multioutput" else phi
        raw = boost(X, Y, strategy=strategy, projections=phis, **common).raw
        np.testing.assert_allclose(raw, independent, rtol=1e-9)


def test_independent_outputs_do_not_see_each_other():
    rng = np.random.default_rng(20)
    X, Y = friedman(rng, 60, 3)
    common = {"strategy": "independent", "loss": make_loss("huber"), "step": "line_search"}
    together = boost(X, Y, max_iter=4, max_leaf_nodes=4, **common)
    for j in range(3):
        alone = boost(X, Y[:, [j]], max_iter=4, max_leaf_nodes=4, **common)
        np.testing.assert_array_equal(together.raw[:, [j]], alone.raw)


def test_softmax_of_two_classes_is_log_loss_under_newton_without_regularisation():
    rng = np.random.default_rng(21)
    X, y = rng.standard_normal((80, 3)), outputs_for("softmax", rng, 80, 2)
    common = {"strategy": "multioutput", "step": "newton", "max_leaf_nodes": 3, "max_iter": 3}
    common |= {"min_samples_leaf": 15, "l2_regularization": 0.0}
    pair = boost(X, y, loss=make_loss("softmax"), **common).raw
    # Both classes move, each by the whole step of the log-odds: half of it gives the same model.
    odds = boost(X, y[:, None], loss=make_loss("log_loss"), learning_rate=0.2, **common).raw
    np.testing.assert_allclose(pair[:, [1]] - pair[:, [0]], odds, rtol=1e-10, atol=1e-12)


def test_output_weights_choose_the_splits_but_leave_each_output_its_own_step():
    rng = np.random.default_rng(22)
    X = rng.random((60, 2))
    Y = np.column_stack([X[:, 0] > 0.5, X[:, 1] > 0.5]).astype(float)
    common = {"strategy": "multioutput", "loss": make_loss("squared_error"), "step": "newton"}
    common |= {"max_iter": 1, "max_leaf_nodes": 2}
    for j, output_weight in enumerate([[5.0, 1.0], [1.0, 5.0]]):
        model = boost(X, Y, output_weight=output_weight, **common)
        made = model.rounds[0]
        assert made["trees"][0].nodes[0].split.feature == j
        inside = made["trees"][0].apply(X) == 0
        np.testing.assert_allclose(
            made["leaf_values"][0][0], (Y[inside] - model.baseline).mean(axis=0), atol=1e-14
        )
        plain = boost(X, Y, **common)
        assert model.train_loss[0] == plain.train_loss[0]


@pytest.mark.parametrize("step", ["line_search", "newton"])
@pytest.mark.parametrize("name", REAL_LOSSES)
def test_missing_cells_leave_an_independent_output_to_its_observed_rows(name, step):
    rng = np.random.default_rng(25)
    X, Y = rng.integers(0, 5, (80, 3)).astype(float), np.abs(rng.standard_normal((80, 3)))
    weight = rng.integers(0, 3, Y.shape).astype(float)
    common = {"loss": make_loss(name), "step": step, "strategy": "independent"}
    common |= {"max_iter": 3, "max_leaf_nodes": 4, "min_samples_leaf": 4}
    model = boost(X, np.where(weight > 0, Y, np.nan), sample_weight=weight, **common)
    for j in range(3):
        rows = weight[:, j] > 0
        w = weight[rows, j]
        alone = boost(X[rows], Y[rows][:, [j]], sample_weight=w, **common)
        np.testing.assert_allclose(model.raw[rows, j], alone.raw[:, 0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("strategy", ["multioutput", "relabel", "project"])
def test_weights_of_cells_that_agree_within_rows_are_weights_of_rows(strategy):
    rng = np.random.default_rng(26)
    X, Y = friedman(rng, 60, 3)
    w = rng.random(60)
    common = {"loss": make_loss("squared_error"), "step": "line_search", "strategy": strategy}
    q = 1 if strategy == "project" else 2
    projections = list(rng.standard_normal((4, q, 3)))
    common |= {"max_iter": 4, "max_leaf_nodes": 4, "projections": projections}
    by_row = boost(X, Y, sample_weight=w, **common)
    by_cell = boost(X, Y, sample_weight=np.tile(w[:, None], 3), **common)
    np.testing.assert_allclose(by_cell.raw, by_row.raw, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(by_cell.train_loss, by_row.train_loss, rtol=1e-10)


def test_raw_replaces_the_baseline():
    rng = np.random.default_rng(23)
    X, Y = friedman(rng, 60, 2)
    common = {"strategy": "multioutput", "loss": make_loss("squared_error"), "step": "newton"}
    whole = boost(X, Y, max_iter=4, max_leaf_nodes=4, **common)
    half = boost(X, Y, max_iter=2, max_leaf_nodes=4, **common)
    rest = boost(X, Y, max_iter=2, max_leaf_nodes=4, raw=half.raw, **common)
    np.testing.assert_array_equal(rest.raw, whole.raw)
    np.testing.assert_allclose(rest.predict_raw(X, raw=half.raw), whole.raw, rtol=1e-14)


def test_rows_of_zero_weight_change_nothing():
    rng = np.random.default_rng(24)
    X, Y = rng.integers(0, 5, (80, 3)).astype(float), rng.standard_normal((80, 2))
    w = (rng.random(80) < 0.7).astype(float)
    for name in REAL_LOSSES:
        common = {"strategy": "multioutput", "loss": make_loss(name), "step": "line_search"}
        common |= {"max_iter": 3, "max_leaf_nodes": 4, "min_samples_leaf": 4}
        weighted = boost(X, Y, sample_weight=w, **common)
        kept = boost(X[w > 0], Y[w > 0], **common)
        np.testing.assert_allclose(weighted.raw[w > 0], kept.raw, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(weighted.train_loss, kept.train_loss, rtol=1e-11)
