"""Results of runs in a text file: one line of JSON for each run, under the hash of the run.

A line is appended when a run is complete. The file can be committed, and files can be joined by
concatenation: the first result of a run counts.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Collection
from dataclasses import asdict, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from experiments.protocol import Points, Result, Run


class Store:
    """Results of runs.

    Parameters
    ----------
    path : path-like or None
        The file; it is created by the first result. None keeps results in memory only.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._path = None if path is None else Path(path)
        self._rows: dict[str, dict[str, Any]] = {}
        self._errors: dict[str, str] = {}
        if self._path is not None and self._path.exists():
            self._load(self._path)

    def _load(self, path: Path) -> None:
        text = path.read_bytes()
        *lines, partial = text.split(b"\n")
        try:
            for row in map(json.loads, lines):
                self._add(row)
        except (ValueError, TypeError, KeyError):
            raise ValueError(
                f"{str(path)!r} is not a store of runs; name another file, or one that does not "
                "exist."
            ) from None
        if partial:  # the command was killed while it wrote this line
            os.truncate(path, len(text) - len(partial))

    def _add(self, row: dict[str, Any]) -> None:
        if "error" in row:
            self._errors[row["key"]] = row["error"]
        else:
            self._rows.setdefault(row["key"], row)

    def _append(self, row: dict[str, Any]) -> None:
        line = json.dumps(row, allow_nan=False) + "\n"
        self._add(row)
        if self._path is not None:
            # One write call, so that lines of several commands do not mix.
            with self._path.open("ab", buffering=0) as file:
                file.write(line.encode())

    def get(self, run: Run) -> Result | None:
        """Return the result of a run, None if it is not complete."""
        row = self._rows.get(run.key)
        if row is None:
            return None
        filled = {each.name: row[each.name] for each in fields(Result) if each.name in row}
        if "points" in filled:
            filled["points"] = Points(**filled["points"])
        return Result(**{"scores": {}, **filled})

    def put(self, run: Run, result: Result) -> None:
        """Write a complete run."""
        filled = {name: value for name, value in asdict(result).items() if value not in (None, {})}
        self._append({"key": run.key, "run": run.as_dict(), **filled, "versions": versions()})

    def fail(self, run: Run, error: str) -> None:
        """Write that a run failed; the next command tries it again."""
        self._append({"key": run.key, "run": run.as_dict(), "error": error})

    def error(self, run: Run) -> str | None:
        """Return the traceback of a failed run, None if it did not fail or succeeded later."""
        return None if run.key in self._rows else self._errors.get(run.key)

    def made_with(self) -> list[dict[str, str]]:
        """Return the distinct versions that the runs were made with."""
        distinct = {json.dumps(row["versions"]) for row in self._rows.values()}
        return [json.loads(text) for text in sorted(distinct)]

    def datasets(self) -> Collection[str]:
        """Return the data sets of the complete runs."""
        return {row["run"]["dataset"] for row in self._rows.values()}

    def __len__(self) -> int:
        return len(self._rows)


def versions() -> dict[str, str]:
    """Return the versions and the machine that results depend on."""
    packages = ("manyboost", "numpy", "scipy", "scikit-learn")
    return {
        **{name: version(name) for name in packages},
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }
