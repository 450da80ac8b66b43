"""Tables with names are frames to the estimators, whatever is installed."""

import importlib

import numpy as np
import pytest
from scipy import sparse

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.data import frames
from manyboost.data.named import NamedColumn, NamedTable

TOWNS = ("Huy", "Ghent", "Spa")


@pytest.fixture
def numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)).astype(np.float32)
    X[:, 1] = rng.integers(3, size=120)
    X[5, 1] = X[7, 0] = np.nan
    return X


@pytest.fixture
def table(numbers):
    return NamedTable(["area", "town", "age"], numbers, {1: TOWNS})


@pytest.fixture
def outputs(numbers):
    effect = np.where(np.isnan(numbers[:, 1]), 0, numbers[:, 1] == 1)
    values = np.column_stack([effect, numbers[:, 2] + effect])
    return NamedTable(["heat", "cold"], values)


def town(code):
    return None if np.isnan(code) else TOWNS[int(code)]


def test_the_model_is_that_of_a_pandas_frame(numbers, table, outputs):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(numbers, columns=["area", "town", "age"])
    frame["town"] = pandas.Categorical([town(code) for code in numbers[:, 1]])
    ours = ManyBoostRegressor(max_iter=10, random_state=0).fit(table, outputs)
    theirs = ManyBoostRegressor(max_iter=10, random_state=0)
    theirs.fit(frame, pandas.DataFrame(outputs.values, columns=["heat", "cold"]))
    np.testing.assert_array_equal(ours.predict(table), theirs.predict(frame))
    # A model knows neither where it comes from.
    np.testing.assert_array_equal(ours.predict(frame), theirs.predict(table))
    assert ours.feature_names_in_.tolist() == theirs.feature_names_in_.tolist()
    assert ours.output_names_.tolist() == ["heat", "cold"]


def test_no_frame_library_is_needed(table, outputs, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(frames.importlib, "import_module", missing)
    with pytest.raises(ImportError):
        importlib.import_module("narwhals")
    model = ManyBoostRegressor(max_iter=5, random_state=0).fit(table, outputs)
    assert model._category_labels.of_column == {1: ("Ghent", "Huy", "Spa")}
    assert model.score(table, outputs.values) > 0.1


def test_codes_stand_for_labels_in_any_order(table, outputs):
    model = ManyBoostRegressor(max_iter=10, random_state=0).fit(table, outputs)
    order = [2, 0, 1]
    values = np.array(table.values)
    known = ~np.isnan(values[:, 1])
    values[known, 1] = np.argsort(order)[values[known, 1].astype(int)]
    again = NamedTable(table.columns, values, {1: tuple(TOWNS[k] for k in order)})
    np.testing.assert_array_equal(model.predict(again), model.predict(table))


def test_labels_that_fit_did_not_see_are_missing(table, outputs):
    model = ManyBoostRegressor(max_iter=10, random_state=0).fit(table, outputs)
    strange = NamedTable(table.columns, table.values, {1: ("Rome", "Oslo", "Bonn")})
    values = np.array(table.values)
    values[:, 1] = np.nan
    missing = NamedTable(table.columns, values, {1: TOWNS})
    np.testing.assert_array_equal(model.predict(strange), model.predict(missing))


def test_sparse_features_keep_their_names(outputs):
    X = sparse.random(120, 6, 0.3, format="csr", random_state=0, dtype=np.float32)
    named = ManyBoostRegressor(max_iter=5, random_state=0).fit(
        NamedTable([f"w{j}" for j in range(6)], X), outputs
    )
    plain = ManyBoostRegressor(max_iter=5, random_state=0).fit(X, outputs.values)
    assert named.feature_names_in_.tolist() == [f"w{j}" for j in range(6)]
    np.testing.assert_array_equal(
        named._raw_predict(NamedTable(named.feature_names_in_, X)), plain.predict(X)
    )


def test_what_classes_are_those_of_is_remembered(table, tmp_path):
    import manyboost

    y = NamedColumn("kind", np.array(["no", "yes", "so"] * 40, dtype=object))
    model = ManyBoostClassifier(max_iter=3, random_state=0).fit(table, y)
    model.save(tmp_path / "model.mb")
    again = manyboost.load(tmp_path / "model.mb")
    assert model.target_name_ == again.target_name_ == "kind"
    assert again.classes_.tolist() == ["no", "so", "yes"]
    assert not hasattr(model.fit(table, y.values), "target_name_")


@pytest.mark.parametrize(
    ("columns", "categories", "message"),
    [
        (["area", "twon", "age"], {1: TOWNS}, r"should be those of fit.*'town' for 'twon'"),
        (["town", "area", "age"], {0: TOWNS}, r"should be those of fit, in the same order"),
        (["area", "town", "age"], {}, r"Column 'town' of X holds numbers where text should"),
        (
            ["area", "town", "age"],
            {0: TOWNS, 1: TOWNS},
            r"Column 'area' of X holds text where numbers",
        ),
    ],
)
def test_other_columns_are_refused(table, outputs, columns, categories, message):
    model = ManyBoostRegressor(max_iter=2).fit(table, outputs)
    with pytest.raises(ValueError, match=message):
        model.predict(NamedTable(columns, table.values, categories))
