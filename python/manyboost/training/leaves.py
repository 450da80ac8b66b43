"""Leaves: what a weak model predicts for each output, from the full residuals.

A tree says which rows belong together; what its leaves are worth is decided here, for all outputs,
from the residuals before projection. Newton leaves are final; others are directions g that a step ρ
is searched along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from manyboost.arrays import F32, F64, I8, Mask
from manyboost.data.weights import Weights
from manyboost.memory import STEPS_TOGETHER
from manyboost.training.constraints import Monotonic
from manyboost.training.directions import Direction, Outputs
from manyboost.training.learners import Leaves, Predictions, WeakModel
from manyboost.training.objectives import BuiltinObjective, Sums
from manyboost.training.progress import Gains
from manyboost.training.split_gradients import SplitGradients
from manyboost.training.steps import Block, Steps, derivatives_at_zero, divide


class Labels(NamedTuple):
    """Leaf values (or predictions) g of a weak model, and steps ρ.

    ``steps`` are None if the values are final, as Newton leaves are, and if the steps of several
    outputs are found together: ``start`` are then the derivatives along g at zero.
    """

    values: Any  # F64, or SparseLeaves
    steps: F64 | None
    start: Sums | None = None


@dataclass
class LeafFitter:
    """Finds leaf values and steps for the weak models of a fit."""

    steps: Steps
    blocks: tuple[Block, ...]
    monotonic: Monotonic | None
    gains: Gains | None  # told the leaf sums, for importances; None for other learners than trees
    samples_rows: bool  # whether each output has rows of its own to be fitted to

    def __post_init__(self) -> None:
        self.objective, self.residuals = self.steps.objective, self.steps.residuals

    def searches_together(self, block: Block) -> bool:
        """Whether the steps of outputs with trees of their own are found together.

        Classes share a loss, so that their steps depend on each other. Others share passes.
        """
        if not block.is_searched or not isinstance(self.objective, BuiltinObjective):
            return False
        return block.facts.is_joint or not self.samples_rows

    def label(
        self, weak: WeakModel, weights: Weights, frozen: Mask | None
    ) -> tuple[Any, F64 | None]:
        """Values of a weak model for all outputs, and steps; ``frozen`` outputs get zeros."""
        if isinstance(weak, Predictions):
            values, steps, _ = self._label_predictions(weak, self.blocks, weights)
            assert steps is not None
            return values, _zero(steps, frozen)
        parts = [self._label_block(block, weak, weights, frozen) for block in self.blocks]
        values, steps, _ = parts[0]
        if len(parts) > 1:
            values = np.hstack([part.values for part in parts])
            if any(part.steps is not None for part in parts):
                each = [step_or_one(part.steps, part.values.shape[1]) for part in parts]
                steps = np.concatenate(each)
        return _zero(values, frozen), None if steps is None else _zero(steps, frozen)

    def label_alone(self, weak: WeakModel, weights: Weights, output: int) -> Labels:
        """Values of a weak model for one output, and its step, which may be left for later."""
        block = next(part for block in self.blocks if (part := block.of_output(output)) is not None)
        if not isinstance(weak, Predictions):
            return self._label_block(block, weak, weights, None)
        if block.facts.is_joint and block.is_searched:
            return Labels(weak.values.astype(np.float64), None)
        return self._label_predictions(weak, [block], weights)

    def fit_outputs(
        self, weak: WeakModel, split: SplitGradients, weights: Weights, frozen: Mask | None
    ) -> tuple[F64, F64]:
        """Scalar leaf values (n_leaves, 1) of a tree grown on φ r, and one step per output."""
        if isinstance(weak, Predictions):
            values, rho, _ = self._label_predictions(weak, self.blocks, weights)
            assert rho is not None
            return values, _zero(rho, frozen)
        objective, leaf_of_row = self.objective, weak.leaf_of_row
        leaf_weights = self._leaf_weights(weak, weights)
        parts = []
        for block in self.blocks:
            columns = block.columns(objective.n_outputs) if weights.by_cell else slice(None)
            known = leaf_weights[:, columns], self.residuals, weights
            parts.append(objective.leaf_sums(leaf_of_row, *known, block.outputs))
        sums = parts[0][0] if len(parts) == 1 else np.hstack([sums for sums, _ in parts])
        if self.gains is not None:
            self.gains.remember(weak.tree, _zero(sums, frozen), leaf_weights, None)
        values, total = _project_sums(sums, leaf_weights, split, by_cell=weights.by_cell)
        signs = split.signs
        if signs is not None:
            values = _in_order(weak, signs[None, :], total, values)
        direction = Direction(leaf_of_row, values.astype(np.float32))
        steps = [
            self.steps.along_leaves(block, direction, values, block_sums, weights)
            for block, block_sums in zip(self.blocks, parts, strict=True)
        ]
        rho = steps[0] if len(steps) == 1 else np.concatenate(steps)
        if signs is not None and self.monotonic is not None:
            rho = self.monotonic.along(rho, signs, weak.tree.ordered_features())
        return values, _zero(rho, frozen)

    def find_steps(
        self, block: Block, models: Sequence[tuple[WeakModel, F64, Sums | None]], weights: Weights
    ) -> F64:
        """Steps of models that were fitted to one output of a block each, found together.

        A model is its values and the derivatives along them at zero. Without these it is idle,
        unless the outputs share their loss.
        """
        first, joint = block.columns(self.objective.n_outputs).start, block.facts.is_joint
        size, steps = len(models) if joint else STEPS_TOGETHER, []
        for k in range(0, len(models), size):
            part = models[k : k + size]
            some = replace(block, outputs=(first + k, first + k + len(part)))
            g = np.zeros((self.objective.n_rows, len(part)), np.float32)
            for j, (weak, values, start) in enumerate(part):
                if joint or start is not None:
                    g[:, j] = _of_rows(weak, values)[:, 0]
            known = None if joint else _side_by_side([start for *_, start in part])
            rho = self.steps.line_search(some, Direction(None, g), weights, known)
            steps.append(self._forward(rho, some.outputs))
        return np.concatenate(steps)

    def _forward(self, rho: F64, outputs: Outputs) -> F64:
        return rho if self.monotonic is None else self.monotonic.forward(rho, outputs)

    def _label_block(
        self, block: Block, weak: Leaves, weights: Weights, frozen: Mask | None
    ) -> Labels:
        """Leaf values and steps for outputs that share a loss."""
        objective, outputs, leaf_of_row = self.objective, block.outputs, weak.leaf_of_row
        leaf_weights = self._leaf_weights(weak, weights, outputs)
        sums, curvatures = objective.leaf_sums(
            leaf_of_row, leaf_weights, self.residuals, weights, outputs
        )
        if frozen is not None:
            frozen = frozen[block.columns(objective.n_outputs)]
        if self.gains is not None:
            self.gains.remember(weak.tree, _zero(sums, frozen), leaf_weights, outputs)
        if block.is_newton:
            assert curvatures is not None
            damped = curvatures + block.l2 if block.l2 else curvatures
            values, matter = _newton_values(sums, damped, leaf_weights)
            return Labels(self._ordered(weak, values, matter, outputs), None)
        if block.step == "newton":
            assert isinstance(objective, BuiltinObjective)
            best = objective.leaf_quantiles(
                leaf_of_row, weak.n_leaves, self.steps.raw, weights, outputs
            )
            return Labels(self._ordered(weak, best, leaf_weights, outputs), None)
        mean = self._ordered(weak, divide(sums, leaf_weights), leaf_weights, outputs)
        direction = Direction(leaf_of_row, mean.astype(np.float32))
        slope, curvature = derivatives_at_zero(direction, (sums, curvatures))
        if isinstance(outputs, int):
            if self.searches_together(block):
                return Labels(mean, None, (slope, curvature))
        elif frozen is not None:
            slope = _zero(slope, frozen)
        rho = self.steps.line_search(block, direction, weights, (slope, curvature))
        return Labels(mean, self._forward(rho, outputs))

    def _leaf_weights(self, weak: Leaves, weights: Weights, outputs: Outputs = None) -> F64:
        """Σ w over the rows of each leaf, (n_leaves, 1); by output if cells are weighted."""
        if not weights.by_cell:
            return weak.leaf_weights[:, None]
        return self.objective.leaf_weights(weak.leaf_of_row, weak.n_leaves, weights, outputs)

    def _label_predictions(
        self, weak: Predictions, blocks: Sequence[Block], weights: Weights
    ) -> Labels:
        """Predictions of a weak model that is not a tree of leaves, and steps along them."""
        steps, g = [], weak.values
        for block in blocks:
            columns = block.columns(g.shape[1]) if g.shape[1] > 1 else slice(None)
            direction = Direction(None, np.ascontiguousarray(g[:, columns]))
            steps.append(self.steps.along_predictions(block, direction, weights))
        rho = steps[0] if len(steps) == 1 else np.concatenate(steps)
        return Labels(g.astype(np.float64), rho)

    def _ordered(self, weak: Leaves, values: F64, weights: F64, outputs: Outputs) -> F64:
        """Leaf values within the monotonic constraints; ``weights`` say how much each matters."""
        if self.monotonic is None:
            return values
        return _in_order(weak, self.monotonic.of(outputs), weights, values)


def _of_rows(weak: WeakModel, values: F64) -> F32:
    """The direction of each row (n_rows, 1)."""
    leaf_of_row = weak.leaf_of_row if isinstance(weak, Leaves) else None
    return Direction(leaf_of_row, values.astype(np.float32)).of_rows()


def _side_by_side(starts: Sequence[Sums | None]) -> Sums:
    """The derivatives at zero of several outputs; those of an idle one are zero."""
    zero = np.zeros(1)
    slopes = [zero if start is None else start[0] for start in starts]
    curvatures = [zero if start is None else start[1] for start in starts]
    known = [each for each in curvatures if each is not None]
    return np.concatenate(slopes), np.concatenate(known) if len(known) == len(starts) else None


def _newton_values(sums: F64, damped: F64, leaf_weights: F64) -> tuple[F64, F64]:
    """Newton's leaf values, and how much each matters; without curvature, mean residuals."""
    if damped.min() > 0:
        return sums / damped, damped
    curved = damped > 0
    values = np.where(curved, divide(sums, damped), divide(sums, leaf_weights))
    return values, np.where(curved, damped, leaf_weights)


