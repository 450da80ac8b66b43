"""One cluster for all tests of training on Dask workers."""

import dask
import dask.array as da
import numpy as np
import pytest

from dask_problems import COMMON, N_ROWS, N_WORKERS
from distributed import Client, LocalCluster
from manyboost.distributed.dask import DaskManyBoostRegressor


@pytest.fixture(scope="session")
def cluster():
    settings = {
        "distributed.worker.multiprocessing-method": "forkserver",
        "distributed.worker.daemon": True,
        "distributed.logging": {},
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=N_WORKERS,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit="1GB",
            silence_logs=50,
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        # A worker that a test has killed comes back.
        client.wait_for_workers(N_WORKERS)
        yield client


@pytest.fixture(scope="session")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 5))
    X[rng.random(X.shape) < 0.05] = np.nan
    Y = np.nan_to_num(X) @ rng.normal(size=(5, 4)) + rng.normal(size=(N_ROWS, 4))
    return X, Y, rng.exponential(size=N_ROWS)


@pytest.fixture(scope="session")
def fitted(cluster, table):
    X, Y, _ = table
    with Client(cluster, set_as_default=False) as client:
        return DaskManyBoostRegressor(**COMMON, client=client).fit(
            da.from_array(X, chunks=(60, 5)), da.from_array(Y, chunks=(60, 4))
        )
