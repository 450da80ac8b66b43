"""What training from files reads: blocks of rows from .npy and Parquet files, or from the caller.

Files are read, not mapped: the pages of a mapped file would count as memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.data.frames import column_names, target_labels
from manyboost.data.plain_arrays import unmasked
from manyboost.datasets.readers.columns import select, select_targets
from manyboost.extras import import_extra

#: Features, targets, and weights or None, of some rows.
RowBlock = tuple[NDArray[Any], NDArray[Any], Any]

#: Values in a block of rows, unless the caller says how many rows it has.
_CELLS_OF_BLOCK = 1 << 22


@dataclass
class Source:
    """Blocks of rows, and what is known about them before they are read."""

    X_name: str  # what errors call the features
    Y_name: str
    blocks: Iterable[RowBlock]  # read once
    weight: Any = None  # of all rows, if weights do not come with the blocks
    size: tuple[int, int, int] | None = None  # numbers of rows, features and outputs
    names: list[str] | None = None  # of the features
    output_names: list[str] | None = None


@dataclass(frozen=True)
class SourceOptions:
    """How to read files; see :func:`manyboost.distributed.fit_files`."""

    targets: str | Sequence[str] | int | None
    ignore: str | Sequence[str]
    chunk_rows: int | None
    classes: bool  # whether the targets are classes or labels

    def rows_of_block(self, width: int) -> int:
        """Return how many rows of so many values to read at once."""
        return self.chunk_rows or max(1, _CELLS_OF_BLOCK // max(1, width))


def open_source(argument: str, X: Any, Y: Any, weight: Any, options: SourceOptions) -> Source:
    """Open what was passed as ``argument``, X or X_val."""
    Y_argument = argument.replace("X", "Y")
    if not isinstance(X, str | os.PathLike):
        if Y is not None or not isinstance(X, Iterable) or hasattr(X, "shape"):
            raise ValueError(
                f"{argument} is a {type(X).__name__}; pass the path of a .npy or .parquet file, or "
                "blocks (X, Y) of rows without Y, or use fit for arrays."
            )
        source = Source(argument, Y_argument, (), weight)
        source.blocks = _checked_blocks(source, X)
        return source
    path = _existing(X)
    if path.suffix.lower() == ".npy":
        if Y is None:
            raise ValueError(
                f"{path.name} holds features alone; pass the targets as {Y_argument}, another .npy "
                "file or an array."
            )
        if options.targets is not None:
            raise ValueError(
                f"targets={options.targets!r} names columns of a Parquet file, but {path.name} "
                "has none; leave it out."
            )
        return _open_npy(path, Y, weight, options)
    if path.suffix.lower() not in (".parquet", ".pq"):
        raise ValueError(
            f"{path.name} is neither a .npy nor a .parquet file; convert it to one of these."
        )
    if Y is not None:
        raise ValueError(
            f"{Y_argument} was given, but the outputs of {path.name} are among its columns; name "
            "them as targets."
        )
    if options.targets is None:
        raise ValueError(f"Say which columns of {path.name} are outputs, with targets='y*'.")
    return _open_parquet(path, weight, options.targets, options)


def _existing(path: Any) -> Path:
    found = Path(path)
    if not found.is_file():
        what = "is a folder" if found.is_dir() else "does not exist"
        raise FileNotFoundError(f"The file {str(path)!r} {what}; check its name.")
    return found


def _loaded(weight: Any) -> Any:
    return _NpyFile(_existing(weight))[:] if isinstance(weight, str | os.PathLike) else weight


def _array(table: Any) -> NDArray[Any]:
    """Return what was passed as an array, NaN where it is masked."""
    return unmasked(table.toarray() if sparse.issparse(table) else table)


def _checked_blocks(source: Source, blocks: Iterable[Any]) -> Iterator[RowBlock]:
    """Yield the blocks as arrays with the same number of rows; the source gets their names."""
    for k, block in enumerate(blocks):
        what = f"Block {k} of {source.X_name}"
        if not isinstance(block, tuple) or len(block) not in (2, 3):
            raise ValueError(
                f"{what} is a {type(block).__name__}; blocks must be tuples (X, Y) or "
                "(X, Y, sample_weight)."
            )
        names, output_names = column_names(block[0]), target_labels(block[1])
        if k == 0:
            source.names, source.output_names = names, output_names
        if (names, output_names) != (source.names, source.output_names):
            raise ValueError(
                f"{what} has columns of other names, or in another order, than block 0; all blocks "
                "must have the same columns."
            )
        X, Y, weight = (*block, None)[:3]
        X, Y, weight = _array(X), _array(Y), None if weight is None else _array(weight)
        if X.ndim != 2 or Y.ndim not in (1, 2) or len(X) != len(Y):
            raise ValueError(
                f"{what} has features of shape {X.shape} and outputs of shape {Y.shape}; pass as "
                "many rows of outputs as of features."
            )
        if weight is not None and weight.shape[:1] != (len(X),):
            raise ValueError(
                f"{what} has {len(X)} rows but weights of shape {weight.shape}; pass as many."
            )
        yield X, Y, weight


class _NpyFile:
    """A .npy file, read in blocks of rows without mapping it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            header = np.load(path, mmap_mode="r")
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path.name} cannot be read: {error}; save it again.") from None
        if not isinstance(header, np.memmap):
            raise ValueError(f"{path.name} is not a .npy file; write it with numpy.save.")
        self.shape, self.dtype, self._start = header.shape, header.dtype, header.offset
        self._by_columns = not header.flags.c_contiguous

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        n_rows, *rest = self.shape
        start, stop, _ = rows.indices(n_rows)
        count, width = stop - start, int(np.prod(rest, dtype=np.int64))
        with self.path.open("rb", buffering=0) as file:
            if not self._by_columns:
                file.seek(self._start + start * width * self.dtype.itemsize)
                return np.fromfile(file, self.dtype, count * width).reshape(count, *rest)
            columns = np.empty((width, count), self.dtype)
            for j, column in enumerate(columns):
                file.seek(self._start + (j * n_rows + start) * self.dtype.itemsize)
                column[:] = np.fromfile(file, self.dtype, count)
            return columns.T


