"""The estimators: scikit-learn's contract around training."""

from manyboost.estimators.classifier import ManyBoostClassifier
from manyboost.estimators.regressor import ManyBoostRegressor

__all__ = ["ManyBoostClassifier", "ManyBoostRegressor"]
