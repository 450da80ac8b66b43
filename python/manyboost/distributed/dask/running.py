"""The client's side of a fit: ranks are started, watched and, if one is lost, started again."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from concurrent import futures as concurrent_futures
from typing import Any

import distributed
from manyboost import _core
from manyboost.comm import CommError
from manyboost.distributed.dask import ranks
from manyboost.distributed.dask.links import WorkerLost
from manyboost.distributed.dask.partitions import Partitions, Tables, assign, without_rows
from manyboost.training.callbacks import RoundState, Watchers

#: What columns of training and validation rows are called.
NAMES = (
    {"X": "X", "y": "y", "weight": "sample_weight"},
    {"X": "X_val", "y": "Y_val", "weight": "sample_weight_val"},
)

# Seconds between two looks at whether all workers are there.
_LOOK = 0.5
# Seconds that the other ranks have to end, when one has failed.
_GRACE = 1.0
# Seconds after which a worker that is too busy to begin is named, and after which it is given up.
_BUSY, _TOO_BUSY = 30.0, 600.0
# How often training is begun again without another complete round.
_ATTEMPTS_IN_VAIN = 3


class WorkersLost(Exception):
    """Workers were lost while a fit needed them."""

    def __init__(self, addresses: set[str], round: int = 0) -> None:
        super().__init__(addresses, round)
        self.addresses, self.round = sorted(addresses), round

    def sentence(self, remedy: str) -> str:
        """Say what happened."""
        who = f"Worker {self.addresses[0]} was"
        if len(self.addresses) > 1:
            who = f"Workers {', '.join(self.addresses)} were"
        when = f"in round {self.round}" if self.round else "before the first round"
        return f"{who} lost {when} of training; {remedy}."


def fit(
    client: Any,
    estimator: Any,
    model: Any,
    tables: Tables,
    watchers: Watchers,
    on_worker_loss: str,
) -> ranks.Result:
    """Train an estimator where the data are.

    Parameters
    ----------
    client : distributed.Client
    estimator : ManyBoostRegressor or ManyBoostClassifier
        Unfitted, without callbacks.
    model : ManyBoostRegressor or ManyBoostClassifier or None
        A fitted one to continue.
    tables : (Partitions, Partitions or None)
    watchers : Watchers
        Whom to tell of rounds, here.
    on_worker_loss : {"raise", "restart"}

    Returns
    -------
    Result
        That of rank 0, with the fitted estimator.
    """
    restarts = on_worker_loss == "restart"
    name = uuid.uuid4().hex
    unfinished: dict[str, int] = {}
    n_rounds = in_vain = number = 0
    try:
        while True:
            addresses, places = _placed(client, tables)
            attempt = Attempt(client, name, number, addresses, watchers, restarts=restarts)
            try:
                return attempt.run(estimator, model, unfinished, tables, places)
            except WorkersLost as loss:
                if not restarts:
                    remedy = "fit again, or use on_worker_loss='restart' to go on without it"
                    raise CommError(loss.sentence(remedy)) from None
                lost = loss
            unfinished = attempt.unfinished()
            best = max(unfinished.values(), default=0)
            in_vain = 0 if best > n_rounds else in_vain + 1
            n_rounds = max(best, n_rounds)
            if in_vain > _ATTEMPTS_IN_VAIN:
                raise CommError(
                    lost.sentence("workers are lost again and again, look for the cause")
                )
            number += 1
    finally:
        if number:
            _tell(client, ranks.forget, name, list(unfinished))


def _placed(client: Any, tables: Tables) -> tuple[list[str], list[dict[str, list[int]]]]:
    """Wait for all partitions, and choose a worker for each."""
    futures = [future for table in tables if table is not None for future in table.futures]
    while True:
        distributed.wait(futures)
        for future in futures:
            if future.status == "error":
                future.result()
            if future.status in ("cancelled", "lost"):
                raise CommError(
                    f"The partition {future.key!r} was lost with its worker and cannot be computed "
                    "again; load the data again, in collections that Dask can compute."
                )
        with contextlib.suppress(LookupError):
            return assign(client, tables)


def _tell(client: Any, function: Callable[..., Any], name: str, addresses: list[str]) -> None:
    """Call a function on workers; nobody waits for it."""

    async def call() -> None:
        with contextlib.suppress(Exception):
            await client.run(function, name, workers=addresses, on_error="ignore")

    asyncio.run_coroutine_threadsafe(call(), client.loop.asyncio_loop)


class Attempt:
    """One set of ranks, which ends with a model or with an error.

    Parameters
    ----------
    client : distributed.Client
    name : str
        What the fit is called.
    number : int
        Which attempt it is.
    addresses : list of str
        The worker of each rank.
    watchers : Watchers
    restarts : bool
        Whether there will be another attempt if workers are lost.
    """

    def __init__(
        self,
        client: Any,
        name: str,
        number: int,
        addresses: list[str],
        watchers: Watchers,
        *,
        restarts: bool,
    ) -> None:
        self.client = client
        self.name = name
        self.fit = f"{name}-{number}"
        self.addresses = addresses
        self.watchers = watchers
        self.restarts = restarts
        self._loop = client.loop.asyncio_loop
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._answers: asyncio.Queue[bool] = asyncio.Queue()
        self._last_look = self._began = time.monotonic()
        self._named_busy = False

    def run(
        self,
        estimator: Any,
        model: Any,
        unfinished: dict[str, int],
        tables: Tables,
        places: list[dict[str, list[int]]],
    ) -> ranks.Result:
        """Train; returns what rank 0 ends with.

        ``unfinished`` are workers with so many rounds of an earlier attempt, which is then
        continued.
        """
        tasks: list[Any] = []
        try:
            self._prepare()
            tasks += self._submit(estimator, model, unfinished, tables, places)
            with self._relayed():
                self._watch(tasks)
            result: ranks.Result = tasks[0].result()
            self._show(result.untold)
            return result
        except BaseException:
            self.client.cancel(tasks, force=True)
            _tell(self.client, ranks.leave, self.fit, self.addresses)
            raise

    def unfinished(self) -> dict[str, int]:
        """Complete rounds that the workers which are left have of this attempt."""
        there = [address for address in self.addresses if address not in self._missing()]
        try:
            rounds = self._ask(ranks.unfinished, self.name, workers=there)
        except WorkersLost:
            return self.unfinished()
        return {address: n for address, n in rounds.items() if isinstance(n, int) and n > 0}

    # ------------------------------------------------------------------ starting

    def _prepare(self) -> None:
        asked = bool(self.watchers.callbacks)
        versions = self._ask(ranks.prepare, self.fit, self.addresses, asked)
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

    def _submit(
        self,
        estimator: Any,
        model: Any,
        unfinished: dict[str, int],
        tables: Tables,
        places: list[dict[str, list[int]]],
    ) -> list[Any]:
        train, validation = tables
        like = self._like(train, places[0]), self._like(validation, places[1])
        n_rounds = [unfinished.get(address, 0) for address in self.addresses]
        model_at = n_rounds.index(max(n_rounds)) if any(n_rounds) else None
        if model_at is None and model is not None:
            model_at = 0
            # Beside the graph, in which large objects have no place.
            model = self.client.scatter(model, workers=[self.addresses[0]], hash=False)
        told, asked = bool(self.watchers), bool(self.watchers.callbacks)
        job = ranks.Job(self.name, self.fit, estimator, told, asked, model_at, self.restarts, NAMES)
        tasks = []
        for rank, address in enumerate(self.addresses):
            key = f"manyboost-rank-{rank}-{self.fit}"
            own, own_val = (of_worker.get(address, []) for of_worker in places)
            numbers = train.numbers(own), [] if validation is None else validation.numbers(own_val)
            task = self.client.submit(
                ranks.train,
                job,
                ranks.Part(key, numbers, like),
                train.at(own),
                None if validation is None else validation.at(own_val),
                model if rank == model_at else None,
                key=key,
                workers=[address],
                allow_other_workers=False,
                priority=1,
                pure=False,
            )
            task.add_done_callback(self._events.put)
            tasks.append(task)
        return tasks

    def _like(self, table: Partitions | None, of_worker: dict[str, list[int]]) -> dict[str, Any]:
        """Return tables without rows, if a rank needs them."""
        if table is None or len(of_worker) == len(self.addresses):
            return {}
        first = {name: column[0] for name, column in table.columns.items()}
        empty = {
            name: self.client.submit(without_rows, part, pure=False) for name, part in first.items()
        }
        found: dict[str, Any] = self.client.gather(empty)
        return found

    # ------------------------------------------------------------------ watching

    def _watch(self, tasks: list[Any]) -> None:
        """Return when all ranks are done; raise as soon as one has failed."""
        running = set(tasks)
        while running:
            event = self._next_event()
            if isinstance(event, list):
                self._answer(self._show(event))
            elif event is not None:
                running.discard(event)
                if event.status != "finished":
                    self._end(tasks)
            if self._is_time_to_look() and self._missing():
                self._end(tasks)

    def _next_event(self) -> Any:
        try:
            return self._events.get(timeout=_LOOK)
        except queue.Empty:
            return None

    def _is_time_to_look(self) -> bool:
        now = time.monotonic()
        if now - self._last_look < _LOOK:
            return False
        self._last_look = now
        if now - self._began > _BUSY:
            self._refuse_busy(now - self._began)
        return True

    def _missing(self) -> set[str]:
        """Workers that the cluster has no more."""
        return set(self.addresses) - set(self.client.nthreads(self.addresses))

    def _refuse_busy(self, seconds: float) -> None:
        """Say which worker has not begun, and give up when that lasts too long."""
        begun = self._ask(ranks.has_begun, self.fit)
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
            warnings.warn(
                f"Training waits for worker {busy[0]}, which is busy with other tasks.",
                stacklevel=2,
            )

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
            raise WorkersLost(lost, max((error.round for error in errors), default=0))
        if errors:
            raise errors[0]
        raise CommError("Training was cancelled, because its tasks were.")

    def _wait_for_others(self, tasks: list[Any]) -> None:
        """Wait for ranks to notice that another has failed, at their next exchange."""
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
                distributed.wait(there, timeout=_LOOK)

    def _ask(
        self, function: Callable[..., Any], *args: Any, workers: list[str] | None = None
    ) -> dict[str, Any]:
        """Call a function on all workers, at once; exceptions are among the answers."""

        async def answers() -> Any:
            return await self.client.run(
                function, *args, workers=workers or self.addresses, on_error="return"
            )

        call = asyncio.run_coroutine_threadsafe(answers(), self._loop)
        try:
            while not concurrent_futures.wait([call], timeout=_LOOK).done:
                # A call to a worker that is gone would be tried again for half a minute.
                missing = self._missing() & set(workers or self.addresses)
                if missing:
                    raise WorkersLost(missing)
            found: dict[str, Any] = call.result()
            return found
        finally:
            call.cancel()

    # ------------------------------------------------------------------ rounds

    @contextlib.contextmanager
    def _relayed(self) -> Iterator[None]:
        """Have what rank 0 tells of its rounds among the events."""
        if not self.watchers:
            yield
            return
        relay = asyncio.run_coroutine_threadsafe(self._relay(), self._loop)
        try:
            yield
            # Training is over; what was told before may still be on its way.
            with contextlib.suppress(concurrent_futures.TimeoutError):
                relay.result(timeout=5)
            with contextlib.suppress(queue.Empty):
                while True:
                    event = self._events.get_nowait()
                    if isinstance(event, list):
                        self._show(event)
        finally:
            relay.cancel()

    async def _relay(self) -> None:
        address, answer = self.addresses[0], None
        while True:
            replies = await self.client.run(
                ranks.next_states, self.fit, answer, workers=[address], on_error="ignore"
            )
            states = replies.get(address)
            if states is None:
                return
            self._events.put(states)
            if self.watchers.callbacks:
                answer = await self._answers.get()

    def _show(self, states: list[RoundState]) -> bool:
        answers = [self.watchers.end_round(state) for state in states]
        return any(answers)

    def _answer(self, stop: bool) -> None:
        self._loop.call_soon_threadsafe(self._answers.put_nowait, stop)
