"""Scores agree with scikit-learn's."""

import numpy as np
import pytest
from experiments.scoring import lrap, macro_r2
from sklearn.metrics import label_ranking_average_precision_score, r2_score


@pytest.mark.parametrize("n_outputs", [1, 2, 7, 8, 9, 64])
@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_lrap_is_that_of_scikit_learn_with_and_without_ties(levels, n_outputs):
    rng = np.random.default_rng(levels)
    Y = (rng.random((200, n_outputs)) < 0.3).astype(np.uint8)
    Y[0], Y[1] = 0, 1
    scores = rng.integers(levels, size=Y.shape) / levels
    expected = label_ranking_average_precision_score(Y, scores)
    assert lrap(Y, scores) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_macro_r2_is_that_of_scikit_learn_even_of_outputs_that_do_not_vary(dtype):
    rng = np.random.default_rng(0)
    Y, predictions = (rng.normal(size=(50, 5)).astype(dtype) for _ in range(2))
    Y[:, :2] = 2
    predictions[:, 0] = 2
    assert macro_r2(Y, predictions) == pytest.approx(r2_score(Y, predictions), abs=1e-6)


def test_macro_r2_averages_the_outputs():
    Y = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert macro_r2(Y, np.array([[0.0, 0.5], [1.0, 0.5]])) == pytest.approx(0.5)
