"""Leaves of trees that are grown on labels which stay sparse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyboost.arrays import F64, Mask
from manyboost.data.weights import Weights
from manyboost.training.directions import SparseLeaves
from manyboost.training.learners import Leaves, WeakModel
from manyboost.training.leaves import LeafFitter
from manyboost.training.plan import Plan
from manyboost.training.progress import Gains
from manyboost.training.sparse_objective import SparseObjective, SparseSquaredError
from manyboost.training.split_gradients import SplitGradients
from manyboost.training.steps import Steps, divide


def leaf_fitter(plan: Plan, steps: Steps, gains: Gains | None) -> LeafFitter:
    """Return what fits leaves to the targets of an objective."""
    parts = steps, plan.blocks, plan.monotonic, gains, plan.subsample < 1
    if isinstance(steps.objective, SparseObjective):
        return SparseLeafFitter(*parts, most=plan.max_leaf_outputs or 0)
    return LeafFitter(*parts)


@dataclass
class SparseLeafFitter(LeafFitter):
    """Fits leaves without the residuals of all outputs; ``most`` outputs have a value in a leaf."""

    most: int = 0

    def label(
        self, weak: WeakModel, weights: Weights, frozen: Mask | None
    ) -> tuple[SparseLeaves, None]:
        """Newton's values for the outputs of each leaf that gain most."""
        objective, weak = self.objective, _leaves(weak)
        assert isinstance(objective, SparseObjective)
        leaves = weak.leaf_of_row, weak.n_leaves
        kept = self.most, self.blocks[0].l2
        return objective.newton_leaves(self.residuals, leaves, weights, *kept), None

    def fit_outputs(
        self, weak: WeakModel, split: SplitGradients, weights: Weights, frozen: Mask | None
    ) -> tuple[F64, F64]:
        """Scalar leaf values (n_leaves, 1) of a tree grown on φ r, and one step per output."""
        objective, block, weak = self.objective, self.blocks[0], _leaves(weak)
        assert isinstance(objective, SparseSquaredError)
        z = split.z[:, 0].astype(np.float64)
        if weights.by_cell:  # z is weighted already
            chosen = 1.0 if weights.rows is None else weights.rows > 0
            assert split.weight is not None
            total = self._sums(weak, (split.weight[:, 0] * chosen).astype(np.float64))
            values = divide(self._sums(weak, z * chosen), total)
        else:
            z *= 1.0 if weights.rows is None else weights.rows
            values = divide(self._sums(weak, z), weak.leaf_weights)
        g = values if block.is_newton else values.astype(np.float32).astype(np.float64)
        parts = self.residuals, weak.leaf_of_row, g, weights
        slopes, squares = objective.slopes(*parts), objective.squares(*parts)
        damped = squares + block.l2 * (g**2).mean() if block.is_newton else squares
        return values[:, None], divide(slopes, damped)

    def _sums(self, weak: Leaves, of_rows: F64) -> F64:
        return np.bincount(weak.leaf_of_row, of_rows, weak.n_leaves).astype(np.float64)


def _leaves(weak: WeakModel) -> Leaves:
    assert isinstance(weak, Leaves)
    return weak
