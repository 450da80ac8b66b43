"""A model that was saved and loaded is the model that was saved, to the last bit."""

import contextlib
import copy
import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import make_scorer, mean_absolute_error, r2_score

import manyboost
from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor
from manyboost.metrics import TopKScorer, get_scorer
from manyboost.persistence.model import from_bytes, to_parts

STRATEGIES = ["independent", "multioutput", "project", "relabel"]
STEPS = ["newton", "line_search"]
COMMON = {"max_iter": 3, "max_leaf_nodes": 4, "random_state": 0, "learning_rate": 0.3}


def problem(n=150, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    Y = np.nan_to_num(X) @ rng.normal(size=(5, d)) + 0.1 * rng.normal(size=(n, d))
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, Y


def same(a, b):
    """Whether two values are equal, of one type, NaN equal to NaN and -0 not to 0."""
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, pd.DataFrame | pl.DataFrame):
        return type(a) is type(b) and a.equals(b)
    if isinstance(a, np.ndarray) and a.dtype != object:
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple | np.ndarray):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def answers(model, X, **arguments):
    """All that a model says about rows."""
    said = {"predict": model.predict(X, **arguments)}
    said["staged"] = list(model.staged_predict(X, **arguments))
    if isinstance(model, ManyBoostClassifier):
        said["decision"] = model.decision_function(X, **arguments)
        said["proba"] = model.predict_proba(X, **arguments)
        if model._classes.kind != "binary":
            said["top"] = model.predict_top_k(X, 2, **arguments)
        if model._classes.kind == "multilabel":
            said["labels"] = model.predict_labels(X, **arguments)
    return said


def fitted(model):
    """Fitted attributes."""
    names = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    names += ["output_importances_", "feature_importances_"]
    attributes = {name: getattr(model, name) for name in sorted(names)}
    with contextlib.suppress(AttributeError):
        attributes["step_sizes_"] = model.step_sizes_
    return attributes


def assert_kept(model, X, folder, **arguments):
    """Save, load, compare; return the loaded model."""
    path = folder / "model.mb"
    model.save(path, records="all")
    again = manyboost.load(path)
    assert same(answers(again, X, **arguments), answers(model, X, **arguments))
    assert same(fitted(again), fitted(model))
    assert repr(again.get_params()) == repr(model.get_params())
    assert type(again) is type(model)
    written = path.read_bytes()
    again.save(path, records="all")
    assert path.read_bytes() == written
    return again


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"]
)
def test_regressors_are_kept(loss, strategy, step, tmp_path):
    X, Y = problem()
    Y = np.round(np.exp(Y / 3)) if loss in ("poisson", "gamma", "tweedie") else Y
    Y = Y + 0.1 if loss == "gamma" else Y
    model = ManyBoostRegressor(loss, strategy=strategy, step=step, **COMMON).fit(X, Y)
    assert_kept(model, X, tmp_path)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("loss", ["log_loss", "exponential", "squared_error"])
