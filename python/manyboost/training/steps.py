"""Line searches: how far to go along a new tree, for all outputs at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from manyboost import _core
    from manyboost.data.weights import Weights
    from manyboost.training.objectives import BuiltinObjective

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

# A minimiser is looked for up to |ρ g| = SEARCH_LIMIT in any row; where there is none (pure
# leaves), the step stops at |ρ g| = STEP_LIMIT.
SEARCH_LIMIT = 80.0
STEP_LIMIT = 10.0

_MAX_EVALUATIONS = 100
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Direction:
    """Where a weak learner would move the raw predictions.

    ``values`` has a row for each leaf, or for each training row if ``leaf_of_row`` is None, and
    one column for each output, or a single one that serves all.
    """

    leaf_of_row: NDArray[np.uint32] | None
    values: F32

    def of_rows(self) -> F32:
        """Return the direction of each row (n_rows, n_outputs or 1)."""
        return self.values if self.leaf_of_row is None else self.values[self.leaf_of_row]

    def reach(self, pool: _core.Pool) -> F64:
        """Largest |g| of each column, on all ranks."""
        largest: F64 = np.abs(self.values).max(axis=0, initial=0).astype(np.float64)
        # (Leaf values are the same everywhere.)
        return largest if self.leaf_of_row is not None else pool.largest(largest)


def minimise_along(
    evaluate: Callable[[F64, NDArray[np.bool_]], tuple[F64, F64 | None]],
    slope: F64,
    curvature: F64 | None,
    reach: F64,
    *,
    bounded: bool,
) -> F64:
    """Minimise convex functions of one variable, one per output, by safeguarded Newton steps.

    Parameters
    ----------
    evaluate : callable
        (n_outputs,) steps, and which outputs matter, to first and second derivatives there (the
        second may be None).
    slope, curvature : (n_outputs,)
        The derivatives at zero.
    reach : (n_outputs,)
        Largest |g| of each output.
    bounded : bool
        Whether there may be no finite minimiser; the limits of this module then apply.

    Returns
    -------
    (n_outputs,)
        Steps; 0 where the function is flat.
    """
    sign = -np.sign(slope)
    active = (slope != 0) & (reach > 0)
    limit = np.where(active, SEARCH_LIMIT / np.where(reach > 0, reach, 1.0), 0.0)
    if not bounded:
        limit = np.full_like(limit, np.inf)
    low = np.zeros_like(slope)
    high = np.full_like(slope, np.inf)
    # Distances t ≥ 0 along the descent, and the derivative there, negative at first.
    t = np.zeros_like(slope)
    derivative = -np.abs(slope)
    low_value, high_value = derivative.copy(), np.zeros_like(slope)

    for evaluation in range(_MAX_EVALUATIONS):
        t_next = _next_point(t, derivative, curvature, low, high, low_value, high_value, evaluation)
        t_next = np.minimum(t_next, limit)
        done = ~active | (np.abs(t_next - t) <= _TOLERANCE * np.abs(t)) | (derivative == 0)
        # At the limit and still going down: there is no minimiser to find.
        endless = active & (t >= limit) & (derivative < 0)
        t = np.where(endless, limit * (STEP_LIMIT / SEARCH_LIMIT), np.where(active, t_next, t))
        active = active & ~done & ~endless
        if not active.any():
            break
        slope, curvature = evaluate(sign * t, active)
        derivative = sign * slope
        falls = derivative < 0
        low = np.where(active & falls, t, low)
        low_value = np.where(active & falls, derivative, low_value)
        high = np.where(active & ~falls, t, high)
        high_value = np.where(active & ~falls, derivative, high_value)
    return sign * t


def _next_point(
    t: F64,
    derivative: F64,
    curvature: F64 | None,
    low: F64,
    high: F64,
    low_value: F64,
    high_value: F64,
    evaluation: int,
) -> F64:
    """Newton's point if it lies in the bracket, else one that shrinks or extends the bracket."""
    bracketed = np.isfinite(high)
    finite_high = np.where(bracketed, high, 0.0)
    middle = 0.5 * (low + finite_high)
    if evaluation % 2:
        # Every other time the secant, which lands close once the bracket is small.
        span = high_value - low_value
        with np.errstate(invalid="ignore", divide="ignore"):
            secant = low - low_value * (finite_high - low) / span
        inside = (span > 0) & (secant > low) & (secant < finite_high)
        middle = np.where(inside, secant, middle)
    fallback = np.where(bracketed, middle, np.where(t > 0, 4 * t, 1.0))
    if curvature is None:
        return fallback
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        newton = t - derivative / curvature
    usable = (curvature > 0) & (newton > low) & (newton < high)
    return np.where(usable, newton, np.where(derivative == 0, t, fallback))


def softmax_step(
    objective: BuiltinObjective,
    raw: F32,
    weights: Weights,
    direction: Direction,
) -> F64:
    """Steps ρ (n_classes,) that minimise the softmax loss jointly, by Newton's method.

    Each Newton system is solved by conjugate gradients from zero, which gives the shortest solution
    where classes are tied; a step is halved until the loss does not rise, and |ρ g| stays within
    :data:`STEP_LIMIT` in every row.
    """
    k = objective.n_outputs
    reach = np.broadcast_to(direction.reach(objective.pool), k)
    limit = np.where(reach > 0, STEP_LIMIT / np.where(reach > 0, reach, 1.0), 0.0)
    zero = np.zeros(k)

    def along(rho: F64, v: F64) -> tuple[float, F64, F64]:
        return objective.softmax_along(raw, weights, direction, rho, v)

    rho = zero
    loss, gradient, _ = along(rho, zero)
    for _ in range(_MAX_EVALUATIONS):
        # Classes held at their limit, which the loss would push further, sit out.
        free = (reach > 0) & ~((np.abs(rho) >= limit) & (rho * gradient < 0))
        gradient = np.where(free, gradient, 0.0)
        if not gradient.any():
            break

        def curve(v: F64, rho: F64 = rho, free: NDArray[np.bool_] = free) -> F64:
            return np.where(free, along(rho, v)[2], 0.0)

        newton = _conjugate_gradients(curve, -gradient, k)
        for halvings in range(40):
            candidate = np.clip(rho + newton * 0.5**halvings, -limit, limit)
            candidate_loss, candidate_gradient, _ = along(candidate, zero)
            if candidate_loss <= loss:
                break
        else:
            break
        moved = np.abs(candidate - rho).max()
        rho, loss, gradient = candidate, candidate_loss, candidate_gradient
        if moved <= _TOLERANCE * np.abs(rho).max():
            break
    return rho


def _conjugate_gradients(product: Callable[[F64], F64], b: F64, size: int) -> F64:
    """Solve H x = b for a positive semi-definite H, given its products with vectors."""
    x = np.zeros_like(b)
    residual = b.copy()
    p = residual.copy()
    squared = start = _dot(residual, residual)
    for _ in range(size + 5):
        hp = product(p)
        curvature = _dot(p, hp)
        if curvature <= 0:
            break
        alpha = squared / curvature
        x = x + alpha * p
        residual = residual - alpha * hp
        previous, squared = squared, _dot(residual, residual)
        if squared <= 1e-16 * start:
            break
        p = residual + (squared / previous) * p
    return x if x.any() else b


def _dot(a: F64, b: F64) -> float:
    """Inner product, correctly rounded: the same on every machine."""
    return math.fsum((a * b).tolist())
