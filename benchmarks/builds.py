"""Two builds of the library in turn: what a round, growing a tree and predictions take in each.

    python -m benchmarks.builds OLD [NEW]

OLD and NEW are folders that hold the package `manyboost` with its compiled extension; without NEW,
the one that is installed. Each build runs in a process of its own, and they take turns, so that the
noise of the machine hits both alike. A round is timed as in `engine`; only what both builds know of
the library is used. The result is printed.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import util
from pathlib import Path
from typing import Any

from benchmarks import engine, machine, suites
from benchmarks.build_tables import Builds, Pair
from benchmarks.parts import kernel_seconds
from benchmarks.progress import say
from benchmarks.run import ROOT, OthersLoad, end, specification, title, unavailable
from benchmarks.suites import Entry

LEAST_TURNS, MOST_TURNS = 3, 25

Turn = list[float]  # seconds of a short and a long fit, or of the one thing that is timed


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        measure_when_asked(Path(sys.argv[2]), json.loads(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.builds", description=__doc__.split("\n")[0]
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path, nargs="?", default=installed())
    options = parser.parse_args()
    if options.new is None:
        parser.error("manyboost is not installed here; name the folder of the new build, too")
    folders = {"before": options.old.resolve(), "now": options.new.resolve()}
    for folder in folders.values():
        if not list(folder.glob("manyboost/_core*.so")):
            parser.error(f"{folder} holds no package manyboost with a compiled extension")
    head, records = compared(suites.builds(), folders)
    print(*Builds(head, records).section(), sep="\n\n")


def compared(
    plan: list[Entry], folders: dict[str, Path]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The builds and what was skipped; and a record for each entry."""
    builds = {name: described(folder) for name, folder in folders.items()}
    skipped: dict[str, str] = {}
    records = []
    for number, entry in enumerate(plan, start=1):
        what = f"{entry.protocol}: {title(entry, 0).removesuffix(' · 1')}"
        say(f"[{number:2}/{len(plan)}] {what:72} ", end="")
        if reason := unavailable(entry):
            skipped[f"{entry.workload} · two builds"] = reason
            say(f"skipped: {reason}")
        else:
            records.append(in_turns(entry, folders))
            say(f"{Pair.of(records[-1]).times_as_fast:.3g} times as fast")
    return {"builds": builds, "skipped": skipped}, records


def in_turns(entry: Entry, folders: dict[str, Path]) -> dict[str, Any]:
    """The record of one entry: the turns of both builds, for about `limit` seconds."""
    spec = specification(entry, 0)
    del spec["library"]  # there are two
    when, others = datetime.now(UTC).isoformat(timespec="seconds"), OthersLoad()
    builds = [(name, Build(folder, spec)) for name, folder in folders.items()]
    turns: dict[str, list[Turn]] = {name: [] for name in folders}
    try:
        for _, build in builds:
            build.answer()  # it is ready
        began = time.monotonic()
        for n in range(MOST_TURNS):
            if n >= LEAST_TURNS and (time.monotonic() - began) * (n + 1) / n > entry.limit:
                break
            for name, build in builds if n % 2 else builds[::-1]:
                turns[name].append(build.turn())
    finally:
        for _, build in builds:
            build.close()
    return {"spec": spec, "when": when, "others_cores": others.cores(), **turns}


# ------------------------------------------------------------------ a build


def installed() -> Path | None:
    """The folder of the package that this interpreter imports."""
    spec = util.find_spec("manyboost")
    return Path(spec.origin).resolve().parents[1] if spec and spec.origin else None


def described(folder: Path) -> dict[str, str]:
    """What a build was made of, as far as its folder is in a repository."""

    def git(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", "-C", str(folder), *command], capture_output=True, text=True)

    commit = git("rev-parse", "--short", "HEAD").stdout.strip() or "unknown"
    if git("diff", "--quiet", "HEAD", "--", ":/python", ":/crates").returncode == 1:
        commit += " with changes"
    return {"commit": commit, "digest": machine.digest(folder / "manyboost")}


class Build:
    """A process that measures one entry with the package of one folder, whenever it is asked."""

    def __init__(self, folder: Path, spec: dict[str, Any]) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.builds", "--measure", str(folder), json.dumps(spec)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # all that it starts ends with it
        )

    def turn(self) -> Turn:
        assert self.process.stdin is not None
        self.process.stdin.write("again\n")
        self.process.stdin.flush()
        return [float(word) for word in self.answer().split()]

    def answer(self) -> str:
        assert self.process.stdout is not None
        if answer := self.process.stdout.readline():
            return answer
        sys.exit(f"the build in {self.folder} failed")

    def close(self) -> None:
        with self.process:  # which closes its pipes
            end(self.process)


def measure_when_asked(folder: Path, spec: dict[str, Any]) -> None:
    """Be the process of a build: one turn for each line of the standard input."""
    if installed() != folder:
        sys.exit(f"manyboost comes from {installed()}, not from {folder}")
    turn = PROTOCOLS[spec["protocol"]](spec)
    turn()  # a warm-up
    print("ready", flush=True)
    for _ in sys.stdin:
        print(*turn(), flush=True)


def of_rounds(spec: dict[str, Any]) -> Callable[[], Turn]:
    kind, data = engine.prepared(spec)
    short, long = engine.short_and_long(spec)
    return lambda: [engine.fitted(kind, data, settings)[1] for settings in (short, long)]


def of_growth(spec: dict[str, Any]) -> Callable[[], Turn]:
    kind, data = engine.prepared(spec)
    _, settings = engine.short_and_long(spec)

    def fit() -> object:
        return engine.fitted(kind, data, settings)

    return lambda: [kernel_seconds(fit, settings.n_rounds)["grow"]]


def of_predictions(spec: dict[str, Any]) -> Callable[[], Turn]:
    kind, data = engine.prepared(spec)
    settings = engine.settings_of_predictor(spec)
    contestant, _ = engine.fitted(kind, engine.few_rows(data), settings)

    def turn() -> Turn:
        began = time.perf_counter()
        contestant.predict(data.X)
        return [time.perf_counter() - began]

    return turn


PROTOCOLS = {"rounds": of_rounds, "growth": of_growth, "prediction": of_predictions}


if __name__ == "__main__":
    main()
