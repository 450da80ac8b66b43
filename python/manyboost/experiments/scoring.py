"""Scores of the paper: label ranking average precision, and r² averaged over the outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score

Array = NDArray[Any]


def lrap(Y: Array, scores: Array) -> float:
    """Label ranking average precision.

    scikit-learn's, but for all rows at once: a validation curve asks for it dozens of times.

    Parameters
    ----------
    Y : ndarray of shape (n_rows, n_outputs)
        Labels, 0 or 1.
    scores : ndarray of shape (n_rows, n_outputs)
        The higher, the likelier a label.

    Examples
    --------
    >>> import numpy as np
    >>> from manyboost.experiments.scoring import lrap
    >>> lrap(np.array([[1, 0, 0], [0, 0, 1]]), np.array([[0.75, 0.5, 1], [1, 0.2, 0.1]]))
    0.4166...
    """
    n_outputs = Y.shape[1]
    order = np.argsort(-scores, axis=1)
    ranked = np.take_along_axis(scores, order, axis=1)
    is_label = np.take_along_axis(Y, order, axis=1) != 0
    # Among equal scores all stand at the last place: ties count against a label.
    place = np.broadcast_to(np.arange(1, n_outputs + 1), Y.shape).copy()
    place[:, :-1][ranked[:, :-1] == ranked[:, 1:]] = n_outputs
    place = np.minimum.accumulate(place[:, ::-1], axis=1)[:, ::-1]
    n_labels = is_label.cumsum(axis=1)
    precision = np.take_along_axis(n_labels, place - 1, axis=1) / place
    total = n_labels[:, -1]
    mean = (precision * is_label).sum(axis=1) / np.maximum(total, 1)
    nothing_to_rank = (total == 0) | (total == n_outputs)
    return float(np.where(nothing_to_rank, 1.0, mean).mean())


def macro_r2(Y: Array, predictions: Array) -> float:
    """Return r² averaged over the outputs."""
    return float(r2_score(Y, predictions, multioutput="uniform_average"))
