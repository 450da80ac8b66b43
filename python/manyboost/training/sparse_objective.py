"""Losses of labels that stay sparse: no array has a cell for each row and output.

Raw predictions are known by the leaves that each row is in, and by the model itself:
f = b + Σ v(leaf). Squared error is linear in the residuals r = y − f, so what a round needs of them
follows from the labels and from these: projections φ r, sums over rows along a tree, and the loss.
The log loss is not, but where leaves have values for a few outputs, most cells have never moved.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import cast

import numpy as np

from manyboost import _core
from manyboost.arrays import F32, F64, U32, Mask
from manyboost.data.features import Table
from manyboost.data.label_weights import label_sums
from manyboost.data.sparse_labels import SparseLabels
from manyboost.data.weights import Weights
from manyboost.training.directions import Line, Move, Outputs, SparseLeaves
from manyboost.training.ensembles import Ensemble, TreeEnsemble
from manyboost.training.objectives import LossBlocks, Objective, Sums
from manyboost.training.split_gradients import SplitGradients
from manyboost.training.steps import divide


class SparseObjective(Objective):
    """A loss bound to sparse labels and weights of rows.

    ``raw`` and ``out`` of the methods are the rows themselves (:class:`manyboost._core.LabelRows`),
    which know their leaves: rounds hand them on, and nobody else looks inside.
    """

    def __init__(
        self, blocks: LossBlocks, y: SparseLabels, weights: Weights, pool: _core.Pool
    ) -> None:
        self.blocks, self.weights, self.pool, self.y = blocks, weights, pool, y
        self.n_rows, self.n_outputs = y.shape
        # The weight of the labels of each output, and of all its cells.
        self.positive, self.total = label_sums(y, weights, pool)
        self.cells = math.fsum(np.broadcast_to(self.total, self.n_outputs).tolist())

    def follow(self, model: Ensemble) -> None:
        assert isinstance(model, TreeEnsemble)
        self.trees = model.trees

    def blank_state(self) -> F32:
        labels, stored = self.y, self.weights.stored
        rows = _core.LabelRows(labels.n_outputs, labels.starts, labels.labels)
        if stored is not None:
            starts, outputs = stored.indptr.astype(np.int64), stored.indices.astype(np.int32)
            rows.mark(starts, outputs, stored.data)
        return cast(F32, rows)

    def open_state(self, state: F32) -> tuple[F32, F32]:
        return state, state

    @abstractmethod
    def newton_leaves(
        self, raw: F32, leaves: tuple[U32, int], weights: Weights, most: int, damping: float
    ) -> SparseLeaves:
        """Return Newton's values for the outputs of each leaf that gain most.

        ``leaves`` are the leaf of each row, and their number.
        """

    def weigh(self, raw: F32, split: SplitGradients) -> None:
        """Weigh split gradients where cells have weights: z = w φ (c r), and ω beside it."""
        if self.weights.stored is None:
            return
        assert split.weight is not None
        assert split.shares is not None
        _rows(raw).cell_shares(split.shares, split.weight)
        if self.weights.rows is not None:
            for each in (split.z, split.weight):
                each *= self.weights.rows[:, None]

    def add_rounds(self, model: Ensemble, X: Table, n_rounds: int, state: F32) -> None:
        raise NotImplementedError  # warm starts are refused

    def leaf_sums(
        self, leaf_of_row: U32, leaf_weights: F64, residuals: F32, weights: Weights, output: Outputs
    ) -> Sums:
        raise NotImplementedError  # of all outputs: they are not summed here

    def derivatives(self, line: Line, rho: F64, active: Mask | None = None) -> Sums:
        raise NotImplementedError  # no step is searched for


class SparseLogLoss(SparseObjective):
    """Log loss bound to sparse labels, for leaves of a few outputs.

    Residuals are those of cells that are a label, or that a tree has moved; all others of an output
    have the same one.
    """

    def __init__(
        self, blocks: LossBlocks, y: SparseLabels, weights: Weights, pool: _core.Pool, baseline: F64
    ) -> None:
        super().__init__(blocks, y, weights, pool)
        self.baseline = baseline.astype(np.float32)
        self.by_baseline = np.argsort(-self.baseline, kind="stable").astype(np.uint32)
        self._loss: float | None = None  # of the present round, if it is known

    def advance(self, raw: F32, out: F32, move: Move | None, split: SplitGradients) -> float:
        if move is not None:
            self.add_leaves(move, raw, None)
        if split.matrix is None:
            self._loss = self._pass(raw)
        else:
            self._loss = self._pass(raw, split.matrix, split.z)
            self.weigh(raw, split)
        return self._loss / self.cells

    def add_leaves(self, move: Move, raw: F32, output: int | None) -> None:
        assert output is None
        assert move.values is not None
        _rows(raw).push(self.trees, move.leaf_of_row, len(move.values))
        self._loss = None

    def losses(self, raw: F32) -> tuple[float, F64 | None]:
        if self._loss is None:
            self._loss = self._pass(raw)
        return self._loss / self.cells, None

    def newton_leaves(
        self, raw: F32, leaves: tuple[U32, int], weights: Weights, most: int, damping: float
    ) -> SparseLeaves:
        parts = self.pool, self.trees, *leaves, self.baseline, weights.rows
        kept = self.by_baseline, most, damping
        starts, outputs, sums, curvatures = _rows(raw).log_leaf_sums(*parts, *kept)
        return SparseLeaves(starts, outputs, divide(sums, curvatures + damping))

    def _pass(self, raw: F32, *projection: F32) -> float:
        """Return the loss of all rows and outputs; fill the split gradients of a projection."""
        parts = self.pool, self.trees, self.baseline, self.weights.rows
        return _rows(raw).log_loss(*parts, *projection)


class SparseSquaredError(SparseObjective):
    """Squared error bound to sparse labels and weights of rows."""

    def __init__(
        self, blocks: LossBlocks, y: SparseLabels, weights: Weights, pool: _core.Pool, baseline: F64
    ) -> None:
        super().__init__(blocks, y, weights, pool)
        # Where no label is, and no tree has moved it, a residual is −(1 + b).
        self.absent = 1 + baseline
        self.by_absent = np.argsort(-self.absent, kind="stable").astype(np.uint32)
        negative = self.total - self.positive
        squares = self.positive * (1 - baseline) ** 2 + negative * self.absent**2
        self.loss = 0.5 * math.fsum(squares.tolist())
        # What a round has found on all rows, for the loss after it: leaf values and slopes along
        # them, or sums of residuals and weights in leaves.
        self._along: tuple[F64, F64] | None = None
        self._sums: tuple[F64, F64] | None = None

    def advance(self, raw: F32, out: F32, move: Move | None, split: SplitGradients) -> float:
        if move is not None:
            self.add_leaves(move, raw, None)
        if split.matrix is not None:
            rows = _rows(raw)
            rows.project(self.pool, self.trees, split.matrix, self.absent, split.z)
            self.weigh(raw, split)
        return self.loss / self.cells

    def add_leaves(self, move: Move, raw: F32, output: int | None) -> None:
        assert output is None
        leaf_of_row, values, steps = move
        rows, weight = _rows(raw), self.weights.rows
        if isinstance(values, SparseLeaves) and self._sums is not None:
            v, (sums, of_values) = values.values.astype(np.float64), self._sums
            slope = float((v * sums).sum())
            curvature = float((v**2 * of_values).sum())
        elif isinstance(values, SparseLeaves):
            arguments = leaf_of_row, values.arrays(), weight, self.absent
            slope, curvature = rows.leaf_products(self.pool, self.trees, *arguments)
        else:
            assert steps is not None
            g, s = values[:, 0].astype(np.float64), steps.astype(np.float64)
            slope = float((s * self._slopes_along(rows, leaf_of_row, g)).sum())
            curvature = float((s**2 * self.squares(raw, leaf_of_row, g, self.weights)).sum())
        # Rounding may leave less than nothing.
        self.loss = max(0.0, self.loss - slope + 0.5 * curvature)
        self._along = self._sums = None
        rows.push(self.trees, leaf_of_row, len(values))

    def slopes(self, raw: F32, leaf_of_row: U32, g: F64, weights: Weights) -> F64:
        """Return Σ w r g for each output, where g are values of leaves (n_leaves,)."""
        parts = leaf_of_row, g, weights.rows, self.absent
        slopes = _rows(raw).slopes(self.pool, self.trees, *parts)
        self._along = (g, slopes) if weights is self.weights else None
        return slopes

    def squares(self, raw: F32, leaf_of_row: U32, g: F64, weights: Weights) -> F64:
        """Return Σ w g² for each output."""
        total = (_leaf_weights(leaf_of_row, len(g), weights.rows) * g**2).sum()
        squares = np.full(self.n_outputs, total)
        if weights.stored is not None:
            # Rounding may leave less than nothing.
            squares += _rows(raw).marked_squares(leaf_of_row, g, weights.rows)
            np.maximum(squares, 0, out=squares)
        return squares

    def newton_leaves(
        self, raw: F32, leaves: tuple[U32, int], weights: Weights, most: int, damping: float
    ) -> SparseLeaves:
        parts = self.pool, self.trees, *leaves, weights.rows, self.absent
        kept = self.by_absent, most, damping
        starts, outputs, sums, of_values = _rows(raw).leaf_sums(*parts, *kept)
        self._sums = (sums, of_values) if weights is self.weights else None
        return SparseLeaves(starts, outputs, divide(sums, of_values + damping))

    def _slopes_along(self, rows: _core.LabelRows, leaf_of_row: U32, v: F64) -> F64:
        """Return the slopes along leaf values, which a round has found along a multiple of them."""
        if self._along is None:
            parts = leaf_of_row, v, self.weights.rows, self.absent
            return rows.slopes(self.pool, self.trees, *parts)
        g, slopes = self._along
        weight = _leaf_weights(leaf_of_row, len(g), self.weights.rows)
        square = float((weight * g**2).sum())
        return slopes * (float((weight * v * g).sum()) / square if square > 0 else 0.0)

    def losses(self, raw: F32) -> tuple[float, F64 | None]:
        return self.loss / self.cells, None


def _leaf_weights(leaf_of_row: U32, n_leaves: int, rows: F32 | None) -> F64:
    return np.bincount(leaf_of_row, rows, n_leaves).astype(np.float64)


def _rows(raw: F32) -> _core.LabelRows:
    return cast(_core.LabelRows, raw)
