"""Features as codes: categories, and numbers that single precision mixes up.

The code of a category is its place among the values that fit saw, NaN if it is missing or unknown.
If there are too many, the most frequent have codes of their own and the others share one. The code
of a number is the number of cuts below it, minus that of zero: sparse zeros stay zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.arrays import F32, F64, U32, Mask
from manyboost.comm import ALONE, Comm
from manyboost.data.cells import column_name, unknown_category
from manyboost.data.doubles import find_cuts
from manyboost.data.features import Table
from manyboost.data.rows import Rows
from manyboost.data.stored import StoredTable
from manyboost.errors import warn

#: Rows that a category must have for a code of its own where some share one.
LEAST_ROWS = 3


@dataclass(frozen=True)
class Categories:
    """What is known about the features that become codes, by number of the feature, ascending."""

    n_features: int  # all of them
    tables: dict[int, F64]  # the distinct values of categorical features; the index is the code
    cuts: dict[int, F64] = field(default_factory=dict)  # of those that single precision mixes up
    # The codes of the values in the tables, where rare ones share the last code.
    grouped: dict[int, NDArray[np.uint8]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, X: Table, is_categorical: Mask, max_categories: int, names: Any, comm: Comm = ALONE
    ) -> Categories:
        """Find the distinct values of the categorical features of X, on all ranks."""
        features = np.flatnonzero(is_categorical).tolist()
        if features:
            refuse_sparse(X, features[0], "X", names)
        tables, grouped = {}, {}
        for j in features:
            if isinstance(X, StoredTable) and not X.exact[j]:
                problem = "but features are stored in single precision, which mixes up its values"
                column = f"Column {column_name(j, names)} is categorical"
                raise ValueError(f"{column}, {problem}; use small whole numbers.")
            column = X[:, j]
            column = column[~np.isnan(column)]
            # + 0.0 turns -0.0 into 0.0; which of them is found depends on the order of the rows.
            tables[j] = comm.unique(column).astype(np.float64) + 0.0
            if np.isinf(tables[j]).any():
                what = f"Column {column_name(j, names)} has the category inf"
                raise ValueError(f"{what}; number the categories from 0, NaN if it is missing.")
            if len(tables[j]) > max_categories:
                places = np.searchsorted(tables[j], column)
                counts = comm.totals(np.bincount(places, minlength=len(tables[j])))
                grouped[j] = _grouped(counts, max_categories)
        categories = cls(int(X.shape[1]), tables, grouped=grouped)
        if grouped:
            categories._warn_of_groups(max_categories, names)
        return categories

    def _warn_of_groups(self, max_categories: int, names: Any) -> None:
        """Say once which columns have categories that count as one."""
        found = []
        for j, codes in self.grouped.items():
            n_rare = self.n_rare(j)
            kept = f"{len(codes) - n_rare:,} of its {len(codes):,}"
            found.append(f"column {column_name(j, names)} keeps {kept}")
        message = (
            f"Rare categories count as one where there are more than max_bins={max_categories}: "
            f"{', '.join(found)}; merge categories by meaning, or leave out columns of names."
        )
        warn(message)

    def n_rare(self, feature: int) -> int:
        """Return how many categories of a feature share a code."""
        codes = self.grouped.get(feature)
        return 0 if codes is None else int((codes == codes.max()).sum())

    def values_of(self, feature: int, codes: NDArray[Any]) -> list[list[float]]:
        """Return the categories that each of some codes stands for; none for unknown codes."""
        table = self.tables[feature]
        own = self.grouped.get(feature, np.arange(len(table)))
        return [table[own == code].tolist() for code in codes]

    def with_cuts(self, rows: Rows, mixed: list[int], max_bins: int) -> Categories:
        """Return these and the cuts of features that single precision mixes up, if any."""
        numeric = [j for j in mixed if j not in self.tables]
        if not numeric:
            return self
        weight = rows.weights.of_rows(rows.Y)
        found = ((j, _doubles(rows.X, j)) for j in numeric)
        return replace(
            self, cuts={j: find_cuts(each, weight, max_bins, rows.comm) for j, each in found}
        )

    @property
    def encodes(self) -> bool:
        """Whether there is anything to encode."""
        return bool(self.tables or self.cuts)

    def thresholds(self, feature: U32, threshold: F32, is_split: Mask) -> F64:
        """Return the thresholds of splits as values of X; those of codes stand for cuts."""
        values = threshold.astype(np.float64)
        for j, cuts in self.cuts.items():
            coded = (feature == j) & np.isfinite(threshold) & is_split
            place = np.floor(values[coded]).astype(np.intp) + np.searchsorted(cuts, 0.0)
            values[coded] = cuts[place]
        return values

    @property
    def counts(self) -> U32 | None:
        """Number of categories of each feature, 0 for numeric ones; None if all are numeric."""
        if not self.tables:
            return None
        counts = np.zeros(self.n_features, np.uint32)
        counts[list(self.tables)] = [self.n_codes(j) for j in self.tables]
        return counts

    def n_codes(self, feature: int) -> int:
        """Return the number of codes of a categorical feature."""
        codes = self.grouped.get(feature)
        return len(self.tables[feature]) if codes is None else int(codes.max()) + 1

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
        if not self.encodes:
            return X
        if self.tables:
            refuse_sparse(X, min(self.tables), name, names)
        for j in self.tables if refuse_unknown else ():
            column = X[:, j]
            unknown = np.isnan(self._recode(j, column)) & ~np.isnan(column)
            if unknown.any():
                row = int(np.argmax(unknown))
                raise unknown_category(column_name(j, names), name, f"{column[row]:g}", row)
        if isinstance(X, StoredTable):
            return replace(X, recode=self._recode)
        # Cuts are for trees alone, which take single precision.
        dtype = np.float32 if self.cuts else X.dtype
        with np.errstate(over="ignore"):
            encoded = X.astype(dtype) if sparse.issparse(X) else np.array(X, dtype)
        values: Any = encoded.data if sparse.issparse(X) else encoded
        for j in [*self.tables, *self.cuts]:
            if sparse.issparse(X):
                stored = X.indices == j
                values[stored] = self._recode(j, X.data[stored])
            else:
                values[:, j] = self._recode(j, X[:, j])
        return encoded

    def _recode(self, feature: int, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of a feature, or their codes if it has any."""
        if (cuts := self.cuts.get(feature)) is not None:
            codes = np.searchsorted(cuts, values) - np.searchsorted(cuts, 0.0)
            return np.where(np.isnan(values), np.nan, codes).astype(np.float32)
        table = self.tables.get(feature)
        if table is None:
            return values
        places = np.searchsorted(table, values)
        is_known = np.append(table, np.nan)[places] == values
        own = self.grouped.get(feature)
        codes = places if own is None else np.append(own, 0)[places]
        return np.where(is_known, codes, np.nan).astype(np.float32)


def _grouped(counts: NDArray[np.int64], max_codes: int) -> NDArray[np.uint8]:
    """Return a code for each of too many categories: the last one for all that are rare.

    The most frequent have codes of their own, of equals the first ones.
    """
    by_count = np.argsort(-counts, kind="stable")[: max_codes - 1]
    kept = np.sort(by_count[counts[by_count] >= LEAST_ROWS])
    codes = np.full(len(counts), len(kept), np.uint8)
    codes[kept] = np.arange(len(kept))
    return codes


def _doubles(X: Table, feature: int) -> F64:
    """Return the values of a feature."""
    column = X[:, feature]
    column = column.toarray().ravel() if sparse.issparse(X) else column
    return np.asarray(column, np.float64)


def refuse_sparse(X: Table, j: int, name: str, names: NDArray[Any] | None) -> None:
    """Refuse categories in a sparse matrix, most of which would be the number 0."""
    if sparse.issparse(X):
        problem = f"Column {column_name(j, names)} is categorical but {name} is a sparse matrix"
        raise ValueError(f"{problem}; pass {name}.toarray(), or encode the column (OneHotEncoder).")
