"""Checkpoint files: the state of a fit, in the container of model files and read as strictly.

A checkpoint holds all rounds so far, what later rounds depend on, and the identity of the fit. It
replaces the file before it at once, so that the path always names a whole file.
"""

from __future__ import annotations

import os
import time
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manyboost.data.categories import Categories
from manyboost.persistence import container, parts
from manyboost.persistence.container import BrokenFileError, broken
from manyboost.persistence.files import FilePath, replacing, status_of
from manyboost.persistence.identity import Identity, trees_digest
from manyboost.persistence.schema import Array, Contents, Field, collect, within
from manyboost.training.checkpoints import Checkpoint, Found, Start, State
from manyboost.training.progress import Progress

# Between two files pass so many times the seconds that the last one took to write.
_PAUSE = 20.0


@dataclass(kw_only=True)
class _Source(parts.Source):
    """What a checkpoint is written from."""

    recorder: Recorder
    state: State


def _identity(source: _Source) -> list[list[str]]:
    return [[name, *part] for name, part in source.recorder.identity.parts.items()]


def _left_out(source: _Source) -> list[str]:
    return [parts.IMPORTANCES] if source.progress.importances is None else []


def _stopping(name: str, dtype: str, shape: str, *, optional: bool = True) -> Array:
    return Array(f"stopping_{name}", dtype, shape, lambda s: s.state.stopping.get(name), optional)


# Read first: a checkpoint of another fit is refused as such.
_OWNER = [
    Field("content", frozenset(["checkpoint"]), lambda source: "checkpoint"),
    Field("identity", list, _identity),
    Field("began_with", (str, type(None)), lambda source: source.recorder.began_with),
]
_FIELDS = [
    *parts.SIZES,
    *parts.START,
    Field("strategy", str, lambda source: source.start.strategy),
    Field("left_out", list, _left_out),
    Field("ended", bool, lambda source: source.state.ended),
]
_ARRAYS = [
    *parts.TREES,
    *parts.RECORDS,
    Array("gains", "f8", "p d", lambda source: source.state.gains, optional=True),
    _stopping("best", "i8", "b", optional=False),
    _stopping("top", "f8", "d"),
    _stopping("frozen", "b1", "d"),
]


def _read_identity(stored: list[Any]) -> Identity:
    parts = {}
    for each in stored:
        match each:
            case [str() as name, str() as digest, str() as shown]:
                parts[name] = digest, shown
            case _:
                broken("it does not say which fit it belongs to")
    return Identity(parts)


def _read_state(file: Contents, categories: Categories) -> Found:
    found = file.read(_FIELDS, _ARRAYS)
    parts.check_left_out(found)
    start = parts.read_start(file, found.strategy)
    if found.n_features != categories.n_features:
        broken(f"it has trees of {found.n_features} features")
    trees = parts.read_trees(found, categories)
    best, top, frozen = found.stopping_best, found.stopping_top, found.stopping_frozen
    n_best = 1 if top is None else found.n_outputs
    if len(within(best, 0, trees.n_rounds)) != n_best or (top is None) != (frozen is None):
        broken("it does not say which rounds are the best")
    stopping = {"best": best} if top is None else {"best": best, "top": top, "frozen": frozen}
    return Found(parts.read_progress(found, trees), found.gains, stopping, found.ended, start)


def _result(found: Found) -> str:
    """Return the digest of the model that a fit in this state would end with."""
    progress, best = deepcopy(found.progress), found.stopping["best"]
    progress.truncate(int(best.max()))
    if "top" in found.stopping:
        progress.keep_best(best.astype(np.intp))
    return trees_digest(progress)


class Recorder:
    """Keeps the checkpoints of one fit.

    It finds the state of this very fit, or makes sure that one can be written. A file that is not a
    checkpoint, or the checkpoint of another fit, is refused. ``earlier`` is the model that a warm
    start continues.
    """

    def __init__(
        self,
        checkpoint: FilePath | Checkpoint,
        identity: Identity,
        categories: Categories,
        *,
        max_iter: int,
        earlier: Progress | None,
    ) -> None:
        given = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
        self.path = path = Path(given.path)
        self.identity = identity
        self.began_with = None if earlier is None else trees_digest(earlier)
        self.start: Start | None = None
        self._every, self._next = given.every, 0.0
        self._signature = _signature(path)
        shown = f"checkpoint={str(path)!r}"
        if not path.parent.is_dir() or path.is_dir():
            what = "is a folder" if path.is_dir() else f"is in no folder ({str(path.parent)!r})"
            raise ValueError(f"{shown} {what}; give the path of a file.")
        if not os.access(path.parent, os.W_OK):
            what = "cannot be written: its folder is read-only"
            raise ValueError(f"{shown} {what}; give another path.")
        # The state to go on from, if there is one.
        self.found = self._read(categories) if path.exists() else None
        n_rounds = 0 if self.found is None else self.found.progress.n_rounds
        if n_rounds > max_iter:
            what = f"{shown} has {n_rounds} rounds, more than max_iter={max_iter}"
            raise ValueError(f"{what}; use a larger max_iter, or remove the file to start anew.")

    def _read(self, categories: Categories) -> Found | None:
        """Return the state in the file, or refuse a file of another fit.

        None, if a warm start continues the very model that the fit in the file ended with.
        """
        shown, remedy = repr(str(self.path)), "give another path, or remove the file to start anew"
        try:
            file = Contents(container.read(self.path))
            found = file.read(_OWNER)
            # A warm start goes on with the seed of the model that it continues.
            draws = self.began_with is None
            differences = self.identity.differences(_read_identity(found.identity), draws=draws)
            if differences:
                problem = f"The checkpoint {shown} belongs to another fit: {', '.join(differences)}"
                raise ValueError(f"{problem}; keep to what it was, {remedy}.")
            state = _read_state(file, categories)
            file.done()
        except BrokenFileError as error:
            raise ValueError(f"{shown} is not a sound checkpoint: {error}; {remedy}.") from None
        if found.began_with == self.began_with:
            return state
        if self.began_with is not None and _result(state) == self.began_with:
            return None
        raise ValueError(
            f"The checkpoint {shown} belongs to another fit: it continued another model; {remedy}."
        )

    def is_due(self, n_rounds: int) -> bool:
        """Whether a file is to be written now that so many rounds are complete."""
        if self._every is not None:
            return n_rounds % self._every == 0
        return time.monotonic() >= self._next

    def write(self, state: State) -> None:
        """Put a file in the place of the last one."""
        began = time.monotonic()
        # (One that was removed meanwhile is written again.)
        if _signature(self.path) not in (None, self._signature):
            what = f"The checkpoint {str(self.path)!r} was changed by someone else during training"
            raise RuntimeError(f"{what}; give every fit a path of its own.")
        assert self.start is not None
        source = _Source(state.progress, self.start, recorder=self, state=state)
        # What a killed process leaves behind is overwritten by the next one.
        with replacing(self.path, mark="new") as file:
            file.writelines(container.pack(*collect(source, [*_OWNER, *_FIELDS], _ARRAYS)))
        self._signature = _signature(self.path)
        now = time.monotonic()
        self._next = now + _PAUSE * (now - began)


def _signature(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file is replaced."""
    status = status_of(path)
    if status is None:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
