"""Validation rows: rows that are only scored, round by round."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyboost import _core
from manyboost.arrays import F32, F64
from manyboost.training.directions import Move, SparseLeaves
from manyboost.training.ensembles import ForeignModel
from manyboost.training.learners import Learner, Predictions, WeakModel
from manyboost.training.losses import Domain
from manyboost.training.objectives import Objective
from manyboost.training.progress import Progress
from manyboost.training.scoring import Scorer


def loss_units(objective: Objective, state: F32) -> float | F64:
    """Return what the loss of each output is measured in, from the training rows at the baseline.

    It is the loss of the baseline. The losses of counts and of positive targets have no zero: the
    unit of counts is their mean; that of positive targets is 1, as their loss depends on ratios. So
    early stopping does not depend on the scales of the outputs. Labels have no scale: one unit
    serves all of them, as it does for outputs that share a loss.
    """
    mean, per_output = objective.losses(state)
    without_scale = (Domain.LABELS, Domain.CLASSES)
    if per_output is None or all(facts.domain in without_scale for facts, _ in objective.blocks):
        return abs(mean) or 1.0
    units = np.abs(per_output)
    for facts, outputs in objective.blocks:
        columns = slice(None) if outputs is None else slice(*outputs)
        if facts.domain is Domain.COUNTS:
            sums = _core.column_sums(objective.pool, objective.y, objective.weights)
            units[columns] = (sums / objective.total_weight)[columns]
        elif facts.domain is Domain.POSITIVE:
            units[columns] = 1.0
        elif facts.kernel == "custom":
            units[columns][units[columns] == 0] = 1.0
    # What no training row tells apart has no say.
    return np.where(units > 0, units, np.inf)


@dataclass
class Ratings:
    """What early stopping compares from round to round, higher for better rounds.

    The score, if a scorer decides (``units`` is None); else the negative loss in ``units``, each
    output's by itself or their mean.
    """

    units: float | F64 | None
    by_output: bool
    values: list[Any] = field(default_factory=list)

    def append(self, score: float, per_output: F64 | None) -> None:
        """Rate one more round."""
        self.values.append(self._rate(score, per_output))

    def restore(self, progress: Progress, score: float, per_output: F64 | None) -> None:
        """Rate the rounds of an earlier fit, the last of which has this score."""
        self.values.clear()
        curves = progress.validation_per_output, progress.validation_score
        if isinstance(self.units, np.ndarray) and len(curves[0]) < len(curves[1]):
            # The model comes from a file without these curves, and ends with its best round.
            self.values += [-math.inf] * progress.n_rounds
            self.append(score, per_output)
        else:
            for m, earlier in enumerate(progress.validation_score):
                self.append(earlier, curves[0][m] if m < len(curves[0]) else None)

    def _rate(self, score: float, per_output: F64 | None) -> float | F64:
        if self.units is None:
            return score
        if isinstance(self.units, float) and not self.by_output:
            return score / self.units
        assert per_output is not None
        relative = np.asarray(per_output / self.units)
        if self.by_output:
            return relative
        # Correctly rounded, so that it is the same on every machine.
        seen = relative[~np.isnan(relative)].tolist()
        return math.fsum(seen) / max(1, len(seen))


@dataclass
class Validation:
    """Rows that are only scored; the first of the scorers decides on early stopping.

    ``data`` are the features in the form that the learner prepares, ``raw`` (n_rows, n_outputs) the
    raw predictions, on top of the baseline.
    """

    objective: Objective
    learner: Learner
    data: Any
    raw: F32
    scorers: list[Scorer]
    ratings: Ratings

    def score(self, progress: Progress) -> None:
        """Append the scores of the present round."""
        loss, per_output = self._losses()
        whole = len(progress.validation_per_output) == len(progress.validation_score)
        if per_output is not None and whole:
            progress.validation_per_output.append(per_output)
        for scorer in self.scorers:
            score = loss if scorer.measure is None else scorer.measure()
            progress.validation_scores.setdefault(scorer.name, []).append(score)
        progress.validation_score.append(progress.validation_scores[self.scorers[0].name][-1])
        self.ratings.append(progress.validation_score[-1], per_output)

    def resume(self, progress: Progress) -> None:
        """Rate the rounds that an earlier fit made."""
        self.ratings.restore(progress, *self._losses())

    def _losses(self) -> tuple[float, F64 | None]:
        """Return the negative loss, and that of each output if it has its own."""
        loss, per_output = self.objective.losses(self.raw)
        return -loss, None if per_output is None else -per_output

    def move(
        self,
        weak: WeakModel,
        values: F32 | SparseLeaves | None,
        steps: F32 | None,
        output: int | None,
    ) -> None:
        """Add a weak model to the raw predictions."""
        if isinstance(weak, Predictions):
            outputs = slice(None) if output is None else slice(output, output + 1)
            model = ForeignModel(weak.estimator, outputs, None, steps)
            self.raw[:, outputs] += model.of_rows(self.data)
            return
        assert values is not None
        leaf_of_row = self.learner.leaves_of(weak, self.data)
        self.objective.add_leaves(Move(leaf_of_row, values, steps), self.raw, output)
