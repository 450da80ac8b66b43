"""How far to go along a tree."""

import numpy as np
import pytest

from manyboost import ManyBoostClassifier
from manyboost.training.steps import STEP_LIMIT

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
