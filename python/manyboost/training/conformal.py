"""Conformal prediction: from scores of rows that a model has not seen to what holds for new rows.

A score says how far the truth is outside of a prediction. Of n such scores and that of a new row,
which are exchangeable, the new one is among the ⌈(n + 1) · coverage⌉ smallest with a probability of
at least ``coverage``: this is the one theorem that all functions here apply. Weighted rows count as
their weight, and the new row as the mean weight.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from manyboost.arrays import F64, Mask

#: Halvings of a range that holds a quantile: to about the precision of what they are halvings of.
_HALVINGS = 45

#: Rounding errors of sums of weights, relative to them.
_SLACK = 1e-12


def rows_needed(coverage: float) -> int:
    """Return the least number of rows n with ⌈(n + 1) · coverage⌉ ≤ n."""
    return math.ceil(coverage / (1 - coverage) * (1 - 1e-9))


def excess(Y: F64, low: F64, high: F64) -> F64:
    """Return how far targets are outside of [low, high], negative inside; NaN where missing."""
    return np.asarray(np.maximum(low - Y, Y - high))


def cell_weights(scores: F64, weights: NDArray[np.floating] | None) -> F64:
    """Return the weights (n, d) of scores (n, d), for weights of rows or cells; 0 where NaN."""
    given = np.ones(1) if weights is None else weights.astype(np.float64)
    return np.where(np.isnan(scores), 0.0, given[:, None] if given.ndim == 1 else given)


def wanted(weights: F64, coverage: float) -> F64:
    """Return the weight (d,) that scores up to the quantile must have, for weights (n, d)."""
    total, count = weights.sum(axis=0), (weights > 0).sum(axis=0)
    of_new_row = np.divide(total, count, out=np.ones_like(total), where=count > 0)
    return np.asarray(coverage * (total + of_new_row) * (1 - _SLACK))


def quantiles(scores: F64, coverage: float, weights: NDArray[np.floating] | None = None) -> F64:
    """Return what a new score of each column (n, d) is at most, with probability ``coverage``.

    It is infinite where a column has too few scores.
    """
    weight = cell_weights(scores, weights)
    order = np.argsort(scores, axis=0)  # NaN at the end
    below = np.take_along_axis(weight, order, axis=0).cumsum(axis=0) < wanted(weight, coverage)
    place = below.sum(axis=0)
    ordered = np.take_along_axis(scores, order, axis=0)
    found = ordered[np.minimum(place, len(scores) - 1), np.arange(scores.shape[1])]
    return np.asarray(np.where(place < len(scores), found, np.inf))


def own_scales(distances: F64, coverage: float, weights: NDArray[np.floating] | None) -> F64:
    """Return a positive scale (d,) of absolute distances (n, d): their quantile, or their mean.

    Boxes whose sides are in these units miss no output much more often than another.
    """
    weight = cell_weights(distances, weights)
    total = np.maximum(weight.sum(axis=0), np.finfo(float).tiny)
    mean = (weight * np.nan_to_num(distances)).sum(axis=0) / total
    scale = quantiles(distances, coverage, weights)
    scale = np.where(np.isfinite(scale) & (scale > 0), scale, mean)
    return np.asarray(np.where(scale > 0, scale, 1.0))


def scales_of_others(
    member: NDArray[np.uint8],
    distances: F64,
    coverage: float,
    weights: NDArray[np.floating] | None,
) -> F64:
    """Return the scales (n, d) that the outputs of each row have in the other folds."""
    scales = np.empty_like(distances)
    for k in np.unique(member):
        fold = member == k
        others = None if weights is None else weights[~fold]
        scales[fold] = own_scales(distances[~fold], coverage, others)
    return scales


def joint_scores(scores: F64, scales: F64, weights: NDArray[np.floating]) -> tuple[F64, F64]:
    """Return the largest score (n, 1) of each row, in units of its outputs, and its weight (n,).

    The weight is the mean of those of the observed cells.
    """
    largest = np.fmax.reduce(scores / scales, axis=1, keepdims=True)
    weight = cell_weights(scores, weights)
    count = np.maximum((weight > 0).sum(axis=1), 1)
    return largest, np.asarray(weight.sum(axis=1) / count)


def cv_plus(
    members: F64, scores: F64, member: NDArray[np.uint8], weight: F64, coverage: float
) -> F64:
    """Return the upper bound (n_rows,) of CV+ for one output.

    A calibration row with the score s, which member k has not seen, says ``members[k] + s`` about a
    new row, for predictions ``members`` (n_members, n_rows). The bound is the conformal quantile of
    what all say; for a lower bound change signs. The distribution function of these numbers is a
    sum over the sorted scores of members, and the bound is found by halving a range.
    """
    target = float(wanted(weight[:, None], coverage)[0])
    if weight.sum() < target:
        return np.full(members.shape[1], np.inf)
    sorted_scores, weight_below = [], []
    for k in range(len(members)):
        rows = np.flatnonzero((member == k) & (weight > 0))
        order = rows[np.argsort(scores[rows], kind="stable")]
        sorted_scores.append(scores[order])
        weight_below.append(np.append(0.0, weight[order].cumsum()))

    def weight_up_to(bound: F64) -> F64:
        total = np.zeros(members.shape[1])
        for centre, ordered, below in zip(members, sorted_scores, weight_below, strict=True):
            place = np.searchsorted(ordered, bound - centre, side="right")
            total += below[place]
        return total

    known = scores[weight > 0]
    low = members.min(axis=0) + known.min()
    high = members.max(axis=0) + known.max()
    margin = 1e-12 * (np.abs(low) + np.abs(high)) + np.finfo(float).tiny
    low, high = low - margin, high + margin
    for _ in range(_HALVINGS):
        middle = low + (high - low) / 2
        enough = weight_up_to(middle) >= target
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(high)


def class_set(probability: F64, least: float) -> Mask:
    """Return which classes (n, n_classes) are at least so probable, or the most probable one."""
    chosen = probability >= least
    chosen[np.arange(len(chosen)), probability.argmax(axis=1)] = True
    return np.asarray(chosen)


def recall_threshold(
    raw: F64, present: Mask, recall: float, weights: NDArray[np.floating] | None = None
) -> float:
    """Return the score from which on labels are to be predicted for a mean recall of new rows.

    This is conformal risk control: the risk of a row is the share of its present labels (n, d)
    whose raw predictions (n, d) are below the threshold. The bound on the mean risk of n rows and a
    new one, with the worst risk 1, is at most 1 − recall. Rows without present labels say nothing.
    It is −∞ if there are too few rows.
    """
    rows, columns = np.nonzero(present)
    weight = np.ones(len(raw)) if weights is None else weights.astype(np.float64)
    of_cell = weight[rows] if weight.ndim == 1 else weight[rows, columns]
    count = np.bincount(rows, minlength=len(raw))
    total = np.bincount(rows, of_cell, len(raw))
    of_row = total[count > 0] / count[count > 0]  # a row weighs as its labels do on average
    if not of_row.sum() > 0:
        return -np.inf
    share = of_cell / count[rows]  # what finding a label adds to the weighted sum of recalls
    order = np.argsort(-raw[rows, columns], kind="stable")
    found = share[order].cumsum()
    needed = recall * (of_row.sum() + of_row.mean()) * (1 - _SLACK)
    place = int((found < needed).sum())
    return float(raw[rows, columns][order[place]]) if place < len(order) else -np.inf