def test_classifiers_are_kept(loss, strategy, step, tmp_path):
    X, Y = problem()
    model = ManyBoostClassifier(loss, strategy=strategy, step=step, **COMMON)
    for y in ((Y > 0).astype(int), Y.argmax(axis=1), Y[:, 0] > 0):
        assert_kept(model.fit(X, y), X, tmp_path)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_mixed_losses_quantiles_offsets_and_stopping_are_kept(strategy, tmp_path):
    X, Y = problem(d=5)
    Y[:, 3:] = Y[:, 3:] > 0
    losses = ["squared_error", "squared_error", "huber", "log_loss", "exponential"]
    common = COMMON | {"strategy": strategy}
    assert_kept(ManyBoostRegressor(losses, **common).fit(X, Y), X, tmp_path)
    same_losses = ManyBoostRegressor(["squared_error"] * 5, **common).fit(X, Y)
    assert_kept(same_losses, X, tmp_path)
    levels = ManyBoostRegressor("quantile", quantile=(0.1, 0.5, 0.9), **common)
    assert_kept(levels.fit(X, Y[:, 0]), X, tmp_path)
    assert_kept(levels.fit(X, Y[:, :2]), X, tmp_path)
    offset = np.linspace(0, 1, len(X))
    assert_kept(ManyBoostRegressor(**common).fit(X, Y, offset=offset), X, tmp_path, offset=offset)
    stopped = ManyBoostRegressor(
        **common | {"max_iter": 30}, early_stopping="per_output", n_iter_no_change=2
    ).fit(X, Y)
    assert len(set(stopped.best_iter_per_output_)) > 1
    assert_kept(stopped, X, tmp_path)
    missing = np.where(np.random.default_rng(1).random(Y.shape) < 0.2, np.nan, Y)
    for scoring in (["loss", "r2"], None, ["loss", None]):
        scored = ManyBoostRegressor(**common, early_stopping=True, scoring=scoring)
        assert_kept(scored.fit(X, missing), X, tmp_path)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sparse_rows_categories_and_constraints_are_kept(strategy, tmp_path):
    X, Y = problem()
    common = COMMON | {"strategy": strategy}
    rows = sparse.csr_array(np.where(np.abs(X) > 1, X, 0))
    assert_kept(ManyBoostRegressor(**common).fit(rows, Y), rows, tmp_path)
    X[:, 1] = np.round(2 * X[:, 1])
    X[:, 4] = np.round(X[:, 4])
    constrained = ManyBoostRegressor(
        categorical_features=np.array([1, 4]),
        monotonic_cst=[1, 0, -1, 0, 0],
        interaction_cst=[{0, 1}, {2, 3, 4}],
        output_weight=np.array([1.0, 2, 0, 1]),
        **common,
    )
    if strategy == "independent":
        constrained.set_params(output_weight=None)
    again = assert_kept(constrained.fit(X, Y), X, tmp_path)
    assert any(c is not None for t in range(3) for c in again._progress.model.trees.tree(t)[6])
    # A value that is no category of the fitted model.
    X[0, 1] = 99
    assert same(again.predict(X), constrained.predict(X))


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_are_kept(library, tmp_path):
    X, Y = problem()
    frame = pd.DataFrame(np.nan_to_num(X), columns=["a", "b", "c", "d", "é"])
    frame["colour"] = pd.Categorical(np.where(X[:, 0] > 0, "red", "blue"))
    frame["size"] = pd.Categorical(np.where(X[:, 1] > 0, "L", "S"), categories=["S", "L", "XL"])
    outputs = pd.DataFrame(Y, columns=["one", "two", "three", "four"])
    if library is pl:
        kinds = {"colour": pl.Categorical, "size": pl.Enum(["S", "L", "XL"])}
        columns = {name: frame[name].to_numpy() for name in frame}
        frame = pl.DataFrame(columns, schema_overrides=dict.fromkeys(kinds, pl.String)).cast(kinds)
        outputs = pl.DataFrame(Y, schema=list(outputs))
    model = ManyBoostRegressor(**COMMON).fit(frame, outputs)
    name = library.__name__
    model.set_output(predict=name)
    again = assert_kept(model, frame, tmp_path)
    assert list(again.predict(frame).columns) == ["one", "two", "three", "four"]
    assert same(again.predict(frame, outputs=["three"]), model.predict(frame, outputs=["three"]))
    with pytest.raises(ValueError, match="held categories such as 'blue' in fit"):
        again.predict(np.zeros((2, 7)))
    labels = ManyBoostClassifier(**COMMON).fit(frame, outputs > 0 if library is pd else Y > 0)
    assert_kept(labels.set_output(predict=name), frame, tmp_path)


def test_categories_that_are_numbers_or_truth_values_are_kept(tmp_path):
    X, Y = problem()
    frame = pd.DataFrame(np.nan_to_num(X), columns=list("abcde"))
    frame["level"] = pd.Categorical(np.round(frame["a"]).astype(int))
    frame["share"] = pd.Categorical(np.round(frame["b"]) / 2)
    frame["truth"] = pd.Categorical(frame["c"] > 0)
    assert_kept(ManyBoostRegressor(**COMMON).fit(frame, Y), frame, tmp_path)
    unnamed = frame.set_axis(range(8), axis=1)
    assert_kept(ManyBoostRegressor(**COMMON).fit(unnamed, Y), unnamed, tmp_path)


