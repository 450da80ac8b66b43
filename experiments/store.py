"""Results of runs in a folder of text files.

A row is appended when its run is complete. The files can be committed, and two stores are joined by
concatenation: the first result of a run counts, and the longest trial.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import platform
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import manyboost
from experiments.protocol import (
    Curve,
    CurveResult,
    Model,
    ModelResult,
    Run,
    Search,
    SearchResult,
    Trial,
    TrialResult,
)

_SETTINGS = ("loss", "learning_rate", "max_features", "max_leaf_nodes")
_COLUMNS = (
    *("dataset", "seed", "split", "method"),
    *_SETTINGS,
    *("rounds", "stalled", "points", "seconds", "build"),
)
#: By kind: how to make the run and its result from stored fields.
_KINDS: dict[str, tuple[type[Run], Callable[[dict[str, Any]], Any]]] = {
    "search": (Search, SearchResult.of),
    "curve": (Curve, lambda fields: CurveResult(**fields)),
    "model": (Model, lambda fields: ModelResult(**fields)),
}


class Store:
    """Results of runs.

    Parameters
    ----------
    folder : path-like or None
        Where the files are; it is created by the first result. None keeps results in memory only.
    """

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._results: dict[str, Any] = {}
        self._runs: dict[str, Run] = {}
        self.builds: dict[str, dict[str, str]] = {}
        if self._folder is None:
            return
        try:
            for archive in sorted(self._folder.glob("trials-*.csv.gz")):
                self._keep_trials(gzip.decompress(archive.read_bytes()).decode().splitlines())
            self._keep_trials(self._lines("trials.csv"))
            for line in self._lines("results.jsonl"):
                row = json.loads(line)
                kind = row["run"].pop("kind")
                make, read = _KINDS[kind]
                self._keep(make(**row["run"]), read(row["result"]))
            for line in self._lines("builds.jsonl"):
                self.builds.update(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise ValueError(
                f"{str(folder)!r} is not a store of runs; name another folder, or one that does "
                "not exist."
            ) from None

    def _keep_trials(self, lines: Iterable[str]) -> None:
        for row in csv.DictReader(lines, _COLUMNS):
            if row["dataset"] != "dataset":  # the header, or that of a joined store
                self._keep(*_read_trial(row))

    def _lines(self, name: str) -> list[str]:
        """Return the complete lines of a file: the last may have been cut off by an interrupt."""
        assert self._folder is not None
        path = self._folder / name
        text = path.read_text("utf-8") if path.exists() else ""
        return text.split("\n")[:-1]

    def _keep(self, run: Run, result: Any) -> None:
        present = self._results.get(run.key)
        longer = isinstance(result, TrialResult) and present and present.rounds < result.rounds
        if present is None or longer:
            self._results[run.key], self._runs[run.key] = result, run

    def get(self, run: Run) -> Any:
        """Return the result of a run, None if it is not complete."""
        result = self._results.get(run.key)
        if isinstance(run, Trial) and result and not run.is_answered_by(result):
            return None
        return result

    def put(self, run: Run, result: Any) -> None:
        """Write a complete run."""
        self._keep(run, result)
        if self._folder is None:
            return
        build, made_with = this_build()
        if build not in self.builds:
            self.builds[build] = made_with
            self._append("builds.jsonl", json.dumps({build: made_with}))
        if isinstance(run, Trial):
            if not (self._folder / "trials.csv").exists():
                self._append("trials.csv", ",".join(_COLUMNS))
            self._append("trials.csv", _trial_row(run, result, build))
        else:
            row = {"run": run.as_dict(), "result": asdict(result), "build": build}
            self._append("results.jsonl", json.dumps(row, allow_nan=False, separators=(",", ":")))

    def _append(self, name: str, line: str) -> None:
        assert self._folder is not None
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / name).open("ab", buffering=0) as file:
            if file.tell():
                with (self._folder / name).open("rb") as present:
                    present.seek(-1, os.SEEK_END)
                    if present.read() != b"\n":  # a command was killed while it wrote this line
                        text = (self._folder / name).read_bytes()
                        os.truncate(self._folder / name, text.rfind(b"\n") + 1)
            file.write(line.encode() + b"\n")  # one call, so that lines do not mix

    def trials(self) -> Iterable[tuple[Trial, TrialResult]]:
        """Yield all trials."""
        for key, run in self._runs.items():
            if isinstance(run, Trial):
                yield run, self._results[key]

    def runs(self) -> Iterable[tuple[Run, Any]]:
        """Yield all runs but trials, with their results."""
        for key, run in self._runs.items():
            if not isinstance(run, Trial):
                yield run, self._results[key]

    def datasets(self) -> Collection[str]:
        """Return the data sets of the complete runs."""
        return {run.dataset for run, _ in self.runs()}

    def archive(self) -> Path | None:
        """Move the rows of trials to a new compressed file; return it, None if there are none."""
        assert self._folder is not None
        plain = self._folder / "trials.csv"
        if not plain.exists():
            return None
        number = len(list(self._folder.glob("trials-*.csv.gz"))) + 1
        archive = self._folder / f"trials-{number:02}.csv.gz"
        archive.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
        plain.unlink()
        return archive

    def __len__(self) -> int:
        return len(self._results)


def _trial_row(run: Trial, result: TrialResult, build: str) -> str:
    text = io.StringIO()
    points = " ".join(f"{rounds}:{score!r}" for rounds, score in result.points)
    settings = [run.settings[name] for name in _SETTINGS]
    ending = [result.rounds, int(result.stalled), points, f"{result.seconds:g}", build]
    writer = csv.writer(text, lineterminator="")
    writer.writerow([run.dataset, run.seed, run.split, run.method, *settings, *ending])
    return text.getvalue()


def _read_trial(row: dict[str, str]) -> tuple[Trial, TrialResult]:
    features = row["max_features"]
    settings = {
        "loss": row["loss"],
        "learning_rate": float(row["learning_rate"]),
        "max_features": features if features == "sqrt" else float(features),
        "max_leaf_nodes": int(row["max_leaf_nodes"]),
    }
    rounds, method = int(row["rounds"]), row["method"]
    run = Trial(row["dataset"], int(row["seed"]), int(row["split"]), method, settings, rounds)
    pairs = (point.split(":") for point in row["points"].split(" "))
    points = [(int(done), float(score)) for done, score in pairs]
    return run, TrialResult(rounds, row["stalled"] == "1", points, float(row["seconds"]))


@cache
def this_build() -> tuple[str, dict[str, str]]:
    """Return the digest of the code of the package, and the versions that results depend on."""
    folder = Path(manyboost.__file__).parent
    code = hashlib.sha256()
    for path in sorted([*folder.rglob("*.py"), *folder.glob("_core*")]):
        if path.is_file():
            code.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    packages = ("manyboost", "numpy", "scipy", "scikit-learn")
    made_with = {
        **{name: version(name) for name in packages},
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }
    return code.hexdigest()[:8], made_with
