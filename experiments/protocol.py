"""The runs of the experiments.

================== =========================================================================
:class:`Trial`     one fit, scored on validation rows as it grows
:class:`Search`    the best of several trials within a budget, scored on test rows
:class:`Curve`     one fit with given settings, scored on test rows as it grows
:class:`Model`     a model of ours with its defaults, scored on test rows
================== =========================================================================

A run is a value; its result depends on nothing but its fields and the data: no clock takes part.
CPU seconds are stored beside the scores for information.

The paper does not say whether the chosen model is fitted again on the validation rows, so a search
reports both variants.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from experiments import costs
from experiments.methods import (
    FOREST_TREES,
    METHODS,
    Boosting,
    Forest,
    Settings,
    Track,
    fit_model,
    sample,
)
from experiments.problems import (
    Fold,
    Problem,
    Purpose,
    is_stand_in,
    load_problem,
    make_fold,
    task_of,
)

#: Part of every key: increase it when the same fields come to mean another result.
PROTOCOL = 3

#: Variants of the final model, and the rows that it is fitted on.
VARIANTS: dict[str, Purpose] = {"no refit": "testing", "refit": "training"}
NOMINAL = "nominal"

# Fits are scored after every one of the first rounds, then after rounds that grow by this factor.
_EVERY, _GROWTH = 20, 1.1
# A trial has stalled if the last half of its rounds, this many at least, gained less than this.
_STALL_ROUNDS, _STALL_GAIN = 100, 0.001
# All trials of a search run to this share of their rounds, this many at least, and the best of them
# to the nominal budget.
_HEAT_SHARE, _HEAT_ROUNDS = 1 / 8, 100
_HEAT_KEEPS = 1 / 3
#: The trials that go on beyond the nominal budget: the best of a search.
FINALISTS = 3
#: Sets of more rows, and sets that are not the paper's, have the nominal budget alone: finalists
#: would take half of their time.
VARIED_ROWS = 10_000
_DIGITS = 6


def points_up_to(limit: int) -> list[int]:
    """Return the rounds after which a fit is scored, the same for all limits up to theirs."""
    points = list(range(1, min(_EVERY, limit) + 1))
    while points[-1] < limit:
        following = max(points[-1] + 1, round(points[-1] * _GROWTH))
        if following > limit:
            break
        points.append(following)
    return points


def heat_rounds(limit: int) -> int:
    """Return the rounds after which a trial must be among the best to go on to its limit."""
    return min(limit, max(_HEAT_ROUNDS, int(_HEAT_SHARE * limit)))


def has_stalled(best: Sequence[tuple[int, float]], done: int) -> bool:
    """Whether a trial is over, from the (round, score) pairs that were best so far."""
    half = done // 2
    earlier = [score for rounds, score in best if rounds <= half]
    return half >= _STALL_ROUNDS and best[-1][1] < earlier[-1] + _STALL_GAIN


@dataclass(frozen=True)
class Budget:
    """``rounds:N`` for all methods, or ``T:M``: the rounds that M times T buy."""

    kind: str
    amount: int

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read a budget, or raise a ValueError that says how to write one."""
        kind, _, amount = text.partition(":")
        if kind not in ("rounds", "T") or not amount.isdecimal() or int(amount) == 0:
            raise ValueError(
                f"budget={text!r} is not a budget; write rounds:N or T:M with a positive number."
            )
        return cls(kind, int(amount))

    def limits(self, problem: Problem, method: Boosting, settings: Settings) -> dict[str, int]:
        """Return the rounds of a fit by the name of the budget."""
        if self.kind == "rounds":
            return {NOMINAL: self.amount}
        return method.rounds_bought(problem, settings, self.amount)


