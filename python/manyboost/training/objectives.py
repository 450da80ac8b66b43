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
from manyboost.data.cells import missing_cells
from manyboost.data.weights import Weights
from manyboost.training.steps import Direction

if TYPE_CHECKING:
    from manyboost.training.losses import FittedLoss, MixedLoss

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

_ONE = np.float32(1)

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

    Residuals are negative gradients (n_rows, n_outputs), zero where targets are missing. ``raw`` is
    the trees' part of the raw predictions, on top of the offset of each row, if there is one.
    Methods with an ``output`` argument answer for that output alone, or for neighbours (first, one
    past the last). ``total_weight`` is that of a column of cells, (n_outputs,) where they differ.
    """

    facts: Facts
    n_outputs: int
    y: NDArray[Any]
    weights: Weights
    total_weight: float | F64
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
        omega: F32 | None = None,
        shares: F32 | None = None,
    ) -> float:
        """Update raw predictions, take residuals into ``out`` and project them by φ into ``z``.

        Where cells are weighted, ``z`` is the projection of the weighted residuals and ``omega``
        gets the weight of every row and component, by ``shares``: φ without the scales of outputs.
        Returns the mean loss per cell.
        """

    @abstractmethod
    def losses(self, raw: F32) -> tuple[float, F64 | None]:
        """Mean loss per cell, and that of each output (n_outputs,) if it has its own."""

    def mean_loss(self, raw: F32) -> float:
        """Mean loss per cell."""
        return self.losses(raw)[0]

    @abstractmethod
    def leaf_sums(
        self,
        leaf_of_row: NDArray[np.uint32],
        leaf_weights: F64,
        residuals: F32,
        weights: Weights,
        output: Outputs = None,
    ) -> tuple[F64, F64 | None]:
        """Σ w r and Σ w h over the rows of each leaf, (n_leaves, n_outputs).

        ``leaf_weights`` are Σ w, (n_leaves, 1) where all outputs share them; so are curvatures that
        are all one.
        """

    def leaf_weights(
        self,
        leaf_of_row: NDArray[np.uint32],
        n_leaves: int,
        weights: Weights,
        output: Outputs = None,
    ) -> F64:
        """Σ w over the observed cells of each leaf, (n_leaves, n_outputs)."""
        return _core.leaf_weights(self.pool, leaf_of_row, n_leaves, self.y, weights, output)

    def rows_of(self, output: int | None) -> NDArray[np.uint32] | None:
        """Rows in which an output is observed; None: all."""
        if output is None or not self.weights.partial:
            return None
        observed = ~missing_cells(self.y[:, output])
        return None if observed.all() else np.flatnonzero(observed).astype(np.uint32)

    @abstractmethod
    def derivatives(
        self,
        raw: F32,
        weights: Weights,
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
        self, raw: F32, weights: Weights, direction: Direction, output: Outputs = None
    ) -> F64:
        """Exact steps along a direction, for the absolute and quantile losses."""

    @abstractmethod
    def leaf_quantiles(
        self,
        leaf_of_row: NDArray[np.uint32],
        n_leaves: int,
        raw: F32,
        weights: Weights,
        output: Outputs = None,
    ) -> F64:
        """Best leaf values for the absolute and quantile losses, (n_leaves, n_outputs)."""

    n_rows: int
    pool: _core.Pool

    def _total_weight(self) -> float | F64:
        weights = self.weights
        if weights.by_cell:
            one_leaf = np.zeros(self.n_rows, np.uint32)
            return np.asarray(self.leaf_weights(one_leaf, 1, weights)[0])
        return weights.total_of_rows(self.pool, self.n_rows)

    def _means(self, sums: F64) -> tuple[float, F64]:
        """Mean loss per cell and those of the outputs, NaN where nothing is observed.

        The former is correctly rounded, the same on every machine.
        """
        total = self.total_weight
        if isinstance(total, float):
            losses = sums / total
            return math.fsum(losses.tolist()) / len(losses), losses
        losses = np.divide(sums, total, out=np.full(len(sums), np.nan), where=total > 0)
        return math.fsum(sums.tolist()) / math.fsum(total.tolist()), losses

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
        weights: Weights,
        pool: _core.Pool,
    ) -> None:
        self.facts = fitted.facts
        self.pool = pool
        self.y = y
        self.weights = weights
        self.n_rows, self.n_outputs = len(y), len(fitted.baseline)
        self.kernel = fitted.kernel()
        # In double precision: a level of 0.2 is the fourth of 20 rows, not the fifth.
        self.levels = fitted.param
        self.total_weight = self._total_weight()
        # Softmax has one loss a row; the others one a cell.
        n_losses = 1 if self.is_softmax else self.n_outputs
        self.cells = float(np.mean(self.total_weight)) * n_losses
        heaviest = weights.heaviest_of(self.n_outputs, pool)
        self.largest = 0.0
        if self.facts.kernel == "poisson":
            largest = np.fmax.reduce(y, axis=None, initial=0)
            self.largest = float(pool.largest(np.array([largest], np.float64))[0])
        self.heaviest = heaviest
        self.max_residual = np.zeros(self.n_outputs)
        # Curvature is at most 1, but for Poisson (y - r) and exponential (half the residual).
        self.max_curvature = heaviest

    def advance(
        self,
        raw: F32,
        out: F32,
        update: Update | None = None,
        phi: F32 | None = None,
        z: F32 | None = None,
        omega: F32 | None = None,
        shares: F32 | None = None,
    ) -> float:
        leaf_of_row, values, steps = update or (None, None, None)
        loss, largest = self.kernel.advance(
            self.pool,
            self.y,
            raw,
            self.weights,
            out,
            leaf_of_row=leaf_of_row,
            values=values,
            steps=steps,
            phi=phi,
            z=z,
            omega=omega,
            shares=shares,
        )
        self.max_residual = largest
        if self.facts.kernel == "poisson":
            self.max_curvature = self.largest * self.heaviest + self.max_residual
        elif self.facts.kernel == "exponential":
            self.max_curvature = self.max_residual
        return loss / self.cells

    def losses(self, raw: F32) -> tuple[float, F64 | None]:
        if self.is_softmax:
            return self.kernel.loss_sum(self.pool, self.y, raw, self.weights) / self.cells, None
        sums = self.kernel.output_losses(self.pool, self.y, raw, self.weights)
        return self._means(sums)

    def facts_of(self, output: Outputs) -> Facts:
        """What is true of the loss of an output, or of outputs that share one."""
        return self.facts

    def leaf_sums(
        self,
        leaf_of_row: NDArray[np.uint32],
        leaf_weights: F64,
        residuals: F32,
        weights: Weights,
        output: Outputs = None,
    ) -> tuple[F64, F64 | None]:
        if self.facts_of(output).quadratic:
            sums, _ = _core.leaf_sums(
                self.pool,
                leaf_of_row,
                len(leaf_weights),
                residuals,
                None,
                weights,
                self.max_residual,
                self.max_curvature,
                output,
            )
            return sums, leaf_weights
        return self.kernel.leaf_sums(
            self.pool,
            leaf_of_row,
            len(leaf_weights),
            self.y,
            residuals,
            weights,
            self.max_residual,
            self.max_curvature,
            output,
        )

    def derivatives(
        self,
        raw: F32,
        weights: Weights,
        direction: Direction,
        rho: F64,
        output: Outputs = None,
        active: NDArray[np.bool_] | None = None,
    ) -> tuple[F64, F64 | None]:
        return self.kernel.derivatives(
            self.pool,
            self.y,
            raw,
            weights,
            direction.leaf_of_row,
            direction.values,
            rho,
            output,
            active,
        )

    def quantile_steps(
        self, raw: F32, weights: Weights, direction: Direction, output: Outputs = None
    ) -> F64:
        return _core.quantile_steps(
            self.pool,
            self.y,
            raw,
            self.levels,
            weights,
            direction.leaf_of_row,
            direction.values,
            output,
        )

    def leaf_quantiles(
        self,
        leaf_of_row: NDArray[np.uint32],
        n_leaves: int,
        raw: F32,
        weights: Weights,
        output: Outputs = None,
    ) -> F64:
        return _core.leaf_quantiles(
            self.pool, leaf_of_row, n_leaves, self.y, raw, self.levels, weights, output
        )

    def softmax_along(
        self, raw: F32, weights: Weights, direction: Direction, rho: F64, v: F64
    ) -> tuple[float, F64, F64]:
        """Loss, gradient and Hessian times ``v`` of softmax along a direction, at ``rho``."""
        return self.kernel.softmax_along(
            self.pool,
            self.y,
            raw,
            weights.rows,
            direction.leaf_of_row,
            direction.values,
            rho,
            v,
        )


class SquaredResiduals(BuiltinObjective):
    """Squared error whose residuals are all the state: half the memory traffic of a round.

    ``raw`` and ``out`` are one array, the residuals y - f; it takes the place of the targets. Not
    for weights of cells or missing targets.
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
        omega: F32 | None = None,
        shares: F32 | None = None,
    ) -> float:
        leaf_of_row, values, steps = update or (None, None, None)
        loss, largest = _core.advance_residuals(
            self.pool,
            out,
            self.weights.rows,
            leaf_of_row=leaf_of_row,
            values=values,
            steps=steps,
            phi=phi,
            z=z,
        )
        self.max_residual = largest
        return loss / self.cells

    def losses(self, raw: F32) -> tuple[float, F64 | None]:
        return self._means(0.5 * _core.column_sums(self.pool, raw, self.weights, True))


