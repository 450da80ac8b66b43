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
    parts = steps, plan.blocks, plan.monotonic, gains
    if isinstance(steps.objective, SparseObjective):
        return SparseLeafFitter(*parts, most=plan.max_leaf_outputs or 0)
    return LeafFitter(*parts)


@dataclass
class SparseLeafFitter(LeafFitter):
    """Fits leaves without the residuals of all outputs; ``most`` outputs have a value in a leaf."""

    most: int = 0

    def label(  # type: ignore[override]  # values of a few outputs in the place of all
        self, weak: WeakModel, weights: Weights, frozen: Mask | None, output: int | None = None
    ) -> tuple[SparseLeaves, None]:
        """Newton's values for the outputs of each leaf that matter most."""
        objective, weak = self.objective, _leaves(weak)
        assert isinstance(objective, SparseObjective)
        leaves = weak.leaf_of_row, weak.leaf_weights
        kept = self.most, self.blocks[0].l2
        return objective.newton_leaves(self.residuals, leaves, weights, *kept), None

    def fit_outputs(
        self, weak: WeakModel, split: SplitGradients, weights: Weights, frozen: Mask | None
    ) -> tuple[F64, F64]:
        """Scalar leaf values (n_leaves, 1) of a tree grown on φ r, and one step per output."""
        objective, block, weak = self.objective, self.blocks[0], _leaves(weak)
        assert isinstance(objective, SparseSquaredError)
        total = weak.leaf_weights
        z = split.z[:, 0].astype(np.float64)
        if weights.rows is not None:
            z *= weights.rows
        sums = np.bincount(weak.leaf_of_row, z, weak.n_leaves).astype(np.float64)
        values = divide(sums, total)
        g = values if block.is_newton else values.astype(np.float32).astype(np.float64)
        slopes = objective.slopes(self.residuals, weak.leaf_of_row, g, weights)
        curvature = (total * g**2).sum() + (block.l2 * (g**2).mean() if block.is_newton else 0.0)
        return values[:, None], divide(slopes, np.asarray(curvature))


def _leaves(weak: WeakModel) -> Leaves:
    assert isinstance(weak, Leaves)
    return weak