@pytest.mark.parametrize(
    "values",
    [
        np.array(["no", "yes", "perhaps"]),
        np.array(["no", "yes", "perhaps"], dtype=object),
        np.array(["", "ä", "a longer name"], dtype="<U40"),
        np.array([3, -1, 7]),
        np.array([3, 1, 7], dtype=np.uint8),
        np.array([0.0, 1.0, 2.0], dtype=np.float32),
        np.array([False, True]),
        np.array(["no", "yes"]),
    ],
    ids=lambda values: f"{values.dtype}-{len(values)}",
)
def test_classes_of_every_type_are_kept(values, tmp_path):
    X, Y = problem()
    y = values[Y[:, : len(values)].argmax(axis=1)]
    model = ManyBoostClassifier(class_weight={values.tolist()[0]: 2.0}, **COMMON).fit(X, y)
    again = assert_kept(model, X, tmp_path)
    assert again.classes_.dtype == model.classes_.dtype


def test_labels_in_sets_and_thresholds_are_kept(tmp_path):
    X, Y = problem()
    for names in (["red", "round", "small", "old"], [3, 1, 4, 15]):
        sets = [{name for name, y in zip(names, row, strict=True) if y > 0} for row in Y]
        for thresholds in ("tuned", [0.2, 0.3, 0.4, 0.5], 0.25):
            model = ManyBoostClassifier(thresholds=thresholds, **COMMON).fit(X, sets)
            assert_kept(model, X, tmp_path)
    binary = ManyBoostClassifier(thresholds=0.3, **COMMON).fit(X, Y[:, 0] > 0)
    assert_kept(binary, X, tmp_path)


def test_thresholds_stay_those_of_the_fit_whatever_the_parameter_says(tmp_path):
    X, Y = problem(d=3)
    model = ManyBoostClassifier(thresholds=[0.2, 0.3, 0.4], **COMMON).fit(X, Y > 0)
    for changed in ([0.1, 0.2], 0.9, None, "tuned"):
        again = assert_kept(model.set_params(thresholds=changed), X, tmp_path)
        assert again.thresholds_.tolist() == [0.2, 0.3, 0.4]


def test_text_of_uneven_lengths_is_kept_as_long_as_it_fits(tmp_path):
    X, Y = problem()
    model = ManyBoostClassifier(**COMMON)
    names = np.array(["x" * 5000, "y", "z"])
    assert_kept(model.fit(X, names[Y[:, :3].argmax(axis=1)]), X, tmp_path)
    for scoring in (np.array(["x" * 5000] + [""] * 999), {"loss"}, ["r2", []]):
        with pytest.raises(ValueError, match="scoring=") as caught:
            model.set_params(scoring=scoring).save(tmp_path / "model.mb")
        assert ("1000 texts in an array" in str(caught.value)) == isinstance(scoring, np.ndarray)


def test_a_model_of_no_rounds_is_kept(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 3)), rng.normal(size=(200, 2))
    for strategy in STRATEGIES:
        model = ManyBoostRegressor(
            **COMMON | {"strategy": strategy, "learning_rate": 50.0},
            early_stopping=True,
            n_iter_no_change=1,
        ).fit(X, Y)
        assert model.n_iter_ == 0
        assert_kept(model, X, tmp_path)


def test_a_changed_parameter_does_not_change_what_is_kept(tmp_path):
    X, Y = problem()
    model = ManyBoostRegressor(**COMMON).fit(X, Y).set_params(loss="huber", strategy="project")
    again = assert_kept(model, X, tmp_path)
    assert again.info()["strategy"] == "relabel"
    with pytest.raises(ValueError, match="loss, strategy"):
        again.set_params(warm_start=True, max_iter=5).fit(X, Y)


