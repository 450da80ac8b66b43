"""Folds: models that each leave out a part of the rows, trained in lockstep, and their mean.

A member of the mean trains on all folds but one, and is scored on that one. How many rounds it
keeps is decided by the scores of the *other* members, so that what it predicts for the rows it has
not seen is as good as what the model predicts for new rows.
"""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from manyboost import _core
from manyboost.arrays import F64, Mask
from manyboost.data.cells import TargetKind, class_numbers
from manyboost.data.plain_arrays import is_missing
from manyboost.data.rows import Rows
from manyboost.data.stored import StoredTable
from manyboost.training.boosting import Boosting
from manyboost.training.callbacks import RoundState, Watchers
from manyboost.training.ensembles import TreeEnsemble
from manyboost.training.fitted_losses import FittedLoss
from manyboost.training.learners import bin_stored
from manyboost.training.progress import Complete, Progress
from manyboost.training.splits import refuse_lost_outputs
from manyboost.training.stopping import BestRound, BestRoundPerOutput, Unwatched
from manyboost.training.training_data import TrainingData

T = TypeVar("T")

#: Seeds of the members are this far apart.
_SEED_STEP = 1_000_003
#: Most rounds that a member makes at a time.
_STRIDE = 8


def group_numbers(groups: Any, n_rows: int) -> NDArray[np.intp]:
    """Return the number of the group of each row, which may be named by anything hashable."""
    values = list(groups) if np.ndim(groups) == 1 else []
    if len(values) != n_rows:
        what = f"groups has shape {np.shape(groups)}"
        raise ValueError(f"{what}; it must have one group for each of the {n_rows} rows.")
    for row, value in enumerate(values):
        if is_missing(value):
            raise ValueError(f"groups[{row}] is missing; give every row a group.")
    known: dict[Any, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in values], np.intp)


def assign_folds(
    rows: Rows, n_folds: int, seed: int, groups: NDArray[Any] | None
) -> NDArray[np.uint8]:
    """Return the fold of each row: classes and labels are spread, groups are kept together."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

    n = len(rows)
    if n < n_folds:
        raise ValueError(f"n_folds={n_folds} needs as many rows, but there are {n}; use fewer.")
    strata = _strata(rows, n_folds)
    kinds = {
        (False, False): KFold(n_folds, shuffle=True, random_state=seed),
        (True, False): StratifiedKFold(n_folds, shuffle=True, random_state=seed),
        (False, True): GroupKFold(n_folds),
        (True, True): StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed),
    }
    if groups is not None:
        groups = groups[rows.numbers.astype(np.intp)]
        n_groups = len(np.unique(groups))
        if n_groups < n_folds:
            what = f"groups has {n_groups} different groups in the rows to train on"
            raise ValueError(f"{what}, fewer than n_folds={n_folds}; use fewer folds.")
    kind = kinds[strata is not None, groups is not None]
    fold = np.empty(n, np.uint8)
    for k, (_, left_out) in enumerate(kind.split(np.zeros(n), strata, groups)):
        fold[left_out] = k
    return fold


def folds_of(data: TrainingData, n_folds: int, seed: int) -> NDArray[np.uint8]:
    """Return the fold of each row, as a splitter says or by drawing."""
    if data.splits is None:
        return assign_folds(data.rows, n_folds, seed, data.groups)
    fold = np.empty(data.n_given, np.uint8)
    for k, split in enumerate(data.splits):
        fold[split.test] = k
    fold = fold[data.rows.numbers.astype(np.intp)]
    if len(np.unique(fold)) < n_folds:
        empty = min(set(range(n_folds)).difference(fold.tolist()))
        what = f"Split {empty} of validation_split leaves out no row with a target"
        raise ValueError(f"{what} of positive weight; use fewer folds.")
    return fold


def _strata(rows: Rows, n_folds: int) -> NDArray[np.intp] | None:
    """Return the class of each row, or the rarest of its labels; rare ones together."""
    if rows.kind is TargetKind.REAL:
        return None
    if rows.kind in (TargetKind.LABELS, TargetKind.COLUMNS):
        present = np.asarray(rows.Y) == 1
        order = np.argsort(present.sum(axis=0), kind="stable")
        strata = np.where(present.any(axis=1), present[:, order].argmax(axis=1), present.shape[1])
    else:
        strata = np.asarray(class_numbers(rows.Y)).astype(np.intp)
    _, strata, counts = np.unique(strata, return_inverse=True, return_counts=True)
    together = counts < n_folds
    if 0 < counts[together].sum() < n_folds:
        together[np.argmax(counts)] = True
    strata = np.where(together[strata], len(counts), strata)
    return strata if len(np.unique(strata)) > 1 else None


def leave_out(
    data: TrainingData, fold: NDArray[np.uint8], k: int, pool: _core.Pool
) -> TrainingData:
    """Return all rows but those of a fold for training, and those of the fold for validation."""
    train, left_out = (_taken(data.rows, each, pool) for each in (fold != k, fold == k))
    return replace(data, rows=train, validation=left_out)


def refuse_lost_output(part: TrainingData, data: TrainingData) -> None:
    """Refuse folds without one of which some output is never observed."""
    refuse_lost_outputs(part.rows, data, "in one of the folds only", "use fewer folds")


def _taken(rows: Rows, chosen: Mask, pool: _core.Pool) -> Rows:
    """Return some of the rows, with their bins."""
    places, bins = np.flatnonzero(chosen), rows.bins
    part = rows.take(places)
    if bins is None:
        return part
    if isinstance(part.X, StoredTable):
        return replace(part, bins=bin_stored(pool, part.X, bins))
    return replace(part, bins=bins.take(pool, places.astype(np.uint32)))


def member_seed(seed: int, k: int) -> int:
    """Return the seed of a member's random streams."""
    return (seed + k * _SEED_STEP) % (2**31 - 1)


