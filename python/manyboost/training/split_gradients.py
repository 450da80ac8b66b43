"""Split gradients: what the tree of a round is grown on.

The residuals r (n_rows, n_outputs) say where the raw predictions should move. A tree is grown on
z = φ r instead, with one column for each component; the projection φ is drawn anew each round, or
is the identity. Where cells are weighted, z = φ (w r), and each row and component has the weight
ω = φ² w / Σ φ².
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from manyboost.arrays import F32, F64, I8, Mask
from manyboost.training.projections import draw

if TYPE_CHECKING:  # both are made of what is defined here
    from manyboost.training.objectives import Objective
    from manyboost.training.plan import Plan


class SplitGradients(NamedTuple):
    """What the tree of one round is grown on; an objective fills ``z`` and weights ω."""

    z: F32  # (n_rows, n_components): residuals times ``matrix``, or the residuals themselves
    weight: F32 | None  # (n_rows,) of rows, or like ``z`` (ω) where cells are weighted
    phi: F32 | None = None  # (n_components, n_outputs), with output scales; None: the identity
    shares: F32 | None = None  # φ by which ω is computed, for outputs that are on one scale
    matrix: F32 | None = None  # what residuals are multiplied by; None: nothing
    signs: I8 | None = None  # (n_features,): monotonic constraints that the tree is grown under


def newton_split(residuals: F32, weight: F32 | None) -> tuple[F32, F32]:
    """Return r / h (n_rows, 1), and the weights w h of rows: the gain is Newton's, (Σ r)² / Σ h.

    Of probabilities, whose curvature is h = |r| (1 − |r|). It is kept above zero, so that every row
    counts.
    """
    size = np.abs(residuals)
    curvature = np.maximum(size * (1 - size), np.float32(1e-7))
    rows = curvature[:, 0] if weight is None else curvature[:, 0] * weight
    return residuals / curvature, rows


class SplitGradientMaker:
    """Draws the projections of a fit, and holds the arrays that split gradients are written to.

    ``residuals`` is the array that training keeps its residuals in. When trees are grown, they are
    multiplied by ``scale`` (n_outputs,), which includes ``plan.importance``. With ``keeps_columns``
    every output has a column, even one that trees are not grown for. Without ``grows`` trees are
    known: they need no split gradients, unless their leaves are fitted to these.
    """

    def __init__(
        self,
        plan: Plan,
        objective: Objective,
        residuals: F32,
        scale: F64 | None,
        keeps_columns: bool,
        grows: bool = True,
    ) -> None:
        self.plan, self.strategy, self.monotonic = plan, plan.strategy, plan.monotonic
        self.weights, self.zero_sums = objective.weights, objective.zero_sums
        self.residuals, self.keeps_columns = residuals, keeps_columns
        self.draws = plan.projects
        self.grows = grows or plan.strategy.has_one_value_per_leaf
        # The reciprocal of the smallest scales is beyond single precision.
        self.scale = None if scale is None else np.minimum(scale, 1e36).astype(np.float32)
        importance = plan.importance
        self.importance = None if importance is None else importance.astype(np.float32)
        # Outputs whose weight is not zero; None: all.
        self.weighted = None if self.scale is None or self.scale.all() else self.scale > 0
        self._z: F32 | None = None
        self._omega: F32 | None = None

    def make(self, m: int, frozen: Mask | None) -> SplitGradients:
        """Draw the projection of round ``m``; the objective fills ``z`` and ``weight``.

        ``frozen`` (n_outputs,) are outputs that no longer change; None: none.
        """
        if not self.grows:
            return SplitGradients(self.residuals, self.weights.rows)
        by_cell, growing = self.weights.by_cell, self._growing_outputs(frozen)
        signs = self.growth_signs(m)
        phi = self._draw(m, growing, signs) if self.draws else None
        matrix = phi
        if phi is None and self.strategy.shares_trees:
            matrix = self._identity(growing)
        if matrix is None:
            return SplitGradients(self.residuals, self.weights.rows, signs=signs)
        if self._z is None or self._z.shape[1] != len(matrix):
            self._z = np.empty((len(self.residuals), len(matrix)), np.float32)
            self._omega = np.empty_like(self._z) if by_cell else None
        scaled = matrix if self.scale is None else matrix * self.scale
        shown = None if phi is None else scaled
        if not by_cell:
            return SplitGradients(self._z, self.weights.rows, shown, None, scaled, signs)
        shares = matrix if self.importance is None else matrix * self.importance
        return SplitGradients(self._z, self._omega, shown, shares, scaled, signs)

    def growth_signs(self, m: int, output: int | None = None) -> I8 | None:
        """Monotonic constraints (n_features,) under which a tree of round ``m`` is grown.

        The components of a tree with vector leaves are not outputs: it is grown freely, and its
        leaf values are brought into order.
        """
        if self.monotonic is None or not self.strategy.has_one_value_per_leaf:
            return None
        return self.monotonic.reference(m) if output is None else self.monotonic.signs[output]

    def _identity(self, growing: Mask | None) -> F32 | None:
        """Return φ of trees that are grown on the outputs themselves; None: the residuals do."""
        if self.scale is None and growing is None and not self.weights.by_cell:
            return None
        phi = np.eye(self.residuals.shape[1], dtype=np.float32)
        if growing is not None and not self.keeps_columns:
            phi = phi[growing]
        elif growing is not None:
            phi[~growing] = 0
        return phi

    def _growing_outputs(self, frozen: Mask | None) -> Mask | None:
        """Return the outputs that trees are grown for (n_outputs,); None: all."""
        weighted = self.weighted
        if frozen is None:
            return weighted
        growing = ~frozen if weighted is None else weighted & ~frozen
        # If every output that still changes has weight zero, grow trees for the others.
        return growing if growing.any() else weighted

    def _draw(self, m: int, growing: Mask | None, signs: I8 | None) -> F32:
        """Draw φ of round ``m`` (n_components, n_outputs)."""
        plan, size = self.plan, (self.plan.n_components, self.residuals.shape[1])
        phi = draw(plan.projection, *size, self.zero_sums, plan.seed, m, growing)
        if signs is not None and self.monotonic is not None:
            phi = phi * np.float32(self.monotonic.sense(phi, signs))
        return phi
