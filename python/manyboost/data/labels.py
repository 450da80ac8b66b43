"""Labels: classes, indicators of 0 and 1, and sets of labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import type_of_target

from manyboost import memory
from manyboost.comm import ALONE, Comm
from manyboost.data.cells import MISSING_LABEL, cell_error, first_cell, row_blocks
from manyboost.data.features import Table, in_canonical_order
from manyboost.data.frames import column_names, is_series
from manyboost.data.plain_arrays import is_missing
from manyboost.data.stored import CheckedTargets
from manyboost.data.targets import check_length, check_outputs, refuse_cell, refuse_no_outputs
from manyboost.errors import RowError


@dataclass
class Classes:
    """How labels become targets and scores become labels.

    Attributes
    ----------
    kind : str
        "binary" (one output), "multiclass" (one output per class) or "multilabel".
    values : ndarray
        The sorted classes. For "multilabel" the labels: sorted if they came in sets, else the names
        of the outputs, or their numbers if they have no names.
    names : tuple of str or None
        Names of the labels, if they have any.
    """

    kind: str
    values: NDArray[Any]
    names: tuple[str, ...] | None = None

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the model."""
        return 1 if self.kind == "binary" else len(self.values)

    @classmethod
    def of(cls, y: NDArray[Any], names: Sequence[str] | None = None, comm: Comm = ALONE) -> Classes:
        """Find the classes of checked labels on all ranks; ``names`` are those of the columns."""
        if y.ndim == 2:
            if names is None:
                return cls("multilabel", np.arange(y.shape[1]))
            return cls("multilabel", np.array(names, dtype=object), tuple(names))
        values = comm.unique(y)
        if len(values) < 2:
            raise ValueError(
                f"y has only one class ({_shown(values[0])}); a classifier needs at least two "
                "classes."
            )
        return cls("binary" if len(values) == 2 else "multiclass", values)

    def encode(self, y: NDArray[Any], *, softmax: bool, name: str = "y") -> NDArray[Any]:
        """Return 0/1 labels (n, n_outputs) as uint8, or for softmax class numbers as uint32."""
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
        except TypeError:  # types that cannot be compared: no class is known
            numbers = np.zeros(len(y), np.intp)
        known = np.minimum(numbers, len(self.values) - 1)
        unlike = np.asarray(self.values[known] != y)
        if unlike.any():
            row = int(np.argmax(unlike))
            problem = f"{name} has the class {_shown(y[row])}"
            rest = ", which the model does not know; fit on rows of all classes."
            raise RowError(name, problem, row, rest)
        if self.kind == "binary":
            return known.astype(np.uint8)[:, None]
        if softmax:
            return known.astype(np.uint32)
        return np.asarray(known[:, None] == np.arange(len(self.values)), dtype=np.uint8)

    def decode(self, encoded: NDArray[Any]) -> NDArray[Any]:
        """Return the labels that :meth:`encode` was given."""
        if self.kind == "multilabel":
            return encoded.astype(np.int64)
        if encoded.ndim == 1:
            return np.asarray(self.values[encoded])
        single = encoded.shape[1] == 1
        return np.asarray(self.values[encoded[:, 0] if single else encoded.argmax(axis=1)])


