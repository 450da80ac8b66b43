"""scikit-learn: histogram boosting per output, and a random forest."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contest.contestants.stopping import Stopped
from benchmarks.contest.sets import Split
from benchmarks.contestants import sklearn
from benchmarks.contestants.base import (
    CONSTANT,
    Contestant,
    Settings,
    Stopwatch,
    pickled_bytes,
    two_dimensional,
)

FOREST = 100  # trees, scikit-learn's default
TREES_AT_A_TIME = 10


class HistGradientBoosting(Stopped, sklearn.HistGradientBoosting):
    """Takes no sparse features: they are made dense once for all outputs.

    It keeps the rounds after the best one, as scikit-learn does.
    """

    name = "hist-gradient-boosting"

    def start(self, data: Split, settings: Settings) -> None:
        self.X, self.X_val = sklearn.dense(data.X), sklearn.dense(data.X_val)

    def fit_one(self, data: Split, j: int, settings: Settings, lap: Callable[[], None]) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        is_regression = data.task == "regression"
        kind = HistGradientBoostingRegressor if is_regression else HistGradientBoostingClassifier
        self.parameters = {
            "max_iter": settings.n_rounds,
            "early_stopping": True,
            "random_state": settings.seed,
        }
        y = data.Y[:, j]
        if not is_regression and (y == y[0]).all():
            return CONSTANT if y[0] else -CONSTANT  # refused by the classifier
        model = kind(**self.parameters)
        self.patience = model.n_iter_no_change
        return model.fit(self.X, y, X_val=self.X_val, y_val=data.Y_val[:, j])

    def fit(self, data: Split, settings: Settings, watch: Stopwatch) -> None:
        super().fit(data, settings, watch)
        kept = [model.n_iter_ for model in self.models() if not isinstance(model, float)]
        self.rounds_done = int(statistics.median(kept)) if kept else 1

    def predict(self, X) -> np.ndarray:
        return super().predict(sklearn.dense(X))


class RandomForest(Contestant):
    """No early stopping: it trains on all training rows. Labels are regressed on, with the
    features per split that the classifier has by default; their means rank them.

    The trees vote on the test rows as they come, and are let go: with a thousand outputs a hundred
    of them would not fit in memory. The voting is not part of the time of the fit.
    """

    name = "random-forest"
    library = "sklearn.ensemble"
    tasks = ("regression", "multilabel")

    def fit(self, data: Split, settings: Settings, watch: Stopwatch) -> None:
        from sklearn.ensemble import RandomForestRegressor

        self.parameters = {
            "n_estimators": FOREST,
            "max_features": 1.0 if data.task == "regression" else "sqrt",
            "n_jobs": settings.n_threads,
            "random_state": settings.seed,
        }
        X, Y = data.with_validation()
        self.votes, self.voting_seconds = 0.0, 0.0
        while self.rounds_done < FOREST and not (self.rounds_done and watch.expired):
            seed = [settings.seed, self.rounds_done]
            some = RandomForestRegressor(
                **{
                    **self.parameters,
                    "n_estimators": TREES_AT_A_TIME,
                    "random_state": int(np.random.default_rng(seed).integers(2**31)),
                }
            ).fit(X, Y)
            self.rounds_done += TREES_AT_A_TIME
            with watch.paused():
                began = time.perf_counter()
                self.votes = self.votes + TREES_AT_A_TIME * some.predict(data.X_test)
                self.voting_seconds += time.perf_counter() - began
                self.parts_let_go += 1
                self.bytes_let_go += pickled_bytes(some)
        self.stopped = self.rounds_done < FOREST

    def predict(self, X) -> np.ndarray:
        """The votes on the test rows, whatever X."""
        return two_dimensional(self.votes / self.rounds_done)
