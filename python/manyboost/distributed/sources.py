"""What training from files reads: blocks of rows from .npy and Parquet files, or from the caller.

Files are read, not mapped: pages of a mapped file would count as memory.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.datasets.readers.columns import select, select_targets

#: Values of a block of rows, unless the caller says how many rows it has.
_CELLS_OF_BLOCK = 1 << 22


class Source:
    """Blocks of rows: features, what is to be predicted, and weights."""

    #: What errors call the features and the outputs.
    X_name, Y_name = "X", "Y"
    names: list[str] | None = None
    output_names: list[str] | None = None
    #: Whether the single output is a column of its own, without a second dimension.
    one_dimensional = False
    #: Weights that do not come with the blocks.
    weight: Any = None
    #: Numbers of rows, features and cells of outputs, if they are known beforehand.
    size: tuple[int, int, int] | None = None
    labels = False

    def blocks(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield features, outputs, and weights or None, of the next rows."""
        raise NotImplementedError


class Choice:
    """What the caller asks for of all sources."""

    def __init__(
        self,
        targets: str | Sequence[str] | int | None,
        ignore: str | Sequence[str],
        chunk_rows: int | None,
        *,
        labels: bool,
    ) -> None:
        self.targets, self.ignore, self.chunk_rows = targets, ignore, chunk_rows
        self.labels = labels

    def source(self, name: str, X: Any, Y: Any, weight: Any) -> Source:
        """Open what was given as ``name``."""
        source = self._open(name, X, Y, weight)
        source.labels = self.labels
        return source

    def _open(self, name: str, X: Any, Y: Any, weight: Any) -> Source:
        if not isinstance(X, str | os.PathLike):
            if Y is not None or not isinstance(X, Iterable) or hasattr(X, "shape"):
                raise ValueError(
                    f"{name} is a {type(X).__name__}; pass the path of a .npy or .parquet file, or "
                    "blocks (X, Y) of rows without Y, or use fit for arrays."
                )
            return _Blocks(name, X, weight)
        path = _existing(X)
        if path.suffix.lower() == ".npy":
            if Y is None:
                raise ValueError(
                    f"{path.name} holds features alone; pass what is to be predicted as "
                    f"{name.replace('X', 'Y')}, another .npy file or an array."
                )
            if self.targets is not None:
                raise ValueError(
                    f"targets={self.targets!r} names columns of a Parquet file, but {path.name} "
                    "has none; leave it out."
                )
            return _Arrays(path, Y, _loaded(weight), self.chunk_rows)
        if path.suffix.lower() not in (".parquet", ".pq"):
            raise ValueError(
                f"{path.name} is neither a .npy nor a .parquet file; convert it to one of these."
            )
        if Y is not None:
            raise ValueError(
                f"{name.replace('X', 'Y')} was given, but the outputs of {path.name} are among its "
                "columns; name them as targets."
            )
        if self.targets is None:
            raise ValueError(f"Say which columns of {path.name} are outputs, with targets='y*'.")
        return _Parquet(path, self, weight)


def _existing(path: Any) -> Path:
    found = Path(path)
    if not found.is_file():
        what = "is a folder" if found.is_dir() else "does not exist"
        raise FileNotFoundError(f"The file {str(path)!r} {what}; check its name.")
    return found


def _loaded(weight: Any) -> Any:
    return np.load(_existing(weight)) if isinstance(weight, str | os.PathLike) else weight


