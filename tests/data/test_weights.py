"""Weights of single cells and missing targets: a cell without a target might as well not exist."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.class_weight import compute_sample_weight

from both_sides import (
    LABELS,
    N_ROUNDS,
    SHAPE,
    SIGNS,
    SMOOTH,
    STRATEGIES,
    Projections,
    assert_close,
    both,
    check_signs_one_round_at_a_time,
    make_data,
)
from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor
from manyboost.training.thresholds import tune_thresholds
from positive_targets import positive
from reference import boost, make_loss
from refusals import refusal

STEPS = ["line_search", "newton"]
REAL = [*SMOOTH, *SIGNS]
COMMON = {"max_iter": 6, "max_leaf_nodes": 6, "min_samples_leaf": 4, "random_state": 0}
COMMON |= {"learning_rate": 0.3, "early_stopping": False}


def discrete_data(n=160, p=4, d=4, seed=0):
    """Few distinct values of every feature: bins are exact, whatever the weights."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, size=(n, p)).astype(float)
    X[rng.random(X.shape) < 0.05] = np.nan
    Z = np.nan_to_num(X)
    signal = np.column_stack([np.sin(Z[:, 0]) + Z[:, 1] * j / 3 - Z[:, 2] for j in range(d)])
    return X, signal + 0.5 * rng.normal(size=(n, d))


def targets(loss, Y):
    """Targets of a loss, and the estimator that takes it."""
    if loss in LABELS and loss != "squared_error":
        return (np.median(Y, axis=0) < Y).astype(float), ManyBoostClassifier
    is_positive = loss in ("poisson", "gamma", "tweedie")
    return (positive(loss, np.exp(Y / 2)) if is_positive else Y), ManyBoostRegressor


def cell_weights(shape, seed=1):
    """Whole numbers, a quarter of them zero."""
    return np.random.default_rng(seed).integers(0, 4, size=shape).astype(float)


def model_bytes(model):
    return model._progress.model.trees.to_bytes()


def assert_same(a, b):
    assert model_bytes(a) == model_bytes(b)
    np.testing.assert_array_equal(a.baseline_, b.baseline_)
    np.testing.assert_array_equal(a.train_score_, b.train_score_)
    np.testing.assert_array_equal(a.output_importances_, b.output_importances_)


