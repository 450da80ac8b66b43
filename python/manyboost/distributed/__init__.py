"""Training on rows that are spread over machines, or that no memory holds: the same model."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "Alone": "comm",
    "Comm": "comm",
    "CommError": "comm",
    "DaskManyBoostClassifier": "dask",
    "DaskManyBoostRegressor": "dask",
    "MPIComm": "mpi",
    "Threads": "comm",
    "fit_files": "outofcore",
    "fit_rank": "training",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
