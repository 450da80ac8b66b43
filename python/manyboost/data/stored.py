"""Features and targets in scratch files, which :mod:`manyboost.distributed.outofcore` writes.

Estimators take them in place of arrays, and have only some columns or rows in memory at a time.
"""

from __future__ import annotations

import mmap
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from manyboost import _core
from manyboost.arrays import F32, F64, Mask
from manyboost.data.cells import row_blocks

#: Values of features that are in memory at once during binning.
_VALUES_PER_BLOCK = 1 << 24


@dataclass(frozen=True)
class StoredTable:
    """Features in single precision, in a file of chunks of rows."""

    path: Path  # each chunk is (n_features, n_rows of the chunk)
    ends: NDArray[np.intp]  # number of rows up to the end of each chunk
    n_features: int
    names: list[str] | None
    exact: Mask  # features whose values are exact in single precision
    doubles: Mapping[int, F64] = field(default_factory=dict)  # all rows of those it mixes up
    rows: NDArray[np.intp] | None = None  # indices of the table's rows, ascending; None: all
    recode: Callable[[int, NDArray[Any]], F32] | None = None  # codes of the values of a feature
    dtype: ClassVar[np.dtype[np.float32]] = np.dtype(np.float32)
    is_in_files: ClassVar[bool] = True  # so that it takes little memory

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and features."""
        return int(self.ends[-1]) if self.rows is None else len(self.rows), self.n_features

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """Return the table of some rows (ascending), or the values of the feature ``[:, j]``."""
        if isinstance(key, tuple):
            if self.recode is None and key[1] in self.doubles:
                values = self.doubles[key[1]]
                return values if self.rows is None else values[self.rows]
            return self.columns_between(key[1], key[1] + 1)[0]
        return replace(self, rows=key if self.rows is None else self.rows[key])

    def columns_between(self, first: int, last: int) -> F32:
        """Return the values of the features ``first`` up to ``last``, (last - first, n_rows)."""
        values = np.empty((last - first, len(self)), np.float32)
        for rows, part in self._parts(first, last):
            values[:, rows] = part
        return values

    def blocks(self) -> Iterator[tuple[slice, F32]]:
        """Yield blocks of rows: their slice, and their values (n_rows of the block, n_features)."""
        for rows, part in self._parts(0, self.n_features):
            yield rows, np.ascontiguousarray(part.T)

    def load(self) -> F32:
        """Read all values, (n_rows, n_features), into memory."""
        values = np.empty(self.shape, np.float32)
        for rows, block in self.blocks():
            values[rows] = block
        return values

    def binned(self, pool: _core.Pool, binner: _core.ColumnBinner) -> _core.Features:
        """Bin all features, a block of columns at a time."""
        size = max(1, _VALUES_PER_BLOCK // max(1, len(self)))
        for first in range(0, self.n_features, size):
            binner.push(pool, self.columns_between(first, min(first + size, self.n_features)))
        return binner.finish()

    def take_targets(self, Y: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[Any]:
        """Return some rows of the targets, in a new file if the targets are in one."""
        if mapping(Y) is None or not len(rows):
            return np.asarray(Y[rows])
        with TargetFile(self.path.parent, Y.dtype) as file:
            for some in row_blocks(len(rows), Y.size // len(Y)):
                file.write(Y[rows[some]])
                release(Y)
        return file.mapped(Y.shape[1:])

    def _parts(self, first: int, last: int) -> Iterator[tuple[slice, F32]]:
        """Yield the rows of each chunk: their slice, and the values of features, one by one."""
        with self.path.open("rb", buffering=0) as file:
            for start, end in pairwise([0, *self.ends.tolist()]):
                rows = slice(start, end)
                if self.rows is not None:
                    rows = slice(*np.searchsorted(self.rows, [start, end]).tolist())
                    if rows.stop == rows.start:
                        continue
                file.seek(4 * (start * self.n_features + first * (end - start)))
                values = self._read(file, (last - first, end - start))
                if self.recode is not None:
                    for k, column in enumerate(values):
                        doubles = self.doubles.get(first + k)
                        exact = column if doubles is None else doubles[start:end]
                        values[k] = self.recode(first + k, exact)
                if self.rows is not None:
                    values = values[:, self.rows[rows] - start]
                yield rows, values

    def _read(self, file: IO[bytes], shape: tuple[int, int]) -> F32:
        values = np.empty(shape, np.float32)
        left = values.data.cast("B")
        while left:
            n_read = file.readinto(left)  # type: ignore[attr-defined]
            if not n_read:
                raise OSError(f"The scratch file {self.path} was cut short; fit needs it whole.")
            left = left[n_read:]
        return values


class CheckedTargets:
    """Targets that are already checked: numbers in a mapped file, or encoded labels (uint8)."""

    columns: Sequence[str] = ()  # names of the outputs

    def __init__(self, array: NDArray[Any], names: Sequence[str] | None = None) -> None:
        self.array, self.columns, self.shape = array, names or (), array.shape


class TargetFile:
    """A file to which targets are written, a block of rows at a time."""

    def __init__(self, folder: Path, dtype: Any) -> None:
        self.path, self.dtype, self.n_rows = new_file(folder, "targets"), np.dtype(dtype), 0

    def __enter__(self) -> TargetFile:
        self._file = self.path.open("xb")
        return self

    def __exit__(self, *_: Any) -> None:
        self._file.close()

    def write(self, block: NDArray[Any]) -> None:
        """Write the next rows."""
        self._file.write(np.ascontiguousarray(block, dtype=self.dtype).data)
        self.n_rows += len(block)

    def mapped(self, shape: tuple[int, ...]) -> NDArray[Any]:
        """Map the file: all rows, each of the given shape."""
        mapped = np.memmap(self.path, self.dtype, "r", shape=(self.n_rows, *shape))
        if os.name == "posix":
            # The disk space is freed together with the array.
            self.path.unlink()
        return np.asarray(mapped)


def new_file(folder: Path, what: str) -> Path:
    """Return an unused path in a folder."""
    return folder / f"{what}-{uuid.uuid4().hex}"


def mapping(array: NDArray[Any]) -> mmap.mmap | None:
    """Return the memory map that an array is a view of, or None."""
    base: Any = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    found = getattr(base, "_mmap", None)
    return found if isinstance(found, mmap.mmap) else None


def release(array: NDArray[Any]) -> None:
    """Free the memory that caches a mapped file; the array stays readable."""
    found = mapping(array)
    if found is not None and hasattr(mmap, "MADV_DONTNEED"):
        found.madvise(mmap.MADV_DONTNEED)
