"""Choosing a strategy: contenders race on validation rows, and the slower half drops out.

All contenders get the same rounds, or the same seconds if time is limited; then those whose best
validation score is in the better half go on for twice as long, until one is left.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyboost import _core
from manyboost.arrays import F32
from manyboost.data.rows import Rows
from manyboost.training.assembly import assemble, new_progress
from manyboost.training.baselines import fit_loss
from manyboost.training.callbacks import Watchers
from manyboost.training.fitted_losses import FittedLoss
from manyboost.training.parameters import Parameters
from manyboost.training.plan import (
    check_memory,
    make_plan,
    resolve_learning_rate,
    resolve_limits,
    resolve_max_iter,
    with_loss,
)
from manyboost.training.progress import Progress
from manyboost.training.projections import Projection, is_identity
from manyboost.training.scoring import Scorer
from manyboost.training.strategies import STRATEGIES
from manyboost.training.training_data import TrainingData

#: Rounds of the first heat.
FIRST_HEAT = 20

#: Share of ``max_time`` for the race; the rest is for the winner.
SHARE_OF_TIME = 1 / 3

_DENSITIES = ("gaussian", "sparse", "subsample")


@dataclass(frozen=True)
class Contender:
    """What is raced: a strategy, and a projection if it has one."""

    strategy: str
    projection: str | Projection | None = None


def contenders(
    n_outputs: int, projection: str | Projection, n_components: int | float, *, weighted: bool
) -> list[Contender]:
    """What comes into question, the default first: of equals the earlier one wins.

    A projection other than the default is kept. ``weighted`` outputs need shared trees.
    """
    if n_outputs == 1:
        return [Contender(each.name) for each in STRATEGIES.values() if not each.shares_trees]
    projections = _DENSITIES if projection == "gaussian" else (projection,)
    several = not isinstance(n_components, int | np.integer) or n_components > 1
    entrants = []
    for strategy in reversed(STRATEGIES.values()):
        limit = strategy.max_race_outputs
        if (several and strategy.max_components is not None) or (limit and n_outputs > limit):
            continue
        if strategy.projects:
            if not is_identity(projection) or strategy.max_components is None:
                entrants += [Contender(strategy.name, each) for each in projections]
        elif strategy.shares_trees or not weighted:
            entrants.append(Contender(strategy.name))
    return entrants


class Result(NamedTuple):
    """How a contender stands after a heat: its best rating, that round's score, the round."""

    rating: float
    score: float
    rounds: int


@dataclass
class Race:
    """Heats of contenders; ``results`` tells how each fared."""

    entrants: list[Contender]
    standings: dict[Contender, Result] = field(default_factory=dict)
    heats: dict[Contender, int] = field(default_factory=dict)

    def run(
        self,
        heat: Callable[[Contender, int, float | None], Result],
        max_rounds: int,
        max_time: float | None,
    ) -> Contender:
        """Return the winner. ``heat`` trains up to a number of rounds, for some seconds at most."""
        left, length = list(self.entrants), FIRST_HEAT
        n_heats = math.ceil(math.log2(len(left)))
        while len(left) > 1:
            rounds = max_rounds if max_time is not None else min(length, max_rounds)
            seconds = None if max_time is None else max_time / n_heats / len(left)
            for each in left:
                self.standings[each] = heat(each, rounds, seconds)
                self.heats[each] = self.heats.get(each, 0) + 1
            # Python's sort is stable.
            left.sort(key=lambda each: -self.standings[each].rating)
            left = left[: (len(left) + 1) // 2]
            if max_time is None and rounds == max_rounds:
                break
            length *= 2
        return left[0]

    @property
    def results(self) -> dict[str, NDArray[Any]]:
        """One entry for each contender, the best first."""
        found = self.standings
        order = sorted(found, key=lambda each: (-self.heats[each], -found[each].rating))
        return {
            "strategy": np.array([each.strategy for each in order], dtype=object),
            "projection": np.array([each.projection for each in order], dtype=object),
            "heats": np.array([self.heats[each] for each in order]),
            "n_rounds": np.array([found[each].rounds for each in order]),
            "validation_score": np.array([found[each].score for each in order]),
        }


def race(
    parameters: Parameters,
    data: TrainingData,
    seed: int,
    scorers: Callable[[FittedLoss, Rows, F32], list[Scorer]],
    threads: _core.Pool,
) -> tuple[Contender, dict[str, NDArray[Any]]]:
    """Return the strategy and projection that win on the validation rows, and how all fared."""
    parameters = copy.copy(parameters)
    # Nobody stops early; all have the same number of rounds and learning rate.
    n_rounds = resolve_max_iter(parameters, data, "auto")
    parameters.early_stopping, parameters.n_iter_no_change = True, n_rounds
    parameters.max_iter = n_rounds
    parameters.learning_rate = resolve_learning_rate(parameters, data, "auto")
    parameters.thresholds, parameters.callbacks = None, None
    weighted = parameters.output_weight is not None
    given = parameters.projection, parameters.n_components
    heats = Race(contenders(data.n_outputs, *given, weighted=weighted))
    loss = fit_loss(parameters, data, threads)
    n_features = data.categories.n_features
    models: dict[Contender, Progress] = {}

    def heat(contender: Contender, rounds: int, seconds: float | None) -> Result:
        chosen = parameters.projection if contender.projection is None else contender.projection
        plan = make_plan(
            parameters, data, seed=seed, strategy=contender.strategy, projection=chosen
        )
        check_memory(plan, parameters, data, threads.threads)
        plan = replace(with_loss(plan, parameters, loss), max_iter=rounds, max_time=seconds)
        if contender not in models:
            models[contender] = new_progress(plan, data.n_outputs, n_features)
        progress = models[contender]
        limits = resolve_limits(parameters, data, contender.strategy)
        scored, unwatched = functools.partial(scorers, loss), Watchers([], None, None)
        boosting = assemble(plan, limits, data, loss, progress, scored, unwatched, threads)
        boosting.run()
        assert boosting.validation is not None
        best = boosting.complete.best
        progress.truncate(best)
        return Result(
            boosting.validation.ratings.values[best], progress.validation_score[best], best
        )

    limit = None if parameters.max_time is None else SHARE_OF_TIME * parameters.max_time
    return heats.run(heat, n_rounds, limit), heats.results