@pytest.mark.parametrize("stopping", [False, True, "per_output"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_loaded_model_goes_on_as_if_nothing_had_happened(strategy, stopping, tmp_path):
    X, Y = problem()
    settings = COMMON | {
        "strategy": strategy,
        "early_stopping": stopping,
        "warm_start": True,
        "n_iter_no_change": 3,
        "monotonic_cst": [1, 0, 0, 0, 0],
    }
    begun = ManyBoostRegressor(**settings).fit(X, Y)
    again = assert_kept(begun, X, tmp_path)
    begun.set_params(max_iter=7).fit(X, Y)
    again.set_params(max_iter=7).fit(X, Y)
    assert again.n_iter_ > 3
    assert same(answers(again, X), answers(begun, X))
    assert same(fitted(again), fitted(begun))
    assert b"".join(to_parts(again, "all")) == b"".join(to_parts(begun, "all"))


def test_a_chosen_strategy_is_kept(tmp_path):
    X, Y = problem()
    settings = COMMON | {"strategy": "auto", "warm_start": True}
    for projection in ("gaussian", "rademacher", some_projection):
        model = ManyBoostRegressor(projection=projection, **settings).fit(X, Y)
        if projection is some_projection:
            model.save(tmp_path / "model.mb")
            again = manyboost.load(tmp_path / "model.mb")
            assert repr(again.projection_) == repr(again.projection)
            assert same(answers(again, X), answers(model, X))
            again.set_params(projection=some_projection)
        else:
            again = assert_kept(model, X, tmp_path)
            assert again.strategy_ in STRATEGIES
        for each in (model, again):
            each.set_params(max_iter=6).fit(X, Y)
        assert same(answers(again, X), answers(model, X))
        assert again.search_results_.keys() == model.search_results_.keys()


def test_every_parameter_value_is_kept(tmp_path):
    X, Y = problem()
    model = ManyBoostRegressor(
        n_components=np.int64(2),
        max_leaf_nodes=np.int32(5),
        learning_rate=np.float32(0.25),
        quantile=np.float64(0.25),
        huber_delta=None,
        max_bins=200,
        categorical_features=range(0),
        interaction_cst=[frozenset({0, 1}), {np.int64(2), np.int64(3)}, (4,)],
        monotonic_cst=np.array([[1, 0, 0, 0, 0]] * 4, dtype=np.int16),
        early_stopping=np.True_,
        random_state=np.int64(3),
        max_iter=3,
    ).fit(X, Y)
    path = tmp_path / "model.mb"
    model.save(path)
    again = manyboost.load(path)
    kept, given = again.get_params(), model.get_params()
    assert kept["categorical_features"] == []
    for name in set(given) - {"categorical_features", "monotonic_cst"}:
        assert kept[name] == given[name]
        scalar = isinstance(given[name], np.integer | np.float32 | np.bool_)
        assert not scalar or type(kept[name]) is type(given[name]), name
    assert same(kept["monotonic_cst"], given["monotonic_cst"])
    assert same(clone(again).fit(X, Y).predict(X), model.predict(X))


FEATURES, OUTPUTS = ["a", "b", "c", "d", "e"], ["one", "two", "three", "four"]
#: Parameters that go by names, in another order than those of the rows.
NAMED_PARAMETERS = {
    "weights": {"output_weight": pd.Series([1.0, 0, 0, 0], index=OUTPUTS[::-1])},
    "signs": {"monotonic_cst": pd.Series([0, 0, 0, -1, 1], index=FEATURES[::-1])},
    "signs of each output": {
        "monotonic_cst": pd.DataFrame(
            np.eye(4, 5, dtype=int), index=OUTPUTS[::-1], columns=FEATURES[::-1]
        )
    },
    "signs of a feature": {"monotonic_cst": {"a": pd.Series([1, 0, 0, -1], index=OUTPUTS[::-1])}},
    "mask": {
        "categorical_features": pd.Series([False, False, True, False, True], index=FEATURES[::-1])
    },
}


@pytest.mark.parametrize("name", NAMED_PARAMETERS)
def test_a_loaded_model_means_the_same_outputs_and_features(name, tmp_path):
    X, Y = problem()
    frame = pd.DataFrame(np.round(np.nan_to_num(X), 1), columns=FEATURES)
    targets = pd.DataFrame(Y, columns=OUTPUTS)
    model = ManyBoostRegressor(**NAMED_PARAMETERS[name], **COMMON).fit(frame, targets)
    path = tmp_path / "model.mb"
    model.save(path)
    again = manyboost.load(path)
    afresh = clone(again).fit(frame, targets)
    assert same(afresh.predict(frame), model.predict(frame))
    for each in (model, again):
        each.set_params(warm_start=True, max_iter=6).fit(frame, targets)
    assert same(again.predict(frame), model.predict(frame))
    again.save(path)
    written = path.read_bytes()
    model.save(path)
    assert path.read_bytes() == written


def test_a_loaded_classifier_means_the_same_columns_of_classes(tmp_path):
    X, Y = problem()
    columns = pd.DataFrame(np.array(["no", "yes", "so"])[np.digitize(Y, [-1, 1])], columns=OUTPUTS)
    weights = pd.Series([1.0, 0.5, 0, 0], index=OUTPUTS[::-1])
    model = ManyBoostClassifier(output_weight=weights, **COMMON).fit(X, columns)
    model.save(tmp_path / "model.mb")
    again = manyboost.load(tmp_path / "model.mb")
    assert again.output_weight.tolist() == [0, 0, 0.5, 1]
    assert same(clone(again).fit(X, columns).predict(X), model.predict(X))


def test_names_that_the_rows_do_not_have_are_refused_by_save(tmp_path):
    X, Y = problem()
    model = ManyBoostRegressor(**COMMON).fit(X, pd.DataFrame(Y, columns=OUTPUTS))
    model.set_params(output_weight=pd.Series(1.0, index=["one", "two", "three", "for"]))
    with pytest.raises(ValueError, match="output_weight names the output 'for'"):
        model.save(tmp_path / "model.mb")


def test_pickles_and_copies_hold_the_bytes_of_the_format():
    X, Y = problem()
    for strategy in STRATEGIES:
        model = ManyBoostRegressor(strategy=strategy, **COMMON).fit(X, Y)
        trees = model._progress.model.trees
        assert b"\x89MBOOST\n" in pickle.dumps(model)
        assert trees.to_bytes() in pickle.dumps(trees)
        for copied in (pickle.loads(pickle.dumps(trees)), copy.deepcopy(trees)):
            assert copied.to_bytes() == trees.to_bytes()
        damaged = bytearray(pickle.dumps(trees))
        damaged[-100] ^= 1
        with pytest.raises(ValueError, match="checksum"):
            pickle.loads(bytes(damaged))
        with pytest.raises(ValueError, match="content"):
            from_bytes(trees.to_bytes())


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("n_features", [3, 60])
def test_a_file_of_scaled_trees_is_small(n_features, early_stopping, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, n_features)).astype(np.float32)
    Y = X @ rng.normal(size=(n_features, 1000)) + rng.normal(size=(400, 1000))
    model = ManyBoostRegressor(
        strategy="project", max_iter=20, random_state=0, early_stopping=early_stopping
    ).fit(X, Y)
    path = tmp_path / "model.mb"
    model.save(path)
    info = model.info()
    assert path.stat().st_size == info["n_bytes"]
    most = (6 * info["n_nodes"] + info["n_trees"] * 1000) * 4 + 2**16
    assert path.stat().st_size <= most
    again = manyboost.load(path)
    assert same(again.predict(X), model.predict(X))
    assert same(again.feature_importances_, model.feature_importances_)
    assert again.info()["left_out"] == info["left_out"]
    written = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == written
    assert ("importances by output" in info["left_out"]) == (n_features == 60)
    assert ("curves by output" in info["left_out"]) == early_stopping
    if n_features == 60:
        with pytest.raises(AttributeError, match="records='all'"):
            _ = again.output_importances_
    else:
        assert same(again.output_importances_, model.output_importances_)
    # What was left out is not needed to go on, and is not made up.
    for each in (model, again):
        each.set_params(warm_start=True, max_iter=25).fit(X, Y)
    assert same(again.predict(X), model.predict(X))
    assert same(again.train_score_, model.train_score_)
    assert not hasattr(again, "validation_score_per_output_")
    if n_features == 60:
        with pytest.raises(AttributeError, match="left them out"):
            _ = again.feature_importances_
    again.save(path)
    assert same(manyboost.load(path).predict(X), model.predict(X))
    model.save(path, records="all")
    assert model.info()["left_out"] != [] or n_features == 3
    whole = manyboost.load(path)
    assert same(whole.output_importances_, model.output_importances_)
    assert whole._left_out == []


def test_what_a_file_left_out_is_there_again_after_a_refit(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 60)), rng.normal(size=(60, 400))
    settings = {"strategy": "project", "max_leaf_nodes": 2, "max_iter": 20, "random_state": 0}
    path = tmp_path / "model.mb"
    model = ManyBoostRegressor(**settings, early_stopping=True).fit(X, Y)
    model.save(path)
    again = manyboost.load(path)
    assert "importances by output" in again._left_out
    assert again.refit(X, Y)._left_out == []
    again.save(path, records="all")
    whole = manyboost.load(path)
    assert same(whole.output_importances_, again.output_importances_)
    assert same(pickle.loads(pickle.dumps(again)).predict(X), again.predict(X))


