"""catboost with its multi-output losses."""

from benchmarks.contest.sets import Split
from benchmarks.contestants import catboost
from benchmarks.contestants.base import Settings, Stopwatch


class CatBoost(catboost.CatBoost):
    """Its patience has a default; its learning rate is chosen by itself, from rows and rounds."""

    def fit(self, data: Split, settings: Settings, watch: Stopwatch) -> None:
        from catboost import CatBoost, Pool

        class Clock:
            def after_iteration(self, info):
                return not watch.expired

        self.parameters = {
            "loss_function": catboost.LOSSES[data.task],
            "iterations": settings.n_rounds,
            "od_type": "Iter",
            "thread_count": settings.n_threads,
            "random_seed": settings.seed,
            "allow_writing_files": False,
            "verbose": False,
        }
        self.model = CatBoost(self.parameters)
        self.model.fit(
            Pool(data.X, self.changing(data, data.Y)),
            eval_set=Pool(data.X_val, self.changing(data, data.Y_val)),
            callbacks=[Clock()],
        )
        self.rounds_done = int(self.model.tree_count_)
        self.patience = int(self.model.get_all_params()["od_wait"])
