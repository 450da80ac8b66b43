"""Labels that stay sparse: of very many, each row has a few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.arrays import F64
from manyboost.data.cells import MISSING_LABEL, row_blocks


@dataclass(frozen=True, eq=False)
class SparseLabels:
    """The labels of each row, in the place of an array (n_rows, n_outputs) of 0 and 1.

    None of them is missing.
    """

    starts: NDArray[np.int64]  # (n_rows + 1,): where the labels of each row begin
    labels: NDArray[np.int32]  # ascending in each row
    n_outputs: int
    ndim: ClassVar[int] = 2
    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.uint8)  # of the array that they stand for

    @classmethod
    def of_dense(cls, Y: NDArray[np.uint8]) -> SparseLabels | None:
        """Return the labels of an encoded array; None if some of them are missing."""
        counts, parts = [np.zeros(1, np.int64)], []
        for rows in row_blocks(*Y.shape):
            if (Y[rows] == MISSING_LABEL).any():
                return None
            row, label = np.nonzero(Y[rows])
            counts.append(np.bincount(row, minlength=rows.stop - rows.start))
            parts.append(label.astype(np.int32))
        return cls(np.concatenate(counts).cumsum(), np.concatenate(parts), Y.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of outputs."""
        return len(self), self.n_outputs

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(self.starts.nbytes + self.labels.nbytes)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def matrix(self) -> Any:
        """Return the labels as an indicator, a CSR matrix."""
        ones = np.ones(len(self.labels), np.uint8)
        return sparse.csr_array((ones, self.labels, self.starts), shape=self.shape)

    def __getitem__(self, rows: NDArray[np.integer]) -> SparseLabels:
        """Return the labels of some rows."""
        counts = np.diff(self.starts)[rows]
        starts = np.concatenate([np.zeros(1, np.int64), counts.cumsum()])
        # Of each label of these rows, its place among all labels.
        places = np.arange(starts[-1]) + np.repeat(self.starts[:-1][rows] - starts[:-1], counts)
        return SparseLabels(starts, self.labels[places], self.n_outputs)

    def sums(self, weight: NDArray[np.floating] | None) -> F64:
        """Return for each output the weight of the rows that have it as a label."""
        of_labels = None if weight is None else np.repeat(weight, np.diff(self.starts))
        sums = np.bincount(self.labels, weights=of_labels, minlength=self.n_outputs)
        return sums.astype(np.float64)
