"""X and Y in: checked, named, and in the form that training takes.

Every refusal is one sentence: what was wrong, where, and what to do.
"""

from __future__ import annotations

import numbers
import os
import textwrap
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_array
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import validate_data

from manyboost import _core, memory
from manyboost.comm import ALONE, Comm
from manyboost.data.frames import (
    CategoryLabels,
    category_columns,
    column_names,
    is_frame,
    is_missing,
    is_numeric,
    is_series,
    nearest,
    open_frame,
    spread_out,
)
from manyboost.data.label_sets import indicator, labels_of, read_label_sets
from manyboost.data.named import NamedTable
from manyboost.data.plain_arrays import plain_numbers, refuse_type, stacked, unmasked
from manyboost.data.stored import CheckedTargets, StoredTable, first_cell, row_blocks
from manyboost.data.weights import (
    MISSING_LABEL,
    Weights,
    cell_holds,
    cell_name,
    check_weight,
    missing_cells,
    settle,
    weigh_classes,
)

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

#: Features: a dense array, or a sparse matrix by rows.
Table = Any

#: The largest target and offset: differences of such numbers, and what a line search makes of them,
#: stay within single precision.
LARGEST_TARGET = 1e37

#: No machine has more use for threads than this, whatever a model file asks for.
MOST_THREADS = 1024


