"""manyboost: early stopping on the validation part, and means of folds without and with a refit."""

from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from benchmarks.contest.sets import Split
from benchmarks.contestants.base import Contestant, Settings, Stopwatch, two_dimensional

FOLDS = 5


class ManyBoost(Contestant):
    name = "manyboost"
    library = "manyboost"
    asked: ClassVar[dict[str, Any]] = {"early_stopping": True}

    def prepare(self) -> None:
        super().prepare()
        import manyboost.estimators  # noqa: F401  the package itself loads them on first use

    def fit(self, data: Split, settings: Settings, watch: Stopwatch) -> None:
        from manyboost import ManyBoostClassifier, ManyBoostRegressor

        kind = ManyBoostRegressor if data.task == "regression" else ManyBoostClassifier
        self.parameters = {
            "max_iter": settings.n_rounds,
            "max_time": watch.limit if np.isfinite(watch.limit) else None,
            "random_state": settings.seed,
            "n_jobs": settings.n_threads,
            **self.asked,
        }
        self.model = kind(**self.parameters)
        self.train(data, watch)
        self.patience = self.model.n_iter_no_change
        self.rounds_done = int(self.model.n_iter_)

    def train(self, data: Split, watch: Stopwatch) -> None:
        X, X_val = (as_dense_if_needed(self.model, part) for part in (data.X, data.X_val))
        self.model.fit(X, data.Y, X_val=X_val, Y_val=data.Y_val)

    def predict(self, X) -> np.ndarray:
        method = getattr(self.model, "decision_function", self.model.predict)
        return two_dimensional(method(as_dense_if_needed(self.model, X)))


class Folds(ManyBoost):
    """Validates on its own folds: it trains on all training rows, as the forest does."""

    name = "manyboost-folds"
    asked: ClassVar[dict[str, Any]] = {"n_folds": FOLDS}

    def prepare(self) -> None:
        super().prepare()
        import sklearn.model_selection  # noqa: F401  its splitters are loaded on first use

    def train(self, data: Split, watch: Stopwatch) -> None:
        X, Y = data.with_validation()
        self.model.fit(as_dense_if_needed(self.model, X), Y)


class Refitted(Folds):
    """Folds, whose leaves are fitted again to all rows: what the study of folds found best."""

    name = "manyboost-folds-refitted"
    asked: ClassVar[dict[str, Any]] = {"n_folds": FOLDS, "refit_all": True}

    def train(self, data: Split, watch: Stopwatch) -> None:
        searched = [0.0]  # seconds; half of the time is for finding the rounds, and may end it
        self.model.set_params(callbacks=[lambda state: searched.append(state.elapsed)])
        super().train(data, watch)
        self.model.set_params(callbacks=None)  # no part of the model that is weighed
        self.stopped = searched[-1] >= watch.limit / 2


def as_dense_if_needed(model: Any, X) -> Any:
    """X as it is, or dense if it is sparse and the model's tags say that it takes no such X."""
    if scipy.sparse.issparse(X) and not model.__sklearn_tags__().input_tags.sparse:
        return X.toarray()
    return X
