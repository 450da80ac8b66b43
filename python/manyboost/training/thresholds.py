"""Thresholds: from which probability on a label is predicted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.arrays import F64, Mask


def tune_thresholds(proba: F64, present: NDArray[Any], weight: NDArray[Any] | None) -> F64:
    """Return the threshold of each label (n_labels,) that maximises its F1.

    A label is predicted where its probability is above the threshold. ``present`` is 0 and 1, or
    anything where the weight is zero; ``weight`` is that of rows, or of cells. Candidates are 0.5
    and the middle between any two neighbouring probabilities, zero included; of equally good ones
    we take that nearest to 0.5, which is also the threshold of a label without any weight.
    """
    total = np.ones(len(proba)) if weight is None else weight.astype(np.float64)
    weights = np.broadcast_to(total if total.ndim == 2 else total[:, None], proba.shape)
    columns = zip(proba.T, present.T, weights.T, strict=True)
    return np.array([_best_threshold(p[w > 0], y[w > 0] == 1, w[w > 0]) for p, y, w in columns])


def _best_threshold(proba: F64, present: Mask, weight: F64) -> float:
    if not len(proba):
        return 0.5
    order = np.argsort(-proba, kind="stable")
    p = proba[order]
    hits = np.cumsum(np.where(present[order], weight[order], 0.0))
    taken = np.cumsum(weight[order])
    # F1 if the first k rows are taken, for each k that a threshold can bring about.
    below = np.append(p[1:], 0.0)
    ends = np.flatnonzero(p > below)
    middle = (p[ends] + below[ends]) / 2
    # Rounding may have made it the upper of the two, which must stay above.
    cuts = np.where(middle < p[ends], middle, below[ends])
    scores = 2 * hits[ends] / (taken[ends] + hits[-1])
    half = int(np.count_nonzero(p > 0.5)) - 1
    at_half = 2 * hits[half] / (taken[half] + hits[-1]) if half >= 0 else 0.0
    cuts, scores = np.append(0.5, cuts), np.append(at_half, scores)
    best = cuts[scores == scores.max()]
    return float(best[np.argmin(np.abs(best - 0.5))])
