"""What the paper proves or argues, checked on the library: docs/theory.md names these tests."""

import math

import numpy as np
import pytest
from scipy import stats

from manyboost import ManyBoostRegressor, _core
from manyboost.datasets import make_friedman1_ind
from reference import best_split, boost, grow_tree, make_loss

DENSE = ["gaussian", "rademacher", "achlioptas", "sparse"]


def squared_distances(Y):
    """Squared distances of all pairs of rows of Y (n, d)."""
    differences = Y[:, None] - Y[None]
    return (differences**2).sum(axis=2)[np.triu_indices(len(Y), 1)]


def variance(Y):
    """The mean squared distance to the mean, summed over the outputs."""
    return ((Y - Y.mean(axis=0)) ** 2).sum(axis=1).mean()


def draw(projection, q, d, seed):
    return _core.draw_projection(projection, q, d, [], seed, 0).astype(float)


def rows_of(d, n=40, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


# ------------------------------------------------------------------ lemma 1, theorem 2


@pytest.mark.parametrize("projection", DENSE)
def test_johnson_lindenstrauss_with_the_components_of_the_lemma(projection):
    # The lemma says that some matrix with q > 8 ln(n) / ε² rows keeps all distances. Of those that
    # are drawn, at most the share of the union bound over all pairs does not; a squared length is
    # multiplied by χ²(q) / q.
    epsilon, n, d = 0.5, 40, 60
    q = math.floor(8 / epsilon**2 * math.log(n)) + 1
    Y = rows_of(d, n)
    distances = squared_distances(Y)
    lost, n_draws = 0, 60
    for seed in range(n_draws):
        ratio = squared_distances(Y @ draw(projection, q, d, seed).T) / distances
        lost += not np.all((1 - epsilon <= ratio) & (ratio <= 1 + epsilon))
    pair = stats.chi2.cdf((1 - epsilon) * q, q) + stats.chi2.sf((1 + epsilon) * q, q)
    bound = len(distances) * pair
    assert bound < 0.3
    assert lost / n_draws < bound + 3 * math.sqrt(bound * (1 - bound) / n_draws)


@pytest.mark.parametrize("projection", [*DENSE, "subsample"])
@pytest.mark.parametrize("q", [1, 7, 50])
def test_the_variance_is_kept_as_well_as_the_distances(projection, q):
    # Theorem 2, with the ε that a matrix really has: it holds for every single matrix.
    Y = rows_of(60)
    distances = squared_distances(Y)
    for seed in range(20):
        projected = Y @ draw(projection, q, 60, seed).T
        epsilon = np.abs(squared_distances(projected) / distances - 1).max()
        ratio = variance(projected) / variance(Y)
        assert 1 - epsilon <= ratio <= 1 + epsilon
        assert abs(ratio - 1) < epsilon


@pytest.mark.parametrize("projection", [*DENSE, "subsample"])
def test_squared_lengths_are_kept_on_average(projection):
    # Drawn outputs are rows of the identity, as in the paper: d / q times too short. A factor
    # changes no split.
    q, d = 2, 12
    y = rows_of(d, n=1)[0]
    lengths = np.array([((draw(projection, q, d, seed) @ y) ** 2).sum() for seed in range(4000)])
    lengths *= d / q if projection == "subsample" else 1
    error = np.std(lengths) / math.sqrt(len(lengths))
    assert abs(np.mean(lengths) - y @ y) < 4 * error


def test_drawn_outputs_lose_a_difference_in_one_output():
    # Output subsampling is no Johnson-Lindenstrauss projection: a difference that lies in one
    # output is there or not, for any q below d.
    lengths = {(draw("subsample", 45, 60, seed)[:, 0] ** 2).sum() for seed in range(50)}
    assert lengths == {0.0, 1.0}


# ------------------------------------------------------------------ independent outputs


class InTurn:
    """A projection that looks at one output after the other."""

    def __init__(self):
        self.round = 0

    def __call__(self, n_components, n_outputs, rng):
        self.round += 1
        return np.eye(n_outputs)[[(self.round - 1) % n_outputs]]


def in_turn_and_alone(X, Y, rounds, **settings):
    """Algorithm 3 on one output after the other, and a model of each output with as many trees."""
    d = Y.shape[1]
    settings = {"step": "line_search", "output_scaling": None, "random_state": 0} | settings
    settings |= {"early_stopping": False, "min_samples_leaf": 1, "learning_rate": 0.1}
    shared = ManyBoostRegressor(
        strategy="project", projection=InTurn(), max_iter=d * rounds, **settings
    ).fit(X, Y)
    alone = ManyBoostRegressor(strategy="independent", max_iter=rounds, **settings).fit(X, Y)
    return shared, alone


def test_algorithm_3_is_single_target_where_outputs_share_nothing_in_the_sample():
    # All combinations of four features, each output a function of its own: the residuals of the
    # others have mean 0 in every leaf, so the steps of the others are 0.
    X = np.stack(np.meshgrid(*[np.arange(4.0)] * 4), axis=-1).reshape(-1, 4)
    Y = np.column_stack([np.sin((j + 1) * X[:, j]) + X[:, j] for j in range(4)])
    shared, alone = in_turn_and_alone(X, Y, rounds=6, max_leaf_nodes=3)
    np.testing.assert_allclose(shared.predict(X), alone.predict(X), atol=2e-6)
    steps = shared._progress.model.trees.steps().reshape(-1, 4)
    np.testing.assert_allclose(steps[np.arange(24), np.arange(24) % 4], 1, atol=1e-5)
    steps[np.arange(24), np.arange(24) % 4] = 0
    assert np.abs(steps).max() < 1e-5


def test_algorithm_3_approaches_single_target_as_rows_grow_if_outputs_are_independent():
    # In a sample, independent outputs are correlated by about 1 / √n, so an output that a tree was
    # not grown on has a step that is not 0.
    def distance(n):
        X, Y = make_friedman1_ind(n, n_outputs=4, random_state=1)
        shared, alone = in_turn_and_alone(X, Y, rounds=30, max_leaf_nodes=4)
        X_new, _ = make_friedman1_ind(2000, n_outputs=4, random_state=2)
        gap = shared.predict(X_new) - alone.predict(X_new)
        return (gap**2).mean() / alone.predict(X_new).var(axis=0).mean()

    few, some, many = distance(250), distance(1000), distance(4000)
    assert many < some < few
    assert many < 0.01


# ------------------------------------------------------------------ appendix B


def weights_of_targets(rounds, projections, rate, X, X_new):
    """The weights of appendix B for Algorithm 3, (n_new, n, d, d): f(x)_j = Σ_ik w_jk^i(x) y_k^i.

    Given the trees and steps, a round adds μ ρ_j times the mean in the leaf of x of φ · r, where
    each residual r is a target minus a sum of targets.
    """
    n, d = len(X), projections[0].shape[1]
    weights = [np.broadcast_to(np.eye(d) / n, (len(Z), n, d, d)) for Z in (X, X_new)]
    own = np.eye(n)[:, :, None, None] * np.eye(d)
    for made, phi in zip(rounds, projections, strict=True):
        (tree,) = made["trees"]
        leaf = tree.apply(X)
        residual = np.einsum("k,abkl->abl", phi[0], own - weights[0])  # of φ · r, (n, n, d)
        for side, Z in enumerate((X, X_new)):
            together = (tree.apply(Z)[:, None] == leaf).astype(float)
            mean = (together / together.sum(axis=1, keepdims=True)) @ residual.reshape(n, -1)
            step = np.einsum("j,abl->abjl", made["rho"], mean.reshape(len(Z), n, d))
            weights[side] = weights[side] + rate * step
    return weights[1]


def test_predictions_of_algorithm_3_are_sums_over_all_targets_of_all_rows():
    rng = np.random.default_rng(0)
    X, X_new, d, rate = rng.normal(size=(40, 3)), rng.normal(size=(9, 3)), 3, 0.3
    Y = np.column_stack([X[:, 0] + 0.2 * rng.normal(size=40), X[:, 0] * X[:, 1], X[:, 2]])
    matrices = list(rng.normal(size=(12, 1, d)))
    settings = {"learning_rate": rate, "max_leaf_nodes": 4, "min_samples_leaf": 2}
    expected = boost(
        X, Y, strategy="project", loss=make_loss("squared_error"), step="line_search",
        projections=matrices, max_iter=12, **settings,
    )  # fmt: skip
    weights = weights_of_targets(expected.rounds, matrices, rate, X, X_new)
    given = iter(matrices)
    model = ManyBoostRegressor(
        strategy="project", projection=lambda q, d, rng: next(given), step="line_search",
        max_iter=12, output_scaling=None, early_stopping=False, **settings,
    ).fit(X, Y)  # fmt: skip
    found = np.einsum("aijk,ik->aj", weights, Y)
    np.testing.assert_allclose(found, model.predict(X_new), rtol=1e-5, atol=1e-5)
    # The matrices are full: a target of one output counts for the others. A constant added to an
    # output is added to its predictions and to no others.
    np.testing.assert_allclose(weights.sum(axis=1), np.tile(np.eye(d), (9, 1, 1)), atol=1e-12)
    across = weights * (1 - np.eye(d))
    assert np.abs(across).sum(axis=1).max() > 0.1


# ------------------------------------------------------------------ features drawn in a node

_MASK = 2**64 - 1
_FEATURES = 2  # the purpose of the stream


def finalise(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def mix(word):
    return finalise((word + 0x9E3779B97F4A7C15) & _MASK)


def below(key, word):
    """The key of ``word`` below a key."""
    rotated = ((key << 17) | (key >> 47)) & _MASK
    return mix(rotated ^ mix(word ^ 0x5851F42D4C957F2D))


def drawing_order(key, p):
    """The features of a node in the order in which they are drawn (SplitMix64, Fisher-Yates)."""
    order = list(range(p))
    for i in range(p):
        key = (key + 0x9E3779B97F4A7C15) & _MASK
        j = i + ((finalise(key) * (p - i)) >> 64)
        order[i], order[j] = order[j], order[i]
    return order


def grow_drawn(n_drawn, seed):
    """The reference's ``grow``, round after round, with ``n_drawn`` features in each node.

    If no drawn feature splits a node, the next ones are drawn.
    """
    rounds = iter(range(10**6))

    def grow(X, Z, weight, **limits):
        root = mix(seed)
        for word in (next(rounds), 0, _FEATURES):
            root = below(root, word)
        keys = {}  # by the rows of a node

        def split_of(X, Z, weight, rows, *others):
            order = drawing_order(keys.get(rows.tobytes(), root), X.shape[1])
            for start in range(0, len(order), n_drawn):
                drawn = sorted(order[start : start + n_drawn])
                hidden = np.delete(np.arange(X.shape[1]), drawn)
                seen = X.copy()
                seen[:, hidden] = 0  # constant features cannot split
                split = best_split(seen, Z, weight, rows, *others)
                if split is not None:
                    left = split.goes_left(X[rows])
                    key = keys.get(rows.tobytes(), root)
                    keys[rows[left].tobytes()] = below(key, 0)
                    keys[rows[~left].tobytes()] = below(key, 1)
                    return split
            return None

        return grow_tree(X, Z, weight, best=split_of, **limits)

    return grow


@pytest.mark.parametrize("strategy", ["multioutput", "relabel", "project"])
@pytest.mark.parametrize("n_drawn", [1, 3])
def test_trees_with_drawn_features_are_those_of_the_reference(strategy, n_drawn):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 7))
    Y = np.column_stack([np.sin(2 * X[:, j]) + X[:, j + 1] for j in range(3)])
    matrices = list(rng.normal(size=(8, 1, 3)))
    given = iter(matrices)
    settings = {"learning_rate": 0.3, "max_leaf_nodes": 5, "min_samples_leaf": 3, "max_iter": 8}
    model = ManyBoostRegressor(
        strategy=strategy, projection=lambda q, d, rng: next(given), step="line_search",
        max_features=n_drawn, output_scaling=None, early_stopping=False, random_state=5, **settings,
    ).fit(X, Y)  # fmt: skip
    seed = int(np.random.RandomState(5).randint(2**31 - 1))
    expected = boost(
        X, Y, strategy=strategy, loss=make_loss("squared_error"), step="line_search",
        projections=matrices, grow=grow_drawn(n_drawn, seed), **settings,
    )  # fmt: skip
    scale = np.abs(expected.raw).max()
    np.testing.assert_allclose(model.predict(X), expected.raw, atol=1e-5 * scale)


def test_every_feature_is_drawn_equally_often():
    counts = np.zeros(7)
    for node in range(3000):
        counts[drawing_order(mix(node), 7)[:3]] += 1
    # Standard deviation of a binomial count.
    assert np.abs(counts - 3000 * 3 / 7).max() < 4 * math.sqrt(3000 * 3 / 7 * 4 / 7)
