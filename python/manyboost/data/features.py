"""Features in: checked, named, and in the form that training takes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from manyboost.data.cells import first_cell
from manyboost.data.frames import (
    CategoryLabels,
    category_columns,
    column_names,
    is_frame,
    is_numeric,
    nearest,
    open_frame,
)
from manyboost.data.named import NamedTable
from manyboost.data.plain_arrays import plain_numbers, stacked
from manyboost.data.stored import StoredTable
from manyboost.errors import RowError

F32 = NDArray[np.float32]

#: Features: a dense array, or a sparse matrix by rows.
Table = Any


def check_X(
    estimator: Any, X: Any, *, reset: bool, name: str = "X", categorical: Any = None
) -> Table:
    """Return features as a float array, or CSR matrix, without infinities.

    Names are remembered if ``reset``, else compared with those of fit. ``categorical`` says which
    columns of a frame hold categories (:func:`resolve_categorical`): their labels become codes, and
    are remembered too.
    """
    if X is None:
        raise ValueError(f"{name} is None; pass an array or a frame of features.")
    if isinstance(X, StoredTable):
        return _check_stored(estimator, X, reset=reset, name=name)
    X = stacked(X, name) if isinstance(X, list | tuple) else X
    if is_frame(X):
        X = _read_frame(estimator, X, reset=reset, name=name, categorical=categorical)
        names_checked = True
    else:
        X = _read_array(X, name)
        names_checked = False
        if reset:
            estimator._category_labels = CategoryLabels()
        else:
            _refuse_unlabelled(estimator, name)
    dimensions = len(getattr(X, "shape", (0, 0)))
    if dimensions != 2:
        raise ValueError(
            f"{name} has {dimensions} dimension(s), it must have two, rows and features: Reshape "
            f"your data, with {name}.reshape(-1, 1) if it has one feature or {name}.reshape(1, -1) "
            "if it is one row."
        )
    options: dict[str, Any] = {
        "dtype": [np.float64, np.float32],
        "accept_sparse": "csr",
        "accept_large_sparse": True,
        "ensure_all_finite": False,
        "ensure_min_samples": 0,
        "ensure_min_features": 0,
    }
    try:
        if names_checked:
            X = check_array(X, estimator=estimator, input_name=name, **options)
        else:
            X = validate_data(estimator, X, reset=reset, **options)
    except ValueError as error:
        if name == "X":
            raise
        raise ValueError(f"{name}: {error}") from None
    if X.shape[0] == 0 and estimator._comm.size == 1:
        raise ValueError(f"{name} has no rows (shape {X.shape}); it needs at least one.")
    _refuse_no_features(X, name)
    if sparse.issparse(X):
        X = in_order(X)
    if (infinite := first_cell(X.data if sparse.issparse(X) else X, np.isinf)) is not None:
        row, j = _row_and_column(X, infinite)
        names = getattr(estimator, "feature_names_in_", None)
        raise RowError(
            name,
            f"Column {column_name(j, names)} of {name} has an infinite value (inf)",
            row,
            "; replace it by a finite number, or by NaN if it is missing.",
        )
    return X


def _refuse_no_features(X: Any, name: str) -> None:
    if X.shape[1] == 0:
        # scikit-learn's words, which its checks look for.
        raise ValueError(
            f"{name} has 0 feature(s) (shape={X.shape}) while a minimum of 1 is required."
        )


def _check_stored(estimator: Any, X: StoredTable, *, reset: bool, name: str) -> StoredTable:
    """Return features in a file, whose values were checked as they were written there."""
    if estimator.estimator is not None:
        raise ValueError(
            f"estimator={estimator.estimator!r} takes features in memory, but those of {name} lie "
            "in a file; use built-in trees (estimator=None)."
        )
    if reset:
        estimator._category_labels = CategoryLabels()
        estimator.__dict__.pop("feature_names_in_", None)
        estimator.n_features_in_ = X.n_features
        if X.names is not None:
            estimator.feature_names_in_ = np.array(X.names, dtype=object)
        return X
    _refuse_unlabelled(estimator, name)
    known = getattr(estimator, "feature_names_in_", None)
    if X.names is not None and known is not None and known.tolist() != X.names:
        raise ValueError(
            f"The features of {name} should be those of fit, in the same order. "
            f"{_suggestions(X.names, known)}"
        )
    if X.n_features != estimator.n_features_in_:
        raise ValueError(
            f"{name} has {X.n_features} features, but {estimator.n_features_in_} are expected."
        )
    return X


def in_order(X: Any) -> Any:
    """Return a CSR matrix with each place stored once, ascending; the caller's stays as it is."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _row_and_column(X: Table, place: NDArray[np.intp]) -> tuple[int, int]:
    """Row and column of a cell; if X is sparse, of one of those that it stores."""
    if not sparse.issparse(X):
        return int(place[0]), int(place[1])
    k = int(place[0])
    return int(np.searchsorted(X.indptr, k, side="right")) - 1, int(X.indices[k])


