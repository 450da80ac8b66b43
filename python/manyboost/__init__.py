"""Gradient tree boosting for many outputs, by random projections of the residuals."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyboost._core import __version__
    from manyboost.estimators import ManyBoostClassifier, ManyBoostRegressor
    from manyboost.persistence import load
    from manyboost.training.callbacks import RoundState
    from manyboost.training.checkpoints import Checkpoint
    from manyboost.training.custom import Loss

__all__ = [
    "Checkpoint",
    "Loss",
    "ManyBoostClassifier",
    "ManyBoostRegressor",
    "RoundState",
    "__version__",
    "load",
]

# Loaded when first asked for: the command line answers --help without scikit-learn.
_HOMES = {
    "Checkpoint": "manyboost.training.checkpoints",
    "Loss": "manyboost.training.custom",
    "ManyBoostClassifier": "manyboost.estimators",
    "ManyBoostRegressor": "manyboost.estimators",
    "RoundState": "manyboost.training.callbacks",
    "__version__": "manyboost._core",
    "load": "manyboost.persistence",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'manyboost' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
