"""How large residuals are likely to be, row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.arrays import F64
from manyboost.training.calibration import Calibration

#: Small models suffice: nobody can say much about the size of a residual.
_MODEL = {"max_iter": 40, "max_leaf_nodes": 8, "learning_rate": 0.1, "early_stopping": False}
#: Share of an output's mean residual that is added: no spread falls to zero.
_FLOOR = 0.1


class Spread:
    """Sizes of residuals, predicted from raw predictions: features need not be kept for it.

    The model for the calibration rows of a fold has not seen them; new rows get the mean of all.
    """

    def __init__(
        self,
        make: Callable[..., Any],
        calibration: Calibration,
        sizes: F64,
        weights: NDArray[np.floating] | None,
    ) -> None:
        """Fit regressors that ``make`` returns to the sizes (n_rows, n_outputs) of residuals."""
        self.floor = _FLOOR * np.nanmean(sizes, axis=0)
        self.floor[~(self.floor > 0)] = 1.0
        self.models = []
        self.known = np.empty_like(sizes)  # of the calibration rows
        for k in np.unique(calibration.member):
            fold = calibration.member == k
            raw, target = calibration.raw[~fold], sizes[~fold]
            # (Of an output that no other fold has observed nothing is known but its floor.)
            target = np.where(np.isnan(target).all(axis=0), 0.0, target)
            model = make(**_MODEL).fit(raw, target, None if weights is None else weights[~fold])
            self.known[fold] = model.predict(calibration.raw[fold])
            self.models.append(model)
        self.known = np.maximum(self.known, 0) + self.floor

    def predict(self, raw: F64) -> F64:
        """Return the sizes (n_rows, n_outputs) for raw predictions."""
        mean = np.mean([model.predict(raw) for model in self.models], axis=0)
        return np.asarray(np.maximum(mean, 0) + self.floor)
