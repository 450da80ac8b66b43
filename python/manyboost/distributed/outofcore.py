"""Training on one machine from files that are larger than its memory.

The files are read once, in blocks of rows. Features are checked and written to a scratch file in
single precision; then they are binned, some columns at a time, and written to a file of bins that
training maps. Cut points come from all training rows, so the model is that of arrays in memory,
byte for byte.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from manyboost import params
from manyboost.arrays import F32, F64, Mask
from manyboost.data.cells import column_name
from manyboost.data.doubles import RowSample, mixed_columns
from manyboost.data.labels import check_indicator
from manyboost.data.named import NamedColumn, NamedTable
from manyboost.data.stored import CheckedTargets, StoredTable, TargetFile, new_file
from manyboost.data.targets import check_targets
from manyboost.distributed.sources import Source, SourceOptions, open_source
from manyboost.errors import RowError
from manyboost.estimators.fitting import Fitting

_Model = TypeVar("_Model", bound=Fitting)

# A disk with fewer free bytes is full.
_FULL = 1 << 20


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
        It is fitted in place; it must use built-in trees.
    X : path or iterable
        A ``.npy`` file of features (n_rows, n_features); a ``.parquet`` file of features and
        outputs (needs polars); or an iterable, consumed once, of blocks of rows: ``(X, Y)`` or
        ``(X, Y, sample_weight)``.
    Y : path or array, optional
        The targets for a ``.npy`` file of features: a ``.npy`` file or an array. For a classifier,
        one column of classes, or labels as columns of 0 and 1.
    sample_weight : path, array or str, optional
        Weights of rows or cells: an array, a ``.npy`` file, or a column of a Parquet file.
    targets : str, list of str, or int, optional
        Outputs in a Parquet file: names or patterns such as ``"y*"``, or the number of the first
        columns, negative for the last. One column by its name gives predictions of one dimension.
    ignore : str or list of str
        Columns of a Parquet file to leave out, by name or pattern.
    X_val, Y_val, sample_weight_val : optional
        Rows for early stopping, in any of these forms, or arrays.
    scratch : path, optional
        Folder for scratch files, which are deleted at the end; that of ``tempfile`` if None.
        They take n_rows × (5 n_features + 8 n_outputs) bytes, a little more with early stopping.
    chunk_rows : int, optional
        Rows to read at once; None: as many as hold four million values.

    Returns
    -------
    estimator
        The model of the same rows in memory, byte for byte.

    Notes
    -----
    Memory holds the state of training, of order n_rows × n_outputs, and a few numbers for each row.
    Squared error with the strategies ``"relabel"`` and ``"project"`` takes 4 bytes per cell, other
    regression losses 12, labels 9. A list of quantiles repeats the targets in memory; the Huber
    loss without ``huber_delta`` and losses written in Python temporarily take another 16 bytes per
    cell; missing targets and weights of cells take further arrays. Features that need double
    precision, such as Unix seconds, take 8 bytes per value. Bins, one byte per value, are in
    a mapped file, of which the system keeps in memory as much as fits.

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
    params.validate(estimator)
    if chunk_rows is not None and not (isinstance(chunk_rows, Integral) and chunk_rows > 0):
        what = f"chunk_rows={chunk_rows!r} is not allowed"
        raise ValueError(f"{what}; it must be a positive integer.")
    options = SourceOptions(targets, ignore, chunk_rows, classes=is_classifier(estimator))
    if scratch is not None and not Path(scratch).is_dir():
        raise FileNotFoundError(f"There is no folder {str(scratch)!r} for scratch files; make it.")
    made = tempfile.TemporaryDirectory(prefix="manyboost-", dir=scratch, ignore_cleanup_errors=True)
    with made as name, _explaining_full_disk(folder := Path(name)):
        source = open_source("X", X, Y, sample_weight, options)
        rows = _store(source, folder, classes=options.classes)
        if X_val is not None and not hasattr(X_val, "shape"):
            source = open_source("X_val", X_val, Y_val, sample_weight_val, options)
            known = list(rows[0].doubles)
            X_val, Y_val, sample_weight_val = _store(
                source, folder, classes=options.classes, mixed=known
            )
        validation = {"X_val": X_val, "Y_val": Y_val, "sample_weight_val": sample_weight_val}
        estimator.fit(*rows, **validation)
    return estimator


@contextmanager
def _explaining_full_disk(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        is_full = getattr(error, "errno", None) == errno.ENOSPC
        if isinstance(error, ValueError):
            # The core does not raise OSError if it cannot write; then the files are still there.
            is_full = shutil.disk_usage(folder).free < _FULL
        if not is_full:
            raise
        raise OSError(
            errno.ENOSPC,
            f"The disk of {folder.parent} has no room left for scratch files; pass scratch=, a "
            "folder on a disk with more room.",
        ) from error


def _store(
    source: Source, folder: Path, *, classes: bool, mixed: list[int] | None = None
) -> tuple[StoredTable, Any, Any]:
    """Check all blocks of a source; features, and targets that are numbers, go to files.

    ``mixed`` are the features of which doubles are kept; None: to be found.
    """
    _refuse_small_disk(source, folder, classes=classes)
    path = new_file(folder, "features")
    ends: list[int] = []
    exact = np.ones(0, bool)
    weights: list[Any] = []
    n_rows = n_features = 0
    doubles = _Doubles(source, mixed)
    with path.open("xb") as file, closing(_Targets(source, folder, classes=classes)) as targets:
        for X, Y, weight in source.blocks:
            if len(X) == 0:
                continue
            if not ends:
                n_features, shape = X.shape[1], Y.shape[1:]
                exact = np.ones(n_features, bool)
            if X.shape[1] != n_features or Y.shape[1:] != shape:
                raise ValueError(
                    f"{source.X_name} has features of the shape {X.shape[1:]} and outputs of the "
                    f"shape {Y.shape[1:]} from row {n_rows} on, but {(n_features,)} and {shape} "
                    "before; all blocks must have the same columns."
                )
            chunk, is_exact = _features(X, source)
            exact &= is_exact
            doubles.add(X, n_rows)
            file.write(chunk.data)
            targets.write(Y, n_rows)
            weights.append(weight)
            n_rows += len(X)
            ends.append(n_rows)
        if not ends or n_features == 0:
            what = "features" if ends else "rows"
            raise ValueError(f"{source.X_name} has no {what}; it needs at least one.")
    stored = np.array(ends, np.intp), n_features, source.names, exact, doubles.finished()
    table = StoredTable(path, *stored)
    return table, targets.finished(shape), _joined(source, weights)


def _joined(source: Source, weights: list[Any]) -> Any:
    """Return the weights of all rows, or None."""
    if all(weight is None for weight in weights):
        return source.weight
    if any(weight is None for weight in weights) or source.weight is not None:
        raise ValueError(
            f"{source.X_name} has weights in some blocks only, or sample_weight was given as well; "
            "pass all weights in the blocks, or all as sample_weight."
        )
    return np.concatenate([np.asarray(weight) for weight in weights])


def _refuse_small_disk(source: Source, folder: Path, *, classes: bool) -> None:
    if source.size is None:
        return
    n_rows, n_features, width = source.size
    needed = n_rows * (5 * n_features + (width if classes else 16 * width))
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            f"Scratch files of {source.X_name} take up to {needed / 1e9:.1f} GB, but "
            f"{folder.parent} has {free / 1e9:.1f} GB left; pass scratch=, a folder with more room."
        )


def _features(X: NDArray[Any], source: Source) -> tuple[F32, Mask]:
    """Return a block in single precision, by column, and which columns lost no digits."""
    if X.dtype.kind not in "biuf":
        raise ValueError(
            f"{source.X_name} holds {X.dtype} values, not numbers; encode them as numbers before."
        )
    # As for arrays in memory, integers go through double precision.
    given = X.T if np.can_cast(X.dtype, np.float32) else X.T.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(given, dtype=np.float32)
    if given.dtype == np.float32:
        return single, np.ones(len(single), bool)
    return single, ((single == given) | np.isnan(single)).all(axis=1)


class _Doubles:
    """The features that single precision mixes up, in memory.

    They are those of all rows, but all values are there only if the first block shows them too.
    """

    def __init__(self, source: Source, known: list[int] | None) -> None:
        self._source, self._known, self._kept = source, known, known
        self._sample: RowSample | None = None
        self._parts: list[NDArray[Any]] = []

    def add(self, X: NDArray[Any], start: int) -> None:
        """Keep what may be needed of the next rows, of which the first is row ``start``."""
        if self._known is None:
            if self._sample is None:
                self._sample = RowSample(X.shape[1])
            self._sample.add(X, np.arange(start, start + len(X), dtype=np.uint64))
        if self._kept is None:
            self._kept = self._found()
        self._parts.append(X[:, self._kept].astype(np.float64))

    def _found(self) -> list[int]:
        assert self._sample is not None
        values = self._sample.values
        return [] if np.can_cast(values.dtype, np.float32) else mixed_columns(values)

    def finished(self) -> dict[int, F64]:
        """Return all values of the features, by number."""
        kept = self._kept or []
        found = kept if self._known is not None else self._found()
        if late := sorted(set(found).difference(kept)):
            names = None if self._source.names is None else np.array(self._source.names, object)
            raise ValueError(
                f"Column {column_name(late[0], names)} of {self._source.X_name} has different "
                "values that are equal in single precision, but none in the first block; subtract "
                "a constant from it, such as its smallest value, or pass a larger chunk_rows."
            )
        values = np.concatenate(self._parts) if found else np.empty((0, 0))
        return {j: np.ascontiguousarray(values[:, kept.index(j)]) for j in found}


class _Targets:
    """Targets of all blocks: numbers go to a file, classes and labels stay in memory."""

    def __init__(self, source: Source, folder: Path, *, classes: bool) -> None:
        self._source, self._folder, self._classes = source, folder, classes
        self._labels: list[NDArray[Any]] = []
        self._file: TargetFile | None = None

    def write(self, Y: NDArray[Any], start: int) -> None:
        """Check and keep the next rows, of which the first is row ``start``."""
        if self._classes:
            several = Y.ndim == 2 and Y.shape[1] > 1
            self._labels.append(self._checked(check_indicator, Y, start) if several else Y)
            return
        numbers = self._checked(check_targets, Y, start)
        is_single = np.can_cast(Y.dtype, np.float32)
        if self._file is None:
            self._file = TargetFile(self._folder, np.float32 if is_single else np.float64)
            self._file.__enter__()
        if self._file.dtype == np.float32 and not is_single:
            raise ValueError(
                f"{self._source.Y_name} holds {Y.dtype} values from row {start} on, but narrower "
                "ones before; pass blocks of one type."
            )
        self._file.write(numbers)

    def _checked(self, check: Callable[..., Any], Y: NDArray[Any], start: int) -> NDArray[Any]:
        named: Any = Y
        if (names := self._source.output_names) is not None:
            named = NamedColumn(names[0], Y) if Y.ndim == 1 else NamedTable(names, Y)
        try:
            return np.asarray(check(named, Y, self._source.Y_name))
        except RowError as error:
            # The user counts rows from the start of the source, not of the block.
            raise error.relocated(start + error.row) from None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.__exit__()

    def finished(self, shape: tuple[int, ...]) -> Any:
        """Return all rows, of this shape each, as fit takes them."""
        names = self._source.output_names
        if self._file is not None:
            return CheckedTargets(self._file.mapped(shape), names)
        labels = np.concatenate(self._labels)
        self._labels.clear()
        if shape and shape[0] > 1:
            return CheckedTargets(labels, names)
        return labels if shape or not names else NamedColumn(names[0], labels)
