"""Carrying out the runs that a store does not hold yet, on several processes."""

from __future__ import annotations

import multiprocessing
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import TextIO

from manyboost.experiments.progress import Progress
from manyboost.experiments.protocol import Result, Specification
from manyboost.experiments.store import Store


@dataclass(frozen=True)
class Task:
    """A run with the results it starts from."""

    run: Specification
    needed: Sequence[Result]
    data_dir: Path | None


@dataclass(frozen=True)
class Outcome:
    """The result of a run, or the traceback of its failure."""

    result: Result | None
    error: str
    seconds: float


def run_missing(
    runs: Iterable[Specification],
    store: Store,
    *,
    data_dir: Path | None = None,
    n_jobs: int = 1,
    stream: TextIO | None = None,
) -> None:
    """Carry out the runs that the store does not hold, and those that they need.

    An interrupt ends the workers and is passed on; complete runs are in the store by then. A run
    that fails is written as such and shown; the runs that need it are left out.

    Parameters
    ----------
    runs : iterable of Specification
    store : Store
    data_dir : Path or None
        Where stored sets are.
    n_jobs : int
        Number of processes, each fitting in one thread; 1 stays in this process.
    stream : text stream or None
        Where to show progress.
    """
    schedule = Schedule(runs, store)
    n_jobs = min(n_jobs, max(1, schedule.n_missing))
    progress = Progress(stream, schedule.missing.values(), n_jobs)

    def settle(task: Task, outcome: Outcome) -> None:
        if outcome.result is not None:
            store.put(task.run, outcome.result)
            schedule.complete(task.run)
            progress.finished(task.run, outcome.seconds)
        else:
            store.fail(task.run, outcome.error)
            given_up = schedule.give_up(task.run)
            progress.failed(task.run, outcome.error.strip().splitlines()[-1], given_up)

    try:
        if n_jobs == 1:
            for task in schedule.tasks(data_dir):
                settle(task, _attempt(task))
        else:
            _run_on_workers(schedule, data_dir, n_jobs, settle)
    finally:
        progress.close()


class Schedule:
    """Missing runs in an order in which what a run needs comes first."""

    def __init__(self, runs: Iterable[Specification], store: Store) -> None:
        self.missing: dict[str, Specification] = {}
        self._store = store
        self._needs: dict[str, set[str]] = {}
        self._needed_by: dict[str, list[str]] = {}
        self._ready: deque[Specification] = deque()
        for run in runs:
            self._add(run)

    @property
    def n_missing(self) -> int:
        """Number of runs that are neither complete nor given up."""
        return len(self.missing)

    def _add(self, run: Specification) -> None:
        key = run.key
        if key in self.missing or self._store.get(run) is not None:
            return
        needs = run.needs()
        for need in needs:
            self._add(need)
        self.missing[key] = run
        self._needs[key] = {need.key for need in needs} & self.missing.keys()
        for need_key in self._needs[key]:
            self._needed_by.setdefault(need_key, []).append(key)
        if not self._needs[key]:
            self._ready.append(run)

    def tasks(self, data_dir: Path | None) -> Iterator[Task]:
        """Yield the runs whose needs are met; ends when none is, for now or for good."""
        while self._ready:
            run = self._ready.popleft()
            found = [self._store.get(need) for need in run.needs()]
            yield Task(run, [result for result in found if result is not None], data_dir)

    def complete(self, run: Specification) -> None:
        """Release the runs that waited for this one alone."""
        del self.missing[run.key]
        # In front of all others: a set is finished before the next one begins.
        for key in self._needed_by.pop(run.key, []):
            self._needs[key].discard(run.key)
            if not self._needs[key] and key in self.missing:
                self._ready.appendleft(self.missing[key])

    def give_up(self, run: Specification) -> int:
        """Drop a run that failed and all that need it; returns the number of the latter."""
        del self.missing[run.key]
        dropped = 0
        for key in self._needed_by.pop(run.key, []):
            if key in self.missing:
                dropped += 1 + self.give_up(self.missing[key])
        return dropped


def _attempt(task: Task) -> Outcome:
    """Carry out a run; whatever goes wrong, but for an interrupt, is its outcome."""
    started = time.perf_counter()
    try:
        result = task.run.execute(task.needed, task.data_dir)
    except Exception:
        return Outcome(None, traceback.format_exc(), time.perf_counter() - started)
    return Outcome(result, "", time.perf_counter() - started)


# ---------------------------------------------------------------------- worker processes


def _run_on_workers(
    schedule: Schedule,
    data_dir: Path | None,
    n_jobs: int,
    settle: Callable[[Task, Outcome], None],
) -> None:
    workers = Workers(n_jobs)
    busy: dict[Connection, Task] = {}
    try:
        while True:
            for task in islice(schedule.tasks(data_dir), len(workers.idle)):
                worker = workers.idle.pop()
                worker.send(task)
                busy[worker] = task
            if not busy:
                return
            ready = set(wait(list(busy)))
            for worker in [worker for worker in busy if worker in ready]:
                outcome = workers.receive(worker)
                settle(busy.pop(worker), outcome)
    finally:
        workers.end()


class Workers:
    """Processes that wait for tasks at the other end of a connection.

    Processes are spawned: a forked one would inherit locks that other threads hold.
    """

    def __init__(self, n_jobs: int) -> None:
        self._processes: dict[Connection, SpawnProcess] = {}
        self.idle = [self._start() for _ in range(n_jobs)]

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs,), daemon=True)
        process.start()
        theirs.close()  # so that the end of the process ends the connection
        self._processes[ours] = process
        return ours

    def receive(self, worker: Connection) -> Outcome:
        """Receive an outcome; a process that died is replaced, its run has failed."""
        try:
            outcome = worker.recv()
        except EOFError:
            process = self._processes.pop(worker)
            process.join()
            self.idle.append(self._start())
            return Outcome(
                None,
                f"The worker process ended with exit code {process.exitcode}; it may have run out "
                "of memory: use fewer processes.",
                0.0,
            )
        assert isinstance(outcome, Outcome)
        self.idle.append(worker)
        return outcome

    def end(self) -> None:
        """End all processes, whatever they do: unfinished runs are not kept anyway."""
        for process in self._processes.values():
            process.terminate()
        for connection, process in self._processes.items():
            process.join()
            connection.close()


def _work(connection: Connection) -> None:
    """Carry out tasks until the connection ends."""
    # Ctrl-C reaches all processes of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, BrokenPipeError):
        while True:
            connection.send(_attempt(connection.recv()))
