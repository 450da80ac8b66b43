"""skops, and MLflow with its skops format, restore estimators that name one type to trust."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor

TYPES = {
    each: f"{each.__module__}.{each.__qualname__}"
    for each in (ManyBoostRegressor, ManyBoostClassifier)
}
COMMON = {"max_iter": 3, "max_leaf_nodes": 4, "random_state": 0}


def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    return X, X @ rng.normal(size=(4, 3))


def models():
    X, Y = rows()
    for strategy in ("independent", "multioutput", "project", "relabel"):
        yield ManyBoostRegressor(strategy=strategy, **COMMON).fit(X, Y)
        yield ManyBoostClassifier(strategy=strategy, **COMMON).fit(X, Y > 0)
    yield ManyBoostRegressor("quantile", quantile=[0.1, 0.9], **COMMON).fit(X, Y[:, 0])
    yield ManyBoostRegressor(["huber", "huber", "squared_error"], **COMMON).fit(X, Y)
    yield ManyBoostClassifier(**COMMON).fit(X, np.array(["a", "b", "c"])[Y.argmax(axis=1)])
    yield ManyBoostClassifier(**COMMON, class_weight="balanced").fit(X, Y[:, 0] > 1)
    random_state = np.random.RandomState(0)
    yield ManyBoostRegressor(**COMMON | {"random_state": random_state}).fit(X, Y)
    yield ManyBoostRegressor(early_stopping="per_output", **COMMON).fit(X, Y)


def assert_same(again, model):
    X, _ = rows()
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    kept, given = again.get_params(), model.get_params()
    assert type(kept.pop("random_state")) is type(given.pop("random_state"))
    assert repr(kept) == repr(given)
    names = {name for name in vars(model) if name != "_class_weights"}
    assert names == set(vars(again))
    for name in names:
        if name.endswith("_"):
            np.testing.assert_equal(getattr(again, name), getattr(model, name))


@pytest.mark.parametrize("model", list(models()), ids=lambda model: type(model).__name__)
def test_skops_trusts_the_estimator_alone(model):
    data = skops.io.dumps(model)
    untrusted = skops.io.get_untrusted_types(data=data)
    assert TYPES[type(model)] in untrusted
    assert not [each for each in untrusted if "manyboost" in each and each != TYPES[type(model)]]
    assert_same(skops.io.loads(data, trusted=untrusted), model)
    assert_same(pickle.loads(pickle.dumps(model)), model)


def test_a_pipeline_goes_through_skops():
    X, Y = rows()
    model = make_pipeline(StandardScaler(), ManyBoostRegressor(**COMMON)).fit(X, Y)
    again = skops.io.loads(skops.io.dumps(model), trusted=[TYPES[ManyBoostRegressor]])
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_an_unfitted_estimator_goes_through_skops():
    data = skops.io.dumps(ManyBoostRegressor(max_iter=7))
    assert skops.io.loads(data, trusted=[TYPES[ManyBoostRegressor]]).max_iter == 7


def test_a_damaged_model_is_refused():
    X, Y = rows()
    state = ManyBoostRegressor(**COMMON).fit(X, Y).__getstate__()
    (name,) = [name for name, value in state.items() if isinstance(value, bytes)]
    damaged = bytearray(state[name])
    damaged[-100] ^= 1
    with pytest.raises(ValueError, match="checksum"):
        ManyBoostRegressor().__setstate__(state | {name: bytes(damaged)})


# MLflow warns about type hints of its own.
@pytest.mark.filterwarnings("ignore")
def test_mlflow_stores_models_with_skops(tmp_path):
    mlflow = pytest.importorskip("mlflow.sklearn", reason="mlflow is large and optional")
    X, Y = rows()
    model = ManyBoostRegressor(**COMMON).fit(X, Y)
    trusted = [TYPES[ManyBoostRegressor]]
    mlflow.save_model(
        model,
        tmp_path / "model",
        serialization_format="skops",
        skops_trusted_types=trusted,
        pip_requirements=["manyboost"],
    )
    again = mlflow.load_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


# ---------------------------------------------------------------------- pickles and copies


class Square(Loss):
    def value(self, y, raw):
        return (y - raw) ** 2

    def gradient(self, y, raw):
        return 2 * (raw - y)


class Own(ManyBoostRegressor):
    pass


def some_projection(n_components, n_outputs, rng):
    return rng.normal(size=(n_components, n_outputs))


def test_pickles_keep_what_a_model_file_leaves_out():
    X, Y = rows()
    model = ManyBoostRegressor(Square(), projection=some_projection, **COMMON).fit(X, Y)
    model.note = "mine"
    again = pickle.loads(pickle.dumps(model))
    assert type(again._fitted_loss.custom) is Square
    assert again.projection_ is some_projection
    assert again.note == "mine"
    own = pickle.loads(pickle.dumps(Own(**COMMON).fit(X, Y)))
    assert type(own) is Own
    settings = ManyBoostRegressor(**COMMON).set_output(predict="pandas").fit(X, Y)
    settings.set_fit_request = "kept"
    again = pickle.loads(pickle.dumps(settings))
    assert isinstance(again.predict(X), pd.DataFrame)
    assert again.set_fit_request == "kept"


def test_a_pickled_model_continues():
    X, Y = rows()
    model = ManyBoostRegressor(warm_start=True, **COMMON).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    for each in (model, again):
        each.set_params(max_iter=6).fit(X, Y)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_copies_share_trees_and_deep_copies_do_not():
    X, Y = rows()
    model = ManyBoostRegressor(**COMMON).fit(X, Y)
    assert copy.copy(model)._progress is model._progress
    deep = copy.deepcopy(model)
    assert deep._progress is not model._progress
    assert_same(deep, model)
