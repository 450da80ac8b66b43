"""Exported models predict what the estimators do, run by onnxruntime and treelite."""

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import polars as pl
import pytest
import skl2onnx
import treelite
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor
from manyboost.datasets import load_dataset
from manyboost.export import register_skl2onnx

STRATEGIES = ["independent", "multioutput", "project", "relabel"]


def session(proto):
    onnx.checker.check_model(proto, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def run(model, X, **inputs):
    """Results of the exported model by name."""
    runtime = session(model.to_onnx())
    inputs = {"X": np.asarray(X, np.float32), **inputs}
    names = [each.name for each in runtime.get_outputs()]
    results = dict(zip(names, runtime.run(None, inputs), strict=True))
    for each in runtime.get_outputs():
        assert [n for n in each.shape if n != "rows"] == list(results[each.name].shape[1:])
    return results


def run_treelite(model, X, **options):
    predictions = treelite.gtil.predict(model.to_treelite(**options), np.asarray(X, np.float32))
    n_rows, n_targets, n_classes = predictions.shape
    assert 1 in (n_targets, n_classes)
    return predictions.reshape(n_rows, -1)


def agree(found, expected):
    """Equal to 1e-5 of the scale of each output."""
    scale = np.maximum(np.abs(expected).max(axis=0), 1)
    assert found.shape == expected.shape
    assert found.dtype == np.float32
    assert (np.abs(found - expected) <= 1e-5 * scale).all()


def agree_on_labels(found, expected, raw):
    """Equal but where rounding decides."""
    sure = np.abs(raw).min(axis=-1) > 1e-4 if raw.ndim == 2 else np.abs(raw) > 1e-4
    assert sure.mean() > 0.9
    assert np.array_equal(found[sure], expected[sure])


def refusal(function):
    """The sentence with which a call is refused."""
    with pytest.raises(ValueError, match=r"^[A-Zt][^\n]*[;,] [^\n]*\.$") as caught:
        function()
    return str(caught.value)


def problem(n_rows=500, n_outputs=7, seed=0, *, categories=True):
    """Features with missing values, the third of twelve categories; targets of low rank."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6))
    if categories:
        X[:, 2] = rng.integers(0, 40, n_rows)
    effect = rng.normal(size=40)
    hidden = np.column_stack([X[:, 0] * X[:, 1], np.sin(X[:, 3]), effect[X[:, 2].astype(int)]])
    Y = hidden @ rng.normal(size=(3, n_outputs)) + 0.1 * rng.normal(size=(n_rows, n_outputs))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, Y


def regressor(**params):
    return ManyBoostRegressor(**{"random_state": 0, "max_iter": 20, **params})


def classifier(**params):
    return ManyBoostClassifier(**{"random_state": 0, "max_iter": 20, **params})


# Regressors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("n_outputs", [1, 7])
def test_regressors_predict_the_same_with_missing_values_and_categories(strategy, n_outputs):
    X, Y = problem(n_outputs=n_outputs)
    model = regressor(strategy=strategy, categorical_features=[2]).fit(X, Y)
    # Rows unlike those of training: more missing, unknown categories.
    other, _ = problem(seed=1)
    other[:50, 2], other[50:100, 2] = 77, np.nan
    for rows in (X, other, np.full((3, 6), np.nan)):
        agree(run(model, rows)["predictions"], model.predict(rows))
        agree(run_treelite(model, rows), model.predict(rows))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_dimensional_targets_give_one_dimensional_predictions(strategy):
    X, Y = problem()
    model = regressor(strategy=strategy).fit(X, Y[:, 0])
    agree(run(model, X)["predictions"], model.predict(X))
    agree(run_treelite(model, X)[:, 0], model.predict(X))


def test_a_split_by_categories_below_another_of_the_same_feature():
    rng = np.random.default_rng(0)
    X = np.repeat(np.arange(30.0), 10)[:, None]
    y = rng.normal(size=30)[X[:, 0].astype(int)]
    model = regressor(categorical_features=[0], min_samples_leaf=1, max_leaf_nodes=None).fit(X, y)
    assert model.split_counts_[0] > 100
    rows = np.append(np.arange(30.0), [77, np.nan])[:, None]
    agree(run(model, rows)["predictions"], model.predict(rows))
    agree(run_treelite(model, rows)[:, 0], model.predict(rows))


def test_categories_may_be_any_numbers_in_onnx():
    X, Y = problem()
    values = np.random.default_rng(3).permutation(np.linspace(-7.3, 90, 40))
    known = ~np.isnan(X[:, 2])
    X[known, 2] = values[X[known, 2].astype(int)]
    model = regressor(categorical_features=[2]).fit(X, Y)
    agree(run(model, X)["predictions"], model.predict(X))
    between = X.copy()
    between[:, 2] += 0.01
    agree(run(model, between)["predictions"], model.predict(between))
    assert "but treelite only knows integers from 0" in refusal(model.to_treelite)
    X[known, 2] = 1 + np.arange(known.sum()) % 40 * 1e-9
    model = regressor(categorical_features=[2]).fit(X, Y)
    assert "Column 2 has categories that are equal in single precision" in refusal(model.to_onnx)


def test_rows_on_a_cut_point_and_beside_it_go_the_same_way():
    # Midpoints of integers and their neighbours in single precision.
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (400, 3)).astype(float)
    X[:100, 1] = np.nan
    Y = rng.normal(size=(400, 3)) + X[:, :1]
    model = regressor(strategy="project", max_iter=30, min_samples_leaf=1).fit(X, Y)
    cuts = np.arange(0, 9, 0.5, dtype=np.float32)
    points = np.concatenate([np.nextafter(cuts, np.float32(s)) for s in (-99, 99)] + [cuts])
    rows = rng.choice(np.append(points, np.nan), (2000, 3)).astype(np.float32)
    expected = model.predict(rows)
    assert len(np.unique(expected[:, 0])) > 100
    agree(run(model, rows)["predictions"], expected)
    agree(run_treelite(model, rows), expected)


def test_only_missing_values_part_from_the_others():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 1)) < 0.5, np.nan, 1.0)
    Y = np.isnan(X) + 0.01 * rng.normal(size=(300, 2))
    for strategy in STRATEGIES:
        model = regressor(strategy=strategy).fit(X, Y)
        rows = np.array([[np.nan], [1], [-1e30], [1e30]])
        assert np.ptp(model.predict(rows), axis=0).min() > 0.5
        agree(run(model, rows)["predictions"], model.predict(rows))
        agree(run_treelite(model, rows), model.predict(rows))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_model_without_rounds_is_its_baseline(strategy):
    X, Y = problem()
    model = regressor(strategy=strategy, early_stopping=True)
    model.fit(X, Y, X_val=X, Y_val=2 * Y.mean(axis=0) - Y)
    assert model.n_iter_ == 0
    assert np.array_equal(model.predict(X), np.tile(model.baseline_, (len(X), 1)))
    agree(run(model, X)["predictions"], model.predict(X))
    agree(run_treelite(model, X), model.predict(X))


def test_a_tree_that_is_one_leaf_is_exported():
    X, _ = problem()
    Y = np.ones((len(X), 2))
    for strategy in STRATEGIES:
        model = regressor(strategy=strategy, max_iter=3).fit(X, Y)
        agree(run(model, X)["predictions"], model.predict(X))
        agree(run_treelite(model, X), model.predict(X))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_early_stopping_of_each_output_is_kept(strategy):
    X, Y = problem()
    model = regressor(strategy=strategy, early_stopping="per_output", max_iter=60)
    model.set_params(n_iter_no_change=2, learning_rate=0.5).fit(X, Y)
    assert len(set(model.best_iter_per_output_)) > 1
    agree(run(model, X)["predictions"], model.predict(X))
    agree(run_treelite(model, X), model.predict(X))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_link_of_poisson_and_of_a_list_of_losses(strategy):
    X, Y = problem(n_outputs=6)
    counts = np.random.default_rng(0).poisson(np.exp(Y / 3))
    model = regressor(loss="poisson", strategy=strategy).fit(X, counts)
    agree(run(model, X)["predictions"], model.predict(X))
    agree(run_treelite(model, X), model.predict(X))
    for loss in ("gamma", "tweedie"):
        amounts = regressor(loss=loss, strategy=strategy).fit(X, np.exp(Y / 3))
        agree(run(amounts, X)["predictions"], amounts.predict(X))
        agree(run_treelite(amounts, X), amounts.predict(X))
    losses = ["squared_error", "log_loss", "log_loss", "poisson", "huber", "exponential"]
    mixed = np.column_stack([Y[:, 0], Y[:, 1:3] > 0, counts[:, 3], Y[:, 4], Y[:, 5] > 0])
    model = regressor(loss=losses, strategy=strategy).fit(X, mixed)
    agree(run(model, X)["predictions"], model.predict(X))
    assert "treelite does not have a link for each output" in refusal(model.to_treelite)
    agree(run_treelite(model, X, raw=True), model._raw_predict(X))


@pytest.mark.parametrize("levels", [[0.5], [0.1, 0.5, 0.9]])
def test_quantiles_do_not_cross(levels):
    X, Y = problem(n_outputs=2)
    for y in (Y, Y[:, 0]):
        model = regressor(loss="quantile", quantile=levels, learning_rate=1.0).fit(X, y)
        raw = model._raw_predict(X).reshape(len(X), -1, len(levels))
        assert len(levels) == 1 or (np.diff(raw, axis=2) < 0).any()
        agree(run(model, X)["predictions"], model.predict(X))
        assert "a way to keep quantiles from crossing" in refusal(model.to_treelite)
        agree(run_treelite(model, X, raw=True), model._raw_predict(X))


class LogCosh(Loss):
    def value(self, y, raw):
        return np.logaddexp(y - raw, raw - y) - np.log(2)

    def gradient(self, y, raw):
        return np.tanh(raw - y)


class Doubled(LogCosh):
    def inverse_link(self, raw):
        return 2 * raw


def test_a_loss_in_python_is_exported_if_it_has_no_link():
    X, Y = problem()
    model = regressor(loss=LogCosh()).fit(X, Y)
    agree(run(model, X)["predictions"], model.predict(X))
    agree(run_treelite(model, X), model.predict(X))
    model = regressor(loss=Doubled()).fit(X, Y)
    for export in (model.to_onnx, model.to_treelite):
        assert "The inverse_link of Doubled is Python code" in refusal(export)
    agree(run_treelite(model, X, raw=True), model._raw_predict(X))
    on_the_object = LogCosh()
    on_the_object.inverse_link = lambda raw: 2 * raw
    model = regressor(loss=on_the_object).fit(X, Y)
    assert np.array_equal(model.predict(X), 2 * model._raw_predict(X))
    for export in (model.to_onnx, model.to_treelite):
        assert "The inverse_link of LogCosh is Python code" in refusal(export)


class Logistic(Loss):
    def value(self, y, raw):
        return np.logaddexp(0, raw) - y * raw

    def gradient(self, y, raw):
        return 1 / (1 + np.exp(-raw)) - y


@pytest.mark.parametrize("kind", ["two", "five", "labels"])
def test_probabilities_without_a_link_are_not_exported(kind):
    X, y = targets(kind)
    model = classifier(loss=Logistic()).fit(X, y)
    raw = model.decision_function(X).reshape(len(X), -1)
    agree(run_treelite(model, X, raw=True), raw)
    for export in (model.to_onnx, model.to_treelite):
        assert refusal(export) == (
            "Logistic has no link to probabilities, which the export holds; use a built-in loss, "
            "or to_treelite(raw=True)."
        )
    model.loss.inverse_link = lambda raw: 1 / (1 + np.exp(-raw))
    assert (model.predict_proba(X) <= 1).all()
    assert "inverse_link of Logistic is Python code" in refusal(model.to_onnx)


# Offsets ----------------------------------------------------------------------------------------


def test_an_offset_is_an_input_of_its_own():
    X, Y = problem(n_outputs=3)
    offset = np.random.default_rng(5).normal(size=Y.shape)
    given = offset.astype(np.float32)
    counts = np.random.default_rng(0).poisson(np.exp(Y / 3 + offset))
    model = regressor(loss="poisson").fit(X, counts, offset=offset)
    agree(run(model, X, offset=given)["predictions"], model.predict(X, offset=offset))
    assert "for which treelite has no input" in refusal(model.to_treelite)
    raw = run_treelite(model, X, raw=True) + given
    agree(np.exp(raw), model.predict(X, offset=offset))

    model = regressor(loss="quantile", quantile=[0.2, 0.8]).fit(X, Y, offset=offset)
    agree(run(model, X, offset=given)["predictions"], model.predict(X, offset=offset))

    model = classifier().fit(X, Y > 0, offset=offset)
    found = run(model, X, offset=given)
    agree(found["probabilities"], model.predict_proba(X, offset=offset))
    classes = Y.argmax(axis=1)
    model = classifier().fit(X, classes, offset=offset)
    found = run(model, X, offset=given)
    agree(found["probabilities"], model.predict_proba(X, offset=offset))
    single = regressor().fit(X, Y[:, 0], offset=offset[:, 0])
    found = run(single, X, offset=given[:, :1])
    agree(found["predictions"], single.predict(X, offset=offset[:, 0]))


# Classifiers ------------------------------------------------------------------------------------


def targets(kind):
    X, Y = problem()
    if kind == "labels":
        return X, (Y > 0).astype(int)
    classes = np.digitize(Y[:, 0], [0.0] if kind == "two" else [-1.0, 0.0, 0.5, 1.0])
    return X, classes


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", ["two", "five", "labels"])
@pytest.mark.parametrize("loss", ["log_loss", "exponential", "squared_error"])
def test_classifiers_give_the_same_probabilities_and_labels(loss, kind, strategy):
    X, y = targets(kind)
    model = classifier(loss=loss, strategy=strategy, categorical_features=[2]).fit(X, y)
    found, probabilities = run(model, X), model.predict_proba(X)
    agree(found["probabilities"], probabilities)
    raw = model.decision_function(X)
    assert found["labels"].dtype == np.int64
    if kind == "five":
        assert np.array_equal(found["labels"], model.predict(X))
    else:
        agree_on_labels(found["labels"], model.predict(X), raw)
    if loss == "squared_error" or (loss == "exponential" and kind == "five"):
        assert "treelite does not have the link" in refusal(model.to_treelite)
    else:
        second = probabilities[:, 1:] if kind == "two" else probabilities
        agree(run_treelite(model, X), second)
    agree(run_treelite(model, X, raw=True), raw.reshape(len(X), -1))


def test_probabilities_that_are_all_zero_become_even():
    X, y = targets("five")
    model = classifier(loss="squared_error", learning_rate=1.0, max_iter=3).fit(X, y)
    model.baseline_ = model.baseline_ - 50
    probabilities = model.predict_proba(X)
    assert (probabilities == 0.2).all()
    agree(run(model, X)["probabilities"], probabilities)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["no", "yes"], object),
        (["a", "b", "c ä"], object),
        (np.array(["x", "y", "z"], object), object),
        ([10, -3, 7], np.int64),
        (np.array([1, 3], np.uint8), np.int64),
        ([1.0, 2.0], np.float64),
        (np.array([1.0, 2.0], np.float16), np.float32),
        ([False, True], np.bool_),
    ],
)
def test_classes_come_back_as_they_were(values, dtype):
    X, y = targets("two" if len(values) == 2 else "five")
    y = np.asarray(values)[y % len(values)]
    model = classifier().fit(X, y)
    labels = run(model, X)["labels"]
    assert labels.dtype == dtype
    raw = model.decision_function(X)
    agree_on_labels(labels, model.predict(X), np.ones(len(X)) if raw.ndim == 2 else raw)


def test_classes_beyond_the_integers_of_onnx_are_refused():
    X, y = targets("two")
    model = classifier().fit(X, y.astype(np.uint64) + np.uint64(2**63))
    expected = "The classes have the number 9223372036854775809, beyond the integers of ONNX"
    assert refusal(model.to_onnx).startswith(expected)


@pytest.mark.parametrize("kind", ["two", "labels"])
@pytest.mark.parametrize("thresholds", [0.3, "tuned"])
def test_labels_go_by_the_thresholds(kind, thresholds):
    X, y = targets(kind)
    if thresholds == "tuned":
        model = classifier(thresholds=thresholds).fit(X, y, X_val=X, Y_val=y)
    else:
        model = classifier(thresholds=thresholds).fit(X, y)
    probabilities = model.predict_proba(X)
    if kind == "two":
        probabilities = probabilities[:, 1:]
    margin = probabilities - model.thresholds_
    labels = run(model, X)["labels"]
    expected = model.predict(X)
    assert (expected != classifier().fit(X, y).predict(X)).any()
    agree_on_labels(labels, expected, margin if kind == "labels" else margin[:, 0])


# Frames of labels -------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_labels_are_inputs_of_their_own(library):
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue", "grün"], 300)
    size = rng.choice([10, 5, 7], 300)
    numbers = rng.normal(size=(300, 2))
    effect = np.where(colour == "red", 2.0, 0.0) + size / 10
    Y = np.column_stack([numbers[:, 0] + effect, numbers[:, 1] * effect])
    columns = {"a": numbers[:, 0], "X": colour, "b": numbers[:, 1], "size": size}
    if library == "pandas":
        frame = pd.DataFrame(columns).astype({"X": "category", "size": "category"})
    else:
        frame = pl.DataFrame(columns).with_columns(pl.col("X").cast(pl.Categorical))
    model = regressor().fit(frame, Y)
    inputs = {each.name: each for each in session(model.to_onnx()).get_inputs()}
    labelled = {"X_": colour[:, None].astype(object)}
    X = numbers
    if library == "pandas":
        assert set(inputs) == {"X", "X_", "size"}
        labelled["size"] = size[:, None]
    else:
        assert set(inputs) == {"X", "X_"}
        X = np.column_stack([numbers, size])
    agree(run(model, X, **labelled)["predictions"], model.predict(frame))
    # A label that fit did not see is as good as missing.
    labelled["X_"][:20] = "purple"
    unknown = np.where(np.arange(300) < 20, None, colour)
    if library == "pandas":
        frame["X"] = pd.Series(unknown, dtype="category")
    else:
        frame = frame.with_columns(pl.Series("X", unknown.tolist()).cast(pl.Categorical))
    expected = model.predict(frame)
    agree(run(model, X, **labelled)["predictions"], expected)
    codes = np.full(300, -1.0)
    for code, label in enumerate(["blue", "green", "grün", "red"]):
        codes[unknown == label] = code
    places = np.searchsorted([5, 7, 10], size) if library == "pandas" else size
    table = np.column_stack([numbers[:, 0], codes, numbers[:, 1], places])
    agree(run_treelite(model, table), expected)


def test_a_column_of_labels_that_were_all_missing_is_an_input_too():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(100, 1))
    frame = pd.DataFrame({"a": a[:, 0], "w": pd.Categorical([None] * 100, categories=["x"])})
    model = regressor().fit(frame, a)
    labels = np.array(["x", ""] * 50, dtype=object)[:, None]
    agree(run(model, a, w=labels)["predictions"], model.predict(frame))


def test_columns_of_labels_without_names_are_inputs_by_their_numbers():
    a, w = np.random.default_rng(0).normal(size=(100, 1)), np.array(["x", "y"] * 50, dtype=object)
    frame = pd.DataFrame({0: a[:, 0], 1: pd.Categorical(w)})
    model = regressor().fit(frame, a + (w == "x")[:, None])
    agree(run(model, a, x1=w[:, None])["predictions"], model.predict(frame))


@pytest.mark.parametrize("label", [0.5, 2**63])
def test_other_labels_are_refused(label):
    X = pd.DataFrame({"w": pd.Categorical([label, 1 + label] * 50)})
    model = regressor().fit(X, np.arange(100.0))
    assert "Column 'w' has categories that are neither text nor" in refusal(model.to_onnx)


# Files ------------------------------------------------------------------------------------------


def test_the_file_holds_the_model_and_its_names(tmp_path):
    X, Y = problem()
    names = [f"feature {j}" for j in range(6)]
    outputs = [f"output {j}" for j in range(7)]
    model = regressor().fit(pd.DataFrame(X, columns=names), pd.DataFrame(Y, columns=outputs))
    proto = model.to_onnx(tmp_path / "model.onnx")
    stored = onnx.load(tmp_path / "model.onnx")
    assert stored == proto
    assert stored.producer_name == "manyboost"
    properties = {each.key: json.loads(each.value) for each in stored.metadata_props}
    assert properties == {"feature_names": names, "output_names": outputs}
    assert model.to_onnx().SerializeToString() == proto.SerializeToString()


def test_project_stays_compact():
    X, Y = problem(n_outputs=100)
    model = regressor(strategy="project").fit(X, Y)
    graph = model.to_onnx().graph
    (steps,) = [each for each in graph.initializer if each.name == "steps"]
    assert list(steps.dims) == [20, 100]
    (trees,) = [each for each in graph.node if each.op_type == "TreeEnsembleRegressor"]
    weights = next(each for each in trees.attribute if each.name == "target_weights")
    n_leaves = sum((n + 1) // 2 for n in model._progress.model.trees.tree_sizes())
    assert len(weights.floats) == n_leaves
    vectors = regressor(strategy="relabel").fit(X, Y)
    assert vectors.to_onnx().ByteSize() > 10 * model.to_onnx().ByteSize()


def test_more_than_a_file_can_hold_is_refused(monkeypatch):
    X, Y = problem()
    model = regressor().fit(X, Y)
    monkeypatch.setattr("manyboost.export.graph.MAX_BYTES", 1000)
    assert "more leaf values than an ONNX file can hold" in refusal(model.to_onnx)


def test_what_has_no_export_is_refused():
    X, Y = problem(categories=False)
    X = np.nan_to_num(X)
    model = regressor(estimator=Ridge(), strategy="project").fit(X, Y)
    for export in (model.to_onnx, model.to_treelite):
        sentence = refusal(export)
        assert sentence.endswith("needs built-in trees; fit with estimator=None, not Ridge().")
    for export in (regressor().to_onnx, classifier().to_treelite):
        with pytest.raises(Exception, match="not fitted"):
            export()


@pytest.mark.parametrize(
    ("call", "package", "extra"),
    [
        (lambda model: model.to_onnx(), "onnx", "onnx"),
        (lambda model: model.to_treelite(), "treelite", "treelite"),
        (lambda model: register_skl2onnx(), "skl2onnx", "onnx"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, call, package, extra):
    X, Y = problem()
    model = regressor(max_iter=1).fit(X, Y)
    for name in [package, f"{package}.model_builder"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        ImportError, match=re.escape(f"pip install 'manyboost[{extra}]'`.")
    ) as error:
        call(model)
    assert f"needs the package {package};" in str(error.value)


# Pipelines --------------------------------------------------------------------------------------


def pipeline_results(model, X, **options):
    register_skl2onnx()
    proto = skl2onnx.to_onnx(model, X[:1], **options)
    runtime = session(proto)
    names = [each.name for each in runtime.get_outputs()]
    return dict(zip(names, runtime.run(None, {"X": X}), strict=True))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("target_opset", [None, 13])
def test_pipelines_are_exported_whole(strategy, target_opset):
    rng = np.random.default_rng(0)
    # Few values, far from the cut points between them: the scaler's rounding moves no row.
    X = rng.integers(0, 9, (400, 4)).astype(np.float32)
    X[:, 3] = rng.choice([3, 17, 40], 400)
    Y = X[:, :3] @ rng.normal(size=(3, 5)) + 3 * (X[:, 3:] == 17)
    before = make_column_transformer((StandardScaler(), [0, 1, 2]), (OrdinalEncoder(), [3]))
    options = {"target_opset": target_opset}

    model = make_pipeline(before, regressor(strategy=strategy, categorical_features=[3]))
    agree(pipeline_results(model.fit(X, Y), X, **options)["variable"], model.predict(X))
    agree(pipeline_results(model.fit(X, Y[:, 0]), X, **options)["variable"], model.predict(X))

    model = make_pipeline(before, classifier(strategy=strategy))
    texts = np.array(["low", "mid", "top"])[np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.3, 0.7]))]
    for y in (texts, texts == "top", (Y.mean(axis=0) < Y).astype(int)):
        found = pipeline_results(model.fit(X, y), X, options={"zipmap": False}, **options)
        agree(found["probabilities"], model.predict_proba(X))
        margin = model.predict_proba(X) - 0.5 if y.ndim == 2 else np.ones(len(X))
        agree_on_labels(found["label"], model.predict(X), margin)


def test_a_model_alone_and_several_inputs_are_exported_by_skl2onnx():
    X, Y = problem(categories=False)
    single = X.astype(np.float32)
    model = regressor().fit(X, Y)
    agree(pipeline_results(model, single)["variable"], model.predict(X))
    agree(pipeline_results(model, X.astype(np.float32).astype(float))["variable"], model.predict(X))
    register_skl2onnx()
    types = [("left", onnx_float(2)), ("right", onnx_float(4))]
    runtime = session(skl2onnx.convert_sklearn(model, initial_types=types))
    (found,) = runtime.run(None, {"left": single[:, :2], "right": single[:, 2:]})
    agree(found, model.predict(X))


def onnx_float(width):
    return skl2onnx.common.data_types.FloatTensorType([None, width])


def test_pipelines_predict_classes_in_half_precision():
    X, y = targets("two")
    X = np.nan_to_num(X).astype(np.float32)
    model = classifier().fit(X, (1 + y).astype(np.float16))
    found = pipeline_results(model, X)
    assert found["label"].dtype == np.float32
    assert (found["label"] == model.predict(X)).mean() > 0.9


def test_pipelines_refuse_what_they_cannot_pass():
    X, Y = problem(categories=False)
    model = regressor().fit(X, Y, offset=Y)
    sentence = refusal(lambda: pipeline_results(model, X))
    assert "fitted with an offset, for which a pipeline has no input" in sentence
    model = regressor().fit(X, Y)
    sentence = refusal(lambda: pipeline_results(model, X, target_opset=12))
    assert "target_opset=12 is too old" in sentence
    frame = pd.DataFrame({"colour": pd.Categorical(["red", "blue"] * 50)})
    model = regressor().fit(frame, np.arange(100.0))
    sentence = refusal(lambda: pipeline_results(model, np.zeros((2, 1), np.float32)))
    assert "Column 'colour' held labels in fit" in sentence
    model = regressor(estimator=Ridge(), strategy="project").fit(np.nan_to_num(X), Y)
    assert "estimator=None, not Ridge()" in refusal(lambda: pipeline_results(model, X))


# Real data --------------------------------------------------------------------------------------


def real_set(name):
    if name == "digits":
        return (*load_digits(return_X_y=True), {})
    folder = os.environ.get("MANYBOOST_DATA")
    folder = Path(folder) if folder else Path(__file__).parents[3] / "shared" / "data"
    if not (folder / f"{name}.npz").is_file():
        pytest.skip(f"{name}.npz is not in the data folder (set MANYBOOST_DATA)")
    data = load_dataset(name, folder)
    dense = [each.toarray() if sparse.issparse(each) else each for each in (data.X, data.Y)]
    return *map(np.asarray, dense), data.categories


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", ["enb", "atp1d", "sf2"])
def test_regressors_of_real_data_predict_the_same(name, strategy):
    X, Y, categories = real_set(name)
    model = regressor(strategy=strategy, max_iter=10, categorical_features=list(categories))
    model.fit(X, Y)
    agree(run(model, X)["predictions"], model.predict(X))
    agree(run_treelite(model, X), model.predict(X))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", ["emotions", "birds", "flags", "digits"])
def test_classifiers_of_real_data_give_the_same_probabilities(name, strategy):
    X, y, categories = real_set(name)
    model = classifier(strategy=strategy, max_iter=10, categorical_features=list(categories))
    model.fit(X, y)
    found = run(model, X)
    agree(found["probabilities"], model.predict_proba(X))
    agree(run_treelite(model, X), model.predict_proba(X))
    if name == "digits":
        assert np.array_equal(found["labels"], model.predict(X))


def test_an_onnx_file_is_written_through_a_link(tmp_path):
    X, Y = problem()
    link = tmp_path / "link.onnx"
    link.symlink_to("model.onnx")
    proto = regressor(max_iter=2).fit(X, Y).to_onnx(link)
    assert link.is_symlink()
    assert (tmp_path / "model.onnx").read_bytes() == proto.SerializeToString()
