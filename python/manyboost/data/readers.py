"""Readers: from what users pass to fit to training and validation rows.

A reader learns from the training targets (names of outputs, classes, class weights) and holds the
validation targets to it. :class:`RealReader` and :class:`LabelReader` differ only in that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.comm import ALONE, Comm
from manyboost.data.cells import TargetKind
from manyboost.data.features import Table
from manyboost.data.frames import column_names
from manyboost.data.labels import Classes, read_labels
from manyboost.data.rows import Rows, make_rows
from manyboost.data.targets import check_offset, check_output_names, check_targets
from manyboost.data.weights import class_weights, refuse_unobserved_outputs

F64 = NDArray[np.float64]


class Reader(ABC):
    """Reads targets, weights and offsets into :class:`Rows`.

    Attributes
    ----------
    kind : TargetKind
        What encoded targets hold.
    n_outputs : int
        Number of outputs of the model.
    names : sequence of str or None
        Names of the outputs.
    """

    kind: TargetKind
    n_outputs: int
    names: Sequence[str] | None = None
    n_levels = 1
    table: F64 | None = None

    def __init__(self, comm: Comm = ALONE) -> None:
        self.comm = comm

    def training(
        self,
        X: Table,
        y: Any,
        sample_weight: Any = None,
        offset: Any = None,
        numbers: NDArray[np.uint64] | None = None,
    ) -> Rows:
        """Return training rows of checked features.

        ``numbers`` are those of the rows among the rows of all ranks.
        """
        Y = self._learn(y, X)
        check_output_names(y, self.names, "y")
        offset = self.read_offset(offset, X)
        options: Any = {"kind": self.kind, "comm": self.comm, "numbers": numbers}
        rows = make_rows(X, Y, sample_weight, "sample_weight", offset, **options)
        self.table = self._class_weights(rows)
        rows = rows.with_class_weights(self.table)
        refuse_unobserved_outputs(rows.Y, "y", self.names, self.comm)
        return rows.repeated(self.n_levels)

    def validation(self, X: Table, y: Any, sample_weight: Any = None, offset: Any = None) -> Rows:
        """Return validation rows of checked features, with the outputs of the training rows."""
        Y = self._read(y, X, "Y_val")
        check_output_names(y, self.names, "Y_val")
        offset = self.read_offset(offset, X, "offset_val")
        options: Any = {"kind": self.kind, "comm": self.comm}
        rows = make_rows(X, Y, sample_weight, "sample_weight_val", offset, **options)
        return rows.with_class_weights(self.table).repeated(self.n_levels)

    def read_offset(self, offset: Any, X: Table, name: str = "offset") -> F64 | None:
        """Return an offset as an array (n_rows, n_outputs), or None."""
        if offset is None:
            return None
        softmax = self.kind is TargetKind.CLASSES
        array = check_offset(offset, X, self.n_outputs // self.n_levels, softmax=softmax, name=name)
        return np.repeat(array, self.n_levels, axis=1) if self.n_levels > 1 else array

    @abstractmethod
    def _learn(self, y: Any, X: Table) -> NDArray[Any]:
        """Return encoded training targets; set ``kind``, ``n_outputs`` and ``names``."""

    @abstractmethod
    def _read(self, y: Any, X: Table, name: str) -> NDArray[Any]:
        """Return encoded targets of the same outputs."""

    def _class_weights(self, rows: Rows) -> F64 | None:
        """Return the weights of classes for the training rows, or None."""
        return None


class RealReader(Reader):
    """Reads numbers.

    Parameters
    ----------
    comm : Comm
        The ranks that hold the other rows.
    n_levels : int
        Outputs of the model for each output of y: the levels of a list of quantiles.
    check : callable, optional
        Refuses targets that the loss cannot take: ``check(Y, y, name)`` with the checked
        targets, the same as they were passed, and what the user calls them.
    fitted_names : sequence of str or None
        Names of the outputs of a fitted model, with ``continued``.
    continued : bool
        Whether a fitted model is continued: then names are not learned from y.

    Attributes
    ----------
    one_dimensional : bool
        Whether y has one dimension.
    """

    kind = TargetKind.REAL
    one_dimensional: bool

    def __init__(
        self,
        comm: Comm = ALONE,
        *,
        n_levels: int = 1,
        check: Callable[[F64, Any, str], None] | None = None,
        fitted_names: Sequence[str] | None = None,
        continued: bool = False,
    ) -> None:
        super().__init__(comm)
        self.n_levels, self.names = n_levels, fitted_names
        self._check, self._continued = check, continued

    def _learn(self, y: Any, X: Table) -> F64:
        Y = self._checked(y, X, "y")
        if not self._continued:
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
        if self._check is not None:
            self._check(Y, y, name)
        return Y


class LabelReader(Reader):
    """Reads classes, indicators and sets of labels.

    Parameters
    ----------
    comm : Comm
        The ranks that hold the other rows.
    softmax : bool
        Whether more than two classes are encoded as class numbers, not as 0/1.
    class_weight : dict, list of dict, "balanced" or None
        The parameter of the classifier.
    classes : Classes or None
        The classes of a fitted model that is continued; None: those of y.

    Attributes
    ----------
    classes : Classes
        Classes or labels.
    table : ndarray or None
        Weights of the classes, (n_classes,) or (n_labels, 2).
    target_name : str or None
        Name of the column of classes.
    """

    classes: Classes
    target_name: str | None = None

    def __init__(
        self,
        comm: Comm = ALONE,
        *,
        softmax: bool,
        class_weight: Any = None,
        classes: Classes | None = None,
    ) -> None:
        super().__init__(comm)
        self._softmax, self._class_weight, self._known = softmax, class_weight, classes

    def _learn(self, y: Any, X: Table) -> NDArray[Any]:
        classes, labels = read_labels(y, X, classes=self._known, comm=self.comm)
        self.classes, self.names, self.n_outputs = classes, classes.names, classes.n_outputs
        if classes.kind == "multilabel":
            self.kind = TargetKind.LABELS
        else:
            numbered = self._softmax and classes.kind == "multiclass"
            self.kind = TargetKind.CLASSES if numbered else TargetKind.ONE_VS_REST
            names = column_names(y, "y")
            self.target_name = None if names is None else names[0]
        return classes.encode(labels, softmax=self._softmax)

    def _read(self, y: Any, X: Table, name: str) -> NDArray[Any]:
        _, labels = read_labels(y, X, name, self.classes)
        return self.classes.encode(labels, softmax=self._softmax, name=name)

    def _class_weights(self, rows: Rows) -> F64 | None:
        return class_weights(self._class_weight, rows.Y, self.classes, self.comm)


def as_columns(Y: F64) -> F64:
    """Return targets or predictions with a column for each output."""
    return Y[:, None] if Y.ndim == 1 else Y
