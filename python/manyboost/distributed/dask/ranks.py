"""The worker's side of a fit: one task for each rank, and answers to calls of the client."""

from __future__ import annotations

import asyncio
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
from manyboost.errors import RowError
from manyboost.training.callbacks import RoundState


@dataclass(frozen=True)
class RankOrder:
    """What a rank is told, besides its partitions."""

    task: str  # key of the Dask task
    fit: str
    attempt: str
    estimator: Any  # unfitted, without callbacks
    watched: bool  # whether the client is told about rounds
    model_rank: int | None  # the rank that has a model to continue
    restarts: bool  # whether complete rounds are kept for another attempt
    shares: list[Share]  # its training rows and, if given, its validation rows


@dataclass(frozen=True)
class RankResult:
    """What a rank ends with."""

    estimator: Any  # fitted; None except on rank 0, as all are the same
    unseen: list[RoundState]  # rounds of which the client has not said that they are shown
    n_shown: int  # and the number of those before
    exchanged: tuple[int, int, int]  # number of exchanges, bytes of numbers in them, bytes sent


class Seat:
    """What a worker keeps for a rank: links to the others, and rounds to show to the client."""

    def __init__(self, worker: Any, attempt: str, addresses: list[str], *, asks: bool) -> None:
        self.worker = worker
        self.links = Links(worker, attempt, addresses)
        self._asks = asks
        self._loop = asyncio.get_running_loop()
        # Rounds that are not known to be shown, the number of those that are, and their lock: both
        # the training thread and the event loop change them.
        self._states: list[RoundState] = []
        self.n_shown = 0
        self._lock = threading.Lock()
        self._news = asyncio.Event()
        self._over = False

    def tell(self, state: RoundState) -> bool:
        """Tell the client about a round and return whether to stop; a callback."""
        with self._lock:
            self._states.append(state)
        self._loop.call_soon_threadsafe(self._news.set)
        self.look(state)
        return bool(self.links.receive(self.links.rank)) if self._asks else False

    def look(self, state: RoundState) -> None:
        """End training that nobody waits for any more; a callback."""
        if self.links.failure is not None:
            raise self.links.failure

    async def next_states(self, n_shown: int, stop: bool) -> list[RoundState]:
        """Return the rounds after the first ``n_shown``, once there are some; none at the end.

        ``stop`` answers the last one shown. A call that was lost on its way may be made again.
        """
        with self._lock:
            n_new = n_shown - self.n_shown
            if n_new > 0:
                del self._states[:n_new]
                self.n_shown = n_shown
        if self._asks and n_new > 0:
            self.links.answer(stop)
        while not self._states and not self._over:
            self._news.clear()
            await self._news.wait()
        return list(self._states)

    def end(self) -> list[RoundState]:
        """Note that training is over; return the rounds that are not known to be shown."""
        with self._lock:
            states, self._states, self._over = self._states, [], True
        self._loop.call_soon_threadsafe(self._news.set)
        return states


# By address of the worker, of which a process may have several, and attempt.
_SEATS: dict[tuple[str, str], Seat] = {}

# By address of the worker and fit: the complete rounds of an attempt that failed.
_UNFINISHED: dict[tuple[str, str], Any] = {}


def train(order: RankOrder, columns: list[Columns], model: Any) -> RankResult:
    """Be one rank of a fit; the task of a worker."""
    worker = get_worker()
    # All ranks must run at once, however few threads are free: they do not count as busy.
    secede()
    seat = _SEATS.get((worker.address, order.attempt))
    if seat is None:
        raise Aborted("Training was cancelled.")
    links = seat.links
    try:
        links.open(order.task)
        comm = DaskComm(links)
        estimator = _unprofiled(lambda: _fit(seat, comm, order, columns, model))
    except CommError as error:
        links.close("Training ended on another worker.")
        error.unfinished = None  # the client needs the error only, not the model
        raise
    except BaseException as error:
        located = _located(error, order.shares, columns) if isinstance(error, RowError) else error
        links.close(f"Training ended with an error on worker {worker.address}: {located!r}")
        raise located from error.__cause__
    else:
        links.close()
        exchanged = comm.n_exchanges, comm.n_bytes, comm.n_bytes_sent
        return RankResult(estimator, seat.end(), seat.n_shown, exchanged)
    finally:
        seat.end()
        _SEATS.pop((worker.address, order.attempt), None)


