"""Choosing a strategy: contenders race on validation rows, and the worse half drops out.

All contenders of a heat get rounds of the same cost, or the same seconds if time is limited; then
those whose best rating is in the better half go on for twice as much, until one is left or all have
made all their rounds. Of contenders that are as good as the best, the cheapest wins.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost import _core
from manyboost.arrays import F32
from manyboost.data.rows import Rows
from manyboost.training.assembly import assemble, new_progress
from manyboost.training.baselines import fit_loss
from manyboost.training.callbacks import unwatched
from manyboost.training.ensembles import Ensemble
from manyboost.training.fitted_losses import FittedLoss
from manyboost.training.parameters import Parameters
from manyboost.training.plan import (
    check_memory,
    make_plan,
    resolve_learning_rate,
    resolve_limits,
    with_loss,
)
from manyboost.training.progress import Progress
from manyboost.training.projections import Projection, is_identity
from manyboost.training.scoring import Scorer
from manyboost.training.strategies import STRATEGIES
from manyboost.training.training_data import TrainingData

#: Rounds of the first heat, for the contender whose rounds cost most.
FIRST_HEAT = 20

#: A contender is as good as the best if it has this share of its improvement on the baseline.
AS_GOOD = 0.99

#: With fewer rows, contenders are rated on the rows of several folds, not on one part.
FEW_ROWS = 1000
FEW_FOLDS = 3

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


def round_costs(
    entrants: Sequence[Contender], n_outputs: int, n_components: int | float, n_features: float
) -> dict[Contender, float]:
    """Return what a round of each contender costs, in passes over the cells of one output.

    A tree visits the features of half of its rows at each of about five levels, for every column
    that it is grown on; leaves and residuals are two passes over all outputs.
    """
    costs = {}
    share = n_components if isinstance(n_components, int | np.integer) else 0
    q = int(share) or max(1, round(float(n_components) * n_outputs))
    for each in entrants:
        strategy = STRATEGIES[each.strategy]
        n_trees = 1 if strategy.shares_trees else n_outputs
        columns = n_trees * strategy.n_grown_columns(n_outputs, q)
        costs[each] = 2.5 * n_features * columns + 2.0 * n_outputs
    return costs


class Standing(NamedTuple):
    """How a contender stands after a heat.

    ``gain`` is the rating of its best round above that of the baseline, ``score`` the score of that
    round, ``n_rounds`` its number.
    """

    gain: float
    score: float
    n_rounds: int


Heat: TypeAlias = Callable[[Contender, int, float | None], Standing]


@dataclass
class Race:
    """Heats of contenders, whose rounds have these costs; ``results`` tells how each fared."""

    costs: dict[Contender, float]
    standings: dict[Contender, Standing] = field(default_factory=dict)
    heats: dict[Contender, int] = field(default_factory=dict)

    def run(self, heat: Heat, max_rounds: int, max_time: float | None) -> Contender:
        """Return the winner. ``heat`` trains up to a number of rounds, for some seconds at most."""
        left, budget = list(self.costs), FIRST_HEAT * max(self.costs.values())
        n_heats = math.ceil(math.log2(len(left)))
        while len(left) > 1:
            seconds = None if max_time is None else max_time / n_heats / len(left)
            rounds = {each: self._rounds(each, budget, max_rounds, max_time) for each in left}
            for each in left:
                self.standings[each] = heat(each, rounds[each], seconds)
                self.heats[each] = self.heats.get(each, 0) + 1
            # Python's sort is stable.
            left.sort(key=lambda each: -self.standings[each].gain)
            left = left[: (len(left) + 1) // 2]
            if max_time is None and all(rounds[each] == max_rounds for each in left):
                break
            budget *= 2
        return self.winner if self.standings else left[0]

    def _rounds(
        self, each: Contender, budget: float, max_rounds: int, max_time: float | None
    ) -> int:
        if max_time is not None:
            return max_rounds
        return min(max_rounds, max(1, int(budget / self.costs[each])))

    @property
    def winner(self) -> Contender:
        """The cheapest of those that are as good as the best; of equals the earlier one."""
        return min(filter(self._is_as_good, self.costs), key=self.costs.__getitem__)

    def _is_as_good(self, each: Contender) -> bool:
        best = max(standing.gain for standing in self.standings.values())
        return self.standings[each].gain >= (AS_GOOD * best if best > 0 else best)

    def _verdict(self, each: Contender) -> str:
        if each == self.winner:
            return "won"
        return "as good, not cheaper" if self._is_as_good(each) else "worse"

    @property
    def results(self) -> dict[str, NDArray[Any]]:
        """One entry for each contender, the winner first, then the best."""
        found = self.standings
        order = sorted(found, key=lambda each: (-self.heats[each], -found[each].gain))
        if order:
            order.sort(key=lambda each: each != self.winner)
        cheapest = min(self.costs.values())
        cost = [self.costs[each] / cheapest for each in order]
        return {
            "strategy": np.array([each.strategy for each in order], dtype=object),
            "projection": np.array([each.projection for each in order], dtype=object),
            "heats": np.array([self.heats[each] for each in order], dtype=np.int64),
            "n_rounds": np.array([found[each].n_rounds for each in order], dtype=np.int64),
            "validation_score": np.array([found[each].score for each in order], dtype=float),
            "round_cost": np.array(cost, dtype=float),
            "verdict": np.array([self._verdict(each) for each in order], dtype=object),
        }


def race(
    parameters: Parameters,
    parts: Sequence[TrainingData],
    seed: int,
    scorers: Callable[[FittedLoss, Rows, F32, Ensemble], list[Scorer]],
    threads: _core.Pool,
    n_rounds: int,
) -> tuple[Contender, dict[str, NDArray[Any]]]:
    """Return the strategy and projection that win on the validation rows, and how all fared.

    Each of the ``parts`` has training and validation rows; ratings are means over them.
    """
    parameters = copy.copy(parameters)
    # Nobody stops early; all have the same number of rounds and learning rate.
    parameters.early_stopping, parameters.n_iter_no_change = True, n_rounds
    parameters.max_iter = n_rounds
    parameters.learning_rate = resolve_learning_rate(parameters, parts[0], "auto")
    parameters.thresholds, parameters.callbacks = None, None
    parameters.n_folds, parameters.refit_all, parameters.validation_split = None, False, "random"
    weighted, d = parameters.output_weight is not None, parts[0].n_outputs
    given = parameters.projection, parameters.n_components
    entrants = contenders(d, *given, weighted=weighted)
    X = parts[0].rows.X
    n_present = X.nnz / X.shape[0] if sparse.issparse(X) else X.shape[1]
    heats = Race(round_costs(entrants, d, parameters.n_components, n_present))
    track = _Track(parameters, parts, seed, scorers, threads)
    limit = None if parameters.max_time is None else SHARE_OF_TIME * parameters.max_time
    return heats.run(track.heat, n_rounds, limit), heats.results


class _Track:
    """Where contenders train: a model on each of the parts, which grows from heat to heat."""

    def __init__(
        self,
        parameters: Parameters,
        parts: Sequence[TrainingData],
        seed: int,
        scorers: Callable[[FittedLoss, Rows, F32, Ensemble], list[Scorer]],
        threads: _core.Pool,
    ) -> None:
        self.parameters, self.parts, self.seed = parameters, parts, seed
        self.scorers, self.threads = scorers, threads
        self.losses = [fit_loss(parameters, part, threads) for part in parts]
        self.models: dict[tuple[Contender, int], Progress] = {}

    def heat(self, contender: Contender, rounds: int, seconds: float | None) -> Standing:
        """Train a contender up to so many rounds; return the means over the parts."""
        seconds = None if seconds is None else seconds / len(self.parts)
        found = [self._train(contender, k, rounds, seconds) for k in range(len(self.parts))]
        gain, score, n_rounds = (math.fsum(each) / len(found) for each in zip(*found, strict=True))
        return Standing(gain, score, round(n_rounds))

    def _train(self, contender: Contender, k: int, rounds: int, seconds: float | None) -> Standing:
        parameters, data, loss = self.parameters, self.parts[k], self.losses[k]
        chosen = parameters.projection if contender.projection is None else contender.projection
        plan = make_plan(
            parameters, data, seed=self.seed, strategy=contender.strategy, projection=chosen
        )
        check_memory(plan, parameters, data, self.threads.threads)
        plan = replace(with_loss(plan, parameters, loss), max_iter=rounds, max_time=seconds)
        n_features = data.categories.n_features
        limits = resolve_limits(parameters, data, contender.strategy)
        if (contender, k) not in self.models:
            self.models[contender, k] = new_progress(plan, data.n_outputs, n_features)
        progress, scored = self.models[contender, k], functools.partial(self.scorers, loss)
        boosting = assemble(plan, limits, data, loss, progress, scored, unwatched(), self.threads)
        boosting.run()
        assert boosting.validation is not None
        best, ratings = boosting.complete.best, boosting.validation.ratings.values
        progress.truncate(best)
        return Standing(ratings[best] - ratings[0], progress.validation_score[best], best)
