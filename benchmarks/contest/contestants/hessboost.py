"""hessboost: trees with a value for every output at each leaf, by xgboost's defaults."""

from benchmarks.contest.contestants.stopping import PATIENCE
from benchmarks.contest.sets import Split
from benchmarks.contestants import hessboost
from benchmarks.contestants.base import Settings, Stopwatch


class HessBoost(hessboost.HessBoost):
    name = "hessboost"
    patience = PATIENCE

    def fit(self, data: Split, settings: Settings, watch: Stopwatch) -> None:
        from hessboost import DMatrix, TrainingCallback, train

        class Clock(TrainingCallback):
            def after_iteration(self, iteration, evals_log):
                return watch.expired

        self.parameters = {
            "objective": hessboost.OBJECTIVES[data.task],
            "multi_strategy": "multi_output_tree",
            "nthread": settings.n_threads,
            "seed": settings.seed,
        }
        self.model = train(
            self.parameters,
            DMatrix(data.X, label=data.Y),
            num_boost_round=settings.n_rounds,
            evals=[(DMatrix(data.X_val, label=data.Y_val), "validation")],
            early_stopping_rounds=PATIENCE,
            callbacks=[Clock()],
            verbose_eval=False,
        )
        self.rounds_done = self.model.best_iteration + 1

    def predict(self, X):
        return self.margins(X, 0, self.rounds_done)
