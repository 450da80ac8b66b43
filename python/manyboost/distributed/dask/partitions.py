"""Partitions of Dask collections: where they are, and which worker trains on them.

A partition is a chunk of rows of a Dask array, or a partition of a Dask data frame. Partitions stay
where they are; those of targets and weights follow the features they belong to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from manyboost.data.plain_arrays import unmasked
from manyboost.errors import RowError

#: Partitions of each argument of fit, by the name of the argument; the features come first.
Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class RowRange:
    """The rows of one partition: its number, its first row among all rows, its number of rows."""

    partition: int
    start: int
    n_rows: int


@dataclass(frozen=True)
class Partitions:
    """All partitions of features, targets and weights of the same rows, as futures."""

    columns: Columns
    blocks: list[RowRange]

    @property
    def features(self) -> list[Any]:
        """Futures of the features."""
        return next(iter(self.columns.values()))

    def at(self, places: list[int]) -> Columns:
        """Return the futures of some partitions."""
        return {name: [column[place] for place in places] for name, column in self.columns.items()}


@dataclass(frozen=True)
class Share:
    """What a worker has to know about its partitions."""

    blocks: list[RowRange]  # in the order in which they are stacked
    empty: dict[str, Any]  # arguments without rows, for a worker without partitions

    def arguments(self, columns: Columns) -> dict[str, Any]:
        """Return the arguments of fit: the rows of all partitions of this worker."""
        features = next(iter(columns))
        for name, parts in columns.items():
            for part, block in zip(parts, self.blocks, strict=True):
                if len_of(part) != block.n_rows:
                    raise ValueError(
                        f"Partition {block.partition} of {name} has {len_of(part)} rows, but that "
                        f"of {features} has {block.n_rows}; partition both in the same way."
                    )
        return {
            name: _stacked(parts) if parts else self.empty[name] for name, parts in columns.items()
        }

    def row_numbers(self) -> NDArray[np.uint64]:
        """Return the numbers of the rows among all rows, (n_rows,)."""
        ranges = [np.arange(b.start, b.start + b.n_rows, dtype=np.uint64) for b in self.blocks]
        return np.concatenate([np.empty(0, np.uint64), *ranges])

    def locate(self, error: RowError) -> RowError:
        """Return the error with the number of the row among all rows, and its partition."""
        row = error.row
        for block in self.blocks:
            if row < block.n_rows:
                where = f"row {row} of partition {block.partition}"
                return error.relocated(block.start + row, where)
            row -= block.n_rows
        return error


def len_of(part: Any) -> int:
    """Return the number of rows of a partition."""
    return int(part.shape[0])


def without_rows(part: Any) -> Any:
    """Return a partition of the same kind that has no rows."""
    return part.iloc[:0] if hasattr(part, "iloc") else part[:0]


def _stacked(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if all(scipy.sparse.issparse(part) for part in parts):
        return scipy.sparse.vstack(parts, format="csr")
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate([unmasked(part) for part in parts])  # which forgets masks
    if all(hasattr(part, "iloc") for part in parts):
        from dask.dataframe.dispatch import concat

        # Unlike pandas.concat, it unites categories that only some partitions have.
        return concat(parts)
    kinds = sorted({type(part).__name__ for part in parts})
    raise TypeError(
        f"A Dask collection has chunks of type {', '.join(kinds)}; use NumPy arrays, SciPy CSR "
        "matrices or pandas data frames, one of them for all chunks."
    )


# ---------------------------------------------------------------------- on the client


def find(client: Any, given: dict[str, Any]) -> Partitions:
    """Start to compute the partitions of collections; wait only if their sizes are unknown.

    Collections are given by the name of the argument, features first.
    """
    import dask.array as da

    features = next(iter(given))
    collections = {
        name: _checked(collection, name, (2,) if name == features else (1, 2))
        for name, collection in given.items()
        if collection is not None
    }
    lengths: Any = {name: _known_lengths(collection) for name, collection in collections.items()}
    columns: Columns = {}
    if None in lengths.values():
        columns = _compute(client, collections)
        asked = {name: client.map(len_of, each, pure=False) for name, each in columns.items()}
        lengths = client.gather(asked)
    wanted = lengths[features]
    for name, each in lengths.items():
        if sum(each) != sum(wanted):
            raise ValueError(
                f"{features} has {sum(wanted)} rows but {name} has {sum(each)}; they must have "
                "the same number."
            )
        if each != wanted:
            if not isinstance(collections[name], da.Array):
                raise ValueError(
                    f"{name} has other partitions than {features}, and those of a data frame "
                    f"cannot be split by rows; take {name} from the same frame, or pass arrays."
                )
            collections[name] = _realigned(collections[name], each, wanted)
            columns = {}
    ends = accumulate(wanted)
    blocks = [RowRange(k, next(ends) - n_rows, n_rows) for k, n_rows in enumerate(wanted)]
    return Partitions(columns or _compute(client, collections), blocks)


def _checked(collection: Any, name: str, dimensions: tuple[int, ...]) -> Any:
    """Return a collection whose chunks hold all columns of some rows, or refuse it."""
    import dask.array as da
    import dask.dataframe as dd

    if isinstance(collection, dd.Series) and 1 not in dimensions:
        raise ValueError(f"{name} is a Dask series; pass a data frame, such as s.to_frame().")
    if isinstance(collection, dd.DataFrame | dd.Series):
        return collection
    if not isinstance(collection, da.Array):
        raise TypeError(
            f"{name} is a {type(collection).__module__}.{type(collection).__qualname__}, but must "
            "be a Dask array or a Dask data frame; make one (dask.array.from_array), or use the "
            "estimator without Dask."
        )
    if collection.ndim not in dimensions:
        wanted = " or ".join(map(str, dimensions))
        raise ValueError(f"{name} has {collection.ndim} dimensions, but must have {wanted}.")
    if collection.ndim == 1 or collection.numblocks[1] == 1:
        return collection
    if scipy.sparse.issparse(collection._meta):
        raise ValueError(
            f"{name} has sparse chunks, {collection.numblocks[1]} beside each other; make chunks "
            "that hold all columns of some rows."
        )
    if _known_lengths(collection) is None:
        raise ValueError(
            f"{name} has {collection.numblocks[1]} chunks beside each other, with unknown numbers "
            "of rows; make chunks that hold all columns of some rows, or call "
            "compute_chunk_sizes() before."
        )
    return collection.rechunk({1: -1})


def _known_lengths(collection: Any) -> list[int] | None:
    """Return the number of rows of each partition; None if any is not known."""
    import dask.array as da

    # (A data frame may have columns of any names.)
    lengths = collection.chunks[0] if isinstance(collection, da.Array) else [math.nan]
    return None if any(map(math.isnan, lengths)) else [int(n_rows) for n_rows in lengths]


def _realigned(collection: Any, lengths: list[int], wanted: list[int]) -> Any:
    """Return an array, whose chunks have these lengths, with chunks of other lengths."""
    collection = collection.copy()
    collection._chunks = (tuple(lengths), *collection.chunks[1:])
    return collection.rechunk({0: tuple(wanted)})


def _compute(client: Any, collections: dict[str, Any]) -> Columns:
    """Return futures of all partitions; what collections share is computed once."""
    delayed = {}
    for name, collection in collections.items():
        parts = collection.to_delayed()
        delayed[name] = parts.ravel().tolist() if isinstance(parts, np.ndarray) else parts
    futures = iter(client.compute([part for parts in delayed.values() for part in parts]))
    return {name: [next(futures) for _ in parts] for name, parts in delayed.items()}


def assign(client: Any, tables: list[Partitions]) -> tuple[list[str], list[dict[str, list[int]]]]:
    """Choose a worker for each partition: one that holds its features.

    Ranks are the workers with training rows, the first table, in the order of their first rows.
    What others hold, validation rows and partitions without rows, goes to the rank with the fewest
    rows. Return the addresses of the ranks, and for each table the partitions of each rank. Raise
    LookupError if no worker holds a partition, because its worker was lost.
    """
    if not any(block.n_rows for block in tables[0].blocks):
        raise ValueError("X has no rows; at least one is needed.")
    load: dict[str, int] = {}
    places: list[dict[str, list[int]]] = []
    for table in tables:
        of_worker: dict[str, list[int]] = {}
        holders = client.who_has(table.features)
        for block in sorted(table.blocks, key=lambda block: block.n_rows == 0):
            candidates = set(holders.get(table.features[block.partition].key, ()))
            if not candidates:
                raise LookupError(block.partition)
            if table is not tables[0] or not block.n_rows:
                candidates = candidates & set(load) or set(load)
            address = min(candidates, key=lambda each: (load.get(each, 0), each))
            load[address] = load.get(address, 0) + block.n_rows
            of_worker.setdefault(address, []).append(block.partition)
        places.append(of_worker)
    return list(load), places
