"""The loop over rounds, and the four strategies.

Each strategy is one round of an algorithm of the paper (Joly, Wehenkel, Geurts): the residuals of
all outputs at the current raw predictions, a weak model fitted to some projection of them, leaves
and steps from the full residuals, and the update. Everything of order rows × features or
rows × outputs happens in the core.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from manyboost import _core
from manyboost.arrays import F32, F64, U32
from manyboost.data.weights import Weights
from manyboost.training.callbacks import RoundState, Watchers
from manyboost.training.checkpoints import Recorder, State
from manyboost.training.directions import Move
from manyboost.training.learners import Learner, Leaves, WeakModel
from manyboost.training.objectives import Objective
from manyboost.training.plan import Plan
from manyboost.training.progress import Complete, Gains, Progress
from manyboost.training.sparse_leaves import leaf_fitter
from manyboost.training.split_gradients import SplitGradientMaker, SplitGradients, newton_split
from manyboost.training.steps import Steps
from manyboost.training.stopping import BestRound, BestRoundPerOutput, Unwatched
from manyboost.training.updates import Update, Updater, idle_update
from manyboost.training.validation import Validation


class Boosting:
    """One fit: the state that rounds work on, and the loop.

    ``progress`` is empty or what an earlier fit left; ``state`` is the objective's blank state with
    the rounds so far added; ``row_numbers`` are those in the user's data, which random draws of
    rows go by (None: all rows are taken); ``split_scale`` is what residuals are multiplied by when
    trees are grown. The ``recorder`` writes checkpoints, and has the state to go on from if it
    found one.
    """

    def __init__(
        self,
        plan: Plan,
        objective: Objective,
        learner: Learner,
        progress: Progress,
        state: F32,
        row_numbers: NDArray[np.uint64] | None,
        split_scale: F64 | None,
        validation: Validation | None,
        watchers: Watchers,
        recorder: Recorder | None = None,
    ) -> None:
        self.plan, self.objective, self.learner, self.progress = plan, objective, learner, progress
        self.pool, self.row_numbers = objective.pool, row_numbers
        self.validation, self.watchers, self.recorder = validation, watchers, recorder
        self.raw, self.residuals = objective.open_state(state)
        self.n_rows, self.n_outputs = state.shape
        given = plan.by_curvature
        self.by_curvature = np.zeros(self.n_outputs, dtype=bool) if given is None else given
        # Shared trees are grown by random shares of weighted cells; this is what rows weigh.
        self.row_weights: Weights | None = None
        if objective.weights.by_cell and plan.strategy.shares_trees and plan.estimator is None:
            of_rows = objective.weights.of_rows(objective.y)
            self.row_weights = Weights(np.asarray(of_rows, np.float32))
        self.gains: Gains | None = None
        if progress.importances is not None:
            watched = validation is not None
            self.gains = Gains(progress.importances, progress.n_rounds, watched=watched)
        steps = Steps(objective, self.raw, self.residuals)
        self.leaves = leaf_fitter(plan, steps, self.gains)
        self.splits = SplitGradientMaker(
            plan, objective, self.residuals, split_scale, learner.keeps_columns, learner.grows
        )
        self.updater = Updater(progress, plan.learning_rate, self.pool, self.raw, validation)
        self.rule: Unwatched | None = None  # for stopping, in place of the plan's
        self.stopping = Unwatched(0)
        self.complete = Complete(0, 0, None)
        # Whether early stopping or a callback has ended training.
        self.ended = False
        # Of the present round: what it starts from, what the next one will, and its move.
        self._split = SplitGradients(self.residuals, None)
        self._ahead: SplitGradients | None = None
        self._move: Move | None = None

    # ------------------------------------------------------------------ the loop

    def run(self) -> None:
        """Train. After an interrupt :meth:`settle` leaves the complete rounds in ``progress``."""
        started, max_iter = time.monotonic(), self.plan.max_iter
        is_watched = self._any_rank(bool(self.watchers))
        more = self.begin()
        for m in range(self.progress.n_rounds, max_iter if more else 0):
            if is_watched:
                self.watchers.begin_round()
            self.attempt(m)
            is_last = self.decide(m) or self._is_late(started) or m + 1 == max_iter
            self.complete_round(m, is_last=is_last)
            self.count(m + 1)
            if is_watched and self._any_rank(self.watchers.end_round(self._state(m, started))):
                is_last = self.ended = True
            self.record(at_once=is_last)
            if is_last:
                break
        self.settle()

    def begin(self) -> bool:
        """Prepare the next round; tell whether there is one."""
        objective, freezes = self.objective, self.rule is not None
        objective.looks_ahead = objective.can_look_ahead and self.plan.looks_ahead and not freezes
        more = self._resume() and self.progress.n_rounds < self.plan.max_iter
        self._split = self._start(self.progress.n_rounds if more else None)
        return more

    def attempt(self, m: int) -> None:
        """Make round ``m`` and score it."""
        if self.gains is not None:
            self.gains.round = m
        self._ahead = self._look_ahead(m + 1)
        updates = ROUNDS[self.plan.strategy.name](self, m, self._split)
        self._move = self.updater.apply(m, updates)
        if self.validation:
            self.validation.score(self.progress)

    def decide(self, m: int) -> bool:
        """Tell whether early stopping ends training with round ``m``."""
        self.ended = self.stopping.look(m + 1)
        return self.ended

    def complete_round(self, m: int, *, is_last: bool) -> None:
        """Carry out round ``m``, and prepare the next one."""
        self._split, loss = self._advance(self._move, None if is_last else m + 1, self._ahead)
        if not math.isfinite(loss):
            raise self.updater.divergence(f"the training loss is {loss:g}")
        self._append_train_score(loss)

    def _resume(self) -> bool:
        """Go on from earlier rounds or a checkpoint; tell whether there are more to come."""
        if self.progress.train_score:
            if self.validation:
                self.validation.resume(self.progress)
            self.stopping = self._make_stopping()
            found = None if self.recorder is None else self.recorder.found
            if found is not None:
                self.stopping.restore(found.stopping)
                self.ended = found.ended
                if self.gains is not None:
                    self.gains.of_all_rounds = found.gains
        return not self.ended

    def _start(self, m: int | None) -> SplitGradients:
        """Score the baseline, if it was not before; return what round ``m`` starts from."""
        split, loss = self._advance(None, m)
        if not self.progress.train_score:
            self._append_train_score(loss)
            if self.validation:
                self.validation.score(self.progress)
            self.stopping = self._make_stopping()
        self.count(self.progress.n_rounds)
        self.record(at_once=True)
        return split

    def _look_ahead(self, m: int) -> SplitGradients | None:
        """Make the split gradients of round ``m`` before their time, if that saves a pass."""
        if not self.objective.looks_ahead:
            return None
        split = self.splits.make(m, None) if m < self.plan.max_iter else None
        self.objective.look_ahead(split)
        return split

    def _advance(
        self, move: Move | None, m: int | None, ahead: SplitGradients | None = None
    ) -> tuple[SplitGradients, float]:
        """Carry out a move; return the split gradients of round ``m``, and the mean loss.

        One pass over all cells, which also takes the residuals; ``ahead`` was made for an earlier
        pass. None: there is no other round.
        """
        if m is None:
            split = SplitGradients(self.residuals, None)
        else:
            split = ahead or self.splits.make(m, self.stopping.frozen)
        return split, self.objective.advance(self.raw, self.residuals, move, split)

    def _is_late(self, started: float) -> bool:
        limit = self.plan.max_time
        return limit is not None and self._any_rank(time.monotonic() - started >= limit)

    def _append_train_score(self, loss: float) -> None:
        if self.plan.stops_per_output:
            per_output = self.objective.losses(self.raw)[1]
            assert per_output is not None
            self.progress.train_per_output.append(-per_output)
        self.progress.train_score.append(-loss)

    def count(self, n_rounds: int) -> None:
        """Note that so many rounds are complete, and how many of them to keep."""
        per_output = self.stopping.per_output
        self.complete = Complete(n_rounds, self.stopping.best, per_output)
        # The best rounds of single outputs must be seen one by one.
        if self.gains is not None and (self.gains.are_many or per_output is not None):
            self.settle()

    @property
    def n_rounds(self) -> int:
        """Rounds so far."""
        return self.progress.n_rounds

    def settle(self) -> None:
        """Bring the importances to the complete rounds."""
        if self.gains is not None:
            self.gains.settle(self.complete)

    def record(self, *, at_once: bool) -> None:
        """Write a checkpoint of the complete rounds, if it is time to."""
        recorder, gains = self.recorder, self.gains
        if recorder is not None and (at_once or recorder.is_due(self.progress.n_rounds)):
            self.settle()
            all_gains = None if gains is None else gains.of_all_rounds
            recorder.write(State(self.progress, all_gains, self.stopping.state(), self.ended))

    def _make_stopping(self) -> Unwatched:
        if self.rule is not None:
            return self.rule
        if self.validation is None:
            return Unwatched(self.progress.n_rounds)
        rule = BestRoundPerOutput if self.plan.stops_per_output else BestRound
        ratings = self.validation.ratings.values
        return rule(ratings, self.plan.n_iter_no_change, self.plan.tol)

    def _any_rank(self, flag: bool) -> bool:
        """Whether a flag is true on any rank: what ends training ends it everywhere."""
        return bool(self.pool.totals(np.array([flag], np.int64))[0])

    def _state(self, m: int, started: float) -> RoundState:
        """What is told about round ``m``."""
        progress = self.progress
        return RoundState(
            round=m + 1,
            n_iter=self.complete.best,
            max_iter=self.plan.max_iter,
            elapsed=time.monotonic() - started,
            train_score=progress.train_score[-1],
            validation_score=progress.validation_score[-1] if self.validation else None,
            step_sizes=self.updater.shown_steps(),
        )

    # ------------------------------------------------------------------ what rounds are made of

    def sample(self, m: int, output: int | None = None) -> tuple[U32 | None, Weights]:
        """Rows to fit to (None: all), and weights that are zero elsewhere.

        Those of one output are drawn from the rows in which it is observed.
        """
        weights, observed = self.objective.weights, self.objective.rows_of(output)
        if self.row_numbers is None:
            return observed, weights
        numbers = self.row_numbers if observed is None else self.row_numbers[observed]
        total = self.pool.totals(np.array([len(numbers)]))[0]
        count = max(1, int(self.plan.subsample * int(total)))
        rows = _core.sample_rows(self.pool, numbers, count, self.plan.seed, m, output or 0)
        rows = rows if observed is None else observed[rows]
        return rows, weights.within(rows, self.n_rows)

    def grow(self, split: SplitGradients, rows: U32 | None, m: int) -> WeakModel:
        """Grow a shared tree on split gradients."""
        if self.n_outputs == 1 and self.by_curvature[0]:
            return self.grow_alone(0, self.residuals, rows, m)
        weak = self.learner.fit(split.z, split.weight, rows, m, 0, split.signs)
        return weak if self.row_weights is None else self._weighed(weak, self.row_weights, rows)

    def grow_alone(self, j: int, z: F32, rows: U32 | None, m: int) -> WeakModel:
        """Grow a tree for output ``j``, by its curvature where the loss says so."""
        weights, signs = self.objective.weights, self.splits.growth_signs(m, j)
        z, weight = np.ascontiguousarray(z[:, j : j + 1]), weights.of_output(j)
        if not self.by_curvature[j]:
            return self.learner.fit(z, weight, rows, m, j, signs)
        weak = self.learner.fit(*newton_split(z, weight), rows, m, j, signs)
        return self._weighed(weak, Weights(weight), rows)

    def _weighed(self, weak: WeakModel, weights: Weights, rows: U32 | None) -> WeakModel:
        """Give the nodes of a tree the weight of their rows, where it was grown by another."""
        assert isinstance(weak, Leaves)
        if rows is not None:
            weights = weights.within(rows, self.n_rows)
        leaves, cells = (weak.leaf_of_row, weak.n_leaves), np.zeros((self.n_rows, 1), np.float32)
        of_leaves = np.ascontiguousarray(
            _core.leaf_weights(self.pool, *leaves, cells, weights)[:, 0]
        )
        return replace(weak, leaf_weights=of_leaves, tree=weak.tree.with_covers(of_leaves))

    def search_together(self, m: int, updates: list[Update]) -> list[Update]:
        """Find the steps of outputs with trees of their own, as far as they are still missing."""
        for block in self.plan.blocks:
            columns = block.columns(self.n_outputs)
            part = updates[columns]
            if self.leaves.searches_together(block) and any(each.waits for each in part):
                models = [(each.weak, each.values, each.start) for each in part]
                _, weights = self.sample(m, columns.start)
                steps = self.leaves.find_steps(block, models, weights)
                updates[columns] = [
                    each._replace(rho=steps[k : k + 1]) if each.waits else each
                    for k, each in enumerate(part)
                ]
        return updates


# ---------------------------------------------------------------------- the four strategies
#
# A round starts from the residuals r (n_rows, n_outputs), which the leaves are made from, and from
# the split gradients z, which trees are grown on: z = φ r for project and relabel, else r itself.


def independent(fit: Boosting, m: int, split: SplitGradients) -> list[Update]:
    """Algorithm 1 for each output in turn: a tree on its residuals, its own leaves and step."""
    frozen, updates = fit.stopping.frozen, []
    for j in range(fit.n_outputs):
        if frozen is not None and frozen[j]:
            updates.append(idle_update(j, with_step=bool(fit.progress.steps)))
            continue
        rows, weights = fit.sample(m, j)
        tree = fit.grow_alone(j, split.z, rows, m)
        values, rho, start = fit.leaves.label_alone(tree, weights, j)
        updates.append(Update(tree, values, rho, j, start=start))
    return fit.search_together(m, updates)


def multioutput(fit: Boosting, m: int, split: SplitGradients) -> list[Update]:
    """Algorithm 2: one tree on the residuals r of all outputs, whose leaves serve them all."""
    rows, weights = fit.sample(m)
    tree = fit.grow(split, rows, m)
    values, rho = fit.leaves.label(tree, weights, fit.stopping.frozen)
    return [Update(tree, values, rho)]


def project(fit: Boosting, m: int, split: SplitGradients) -> list[Update]:
    """Algorithm 3: one tree on one random projection φ r, and a step ρ for each output."""
    rows, weights = fit.sample(m)
    tree = fit.grow(split, rows, m)
    values, rho = fit.leaves.fit_outputs(tree, split, weights, fit.stopping.frozen)
    return [Update(tree, values, rho, scaled=True)]


def relabel(fit: Boosting, m: int, split: SplitGradients) -> list[Update]:
    """Algorithm 4: one tree on q random projections z = φ r, with φ = ``split.phi``.

    Its leaves are labelled for all outputs from the residuals r, before projection.
    """
    rows, weights = fit.sample(m)
    tree = fit.grow(split, rows, m)
    values, rho = fit.leaves.label(tree, weights, fit.stopping.frozen)
    return [Update(tree, values, rho)]


Round: TypeAlias = Callable[[Boosting, int, SplitGradients], list[Update]]
ROUNDS: dict[str, Round] = {
    each.__name__: each for each in (independent, multioutput, project, relabel)
}