def resolve_threads(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``."""
    available = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    if n_jobs is None:
        wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        return max(1, int(wanted)) if wanted.isdigit() else available
    return min(n_jobs, MOST_THREADS) if n_jobs > 0 else max(1, available + 1 + n_jobs)


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
        X = _in_order(X)
    if (infinite := first_cell(X.data if sparse.issparse(X) else X, np.isinf)) is not None:
        row, j = _row_and_column(X, infinite)
        names = getattr(estimator, "feature_names_in_", None)
        raise ValueError(
            f"Column {column_name(j, names)} of {name} has an infinite value (inf) in row {row}; "
            "replace it by a finite number, or by NaN if it is missing."
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


def _in_order(X: Any) -> Any:
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

    def holds(place: tuple[int, ...], what: str) -> str:
        return f"Column {place[1]} of {name} holds {what}"

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


@dataclass
class Rows:
    """Rows to train on or to score: features, encoded targets, weights, and their numbers."""

    X: Table
    Y: NDArray[Any]
    weights: Weights
    numbers: NDArray[np.uint64]
    offset: F64 | None = None
    comm: Comm = ALONE
    """The ranks that hold other rows."""

    def __len__(self) -> int:
        return len(self.numbers)

    def count(self) -> int:
        """Return the number of rows on all ranks."""
        return self.comm.total(len(self))

    def pool(self, pool: _core.Pool) -> _core.Pool:
        """Return the same threads for these rows: sums over them are those of all ranks."""
        return pool if self.comm.size == 1 else pool.among(self.comm, self.count())

    def take(self, chosen: NDArray[Any]) -> Rows:
        """Return a subset of the rows."""
        offset = None if self.offset is None else self.offset[chosen]
        weights, numbers = self.weights.take(chosen), self.numbers[chosen]
        stored = isinstance(self.X, StoredTable)
        Y = self.X.take_targets(self.Y, chosen) if stored else self.Y[chosen]
        return Rows(self.X[chosen], Y, weights, numbers, offset, self.comm)

    def become(self, others: Rows) -> None:
        """Hold other rows instead, for all who hold these."""
        vars(self).update(vars(others))

    def repeated(self, times: int) -> Rows:
        """Return the rows with each output ``times`` times; offsets are as they were."""
        if times == 1:
            return self
        Y = np.repeat(self.Y, times, axis=1)
        weights = self.weights.repeated(times)
        return Rows(self.X, Y, weights, self.numbers, self.offset, self.comm)

    def settled(self, weight: NDArray[np.floating] | None, name: str) -> Rows:
        """Return the rows with these weights instead; those without an observed cell are left out.

        ``name`` is what the user calls the weights.
        """
        Y, weights, there = settle(self.Y, weight, name, self.comm)
        rows = Rows(self.X, Y, weights, self.numbers, self.offset, self.comm)
        return rows if there.all() else rows.take(np.flatnonzero(there))

    def weighed(self, table: F64 | None, classes: Classes) -> Rows:
        """Return the rows with weights multiplied by those of their classes."""
        if table is None:
            return self
        weight = weigh_classes(self.weights, self.Y, table, classes)
        rows = self.settled(weight, "class_weight")
        if not rows.count():
            raise ValueError(
                "class_weight is zero for all classes of these rows; give one of them a positive "
                "weight."
            )
        return rows


def make_rows(
    X: Table,
    Y: NDArray[Any],
    sample_weight: Any,
    name: str,
    offset: F64 | None = None,
    *,
    by_cell: bool = True,
    comm: Comm = ALONE,
    numbers: NDArray[np.uint64] | None = None,
) -> Rows:
    """Put rows together; those without an observed cell of positive weight are left out.

    ``by_cell`` says that weights may be those of cells, (n, d); ``numbers`` are those of the rows
    among the rows of all ranks.
    """
    shape = Y.shape if by_cell else Y.shape[:1]
    weight = check_weight(sample_weight, shape, name, comm)
    n_rows = X.shape[0]
    offset = None if offset is None else np.ascontiguousarray(offset)
    if numbers is None:
        numbers = np.arange(n_rows, dtype=np.uint64)
    rows = Rows(X, Y, Weights(), numbers, offset, comm).settled(weight, name)
    if not rows.count():
        target = "Y_val" if name == "sample_weight_val" else "y"
        raise ValueError(
            f"{target} has no observed value of positive weight in any of its {n_rows} rows; at "
            "least one cell must hold a value."
        )
    return rows


def check_offset(
    offset: Any, X: Table, n_outputs: int, *, softmax: bool = False, name: str = "offset"
) -> F64:
    """Return an offset of the raw predictions, (n,) or (n, d), as an array (n, d)."""
    if sparse.issparse(offset):
        raise ValueError(f"{name} is a sparse matrix; pass a dense array, with {name}.toarray().")
    array = np.asarray(
        plain_numbers(stacked(offset, name), name, cell_holds(name), "pass numbers"),
        dtype=np.float64,
    )
    array = np.require(array, None, "A")
    n_rows = X.shape[0]
    if softmax and array.ndim == 1:
        raise ValueError(
            f"{name} has shape {array.shape}, but the same offset for all {n_outputs} classes "
            f"would change nothing; it must have the shape {(n_rows, n_outputs)}."
        )
    if array.shape == (n_rows,):
        array = array[:, None]
    if array.ndim != 2 or array.shape[0] != n_rows or array.shape[1] not in (1, n_outputs):
        raise ValueError(
            f"{name} has shape {np.shape(offset)}; it must have one number for each of the "
            f"{n_rows} rows, or one for each row and output, {(n_rows, n_outputs)}."
        )
    bad = ~(np.abs(array) <= LARGEST_TARGET)
    if bad.any():
        place = np.argwhere(bad)[0]
        raise ValueError(
            f"{name} has the value {array[tuple(place)]:g} in row {place[0]}; it must hold finite "
            f"numbers of at most {LARGEST_TARGET:g}, which single precision has room for."
        )
    return np.broadcast_to(array, (n_rows, n_outputs))


def check_targets(y: Any, X: Table, name: str = "y") -> F64:
    """Return regression targets as a float64 array of one or two dimensions; NaN is missing."""
    if isinstance(y, CheckedTargets):
        _check_length(len(y.array), X, name)
        return y.array
    if sparse.issparse(y):
        raise ValueError(
            f"{name} is a sparse matrix, whose empty places could be zeros or missing values; pass "
            f"a dense array, with {name}.toarray() if they are zeros."
        )
    Y = _check_outputs(_numeric_outputs(y, name), X, name, np.float64)
    place = first_cell(Y, lambda some: np.abs(some) > LARGEST_TARGET)
    if place is not None:
        where = cell_name(place, column_names(y, name))
        raise ValueError(
            f"{name} has the value {Y[tuple(place)]:g} in {where}, beyond {LARGEST_TARGET:g}, for "
            "which single precision has room; divide it by a constant."
        )
    return Y


def _check_outputs(y: Any, X: Table, name: str, dtype: type | None) -> NDArray[Any]:
    """Return what is to be predicted as an array (n,) or (n, d) without infinite values."""
    if y is None:
        raise ValueError(
            f"This estimator requires {name} to be passed, but the target {name} is None."
        )
    names = column_names(y, name)
    y = _read_outputs(y, name, numeric=dtype is not None)
    try:
        y = check_array(
            y,
            dtype=dtype,
            order="C",
            ensure_2d=False,
            allow_nd=True,
            ensure_all_finite=False,
            ensure_min_samples=0,
            ensure_min_features=0,
            input_name=name,
        )
    except ValueError as error:
        reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise ValueError(f"{name} must hold numbers: {reason}.") from None
    y = np.require(y, None, "A")
    if y.ndim not in (1, 2):
        raise ValueError(f"{name} has {y.ndim} dimension(s); it must have one or two.")
    _check_length(len(y), X, name)
    if y.ndim == 2 and y.shape[1] == 0:
        raise ValueError(f"{name} has no outputs (0 columns); it needs at least one.")
    if y.dtype.kind == "f" and (place := first_cell(y, np.isinf)) is not None:
        _refuse_cell(name, "an infinite value (inf)", place, names)
    return np.asarray(y)


def _check_length(n_rows: int, X: Table, name: str) -> None:
    if n_rows != X.shape[0]:
        features = "X_val" if name == "Y_val" else "X"
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {features} has "
            f"{X.shape[0]} rows and {name} has {n_rows}; they must have the same number."
        )


def _refuse_cell(
    name: str, what: str, place: NDArray[np.intp], names: Sequence[str] | None = None
) -> None:
    where = cell_name(place, names)
    raise ValueError(f"{name} has {what} in {where}; drop such rows or fill them in before fit.")


def _missing(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where values of any type are missing: NaN, None or pandas.NA."""
    if y.dtype == object:
        return np.asarray(np.vectorize(is_missing, otypes=[bool])(y))
    return missing_cells(y) if y.dtype.kind == "f" else np.zeros(y.shape, bool)


def _numeric_outputs(y: Any, name: str) -> Any:
    """Return regression targets as numbers, NaN where they are missing; frames as they are."""
    if isinstance(y, list | tuple) or is_series(y):
        y = stacked(y, name)
    if not isinstance(y, np.ndarray):
        return y
    remedy = "encode it, or use ManyBoostClassifier for classes"
    return plain_numbers(y, name, cell_holds(name), remedy)


def _plain_classes(y: Any, name: str) -> Any:
    """Return classes or labels as an array of the type that they have; frames as they are."""
    if isinstance(y, list | tuple):
        is_text = [isinstance(each, str) for each in y]
        if any(is_text) and not all(is_text):
            # (NumPy would turn the others into text, NaN too.)
            objects = np.empty(len(y), object)
            objects[:] = y
            return objects
        y = stacked(y, name)
    if is_series(y) and str(y.dtype).startswith("complex"):
        y = np.asarray(y)
    if not isinstance(y, np.ndarray):
        return y
    y = unmasked(y)
    if y.dtype.kind in "cV":
        refuse_type(y, name)
    return y


def _read_outputs(y: Any, name: str, *, numeric: bool) -> Any:
    """Return the numbers of a frame; anything else as it is.

    Unless outputs must be ``numeric``, a single column may hold classes of any kind.
    """
    if not is_frame(y):
        return y if numeric else _plain_classes(y, name)
    if y.shape[1] == 0:
        raise ValueError(f"{name} has no outputs (0 columns); it needs at least one.")
    y = spread_out(y)
    if y.shape[1] == 1 and not numeric:
        return y
    frame = open_frame(y, name)
    remedy = "turn it into numbers, 0 and 1 for labels, or drop it"
    return y if frame is None else CategoryLabels().encode(frame, name, remedy)


def _plain(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)


@dataclass
class Classes:
    """How labels become targets and scores become labels.

    ``kind`` is "binary" (one output), "multiclass" (one output per class) or "multilabel".
    ``values`` are the sorted classes; for "multilabel" the labels: sorted if they came in sets, the
    names of the outputs if they have any, else their numbers.
    """

    kind: str
    values: NDArray[Any]
    names: tuple[str, ...] | None = None
    """Names of the labels, if they have any."""

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the model."""
        return 1 if self.kind == "binary" else len(self.values)

    @classmethod
    def of(cls, y: NDArray[Any], names: Sequence[str] | None = None, comm: Comm = ALONE) -> Classes:
        """Find the classes of checked labels; ``names`` are those of the columns."""
        if y.ndim == 2:
            if names is None:
                return cls("multilabel", np.arange(y.shape[1]))
            return cls("multilabel", np.array(names, dtype=object), tuple(names))
        values = comm.unique(y)
        if len(values) < 2:
            raise ValueError(
                f"y has only one class ({_plain(values[0])}); a classifier needs at least two "
                "classes."
            )
        return cls("binary" if len(values) == 2 else "multiclass", values)

    def numbers(self, Y: NDArray[Any]) -> NDArray[np.intp]:
        """Return the class number of each row of encoded classes."""
        if Y.ndim == 1:
            return Y.astype(np.intp)
        return np.asarray(Y[:, 0] if self.kind == "binary" else Y.argmax(axis=1), dtype=np.intp)

    def encode(self, y: NDArray[Any], *, softmax: bool, name: str = "y") -> NDArray[Any]:
        """0/1 labels (n, n_outputs) as uint8, or class numbers (n,) as uint32 for softmax."""
        if self.kind == "multilabel":
            if y.ndim != 2 or y.shape[1] != self.n_outputs:
                raise ValueError(
                    f"{name} has shape {y.shape}; the model was given {self.n_outputs} labels."
                )
            return y
        if y.ndim != 1:
            raise ValueError(f"{name} has shape {y.shape}; it must have one class per row.")
        try:
            numbers = np.searchsorted(self.values, y)
        except TypeError:  # they cannot be compared, so none is known
            numbers = np.zeros(len(y), np.intp)
        known = np.minimum(numbers, len(self.values) - 1)
        unlike = np.asarray(self.values[known] != y)
        if unlike.any():
            row = int(np.argmax(unlike))
            raise ValueError(
                f"{name} has the class {_plain(y[row])} in row {row}, which the model does not "
                "know; fit on rows of all classes."
            )
        if self.kind == "binary":
            return known.astype(np.uint8)[:, None]
        if softmax:
            return known.astype(np.uint32)
        return np.asarray(known[:, None] == np.arange(len(self.values)), dtype=np.uint8)

    def decode(self, encoded: NDArray[Any]) -> NDArray[Any]:
        """Labels for what :meth:`encode` made of them."""
        if self.kind == "multilabel":
            return encoded.astype(np.int64)
        if encoded.ndim == 1:
            return np.asarray(self.values[encoded])
        single = encoded.shape[1] == 1
        return np.asarray(self.values[encoded[:, 0] if single else encoded.argmax(axis=1)])


def check_labels(y: Any, X: Table, name: str = "y") -> NDArray[Any]:
    """Return labels: one class per row (n,), or an indicator (n, d) of 0, 1 and missing labels."""
    if isinstance(y, CheckedTargets):
        _check_length(len(y.array), X, name)
        return y.array
    if sparse.issparse(y) and len(y.shape) == 2 and y.shape[1] == 1:
        y = y.toarray()  # one class per row
    is_sparse = sparse.issparse(y)
    labels = _sparse_labels(y, X, name) if is_sparse else _check_outputs(y, X, name, None)
    if labels.ndim == 2 and labels.shape[1] > 1:
        return labels if is_sparse else _dense_labels(labels, name, column_names(y, name))
    missing = labels == MISSING_LABEL if is_sparse else _missing(labels)
    if labels.ndim == 2:
        labels, missing = labels[:, 0], missing[:, 0]
        warnings.warn(
            f"A column-vector {name} was passed when a 1d array was expected; it is read as one "
            f"class per row. Pass {name}.ravel() to silence this warning.",
            DataConversionWarning,
            stacklevel=3,
        )
    if missing.any():
        _refuse_cell(name, "a missing value (NaN)", np.argwhere(missing)[0])
    if labels.dtype == object:
        labels = _without_objects(labels, name)
    try:
        kind = type_of_target(labels, input_name=name)
    except TypeError:
        types = sorted({type(value).__name__ for value in labels})
        if all(isinstance(value, bytes) for value in labels):
            raise ValueError(
                f"{name} holds bytes (such as {_plain(labels[0])}); decode them into text."
            ) from None
        raise ValueError(
            f"{name} mixes classes of the types {' and '.join(types)}; bring them to one type."
        ) from None
    if kind not in ("binary", "multiclass"):
        # scikit-learn's words, which its checks look for, and ours.
        raise ValueError(
            f"Unknown label type: {kind}; {name} must hold classes, for numbers use "
            "ManyBoostRegressor."
        )
    return labels


def _without_objects(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Return classes that are kept as objects in an array of numbers, if that is what they are."""
    if not all(isinstance(v, bool | int | float | np.number | np.bool_) for v in labels):
        return labels
    values = np.array(labels.tolist())
    if values.dtype.kind == "f" and (place := first_cell(values, np.isinf)) is not None:
        _refuse_cell(name, "an infinite value (inf)", place)
    return values if values.dtype.kind in "biuf" else labels


_SEVERAL = (
    "several outputs must be an indicator of 0 and 1, one column per label, or a list of sets of "
    "labels."
)


def _dense_labels(
    labels: NDArray[Any], name: str, names: Sequence[str] | None
) -> NDArray[np.uint8]:
    """Encode an indicator of several labels; some rows at a time, for it may be all that fits."""
    is_encoded = labels.dtype == np.uint8
    encoded = labels if is_encoded else np.empty(labels.shape, np.uint8)
    for rows in row_blocks(*labels.shape):
        missing = _missing(labels[rows])
        known = np.where(missing, 0, labels[rows]) if missing.any() else labels[rows]
        # type_of_target calls an indicator without a single 1 (or 0) something else.
        unlike = (known != 0) & (known != 1)
        if unlike.any():
            place = np.argwhere(unlike)[0] + [rows.start, 0]
            value = _plain(labels[tuple(place)])
            where = cell_name(place, names)
            raise ValueError(f"{name} has the value {value} in {where}; {_SEVERAL}")
        if not is_encoded:
            encoded[rows] = known
            encoded[rows][missing] = MISSING_LABEL
    return np.ascontiguousarray(encoded)


def _sparse_labels(y: Any, X: Table, name: str) -> NDArray[np.uint8]:
    """Encode a sparse indicator without making a wide dense copy; a stored NaN is missing."""
    if len(y.shape) != 2:
        raise ValueError(f"{name} has {len(y.shape)} dimension(s); it must have one or two.")
    _check_length(y.shape[0], X, name)
    if y.shape[1] == 0:
        raise ValueError(f"{name} has no outputs (0 columns); it needs at least one.")
    y = _in_order(y.tocsr())
    rows = np.repeat(np.arange(y.shape[0]), np.diff(y.indptr))
    missing = np.isnan(y.data) if y.dtype.kind == "f" else np.zeros(y.data.shape, bool)
    unlike = (y.data != 0) & (y.data != 1) & ~missing
    if unlike.any():
        k = int(np.argmax(unlike))
        place = np.array([rows[k], y.indices[k]])
        raise ValueError(
            f"{name} has the value {_plain(y.data[k])} in {cell_name(place)}; {_SEVERAL}"
        )
    memory.check_labels(y.shape[0], y.shape[1], name)
    encoded = np.zeros(y.shape, np.uint8)
    encoded[rows, y.indices] = np.where(missing, MISSING_LABEL, y.data)
    return encoded


def read_labels(
    y: Any, X: Table, name: str = "y", classes: Classes | None = None, comm: Comm = ALONE
) -> tuple[Classes, NDArray[Any]]:
    """Return the given classes, or those of ``y``, and labels as :meth:`Classes.encode` takes them.

    Those of ``y`` are the classes that it has on any rank.

    ``y`` is what :func:`check_labels` takes, or a list of sets of labels.
    """
    sets = read_label_sets(y, name)
    if sets is None:
        labels = check_labels(y, X, name)
        names = column_names(y, name) if labels.ndim == 2 else None
        return classes or Classes.of(labels, names, comm), labels
    if classes is None:
        labels = labels_of(frozenset().union(*each) for each in comm.gather(sets))
        classes = Classes("multilabel", labels, tuple(str(label) for label in labels))
    elif classes.kind != "multilabel":
        raise ValueError(
            f"{name} holds sets of labels, but the model was given one class per row; pass one "
            "class per row."
        )
    return classes, _check_outputs(indicator(sets, classes.values, name), X, name, None)


def check_output_names(y: Any, known: Sequence[str] | None, name: str) -> None:
    """Refuse outputs with other names, or in another order, than those of fit."""
    names = column_names(y, name) if is_frame(y) else None
    if names is None or known is None or list(known) == names:
        return
    for given, expected in zip(names, known, strict=False):
        if given not in known:
            likely = nearest(given, [each for each in known if each not in names])
            hint = f"did you mean {likely!r}?" if likely else f"output {expected!r} was expected."
            raise ValueError(f"{name} has the output {given!r}, which fit did not see; {hint}")
    missing = [each for each in known if each not in names]
    if missing:
        raise ValueError(f"{name} lacks the output {missing[0]!r} of fit; add it.")
    raise ValueError(
        f"{name} has the outputs of fit in another order ({', '.join(map(repr, names[:5]))}); "
        "select them in the order of output_names_."
    )


def resolve_outputs(outputs: Any, names: Sequence[str] | None, n_outputs: int) -> list[int]:
    """Return the places of outputs that were asked for by name or by number."""
    if isinstance(outputs, str | bytes | numbers.Number) or not isinstance(outputs, Iterable):
        raise ValueError(
            f"outputs={outputs!r} is not a list; pass a list of the names or numbers of outputs."
        )
    named = None if names is None else {each: j for j, each in enumerate(names)}
    places: dict[int, Any] = {}
    for each in outputs:
        place = _output_place(each, named, n_outputs)
        if place in places:
            raise ValueError(f"outputs asks for {each!r} twice; ask for it once.")
        places[place] = each
    if not places:
        raise ValueError("outputs is empty; ask for at least one, or leave it out for all.")
    return list(places)


def _output_place(output: Any, named: Mapping[str, int] | None, n_outputs: int) -> int:
    if isinstance(output, str):
        if named is None:
            raise ValueError(
                f"outputs asks for {output!r}, but the outputs have no names; ask by numbers from "
                f"0 to {n_outputs - 1}, or fit on a frame of outputs."
            )
        if output not in named:
            likely = nearest(output, named)
            hint = f"did you mean {likely!r}?" if likely else "see output_names_."
            raise ValueError(f"There is no output {output!r}; {hint}")
        return named[output]
    whole = isinstance(output, int | np.integer) and not isinstance(output, bool | np.bool_)
    if not (whole and 0 <= output < n_outputs):
        raise ValueError(
            f"outputs asks for {output!r}; outputs are asked for by name or by a number from 0 to "
            f"{n_outputs - 1}."
        )
    return int(output)


def split_validation(
    rows: Rows, fraction: int | float, seed: int, *, by_class: NDArray[Any] | None
) -> tuple[Rows, Rows]:
    """Set rows apart for validation, chosen by their numbers, class by class if given."""
    comm, n = rows.comm, rows.count()
    whole = isinstance(fraction, int | np.integer)
    count = int(fraction) if whole else max(1, round(fraction * n))
    if count >= n:
        raise ValueError(
            f"validation_fraction={fraction!r} leaves none of the {n} rows for training; set "
            "fewer rows apart, pass X_val and Y_val, or use early_stopping=False."
        )
    pool = rows.pool(_core.Pool(1))
    groups = [np.arange(len(rows))]
    if by_class is not None:
        groups = [np.flatnonzero(by_class == c) for c in comm.unique(by_class)]
    chosen = np.zeros(len(rows), dtype=bool)
    for group, size in zip(groups, comm.totals(np.array(list(map(len, groups)))), strict=True):
        # Every class keeps a row to train on.
        share = min(round(count * int(size) / n), int(size) - 1)
        if share > 0:
            picked = _core.validation_rows(pool, rows.numbers[group], share, seed)
            chosen[group[picked]] = True
    if not comm.any(chosen.any()):
        chosen[_core.validation_rows(pool, rows.numbers, 1, seed)] = True
    if rows.weights.partial:
        # Every output keeps a cell to train on, in the first row that has one.
        observed = ~missing_cells(rows.Y)
        left = comm.largest(observed[~chosen].any(axis=0)) > 0
        first = _first_numbers(observed[:, ~left], rows.numbers, comm)
        chosen &= ~np.isin(rows.numbers, first)
        if not comm.any(chosen.any()):
            raise ValueError(
                "Each row that could be set apart for validation holds the only observed value of "
                "some output; pass X_val and Y_val, or use early_stopping=False."
            )
    return rows.take(np.flatnonzero(~chosen)), rows.take(np.flatnonzero(chosen))


def _first_numbers(
    marked: NDArray[np.bool_], numbers: NDArray[np.uint64], comm: Comm
) -> NDArray[np.uint64]:
    """Return the lowest number of a marked row on any rank, for each column."""
    none = float(2**53)
    lowest = np.where(marked, numbers.astype(np.float64)[:, None], none).min(axis=0, initial=none)
    return np.asarray(-comm.largest(-lowest)).astype(np.uint64)
