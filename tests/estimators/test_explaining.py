"""Shapley values: those of the definition, for every kind of tree, feature and output."""

import itertools
import math
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.linear_model import Ridge

from manyboost import ManyBoostClassifier, ManyBoostRegressor, memory
from refusals import refusal

RNG = np.random.default_rng(0)
N, P = 200, 5
X = RNG.normal(size=(N, P))
X[RNG.random(X.shape) < 0.15] = np.nan
Y = np.nan_to_num(X) @ RNG.normal(size=(P, 4)) + np.nan_to_num(X[:, :1] * X[:, 1:2])
LABELS = (Y > 0.5).astype(int)
CLASSES = np.argmax(Y, axis=1)
STRATEGIES = ["independent", "multioutput", "project", "relabel"]
# Values of several outputs are summed in single precision, a few products at a time.
ROUNDING = 1e-6


def regressor(**parameters):
    return ManyBoostRegressor(**{"max_iter": 6, "random_state": 0, **parameters})


def classifier(**parameters):
    return ManyBoostClassifier(**{"max_iter": 6, "random_state": 0, **parameters})


# ------------------------------------------------------------------ the slow, obvious twin


def trees_of(model):
    """Each tree's nodes, and the values (n_leaves, n_outputs) that its leaves add."""
    ensemble, d = model._progress.model.trees, model.n_outputs_
    steps = ensemble.steps()
    for t in range(len(ensemble.tree_sizes())):
        values = ensemble.leaf_values(t).astype(float)
        if len(steps):
            values = values * steps[t]
        elif values.shape[1] < d:
            alone = np.zeros((len(values), d))
            alone[:, t % d] = values[:, 0]
            values = alone
        yield ensemble.tree(t), values


def goes_left(nodes, k, value):
    _, threshold, _, missing_left, _, _, left_categories = nodes
    if left_categories[k] is not None:
        is_category = value in range(256)
        return value in left_categories[k] if is_category else missing_left[k]
    return missing_left[k] if np.isnan(value) else np.float32(value) <= threshold[k]


def value_knowing(nodes, values, row, known, k=0):
    """What a tree adds to each output if it knows only some features of a row."""
    feature, _, left, _, cover, _, _ = nodes
    if left[k] == 0:
        return values[feature[k]]
    sides = [left[k], left[k] + 1]
    below = [value_knowing(nodes, values, row, known, side) for side in sides]
    if feature[k] in known:
        return below[0] if goes_left(nodes, k, row[feature[k]]) else below[1]
    weights = [float(cover[side]) for side in sides]
    return (weights[0] * below[0] + weights[1] * below[1]) / sum(weights)


def worth_of_sets(nodes, values, row):
    """What a tree adds to each output, for every set of features that it may know."""
    p = len(row)
    return {
        known: value_knowing(nodes, values, row, known)
        for size in range(p + 1)
        for known in itertools.combinations(range(p), size)
    }


def shapley_values(model, row):
    """The definition: the mean gain of a feature over all orders in which features are added."""
    p, d = len(row), model.n_outputs_
    result = np.zeros((p, d))
    for nodes, values in trees_of(model):
        worth = worth_of_sets(nodes, values, row)
        for known, before in worth.items():
            for k in set(range(p)) - set(known):
                after = worth[tuple(sorted((*known, k)))]
                orders = math.factorial(len(known)) * math.factorial(p - len(known) - 1)
                result[k] += orders / math.factorial(p) * (after - before)
    return result


def shapley_interactions(model, row):
    """The definition: half of what two features gain together, over all sets of the others."""
    p, d = len(row), model.n_outputs_
    result = np.zeros((p, p, d))
    for nodes, values in trees_of(model):
        worth = worth_of_sets(nodes, values, row)
        for known, neither in worth.items():
            weight = math.factorial(len(known)) * math.factorial(max(0, p - len(known) - 2))
            for j, k in itertools.permutations(set(range(p)) - set(known), 2):
                first, second, both = (
                    worth[tuple(sorted((*known, *more)))] for more in ((j,), (k,), (j, k))
                )
                gain = both - first - second + neither
                result[j, k] += weight / (2 * math.factorial(p - 1)) * gain
    alone = shapley_values(model, row) - result.sum(axis=1)
    result[np.arange(p), np.arange(p)] = alone
    return result


def encoded(model, X):
    """Rows as trees see them."""
    return np.asarray(model._checked_X(X))


