"""How far to go along a tree."""

import numpy as np
import pytest

from manyboost import ManyBoostClassifier


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
