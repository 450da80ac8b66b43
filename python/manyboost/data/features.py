"""Features: what users pass as X, checked, named, and in the form that training takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from manyboost.arrays import F32, Mask
from manyboost.comm import ALONE, Comm
from manyboost.data import frames
from manyboost.data.cells import column_name, first_cell
from manyboost.data.named import NamedTable
from manyboost.data.plain_arrays import plain_numbers, stacked
from manyboost.data.stored import StoredTable
from manyboost.errors import RowError
from manyboost.spelling import likely_pairs, number_of

#: Features: a dense array, a CSR matrix or a :class:`StoredTable`.
Table = Any

#: What to do about a column without numbers that held numbers in fit.
AS_IN_FIT = "turn it into numbers, which it held in fit"

#: Options of scikit-learn's checks that leave values and sizes to ours.
ANY_VALUES: dict[str, Any] = {"ensure_all_finite": False}
ANY_VALUES |= {"ensure_min_samples": 0, "ensure_min_features": 0}


def check_X(
    model: Any,
    X: Any,
    *,
    reset: bool,
    name: str = "X",
    categorical: Any = None,
    comm: Comm = ALONE,
    refuse_unknown: bool = False,
) -> Table:
    """Return features as a float array or CSR matrix; other estimators get no infinite values.

    With ``reset`` the model remembers the number and names of the features and the labels of
    category columns, those of all ranks; otherwise features are compared with what it remembers.
    ``categorical`` says which columns of a frame hold categories (:func:`resolve_categorical`).
    Of labels that the model does not know, ``refuse_unknown`` makes an error; else they are NaN.
    """
    if X is None:
        raise ValueError(f"{name} is None; pass an array or a frame of features.")
    if reset:
        model._category_labels = frames.CategoryLabels()
    X = X if hasattr(X, "shape") or frames.is_frame(X) else stacked(X, name)
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if shape[1:] == (0,):
        # scikit-learn's checks look for these words.
        what = f"0 feature(s) (shape={shape}) while a minimum of 1 is required"
        raise ValueError(f"{name} has {what}.")
    from_frame = frames.is_frame(X)
    if from_frame:
        given: dict[str, Any] = {"categorical": categorical, "refuse_unknown": refuse_unknown}
        X = _read_frame(model, X, reset=reset, name=name, comm=comm, **given)
    else:
        labels = getattr(model, "_category_labels", frames.CategoryLabels())
        names = getattr(model, "feature_names_in_", None)
        if isinstance(X, np.ndarray) and X.ndim == 2:
            if reset:
                labels = model._category_labels = _large_labels(X, categorical, comm)
            X = labels.encode_array(X, names, name, refuse_unknown=refuse_unknown)
            X = plain_numbers(X, name, frames.ENCODE if reset else AS_IN_FIT, by_column=True)
        elif labels.of_column and isinstance(X, StoredTable):
            column = column_name(min(labels.of_column), names)
            problem = f"Column {column} held categories in fit, but {name} is a file of numbers"
            raise ValueError(f"{problem}; pass a frame.")
    if isinstance(X, StoredTable):  # its values were checked before they were written
        if model.estimator is not None:
            what = f"estimator={model.estimator!r} takes features in memory, not {name} in a file"
            raise ValueError(f"{what}; use built-in trees (estimator=None).")
        _match_features(model, X.names, X.n_features, reset=reset, name=name)
        return X
    dimensions = len(getattr(X, "shape", (0, 0)))
    if dimensions == 0:
        kind = type(np.asarray(X).item()).__name__
        raise ValueError(f"{name} is of the type {kind}; pass an array or a frame of features.")
    if dimensions != 2:
        # scikit-learn's checks look for "Reshape your data".
        problem = f"{name} has {dimensions} dimension(s), it must have two, rows and features"
        how = f"{name}.reshape(-1, 1) if it has one feature, {name}.reshape(1, -1) if it is one row"
        if dimensions > 2:  # windows of several series, images
            how = f"{name}.reshape(len({name}), -1), which makes a feature of every value of a row"
        raise ValueError(f"{problem}: Reshape your data, with {how}.")
    options = {"dtype": [np.float64, np.float32], "accept_sparse": "csr", **ANY_VALUES}
    try:
        if from_frame:  # its names are checked already
            X = check_array(X, estimator=model, input_name=name, **options)
        else:
            X = validate_data(model, X, reset=reset, **options)
    except ValueError as error:
        raise error if name == "X" else ValueError(f"{name}: {error}") from None
    if X.shape[0] == 0 and comm.size == 1:
        raise ValueError(f"{name} has no rows (shape {X.shape}); it needs at least one.")
    X = in_canonical_order(X) if sparse.issparse(X) else X
    if model.estimator is None:  # trees take infinite values as the lowest and highest
        return X
    if infinite := first_cell(X.data if sparse.issparse(X) else X, np.isinf):
        row, j = _row_and_column(X, infinite)
        column = column_name(j, getattr(model, "feature_names_in_", None))
        rest = "; replace it by a finite number, or by NaN if it is missing."
        raise RowError(name, f"Column {column} of {name} has an infinite value (inf)", row, rest)
    return X


def is_ready(model: Any, X: Any) -> bool:
    """Whether X is an array as kernels take it.

    All else goes through :func:`check_X`, which takes longer than the prediction of a row.
    """
    return (
        type(X) is np.ndarray
        and X.shape[1:] == (model.n_features_in_,)
        and len(X) > 0
        and (X.dtype == np.float64 or X.dtype == np.float32)
        and X.flags.c_contiguous
        and X.flags.aligned
        and not hasattr(model, "feature_names_in_")
        and not model._category_labels.of_column
    )


def _match_features(
    model: Any, names: list[str] | None, n_features: int, *, reset: bool, name: str
) -> None:
    """Remember the number and names of features, or compare them with those of fit."""
    if reset:
        model.__dict__.pop("feature_names_in_", None)
        model.n_features_in_ = n_features
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
        return
    known = getattr(model, "feature_names_in_", None)
    if names is not None and known is not None and (known := known.tolist()) != names:
        problem = f"The features of {name} should be those of fit, in the same order"
        hint = _suggestions(names, known, "select those of feature_names_in_.")
        raise ValueError(f"{problem}; {hint}")
    if (expected := model.n_features_in_) != n_features:
        raise ValueError(f"{name} has {n_features} features, but {expected} are expected.")


def _suggestions(given: Sequence[str], known: Sequence[str], otherwise: str) -> str:
    """Return a question whether known names were meant by unknown ones, if they are alike."""
    if set(given) == set(known):
        return "select them in that order, with feature_names_in_ of the model."
    unknown = [each for each in given if each not in known]
    return likely_pairs(unknown, [each for each in known if each not in given]) or otherwise


def in_canonical_order(X: Any) -> Any:
    """Return a CSR matrix with sorted indices and no duplicates; the given one is not changed."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _row_and_column(X: Table, place: tuple[int, ...]) -> tuple[int, int]:
    """Return the row and column of a cell, given by its index in X or in the data of a CSR."""
    if not sparse.issparse(X):
        return place[0], place[1]
    return int(np.searchsorted(X.indptr, place[0], side="right")) - 1, int(X.indices[place[0]])


