"""Gradient tree boosting for many outputs, by random projections of the residuals."""

from manyboost._core import __version__
from manyboost.callbacks import RoundState
from manyboost.estimators import ManyBoostClassifier, ManyBoostRegressor
from manyboost.losses import Loss

__all__ = ["Loss", "ManyBoostClassifier", "ManyBoostRegressor", "RoundState", "__version__"]
