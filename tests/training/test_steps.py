"""How far to go along a tree."""

import numpy as np
import pytest

from manyboost import ManyBoostClassifier
from manyboost.training.steps import STEP_LIMIT, minimise_along
from reference import divide, make_loss

STRATEGIES = ["independent", "multioutput", "project", "relabel"]


@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_steps_along_pure_leaves_end_at_the_limit(strategy, loss):
    # The best step would be infinite. Its slope is soon lost in rounding, which is no minimum.
    X = np.repeat([[0.0], [1.0]], [12, 18], axis=0)
    labels = np.column_stack([X[:, 0], 1 - X[:, 0], X[:, 0]]).astype(int)
    settings = {"step": "line_search", "learning_rate": 1.0, "max_iter": 4, "min_samples_leaf": 1}
    model = ManyBoostClassifier(loss, strategy=strategy, random_state=0, **settings).fit(X, labels)
    stages = [np.broadcast_to(model.baseline_, labels.shape), *model.staged_decision_function(X)]
    moves = np.abs(np.diff(stages, axis=0)).max(axis=(1, 2))
    assert moves == pytest.approx(STEP_LIMIT, rel=1e-5)


@pytest.mark.parametrize("n_classes", [3, 4, 10])
def test_steps_of_classes_along_one_direction_sum_to_zero(n_classes):
    # What all classes share changes no probability; the shortest of the best steps is without it.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6))
    scores = X @ rng.normal(size=(6, n_classes)) + rng.gumbel(size=(600, n_classes))
    model = ManyBoostClassifier(
        strategy="project", step="line_search", max_iter=15, max_leaf_nodes=8, random_state=0
    ).fit(X, scores.argmax(axis=1))
    steps = model.step_sizes_
    assert np.abs(steps.mean(axis=1)).max() < 0.01 * np.abs(steps).max()


@pytest.mark.parametrize("seed", range(12))
def test_steps_of_classes_are_the_best_within_their_limits(seed):
    # Leaf values of two leaves are tied, so that steps are long and meet the limits.
    rng = np.random.default_rng(seed)
    X, offset = rng.normal(size=(60, 3)), rng.normal(size=(60, 3))
    y = (X @ rng.normal(size=(3, 3)) + offset + rng.gumbel(size=(60, 3))).argmax(axis=1)
    settings = {"step": "line_search", "learning_rate": 0.1, "max_leaf_nodes": 2, "max_iter": 8}
    model = ManyBoostClassifier(random_state=0, **settings).fit(X, y, offset=offset)
    raw, loss, weight = model.baseline_ + offset, make_loss("softmax"), np.ones(len(X))
    stages = model.staged_decision_function(X, offset=offset)
    for rho, moved in zip(model.step_sizes_, stages, strict=True):
        g = divide(moved - raw, 0.1 * rho)
        best = loss.value(y, raw + loss.line_search(y, raw, g, weight) * g).sum()
        assert loss.value(y, raw + rho * g).sum() == pytest.approx(best, rel=1e-4)
        raw = moved


@pytest.mark.parametrize(("reach", "step"), [(1e-30, 1e31), (1e-38, 0.0)])
def test_no_step_leaves_the_range_of_single_precision(reach, step):
    # Along a pure leaf the loss e^(−ρ g) falls for ever: the step ends at ρ g = 10, unless it would
    # be larger than numbers in single precision.
    def evaluate(rho, active):
        falls = np.exp(-rho * reach)
        return -reach * falls, reach**2 * falls

    zero = np.zeros(1)
    slope, curvature = evaluate(zero, None)
    found = minimise_along(evaluate, slope, curvature, np.array([reach]), bounded=True)
    np.testing.assert_allclose(found, [step])


@pytest.mark.parametrize("minimum", [0.3, 1.0, 2.0])
def test_without_a_curvature_a_minimum_that_is_met_is_kept(minimum):
    # The first point is 1, and the next ones are powers of it or middles between.
    zero = np.zeros(1)
    rho = minimise_along(
        lambda t, active: (t - minimum, None), zero - minimum, None, zero + 1, bounded=False
    )
    assert rho == pytest.approx(minimum, rel=1e-6)
