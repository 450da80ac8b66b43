"""Checkpoints: a fit that was killed goes on where it was, and ends with the same model.

A checkpoint file holds all rounds so far, what later rounds depend on, and an :class:`Identity` of
the fit: digests of its data, and its parameters. It replaces the one before it at once, so that the
path always names a whole file, and it is read as strictly as a model file.
"""

from __future__ import annotations

import hashlib
import json
import os
import textwrap
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost import _core
from manyboost.arrays import F64
from manyboost.data.categories import Categories
from manyboost.data.rows import Rows
from manyboost.training.ensembles import TreeEnsemble
from manyboost.training.progress import Progress
from manyboost.training.projections import Projection

# Between two files pass so many times the seconds that the last one took to write.
_PAUSE = 20.0
# Parameters that no round depends on. The number of rounds may grow, as long as the learning rate,
# which is compared as a number, stays what it was.
_FREE = (
    *("callbacks", "checkpoint", "estimator", "max_iter", "max_time", "n_jobs", "verbose"),
    "warm_start",
)
_CELLS_AT_ONCE = 1 << 20


def is_path(value: Any) -> bool:
    """Whether a value may be the path of a file."""
    return (isinstance(value, str) and value != "") or isinstance(value, os.PathLike)


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a fit keeps its state; ``checkpoint=path`` is ``Checkpoint(path)``.

    Parameters
    ----------
    path : path
        The file.
    every : int, optional
        Write it whenever so many rounds are complete. None: as often as a twentieth of the time
        allows.

    Examples
    --------
    >>> from manyboost import Checkpoint, ManyBoostRegressor
    >>> ManyBoostRegressor(checkpoint=Checkpoint("run.checkpoint", every=50))
    ManyBoostRegressor(checkpoint=Checkpoint(path='run.checkpoint', every=50))
    """

    path: str | os.PathLike[str]
    every: int | None = None

    def __post_init__(self) -> None:
        if not is_path(self.path):
            raise ValueError(f"path={self.path!r} is not allowed; it must be the path of a file.")
        is_count = isinstance(self.every, int | np.integer) and not isinstance(self.every, bool)
        if self.every is not None and not (is_count and self.every >= 1):
            raise ValueError(
                f"every={self.every!r} is not allowed; it must be a number of rounds, or None."
            )


@dataclass
class State:
    """A fit after some complete rounds: all that the next round depends on, besides its data.

    ``gains`` (n_features, n_outputs) are those of all rounds, where importances are those up to the
    best; ``stopping`` is the state of early stopping, and ``ended`` says that it or a callback has
    ended training.
    """

    progress: Progress
    gains: F64 | None
    stopping: Mapping[str, NDArray[Any]]
    ended: bool


@dataclass(frozen=True)
class Start:
    """What is drawn and chosen before the first round."""

    seed: int
    strategy: str
    projection: str | Projection
    search_results: dict[str, NDArray[Any]] | None = None


@dataclass
class Found(State):
    """A state from a file."""

    start: Start


@dataclass(frozen=True)
class Identity:
    """What a fit is a fit of: a digest of each part, and what can be shown of it.

    Parts are parameters by name, and data by the name of their argument.
    """

    parts: dict[str, tuple[str, str]]

    @classmethod
    def of(
        cls,
        parameters: Mapping[str, Any],
        names: list[Any],
        rows: Rows,
        validation_rows: Rows | None,
        categories: Categories,
    ) -> Identity:
        """Return the identity of a fit of checked and encoded rows.

        ``names`` are those of features, outputs, classes and categories.
        """
        release = _core.__version__
        data = {"the release of manyboost": (_digest([release]), release)}
        data |= _digests(rows, ("X", "y", "sample_weight", "offset"), categories)
        if validation_rows is not None:
            arguments = ("X_val", "Y_val", "sample_weight_val", "offset_val")
            data |= _digests(validation_rows, arguments, categories)
        data["names of features, outputs or classes"] = _digest(names), "given"
        free = [name for name in _FREE if name != "max_iter" or parameters["strategy"] != "auto"]
        return cls(data | {n: _described(v) for n, v in parameters.items() if n not in free})

    def differences(self, other: Identity) -> list[str]:
        """Say in which parts the present fit differs from another one."""
        nothing = "", "not given"
        found = []
        for name in dict.fromkeys([*other.parts, *self.parts]):
            then, now = other.parts.get(name, nothing), self.parts.get(name, nothing)
            if then[0] != now[0]:
                shown = then[1] != now[1]
                found.append(f"{name} was {then[1]} and is {now[1]}" if shown else f"other {name}")
        return found


def _digests(
    rows: Rows, names: Iterable[str], categories: Categories
) -> dict[str, tuple[str, str]]:
    weights = rows.weights
    tables = [categories.tables[j] for j in sorted(categories.tables)]
    parts = (
        [rows.X, *tables],
        [rows.Y],
        [weights.rows, weights.cells, rows.numbers],
        [rows.offset],
    )
    return {name: (_digest(part), "given") for name, part in zip(names, parts, strict=True)}


def _described(value: Any) -> tuple[str, str]:
    """Return the digest of a parameter, and words for it."""
    from manyboost.persistence.values import Encoder
    from manyboost.training.custom import Loss

    if isinstance(value, Loss):
        # Its code cannot be compared, but what it is made with can.
        return _digest([Encoder().encode(value), vars(value)]), type(value).__name__
    if callable(value):
        (name,) = Encoder().encode(value).values()
        return _digest([name]), str(name)
    return _digest([value]), textwrap.shorten(repr(value), 60, placeholder="...")


def _digest(values: Any) -> str:
    """Return a digest of arrays, sparse matrices, and whatever has a place in a model file."""
    from manyboost.persistence.values import Encoder, Unstorable

    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        if sparse.issparse(value):
            starts, places = value.indptr.astype(np.int64), value.indices.astype(np.int64)
            digest.update(_digest([np.array(value.shape), starts, places, value.data]).encode())
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            digest.update(f"{value.dtype.str}{value.shape}".encode())
            step = max(1, _CELLS_AT_ONCE // max(1, value[:1].size))
            for start in range(0, len(value) if value.ndim else 0, step):
                digest.update(np.ascontiguousarray(value[start : start + step]).tobytes())
        else:
            encoder = Encoder()
            try:
                text = json.dumps(encoder.encode(value), sort_keys=True)
            except Unstorable:
                text = repr(value)
            digest.update(f"{text}{_digest(encoder.arrays) if encoder.arrays else ''};".encode())
    return digest.hexdigest()


class Recorder:
    """Keeps the checkpoints of one fit; ``found`` is the state to go on from, if there is one."""

    def __init__(self, checkpoint: str | os.PathLike[str] | Checkpoint, identity: Identity) -> None:
        given = checkpoint
        self.checkpoint = given if isinstance(given, Checkpoint) else Checkpoint(given)
        self.path = Path(self.checkpoint.path)
        self.identity = identity
        self.found: Found | None = None
        self.began_with: str | None = None
        self.start: Start | None = None
        self._next = 0.0
        self._signature = _signature(self.path)

    @classmethod
    def open(
        cls,
        checkpoint: str | os.PathLike[str] | Checkpoint,
        identity: Identity,
        categories: Categories,
        *,
        max_iter: int,
        earlier: Progress | None,
    ) -> Recorder:
        """Find the state of this very fit, or make sure that one can be written.

        ``earlier`` is the model that a warm start continues. A file that is not a checkpoint, or
        the checkpoint of another fit, is refused.
        """
        from manyboost.persistence import checkpoint as files

        recorder = cls(checkpoint, identity)
        path = recorder.path
        if not path.parent.is_dir() or path.is_dir():
            what = "is a folder" if path.is_dir() else f"is in no folder ({str(path.parent)!r})"
            raise ValueError(f"checkpoint={str(path)!r} {what}; give the path of a file.")
        if not os.access(path.parent, os.W_OK):
            raise ValueError(
                f"checkpoint={str(path)!r} cannot be written: its folder is read-only; give "
                "another path."
            )
        if earlier is not None:
            recorder.began_with = trees_digest(earlier)
        if path.exists():
            recorder.found = files.read(recorder, categories, continued=earlier is not None)
        if recorder.found is not None and recorder.found.progress.n_rounds > max_iter:
            raise ValueError(
                f"The checkpoint {str(path)!r} has {recorder.found.progress.n_rounds} rounds, more "
                f"than max_iter={max_iter}; use a larger max_iter, or remove the file to start "
                "anew."
            )
        return recorder

    def is_due(self, n_rounds: int) -> bool:
        """Whether a file is to be written now that so many rounds are complete."""
        if self.checkpoint.every is not None:
            return n_rounds % self.checkpoint.every == 0
        return time.monotonic() >= self._next

    def write(self, state: State) -> None:
        """Put a file in the place of the last one."""
        from manyboost.persistence import checkpoint

        began = time.monotonic()
        # (One that was removed meanwhile is written again.)
        if _signature(self.path) not in (None, self._signature):
            raise RuntimeError(
                f"The checkpoint {str(self.path)!r} was changed by someone else during training; "
                "give every fit a path of its own."
            )
        checkpoint.write(self, state)
        self._signature = _signature(self.path)
        now = time.monotonic()
        self._next = now + _PAUSE * (now - began)


def trees_digest(progress: Progress) -> str:
    """Return what tells one model from another."""
    assert isinstance(progress.model, TreeEnsemble)
    return hashlib.blake2b(progress.model.trees.to_bytes(), digest_size=16).hexdigest()


def _signature(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file is replaced."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
