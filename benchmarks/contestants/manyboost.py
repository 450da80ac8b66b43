"""manyboost, one contestant per strategy."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.contestants.base import Contestant, Settings, Stopwatch, picked, two_dimensional
from benchmarks.workloads import Data


@dataclass(frozen=True)
class Asked:
    """Beyond the settings of all contestants: parameters, and arguments of methods."""

    parameters: dict[str, Any] = field(default_factory=dict)
    of_fit: dict[str, np.ndarray] = field(default_factory=dict)
    of_predict: dict[str, Any] = field(default_factory=dict)


def random_weights(*shape: int) -> Asked:
    return Asked(of_fit={"sample_weight": np.random.default_rng(0).uniform(0.5, 1.5, shape)})


VARIANTS: dict[str, Callable[[Data], Asked]] = {
    "row-weights": lambda data: random_weights(len(data.Y)),
    "cell-weights": lambda data: random_weights(*data.Y.shape),
    "class-weight": lambda data: Asked({"class_weight": "balanced"}),
    "components-4": lambda data: Asked({"n_components": 4}),
    "float32": lambda data: Asked(of_predict={"dtype": np.float32}),
}


class ManyBoost(Contestant):
    library = "manyboost"
    strategy: str

    def __init__(self) -> None:
        super().__init__()
        self.of_predict: dict[str, Any] = {}

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
            asked = VARIANTS[name](data)
            self.parameters |= asked.parameters
            arguments |= asked.of_fit
            self.of_predict |= asked.of_predict
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

    def predict(self, X: Any) -> np.ndarray:
        method = getattr(self.model, "decision_function", self.model.predict)
        return two_dimensional(method(X, **self.of_predict))

    def staged(self, X: Any, rounds: Sequence[int]) -> Iterator[np.ndarray]:
        method = getattr(self.model, "staged_decision_function", None) or self.model.staged_predict
        return picked(method(X), rounds)

    def expected_bytes(self, data: Data, settings: Settings) -> int:
        """What the library counts before it trains, and refuses to exceed: training, and copies of
        the data in its own types."""
        from manyboost import memory

        class Counted(Exception):
            pass

        def count(training: memory.Training, X: Any, Y: Any) -> None:
            raise Counted(
                sum(training.needs(X, Y).values())
                + copied_bytes(X, data.X)
                + copied_bytes(Y, data.Y)
                + memory._MARGIN
            )

        try:
            with mock.patch.object(memory, "check_training", count):
                type(self)().fit(data, settings, Stopwatch())
        except Counted as counted:
            return int(counted.args[0])
        raise AssertionError("the library no longer counts its memory before it trains")

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


def copied_bytes(used: Any, given: Any) -> int:
    """Bytes of an array that are not those of the given one; sparse ones are used as they are."""
    if not isinstance(used, np.ndarray) or np.shares_memory(used, given):
        return 0
    return used.nbytes
