"""Ranks are started, watched and ended; a lost worker is an error or no loss at all."""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import threading
import time
import types

import dask.array as da
import numpy as np
import pytest

from dask_problems import (
    COMMON,
    N_WORKERS,
    PARTITIONINGS,
    assert_same_model,
    on_workers,
    wait_for_idle,
)
from distributed import Client, LocalCluster, Security, wait
from manyboost import ManyBoostRegressor
from manyboost.comm import Alone, CommError
from manyboost.distributed.dask import DaskManyBoostRegressor, ranks, running
from manyboost.distributed.dask.links import OPERATION, Links
from manyboost.distributed.dask.partitions import RowRange, Share
from manyboost.distributed.dask.running import Attempt, WorkersLost
from manyboost.training.callbacks import Watchers

#: Everything instead of a sample of it: minutes instead of seconds.
THOROUGH = bool(os.environ.get("MANYBOOST_THOROUGH"))


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


def connections(dask_worker):
    """Connections to other ranks that a worker has accepted and not closed."""
    return sum(op == OPERATION for op in dask_worker._comms.values())


def test_no_connection_outlives_a_fit(client, table):
    X, Y, _ = table
    dX, dY = on_workers(client, X, (60,) * 4), on_workers(client, Y, (60,) * 4)
    open_ones = []

    def look(state):
        open_ones.append(sum(client.run(connections).values()))
        if state.max_iter == 5:
            raise LookupError("in a callback")

    DaskManyBoostRegressor(**COMMON, callbacks=[look]).fit(dX, dY)
    with pytest.raises(LookupError):
        DaskManyBoostRegressor(**COMMON | {"max_iter": 5}, callbacks=[look]).fit(dX, dY)
    # Two for each of six pairs of ranks.
    assert set(open_ones) == {12}
    wait_for_idle(client)
    deadline = time.monotonic() + 30
    while any(client.run(connections).values()):
        assert time.monotonic() < deadline, "connections are left open"
        time.sleep(0.05)


def test_a_wire_that_is_late_delays_all_messages(table, monkeypatch):
    X, Y, _ = table
    accept = Links.accept_wire

    async def accept_late(self, comm, rank):
        await asyncio.sleep(0.3)
        await accept(self, comm, rank)

    monkeypatch.setattr(Links, "accept_wire", accept_late)
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            protocol="tcp://",
            dashboard_address=":0",
            silence_logs=50,
        ) as threads,
        Client(threads, set_as_default=False) as other,
    ):
        dX, dY = da.from_array(X, chunks=(120, 5)), da.from_array(Y, chunks=(120, 4))
        model = DaskManyBoostRegressor(**COMMON, client=other).fit(dX, dY)
    assert_same_model(model, ManyBoostRegressor(**COMMON).fit(X, Y))


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


def test_rounds_are_kept_for_a_restart_only_as_long_as_there_may_be_one(client, table):
    X, Y, _ = table

    def interrupt(state):
        if state.round == 3:
            raise KeyboardInterrupt

    dX, dY = on_workers(client, X, (60,) * 4), on_workers(client, Y, (60,) * 4)
    parameters = COMMON | {"max_iter": 10_000, "on_worker_loss": "restart"}
    with pytest.raises(KeyboardInterrupt):
        DaskManyBoostRegressor(**parameters, callbacks=[interrupt]).fit(dX, dY)
    wait_for_idle(client)
    deadline = time.monotonic() + 30
    while any(client.run(lambda: len(ranks._UNFINISHED)).values()):
        assert time.monotonic() < deadline, "rounds are left behind"
        time.sleep(0.05)


def test_rounds_that_get_lost_on_their_way_are_asked_for_again(client, table, monkeypatch):
    X, Y, _ = table
    rounds, calls, call = [], [], running._call

    async def lost(answer):
        if answer is not None:
            await asyncio.wrap_future(answer)
        return dict.fromkeys(client.scheduler_info()["workers"], OSError("lost"))

    def lose_some(client, function, *arguments, workers):
        if function is not ranks.next_states:
            return call(client, function, *arguments, workers=workers)
        calls.append(arguments)
        if len(calls) not in (2, 4):
            return call(client, function, *arguments, workers=workers)
        # One question does not arrive, and one answer does not come back.
        arrives = len(calls) == 2
        answer = call(client, function, *arguments, workers=workers) if arrives else None
        return asyncio.run_coroutine_threadsafe(lost(answer), client.loop.asyncio_loop)

    def stop_after_five(state):
        rounds.append(state.round)
        return state.round == 5

    monkeypatch.setattr(running, "_call", lose_some)
    dX, dY = on_workers(client, X, (60,) * 4), on_workers(client, Y, (60,) * 4)
    model = DaskManyBoostRegressor(**COMMON | {"max_iter": 10}, callbacks=[stop_after_five])
    assert model.fit(dX, dY).n_iter_ == 5
    assert rounds == [1, 2, 3, 4, 5]
    assert len(calls) == 8


