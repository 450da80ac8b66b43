"""lightgbm: one model per output, on data that are binned once."""

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contest.contestants.stopping import PATIENCE, Stopped
from benchmarks.contest.sets import Split
from benchmarks.contestants import lightgbm
from benchmarks.contestants.base import Settings, Stopwatch


class LightGBM(Stopped, lightgbm.LightGBM):
    name = "lightgbm"
    patience = PATIENCE

    def start(self, data: Split, settings: Settings) -> None:
        from lightgbm import Dataset

        self.parameters = {
            "objective": lightgbm.OBJECTIVES[data.task],
            "num_threads": settings.n_threads,
            "seed": settings.seed,
            "verbosity": -1,
        }
        self.dataset = Dataset(
            data.X, label=data.Y[:, 0].astype(np.float32), params=self.parameters
        )
        self.validation = self.dataset.create_valid(
            data.X_val, label=data.Y_val[:, 0].astype(np.float32)
        )
        self.dataset.construct()
        self.validation.construct()

    def fit_one(self, data: Split, j: int, settings: Settings, lap: Callable[[], None]) -> Any:
        from lightgbm import early_stopping, train

        self.dataset.set_label(data.Y[:, j].astype(np.float32))
        self.validation.set_label(data.Y_val[:, j].astype(np.float32))
        return train(
            self.parameters,
            self.dataset,
            num_boost_round=settings.n_rounds,
            valid_sets=[self.validation],
            callbacks=[early_stopping(PATIENCE, verbose=False)],
        )

    def fit(self, data: Split, settings: Settings, watch: Stopwatch) -> None:
        super().fit(data, settings, watch)
        kept = [model.best_iteration for model in self.models()]
        self.rounds_done = int(statistics.median(kept))