class _NpyFile:
    """A .npy file, read in blocks of rows without mapping it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            try:
                version = np.lib.format.read_magic(file)
                read = (
                    np.lib.format.read_array_header_1_0
                    if version == (1, 0)
                    else np.lib.format.read_array_header_2_0
                )
                self.shape, self.is_fortran, self.dtype = read(file)
            except ValueError as error:
                raise ValueError(f"{path.name} is not a .npy file: {error}") from None
            self._start = file.tell()
        if self.dtype.hasobject:
            raise ValueError(f"{path.name} holds Python objects; save numbers or text.")
        expected = self._start + int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        if path.stat().st_size < expected:
            raise ValueError(
                f"{path.name} ends after {path.stat().st_size:,} of {expected:,} bytes; save it "
                "again."
            )

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        n_rows, *rest = self.shape
        start, stop, _ = rows.indices(n_rows)
        count, width = stop - start, int(np.prod(rest, dtype=np.int64))
        with self.path.open("rb", buffering=0) as file:
            if not self.is_fortran or not rest:
                file.seek(self._start + start * width * self.dtype.itemsize)
                values = np.fromfile(file, self.dtype, count * width)
                return values.reshape(count, *rest)
            columns = np.empty((width, count), self.dtype)
            for j, column in enumerate(columns):
                file.seek(self._start + (j * n_rows + start) * self.dtype.itemsize)
                column[:] = np.fromfile(file, self.dtype, count)
            return columns.T.reshape(count, *rest, order="F")


class _Arrays(Source):
    """A .npy file of features and another, or an array, of outputs."""

    def __init__(self, path: Path, Y: Any, weight: Any, chunk_rows: int | None) -> None:
        self.X_name, self._X = path.name, _NpyFile(path)
        if isinstance(Y, str | os.PathLike):
            self._Y: Any = _NpyFile(_existing(Y))
            self.Y_name = Path(Y).name
        else:
            self._Y = np.asarray(Y)
        self.weight = weight
        if len(self._X.shape) != 2:
            raise ValueError(
                f"{path.name} has {len(self._X.shape)} dimension(s), it must have two: rows and "
                "features."
            )
        if len(self._Y.shape) not in (1, 2):
            raise ValueError(
                f"{self.Y_name} has {len(self._Y.shape)} dimension(s), it must have one or two: "
                "rows and outputs."
            )
        n_rows, n_features = self._X.shape
        if self._Y.shape[0] != n_rows:
            raise ValueError(
                f"{path.name} has {n_rows} rows and {self.Y_name} has {self._Y.shape[0]}; they "
                "must have the same number."
            )
        width = self._Y.shape[1] if len(self._Y.shape) == 2 else 1
        self.size = n_rows, n_features, width
        self._chunk = _chunk_rows(chunk_rows, n_features + width)

    def blocks(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield the next rows of both."""
        n_rows = self._X.shape[0]
        for start in range(0, n_rows, self._chunk):
            rows = slice(start, min(start + self._chunk, n_rows))
            yield self._X[rows], self._Y[rows], None


