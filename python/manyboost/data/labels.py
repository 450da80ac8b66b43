"""Labels: classes, indicators of 0 and 1, and sets of labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import type_of_target

from manyboost import memory
from manyboost.arrays import Mask
from manyboost.comm import ALONE, Comm
from manyboost.data.cells import (
    MISSING_LABEL,
    cell_error,
    class_numbers,
    column_name,
    refuse_cells,
    row_blocks,
)
from manyboost.data.features import Table, in_canonical_order
from manyboost.data.frames import (
    LISTS,
    column_names,
    holds_labels,
    is_frame,
    is_series,
    list_column,
    target_labels,
    value_columns,
)
from manyboost.data.named import NamedTable
from manyboost.data.plain_arrays import is_missing, unchanged
from manyboost.data.sparse_labels import SparseLabels
from manyboost.data.stored import CheckedTargets
from manyboost.data.targets import check_outputs, check_shape
from manyboost.errors import RowError, warn


@dataclass
class Classes:
    """How labels become targets and scores become labels."""

    # "binary" (one output), "multiclass" (one output per class), "multilabel", or "columns".
    kind: str
    # Sorted classes or labels; of an indicator the names or numbers of columns.
    values: Any
    names: tuple[str, ...] | None = None  # of labels, or of columns of classes

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the model."""
        return 1 if self.kind == "binary" else len(self.values)

    @property
    def output_names(self) -> Sequence[str] | None:
        """Names of the outputs: classes, or labels that have names; None for two classes."""
        return list(map(str, self.values)) if self.kind == "multiclass" else self.names

    @classmethod
    def of(cls, y: NDArray[Any], names: Sequence[Any] | None = None, comm: Comm = ALONE) -> Classes:
        """Find the classes of checked labels on all ranks; ``names`` are those of the columns."""
        if y.ndim == 2:
            if names is None:
                return cls("multilabel", np.arange(y.shape[1]))
            return cls("multilabel", _as_labels(names), tuple(map(str, names)))
        values = comm.unique(y)
        if len(values) < 2:
            only = f"y has only one class ({_shown(values[0])})"
            raise ValueError(f"{only}; a classifier needs at least two classes.")
        return cls("binary" if len(values) == 2 else "multiclass", values)

    def encode(self, y: Any, *, softmax: bool, name: str = "y") -> NDArray[Any]:
        """Return 0/1 labels (n, n_outputs) as uint8, or for softmax class numbers as uint32."""
        if self.kind == "multilabel":
            if y.shape[1:] != (self.n_outputs,):
                expected = f"the model was given {self.n_outputs} labels"
                raise ValueError(f"{name} has shape {y.shape}; {expected}.")
            checked: NDArray[Any] = y
            return checked
        if y.ndim != 1:
            raise ValueError(f"{name} has shape {y.shape}; it must have one class per row.")
        try:
            numbers = np.searchsorted(self.values, y)
        except TypeError:  # types that cannot be compared: no class is known
            numbers = np.zeros(len(y), np.intp)
        known = np.minimum(numbers, len(self.values) - 1)
        unlike = np.asarray(self.values[known] != y)
        if unlike.any():
            row = int(np.argmax(unlike))
            rest = ", which the model does not know; fit on rows of all classes."
            raise RowError(name, f"{name} has the class {_shown(y[row])}", row, rest)
        if self.kind == "binary":
            return np.asarray(known.astype(np.uint8)[:, None])
        if softmax:
            return np.asarray(known.astype(np.uint32))
        return np.asarray(known[:, None] == np.arange(len(self.values)), dtype=np.uint8)

    def decode(self, encoded: NDArray[Any]) -> NDArray[Any]:
        """Return the labels that :meth:`encode` was given."""
        if self.kind == "multilabel":
            return encoded.astype(np.int64)
        return np.asarray(self.values[class_numbers(encoded)])


