"""Readers: from what users pass to fit to training and validation rows.

A reader learns from the training targets (names of outputs, classes, class weights) and holds the
validation targets to it. :class:`RealReader` and :class:`LabelReader` differ only in that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.arrays import F64
from manyboost.comm import ALONE, Comm
from manyboost.data.cells import TargetKind
from manyboost.data.features import Table
from manyboost.data.frames import column_names
from manyboost.data.labels import read_labels
from manyboost.data.rows import Rows, make_rows
from manyboost.data.targets import check_offset, check_output_names, check_targets
from manyboost.data.weights import class_weights, refuse_unobserved_outputs


@dataclass(eq=False)
class Reader(ABC):
    """Reads targets, weights and offsets into :class:`Rows`."""

    comm: Comm = ALONE  # the ranks that hold the other rows
    n_levels: int = 1  # outputs of the model for each output of y: the levels of quantiles
    names: Sequence[str] | None = None  # of the outputs
    kind: TargetKind = field(init=False)
    n_outputs: int = field(init=False)  # of the model
    table: F64 | None = field(default=None, init=False)  # weights of classes

    def training(
        self,
        X: Table,
        y: Any,
        sample_weight: Any = None,
        offset: Any = None,
        numbers: NDArray[np.uint64] | None = None,
    ) -> Rows:
        """Return training rows of checked features; ``numbers`` are those among all ranks."""
        Y = self._learn(y, X)
        rows = self._rows(X, Y, y, "", sample_weight, offset, numbers)
        self.table = self._class_weights(rows)
        rows = rows.with_class_weights(self.table)
        refuse_unobserved_outputs(rows.Y, "y", self.names, self.comm)
        return rows.repeated(self.n_levels)

    def validation(self, X: Table, y: Any, sample_weight: Any = None, offset: Any = None) -> Rows:
        """Return validation rows of checked features, with the outputs of the training rows."""
        Y = self._read(y, X, "Y_val")
        rows = self._rows(X, Y, y, "_val", sample_weight, offset)
        return rows.with_class_weights(self.table).repeated(self.n_levels)

    def _rows(
        self,
        X: Table,
        Y: NDArray[Any],
        y: Any,
        ending: str,
        weight: Any,
        offset: Any,
        numbers: NDArray[np.uint64] | None = None,
    ) -> Rows:
        """Return rows of encoded targets Y; ``ending`` is that of the names of the arguments."""
        check_output_names(y, self.names, "Y_val" if ending else "y")
        if offset is not None:
            softmax, n_given = self.kind is TargetKind.CLASSES, self.n_outputs // self.n_levels
            offset = check_offset(offset, X, n_given, softmax=softmax, name=f"offset{ending}")
            offset = np.repeat(offset, self.n_levels, axis=1) if self.n_levels > 1 else offset
        options: Any = {"kind": self.kind, "comm": self.comm, "numbers": numbers}
        return make_rows(X, Y, weight, f"sample_weight{ending}", offset, **options)

    @abstractmethod
    def _learn(self, y: Any, X: Table) -> NDArray[Any]:
        """Return encoded training targets; set ``kind``, ``n_outputs`` and ``names``."""

    @abstractmethod
    def _read(self, y: Any, X: Table, name: str) -> NDArray[Any]:
        """Return encoded targets of the same outputs."""

    def _class_weights(self, rows: Rows) -> F64 | None:
        """Return the weights of classes for the training rows, or None."""
        return None


@dataclass(eq=False)
class RealReader(Reader):
    """Reads numbers."""

    # check(Y, y, name) refuses targets that the loss cannot take: checked, and as they were passed.
    check: Callable[[F64, Any, str], None] | None = None
    continued: bool = False  # whether to continue a fitted model, with its names
    one_dimensional: bool = field(init=False)  # whether y is

    def _learn(self, y: Any, X: Table) -> F64:
        self.kind, Y = TargetKind.REAL, self._checked(y, X, "y")
        if not self.continued:
            self.names = column_names(y, "y")
        self.one_dimensional = Y.ndim == 1
        Y = as_columns(Y)
        self.n_outputs = Y.shape[1] * self.n_levels
        return Y

    def _read(self, y: Any, X: Table, name: str) -> F64:
        Y = as_columns(self._checked(y, X, name))
        n_given = self.n_outputs // self.n_levels
        if Y.shape[1] != n_given:
            raise ValueError(
                f"{name} has {Y.shape[1]} outputs but y has {n_given}; they must agree."
            )
        return Y

    def _checked(self, y: Any, X: Table, name: str) -> F64:
        Y = check_targets(y, X, name)
        if self.check is not None:
            self.check(Y, y, name)
        return Y


@dataclass(eq=False)
class LabelReader(Reader):
    """Reads classes, indicators and sets of labels."""

    softmax: bool = False  # whether to encode more than two classes as class numbers, not as 0/1
    class_weight: Any = None  # the parameter of the classifier
    classes: Any = None  # the Classes of a fitted model that is continued, then those of y
    target_name: str | None = None  # of the column of classes

    def _learn(self, y: Any, X: Table) -> NDArray[Any]:
        classes, labels = read_labels(y, X, classes=self.classes, comm=self.comm)
        self.classes, self.names, self.n_outputs = classes, classes.names, classes.n_outputs
        if classes.kind == "multilabel":
            self.kind = TargetKind.LABELS
        else:
            numbered = self.softmax and classes.kind == "multiclass"
            self.kind = TargetKind.CLASSES if numbered else TargetKind.ONE_VS_REST
            names = column_names(y, "y")
            self.target_name = None if names is None else names[0]
        return classes.encode(labels, softmax=self.softmax)

    def _read(self, y: Any, X: Table, name: str) -> NDArray[Any]:
        _, labels = read_labels(y, X, name, self.classes)
        return np.asarray(self.classes.encode(labels, softmax=self.softmax, name=name))

    def _class_weights(self, rows: Rows) -> F64 | None:
        return class_weights(self.class_weight, rows.Y, self.classes, self.comm)


def as_columns(Y: F64) -> F64:
    """Return targets or predictions with a column for each output."""
    return Y[:, None] if Y.ndim == 1 else Y
