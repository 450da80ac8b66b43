"""Run a suite: each entry in its own process, repeats interleaved, results/SUITE.json kept current.

    python -m benchmarks.run quick
    python -m benchmarks.run full --workloads 'regression-*' --contestants 'manyboost-*'

An interrupted run resumes: a record that exists with the same specification is not made again. On
another machine, what was measured as a whole is kept, and the rest is measured there.
"""

import argparse
import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from benchmarks import machine, suites, workloads
from benchmarks.contestants import CONTESTANTS
from benchmarks.progress import say
from benchmarks.result_files import Refused, Results, unit
from benchmarks.suites import Entry

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
LONG_FIT = 30.0  # seconds: a fit this long is not repeated
POLL = 0.2  # seconds between two looks at a running contestant
GIGABYTE = 10**9
MEMORY = 20.0  # gigabytes of one process
BUSY = 0.1  # cores used by other processes from which on a record is marked


@dataclass(frozen=True)
class Budget:
    """What a process may use before it is killed, far above the limit where a fit stops itself."""

    seconds: float
    memory: float  # bytes


def main() -> None:
    options = parse(sys.argv[1:])
    results = Results(options.results or RESULTS / f"{options.suite}.json", fresh=options.fresh)
    entries = [entry for entry in suites.SUITES[options.suite]() if selected(entry, options)]
    if options.limit:
        entries = [Entry(**{**vars(entry), "limit": options.limit}) for entry in entries]
    if options.again:
        results.forget(entries)
    plan = SuitePlan(entries, options.repeats, options.budget, options.memory)
    try:
        plan.run(results)
    except Refused as refused:
        sys.exit(str(refused))
    except KeyboardInterrupt:
        sys.exit("\ninterrupted; the same command resumes from here")
    say(f"{len(results.records)} records in {results.file}")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description=__doc__.split("\n")[0]
    )
    parser.add_argument("suite", choices=suites.SUITES)
    parser.add_argument(
        "--workloads", default="*", help="only those that match, e.g. 'regression-*,delicious'"
    )
    parser.add_argument(
        "--contestants", default="*", help="only those that match, e.g. 'manyboost-*'"
    )
    parser.add_argument("--repeats", type=int, help="at most so many repeats")
    parser.add_argument(
        "--limit", type=float, help="seconds of fitting, instead of the suite's limits"
    )
    parser.add_argument("--budget", type=float, help="seconds until a process is killed")
    parser.add_argument("--memory", type=float, default=MEMORY, help="gigabytes until it is killed")
    parser.add_argument("--fresh", action="store_true", help="forget the records of earlier runs")
    parser.add_argument(
        "--again", action="store_true", help="forget those of the selected entries alone"
    )
    parser.add_argument(
        "--results", type=Path, help="another file than benchmarks/results/SUITE.json"
    )
    return parser.parse_args(arguments)


def selected(entry: Entry, options: argparse.Namespace) -> bool:
    def matches(name: str, patterns: str) -> bool:
        return any(fnmatch(name, pattern) for pattern in patterns.split(","))

    return matches(entry.workload, options.workloads) and matches(
        entry.contestant, options.contestants
    )


Jobs = list[tuple[Entry, int]]  # entries and repeats


def interleaved(plan: list[Entry], most_repeats: int | None) -> Jobs:
    """All first repeats, then all second ones, …: a slow hour of the machine hits all alike."""
    most = max((entry.repeats for entry in plan), default=0)
    return [
        (entry, repeat)
        for repeat in range(min(most, most_repeats or most))
        for entry in plan
        if repeat < entry.repeats
    ]