def _unprofiled(work: Callable[[], Any]) -> Any:
    """Return the result of a call in a thread of its own.

    Dask's profiler walks through the frames of tasks a hundred times a second and holds the
    interpreter meanwhile, which takes a tenth of the time of a fit. It only sees the thread that
    waits here.
    """
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="manyboost-rank", daemon=True).start()
    return future.result()


def _fit(seat: Seat, comm: DaskComm, order: RankOrder, columns: list[Columns], model: Any) -> Any:
    """Train with the other ranks; return the fitted estimator on rank 0."""
    arguments: dict[str, Any] = {}
    for share, own in zip(order.shares, columns, strict=True):
        arguments |= share.arguments(own)
    key = seat.worker.address, order.fit
    estimator = order.estimator
    if order.model_rank is not None:
        # A copy, since the root gets the object itself.
        estimator = copy.copy(comm.broadcast(_UNFINISHED.get(key, model), order.model_rank))
    estimator.n_jobs = estimator.n_jobs or seat.worker.state.nthreads
    if comm.rank == 0 and order.watched:
        estimator.callbacks = [seat.tell]
    elif comm.size == 1:
        # One rank has no exchanges, in which it would notice that training was cancelled.
        estimator.callbacks = [seat.look]
    X, y = arguments.pop("X"), arguments.pop("y")
    try:
        fit_rank(estimator, comm, X, y, row_numbers=order.shares[0].row_numbers(), **arguments)
    except CommError as error:
        if order.restarts and error.unfinished is not None:
            kept = copy.copy(estimator)
            kept.__dict__.update(error.unfinished)
            kept.callbacks, kept.warm_start = None, True
            _UNFINISHED[key] = kept
            if seat.links.abandoned:  # in this order: it may happen just now
                _UNFINISHED.pop(key, None)
        raise
    estimator.callbacks = None
    return estimator if comm.rank == 0 else None


def _located(error: RowError, shares: list[Share], columns: list[Columns]) -> RowError:
    own = zip(shares, columns, strict=True)
    return next((share.locate(error) for share, each in own if error.argument in each), error)


# ---------------------------------------------------------------------- called by the client


async def prepare(attempt: str, addresses: list[str], asks: bool, dask_worker: Any = None) -> str:
    """Prepare for a rank; return the version of this package on the worker."""
    _SEATS[dask_worker.address, attempt] = Seat(dask_worker, attempt, addresses, asks=asks)

    async def accept(comm: Any, fit: str, rank: int, is_wire: bool) -> Any:
        seat = _SEATS.get((dask_worker.address, fit))
        if seat is None:
            comm.abort()
        elif is_wire:
            await seat.links.accept_wire(comm, rank)
        else:
            await seat.links.accept(comm, rank)
        return Status.dont_reply

    dask_worker.handlers.setdefault(OPERATION, accept)
    return _core.__version__


async def next_states(
    attempt: str, n_shown: int, stop: bool, dask_worker: Any = None
) -> list[RoundState]:
    """Answer the last round that was shown and wait for the next ones; none at the end."""
    seat = _SEATS.get((dask_worker.address, attempt))
    return [] if seat is None else await seat.next_states(n_shown, stop)


async def has_begun(attempt: str, dask_worker: Any = None) -> bool:
    """Return whether the task of a rank has begun, or is over."""
    seat = _SEATS.get((dask_worker.address, attempt))
    return seat is None or seat.links.begun


async def leave(attempt: str, dask_worker: Any = None) -> None:
    """End a rank, or take back the preparations for one that never began."""
    seat = _SEATS.get((dask_worker.address, attempt))
    if seat is None:
        return
    seat.links.fail(Aborted("Training ended on another worker."))
    if not seat.links.begun:
        seat.links.release()
        seat.end()
        del _SEATS[dask_worker.address, attempt]


async def unfinished(fit: str, dask_worker: Any = None) -> int:
    """Return how many complete rounds of a failed attempt this worker keeps."""
    estimator = _UNFINISHED.get((dask_worker.address, fit))
    return 0 if estimator is None else int(estimator.n_iter_)


async def forget(fit: str, dask_worker: Any = None) -> None:
    """Delete what failed attempts have left, or are about to leave."""
    for (address, attempt), seat in list(_SEATS.items()):
        if (address, attempt.rpartition("-")[0]) == (dask_worker.address, fit):
            seat.links.abandoned = True
    _UNFINISHED.pop((dask_worker.address, fit), None)
