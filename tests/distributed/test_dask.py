"""Dask workers make the model of one machine, and a lost worker is no riddle."""

import itertools
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

from distributed import Client, LocalCluster, Security, wait
from manyboost import ManyBoostClassifier, ManyBoostRegressor, load
from manyboost.comm import CommError
from manyboost.distributed.dask import DaskManyBoostClassifier, DaskManyBoostRegressor

#: Everything instead of a sample of it: minutes instead of seconds.
THOROUGH = bool(os.environ.get("MANYBOOST_THOROUGH"))

STRATEGIES = ["independent", "multioutput", "project", "relabel"]
N_WORKERS = 4
N_ROWS = 240

#: Chunk sizes of 240 rows: even, two, one, with empty ones, shuffled.
PARTITIONINGS = {
    "even": (60, 60, 60, 60),
    "two": (200, 40),
    "many": (24,) * 10,
    "empty": (100, 0, 70, 70, 0),
    "shuffled": (31, 7, 90, 1, 64, 2, 45),
}


@pytest.fixture(scope="module")
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


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 5))
    X[rng.random(X.shape) < 0.05] = np.nan
    Y = np.nan_to_num(X) @ rng.normal(size=(5, 4)) + rng.normal(size=(N_ROWS, 4))
    return X, Y, rng.exponential(size=N_ROWS)


COMMON = {"max_iter": 4, "max_leaf_nodes": 6, "min_samples_leaf": 5, "random_state": 3}


def model_bytes(model):
    return model._progress.model.to_bytes() + model.baseline_.tobytes()


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


# The same model ---------------------------------------------------------------------------------

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
        *one, X_val=X_val, Y_val=Y_val, sample_weight_val=weight_val
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


def test_workers_with_several_threads_use_them_and_make_the_same_model(client, table):
    X, Y, _ = table
    local = ManyBoostRegressor(**COMMON).fit(X, Y)
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=2,
            processes=False,
            dashboard_address=":0",
            silence_logs=50,
        ) as threads,
        Client(threads, set_as_default=False) as other,
    ):
        model = DaskManyBoostRegressor(**COMMON, client=other).fit(
            da.from_array(X, chunks=(60, 5)), da.from_array(Y, chunks=(60, 4))
        )
    assert_same_model(model, local)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl for a certificate")
def test_ranks_talk_over_tls_where_the_cluster_does(client, table, tmp_path):
    X, Y, _ = table
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    command = [*request, "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    security = Security(
        require_encryption=True,
        tls_ca_file=certificate,
        **{
            f"tls_{role}_{part}": path
            for role in ("client", "scheduler", "worker")
            for part, path in (("key", key), ("cert", certificate))
        },
    )
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            protocol="tls://",
            security=security,
            dashboard_address=":0",
            silence_logs=50,
        ) as encrypted,
        Client(encrypted, set_as_default=False, security=security) as other,
    ):
        assert all(address.startswith("tls://") for address in other.nthreads())
        dX, dY = da.from_array(X, chunks=(120, 5)), da.from_array(Y, chunks=(120, 4))
        with other.as_current():
            dX, dY = dX.persist(), dY.persist()
        model = DaskManyBoostRegressor(**COMMON, client=other).fit(dX, dY)
        assert model._exchanged[0] > 0
    assert_same_model(model, ManyBoostRegressor(**COMMON).fit(X, Y))


# Predictions ------------------------------------------------------------------------------------


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


# Estimators -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted(cluster, table):
    X, Y, _ = table
    with Client(cluster, set_as_default=False) as client:
        return DaskManyBoostRegressor(**COMMON, client=client).fit(
            da.from_array(X, chunks=(60, 5)), da.from_array(Y, chunks=(60, 4))
        )


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


# Refusals ---------------------------------------------------------------------------------------


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


def test_errors_in_the_data_of_one_worker_reach_the_user(client, table):
    X, Y, _ = table
    Y = Y.copy()
    Y[150, 2] = np.inf
    dX, dY = on_workers(client, X, (60,) * 4), on_workers(client, Y, (60,) * 4)
    model = DaskManyBoostRegressor(**COMMON)
    wrong = r"y has an infinite value .* in row 150, output 2 \(row 30 of partition 2\); drop"
    with pytest.raises(ValueError, match=wrong):
        model.fit(dX, dY)
    assert not hasattr(model, "n_iter_")


def test_errors_of_the_graph_reach_the_user(client, table):
    X, Y, _ = table

    def broken(block):
        raise ZeroDivisionError("in a chunk")

    dX = da.from_array(X, chunks=(60, 5)).map_blocks(broken, meta=np.empty((0, 0)))
    with pytest.raises(ZeroDivisionError, match="in a chunk"):
        DaskManyBoostRegressor(**COMMON).fit(dX, da.from_array(Y, chunks=(60, 4)))


# Callbacks --------------------------------------------------------------------------------------


def test_callbacks_are_called_here_and_stop_training(client, table):
    X, Y, _ = table
    rounds, threads = [], set()

    def stop_after_three(state):
        rounds.append((state.round, state.max_iter, state.train_score))
        threads.add(threading.current_thread())
        return state.round == 3

    dX, dY = on_workers(client, X, (60,) * 4), on_workers(client, Y, (60,) * 4)
    model = DaskManyBoostRegressor(**COMMON | {"max_iter": 10}, callbacks=[stop_after_three])
    model.fit(dX, dY)
    assert [each[0] for each in rounds] == [1, 2, 3]
    assert threads == {threading.current_thread()}
    assert model.n_iter_ == 3
    np.testing.assert_array_equal([each[2] for each in rounds], model.train_score_[1:])
    assert_same_model(model, ManyBoostRegressor(**COMMON | {"max_iter": 3}).fit(X, Y))