@dataclass
class ClassColumns(Classes):
    """The classes of several columns: a column of two has one output, others have one per class.

    ``values`` is a list of the sorted classes of each column.
    """

    @property
    def columns(self) -> list[Classes]:
        """The classes of each column."""
        return [Classes("binary" if len(v) == 2 else "multiclass", v) for v in self.values]

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of outputs of each column."""
        return tuple(column.n_outputs for column in self.columns)

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the model."""
        return sum(self.widths)

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs, such as "colour=red"; of two classes the second."""
        columns = self.names or [f"y{j}" for j in range(len(self.values))]
        named = zip(columns, self.values, strict=True)
        return [
            f"{column}={each}"
            for column, values in named
            for each in (values[1:] if len(values) == 2 else values)
        ]

    @classmethod
    def of_columns(
        cls, y: list[NDArray[Any]], names: Sequence[str] | None, comm: Comm, name: str = "y"
    ) -> ClassColumns:
        """Find the classes of columns, in which None is missing, on all ranks."""
        values = []
        for j, column in enumerate(y):
            found = comm.unique(_present(column, j, name, names)[1])
            if len(found) < 2:
                what = f"only one class ({_shown(found[0])})" if len(found) else "no class"
                problem = f"Column {column_name(j, names)} of {name} has {what}"
                raise ValueError(f"{problem}; a classifier needs at least two: leave it out.")
            values.append(found)
        return cls("columns", values, None if names is None else tuple(map(str, names)))

    def encode(self, y: Any, *, softmax: bool, name: str = "y") -> NDArray[Any]:
        """Return 0/1 labels (n, n_outputs) as uint8; all outputs of a missing class are 255."""
        if not isinstance(y, list) or len(y) != len(self.values):
            found = f"{len(y)} columns" if isinstance(y, list) else f"shape {y.shape}"
            expected = f"the model was given {len(self.values)} columns of classes"
            raise ValueError(f"{name} has {found}; {expected}.")
        blocks = []
        for j, (column, known) in enumerate(zip(y, self.columns, strict=True)):
            rows, present = _present(column, j, name, self.names)
            of_column = f"Column {column_name(j, self.names)} of {name}"
            try:
                labels = known.encode(present, softmax=False, name=of_column)
            except RowError as error:
                raise error.relocated(int(rows[error.row])) from None
            block = np.full((len(column), known.n_outputs), MISSING_LABEL, np.uint8)
            block[rows] = labels
            blocks.append(block)
        return np.hstack(blocks)

    def decode(self, encoded: NDArray[Any]) -> NDArray[Any]:
        """Return the classes (n, n_columns) that :meth:`encode` was given, None if missing."""
        columns = []
        for part, known in zip(self.split(encoded), self.columns, strict=True):
            missing = part[:, 0] == MISSING_LABEL
            labels = known.decode(np.where(missing[:, None], 0, part))
            if missing.any():
                labels = labels.astype(object)
                labels[missing] = None
            columns.append(labels)
        return side_by_side(columns)

    def split(self, outputs: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the outputs (n, n_outputs) of each column."""
        return np.split(outputs, np.cumsum(self.widths)[:-1], axis=1)


def side_by_side(columns: list[NDArray[Any]]) -> NDArray[Any]:
    """Return columns of classes as an array; one of objects unless all are of one kind."""
    if len({column.dtype.kind for column in columns}) > 1:
        columns = [column.astype(object) for column in columns]
    return np.column_stack(columns)


