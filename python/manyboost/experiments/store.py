"""Results of runs in an SQLite file: complete runs only, each under the hash of what it is."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import version
from typing import Any

from manyboost.experiments.protocol import Points, Result, Specification

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY,
    specification TEXT NOT NULL,
    scores TEXT NOT NULL,
    rounds INTEGER NOT NULL,
    seconds REAL NOT NULL,
    points TEXT,
    chosen TEXT NOT NULL,
    n_capped INTEGER NOT NULL,
    versions TEXT NOT NULL,
    finished TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS failures (
    key TEXT PRIMARY KEY,
    specification TEXT NOT NULL,
    error TEXT NOT NULL,
    finished TEXT NOT NULL
) STRICT;
"""
_WAIT = 60.0  # seconds for another command to let go of the file


class Store:
    """Results of runs, kept in a file.

    A run is written when it is complete, in one transaction; an interrupt leaves no half of it.

    Parameters
    ----------
    path : path-like
        The file, made if there is none; ``":memory:"`` keeps nothing.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._database = sqlite3.connect(path, timeout=_WAIT)
        try:
            self._database.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise ValueError(
                f"{os.fspath(path)!r} is not a store of runs ({error}); name another file, or one "
                "that does not exist."
            ) from None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def get(self, specification: Specification) -> Result | None:
        """Return the result of a run, None if it is not complete."""
        row = self._database.execute(
            "SELECT scores, rounds, seconds, points, chosen, n_capped FROM runs WHERE key = ?",
            (specification.key,),
        ).fetchone()
        if row is None:
            return None
        scores, rounds, seconds, points, chosen, n_capped = row
        return Result(
            json.loads(scores),
            rounds,
            seconds,
            None if points is None else Points(**json.loads(points)),
            json.loads(chosen),
            n_capped,
        )

    def put(self, specification: Specification, result: Result) -> None:
        """Write a complete run, and forget that it failed before."""
        points = None if result.points is None else json.dumps(asdict(result.points))
        row = (
            specification.key,
            specification.as_json(),
            json.dumps(dict(result.scores)),
            result.rounds,
            result.seconds,
            points,
            json.dumps(dict(result.chosen)),
            result.n_capped,
            json.dumps(versions()),
            _now(),
        )
        with self._database:
            # The first result stands: another command may have been faster.
            self._database.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (key) DO NOTHING",
                row,
            )
            self._database.execute("DELETE FROM failures WHERE key = ?", (specification.key,))

    def fail(self, specification: Specification, error: str) -> None:
        """Write that a run failed; it is tried again by the next command."""
        row = (specification.key, specification.as_json(), error, _now())
        with self._database:
            self._database.execute("INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?)", row)

    def error(self, specification: Specification) -> str | None:
        """Return why a run failed, None if it did not."""
        row = self._database.execute(
            "SELECT error FROM failures WHERE key = ?", (specification.key,)
        ).fetchone()
        return None if row is None else str(row[0])

    def made_with(self) -> list[dict[str, str]]:
        """Return the sets of versions that the runs were made with."""
        rows = self._database.execute("SELECT DISTINCT versions FROM runs ORDER BY versions")
        return [json.loads(row[0]) for row in rows]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the specifications of the complete runs."""
        rows = self._database.execute("SELECT specification FROM runs ORDER BY finished")
        return (json.loads(row[0]) for row in rows)

    def __len__(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM runs").fetchone()[0])


def versions() -> dict[str, str]:
    """Return the versions and the machine that results depend on."""
    packages = ("manyboost", "numpy", "scipy", "scikit-learn")
    return {
        **{name: version(name) for name in packages},
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