def read_labels(
    y: Any, X: Table, name: str = "y", classes: Classes | None = None, comm: Comm = ALONE
) -> tuple[Classes, NDArray[Any]]:
    """Return the classes, and the labels as :meth:`Classes.encode` takes them.

    ``y`` is what :func:`check_labels` takes, or a list of sets of labels. Without known ``classes``
    they are those of ``y`` on all ranks.
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
    check_length(len(sets), X, name)
    return classes, indicator(sets, classes.values, name)


def check_labels(y: Any, X: Table, name: str = "y") -> NDArray[Any]:
    """Return labels: one class per row (n,), or an indicator (n, d) of 0, 1 and missing labels."""
    if isinstance(y, CheckedTargets):
        check_length(len(y.array), X, name)
        return y.array
    if sparse.issparse(y) and len(y.shape) == 2 and y.shape[1] == 1:
        y = y.toarray()  # one class per row
    if sparse.issparse(y):
        return _sparse_indicator(y, X, name)
    labels = check_outputs(y, X, name, numeric=False)
    if labels.ndim == 2 and labels.shape[1] > 1:
        return dense_indicator(labels, name, column_names(y, name))
    if labels.ndim == 2:
        labels = labels[:, 0]
        warnings.warn(
            f"A column-vector {name} was passed when a 1d array was expected; it is read as one "
            f"class per row. Pass {name}.ravel() to silence this warning.",
            DataConversionWarning,
            stacklevel=3,
        )
    return _check_classes(labels, name)


def _check_classes(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Refuse classes (n,) that are missing, of several types, or numbers to be regressed on."""
    missing = _missing(labels)
    if missing.any():
        refuse_cell(name, "a missing value (NaN)", np.argwhere(missing)[0])
    if labels.dtype == object:
        labels = _without_objects(labels, name)
    try:
        kind = type_of_target(labels, input_name=name)
    except TypeError:
        types = sorted({type(value).__name__ for value in labels})
        if all(isinstance(value, bytes) for value in labels):
            raise ValueError(
                f"{name} holds bytes (such as {_shown(labels[0])}); decode them into text."
            ) from None
        raise ValueError(
            f"{name} mixes classes of the types {' and '.join(types)}; bring them to one type."
        ) from None
    if kind not in ("binary", "multiclass"):
        # scikit-learn's checks look for the first three words.
        raise ValueError(
            f"Unknown label type: {kind}; {name} must hold classes, for numbers use "
            "ManyBoostRegressor."
        )
    return labels