@dataclass
class Member:
    """One of the models: its fit, and the loss with its baseline."""

    boosting: Boosting
    loss: FittedLoss
    rows: Rows  # those it has not seen

    def kept(self, *, copied: bool) -> Progress:
        """Return the rounds that the member keeps."""
        self.boosting.settle()
        progress, complete = self.boosting.progress, self.boosting.complete
        if copied:
            progress = copy.deepcopy(progress)
        progress.truncate(complete.best)
        if complete.best_per_output is not None:
            progress.keep_best(complete.best_per_output)
        return progress


class Teams:
    """Threads that work on different members at the same time; one team: the caller."""

    def __init__(self, n_teams: int) -> None:
        self.n_teams = n_teams
        self._threads = ThreadPoolExecutor(n_teams) if n_teams > 1 else None

    def run(self, work: Callable[[T], bool], members: Iterable[T]) -> None:
        """Call ``work`` with each member, in turn, until it says that there is no more to do.

        After an error or an interrupt, what has begun still ends.
        """
        waiting = deque(members)

        def share() -> None:
            while waiting:
                try:
                    member = waiting.popleft()
                except IndexError:  # another team took it
                    return
                if work(member):
                    waiting.append(member)

        if self._threads is None:
            return share()
        futures = [self._threads.submit(share) for _ in range(self.n_teams)]
        try:
            for future in futures:
                future.result()
        finally:
            waiting.clear()

    def __enter__(self) -> Teams:
        return self

    def __exit__(self, *_: object) -> None:
        if self._threads is not None:
            self._threads.shutdown()


