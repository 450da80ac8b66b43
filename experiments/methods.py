"""The methods of the paper under its names, each with its grid of settings.

=============================== ============================================================
``br-gbrt``, ``st-gbrt``        boosting of each output on its own (labels, targets)
``gbmort``                      boosting of multi-output trees
``gbrt-rpo-X``                  boosting on one random projection X of the outputs
``gbrt-relabel-rpo-X``          the same with leaves relabelled with all outputs
``artificial-gbrt``             boosting that knows the structure of a synthetic data set
``mo-rf``, ``br-rf``, ``st-rf`` random forests of all outputs, of each label, of each target
=============================== ============================================================
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor

from experiments.budgets import Limit
from experiments.problems import Fold, Task
from manyboost import ManyBoostClassifier, ManyBoostRegressor

Array: TypeAlias = NDArray[Any]
#: Parameters of an estimator that are tuned, or fixed by an experiment.
Settings: TypeAlias = Mapping[str, Any]

#: The projections by the paper's names.
PROJECTIONS = {x: x for x in ("gaussian", "rademacher", "achlioptas", "sparse")}
PROJECTIONS["subsampled"] = "subsample"
LOSSES: dict[Task, tuple[str, str]] = {
    "regression": ("squared_error", "absolute_error"),
    "multilabel": ("squared_error", "log_loss"),
}
LEARNING_RATES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
MAX_FEATURES = ("sqrt", 0.1, 0.2, 0.5, 1.0)
MAX_LEAF_NODES = (2, 3, 4, 5, 6, 7, 8)
#: The paper's settings without tuning: stumps on all features.
STUMPS: Settings = {"learning_rate": 0.1, "max_features": 1.0, "max_leaf_nodes": 2}
FOREST_TREES = 100

_UNLIMITED = 2**31 - 1  # rounds of a fit that only time ends


@dataclass(frozen=True)
class Fit:
    """A fitted method; predictions (n_rows, n_outputs) are those for the rows to score."""

    #: Rounds of boosting, or trees of a forest.
    rounds: int
    seconds: float
    predict: Callable[[], Array]
    #: Yields the predictions after each round; a forest yields those of all trees only.
    staged: Callable[[], Iterator[Array]]


class Method(Protocol):
    """The interface that the protocol expects."""

    def grid(self, task: Task) -> list[Settings]:
        """Return all settings to choose from; empty if nothing is tuned."""

    def fit(self, fold: Fold, settings: Settings, limit: Limit, seed: int) -> Fit:
        """Fit in one thread."""


def sample(method: Method, task: Task, search: str, seed: int) -> list[Settings]:
    """Return the settings to try: all for ``grid``, N random ones for ``random:N``.

    The first N of N + 1 settings are those of ``random:N``: a longer search extends a shorter one.
    """
    grid = method.grid(task)
    n_settings = parse_search(search)
    order = np.random.default_rng(seed).permutation(len(grid))
    return grid if n_settings is None else [grid[i] for i in order[:n_settings]]


def parse_search(search: str) -> int | None:
    """Return the N of ``random:N``, None for ``grid``."""
    kind, _, count = search.partition(":")
    if search == "grid":
        return None
    if kind != "random" or not count.isdecimal() or int(count) == 0:
        raise ValueError(
            f"search={search!r} is not a search; write grid, or random:N with N at least 1."
        )
    return int(count)


@dataclass(frozen=True)
class Boosting:
    """Gradient boosting as in the paper: line searches, leaves of one row allowed."""

    strategy: str
    projection: str = "gaussian"

    def grid(self, task: Task) -> list[Settings]:
        names = ("loss", "learning_rate", "max_features", "max_leaf_nodes")
        values = (LOSSES[task], LEARNING_RATES, MAX_FEATURES, MAX_LEAF_NODES)
        return [dict(zip(names, point, strict=True)) for point in itertools.product(*values)]

    def fit(self, fold: Fold, settings: Settings, limit: Limit, seed: int) -> Fit:
        parameters: dict[str, Any] = {
            "strategy": self.strategy,
            "projection": self.projection,
            "step": "line_search",
            "min_samples_leaf": 1,
            "early_stopping": False,
            "max_iter": limit.rounds or _UNLIMITED,
            "max_time": limit.seconds,
            "random_state": seed,
            "n_jobs": 1,
            **settings,
        }
        model: Any
        if fold.problem.task == "regression":
            model = ManyBoostRegressor(**parameters, output_scaling=None)
            predict, staged = model.predict, model.staged_predict
        else:
            # Raw predictions: clipped probabilities would make ties.
            model = ManyBoostClassifier(**parameters)
            predict, staged = model.decision_function, model.staged_decision_function
        Y = self.targets(fold)
        started = time.perf_counter()
        model.fit(fold.X, Y)
        seconds = time.perf_counter() - started
        # The single prediction of an oracle holds for all outputs.
        repeat = partial(np.broadcast_to, shape=fold.Y_eval.shape)
        return Fit(
            model.n_iter_,
            seconds,
            lambda: repeat(predict(fold.X_eval)),
            lambda: map(repeat, staged(fold.X_eval)),
        )

    def targets(self, fold: Fold) -> Array:
        """Return the outputs to fit."""
        return fold.Y


@dataclass(frozen=True)
class Oracle(Boosting):
    """Boosting that knows the structure of a synthetic data set and uses it."""

    strategy: str = "independent"

    def targets(self, fold: Fold) -> Array:
        """Return the first output of a chain, the mean of a group, or all outputs."""
        match fold.problem.structure:
            case "chain":
                return fold.Y[:, :1]
            case "group":
                return np.asarray(fold.Y.mean(axis=1, keepdims=True))
            case "ind":
                return fold.Y
        raise ValueError(
            f"artificial-gbrt does not know the structure of {fold.problem.name!r}; use it on "
            "friedman1-chain, friedman1-group or friedman1-ind."
        )


@dataclass(frozen=True)
class Forest:
    """A random forest of scikit-learn with the paper's parameters; nothing is tuned.

    Labels are fitted by regression: the variance of a 0/1 output is half its Gini impurity, so the
    splits are those of a classifier, and the mean of a leaf is its probability.
    """

    of_each_output: bool

    def grid(self, task: Task) -> list[Settings]:
        return []

    def fit(self, fold: Fold, settings: Settings, limit: Limit, seed: int) -> Fit:
        """Grow trees one by one and keep only their predictions: all trees may exceed memory."""
        started = time.perf_counter()
        total = np.zeros(fold.Y_eval.shape)
        Y = fold.Y.astype(np.float64)
        targets = list(Y.T) if self.of_each_output else [Y]
        seeds = np.random.SeedSequence(seed).generate_state(FOREST_TREES * len(targets))
        n_trees = 0
        for of_tree in seeds.reshape(FOREST_TREES, -1):
            grown = [self._tree(fold, y, s) for y, s in zip(targets, of_tree, strict=True)]
            total += np.column_stack(grown)
            n_trees += 1
            if limit.seconds is not None and time.perf_counter() - started >= limit.seconds:
                break
        mean = total / n_trees
        seconds = time.perf_counter() - started
        return Fit(n_trees, seconds, lambda: mean, lambda: iter([mean]))

    def _tree(self, fold: Fold, y: Array, seed: np.uint32) -> Array:
        if fold.problem.task == "multilabel":
            growth: dict[str, Any] = {"max_features": "sqrt"}
        else:
            growth = {"max_features": 1 / 3, "min_samples_split": 5}
        tree = RandomForestRegressor(1, random_state=int(seed), n_jobs=1, **growth)
        return np.asarray(tree.fit(fold.X, y).predict(fold.X_eval))


METHODS: dict[str, Method] = {
    "artificial-gbrt": Oracle(),
    "br-gbrt": Boosting("independent"),
    "st-gbrt": Boosting("independent"),
    "gbmort": Boosting("multioutput"),
    **{f"gbrt-rpo-{x}": Boosting("project", name) for x, name in PROJECTIONS.items()},
    **{f"gbrt-relabel-rpo-{x}": Boosting("relabel", name) for x, name in PROJECTIONS.items()},
    "br-rf": Forest(of_each_output=True),
    "st-rf": Forest(of_each_output=True),
    "mo-rf": Forest(of_each_output=False),
}
