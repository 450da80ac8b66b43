"""Tables and columns with names: a minimal frame that needs no other package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.data.cells import unknown_category

#: A dense array or a CSR matrix (SciPy's are untyped).
Matrix = Any


# Slots: the type alone tells that these are a frame and a series (:func:`frames.is_frame`).
@dataclass(slots=True, eq=False)
class NamedTable:
    """Numbers, or classes, with a name for each column; some columns may hold categories."""

    columns: list[str]
    # (n_rows, n_columns), NaN if missing; codes in columns of categories. Classes are objects.
    values: Matrix
    # The labels of the codes 0, 1, …, in any order, by the index of the column.
    categories: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.columns = list(self.columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return int(self.values.shape[0]), len(self.columns)

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, rows: NDArray[Any]) -> NamedTable:
        """Return some of the rows."""
        return NamedTable(self.columns, self.values[rows], self.categories)

    def labels(self, j: int) -> set[str]:
        """Return the categories that occur in a column."""
        codes = np.unique(self.values[:, j])
        return {self.categories[j][int(code)] for code in codes[~np.isnan(codes)]}

    def encode(
        self, known: Mapping[int, Sequence[Any]], name: str, *, refuse_unknown: bool = False
    ) -> Matrix:
        """Return the values, with the codes of ``known`` labels; unknown labels become NaN."""
        for j, column in enumerate(self.columns):
            if (j in known) != (j in self.categories):
                held, expected = ("numbers", "text") if j in known else ("text", "numbers")
                problem = f"Column {column!r} of {name} holds {held} where {expected} should be"
                raise ValueError(f"{problem}; read it as {expected}, or leave it out.")
        if not self.categories:
            return self.values
        values = np.array(self.values)
        for j, labels in self.categories.items():
            code_of = {str(label): code for code, label in enumerate(known[j])}
            codes = np.array([*(code_of.get(label, np.nan) for label in labels), np.nan])
            places = np.nan_to_num(values[:, j], nan=len(labels)).astype(np.intp)
            values[:, j] = codes[places]
            unknown = np.isnan(values[:, j]) & (places < len(labels))
            if refuse_unknown and unknown.any():
                row = int(np.argmax(unknown))
                category = repr(labels[places[row]])
                raise unknown_category(repr(self.columns[j]), name, category, row)
        return values


@dataclass(slots=True, eq=False)
class NamedColumn:
    """Values of one column, numbers or text, and its name."""

    name: str
    values: NDArray[Any]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self.values.dtype

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
        return NamedColumn(self.name, self.values[rows])


def densified(matrix: Matrix) -> NDArray[Any]:
    """Return a matrix as an array."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
