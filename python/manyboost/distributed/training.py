"""A fit on several ranks: each holds some of the rows, all end with the same model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from manyboost.comm import Comm
from manyboost.estimators.fits import Given
from manyboost.estimators.fitting import Fitting
from manyboost.training.custom import Loss
from manyboost.training.scoring import LOSS

_Model = TypeVar("_Model", bound=Fitting)


def fit_rank(
    estimator: _Model,
    comm: Comm,
    X: Any,
    Y: Any,
    sample_weight: Any = None,
    *,
    X_val: Any = None,
    Y_val: Any = None,
    sample_weight_val: Any = None,
    row_numbers: NDArray[np.uint64] | None = None,
) -> _Model:
    """Fit an estimator to rows that are spread over ranks; all ranks call this.

    Parameters
    ----------
    estimator : ManyBoostRegressor or ManyBoostClassifier
        The same on all ranks. It is fitted in place; only the callbacks of rank 0 are called.
    comm : Comm
        The ranks.
    X, Y, sample_weight : array-like
        The rows of this rank, which may have none; see ``fit``.
    X_val, Y_val, sample_weight_val : array-like, optional
        Some of the validation rows; pass them on every rank that has training rows.
    row_numbers : (n_rows,) of uint64, optional
        Numbers of the rows among those of all ranks; random draws depend on them. None: the rows of
        rank 0 come first, then those of rank 1, and so on.

    Returns
    -------
    estimator
        The model of one machine with all rows, byte for byte, on every rank.
    """
    rows = Given(X, Y, sample_weight, X_val, Y_val, sample_weight_val, row_numbers=row_numbers)
    try:
        _fit_rank(estimator, comm, rows)
    except Exception as error:
        comm.fail(error)
        raise
    return estimator


def _fit_rank(estimator: Fitting, comm: Comm, rows: Given) -> None:
    _refuse_what_needs_all_rows(estimator, comm)
    described = comm.gather(_described(rows))
    counts = [each["rows"] for each in described]
    holders = [rank for rank, n_rows in enumerate(counts) if n_rows > 0]
    if not holders:
        raise ValueError("X has no rows on any rank; at least one row is needed.")
    root = holders[0]
    for rank in holders:
        _compare(described[root], described[rank], root, rank)
    if rows.row_numbers is None:
        first = sum(counts[: comm.rank])
        numbers = np.arange(first, first + counts[comm.rank], dtype=np.uint64)
        rows = replace(rows, row_numbers=numbers)
    working = comm if len(holders) == comm.size else comm.subset(holders)
    if working is not None:
        estimator._fit(replace(rows, comm=working))
    if len(holders) < comm.size:
        # Ranks without rows get the model of those with rows.
        parameters = estimator.get_params(deep=False)
        state = {name: value for name, value in vars(estimator).items() if name not in parameters}
        state = comm.broadcast(state if comm.rank == root else None, root)
        if working is None:
            estimator.__dict__.update(state)


def _described(rows: Given) -> dict[str, int]:
    n_rows, n_features = rows.X.shape
    _, width = (*getattr(rows.y, "shape", ()), 1, 1)[:2]
    weighted = rows.sample_weight is not None
    return {"rows": n_rows, "features": n_features, "outputs": width, "weighted": weighted}


def _compare(one: dict[str, int], other: dict[str, int], rank: int, other_rank: int) -> None:
    """Refuse the rows of two ranks if they do not go together."""
    for what in ("features", "outputs"):
        if one[what] != other[what]:
            raise ValueError(
                f"Rank {rank} holds rows of {one[what]} {what}, but rank {other_rank} of "
                f"{other[what]}; all must hold the same columns."
            )
    if one["weighted"] != other["weighted"]:
        raise ValueError(
            "sample_weight was given on some ranks only; pass it on all of them or on none."
        )


def _refuse_what_needs_all_rows(estimator: Fitting, comm: Comm) -> None:
    """Refuse parameters that work on rows of one machine only."""
    if comm.size == 1:
        return
    is_raced = estimator.strategy == "auto" and estimator.max_time is not None
    needs = {
        "estimator": (estimator.estimator is not None, "use built-in trees (estimator=None)"),
        "loss": (isinstance(estimator.loss, Loss), "use a built-in loss"),
        "scoring": (estimator.scoring != LOSS, "use 'loss'"),
        "thresholds": (isinstance(estimator.thresholds, str), "tune them on the fitted model"),
        "max_time": (is_raced, "leave it out with strategy='auto', which chooses by the clock"),
        "validation_split": (
            not isinstance(estimator.validation_split, str),
            "use 'last', or pass X_val and Y_val",
        ),
        "n_folds": (estimator.n_folds is not None, "leave it out"),
        "refit_all": (estimator.refit_all, "leave it out"),
        "checkpoint": (estimator.checkpoint is not None, "leave it out"),
    }
    for name, (is_needed, remedy) in needs.items():
        if is_needed:
            raise ValueError(
                f"{name}={getattr(estimator, name)!r} needs all rows on one machine, but they are "
                f"spread over {comm.size}; {remedy}."
            )
