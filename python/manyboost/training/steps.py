"""Steps ρ: how far to go along a new tree, for all outputs at once.

:class:`Steps` finds them for outputs that share a loss (a :class:`Block`): by Newton's formula, by
exact quantiles, or by a line search. The minimisers behind it follow.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from manyboost import _core
from manyboost.arrays import F32, F64, Mask
from manyboost.data.weights import Weights
from manyboost.training.directions import Direction, Line, Outputs
from manyboost.training.losses import LossFacts
from manyboost.training.objectives import BuiltinObjective, Objective, Sums

# A minimiser is looked for up to |ρ g| = SEARCH_LIMIT in any row; where there is none (pure
# leaves), the step stops at |ρ g| = STEP_LIMIT.
SEARCH_LIMIT = 80.0
STEP_LIMIT = 10.0

# Along smaller values of g, steps up to the limit would leave the range of single precision.
_SMALLEST = SEARCH_LIMIT / 1e37
_MAX_EVALUATIONS = 100
_TOLERANCE = 1e-6
# An error is trusted if the last two points are this near to each other, times this factor.
_NEAR, _SAFETY = 0.3, 1e4
# A curvature that is a smaller share of the steepest one is made of rounding errors.
_FLAT = 1e-10
# A function falls no further where its slope is this share of that at zero, and its curvature too.
_NOTHING = 1e-12


@dataclass(frozen=True)
class Block:
    """Neighbouring outputs that share a loss, and how their steps are found.

    ``outputs`` is a half-open range, one output, or None for all; ``step`` is ``"newton"`` or
    ``"line_search"``, ``l2`` the damping λ of Newton steps.
    """

    outputs: Outputs
    facts: LossFacts
    step: str
    l2: float

    @property
    def is_newton(self) -> bool:
        """Whether steps divide by a curvature."""
        return self.step == "newton" and self.facts.curved

    @property
    def is_searched(self) -> bool:
        """Whether steps are found by passes over the rows, which outputs can share."""
        closed = self.facts.quadratic or self.facts.piecewise_linear
        return self.step == "line_search" and not closed

    def columns(self, width: int) -> slice:
        """The columns of these outputs in an array of all ``width`` outputs."""
        first, last = self.outputs if isinstance(self.outputs, tuple) else (0, width)
        return slice(first, last)

    def of_output(self, output: int) -> Block | None:
        """Return the block of one output, None if it is not in this block."""
        if isinstance(self.outputs, tuple) and not self.outputs[0] <= output < self.outputs[1]:
            return None
        return replace(self, outputs=output)


class Steps:
    """Finds steps along directions, from the present raw predictions of a fit."""

    def __init__(self, objective: Objective, raw: F32, residuals: F32) -> None:
        self.objective, self.raw, self.residuals = objective, raw, residuals

    def along_leaves(
        self, block: Block, direction: Direction, g: F64, sums: Sums, weights: Weights
    ) -> F64:
        """Steps along scalar leaf values ``g`` (n_leaves, 1), from the leaf sums of the block."""
        residuals, curvatures = sums
        if not block.is_newton:
            start = derivatives_at_zero(direction, sums)
            return self.line_search(block, direction, weights, start)
        assert curvatures is not None
        slope = (residuals * g).sum(axis=0)
        curvature = (curvatures * g**2).sum(axis=0) + block.l2 * (g**2).mean()
        return divide(slope, curvature)

    def along_predictions(self, block: Block, direction: Direction, weights: Weights) -> F64:
        """Steps along the predictions of a weak model that is not a tree of leaves."""
        if not block.is_newton:
            return self.line_search(block, direction, weights)
        mean_square = (direction.values.astype(np.float64) ** 2).mean(axis=0)
        if block.facts.is_joint:
            slope, curvature = self._softmax_derivatives(block, direction, weights)
        else:
            line = Line(self.raw, weights, direction, block.outputs)
            slope, second = self.objective.derivatives(line, np.zeros(self._n_steps(block)))
            assert second is not None
            slope, curvature = -slope, second
        return divide(slope, curvature + block.l2 * mean_square)

    def line_search(
        self, block: Block, direction: Direction, weights: Weights, start: Sums | None = None
    ) -> F64:
        """Steps that minimise the loss of each output of a block along a direction.

        ``start`` are the derivatives at zero, if known; they are the whole answer for squared
        error. Outputs without a slope there are not searched for.
        """
        objective, facts, outputs = self.objective, block.facts, block.outputs
        line = Line(self.raw, weights, direction, outputs)
        if facts.is_joint:
            assert isinstance(objective, BuiltinObjective)
            return softmax_step(objective, line)
        if facts.piecewise_linear:
            assert isinstance(objective, BuiltinObjective)
            return objective.quantile_steps(line)
        evaluate = functools.partial(objective.derivatives, line)
        slope, curvature = start or evaluate(np.zeros(self._n_steps(block)))
        if facts.quadratic:
            assert curvature is not None
            return divide(-slope, curvature)
        reach = direction.reach(objective.pool)
        return minimise_along(evaluate, slope, curvature, reach, bounded=facts.bounded)

    def _n_steps(self, block: Block) -> int:
        columns = block.columns(self.objective.n_outputs)
        return 1 if isinstance(block.outputs, int) else columns.stop - columns.start

    def _softmax_derivatives(
        self, block: Block, direction: Direction, weights: Weights
    ) -> tuple[F64, F64]:
        """Slope and diagonal curvature of softmax along predictions, from the residuals."""
        r, outputs = self.residuals, block.outputs
        h = np.abs(r) * (1 - np.abs(r))
        pool, parts = self.objective.pool, (weights, None, direction.values)
        slope = _core.dots(pool, r, *parts, False, outputs)
        return slope, _core.dots(pool, h, *parts, True, outputs)


def derivatives_at_zero(direction: Direction, sums: Sums) -> Sums:
    """Derivatives (n_outputs,) along leaf values, from the sums of residuals and curvatures."""
    g, (residuals, curvatures) = direction.values.astype(np.float64), sums
    slope = -(residuals * g).sum(axis=0)
    return slope, None if curvatures is None else (curvatures * g**2).sum(axis=0)


def divide(a: F64, b: F64) -> F64:
    """Return a / b, 0 where b is 0."""
    return np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=b != 0)


def minimise_along(
    evaluate: Callable[[F64, Mask], Sums],
    slope: F64,
    curvature: F64 | None,
    reach: F64,
    *,
    bounded: bool,
) -> F64:
    """Minimise convex functions of one variable, one per output, by safeguarded Newton steps.

    ``evaluate`` takes steps (n_outputs,), and which outputs matter, to the derivatives there;
    ``slope`` and ``curvature`` are those at zero, ``reach`` (n_outputs or 1,) is the largest |g|.
    ``bounded`` functions may have no finite minimiser: the limits of this module apply. Steps are 0
    where a function is flat, or ``reach`` next to nothing.
    """
    sign = -np.sign(slope)
    active = (slope != 0) & (reach > _SMALLEST)
    limit = np.full_like(slope, np.inf)
    if bounded:
        limit = np.where(active, divide(np.full_like(slope, SEARCH_LIMIT), reach), 0.0)
    # Distances t ≥ 0 along the descent, and the derivative there, negative at first.
    here = _Point(np.zeros_like(slope), -np.abs(slope), curvature)
    low = before = here
    high = _Point(np.full_like(slope, np.inf), here.t, None)

    nothing = _NOTHING * np.abs(slope)
    for evaluation in range(_MAX_EVALUATIONS):
        t, derivative, curvature = here
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            t_next = _next_point(here, low, high, evaluation)
            is_close = np.abs(t_next - t) <= _TOLERANCE * np.abs(t)
            if bounded and evaluation > 0:
                t_next, is_sure = _refined(t_next, before, here, low, high)
                is_close |= is_sure & (t_next < limit)
            t_next = np.minimum(limit, t_next)
        done = ~active | is_close | (derivative == 0)
        # Still going down at the limit, or hardly down any more: there is no minimiser to find.
        endless = active & (t >= limit) & (derivative < 0)
        if bounded and curvature is not None:
            is_level = (-nothing <= derivative) & (derivative <= 0)
            endless |= active & is_level & (curvature <= nothing * reach)
        t = np.where(endless, limit * (STEP_LIMIT / SEARCH_LIMIT), np.where(active, t_next, t))
        active = active & ~done & ~endless
        if not active.any():
            break
        slope, curvature = evaluate(sign * t, active)
        before, here = here, _Point(t, sign * slope, curvature)
        falls = active & (here.derivative < 0)
        low, high = _chosen(falls, here, low), _chosen(active & ~falls, here, high)
    return sign * t


class _Point(NamedTuple):
    """Distances along lines, and the derivatives of the functions there."""

    t: F64
    derivative: F64
    curvature: F64 | None


def _chosen(mask: Mask, point: _Point, other: _Point) -> _Point:
    t, derivative = (np.where(mask, a, b) for a, b in zip(point[:2], other[:2], strict=True))
    return _Point(t, derivative, None)


def _next_point(here: _Point, low: _Point, high: _Point, evaluation: int) -> F64:
    """Newton's point if it lies in the bracket, else one that shrinks or extends the bracket."""
    t, derivative, curvature = here
    bracketed = np.isfinite(high.t)
    finite_high = np.where(bracketed, high.t, 0.0)
    middle = 0.5 * (low.t + finite_high)
    if evaluation % 2:
        # Every other time the secant, which lands close once the bracket is small.
        span = high.derivative - low.derivative
        secant = low.t - low.derivative * (finite_high - low.t) / span
        inside = (span > 0) & (secant > low.t) & (secant < finite_high)
        middle = np.where(inside, secant, middle)
    fallback = np.where(bracketed, middle, np.where(t > 0, 4 * t, 1.0))
    fallback = np.where(derivative == 0, t, fallback)
    if curvature is None:
        return fallback
    newton = t - derivative / curvature
    usable = (curvature > 0) & (newton > low.t) & (newton < high.t)
    return np.where(usable, newton, fallback)


