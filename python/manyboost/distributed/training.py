"""A fit on several ranks: each holds some of the rows, all end with the same model."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import zip_longest
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.comm import Comm
from manyboost.data.frames import column_names, is_frame, target_names
from manyboost.estimators.fits import Given
from manyboost.estimators.fitting import Fitting
from manyboost.training.callbacks import FitTasks
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
    row_numbers: Any = None,
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
        Some of the validation rows; pass them on every rank that has training rows, and on no
        other.
    row_numbers : (n_rows,) of integers, optional
        Numbers of the rows among those of all ranks; random draws depend on them. None: the rows of
        rank 0 come first, then those of rank 1, and so on.

    Returns
    -------
    estimator
        The model of one machine with all rows, byte for byte, on every rank. Only the choice of
        ``strategy="auto"`` may be another one for fewer than 1,000 rows, which one machine divides
        into folds to choose.
    """
    rows = Given(X, Y, sample_weight, X_val, Y_val, sample_weight_val, row_numbers=row_numbers)
    try:
        _fit_rank(estimator, comm, rows)
    except BaseException as error:
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
    for rank, each in enumerate(described):
        if each["validation_rows"] and rank not in holders:
            raise ValueError(
                f"Rank {rank} holds validation rows but no training rows; pass them on a rank that "
                "has training rows."
            )
    for rank in holders:
        _compare(described[root], described[rank], root, rank)
    numbers = rows.row_numbers
    if numbers is None:
        first = sum(counts[: comm.rank])
        numbers = np.arange(first, first + counts[comm.rank], dtype=np.uint64)
    rows = replace(rows, row_numbers=_checked_numbers(numbers, counts[comm.rank]))
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


def _checked_numbers(numbers: Any, n_rows: int) -> NDArray[np.uint64]:
    given = np.asarray(numbers)
    if given.shape != (n_rows,) or given.dtype.kind not in "iu" or (given < 0).any():
        raise ValueError(
            f"row_numbers is an array of {given.dtype} of shape {given.shape}; pass a whole number "
            f"of at least 0 for each of the {n_rows} rows of this rank."
        )
    return given.astype(np.uint64, copy=False)


def _described(rows: Given) -> dict[str, Any]:
    """Return the numbers of rows of a rank, and what must be the same on all ranks with rows."""
    arguments = {
        name: getattr(rows, name)
        for name in ("X", "y", "sample_weight", "X_val", "Y_val", "sample_weight_val")
    }
    names = {"feature": column_names(rows.X), "output": target_names(rows.y)}
    features, outputs = np.shape(rows.X), getattr(rows.y, "shape", ())
    validation = () if rows.X_val is None else np.shape(rows.X_val)
    return {
        "rows": features[0] if features else 1,
        "validation_rows": validation[0] if validation else 0,
        "forms": {name: _form(argument) for name, argument in arguments.items()},
        "widths": {"features": math.prod(features[1:]), "outputs": math.prod(outputs[1:])},
        "names": {what: each or [] for what, each in names.items()},
    }


def _form(argument: Any) -> str:
    if argument is None:
        return "None"
    if sparse.issparse(argument):
        return "a sparse matrix"
    dimensions = len(getattr(argument, "shape", (0,)))
    return "a frame" if is_frame(argument) else f"an array of {dimensions} dimension(s)"


def _compare(one: dict[str, Any], other: dict[str, Any], rank: int, other_rank: int) -> None:
    """Refuse the rows of two ranks if they do not go together."""
    for name, form in one["forms"].items():
        if form != other["forms"][name]:
            raise ValueError(
                f"{name} is {form} on rank {rank}, but {other['forms'][name]} on rank "
                f"{other_rank}; pass it in the same form on all ranks."
            )
    for what, width in one["widths"].items():
        if width != other["widths"][what]:
            raise ValueError(
                f"Rank {rank} holds rows of {width} {what}, but rank {other_rank} of "
                f"{other['widths'][what]}; all must hold the same columns."
            )
    for what, names in one["names"].items():
        pairs = zip_longest(names, other["names"][what])
        for number, (name, other_name) in enumerate(pairs):
            if name != other_name:
                raise ValueError(
                    f"The name of {what} {number} is {name!r} on rank {rank}, but {other_name!r} "
                    f"on rank {other_rank}; all must hold the same columns in the same order."
                )


def _refuse_what_needs_all_rows(estimator: Fitting, comm: Comm) -> None:
    """Refuse parameters that work on rows of one machine only."""
    if comm.size == 1:
        return
    if FitTasks.wanted(estimator):
        problem = (
            f"callbacks of set_callbacks see one machine, but rows are spread over {comm.size}"
        )
        raise ValueError(f"{problem}; use the parameter callbacks.")
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
