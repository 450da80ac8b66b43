"""
A model for AutoGluon
=====================

AutoGluon trains and stacks many models of a table. A class of a few lines adds manyboost to them.
"""

# %%
# AutoGluon passes frames whose text columns have a categorical type, and sets validation rows
# apart.

import pandas as pd
from autogluon.core.constants import REGRESSION
from autogluon.core.models import AbstractModel
from autogluon.tabular import TabularPredictor
from sklearn.datasets import load_diabetes

from manyboost import ManyBoostClassifier, ManyBoostRegressor


class ManyBoostModel(AbstractModel):
    ag_key, ag_name = "MANYBOOST", "ManyBoost"

    def _fit(self, X, y, X_val=None, y_val=None, time_limit=None, num_cpus=1, **others):
        kind = ManyBoostRegressor if self.problem_type == REGRESSION else ManyBoostClassifier
        validation = {}
        if X_val is not None:
            validation = {"X_val": self.preprocess(X_val), "y_val": y_val}
        self.model = kind(
            **{"max_iter": 1000, **self._get_model_params()}, max_time=time_limit, n_jobs=num_cpus
        )
        self.model.fit(self.preprocess(X), y, **validation)

    def _set_default_params(self):
        self._set_default_param_value("random_state", 0)


# %%
# The leaderboard lists it next to AutoGluon's own models.

bunch = load_diabetes(as_frame=True)
table = bunch.frame.assign(sex=bunch.frame["sex"].gt(0).map({True: "a", False: "b"}))
train, test = table[:300], table[300:]
predictor = TabularPredictor("target", verbosity=0)
predictor.fit(train, hyperparameters={ManyBoostModel: {}, "RF": {"n_estimators": 50}})
with pd.option_context("display.width", 100):
    print(predictor.leaderboard(test)[["model", "score_test", "fit_time"]].round(2))