def _refined(
    t_next: F64, before: _Point, here: _Point, low: _Point, high: _Point
) -> tuple[F64, Mask]:
    """Improve Newton's point by the evaluation before; tell where it is as good as exact.

    The distance is a smooth function of the derivative: the cubic that has its values and slopes at
    both points is read off at a derivative of zero. Its error is about that of Newton's point times
    the square of the distance between both points.
    """
    if before.curvature is None or here.curvature is None:
        return t_next, np.zeros(len(t_next), bool)
    span = here.derivative - before.derivative
    s = -before.derivative / span
    left = (1 - s) ** 2 * ((1 + 2 * s) * before.t + s * span / before.curvature)
    right = s**2 * ((3 - 2 * s) * here.t + (s - 1) * span / here.curvature)
    cubic = left + right
    usable = (before.curvature > 0) & (here.curvature > 0) & (cubic > low.t) & (cubic < high.t)
    apart = np.abs(here.t - before.t) / cubic
    error = np.abs(cubic - t_next) * apart**2
    is_sure = usable & (apart < _NEAR) & (error * _SAFETY <= _TOLERANCE * cubic)
    return np.where(usable, cubic, t_next), is_sure


def softmax_step(objective: BuiltinObjective, line: Line, limit: float = STEP_LIMIT) -> F64:
    """Steps ρ (n_classes,) that minimise the softmax loss jointly, by Newton's method.

    Each Newton system is solved by conjugate gradients from zero, which gives the shortest solution
    where classes are tied; a step is halved until the loss does not rise. It ends where |ρ g| of a
    class reaches the limit in some row; then the others go on without this class.
    """
    outputs = line.outputs if isinstance(line.outputs, tuple) else (0, objective.n_outputs)
    k, reach = outputs[1] - outputs[0], line.direction.reach(objective.pool)
    # Steps t are measured by how far they carry the row that moves most.
    unit = divide(np.ones(k), reach)

    def along(t: F64, v: F64) -> tuple[float, F64, F64]:
        loss, gradient, curved = objective.softmax_along(line, unit * t, unit * v)
        return loss, unit * gradient, unit * curved

    t = zero = np.zeros(k)
    steepest = 0.0
    loss, gradient, _ = along(t, zero)
    for _ in range(_MAX_EVALUATIONS):
        newton, steepest = _newton_within(along, t, gradient, steepest, limit)
        if not newton.any():
            break
        # Up to the first limit, and no further.
        room = divide(np.copysign(limit, newton) - t, newton)
        share = min(1.0, room[newton != 0].min())
        for halvings in range(40):
            candidate = t + share * 0.5**halvings * newton
            is_there = np.abs(candidate) >= limit * (1 - 1e-12)
            candidate = np.where(is_there, np.copysign(limit, candidate), candidate)
            candidate_loss, candidate_gradient, _ = along(candidate, zero)
            if candidate_loss <= loss:
                break
        else:
            break
        moved = np.abs(candidate - t).max()
        t, loss, gradient = candidate, candidate_loss, candidate_gradient
        if share == 1.0 and moved <= _TOLERANCE * np.abs(t).max():
            break
    return unit * t


