"""Training on one machine from files that are larger than its memory.

The files are read once, in blocks of rows. Features are checked and written to a scratch file in
single precision; then, some columns at a time, cut, binned, and written to a file of bins that
training maps. Cuts are found in all the rows that are trained on, so that the model is that of
arrays in memory, byte for byte.
"""

from __future__ import annotations

import errno
import importlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from manyboost.datasets.readers.columns import select, select_targets
from manyboost.estimators.fitting import Fitting
from manyboost.inputs import column_name
from manyboost.named import NamedColumn
from manyboost.stored import CheckedTargets, StoredTable, TargetFile, new_file
from manyboost.weights import MISSING_LABEL, cell_name

_Model = TypeVar("_Model", bound=Fitting)

#: Values of a block of rows, unless the caller says how many rows it has.
_CELLS_OF_BLOCK = 1 << 22

_SINGLE_MAX = float(np.finfo(np.float32).max)


def fit_files(
    estimator: _Model,
    X: Any,
    Y: Any = None,
    sample_weight: Any = None,
    *,
    targets: str | Sequence[str] | int | None = None,
    ignore: str | Sequence[str] = (),
    X_val: Any = None,
    Y_val: Any = None,
    sample_weight_val: Any = None,
    scratch: str | os.PathLike[str] | None = None,
    chunk_rows: int | None = None,
) -> _Model:
    """Fit an estimator to files that are larger than memory.

    Parameters
    ----------
    estimator : ManyBoostRegressor or ManyBoostClassifier
        It is fitted in place; with built-in trees.
    X : path or iterable
        A ``.npy`` file of features (n_rows, n_features); a ``.parquet`` file of features and
        outputs; or blocks of rows, ``(X, Y)`` or ``(X, Y, sample_weight)`` each, which are gone
        through once.
    Y : path or array, optional
        With a ``.npy`` file of features a ``.npy`` file or an array of what is to be predicted.
    sample_weight : path, array or str, optional
        Weights of the rows, or of single cells: an array or a ``.npy`` file, or the name of a column
        of a Parquet file.
    targets : str, list of str, or int, optional
        Columns of a Parquet file that are outputs: names or patterns such as ``"y*"``, or the number
        of the first columns, negative for the last. One column that is called by its name gives
        predictions of one dimension.
    ignore : str or list of str
        Columns of a Parquet file to leave out, by name or pattern.
    X_val, Y_val, sample_weight_val : optional
        Rows for early stopping, in any of these forms, or arrays.
    scratch : path, optional
        Folder for scratch files, which are removed in the end; that of :mod:`tempfile` if None.
        They take n_rows × (5 n_features + 8 n_outputs) bytes, a little more with early stopping.
    chunk_rows : int, optional
        Rows that are read at once; None: as many as hold four million values.

    Returns
    -------
    estimator
        The model of the same rows in memory, byte for byte.

    Notes
    -----
    In memory are the state of training, of order n_rows × n_outputs, and some numbers for each row.
    Squared error with the strategies ``"relabel"`` and ``"project"`` keeps 4 bytes for each cell,
    other losses of numbers 12, labels 9. A list of quantiles repeats the targets in memory; the
    Huber loss without ``huber_delta`` and losses written in Python take 16 bytes more for each cell
    for a while; missing targets and weights of cells take arrays of their own. Bins, a byte for each
    value, are a mapped file, of which the system keeps in memory what it has room for.

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib
    >>> from manyboost import ManyBoostRegressor
    >>> from manyboost.distributed import fit_files
    >>> rng = np.random.default_rng(0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [pathlib.Path(folder) / name for name in ("X.npy", "Y.npy")]
    ...     np.save(paths[0], rng.normal(size=(500, 4)))
    ...     np.save(paths[1], rng.normal(size=(500, 3)))
    ...     model = fit_files(ManyBoostRegressor(max_iter=5), *paths)
    >>> model.n_outputs_
    3
    """
    if chunk_rows is not None and not (isinstance(chunk_rows, int) and chunk_rows > 0):
        raise ValueError(f"chunk_rows={chunk_rows!r} is not allowed; it must be a positive integer.")
    choice = _Choice(targets, ignore, chunk_rows, labels=is_classifier(estimator))
    if scratch is not None and not Path(scratch).is_dir():
        raise FileNotFoundError(f"There is no folder {str(scratch)!r} for scratch files; make it.")
    with (
        tempfile.TemporaryDirectory(
            prefix="manyboost-", dir=scratch, ignore_cleanup_errors=True
        ) as folder,
        _full_disk_told(folder),
    ):
        rows = _store(choice.source("X", X, Y, sample_weight), Path(folder))
        validation = dict.fromkeys(("X_val", "Y_val", "sample_weight_val"))
        if X_val is None or isinstance(X_val, np.ndarray) or hasattr(X_val, "shape"):
            given = X_val, Y_val, sample_weight_val
        else:
            source = choice.source("X_val", X_val, Y_val, sample_weight_val)
            given = _store(source, Path(folder))
        validation.update(zip(validation, given, strict=True))
        estimator.fit(*rows, **validation)
    return estimator


