"""Labels that stay sparse: of very many, each row has a few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.arrays import F64, Mask
from manyboost.data.cells import MISSING_LABEL, row_blocks


@dataclass(frozen=True, eq=False)
class SparseLabels:
    """The labels of each row, in the place of an array (n_rows, n_outputs) of 0 and 1."""

    starts: NDArray[np.int64]  # (n_rows + 1,): where the labels of each row begin
    labels: NDArray[np.int32]  # ascending in each row
    n_outputs: int
    missing: Any = None  # CSR with a zero for each missing label: its weight; None: there is none
    ndim: ClassVar[int] = 2
    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.uint8)  # of the array that they stand for

    @classmethod
    def of_dense(cls, Y: NDArray[np.uint8]) -> SparseLabels:
        """Return the labels of an encoded array."""
        parts = [sparse.csr_array(Y[rows]) for rows in row_blocks(*Y.shape)]
        stored = sparse.vstack(parts, format="csr")
        return cls.of_stored(stored, stored.data == MISSING_LABEL)

    @classmethod
    def of_stored(cls, y: Any, missing: Mask) -> SparseLabels:
        """Return the labels of a CSR matrix in canonical order, of which some cells are missing."""

        def taken(cells: Mask) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
            starts = np.concatenate([np.zeros(1, np.int64), cells.cumsum()])[y.indptr]
            return starts, y.indices[cells].astype(np.int32)

        without = None
        if missing.any():
            starts, outputs = taken(missing)
            weights = np.zeros(len(outputs), np.float32), outputs, starts
            without = sparse.csr_array(weights, shape=y.shape)
        return cls(*taken((y.data != 0) & ~missing), y.shape[1], without)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of outputs."""
        return len(self), self.n_outputs

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        more = 0 if self.missing is None else self.missing.data.nbytes + self.missing.indices.nbytes
        return int(self.starts.nbytes + self.labels.nbytes + more)

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
        missing = None if self.missing is None else self.missing[rows]
        return SparseLabels(starts, self.labels[places], self.n_outputs, missing)

    def sums(self, weight: NDArray[np.floating] | None) -> F64:
        """Return for each output the weight of the rows that have it as a label."""
        of_labels = None if weight is None else np.repeat(weight, np.diff(self.starts))
        sums = np.bincount(self.labels, weights=of_labels, minlength=self.n_outputs)
        return sums.astype(np.float64)

    def hold(self, cells: Any) -> Mask:
        """Return which stored cells of a CSR matrix are labels."""
        of_labels = _places(self.starts, self.labels, self.n_outputs)
        wanted = _places(cells.indptr, cells.indices, self.n_outputs)
        if not len(of_labels):
            return np.zeros(len(wanted), bool)
        found = np.searchsorted(of_labels, wanted).clip(max=len(of_labels) - 1)
        return np.asarray(of_labels[found] == wanted)


def times(first: Any, second: Any) -> Any:
    """Return the product of weights of single cells, CSR or None; others weigh 1."""
    if first is None or second is None:
        return second if first is None else first
    n_rows, n_outputs = first.shape
    places = [_places(each.indptr, each.indices, n_outputs) for each in (first, second)]
    place, number = np.unique(np.concatenate(places), return_inverse=True)
    weight = np.ones(len(place), np.float64)
    np.multiply.at(weight, number, np.concatenate([first.data, second.data]))
    cells = place // n_outputs, place % n_outputs
    return sparse.csr_array((weight, cells), shape=(n_rows, n_outputs))


def _places(starts: NDArray[Any], outputs: NDArray[Any], n_outputs: int) -> NDArray[np.int64]:
    """Return the places of cells among those of all rows and outputs."""
    rows = np.repeat(np.arange(len(starts) - 1, dtype=np.int64), np.diff(starts))
    return np.asarray(rows * n_outputs + outputs)
