"""manyboost, one contestant per strategy."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.contestants.base import Contestant, Settings, Stopwatch, picked, two_dimensional
from benchmarks.workloads import Data


def random_weights(*shape: int) -> dict[str, np.ndarray]:
    return {"sample_weight": np.random.default_rng(0).uniform(0.5, 1.5, shape)}


# Parameters, and arguments of `fit`, beyond the settings of all contestants.
VARIANTS: dict[str, Callable[[Data], tuple[dict[str, Any], dict[str, np.ndarray]]]] = {
    "row-weights": lambda data: ({}, random_weights(len(data.Y))),
    "cell-weights": lambda data: ({}, random_weights(*data.Y.shape)),
    "class-weight": lambda data: ({"class_weight": "balanced"}, {}),
    "components-4": lambda data: ({"n_components": 4}, {}),
}


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
        arguments: dict[str, np.ndarray] = {}
        if settings.min_leaf_rows is not None:
            self.parameters["min_samples_leaf"] = settings.min_leaf_rows
        for name in filter(None, settings.variant.split("+")):
            parameters, weights = VARIANTS[name](data)
            self.parameters |= parameters
            arguments |= weights
        laps: list[float] = []
        model = kind(**self.parameters)
        calls_back = "callbacks" in model.get_params()  # else its rounds are taken as equally long
        if calls_back and settings.times_rounds:
            model.set_params(callbacks=[lambda state: laps.append(watch.elapsed)])
        self.model = model.fit(data.X, data.Y, **arguments)
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

    def leaves_per_round(self) -> float:
        n_nodes = self.model._progress.model.trees.tree_sizes().astype(np.int64)
        return float(((n_nodes + 1) // 2).mean())


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