def test_every_round_is_shown_once(client, table, capsys):
    X, Y, _ = table
    dX, dY = on_workers(client, X, (60,) * 4), on_workers(client, Y, (60,) * 4)
    DaskManyBoostRegressor(**COMMON, verbose=2).fit(dX, dY)
    shown = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in shown[:4]] == [f"round {m}/4" for m in (1, 2, 3, 4)]
    assert shown[4].startswith("4 rounds in ")
    assert len(shown) == 5


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


def test_without_any_worker_a_restart_gives_up(table, monkeypatch):
    monkeypatch.setattr(running, "_TOO_IDLE", 1.0)
    X, Y, _ = table
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=50,
        ) as doomed,
        Client(doomed, set_as_default=False) as other,
    ):

        def kill_all(state):
            if state.round == 3:
                for nanny in doomed.workers.values():
                    nanny.close_gracefully()  # it does not start another one
                    os.kill(nanny.pid, signal.SIGKILL)

        with other.as_current():
            dX, dY = recomputable(other, X, (120, 120)), recomputable(other, Y, (120, 120))
        model = DaskManyBoostRegressor(
            **COMMON | {"max_iter": 40},
            client=other,
            callbacks=[kill_all],
            on_worker_loss="restart",
        )
        without = "for 1 seconds the cluster had no worker that may do it; start workers"
        with pytest.raises(CommError, match=without):
            model.fit(dX, dY)
        assert not hasattr(model, "n_iter_")


def test_workers_that_are_lost_while_they_are_asked_keep_no_rounds(monkeypatch):
    there, asked = ["one", "three", "two"], []

    class Cluster:
        def nthreads(self, addresses):
            return dict.fromkeys(set(addresses) & set(there), 1)

    def lose_first(attempt, function, *arguments, workers):
        asked.append(workers)
        there.remove(workers[0])
        raise WorkersLost({workers[0]})

    monkeypatch.setattr(running, "_placed", lambda client, tables: (list(there), []))
    monkeypatch.setattr(Attempt, "_ask", lose_first)
    attempt = Attempt(Cluster(), "fit", "fit-0", [], Watchers([], None, None), restarts=True)
    assert attempt.unfinished() == {}
    assert asked == [["one", "three", "two"], ["three", "two"], ["two"]]
    assert attempt.unfinished() == {}
    assert len(asked) == 3


def test_a_rank_that_is_lost_in_the_first_exchange_leaves_kept_rounds_as_they_are(monkeypatch):
    X = np.arange(20.0)[:, None]
    kept = ManyBoostRegressor(max_iter=2, random_state=0).fit(X, X)

    class Lost(Alone):
        size = 2

        def gather(self, value):
            raise CommError("lost")

    class Seat:
        worker = types.SimpleNamespace(address="one", state=types.SimpleNamespace(nthreads=1))
        links = types.SimpleNamespace(abandoned=False)

        def tell(self, state):
            return False

    monkeypatch.setitem(ranks._UNFINISHED, ("one", "fit"), kept)
    order = ranks.RankOrder(
        "task", "fit", "fit-1", None, True, 0, True, [Share([RowRange(0, 0, 20)], {})]
    )
    with pytest.raises(CommError):
        ranks._fit(Seat(), Lost(), order, [{"X": [X], "y": [X]}], None)
    assert ranks._UNFINISHED["one", "fit"] is kept
    assert (kept.callbacks, kept.n_jobs) == (None, None)


def test_a_round_is_told_only_if_a_rank_is_left_that_knows_it(monkeypatch):
    class Cluster:
        def nthreads(self, addresses):
            return {}

    class Task:
        status = "lost"

    monkeypatch.setattr(running, "_placed", lambda client, tables: (["one"], []))
    attempt = Attempt(Cluster(), "fit", "fit-0", [], Watchers([], None, None), restarts=False)
    with pytest.raises(WorkersLost) as lost:
        attempt._end([Task()])
    assert str(lost.value.explained("wait")) == "Worker one was lost during training; wait."
