"""Squared error in one pass a round: the loss and the state follow without a pass of their own."""

import numpy as np
import pytest

from manyboost import ManyBoostClassifier, ManyBoostRegressor

RNG = np.random.default_rng(5)
X = RNG.normal(size=(150, 6))
Y = X @ RNG.normal(size=(6, 19)) + RNG.normal(size=(150, 19))
WEIGHT = RNG.uniform(0.5, 2, size=150)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("step", ["newton", "line_search"])
@pytest.mark.parametrize("strategy", ["project", "relabel"])
def test_training_scores_are_those_of_the_staged_predictions(strategy, step, weight):
    model = ManyBoostRegressor(
        strategy=strategy, step=step, learning_rate=0.4, max_iter=15, random_state=0
    ).fit(X, Y, weight)
    stages = [np.average((Y - stage) ** 2, axis=0, weights=weight) / 2
              for stage in model.staged_predict(X)]  # fmt: skip
    expected = -np.mean(stages, axis=1)
    np.testing.assert_allclose(model.train_score_[-len(expected) :], expected, rtol=2e-6)


@pytest.mark.parametrize("strategy", ["project", "relabel"])
@pytest.mark.parametrize("first", [1, 2, 7])
def test_a_fit_that_goes_on_ends_as_if_it_had_not_stopped(strategy, first):
    def model(max_iter):
        settings = {"n_components": 3} if strategy == "relabel" else {}
        return ManyBoostRegressor(
            strategy=strategy, max_iter=max_iter, warm_start=True, random_state=0, **settings
        )

    whole = model(9).fit(X, Y, WEIGHT)
    parts = model(first).fit(X, Y, WEIGHT)
    parts.set_params(max_iter=9).fit(X, Y, WEIGHT)
    np.testing.assert_array_equal(parts.predict(X), whole.predict(X))
    np.testing.assert_array_equal(parts.train_score_, whole.train_score_)


def test_a_perfect_fit_has_no_negative_loss():
    x = np.arange(8.0)[:, None]
    model = ManyBoostRegressor(
        learning_rate=1.0, max_iter=6, max_leaf_nodes=8, min_samples_leaf=1, l2_regularization=0,
        random_state=0,
    ).fit(x, np.hstack([x, 3 - x**2]))  # fmt: skip
    losses = -model.train_score_
    assert (losses >= 0).all()
    assert losses[-1] < 1e-9


def test_subsampled_leaves_take_the_pass_that_sees_all_rows():
    model = ManyBoostRegressor(subsample=0.5, max_iter=12, random_state=0).fit(X, Y)
    *_, last = model.staged_predict(X)
    expected = -((Y - last) ** 2).mean() / 2
    np.testing.assert_allclose(model.train_score_[-1], expected, rtol=2e-6)


def test_labels_under_squared_error_are_trained_in_the_same_way():
    labels = (Y > 0.5).astype(int)
    model = ManyBoostClassifier(loss="squared_error", max_iter=10, random_state=0).fit(X, labels)
    expected = -((2 * labels - 1 - model.decision_function(X)) ** 2).mean() / 2
    np.testing.assert_allclose(model.train_score_[-1], expected, rtol=2e-6)
