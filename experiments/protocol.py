"""The runs of the experiments.

================== =========================================================================
:class:`Unit`      T of a data set: the time of one round of multioutput boosting with stumps
:class:`Trial`     one fit, scored on validation rows after a growing number of rounds
:class:`Tuned`     the best of several trials, scored on test rows
:class:`Curve`     one fit with given settings, scored on test rows as it grows
================== =========================================================================

A run is a value; its result depends on nothing but its fields and the data. The final model of
``Tuned`` is that of the best trial, or, with ``refit``, one with the same settings and rounds that
is fitted on training and validation rows together. The paper does not say which one it uses; most
of its scores on synthetic data are closer to models that never saw the validation rows.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from experiments.budgets import Budget, Limit
from experiments.methods import FOREST_TREES, METHODS, STUMPS, Fit, Settings, sample
from experiments.problems import Fold, Purpose, load_problem, make_fold, task_of

#: Part of every key: increase it when the same fields come to mean another result.
PROTOCOL = 1

_GROWTH = 1.15  # factor between the rounds of successive points of a curve
_UNIT_SECONDS = 0.25  # shorter measurements are too noisy
_UNIT_ROUNDS = 4096


@dataclass(frozen=True)
class Points:
    """Scores of a fit after some of its rounds, and the seconds it took to get there."""

    rounds: Sequence[int]
    seconds: Sequence[float]
    scores: Sequence[float]


@dataclass(frozen=True)
class Result:
    """The scores of a model, its rounds and the seconds of its fit."""

    scores: Mapping[str, float]
    rounds: int
    seconds: float
    points: Points | None = None
    #: The settings that were chosen, and their validation score.
    chosen: Mapping[str, Any] = field(default_factory=dict)
    #: The number of fits that the cap of seconds ended before their budget.
    n_capped: int = 0


@dataclass(frozen=True)
class Run:
    """Everything that a result depends on, except the data."""

    dataset: str
    seed: int

    @property
    def kind(self) -> str:
        return type(self).__name__.lower()

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, the kind and the number of the protocol."""
        return {"kind": self.kind, "protocol": PROTOCOL, **asdict(self)}

    @cached_property
    def key(self) -> str:
        return hashlib.sha256(_canonical(self.as_dict()).encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """A few words for messages."""
        return " ".join(filter(None, (self.dataset, getattr(self, "method", ""), self.kind)))

    def needs(self) -> Sequence[Run]:
        """Return the runs whose results this one starts from."""
        return ()

    def execute(self, needed: Sequence[Result], data_dir: Path | None) -> Result:
        """Carry out the run, given the results of :meth:`needs`."""
        raise NotImplementedError

    def fold(self, split: int, purpose: Purpose, data_dir: Path | None) -> Fold:
        """Return the rows to fit on and to score on."""
        return make_fold(load_problem(self.dataset, data_dir, self.seed), split, purpose, self.seed)


@dataclass(frozen=True)
class Unit(Run):
    """T of a data set in seconds: measured once, then stored."""

    def execute(self, needed: Sequence[Result], data_dir: Path | None) -> Result:
        fold = self.fold(0, "tuning", data_dir)

        def seconds(rounds: int) -> float:
            settings = {**STUMPS, "loss": "squared_error"}
            return METHODS["gbmort"].fit(fold, settings, Limit(rounds), self.seed).seconds

        preparation = min(seconds(1) for _ in range(3))
        rounds = 4
        while True:
            spent = seconds(1 + rounds) - preparation
            if spent >= _UNIT_SECONDS or rounds >= _UNIT_ROUNDS:
                # Never zero: a budget must be positive.
                return Result({}, rounds, max(spent / rounds, 1e-9))
            rounds *= 2


@dataclass(frozen=True)
class FitRun(Run):
    """One fit of a method with given settings."""

    split: int
    method: str
    settings: Settings
    budget: str
    max_seconds: float | None

    def needs(self) -> Sequence[Run]:
        return (Unit(self.dataset, self.seed),) if Budget.parse(self.budget).kind == "T" else ()

    def fit(self, fold: Fold, needed: Sequence[Result]) -> tuple[Fit, bool]:
        """Fit the method; also return whether the cap of seconds ended the fit early."""
        unit = needed[0].seconds if needed else None
        limit = Budget.parse(self.budget).limit(unit, self.max_seconds)
        fit = _fit(self, self.settings, fold, limit)
        if limit.rounds is not None:
            return fit, fit.rounds < limit.rounds
        return fit, self.max_seconds is not None and limit.seconds == self.max_seconds


@dataclass(frozen=True)
class Trial(FitRun):
    """One fit, scored on validation rows; its rounds are those with the best score."""

    def execute(self, needed: Sequence[Result], data_dir: Path | None) -> Result:
        fold = self.fold(self.split, "tuning", data_dir)
        fit, capped = self.fit(fold, needed)
        points = _score_points(fit, fold, first=fit.seconds / fit.rounds)
        best = int(np.argmax(points.scores))
        scores = {fold.problem.metric: points.scores[best]}
        return Result(scores, points.rounds[best], fit.seconds, n_capped=int(capped))


@dataclass(frozen=True)
class Curve(FitRun):
    """One fit on training and validation rows, scored on test rows as it grows."""

    def execute(self, needed: Sequence[Result], data_dir: Path | None) -> Result:
        fold = self.fold(self.split, "training", data_dir)
        # A single round shows how long preparation takes: it matters if rounds are short.
        first = _fit(self, self.settings, fold, Limit(1)).seconds
        fit, capped = self.fit(fold, needed)
        scores = fold.problem.scores(fold.Y_eval, fit.predict())
        points = _score_points(fit, fold, first)
        return Result(scores, fit.rounds, fit.seconds, points, n_capped=int(capped))


@dataclass(frozen=True)
class Tuned(Run):
    """A method with the settings and rounds that did best on validation rows."""

    split: int
    method: str
    search: str
    budget: str
    max_seconds: float | None
    refit: bool = False

    @property
    def purpose(self) -> Purpose:
        return "training" if self.refit else "testing"

    def needs(self) -> Sequence[Trial]:
        settings = sample(METHODS[self.method], task_of(self.dataset), self.search, self.seed)
        common = (self.dataset, self.seed, self.split, self.method)
        return [Trial(*common, s, self.budget, self.max_seconds) for s in settings]

    def execute(self, needed: Sequence[Result], data_dir: Path | None) -> Result:
        fold = self.fold(self.split, self.purpose, data_dir)
        metric, trials = fold.problem.metric, self.needs()
        if trials:
            best = max(range(len(trials)), key=lambda i: needed[i].scores[metric])
            settings = trials[best].settings
            fit = _fit(self, settings, fold, Limit(needed[best].rounds))
            chosen = {**settings, "validation score": needed[best].scores[metric]}
            n_capped = sum(trial.n_capped for trial in needed)
        else:
            fit = _fit(self, {}, fold, Limit(None, self.max_seconds))
            chosen, n_capped = {}, int(fit.rounds < FOREST_TREES)
        scores = fold.problem.scores(fold.Y_eval, fit.predict())
        return Result(scores, fit.rounds, fit.seconds, chosen=chosen, n_capped=n_capped)


def _fit(run: FitRun | Tuned, settings: Settings, fold: Fold, limit: Limit) -> Fit:
    # The budget is not part of the seed: more rounds continue the same model.
    fitted = (run.dataset, run.seed, run.split, run.method, settings)
    seed = int(hashlib.sha256(_canonical(fitted).encode()).hexdigest()[:8], 16)
    return METHODS[run.method].fit(fold, settings, limit, seed)


def _score_points(fit: Fit, fold: Fold, first: float) -> Points:
    """Score a fit after rounds that are evenly spaced on a logarithmic scale, and the last one.

    The first round takes ``first`` seconds; the others share the rest equally.
    """
    n_points = int(math.log(fit.rounds, _GROWTH)) + 1
    rounds = sorted({*(int(_GROWTH**i) for i in range(n_points)), fit.rounds})
    scores = [
        fold.problem.score(fold.Y_eval, predictions)
        for m, predictions in enumerate(fit.staged(), start=1)
        if m in rounds
    ]
    first = min(first, fit.seconds)
    each = (fit.seconds - first) / max(fit.rounds - 1, 1)
    return Points(rounds, [first + each * (m - 1) for m in rounds], scores)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
