"""hessboost: trees with a value for every output at each leaf, and xgboost's parameter names."""

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.contestants.base import Contestant, Settings, Stopwatch, two_dimensional
from benchmarks.workloads import Data

OBJECTIVES = {"regression": "reg:squarederror", "multilabel": "binary:logistic"}


class HessBoost(Contestant):
    name = "hessboost-multi-output-tree"
    library = "hessboost"
    tasks: Sequence[str] = tuple(OBJECTIVES)

    def fit(self, data: Data, settings: Settings, watch: Stopwatch) -> None:
        import hessboost

        laps: list[float] = []

        class Laps(hessboost.TrainingCallback):
            def after_iteration(self, iteration, evals_log):
                laps.append(watch.elapsed)
                return watch.expired

        self.parameters = {
            "objective": OBJECTIVES[data.task],
            "multi_strategy": "multi_output_tree",
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_leaves": settings.max_leaf_nodes,
            "max_depth": 0,
            "max_bin": settings.max_bins,
            "eta": settings.learning_rate,
            "nthread": settings.n_threads,
            "seed": settings.seed,
        }
        self.model = hessboost.train(
            self.parameters,
            hessboost.DMatrix(data.X, label=data.Y),
            num_boost_round=settings.n_rounds,
            callbacks=[Laps()],
            verbose_eval=False,
        )
        self.rounds_done = len(laps)
        self.round_seconds = np.array(laps)

    def margins(self, X, first: int, last: int) -> np.ndarray:
        raw = self.model.predict(X, output_margin=True, iteration_range=(first, last))
        return two_dimensional(raw)

    def predict(self, X) -> np.ndarray:
        return self.margins(X, 0, 0)

    def staged(self, X, rounds: Sequence[int]) -> Iterator[np.ndarray]:
        return (self.margins(X, 0, n) for n in rounds)
