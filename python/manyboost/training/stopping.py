"""Early stopping: the best round so far, for all outputs together or for each by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.arrays import F64, Mask


class Unwatched:
    """No validation rows: the last round is the best."""

    frozen: Mask | None = None  # outputs that no longer take part; None: all do
    per_output: NDArray[np.intp] | None = None  # the best round of each output

    def __init__(self, n_rounds: int) -> None:
        self.best = n_rounds

    def look(self, n_rounds: int) -> bool:
        """Take in one more round; tell whether training ends with it."""
        self.best = n_rounds
        return False

    def state(self) -> dict[str, NDArray[Any]]:
        """What later rounds depend on, besides the scores."""
        return {"best": np.array([self.best], np.int64)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a state."""
        self.best = int(state["best"][0])


class KnownRounds(Unwatched):
    """Every output is frozen after a number of rounds (n_outputs,) that is known beforehand."""

    def __init__(self, per_output: NDArray[np.intp]) -> None:
        super().__init__(0)
        self.rounds = per_output
        self.look(0)

    def look(self, n_rounds: int) -> bool:
        """Take in one more round; training goes on to its last round."""
        self.frozen = np.asarray(n_rounds >= self.rounds)
        return super().look(n_rounds)


class BestRound(Unwatched):
    """One rating decides for all outputs.

    ``ratings`` are those from the baseline on, and grow with the rounds. Training ends after
    ``patience`` rounds that do not improve on the best rating by more than ``tol``.
    """

    def __init__(self, ratings: Sequence[float], patience: int, tol: float) -> None:
        self.ratings, self.patience, self.tol = ratings, patience, tol
        super().__init__(int(np.argmax(ratings)))

    def look(self, n_rounds: int) -> bool:
        """Take in one more round; tell whether training ends with it."""
        if self.ratings[-1] > self.ratings[self.best] + self.tol:
            self.best = n_rounds
        return n_rounds - self.best >= self.patience


class BestRoundPerOutput(Unwatched):
    """Every output has its own best round, and is frozen when it no longer improves.

    Each of the ``ratings`` is an array (n_outputs,).
    """

    def __init__(self, ratings: Sequence[F64], patience: int, tol: float) -> None:
        self.ratings, self.patience, self.tol = ratings, patience, tol
        self.per_output = np.argmax(ratings, axis=0)
        self.top = np.max(ratings, axis=0)
        self._freeze(len(ratings) - 1)

    def look(self, n_rounds: int) -> bool:
        """Take in one more round; tell whether all outputs are frozen."""
        assert self.per_output is not None
        better = self.ratings[-1] > self.top + self.tol
        if self.frozen is not None:
            better &= ~self.frozen
        self.per_output = np.where(better, n_rounds, self.per_output)
        self.top = np.where(better, self.ratings[-1], self.top)
        self._freeze(n_rounds)
        return self.frozen is not None and bool(self.frozen.all())

    def state(self) -> dict[str, NDArray[Any]]:
        """What later rounds depend on, besides the scores."""
        assert self.per_output is not None
        frozen = np.zeros(len(self.top), bool) if self.frozen is None else self.frozen
        return {"best": self.per_output.astype(np.int64), "top": self.top, "frozen": frozen}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a state."""
        self.per_output, self.top = state["best"].astype(np.intp), state["top"]
        self.frozen = state["frozen"] if state["frozen"].any() else None
        self.best = int(self.per_output.max())

    def _freeze(self, n_rounds: int) -> None:
        assert self.per_output is not None
        self.best = int(self.per_output.max())
        frozen = n_rounds - self.per_output >= self.patience
        if self.frozen is not None:
            frozen |= self.frozen
        self.frozen = frozen if frozen.any() else None
