"""Categories as codes: the table of each categorical feature, from fit to predict.

The core knows only codes: 0, 1, ... for the entries of a feature's table, and NaN for values that
are missing or not in the table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.arrays import F32, U32, Mask
from manyboost.comm import ALONE, Comm
from manyboost.data.cells import column_name
from manyboost.data.features import Table
from manyboost.data.stored import StoredTable
from manyboost.errors import RowError


@dataclass(frozen=True)
class Categories:
    """The categories of a model's categorical features.

    The table of a feature holds its distinct values: numbers in ascending order, or labels (dtype
    object) in any order. A value's index is its code.
    """

    n_features: int  # numeric ones included
    tables: dict[int, NDArray[Any]]  # by number of the feature

    @classmethod
    def of(
        cls,
        X: Table,
        is_categorical: Mask,
        max_categories: int,
        names: NDArray[Any] | None,
        comm: Comm = ALONE,
    ) -> Categories:
        """Find the distinct values of the categorical features of X, on all ranks."""
        features = np.flatnonzero(is_categorical).tolist()
        if features:
            refuse_sparse(X, features[0], "X", names)
        tables = {}
        for j in features:
            if isinstance(X, StoredTable) and not X.exact[j]:
                raise ValueError(
                    f"Column {column_name(j, names)} is categorical, but features are stored in "
                    "single precision, which cannot tell all of its values apart; use small whole "
                    "numbers as categories."
                )
            column = X[:, j]
            # + 0.0 turns -0.0 into 0.0; which of them is found depends on the order of the rows.
            tables[j] = comm.unique(column[~np.isnan(column)]).astype(np.float64) + 0.0
            if (count := len(tables[j])) > max_categories:
                raise ValueError(
                    f"Column {column_name(j, names)} has {count} categories, more than max_bins="
                    f"{max_categories}; {'raise max_bins, ' if count <= 255 else ''}merge rare "
                    "categories, or leave it out of categorical_features to have it treated as "
                    "numbers."
                )
        return cls(int(X.shape[1]), tables)

    @property
    def counts(self) -> U32 | None:
        """Number of categories of each feature, 0 for numeric ones; None if all are numeric."""
        if not self.tables:
            return None
        counts = np.zeros(self.n_features, np.uint32)
        for j, table in self.tables.items():
            counts[j] = len(table)
        return counts

    @property
    def mask(self) -> Mask:
        """Which features are categorical, (n_features,)."""
        mask = np.zeros(self.n_features, bool)
        mask[list(self.tables)] = True
        return mask

    def encode(
        self, X: Table, names: NDArray[Any] | None, name: str = "X", *, refuse_unknown: bool = False
    ) -> Table:
        """Return X with codes in place of categories; unknown categories become missing."""
        if not self.tables:
            return X
        refuse_sparse(X, min(self.tables), name, names)
        stored = isinstance(X, StoredTable)
        encoded: Any = replace(X, recode=self._recode) if stored else np.array(X)
        for j, table in self.tables.items():
            if stored and not refuse_unknown:
                continue
            column = X[:, j]
            codes = codes_of(column, table)
            unknown = np.isnan(codes) & ~np.isnan(column)
            if refuse_unknown and unknown.any():
                row = int(np.argmax(unknown))
                what = f"Column {column_name(j, names)} of {name} has the category {column[row]:g}"
                rest = (
                    ", which the fitted model does not know; a warm start adds no categories, use "
                    "warm_start=False."
                )
                raise RowError(name, what, row, rest)
            if not stored:
                encoded[:, j] = codes
        return encoded

    def _recode(self, feature: int, values: F32) -> F32:
        """Return the values of a feature, as codes if it is categorical."""
        table = self.tables.get(feature)
        return values if table is None else codes_of(values, table)


def codes_of(values: NDArray[Any], table: NDArray[Any]) -> F32:
    """Return the index of each value (n,) in a table, NaN if it is not there."""
    if table.dtype == object:
        places = {label: float(code) for code, label in enumerate(table.tolist())}
        return np.array([places.get(value, np.nan) for value in values.tolist()], np.float32)
    if len(table) == 0:
        return np.full(len(values), np.nan, np.float32)
    codes = np.minimum(np.searchsorted(table, values), len(table) - 1)
    return np.where(table[codes] == values, codes, np.nan).astype(np.float32)


def refuse_sparse(X: Table, j: int, name: str, names: NDArray[Any] | None) -> None:
    """Refuse categories in a sparse matrix, most of which would be the number 0."""
    if sparse.issparse(X):
        raise ValueError(
            f"Column {column_name(j, names)} is categorical but {name} is a sparse matrix; pass a "
            f"dense array ({name}.toarray()), or encode the column (OneHotEncoder) and leave it "
            "out of categorical_features."
        )