def check(model, X, raw, rows=5):
    """Shapley values of a few rows are those of the definition, and all rows add up."""
    values = model.shap_values(X)
    n, d = X.shape[0], model.n_outputs_
    expected = np.array([shapley_values(model, row) for row in encoded(model, X[:rows])])
    np.testing.assert_allclose(values.reshape(n, -1, d)[:rows], expected, rtol=0, atol=ROUNDING)
    assert np.abs(expected).max() > 0.01
    total = values.sum(axis=1) + model.expected_value_
    scale = max(1.0, np.abs(raw).max())
    np.testing.assert_allclose(total, raw, rtol=0, atol=1e-6 * scale)


# ------------------------------------------------------------------ what must hold


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_values_are_those_of_the_definition_and_add_up(strategy):
    model = regressor(strategy=strategy).fit(X, Y)
    assert model.shap_values(X).shape == (N, P, 4)
    check(model, X, model.predict(X))


WEIGHT = RNG.random(Y.shape) + 0.1
RARE = (Y[:, 0] > np.quantile(Y[:, 0], 0.93)).astype(int)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("weight", [None, WEIGHT[:, 0], WEIGHT], ids=["none", "rows", "cells"])
def test_the_expected_value_is_the_mean_of_the_training_rows(strategy, weight):
    """Rows weigh what their cells weigh, those of shared trees in the mean over the outputs."""
    holes = np.where(RNG.random(Y.shape) < 0.2, np.nan, Y)
    for targets in (Y, holes):
        model = regressor(strategy=strategy).fit(X, targets, weight)
        cells = np.ones(Y.shape) if weight is None else np.broadcast_to(weight.T, Y.T.shape).T
        cells = np.where(np.isnan(targets), 0, cells)
        if strategy != "independent":
            cells = np.repeat(cells.mean(axis=1, keepdims=True), 4, axis=1)
        mean = (cells * model.predict(X)).sum(axis=0) / cells.sum(axis=0)
        np.testing.assert_allclose(model.expected_value_, mean, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("weight", [None, WEIGHT[:, 0]], ids=["none", "rows"])
def test_trees_of_a_rare_label_have_the_covers_of_their_rows(weight):
    model = classifier().fit(X, RARE, weight)
    mean = np.average(model.decision_function(X), weights=weight)
    assert model.expected_value_ == pytest.approx(mean, rel=1e-5)
    root = model.trees_to_dataframe()["cover"][0]
    assert root == pytest.approx(N if weight is None else weight.sum())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_output_has_one_value_for_each_feature(strategy):
    model = regressor(strategy=strategy).fit(X, Y[:, 0])
    assert model.shap_values(X).shape == (N, P)
    assert isinstance(model.expected_value_, float)
    check(model, X, model.predict(X))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("y", [LABELS, CLASSES, LABELS[:, 0]], ids=["labels", "classes", "binary"])
def test_classifiers_are_explained_in_raw_predictions(strategy, y):
    model = classifier(strategy=strategy).fit(X, y)
    check(model, X, model.decision_function(X), rows=2)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_categories_and_weights(strategy):
    codes = RNG.integers(0, 6, N).astype(float)
    X_mixed = np.column_stack([X[:, :3], codes, RNG.integers(0, 3, N)])
    X_mixed[::17, 3] = np.nan
    Y_mixed = Y + np.isin(codes, (1, 4))[:, None] * [3, -2, 1, 0]
    model = regressor(strategy=strategy, categorical_features=[3, 4])
    model.fit(X_mixed, Y_mixed, RNG.random(N) + 0.5)
    assert any(set(nodes[0][nodes[2] > 0]) & {3, 4} for nodes, _ in trees_of(model))
    X_mixed[:5, 3] = [0, 4, np.nan, 5, 1]
    check(model, X_mixed, model.predict(X_mixed))


def test_deep_trees_and_features_that_return_on_a_path():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 9))
    y = np.column_stack([np.sin(3 * X[:, 0]) + X[:, 1:].prod(axis=1), X.sum(axis=1)])
    model = regressor(max_iter=1, max_leaf_nodes=200, min_samples_leaf=1).fit(X, y)
    check(model, X, model.predict(X), rows=2)


def test_a_tree_without_splits_explains_nothing():
    model = regressor(max_iter=3).fit(X, np.ones((N, 2)))
    assert not model.shap_values(X).any()
    np.testing.assert_array_equal(model.expected_value_, [1, 1])


