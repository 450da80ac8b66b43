"""Lazy predictions for Dask collections."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_collection(X: Any) -> bool:
    """Return whether X is a Dask array or a Dask data frame."""
    import dask.array as da
    import dask.dataframe as dd

    return isinstance(X, da.Array | dd.DataFrame | dd.Series)


def predict_lazily(model: Any, method: str, X: Any, request: dict[str, Any]) -> Any:
    """Return the predictions of a fitted estimator for a collection, as a Dask array.

    ``request`` holds the other arguments of the method.
    """
    import dask
    import dask.array as da

    like = _no_predictions(model, method, request)
    # As a task of its own, the graph holds the model once.
    shipped = dask.delayed(model, traverse=False)
    arguments = {"method": method, "request": request, "like": like}
    if not isinstance(X, da.Array):
        return X.map_partitions(_predict_part, shipped, **arguments, meta=like)
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions, but must have 2: rows and features.")
    if X.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but the model was fitted to {model.n_features_in_}; "
            "pass the same features."
        )
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    chunks = X.chunks[0], *((size,) for size in like.shape[1:])
    axes = {"drop_axis": 1, "new_axis": list(range(1, like.ndim)), "chunks": chunks}
    return X.map_blocks(_predict_part, shipped, **arguments, **axes, dtype=like.dtype, meta=like)


def _no_predictions(model: Any, method: str, request: dict[str, Any]) -> NDArray[Any]:
    """Return predictions for no rows; raise if the arguments are wrong."""
    probe = copy.copy(model)
    n_outputs = model.n_outputs_
    probe._checked_X = lambda X: X
    probe._checked_offset = lambda offset, X: None
    probe._raw_predictor = lambda outputs: (
        lambda X: np.zeros((1, n_outputs if outputs is None else len(outputs)))
    )
    one_row = getattr(probe, method)(np.zeros((1, model.n_features_in_)), **request)
    return np.asarray(one_row)[:0]


def _predict_part(
    part: Any, model: Any, *, method: str, request: dict[str, Any], like: NDArray[Any]
) -> Any:
    return getattr(model, method)(part, **request) if part.shape[0] else like
