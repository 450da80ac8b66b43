"""Carry out the runs that a store does not hold yet, on several processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from tqdm import tqdm

from experiments.protocol import Run
from experiments.store import Store


def run_missing(
    runs: Iterable[Run],
    store: Store,
    data_dir: Path | None = None,
    n_jobs: int = 1,
    stream: TextIO | None = None,
    title: str = "",
) -> None:
    """Carry out the runs that the store does not hold, and those that they need.

    Every complete run is in the store at once, so an interrupted command can be repeated. A run
    that fails is shown on ``stream`` and tried again by the next command; the runs that need it are
    left out. Each of the ``n_jobs`` processes fits in one thread; 1 stays in this process.
    """
    missing = _missing(runs, store, data_dir)
    total = len(missing)
    pause = 0.5 if stream is not None and stream.isatty() else 60.0
    hidden = stream is None or not total
    progress = tqdm(
        total=total, desc=title, unit="run", file=stream, mininterval=pause, disable=hidden
    )
    workers = Workers(n_jobs) if n_jobs > 1 and total > 1 else None
    execute = workers.execute if workers else _execute_here
    failed: set[str] = set()
    try:
        while tasks := _ready(missing, failed, store, data_dir):
            progress.total = progress.n + len(missing)
            for task, outcome in execute(tasks):
                del missing[task.run.key]
                progress.update()
                if not isinstance(outcome, str):
                    store.put(task.run, outcome)
                    continue
                failed.add(task.run.key)
                if stream is not None:
                    reason = outcome.strip().splitlines()[-1]
                    progress.write(f"failed: {task.run.label}: {reason}", file=stream)
    finally:
        progress.close()
        if workers:
            workers.end()


@dataclass(frozen=True)
class Task:
    """A run with the results that it starts from."""

    run: Run
    needed: Sequence[Any]
    data_dir: Path | None


def _missing(runs: Iterable[Run], store: Store, data_dir: Path | None) -> dict[str, Run]:
    """Return the runs that are not stored, and those that they need, by key."""
    missing: dict[str, Run] = {}
    for run in runs:
        if run.key not in missing and store.get(run) is None:
            missing |= {**_missing(run.needs(data_dir), store, data_dir), run.key: run}
    return missing


def _ready(
    missing: dict[str, Run], failed: Collection[str], store: Store, data_dir: Path | None
) -> list[Task]:
    """Return the runs for which everything they need is stored.

    What runs need only now, from results that have come, is added to the missing ones.
    """
    tasks, further = [], dict[str, Run]()
    for run in missing.values():
        needs = run.needs(data_dir)
        if (needed := _stored(needs, store)) is None:
            continue
        then = run.needs_then(needed, data_dir)
        if (more := _stored(then, store)) is None:
            further |= {each.key: each for each in then if store.get(each) is None}
        else:
            tasks.append(Task(run, [*needed, *more], data_dir))
    new = [each for key, each in further.items() if key not in missing and key not in failed]
    missing |= {each.key: each for each in new}
    return tasks + [Task(each, (), data_dir) for each in new]


def _stored(runs: Sequence[Run], store: Store) -> list[Any] | None:
    """Return the results of runs; None if one is missing."""
    results = [store.get(run) for run in runs]
    return None if any(result is None for result in results) else results


def _attempt(task: Task) -> Any:
    """Carry out a run; return its result or the traceback of its failure."""
    try:
        return task.run.execute(task.needed, task.data_dir)
    except Exception:
        return traceback.format_exc()


def _execute_here(tasks: Sequence[Task]) -> Iterator[tuple[Task, Any]]:
    for task in tasks:
        yield task, _attempt(task)


class _Own(threading.local):
    pool: ProcessPoolExecutor | None = None


class Workers:
    """Threads that each own one worker process: if a process dies, only its run fails."""

    def __init__(self, n_jobs: int) -> None:
        self._threads = ThreadPoolExecutor(n_jobs)
        self._own = _Own()
        self._others = multiprocessing.active_children()

    def execute(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Any]]:
        """Yield every task with its outcome, in the order of completion."""
        futures = {self._threads.submit(self._in_own_process, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()

    def _in_own_process(self, task: Task) -> Any:
        if self._own.pool is None:
            # A forked process would inherit locks that other threads hold.
            spawn = multiprocessing.get_context("spawn")
            self._own.pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=_start_worker)
        try:
            return self._own.pool.submit(_attempt, task).result()
        except BrokenProcessPool:
            self._own.pool = None
            return "The worker process died, perhaps out of memory: use fewer processes."

    def end(self) -> None:
        """End all processes, even if they are busy: unfinished runs are not stored."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            if process not in self._others:
                process.terminate()
        self._threads.shutdown()


def _start_worker() -> None:
    # Ctrl-C reaches all processes of a terminal; the main process ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process if the main process is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