@contextmanager
def _full_disk_told(folder: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        # (The core tells of it in words.)
        if getattr(error, "errno", None) == errno.ENOSPC or os.strerror(errno.ENOSPC) in str(error):
            raise OSError(
                errno.ENOSPC,
                f"The disk of {Path(folder).parent} has no room left for scratch files; pass "
                "scratch=, a folder of a disk that has.",
            ) from error
        raise


# ---------------------------------------------------------------------------------- sources


class _Source:
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
        raise NotImplementedError


class _Choice:
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

    def source(self, name: str, X: Any, Y: Any, weight: Any) -> _Source:
        """Open what was given as ``name``."""
        source = self._open(name, X, Y, weight)
        source.labels = self.labels
        return source

    def _open(self, name: str, X: Any, Y: Any, weight: Any) -> _Source:
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
    path = Path(path)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"The file {str(path)!r} {what}; check its name.")
    return path


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


class _Arrays(_Source):
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
        n_rows = self._X.shape[0]
        for start in range(0, n_rows, self._chunk):
            rows = slice(start, min(start + self._chunk, n_rows))
            yield self._X[rows], self._Y[rows], None


def _chunk_rows(given: int | None, width: int) -> int:
    return max(1, _CELLS_OF_BLOCK // max(1, width)) if given is None else given


class _Blocks(_Source):
    """Blocks that the caller makes."""

    def __init__(self, name: str, blocks: Iterable[Any], weight: Any) -> None:
        self.X_name, self.Y_name = name, name.replace("X", "Y")
        self._blocks, self.weight = blocks, weight

    def blocks(self) -> Iterator[tuple[Any, Any, Any]]:
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


class _Parquet(_Source):
    """A Parquet file, read with polars or pyarrow, whichever is installed."""

    def __init__(self, path: Path, choice: _Choice, weight: Any) -> None:
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
                    "'manyboost[parquet]'."
                ) from None
            self._pyarrow = parquet.ParquetFile(self._path)
            self._columns = list(self._pyarrow.schema_arrow.names)
            self._n_rows = int(self._pyarrow.metadata.num_rows)
            return
        self._scan = polars.scan_parquet(self._path)
        self._columns = list(self._scan.collect_schema().names())
        self._n_rows = int(self._scan.select(polars.len()).collect().item())

    def blocks(self) -> Iterator[tuple[Any, Any, Any]]:
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


# ---------------------------------------------------------------------------------- storing


def _store(source: _Source, folder: Path) -> tuple[StoredTable, Any, Any]:
    """Check all blocks of a source; features, and targets that are numbers, go to files."""
    _refuse_small_disk(source, folder)
    path = new_file(folder, "features")
    ends: list[int] = []
    exact = np.ones(0, bool)
    weights: list[Any] = []
    n_rows = n_features = 0
    with path.open("xb") as file, _Outputs(source, folder) as outputs:
        for X, Y, weight in source.blocks():
            if len(X) == 0:
                continue
            if not ends:
                n_features = X.shape[1]
                exact = np.ones(n_features, bool)
            if X.shape[1] != n_features:
                raise ValueError(
                    f"{source.X_name} has {X.shape[1]} features from row {n_rows} on, but "
                    f"{n_features} before; all blocks must have the same."
                )
            chunk, is_exact = _features(X, source, n_rows)
            exact &= is_exact
            file.write(chunk.data)
            outputs.write(Y, n_rows)
            weights.append(weight)
            n_rows += len(X)
            ends.append(n_rows)
        if not ends or n_features == 0:
            what = "rows" if n_features or not ends else "features"
            raise ValueError(f"{source.X_name} has no {what}; it needs at least one.")
    table = StoredTable(path, np.array(ends, np.intp), n_features, source.names, exact)
    return table, outputs.finished(), _joined(source, weights)


def _joined(source: _Source, weights: list[Any]) -> Any:
    """Weights of all rows, or None."""
    if all(weight is None for weight in weights):
        return source.weight
    if any(weight is None for weight in weights) or source.weight is not None:
        raise ValueError(
            f"{source.X_name} has weights in some blocks only, or sample_weight was given as well; "
            "give all weights in one way."
        )
    return np.concatenate([np.asarray(weight) for weight in weights])


def _refuse_small_disk(source: _Source, folder: Path) -> None:
    if source.size is None:
        return
    n_rows, n_features, width = source.size
    needed = n_rows * (5 * n_features + (width if source.labels else 16 * width))
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            f"Scratch files of {source.X_name} take up to {needed / 1e9:.1f} GB, but "
            f"{folder.parent} has {free / 1e9:.1f} GB left; pass scratch=, a folder with more room."
        )


