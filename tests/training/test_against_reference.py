"""Every strategy, loss and step agrees with the plain NumPy version of the algorithms.

Data are small, so that every value has a bin of its own; both sides get the same projection
matrices. The reference works in double precision, the library keeps raw predictions in single
precision: they agree to about 1e-6.
"""

import numpy as np
import pytest

from both_sides import (
    LABELS,
    SIGNS,
    SMOOTH,
    STRATEGIES,
    assert_close,
    both,
    check_signs_one_round_at_a_time,
    make_data,
)
from manyboost import ManyBoostClassifier, ManyBoostRegressor
from positive_targets import positive
from reference import make_loss


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("step", ["line_search", "newton"])
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_regression(strategy, loss, step, weighted):
    X, Y = make_data(1, missing=weighted)
    if loss in ("poisson", "gamma", "tweedie"):
        Y = positive(loss, np.exp(Y / 2))
    weight = np.random.default_rng(5).uniform(0.2, 3, len(X)) if weighted else None

    def estimator(**kwargs):
        return ManyBoostRegressor(loss=loss, output_scaling=None, **kwargs)

    model, expected = both(estimator, X, Y, Y, strategy, make_loss(loss), step, weight=weight)
    assert_close(model._raw_predict(X), expected.raw)
    assert_close(model.baseline_, expected.baseline)
    train_loss = np.array(expected.train_loss) / Y.shape[1]
    assert_close(-model.train_score_, train_loss)
    X_new, _ = make_data(2, missing=weighted)
    assert_close(model._raw_predict(X_new), expected.predict_raw(X_new))


@pytest.mark.parametrize("step", ["line_search", "newton"])
@pytest.mark.parametrize("loss", LABELS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_labels(strategy, loss, step):
    X, Y = make_data(3)
    labels = (np.quantile(Y, [0.5, 0.7, 0.85], axis=0).diagonal() < Y).astype(float)

    def estimator(**kwargs):
        return ManyBoostClassifier(loss=loss, **kwargs)

    reference_loss = make_loss(LABELS[loss])
    model, expected = both(estimator, X, labels, labels, strategy, reference_loss, step)
    assert_close(model.decision_function(X), expected.raw)


@pytest.mark.parametrize("step", ["line_search", "newton"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_classes(strategy, step):
    X, Y = make_data(4, n=150)
    classes = np.digitize(Y[:, 1], np.quantile(Y[:, 1], [0.4, 0.7]))
    # Line searches along tied directions are flat: compare what does not depend on the tie.
    model, expected = both(
        ManyBoostClassifier, X, classes, classes, strategy, make_loss("softmax"), step
    )
    centred = [
        raw - raw.mean(axis=1, keepdims=True) for raw in (model._raw_predict(X), expected.raw)
    ]
    assert_close(*centred, tolerance=1e-5 if step == "newton" else 1e-4)
    assert_close(-model.train_score_, np.array(expected.train_loss))


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("step", ["line_search", "newton"])
@pytest.mark.parametrize("loss", SIGNS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sign_gradients_one_round_at_a_time(strategy, loss, step, weighted):
    X, Y = make_data(6)
    weight = np.random.default_rng(7).uniform(0.2, 3, len(X)) if weighted else None
    check_signs_one_round_at_a_time(X, Y, strategy, loss, step, weight)


@pytest.mark.parametrize("settings", [
    {"max_depth": 2, "max_leaf_nodes": 31},
    {"min_samples_leaf": 1, "max_leaf_nodes": 31},
    {"min_split_gain": 2.0},
    {"max_leaf_nodes": 2},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("strategy", ["multioutput", "project"])
def test_shapes_of_trees(strategy, settings):
    X, Y = make_data(8, missing=True)

    def estimator(**kwargs):
        return ManyBoostRegressor(output_scaling=None, **kwargs)

    loss = make_loss("squared_error")
    model, expected = both(estimator, X, Y, Y, strategy, loss, "line_search", **settings)
    assert_close(model.predict(X), expected.raw)
    sizes = [len(entry["trees"][0].nodes) for entry in expected.rounds]
    assert list(model._progress.model.trees.tree_sizes()) == sizes


def test_discrete_features_with_many_ties():
    rng = np.random.default_rng(9)
    X = rng.integers(0, 3, size=(80, 5)).astype(float)
    Y = rng.integers(-2, 3, size=(80, 2)).astype(float)

    def estimator(**kwargs):
        return ManyBoostRegressor(output_scaling=None, **kwargs)

    for strategy in ("independent", "multioutput"):
        loss = make_loss("squared_error")
        model, expected = both(estimator, X, Y, Y, strategy, loss, "newton", learning_rate=1.0)
        assert_close(model.predict(X), expected.raw)