def feature_numbers(parameter: str, n_features: int, names: Any) -> Callable[[Any], int]:
    """Return what finds the number of a feature that a parameter gives by number or name."""
    places = None if names is None else {str(name): j for j, name in enumerate(names)}
    return lambda feature: number_of(parameter, feature, "feature", n_features, places)


def resolve_categorical(X: Table, categorical_features: Any, feature_names: Any) -> Mask:
    """Return which features of X hold categories, as a mask; "from_dtype": none of an array."""
    n_features = X.shape[1]
    mask = np.zeros(n_features, bool)
    if categorical_features is None or isinstance(categorical_features, str):
        return mask
    name = "categorical_features"
    given = list(frames.by_position(name, categorical_features, feature_names))
    if given and frames.are_flags(given):
        if len(given) != n_features:
            what = f"is a mask of {len(given)} entries but X has {n_features} features"
            remedy = "give one entry for each, or the numbers of the categorical ones."
            raise ValueError(f"{name} {what}; {remedy}")
        mask[:] = given
        return mask
    number = feature_numbers(name, n_features, feature_names)
    mask[list(map(number, given))] = True
    return mask


def to_single(X: Table) -> Table:
    """Return features in single precision, C-contiguous and aligned; others become infinite."""
    if isinstance(X, StoredTable):
        return X
    with np.errstate(over="ignore"):
        if sparse.issparse(X):
            return X if X.dtype == np.float32 else X.astype(np.float32)
        return np.require(X, np.float32, ["C", "A"])


