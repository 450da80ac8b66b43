"""Features that single precision mixes up, such as Unix seconds: found, and cut in doubles.

Trees compare numbers in single precision. A feature that it mixes up is replaced by codes, small
integers: the number of its cuts below a value. :class:`manyboost.data.categories.Categories` keeps
the cuts and encodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.arrays import F32, F64
from manyboost.comm import ALONE, Comm
from manyboost.data.stored import StoredTable

#: Most rows that decide, and most values of them.
_SAMPLE_ROWS, _SAMPLE_VALUES = 512, 1 << 24
#: A feature is mixed up if one in so many of these rows is equal to another value in float32.
_ONE_IN = 256
# Numbers times this, modulo 2**64, are spread evenly: the smallest are an even sample.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_COLUMNS_AT_ONCE = 512


class RowSample:
    """The rows that decide, chosen by their numbers alone, in whatever order they come."""

    def __init__(self, n_features: int) -> None:
        self.size = max(256, min(_SAMPLE_ROWS, _SAMPLE_VALUES // max(1, n_features)))
        self.values: Any = np.empty((0, n_features))
        self._keys = np.empty(0, np.uint64)

    def add(self, X: Any, numbers: NDArray[np.uint64]) -> None:
        """Take more rows into account."""
        keys, values = self._chosen(numbers * _GOLDEN, X)
        if len(self._keys):
            keys, values = np.append(self._keys, keys), np.concatenate([self.values, values])
            keys, values = self._chosen(keys, values)
        self._keys, self.values = keys, values

    def _chosen(self, keys: NDArray[np.uint64], X: Any) -> tuple[NDArray[np.uint64], Any]:
        if len(keys) <= self.size:
            return keys, X
        # Keys are so even that twice the share of the sample holds all of it, nearly always.
        most = min(2 * self.size * (2**64 // len(keys)), 2**64 - 1)
        few = np.flatnonzero(keys < np.uint64(most))
        few = few if len(few) > self.size else np.arange(len(keys))
        smallest = np.sort(few[np.argpartition(keys[few], self.size)[: self.size]])
        return keys[smallest], X[smallest]

    def among(self, comm: Comm) -> Any:
        """Return the values of those rows that belong to the sample of all ranks."""
        if comm.size == 1:
            return self.values
        keys = np.concatenate(comm.gather(self._keys))
        return self.values[np.isin(self._keys, self._chosen(keys, keys)[0])]


def mixed_features(X: Any, numbers: NDArray[np.uint64] | None, comm: Comm = ALONE) -> list[int]:
    """Return the features that single precision mixes up.

    ``numbers`` are those of the rows among the rows of all ranks; None: 0, 1, 2, ….
    """
    if isinstance(X, StoredTable):
        return sorted(X.doubles)
    if not comm.any(X.dtype == np.float64):
        return []
    sample = RowSample(X.shape[1])
    sample.add(X, np.arange(X.shape[0], dtype=np.uint64) if numbers is None else numbers)
    return mixed_columns(sample.among(comm), comm)


def mixed_columns(sample: Any, comm: Comm = ALONE) -> list[int]:
    """Return the columns of sampled rows that single precision mixes up."""
    n_rows = comm.total(sample.shape[0])
    found: list[int] = []
    for values, columns in _often_equal(sample, n_rows, comm):
        single = _in_single(values)
        first = np.ones(len(values), bool)
        first[1:] = (single[1:] != single[:-1]) | (columns[1:] != columns[:-1])
        start = np.maximum.accumulate(np.where(first, np.arange(len(values)), 0))
        mixed = np.bincount(columns[values != values[start]])
        found += np.flatnonzero(mixed * _ONE_IN > n_rows).tolist()
    return found


def _often_equal(sample: Any, n_rows: int, comm: Comm) -> Iterator[tuple[F64, NDArray[np.intp]]]:
    """Yield values of all ranks that are not missing, sorted by column and value, and the columns.

    Columns of a dense array are left out if so few values are equal in single precision, or if it
    holds all values, that it cannot mix them up.
    """
    if sparse.issparse(sample):
        by_column = sample.tocoo()
        parts = comm.gather((by_column.data, by_column.col))
        values, columns = (np.concatenate(each) for each in zip(*parts, strict=True))
        # Single precision makes the smallest numbers zero; most zeros are not stored.
        tiny = np.unique(columns[(_in_single(values) == 0) & (values != 0)])
        absent = n_rows - np.bincount(columns)[tiny] if len(tiny) else tiny
        values = np.append(values, np.zeros(absent.sum()))
        columns = np.append(columns, np.repeat(tiny, absent))
        there = ~np.isnan(values)
        order = np.lexsort((values[there], columns[there]))
        yield values[there][order], columns[there][order].astype(np.intp)
        return
    for first in range(0, sample.shape[1], _COLUMNS_AT_ONCE):
        block = np.ascontiguousarray(sample[:, first : first + _COLUMNS_AT_ONCE].T, np.float64)
        if comm.size > 1:
            block = np.concatenate(comm.gather(block), axis=1)
        single = _in_single(block)
        ascending = np.sort(single, axis=1)
        n_equal = (ascending[:, 1:] == ascending[:, :-1]).sum(axis=1)
        chosen = np.flatnonzero(n_equal * _ONE_IN > n_rows)
        exact = (single[chosen] == block[chosen]) | np.isnan(block[chosen])
        chosen = chosen[~exact.all(axis=1)]
        if len(chosen):
            block = np.sort(block[chosen], axis=1)
            there = ~np.isnan(block)
            yield block[there], np.repeat(first + chosen, there.sum(axis=1))


def _in_single(values: F64) -> F32:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def find_cuts(values: F64, weight: F64 | None, max_bins: int, comm: Comm = ALONE) -> F64:
    """Return the cuts of a feature, ascending, as single precision would have them.

    Few values are cut between all neighbours, others at weighted quantiles. ``weight`` is positive.
    The values of all ranks come together on each of them.
    """
    values = np.concatenate(comm.gather(values))
    there = ~np.isnan(values)
    order = np.argsort(values[there])
    ascending = values[there][order]
    ends = np.flatnonzero(np.append(ascending[1:] != ascending[:-1], True))[: len(ascending)]
    up_to = ends + 1
    if weight is not None:
        masses = _whole_masses(np.concatenate(comm.gather(weight)))[there][order]
        up_to = np.cumsum(masses)[ends]
    distinct = ascending[ends]
    places = np.arange(len(distinct) - 1)
    if len(distinct) > max_bins:
        places = _equal_shares(up_to, max_bins)
    with np.errstate(invalid="ignore"):  # between −∞ and ∞
        middle = distinct[places] / 2 + distinct[places + 1] / 2
    cuts = np.where(middle < distinct[places + 1], middle, distinct[places])
    return np.unique(np.maximum(cuts, np.finfo(np.float64).min))


def _whole_masses(weight: F64) -> NDArray[np.int64]:
    """Return weights as integers, whose sum does not depend on the order; each is at least 1."""
    _, exponent = np.frexp(weight.max() * len(weight))
    masses: F64 = np.maximum(np.rint(np.ldexp(weight, 61 - exponent)), 1)
    return masses.astype(np.int64)


def _equal_shares(up_to: NDArray[Any], max_bins: int) -> NDArray[np.intp]:
    """Return the last value of each bin but the last; ``up_to`` is the mass up to each value.

    A bin is closed as soon as it holds its share of what is left.
    """
    total, before, places = int(up_to[-1]), 0, []
    for bins_left in range(max_bins, 1, -1):
        share = -(-(total - before) // bins_left)
        place = int(np.searchsorted(up_to, before + share))
        if place >= len(up_to) - 1:
            break
        places.append(place)
        before = int(up_to[place])
    return np.array(places, np.intp)
