"""Validation rows: rows that are only scored, round by round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from manyboost import _core
from manyboost.arrays import F32
from manyboost.training.ensembles import ForeignModel
from manyboost.training.learners import ForeignLearner, Predictions, TreeLearner, WeakModel
from manyboost.training.objectives import Objective
from manyboost.training.progress import Progress
from manyboost.training.scoring import Scorer


@dataclass
class Validation:
    """Rows that are only scored; the first of the scorers decides on early stopping.

    ``data`` are the features in the form that the learner prepares, ``raw`` (n_rows, n_outputs) the
    raw predictions, on top of the baseline.
    """

    objective: Objective
    learner: TreeLearner | ForeignLearner
    data: Any
    raw: F32
    scorers: list[Scorer]

    def score(self, progress: Progress) -> None:
        """Append the scores of the present round."""
        loss, per_output = self.objective.losses(self.raw)
        whole = len(progress.validation_per_output) == len(progress.validation_score)
        if per_output is not None and whole:
            progress.validation_per_output.append(-per_output)
        for scorer in self.scorers:
            score = -loss if scorer.measure is None else scorer.measure()
            progress.validation_scores.setdefault(scorer.name, []).append(score)
        progress.validation_score.append(progress.validation_scores[self.scorers[0].name][-1])

    def move(
        self, weak: WeakModel, values: F32 | None, steps: F32 | None, output: int | None
    ) -> None:
        """Add a weak model to the raw predictions."""
        if isinstance(weak, Predictions):
            outputs = slice(None) if output is None else slice(output, output + 1)
            model = ForeignModel(weak.estimator, outputs, None, steps)
            self.raw[:, outputs] += model.of_rows(self.data)
            return
        assert values is not None
        leaf_of_row = self.learner.leaves_of(weak, self.data)
        _core.add_leaves(self.objective.pool, leaf_of_row, values, steps, self.raw, output)
