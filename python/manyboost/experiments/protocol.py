"""The runs that the experiments are made of.

================== =========================================================================
:class:`Unit`      T of a set: the time of one round of multioutput boosting with stumps
:class:`Trial`     one fit, scored on validation rows after a growing number of rounds
:class:`Tuned`     the best of several trials, scored on test rows
:class:`Curve`     one fit with given settings, scored on test rows as it grows
================== =========================================================================

The final model is that of the best trial, or, on demand, one with its settings and rounds that is
fitted again to training and validation rows together. The paper does not say which it does; most
of its scores on synthetic sets, above all those with a small spread, are nearer to those of models
that never saw the validation rows.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from manyboost.experiments.budgets import Budget, Limit
from manyboost.experiments.methods import FOREST_TREES, METHODS, STUMPS, Fit, Settings, sample
from manyboost.experiments.problems import Fold, Purpose, Task, load_problem, make_fold

#: Part of every key: raise it when the same specification comes to mean another result.
PROTOCOL = 1

_GROWTH = 1.15  # of the rounds from one point of a curve to the next
_UNIT_SECONDS = 0.25  # a shorter time is too much noise
_UNIT_ROUNDS = 4096


@dataclass(frozen=True)
class Points:
    """A score after some of the rounds of a fit, and the seconds they took."""

    rounds: Sequence[int]
    seconds: Sequence[float]
    scores: Sequence[float]


@dataclass(frozen=True)
class Result:
    """What a run leaves: the scores of the model, its rounds and the seconds of its fit."""

    scores: Mapping[str, float]
    rounds: int
    seconds: float
    points: Points | None = None
    #: Settings of the model, where they were chosen.
    chosen: Mapping[str, Any] = field(default_factory=dict)
    #: How many of the fits behind it were ended by the cap of seconds, before their budget.
    n_capped: int = 0


@dataclass(frozen=True)
class Specification:
    """All that the result of a run depends on, besides the data themselves."""

    dataset: str
    seed: int

    def as_json(self) -> str:
        """Canonical text."""
        kind = type(self).__name__.lower()
        # What is added later, and left at its default, leaves the key as it was.
        added = {each.name: each.default for each in fields(self) if each.metadata.get("added")}
        fixed = {k: v for k, v in asdict(self).items() if k not in added or v != added[k]}
        return _canonical({"kind": kind, "protocol": PROTOCOL, **fixed})

    @property
    def key(self) -> str:
        """Hash of the specification."""
        return hashlib.sha256(self.as_json().encode()).hexdigest()

    @property
    def label(self) -> str:
        """What to call runs that take about as long as this one."""
        return f"{self.dataset} {type(self).__name__.lower()}"

    def needs(self) -> Sequence[Specification]:
        """Runs whose results this one starts from."""
        return ()

    def execute(self, needed: Sequence[Result], data_dir: Path | None) -> Result:
        """Carry out the run."""
        raise NotImplementedError

    def fold(self, split: int, purpose: Purpose, data_dir: Path | None) -> Fold:
        """Rows to fit to and to score on."""
        return make_fold(load_problem(self.dataset, data_dir, self.seed), split, purpose, self.seed)


@dataclass(frozen=True)
class Unit(Specification):
    """T of a set, in seconds: measured once, then kept."""

    def execute(self, needed: Sequence[Result], data_dir: Path | None) -> Result:
        """Time enough rounds to be sure of one."""
        fold = self.fold(0, "tuning", data_dir)

        def seconds(rounds: int) -> float:
            settings = {**STUMPS, "loss": "squared_error"}
            return METHODS["gbmort"].fit(fold, settings, Limit(rounds), self.seed).seconds

        preparing = min(seconds(1) for _ in range(3))
        rounds = 4
        while True:
            spent = seconds(1 + rounds) - preparing
            if spent >= _UNIT_SECONDS or rounds >= _UNIT_ROUNDS:
                # Never zero: a budget of no time at all would be none.
                return Result({}, rounds, max(spent / rounds, 1e-9))
            rounds *= 2


@dataclass(frozen=True)
class Single(Specification):
    """One fit of a method with given settings."""

    split: int
    method: str
    settings: Settings
    budget: str
    max_seconds: float | None

    @property
    def label(self) -> str:
        """What to call runs that take about as long as this one."""
        return f"{self.dataset} {self.method} {type(self).__name__.lower()}"

    def needs(self) -> Sequence[Specification]:
        """T, if the budget is counted in it."""
        in_units = Budget.parse(self.budget).kind == "T"
        return (Unit(self.dataset, self.seed),) if in_units else ()

    def limit(self, needed: Sequence[Result]) -> Limit:
        """Where the fit ends."""
        unit = needed[0].seconds if needed else None
        return Budget.parse(self.budget).limit(unit, self.max_seconds)

    def is_capped(self, fit: Fit, needed: Sequence[Result]) -> bool:
        """Whether the cap of seconds, not the budget, ended a fit."""
        limit = self.limit(needed)
        if limit.rounds is not None:
            return fit.rounds < limit.rounds
        return self.max_seconds is not None and limit.seconds == self.max_seconds

    def fit(self, fold: Fold, limit: Limit) -> Fit:
        """Fit the method."""
        # The budget is no part of the seed: more rounds continue the same model.
        seed = _fit_seed(self.dataset, self.seed, self.split, self.method, self.settings)
        return METHODS[self.method].fit(fold, self.settings, limit, seed)


@dataclass(frozen=True)
class Trial(Single):
    """One fit, scored on validation rows; its rounds are those with the best score."""

    def execute(self, needed: Sequence[Result], data_dir: Path | None) -> Result:
        """Fit and choose the number of rounds."""
        fold = self.fold(self.split, "tuning", data_dir)
        fit = self.fit(fold, self.limit(needed))
        points = _score_points(fit, fold, first=fit.seconds / fit.rounds)
        best = int(np.argmax(points.scores))
        return Result(
            {fold.problem.metric: points.scores[best]},
            points.rounds[best],
            fit.seconds,
            points,
            n_capped=int(self.is_capped(fit, needed)),
        )


@dataclass(frozen=True)
class Curve(Single):
    """One fit to all training rows, scored on test rows as it grows."""

    def execute(self, needed: Sequence[Result], data_dir: Path | None) -> Result:
        """Fit and score."""
        fold = self.fold(self.split, "training", data_dir)
        # A round alone tells how long preparing takes, which matters where rounds are short.
        first = self.fit(fold, Limit(1)).seconds
        fit = self.fit(fold, self.limit(needed))
        return Result(
            fold.problem.scores(fold.Y_eval, fit.predict()),
            fit.rounds,
            fit.seconds,
            _score_points(fit, fold, first),
            n_capped=int(self.is_capped(fit, needed)),
        )


@dataclass(frozen=True)
class Tuned(Specification):
    """A method with the settings and rounds that did best on validation rows."""

    split: int
    method: str
    search: str
    budget: str
    max_seconds: float | None
    task: Task
    refit: bool = field(default=False, metadata={"added": True})

    @property
    def label(self) -> str:
        """What to call runs that take about as long as this one."""
        return f"{self.dataset} {self.method} tuned"

    @property
    def purpose(self) -> Purpose:
        """Which rows the model is fitted to."""
        return "training" if self.refit else "testing"

    def needs(self) -> Sequence[Trial]:
        """One trial for each of the settings to choose from."""
        settings = sample(METHODS[self.method], self.task, self.search, self.seed)
        common = (self.dataset, self.seed, self.split, self.method)
        return [Trial(*common, s, self.budget, self.max_seconds) for s in settings]

    def execute(self, needed: Sequence[Result], data_dir: Path | None) -> Result:
        """Choose the best trial, make its model again and score it on test rows."""
        fold = self.fold(self.split, self.purpose, data_dir)
        metric = fold.problem.metric
        trials = self.needs()
        if trials:
            best = max(range(len(trials)), key=lambda i: needed[i].scores[metric])
            chosen: dict[str, Any] = dict(trials[best].settings)
            fit = trials[best].fit(fold, Limit(needed[best].rounds))
            chosen["validation score"] = needed[best].scores[metric]
            n_capped = sum(trial.n_capped for trial in needed)
        else:
            chosen = {}
            seed = _fit_seed(self.dataset, self.seed, self.split, self.method, {})
            fit = METHODS[self.method].fit(fold, {}, Limit(None, self.max_seconds), seed)
            n_capped = int(fit.rounds < FOREST_TREES)
        return Result(
            fold.problem.scores(fold.Y_eval, fit.predict()),
            fit.rounds,
            fit.seconds,
            chosen=chosen,
            n_capped=n_capped,
        )


def _score_points(fit: Fit, fold: Fold, first: float) -> Points:
    """Score a fit after some of its rounds, evenly spaced on a logarithmic scale, and the last.

    The seconds of a fit are shared out evenly among its rounds, ``first`` for the first one.
    """
    n_points = int(math.log(fit.rounds, _GROWTH)) + 1
    rounds = sorted({*(int(_GROWTH**i) for i in range(n_points)), fit.rounds})
    wanted = set(rounds)
    scores = [
        fold.problem.score(fold.Y_eval, predictions)
        for m, predictions in enumerate(fit.staged(), start=1)
        if m in wanted
    ]
    first = min(first, fit.seconds)
    each = (fit.seconds - first) / max(fit.rounds - 1, 1)
    return Points(rounds, [first + each * (m - 1) for m in rounds], scores)


def _fit_seed(*fitted: Any) -> int:
    """Seed of a fit, from what is fitted."""
    return int(hashlib.sha256(_canonical(fitted).encode()).hexdigest()[:8], 16)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