class FoldedBoosting:
    """The fits of all members, which advance together, round by round."""

    def __init__(self, members: Sequence[Member], watchers: Watchers, n_teams: int = 1) -> None:
        self.members, self.watchers, self.n_teams = members, watchers, n_teams
        self.plan = members[0].boosting.plan
        # Mean ratings of the others for each member, and of all; weights of the folds in each.
        self.ratings: list[list[Any]] = [[] for _ in range(len(members) + 1)]
        sizes = np.array([len(member.rows) for member in members], float)
        weights = np.vstack([sizes * (1 - np.eye(len(members))), sizes])
        self._weights = weights / weights.sum(axis=1, keepdims=True)
        self.stopping = Unwatched(0)

    @property
    def complete(self) -> Complete:
        """The rounds that all members have completed, and how many are kept of the longest."""
        complete = [member.boosting.complete for member in self.members]
        n_rounds = min(each.n_rounds for each in complete)
        return Complete(n_rounds, max(each.best for each in complete), None)

    @property
    def n_rounds(self) -> int:
        """Rounds so far."""
        return self.complete.n_rounds

    def run(self) -> None:
        """Train all members until their mean no longer improves."""
        with Teams(self.n_teams) as teams:
            self._run(teams)

    def _run(self, teams: Teams) -> None:
        started, plan, fits = time.monotonic(), self.plan, [each.boosting for each in self.members]
        is_watched = bool(self.watchers)
        goes_on = [boosting.begin() for boosting in fits]
        # Members that go on from checkpoints may differ by some rounds.
        first = last = min(boosting.n_rounds for boosting in fits)
        for m in range(-1, first):
            self._decide(m)
        for m in range(first, plan.max_iter if any(goes_on) else 0):
            if is_watched:
                self.watchers.begin_round()
            if m == last:
                last, stride = self._stride(m)
                teams.run(partial(self._advance, last=last, stride=stride), fits)
            ended = self._decide(m)
            late = plan.max_time is not None and time.monotonic() - started >= plan.max_time
            is_last = ended or late or m + 1 == plan.max_iter
            if m + 1 == last:
                teams.run(partial(self._complete, m=m, is_last=is_last), fits)
            for boosting in fits:
                boosting.count(m + 1)
            if is_watched and self.watchers.end_round(self._state(m, started)):
                is_last = ended = True
            for boosting in fits:
                boosting.ended = ended
                if boosting.n_rounds == m + 1:
                    boosting.record(at_once=is_last)
            if is_last:
                break

    def _stride(self, m: int) -> tuple[int, int]:
        """Return up to which round all members go after ``m`` rounds, and how many at a time.

        As long as nobody looks, these are several, so that the rows and bins of a member stay in
        cache; but none that early stopping might not need.
        """
        plan, is_recorded = self.plan, self.members[0].boosting.recorder is not None
        if self.watchers or is_recorded or plan.stops_per_output or plan.max_time is not None:
            return m + 1, 1
        needed = max(1, self.stopping.best + plan.n_iter_no_change - m)
        n_rounds = min(needed, 2 * _STRIDE, plan.max_iter - m)
        # Each member comes twice, so that an odd number of them keeps two teams busy.
        return m + n_rounds, (n_rounds + 1) // 2

    def _advance(self, boosting: Boosting, last: int, stride: int) -> bool:
        """Make some rounds of a member; tell whether there are others up to the last.

        That one is completed when all members have made it, and know which outputs are frozen.
        """
        first = boosting.n_rounds
        for m in range(first, min(first + stride, last)):
            boosting.attempt(m)
            if m + 1 < last:
                boosting.complete_round(m, is_last=False)
        return first + stride < last

    def _complete(self, boosting: Boosting, m: int, *, is_last: bool) -> bool:
        """Complete round ``m`` of a member, unless a checkpoint has it."""
        if boosting.n_rounds == m:
            boosting.complete_round(m, is_last=is_last)
        return False

    def _decide(self, m: int) -> bool:
        """Tell each member how the others fared in round ``m``; whether training ends with it.

        It ends when the mean of all members no longer improves. Round −1 is the baseline: then each
        member gets its rule for the rounds it keeps.
        """
        fits, plan = [member.boosting for member in self.members], self.plan
        rated = []
        for boosting in fits:
            assert boosting.validation is not None
            rated.append(boosting.validation.ratings.values[m + 1])
        # Not a matrix product: its last bits differ between machines.
        means = (self._weights[:, :, None] * np.reshape(rated, (len(fits), -1))).sum(axis=1)
        for ratings, mean in zip(self.ratings, means, strict=True):
            ratings.append(mean if plan.stops_per_output else float(mean[0]))
        if m < 0:
            kind = BestRoundPerOutput if plan.stops_per_output else BestRound
            rules = [kind(each, plan.n_iter_no_change, plan.tol) for each in self.ratings]
            for boosting, rule in zip(fits, rules, strict=False):
                boosting.stopping = rule
            self.stopping = rules[-1]
            return False
        for boosting in fits:
            boosting.decide(m)
        return self.stopping.look(m + 1)

    def _state(self, m: int, started: float) -> RoundState:
        scores = [member.boosting.progress for member in self.members]
        return RoundState(
            round=m + 1,
            n_iter=self.complete.best,
            max_iter=self.plan.max_iter,
            elapsed=time.monotonic() - started,
            train_score=float(np.mean([each.train_score[-1] for each in scores])),
            validation_score=float(np.mean([each.validation_score[-1] for each in scores])),
            step_sizes=None,
        )

    def kept(self, *, copied: bool = False) -> list[Progress]:
        """Return the rounds that each member keeps."""
        return [member.kept(copied=copied) for member in self.members]

    def out_of_fold(
        self, kept: Sequence[Progress], table: Callable[[Rows], Any], pool: _core.Pool
    ) -> list[F64]:
        """Return the raw predictions of each member for the rows it has not seen."""
        found = []
        for member, progress in zip(self.members, kept, strict=True):
            predict = progress.model.predictor(pool, progress.n_rounds, member.loss.baseline, None)
            raw = predict(table(member.rows))
            found.append(raw if member.rows.offset is None else raw + member.rows.offset)
        return found


def mean_model(members: Sequence[Progress]) -> Progress:
    """Return the mean of the members' models; a member that has ended stays as it is."""
    n_rounds = max(each.n_rounds for each in members)
    trees = []
    for each in members:
        assert isinstance(each.model, TreeEnsemble)
        trees.append(each.model.trees)
    importances = [each.importances for each in members if each.importances is not None]
    mean = Progress(
        TreeEnsemble(_core.Ensemble.mean(trees)),
        np.asarray(np.mean(importances, axis=0)),
        _mean_curve([each.train_score for each in members], n_rounds).tolist(),
        _mean_curve([each.validation_score for each in members], n_rounds).tolist(),
    )
    for name in members[0].validation_scores:
        curves = [each.validation_scores[name] for each in members]
        mean.validation_scores[name] = _mean_curve(curves, n_rounds).tolist()
    per_output = [each.validation_per_output for each in members]
    mean.validation_per_output = list(_mean_curve(per_output, n_rounds))
    mean.categories, mean.constraints = members[0].categories, members[0].constraints
    return mean


def _mean_curve(curves: Sequence[Sequence[Any]], n_rounds: int) -> F64:
    """Return the mean of curves, each of which stays at its last value; empty if one is."""
    if not all(curves):
        return np.empty(0)
    lasting = [[*curve, *[curve[-1]] * (n_rounds + 1 - len(curve))] for curve in curves]
    return np.asarray(np.mean(lasting, axis=0))
