"""Checkpoints: a fit that was killed goes on where it was, and ends with the same model.

The files themselves are written and read by :mod:`manyboost.persistence.checkpoint`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from manyboost.arrays import F64
from manyboost.training.progress import Progress
from manyboost.training.projections import Projection


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
        Write it after every so many rounds. None: so often that writing takes about a twentieth of
        the time.

    Examples
    --------
    >>> from manyboost import Checkpoint, ManyBoostRegressor
    >>> ManyBoostRegressor(checkpoint=Checkpoint("run.checkpoint", every=50))
    ManyBoostRegressor(checkpoint=Checkpoint(path='run.checkpoint', every=50))
    """

    path: str | os.PathLike[str]
    every: int | None = None

    @classmethod
    def of(cls, given: str | os.PathLike[str] | Checkpoint, fold: int | None) -> Checkpoint:
        """Return the checkpoint of a fit; the member of each fold has a file of its own."""
        whole = given if isinstance(given, cls) else cls(given)  # type: ignore[arg-type]
        path = whole.path if fold is None else f"{os.fspath(whole.path)}.{fold}"
        return cls(path, whole.every)

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


class Recorder(Protocol):
    """Keeps the checkpoints of one fit."""

    found: Found | None  # the state to go on from, if there is one

    def is_due(self, n_rounds: int) -> bool:
        """Whether a checkpoint is to be written now that so many rounds are complete."""

    def write(self, state: State) -> None:
        """Replace the last checkpoint."""