def _open_npy(path: Path, Y: Any, weight: Any, options: SourceOptions) -> Source:
    """Open a .npy file of features and another, or an array, of targets."""
    X = _NpyFile(path)
    is_file = isinstance(Y, str | os.PathLike)
    Y_name = Path(Y).name if is_file else "Y"
    targets: Any = _NpyFile(_existing(Y)) if is_file else _array(Y)
    for name, n_dimensions, allowed, meaning in (
        (path.name, len(X.shape), (2,), "two: rows and features"),
        (Y_name, len(targets.shape), (1, 2), "one or two: rows and outputs"),
    ):
        if n_dimensions not in allowed:
            raise ValueError(f"{name} has {n_dimensions} dimension(s), it must have {meaning}.")
    n_rows, n_features = X.shape
    if targets.shape[0] != n_rows:
        raise ValueError(
            f"{path.name} has {n_rows} rows and {Y_name} has {targets.shape[0]}; they must have "
            "the same number."
        )
    width = targets.shape[1] if len(targets.shape) == 2 else 1
    step = options.rows_of_block(n_features + width)
    slices = (slice(start, start + step) for start in range(0, n_rows, step))
    blocks = ((X[rows], targets[rows], None) for rows in slices)
    size, names = (n_rows, n_features, width), None if is_file else target_labels(Y)
    return Source(path.name, Y_name, blocks, _loaded(weight), size, output_names=names)


def _open_parquet(path: Path, weight: Any, targets: Any, options: SourceOptions) -> Source:
    """Open a Parquet file of features, targets and, if ``weight`` is a column, weights."""
    polars = import_extra("polars", f"Reading {path.name}", "files")
    scan = polars.scan_parquet(path, glob=False)
    try:
        columns = scan.collect_schema().names()
        n_rows = int(scan.select(polars.len()).collect().item())
    except polars.exceptions.ComputeError as error:
        raise ValueError(f"{path.name} cannot be read: {error}; save it again.") from None
    chosen = select_targets(targets, columns, path.name)
    left_out = {*chosen, *select(options.ignore, columns, path.name, "ignore")}
    has_weight = isinstance(weight, str) and weight in columns
    if has_weight:
        left_out.add(columns.index(weight))
    names = [name for j, name in enumerate(columns) if j not in left_out]
    if not names:
        raise ValueError(f"{path.name} is left without any feature; see targets and ignore.")
    output_names = [columns[j] for j in chosen]
    # A name that means one column gives one dimension, as it does for a frame.
    is_single = ([targets] if isinstance(targets, str) else targets) == output_names[:1]
    step = options.rows_of_block(len(names) + len(chosen))
    wanted = [*names, *output_names, *([weight] if has_weight else [])]

    def numbers(column: Any) -> NDArray[Any]:
        if column.dtype == polars.Boolean:
            column = column.cast(polars.UInt8)  # which has room for missing values
        if column.dtype.is_decimal() or column.dtype == polars.Null:
            column = column.cast(polars.Float64)
        if not column.dtype.is_numeric():
            raise ValueError(
                f"Column {column.name!r} of {path.name} holds {column.dtype} values, not numbers; "
                "encode it as numbers before, or leave it out with ignore."
            )
        return np.asarray(column.to_numpy())

    def classes(column: Any) -> NDArray[Any]:
        values = np.asarray(column.to_numpy())
        is_text = values.dtype == object and all(isinstance(value, str) for value in values)
        return values.astype(str) if is_text else values

    def blocks() -> Iterator[RowBlock]:
        for start in range(0, n_rows, step):
            frame = scan.select(wanted).slice(start, step).collect()
            X = np.stack([numbers(frame[name]) for name in names]).T
            if is_single:
                Y = (classes if options.classes else numbers)(frame[output_names[0]])
            else:
                Y = np.stack([numbers(frame[name]) for name in output_names]).T
            yield X, Y, numbers(frame[weight]) if has_weight else None

    size = n_rows, len(names), len(chosen)
    weights = None if has_weight else _loaded(weight)
    return Source(path.name, path.name, blocks(), weights, size, names, output_names)