class Pinball(Loss):
    def value(self, y, raw):
        return np.abs(y - raw)

    def gradient(self, y, raw):
        return np.sign(raw - y)


class Exponential(Pinball):
    def inverse_link(self, raw):
        return np.exp(raw)


def some_projection(n_components, n_outputs, rng):
    return rng.normal(size=(n_components, n_outputs))


def some_score(estimator, X, y):
    return -float(np.abs(estimator.predict(X) - y).mean())


def some_callback(state):
    return None


def test_code_that_predictions_do_not_need_is_left_out_and_said_so(tmp_path):
    X, Y = problem()
    path = tmp_path / "model.mb"
    model = ManyBoostRegressor(
        Pinball(),
        projection=some_projection,
        scoring=["loss", some_score],
        callbacks=[some_callback],
        early_stopping=True,
        **COMMON | {"random_state": np.random.RandomState(0)},
    ).fit(X, Y)
    model.save(path)
    again = manyboost.load(path)
    assert same(answers(again, X), answers(model, X))
    said = str(again.info())
    for word in ("Pinball", "some_projection", "some_score", "some_callback", "RandomState"):
        assert word in said
    assert again.info()["left_out"] == manyboost.load(path).info()["left_out"]
    written = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == written
    for name in ("loss", "projection", "scoring", "callbacks", "random_state"):
        others = {each: value for each, value in model.get_params().items() if each != name}
        with pytest.raises(ValueError, match=f"{name}=.*not in the model file"):
            copy.copy(again).set_params(**others).fit(X, Y)
    again.set_params(**model.get_params())
    # The loss itself is needed to go on; a fresh fit takes what it is given.
    with pytest.raises(ValueError, match="loss, strategy"):
        again.set_params(warm_start=True).fit(X, Y)
    again.set_params(warm_start=False).fit(X, Y)
    assert again.info()["left_out"] == model.info()["left_out"]


