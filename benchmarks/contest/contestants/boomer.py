"""BOOMER (`mlrl-boomer`): boosted rules, each for one or several outputs."""

import numpy as np

from benchmarks.contest.sets import Split
from benchmarks.contestants.base import Contestant, Settings, Stopwatch, two_dimensional


class Boomer(Contestant):
    """Holds out rows of its own for early stopping ("pre-pruning"): it is given all training rows.

    A rule counts as a round. By default a rule sees a few drawn features; if none of them varies
    enough, the fit ends, as it soon does on genbase. Threads are those of OpenMP; its clock knows
    whole seconds.
    """

    name = "boomer"
    library = "mlrl.boosting"
    tasks = ("regression", "multilabel")

    def fit(self, data: Split, settings: Settings, watch: Stopwatch) -> None:
        from mlrl.boosting.learners import BoomerClassifier, BoomerRegressor

        kind = BoomerRegressor if data.task == "regression" else BoomerClassifier
        self.parameters = {
            "max_rules": settings.n_rounds,
            "global_pruning": "pre-pruning",
            "time_limit": max(1, int(watch.limit)) if np.isfinite(watch.limit) else 0,
            "random_state": settings.seed + 1,  # at least 1
        }
        X, Y = data.with_validation()
        self.model = kind(**self.parameters).fit(X, Y)
        self.rounds_done = int(self.model.model_.get_num_used_rules())

    def predict(self, X) -> np.ndarray:
        is_regressor = not hasattr(self.model, "predict_proba")
        options = {} if is_regressor else {"predict_scores": True}
        return two_dimensional(np.asarray(self.model.predict(X, **options)))
