"""Losses with their constants: what a model needs to train and to predict.

A loss is first fitted (:func:`manyboost.training.baselines.fit_loss`: baseline and constants from
the training targets), then bound to targets and weights, which gives an
:class:`~manyboost.training.objectives.Objective`.

The raw predictions of the trees are kept apart from the baseline. Where adding a constant to an
output moves its minimiser by that constant, targets are kept relative to the baseline as well, so
that outputs far from zero keep their digits in single precision. The offset of a row is subtracted
from such targets too; elsewhere raw predictions start from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost import _core
from manyboost.arrays import F32, F64, Mask
from manyboost.data.cells import MISSING_LABEL, row_blocks
from manyboost.data.sparse_labels import SparseLabels
from manyboost.data.stored import mapping, release
from manyboost.data.weights import Weights
from manyboost.training.custom import CustomObjective, Loss
from manyboost.training.losses import MIXED, LossFacts
from manyboost.training.objectives import BuiltinObjective, LossBlocks, Objective
from manyboost.training.residuals import ResidualObjective
from manyboost.training.sparse_objective import SparseLogLoss, SparseSquaredError


class FittedLoss:
    """A loss with its baseline (n_outputs,) and constants ``param`` (quantile levels, δ of Huber).

    ``custom`` is the user's loss, if it is not a built-in one.
    """

    def __init__(
        self,
        facts: LossFacts,
        baseline: F64,
        *,
        param: F64 | None = None,
        custom: Loss | None = None,
    ) -> None:
        self.facts = facts
        # What the kernels add to raw predictions is single precision; the baseline agrees with it.
        single = baseline.astype(np.float32)
        self.baseline = baseline if facts.centred or custom else single.astype(np.float64)
        self.custom = custom
        self.param = np.full(len(baseline), 0.5) if param is None else param

    @property
    def centred(self) -> Mask:
        """Outputs whose targets are kept relative to baseline and offset (n_outputs,)."""
        return np.full(len(self.baseline), self.facts.centred)

    @property
    def blocks(self) -> LossBlocks:
        """The losses, and the half-open ranges of outputs that have them; None: all outputs."""
        return [(self.facts, None)]

    @property
    def is_joint(self) -> bool:
        """Whether a prediction may depend on the raw predictions of other outputs."""
        return self.custom is not None or any(facts.link.joint for facts, _ in self.blocks)

    @property
    def has_softmax(self) -> bool:
        """Whether some outputs share one loss in each row."""
        return any(facts.is_joint for facts, _ in self.blocks)

    def kernel(self) -> _core.Objective:
        """Return the loss as the core knows it."""
        offset = np.where(self.centred, 0.0, self.baseline).astype(np.float32)
        return _core.Objective(self._kernel_names(), offset, self.param.astype(np.float32))

    def _kernel_names(self) -> str | list[tuple[str, int]]:
        return self.facts.kernel

    def bind(
        self,
        Y: NDArray[Any] | SparseLabels,
        weights: Weights,
        pool: _core.Pool,
        *,
        offset: F64 | None = None,
        projected: bool = False,
    ) -> Objective:
        """Bind to targets: real (n, d), 0/1 labels (n, d), or class numbers (n,) for softmax.

        ``offset`` (n, d) is part of the raw predictions. ``projected`` says that rounds need only
        projections and leaf sums of residuals.
        """
        if isinstance(Y, SparseLabels):
            parts = self.blocks, Y, weights, pool, self.baseline
            return SparseSquaredError(*parts) if self.facts.quadratic else SparseLogLoss(*parts)
        if self.facts.quadratic and projected and not weights.by_cell:
            residuals = self._residuals(Y, offset, pool)
            return ResidualObjective(self.blocks, residuals, weights, pool)
        Y = without(Y, offset, self.centred)
        if self.custom is not None:
            targets = as_real(Y), weights, pool
            objective: Objective = CustomObjective(self.custom, self.facts, self.baseline, *targets)
        else:
            y = np.ascontiguousarray(self._centre(Y, pool) if Y.dtype.kind == "f" else Y)
            objective = BuiltinObjective(self.blocks, self.kernel(), self.param, y, weights, pool)
        if offset is not None and not self.centred.all():
            objective.start = np.where(self.centred, 0, offset).astype(np.float32)
        return objective

    def _residuals(self, Y: NDArray[Any], offset: F64 | None, pool: _core.Pool) -> F32:
        """Return what squared error has left to explain before any round."""
        if Y.dtype.kind == "f":
            return np.ascontiguousarray(self._centre(without(Y, offset, self.centred), pool))
        # Labels stand for -1 and 1.
        absent, present = (np.float32(sign - self.baseline) for sign in (-1.0, 1.0))
        residuals = np.empty(Y.shape, np.float32)
        for rows in row_blocks(*Y.shape):
            residuals[rows] = np.where(Y[rows], present, absent)
            if offset is not None:
                residuals[rows] -= offset[rows]
            release(Y)
        return residuals

    def _centre(self, Y: NDArray[Any], pool: _core.Pool) -> F32:
        """Return targets relative to the baseline where they are kept so, in single precision."""
        centre = np.where(self.centred, self.baseline, 0.0)
        single = _less(Y, centre, pool)
        if single is None:
            j = int(np.argmax(np.fmax.reduce(np.abs(Y - centre), axis=0)))
            raise ValueError(
                f"Output {j} of Y has values beyond the range of single precision (3e38); "
                "divide it by a constant."
            )
        return single

    def predict(self, raw: F64, outputs: list[int] | None = None) -> F64:
        """Predictions (regression) or probabilities of labels for raw predictions.

        ``outputs`` are the outputs that ``raw`` holds; None: all.
        """
        if self.custom is not None:
            return np.asarray(self.custom.inverse_link(raw), dtype=np.float64)
        return self.facts.link.inverse(raw)


class MixedLoss(FittedLoss):
    """Built-in losses with their baselines, one for each output or block of classes."""

    def __init__(self, fitted: list[FittedLoss]) -> None:
        super().__init__(
            MIXED,
            np.concatenate([loss.baseline for loss in fitted]),
            param=np.concatenate([loss.param for loss in fitted]),
        )
        self.fitted = fitted

    @property
    def centred(self) -> Mask:
        """Outputs whose targets are kept relative to baseline and offset (n_outputs,)."""
        return np.concatenate([loss.centred for loss in self.fitted])

    @property
    def blocks(self) -> LossBlocks:
        """The losses, and the half-open ranges of outputs that have them."""
        ranges = pairwise(accumulate((len(loss.baseline) for loss in self.fitted), initial=0))
        return [(loss.facts, pair) for loss, pair in zip(self.fitted, ranges, strict=True)]

    def _kernel_names(self) -> str | list[tuple[str, int]]:
        return [(loss.facts.kernel, len(loss.baseline)) for loss in self.fitted]

    def predict(self, raw: F64, outputs: list[int] | None = None) -> F64:
        """Predictions for raw predictions: means, and probabilities of labels."""
        places = np.arange(len(self.baseline)) if outputs is None else np.array(outputs)
        predictions = np.empty_like(raw)
        for facts, pair in self.blocks:
            assert pair is not None
            columns = (pair[0] <= places) & (places < pair[1])
            predictions[:, columns] = facts.link.inverse(raw[:, columns])
        return predictions


def mean_loss(losses: Sequence[FittedLoss]) -> FittedLoss:
    """Return the loss of the mean of models, whose baselines and constants differ."""
    first = losses[0]
    if isinstance(first, MixedLoss):
        parts = zip(*(loss.fitted for loss in losses if isinstance(loss, MixedLoss)), strict=True)
        return MixedLoss([mean_loss(part) for part in parts])
    params = np.array([loss.param for loss in losses])
    # Quantile levels, which are all the same, stay as they are.
    param = np.where((params == first.param).all(axis=0), first.param, params.mean(axis=0))
    baseline = np.mean([loss.baseline for loss in losses], axis=0)
    return FittedLoss(first.facts, baseline, param=param, custom=first.custom)


def as_real(Y: NDArray[Any]) -> F64:
    """Return targets or labels as numbers, NaN where they are missing."""
    real = np.ascontiguousarray(Y, dtype=np.float64)
    if Y.dtype == np.uint8:
        real[Y == MISSING_LABEL] = np.nan
    return real


def without(Y: NDArray[Any], offset: F64 | None, centred: Mask) -> NDArray[Any]:
    """Return targets less the offset, for the outputs where it can be subtracted."""
    if offset is None or not centred.any():
        return Y
    return np.asarray(Y - np.where(centred, offset, 0.0))


def _less(Y: NDArray[Any], centre: F64, pool: _core.Pool) -> F32 | None:
    """Return Y - centre in single precision, None if it does not fit; mapped files by blocks."""
    if mapping(Y) is None:
        return _core.centred(pool, np.ascontiguousarray(Y), centre)
    single = np.empty(Y.shape, np.float32)
    for rows in row_blocks(*Y.shape):
        part = _core.centred(pool, np.ascontiguousarray(Y[rows]), centre)
        release(Y)
        if part is None:
            return None
        single[rows] = part
    return single