def test_no_rounds_leave_the_baseline():
    # The validation rows say the opposite of the training rows: no round is kept.
    model = regressor(max_iter=5).fit(X, Y, X_val=X, Y_val=2 * Y.mean(axis=0) - Y)
    assert model.n_iter_ == 0
    assert not model.shap_values(X).any()
    np.testing.assert_array_equal(model.expected_value_, model.baseline_)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sparse_rows_have_the_values_of_dense_ones(strategy):
    dense = np.where(RNG.random((N, 30)) < 0.1, RNG.normal(size=(N, 30)), 0)
    model = regressor(strategy=strategy, min_samples_leaf=1).fit(dense, Y)
    expected = model.shap_values(dense)
    assert np.abs(expected).max() > 0
    np.testing.assert_array_equal(model.shap_values(sparse.csr_matrix(dense)), expected)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_some_outputs_have_the_values_they_have_among_all(strategy):
    model = regressor(strategy=strategy).fit(X, Y)
    some = model.shap_values(X, outputs=[3, 0])
    np.testing.assert_allclose(some, model.shap_values(X)[..., [3, 0]], rtol=0, atol=ROUNDING)


def test_outputs_are_asked_for_by_name():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(Y, columns=["red", "green", "blue", "grey"])
    model = regressor().fit(X, frame)
    some = model.shap_values(X, outputs=["blue"])
    np.testing.assert_allclose(some, model.shap_values(X)[..., [2]], rtol=0, atol=ROUNDING)
    with pytest.raises(ValueError, match="did you mean 'blue'"):
        model.shap_values(X, outputs=["blu"])


def test_quantiles_have_an_axis_of_their_own():
    levels = [0.2, 0.5, 0.8]
    for y, shape in [(Y[:, 0], (3,)), (Y, (4, 3))]:
        model = regressor(loss="quantile", quantile=levels).fit(X, y)
        values = model.shap_values(X)
        assert values.shape == (N, P, *shape)
        assert model.expected_value_.shape == shape
        total = np.sort(values.sum(axis=1) + model.expected_value_, axis=-1)
        np.testing.assert_allclose(total, model.predict(X), atol=1e-5)
    some = model.shap_values(X, outputs=[2])
    np.testing.assert_allclose(some, values[:, :, [2]], rtol=0, atol=ROUNDING)


def test_an_offset_is_no_matter_of_features():
    offset = RNG.normal(size=(N, 4))
    model = regressor().fit(X, Y, offset=offset)
    total = model.shap_values(X).sum(axis=1) + model.expected_value_ + offset
    np.testing.assert_allclose(total, model.predict(X, offset=offset), rtol=0, atol=1e-5)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_threads_and_neighbouring_rows_change_no_bit(strategy):
    X = np.tile(RNG.normal(size=(N, P)), (4, 1))
    model = regressor(strategy=strategy, n_jobs=1).fit(X[:N], Y)
    alone = model.shap_values(X)
    model.set_params(n_jobs=3)
    np.testing.assert_array_equal(model.shap_values(X), alone)
    np.testing.assert_array_equal(model.shap_values(X[7:9]), alone[7:9])


DIGESTS = """
import hashlib, numpy as np
from manyboost import ManyBoostRegressor
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(100, 6)), rng.normal(size=(100, 19))
digests = []
for strategy in ("relabel", "project", "independent"):
    model = ManyBoostRegressor(strategy=strategy, max_iter=5, random_state=0).fit(X, Y)
    digests.append(hashlib.sha256(model.shap_values(X).tobytes()).hexdigest())
"""


@pytest.mark.parametrize("level", ["portable", "avx2"])
def test_all_instruction_sets_give_the_same_bits(level):
    here = {}
    exec(DIGESTS, here)
    elsewhere = subprocess.run(
        [sys.executable, "-c", DIGESTS + "print(*digests)"],
        env={**os.environ, "MANYBOOST_SIMD": level},
        capture_output=True,
        text=True,
        check=True,
    )
    assert elsewhere.stdout.split() == here["digests"]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that send signals")
def test_a_signal_ends_the_computation():
    class TooLong(Exception):
        pass

    def stop(*_):
        raise TooLong

    model = regressor(max_iter=100).fit(X, Y)
    many = np.tile(X, (500, 1))
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.15)
    try:
        with pytest.raises(TooLong):
            model.shap_values(many)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_what_cannot_be_explained_is_refused():
    foreign = regressor(estimator=Ridge(), strategy="project").fit(np.nan_to_num(X), Y)
    assert "built-in trees" in refusal(lambda: foreign.shap_values(np.nan_to_num(X)))
    assert not hasattr(foreign, "expected_value_")
    single = regressor().fit(X, Y[:, 0])
    assert "one output" in refusal(lambda: single.shap_values(X, outputs=[0]))
    with pytest.raises(NotFittedError):
        regressor().shap_values(X)
    with pytest.raises(NotFittedError):
        _ = regressor().expected_value_


# ------------------------------------------------------------------ interactions