class MixedObjective(BuiltinObjective):
    """Built-in losses, one for each output; neighbours of one loss are a block."""

    def __init__(
        self, fitted: MixedLoss, y: NDArray[Any], weights: Weights, pool: _core.Pool
    ) -> None:
        super().__init__(fitted, y, weights, pool)
        self.blocks = fitted.blocks
        kernels = [facts.kernel for facts, (start, stop) in self.blocks for _ in range(start, stop)]
        self.is_poisson = np.array([kernel == "poisson" for kernel in kernels])
        self.is_exponential = np.array([kernel == "exponential" for kernel in kernels])
        largest = np.fmax.reduce(y, axis=0, initial=0)
        self.largest_of_output = pool.largest(largest.astype(np.float64))

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
        omega: F32 | None = None,
        shares: F32 | None = None,
    ) -> float:
        loss = super().advance(raw, out, update, phi, z, omega, shares)
        largest, residual = self.largest_of_output, self.max_residual
        bound = np.where(self.is_poisson, largest * self.heaviest + residual, self.heaviest)
        self.max_curvature = np.where(self.is_exponential, residual, bound)
        return loss


class CustomObjective(Objective):
    """A loss written in Python bound to data.

    Where a target is missing, the loss is shown one that its output has in another row, and what it
    returns there is not used.
    """

    def __init__(self, fitted: FittedLoss, y: F64, weights: Weights, pool: _core.Pool) -> None:
        assert fitted.custom is not None
        self.loss = fitted.custom
        self.facts = fitted.facts
        self.pool = pool
        self.baseline = fitted.baseline
        self.weights = weights
        self.n_rows, self.n_outputs = len(y), len(fitted.baseline)
        self.missing = missing_cells(y) if weights.partial else None
        self.cell_weights = weights.matrix(y) if weights.by_cell else None
        self.y = fill_missing(y) if weights.partial else y
        self.total_weight = self._total_weight()
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
        if self.weights.by_cell and array.ndim == 1:
            raise ValueError(
                f"{name} returned one loss for each row, of which cells without a target or with a "
                f"weight of their own cannot be taken apart; it must return {raw.shape}, one loss "
                "for each cell."
            )
        if self.missing is not None:
            array = np.where(self.missing, 0.0, array)
        with np.errstate(over="ignore"):
            finite = np.isfinite(array if method == "value" else array.astype(np.float32))
        if not finite.all():
            row = int(np.argmin(finite.reshape(len(array), -1).all(axis=1)))
            raise ValueError(
                f"{name} returned NaN or infinity (first in row {row}); it must return finite "
                "numbers."
            )
        return array

    def _weighted(self, cells: F32, scale: np.float32 = _ONE) -> F32:
        if self.cell_weights is not None:
            return cells * (self.cell_weights * scale)
        rows = self.weights.rows
        return cells if rows is None else cells * (rows * scale)[:, None]

    def _heaviest(self, cells: F32) -> F64:
        # Weights below one, by a power of two: products stay within single precision.
        exponent = (
            0 if self.weights.is_trivial else int(np.frexp(self.weights.heaviest(self.pool))[1])
        )
        largest = np.abs(self._weighted(cells, np.float32(2.0**-exponent))).max(axis=0, initial=0)
        return np.asarray(np.ldexp(largest.astype(np.float64), exponent))

    def advance(
        self,
        raw: F32,
        out: F32,
        update: Update | None = None,
        phi: F32 | None = None,
        z: F32 | None = None,
        omega: F32 | None = None,
        shares: F32 | None = None,
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
            if omega is None:
                _core.project(self.pool, out, phi, z)
            else:
                assert self.cell_weights is not None
                assert shares is not None
                _core.project(self.pool, self._weighted(out), phi, z)
                _core.project(self.pool, self.cell_weights, shares, omega, shares=True)
        return self.mean_loss(raw)

    def losses(self, raw: F32) -> tuple[float, F64 | None]:
        value = self._call("value", self.baseline + raw)
        assert value is not None
        if value.ndim == 1:
            total = _core.column_sums(self.pool, value[:, None], self.weights)[0]
            return float(total) / float(self.total_weight * self.n_outputs), None
        sums = _core.column_sums(self.pool, np.ascontiguousarray(value), self.weights)
        return self._means(sums)

    def leaf_sums(
        self,
        leaf_of_row: NDArray[np.uint32],
        leaf_weights: F64,
        residuals: F32,
        weights: Weights,
        output: Outputs = None,
    ) -> tuple[F64, F64 | None]:
        return _core.leaf_sums(
            self.pool,
            leaf_of_row,
            len(leaf_weights),
            residuals,
            self.curvatures,
            weights,
            self.max_residual,
            self.max_curvature,
            output,
        )

    def leaf_weights(
        self,
        leaf_of_row: NDArray[np.uint32],
        n_leaves: int,
        weights: Weights,
        output: Outputs = None,
    ) -> F64:
        observed = np.ones((self.n_rows, self.n_outputs), np.float32)
        if self.missing is not None:
            observed[self.missing] = 0
        largest = weights.heaviest_of(self.n_outputs, self.pool)
        sums, _ = _core.leaf_sums(
            self.pool, leaf_of_row, n_leaves, observed, None, weights, largest, largest, output
        )
        return sums

    def rows_of(self, output: int | None) -> NDArray[np.uint32] | None:
        if output is None or self.missing is None or not self.missing[:, output].any():
            return None
        return np.flatnonzero(~self.missing[:, output]).astype(np.uint32)

    def derivatives(
        self,
        raw: F32,
        weights: Weights,
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
        slope = _core.dots(self.pool, cells, weights, *parts, False, output)
        hessian = self._call("hessian", f) if self.facts.curved else None
        if hessian is None:
            return slope, None
        cells = np.ascontiguousarray(hessian, dtype=np.float32)
        return slope, _core.dots(self.pool, cells, weights, *parts, True, output)

    def quantile_steps(
        self, raw: F32, weights: Weights, direction: Direction, output: Outputs = None
    ) -> F64:
        raise NotImplementedError("a custom loss is minimised through its gradient")

    def leaf_quantiles(
        self,
        leaf_of_row: NDArray[np.uint32],
        n_leaves: int,
        raw: F32,
        weights: Weights,
        output: Outputs = None,
    ) -> F64:
        raise NotImplementedError("a custom loss is minimised through its gradient")


def fill_missing(Y: F64) -> F64:
    """Return targets with the first observed one of its output in each missing cell."""
    missing = missing_cells(Y)
    first = Y[np.argmin(missing, axis=0), np.arange(Y.shape[1])]
    return np.where(missing, np.nan_to_num(first), Y)