def test_a_model_goes_on_when_its_scorer_is_given_again(tmp_path):
    X, Y = problem()
    path = tmp_path / "model.mb"
    settings = COMMON | {"scoring": some_score, "early_stopping": True, "warm_start": True}
    model = ManyBoostRegressor(**settings).fit(X, Y)
    model.save(path)
    again = manyboost.load(path).set_params(scoring=some_score, max_iter=6).fit(X, Y)
    assert same(answers(again, X), answers(model.set_params(max_iter=6).fit(X, Y), X))
    with pytest.raises(ValueError, match="scoring"):
        manyboost.load(path).set_params(scoring=some_callback, max_iter=6).fit(X, Y)


def test_scorers_of_the_best_labels_are_told_apart_in_files(tmp_path):
    X, Y = problem()
    settings = COMMON | {"early_stopping": True, "warm_start": True}
    model = ManyBoostClassifier(scoring=TopKScorer("precision", 1), **settings).fit(X, Y > 0)
    model.save(tmp_path / "model.mb")
    again = manyboost.load(tmp_path / "model.mb").set_params(max_iter=6)
    again.set_params(scoring=TopKScorer("precision", 1)).fit(X, Y > 0)
    with pytest.raises(ValueError, match="scoring"):
        again.set_params(scoring=TopKScorer("recall", 3), max_iter=9).fit(X, Y > 0)


