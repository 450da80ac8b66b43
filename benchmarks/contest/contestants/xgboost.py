"""xgboost: trees with a value for every output at each leaf, and one tree per output."""

from benchmarks.contest.contestants.stopping import PATIENCE
from benchmarks.contest.sets import Split
from benchmarks.contestants import xgboost
from benchmarks.contestants.base import Settings, Stopwatch


class XGBoost(xgboost.XGBoost):
    patience = PATIENCE

    def fit(self, data: Split, settings: Settings, watch: Stopwatch) -> None:
        from xgboost import QuantileDMatrix, train
        from xgboost.callback import EarlyStopping, TrainingCallback

        class Clock(TrainingCallback):
            def after_iteration(self, model, epoch, evals_log):
                return watch.expired

        self.parameters = {
            "objective": xgboost.OBJECTIVES[data.task],
            "multi_strategy": self.multi_strategy,
            "nthread": settings.n_threads,
            "seed": settings.seed,
        }
        matrix = QuantileDMatrix(data.X, label=data.Y, nthread=settings.n_threads)
        validation = QuantileDMatrix(
            data.X_val, label=data.Y_val, ref=matrix, nthread=settings.n_threads
        )
        self.model = train(
            self.parameters,
            matrix,
            num_boost_round=settings.n_rounds,
            evals=[(validation, "validation")],
            # In this order: the first that says stop is the last that is asked.
            callbacks=[EarlyStopping(rounds=PATIENCE), Clock()],
            verbose_eval=False,
        )
        self.rounds_done = self.model.best_iteration + 1


class MultiOutputTree(XGBoost):
    name = "xgboost-multi-output-tree"
    multi_strategy = "multi_output_tree"


class OneOutputPerTree(XGBoost):
    name = "xgboost-one-output-per-tree"
    multi_strategy = "one_output_per_tree"