def _features(
    X: NDArray[Any], source: _Source, start: int
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return a block in single precision, by columns, and which columns it holds exactly."""
    if X.dtype.kind not in "biuf":
        raise ValueError(
            f"{source.X_name} holds {X.dtype} values, not numbers; encode them as numbers before."
        )
    # As arrays in memory are read: whole numbers by way of double precision.
    given = X.T if np.can_cast(X.dtype, np.float32) else X.T.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(given, dtype=np.float32)
    infinite = np.isinf(single)
    if infinite.any():
        row, j = np.argwhere(infinite.T)[0].tolist()
        names = None if source.names is None else np.array(source.names, dtype=object)
        value = given[j, row]
        what, remedy = (
            ("an infinite value (inf)", "replace it by a finite number, or by NaN if it is missing")
            if np.isinf(value)
            else (
                f"the value {value:g}, beyond the range of single precision (3e38),",
                "divide it by a constant or take its logarithm",
            )
        )
        raise ValueError(
            f"Column {column_name(j, names)} of {source.X_name} has {what} in row {start + row}; "
            f"{remedy}."
        )
    if given.dtype == np.float32:
        return single, np.ones(len(single), bool)
    return single, ((single == given) | np.isnan(single)).all(axis=1)


class _Outputs:
    """What is to be predicted: numbers go to a file, labels and classes stay in memory."""

    def __init__(self, source: _Source, folder: Path) -> None:
        self._source, self._folder = source, folder
        self._file: TargetFile | None = None
        self._shape: tuple[int, ...] | None = None
        self._parts: list[NDArray[Any]] = []

    def __enter__(self) -> _Outputs:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._file is not None:
            self._file.__exit__()

    def write(self, Y: NDArray[Any], start: int) -> None:
        """Check and keep the next rows, of which the first is row ``start``."""
        name = self._source.Y_name
        if self._shape is None:
            self._shape = Y.shape[1:]
        if Y.shape[1:] != self._shape:
            raise ValueError(
                f"{name} has outputs of the shape {Y.shape[1:]} from row {start} on, but "
                f"{self._shape} before; all blocks must have the same."
            )
        if self._source.labels:
            several = Y.ndim == 2 and Y.shape[1] > 1
            self._parts.append(self._encoded(Y, start) if several else Y)
            return
        if Y.dtype.kind not in "biuf":
            raise ValueError(
                f"{name} holds {Y.dtype} values, not numbers; encode them, or use "
                "ManyBoostClassifier for classes."
            )
        if self._file is None:
            single = np.can_cast(Y.dtype, np.float32)
            self._file = TargetFile(self._folder, np.float32 if single else np.float64).__enter__()
        if self._file.dtype == np.float32 and not np.can_cast(Y.dtype, np.float32):
            raise ValueError(
                f"{name} holds {Y.dtype} values from row {start} on, but narrower ones before; pass "
                "blocks of one type."
            )
        numbers = Y.astype(self._file.dtype, copy=False)
        with np.errstate(invalid="ignore"):
            large = np.abs(numbers) > _SINGLE_MAX
        if large.any():
            place = np.argwhere(large)[0]
            value = numbers[tuple(place)]
            what = (
                "an infinite value (inf)"
                if np.isinf(value)
                else f"the value {value:g}, beyond the range of single precision (3e38),"
            )
            self._refuse(what, place, start, "divide the output by a constant, or drop such rows")
        self._file.write(numbers)

    def _encoded(self, Y: NDArray[Any], start: int) -> NDArray[np.uint8]:
        """Labels 0, 1 and missing ones."""
        if Y.dtype.kind not in "biuf":
            raise ValueError(
                f"{self._source.Y_name} holds {Y.dtype} values; several outputs must be an "
                "indicator of 0 and 1."
            )
        missing = np.isnan(Y) if Y.dtype.kind == "f" else np.zeros(Y.shape, bool)
        unlike = ~((Y == 0) | (Y == 1) | missing)
        if unlike.any():
            place = np.argwhere(unlike)[0]
            what, remedy = f"the value {Y[tuple(place)]}", "several outputs must be 0 or 1"
            self._refuse(what, place, start, remedy)
        return np.where(missing, MISSING_LABEL, Y == 1).astype(np.uint8)

    def _refuse(self, what: str, place: NDArray[Any], start: int, remedy: str) -> None:
        where = cell_name([start + int(place[0]), *place[1:].tolist()], self._source.output_names)
        raise ValueError(f"{self._source.Y_name} has {what} in {where}; {remedy}.")

    def finished(self) -> Any:
        """Return all rows, as fit takes them."""
        assert self._shape is not None
        names = self._source.output_names
        if self._file is not None:
            return CheckedTargets(self._file.mapped(self._shape), names)
        labels = np.concatenate(self._parts)
        self._parts.clear()
        if self._shape and self._shape[0] > 1:
            return CheckedTargets(labels, names)
        if self._shape or not names:
            return labels
        return NamedColumn(names[0], labels)
