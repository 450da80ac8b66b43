"""manyboost, one contestant per strategy."""

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.contestants.base import Contestant, Settings, Stopwatch, picked, two_dimensional
from benchmarks.workloads import Data


class ManyBoost(Contestant):
    library = "manyboost"
    strategy: str

    @property
    def curve_growth(self) -> float:
        return 1.05  # fine: the time to reach a peer's score is read off this curve

    def prepare(self) -> None:
        super().prepare()
        import manyboost.estimators  # noqa: F401  the package itself loads them on first use

    def fit(self, data: Data, settings: Settings, watch: Stopwatch) -> None:
        from manyboost import ManyBoostClassifier, ManyBoostRegressor

        kind = ManyBoostRegressor if data.task == "regression" else ManyBoostClassifier
        self.parameters = {
            "strategy": self.strategy,
            "max_iter": settings.n_rounds,
            "max_leaf_nodes": settings.max_leaf_nodes,
            "max_bins": settings.max_bins,
            "learning_rate": settings.learning_rate,
            "early_stopping": False,
            "max_time": watch.limit if np.isfinite(watch.limit) else None,
            "random_state": settings.seed,
            "n_jobs": settings.n_threads,
        }
        laps: list[float] = []
        model = kind(**self.parameters)
        calls_back = "callbacks" in model.get_params()  # else its rounds are taken as equally long
        if calls_back and settings.times_rounds:
            model.set_params(callbacks=[lambda state: laps.append(watch.elapsed)])
        self.model = model.fit(data.X, data.Y)
        self.rounds_done = int(self.model.n_iter_)
        if laps:
            self.round_seconds = np.array(laps[: self.rounds_done])
            self.model.set_params(callbacks=None)  # no part of the model that is weighed

    def predict(self, X) -> np.ndarray:
        method = getattr(self.model, "decision_function", self.model.predict)
        return two_dimensional(method(X))

    def staged(self, X, rounds: Sequence[int]) -> Iterator[np.ndarray]:
        method = getattr(self.model, "staged_decision_function", None) or self.model.staged_predict
        return picked(method(X), rounds)


class Relabel(ManyBoost):
    name = "manyboost-relabel"
    strategy = "relabel"


class Project(ManyBoost):
    name = "manyboost-project"
    strategy = "project"


class MultiOutput(ManyBoost):
    name = "manyboost-multioutput"
    strategy = "multioutput"


class Independent(ManyBoost):
    name = "manyboost-independent"
    strategy = "independent"