def _chunk_rows(given: int | None, width: int) -> int:
    return max(1, _CELLS_OF_BLOCK // max(1, width)) if given is None else given


class _Blocks(Source):
    """Blocks that the caller makes."""

    def __init__(self, name: str, blocks: Iterable[Any], weight: Any) -> None:
        self.X_name, self.Y_name = name, name.replace("X", "Y")
        self._blocks, self.weight = blocks, weight

    def blocks(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield the blocks, as arrays that fit together."""
        for k, block in enumerate(self._blocks):
            if not isinstance(block, tuple) or len(block) not in (2, 3):
                raise ValueError(
                    f"Block {k} of {self.X_name} is a {type(block).__name__}; blocks must be "
                    "tuples (X, Y) or (X, Y, sample_weight)."
                )
            X, Y, weight = (*block, None)[:3]
            X, Y = np.asarray(X), np.asarray(Y)
            if X.ndim != 2 or Y.ndim not in (1, 2) or len(X) != len(Y):
                raise ValueError(
                    f"Block {k} of {self.X_name} has features of shape {X.shape} and outputs of "
                    f"shape {Y.shape}; it needs rows of features, and as many outputs."
                )
            yield X, Y, weight


class _Parquet(Source):
    """A Parquet file, read with polars or pyarrow, whichever is installed."""

    def __init__(self, path: Path, choice: Choice, weight: Any) -> None:
        self.X_name = self.Y_name = path.name
        self._path = path
        self._open()
        targets = choice.targets
        assert targets is not None
        chosen = select_targets(targets, self._columns, path.name)
        left_out = [*chosen, *select(choice.ignore, self._columns, path.name, "ignore")]
        self._weight_name = None
        if isinstance(weight, str) and weight in self._columns:
            self._weight_name = weight
            left_out.append(self._columns.index(weight))
        else:
            self.weight = _loaded(weight)
        # A name that means one column gives one dimension, as it does for a frame.
        wanted = [targets] if isinstance(targets, str) else targets
        self.one_dimensional = len(chosen) == 1 and wanted == [self._columns[chosen[0]]]
        self.output_names = [self._columns[j] for j in chosen]
        self.names = [name for j, name in enumerate(self._columns) if j not in left_out]
        if not self.names:
            raise ValueError(f"{path.name} is left without any feature; see targets and ignore.")
        self.size = self._n_rows, len(self.names), len(chosen)
        self._chunk = _chunk_rows(choice.chunk_rows, len(self.names) + len(chosen))

    def _open(self) -> None:
        """Find the columns and the number of rows."""
        self._pyarrow: Any = None
        try:
            polars = importlib.import_module("polars")
        except ImportError:
            try:
                parquet = importlib.import_module("pyarrow.parquet")
            except ImportError:
                raise ImportError(
                    f"{self._path.name} takes polars or pyarrow to read; install one: pip install "
                    "'manyboost[files]'."
                ) from None
            self._pyarrow = parquet.ParquetFile(self._path)
            self._columns = list(self._pyarrow.schema_arrow.names)
            self._n_rows = int(self._pyarrow.metadata.num_rows)
            return
        self._scan = polars.scan_parquet(self._path)
        self._columns = list(self._scan.collect_schema().names())
        self._n_rows = int(self._scan.select(polars.len()).collect().item())

    def blocks(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield the columns of the next rows."""
        assert self.names is not None
        assert self.output_names is not None
        weights = [] if self._weight_name is None else [self._weight_name]
        wanted = [*self.names, *self.output_names, *weights]
        for frame in self._frames(wanted):
            X = np.stack([self._numbers(frame[name], name) for name in self.names]).T
            outputs = [self._outputs(frame[name], name) for name in self.output_names]
            Y = outputs[0] if self.one_dimensional else np.stack(outputs).T
            weight = [self._numbers(frame[name], name) for name in weights]
            yield X, Y, weight[0] if weight else None

    def _frames(self, wanted: list[str]) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield the values of columns, some rows at a time."""
        if self._pyarrow is not None:
            for batch in self._pyarrow.iter_batches(batch_size=self._chunk, columns=wanted):
                columns = {name: batch.column(batch.schema.names.index(name)) for name in wanted}
                yield {
                    name: column.to_numpy(zero_copy_only=False) for name, column in columns.items()
                }
            return
        for start in range(0, self._n_rows, self._chunk):
            frame = self._scan.select(wanted).slice(start, self._chunk).collect()
            yield {name: frame[name].to_numpy() for name in wanted}

    def _numbers(self, values: NDArray[Any], name: str) -> NDArray[Any]:
        if values.dtype == object and all(
            value is None or isinstance(value, bool | int | float) for value in values
        ):
            # Whole numbers or booleans, of which some are missing.
            return values.astype(np.float64)
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"Column {name!r} of {self._path.name} holds {values.dtype} values, not numbers; "
                "encode it as numbers before, or leave it out with ignore."
            )
        return values

    def _outputs(self, values: NDArray[Any], name: str) -> NDArray[Any]:
        """Numbers, or classes of any kind for a classifier."""
        if not (self.labels and self.one_dimensional):
            return self._numbers(values, name)
        text = values.dtype == object and all(isinstance(value, str) for value in values)
        return values.astype(str) if text else values