def step_or_one(rho: F64 | None, width: int) -> F64:
    """Steps as numbers: leaf values that are final have a step of 1."""
    return np.ones(width) if rho is None else rho


def _zero(columns: F64, frozen: Mask | None) -> F64:
    """Return values or steps of all outputs, with zeros for the frozen ones."""
    return columns if frozen is None else np.where(frozen, 0.0, columns)


def _project_sums(
    sums: F64, leaf_weights: F64, split: SplitGradients, *, by_cell: bool
) -> tuple[F64, F64]:
    """Mean of φ r, which is φ times the mean of r, and weight of each leaf, both (n_leaves, 1)."""
    one = np.ones((1, 1), np.float32)
    phi = one if split.phi is None else split.phi
    total = leaf_weights
    if by_cell:
        shares = one if split.phi is None or split.shares is None else split.shares
        squared = shares.astype(np.float64) ** 2
        total = (leaf_weights * squared).sum(axis=1, keepdims=True) / squared.sum()
    # Not a matrix product: its last bits differ between machines.
    return divide((sums * phi).sum(axis=1, keepdims=True), total), total


def _in_order(weak: Leaves, signs: I8, weights: F64, values: F64) -> F64:
    """Leaf values in the order that constraints (n_outputs, n_features) ask for."""
    contiguous = np.ascontiguousarray
    return np.asarray(weak.tree.order_leaves(signs, contiguous(weights), contiguous(values)))
