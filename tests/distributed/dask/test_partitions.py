"""Collections of any kind and partitioning give the model of one machine."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from dask_problems import COMMON, PARTITIONINGS, assert_same_model, on_workers
from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.distributed.dask import DaskManyBoostClassifier, DaskManyBoostRegressor


def test_classes_are_those_of_all_partitions(client, table):
    X, Y, _ = table
    # Sorted: no partition has all classes.
    y = np.sort(np.array(["ant", "bee", "cat"])[Y[:, :3].argmax(axis=1)])
    local = ManyBoostClassifier(**COMMON).fit(X, y)
    chunks = PARTITIONINGS["shuffled"]
    model = DaskManyBoostClassifier(**COMMON).fit(
        on_workers(client, X, chunks), on_workers(client, y, chunks)
    )
    assert_same_model(model, local)
    assert model.classes_.tolist() == ["ant", "bee", "cat"]


def test_chunks_may_be_sparse(client, table):
    X, Y, _ = table
    X = np.where(np.nan_to_num(X) > 0.8, X, 0.0)
    dense = da.from_array(X, chunks=(PARTITIONINGS["empty"], X.shape[1]))
    sparse = dense.map_blocks(scipy.sparse.csr_matrix)
    local = ManyBoostRegressor(**COMMON).fit(scipy.sparse.csr_matrix(X), Y)
    model = DaskManyBoostRegressor(**COMMON).fit(sparse, da.from_array(Y, chunks=(50, 4)))
    assert_same_model(model, local)
    predicted = model.predict(sparse)
    assert predicted.chunks == (PARTITIONINGS["empty"], (4,))
    np.testing.assert_array_equal(predicted.compute(), local.predict(X))


def test_masked_values_of_chunks_are_missing(client, table):
    X, Y, _ = table
    masked = da.from_array(np.nan_to_num(X), chunks=(24, 5))
    masked = da.ma.masked_greater(masked, 1.0)
    local = ManyBoostRegressor(**COMMON).fit(masked.compute(), Y)
    model = DaskManyBoostRegressor(**COMMON).fit(masked, da.from_array(Y, chunks=(24, 4)))
    assert_same_model(model, local)


def test_sizes_of_chunks_may_be_unknown(client, table):
    X, Y, weight = table
    keep = np.nan_to_num(X[:, 0]) > -0.5
    collection = da.from_array(np.column_stack([X, Y, weight, keep]), chunks=(37, 11))
    kept = collection[collection[:, -1] > 0]
    local = ManyBoostRegressor(**COMMON).fit(X[keep], Y[keep], weight[keep])
    model = DaskManyBoostRegressor(**COMMON).fit(kept[:, :5], kept[:, 5:9], kept[:, 9])
    assert_same_model(model, local)
    # Known targets follow unknown features.
    known = da.from_array(Y[keep], chunks=(50, 4))
    again = DaskManyBoostRegressor(**COMMON).fit(kept[:, :5], known, kept[:, 9])
    assert_same_model(again, local)
    predicted = model.predict(kept[:, :5])
    assert np.isnan(predicted.shape[0])
    np.testing.assert_array_equal(predicted.compute(), local.predict(X[keep]))


def test_columns_may_be_in_several_chunks(client, table):
    X, Y, _ = table
    local = ManyBoostRegressor(**COMMON).fit(X, Y)
    model = DaskManyBoostRegressor(**COMMON).fit(
        da.from_array(X, chunks=(70, 2)), da.from_array(Y, chunks=(60, 3))
    )
    assert_same_model(model, local)
    np.testing.assert_array_equal(
        model.predict(da.from_array(X, chunks=(70, 2))).compute(), local.predict(X)
    )


def frames(table):
    X, Y, weight = table
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["kind"] = pd.Categorical(
        np.where(Y[:, 0] > 1, "high", np.where(Y[:, 1] > 0, "low", "no"))
    )
    return frame, pd.DataFrame(Y, columns=["w", "x", "y", "z"]), pd.Series(weight, name="weight")


def test_data_frames_may_have_columns_of_any_names(client, table):
    frame = pd.DataFrame(table[0][:, :3], columns=["chunks", "rechunk", "numblocks"])
    targets = pd.DataFrame(table[1][:, :2], columns=["chunks", "rechunk"])
    X, Y = dd.from_pandas(frame, npartitions=3), dd.from_pandas(targets, npartitions=3)
    assert_same_model(
        DaskManyBoostRegressor(**COMMON).fit(X, Y), ManyBoostRegressor(**COMMON).fit(frame, targets)
    )
    with pytest.raises(ValueError, match="those of a data frame cannot be split by rows"):
        DaskManyBoostRegressor(**COMMON).fit(X, dd.from_pandas(targets, npartitions=2))


def test_data_frames_keep_names_and_categories(client, table):
    frame, targets, weight = frames(table)
    local = ManyBoostRegressor(**COMMON).fit(frame, targets, weight)
    whole = dd.from_pandas(frame.assign(**targets, weight=weight), npartitions=5)
    model = DaskManyBoostRegressor(**COMMON).fit(
        whole[list(frame)], whole[list(targets)], whole["weight"]
    )
    assert_same_model(model, local)
    assert model.feature_names_in_.tolist() == list(frame)
    assert model.output_names_.tolist() == list(targets)
    predicted = model.predict(whole[list(frame)])
    assert isinstance(predicted, da.Array)
    assert predicted.ndim == 2
    assert predicted.shape[1] == 4
    assert predicted.dtype == np.float64
    np.testing.assert_array_equal(predicted.compute(), local.predict(frame))