# Missing targets ----------------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("loss", [*REAL, "log_loss", "exponential"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_an_independent_output_is_trained_on_its_observed_rows_alone(loss, step, weighted):
    X, Y = discrete_data()
    T, estimator = targets(loss, Y)
    W = cell_weights(T.shape)
    partial = np.where(W > 0, T, np.nan)
    settings = COMMON | {"loss": loss, "step": step, "strategy": "independent"}
    if estimator is ManyBoostRegressor:
        settings["quantile"] = 0.3
    model = estimator(**settings).fit(X, partial, W if weighted else None)
    raw = model._raw_predict(X)
    for j in range(T.shape[1]):
        rows = W[:, j] > 0
        weight = W[rows, j] if weighted else None
        alone = estimator(**settings).fit(X[rows], T[rows, j], weight)
        expected = alone._raw_predict(X[rows])[:, 0]
        np.testing.assert_allclose(raw[rows, j], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("subsample", [1.0, 0.6])
@pytest.mark.parametrize("loss", [*REAL, "log_loss", "exponential"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_missing_cell_is_a_cell_of_weight_zero(strategy, loss, subsample):
    X, Y = discrete_data()
    T, estimator = targets(loss, Y)
    W = cell_weights(T.shape)
    for step in STEPS:
        settings = COMMON | {"loss": loss, "step": step, "strategy": strategy}
        settings["subsample"] = subsample
        by_weight = estimator(**settings).fit(X, T, W)
        by_nan = estimator(**settings).fit(X, np.where(W > 0, T, np.nan), np.where(W > 0, W, 9.0))
        assert_same(by_weight, by_nan)
        mask = (W > 0).astype(float)
        by_mask = estimator(**settings).fit(X, T, mask)
        unweighted = estimator(**settings).fit(X, np.where(W > 0, T, np.nan))
        assert_same(by_mask, unweighted)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_hidden_under_a_missing_cell_changes_nothing(strategy):
    X, Y = discrete_data()
    W = cell_weights(Y.shape)
    other = np.where(W > 0, Y, 1e30)
    given = other.copy()
    labels = (Y > 0).astype(int)
    flipped = np.where(W > 0, labels, 1 - labels)
    for estimator, a, b in [
        (ManyBoostRegressor, Y, other),
        (ManyBoostClassifier, labels, flipped),
    ]:
        settings = COMMON | {"strategy": strategy, "early_stopping": True}
        one, two = (estimator(**settings).fit(X, T, W) for T in (a, b))
        assert_same(one, two)
        np.testing.assert_array_equal(one.validation_score_, two.validation_score_)
    np.testing.assert_array_equal(other, given)  # the user's y is not written to


def test_rows_without_an_observed_cell_are_left_out():
    X, Y = discrete_data()
    empty = np.arange(len(X)) % 5 == 0
    partial = np.where(empty[:, None], np.nan, Y)
    for strategy in STRATEGIES:
        settings = COMMON | {"strategy": strategy}
        assert_same(
            ManyBoostRegressor(**settings).fit(X, partial),
            ManyBoostRegressor(**settings).fit(X[~empty], Y[~empty]),
        )
    one = ManyBoostRegressor(**COMMON).fit(X, partial[:, 0])
    assert_same(one, ManyBoostRegressor(**COMMON).fit(X[~empty], Y[~empty, 0]))


@pytest.mark.parametrize("null", [np.nan, None, pd.NA], ids=str)
def test_labels_can_be_missing_in_any_way(null):
    X, Y = discrete_data()
    labels = (Y > 0).astype(int)
    hidden = cell_weights(Y.shape) == 0
    expected = ManyBoostClassifier(**COMMON).fit(X, labels, (~hidden).astype(float))
    objects = np.where(hidden, None, labels.astype(object))
    objects[hidden] = null
    frames = [objects, pd.DataFrame(objects), objects.tolist()]
    frames.append(pd.DataFrame(objects).astype("Int64" if null is pd.NA else float))
    for frame in frames:
        assert_same(ManyBoostClassifier(**COMMON).fit(X, frame), expected)


def test_a_prediction_is_made_for_every_output_of_every_row():
    X, Y = discrete_data(n=400)
    hidden = np.random.default_rng(5).random(Y.shape) < 0.4
    partial = np.where(hidden, np.nan, Y)
    for strategy in STRATEGIES:
        settings = COMMON | {"strategy": strategy, "max_iter": 30}
        model = ManyBoostRegressor(**settings).fit(X, partial)
        full = ManyBoostRegressor(**settings).fit(X, Y)
        # The hidden cells are predicted nearly as well as if they had been seen.
        error = (model.predict(X) - Y)[hidden].var() / Y[hidden].var()
        seen = (full.predict(X) - Y)[hidden].var() / Y[hidden].var()
        assert error < seen + 0.15


# Weights ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [*REAL, "log_loss", "exponential"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_whole_weights_are_repetitions(strategy, loss):
    X, Y = discrete_data()
    T, estimator = targets(loss, Y)
    weight = np.random.default_rng(2).integers(0, 4, len(X))
    for step in STEPS:
        settings = COMMON | {"loss": loss, "step": step, "strategy": strategy}
        settings["min_samples_leaf"] = 1
        weighted = estimator(**settings).fit(X, T, weight)
        repeated = estimator(**settings).fit(np.repeat(X, weight, 0), np.repeat(T, weight, 0))
        trees = [[m._progress.model.trees.tree(t) for t in range(6)] for m in (weighted, repeated)]
        for one, two in zip(*trees, strict=True):
            np.testing.assert_array_equal(one[0], two[0])
            np.testing.assert_array_equal(one[1], two[1])
        # (Missing features that no training row had follow the child with more rows, not weight.)
        a, b = (model._raw_predict(X[weight > 0]) for model in (weighted, repeated))
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6 * np.abs(b).max())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_weights_that_agree_within_rows_are_weights_of_rows(strategy):
    X, Y = discrete_data()
    weight = np.random.default_rng(3).integers(0, 4, len(X)) / 2
    hidden = cell_weights(Y.shape) == 0
    cells = np.tile(weight[:, None], Y.shape[1])
    settings = COMMON | {"strategy": strategy}
    assert_same(
        ManyBoostRegressor(**settings).fit(X, Y, cells),
        ManyBoostRegressor(**settings).fit(X, Y, weight),
    )
    assert_same(
        ManyBoostRegressor(**settings).fit(X, Y, np.where(hidden, 0, cells)),
        ManyBoostRegressor(**settings).fit(X, np.where(hidden, np.nan, Y), weight),
    )
    assert_same(
        ManyBoostRegressor(**settings).fit(X, Y, np.ones(Y.shape)),
        ManyBoostRegressor(**settings).fit(X, Y),
    )


def partial_data(seed, loss=None):
    """Features, targets of which some are missing, and whole weights of which some are zero."""
    X, Y = make_data(seed, missing=True)
    W = cell_weights(Y.shape, seed)
    hidden = np.random.default_rng(seed).random(Y.shape) < 0.1
    # A row without an observed cell would give cut points to the reference.
    empty = ~((W > 0) & ~hidden).any(axis=1)
    X, Y, W, hidden = X[~empty], Y[~empty], W[~empty], hidden[~empty]
    if loss in ("poisson", "gamma", "tweedie"):
        Y = positive(loss, np.exp(Y / 2))
    if loss in ("log_loss", "exponential", "squared_labels"):
        Y = (np.quantile(Y, [0.5, 0.7, 0.85], axis=0).diagonal() < Y).astype(float)
    return X, np.where(hidden, np.nan, Y), W


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_weights_of_cells_against_the_reference(strategy, loss, step):
    X, Y, W = partial_data(1, loss)

    def estimator(**kwargs):
        return ManyBoostRegressor(loss=loss, output_scaling=None, **kwargs)

    model, expected = both(estimator, X, Y, Y, strategy, make_loss(loss), step, weight=W)
    assert_close(model._raw_predict(X), expected.raw)
    assert_close(model.baseline_, expected.baseline)
    assert_close(-model.train_score_, np.array(expected.train_loss) / Y.shape[1])


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("loss", LABELS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_weights_of_labels_against_the_reference(strategy, loss, step):
    # Data without ties: where curvature weighs rows, rounding decides between equal cuts.
    X, Y, W = partial_data(4, LABELS[loss])

    def estimator(**kwargs):
        return ManyBoostClassifier(loss=loss, **kwargs)

    reference_loss = make_loss(LABELS[loss])
    model, expected = both(estimator, X, Y, Y, strategy, reference_loss, step, weight=W)
    assert_close(model.decision_function(X), expected.raw)
    assert_close(-model.train_score_, np.array(expected.train_loss) / Y.shape[1])


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("loss", SIGNS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sign_gradients_of_cells_one_round_at_a_time(strategy, loss, step):
    X, Y, W = partial_data(6)
    W = np.where(W > 0, W + np.random.default_rng(7).random(W.shape), 0)  # unequal: no ties
    check_signs_one_round_at_a_time(X, Y, strategy, loss, step, W)


def test_outputs_are_scaled_by_the_deviation_of_their_observed_cells():
    X, Y = discrete_data()
    hidden = cell_weights(Y.shape) == 0
    partial = np.where(hidden, np.nan, Y * [1, 100, 1, 1])
    settings = COMMON | {"strategy": "multioutput"}
    deviation = np.nanstd(partial, axis=0)
    scaled = ManyBoostRegressor(**settings).fit(X, partial)
    by_hand = ManyBoostRegressor(output_scaling=None, **settings).fit(X, partial / deviation)
    np.testing.assert_allclose(scaled.predict(X) / deviation, by_hand.predict(X), rtol=1e-4)


def test_importances_count_observed_cells():
    X, Y = discrete_data(d=2)
    Y[:, 1] = np.where(np.nan_to_num(X[:, 3]) > 2, 5.0, -5.0)
    Y[np.nan_to_num(X[:, 3]) <= 2, 1] = np.nan  # constant where it is observed
    model = ManyBoostRegressor(strategy="multioutput", **COMMON).fit(X, Y)
    assert model.output_importances_[0].sum() == pytest.approx(1)
    assert not model.output_importances_[1].any()


# Losses and learners of one's own -----------------------------------------------------------------


class Square(Loss):
    def value(self, y, raw):
        assert np.isfinite(y).all()
        return (y - raw) ** 2 / 2

    def gradient(self, y, raw):
        return raw - y

    def hessian(self, y, raw):
        return np.ones_like(raw)


class SquareByRow(Square):
    def value(self, y, raw):
        return super().value(y, raw).sum(axis=1)


class SquareFromMean(Square):
    def baseline(self, y, sample_weight):
        weight = np.ones(y.shape) if sample_weight is None else sample_weight
        observed = np.where(np.isnan(y), 0, weight)
        return (observed * np.nan_to_num(y)).sum(axis=0) / observed.sum(axis=0)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_custom_loss_sees_no_missing_cell(strategy, step):
    X, Y = discrete_data()
    W = cell_weights(Y.shape)
    settings = COMMON | {"strategy": strategy, "step": step, "output_scaling": None}
    for weight, T in [(None, np.where(W > 0, Y, np.nan)), (W, Y)]:
        builtin = ManyBoostRegressor(**settings).fit(X, T, weight)
        for loss in (Square(), SquareFromMean()):
            custom = ManyBoostRegressor(loss, l2_regularization=0, **settings).fit(X, T, weight)
            np.testing.assert_allclose(custom.predict(X), builtin.predict(X), rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(custom.train_score_, builtin.train_score_, rtol=1e-4)


def test_a_custom_loss_of_whole_rows_cannot_leave_out_cells():
    X, Y = discrete_data(n=60)
    assert ManyBoostRegressor(SquareByRow(), **COMMON).fit(X, Y).n_iter_ == 6
    Y[5, 1] = np.nan
    sentence = refusal(lambda: ManyBoostRegressor(SquareByRow(), **COMMON).fit(X, Y))
    assert sentence == (
        "SquareByRow.value returned one loss for each row, of which cells without a target or with "
        "a weight of their own cannot be taken apart; it must return (60, 4), one loss for each "
        "cell."
    )


def test_weak_learners_of_scikit_learn_get_weights_of_rows():
    X, Y = discrete_data()
    X = np.nan_to_num(X)
    hidden = cell_weights(Y.shape) == 0
    partial = np.where(hidden, np.nan, Y)
    tree = DecisionTreeRegressor(max_leaf_nodes=8, random_state=0)
    for strategy, estimator in [
        ("independent", tree),
        ("independent", KNeighborsRegressor()),
        ("project", tree),
        ("project", Ridge()),
        ("relabel", tree),
    ]:
        settings = COMMON | {"strategy": strategy, "estimator": estimator, "max_iter": 20}
        model = ManyBoostRegressor(**settings).fit(X, partial)
        assert model.train_score_[-1] > 0.7 * model.train_score_[0]
        # What is hidden is not seen: the same model for other values under weight zero.
        if not isinstance(estimator, KNeighborsRegressor):
            for T in (Y, np.where(hidden, -Y, Y)):
                again = ManyBoostRegressor(**settings).fit(X, T, (~hidden).astype(float))
                np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_weak_learners_that_cannot_take_weights_of_cells():
    X, Y = discrete_data()
    X, Y[3, 1] = np.nan_to_num(X), np.nan

    def fit(**parameters):
        return lambda: ManyBoostRegressor(**(COMMON | parameters)).fit(X, Y)

    tree = DecisionTreeRegressor()
    for parameters, columns in [
        ({"strategy": "multioutput", "estimator": tree}, 4),
        ({"strategy": "relabel", "n_components": 2, "estimator": tree}, 2),
    ]:
        assert refusal(fit(**parameters)) == (
            f"DecisionTreeRegressor would be fitted to {columns} columns whose missing targets or "
            "weights of cells it cannot take; use strategy='project' or 'independent', "
            "n_components=1, or the built-in tree (estimator=None)."
        )
    assert refusal(fit(strategy="project", estimator=KNeighborsRegressor())) == (
        "Missing targets or weights of cells become weights of rows, but KNeighborsRegressor takes "
        "none; use strategy='independent' or another estimator."
    )


# Importance of outputs ----------------------------------------------------------------------------


@pytest.mark.parametrize("by_cell", [False, True], ids=["rows", "cells"])
@pytest.mark.parametrize("strategy", ["multioutput", "project", "relabel"])
def test_output_weight_against_the_reference(strategy, by_cell):
    X, Y, W = partial_data(4)
    Y, W = (Y, W) if by_cell else (np.nan_to_num(Y), W[:, 0] + 1)
    output_weight = np.array([2.0, 0.0, 0.5])
    q = 2 if strategy == "relabel" else 1
    projections = Projections(N_ROUNDS, q, 3)
    settings = {"strategy": strategy, "step": "newton", "max_iter": N_ROUNDS} | SHAPE
    model = ManyBoostRegressor(
        projection=projections,
        n_components=q,
        output_scaling=None,
        output_weight=output_weight,
        early_stopping=False,
        **settings,
    ).fit(X, Y, W)
    expected = boost(
        X,
        Y,
        loss=make_loss("squared_error"),
        projections=projections.matrices,
        sample_weight=W,
        output_weight=output_weight,
        **settings,
    )
    assert_close(model.predict(X), expected.raw)
    assert_close(-model.train_score_, np.array(expected.train_loss) / 3)


@pytest.mark.parametrize("projection", ["gaussian", "sparse", "subsample", "identity"])
def test_an_output_of_weight_zero_is_fitted_but_chooses_no_split(projection):
    X, Y = discrete_data()
    Y[:, 1] = 1000 * (np.nan_to_num(X[:, 3]) > 2)
    settings = COMMON | {"projection": projection, "output_scaling": None}
    model = ManyBoostRegressor(output_weight=[1, 0, 1, 1], **settings).fit(X, Y)
    others = ManyBoostRegressor(**settings).fit(X, Y[:, [0, 2, 3]])
    np.testing.assert_array_equal(model.predict(X)[:, [0, 2, 3]], others.predict(X))
    assert model.predict(X)[:, 1].std() > 0
    assert ManyBoostRegressor(**settings).fit(X, Y).output_importances_[1].argmax() == 3


def test_equal_output_weights_change_nothing():
    X, Y = discrete_data()
    for strategy in ("multioutput", "relabel", "project"):
        settings = COMMON | {"strategy": strategy, "output_scaling": None}
        plain = ManyBoostRegressor(**settings).fit(X, Y)
        weighted = ManyBoostRegressor(output_weight=np.full(4, 4.0), **settings).fit(X, Y)
        np.testing.assert_allclose(weighted.predict(X), plain.predict(X), rtol=1e-6, atol=1e-6)


def test_output_weights_that_do_not_fit():
    X, Y = discrete_data(n=60)

    def fit(weight, **parameters):
        return lambda: ManyBoostRegressor(output_weight=weight, **(COMMON | parameters)).fit(X, Y)

    assert refusal(fit([1, 2])) == (
        "output_weight has 2 weights, but there are 4 outputs; pass one weight for each."
    )
    assert refusal(fit([1, 2, 3, 4], strategy="independent")) == (
        "output_weight has no effect with strategy='independent', which grows trees for each "
        "output alone; leave it at None or use another strategy."
    )
    assert refusal(fit([1, 0, 0, 1], projection="subsample", n_components=3)) == (
        "n_components=3 is more than the 2 outputs that projection='subsample' draws from without "
        "replacement; use fewer components or another projection."
    )
    useless = fit([1, 0, 0, 1], projection=lambda q, d, rng: np.eye(d)[[1]])
    assert "must give some output a weight" in refusal(useless)
    unknown = {"strategy": "multioutput", "estimator": Ridge(), "min_samples_leaf": "auto"}
    assert refusal(fit([1, 0, 2, 1], **unknown)) == (
        "output_weight is 0 for output 1, which an estimator would not be fitted to with "
        "strategy='multioutput'; use a small weight, or estimator=None."
    )


# Weights of classes -------------------------------------------------------------------------------


def test_class_weights_multiply_the_weights_of_rows():
    X, Y = discrete_data()
    classes = np.array(["a", "b", "c"])[np.digitize(Y[:, 0], [-3, 0])]
    given = {"a": 2.0, "c": 0.5}
    weight = np.random.default_rng(4).uniform(0.5, 2, len(X))
    for y, loss in [
        (classes, "log_loss"),
        (classes, "exponential"),
        (np.where(classes == "a", "a", "c"), "log_loss"),
    ]:
        for class_weight in (given, "balanced"):
            by_class = compute_sample_weight(
                class_weight if class_weight == "balanced" else {"b": 1.0} | class_weight, y
            )
            settings = COMMON | {"loss": loss}
            model = ManyBoostClassifier(class_weight=class_weight, **settings).fit(X, y, weight)
            by_hand = ManyBoostClassifier(**settings).fit(X, y, weight * by_class)
            np.testing.assert_allclose(
                model.predict_proba(X), by_hand.predict_proba(X), rtol=1e-5, atol=1e-6
            )


def test_class_weights_of_labels_are_weights_of_cells():
    X, Y = discrete_data()
    labels = (Y > [0, -1, -2, 1]).astype(int)
    hidden = cell_weights(Y.shape) == 0
    partial = np.where(hidden, np.nan, labels)
    observed = (~hidden).sum(axis=0)
    positive = np.nansum(partial, axis=0)
    balanced = np.where(
        labels == 1, observed / (2 * positive), observed / (2 * (observed - positive))
    )
    one = np.where(labels == 1, 3.0, 1.0)
    each = np.where(labels == 1, [1, 2, 3, 4], [1, 1, 0.5, 1])
    dicts = [{}, {1: 2}, {0: 0.5, 1: 3}, {1.0: 4}]
    for class_weight, cells in [("balanced", balanced), ({1: 3}, one), (dicts, each)]:
        model = ManyBoostClassifier(class_weight=class_weight, **COMMON).fit(X, partial)
        by_hand = ManyBoostClassifier(**COMMON).fit(X, partial, cells)
        np.testing.assert_allclose(
            model.decision_function(X), by_hand.decision_function(X), rtol=1e-4, atol=1e-5
        )
    model = ManyBoostClassifier(class_weight="balanced", **COMMON).fit(X, partial)
    np.testing.assert_allclose(model.baseline_, 0, atol=1e-6)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rare_and_constant_labels_train(strategy):
    X, Y = discrete_data()
    labels = np.zeros(Y.shape, int)
    labels[:, 0] = Y[:, 0] > 0
    labels[7, 1] = 1
    labels[:, 3] = 1
    for class_weight in ("balanced", None):
        settings = COMMON | {"strategy": strategy, "class_weight": class_weight}
        settings |= {"max_iter": 40, "min_samples_leaf": 1}
        proba = ManyBoostClassifier(**settings).fit(X, labels).predict_proba(X)
        assert np.isfinite(proba).all()
        assert proba[:, 2].max() < 0.01
        assert proba[:, 3].min() > 0.99
        if class_weight == "balanced" and strategy in ("independent", "multioutput"):
            assert proba[7, 1] > 0.5  # one row that outweighs all others


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_balanced_classes_are_found_more_often(strategy):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 4))
    labels = (X[:, [0, 1, 2]] + rng.normal(size=(1200, 3)) > [2, 2.5, 3]).astype(int)
    settings = {"strategy": strategy, "max_iter": 20, "random_state": 0}
    recall = []
    for class_weight in (None, "balanced"):
        model = ManyBoostClassifier(class_weight=class_weight, **settings)
        model.fit(X[:600], labels[:600])
        found = model.predict(X[600:]) * labels[600:]
        recall.append((found.sum(axis=0) / labels[600:].sum(axis=0)).mean())
        assert np.isfinite(model.predict_proba(X)).all()
    assert recall[1] > recall[0] + 0.1


def test_class_weights_that_do_not_fit():
    X, Y = discrete_data(n=60)
    labels = (Y > 0).astype(int)
    classes = np.array(["a", "b", "c"])[np.arange(60) % 3]

    def fit(class_weight, y):
        return lambda: ManyBoostClassifier(class_weight=class_weight, **COMMON).fit(X, y)

    for class_weight, y, words in [
        (
            {"d": 1},
            classes,
            "class_weight has the class 'd', which y does not have; the classes are 'a', 'b', 'c'.",
        ),
        (
            {"a": -1},
            classes,
            (
                "class_weight gives the class 'a' the weight -1; it must be a number of at least "
                "zero, within the range of single precision."
            ),
        ),
        (
            [{0: 1}],
            classes,
            (
                "class_weight is a list of 1 dicts, one for each label, but y has one class per "
                "row; pass one dict."
            ),
        ),
        (
            [{0: 1}],
            labels,
            (
                "class_weight has 1 dicts, but y has 4 labels; pass one dict for each label, or "
                "one for all."
            ),
        ),
        (
            [{0: 1}, {1: 1}, {2: 1}, {}],
            labels,
            "class_weight[2] has the class 2, which y does not have; the classes are 0, 1.",
        ),
        (
            [{0: 1}, None, {}, {}],
            labels,
            "class_weight[1] is None; it must be a dict of weights such as {0: 1, 1: 5}.",
        ),
        (
            {1: 0},
            np.c_[np.ones(60, int), labels[:, 1:]],
            (
                "Output 0 of y has no observed value of positive weight; leave the output out, or "
                "give it a value in at least one row."
            ),
        ),
        (
            {"a": 0, "b": 0, "c": 0},
            classes,
            (
                "class_weight is zero for all classes of these rows; give one of them a positive "
                "weight."
            ),
        ),
    ]:
        sentence = refusal(fit(class_weight, y))
        assert sentence == words


# Scores -------------------------------------------------------------------------------------------


def test_the_score_of_a_regressor_is_a_mean_over_observed_cells():
    from sklearn.metrics import d2_pinball_score, r2_score

    X, Y = discrete_data()
    weights = cell_weights(Y.shape)
    holes = np.where(np.random.default_rng(2).random(Y.shape) < 0.3, np.nan, Y)
    model = ManyBoostRegressor(**COMMON).fit(X, Y)
    quantiles = ManyBoostRegressor("quantile", quantile=[0.2, 0.8], **COMMON).fit(X, Y)
    for targets, weight in [(holes, None), (Y, weights), (holes, weights), (holes, weights[:, 0])]:
        expected, expected_quantiles = [], []
        for j in range(Y.shape[1]):
            w = np.ones(len(Y)) if weight is None else weight if weight.ndim == 1 else weight[:, j]
            there = ~np.isnan(targets[:, j]) & (w > 0)
            known, w = targets[there, j], w[there]
            expected.append(r2_score(known, model.predict(X)[there, j], sample_weight=w))
            for k, level in enumerate([0.2, 0.8]):
                predicted = quantiles.predict(X)[there, j, k]
                expected_quantiles.append(
                    d2_pinball_score(known, predicted, sample_weight=w, alpha=level)
                )
        assert model.score(X, targets, weight) == pytest.approx(np.mean(expected), rel=1e-12)
        score = quantiles.score(X, targets, weight)
        assert score == pytest.approx(np.mean(expected_quantiles), rel=1e-12)
    assert model.score(X, Y) == r2_score(Y, model.predict(X))
    assert refusal(lambda: model.score(X, Y[:, :3])) == (
        "y has 3 outputs, but the model predicts 4; pass targets of the outputs of fit."
    )
    single = ManyBoostRegressor(**COMMON).fit(X, Y[:, 0])
    there = ~np.isnan(holes[:, 0])
    assert single.score(X, holes[:, 0]) == r2_score(Y[there, 0], single.predict(X)[there])


def test_the_score_of_labels_counts_rows_by_their_observed_ones():
    X, Y = discrete_data()
    labels = (Y > 1).astype(float)
    model = ManyBoostClassifier(**COMMON).fit(X, labels)
    right = model.predict(X) == labels
    holes = np.random.default_rng(3).random(Y.shape) < 0.3
    holes[5] = True
    there = ~holes.all(axis=1)
    expected = (right | holes).all(axis=1)[there]
    partial = np.where(holes, np.nan, labels)
    assert model.score(X, partial) == expected.mean()
    weight = cell_weights(len(X))
    assert model.score(X, partial, weight) == np.average(expected, weights=weight[there])
    assert model.score(X, sparse.csr_array(labels)) == right.all(axis=1).mean()
    assert refusal(lambda: model.score(X[5:6], partial[5:6])) == (
        "y has no observed label in rows of positive weight; pass some."
    )


# Sparse labels ------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil"])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float32])
def test_sparse_labels_are_labels(layout, dtype):
    X, Y = discrete_data()
    labels = (Y > 1).astype(dtype)
    stored = sparse.csr_array(labels).asformat(layout)
    before = stored.toarray()
    settings = COMMON | {"early_stopping": True}
    expected = ManyBoostClassifier(**settings).fit(X, labels, X_val=X[:50], Y_val=labels[:50])
    tail = sparse.csr_matrix(labels[:50]).asformat(layout)
    model = ManyBoostClassifier(**settings).fit(X, stored, X_val=X[:50], Y_val=tail)
    assert_same(model, expected)
    np.testing.assert_array_equal(model.validation_score_, expected.validation_score_)
    np.testing.assert_array_equal(stored.toarray(), before)
    assert model.score(X, sparse.csr_matrix(labels)) == expected.score(X, labels.astype(int))


def test_sparse_labels_with_explicit_zeros_and_missing_ones():
    X, Y = discrete_data()
    labels = (Y > 1).astype(float)
    stored = sparse.csr_array(labels)
    stored.data[::3] = 0
    assert_same(
        ManyBoostClassifier(**COMMON).fit(X, stored),
        ManyBoostClassifier(**COMMON).fit(X, stored.toarray()),
    )
    stored.data[1::3] = np.nan
    assert_same(
        ManyBoostClassifier(**COMMON).fit(X, stored),
        ManyBoostClassifier(**COMMON).fit(X, stored.toarray()),
    )


MEMORY = """
import re, sys
from pathlib import Path
import numpy as np
from scipy import sparse
from manyboost import ManyBoostClassifier

def resident(field):
    return 1024 * int(re.search(field + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

n, d = 12_000, 1500
rng = np.random.default_rng(0)
X = rng.random((n, 4), dtype=np.float32)
Y = sparse.random(n, d, 0.001, format="csr", random_state=0)
Y.data[:] = 1
model = ManyBoostClassifier(max_iter=2, random_state=0, n_jobs=1, **eval(sys.argv[1]))
model.fit(X[:50], Y[:50, :5])
before = resident("VmRSS")
model.fit(X, Y)
print((resident("VmHWM") - before) / (4 * n * d))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to see the peak")
@pytest.mark.parametrize("strategy", ["project", "relabel"])
@pytest.mark.parametrize("early_stopping", ["auto", "per_output"])
def test_sparse_labels_take_two_arrays_of_cells_and_a_byte_for_each(strategy, early_stopping):
    options = repr({"strategy": strategy, "early_stopping": early_stopping})
    command = [sys.executable, "-c", MEMORY, options]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    # Raw predictions, residuals, labels; and what does not grow with the cells.
    assert float(run.stdout) < 2.25 + 0.25


def test_sparse_labels_that_do_not_fit():
    X, Y = discrete_data(n=60)
    labels = sparse.csr_array((Y > 1).astype(int))
    two = labels.copy()
    two.data[7] = 2
    place = np.argwhere(two.toarray() == 2)[0]
    several = (
        "several outputs must be an indicator of 0 and 1, one column per label, or a list of sets "
        "of labels."
    )
    twice = sparse.coo_array(([1, 1], ([4, 4], [2, 2])), shape=(60, 4))
    for y, words in [
        (two, f"y has the value 2 in row {place[0]}, output {place[1]}; {several}"),
        (twice, f"y has the value 2 in row 4, output 2; {several}"),
        (labels[:9], "X has 60 rows and y has 9; they must have the same number."),
        (labels[:, :0], "y has no outputs (0 columns); it needs at least one."),
    ]:
        sentence = refusal(lambda y=y: ManyBoostClassifier(**COMMON).fit(X, y))
        assert sentence.endswith(words)
    assert refusal(lambda: ManyBoostRegressor(**COMMON).fit(X, labels)) == (
        "y is a sparse matrix, whose empty cells could be zeros or missing values; pass a dense "
        "array, with y.toarray() if they are zeros."
    )


# Refusals -----------------------------------------------------------------------------------------


def test_an_output_without_an_observed_cell_is_named():
    X, Y = discrete_data(n=60)
    words = (
        "Output 2 of y has no observed value of positive weight; leave the output out, or give it "
        "a value in at least one row."
    )
    nothing = np.where(np.arange(4) == 2, np.nan, Y)
    zero = np.where(np.arange(4) == 2, 0, cell_weights(Y.shape))
    labels = np.where(np.isnan(nothing), np.nan, Y > 0)
    for call in [
        lambda: ManyBoostRegressor(**COMMON).fit(X, nothing),
        lambda: ManyBoostRegressor(**COMMON).fit(X, Y, zero),
        lambda: ManyBoostClassifier(**COMMON).fit(X, labels),
    ]:
        assert refusal(call) == words
    everything = (
        "y has no observed value of positive weight in any of its 60 rows; at least one cell "
    )
    assert refusal(
        lambda: ManyBoostRegressor(**COMMON).fit(X, np.full(Y.shape, np.nan))
    ).startswith(everything)


def test_sparse_weights_are_refused():
    X, Y = discrete_data()
    assert refusal(lambda: ManyBoostRegressor().fit(X, Y, sparse.csr_array(np.abs(Y)))) == (
        "sample_weight is a sparse matrix, whose empty cells could be zeros or ones; pass a dense "
        "array, with sample_weight.toarray() if they are zeros."
    )


def test_weights_of_cells_that_do_not_fit():
    X, Y = discrete_data(n=60)
    W = np.ones(Y.shape)
    classes = np.arange(60) % 4

    def negative(value):
        changed = W.copy()
        changed[7, 2] = value
        return changed

    cells = "it must have one weight for each of the 60 rows"
    for estimator, y, weight, words in [
        (
            ManyBoostRegressor,
            Y,
            W[:, :3],
            f"(60, 3); {cells}, or one for each of the 60 × 4 cells.",
        ),
        (
            ManyBoostRegressor,
            Y,
            negative(-1),
            "is negative (-1) in row 7, output 2; weights must be ",
        ),
        (ManyBoostRegressor, Y, negative(np.nan), "is missing (NaN) in row 7, output 2; weights "),
        (ManyBoostRegressor, Y, negative(1e300), "spans 1 to 1e+300, beyond the range of single "),
        (ManyBoostRegressor, Y, 0 * W, "is zero; at least one row needs a positive weight."),
        (ManyBoostClassifier, classes, W, f"(60, 4); {cells}."),
    ]:
        sentence = refusal(lambda e=estimator, y=y, w=weight: e(**COMMON).fit(X, y, w))
        assert "sample_weight" in sentence
        assert words in sentence


# Early stopping -----------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_validation_scores_are_means_over_observed_cells(strategy):
    X, Y = discrete_data()
    X_val, Y_val = discrete_data(seed=9, n=80)
    W = cell_weights(Y_val.shape)
    W[:, 3] = 0
    W[:10] = 0
    settings = COMMON | {"strategy": strategy, "early_stopping": True, "max_iter": 20}
    model = ManyBoostRegressor(**settings)
    model.fit(X, Y, X_val=X_val, Y_val=np.where(W > 0, Y_val, np.nan), sample_weight_val=W + 1)
    stages = [np.tile(model.baseline_, (len(X_val), 1)), *model.staged_predict(X_val)]
    weight = np.where(W > 0, W + 1, 0)
    expected = [-np.average((Y_val - f) ** 2 / 2, weights=weight) for f in stages]
    np.testing.assert_allclose(model.validation_score_, expected, rtol=1e-5)
    assert model.best_iter_ == np.argmax(model.validation_score_)


def test_rows_set_apart_leave_every_output_a_cell():
    X, Y = discrete_data()
    partial = Y.copy()
    partial[:, 1] = np.nan
    for row in range(0, 160, 16):
        partial[row, 1] = 1.0
        model = ManyBoostRegressor(
            **(COMMON | {"early_stopping": True, "validation_fraction": 0.5, "random_state": row})
        ).fit(X, partial)
        assert model.baseline_[1] == 1.0
        partial[row, 1] = np.nan


def test_no_row_can_be_set_apart():
    X, Y = discrete_data(n=4)
    only = np.where(np.eye(4) == 1, Y, np.nan)
    model = ManyBoostRegressor(**(COMMON | {"early_stopping": True}))
    assert refusal(lambda: model.fit(X, only)) == (
        "Each row that could be set apart for validation holds the only observed value of some "
        "output; pass X_val and Y_val, or use early_stopping=False."
    )


def test_a_warm_start_goes_on_with_missing_cells():
    X, Y = discrete_data()
    W = cell_weights(Y.shape)
    for strategy in STRATEGIES:
        settings = COMMON | {"strategy": strategy, "warm_start": True}
        model = ManyBoostRegressor(**(settings | {"max_iter": 3})).fit(X, Y, W)
        model.set_params(max_iter=6).fit(X, Y, W)
        assert_same(model, ManyBoostRegressor(**settings).fit(X, Y, W))


# Thresholds ---------------------------------------------------------------------------------------


def test_thresholds_are_tuned_on_observed_labels_as_they_are():
    X, Y = discrete_data(n=300)
    labels = (Y > [0, -1, -2, 1]).astype(float)
    hidden = cell_weights(Y.shape) == 0
    hidden[200:, 3] = True  # nothing to tune on
    partial = np.where(hidden, np.nan, labels)
    for class_weight in (None, {1: 5.0}, "balanced"):
        model = ManyBoostClassifier(
            thresholds="tuned", class_weight=class_weight, **(COMMON | {"early_stopping": True})
        ).fit(X[:200], partial[:200], X_val=X[200:], Y_val=partial[200:])
        proba = model.predict_proba(X[200:])
        observed = np.where(hidden, 0.0, 1.0)[200:]
        np.testing.assert_array_equal(
            model.thresholds_, tune_thresholds(proba, labels[200:], observed)
        )
        assert model.thresholds_[3] == 0.5


# Constraints and categories -----------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_constraints_and_categories_hold_with_missing_cells(strategy):
    rng = np.random.default_rng(11)
    X = np.column_stack([rng.random((300, 2)), rng.integers(0, 8, 300)])
    Y = np.column_stack([3 * X[:, 0] + (X[:, 2] % 3) * s + np.sin(9 * X[:, 1]) for s in (1, 2, -1)])
    W = cell_weights(Y.shape)
    partial = np.where(W > 0, Y + 0.3 * rng.normal(size=Y.shape), np.nan)
    settings = COMMON | {"strategy": strategy, "monotonic_cst": [1, 0, 0], "max_iter": 30}
    settings["categorical_features"] = [2]
    for step in STEPS:
        model = ManyBoostRegressor(step=step, **settings).fit(X, partial)
        by_weight = ManyBoostRegressor(step=step, **settings).fit(
            X, np.nan_to_num(partial), (W > 0).astype(float)
        )
        assert_same(model, by_weight)
        grid = np.repeat(X[:20], 30, axis=0)
        grid[:, 0] = np.tile(np.linspace(0, 1, 30), 20)
        rises = np.diff(model.predict(grid).reshape(20, 30, 3), axis=1)
        assert rises.min() >= 0
        assert rises.max() > 0
        assert model.score(X, Y) > 0.3