def _newton_within(
    along: Callable[[F64, F64], tuple[float, F64, F64]],
    t: F64,
    gradient: F64,
    steepest: float,
    limit: float,
) -> tuple[F64, float]:
    """Return Newton's step from ``t``, and the steepest curvature so far.

    Classes at their limit, which a step would push further, sit out.
    """
    at_limit = np.abs(t) >= limit
    free = ~(at_limit & (t * gradient < 0))
    while True:
        b = np.where(free, -gradient, 0.0)
        if not b.any():
            return b, steepest

        def curve(v: F64, free: Mask = free) -> F64:
            return np.where(free, along(t, v)[2], 0.0)

        newton, steepest = _conjugate_gradients(curve, b, len(t), steepest)
        leaving = free & at_limit & (t * newton > 0)
        if not leaving.any():
            return newton, steepest
        free &= ~leaving


def _conjugate_gradients(
    product: Callable[[F64], F64], b: F64, size: int, steepest: float
) -> tuple[F64, float]:
    """Solve H x = b for a positive semi-definite H, given its products with vectors.

    Return the steepest curvature as well, of those met here and the one met before: in flat
    directions, in which b is a rounding error, x stays zero.
    """
    x, residual, p = np.zeros_like(b), b, b
    squared = start = _dot(residual, residual)
    for _ in range(size + 5):
        hp = product(p)
        curvature, length = _dot(p, hp), _dot(p, p)
        if length == 0 or curvature <= _FLAT * steepest * length:
            break
        steepest = max(steepest, curvature / length)
        alpha = squared / curvature
        x = x + alpha * p
        residual = residual - alpha * hp
        previous, squared = squared, _dot(residual, residual)
        if squared <= 1e-16 * start:
            break
        p = residual + (squared / previous) * p
    return x if x.any() else b, steepest


def _dot(a: F64, b: F64) -> float:
    """Inner product, correctly rounded: the same on every machine."""
    return math.fsum((a * b).tolist())
