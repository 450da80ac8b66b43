"""X and Y in: checked, named, and in the form that training takes.

Every refusal is one sentence: what was wrong, where, and what to do.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, validate_data

from manyboost import _core

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


def resolve_threads(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``."""
    available = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    if n_jobs is None:
        wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        return max(1, int(wanted)) if wanted.isdigit() else available
    return n_jobs if n_jobs > 0 else max(1, available + 1 + n_jobs)


def check_X(estimator: Any, X: Any, *, reset: bool) -> NDArray[Any]:
    """Return features as a float array without infinities; remember names if ``reset``."""
    _refuse_text_columns(X)
    return np.asarray(
        validate_data(
            estimator,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
        )
    )


def to_single(X: NDArray[Any], names: NDArray[Any] | None = None) -> F32:
    """Return features as C-contiguous float32; refuse finite values that would become infinite."""
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(X, dtype=np.float32)
    if X.dtype != np.float32 and np.isinf(single).any():
        j = int(np.argmax(np.isinf(single).any(axis=0)))
        name = j if names is None else repr(str(names[j]))
        raise ValueError(
            f"Column {name} of X has values beyond the range of single precision (3e38); divide "
            "it by a constant or take its logarithm."
        )
    return single


def _refuse_text_columns(X: Any) -> None:
    """Name the first column of a data frame that is not numeric."""
    columns = getattr(X, "columns", None)
    if columns is None or not hasattr(X, "__getitem__"):
        return
    for name in columns:
        column = X[name]
        dtype = str(getattr(column, "dtype", "")).lower()
        if any(dtype.startswith(word) for word in ("cat", "enum", "str", "obj", "date", "time")):
            is_numeric_object = dtype == "object" and all(
                isinstance(value, int | float | np.number) for value in column
            )
            if not is_numeric_object:
                raise ValueError(
                    f"Column {str(name)!r} of X holds {column.dtype} values, not numbers; encode "
                    "it (OrdinalEncoder, OneHotEncoder) or drop it."
                )


@dataclass
class Rows:
    """Rows to train on or to score: features, encoded targets, weights, and their numbers."""

    X: NDArray[Any]
    Y: NDArray[Any]
    weight: F32 | None
    numbers: NDArray[np.uint64]

    def take(self, chosen: NDArray[Any]) -> Rows:
        """Return a subset of the rows."""
        weight = None if self.weight is None else self.weight[chosen]
        return Rows(self.X[chosen], self.Y[chosen], weight, self.numbers[chosen])


def make_rows(X: NDArray[Any], Y: NDArray[Any], sample_weight: Any, name: str) -> Rows:
    """Put rows together; those of weight zero are left out."""
    numbers = np.arange(len(X), dtype=np.uint64)
    if sample_weight is None:
        return Rows(X, Y, None, numbers)
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise ValueError(
            f"{name} is negative in row {row} ({weight[row]:g}); weights must be at least zero."
        )
    positive = weight > 0
    if not positive.any():
        raise ValueError(f"All of {name} is zero; at least one row needs a positive weight.")
    single = weight.astype(np.float32)
    if not (np.isfinite(single).all() and (single[positive] > 0).all()):
        raise ValueError(
            f"{name} spans {weight[positive].min():g} to {weight.max():g}, beyond the range of "
            "single precision; divide it by a constant."
        )
    rows = Rows(X, Y, single, numbers)
    return rows if positive.all() else rows.take(np.flatnonzero(positive))


def check_targets(Y: Any, X: NDArray[Any], name: str = "y") -> NDArray[Any]:
    """Return regression targets as a float64 array of one or two dimensions."""
    if Y is None:
        raise ValueError(
            f"This estimator requires {name} to be passed, but the target {name} is None."
        )
    Y = check_array(
        Y, ensure_2d=False, dtype=np.float64, order="C", ensure_all_finite=False, input_name=name
    )
    if Y.ndim > 2:
        raise ValueError(f"{name} has {Y.ndim} dimensions; it must have one or two.")
    if len(Y) != len(X):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {len(X)} rows "
            f"and {name} has {len(Y)}; they must have the same number."
        )
    finite = np.isfinite(Y)
    if not finite.all():
        place = np.argwhere(~finite)[0]
        where = f"row {place[0]}" + (f", output {place[1]}" if Y.ndim == 2 else "")
        what = "a missing value (NaN)" if np.isnan(Y[tuple(place)]) else "an infinite value (inf)"
        raise ValueError(
            f"{name} has {what} in {where}; drop such rows or fill them in before fit."
        )
    return np.asarray(Y)


