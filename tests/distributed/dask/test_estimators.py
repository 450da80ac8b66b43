"""Estimators for Dask collections make the model of one machine, and refuse what they cannot do."""

import itertools
import os
import pickle
import subprocess
import sys

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

from dask_problems import (
    COMMON,
    N_ROWS,
    N_WORKERS,
    PARTITIONINGS,
    assert_same_model,
    on_workers,
)
from manyboost import ManyBoostClassifier, ManyBoostRegressor, load
from manyboost.distributed.dask import DaskManyBoostClassifier, DaskManyBoostRegressor

#: Everything instead of a sample of it: minutes instead of seconds.
THOROUGH = bool(os.environ.get("MANYBOOST_THOROUGH"))

STRATEGIES = ["independent", "multioutput", "project", "relabel"]

MODELS = {
    "squared_error": lambda s: (ManyBoostRegressor, {"strategy": s, "subsample": 0.8}),
    "absolute_error": lambda s: (
        ManyBoostRegressor,
        {"loss": "absolute_error", "strategy": s, "max_features": 0.5},
    ),
    "labels": lambda s: (ManyBoostClassifier, {"strategy": s}),
}
ON_DASK = {
    ManyBoostRegressor: DaskManyBoostRegressor,
    ManyBoostClassifier: DaskManyBoostClassifier,
}

ALL_CASES = list(itertools.product(MODELS, STRATEGIES, PARTITIONINGS, range(1, N_WORKERS + 1)))
# Of each loss and strategy two, so that all partitionings and numbers of workers are met.
CASES = ALL_CASES if THOROUGH else ALL_CASES[::7]


@pytest.mark.parametrize(("name", "strategy", "partitioning", "n_workers"), CASES)
def test_workers_and_partitions_do_not_change_the_model(
    client, table, name, strategy, partitioning, n_workers
):
    kind, parameters = MODELS[name](strategy)
    X, Y, weight = table
    Y = (Y > 1).astype(int) if name == "labels" else Y
    local = kind(**COMMON, **parameters).fit(X, Y, weight)
    chunks = PARTITIONINGS[partitioning]
    model = ON_DASK[kind](**COMMON, **parameters).fit(
        on_workers(client, X, chunks, n_workers),
        on_workers(client, Y, chunks, n_workers),
        on_workers(client, weight, (N_ROWS,), n_workers),
    )
    assert_same_model(model, local)


def test_validation_rows_stop_training_where_they_stop_it_on_one_machine(client, table):
    X, Y, weight = table
    parameters = COMMON | {"max_iter": 40, "learning_rate": 0.5, "n_iter_no_change": 3}
    parts = slice(0, 160), slice(160, None)
    local = ManyBoostRegressor(**parameters).fit(
        X[parts[0]],
        Y[parts[0]],
        X_val=X[parts[1]],
        Y_val=Y[parts[1]],
        sample_weight_val=weight[parts[1]],
    )
    assert local.n_iter_ < 40
    one = on_workers(client, X[parts[0]], (100, 60), 2), on_workers(client, Y[parts[0]], (160,), 2)
    # On other workers too, which then have no rows to train on.
    X_val, Y_val, weight_val = (
        on_workers(client, each[parts[1]], (20, 0, 30, 30), 4) for each in (X, Y, weight)
    )
    model = DaskManyBoostRegressor(**parameters).fit(
        *one, X_val=X_val, y_val=Y_val, sample_weight_val=weight_val
    )
    assert_same_model(model, local)
    np.testing.assert_array_equal(model.validation_score_, local.validation_score_)


def test_rows_are_set_apart_as_on_one_machine(client, table):
    X, Y, _ = table
    parameters = COMMON | {"early_stopping": True, "validation_fraction": 0.3}
    local = ManyBoostRegressor(**parameters).fit(X, Y)
    chunks = PARTITIONINGS["shuffled"]
    model = DaskManyBoostRegressor(**parameters).fit(
        on_workers(client, X, chunks), on_workers(client, Y, chunks)
    )
    assert_same_model(model, local)
    np.testing.assert_array_equal(model.validation_score_, local.validation_score_)


def test_a_warm_start_adds_the_rounds_that_were_missing(client, table):
    X, Y, _ = table
    dX, dY = on_workers(client, X, (100, 140)), on_workers(client, Y, (240,))
    local = ManyBoostRegressor(**COMMON | {"max_iter": 6}).fit(X, Y)
    model = DaskManyBoostRegressor(**COMMON, warm_start=True).fit(dX, dY)
    assert model.n_iter_ == 4
    assert_same_model(model.set_params(max_iter=6).fit(dX, dY), local)


def test_an_ordinary_estimator_comes_out(fitted, table, tmp_path):
    X, Y, _ = table
    local = fitted.to_local()
    assert type(local) is ManyBoostRegressor
    assert_same_model(local, ManyBoostRegressor(**COMMON).fit(X, Y))
    assert local.get_params() == ManyBoostRegressor(**COMMON).get_params()
    fitted.save(tmp_path / "model.mb")
    loaded = load(tmp_path / "model.mb")
    assert type(loaded) is ManyBoostRegressor
    np.testing.assert_array_equal(loaded.predict(X), local.predict(X))
    assert fitted.info() == local.info()
    ManyBoostRegressor(**COMMON).fit(X, Y).save(tmp_path / "local.mb")
    assert (tmp_path / "model.mb").read_bytes() == (tmp_path / "local.mb").read_bytes()