def compressed(X: Any) -> tuple[NDArray[np.int64], NDArray[np.int32], F32]:
    """Return the starts, indices and values of a CSR or CSC matrix as the kernels take them."""
    starts, indices = X.indptr.astype(np.int64), np.require(X.indices, np.int32, "A")
    return starts, indices, np.require(X.data, None, "A")


def for_kernels(X: Table) -> Any:
    """Return single-precision features as prediction takes them."""
    if isinstance(X, StoredTable):
        return X.load()
    return compressed(X) if sparse.issparse(X) else X


def _read_frame(
    model: Any,
    X: Any,
    *,
    reset: bool,
    name: str,
    categorical: Any,
    comm: Comm,
    refuse_unknown: bool,
) -> Any:
    """Return the numbers of a frame, or the frame as it is if scikit-learn converts it."""
    names = frames.column_names(X, name)
    frame = frames.open_frame(X, name)
    if isinstance(X, NamedTable):
        _match_features(model, X.columns, X.shape[1], reset=reset, name=name)
    else:
        try:
            validate_data(model, X, reset=reset, skip_check_array=True)
        except ValueError as error:
            known = list(getattr(model, "feature_names_in_", ()))
            hint = _suggestions(names or [], known, "")
            where = "" if name == "X" else f"{name}: "
            raise ValueError(f"{where}{error}{hint[:1].upper()}{hint[1:]}") from None
    if frame is None:
        _refuse_other_columns(X, name)
        return X
    if reset:
        chosen = None
        if not isinstance(categorical, str):
            chosen = resolve_categorical(frame, categorical, frame.columns)
        # (A column of objects may be missing on some of the ranks, where it could be anything.)
        found = np.array(frames.label_columns(frame, chosen), np.intp)
        columns = comm.unique(found).tolist()
        model._category_labels = frames.CategoryLabels.of(frame, columns).united(comm)
    remedy = None if reset else AS_IN_FIT
    return model._category_labels.encode(frame, name, remedy, refuse_unknown=refuse_unknown)


def _large_labels(X: NDArray[Any], categorical: Any, comm: Comm) -> frames.CategoryLabels:
    """Return the categories of an array that doubles would mix up, which are kept as labels."""
    chosen = np.flatnonzero(resolve_categorical(X, categorical, None))
    large = [j for j in chosen if frames.has_large_integers(X[:, j])]
    columns = comm.unique(np.array(large, np.intp)).tolist()
    return frames.CategoryLabels.of(X, columns).united(comm)


def _refuse_other_columns(X: Any, name: str) -> None:
    """Refuse a frame with a column that is not numeric, without narwhals."""
    others = ("str", "obj", "cat", "enum", "bin", "date", "time", "dur", "per", "interval")
    nested = ("list", "array", "struct")
    for label in X.columns:
        column = X[label]
        dtype = str(getattr(column, "dtype", "")).lower()
        numeric = not dtype.startswith(others + nested)
        if dtype == "object":
            numeric = all(isinstance(value, int | float | np.number) for value in column)
        if not numeric:
            problem = f"Column {str(label)!r} of {name} holds {column.dtype} values, not numbers"
            remedy = "or install narwhals for more types (pip install 'manyboost[frames]')."
            raise ValueError(f"{problem}; {frames.ENCODE}, {remedy}")