@dataclass
class Classes:
    """How labels become targets and scores become labels.

    ``kind`` is "binary" (one output), "multiclass" (one output per class) or "multilabel".
    ``values`` are the sorted classes, or the outputs' numbers for "multilabel".
    """

    kind: str
    values: NDArray[Any]

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the model."""
        return 1 if self.kind == "binary" else len(self.values)

    @classmethod
    def of(cls, y: NDArray[Any]) -> Classes:
        """Find the classes of checked labels."""
        if y.ndim == 2:
            return cls("multilabel", np.arange(y.shape[1]))
        values = np.unique(y)
        if len(values) < 2:
            raise ValueError(
                f"y has only one class ({values[0]!r}); a classifier needs at least two classes."
            )
        return cls("binary" if len(values) == 2 else "multiclass", values)

    def encode(self, y: NDArray[Any], *, softmax: bool, name: str = "y") -> NDArray[Any]:
        """0/1 labels (n, n_outputs) as uint8, or class numbers (n,) as uint32 for softmax."""
        if self.kind == "multilabel":
            if y.ndim != 2 or y.shape[1] != self.n_outputs:
                raise ValueError(
                    f"{name} has shape {y.shape}; the model was given {self.n_outputs} labels."
                )
            return np.ascontiguousarray(y, dtype=np.uint8)
        if y.ndim != 1:
            raise ValueError(f"{name} has shape {y.shape}; it must have one class per row.")
        numbers = np.searchsorted(self.values, y)
        known = np.minimum(numbers, len(self.values) - 1)
        if not np.array_equal(self.values[known], y):
            row = int(np.argmax(self.values[known] != y))
            raise ValueError(
                f"{name} has the class {y[row]!r} in row {row}, which the model does not know; "
                "fit on rows of all classes."
            )
        if self.kind == "binary":
            return known.astype(np.uint8)[:, None]
        if softmax:
            return known.astype(np.uint32)
        return (known[:, None] == np.arange(len(self.values))).astype(np.uint8)


def check_labels(y: Any, X: NDArray[Any], name: str = "y") -> NDArray[Any]:
    """Return labels: one class per row (n,), or a 0/1 indicator (n, d)."""
    if y is None:
        raise ValueError(
            f"This estimator requires {name} to be passed, but the target {name} is None."
        )
    y = check_array(y, ensure_2d=False, dtype=None, ensure_all_finite=False, input_name=name)
    if len(y) != len(X):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {len(X)} rows "
            f"and {name} has {len(y)}; they must have the same number."
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        place = np.argwhere(~np.isfinite(y))[0]
        where = f"row {place[0]}" + (f", output {place[1]}" if y.ndim == 2 else "")
        what = "a missing value (NaN)" if np.isnan(y[tuple(place)]) else "an infinite value (inf)"
        raise ValueError(
            f"{name} has {what} in {where}; drop such rows or fill them in before fit."
        )
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it is read as one class "
            "per row. Pass y.ravel() to silence this warning.",
            DataConversionWarning,
            stacklevel=4,
        )
        y = y[:, 0]
    if y.ndim == 2:
        # type_of_target calls an indicator without a single 1 (or 0) something else.
        if not np.isin(y, (0, 1)).all():
            place = np.argwhere(~np.isin(y, (0, 1)))[0]
            raise ValueError(
                f"{name} has the value {y[tuple(place)]!r} in row {place[0]}, output {place[1]}; "
                "several outputs must be an indicator of 0 and 1, one column per label."
            )
        return np.asarray(y)
    check_classification_targets(y)
    if type_of_target(y, input_name=name) not in ("binary", "multiclass"):
        raise ValueError(f"{name} is {type_of_target(y)}; classes must be discrete values.")
    return np.asarray(y)


def split_validation(
    rows: Rows, fraction: int | float, seed: int, *, by_class: NDArray[Any] | None
) -> tuple[Rows, Rows]:
    """Set rows apart for validation, chosen by their numbers, class by class if given."""
    n = len(rows.X)
    whole = isinstance(fraction, int | np.integer)
    count = int(fraction) if whole else max(1, round(fraction * n))
    if count >= n:
        raise ValueError(
            f"validation_fraction={fraction!r} leaves none of the {n} rows for training; set "
            "fewer rows apart, pass X_val and Y_val, or use early_stopping=False."
        )
    groups = [np.arange(n)]
    if by_class is not None:
        groups = [np.flatnonzero(by_class == c) for c in np.unique(by_class)]
    chosen = np.zeros(n, dtype=bool)
    for group in groups:
        # Every class keeps a row to train on.
        share = min(round(count * len(group) / n), len(group) - 1)
        if share > 0:
            picked = _core.validation_rows(rows.numbers[group], share, seed)
            chosen[group[picked]] = True
    if not chosen.any():
        chosen[_core.validation_rows(rows.numbers, 1, seed)] = True
    return rows.take(np.flatnonzero(~chosen)), rows.take(np.flatnonzero(chosen))