def check_interactions(model, X, rows=3):
    """Interactions of a few rows are those of the definition; those of all rows add up."""
    pairs = model.shap_interaction_values(X)
    n, p, d = *X.shape, model.n_outputs_
    whole = pairs.reshape(n, p, p, d)
    expected = np.array([shapley_interactions(model, row) for row in encoded(model, X[:rows])])
    np.testing.assert_allclose(whole[:rows], expected, rtol=0, atol=ROUNDING)
    assert np.abs(expected[:, 0, 1]).max() > 1e-3
    np.testing.assert_array_equal(whole, whole.swapaxes(1, 2))
    values = model.shap_values(X).reshape(n, p, d)
    np.testing.assert_allclose(whole.sum(axis=2), values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_interactions_are_those_of_the_definition_and_add_up(strategy):
    model = regressor(strategy=strategy).fit(X, Y)
    assert model.shap_interaction_values(X).shape == (N, P, P, 4)
    check_interactions(model, X)
    some = model.shap_interaction_values(X, outputs=[3, 0])
    every = model.shap_interaction_values(X)
    np.testing.assert_allclose(some, every[..., [3, 0]], rtol=0, atol=ROUNDING)
    single = regressor(strategy=strategy).fit(X, Y[:, 0])
    assert single.shap_interaction_values(X).shape == (N, P, P)
    check_interactions(single, X)


def test_interactions_of_deep_trees_categories_and_folds():
    codes = RNG.integers(0, 6, N).astype(float)
    mixed = np.column_stack([X[:, :2], codes, RNG.integers(0, 3, N)])
    y = Y + np.isin(codes, (1, 4))[:, None] * [3, -2, 1, 0]
    shape = {"max_leaf_nodes": 60, "min_samples_leaf": 1, "max_iter": 2}
    check_interactions(regressor(categorical_features=[2, 3], **shape).fit(mixed, y), mixed)
    folded = regressor(n_folds=2).fit(X, Y)
    pairs = folded.shap_interaction_values(X)
    np.testing.assert_allclose(pairs.sum(axis=2), folded.shap_values(X), rtol=0, atol=1e-12)


def test_features_that_only_add_do_not_interact():
    model = regressor(interaction_cst="no_interactions", max_iter=20).fit(X, Y)
    pairs = model.shap_interaction_values(X)
    assert not pairs[:, ~np.eye(P, dtype=bool)].any()


def test_interactions_take_all_kinds_of_rows_and_outputs():
    dense = np.where(RNG.random((N, 12)) < 0.2, RNG.normal(size=(N, 12)), 0)
    model = regressor(min_samples_leaf=1).fit(dense, Y)
    expected = model.shap_interaction_values(dense)
    found = model.shap_interaction_values(sparse.csr_matrix(dense))
    np.testing.assert_array_equal(found, expected)
    model.set_params(n_jobs=3)
    np.testing.assert_array_equal(model.shap_interaction_values(dense), expected)
    np.testing.assert_array_equal(model.shap_interaction_values(dense[7:9]), expected[7:9])
    quantiles = regressor(loss="quantile", quantile=[0.2, 0.8]).fit(X, Y)
    assert quantiles.shap_interaction_values(X[:3]).shape == (3, P, P, 4, 2)
    assert regressor().fit(X, np.ones(N)).shap_interaction_values(X[:3]).shape == (3, P, P)


def test_explanations_that_do_not_fit_into_memory_are_refused(monkeypatch):
    model = regressor().fit(X, Y)
    monkeypatch.setattr(memory, "available", lambda: 10**8)
    many = np.broadcast_to(X[:1], (1_000_000, P))
    sentence = refusal(lambda: model.shap_values(many), error=MemoryError)
    assert "Explaining 1,000,000 rows by 5 features for 4 outputs needs" in sentence
    sentence = refusal(lambda: model.training_weights(many, X, Y), error=MemoryError)
    assert "Tracing 1,000,000 rows to 200 training rows needs" in sentence


def test_interactions_that_do_not_fit_into_memory_are_refused(monkeypatch):
    model = regressor().fit(X, Y)
    monkeypatch.setattr(memory, "available", lambda: 10**9)
    many = np.broadcast_to(X[:1], (2_000_000, P))
    sentence = refusal(lambda: model.shap_interaction_values(many), error=MemoryError)
    assert "Explaining 2,000,000 rows by pairs of 5 features for 4 outputs needs" in sentence
    assert "ask for fewer rows at a time" in sentence


# ------------------------------------------------------------------ beside other packages


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_shap_package_finds_the_same_interactions(strategy):
    pytest.importorskip("shap", reason="the package shap is not installed")
    from benchmarks.shap import explainer

    model = regressor(strategy=strategy).fit(X, Y)
    theirs = explainer(model).shap_interaction_values(X[:20].astype(np.float32))
    ours = model.shap_interaction_values(X[:20])
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_shap_package_finds_the_same_values(strategy):
    pytest.importorskip("shap", reason="the package shap is not installed")
    from benchmarks.shap import explainer

    model = regressor(strategy=strategy).fit(X, Y)
    theirs = explainer(model).shap_values(X.astype(np.float32), check_additivity=False)
    np.testing.assert_allclose(model.shap_values(X), theirs, rtol=0, atol=ROUNDING)


def test_an_explanation_for_the_plots_of_shap():
    shap = pytest.importorskip("shap", reason="the package shap is not installed")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    model = regressor().fit(X, Y)
    explanation = model.shap_explanation(X, outputs=[2, 0])
    assert explanation.shape == (N, P, 2)
    assert list(explanation.output_names) == ["y2", "y0"]
    np.testing.assert_array_equal(explanation.values, model.shap_values(X, outputs=[2, 0]))
    total = explanation.values.sum(axis=1) + explanation.base_values
    np.testing.assert_allclose(total, model.predict(X, outputs=[2, 0]), rtol=0, atol=1e-5)
    axes = shap.plots.bar(explanation[..., 0], show=False)
    strongest = np.abs(explanation.values[..., 0]).mean(axis=0).max()
    assert max(bar.get_width() for bar in axes.patches) == pytest.approx(strongest)
    pyplot.close("all")


@pytest.mark.parametrize(
    ("loss", "y", "names"),
    [
        ({}, Y[:, 0], None),
        ({"loss": "quantile", "quantile": [0.25, 0.75]}, Y[:, 0], [0.25, 0.75]),
        ({"loss": "quantile", "quantile": [0.25, 0.75]}, Y[:, :2], [0.25, 0.75] * 2),
    ],
    ids=["one", "levels", "outputs and levels"],
)
def test_explanations_have_one_axis_for_outputs_at_most(loss, y, names):
    pytest.importorskip("shap", reason="the package shap is not installed")
    model = regressor(**loss).fit(X, y)
    explanation = model.shap_explanation(X)
    assert explanation.shape == ((N, P) if names is None else (N, P, len(names)))
    assert explanation.base_values.shape == explanation.values[:, 0].shape
    if names is not None:
        levels = [f"{level:g}-quantile" for level in names]
        found = [name.split(", ")[1] for name in explanation.output_names]
        assert found == levels


def test_without_the_shap_package_the_extra_is_named(monkeypatch):
    model = regressor().fit(X, Y)
    monkeypatch.setitem(sys.modules, "shap", None)
    assert "manyboost[shap]" in refusal(lambda: model.shap_explanation(X), error=ImportError)


@pytest.mark.parametrize("y", [Y, LABELS, CLASSES], ids=["regression", "labels", "classes"])
def test_permutation_importance_knows_the_features_that_matter(y):
    X_more = np.column_stack([X, RNG.normal(size=(N, 2))])
    model = (regressor if y is Y else classifier)(max_iter=20).fit(X_more, y)
    found = permutation_importance(model, X_more, y, n_repeats=3, random_state=0)
    assert found.importances_mean.shape == (7,)
    assert found.importances_mean[:5].sum() > 5 * abs(found.importances_mean[5:]).sum()


@pytest.mark.parametrize("y", [Y, Y[:, 0]], ids=["outputs", "one output"])
@pytest.mark.parametrize("levels", [[0.5], [0.2, 0.8]])
def test_a_list_of_quantiles_adds_an_axis_even_if_it_has_one(y, levels):
    model = regressor(loss="quantile", quantile=levels).fit(X, y)
    shape = model.predict(X[:3]).shape[1:]
    assert shape == (*y.shape[1:], len(levels))
    assert model.shap_values(X[:3]).shape == (3, P, *shape)
    assert model.shap_interaction_values(X[:3]).shape == (3, P, P, *shape)
    assert model.expected_value_.shape == shape
    assert model._explained_names(None)[0] == f"y0, {levels[0]}-quantile"


def test_quantiles_keep_the_levels_of_fit_in_their_names():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    model = ManyBoostRegressor(loss="quantile", quantile=[0.1, 0.9], max_iter=2).fit(X, y)
    names = model._explained_names(None)
    assert names == ["y0, 0.1-quantile", "y0, 0.9-quantile"]
    assert model.set_params(quantile=[0.3, 0.5, 0.7])._explained_names(None) == names
    assert model.set_params(quantile=0.5)._explained_names(None) == names