def test_an_error_in_a_callback_ends_all_ranks(client, table):
    X, Y, _ = table

    def broken(state):
        raise LookupError("in a callback")

    dX, dY = on_workers(client, X, (60,) * 4), on_workers(client, Y, (60,) * 4)
    model = DaskManyBoostRegressor(**COMMON | {"max_iter": 10_000}, callbacks=[broken])
    with pytest.raises(LookupError, match="in a callback"):
        model.fit(dX, dY)
    assert not hasattr(model, "n_iter_")
    wait_for_idle(client)


def test_an_interrupt_ends_all_ranks(client, table):
    X, Y, _ = table

    def interrupt(state):
        if state.round == 3:
            raise KeyboardInterrupt

    dX, dY = on_workers(client, X, (60,) * 4), on_workers(client, Y, (60,) * 4)
    with pytest.raises(KeyboardInterrupt):
        DaskManyBoostRegressor(**COMMON | {"max_iter": 10_000}, callbacks=[interrupt]).fit(dX, dY)
    wait_for_idle(client)


def test_every_round_is_shown_once(client, table, capsys):
    X, Y, _ = table
    dX, dY = on_workers(client, X, (60,) * 4), on_workers(client, Y, (60,) * 4)
    DaskManyBoostRegressor(**COMMON, verbose=2).fit(dX, dY)
    shown = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in shown[:4]] == [f"round {m}/4" for m in (1, 2, 3, 4)]
    assert shown[4].startswith("4 rounds in ")
    assert len(shown) == 5


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


# Sharing a cluster ------------------------------------------------------------------------------


def test_two_fits_at_once_do_not_mix(client, table):
    X, Y, _ = table
    dX, dY = on_workers(client, X, (60,) * 4), on_workers(client, Y, (60,) * 4)
    models = [DaskManyBoostRegressor(**COMMON | {"random_state": seed}) for seed in (1, 2, 3)]
    threads = [threading.Thread(target=model.fit, args=(dX, dY)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, model in zip((1, 2, 3), models, strict=True):
        assert_same_model(model, ManyBoostRegressor(**COMMON | {"random_state": seed}).fit(X, Y))


def test_a_busy_cluster_is_waited_for(client, table):
    X, Y, _ = table
    dX, dY = on_workers(client, X, (60,) * 4), on_workers(client, Y, (60,) * 4)
    busy = [client.submit(time.sleep, 1, pure=False) for _ in range(2)]
    model = DaskManyBoostRegressor(**COMMON).fit(dX, dY)
    assert_same_model(model, ManyBoostRegressor(**COMMON).fit(X, Y))
    client.gather(busy)


def test_tasks_may_train(client, table):
    X, Y, _ = table

    def task():
        dX, dY = da.from_array(X, chunks=(60, 5)), da.from_array(Y, chunks=(60, 4))
        return DaskManyBoostRegressor(**COMMON).fit(dX, dY).to_local()

    # As many as there are places: each gives its own to the tasks that it needs.
    models = client.gather([client.submit(task, pure=False) for _ in range(N_WORKERS)])
    for model in models:
        assert_same_model(model, ManyBoostRegressor(**COMMON).fit(X, Y))


# Lost workers -----------------------------------------------------------------------------------


def kill_in_round(client, number, victim, delay, rounds):
    """A callback that kills a worker in or after a round, and notes the rounds."""
    pids = client.run(os.getpid)

    def callback(state):
        rounds.append(state.round)
        if state.round == number and victim in pids:
            pid = pids.pop(victim)
            threading.Timer(delay, os.kill, (pid, signal.SIGKILL)).start()

    return callback


def recomputable(client, array, chunks):
    """A collection that Dask can compute again, as its graph is on the scheduler."""
    wait(collection := da.from_array(array, chunks=(chunks, *array.shape[1:])).persist())
    return collection


N_KILLS = 30 if THOROUGH else 3


@pytest.mark.parametrize("seed", range(N_KILLS))
def test_a_lost_worker_is_an_error_or_no_loss_at_all(client, table, seed):
    draw = random.Random(seed)
    X, Y, _ = table
    chunks = PARTITIONINGS["many"]
    dX, dY = recomputable(client, X, chunks), recomputable(client, Y, chunks)
    holders = sorted({each for every in client.who_has(dX).values() for each in every})
    victim = draw.choice(holders)
    rounds = []
    kill = kill_in_round(client, draw.randint(1, 20), victim, draw.uniform(0, 0.02), rounds)
    parameters = COMMON | {"max_iter": 40}
    restarts = seed % 3 != 0
    model = DaskManyBoostRegressor(
        **parameters, callbacks=[kill], on_worker_loss="restart" if restarts else "raise"
    )
    if restarts:
        assert_same_model(model.fit(dX, dY), ManyBoostRegressor(**parameters).fit(X, Y))
        # Training went on where it was: only the round that was lost is made again.
        assert rounds == sorted(rounds)
        assert len(rounds) <= 41
    else:
        with pytest.raises(CommError, match=rf"Worker {victim} was lost in round \d+ of training"):
            model.fit(dX, dY)
        assert not hasattr(model, "n_iter_")
    wait_for_idle(client)
