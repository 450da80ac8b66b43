"""Training on one machine from files that are larger than its memory.

The files are read once, in blocks of rows. Features are checked and written to a scratch file in
single precision; then, some columns at a time, cut, binned, and written to a file of bins that
training maps. Cuts are found in all the rows that are trained on, so that the model is that of
arrays in memory, byte for byte.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from manyboost.data.cells import MISSING_LABEL, cell_name
from manyboost.data.features import column_name
from manyboost.data.named import NamedColumn
from manyboost.data.stored import CheckedTargets, StoredTable, TargetFile, new_file
from manyboost.distributed.sources import Choice, Source
from manyboost.estimators.fitting import Fitting

_Model = TypeVar("_Model", bound=Fitting)

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
        Weights of the rows, or of single cells: an array or a ``.npy`` file, or the name of a
        column of a Parquet file.
    targets : str, list of str, or int, optional
        Columns of a Parquet file that are outputs: names or patterns such as ``"y*"``, or the
        number of the first columns, negative for the last. One column that is called by its name
        gives predictions of one dimension.
    ignore : str or list of str
        Columns of a Parquet file to leave out, by name or pattern.
    X_val, Y_val, sample_weight_val : optional
        Rows for early stopping, in any of these forms, or arrays.
    scratch : path, optional
        Folder for scratch files, which are removed in the end; that of ``tempfile`` if None.
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
    for a while; missing targets and weights of cells take arrays of their own. Bins, a byte for
    each value, are a mapped file, of which the system keeps in memory what it has room for.

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
        raise ValueError(
            f"chunk_rows={chunk_rows!r} is not allowed; it must be a positive integer."
        )
    choice = Choice(targets, ignore, chunk_rows, labels=is_classifier(estimator))
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


# ---------------------------------------------------------------------------------- storing


def _store(source: Source, folder: Path) -> tuple[StoredTable, Any, Any]:
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


def _joined(source: Source, weights: list[Any]) -> Any:
    """Weights of all rows, or None."""
    if all(weight is None for weight in weights):
        return source.weight
    if any(weight is None for weight in weights) or source.weight is not None:
        raise ValueError(
            f"{source.X_name} has weights in some blocks only, or sample_weight was given as well; "
            "give all weights in one way."
        )
    return np.concatenate([np.asarray(weight) for weight in weights])


def _refuse_small_disk(source: Source, folder: Path) -> None:
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
    X: NDArray[Any], source: Source, start: int
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

    def __init__(self, source: Source, folder: Path) -> None:
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
                f"{name} holds {Y.dtype} values from row {start} on, but narrower ones before; "
                "pass blocks of one type."
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
