"""What a model keeps of its out-of-fold predictions, so that it can say how far off it may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost import _core
from manyboost.arrays import F64
from manyboost.data.rows import Rows

#: Cells of the predictions that are kept, unless these are fewer than :data:`LEAST_ROWS` rows.
MOST_CELLS = 1 << 20
LEAST_ROWS = 1000


@dataclass(frozen=True, eq=False)
class Calibration:
    """Rows with the raw predictions of the member of a folded model that has not seen them."""

    raw: NDArray[Any]  # floats (n_rows, n_outputs), with baseline and offset
    Y: NDArray[Any]  # encoded targets, as in Rows
    weights: NDArray[np.floating] | None  # of rows (n_rows,) or cells (n_rows, n_outputs)
    member: NDArray[np.uint8]  # (n_rows,), the one that has not seen the row

    @classmethod
    def of(
        cls,
        rows: Rows,
        raw: F64,
        member: NDArray[np.uint8],
        seed: int,
        weights: NDArray[np.floating] | None = None,
    ) -> Calibration:
        """Keep some of the training rows, drawn by number if there are many.

        ``weights`` are those that the user gave, without weights of classes.
        """
        n_kept = max(LEAST_ROWS, MOST_CELLS // raw.shape[1])
        # Another seed than that of the folds: the rows kept must not all be of one fold.
        kept = np.arange(len(rows), dtype=np.uint32)
        if len(rows) > n_kept:
            kept = _core.validation_rows(_core.Pool(1), rows.numbers, n_kept, seed ^ 0x5EED)
        # Real targets may be large beside their residuals; labels need no double precision.
        dtype = np.float64 if rows.Y.dtype.kind == "f" else np.float32
        return cls(
            np.ascontiguousarray(raw[kept], dtype),
            np.ascontiguousarray(rows.Y[kept]),
            None if weights is None else np.ascontiguousarray(weights[kept]),
            np.ascontiguousarray(member[kept]),
        )