def _present(
    column: NDArray[Any], j: int, name: str, names: Sequence[str] | None
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the rows in which a column has a class, and these, of one type."""
    rows = np.flatnonzero(~_missing(column))
    present = column[rows]
    if not len(rows):
        return rows, present
    return rows, _check_classes(present, f"Column {column_name(j, names)} of {name}")


@dataclass(frozen=True)
class Sparsity:
    """When labels stay sparse: from so many cells on, or never (None), and then why."""

    cells: int | None = None
    obstacle: str | None = None  # what keeps labels from staying sparse

    def keeps(self, n_rows: int, n_labels: int) -> bool:
        """Whether labels of so many rows stay sparse."""
        return self.cells is not None and n_rows * n_labels >= self.cells


DENSE = Sparsity()


def read_labels(
    y: Any,
    X: Table,
    name: str = "y",
    classes: Classes | None = None,
    comm: Comm = ALONE,
    sparsity: Sparsity = DENSE,
) -> tuple[Classes, Any]:
    """Return the classes, by default those of y on all ranks, and what these encode.

    Indicators are arrays (n_rows, n_labels), or :class:`SparseLabels` where these are kept.
    """
    sets = read_label_sets(y, name)
    if sets is None:
        labels = check_labels(y, X, name, classes, comm, sparsity)
        several = isinstance(labels, list) or labels.ndim == 2
        names = target_labels(y, name) if several else None
        if classes is not None:
            return classes, labels
        if isinstance(labels, list):
            return ClassColumns.of_columns(labels, names, comm, name), labels
        return Classes.of(labels, names, comm), labels
    if classes is None:
        labels = _sorted_labels(frozenset().union(*chain(*comm.gather(sets))))
        classes = Classes("multilabel", labels, tuple(map(str, labels)))
    elif classes.kind != "multilabel":
        problem = f"{name} holds sets of labels, but the model was given classes"
        raise ValueError(f"{problem}; pass classes.")
    check_shape((len(sets),), X, name)
    return classes, indicator(sets, classes.values, name, sparsity)


def check_labels(
    y: Any,
    X: Table,
    name: str = "y",
    classes: Classes | None = None,
    comm: Comm = ALONE,
    sparsity: Sparsity = DENSE,
) -> Any:
    """Return one class per row (n,), an indicator (n, d), or a list of columns of classes.

    The indicator is of 0, 1 and missing labels. Several columns are one, unless a value on some
    rank is another; known ``classes`` say what they are.
    """
    if isinstance(y, CheckedTargets):
        check_shape(y.shape, X, name)
        return _kept(y.array, sparsity)
    stored = y.values if isinstance(y, NamedTable) else y
    if sparse.issparse(stored) and stored.shape[1:] != (1,):
        return _sparse_indicator(stored, X, name, sparsity)
    y = y.toarray() if sparse.issparse(y) else y
    if is_frame(y) and y.shape[1] > 1 and holds_labels(y, name):
        check_shape(y.shape, X, name)
        labels = side_by_side(value_columns(y, name))
    else:
        labels = check_outputs(y, X, name, numeric=False)
    if labels.ndim == 1:
        return _check_classes(labels, name)
    if labels.shape[1] > 1:
        several = _check_several(labels, y, name, classes, comm)
        return several if isinstance(several, list) else _kept(several, sparsity)
    one = f"{name}.ravel()"
    if is_frame(y):
        one = f"{name}[{next(iter(column_names(y, name) or y.columns))!r}]"
    message = (
        f"A column-vector {name} was passed when a 1d array was expected; it is read as one class "
        f"per row. Pass {one} to silence this warning."
    )
    warn(message, DataConversionWarning)
    return _check_classes(labels[:, 0], name)


def _kept(indicator: NDArray[Any], sparsity: Sparsity) -> Any:
    # An array that exists stays what it is, unless sparse labels are asked for.
    return SparseLabels.of_dense(indicator) if sparsity.cells == 0 else indicator


def check_indicator(y: Any, X: Table, name: str = "y") -> Any:
    """Return an indicator (n, d); refuse several columns of classes, which only ``fit`` takes."""
    try:
        return check_labels(y, X, name, Classes("multilabel", ()))
    except RowError as error:
        if error.rest != _NO_INDICATOR:
            raise
        rest = "; labels must be 0 or 1, one column each: use fit for several columns of classes."
        raise RowError(error.argument, error.problem, error.row, rest, error.output) from None


def _check_several(
    labels: NDArray[Any], y: Any, name: str, classes: Classes | None, comm: Comm
) -> Any:
    """Return an indicator, or the columns of y if they hold classes."""
    if classes is None or classes.kind != "columns":
        found = _dense_indicator(labels)
        other = found if isinstance(found, tuple) else None
        may_be_classes = classes is None and comm.any(other is not None)
        if other is not None and (not may_be_classes or _is_share(labels[other])):
            raise _label_error(labels[other], other, name, column_names(y, name))
        if not may_be_classes:
            return found
    return value_columns(y, name) if is_frame(y) else list(labels.T)


def _check_classes(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Refuse classes (n,) that are missing, of several types, or numbers to be regressed on."""
    refuse_cells(labels, _missing, name, "has a missing value (NaN)")
    numeric = bool | int | float | np.number | np.bool_
    if labels.dtype == object and all(isinstance(value, numeric) for value in labels):
        values = unchanged(labels.tolist())
        if values.dtype.kind == "f":
            refuse_cells(values, np.isinf, name, "has an infinite value (inf)")
        if values.dtype == object:
            raise _inexact(name, "class", values.tolist())
        labels = values if values.dtype.kind in "biuf" else labels
    try:
        kind = type_of_target(labels, input_name=name)
    except TypeError:
        if all(isinstance(value, bytes) for value in labels):
            problem = f"{name} holds bytes (such as {_shown(labels[0])})"
            raise ValueError(f"{problem}; decode them into text.") from None
        raise _mixture(f"{name} mixes classes", labels) from None
    # scikit-learn's checks look for the first three words of both errors.
    if kind == "unknown":
        held = f"{type(labels[0]).__name__} values (such as {str(labels[0])[:50]!r})"
        remedy = "turn them into text or whole numbers"
        raise ValueError(f"Unknown label type: {name} holds {held}; {remedy}.")
    if kind not in ("binary", "multiclass"):
        remedy = f"{name} must hold classes, for numbers use ManyBoostRegressor"
        raise ValueError(f"Unknown label type: {kind}; {remedy}.")
    return labels


def _missing(y: NDArray[Any]) -> Mask:
    """Return where labels of any type are missing: NaN, None or pandas.NA."""
    if y.dtype == object:
        return np.asarray(np.vectorize(is_missing, otypes=[bool])(y))
    return np.isnan(y) if y.dtype.kind == "f" else np.zeros(y.shape, bool)


def _shown(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)


def _dense_indicator(labels: NDArray[Any]) -> NDArray[np.uint8] | tuple[int, int]:
    """Encode an indicator as 0, 1 and :data:`MISSING_LABEL`, or return the first cell of none."""
    is_encoded = labels.dtype == np.uint8
    encoded = labels if is_encoded else np.empty(labels.shape, np.uint8)
    for rows in row_blocks(*labels.shape):
        missing = _missing(labels[rows])
        known = np.where(missing, 0, labels[rows]) if missing.any() else labels[rows]
        unlike = (known != 0) & (known != 1)
        if unlike.any():
            i, j = np.argwhere(unlike)[0].tolist()
            return rows.start + i, j
        if not is_encoded:
            encoded[rows] = known
            encoded[rows][missing] = MISSING_LABEL
    return np.ascontiguousarray(encoded)


def _sparse_indicator(
    y: Any, X: Table, name: str, sparsity: Sparsity = DENSE
) -> NDArray[np.uint8] | SparseLabels:
    """Encode a sparse indicator without a wide dense copy; a stored NaN is missing."""
    check_shape(y.shape, X, name)
    y = in_canonical_order(y.tocsr())
    rows = np.repeat(np.arange(y.shape[0]), np.diff(y.indptr))
    missing = _missing(y.data)
    unlike = np.flatnonzero((y.data != 0) & (y.data != 1) & ~missing)
    if len(unlike):
        k = unlike[0]
        raise _label_error(y.data[k], (rows[k], y.indices[k]), name)
    if sparsity.keeps(*y.shape):
        return SparseLabels.of_stored(y, missing)
    memory.check_labels(y.shape[0], y.shape[1], name, sparsity.obstacle)
    encoded = np.zeros(y.shape, np.uint8)
    encoded[rows, y.indices] = np.where(missing, MISSING_LABEL, y.data)
    return encoded


_NO_INDICATOR = (
    "; several outputs must be an indicator of 0 and 1, one column per label, or a list of sets of "
    "labels."
)


def _is_share(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(0 < value < 1)


def _label_error(
    value: Any, place: tuple[int, int], name: str, names: Sequence[str] | None = None
) -> RowError:
    rest = _NO_INDICATOR
    if _is_share(value):
        rest = (
            "; labels are 0 or 1: for a probability p pass the row twice, with the labels 1 and 0 "
            "and their weights p and 1 - p."
        )
    return cell_error(name, f"{name} has the value {_shown(value)}", place, rest, names)


def read_label_sets(y: Any, name: str = "y") -> list[frozenset[Any]] | None:
    """Return the labels of every row, or None if ``y`` does not hold sets of labels.

    A row may be a list or an array if rows are no indicator: their lengths differ or they hold
    text.
    """
    rows = _rows_of_lists(y, name) or []
    rows = [each.tolist() if isinstance(each, np.ndarray) else each for each in rows]
    if not any(isinstance(each, LISTS) for each in rows):
        return None
    for i, each in enumerate(rows):
        if not isinstance(each, LISTS):
            rest = " but sets of labels in others; pass a set for every row, maybe an empty one."
            raise RowError(name, f"{name} holds {each!r}", i, rest)
    has_sets = any(isinstance(each, set | frozenset) for each in rows)
    like_table = not has_sets and len({len(each) for each in rows}) == 1
    if like_table:
        text = {value for each in rows for value in each if isinstance(value, str)}
        like_table = text <= {"0", "1"}
    if like_table and isinstance(y, list | tuple):
        return None
    for i, each in enumerate(rows):
        for label in each:
            if not isinstance(label, str | int | float | np.number | np.bool_) or is_missing(label):
                rest = "; labels must be text or numbers."
                raise RowError(name, f"{name} has the label {label!r}", i, rest)
        if like_table and len(set(each)) < len(each):
            what = f"{name} has the label {max(each, key=each.count)!r} twice"
            rest = f"; if rows are those of a table, pass np.array(list({name}))."
            raise RowError(name, what, i, rest)
    return [frozenset(each) for each in rows]


def _rows_of_lists(y: Any, name: str) -> list[Any] | None:
    """Return the rows of data that may hold lists or sets, else None."""
    if isinstance(y, list | tuple):
        return list(y)
    if is_frame(y):
        return list_column(y, name)
    if hasattr(type(y), "to_pylist"):  # of pyarrow
        return list(y.to_pylist()) if "list" in str(y.type) else None
    is_array = isinstance(y, np.ndarray)
    if not (is_series(y) or (is_array and y.ndim == 1)):
        return None
    if not str(y.dtype).lower().startswith(("object", "list", "array")):
        return None
    return list(y.tolist() if is_array else y.to_list())


def _sorted_labels(labels: frozenset[Any]) -> NDArray[Any]:
    if not labels:
        raise ValueError("y has no label in any row; a classifier needs at least one label.")
    try:
        ordered = sorted(labels)
    except TypeError:
        raise _mixture("y mixes labels", labels) from None
    return _as_labels(ordered)


def _as_labels(labels: Sequence[Any]) -> NDArray[Any]:
    text = any(isinstance(label, str) for label in labels)
    if text:
        return np.array(labels, dtype=object)
    values = unchanged(labels)
    if values.dtype == object:  # which no model file holds
        raise _inexact("y", "label", labels)
    return values


def _inexact(name: str, thing: str, values: Sequence[Any]) -> ValueError:
    what = f"{name} has the {thing} {max(values, key=abs)!r}, which no type of number holds exactly"
    return ValueError(f"{what} beside the others; turn all of them into text.")


def _mixture(problem: str, values: Iterable[Any]) -> ValueError:
    types = " and ".join(sorted({type(value).__name__ for value in values}))
    return ValueError(f"{problem} of the types {types}; bring them to one type.")


def indicator(
    sets: list[frozenset[Any]], labels: NDArray[Any], name: str = "y", sparsity: Sparsity = DENSE
) -> NDArray[np.uint8] | SparseLabels:
    """Return 0/1 for every row and label (n_rows, n_labels); refuse unknown labels."""
    column = {label: j for j, label in enumerate(labels.tolist())}
    rows: list[list[int]] = []
    for i, each in enumerate(sets):
        for label in each:
            if label not in column:
                rest = ", which the model does not know; fit on rows of all labels."
                raise RowError(name, f"{name} has the label {label!r}", i, rest)
        rows.append(sorted(column[label] for label in each))
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    numbers = np.fromiter(chain(*rows), np.int32, int(starts[-1]))
    if sparsity.keeps(len(sets), len(labels)):
        return SparseLabels(starts, numbers, len(labels))
    memory.check_labels(len(sets), len(labels), name, sparsity.obstacle)
    marks = np.zeros((len(sets), len(labels)), np.uint8)
    marks[np.repeat(np.arange(len(sets)), np.diff(starts)), numbers] = 1
    return marks
