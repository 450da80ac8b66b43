"""Gradient tree boosting for many outputs, by random projections of the residuals."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyboost._core import __version__
    from manyboost.callbacks import RoundState
    from manyboost.checkpoints import Checkpoint
    from manyboost.estimators import ManyBoostClassifier, ManyBoostRegressor
    from manyboost.losses import Loss
    from manyboost.persistence import load

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
    "Checkpoint": "manyboost.checkpoints",
    "Loss": "manyboost.losses",
    "ManyBoostClassifier": "manyboost.estimators",
    "ManyBoostRegressor": "manyboost.estimators",
    "RoundState": "manyboost.callbacks",
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
