"""Which fits are made, in which order, and which are known already."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import machine, run
from benchmarks.contest import added, sets
from benchmarks.contest.contestants import CONTESTANTS
from benchmarks.contest.sets import SETS
from benchmarks.contestants.base import Contestant
from benchmarks.run import GIGABYTE, MEMORY, Budget, run_process
from benchmarks.suites import THREADS, Entry

ROUNDS = 1000
CAP = 300.0  # seconds of one fit
LONG_FIT = 60.0  # seconds: a fit this long is not repeated


@dataclass(frozen=True)
class Plan(run.Plan):
    """Sets, contestants and limits of a run; `file` is where added contestants are defined."""

    sets: Iterable[str] = tuple(SETS)
    contestants: Mapping[str, type[Contestant]] = field(default_factory=lambda: CONTESTANTS)
    cap: float = CAP
    repeats: int | None = None
    threads: int = THREADS
    memory: float = MEMORY
    file: Path | None = None

    @property
    def entries(self) -> Sequence[Entry]:
        """In the order of SETS."""
        return [
            Entry(
                name,
                contestant,
                ROUNDS,
                self.threads,
                SETS[name].repeats,
                self.cap,
                protocol="contest",
            )
            for name in SETS
            if name in self.sets
            for contestant in self.contestants
        ]

    def unavailable(self, entry: Entry) -> str | None:
        contestant, task = self.contestants[entry.contestant](), SETS[entry.workload].task
        if task not in contestant.tasks:
            return f"{contestant.name} does no {task}"
        return sets.missing(entry.workload) or contestant.unavailable()

    def specification(self, entry: Entry, repeat: int) -> dict[str, Any]:
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

    def measured(self, spec: dict[str, Any], entry: Entry) -> dict[str, Any]:
        budget = Budget(3 * entry.limit + 120, self.memory * GIGABYTE)
        where = {"file": str(self.file.resolve())} if self.file else {}
        return {**run_process({**spec, **where}, budget), "spec": spec}

    def is_long(self, first: dict[str, Any]) -> bool:
        return is_long(first)

    def is_whole(self, record: dict[str, Any]) -> bool:
        """Records that do not tell the memory are made anew, too."""
        tells = record.get("score") is None or "peak_bytes" in record
        return tells and super().is_whole(record)


def is_long(first: dict[str, Any]) -> bool:
    """Whether a first repeat took so long, or ended so badly, that there is no second one."""
    return first["status"] != "ok" or first["fit_seconds"] > LONG_FIT
