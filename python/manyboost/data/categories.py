"""Categories as codes: 0, 1, … for the values that fit saw, NaN for missing and unknown ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.arrays import F64, U32, Mask
from manyboost.comm import ALONE, Comm
from manyboost.data.cells import column_name
from manyboost.data.features import Table
from manyboost.data.stored import StoredTable
from manyboost.errors import RowError


@dataclass(frozen=True)
class Categories:
    """The distinct values of each categorical feature; a value's index is its code."""

    n_features: int  # numeric ones included
    tables: dict[int, F64]  # by number of the feature, ascending

    @classmethod
    def of(
        cls, X: Table, is_categorical: Mask, max_categories: int, names: Any, comm: Comm = ALONE
    ) -> Categories:
        """Find the distinct values of the categorical features of X, on all ranks."""
        features = np.flatnonzero(is_categorical).tolist()
        if features:
            refuse_sparse(X, features[0], "X", names)
        tables = {}
        for j in features:
            if isinstance(X, StoredTable) and not X.exact[j]:
                problem = "but features are stored in single precision, which mixes up its values"
                column = f"Column {column_name(j, names)} is categorical"
                raise ValueError(f"{column}, {problem}; use small whole numbers.")
            column = X[:, j]
            # + 0.0 turns -0.0 into 0.0; which of them is found depends on the order of the rows.
            tables[j] = comm.unique(column[~np.isnan(column)]).astype(np.float64) + 0.0
            if (count := len(tables[j])) > max_categories:
                raise ValueError(
                    f"Column {column_name(j, names)} has {count} categories, more than max_bins="
                    f"{max_categories}; {'raise max_bins, ' if count <= 255 else ''}merge rare "
                    "categories, or leave it out of categorical_features: it then holds numbers."
                )
        return cls(int(X.shape[1]), tables)

    @property
    def counts(self) -> U32 | None:
        """Number of categories of each feature, 0 for numeric ones; None if all are numeric."""
        if not self.tables:
            return None
        counts = np.zeros(self.n_features, np.uint32)
        counts[list(self.tables)] = [len(table) for table in self.tables.values()]
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
        for j in self.tables if refuse_unknown else ():
            column = X[:, j]
            unknown = np.isnan(self._recode(j, column)) & ~np.isnan(column)
            if unknown.any():
                row = int(np.argmax(unknown))
                what = f"Column {column_name(j, names)} of {name} has the category {column[row]:g}"
                rest = ", which the fitted model does not know; use warm_start=False."
                raise RowError(name, what, row, rest)
        if isinstance(X, StoredTable):
            return replace(X, recode=self._recode)
        encoded = np.array(X)
        for j in self.tables:
            encoded[:, j] = self._recode(j, encoded[:, j])
        return encoded

    def _recode(self, feature: int, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of a feature; if it is categorical their codes, NaN if unknown."""
        table = self.tables.get(feature)
        if table is None:
            return values
        codes = np.searchsorted(table, values)
        padded = np.append(table, np.nan)
        return np.where(padded[codes] == values, codes, np.nan).astype(np.float32)


def refuse_sparse(X: Table, j: int, name: str, names: NDArray[Any] | None) -> None:
    """Refuse categories in a sparse matrix, most of which would be the number 0."""
    if sparse.issparse(X):
        problem = f"Column {column_name(j, names)} is categorical but {name} is a sparse matrix"
        raise ValueError(f"{problem}; pass {name}.toarray(), or encode the column (OneHotEncoder).")
