"""Rows in Dask collections: which partitions there are, where they are, and what they hold.

A partition is a chunk of rows of a Dask array, or a partition of a Dask data frame. Partitions stay
where they are; those of targets and weights follow the features they belong to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

#: Futures by what they hold (``"X"``, ``"y"``, ``"weight"``), those of a partition at its place.
Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class Partitions:
    """All partitions of a table: features, targets and weights of the same rows.

    Attributes
    ----------
    columns : dict of lists of futures
    n_rows : list of int
        Rows of each partition.
    """

    columns: Columns
    n_rows: list[int]

    @property
    def futures(self) -> list[Any]:
        """All futures."""
        return [future for column in self.columns.values() for future in column]

    def numbers(self, places: Sequence[int]) -> list[tuple[int, int, int]]:
        """Of some partitions: number of the first row, number of rows, place in the table."""
        starts = np.concatenate([[0], np.cumsum(self.n_rows, dtype=np.int64)])
        return [(int(starts[place]), self.n_rows[place], place) for place in places]

    def at(self, places: Sequence[int]) -> Columns:
        """Futures of some partitions."""
        return {name: [column[place] for place in places] for name, column in self.columns.items()}


#: Training rows, and validation rows if there are any.
Tables = tuple[Partitions, Partitions | None]


@dataclass(frozen=True)
class Share:
    """The partitions of one rank, on its worker.

    Attributes
    ----------
    columns : dict of lists
        Partitions, as :attr:`Partitions.columns`, but computed.
    numbers : list of tuples
        Of each partition: number of its first row, number of its rows, its place in the table.
    like : dict
        Tables without rows, for a rank without partitions.
    names : dict
        What columns are called in errors.
    """

    columns: Columns
    numbers: list[tuple[int, int, int]]
    like: dict[str, Any]
    names: dict[str, str]

    def tables(self) -> tuple[Any, Any, Any]:
        """Features, targets and weights of all rows of this rank; None for what there is not."""
        self._check()
        return self._table("X"), self._table("y"), self._table("weight")

    def row_numbers(self) -> NDArray[np.uint64]:
        """Numbers of the rows in the whole table (n_rows,)."""
        ranges = [np.arange(start, start + n, dtype=np.uint64) for start, n, _ in self.numbers]
        return np.concatenate([np.empty(0, np.uint64), *ranges])

    def _table(self, name: str) -> Any:
        if name not in self.columns:
            return None
        parts = self.columns[name]
        return stacked(parts) if parts else self.like[name]

    def _check(self) -> None:
        """Refuse partitions whose parts do not go together."""
        for name, parts in self.columns.items():
            for part, (_, n_rows, place) in zip(parts, self.numbers, strict=True):
                if len_of(part) != n_rows:
                    raise ValueError(
                        f"Partition {place} of {self.names[name]} has {len_of(part)} rows, but "
                        f"that of {self.names['X']} has {n_rows}; partition both in the same way."
                    )


def len_of(part: Any) -> int:
    """Rows of a partition."""
    return int(part.shape[0])


def without_rows(part: Any) -> Any:
    """Return a partition of the same kind that has no rows."""
    return part.iloc[:0] if hasattr(part, "iloc") else part[:0]


def stacked(parts: list[Any]) -> Any:
    """One table of partitions of the same kind."""
    if len(parts) == 1:
        return parts[0]
    if all(scipy.sparse.issparse(part) for part in parts):
        return scipy.sparse.vstack(parts, format="csr")
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    if all(hasattr(part, "iloc") for part in parts):
        from dask.dataframe.dispatch import concat

        # (This one knows of categories that only some partitions have.)
        return concat(parts)
    kinds = sorted({type(part).__name__ for part in parts})
    raise TypeError(
        f"A Dask collection has chunks of type {', '.join(kinds)}; use NumPy arrays, SciPy CSR "
        "matrices or pandas data frames, one of them for all chunks."
    )


# ---------------------------------------------------------------------- on the client


def find(client: Any, given: dict[str, Any], names: dict[str, str]) -> Partitions:
    """Compute the partitions of collections, and wait for none of them but unknown sizes.

    Parameters
    ----------
    client : distributed.Client
    given : dict
        The collections ``"X"``, ``"y"`` and ``"weight"``, as far as they were given.
    names : dict
        What they are called in errors.
    """
    collections = {
        name: _checked(collection, names[name], 2 if name == "X" else None)
        for name, collection in given.items()
        if collection is not None
    }
    lengths = _known_lengths(collections["X"])
    if lengths is None or any(_known_lengths(each) is None for each in collections.values()):
        columns = _compute(client, collections)
        counted = {name: client.map(len_of, column, pure=False) for name, column in columns.items()}
        found: dict[str, list[int]] = client.gather(counted)
    else:
        columns = {}
        found = {name: _known_lengths(each) or [] for name, each in collections.items()}
    _refuse_other_totals(found, names)
    lengths = found["X"]
    moved = {name for name, each in found.items() if each != lengths}
    for name in moved:
        collections[name] = _realigned(collections[name], found[name], lengths, names[name], names)
    if moved or not columns:
        columns = _compute(client, collections)
    return Partitions(columns, lengths)


def _checked(collection: Any, name: str, n_dimensions: int | None) -> Any:
    """Return a collection with one chunk in each row of chunks, or refuse it."""
    import dask.array as da
    import dask.dataframe as dd

    if isinstance(collection, dd.DataFrame | dd.Series):
        if n_dimensions == 2 and isinstance(collection, dd.Series):
            raise ValueError(f"{name} is a Dask series; pass a data frame, with one column if so.")
        return collection
    if not isinstance(collection, da.Array):
        raise TypeError(
            f"{name} is a {type(collection).__module__}.{type(collection).__qualname__}, but must "
            "be a Dask array or a Dask data frame; make one (dask.array.from_array), or use the "
            "estimator without Dask."
        )
    allowed = (n_dimensions,) if n_dimensions else (1, 2)
    if collection.ndim not in allowed:
        wanted = " or ".join(map(str, allowed))
        raise ValueError(f"{name} has {collection.ndim} dimensions, but must have {wanted}.")
    if collection.ndim == 1 or collection.numblocks[1] == 1:
        return collection
    if scipy.sparse.issparse(collection._meta):
        raise ValueError(
            f"{name} has sparse chunks, {collection.numblocks[1]} beside each other; make chunks "
            "that hold all columns of some rows."
        )
    if any(math.isnan(size) for size in collection.chunks[0]):
        raise ValueError(
            f"{name} has {collection.numblocks[1]} chunks beside each other, with unknown numbers "
            "of rows; make chunks that hold all columns of some rows, or call "
            "compute_chunk_sizes() before."
        )
    return collection.rechunk({1: -1})


def _known_lengths(collection: Any) -> list[int] | None:
    """Rows of each partition; None if some are not known."""
    if not hasattr(collection, "chunks"):
        return None
    lengths = collection.chunks[0]
    return None if any(math.isnan(size) for size in lengths) else [int(n) for n in lengths]


def _refuse_other_totals(lengths: dict[str, list[int]], names: dict[str, str]) -> None:
    n_rows = sum(lengths["X"])
    for name, parts in lengths.items():
        if sum(parts) != n_rows:
            raise ValueError(
                f"{names['X']} has {n_rows} rows but {names[name]} has {sum(parts)}; they must "
                "have the same number."
            )


def _realigned(
    collection: Any, lengths: list[int], wanted: list[int], name: str, names: dict[str, str]
) -> Any:
    """Return a collection with partitions of other lengths."""
    if not hasattr(collection, "rechunk"):
        raise ValueError(
            f"{name} has other partitions than {names['X']}, and those of a data frame cannot be "
            f"cut by rows; take {name} from the same frame, or pass arrays."
        )
    collection = collection.copy()
    collection._chunks = (tuple(lengths), *collection.chunks[1:])
    return collection.rechunk({0: tuple(wanted)})


def _compute(client: Any, collections: dict[str, Any]) -> Columns:
    """Futures of all partitions; what collections share is computed once."""
    delayed = {name: _delayed(each) for name, each in collections.items()}
    futures = iter(client.compute([part for parts in delayed.values() for part in parts]))
    return {name: [next(futures) for _ in parts] for name, parts in delayed.items()}


def _delayed(collection: Any) -> list[Any]:
    parts = collection.to_delayed()
    return list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)


def assign(client: Any, tables: Tables) -> tuple[list[str], list[dict[str, list[int]]]]:
    """Choose a worker for each partition: one that holds its features.

    Ranks are the workers with training rows. What others hold, validation rows and partitions
    without rows, goes to the rank with the fewest rows.

    Returns
    -------
    addresses : list of str
        Workers of the ranks, in the order of their first rows.
    places : list of dict
        For each table the places of the partitions of each worker.

    Raises
    ------
    LookupError
        A partition is nowhere, because its worker was lost.
    """
    holders = [{} if table is None else client.who_has(table.columns["X"]) for table in tables]
    load: dict[str, int] = {}
    places: list[dict[str, list[int]]] = [{}, {}]

    def give(which: int, place: int, *, join: bool) -> None:
        table = tables[which]
        assert table is not None
        candidates = holders[which].get(table.columns["X"][place].key)
        if not candidates:
            raise LookupError(place)
        # Several may hold a copy.
        known = candidates if join else (set(candidates) & set(load) or load)
        address = min(known, key=lambda each: (load.get(each, 0), each))
        load[address] = load.get(address, 0) + table.n_rows[place]
        places[which].setdefault(address, []).append(place)

    train, validation = tables
    if not any(train.n_rows):
        raise ValueError("X has no rows; at least one is needed.")
    for place, n_rows in enumerate(train.n_rows):
        if n_rows:
            give(0, place, join=True)
    for place, n_rows in enumerate(train.n_rows):
        if not n_rows:
            give(0, place, join=False)
    if validation is not None:
        for place in range(len(validation.n_rows)):
            give(1, place, join=False)
    return list(load), places
