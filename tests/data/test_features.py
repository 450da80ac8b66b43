"""What is read as features, and what is refused."""

import datetime
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor

from manyboost.data.features import resolve_categorical
from manyboost.data.hierarchy import Hierarchy
from manyboost.data.labels import Classes
from manyboost.data.weights import _from_dict
from refusals import refusal
from small_problems import CLASSES, LABELS, X, Y, classifier, missing, regressor, replaced


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("model", [regressor(), classifier()], ids=["regressor", "classifier"])
def test_the_shape_of_the_features(model):
    for bad, words in [
        (X[:, 0], "X has 1 dimension(s), it must have two"),
        (X[:, 0].tolist(), "X has 1 dimension(s), it must have two"),
        (X[None], "X has 3 dimension(s), it must have two"),
        (X[None], "with X.reshape(len(X), -1), which makes a feature of every value of a row"),
        (np.float64(3), "X is of the type float; pass an array or a frame of features."),
        ({"u": X[:, 0]}, "X is of the type dict; pass an array or a frame of features."),
        (map(list, X), "X is of the type map; pass an array or a frame of features."),
        ("X.csv", "X is of the type str; pass an array or a frame of features."),
        (X[:0], "X has no rows (shape (0, 3)); it needs at least one."),
        (X[:, :0], "X has 0 feature(s) (shape=(60, 0)) while a minimum of 1 is required."),
    ]:
        assert words in refusal(lambda bad=bad: model.fit(bad, LABELS))


@pytest.mark.parametrize("large", [np.inf, 1e39])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_infinite_and_huge_features_are_the_lowest_and_highest(form, large):
    extreme, finite = X.copy(), X.copy()
    extreme[::7, 1], finite[::7, 1] = large, 1e30
    extreme[1::7, 1], finite[1::7, 1] = -large, -1e30
    model, expected = (regressor().fit(form(each), Y) for each in (extreme, finite))
    np.testing.assert_array_equal(model.predict(form(extreme)), expected.predict(form(finite)))
    shap = model.shap_values(form(extreme))
    np.testing.assert_array_equal(shap, expected.shap_values(form(finite)))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_other_estimators_get_no_infinite_features(value):
    bad = replaced(X, (3, 1), value)
    expected = (
        "Column {} of X has an infinite value (inf) in row 3; replace it by a finite number, or "
        "by NaN if it is missing."
    )
    model = regressor(estimator=DecisionTreeRegressor(max_depth=2))
    assert refusal(lambda: model.fit(bad, Y)) == expected.format(1)
    named = pd.DataFrame(bad, columns=["u", "v", "w"])
    assert refusal(lambda: model.fit(named, Y)) == expected.format("'v'")
    model.fit(X, Y)
    assert refusal(lambda: model.predict(bad)) == expected.format(1)


def test_a_category_is_not_infinite():
    model = regressor(categorical_features=[1])
    sentence = refusal(lambda: model.fit(replaced(np.round(X), (3, 1), np.inf), Y))
    assert sentence.startswith("Column 1 has the category inf; number the categories from 0")


def day(i):
    return datetime.datetime(2024, 1, 1) + datetime.timedelta(days=i)


PANDAS_COLUMNS = {
    "text": ["x"] * 60,
    "string": pd.Series(["x"] * 60, dtype="string"),
    "objects": pd.Series(["x", 1] * 30, dtype=object),
    "times": pd.date_range("2024", periods=60),
    "time zone": pd.date_range("2024", periods=60, tz="UTC"),
    "spans": pd.timedelta_range("1D", periods=60),
    "periods": pd.period_range("2024", periods=60),
}

POLARS_COLUMNS = {
    "text": ["x"] * 60,
    "times": [day(i) for i in range(60)],
    "dates": [day(i).date() for i in range(60)],
    "clock": [day(i).time() for i in range(60)],
    "spans": [day(i) - day(0) for i in range(60)],
    "lists": [[1, 2]] * 60,
    "bytes": [b"x"] * 60,
}


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("frame", "values"),
    [
        *((pd.DataFrame, values) for values in PANDAS_COLUMNS.values()),
        *((pl.DataFrame, values) for values in POLARS_COLUMNS.values()),
    ],
    ids=[f"pandas {k}" for k in PANDAS_COLUMNS] + [f"polars {k}" for k in POLARS_COLUMNS],
)
def test_columns_that_are_not_numbers_are_named(frame, values):
    bad = frame({"fine": X[:, 0], "odd one": values})
    plain = {"categorical_features": None}
    for model, target in [(regressor(**plain), Y), (classifier(**plain), CLASSES)]:
        sentence = refusal(lambda model=model, target=target: model.fit(bad, target))
        assert sentence.startswith("Column 'odd one' of X holds ")
        assert ", not numbers; " in sentence
        assert sentence.endswith(" or drop it.")


