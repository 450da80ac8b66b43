"""Squared error whose residuals are the only state: one pass over them a round."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyboost import _core
from manyboost.arrays import F32, F64, U32
from manyboost.data.features import Table
from manyboost.data.weights import Weights
from manyboost.training.directions import Move, Outputs
from manyboost.training.ensembles import Ensemble, TreeEnsemble
from manyboost.training.objectives import BuiltinObjective, LossBlocks, Sums
from manyboost.training.split_gradients import SplitGradients


class ResidualObjective(BuiltinObjective):
    """Squared error whose residuals are the only state.

    ``raw`` and ``out`` are one array, the residuals r = y - f; it takes the place of the targets.
    Cells have no weights of their own, and no target is missing. Labels are targets of -1 and 1.

    A fit that looks ahead needs one pass a round. It sums the residuals by leaf, and projects them
    for the next round: what the leaves are then worth, v, changes φ r by φ v alone, and the loss by
    what the sums tell. The residuals follow in the next pass; ``pending`` is what they lack.
    """

    can_look_ahead = True

    def __init__(
        self, blocks: LossBlocks, residuals: F32, weights: Weights, pool: _core.Pool
    ) -> None:
        d = residuals.shape[1]
        kernel = _core.Objective("squared_error", np.zeros(d, np.float32), np.zeros(d, np.float32))
        super().__init__(blocks, kernel, np.zeros(d), residuals, weights, pool)
        self._ahead: SplitGradients | None = None
        self.pending: list[Move] = []
        self._swept: tuple[float, tuple[F64, F64]] | None = None  # loss; leaf sums and weights

    def blank_state(self) -> F32:
        # Trees add to f - y. Rounding is symmetric, so this is what training subtracted.
        return np.asarray(np.negative(self.y, out=self.y))

    def add_rounds(self, model: Ensemble, X: Table, n_rounds: int, state: F32) -> None:
        # The last round stays pending, as it was when the next one began in a longer fit.
        assert isinstance(model, TreeEnsemble)
        model.add_to(self.pool, X, 0, n_rounds - 1, state)
        self.pending = [model.move(self.pool, X, n_rounds - 1)]

    def open_state(self, state: F32) -> tuple[F32, F32]:
        self.y = np.negative(state, out=state)
        return state, state

    def baseline_residuals(self) -> F32:
        return np.asarray(self.y)

    def look_ahead(self, split: SplitGradients | None) -> None:
        self._ahead = split

    def leaf_sums(
        self, leaf_of_row: U32, leaf_weights: F64, residuals: F32, weights: Weights, output: Outputs
    ) -> Sums:
        if not self.looks_ahead:
            return super().leaf_sums(leaf_of_row, leaf_weights, residuals, weights, output)
        assert weights is self.weights
        assert output is None
        leaves = {"leaf_of_row": leaf_of_row, "n_leaves": len(leaf_weights)}
        loss, sums = self._sweep(residuals, self._ahead, bounds=self.max_residual, **leaves)
        self._swept = loss, (sums, leaf_weights[:, 0])
        return sums, leaf_weights

    def advance(self, raw: F32, out: F32, move: Move | None, split: SplitGradients) -> float:
        if not self.looks_ahead:
            self.pending += [] if move is None else [move]
            return self._sweep(out, split)[0] / self.cells
        if move is not None:
            assert self._swept is not None
            loss, sums = self._swept
            loss += self._shift(move, split, sums)
            loss = 0.0 if loss < 0 else loss  # rounding; NaN stays
            self.pending.append(move)
        elif self.pending:
            # An earlier fit goes on: as above, without its leaf sums.
            (last,), self.pending = self.pending, []
            self._sweep(out, split)
            self._shift(last, split)
            loss = _core.sweep(self.pool, out, self.weights.rows, [last])[0]
        else:
            loss, _ = self._sweep(out, split)
        return loss / self.cells

    def _sweep(
        self, residuals: F32, split: SplitGradients | None, **leaves: Any
    ) -> tuple[float, F64]:
        """Write pending moves, fill split gradients; return the loss and sums by leaf."""
        loss, self.max_residual, sums = _core.sweep(
            self.pool, residuals, self.weights.rows, self.pending, **leaves, **_projection(split)
        )
        self.pending = []
        return loss, sums

    def _shift(
        self, move: Move, split: SplitGradients, sums: tuple[F64, F64] | None = None
    ) -> float:
        """Take a move off split gradients that were filled before it; return the loss it adds."""
        arguments = self.pool, move, self.n_outputs, sums
        change, reach = _core.look_ahead(*arguments, **_projection(split))
        self.max_residual = self.max_residual + self.heaviest * reach
        return change

    def losses(self, raw: F32) -> tuple[float, F64 | None]:
        sums = 0.5 * _core.column_sums(self.pool, raw, self.weights, True)
        return self._means(sums, self.total_weight)


def _projection(split: SplitGradients | None) -> dict[str, Any]:
    """Return what fills split gradients, as arguments of the core."""
    if split is None or split.matrix is None:
        return {}
    return {"phi": split.matrix, "z": split.z}
