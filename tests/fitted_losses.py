"""Losses that are fitted to small samples."""

import numpy as np

from manyboost import _core
from manyboost.data.cells import TargetKind
from manyboost.data.weights import Weights
from manyboost.training.baselines import Sample, fit_sample

POOL = _core.Pool(1)
KINDS = {"u": {1: TargetKind.LABELS, 4: TargetKind.CLASSES}}


def fitted(loss, Y, weight=None, *, n_outputs, quantile=0.5, offset=None):
    """A loss with the baseline of targets: real, labels (uint8) or classes (uint32)."""
    kind = KINDS.get(Y.dtype.kind, {}).get(Y.dtype.itemsize, TargetKind.REAL)
    levels = np.full(n_outputs, quantile)
    return fit_sample(loss, Sample(Y, Weights(weight), POOL, n_outputs, kind, levels, None, offset))
