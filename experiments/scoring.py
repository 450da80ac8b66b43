"""The scores of the paper: label ranking average precision, and R² averaged over outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score

Array = NDArray[Any]


def lrap(Y: Array, scores: Array) -> float:
    """Return the label ranking average precision of ``scores`` for the 0/1 labels ``Y``.

    It equals scikit-learn's, which loops over rows and is too slow for validation curves.
    """
    n_outputs = Y.shape[1]
    order = np.argsort(-scores, axis=1)
    ranked = np.take_along_axis(scores, order, axis=1)
    is_label = np.take_along_axis(Y, order, axis=1) != 0
    # Equal scores all get the last of their ranks: ties count against a label.
    rank = np.broadcast_to(np.arange(1, n_outputs + 1), Y.shape).copy()
    rank[:, :-1][ranked[:, :-1] == ranked[:, 1:]] = n_outputs
    rank = np.minimum.accumulate(rank[:, ::-1], axis=1)[:, ::-1]
    n_labels = is_label.cumsum(axis=1)
    precision = np.take_along_axis(n_labels, rank - 1, axis=1) / rank
    total = n_labels[:, -1]
    mean = (precision * is_label).sum(axis=1) / np.maximum(total, 1)
    nothing_to_rank = (total == 0) | (total == n_outputs)
    return float(np.where(nothing_to_rank, 1.0, mean).mean())


def macro_r2(Y: Array, predictions: Array) -> float:
    """Return R² averaged over outputs."""
    return float(r2_score(Y, predictions, multioutput="uniform_average"))
