"""scikit-learn: histogram boosting per output, classic boosting of one output, random forests."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from benchmarks.contestants.base import (
    CONSTANT,
    Contestant,
    PerOutput,
    Settings,
    Stopwatch,
    picked,
)
from benchmarks.workloads import Data

TREES_AT_A_TIME = 10


class HistGradientBoosting(PerOutput):
    name = "sklearn-hist-per-output"
    library = "sklearn.ensemble"

    def fit_one(self, data: Data, j: int, settings: Settings, lap: Callable[[], None]) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        kinds = {
            "regression": HistGradientBoostingRegressor,
            "multilabel": HistGradientBoostingClassifier,
        }
        self.parameters = {
            "max_iter": settings.n_rounds,
            "max_leaf_nodes": settings.max_leaf_nodes,
            "max_bins": settings.max_bins,
            "learning_rate": settings.learning_rate,
            "early_stopping": False,
            "random_state": settings.seed,
        }
        y = data.Y[:, j]
        if data.task == "multilabel" and (y == y[0]).all():
            return CONSTANT if y[0] else -CONSTANT  # refused by the classifier
        return kinds[data.task](**self.parameters).fit(dense(data.X), y)

    def predict_one(self, model: Any, X) -> np.ndarray:
        if isinstance(model, float):
            return np.full(X.shape[0], model)
        method = getattr(model, "decision_function", model.predict)
        return method(dense(X))

    def staged(self, X, rounds: Sequence[int]) -> Iterator[np.ndarray]:
        # One conversion for all outputs: each running generator would else hold its own.
        return super().staged(dense(X).astype(np.float64), rounds)

    def staged_one(self, model: Any, X, rounds: Sequence[int]) -> Iterator[np.ndarray]:
        if isinstance(model, float):
            return (np.full(X.shape[0], model) for _ in rounds)
        method = getattr(model, "staged_decision_function", None) or model.staged_predict
        return picked(method(X), rounds)


class GradientBoostingOne(PerOutput):
    """Classic exact boosting of the first output only."""

    name = "sklearn-gbr-one-output"
    library = "sklearn.ensemble"
    tasks = ("regression",)

    def fit(self, data: Data, settings: Settings, watch: Stopwatch) -> None:
        super().fit(data.first_output(), settings, watch)

    def fit_one(self, data: Data, j: int, settings: Settings, lap: Callable[[], None]) -> Any:
        from sklearn.ensemble import GradientBoostingRegressor

        self.parameters = {
            "n_estimators": settings.n_rounds,
            "max_leaf_nodes": settings.max_leaf_nodes,
            "learning_rate": settings.learning_rate,
            "random_state": settings.seed,
        }
        if settings.max_leaf_nodes == 2:
            # The same stump, grown by the faster depth-first builder.
            self.parameters.update(max_leaf_nodes=None, max_depth=1)
        monitor = (lambda i, model, local: lap()) if settings.times_rounds else None
        return GradientBoostingRegressor(**self.parameters).fit(
            data.X, data.Y[:, j], monitor=monitor
        )

    def predict_one(self, model: Any, X) -> np.ndarray:
        return model.predict(X)

    def staged_one(self, model: Any, X, rounds: Sequence[int]) -> Iterator[np.ndarray]:
        return picked(model.staged_predict(X), rounds)


class RandomForest(Contestant):
    """Fully grown trees, as users grow them; labels are regressed on: their means rank them."""

    name = "sklearn-random-forest"
    library = "sklearn.ensemble"
    tasks = ("regression", "multilabel")

    def fit(self, data: Data, settings: Settings, watch: Stopwatch) -> None:
        from sklearn.ensemble import RandomForestRegressor

        self.parameters = {
            "n_estimators": settings.n_rounds,
            "max_features": 1.0 if data.task == "regression" else "sqrt",
            "n_jobs": settings.n_threads,
            "random_state": settings.seed,
        }
        self.model = RandomForestRegressor(**{**self.parameters, "warm_start": True})
        Y = data.Y[:, 0] if data.n_outputs == 1 else data.Y
        trees, seconds = [0], [0.0]
        while trees[-1] < settings.n_rounds and not watch.expired:
            trees.append(min(trees[-1] + TREES_AT_A_TIME, settings.n_rounds))
            self.model.set_params(n_estimators=trees[-1]).fit(data.X, Y)
            seconds.append(watch.elapsed)
        self.rounds_done = trees[-1]
        self.round_seconds = np.interp(np.arange(1, trees[-1] + 1), trees, seconds)

    def predict(self, X) -> np.ndarray:
        raw = self.model.predict(X)
        return raw.reshape(len(raw), -1)

    def staged(self, X, rounds: Sequence[int]) -> Iterator[np.ndarray]:
        X = X.astype(np.float32)

        def means() -> Iterator[np.ndarray]:
            total = 0.0
            for n, tree in enumerate(self.model.estimators_, start=1):
                total = total + tree.predict(X)
                yield total / n

        return picked(means(), rounds)


def dense(X) -> np.ndarray:
    return X.toarray() if issparse(X) else X
