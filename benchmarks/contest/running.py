"""Which fits are made, in which order, and which are known already."""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.contest import added, sets
from benchmarks.contest.contestants import CONTESTANTS
from benchmarks.contest.sets import SETS
from benchmarks.contestants.base import Contestant
from benchmarks.run import GIGABYTE, Budget, Results, interleaved, outcome, place, run_process, say
from benchmarks.suites import THREADS, Entry

ROUNDS = 1000
CAP = 300.0  # seconds of one fit
LONG_FIT = 60.0  # seconds: a fit this long is not repeated
MEMORY = 12.0  # gigabytes of one fit


@dataclass(frozen=True)
class Plan:
    """Sets, contestants and limits of a run; `file` is where added contestants are defined."""

    sets: Iterable[str] = tuple(SETS)
    contestants: Mapping[str, type[Contestant]] = field(default_factory=lambda: CONTESTANTS)
    cap: float = CAP
    repeats: int | None = None
    threads: int = THREADS
    memory: float = MEMORY
    file: Path | None = None

    def jobs(self) -> list[tuple[Entry, int]]:
        """(entry, repeat) in the order of SETS; the repeats of a set are interleaved."""
        jobs = []
        for name in (name for name in SETS if name in self.sets):
            entries = [
                Entry(name, contestant, ROUNDS, self.threads, SETS[name].repeats, self.cap)
                for contestant in self.contestants
            ]
            jobs += interleaved(entries, self.repeats)
        return jobs

    def run(self, results: Results) -> None:
        """Run what is missing, set by set."""
        jobs = self.jobs()
        began = time.monotonic()
        for number, (entry, repeat) in enumerate(jobs, start=1):
            minutes, seconds = divmod(int(time.monotonic() - began), 60)
            head = f"[{number:4}/{len(jobs)} {minutes:4}:{seconds:02}] "
            what = f"{entry.workload} · {entry.contestant} · {repeat + 1} "
            say(f"{head + what}".ljust(76), end="")
            say(self.run_one(entry, repeat, results))

    def run_one(self, entry: Entry, repeat: int, results: Results) -> str:
        """Make the record of one job unless there is one; what happened, in a few words."""
        if reason := self.unavailable(entry):
            results.skip(entry, reason)
            return f"skipped: {reason}"
        spec = self.specification(entry, repeat)
        if (known := results.find(spec)) and is_whole(known):
            return f"known: {outcome(known)}"
        if repeat and is_long(results.find({**spec, "repeat": 0})):
            return "not repeated: the first took long enough"
        budget = Budget(3 * entry.limit + 120, self.memory * GIGABYTE)
        where = {"file": str(self.file.resolve())} if self.file else {}
        record = {**run_process({**spec, **where}, budget), "spec": spec}
        results.add(record)
        return outcome(record)

    def unavailable(self, entry: Entry) -> str | None:
        contestant, task = self.contestants[entry.contestant](), SETS[entry.workload].task
        if task not in contestant.tasks:
            return f"{contestant.name} does no {task}"
        return sets.missing(entry.workload) or contestant.unavailable()

    def specification(self, entry: Entry, repeat: int) -> dict[str, Any]:
        """All that decides about a record."""
        library = self.contestants[entry.contestant].library.split(".")[0]
        spec = {
            "protocol": "contest",
            "workload": entry.workload,
            "contestant": entry.contestant,
            "n_rounds": entry.n_rounds,
            "n_threads": entry.threads,
            "limit": entry.limit,
            "repeat": repeat,
            "library": machine.library(library) or library,
        }
        return {**spec, "source": added.digest(self.file)} if self.file else spec


def is_whole(record: dict[str, Any]) -> bool:
    """Whether it tells all that is measured now; those that lack memory are made anew."""
    return record.get("score") is None or "peak_bytes" in record


def is_long(first: dict[str, Any] | None) -> bool:
    """Whether a first repeat took so long, or ended so badly, that there is no second one."""
    return first is not None and (first["status"] != "ok" or first["fit_seconds"] > LONG_FIT)


class Beside(Results):
    """The stored records as they are, of whatever machine and build, and new ones beside them.

    New ones that are made on another machine say so.
    """

    def __init__(self, file: Path) -> None:
        here = machine.describe()
        stored = json.loads(file.read_text()) if file.is_file() else {"machine": here}
        self.file = file
        self.machine = stored["machine"]
        self.skipped = stored.get("skipped", {})
        self.records = stored.get("records", [])
        elsewhere = place(here) != place(self.machine)
        self.marks = {"place": place(here)} if elsewhere else {}

    def add(self, record: dict[str, Any]) -> None:
        super().add({**record, **self.marks})
