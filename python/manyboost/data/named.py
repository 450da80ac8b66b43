"""Tables and columns with names: a minimal frame that needs no other package.

Estimators take them like frames of pandas or polars. The command line reads files into them, which
keeps names and categories whatever is installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

#: A dense array or a CSR matrix (SciPy's are untyped).
Matrix = Any


class NamedTable:
    """Numbers with a name for each column; some columns may hold categories.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns.
    values : ndarray or csr_matrix of shape (n_rows, n_columns)
        Numbers, NaN if missing; codes in columns of categories.
    categories : mapping of int to tuple of str
        For each column of categories, by its index, the labels of the codes 0, 1, …, in any order.
    """

    def __init__(
        self,
        columns: Sequence[str],
        values: Matrix,
        categories: Mapping[int, tuple[str, ...]] | None = None,
    ) -> None:
        self._columns, self.values, self.categories = list(columns), values, categories or {}

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._columns

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return int(self.values.shape[0]), len(self._columns)

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, rows: NDArray[Any]) -> NamedTable:
        """Return some of the rows."""
        return NamedTable(self._columns, self.values[rows], self.categories)

    def labels(self, j: int) -> set[str]:
        """Return the categories that occur in a column."""
        codes = np.unique(self.values[:, j])
        return {self.categories[j][int(code)] for code in codes[~np.isnan(codes)]}

    def encode(self, known: Mapping[int, Sequence[Any]], name: str) -> Matrix:
        """Return the values, with categories as indices into the ``known`` labels of their column.

        Labels are compared as text; unknown labels become NaN.
        """
        for j, column in enumerate(self._columns):
            if (j in known) != (j in self.categories):
                held, expected = (
                    ("text", "numbers") if j in self.categories else ("numbers", "text")
                )
                raise ValueError(
                    f"Column {column!r} of {name} holds {held} where {expected} should be; read it "
                    f"as {expected}, or leave it out."
                )
        if not self.categories:
            return self.values
        values = np.array(self.values)
        for j, labels in self.categories.items():
            place = {str(label): code for code, label in enumerate(known[j])}
            codes = np.array([*(place.get(label, np.nan) for label in labels), np.nan])
            missing = np.isnan(values[:, j])
            values[:, j] = codes[np.where(missing, len(labels), values[:, j]).astype(np.intp)]
        return values


class NamedColumn:
    """Values of one column, and its name.

    Parameters
    ----------
    name : str
        Name of the column.
    values : ndarray of shape (n_rows,)
        Numbers or text.
    """

    def __init__(self, name: str, values: NDArray[Any]) -> None:
        self._name, self.values = name, values

    # Properties: the type alone tells that this is a series (:func:`frames.is_series`).

    @property
    def name(self) -> str:
        """Name of the column."""
        return self._name

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self.values.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows."""
        return self.values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype) if copy else np.asarray(self.values, dtype)

    def to_numpy(self) -> NDArray[Any]:
        """Return the values."""
        return self.values

    def to_list(self) -> list[Any]:
        """Return the values as a list."""
        return list(self.values.tolist())

    def take(self, rows: NDArray[Any]) -> NamedColumn:
        """Return some of the rows."""
        return NamedColumn(self._name, self.values[rows])


def densified(matrix: Matrix) -> NDArray[Any]:
    """Return a matrix as an array."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