class Plan(ABC):
    """Entries, and the records that they ask for."""

    entries: Sequence[Entry]
    repeats: int | None  # at most so many
    memory: float  # gigabytes until a process is killed

    @abstractmethod
    def unavailable(self, entry: Entry) -> str | None:
        """Why an entry cannot be measured here, or None."""

    @abstractmethod
    def specification(self, entry: Entry, repeat: int) -> dict[str, Any]:
        """All that decides about a record."""

    @abstractmethod
    def measured(self, spec: dict[str, Any], entry: Entry) -> dict[str, Any]:
        """A new record."""

    @abstractmethod
    def is_long(self, first: dict[str, Any]) -> bool:
        """Whether a first repeat took so long, or ended so badly, that there is no second one."""

    def is_whole(self, record: dict[str, Any]) -> bool:
        """Whether a record tells all that is measured now, and could not with more memory."""
        enough = record["status"] != "over memory"
        return enough or record["budget"]["memory"] >= self.memory * GIGABYTE

    def units(self) -> dict[str, Jobs]:
        """The jobs of each unit: what is measured together, on one machine."""
        entries: dict[str, list[Entry]] = {}
        for entry in self.entries:
            entries.setdefault(unit(entry.workload, entry.protocol), []).append(entry)
        return {name: interleaved(each, self.repeats) for name, each in entries.items()}

    def run(self, results: Results, *, mixed: bool = False) -> None:
        """Measure what is missing, unit by unit.

        A unit of which another machine measured a part is measured here from its beginning, unless
        it may be ``mixed``.
        """
        units = self.units()
        n_jobs, number, began = sum(map(len, units.values())), 0, time.monotonic()
        for name, jobs in units.items():
            if any(self.known(*each, results) is None for each in jobs):
                made = [each for each in jobs if not self.unavailable(each[0])]
                results.begin(name, [self.specification(*each) for each in made], mixed=mixed)
            for entry, repeat in jobs:
                number += 1
                minutes, seconds = divmod(int(time.monotonic() - began), 60)
                head = f"[{number:4}/{n_jobs} {minutes:3}:{seconds:02}] {title(entry, repeat)} "
                say(f"{head:88}", end="")
                say(self.run_one(entry, repeat, results))

    def run_one(self, entry: Entry, repeat: int, results: Results) -> str:
        """Make the record of one job unless there is one; what happened, in a few words."""
        if known := self.known(entry, repeat, results):
            return known
        record = self.measured(self.specification(entry, repeat), entry)
        results.add(record)
        return outcome(record)

    def known(self, entry: Entry, repeat: int, results: Results) -> str | None:
        """Why a job is not to be done, in a few words; None if it is."""
        if reason := self.unavailable(entry):
            results.skip(entry, reason)
            return f"skipped: {reason}"
        spec = self.specification(entry, repeat)
        if (found := results.find(spec)) and self.is_whole(found):
            return f"known: {outcome(found)}"
        if (failure := results.failure(spec)) and failure["machine"] != results.here:
            return "failed on the machine that measured its unit"
        of_first = {**spec, "repeat": 0}
        first = results.find(of_first) or results.failure(of_first)
        if repeat and first and self.is_long(first):
            return "not repeated: the first took long enough, or failed"
        return None


@dataclass(frozen=True)
class SuitePlan(Plan):
    """Entries of a suite, each within seconds and gigabytes."""

    entries: Sequence[Entry]
    repeats: int | None = None
    seconds: float | None = None  # None: far above the limit of the entry
    memory: float = MEMORY

    def unavailable(self, entry: Entry) -> str | None:
        return unavailable(entry)

    def specification(self, entry: Entry, repeat: int) -> dict[str, Any]:
        return specification(entry, repeat)

    def measured(self, spec: dict[str, Any], entry: Entry) -> dict[str, Any]:
        seconds = self.seconds or 3 * entry.limit + 120
        return run_process(spec, Budget(seconds, self.memory * GIGABYTE))

    def is_long(self, first: dict[str, Any]) -> bool:
        seconds = first.get("fit_seconds_measured", [0.0])[0]
        return first["status"] != "ok" or bool(first.get("extrapolated")) or seconds >= LONG_FIT


def unavailable(entry: Entry) -> str | None:
    if entry.workload == "import":
        return None if machine.library(library(entry)) else f"{library(entry)} is not installed"
    return workloads.find(entry.workload).missing() or CONTESTANTS[entry.contestant]().unavailable()


def library(entry: Entry) -> str:
    if entry.workload == "import":
        return entry.contestant.removeprefix("import-")
    return CONTESTANTS[entry.contestant].library.split(".")[0]


def specification(entry: Entry, repeat: int) -> dict[str, Any]:
    """All that decides about a record."""
    spec = {
        "workload": entry.workload,
        "contestant": entry.contestant,
        "n_threads": entry.threads,
        "limit": entry.limit,
        "repeat": repeat,
        "library": machine.library(library(entry)),
    }
    if entry.workload != "import":
        workload = workloads.find(entry.workload)
        spec |= {
            "n_rounds": entry.n_rounds or workload.n_rounds,
            "max_leaf_nodes": entry.leaves or workload.max_leaf_nodes,
            "max_bins": suites.BINS,
            "learning_rate": suites.LEARNING_RATE,
        }
    if entry.protocol != "fit":
        spec |= {"protocol": entry.protocol, "variant": entry.variant}
    return spec


