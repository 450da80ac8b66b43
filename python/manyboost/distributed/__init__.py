"""Training on rows that are spread over machines, or larger than memory."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "Alone": "manyboost.comm",
    "Comm": "manyboost.comm",
    "CommError": "manyboost.comm",
    "DaskManyBoostClassifier": "manyboost.distributed.dask",
    "DaskManyBoostRegressor": "manyboost.distributed.dask",
    "MPIComm": "manyboost.distributed.mpi",
    "Threads": "manyboost.comm",
    "fit_files": "manyboost.distributed.outofcore",
    "fit_rank": "manyboost.distributed.training",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
