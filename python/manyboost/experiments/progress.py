"""How far a command is: one line that changes on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from typing import TextIO

from manyboost.experiments.protocol import Specification

_EVERY = 0.5  # seconds between two states of the line on a terminal
_EVERY_PLAIN = 30.0  # seconds between two plain lines


class Progress:
    """Counts runs and guesses the time left from the runs that are done.

    Parameters
    ----------
    stream : text stream or None
        Where to show it; None shows nothing.
    runs : iterable of Specification
        The runs to come.
    n_jobs : int
        How many of them run at a time.
    """

    def __init__(self, stream: TextIO | None, runs: Iterable[Specification], n_jobs: int) -> None:
        self._stream = stream
        self._n_jobs = n_jobs
        self._waiting: dict[str, int] = defaultdict(int)
        for run in runs:
            self._waiting[run.label] += 1
        self._total = sum(self._waiting.values())
        self._done = 0
        self._spent: dict[str, list[float]] = defaultdict(list)
        self._failed = 0
        self._live = stream is not None and stream.isatty()
        self._width = 0
        self._shown = 0.0

    def finished(self, run: Specification, seconds: float) -> None:
        """Count a complete run."""
        self._done += 1
        self._waiting[run.label] -= 1
        self._spent[run.label].append(seconds)
        self._show(run.label, final=self._done == self._total)

    def failed(self, run: Specification, reason: str, n_given_up: int) -> None:
        """Show a run that failed, and count those that needed it."""
        self._failed += 1 + n_given_up
        self._waiting[run.label] -= 1
        after = f" ({n_given_up} runs that need it are left out)" if n_given_up else ""
        self.say(f"failed: {run.label}: {reason}{after}")

    def say(self, line: str) -> None:
        """Write a line of its own."""
        if self._stream is not None:
            self._clear()
            self._stream.write(line + "\n")
            self._stream.flush()

    def close(self) -> None:
        """Leave the last state behind."""
        if self._stream is not None and self._width:
            self._stream.write("\n")
            self._stream.flush()
            self._width = 0

    def seconds_left(self) -> float | None:
        """Guess from the runs of the same label, or from all where there are none."""
        every = [seconds for spent in self._spent.values() for seconds in spent]
        if not every:
            return None
        typical = sum(every) / len(every)
        left = 0.0
        for label, count in self._waiting.items():
            spent = self._spent.get(label)
            left += count * (sum(spent) / len(spent) if spent else typical)
        return left / self._n_jobs

    def _show(self, label: str, *, final: bool) -> None:
        now = time.monotonic()
        pause = _EVERY if self._live else _EVERY_PLAIN
        if self._stream is None or (not final and now - self._shown < pause):
            return
        self._shown = now
        left = self.seconds_left()
        line = f"{self._done}/{self._total} runs"
        if left is not None and not final:
            line += f", about {_duration(left)} left"
        if self._failed:
            line += f", {self._failed} failed"
        if not final:
            line += f" · {label}"
        if not self._live:
            self.say(line)
            return
        self._clear()
        self._stream.write(line)
        self._stream.flush()
        self._width = len(line)

    def _clear(self) -> None:
        if self._live and self._width and self._stream is not None:
            self._stream.write("\r" + " " * self._width + "\r")
            self._width = 0


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
