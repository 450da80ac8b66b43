"""What runs on the workers: a task for each rank, and answers to questions of the client."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import copy
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from distributed.core import Status

from distributed import get_worker, secede
from manyboost import _core
from manyboost.comm import CommError
from manyboost.distributed.dask.comm import DaskComm
from manyboost.distributed.dask.links import OPERATION, Aborted, Links
from manyboost.distributed.dask.partitions import Columns, Share
from manyboost.distributed.training import fit_rank
from manyboost.training.callbacks import RoundState

Numbers = list[tuple[int, int, int]]


@dataclass(frozen=True)
class Job:
    """What all ranks of a fit are told.

    Attributes
    ----------
    name : str
        What the fit is called.
    fit : str
        What this attempt is called.
    estimator : ManyBoostRegressor or ManyBoostClassifier
        Unfitted, without callbacks.
    told, asked : bool
        Whether the client is told of rounds, and whether its answer is waited for.
    model_at : int or None
        The rank that has a model to continue.
    restarts : bool
        Whether complete rounds are kept for another attempt.
    names : tuple of dict
        What the columns of training and validation rows are called in errors.
    """

    name: str
    fit: str
    estimator: Any
    told: bool
    asked: bool
    model_at: int | None
    restarts: bool
    names: tuple[dict[str, str], dict[str, str]]


@dataclass(frozen=True)
class Part:
    """What one rank is told besides: numbers of its partitions, and tables without rows."""

    task: str
    numbers: tuple[Numbers, Numbers]
    like: tuple[dict[str, Any], dict[str, Any]]


class Seat:
    """What a worker keeps for a rank: links to the others, and news for the client."""

    def __init__(self, worker: Any, fit: str, addresses: list[str], *, asked: bool) -> None:
        self.worker = worker
        self.links = Links(worker, fit, addresses)
        self._asked = asked
        self._loop = asyncio.get_running_loop()
        self._states: collections.deque[RoundState] = collections.deque()
        self._news = asyncio.Event()
        self._over = False

    def tell(self, state: RoundState) -> bool:
        """Tell the client of a round and ask whether to stop: a callback."""
        self._states.append(state)
        self._loop.call_soon_threadsafe(self._news.set)
        self.look(state)
        return bool(self.links.receive(self.links.rank)) if self._asked else False

    def look(self, state: RoundState) -> None:
        """End training that is not wanted any more: a callback."""
        if self.links.failure is not None:
            raise self.links.failure

    async def next_states(self, answer: bool | None) -> list[RoundState] | None:
        """Answer the last round, and wait for others to end; None: there are no more."""
        if answer is not None:
            self.links.answer(answer)
        while not self._states and not self._over:
            self._news.clear()
            await self._news.wait()
        return self._untold() or None

    def end(self) -> list[RoundState]:
        """Training is over; returns what the client has not been told."""
        self._over = True
        self._loop.call_soon_threadsafe(self._news.set)
        return self._untold()

    def _untold(self) -> list[RoundState]:
        states = []
        with contextlib.suppress(IndexError):
            while True:
                states.append(self._states.popleft())
        return states


# By worker, of which a process may have several, and fit.
_SEATS: dict[tuple[str, str], Seat] = {}

# By worker and name of the fit: what an attempt has left, an estimator with the complete rounds.
_UNFINISHED: dict[tuple[str, str], Any] = {}


@dataclass(frozen=True)
class Result:
    """What a rank ends with.

    Attributes
    ----------
    estimator : ManyBoostRegressor or ManyBoostClassifier or None
        The fitted estimator of rank 0; the others are the same.
    untold : list of RoundState
        Rounds that the client has not asked for.
    n_exchanges, n_bytes, n_bytes_sent : int
        See :class:`DaskComm`.
    """

    estimator: Any
    untold: list[RoundState]
    n_exchanges: int
    n_bytes: int
    n_bytes_sent: int


def train(
    job: Job, part: Part, columns: Columns, columns_val: Columns | None, model: Any
) -> Result:
    """Be one rank of a fit: the task of a worker."""
    worker = get_worker()
    # Other tasks may have its place: all ranks run at once, however few places are free.
    secede()
    seat = _SEATS.get((worker.address, job.fit))
    if seat is None:
        raise Aborted("Training was cancelled.")
    links = seat.links
    try:
        links.open(part.task)
        comm = DaskComm(links)
        estimator = _aside(lambda: _fit(seat, comm, job, part, columns, columns_val, model))
    except CommError as error:
        links.close("Training ended on another worker.")
        # (The client is told of the error, not of the model.)
        error.unfinished = None
        raise
    except BaseException as error:
        if isinstance(error, ValueError) and len(links.addresses) > 1:
            _name_partitions(error, part.numbers)
        links.close(f"Training ended with an error on worker {worker.address}: {error!r}")
        raise
    else:
        links.close()
        return Result(estimator, seat.end(), comm.n_exchanges, comm.n_bytes, comm.n_bytes_sent)
    finally:
        seat.end()
        del _SEATS[worker.address, job.fit]


def _aside(work: Callable[[], Any]) -> Any:
    """Return the result of a call in a thread of its own.

    Dask's profiler walks through the frames of tasks a hundred times a second, and holds the
    interpreter meanwhile: a tenth of the time of a fit. It sees the thread that waits here.
    """
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="manyboost-rank", daemon=True).start()
    return future.result()


def _fit(
    seat: Seat,
    comm: DaskComm,
    job: Job,
    part: Part,
    columns: Columns,
    columns_val: Columns | None,
    model: Any,
) -> Any:
    share = Share(columns, part.numbers[0], part.like[0], job.names[0])
    X, y, weight = share.tables()
    X_val, y_val, weight_val = None, None, None
    if columns_val is not None:
        share_val = Share(columns_val, part.numbers[1], part.like[1], job.names[1])
        X_val, y_val, weight_val = share_val.tables()
    estimator = job.estimator
    place = seat.worker.address, job.name
    if job.model_at is not None:
        estimator = comm.broadcast(_UNFINISHED.get(place, model), job.model_at)
    estimator.n_jobs = estimator.n_jobs or seat.worker.state.nthreads
    if comm.rank == 0 and job.told:
        estimator.callbacks = [seat.tell]
    elif comm.size == 1:
        # There are no exchanges, which would fail.
        estimator.callbacks = [seat.look]
    try:
        fit_rank(
            estimator,
            comm,
            X,
            y,
            weight,
            X_val=X_val,
            Y_val=y_val,
            sample_weight_val=weight_val,
            row_numbers=share.row_numbers(),
        )
    except CommError as error:
        if job.restarts and error.unfinished is not None:
            _UNFINISHED[place] = _continuable(estimator, error.unfinished)
        raise
    estimator.callbacks = None
    return estimator if comm.rank == 0 else None


def _name_partitions(error: ValueError, numbers: tuple[Numbers, Numbers]) -> None:
    """Say among which rows a row was counted that an error names."""
    words = str(error)
    if " row " not in words:
        return
    which = int("_val" in words)
    places = ", ".join(str(place) for _, _, place in numbers[which])
    error.args = (f"{words.rstrip('.')} (counted within partitions {places}).",)


def _continuable(estimator: Any, attributes: dict[str, Any]) -> Any:
    """Return an estimator that goes on from complete rounds when it is fitted again."""
    model = copy.copy(estimator)
    model.__dict__.update(attributes)
    for name in ("_comm", "_row_numbers"):
        model.__dict__.pop(name, None)
    model.callbacks, model.warm_start = None, True
    return model


# ---------------------------------------------------------------------- called by the client


async def prepare(fit: str, addresses: list[str], asked: bool, dask_worker: Any = None) -> str:
    """Get ready for a rank; returns the version of this package on the worker."""
    _SEATS[dask_worker.address, fit] = Seat(dask_worker, fit, addresses, asked=asked)

    async def accept(comm: Any, fit: str, rank: int) -> Any:
        seat = _SEATS.get((dask_worker.address, fit))
        if seat is None:
            comm.abort()
        else:
            await seat.links.accept(comm, rank)
        return Status.dont_reply

    dask_worker.handlers.setdefault(OPERATION, accept)
    return _core.__version__


async def next_states(
    fit: str, answer: bool | None, dask_worker: Any = None
) -> list[RoundState] | None:
    """Answer the last round, and wait for others to end; None: there are no more."""
    seat = _SEATS.get((dask_worker.address, fit))
    return None if seat is None else await seat.next_states(answer)


async def has_begun(fit: str, dask_worker: Any = None) -> bool:
    """Whether the task of a rank has begun, or is over."""
    seat = _SEATS.get((dask_worker.address, fit))
    return seat is None or seat.links.begun


async def leave(fit: str, dask_worker: Any = None) -> None:
    """Take back what was prepared for a rank that never began; end one that did."""
    seat = _SEATS.get((dask_worker.address, fit))
    if seat is None:
        return
    seat.links.fail(Aborted("Training ended on another worker."))
    if not seat.links.begun:
        del _SEATS[dask_worker.address, fit]


async def unfinished(name: str, dask_worker: Any = None) -> int:
    """Return how many complete rounds an attempt has left here."""
    estimator = _UNFINISHED.get((dask_worker.address, name))
    return 0 if estimator is None else int(estimator.n_iter_)


async def forget(name: str, dask_worker: Any = None) -> None:
    """Let go of what attempts have left."""
    _UNFINISHED.pop((dask_worker.address, name), None)
