"""The package's own layout of a data set: one compressed NumPy file, without Python objects."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.datasets.dataset import Dataset, Matrix, Task, in_single
from manyboost.datasets.readers.text import PathLike, set_name

_KEYS = (
    "X", "X_data", "X_indices", "X_indptr", "X_shape", "Y", "Y_indices", "Y_indptr", "Y_shape",
    "feature_names", "target_names", "split",
    "categorical", "category_feature", "category_code", "category_value",
)  # fmt: skip
# Raised by NumPy for a file that is truncated, holds pickles, or is no archive.
_DAMAGES = (ValueError, OSError, EOFError, TypeError, AttributeError, BadZipFile, zlib.error)


def read_npz(path: PathLike, *, name: str | None = None) -> Dataset:
    """Read a data set stored as one ``.npz`` file, in the package's layout.

    The arrays are ``X`` (or ``X_data``, ``X_indices``, ``X_indptr`` and ``X_shape`` of a CSR
    matrix), ``Y`` (or ``Y_indices``, ``Y_indptr`` and ``Y_shape`` of a CSR matrix of ones),
    ``feature_names``, ``target_names`` and, optionally, ``split`` (1 for test rows) and
    ``categorical`` (indices of nominal features) with ``category_feature``, ``category_code`` and
    ``category_value``: which code of which feature stands for which category. Other arrays are
    ignored; pickled objects are refused.

    Parameters
    ----------
    path, name
        See :func:`read_csv`.

    Returns
    -------
    Dataset
        X is float32 and labels are uint8, CSR matrices if they are stored so. The task is
        "multilabel" if Y is sparse, or whole numbers or booleans, else "regression".

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from manyboost.datasets import read_npz
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "toy.npz")
    ...     np.savez(path, X=[[0.5]], Y=[[1, 0]], feature_names=["x"], target_names=["a", "b"])
    ...     toy = read_npz(path)
    >>> toy.name, toy.task, toy.target_names
    ('toy', 'multilabel', ('a', 'b'))
    """
    return in_single(stored_npz(path, name))


def stored_npz(path: PathLike, name: str | None = None) -> Dataset:
    """Read a data set as :func:`read_npz` does, with features of the precision of the file."""
    path = Path(path)
    with path.open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as stored:
                arrays = {key: stored[key] for key in stored.files if key in _KEYS}
        except _DAMAGES as error:
            what = f"{path.name} is not a NumPy archive of plain arrays ({error})"
            raise ValueError(f"{what}; get the file again.") from None
    try:
        return _dataset(arrays, set_name(path, name))
    except KeyError as error:
        what = f"{path.name} has no array {error.args[0]!r}"
        raise ValueError(f"{what}; see the layout in manyboost.datasets.read_npz.") from None


def _dataset(arrays: Mapping[str, NDArray[Any]], name: str) -> Dataset:
    for what in ("X", "Y"):
        array = arrays.get(what, np.empty((0, 0)))
        if array.ndim != 2 or array.dtype.kind not in "buif":
            found = f"{what} of data set {name!r} has shape {array.shape} and type {array.dtype}"
            raise ValueError(f"{found}; it must be a table of numbers.")
    if "X" in arrays:
        X = _floats(arrays["X"])
    else:
        X = _csr(arrays, "X", _floats(arrays["X_data"]), name)
    task: Task = "multilabel"
    if "Y" not in arrays:
        Y = _csr(arrays, "Y", np.ones(len(arrays["Y_indices"]), dtype=np.uint8), name)
    else:
        Y = arrays["Y"]
        if Y.dtype.kind == "f":
            task = "regression"
        elif not np.isin(Y, (0, 1)).all():
            what = f"Y of data set {name!r} holds labels other than 0 and 1"
            raise ValueError(f"{what}; store numbers to predict as floats.")
        else:
            Y = Y.astype(np.uint8, copy=False)
    categories = _categories(arrays, name)
    features, targets = (arrays[f"{of}_names"].astype(str).tolist() for of in ("feature", "target"))
    names, split = (tuple(features), tuple(targets)), arrays.get("split")
    return Dataset(name, X, Y, *names, task, split, tuple(categories), categories)


def _floats(values: NDArray[Any]) -> NDArray[np.floating]:
    """Return features as floats that hold the numbers of their type."""
    single = np.can_cast(values.dtype, np.float32)
    return values.astype(np.float32 if single else np.float64, copy=False)


def _csr(arrays: Mapping[str, NDArray[Any]], what: str, data: NDArray[Any], name: str) -> Matrix:
    indices, ends, shape = (arrays[f"{what}_{part}"] for part in ("indices", "indptr", "shape"))
    try:
        parts = data, indices.astype(np.int64), ends.astype(np.int64)
        matrix = sparse.csr_matrix(parts, shape=tuple(map(int, shape)))
        matrix.check_format(full_check=True)
        matrix.sort_indices()
        if not matrix.has_canonical_format:
            raise ValueError("an entry is stored twice")
    except (ValueError, TypeError) as error:
        what = f"The sparse {what} of data set {name!r} is damaged ({error})"
        raise ValueError(f"{what}; get the file again.") from None
    return matrix


def _categories(arrays: Mapping[str, NDArray[Any]], name: str) -> dict[int, tuple[str, ...]]:
    if "categorical" not in arrays:
        return {}
    table: dict[int, dict[int, str]] = {int(feature): {} for feature in arrays["categorical"]}
    columns = [arrays[f"category_{part}"].tolist() for part in ("feature", "code", "value")]
    if len({len(column) for column in columns}) > 1:
        lengths = "{}, {} and {} entries; they must be equally long.".format(*map(len, columns))
        raise ValueError(f"The category table of data set {name!r} has columns of {lengths}")
    for feature, number, value in zip(*columns, strict=True):
        table.setdefault(feature, {})[number] = str(value)
    for feature, codes in table.items():
        if not codes or sorted(codes) != list(range(len(codes))):
            what = f"The categories of feature {feature} of data set {name!r} have the codes"
            raise ValueError(f"{what} {sorted(codes)}; they must be 0, 1, 2 and so on.")
    return {feature: tuple(codes[k] for k in sorted(codes)) for feature, codes in table.items()}