def test_names_of_features_must_be_those_of_the_fit():
    named = pd.DataFrame(X, columns=["u", "v", "w"])
    model = regressor().fit(named, Y)
    with pytest.raises(ValueError, match="feature names should match") as caught:
        model.predict(named.rename(columns={"v": "x"}))
    assert "unseen at fit time:\n- x\n" in str(caught.value)
    assert "now missing:\n- v\n" in str(caught.value)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        model.predict(named[["v", "u", "w"]])
    with pytest.raises(ValueError, match="feature names should match"):
        regressor().fit(named, Y, X_val=named.rename(columns={"v": "x"}), Y_val=Y)


def test_columns_that_are_not_numbers_are_named_at_prediction():
    model = regressor().fit(pd.DataFrame(X, columns=["u", "v", "w"]), Y)
    bad = pd.DataFrame({"u": X[:, 0], "v": ["x"] * 60, "w": X[:, 2]})
    assert refusal(lambda: model.predict(bad)).startswith("Column 'v' of X holds ")


def test_no_features_at_all():
    words = "X is None; pass an array or a frame of features."
    assert refusal(lambda: regressor().fit(None, Y)) == words
    assert refusal(lambda: regressor().fit(X, Y).predict(None)) == words
    nothing = pd.DataFrame(index=range(60))
    assert "0 feature(s)" in refusal(lambda: regressor().fit(nothing, Y))
    expected = "y has no outputs (0 columns); it needs at least one."
    assert refusal(lambda: regressor().fit(X, nothing)) == expected
    assert refusal(lambda: classifier().fit(X, nothing)) == expected


def test_frames_with_sparse_columns():
    holes = missing(X, (3, 1))
    expected = regressor().fit(holes, Y).predict(holes)
    columns = {f"x{j}": holes[:, j] for j in range(3)}
    sparse_by_nan = pd.DataFrame({k: pd.arrays.SparseArray(v) for k, v in columns.items()})
    mixed = sparse_by_nan.assign(x0=columns["x0"])
    by_zero = pd.DataFrame(
        {k: pd.arrays.SparseArray(v, fill_value=0.0) for k, v in columns.items()}
    )
    for frame in [sparse_by_nan, mixed, by_zero]:
        assert np.array_equal(regressor().fit(frame, Y).predict(frame), expected)
    targets = pd.DataFrame({k: pd.arrays.SparseArray(v) for k, v in zip("uv", Y.T, strict=True)})
    assert np.array_equal(regressor().fit(X, targets).predict(X), regressor().fit(X, Y).predict(X))


def test_columns_of_objects_without_a_value_are_missing():
    holes = X.copy()
    holes[:, 1] = np.nan
    expected = regressor().fit(holes, Y).predict(holes)
    frame = pd.DataFrame(holes, columns=["u", "v", "w"])
    frame["v"] = pd.Series([None] * 60, dtype=object)
    assert np.array_equal(regressor().fit(frame, Y).predict(frame), expected)


class Counted(str):
    """A name that counts how often one is compared or turned into text."""

    count = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.count += 1
        return str.__eq__(self, other)

    def __str__(self):
        Counted.count += 1
        return str.__str__(self)


def test_names_are_found_in_time_that_grows_with_their_number():
    names = [Counted(j) for j in range(300)]
    labels, columns = np.array(names, object), np.empty((1, 300))
    for find in (
        lambda: resolve_categorical(columns, names, labels),
        lambda: Hierarchy.of(list(pairwise(names)), Classes("multilabel", labels, tuple(names))),
        lambda: _from_dict(dict.fromkeys(names, 2.0), names, "class_weight"),
    ):
        Counted.count = 0
        find()
        assert Counted.count <= 10 * len(names)
