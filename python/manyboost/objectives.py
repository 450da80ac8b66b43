"""A loss bound to targets and weights: all that a round asks of it.

Built-in losses answer by kernels of the core (:class:`BuiltinObjective`, :class:`MixedObjective`
if outputs have different ones, and :class:`SquaredResiduals` where residuals are all the state that
is needed), losses written in Python through their methods (:class:`CustomObjective`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from manyboost import _core
from manyboost.steps import Direction

if TYPE_CHECKING:
    from manyboost.losses import FittedLoss, MixedLoss

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

# What a tree adds to raw predictions: the leaf of each row, leaf values (n_leaves, n_outputs or 1),
# and steps (n_outputs,) that multiply a single column of values.
Update: TypeAlias = tuple[NDArray[np.uint32], F32, F32 | None]

# One output, those from a first to before a last, or (None) all.
Outputs: TypeAlias = int | tuple[int, int] | None


@dataclass(frozen=True)
class Facts:
    """What training must know about a built-in loss."""

    kernel: str
    centred: bool
    """Targets are kept relative to the baseline."""
    curved: bool = True
    """The second derivative is worth a Newton step."""
    regularised: bool = False
    """λ is 1 by default, since curvature can vanish."""
    bounded: bool = False
    """A line search may have no finite minimiser."""
    quadratic: bool = False
    """The second derivative is 1 everywhere."""


class Objective(ABC):
    """A loss bound to targets and weights: all that a round asks of it.

    Residuals are negative gradients (n_rows, n_outputs). ``raw`` is the trees' part of the raw
    predictions, on top of the offset of each row, if there is one. Methods with an ``output``
    argument answer for that output alone, or for neighbours (first, one past the last).
    """

    facts: Facts
    n_outputs: int
    weight: F32 | None
    total_weight: float
    start: F32 | None = None
    """Offsets (n_rows, n_outputs) that raw predictions start from; None: zero."""

    @abstractmethod
    def advance(
        self,
        raw: F32,
        out: F32,
        update: Update | None = None,
        phi: F32 | None = None,
        z: F32 | None = None,
    ) -> float:
        """Update raw predictions, take residuals into ``out`` and project them by φ into ``z``.

        Returns the mean loss per row and output.
        """

    @abstractmethod
    def losses(self, raw: F32) -> tuple[float, F64 | None]:
        """Mean loss per row and output, and that of each output (n_outputs,) if it has its own."""

    def mean_loss(self, raw: F32) -> float:
        """Mean loss per row and output."""
        return self.losses(raw)[0]

    @abstractmethod
    def leaf_sums(
        self,
        leaf_of_row: NDArray[np.uint32],
        leaf_weights: F64,
        residuals: F32,
        weight: F32 | None,
        output: Outputs = None,
    ) -> tuple[F64, F64 | None]:
        """Σ w r and Σ w h over the rows of each leaf, (n_leaves, n_outputs).

        ``leaf_weights`` (n_leaves,) are Σ w. Curvatures that all outputs share have one column.
        """

    @abstractmethod
    def derivatives(
        self,
        raw: F32,
        weight: F32 | None,
        direction: Direction,
        rho: F64,
        output: Outputs = None,
        active: NDArray[np.bool_] | None = None,
    ) -> tuple[F64, F64 | None]:
        """First and second derivative of each output's loss along a direction, at ``rho``.

        Only those of the ``active`` outputs matter to the caller.
        """

    @abstractmethod
    def quantile_steps(
        self, raw: F32, weight: F32 | None, direction: Direction, output: Outputs = None
    ) -> F64:
        """Exact steps along a direction, for the absolute and quantile losses."""

    @abstractmethod
    def leaf_quantiles(
        self,
        leaf_of_row: NDArray[np.uint32],
        n_leaves: int,
        raw: F32,
        weight: F32 | None,
        output: Outputs = None,
    ) -> F64:
        """Best leaf values for the absolute and quantile losses, (n_leaves, n_outputs)."""

    n_rows: int

    def blank_state(self) -> F32:
        """State before any round, to which trees add; :meth:`settled` makes it ready for rounds."""
        if self.start is not None:
            return self.start.copy()
        return np.zeros((self.n_rows, self.n_outputs), np.float32)

    def settled(self, state: F32) -> tuple[F32, F32]:
        """Raw predictions, and where their residuals go."""
        return state, np.empty_like(state)

    def baseline_residuals(self) -> F32:
        """Residuals before any round."""
        raw, residuals = self.settled(self.blank_state())
        self.advance(raw, residuals)
        return residuals

    @property
    def is_softmax(self) -> bool:
        """Whether the outputs of a row share one loss."""
        return self.facts.kernel == "softmax"


class BuiltinObjective(Objective):
    """A built-in loss bound to data; everything happens in the core."""

    def __init__(
        self,
        fitted: FittedLoss,
        y: NDArray[Any],
        weight: F32 | None,
        pool: _core.Pool,
    ) -> None:
        self.facts = fitted.facts
        self.pool = pool
        self.y = y
        self.weight = weight
        self.n_rows, self.n_outputs = len(y), len(fitted.baseline)
        self.kernel = fitted.kernel()
        # In double precision: a level of 0.2 is the fourth of 20 rows, not the fifth.
        self.levels = fitted.param
        self.total_weight = float(len(y) if weight is None else weight.sum(dtype=np.float64))
        # Softmax has one loss a row; the others one a cell.
        self.cells = self.total_weight * (1 if self.is_softmax else self.n_outputs)
        heaviest = 1.0 if weight is None else float(weight.max(initial=0))
        largest = float(y.max(initial=0)) if self.facts.kernel == "poisson" else 0.0
        self.heaviest, self.largest = heaviest, largest
        self.max_residual = np.zeros(self.n_outputs)
        # Curvature is at most 1, but for Poisson (y - r) and exponential (half the residual).
        self.max_curvature = np.full(self.n_outputs, heaviest)

    def advance(
        self,
        raw: F32,
        out: F32,
        update: Update | None = None,
        phi: F32 | None = None,
        z: F32 | None = None,
    ) -> float:
        leaf_of_row, values, steps = update or (None, None, None)
        loss, largest = self.kernel.advance(
            self.pool,
            self.y,
            raw,
            self.weight,
            out,
            leaf_of_row=leaf_of_row,
            values=values,
            steps=steps,
            phi=phi,
            z=z,
        )
        self.max_residual = largest.astype(np.float64)
        if self.facts.kernel == "poisson":
            self.max_curvature = self.largest * self.heaviest + self.max_residual
        elif self.facts.kernel == "exponential":
            self.max_curvature = self.max_residual
        return loss / self.cells

    def losses(self, raw: F32) -> tuple[float, F64 | None]:
        if self.is_softmax:
            return self.kernel.loss_sum(self.pool, self.y, raw, self.weight) / self.cells, None
        sums = self.kernel.output_losses(self.pool, self.y, raw, self.weight)
        return _mean(sums / self.total_weight)

    def facts_of(self, output: Outputs) -> Facts:
        """What is true of the loss of an output, or of outputs that share one."""
        return self.facts

    def leaf_sums(
        self,
        leaf_of_row: NDArray[np.uint32],
        leaf_weights: F64,
        residuals: F32,
        weight: F32 | None,
        output: Outputs = None,
    ) -> tuple[F64, F64 | None]:
        if self.facts_of(output).quadratic:
            sums, _ = _core.leaf_sums(
                self.pool,
                leaf_of_row,
                len(leaf_weights),
                residuals,
                None,
                weight,
                self.max_residual,
                self.max_curvature,
                output,
            )
            return sums, leaf_weights[:, None]
        return self.kernel.leaf_sums(
            self.pool,
            leaf_of_row,
            len(leaf_weights),
            self.y,
            residuals,
            weight,
            self.max_residual,
            self.max_curvature,
            output,
        )

    def derivatives(
        self,
        raw: F32,
        weight: F32 | None,
        direction: Direction,
        rho: F64,
        output: Outputs = None,
        active: NDArray[np.bool_] | None = None,
    ) -> tuple[F64, F64 | None]:
        return self.kernel.derivatives(
            self.pool,
            self.y,
            raw,
            weight,
            direction.leaf_of_row,
            direction.values,
            rho,
            output,
            active,
        )

    def quantile_steps(
        self, raw: F32, weight: F32 | None, direction: Direction, output: Outputs = None
    ) -> F64:
        return _core.quantile_steps(
            self.pool,
            self.y,
            raw,
            self.levels,
            weight,
            direction.leaf_of_row,
            direction.values,
            output,
        )

    def leaf_quantiles(
        self,
        leaf_of_row: NDArray[np.uint32],
        n_leaves: int,
        raw: F32,
        weight: F32 | None,
        output: Outputs = None,
    ) -> F64:
        return _core.leaf_quantiles(
            self.pool, leaf_of_row, n_leaves, self.y, raw, self.levels, weight, output
        )

    def softmax_along(
        self, raw: F32, weight: F32 | None, direction: Direction, rho: F64, v: F64
    ) -> tuple[float, F64, F64]:
        """Loss, gradient and Hessian times ``v`` of softmax along a direction, at ``rho``."""
        return self.kernel.softmax_along(
            self.pool,
            self.y,
            raw,
            weight,
            direction.leaf_of_row,
            direction.values,
            rho,
            v,
        )


class SquaredResiduals(BuiltinObjective):
    """Squared error whose residuals are all the state: half the memory traffic of a round.

    ``raw`` and ``out`` are one array, the residuals y - f; it takes the place of the targets.
    """

    def blank_state(self) -> F32:
        # Trees add to f - y; rounding is symmetric, so this is what training subtracted.
        return np.asarray(np.negative(self.y, out=self.y))

    def settled(self, state: F32) -> tuple[F32, F32]:
        self.y = np.negative(state, out=state)
        return state, state

    def baseline_residuals(self) -> F32:
        return np.asarray(self.y)

    def advance(
        self,
        raw: F32,
        out: F32,
        update: Update | None = None,
        phi: F32 | None = None,
        z: F32 | None = None,
    ) -> float:
        leaf_of_row, values, steps = update or (None, None, None)
        loss, largest = _core.advance_residuals(
            self.pool,
            out,
            self.weight,
            leaf_of_row=leaf_of_row,
            values=values,
            steps=steps,
            phi=phi,
            z=z,
        )
        self.max_residual = largest.astype(np.float64)
        return loss / self.cells

    def losses(self, raw: F32) -> tuple[float, F64 | None]:
        squares = _core.column_sums(self.pool, raw, self.weight, True)
        return _mean(0.5 * squares / self.total_weight)


class MixedObjective(BuiltinObjective):
    """Built-in losses, one for each output; neighbours of one loss are a block."""

    def __init__(
        self, fitted: MixedLoss, y: NDArray[Any], weight: F32 | None, pool: _core.Pool
    ) -> None:
        super().__init__(fitted, y, weight, pool)
        self.blocks = fitted.blocks
        kernels = [facts.kernel for facts, (start, stop) in self.blocks for _ in range(start, stop)]
        self.is_poisson = np.array([kernel == "poisson" for kernel in kernels])
        self.is_exponential = np.array([kernel == "exponential" for kernel in kernels])
        self.largest_of_output = y.max(axis=0, initial=0).astype(np.float64)

    def facts_of(self, output: Outputs) -> Facts:
        first = output[0] if isinstance(output, tuple) else output
        assert first is not None
        return next(facts for facts, (start, stop) in self.blocks if start <= first < stop)

    def advance(
        self,
        raw: F32,
        out: F32,
        update: Update | None = None,
        phi: F32 | None = None,
        z: F32 | None = None,
    ) -> float:
        loss = super().advance(raw, out, update, phi, z)
        largest, residual = self.largest_of_output, self.max_residual
        bound = np.where(self.is_poisson, largest * self.heaviest + residual, self.heaviest)
        self.max_curvature = np.where(self.is_exponential, residual, bound)
        return loss


class CustomObjective(Objective):
    """A loss written in Python bound to data."""

    def __init__(self, fitted: FittedLoss, y: F64, weight: F32 | None, pool: _core.Pool) -> None:
        assert fitted.custom is not None
        self.loss = fitted.custom
        self.facts = fitted.facts
        self.pool = pool
        self.baseline = fitted.baseline
        self.y = y
        self.weight = weight
        self.n_rows, self.n_outputs = len(y), len(fitted.baseline)
        self.total_weight = float(len(y) if weight is None else weight.sum(dtype=np.float64))
        self.curvatures: F32 | None = None
        self.max_residual = np.zeros(self.n_outputs)
        self.max_curvature = np.zeros(self.n_outputs)

    def _call(self, method: str, raw: F64) -> F64 | None:
        result = getattr(self.loss, method)(self.y, raw)
        if result is None and method == "hessian":
            return None
        array = np.asarray(result, dtype=np.float64)
        name = f"{type(self.loss).__name__}.{method}"
        shapes = [raw.shape] + ([raw.shape[:1]] if method == "value" else [])
        if array.shape not in shapes:
            raise ValueError(
                f"{name} returned an array of shape {array.shape}; it must return "
                f"{' or '.join(map(str, shapes))}."
            )
        with np.errstate(over="ignore"):
            finite = np.isfinite(array if method == "value" else array.astype(np.float32))
        if not finite.all():
            row = int(np.argmin(finite.reshape(len(array), -1).all(axis=1)))
            raise ValueError(
                f"{name} returned NaN or infinity (first in row {row}); it must return finite "
                "numbers."
            )
        return array

    def _heaviest(self, cells: F32) -> F64:
        largest = np.abs(cells if self.weight is None else cells * self.weight[:, None])
        return np.asarray(largest.max(axis=0, initial=0), dtype=np.float64)

    def advance(
        self,
        raw: F32,
        out: F32,
        update: Update | None = None,
        phi: F32 | None = None,
        z: F32 | None = None,
    ) -> float:
        if update is not None:
            leaf_of_row, values, steps = update
            _core.add_leaves(self.pool, leaf_of_row, values, steps, raw)
        f = self.baseline + raw
        gradient = self._call("gradient", f)
        assert gradient is not None
        np.negative(gradient, out=out, casting="same_kind")
        self.max_residual = self._heaviest(out)
        if self.facts.curved:
            hessian = self._call("hessian", f)
            assert hessian is not None
            self.curvatures = np.ascontiguousarray(hessian, dtype=np.float32)
            self.max_curvature = self._heaviest(self.curvatures)
        if phi is not None and z is not None:
            _core.project(self.pool, out, phi, z)
        return self.mean_loss(raw)

    def losses(self, raw: F32) -> tuple[float, F64 | None]:
        value = self._call("value", self.baseline + raw)
        assert value is not None
        if value.ndim == 1:
            total = _core.column_sums(self.pool, value[:, None], self.weight)[0]
            return float(total) / (self.total_weight * self.n_outputs), None
        sums = _core.column_sums(self.pool, np.ascontiguousarray(value), self.weight)
        return _mean(sums / self.total_weight)

    def leaf_sums(
        self,
        leaf_of_row: NDArray[np.uint32],
        leaf_weights: F64,
        residuals: F32,
        weight: F32 | None,
        output: Outputs = None,
    ) -> tuple[F64, F64 | None]:
        return _core.leaf_sums(
            self.pool,
            leaf_of_row,
            len(leaf_weights),
            residuals,
            self.curvatures,
            weight,
            self.max_residual,
            self.max_curvature,
            output,
        )

    def derivatives(
        self,
        raw: F32,
        weight: F32 | None,
        direction: Direction,
        rho: F64,
        output: Outputs = None,
        active: NDArray[np.bool_] | None = None,
    ) -> tuple[F64, F64 | None]:
        g = direction.of_rows()
        f = self.baseline + raw
        if output is None:
            f += rho * g
        else:
            assert isinstance(output, int)
            f[:, output] += rho[0] * g[:, 0]
        parts = (direction.leaf_of_row, direction.values)
        gradient = self._call("gradient", f)
        assert gradient is not None
        cells = np.ascontiguousarray(gradient, dtype=np.float32)
        slope = _core.dots(self.pool, cells, weight, *parts, False, output)
        hessian = self._call("hessian", f) if self.facts.curved else None
        if hessian is None:
            return slope, None
        cells = np.ascontiguousarray(hessian, dtype=np.float32)
        return slope, _core.dots(self.pool, cells, weight, *parts, True, output)

    def quantile_steps(
        self, raw: F32, weight: F32 | None, direction: Direction, output: Outputs = None
    ) -> F64:
        raise NotImplementedError("a custom loss is minimised through its gradient")

    def leaf_quantiles(
        self,
        leaf_of_row: NDArray[np.uint32],
        n_leaves: int,
        raw: F32,
        weight: F32 | None,
        output: Outputs = None,
    ) -> F64:
        raise NotImplementedError("a custom loss is minimised through its gradient")


def _mean(losses: F64) -> tuple[float, F64]:
    """Losses of the outputs, and their mean: correctly rounded, the same on every machine."""
    return math.fsum(losses.tolist()) / len(losses), losses