def column_name(j: int, names: NDArray[Any] | None) -> str:
    """Return what a refusal calls a feature: its name if it has one, else its number."""
    return str(j) if names is None else repr(str(names[j]))


def feature_number(
    parameter: str, feature: Any, n_features: int, names: NDArray[Any] | None
) -> int:
    """Return the number of a feature that a parameter gives by number or name."""
    if isinstance(feature, str):
        if names is None:
            raise ValueError(
                f"{parameter} names the feature {feature!r}, but X has no feature names; give its "
                "number, or pass X as a data frame."
            )
        places = np.flatnonzero(names == feature)
        if len(places) == 0:
            raise ValueError(
                f"{parameter} names the feature {feature!r}, which X does not have; its features "
                f"are {textwrap.shorten(', '.join(map(repr, map(str, names))), 200)}."
            )
        return int(places[0])
    if isinstance(feature, bool | np.bool_) or not isinstance(feature, int | np.integer):
        raise ValueError(
            f"{parameter} has {feature!r} in place of a feature; give its number or its name."
        )
    if not 0 <= feature < n_features:
        raise ValueError(
            f"{parameter} has the feature {feature}; X has the features 0 to {n_features - 1}."
        )
    return int(feature)


def resolve_categorical(
    X: Table, categorical_features: Any, feature_names: NDArray[Any] | None
) -> NDArray[np.bool_]:
    """Return which features of X hold categories, as a mask (n_features,).

    ``categorical_features`` is None, "from_dtype" (arrays have no categorical type: none), a mask,
    or numbers or names of features.
    """
    n_features = X.shape[1]
    mask = np.zeros(n_features, bool)
    if categorical_features is None or isinstance(categorical_features, str):
        return mask
    given = list(categorical_features)
    if given and all(isinstance(value, bool | np.bool_) for value in given):
        if len(given) != n_features:
            raise ValueError(
                f"categorical_features is a mask of {len(given)} entries but X has {n_features} "
                "features; give one entry for each, or the numbers of the categorical ones."
            )
        return np.array(given, bool)
    for feature in given:
        mask[feature_number("categorical_features", feature, n_features, feature_names)] = True
    return mask


def to_single(X: Table, names: NDArray[Any] | None, name: str = "X") -> Table:
    """Return features in single precision, C-contiguous and aligned; refuse overflow."""
    if isinstance(X, StoredTable):
        return X
    with np.errstate(over="ignore"):
        if sparse.issparse(X):
            single = X if X.dtype == np.float32 else X.astype(np.float32)
            values = single.data
        else:
            single = values = np.require(X, np.float32, ["C", "A"])
    infinite = None if X.dtype == np.float32 else first_cell(values, np.isinf)
    if infinite is not None:
        _, j = _row_and_column(X, infinite)
        raise ValueError(
            f"Column {column_name(j, names)} of {name} has values beyond the range of single "
            "precision (3e38); divide it by a constant or take its logarithm."
        )
    return single


def compressed(X: Any) -> tuple[NDArray[np.int64], NDArray[np.int32], F32]:
    """Return the starts, indices and values of a CSR or CSC matrix as the kernels take them."""
    starts, indices = X.indptr.astype(np.int64), np.require(X.indices, np.int32, "A")
    return starts, indices, np.require(X.data, None, "A")


def for_kernels(X: Table) -> Any:
    """Return single-precision features as prediction takes them."""
    if isinstance(X, StoredTable):
        return X.load()
    return compressed(X) if sparse.issparse(X) else X


