"""lightgbm: one model per output on one shared binning; one single output; multi-class."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.contestants.base import Contestant, PerOutput, Settings, Stopwatch
from benchmarks.workloads import Data

OBJECTIVES = {"regression": "regression", "multilabel": "binary", "multiclass": "multiclass"}


def parameters(task: str, settings: Settings) -> dict[str, Any]:
    limits = {}
    if settings.min_leaf_rows is not None:
        limits = {"min_data_in_leaf": settings.min_leaf_rows, "min_sum_hessian_in_leaf": 0.0}
    return {
        **limits,
        "objective": OBJECTIVES[task],
        "num_leaves": settings.max_leaf_nodes,
        "max_bin": settings.max_bins,
        "learning_rate": settings.learning_rate,
        "num_threads": settings.n_threads,
        "seed": settings.seed,
        "verbosity": -1,
    }


def staged(booster: Any, X, rounds: Sequence[int]) -> Iterator[np.ndarray]:
    raw, done = 0.0, 0
    for n in rounds:
        raw = raw + booster.predict(X, start_iteration=done, num_iteration=n - done, raw_score=True)
        done = n
        yield raw


class LightGBM(PerOutput):
    """The data are binned once; each output only sets its labels."""

    name = "lightgbm-per-output"
    library = "lightgbm"

    def start(self, data: Data, settings: Settings) -> None:
        import lightgbm

        self.parameters = parameters(data.task, settings)
        self.dataset = lightgbm.Dataset(data.X, label=data.Y[:, 0].copy(), params=self.parameters)
        self.dataset.construct()

    def fit_one(self, data: Data, j: int, settings: Settings, lap: Callable[[], None]) -> Any:
        import lightgbm

        self.dataset.set_label(data.Y[:, j].copy())
        return lightgbm.train(
            self.parameters,
            self.dataset,
            num_boost_round=settings.n_rounds,
            callbacks=[lambda environment: lap()] if settings.times_rounds else None,
        )

    def predict_one(self, model: Any, X) -> np.ndarray:
        return model.predict(X, raw_score=True)

    def staged_one(self, model: Any, X, rounds: Sequence[int]) -> Iterator[np.ndarray]:
        return staged(model, X, rounds)

    def leaves_per_round(self) -> float:
        # A tree that could not be split has a single leaf, or is not stored at all.
        trees = [tree for model in self.models() for tree in model.dump_model()["tree_info"]]
        wanted = len(self.models()) * self.rounds_done
        return (sum(tree["num_leaves"] for tree in trees) + wanted - len(trees)) / wanted


class LightGBMOne(LightGBM):
    """Only the first output: the yardstick for a round that serves all of them."""

    name = "lightgbm-one-output"

    def fit(self, data: Data, settings: Settings, watch: Stopwatch) -> None:
        super().fit(data.first_output(), settings, watch)


class LightGBMClasses(Contestant):
    name = "lightgbm-softmax"
    library = "lightgbm"
    tasks = ("multiclass",)

    def fit(self, data: Data, settings: Settings, watch: Stopwatch) -> None:
        import lightgbm

        laps: list[float] = []

        def lap(environment):
            laps.append(watch.elapsed)
            if watch.expired:
                raise lightgbm.callback.EarlyStopException(environment.iteration, [])

        self.parameters = {**parameters(data.task, settings), "num_class": data.n_outputs}
        self.model = lightgbm.train(
            self.parameters,
            lightgbm.Dataset(data.X, label=data.Y),
            num_boost_round=settings.n_rounds,
            callbacks=[lap],
        )
        self.rounds_done = len(laps)
        self.round_seconds = np.array(laps)

    def predict(self, X) -> np.ndarray:
        return self.model.predict(X, raw_score=True)

    def staged(self, X, rounds: Sequence[int]) -> Iterator[np.ndarray]:
        return staged(self.model, X, rounds)
