"""The scores of the paper: label ranking average precision, and R² averaged over outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def lrap(Y: Array, scores: Array) -> float:
    """Return the label ranking average precision of ``scores`` for the 0/1 labels ``Y``.

    It equals scikit-learn's, which loops over rows and is too slow for validation curves.
    """
    rows, labels = np.nonzero(Y)
    own = scores[rows, labels]
    total = np.bincount(rows, minlength=len(Y))
    of_labels = np.full((len(Y), total.max(initial=0)), -np.inf)
    of_labels[rows, np.arange(len(rows)) - (total.cumsum() - total)[rows]] = own
    # Ties count against a label: its rank is the last that an equal score has.
    rank, n_labels = (_n_at_least(each, rows, own) for each in (scores, of_labels))
    mean = np.bincount(rows, n_labels / rank, len(Y)) / np.maximum(total, 1)
    nothing_to_rank = (total == 0) | (total == Y.shape[1])
    return float(np.where(nothing_to_rank, 1.0, mean).mean())


def _n_at_least(scores: Array, rows: Array, own: Array) -> Array:
    """Count the scores of each of the ``rows`` that are not below its ``own``."""
    n_scores = scores.shape[1]
    ranked = np.sort(scores, axis=1).ravel()
    first, end = rows * n_scores, (rows + 1) * n_scores
    for _ in range(n_scores.bit_length()):  # binary search, for all at once
        middle = (first + end) // 2
        is_below = (first < end) & (ranked[np.minimum(middle, len(ranked) - 1)] < own)
        first, end = np.where(is_below, middle + 1, first), np.where(is_below, end, middle)
    return np.asarray((rows + 1) * n_scores - first)


def macro_r2(Y: Array, predictions: Array) -> float:
    """Return R² averaged over outputs.

    It equals scikit-learn's, whose checks take longer than a round of a small fit.
    """
    error = np.square(Y - predictions).sum(axis=0, dtype=np.float64)
    total = np.square(Y - Y.mean(axis=0)).sum(axis=0, dtype=np.float64)
    # An output that does not vary has a score of 1 if it is met, else 0.
    scores = np.where(error > 0, 0.0, 1.0)
    varies = total > 0
    scores[varies] = 1 - error[varies] / total[varies]
    return float(scores.mean())
