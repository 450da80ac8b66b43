"""The methods of the paper under its names, and the settings that are tried for them.

=============================== ============================================================
``br-gbrt``, ``st-gbrt``        boosting of each output on its own (labels, targets)
``gbmort``                      boosting of multi-output trees
``gbrt-rpo-X``                  boosting on one random projection X of the outputs
``gbrt-relabel-rpo-X``          the same with leaves relabelled with all outputs
``artificial-gbrt``             boosting that knows the structure of a synthetic data set
``artificial-gbrt-mean``        the same, but on the mean of all outputs of a chain
``mo-rf``, ``br-rf``, ``st-rf`` random forests of all outputs, of each label, of each target
=============================== ============================================================
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix
from sklearn.ensemble import RandomForestRegressor

from experiments import costs
from experiments.problems import Fold, Problem, Task
from manyboost import ManyBoostClassifier, ManyBoostRegressor

Array: TypeAlias = NDArray[Any]
#: Parameters of an estimator that are tuned, or fixed by an experiment.
Settings: TypeAlias = Mapping[str, Any]
#: What is kept of the predictions (n_rows, n_outputs) for the rows to score.
Score: TypeAlias = Callable[[Array], Any]

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

_NEVER = 2**31 - 1
# scikit-learn grows trees faster on sparse columns if there are many of them, mostly zeros.
_SPARSE_COLUMNS, _SPARSE_SHARE = 1000, 0.2


def sample(dataset: str, task: Task, split: int, n_settings: int, seed: int) -> list[Settings]:
    """Draw the settings to try: others for each split, the same for each method.

    Every pair of a loss and a learning rate has as many settings as any other, up to one; so have
    the numbers of leaves, and the shares of features. The first settings of a longer sample are
    those of a shorter one.
    """
    rng = np.random.default_rng([seed, crc32(dataset.encode()), split])
    pairs = list(itertools.product(LOSSES[task], LEARNING_RATES))

    def cycles(values: Sequence[Any]) -> itertools.chain[Any]:
        shuffled = ([values[i] for i in rng.permutation(len(values))] for _ in itertools.count())
        return itertools.chain.from_iterable(shuffled)

    drawn: list[Settings] = []
    draws = zip(cycles(pairs), cycles(MAX_FEATURES), cycles(MAX_LEAF_NODES), strict=True)
    for (loss, rate), features, leaves in draws:
        settings = {
            "loss": loss,
            "learning_rate": rate,
            "max_features": features,
            "max_leaf_nodes": leaves,
        }
        if settings in drawn:  # another number of leaves is as good
            others = [{**settings, "max_leaf_nodes": n} for n in MAX_LEAF_NODES]
            settings = next(other for other in others if other not in drawn)
        drawn.append(settings)
        if len(drawn) == n_settings:
            return drawn
    raise AssertionError("the draws do not end")


@dataclass
class Track:
    """A fit on its way: what was kept after some rounds, and the CPU seconds up to there."""

    rounds: list[int] = field(default_factory=list)
    scores: list[Any] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Boosting:
    """Gradient boosting as in the paper: line searches, leaves of one row allowed."""

    strategy: str
    projection: str = "gaussian"

    def rounds_bought(self, problem: Problem, settings: Settings, n_units: float) -> dict[str, int]:
        """Return how many rounds ``n_units`` times T buy, for each variation of the costs."""
        priced = {"projection": self.projection, **settings}
        return costs.rounds_bought(problem.shape, self.strategy, priced, n_units)

    def round_costs(self, problem: Problem, settings: Settings) -> dict[str, float]:
        """Return the cost of one round in T, for each variation of the costs."""
        priced = {"projection": self.projection, **settings}
        return costs.relative_costs(problem.shape, self.strategy, priced)

    def follow(
        self,
        fold: Fold,
        settings: Settings,
        points: Sequence[int],
        seed: int,
        score: Score,
        is_over: Callable[[Track], bool] = lambda track: False,
    ) -> Track:
        """Fit in one thread up to the last of the points, scoring the rows to score at each.

        The fit ends earlier if ``is_over`` says so after a point.
        """
        regression = fold.problem.task == "regression"
        track, wanted = Track(), set(points)
        next_round, scoring_seconds, over = 0, 0.0, False
        started = time.process_time()

        def after_round(model: Any, X: Any, y: Any) -> float:
            nonlocal next_round, scoring_seconds, over
            done, next_round = next_round, next_round + 1
            if done in wanted:
                now = time.process_time()
                # Raw predictions of labels: clipped probabilities would make ties.
                raw = model.predict(X) if regression else model.decision_function(X)
                # The single prediction of an oracle holds for all outputs.
                track.scores.append(score(np.broadcast_to(raw, fold.Y_eval.shape)))
                track.rounds.append(done)
                track.seconds.append(now - started - scoring_seconds)
                over = is_over(track)
                scoring_seconds += time.process_time() - now
            return float(done)  # so that no round counts as worse than the one before

        parameters: dict[str, Any] = {
            "strategy": self.strategy,
            "projection": self.projection,
            "step": "line_search",
            "min_samples_leaf": 1,
            "early_stopping": True,
            "n_iter_no_change": _NEVER,
            "scoring": after_round,
            "callbacks": [lambda state: over],
            "max_iter": max(points),
            "random_state": seed,
            "n_jobs": 1,
            **settings,
        }
        model: Any
        if regression:
            model = ManyBoostRegressor(**parameters, output_scaling=None)
        else:
            model = ManyBoostClassifier(**parameters)
        problem = fold.problem
        Y, Y_eval = (self.targets(problem, Y) for Y in (fold.Y, fold.Y_eval))
        model.fit(fold.X, Y, X_val=fold.X_eval, Y_val=Y_eval)
        return track

    def targets(self, problem: Problem, Y: Array) -> Array:
        """Return the outputs to fit."""
        return Y


@dataclass(frozen=True)
class Oracle(Boosting):
    """Single-output boosting of the targets that the structure of a synthetic set suggests."""

    strategy: str = "independent"
    #: Whether the mean of the outputs stands for a chain too, not its first output.
    averages_chain: bool = False

    def targets(self, problem: Problem, Y: Array) -> Array:
        """Return the first output of a chain, the mean of a group, or all outputs."""
        match problem.structure:
            case "chain" if not self.averages_chain:
                return Y[:, :1]
            case "chain" | "group":
                return np.asarray(Y.mean(axis=1, keepdims=True))
            case "ind":
                return Y
        raise ValueError(
            f"artificial-gbrt does not know the structure of {problem.name!r}; use it on "
            "friedman1-chain, friedman1-group or friedman1-ind."
        )


@dataclass(frozen=True)
class Forest:
    """A random forest of scikit-learn with the paper's parameters; nothing is tuned.

    Labels are fitted by regression: the variance of a 0/1 output is half its Gini impurity, so the
    splits are those of a classifier, and the mean of a leaf is its probability.
    """

    of_each_output: bool

    def predict(self, fold: Fold, seed: int) -> Array:
        """Grow trees one by one and keep only their predictions: all trees may exceed memory."""
        total = np.zeros(fold.Y_eval.shape)
        X, X_eval = _for_trees(fold.X, csc_matrix), _for_trees(fold.X_eval, csr_matrix)
        Y = fold.Y.astype(np.float64)
        targets = list(Y.T) if self.of_each_output else [Y]
        seeds = np.random.SeedSequence(seed).generate_state(FOREST_TREES * len(targets))
        for of_tree in seeds.reshape(FOREST_TREES, -1):
            trees = (
                self._tree(fold.problem.task, seed).fit(X, y)
                for y, seed in zip(targets, of_tree, strict=True)
            )
            total += np.column_stack([tree.predict(X_eval) for tree in trees])
        return total / FOREST_TREES

    def _tree(self, task: Task, seed: np.uint32) -> RandomForestRegressor:
        if task == "multilabel":
            growth: dict[str, Any] = {"max_features": "sqrt"}
        else:
            growth = {"max_features": 1 / 3, "min_samples_split": 5}
        return RandomForestRegressor(1, random_state=int(seed), n_jobs=1, **growth)


def _for_trees(X: Array, sparse: Callable[..., Any]) -> Any:
    """Return features as scikit-learn grows trees on them fastest: the trees are the same.

    Dense features are copied: scikit-learn cannot read missing values from an array that must not
    be written to. Column by column, a node finds the values of a feature close together.
    """
    if X.shape[1] > _SPARSE_COLUMNS and np.count_nonzero(X) < _SPARSE_SHARE * X.size:
        return sparse(X, dtype=np.float32)
    return np.array(X, np.float32, order="F")


METHODS: dict[str, Boosting | Forest] = {
    "artificial-gbrt": Oracle(),
    "artificial-gbrt-mean": Oracle(averages_chain=True),
    "br-gbrt": Boosting("independent"),
    "st-gbrt": Boosting("independent"),
    "gbmort": Boosting("multioutput"),
    **{f"gbrt-rpo-{x}": Boosting("project", name) for x, name in PROJECTIONS.items()},
    **{f"gbrt-relabel-rpo-{x}": Boosting("relabel", name) for x, name in PROJECTIONS.items()},
    "br-rf": Forest(of_each_output=True),
    "st-rf": Forest(of_each_output=True),
    "mo-rf": Forest(of_each_output=False),
}
#: What goes beyond the paper: our defaults, a mean over five folds, that fitted to all rows, and
#: the same with the rounds of the default model.
MODELS: dict[str, Settings] = {
    "default": {},
    "folds": {"n_folds": 5},
    "refitted": {"n_folds": 5, "refit_all": True},
    "refitted-300": {"n_folds": 5, "refit_all": True, "max_iter": 300},
}


def in_paper(method: str) -> str:
    """Return the paper's name of a method."""
    return method.removesuffix("-mean")


def fit_model(name: str, fold: Fold, seed: int) -> tuple[Array, int]:
    """Fit one of the MODELS; return predictions for the rows to score, and the rounds."""
    parameters = {**MODELS[name], "random_state": seed, "n_jobs": 1}
    model: Any
    if fold.problem.task == "regression":
        model = ManyBoostRegressor(**parameters).fit(fold.X, fold.Y)
        return np.asarray(model.predict(fold.X_eval)), int(model.n_iter_)
    model = ManyBoostClassifier(**parameters).fit(fold.X, fold.Y)
    return np.asarray(model.decision_function(fold.X_eval)), int(model.n_iter_)