def _read_frame(estimator: Any, X: Any, *, reset: bool, name: str, categorical: Any) -> Any:
    """Return the numbers of a frame; names and labels are remembered if ``reset``, else compared.

    A frame that narwhals cannot open comes back as it is, for scikit-learn to convert.
    """
    names = column_names(X, name)
    _refuse_no_features(X, name)
    frame = open_frame(X, name)
    try:
        if isinstance(X, NamedTable):
            _check_names(estimator, X, reset=reset)
        else:
            validate_data(estimator, X, reset=reset, skip_check_array=True)
    except ValueError as error:
        known = getattr(estimator, "feature_names_in_", ())
        where = "" if name == "X" else f"{name}: "
        raise ValueError(f"{where}{error}{_suggestions(names or [], known)}") from None
    if frame is None:
        _refuse_columns(X, name)
        if reset:
            estimator._category_labels = CategoryLabels()
        return X
    if reset:
        places = _labelled_columns(frame, categorical)
        estimator._category_labels = CategoryLabels.of(frame, places).united(estimator._comm)
    return estimator._category_labels.encode(frame, name)


def _check_names(estimator: Any, X: NamedTable, *, reset: bool) -> None:
    """Remember the names of a table's columns, or compare them, as scikit-learn does for frames."""
    if reset:
        estimator.n_features_in_ = X.shape[1]
        estimator.feature_names_in_ = np.array(X.columns, dtype=object)
        return
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and known.tolist() != X.columns:
        raise ValueError("The columns should be those of fit, in the same order. ")
    if X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} columns, but {estimator.n_features_in_} are expected. "
        )


def _labelled_columns(frame: Any, categorical_features: Any) -> list[int]:
    """Places of the columns whose labels are to become codes."""
    if isinstance(categorical_features, str):
        return category_columns(frame)
    names = np.array(list(frame.columns), dtype=object)
    mask = resolve_categorical(frame, categorical_features, names)
    # Numbers are categories without labels: an array can hold them too.
    return [j for j in np.flatnonzero(mask).tolist() if not is_numeric(frame, j)]


def _suggestions(given: Iterable[str], known: Iterable[str]) -> str:
    """The end of an error about names: which known ones were perhaps meant."""
    given, known = list(given), list(known)
    missing = [each for each in known if each not in given]
    pairs = ((each, nearest(each, missing)) for each in given if each not in known)
    meant = [f"{likely!r} for {each!r}" for each, likely in pairs if likely is not None]
    return f"Did you mean {', '.join(meant[:5])}?" if meant else ""


def _refuse_unlabelled(estimator: Any, name: str) -> None:
    """Refuse an array where fit saw a frame with category columns: it has no labels."""
    known = getattr(estimator, "_category_labels", CategoryLabels())
    if known.of_column:
        j = min(known.of_column)
        column = column_name(j, getattr(estimator, "feature_names_in_", None))
        raise ValueError(
            f"Column {column} held categories in fit, but {name} is an array, which does not say "
            "what its labels are; pass a frame."
        )


_NOT_NUMBERS = (
    *("str", "obj", "cat", "enum", "bin", "date", "time", "dur", "per", "interval"),
    *("list", "array", "struct"),
)


def _read_array(X: Any, name: str) -> Any:
    """Return an array of numbers, NaN where they are missing; refuse one that holds others."""
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        return X

    def holds(place: tuple[int, ...], what: str, rest: str) -> ValueError:
        return ValueError(f"Column {place[1]} of {name} holds {what}{rest}")

    return plain_numbers(X, name, holds, "encode it (OrdinalEncoder, OneHotEncoder) or drop it")


def _refuse_columns(X: Any, name: str) -> None:
    """Name the first column of a frame that is not numeric, without narwhals."""
    for label in X.columns:
        column = X[label]
        dtype = str(getattr(column, "dtype", "")).lower()
        is_numeric_object = dtype == "object" and all(
            isinstance(value, int | float | np.number) for value in column
        )
        if dtype.startswith(_NOT_NUMBERS) and not is_numeric_object:
            raise ValueError(
                f"Column {str(label)!r} of {name} holds {column.dtype} values, not numbers; encode "
                "it (OrdinalEncoder, OneHotEncoder), drop it, or install narwhals for more types "
                "(pip install 'manyboost[frames]')."
            )
