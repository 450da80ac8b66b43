"""catboost with its multi-output losses, on symmetric trees, its own kind, and leaf-wise ones."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.contestants.base import (
    CONSTANT,
    Contestant,
    Settings,
    Stopwatch,
    picked,
    two_dimensional,
)
from benchmarks.workloads import Data

LOSSES = {"regression": "MultiRMSE", "multilabel": "MultiLogloss", "multiclass": "MultiClass"}


class CatBoost(Contestant):
    """Symmetric trees of the depth that gives at least as many leaves."""

    name = "catboost"
    library = "catboost"

    def growth(self, settings: Settings) -> dict[str, Any]:
        return {"depth": int(np.ceil(np.log2(settings.max_leaf_nodes)))}

    def fit(self, data: Data, settings: Settings, watch: Stopwatch) -> None:
        import catboost

        laps: list[float] = []

        class Laps:
            def after_iteration(self, info):
                laps.append(watch.elapsed)
                return not watch.expired

        self.parameters = {
            "loss_function": LOSSES[data.task],
            "iterations": settings.n_rounds,
            **self.growth(settings),
            "border_count": settings.max_bins - 1,
            "learning_rate": settings.learning_rate,
            "thread_count": settings.n_threads,
            "random_seed": settings.seed,
            "allow_writing_files": False,
            "verbose": False,
        }
        Y = self.changing(data, data.Y)
        if data.task != "multiclass" and Y.shape[1] == 1:
            self.parameters["loss_function"] = LOSSES[data.task].removeprefix("Multi")
        self.model = catboost.CatBoost(self.parameters)
        self.model.fit(catboost.Pool(data.X, Y), callbacks=[Laps()])
        self.rounds_done = len(laps)
        self.round_seconds = np.array(laps)

    def changing(self, data: Data, Y: np.ndarray) -> np.ndarray:
        """Y without the outputs that never change in training, which catboost refuses."""
        self.constant = np.full(data.n_outputs, np.nan, np.float32)
        if data.task == "multiclass":
            return Y
        still = np.ptp(data.Y, axis=0) == 0
        first = data.Y[0]
        level = first if data.task == "regression" else np.where(first, CONSTANT, -CONSTANT)
        self.constant[still] = level[still]
        return Y[:, ~still]

    def all_outputs(self, raw: np.ndarray) -> np.ndarray:
        raw = two_dimensional(raw)
        if not np.isfinite(self.constant).any():
            return raw
        filled = np.tile(self.constant, (len(raw), 1))
        filled[:, np.isnan(self.constant)] = raw
        return filled

    def predict(self, X) -> np.ndarray:
        return self.all_outputs(self.model.predict(X, prediction_type="RawFormulaVal"))

    def staged(self, X, rounds: Sequence[int]) -> Iterator[np.ndarray]:
        stages = self.model.staged_predict(X, prediction_type="RawFormulaVal")
        return (self.all_outputs(raw) for raw in picked(stages, rounds))


class CatBoostLossguide(CatBoost):
    name = "catboost-lossguide"

    def growth(self, settings: Settings) -> dict[str, Any]:
        return {"grow_policy": "Lossguide", "max_leaves": settings.max_leaf_nodes}
