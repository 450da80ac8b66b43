"""Rows, chunks and comparisons for tests of training on Dask workers."""

import time

import dask.array as da
import numpy as np

from distributed import wait

N_WORKERS = 4
N_ROWS = 240

#: Chunk sizes of 240 rows.
PARTITIONINGS = {
    "even": (60, 60, 60, 60),
    "two": (200, 40),
    "many": (24,) * 10,
    "empty": (100, 0, 70, 70, 0),
    "shuffled": (31, 7, 90, 1, 64, 2, 45),
}

COMMON = {"max_iter": 4, "max_leaf_nodes": 6, "min_samples_leaf": 5, "random_state": 3}


def model_bytes(model):
    return model._progress.model.trees.to_bytes() + model.baseline_.tobytes()


def assert_same_model(model, local):
    assert model_bytes(model) == model_bytes(local)
    np.testing.assert_array_equal(model.train_score_, local.train_score_)
    np.testing.assert_array_equal(model.feature_importances_, local.feature_importances_)
    assert model.n_iter_ == local.n_iter_


def on_workers(client, array, chunks, n_workers=N_WORKERS):
    """A Dask array with these chunks of rows, on so many workers."""
    collection = da.from_array(array, chunks=(chunks, *array.shape[1:]))
    workers = sorted(client.nthreads())[:n_workers]
    collection = client.persist(collection, workers=workers, allow_other_workers=False)
    wait(collection)
    return collection


def seats():
    """Ranks that have not left a worker."""
    from manyboost.distributed.dask import ranks

    return len(ranks._SEATS)


def wait_for_idle(client):
    """Wait until no rank is left anywhere."""
    deadline = time.monotonic() + 30
    while any(client.run(seats).values()):
        assert time.monotonic() < deadline, "ranks are left behind"
        time.sleep(0.05)