@pytest.mark.parametrize(
    ("kind", "local"),
    [
        (DaskManyBoostRegressor, ManyBoostRegressor),
        (DaskManyBoostClassifier, ManyBoostClassifier),
    ],
)
def test_parameters_are_those_of_one_machine_and_two_more(kind, local):
    own = kind().get_params()
    assert own == local().get_params() | {"client": None, "on_worker_loss": "raise"}
    changed = kind(max_iter=7, on_worker_loss="restart")
    assert (changed.max_iter, changed.on_worker_loss) == (7, "restart")
    assert repr(changed) == f"{kind.__name__}(max_iter=7, on_worker_loss='restart')"
    with pytest.raises(TypeError, match="no_such"):
        kind(no_such=1)
    assert "on_worker_loss" in kind.__doc__
    assert "max_leaf_nodes" in kind.__doc__


def test_clones_share_the_client_and_pickles_have_none(client, fitted):
    estimator = DaskManyBoostRegressor(client=client, max_iter=7)
    twin = clone(estimator)
    assert twin.client is client
    assert twin.max_iter == 7
    assert estimator.client is client
    copied = pickle.loads(pickle.dumps(fitted))
    assert copied.client is None
    assert_same_model(copied, fitted)
    assert fitted.client is not None


def test_the_client_is_the_given_or_the_current_one(client, fitted):
    assert fitted.client_ is fitted.client
    assert clone(fitted).set_params(client=None)._take(fitted) is None
    current = DaskManyBoostRegressor()
    current._take(fitted)
    assert current.client_ is client


def test_refusals_are_sentences(client, table):
    X, Y, _ = table
    dX, dY = da.from_array(X, chunks=(60, 5)), da.from_array(Y, chunks=(60, 4))
    model = DaskManyBoostRegressor(**COMMON)
    with pytest.raises(TypeError, match=r"X is a numpy\.ndarray, but must be a Dask array"):
        model.fit(X, dY)
    with pytest.raises(TypeError, match=r"y is a numpy\.ndarray"):
        model.fit(dX, Y)
    with pytest.raises(ValueError, match="X has 240 rows but y has 180"):
        model.fit(dX, dY[:180])
    with pytest.raises(ValueError, match="X has 1 dimensions, but must have 2"):
        model.fit(dX[:, 0], dY)
    with pytest.raises(ValueError, match="X_val was given without Y_val"):
        model.fit(dX, dY, X_val=dX)
    with pytest.raises(ValueError, match="on_worker_loss='panic' is not allowed"):
        DaskManyBoostRegressor(on_worker_loss="panic").fit(dX, dY)
    with pytest.raises(ValueError, match="client='here' is not allowed"):
        DaskManyBoostRegressor(client="here").fit(dX, dY)
    sparse = da.from_array(X, chunks=(60, 2)).map_blocks(scipy.sparse.csr_matrix)
    with pytest.raises(ValueError, match="X has sparse chunks, 3 beside each other"):
        model.fit(sparse, dY)
    with pytest.raises(ValueError, match="checkpoint='run' would be written by workers"):
        DaskManyBoostRegressor(checkpoint="run").fit(dX, dY)
    with pytest.raises(ValueError, match="X has no rows"):
        model.fit(dX[:0], dY[:0])
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    targets = dd.from_pandas(pd.DataFrame(Y), npartitions=4)
    with pytest.raises(ValueError, match="y has other partitions than X"):
        model.fit(frame, targets)
    assert not hasattr(model, "n_iter_")


def test_what_cannot_be_done_with_collections_is_said(client, fitted, table):
    X, _, _ = table
    dX = da.from_array(X, chunks=(60, 5))
    with pytest.raises(ValueError, match="X has 3 features, but the model was fitted to 5"):
        fitted.predict(dX[:, :3])
    with pytest.raises(ValueError, match="An offset was passed"):
        fitted.predict(dX, offset=np.zeros(len(X)))
    framed = clone(fitted)
    framed._take(fitted)
    with pytest.raises(ValueError, match="set_output asks for frames"):
        framed.set_output(predict="pandas").predict(dX)


def test_what_looks_at_rows_one_by_one_takes_no_collections(client, fitted, table):
    X, Y, _ = table
    dX, dY = da.from_array(X, chunks=(60, 5)), da.from_array(Y, chunks=(60, 4))
    for call in (
        lambda: fitted.score(dX, dY),
        lambda: next(fitted.staged_predict(dX)),
        lambda: fitted.shap_values(dX),
    ):
        with pytest.raises(TypeError, match=r"X is a Dask collection, .* such as X\.compute\(\)"):
            call()
    assert fitted.score(X, Y) == fitted.to_local().score(X, Y)


def test_packages_that_are_missing_are_named():
    code = "import sys; sys.modules['distributed'] = None; import manyboost.distributed.dask"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert last.endswith("pip install 'manyboost[dask]'.")