SCORERS = [
    lambda: make_scorer(r2_score),
    lambda: make_scorer(mean_absolute_error, greater_is_better=False),
    lambda: get_scorer("r2"),
    lambda: get_scorer("neg_mean_absolute_error"),
    lambda: partial(some_score),
]


@pytest.mark.parametrize("given", SCORERS)
def test_a_model_goes_on_with_a_scorer_that_is_made_with_the_same(given, tmp_path):
    X, Y = problem()
    path = tmp_path / "model.mb"
    settings = COMMON | {"early_stopping": True, "warm_start": True}
    model = ManyBoostRegressor(scoring=given(), **settings).fit(X, Y)
    model.save(path)
    for scorer in SCORERS:
        again = manyboost.load(path).set_params(scoring=scorer(), max_iter=6)
        if scorer is given:
            assert again.fit(X, Y).n_iter_ > 0
            continue
        with pytest.raises(ValueError, match="scoring"):
            again.fit(X, Y)


def test_what_cannot_be_stored_is_refused_in_one_sentence(tmp_path):
    from sklearn.linear_model import Ridge

    X, Y = problem()
    X = np.nan_to_num(X)
    path = tmp_path / "model.mb"

    class Mine(ManyBoostRegressor):
        pass

    dates = pd.DataFrame(X, columns=list("abcde"))
    dates["day"] = pd.Categorical(pd.to_datetime(np.where(X[:, 0] > 0, "2020-01-01", "2021-01-01")))
    large = pd.DataFrame({"id": pd.Categorical([2**64 + i % 3 for i in range(len(X))])})
    common = {"max_iter": 2}
    models = {
        "Ridge": ManyBoostRegressor(estimator=Ridge(), strategy="project", **common).fit(X, Y),
        "inverse_link": ManyBoostRegressor(Exponential(), **common).fit(X, Y),
        "class of your own": Mine(**common).fit(X, Y),
        r"'day' has .* \(a value of type Timestamp\)": ManyBoostRegressor(**common).fit(dates, Y),
        "Column 5 has categories": ManyBoostRegressor(**common).fit(
            dates.set_axis(range(6), axis=1), Y
        ),
        "'id' has categories .* more than 64 bits": ManyBoostRegressor(**common).fit(large, Y),
        "max_iter=-1": ManyBoostRegressor(**common).fit(X, Y).set_params(max_iter=-1),
        "more than 64 bits": ManyBoostRegressor(**common).fit(X, Y).set_params(max_iter=10**30),
    }
    for words, model in models.items():
        with pytest.raises(ValueError, match=words) as caught:
            model.save(path)
        assert str(caught.value).count(". ") == 0
        assert model.info()["n_bytes"] is None
        assert "cannot be saved\n" in str(model.info())
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="records='some'"):
        ManyBoostRegressor(**common).fit(X, Y).save(path, records="some")
    with pytest.raises(ValueError, match="not fitted"):
        ManyBoostRegressor().save(path)
    with pytest.raises(ValueError, match="not fitted"):
        ManyBoostRegressor().info()


def test_notes_on_an_estimator_are_left_out_and_said_so(tmp_path):
    X, Y = problem()
    model = ManyBoostRegressor(**COMMON).fit(X, Y)
    model.note = "mine"
    model.save(tmp_path / "model.mb")
    again = manyboost.load(tmp_path / "model.mb")
    assert again.info()["left_out"] == model.info()["left_out"] == ["attribute note"]


