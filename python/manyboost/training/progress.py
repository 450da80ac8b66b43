"""The progress of a fit: the model in the making, its scores, and its importances."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyboost import _core
from manyboost.arrays import F64
from manyboost.data.categories import Categories
from manyboost.training.constraints import Constraints
from manyboost.training.directions import Outputs
from manyboost.training.ensembles import Ensemble


@dataclass
class Progress:
    """What training leaves behind; a warm start continues it.

    Scores are negative mean losses, entry 0 that of the baseline; those by output are NaN where an
    output is unobserved.
    """

    model: Ensemble
    importances: F64 | None  # gains (n_features, n_outputs); None for other learners than trees
    train_score: list[float] = field(default_factory=list)
    validation_score: list[float] = field(default_factory=list)  # decides on early stopping
    validation_scores: dict[str, list[float]] = field(default_factory=dict)  # all, by name
    validation_per_output: list[F64] = field(default_factory=list)
    train_per_output: list[F64] = field(default_factory=list)  # if outputs stop one by one
    shares: tuple[F64, F64] | None = None  # of outputs in the loss of training, validation rows
    steps: list[F64] = field(default_factory=list)  # unless the model keeps them or has none
    mean_importances: F64 | None = None  # (n_features,), where a file left out those by output
    categories: Categories = field(default_factory=lambda: Categories(0, {}))
    constraints: Constraints = field(default_factory=Constraints)

    @property
    def n_rounds(self) -> int:
        """Completed rounds."""
        return max(0, len(self.train_score) - 1)

    def truncate(self, n_rounds: int) -> None:
        """Forget the rounds after the first ``n_rounds``."""
        self.model.truncate(n_rounds)
        curves: list[list[Any]] = [self.train_score, self.validation_score]
        curves += [*self.validation_scores.values(), self.validation_per_output]
        for curve in [*curves, self.train_per_output]:
            del curve[n_rounds + 1 :]
        del self.steps[n_rounds:]

    def keep_best(self, rounds: NDArray[np.intp]) -> None:
        """Take back what each output got after its first ``rounds`` (n_outputs,).

        Losses are then those of the model that is left; other scores stay those of the rounds.
        """
        self.model.keep(rounds.astype(np.uint64))
        for m, steps in enumerate(self.steps):
            self.steps[m] = np.where(m < rounds, steps, 0.0)
        assert self.shares is not None
        per_output = self.train_per_output, self.validation_per_output
        scores = self.train_score, self.validation_score
        for curves, score, share in zip(per_output, scores, self.shares, strict=True):
            for m in range(1, len(curves)):
                curves[m] = np.where(m <= rounds, curves[m], curves[m - 1])
                score[m] = math.fsum((share * curves[m]).tolist()) / math.fsum(share.tolist())
        if "loss" in self.validation_scores:
            self.validation_scores["loss"] = list(self.validation_score)


class Complete(NamedTuple):
    """The complete rounds of a fit: how many, and how many of them to keep.

    A value that is replaced as a whole: an interrupt finds the old one or the new one.
    """

    n_rounds: int
    best: int
    best_per_output: NDArray[np.intp] | None


class Gains:
    """Counts the gains of splits, for the importances of a model.

    Importances are the gains up to the best round. An interrupt may come at any time: leaf sums
    wait until their round is complete, and each call of the core does all of its work or none, so
    that it can be repeated.
    """

    def __init__(self, importances: F64, n_rounds: int, *, watched: bool) -> None:
        self.importances = importances
        # With validation rows, the gains of all rounds are kept apart from those up to the best.
        self.of_all_rounds = importances.copy() if watched else None
        self.round = n_rounds
        self._n_counted = n_rounds  # rounds whose gains are counted
        self._waiting: list[tuple[int, _core.Tree, F64, F64, Outputs]] = []
        self._n_waiting = 0

    @property
    def are_many(self) -> bool:
        """Whether as many numbers wait as there are importances."""
        return self._n_waiting >= self.importances.size

    def remember(self, tree: _core.Tree, sums: F64, weights: F64, outputs: Outputs) -> None:
        """Take in the leaf sums and leaf weights of a tree of the present round."""
        self._waiting.append((self.round, tree, sums, weights, outputs))
        self._n_waiting += sums.size

    def settle(self, complete: Complete) -> None:
        """Count the gains of the complete rounds, and those up to the best as importances."""
        counted = self.importances if self.of_all_rounds is None else self.of_all_rounds
        rounds, best, per_output = complete
        # Rounds that are decided on again, by members of folds, were counted before.
        if self.of_all_rounds is not None and per_output is None and best > self._n_counted:
            _core.book_gains(self._waiting, best, counted)
            np.copyto(self.importances, counted)
            self._n_counted = best
        _core.book_gains(self._waiting, rounds, counted)
        if self.of_all_rounds is not None and per_output is not None and rounds > self._n_counted:
            np.copyto(self.importances, counted, where=np.equal(per_output, rounds))
        self._n_counted = max(self._n_counted, rounds)
        self._n_waiting = 0