@dataclass(frozen=True)
class Run:
    """Everything that a result depends on, except the data."""

    dataset: str
    seed: int
    split: int

    def as_dict(self) -> dict[str, Any]:
        """Return the kind and the fields."""
        return {"kind": type(self).__name__.lower(), **asdict(self)}

    @cached_property
    def key(self) -> str:
        fields = {"protocol": PROTOCOL, **self.as_dict()}
        return hashlib.sha256(_canonical(fields).encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """A few words for messages."""
        named = getattr(self, "method", None) or getattr(self, "model", "")
        return f"{self.dataset} split {self.split} {named} {type(self).__name__.lower()}"

    def needs(self, data_dir: Path | None) -> Sequence[Run]:
        """Return the runs whose results this one starts from."""
        return ()

    def needs_then(self, needed: Sequence[Any], data_dir: Path | None) -> Sequence[Run]:
        """Return what it also starts from, once the results of :meth:`needs` are known."""
        return ()

    def execute(self, needed: Sequence[Any], data_dir: Path | None) -> Any:
        """Carry out the run, given the results of :meth:`needs` and :meth:`needs_then`."""
        raise NotImplementedError

    def problem(self, data_dir: Path | None) -> Problem:
        """Return the data."""
        return load_problem(self.dataset, data_dir, self.seed)

    def fold(self, purpose: Purpose, data_dir: Path | None) -> Fold:
        """Return the rows to fit on and to score on."""
        return make_fold(self.problem(data_dir), self.split, purpose, self.seed)

    def fit_seed(self, *what: Any) -> int:
        """Return the seed of a fit: the rounds are not part of it, so more continue the same."""
        fitted = _canonical((self.dataset, self.seed, self.split, *what))
        return int(hashlib.sha256(fitted.encode()).hexdigest()[:8], 16)


@dataclass(frozen=True)
class TrialResult:
    """``points`` are the (round, score) pairs at which the validation score was best so far."""

    rounds: int
    stalled: bool
    points: Sequence[tuple[int, float]]
    seconds: float

    def best(self, limit: int) -> tuple[int, float]:
        """Return the best round up to a limit, and its score."""
        return max(point for point in self.points if point[0] <= limit)

    def up_to(self, limit: int) -> TrialResult:
        """Return what a trial with this limit would have found."""
        return replace(self, points=[point for point in self.points if point[0] <= limit])


@dataclass(frozen=True)
class Trial(Run):
    """One fit of up to ``rounds`` rounds, scored on validation rows.

    A longer trial contains a shorter one: ``rounds`` is no part of its key.
    """

    method: str
    settings: Settings
    rounds: int

    def as_dict(self) -> dict[str, Any]:
        fields = super().as_dict()
        del fields["rounds"]
        return fields

    def is_answered_by(self, result: TrialResult) -> bool:
        """Whether a stored result has all rounds that this trial needs."""
        return result.stalled or result.rounds >= points_up_to(self.rounds)[-1]

    def execute(self, needed: Sequence[Any], data_dir: Path | None) -> TrialResult:
        fold = self.fold("tuning", data_dir)
        best: list[tuple[int, float]] = []
        stalled = False

        def watch(track: Track) -> bool:
            nonlocal stalled
            done, score = track.rounds[-1], round(track.scores[-1], _DIGITS)
            if not best or score > best[-1][1]:
                best.append((done, score))
            stalled = has_stalled(best, done)
            return stalled

        method = METHODS[self.method]
        assert isinstance(method, Boosting)
        track = method.follow(
            fold,
            self.settings,
            points_up_to(self.rounds),
            self.fit_seed(self.method, self.settings),
            lambda raw: fold.problem.score(fold.Y_eval, raw),
            watch,
        )
        return TrialResult(track.rounds[-1], stalled, best, _seconds(track.seconds[-1]))


@dataclass(frozen=True)
class Chosen:
    """A model that did best on validation rows; ``scores`` are by variant and metric."""

    settings: Settings
    rounds: int
    validation: float | None
    scores: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class SearchResult:
    """The models that the budgets choose; ``budgets`` are places in ``models``."""

    models: Sequence[Chosen]
    budgets: Mapping[str, int]
    trials: int
    #: CPU seconds of the final fits.
    seconds: float

    def model(self, budget: str = NOMINAL) -> Chosen:
        """Return the model of a budget; without variations, that of the only budget."""
        return self.models[self.budgets.get(budget, self.budgets[NOMINAL])]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> SearchResult:
        """Read a stored result."""
        return cls(**{**fields, "models": [Chosen(**each) for each in fields["models"]]})


@dataclass(frozen=True)
class Search(Run):
    """A method with the settings and rounds that did best on validation rows.

    All trials run to an eighth of the nominal budget, the best third of them to the whole of it,
    and, of the paper's sets up to :data:`VARIED_ROWS` rows, the best three to the largest one.
    ``costs`` names the constants behind a budget in T.
    """

    method: str
    n_settings: int
    budget: str
    costs: str

    @classmethod
    def declare(
        cls, dataset: str, seed: int, split: int, method: str, n_settings: int, budget: str
    ) -> Search:
        """Return the search with the present costs; forests have neither settings nor budget."""
        if isinstance(METHODS[method], Forest):
            return cls(dataset, seed, split, method, 0, "", "")
        priced = costs.digest() if Budget.parse(budget).kind == "T" else ""
        return cls(dataset, seed, split, method, n_settings, budget, priced)

    def needs(self, data_dir: Path | None) -> Sequence[Trial]:
        return [
            self._trial(settings, heat_rounds(limits[NOMINAL]))
            for settings, limits in self._limits(data_dir)
        ]

    def needs_then(self, needed: Sequence[TrialResult], data_dir: Path | None) -> Sequence[Trial]:
        tried = self._limits(data_dir)
        chosen = self._kept(needed, data_dir)
        return [self._trial(tried[i][0], tried[i][1][NOMINAL]) for i in chosen]

    def likely_needs_then(self, data_dir: Path | None) -> Sequence[Trial]:
        """Return trials like those of :meth:`needs_then`, before results are known."""
        tried = self._limits(data_dir)
        return [self._trial(each, of[NOMINAL]) for each, of in tried[: _n_kept(len(tried))]]

    def _trial(self, settings: Settings, rounds: int) -> Trial:
        return Trial(self.dataset, self.seed, self.split, self.method, settings, rounds)

    def _kept(self, heat: Sequence[TrialResult], data_dir: Path | None) -> list[int]:
        """Return the numbers of the settings that go on, from results up to the heat or beyond."""
        # A stored trial may be longer than this search needs it.
        trials = self.needs(data_dir)
        best = [r.best(trial.rounds)[1] for r, trial in zip(heat, trials, strict=True)]
        order = sorted(range(len(best)), key=lambda i: -best[i])
        return sorted(order[: _n_kept(len(best))])

    def _limits(self, data_dir: Path | None) -> list[tuple[Settings, dict[str, int]]]:
        """Return the settings to try, and their rounds by budget."""
        method = METHODS[self.method]
        if isinstance(method, Forest):
            return []
        budget, problem = Budget.parse(self.budget), self.problem(data_dir)
        task = task_of(self.dataset)
        tried = sample(self.dataset, task, self.split, self.n_settings, self.seed)
        limits = [budget.limits(problem, method, settings) for settings in tried]
        if problem.X.shape[0] > VARIED_ROWS or is_stand_in(self.dataset):
            limits = [{NOMINAL: each[NOMINAL]} for each in limits]
        return list(zip(tried, limits, strict=True))

    def execute(self, needed: Sequence[Any], data_dir: Path | None) -> SearchResult:
        method = METHODS[self.method]
        if isinstance(method, Forest):
            return self._forest(method, data_dir)
        tried = self._limits(data_dir)
        trials = self._with_finalists(needed, data_dir)
        # By budget: the number of the setting, its best round and the score of that.
        best: dict[str, tuple[int, int, float]] = {}
        for budget in tried[0][1]:
            limits = [of_setting[budget] for _, of_setting in tried]
            found = [trial.best(limit) for trial, limit in zip(trials, limits, strict=True)]
            number = _first_best([score for _, score in found])
            best[budget] = (number, *found[number])
        distinct = sorted(set(best.values()))
        scores: dict[tuple[int, int], dict[str, Mapping[str, float]]] = {}
        seconds = 0.0
        for number in dict.fromkeys(number for number, _, _ in distinct):
            settings = tried[number][0]
            points = sorted({rounds for n, rounds, _ in distinct if n == number})
            for variant, purpose in VARIANTS.items():
                fold = self.fold(purpose, data_dir)
                seed = self.fit_seed(self.method, settings)
                track = method.follow(fold, settings, points, seed, _all_scores(fold))
                seconds += track.seconds[-1]
                for rounds, kept in zip(points, track.scores, strict=True):
                    scores.setdefault((number, rounds), {})[variant] = kept
        models = [
            Chosen(tried[number][0], rounds, validation, scores[number, rounds])
            for number, rounds, validation in distinct
        ]
        budgets = {budget: distinct.index(chosen) for budget, chosen in best.items()}
        return SearchResult(models, budgets, len(tried), _seconds(seconds))

    def _with_finalists(
        self, needed: Sequence[TrialResult], data_dir: Path | None
    ) -> list[TrialResult]:
        """Return the trials as far as they go: the best ones up to the largest budget."""
        trials, tried = list(self.needs(data_dir)), self._limits(data_dir)
        heat, further = needed[: len(trials)], needed[len(trials) :]
        results = list(heat)
        for i, result in zip(self._kept(heat, data_dir), further, strict=True):
            trials[i], results[i] = replace(trials[i], rounds=tried[i][1][NOMINAL]), result
        found = [r.up_to(trial.rounds) for r, trial in zip(results, trials, strict=True)]
        order = sorted(range(len(found)), key=lambda i: -found[i].points[-1][1])
        for i in order[:FINALISTS]:
            longest = replace(trials[i], rounds=max(tried[i][1].values()))
            if not longest.is_answered_by(results[i]):
                found[i] = longest.execute((), data_dir)
            else:
                found[i] = results[i].up_to(longest.rounds)
        return found

    def _forest(self, method: Forest, data_dir: Path | None) -> SearchResult:
        fold = self.fold("training", data_dir)
        started = time.process_time()
        predictions = method.predict(fold, self.fit_seed(self.method))
        seconds = time.process_time() - started
        scores = _all_scores(fold)(predictions)
        model = Chosen({}, FOREST_TREES, None, dict.fromkeys(VARIANTS, scores))
        return SearchResult([model], {NOMINAL: 0}, 0, _seconds(seconds))


@dataclass(frozen=True)
class CurveResult:
    """Test scores after some rounds; ``cost`` is that of one round in T, by budget."""

    rounds: Sequence[int]
    scores: Sequence[float]
    #: CPU seconds of one thread up to each of the rounds.
    seconds: Sequence[float]
    cost: Mapping[str, float]


@dataclass(frozen=True)
class Curve(Run):
    """One fit on all training rows, scored on test rows as it grows."""

    method: str
    settings: Settings
    budget: str

    def execute(self, needed: Sequence[Any], data_dir: Path | None) -> CurveResult:
        fold, method = self.fold("training", data_dir), METHODS[self.method]
        assert isinstance(method, Boosting)
        limits = Budget.parse(self.budget).limits(fold.problem, method, self.settings)
        track = method.follow(
            fold,
            self.settings,
            points_up_to(limits[NOMINAL]),
            self.fit_seed(self.method, self.settings),
            lambda raw: round(fold.problem.score(fold.Y_eval, raw), _DIGITS),
        )
        relative = method.round_costs(fold.problem, self.settings)
        cost = {name: float(f"{value:.6g}") for name, value in relative.items()}
        return CurveResult(track.rounds, track.scores, [_seconds(s) for s in track.seconds], cost)


@dataclass(frozen=True)
class ModelResult:
    """Test scores by metric."""

    scores: Mapping[str, float]
    rounds: int
    seconds: float


@dataclass(frozen=True)
class Model(Run):
    """One of our own models, fitted on all training rows."""

    model: str

    def execute(self, needed: Sequence[Any], data_dir: Path | None) -> ModelResult:
        fold = self.fold("training", data_dir)
        started = time.process_time()
        predictions, rounds = fit_model(self.model, fold, self.fit_seed(self.model))
        seconds = time.process_time() - started
        return ModelResult(_all_scores(fold)(predictions), rounds, _seconds(seconds))


def _n_kept(n_settings: int) -> int:
    return min(n_settings, max(FINALISTS, round(_HEAT_KEEPS * n_settings)))


def _first_best(scores: Sequence[float]) -> int:
    return max(range(len(scores)), key=lambda i: scores[i])


def _all_scores(fold: Fold) -> Any:
    def scores(raw: Any) -> dict[str, float]:
        found = fold.problem.scores(fold.Y_eval, raw)
        return {metric: round(score, _DIGITS) for metric, score in found.items()}

    return scores


def _seconds(value: float) -> float:
    return round(value, 3)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
