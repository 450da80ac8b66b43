"""A loss bound to targets and weights: all that a round asks of it.

Built-in losses answer through kernels of the core: :class:`BuiltinObjective`, and
:class:`manyboost.training.residuals.ResidualObjective` where residuals are the only state. Losses
written in Python are bound by :class:`manyboost.training.custom.CustomObjective`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost import _core
from manyboost.arrays import F32, F64, U32, Mask
from manyboost.data.cells import missing_cells
from manyboost.data.features import Table
from manyboost.data.weights import Weights
from manyboost.training.directions import Line, Move, Outputs
from manyboost.training.ensembles import Ensemble
from manyboost.training.losses import LossFacts
from manyboost.training.split_gradients import SplitGradients

# Outputs that share a loss, as a half-open range; None: all outputs.
LossBlocks = list[tuple[LossFacts, tuple[int, int] | None]]

# Sums over rows by output: of residuals or slopes, and of curvatures if the loss has them.
Sums = tuple[F64, F64 | None]


class Objective(ABC):
    """A loss bound to targets and weights: all that a round asks of it.

    Residuals are negative gradients (n_rows, n_outputs), zero where targets are missing. ``raw`` is
    the part of the raw predictions that the trees make up, on top of the offset of each row.
    Methods with an ``output`` argument answer for that output, or for a half-open range of outputs;
    None: for all.
    """

    blocks: LossBlocks
    y: Any  # encoded targets: an array, or sparse labels
    weights: Weights
    pool: _core.Pool
    n_rows: int
    n_outputs: int
    total_weight: float | F64  # of a column of cells
    can_look_ahead = False  # whether leaf sums and the next split gradients can share a pass
    looks_ahead = False  # whether they do in this fit
    start: F32 | None = None  # offsets that raw predictions start from; None: zero
    max_residual: F64  # bounds of the present weighted residuals and curvatures, by output
    max_curvature: F64

    @abstractmethod
    def advance(self, raw: F32, out: F32, move: Move | None, split: SplitGradients) -> float:
        """Move raw predictions, write residuals into ``out``, and fill the split gradients.

        One pass over all cells; returns the mean loss per cell.
        """

    @abstractmethod
    def losses(self, raw: F32) -> tuple[float, F64 | None]:
        """Mean loss per cell, and the mean loss of each output (n_outputs,) if it has its own."""

    @abstractmethod
    def leaf_sums(
        self, leaf_of_row: U32, leaf_weights: F64, residuals: F32, weights: Weights, output: Outputs
    ) -> Sums:
        """Σ w r and Σ w h over the rows of each leaf, (n_leaves, n_outputs).

        ``leaf_weights`` are Σ w: (n_leaves, 1) if all outputs share them, and then they are also
        the sums of curvatures that are all one.
        """

    def leaf_weights(
        self, leaf_of_row: U32, n_leaves: int, weights: Weights, output: Outputs = None
    ) -> F64:
        """Σ w over the observed cells of each leaf, (n_leaves, n_outputs)."""
        return _core.leaf_weights(self.pool, leaf_of_row, n_leaves, self.y, weights, output)

    def look_ahead(self, split: SplitGradients | None) -> None:  # noqa: B027
        """Name the split gradients of the next round, for the pass of :meth:`leaf_sums` to fill.

        Called before each round if ``looks_ahead``; None: no round follows.
        """

    def add_leaves(self, move: Move, raw: F32, output: int | None) -> None:
        """Add leaves to raw predictions of which nothing but the loss is asked."""
        _core.add_leaves(self.pool, *move, raw, output)

    def follow(self, model: Ensemble) -> None:  # noqa: B027
        """Take note of the model in the making, for objectives whose state it is a part of."""

    def rows_of(self, output: int | None) -> U32 | None:
        """Rows in which an output is observed; None: all."""
        if output is None or not self.weights.partial:
            return None
        observed = ~missing_cells(self.y[:, output])
        return None if observed.all() else np.flatnonzero(observed).astype(np.uint32)

    @abstractmethod
    def derivatives(self, line: Line, rho: F64, active: Mask | None = None) -> Sums:
        """First and second derivative of each output's loss along a line, at ``rho``.

        The caller uses those of the ``active`` outputs only.
        """

    def _total_weight(self) -> float | F64:
        weights = self.weights
        if weights.by_cell:
            one_leaf = np.zeros(self.n_rows, np.uint32)
            return np.asarray(self.leaf_weights(one_leaf, 1, weights)[0])
        return weights.total_of_rows(self.pool, self.n_rows)

    def _means(self, sums: F64, total: float | F64) -> tuple[float, F64]:
        """Mean loss per cell and those of the outputs, NaN where nothing is observed.

        ``total`` are the weights of all cells. The former mean is correctly rounded, so it is the
        same on every machine.
        """
        if isinstance(total, float):
            losses = sums / total
            return math.fsum(losses.tolist()) / len(losses), losses
        losses = np.divide(sums, total, out=np.full(len(sums), np.nan), where=total > 0)
        return math.fsum(sums.tolist()) / math.fsum(total.tolist()), losses

    def blank_state(self) -> F32:
        """Return the state before any round, which trees are added to."""
        if self.start is not None:
            return self.start.copy()
        return np.zeros((self.n_rows, self.n_outputs), np.float32)

    def add_rounds(self, model: Ensemble, X: Table, n_rounds: int, state: F32) -> None:
        """Add the first rounds of a model to a blank state."""
        model.add_to(self.pool, X, 0, n_rounds, state)

    def open_state(self, state: F32) -> tuple[F32, F32]:
        """Return the raw predictions of a state, and the array for their residuals."""
        return state, np.empty_like(state)

    def baseline_residuals(self) -> F32:
        """Residuals before any round."""
        raw, residuals = self.open_state(self.blank_state())
        self.advance(raw, residuals, None, SplitGradients(residuals, None))
        return residuals

    @property
    def loss_shares(self) -> F64:
        """Shares of the outputs in the loss; those that share one have it in the first of them."""
        shares = np.full(self.n_outputs, self.total_weight)
        for start, stop in self.zero_sums:
            shares[start + 1 : stop] = 0
        return shares

    @property
    def zero_sums(self) -> list[tuple[int, int]]:
        """Ranges of outputs that share one loss in each row; their residuals sum to zero."""
        whole = 0, self.n_outputs
        return [outputs or whole for facts, outputs in self.blocks if facts.is_joint]


class BuiltinObjective(Objective):
    """Built-in losses bound to data; everything happens in the core.

    ``levels`` are the constants of the loss, in double precision: a quantile level of 0.2 is the
    fourth of 20 rows, not the fifth.
    """

    def __init__(
        self,
        blocks: LossBlocks,
        kernel: _core.Objective,
        levels: F64,
        y: NDArray[Any],
        weights: Weights,
        pool: _core.Pool,
    ) -> None:
        self.blocks, self.kernel, self.levels = blocks, kernel, levels
        self.y, self.weights, self.pool = y, weights, pool
        self.n_rows, self.n_outputs = len(y), len(levels)
        self.total_weight = self._total_weight()
        # A joint loss has one value for each row, the others have one for each cell.
        self.loss_of_output = np.arange(self.n_outputs)
        for start, stop in self.zero_sums:
            self.loss_of_output[start:stop] = start
        self.with_loss = np.unique(self.loss_of_output)
        totals = np.broadcast_to(self.total_weight, self.n_outputs)[self.with_loss]
        self.cells = float(np.mean(totals)) * len(totals)
        self.heaviest = weights.heaviest_of(self.n_outputs, pool)
        self.max_residual = np.zeros(self.n_outputs)
        self.max_curvature = self.heaviest
        # Of each output, or of all if they share a loss.
        self.largest_target = np.ones(self.n_outputs)
        if kernel.curvature_uses_target:
            largest = np.fmax.reduce(y, axis=0, initial=0).astype(np.float64)
            if len(blocks) == 1:
                largest = np.full(self.n_outputs, largest.max(initial=0))
            self.largest_target = pool.largest(largest)

    def advance(self, raw: F32, out: F32, move: Move | None, split: SplitGradients) -> float:
        loss, self.max_residual = self.kernel.advance(
            self.pool, self.y, raw, self.weights, out, **_arguments(move, split)
        )
        extremes = self.heaviest, self.max_residual, self.largest_target
        self.max_curvature = self.kernel.curvature_bound(*extremes)
        return loss / self.cells

    def losses(self, raw: F32) -> tuple[float, F64 | None]:
        if self.y.ndim == 1:
            return self.kernel.loss_sum(self.pool, self.y, raw, self.weights) / self.cells, None
        sums, total = (
            self.kernel.output_losses(self.pool, self.y, raw, self.weights),
            self.total_weight,
        )
        if not self.zero_sums:
            return self._means(sums, total)
        # Outputs that share a loss have it in the first of them.
        total = total if isinstance(total, float) else total[self.with_loss]
        mean, losses = self._means(sums[self.with_loss], total)
        return mean, losses[np.searchsorted(self.with_loss, self.loss_of_output)]

    def _facts_of(self, output: Outputs) -> LossFacts:
        """Return the record of the loss of an output, or of a block of outputs."""
        first = output[0] if isinstance(output, tuple) else output
        for facts, outputs in self.blocks:
            if first is None or outputs is None or outputs[0] <= first < outputs[1]:
                return facts
        raise IndexError(f"there is no output {first}")

    def leaf_sums(
        self, leaf_of_row: U32, leaf_weights: F64, residuals: F32, weights: Weights, output: Outputs
    ) -> Sums:
        bounds, n_leaves = (self.max_residual, self.max_curvature), len(leaf_weights)
        if self._facts_of(output).quadratic:
            sums, _ = _core.leaf_sums(
                self.pool, leaf_of_row, n_leaves, residuals, None, weights, *bounds, output
            )
            return sums, leaf_weights
        return self.kernel.leaf_sums(
            self.pool, leaf_of_row, n_leaves, self.y, residuals, weights, *bounds, output
        )

    def derivatives(self, line: Line, rho: F64, active: Mask | None = None) -> Sums:
        raw, weights, direction, output = line
        return self.kernel.derivatives(
            self.pool, self.y, raw, weights, *direction, rho, output, active
        )

    def quantile_steps(self, line: Line) -> F64:
        """Exact steps along a line, for piecewise linear losses."""
        raw, weights, direction, output = line
        return _core.quantile_steps(
            self.pool, self.y, raw, self.levels, weights, *direction, output
        )

    def leaf_quantiles(
        self, leaf_of_row: U32, n_leaves: int, raw: F32, weights: Weights, output: Outputs
    ) -> F64:
        """Best leaf values for piecewise linear losses, (n_leaves, n_outputs)."""
        return _core.leaf_quantiles(
            self.pool, leaf_of_row, n_leaves, self.y, raw, self.levels, weights, output
        )

    def softmax_along(self, line: Line, rho: F64, v: F64) -> tuple[float, F64, F64]:
        """Loss, gradient and Hessian times ``v`` of softmax along a line, at ``rho``."""
        raw, weights, direction, outputs = line
        return self.kernel.softmax_along(
            self.pool, self.y, raw, weights, *direction, rho, v, outputs
        )


def _arguments(move: Move | None, split: SplitGradients) -> dict[str, Any]:
    """Return a move, and what fills split gradients, as arguments of the core."""
    arguments: dict[str, Any] = {}
    if move is not None:
        arguments = {"leaf_of_row": move.leaf_of_row, "values": move.values, "steps": move.steps}
    if split.matrix is not None:
        arguments["phi"], arguments["z"] = split.matrix, split.z
    if split.shares is not None:
        arguments["omega"], arguments["shares"] = split.weight, split.shares
    return arguments
