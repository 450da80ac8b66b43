"""xgboost: vector leaves, one tree per output, and vector leaves grown on a projection."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from benchmarks.contestants.base import Contestant, Settings, Stopwatch, two_dimensional
from benchmarks.workloads import Data

OBJECTIVES = {
    "regression": "reg:squarederror",
    "multilabel": "binary:logistic",
    "multiclass": "multi:softprob",
}


class XGBoost(Contestant):
    library = "xgboost"
    multi_strategy: str

    def growth(self, settings: Settings) -> dict[str, Any]:
        return {
            "multi_strategy": self.multi_strategy,
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_leaves": settings.max_leaf_nodes,
            "max_depth": 0,
            "max_bin": settings.max_bins,
            "learning_rate": settings.learning_rate,
            "nthread": settings.n_threads,
            "seed": settings.seed,
        }

    def fit(self, data: Data, settings: Settings, watch: Stopwatch) -> None:
        import xgboost

        self.parameters = {
            **self.growth(settings),
            "objective": OBJECTIVES[data.task],
        }
        if data.task == "multiclass":
            self.parameters["num_class"] = data.n_outputs
        self.train(xgboost, data, data.Y, settings, watch, objective=None)

    def train(
        self,
        xgboost: Any,
        data: Data,
        Y: np.ndarray,
        settings: Settings,
        watch: Stopwatch,
        objective: Any,
    ) -> None:
        laps: list[float] = []

        class Laps(xgboost.callback.TrainingCallback):
            def after_iteration(self, model, epoch, evals_log):
                laps.append(watch.elapsed)
                return watch.expired

        matrix = xgboost.QuantileDMatrix(
            data.X, label=Y, max_bin=settings.max_bins, nthread=settings.n_threads
        )
        self.model = xgboost.train(
            self.parameters,
            matrix,
            num_boost_round=settings.n_rounds,
            obj=objective,
            callbacks=[Laps()],
            verbose_eval=False,
        )
        self.rounds_done = len(laps)
        self.round_seconds = np.array(laps)

    def margins(self, X, first: int, last: int) -> np.ndarray:
        raw = self.model.inplace_predict(X, iteration_range=(first, last), predict_type="margin")
        return two_dimensional(raw)

    def predict(self, X) -> np.ndarray:
        return self.margins(X, 0, self.rounds_done)

    def staged(self, X, rounds: Sequence[int]) -> Iterator[np.ndarray]:
        # Every range of rounds comes with the baseline added: it is taken off again.
        baseline = 0.0
        if self.rounds_done > 1:
            row = X[:1]
            parts = self.margins(row, 0, 1) + self.margins(row, 1, 2)
            baseline = parts - self.margins(row, 0, 2)
        raw, done = baseline, 0
        for n in rounds:
            raw = raw + (self.margins(X, done, n) - baseline)
            done = n
            yield raw


class MultiOutputTree(XGBoost):
    name = "xgboost-multi-output-tree"
    multi_strategy = "multi_output_tree"


class OneOutputPerTree(XGBoost):
    name = "xgboost-one-output-per-tree"
    multi_strategy = "one_output_per_tree"


class Projection(XGBoost):
    """What a user can write today: vector leaves from all gradients, splits from one projection."""

    name = "xgboost-projection"
    multi_strategy = "multi_output_tree"

    def fit(self, data: Data, settings: Settings, watch: Stopwatch) -> None:
        import xgboost
        from xgboost.objective import TreeObjective

        rng = np.random.default_rng(settings.seed)
        Y = data.Y.astype(np.float32)
        if data.task == "multiclass":
            Y = np.eye(data.n_outputs, dtype=np.float32)[data.Y]
        n_rows, n_outputs = Y.shape
        ones = np.ones((n_rows, n_outputs), np.float32)

        class Projected(TreeObjective):
            def __call__(self, iteration, y_pred, dtrain):
                raw = y_pred.reshape(n_rows, n_outputs)
                if data.task == "regression":
                    return raw - Y, ones
                if data.task == "multilabel":
                    p = expit(raw)
                    return p - Y, p * (1 - p)
                p = softmax(raw, axis=1)
                return p - Y, 2 * p * (1 - p)

            def split_grad(self, iteration, grad, hess):
                if n_outputs == 1:
                    return None  # scalar leaves would be labelled with the projection
                phi = rng.standard_normal((n_outputs, 1), dtype=np.float32)
                return grad @ phi, ones[:, :1]

        self.parameters = {
            **self.growth(settings),
            "objective": "reg:squarederror",  # unused but for its link, the identity
            "base_score": baseline(data.task, Y).tolist(),
        }
        self.train(xgboost, data, Y, settings, watch, objective=Projected())
        self.parameters.pop("base_score")  # d numbers say nothing in a record


def baseline(task: str, Y: np.ndarray) -> np.ndarray:
    """The constant start (d,) from targets or 0/1 labels."""
    mean = Y.mean(axis=0)
    if task == "regression":
        return mean
    mean = np.clip(mean, 1e-6, 1 - 1e-6)
    return np.log(mean) - np.log1p(-mean) if task == "multilabel" else np.log(mean)
