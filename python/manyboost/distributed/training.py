"""A fit that several ranks share: each holds some of the rows, all end with the same model."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from manyboost.comm import Comm
from manyboost.estimators.fitting import Fitting, Given
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
        The same on all ranks, but for callbacks: those of rank 0 are called. It is fitted in place.
    comm : Comm
        The ranks.
    X, Y, sample_weight : array-like
        The rows of this rank, of which there may be none; see ``fit``.
    X_val, Y_val, sample_weight_val : array-like, optional
        Some of the validation rows, on every rank that has rows.
    row_numbers : (n_rows,) of uint64, optional
        Numbers of the rows among all, by which rows are drawn. None: the rows of rank 0 come first,
        then those of rank 1, and so on.

    Returns
    -------
    estimator
        The model of one machine with all rows, byte for byte, on every rank.
    """
    try:
        return _fit_rank(
            estimator,
            comm,
            (X, Y, sample_weight),
            {"X_val": X_val, "Y_val": Y_val, "sample_weight_val": sample_weight_val},
            row_numbers,
        )
    except Exception as error:
        comm.fail(error)
        raise


def _fit_rank(
    estimator: _Model,
    comm: Comm,
    rows: tuple[Any, Any, Any],
    validation: dict[str, Any],
    row_numbers: NDArray[np.uint64] | None,
) -> _Model:
    _refuse_what_needs_all_rows(estimator, comm)
    X, Y, sample_weight = rows
    n_rows = int(X.shape[0])
    described = comm.gather((n_rows, int(X.shape[1]), _width(Y), sample_weight is None))
    counts = [each[0] for each in described]
    holders = [rank for rank, count in enumerate(counts) if count > 0]
    if not holders:
        raise ValueError("X has no rows on any rank; at least one row is needed.")
    for rank in holders:
        _compare(described[holders[0]], described[rank], holders[0], rank)
    if row_numbers is None:
        first = sum(counts[: comm.rank])
        row_numbers = np.arange(first, first + n_rows, dtype=np.uint64)
    root, working = holders[0], comm if len(holders) == comm.size else comm.subset(holders)
    if working is not None:
        given = Given(X, Y, sample_weight, **validation, comm=working, row_numbers=row_numbers)
        estimator._fit(given)
    if len(holders) < comm.size:
        # Ranks without rows get the model of those that have some.
        state = comm.broadcast(_state(estimator) if comm.rank == root else None, root)
        if working is None:
            estimator.__dict__.update(state)
    return estimator


def _state(estimator: Fitting) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    return {name: value for name, value in vars(estimator).items() if name not in parameters}


def _width(Y: Any) -> int:
    """Number of columns of targets; 0 for one dimension."""
    shape: tuple[int, ...] = getattr(Y, "shape", (0,))
    return int(shape[1]) if len(shape) == 2 else 0


def _compare(one: tuple[Any, ...], other: tuple[Any, ...], rank: int, other_rank: int) -> None:
    for what, a, b in zip(("features", "outputs"), one[1:3], other[1:3], strict=True):
        if a != b:
            raise ValueError(
                f"Rank {rank} holds rows of {a} {what}, but rank {other_rank} of {b}; all must "
                "hold the same columns."
            )
    if one[3] != other[3]:
        raise ValueError(
            "sample_weight was given on some ranks only; pass it on all of them or on none."
        )


def _refuse_what_needs_all_rows(estimator: Fitting, comm: Comm) -> None:
    """Refuse parameters that work on rows of one machine only."""
    if comm.size == 1:
        return
    needs = {
        "estimator": estimator.estimator is not None,
        "loss": isinstance(estimator.loss, Loss),
        "scoring": estimator.scoring != LOSS,
        "thresholds": isinstance(estimator.thresholds, str),
        "max_time": estimator.strategy == "auto" and estimator.max_time is not None,
        "checkpoint": estimator.checkpoint is not None,
    }
    remedies = {
        "estimator": "use built-in trees (estimator=None)",
        "loss": "use a built-in loss",
        "scoring": "use 'loss'",
        "thresholds": "tune them on the fitted model",
        "checkpoint": "leave it out",
        "max_time": "leave it out with strategy='auto', which would choose by the clock",
    }
    for name, is_needed in needs.items():
        if is_needed:
            raise ValueError(
                f"{name}={getattr(estimator, name)!r} needs all rows on one machine, but they are "
                f"spread over {comm.size}; {remedies[name]}."
            )