def test_a_file_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    X, Y = problem()
    path = tmp_path / "model.mb"
    model = ManyBoostRegressor(**COMMON).fit(X, Y)
    model.save(path)
    written = path.read_bytes()
    path.chmod(0o640)

    def no_space(*_):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", no_space)
        with pytest.raises(OSError, match="no space"):
            model.set_params(tol=1e-3).save(path)
    assert path.read_bytes() == written
    assert [each.name for each in tmp_path.iterdir()] == ["model.mb"]
    model.set_params(tol=1e-3).save(path)
    assert path.read_bytes() != written
    assert path.stat().st_mode & 0o777 == 0o640
    with pytest.raises(FileNotFoundError):
        model.save(tmp_path / "nowhere" / "model.mb")


def test_what_is_no_file_of_a_model_is_refused_by_name(tmp_path):
    other = tmp_path / "other.txt"
    other.write_bytes(b"")
    for content in (b"", b"\x89MBOOS", b"hello", bytes(1000)):
        other.write_bytes(content)
        with pytest.raises(ValueError, match=r"other\.txt' is not a sound model file"):
            manyboost.load(other)
    with pytest.raises(FileNotFoundError):
        manyboost.load(tmp_path / "nothing")
    with pytest.raises(ValueError, match="not a regular file"):
        manyboost.load("/dev/null")


def test_info_says_what_there_is():
    X, Y = problem()
    model = ManyBoostRegressor(strategy="independent", **COMMON).fit(X, Y)
    info = model.info()
    assert info["estimator"] == "ManyBoostRegressor"
    assert (info["strategy"], info["loss"]) == ("independent", "squared_error")
    assert (info["n_features"], info["n_outputs"], info["n_rounds"]) == (5, 4, 3)
    sizes = model._progress.model.trees.tree_sizes()
    leaves = sum(int((model._progress.model.trees.tree(t)[2] == 0).sum()) for t in range(12))
    assert (info["n_trees"], info["n_nodes"], info["n_leaves"]) == (12, sizes.sum(), leaves)
    assert info["n_bytes"] == sum(map(len, to_parts(model)))
    assert (info["format_version"], info["manyboost_version"]) == (1, manyboost.__version__)
    assert info["parameters"] == model.get_params()
    assert info["changed_parameters"] == COMMON | {"strategy": "independent"}
    assert "1 feature, 1 output\n" in str(
        ManyBoostRegressor(max_iter=1).fit(X[:, :1], Y[:, 0]).info()
    )
    for words in ("ManyBoostRegressor", "5 features, 4 outputs", "12 trees", "max_iter=3"):
        assert words in str(info)
        assert words in repr(info)


def test_a_model_remembers_who_trained_it(tmp_path):
    X, Y = problem()
    path = tmp_path / "model.mb"
    model = ManyBoostRegressor(**COMMON).fit(X, Y)
    model._release = "0.0.1"
    model.save(path)
    again = manyboost.load(path)
    assert again.info()["manyboost_version"] == "0.0.1"
    again.set_params(warm_start=True, max_iter=4).fit(X, Y)
    assert again.info()["manyboost_version"] == manyboost.__version__


def test_documentation_names_every_array_and_field():
    X, Y = problem()
    X[:, 1] = np.round(X[:, 1])
    model = ManyBoostClassifier(
        strategy="project",
        thresholds=0.5,
        early_stopping="per_output",
        categorical_features=[1],
        monotonic_cst=[1, 0, 0, 0, 0],
        interaction_cst="pairwise",
        **COMMON,
    ).fit(X, Y > 0)
    from manyboost.persistence.container import unpack

    header, arrays = unpack(b"".join(to_parts(model, "all")))
    page = Path(__file__).parents[2].joinpath("docs", "model-format.md").read_text()
    for name in [*header, *arrays, "mean_importances", "steps", "value_000000"]:
        assert f"`{name}`" in page, name