def _without_objects(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Return an array of numbers for an object array that holds only numbers."""
    if not all(isinstance(v, bool | int | float | np.number | np.bool_) for v in labels):
        return labels
    values = np.array(labels.tolist())
    if values.dtype.kind == "f" and (place := first_cell(values, np.isinf)) is not None:
        refuse_cell(name, "an infinite value (inf)", place)
    return values if values.dtype.kind in "biuf" else labels


def _missing(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where labels of any type are missing: NaN, None or pandas.NA."""
    if y.dtype == object:
        return np.asarray(np.vectorize(is_missing, otypes=[bool])(y))
    return np.isnan(y) if y.dtype.kind == "f" else np.zeros(y.shape, bool)


def _shown(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)


# ------------------------------------------------------------------ indicators


def dense_indicator(
    labels: NDArray[Any], name: str, names: Sequence[str] | None = None
) -> NDArray[np.uint8]:
    """Encode an indicator of several labels as 0, 1 and :data:`MISSING_LABEL`."""
    is_encoded = labels.dtype == np.uint8
    encoded = labels if is_encoded else np.empty(labels.shape, np.uint8)
    for rows in row_blocks(*labels.shape):
        missing = _missing(labels[rows])
        known = np.where(missing, 0, labels[rows]) if missing.any() else labels[rows]
        unlike = (known != 0) & (known != 1)
        if unlike.any():
            i, j = np.argwhere(unlike)[0] + [rows.start, 0]
            _refuse_label(labels[i, j], (i, j), name, names)
        if not is_encoded:
            encoded[rows] = known
            encoded[rows][missing] = MISSING_LABEL
    return np.ascontiguousarray(encoded)


def _sparse_indicator(y: Any, X: Table, name: str) -> NDArray[np.uint8]:
    """Encode a sparse indicator without a wide dense copy; a stored NaN is missing."""
    if len(y.shape) != 2:
        raise ValueError(f"{name} has {len(y.shape)} dimension(s); it must have one or two.")
    check_length(y.shape[0], X, name)
    refuse_no_outputs(y, name)
    y = in_canonical_order(y.tocsr())
    rows = np.repeat(np.arange(y.shape[0]), np.diff(y.indptr))
    missing = _missing(y.data)
    unlike = (y.data != 0) & (y.data != 1) & ~missing
    if unlike.any():
        k = int(np.argmax(unlike))
        _refuse_label(y.data[k], (rows[k], y.indices[k]), name)
    memory.check_labels(y.shape[0], y.shape[1], name)
    encoded = np.zeros(y.shape, np.uint8)
    encoded[rows, y.indices] = np.where(missing, MISSING_LABEL, y.data)
    return encoded


def _refuse_label(
    value: Any, place: tuple[int, int], name: str, names: Sequence[str] | None = None
) -> None:
    problem = f"{name} has the value {_shown(value)}"
    rest = (
        "; several outputs must be an indicator of 0 and 1, one column per label, or a list of "
        "sets of labels."
    )
    raise cell_error(name, problem, place, rest, names)


# ------------------------------------------------------------------ sets of labels

_ROW_TYPES = (list, tuple, set, frozenset)


def read_label_sets(y: Any, name: str = "y") -> list[frozenset[Any]] | None:
    """Return the labels of every row, or None if ``y`` does not hold sets of labels.

    A row is a set, or a list or tuple if the rows cannot be read as an indicator: because their
    lengths differ or because they hold text.
    """
    is_list = isinstance(y, list | tuple)
    if is_list:
        rows = list(y)
    elif (isinstance(y, np.ndarray) and y.ndim == 1) or is_series(y):
        if not str(y.dtype).lower().startswith(("object", "list", "array")):
            return None
        rows = y.tolist() if isinstance(y, np.ndarray) else y.to_list()
    else:
        return None
    if not any(isinstance(each, _ROW_TYPES) for each in rows):
        return None
    for i, each in enumerate(rows):
        if not isinstance(each, _ROW_TYPES):
            rest = (
                " but sets of labels in others; pass a set of labels for every row, an empty one "
                "if it has none."
            )
            raise RowError(name, f"{name} holds {each!r}", i, rest)
    if is_list and not any(isinstance(each, set | frozenset) for each in rows):
        text = {value for each in rows for value in each if isinstance(value, str)}
        if len({len(each) for each in rows}) == 1 and text <= {"0", "1"}:
            return None
    for i, each in enumerate(rows):
        for label in each:
            if not isinstance(label, str | int | float | np.generic) or is_missing(label):
                rest = "; labels must be text or numbers."
                raise RowError(name, f"{name} has the label {label!r}", i, rest)
    return [frozenset(each) for each in rows]


def labels_of(sets: Iterable[frozenset[Any]]) -> NDArray[Any]:
    """Return all labels, sorted."""
    labels = frozenset().union(*sets)
    if not labels:
        raise ValueError("y has no label in any row; a classifier needs at least one label.")
    try:
        ordered = sorted(labels)
    except TypeError:
        types = sorted({type(label).__name__ for label in labels})
        raise ValueError(
            f"y mixes labels of the types {' and '.join(types)}; bring them to one type."
        ) from None
    text = any(isinstance(label, str) for label in labels)
    return np.array(ordered, dtype=object if text else None)


def indicator(
    sets: list[frozenset[Any]], labels: NDArray[Any], name: str = "y"
) -> NDArray[np.uint8]:
    """Return 0/1 for every row and label (n_rows, n_labels); refuse unknown labels."""
    column = {label: j for j, label in enumerate(labels.tolist())}
    memory.check_labels(len(sets), len(labels), name)
    marks = np.zeros((len(sets), len(labels)), np.uint8)
    for i, each in enumerate(sets):
        for label in each:
            if label not in column:
                rest = ", which the model does not know; fit on rows of all labels."
                raise RowError(name, f"{name} has the label {label!r}", i, rest)
            marks[i, column[label]] = 1
    return marks
