"""Cases in a child process: what ends or blocks it is counted, and the next goes on."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

#: Runs a case, described by a text; the case says by a word how it ended, or raises.
Run = Callable[[str, Callable[[], str]], None]

SECONDS_PER_CASE = 60.0
SECONDS_TO_START = 300.0


@dataclass
class Tally:
    """How many cases ended in which way."""

    endings: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    hangs: list[str] = field(default_factory=list)

    @property
    def cases(self) -> int:
        lost = len(self.failures) + len(self.crashes) + len(self.hangs)
        return sum(self.endings.values()) + lost


def count_cases(
    batch: Callable[[Any, Run], None], arguments: Iterable[Any], seconds: float = SECONDS_PER_CASE
) -> Tally:
    """Run ``batch(argument, run)`` for each argument in a child process, and count its cases.

    After a crash or a hang a new child goes through the same cases and begins after the lost one;
    so a batch must make the same cases each time.
    """
    tally, waiting, done = Tally(), list(arguments), 0
    while waiting:
        n_batches, done = _watch_child(batch, waiting, done, seconds, tally)
        waiting = waiting[n_batches:]
    return tally


def _watch_child(
    batch: Callable[[Any, Run], None],
    arguments: list[Any],
    done: int,
    seconds: float,
    tally: Tally,
) -> tuple[int, int]:
    """Return how many batches are complete, and how many cases of the next one."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(batch, arguments, done, theirs), daemon=True)
    child.start()
    theirs.close()
    n_batches, case = 0, "before the first case"
    patience = SECONDS_TO_START
    try:
        while True:
            if not ours.poll(patience):
                tally.hangs.append(case)
                break
            kind, text = ours.recv()
            if kind == "begin":
                case, patience = text, seconds
                continue
            patience = SECONDS_TO_START
            if kind == "batch":
                n_batches, done = n_batches + 1, 0
                if n_batches == len(arguments):
                    return n_batches, 0
                continue
            done += 1
            if kind == "end":
                tally.endings[text] += 1
            else:
                tally.failures.append(f"{case}: {text}")
    except EOFError:
        child.join()
        tally.crashes.append(f"{case}: exit code {child.exitcode}")
    finally:
        child.kill()
        child.join()
        ours.close()
    if case == "before the first case":
        raise RuntimeError(f"the child process does not work: {tally.crashes or tally.hangs}")
    return n_batches, done + 1


def _work(
    batch: Callable[[Any, Run], None], arguments: list[Any], skipped: int, pipe: Connection
) -> None:
    faulthandler.enable()
    for number, argument in enumerate(arguments):
        to_skip = skipped if number == 0 else 0

        def run(case: str, call: Callable[[], str]) -> None:
            nonlocal to_skip
            if to_skip:
                to_skip -= 1
                return
            pipe.send(("begin", case))
            try:
                pipe.send(("end", call()))
            except Exception as error:
                pipe.send(("failure", described(error)))

        batch(argument, run)
        pipe.send(("batch", ""))
    # Without the ceremony of an interpreter that ends: all is said.
    os._exit(0)


def described(error: BaseException) -> str:
    """The error and the line that it comes from, in one line."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    text = " ".join(str(error).split())
    return f"{type(error).__name__} at {where}: {text[:300]}"
