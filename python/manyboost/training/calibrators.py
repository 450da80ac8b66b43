"""Calibrators: from raw predictions to the shares of rows that had the label out of fold.

There are two forms, Platt's sigmoid and isotonic regression. Labels with too few rows of either
kind share one curve; if they have too few together, they keep the probabilities they have without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from manyboost.arrays import F64, Mask
from manyboost.training.losses import LOGISTIC

#: Rows with a label, and rows without it, that a curve needs.
LEAST_ROWS = 10
#: Newton steps of a sigmoid at most, and halvings of one.
_STEPS, _HALVINGS = 50, 30
#: A gradient, by weight, at which a sigmoid is found.
_SMALL = 1e-9


@dataclass(frozen=True, eq=False)
class Sigmoids:
    """The probability of a label is 1 / (1 + exp(−slope · raw − intercept)); NaN: as it is."""

    slope: F64  # (n_outputs,), not negative
    intercept: F64

    @classmethod
    def fitted(cls, raw: F64, present: Mask, weight: F64) -> Sigmoids:
        """Fit to raw predictions (n, d), labels and weights of the cells, zero where missing."""
        enough = _have_both(present, weight)
        slope, intercept = np.full((2, raw.shape[1]), np.nan)
        target, weight = _targets(present, weight)
        for j in np.flatnonzero(enough):
            slope[j], intercept[j] = _sigmoid(raw[:, j], target[:, j], weight[:, j])
        # Rounded: the last digits of exponentials differ between machines.
        single = (each.astype(np.float32).astype(np.float64) for each in (slope, intercept))
        return cls(*single)

    def probabilities(self, raw: F64, given: F64, outputs: list[int] | None) -> F64:
        """Return probabilities for raw predictions (n, outputs), or the ``given`` ones."""
        places = slice(None) if outputs is None else outputs
        slope, intercept = self.slope[places], self.intercept[places]
        return np.where(np.isnan(slope), given, LOGISTIC.inverse(slope * raw + intercept))

    @property
    def lacking(self) -> Mask:
        """Labels without a curve."""
        return np.isnan(self.slope)

    def shared(self, curve: Sigmoids) -> Sigmoids:
        """Return the curves, with another one for the labels that lack one."""
        pairs = (self.slope, curve.slope), (self.intercept, curve.intercept)
        return Sigmoids(*(np.where(self.lacking, theirs, own) for own, theirs in pairs))

    @staticmethod
    def joined(parts: list[Sigmoids]) -> Sigmoids:
        """Return the calibrators of neighbouring blocks of labels as one."""
        slopes, intercepts = [p.slope for p in parts], [p.intercept for p in parts]
        return Sigmoids(np.concatenate(slopes), np.concatenate(intercepts))


@dataclass(frozen=True, eq=False)
class Isotonics:
    """The probability of a label lies on lines between knots, and is constant beyond them."""

    counts: NDArray[np.intp]  # (n_outputs,), of knots; 0: as it is
    knots: F64  # raw predictions, ascending for each label
    values: F64  # probabilities, not descending

    @classmethod
    def fitted(cls, raw: F64, present: Mask, weight: F64) -> Isotonics:
        """Fit to raw predictions (n, d), labels and weights of the cells, zero where missing."""
        from sklearn.isotonic import IsotonicRegression

        enough = _have_both(present, weight)
        target, weight = _targets(present, weight)
        counts = np.zeros(raw.shape[1], np.intp)
        knots, values = [np.empty(0)], [np.empty(0)]
        for j in np.flatnonzero(enough):
            there = weight[:, j] > 0
            curve = IsotonicRegression()
            curve.fit(raw[there, j], target[there, j], weight[there, j])
            counts[j] = len(curve.X_thresholds_)
            knots.append(curve.X_thresholds_)
            values.append(curve.y_thresholds_)
        return cls(counts, np.concatenate(knots), np.concatenate(values))

    def probabilities(self, raw: F64, given: F64, outputs: list[int] | None) -> F64:
        """Return probabilities for raw predictions (n, outputs), or the ``given`` ones."""
        result, ends = given.copy(), self.counts.cumsum()
        places = range(len(self.counts)) if outputs is None else outputs
        for column, j in enumerate(places):
            if self.counts[j]:
                part = slice(ends[j] - self.counts[j], ends[j])
                result[:, column] = _between(raw[:, column], self.knots[part], self.values[part])
        return result

    @property
    def lacking(self) -> Mask:
        """Labels without a curve."""
        return np.asarray(self.counts == 0)

    def shared(self, curve: Isotonics) -> Isotonics:
        """Return the curves, with another one for the labels that lack one."""
        parts, end = [], 0
        for j, count in enumerate(self.counts.tolist()):
            part, end = slice(end, end + count), end + count
            own = Isotonics(self.counts[j : j + 1], self.knots[part], self.values[part])
            parts.append(own if count else curve)
        return Isotonics.joined(parts)

    @staticmethod
    def joined(parts: list[Isotonics]) -> Isotonics:
        """Return the calibrators of neighbouring blocks of labels as one."""
        arrays = ((p.counts, p.knots, p.values) for p in parts)
        return Isotonics(*map(np.concatenate, zip(*arrays, strict=True)))


def _between(x: F64, knots: F64, values: F64) -> F64:
    """Return np.interp, which fuses multiplications with additions on some machines."""
    place = np.searchsorted(knots, x, side="right") - 1
    low, high = np.maximum(place, 0), np.minimum(place + 1, len(knots) - 1)
    width = np.where(high > low, knots[high] - knots[low], 1.0)
    slope = (values[high] - values[low]) / width
    return np.where(place < 0, values[0], slope * (x - knots[low]) + values[low])


CALIBRATORS: dict[str, type[Sigmoids] | type[Isotonics]] = {
    "sigmoid": Sigmoids,
    "isotonic": Isotonics,
}


def fit_calibrator(
    kind: str, raw: F64, labels: NDArray[Any], weight: NDArray[Any] | None, block_cells: int
) -> Sigmoids | Isotonics:
    """Return the calibrator of out-of-fold raw predictions (n, d) of encoded labels.

    ``weight`` is that of rows or of cells. Some labels are fitted at a time, to save memory.
    """
    made: Any = CALIBRATORS[kind]
    size = max(1, block_cells // len(raw))

    def of(block: Any) -> tuple[F64, Mask, F64]:
        Y = labels[:, block]
        cells = np.ones(Y.shape)
        if weight is not None:
            cells[:] = weight[:, None] if weight.ndim == 1 else weight[:, block]
        cells[(Y != 0) & (Y != 1)] = 0
        return raw[:, block], Y == 1, cells

    starts = range(0, raw.shape[1], size)
    found: Sigmoids | Isotonics = made.joined(
        [made.fitted(*of(slice(start, start + size))) for start in starts]
    )
    if not found.lacking.any():
        return found
    some = np.flatnonzero(found.lacking)[:size]  # of many, enough for one curve
    curve = made.fitted(*(each.reshape(-1, 1) for each in of(some)))
    shared: Sigmoids | Isotonics = found.shared(curve)
    return shared


def _have_both(present: Mask, weight: F64) -> Mask:
    """Tell which labels have enough rows of both kinds."""
    with_label, without = ((present == each) & (weight > 0) for each in (True, False))
    return np.asarray(np.minimum(with_label.sum(axis=0), without.sum(axis=0)) >= LEAST_ROWS)


def _targets(present: Mask, weight: F64) -> tuple[F64, F64]:
    """Return Platt's targets, a little inside of 0 and 1, and weights of mean 1.

    A label that is there in all of n rows is so with the probability (n + 1) / (n + 2): certainty
    about new rows would cost an infinite log loss.
    """
    count = (weight > 0).sum(axis=0)
    total = weight.sum(axis=0)
    weight = np.divide(weight * count, total, out=np.zeros_like(weight), where=total > 0)
    n_with = np.where(present, weight, 0).sum(axis=0)
    n_without = np.where(present, 0, weight).sum(axis=0)
    return np.where(present, (n_with + 1) / (n_with + 2), 1 / (n_without + 2)), weight


def _sigmoid(raw: F64, target: F64, weight: F64) -> tuple[float, float]:
    """Return slope and intercept of the sigmoid that fits best, by damped Newton steps."""
    total = weight.sum()
    centre = (weight * raw).sum() / total
    scale = np.sqrt((weight * (raw - centre) ** 2).sum() / total)
    mean = (weight * target).sum() / total
    flat = 0.0, float(logit(mean))
    if not scale > 0:
        return flat
    x = (raw - centre) / scale

    def loss(a: float, b: float) -> float:
        z = a * x + b
        return float((weight * (np.logaddexp(0, z) - target * z)).sum())

    a, b = flat
    now = loss(a, b)
    for _ in range(_STEPS):
        p = expit(a * x + b)
        residual, curvature = weight * (target - p), weight * p * (1 - p)
        g, h = residual.sum(), (residual * x).sum()
        if abs(g) + abs(h) <= _SMALL * total:
            break
        matrix = np.array([[curvature.sum(), (curvature * x).sum()], [0, (curvature * x**2).sum()]])
        matrix[1, 0] = matrix[0, 1]
        step_b, step_a = np.linalg.solve(matrix + 1e-12 * total * np.eye(2), [g, h])
        for k in range(_HALVINGS):
            part = 0.5**k
            then = loss(a + part * step_a, b + part * step_b)
            if then < now:
                break
        else:
            break
        a, b, now = a + part * step_a, b + part * step_b, then
    if a <= 0:  # a higher raw prediction does not make the label less likely
        return flat
    slope = a / scale
    return float(slope), float(b - slope * centre)
