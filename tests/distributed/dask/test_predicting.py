"""Predictions for Dask collections are lazy, and those of one machine."""

import dask.array as da
import numpy as np
import pytest

from dask_problems import COMMON, N_ROWS, PARTITIONINGS
from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.distributed.dask import DaskManyBoostClassifier, DaskManyBoostRegressor


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
@pytest.mark.parametrize("targets", ["labels", "classes", "two classes"])
def test_predictions_are_lazy_and_know_their_shape(client, table, targets, method):
    X, Y, _ = table
    y = {
        "labels": (Y > 0).astype(int),
        "classes": np.array(["ant", "bee", "cat", "dog"])[Y.argmax(axis=1)],
        "two classes": (Y[:, 0] > 0).astype(np.int8),
    }[targets]
    local = ManyBoostClassifier(**COMMON).fit(X, y)
    model = DaskManyBoostClassifier(**COMMON)
    model._take(local)
    collection = da.from_array(X, chunks=(PARTITIONINGS["empty"], 5))
    predicted = getattr(model, method)(collection)
    expected = getattr(local, method)(X)
    assert isinstance(predicted, da.Array)
    assert predicted.shape == expected.shape
    assert predicted.dtype == expected.dtype
    assert predicted._meta.ndim == expected.ndim
    assert predicted.chunks[0] == PARTITIONINGS["empty"]
    np.testing.assert_array_equal(predicted.compute(), expected)
    # Slices compute what they need, from the shapes that were promised.
    np.testing.assert_array_equal(predicted[90:110].compute(), expected[90:110])


def test_columns_of_classes_have_lazy_predictions_but_no_lazy_list(client, table):
    X, Y, _ = table
    y = np.column_stack([Y.argmax(axis=1), Y[:, 0] > 0])
    local = ManyBoostClassifier(**COMMON).fit(X, y)
    model = DaskManyBoostClassifier(**COMMON)
    model._take(local)
    collection = da.from_array(X, chunks=(PARTITIONINGS["empty"], 5))
    for method in ("predict", "decision_function"):
        lazy, expected = getattr(model, method)(collection), getattr(local, method)(X)
        np.testing.assert_array_equal(lazy.compute(), expected)
    with pytest.raises(ValueError, match="is a list for several columns of classes"):
        model.predict_proba(collection)


def test_predictions_of_some_outputs_in_single_precision(client, table):
    X, Y, _ = table
    local = ManyBoostRegressor(**COMMON).fit(X, Y)
    model = DaskManyBoostRegressor(**COMMON)
    model._take(local)
    request = {"outputs": [2, 0], "dtype": np.float32}
    predicted = model.predict(da.from_array(X, chunks=(100, 5)), **request)
    assert predicted.shape == (N_ROWS, 2)
    assert predicted.dtype == np.float32
    np.testing.assert_array_equal(predicted.compute(), local.predict(X, **request))
    with pytest.raises(ValueError, match="outputs"):
        model.predict(da.from_array(X, chunks=(100, 5)), outputs=[4])


def test_quantiles_have_an_axis_of_their_own(client, table):
    X, Y, _ = table
    local = ManyBoostRegressor("quantile", quantile=[0.2, 0.8], **COMMON).fit(X, Y)
    model = DaskManyBoostRegressor("quantile", quantile=[0.2, 0.8], **COMMON)
    model._take(local)
    predicted = model.predict(da.from_array(X, chunks=(100, 5)))
    assert predicted.shape == (N_ROWS, 4, 2)
    np.testing.assert_array_equal(predicted.compute(), local.predict(X))


def test_predictions_for_arrays_are_arrays(client, table):
    X, Y, _ = table
    local = ManyBoostRegressor(**COMMON).fit(X, Y)
    model = DaskManyBoostRegressor(**COMMON)
    model._take(local)
    predicted = model.predict(X)
    assert isinstance(predicted, np.ndarray)
    np.testing.assert_array_equal(predicted, local.predict(X))