def run_process(spec: dict[str, Any], budget: Budget) -> dict[str, Any]:
    """The record of a process of its own; one that fails or exceeds its budget has a record too."""
    threads = str(spec["n_threads"])
    environment = os.environ | {
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "PYTHONWARNINGS": "ignore",
    }
    when = datetime.now(UTC).isoformat(timespec="seconds")
    with tempfile.TemporaryDirectory() as folder:
        spec_file, record_file, log_file = (
            Path(folder) / name for name in ("spec", "record", "log")
        )
        spec_file.write_text(json.dumps(spec))
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.measure", spec_file, record_file],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is ours alone; all its children end with it
            )
        others = OthersLoad()
        with contextlib.suppress(OSError):  # if memory runs out all the same, it is the one to go
            Path(f"/proc/{process.pid}/oom_score_adj").write_text("1000")
        try:
            status = watch(process, budget)
        finally:
            end(process)
        facts = {"when": when, "others_cores": others.cores()}
        if status == "ok" and record_file.is_file():
            return {**json.loads(record_file.read_text()), **facts}
        if status == "ok":
            status = "failed"
        log_tail = log_file.read_text(errors="replace")[-2000:]
        return {"spec": spec, "status": status, "budget": vars(budget), "log": log_tail, **facts}


def watch(process: subprocess.Popen, budget: Budget) -> str:
    """Wait for the process: "ok" when it ended, else what it exceeded."""
    began = time.monotonic()
    while process.poll() is None:
        if time.monotonic() - began > budget.seconds:
            return "over budget"
        if resident_bytes(process.pid) > budget.memory:
            return "over memory"
        time.sleep(POLL)
    return "ok"


def end(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def resident_bytes(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


class OthersLoad:
    """How many cores other processes kept busy meanwhile: what they take, a record lacks."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.busy, self.own = busy_seconds(), own_seconds()

    def cores(self) -> float | None:
        """Call it when the measured process has ended."""
        if self.busy is None:
            return None
        others = busy_seconds() - self.busy - (own_seconds() - self.own)
        return round(max(0.0, others / (time.monotonic() - self.began)), 3)


def busy_seconds() -> float | None:
    """CPU time of the whole machine, that taken away by its host included."""
    try:
        user, nice, system, _idle, _wait, irq, softirq, steal = (
            int(word) for word in Path("/proc/stat").read_text().split()[1:9]
        )
    except (OSError, ValueError):
        return None
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """CPU time of this process and of its children that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def busy_meanwhile(records: Iterable[dict[str, Any]]) -> str:
    """A warning if the machine had other things to do."""
    busy = max((record.get("others_cores") or 0.0 for record in records), default=0.0)
    if busy <= BUSY:
        return ""
    return (
        f"While this was measured, other processes kept up to {busy:.1f} cores busy: CPU times and "
        "ratios are more reliable than wall-clock seconds."
    )


def title(entry: Entry, repeat: int) -> str:
    rounds = f" {entry.n_rounds} rounds" if entry.n_rounds else ""
    leaves = f" {entry.leaves} leaves" if entry.leaves else ""
    threads = f" {entry.threads} thread" if entry.threads != suites.THREADS else ""
    variant = f" {entry.variant}" if entry.variant else ""
    what = f"{entry.contestant}{variant}{rounds}{leaves}{threads}"
    return f"{entry.workload} · {what} · {repeat + 1}"


def outcome(record: dict[str, Any]) -> str:
    """One line about a record, for the progress display."""
    if record["status"] != "ok":
        last = record.get("log", "").strip().split("\n")[-1] if record["status"] == "failed" else ""
        return f"{record['status']} {last}".strip()
    parts = [f"{record['fit_seconds']:.3g} s"]
    if record["spec"].get("protocol") == "rounds":
        parts = [f"{1000 * record['seconds_per_round']:.3g} ms a round"]
    if record["spec"].get("protocol") == "prediction":
        parts = [f"{record['n_test_rows'] / record['predict_seconds']:,.0f} rows/s"]
    if record.get("extrapolated"):
        parts.append(f"(from {record['extrapolated']})")
    if record.get("capped"):
        parts.append("(stopped by the limit)")
    if record.get("score") is not None:
        parts.append(f"{record['score_name']} {record['score']:.4f}")
    if (record.get("others_cores") or 0) > BUSY:
        parts.append(f"(others used {record['others_cores']:.1f} cores meanwhile)")
    return "  ".join(parts)


if __name__ == "__main__":
    main()
