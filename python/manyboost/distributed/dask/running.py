"""The client's side of a fit: it starts ranks, watches them and, if one is lost, starts again."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import queue
import time
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import distributed
from manyboost import _core
from manyboost.comm import CommError
from manyboost.distributed.dask import ranks
from manyboost.distributed.dask.links import WorkerLost
from manyboost.distributed.dask.partitions import Partitions, Share, assign, without_rows
from manyboost.training.callbacks import RoundState, Watchers

# Seconds between two checks that all workers are there.
_CHECK = 0.5
# Seconds that the other ranks have to end after one has failed.
_GRACE = 1.0
# Seconds after which a worker that is too busy to begin is named, and after which the fit gives up.
_BUSY, _TOO_BUSY = 30.0, 600.0
# Seconds in which a cluster that can compute nothing may get workers.
_TOO_IDLE = 600.0
# How often training starts again without another complete round.
_ATTEMPTS_IN_VAIN = 3


class WorkersLost(Exception):
    """Workers were lost while a fit needed them."""

    def __init__(self, addresses: set[str], round: int | None = 0) -> None:
        super().__init__(addresses, round)
        self.addresses, self.round = sorted(addresses), round

    def explained(self, remedy: str) -> CommError:
        """Return the error that the user sees."""
        who = f"Worker {self.addresses[0]} was"
        if len(self.addresses) > 1:
            who = f"Workers {', '.join(self.addresses)} were"
        when = f"in round {self.round} of" if self.round else "before the first round of"
        if self.round is None:  # nobody is left who knows
            when = "during"
        return CommError(f"{who} lost {when} training; {remedy}.")


def fit(
    client: Any,
    estimator: Any,
    model: Any,
    tables: list[Partitions],
    watchers: Watchers,
    *,
    restarts: bool,
) -> ranks.RankResult:
    """Train an estimator, or continue a fitted model; return what rank 0 ends with.

    The first table holds training rows, the second validation rows. ``restarts`` says whether to go
    on with the other workers if some are lost.
    """
    name = uuid.uuid4().hex
    unfinished: dict[str, int] = {}
    n_rounds = in_vain = number = 0
    used: set[str] = set()  # workers that may keep rounds
    try:
        while True:
            attempt = Attempt(client, name, f"{name}-{number}", tables, watchers, restarts)
            used.update(attempt.addresses)
            try:
                result = attempt.run(estimator, model, unfinished)
            except WorkersLost as loss:
                used.difference_update(loss.addresses)
                if not restarts:
                    remedy = "fit again, or use on_worker_loss='restart' to go on without it"
                    raise loss.explained(remedy) from None
                unfinished = attempt.unfinished()
                best = max(unfinished.values(), default=0)
                in_vain = 0 if best > n_rounds else in_vain + 1
                n_rounds = max(best, n_rounds)
                if in_vain > _ATTEMPTS_IN_VAIN:
                    remedy = "workers are lost again and again, look for the cause"
                    raise loss.explained(remedy) from None
            else:
                if not number:
                    used.clear()
                return result
            number += 1
    finally:
        if restarts and used:
            _call(client, ranks.forget, name, workers=sorted(used))


def _call(
    client: Any, function: Callable[..., Any], *arguments: Any, workers: list[str]
) -> concurrent.futures.Future[dict[str, Any]]:
    """Begin to call a function on workers; the exceptions of workers are among the answers."""

    async def call() -> Any:
        return await client.run(function, *arguments, workers=workers, on_error="return")

    return asyncio.run_coroutine_threadsafe(call(), client.loop.asyncio_loop)


def _placed(client: Any, tables: list[Partitions]) -> tuple[list[str], list[dict[str, list[int]]]]:
    """Wait for all partitions, and choose a worker for each."""
    columns = (column for table in tables for column in table.columns.values())
    futures = [future for column in columns for future in column]
    while True:
        _await_computed(client, futures)
        for future in futures:
            if future.status == "error":
                future.result()  # raises it
            if future.status in ("cancelled", "lost"):
                raise CommError(
                    f"The partition {future.key!r} was lost with its worker and cannot be computed "
                    "again; load the data again, in collections that Dask can compute."
                )
        with contextlib.suppress(LookupError):
            return assign(client, tables)


def _await_computed(client: Any, futures: list[Any]) -> None:
    """Wait until futures are done; give up if no worker is left that could compute them."""
    last_busy = time.monotonic()
    while True:
        with contextlib.suppress(distributed.TimeoutError):
            distributed.wait(futures, timeout=_CHECK)
            return
        now = time.monotonic()
        if any(client.processing().values()):
            last_busy = now
        elif now - last_busy > _TOO_IDLE:
            key = next(future.key for future in futures if not future.done())
            raise CommError(
                f"The partition {key!r} is to be computed, but for {_TOO_IDLE:g} seconds the "
                "cluster had no worker that may do it; start workers and fit again."
            )


@dataclass
class Attempt:
    """One set of ranks, which ends with a model or with an error."""

    client: Any
    fit: str  # name of the fit
    name: str  # of the attempt
    tables: list[Partitions]
    watchers: Watchers
    restarts: bool  # whether there will be another attempt if workers are lost

    def __post_init__(self) -> None:
        self.addresses, self._places = _placed(self.client, self.tables)
        # Tasks that have ended, and calls that bring rounds.
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._n_shown, self._stop = 0, False  # of rounds, and whether the last one is to end all
        self._last_check = self._began = time.monotonic()
        self._named_busy = False

    def run(self, estimator: Any, model: Any, unfinished: dict[str, int]) -> ranks.RankResult:
        """Train, from the ``unfinished`` rounds that workers keep; return what rank 0 ends with."""
        tasks: list[Any] = []
        try:
            self._prepare()
            tasks += self._submit(estimator, model, unfinished)
            self._watch(tasks)
            result: ranks.RankResult = tasks[0].result()
            self._show(result.unseen[self._n_shown - result.n_shown :])
            return result
        except BaseException:
            self.client.cancel(tasks, force=True)
            _call(self.client, ranks.leave, self.name, workers=self.addresses)
            raise

    def unfinished(self) -> dict[str, int]:
        """Return how many complete rounds the workers that are left keep."""
        while there := sorted(set(self.addresses) - self._missing()):
            with contextlib.suppress(WorkersLost):
                rounds = self._ask(ranks.unfinished, self.fit, workers=there)
                return {address: n for address, n in rounds.items() if isinstance(n, int) and n > 0}
        return {}

    def _prepare(self) -> None:
        asks = bool(self.watchers.callbacks)
        versions = self._ask(ranks.prepare, self.name, self.addresses, asks)
        for address, version in versions.items():
            if isinstance(version, ModuleNotFoundError):
                raise ModuleNotFoundError(
                    f"Worker {address} has no module {version.name!r}; install manyboost[dask] in "
                    "the environment of the workers."
                ) from version
            if isinstance(version, OSError):
                raise WorkersLost({address})
            if isinstance(version, Exception):
                raise version
            if version != _core.__version__:
                raise RuntimeError(
                    f"Worker {address} has manyboost {version}, but the client has "
                    f"{_core.__version__}; install the same version everywhere."
                )

    def _submit(self, estimator: Any, model: Any, unfinished: dict[str, int]) -> list[Any]:
        """Start the task of each rank."""
        n_rounds = [unfinished.get(address, 0) for address in self.addresses]
        model_rank = n_rounds.index(max(n_rounds)) if any(n_rounds) else None
        if model_rank is None and model is not None:
            model_rank = 0
            # Dask warns about large objects in a graph.
            model = self.client.scatter(model, workers=[self.addresses[0]], hash=False)
        empty = [self._empty(*each) for each in zip(self.tables, self._places, strict=True)]
        common: Any = {"fit": self.fit, "attempt": self.name, "estimator": estimator}
        common |= {"watched": bool(self.watchers), "restarts": self.restarts}
        common["model_rank"] = model_rank
        tasks = []
        for rank, address in enumerate(self.addresses):
            key = f"manyboost-rank-{rank}-{self.name}"
            own = [places.get(address, []) for places in self._places]
            shares = [
                Share([table.blocks[place] for place in places], like)
                for table, places, like in zip(self.tables, own, empty, strict=True)
            ]
            columns = [table.at(places) for table, places in zip(self.tables, own, strict=True)]
            order = ranks.RankOrder(task=key, shares=shares, **common)
            given = model if rank == model_rank else None
            where = {"workers": [address], "allow_other_workers": False}
            task = self.client.submit(
                ranks.train, order, columns, given, key=key, priority=1, pure=False, **where
            )
            task.add_done_callback(self._events.put)
            tasks.append(task)
        return tasks

    def _empty(self, table: Partitions, places: dict[str, list[int]]) -> Any:
        """Return arguments without rows, if a rank has no partition of a table."""
        if len(places) == len(self.addresses):
            return {}
        first = {name: column[0] for name, column in table.columns.items()}
        submit = partial(self.client.submit, without_rows, pure=False)
        futures = {name: submit(part) for name, part in first.items()}
        _await_computed(self.client, list(futures.values()))
        return self.client.gather(futures)

    def _watch(self, tasks: list[Any]) -> None:
        """Return when all ranks are done and all rounds shown; raise when a rank has failed."""
        running, is_asked = set(tasks), True
        if self.watchers:
            running.add(self._fetch_rounds())
        try:
            while running:
                event = None
                with contextlib.suppress(queue.Empty):
                    event = self._events.get(timeout=_CHECK)
                running.discard(event)
                if isinstance(event, concurrent.futures.Future):
                    states = event.result().get(self.addresses[0])
                    is_asked = isinstance(states, list)  # else the call has failed
                    if is_asked and states:
                        self._show(states)
                        running.add(self._fetch_rounds())
                elif event is not None and event.status != "finished":
                    self._end(tasks)
                if self._is_time_to_check():
                    if self._missing():
                        self._end(tasks)
                    if not is_asked:
                        running.add(self._fetch_rounds())
                        is_asked = True
        finally:
            for call in running:
                if isinstance(call, concurrent.futures.Future):
                    call.cancel()

    def _fetch_rounds(self) -> concurrent.futures.Future[dict[str, Any]]:
        """Answer the last round that was shown, and begin to wait for the next ones."""
        answer = self.name, self._n_shown, self._stop
        call = _call(self.client, ranks.next_states, *answer, workers=self.addresses[:1])
        call.add_done_callback(self._events.put)
        return call

    def _show(self, states: list[RoundState]) -> None:
        """Tell the watchers about all rounds, and note whether to stop."""
        answers = [self.watchers.end_round(state) for state in states]
        self._n_shown, self._stop = self._n_shown + len(states), any(answers)

    def _is_time_to_check(self) -> bool:
        now = time.monotonic()
        if now - self._last_check < _CHECK:
            return False
        self._last_check = now
        if now - self._began > _BUSY:
            self._refuse_busy(now - self._began)
        return True

    def _missing(self) -> set[str]:
        """Return the workers that have left the cluster."""
        return set(self.addresses) - set(self.client.nthreads(self.addresses))

    def _refuse_busy(self, seconds: float) -> None:
        """Name a worker that has not begun, and give up if that lasts too long."""
        begun = self._ask(ranks.has_begun, self.name)
        busy = [address for address, each in begun.items() if each is False]
        if not busy:
            self._began = float("inf")
        elif seconds > _TOO_BUSY:
            raise CommError(
                f"Worker {busy[0]} was kept busy by other tasks for {_TOO_BUSY:g} seconds and did "
                "not begin to train; wait until the cluster is free."
            )
        elif not self._named_busy:
            self._named_busy = True
            waiting = f"Training waits for worker {busy[0]}, which is busy with other tasks."
            warnings.warn(waiting, stacklevel=2)

    def _end(self, tasks: list[Any]) -> None:
        """Raise the error that the ranks ended with: that of the data, if there is one."""
        self._wait_for_others(tasks)
        failed = [task for task in tasks if task.status == "error"]
        errors = [task.exception() for task in failed]
        for task, error in zip(failed, errors, strict=True):
            if not isinstance(error, CommError):
                task.result()
        lost = {error.address for error in errors if isinstance(error, WorkerLost)}
        lost |= self._missing()
        if lost:
            raise WorkersLost(lost, max((error.round for error in errors), default=None))
        if errors:
            raise errors[0]
        raise CommError("Training was cancelled, because its tasks were.")

    def _wait_for_others(self, tasks: list[Any]) -> None:
        """Wait for ranks to notice, at their next exchange, that another has failed."""
        began = time.monotonic()
        while self.restarts or time.monotonic() - began < _GRACE:
            missing = self._missing()
            there = [
                task
                for task, address in zip(tasks, self.addresses, strict=True)
                if address not in missing and task.status == "pending"
            ]
            if not there:
                return
            with contextlib.suppress(distributed.TimeoutError):
                distributed.wait(there, timeout=_CHECK)

    def _ask(
        self, function: Callable[..., Any], *arguments: Any, workers: list[str] | None = None
    ) -> dict[str, Any]:
        """Call a function on all workers, at once; exceptions are among the answers."""
        asked = workers or self.addresses
        call = _call(self.client, function, *arguments, workers=asked)
        try:
            while not concurrent.futures.wait([call], timeout=_CHECK).done:
                # Dask would try for half a minute to call a worker that is gone.
                if missing := self._missing() & set(asked):
                    raise WorkersLost(missing)
            return call.result()
        finally:
            call.cancel()
