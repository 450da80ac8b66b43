"""Labels in: classes, indicators and sets of labels."""

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
from manyboost.data.cells import MISSING_LABEL, cell_error, first_cell, missing_cells, row_blocks
from manyboost.data.features import Table, in_order
from manyboost.data.frames import column_names, is_missing, is_series
from manyboost.data.stored import CheckedTargets
from manyboost.data.targets import check_length, check_outputs, refuse_cell
from manyboost.errors import RowError


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
            raise RowError(
                name,
                f"{name} has the class {_plain(y[row])}",
                row,
                ", which the model does not know; fit on rows of all classes.",
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
    return classes, check_outputs(indicator(sets, classes.values, name), X, name, None)


def check_labels(y: Any, X: Table, name: str = "y") -> NDArray[Any]:
    """Return labels: one class per row (n,), or an indicator (n, d) of 0, 1 and missing labels."""
    if isinstance(y, CheckedTargets):
        check_length(len(y.array), X, name)
        return y.array
    if sparse.issparse(y) and len(y.shape) == 2 and y.shape[1] == 1:
        y = y.toarray()  # one class per row
    is_sparse = sparse.issparse(y)
    labels = _sparse_labels(y, X, name) if is_sparse else check_outputs(y, X, name, None)
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
        refuse_cell(name, "a missing value (NaN)", np.argwhere(missing)[0])
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
        refuse_cell(name, "an infinite value (inf)", place)
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
            problem = f"{name} has the value {_plain(labels[tuple(place)])}"
            raise cell_error(name, problem, place, f"; {_SEVERAL}", names)
        if not is_encoded:
            encoded[rows] = known
            encoded[rows][missing] = MISSING_LABEL
    return np.ascontiguousarray(encoded)


def _sparse_labels(y: Any, X: Table, name: str) -> NDArray[np.uint8]:
    """Encode a sparse indicator without making a wide dense copy; a stored NaN is missing."""
    if len(y.shape) != 2:
        raise ValueError(f"{name} has {len(y.shape)} dimension(s); it must have one or two.")
    check_length(y.shape[0], X, name)
    if y.shape[1] == 0:
        raise ValueError(f"{name} has no outputs (0 columns); it needs at least one.")
    y = in_order(y.tocsr())
    rows = np.repeat(np.arange(y.shape[0]), np.diff(y.indptr))
    missing = np.isnan(y.data) if y.dtype.kind == "f" else np.zeros(y.data.shape, bool)
    unlike = (y.data != 0) & (y.data != 1) & ~missing
    if unlike.any():
        k = int(np.argmax(unlike))
        place = np.array([rows[k], y.indices[k]])
        problem = f"{name} has the value {_plain(y.data[k])}"
        raise cell_error(name, problem, place, f"; {_SEVERAL}")
    memory.check_labels(y.shape[0], y.shape[1], name)
    encoded = np.zeros(y.shape, np.uint8)
    encoded[rows, y.indices] = np.where(missing, MISSING_LABEL, y.data)
    return encoded


def _missing(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where values of any type are missing: NaN, None or pandas.NA."""
    if y.dtype == object:
        return np.asarray(np.vectorize(is_missing, otypes=[bool])(y))
    return missing_cells(y) if y.dtype.kind == "f" else np.zeros(y.shape, bool)


def _plain(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)


_ROWS = (list, tuple, set, frozenset)


def read_label_sets(y: Any, name: str = "y") -> list[frozenset[Any]] | None:
    """Return the labels of every row, or None if ``y`` is something else."""
    is_list = isinstance(y, list | tuple)
    if is_list:
        rows = list(y)
    elif (isinstance(y, np.ndarray) and y.ndim == 1) or is_series(y):
        if not str(y.dtype).lower().startswith(("object", "list", "array")):
            return None
        rows = y.tolist() if isinstance(y, np.ndarray) else y.to_list()
    else:
        return None
    if not any(isinstance(each, _ROWS) for each in rows):
        return None
    for i, each in enumerate(rows):
        if not isinstance(each, _ROWS):
            raise RowError(
                name,
                f"{name} holds {each!r}",
                i,
                " but sets of labels in others; pass a set of labels for every row, an empty one "
                "where there is none.",
            )
    if is_list and not any(isinstance(each, set | frozenset) for each in rows):
        text = {value for each in rows for value in each if isinstance(value, str)}
        if len({len(each) for each in rows}) == 1 and text <= {"0", "1"}:
            return None
    for i, each in enumerate(rows):
        for label in each:
            if not isinstance(label, str | int | float | np.generic) or is_missing(label):
                problem = f"{name} has the label {label!r}"
                raise RowError(name, problem, i, "; labels must be text or numbers.")
    return [frozenset(each) for each in rows]


def labels_of(sets: Iterable[frozenset[Any]]) -> NDArray[Any]:
    """All labels, sorted."""
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
    """Return 0/1 for every row and label (n_rows, n_labels); labels must be known."""
    column = {label: j for j, label in enumerate(labels.tolist())}
    memory.check_labels(len(sets), len(labels), name)
    marks = np.zeros((len(sets), len(labels)), np.uint8)
    for i, each in enumerate(sets):
        for label in each:
            if label not in column:
                raise RowError(
                    name,
                    f"{name} has the label {label!r}",
                    i,
                    ", which the model does not know; fit on rows of all labels.",
                )
            marks[i, column[label]] = 1
    return marks
