"""Updates: what a round adds to the model, and to the raw predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from manyboost import _core
from manyboost.arrays import F32, F64
from manyboost.training.directions import Move, SparseLeaves
from manyboost.training.learners import Leaves, Predictions, WeakModel
from manyboost.training.leaves import step_or_one
from manyboost.training.objectives import Sums
from manyboost.training.progress import Progress
from manyboost.training.validation import Validation

# The smallest number that single precision rounds to infinity.
_OVERFLOW = 2.0**128 - 2.0**103


class Update(NamedTuple):
    """What one weak model of a round does: f += μ ρ ⊙ g(x).

    ``values`` are the leaf values or predictions g, ``rho`` the steps; None: the leaf values are
    final, or the step is searched for together with those of other outputs, from the derivatives
    at zero, ``start``. With ``scaled``, one step for each output multiplies a single column of
    values. ``output`` is the one that is moved; None: all. An ``idle`` model keeps its place and
    moves nothing.
    """

    weak: WeakModel
    values: Any  # F64, or SparseLeaves
    rho: F64 | None
    output: int | None = None
    scaled: bool = False
    idle: bool = False
    start: Sums | None = None

    @property
    def waits(self) -> bool:
        """Whether there is no step yet, if there is to be one."""
        return self.rho is None and not self.idle


def idle_update(output: int, *, with_step: bool) -> Update:
    """Return what ``independent`` adds to a frozen output: a tree of one leaf, worth nothing."""
    tree = _core.Tree.leaf()
    weak = Leaves(tree.leaf_of_row, tree.leaf_weights, tree)
    rho = np.zeros(1) if with_step else None
    return Update(weak, np.zeros((1, 1)), rho, output, idle=True)


@dataclass
class Updater:
    """Carries out the updates of a fit."""

    progress: Progress
    learning_rate: float
    pool: _core.Pool
    raw: F32  # raw predictions of the training rows
    validation: Validation | None
    steps: F64 | None = None  # (n_outputs,): those of the last round, if it had any

    def apply(self, m: int, updates: list[Update]) -> Move | None:
        """Add the weak models of a round to the model; return what the next pass is to move."""
        model, move = self.progress.model, None
        model.begin_round(m)
        for update in updates:
            weak, output = update.weak, update.output
            values, steps = self._single_precision(update)
            if model.has_trees or not update.idle:
                model.push(weak, values, steps, output)
            if not update.idle:
                move = self._move(weak, values, steps, output) or move
        self._book_steps(updates)
        return move

    def _move(
        self,
        weak: WeakModel,
        values: F32 | SparseLeaves | None,
        steps: F32 | None,
        output: int | None,
    ) -> Move | None:
        """Move raw predictions; those of trees for all outputs wait for the next pass."""
        if self.validation:
            self.validation.move(weak, values, steps, output)
        if isinstance(weak, Predictions):
            assert steps is not None
            outputs = slice(None) if output is None else slice(output, output + 1)
            self.raw[:, outputs] += weak.values * steps
            return None
        assert values is not None
        if output is None:
            return Move(weak.leaf_of_row, values, steps)
        assert not isinstance(values, SparseLeaves)
        _core.add_leaves(self.pool, weak.leaf_of_row, values, steps, self.raw, output)
        return None

    def _single_precision(self, update: Update) -> tuple[F32 | SparseLeaves | None, F32 | None]:
        """Return leaf values and steps, the learning rate included, as they are added."""
        rate, rho = self.learning_rate, update.rho
        if isinstance(update.values, SparseLeaves):
            return update.values.with_values(self._single(rate * update.values.values)), None
        if isinstance(update.weak, Predictions):
            assert rho is not None
            return None, self._single(rate * rho)
        if update.scaled:
            assert rho is not None
            return self._single(rate * update.values), self._single(rho)
        step = rate if rho is None else rate * rho
        return self._single(step * update.values), None

    def _single(self, values: F64) -> F32:
        # Written so that NaN is refused too.
        if not np.abs(values).max(initial=0.0) < _OVERFLOW:
            raise self.divergence("raw predictions leave the range of single precision")
        return np.ascontiguousarray(values, dtype=np.float32)

    def shown_steps(self) -> F64 | None:
        """Return the steps of the last round, as a copy that cannot be changed."""
        if self.steps is None:
            return None
        steps = self.steps.copy()
        steps.flags.writeable = False
        return steps

    def divergence(self, how: str) -> ValueError:
        """Return the error of raw predictions that grow without limit."""
        return ValueError(
            f"Training diverged in round {self.progress.n_rounds + 1}, in which {how}; use a "
            f"smaller learning_rate than {self.learning_rate:g}, or stop earlier."
        )

    def _book_steps(self, updates: list[Update]) -> None:
        self.steps = None
        if len(updates) == 1 and updates[0].rho is None:
            return
        if any(update.rho is not None for update in updates):
            width = 1 if len(updates) > 1 else self.progress.model.n_outputs
            steps = [np.zeros(1) if u.idle else step_or_one(u.rho, width) for u in updates]
            self.steps = np.concatenate(steps)
            kept_by_model = updates[0].scaled and self.progress.model.has_trees
            if not kept_by_model:
                self.progress.steps.append(self.steps)
