"""Checkpoint files: the state of a fit, in the container of model files and read as strictly.

A checkpoint holds all rounds so far, what later rounds depend on, and the identity of the fit. It
replaces the file before it at once, so that the path always names a whole file.
"""

from __future__ import annotations

import os
import time
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manyboost.data.categories import Categories
from manyboost.persistence import container
from manyboost.persistence.container import BrokenFileError, broken
from manyboost.persistence.files import replacing
from manyboost.persistence.identity import Identity, trees_digest
from manyboost.persistence.parts import (
    IMPORTANCES,
    RECORDS,
    SIZES,
    START,
    TREES,
    Source,
    check_importances,
    read_progress,
    read_start,
    read_trees,
)
from manyboost.persistence.schema import Array, Contents, Field, collect, within
from manyboost.training.checkpoints import Checkpoint, Found, Start, State
from manyboost.training.progress import Progress

# Between two files pass so many times the seconds that the last one took to write.
_PAUSE = 20.0


class _Checkpoint(NamedTuple):
    """What a checkpoint is written from."""

    source: Source
    recorder: Recorder
    state: State


def _of_source(entry: Any) -> Any:
    return entry._replace(get=lambda checkpoint: entry.get(checkpoint.source))


def _identity(checkpoint: _Checkpoint) -> list[list[str]]:
    return [[name, *part] for name, part in checkpoint.recorder.identity.parts.items()]


def _left_out(checkpoint: _Checkpoint) -> list[str]:
    return [IMPORTANCES] if checkpoint.state.progress.importances is None else []


def _stopping(name: str, dtype: str, shape: str, *, optional: bool = True) -> Array:
    return Array(f"stopping_{name}", dtype, shape, lambda c: c.state.stopping.get(name), optional)


# Read first: a checkpoint of another fit is refused as such.
_OWNER = [
    Field("content", frozenset(["checkpoint"]), lambda checkpoint: "checkpoint"),
    Field("identity", list, _identity),
    Field("began_with", (str, type(None)), lambda checkpoint: checkpoint.recorder.began_with),
]
_FIELDS = [
    *map(_of_source, [*SIZES, *START]),
    Field("strategy", str, lambda checkpoint: checkpoint.source.start.strategy),
    Field("left_out", list, _left_out),
    Field("ended", bool, lambda checkpoint: checkpoint.state.ended),
]
_ARRAYS = [
    *map(_of_source, [*TREES, *RECORDS]),
    Array("gains", "f8", "p d", lambda checkpoint: checkpoint.state.gains, optional=True),
    _stopping("best", "i8", "b", optional=False),
    _stopping("top", "f8", "d"),
    _stopping("frozen", "b1", "d"),
]


def write(recorder: Recorder, state: State) -> None:
    """Replace the checkpoint of a fit."""
    assert recorder.start is not None
    source = Source(state.progress, recorder.start)
    checkpoint = _Checkpoint(source, recorder, state)
    content = collect(checkpoint, source.encoder, [*_OWNER, *_FIELDS], _ARRAYS)
    # What a killed process leaves behind is overwritten by the next one.
    with replacing(recorder.path, mark="new") as file:
        file.writelines(container.pack(*content))


def read(recorder: Recorder, categories: Categories, *, continued: bool) -> Found | None:
    """Return the state in the recorder's file, or refuse a file of another fit.

    None, if a warm start continues the very model that the fit in the file ended with.
    """
    shown, remedy = repr(str(recorder.path)), "give another path, or remove the file to start anew"
    try:
        file = Contents(container.read(recorder.path))
        found = file.read(_OWNER)
        differences = recorder.identity.differences(_read_identity(found.identity))
        if differences:
            raise ValueError(
                f"The checkpoint {shown} belongs to another fit: {', '.join(differences)}; keep to "
                f"what it was, {remedy}."
            )
        state = _read_state(file, categories)
        file.done()
    except BrokenFileError as error:
        raise ValueError(f"{shown} is not a sound checkpoint: {error}; {remedy}.") from None
    if found.began_with == recorder.began_with:
        return state
    if continued and _result(state) == recorder.began_with:
        return None
    raise ValueError(
        f"The checkpoint {shown} belongs to another fit: it continued another model; {remedy}."
    )


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
    check_importances(found)
    start = read_start(file, found.strategy)
    if found.n_features != categories.n_features:
        broken(f"it has trees of {found.n_features} features")
    trees = read_trees(found, categories.counts)
    best, top, frozen = found.stopping_best, found.stopping_top, found.stopping_frozen
    n_best = 1 if top is None else found.n_outputs
    if len(within(best, 0, trees.n_rounds)) != n_best or (top is None) != (frozen is None):
        broken("it does not say which rounds are the best")
    stopping = {"best": best} if top is None else {"best": best, "top": top, "frozen": frozen}
    return Found(read_progress(found, trees), found.gains, stopping, found.ended, start)


def _result(found: Found) -> str:
    """Return the digest of the model that a fit in this state would end with."""
    progress, best = deepcopy(found.progress), found.stopping["best"]
    progress.truncate(int(best.max()))
    if "top" in found.stopping:
        progress.keep_best(best.astype(np.intp))
    return trees_digest(progress)


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
            recorder.found = read(recorder, categories, continued=earlier is not None)
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
        began = time.monotonic()
        # (One that was removed meanwhile is written again.)
        if _signature(self.path) not in (None, self._signature):
            raise RuntimeError(
                f"The checkpoint {str(self.path)!r} was changed by someone else during training; "
                "give every fit a path of its own."
            )
        write(self, state)
        self._signature = _signature(self.path)
        now = time.monotonic()
        self._next = now + _PAUSE * (now - began)


def _signature(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file is replaced."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
