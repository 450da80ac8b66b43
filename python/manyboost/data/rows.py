"""Rows in the form that training takes, and readers that make them of what users pass to fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state

from manyboost import _core
from manyboost.arrays import F64
from manyboost.comm import ALONE, I64, Comm
from manyboost.data.cells import TargetKind, class_numbers, missing_cells, refuse_unobserved_outputs
from manyboost.data.features import Table
from manyboost.data.frames import column_names, target_names
from manyboost.data.hierarchy import Hierarchy
from manyboost.data.label_weights import (
    check_stored_weight,
    refuse_weightless_labels,
    weigh_labels,
)
from manyboost.data.labels import DENSE, ClassColumns, Sparsity, read_labels
from manyboost.data.sparse_labels import SparseLabels
from manyboost.data.stored import StoredTable
from manyboost.data.targets import (
    check_offset,
    check_output_names,
    check_output_order,
    check_targets,
)
from manyboost.data.weights import (
    ClassTable,
    Weights,
    check_weight,
    class_weights,
    normalise,
    weigh_classes,
    without_weightless,
)


@dataclass(frozen=True)
class Rows:
    """Rows to train on or to score."""

    X: Table
    Y: Any  # encoded targets, (n_rows, n_outputs) or (n_rows,); SparseLabels where they stay such
    weights: Weights
    order: NDArray[np.uint64] | None  # numbers among the rows of all ranks; None: 0, 1, 2, …
    offset: F64 | None = None  # of the raw predictions, (n_rows, n_outputs)
    kind: TargetKind = TargetKind.REAL  # what Y holds
    comm: Comm = ALONE  # the ranks that hold the other rows
    bins: _core.Features | None = None  # of X, if cuts are known before training
    widths: tuple[int, ...] | None = None  # outputs of each of several columns of classes

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def numbers(self) -> NDArray[np.uint64]:
        """The numbers of the rows, among the rows of all ranks."""
        return np.arange(len(self), dtype=np.uint64) if self.order is None else self.order

    def count(self) -> int:
        """Return the number of rows on all ranks."""
        return self.comm.total(len(self))

    def pool(self, pool: _core.Pool) -> _core.Pool:
        """Return the same threads for these rows: sums over them are those of all ranks."""
        return pool if self.comm.size == 1 else pool.among(self.comm, self.count())

    def take(self, chosen: NDArray[Any]) -> Rows:
        """Return a subset of the rows."""
        stored = isinstance(self.X, StoredTable) and not isinstance(self.Y, SparseLabels)
        return replace(
            self,
            X=self.X[chosen],
            Y=self.X.take_targets(self.Y, chosen) if stored else self.Y[chosen],
            weights=self.weights.take(chosen),
            order=self.numbers[chosen],
            offset=None if self.offset is None else self.offset[chosen],
            bins=None,
        )

    def repeated(self, times: int) -> Rows:
        """Return the rows with each output ``times`` times."""
        if times == 1:
            return self
        Y, weights = np.repeat(self.Y, times, axis=1), self.weights.repeated(times)
        offset = None if self.offset is None else np.repeat(self.offset, times, axis=1)
        return replace(self, Y=Y, weights=weights, offset=offset)

    def weighted(self, weight: NDArray[np.floating] | None, name: str) -> Rows:
        """Return the rows with other weights; rows without an observed cell are dropped."""
        Y, weights, observed = normalise(self.Y, weight, name, self.comm)
        rows = replace(self, Y=Y, weights=weights)
        return rows if observed.all() else rows.take(np.flatnonzero(observed))

    def with_class_weights(self, table: ClassTable | None) -> Rows:
        """Return the rows with weights multiplied by those of their classes."""
        if table is None:
            return self
        if isinstance(self.Y, SparseLabels):
            assert not isinstance(table, list)
            return replace(self, weights=weigh_labels(self.weights, self.Y, table))
        rows = self.weighted(weigh_classes(self.weights, self.Y, table), "class_weight")
        if not rows.count():
            problem = "class_weight is zero for all classes of these rows"
            raise ValueError(f"{problem}; give one of them a positive weight.")
        return rows


def make_rows(
    X: Table,
    Y: NDArray[Any],
    sample_weight: Any,
    name: str,
    offset: F64 | None = None,
    kind: TargetKind = TargetKind.REAL,
    comm: Comm = ALONE,
    numbers: NDArray[np.uint64] | None = None,
    widths: tuple[int, ...] | None = None,
) -> Rows:
    """Check weights, called ``name``, and put rows together; drop those without any weight."""
    whole_rows = kind.one_class_per_row or isinstance(Y, SparseLabels)
    shape = Y.shape[:1] if whole_rows else Y.shape
    if sparse.issparse(sample_weight) and isinstance(Y, SparseLabels):
        weight = check_stored_weight(sample_weight, Y.shape, name)
    elif widths is None:
        weight = check_weight(sample_weight, shape, name, comm)
    else:
        weight = check_weight(sample_weight, (len(Y), len(widths)), name, comm)
        if weight is not None and weight.ndim == 2:
            weight = np.repeat(weight, widths, axis=1)
    n_rows = X.shape[0]
    offset = None if offset is None else np.ascontiguousarray(offset)
    rows = Rows(X, Y, Weights(), numbers, offset, kind, comm, widths=widths)
    rows = rows.weighted(weight, name)
    if not rows.count():
        target = "Y_val" if name == "sample_weight_val" else "y"
        problem = f"{target} has no observed value of positive weight in any of its {n_rows} rows"
        raise ValueError(f"{problem}; at least one cell must hold a value.")
    return rows


def count_apart(rows: Rows, fraction: int | float) -> int:
    """Return how many rows are to be set apart; refuse all of them."""
    n, whole = rows.count(), isinstance(fraction, int | np.integer)
    count = int(fraction) if whole else max(1, round(fraction * n))
    if count >= n:
        # (scikit-learn's checks look for "one sample".)
        rows_ = f"{n} rows" if n > 1 else "one sample"
        problem = f"validation_fraction={fraction!r} leaves none of the {rows_} for training"
        remedy = "set fewer rows apart, pass X_val and Y_val, or use early_stopping=False."
        raise ValueError(f"{problem}; {remedy}")
    return count


def split_validation(rows: Rows, fraction: int | float | None, seed: int) -> tuple[Rows, Rows]:
    """Return training and validation rows; these are drawn by number, class by class if any.

    Without a fraction both are all rows.
    """
    if fraction is None:
        return rows, rows
    comm, count = rows.comm, count_apart(rows, fraction)
    pool = rows.pool(_core.Pool(1))
    groups = [np.arange(len(rows))]
    if rows.kind.one_class_per_row:
        classes = class_numbers(rows.Y)
        groups = [np.flatnonzero(classes == c) for c in comm.unique(classes)]
    chosen = np.zeros(len(rows), dtype=bool)
    sizes = comm.totals(np.array(list(map(len, groups))))
    for group, share in zip(groups, _shares(count, sizes, seed).tolist(), strict=True):
        if share > 0:
            picked = _core.validation_rows(pool, rows.numbers[group], share, seed)
            chosen[group[picked]] = True
    if not comm.any(chosen.any()):
        chosen[_core.validation_rows(pool, rows.numbers, 1, seed)] = True
    if rows.weights.partial:
        # Every output keeps a cell to train on, in the first row that has one.
        observed = ~missing_cells(rows.Y)
        left = comm.largest(observed[~chosen].any(axis=0)) > 0
        none = float(2**53)
        numbers = np.where(observed[:, ~left], rows.numbers.astype(np.float64)[:, None], none)
        first = -comm.largest(-numbers.min(axis=0, initial=none))
        chosen &= ~np.isin(rows.numbers, np.asarray(first).astype(np.uint64))
        if not comm.any(chosen.any()):
            what = "Each row that could be set apart for validation holds the only observed value"
            remedy = "pass X_val and Y_val, or use early_stopping=False."
            raise ValueError(f"{what} of some output; {remedy}")
    return rows.take(np.flatnonzero(~chosen)), rows.take(np.flatnonzero(chosen))


def _shares(count: int, sizes: I64, seed: int) -> I64:
    """Return how many of ``count`` rows come from each class; each keeps a row to train on."""
    shares, rest = np.divmod(count * sizes, sizes.sum())
    drawn = check_random_state(seed).permutation(len(sizes))
    # What is left over goes to the largest rests. Where rounding (of halves to even numbers) gives
    # the right number of rows, this is rounding.
    order = np.lexsort((drawn, shares % 2 == 0, -rest))
    while (left := count - int(shares.sum())) > 0 and (shares < sizes - 1).any():
        shares[order[(shares < sizes - 1)[order]][:left]] += 1
    return np.asarray(shares)


@dataclass(eq=False)
class Reader(ABC):
    """Reads targets, weights and offsets into :class:`Rows`.

    It learns from the training targets (names of outputs, classes, class weights) and holds the
    validation targets to it.
    """

    comm: Comm = ALONE  # the ranks that hold the other rows
    n_levels: int = 1  # outputs of the model for each output of y: the levels of quantiles
    names: Sequence[str] | None = None  # of the outputs
    class_weight: Any = None  # the parameter of a classifier
    classes: Any = None  # Classes: those of a fitted model that is continued, then those of y
    kind: TargetKind = field(init=False)
    n_outputs: int = field(init=False)  # of the model
    table: ClassTable | None = field(default=None, init=False)  # weights of classes
    widths: tuple[int, ...] | None = field(default=None, init=False)  # see :class:`Rows`

    def training(
        self, X: Table, y: Any, sample_weight: Any = None, offset: Any = None, numbers: Any = None
    ) -> Rows:
        """Return training rows of checked features; ``numbers`` are those among all ranks."""
        rows = self._rows(X, self._learn(y, X), y, "", sample_weight, offset, numbers)
        self.table = class_weights(self.class_weight, rows.Y, self.classes, self.comm)
        rows = rows.with_class_weights(self.table)
        # One output of each column stands for all.
        first = slice(None) if self.widths is None else np.cumsum([0, *self.widths[:-1]])
        if isinstance(rows.Y, SparseLabels):
            refuse_weightless_labels(rows.weights, len(rows), self.names)
        else:
            refuse_unobserved_outputs(rows.Y[..., first], "y", self.names, self.comm)
        return rows.repeated(self.n_levels)

    def validation(self, X: Table, y: Any, sample_weight: Any = None, offset: Any = None) -> Rows:
        """Return validation rows of checked features, with the outputs of the training rows."""
        rows = self._rows(X, self._read(y, X, "Y_val"), y, "_val", sample_weight, offset)
        return rows.with_class_weights(self.table).repeated(self.n_levels)

    def _rows(
        self, X: Table, Y: Any, y: Any, ending: str, weight: Any, offset: Any, numbers: Any = None
    ) -> Rows:
        """Return rows of encoded targets Y; ``ending`` is that of the names of the arguments."""
        check_output_names(y, self.names, "Y_val" if ending else "y")
        name = f"sample_weight{ending}"
        check_output_order(weight, self.names, name)
        if offset is not None:
            # (Of several columns of classes, each has its own; all of them are to be given.)
            softmax = self.kind in (TargetKind.CLASSES, TargetKind.COLUMNS)
            n_given = self.n_outputs // self.n_levels
            shape = X, n_given, self.raw_names
            offset = check_offset(offset, *shape, softmax=softmax, name=f"offset{ending}")
        known = self.kind, self.comm, numbers, self.widths
        return make_rows(X, Y, weight, name, offset, *known)

    @property
    def output_names(self) -> Sequence[str] | None:
        """Names of the outputs of the model, if y had them."""
        return self.names

    @property
    def raw_names(self) -> Sequence[str] | None:
        """Names of the raw predictions for y: of its outputs, or of classes."""
        return self.names

    @abstractmethod
    def _learn(self, y: Any, X: Table) -> NDArray[Any]:
        """Return encoded training targets; set ``kind``, ``n_outputs`` and ``names``."""

    @abstractmethod
    def _read(self, y: Any, X: Table, name: str) -> NDArray[Any]:
        """Return encoded targets of the same outputs."""


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
            self.names = target_names(y)
        self.one_dimensional = Y.ndim == 1
        self.n_outputs = as_columns(Y).shape[1] * self.n_levels
        return as_columns(Y)

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

    sparsity: Sparsity = DENSE  # when labels stay sparse
    softmax: bool = False  # whether to encode more than two classes as class numbers, not as 0/1
    target_name: str | None = None  # of the column of classes
    label_hierarchy: Any = None  # the parameter of a classifier
    hierarchy: Hierarchy | None = field(default=None, init=False)

    def _learn(self, y: Any, X: Table) -> NDArray[Any]:
        parts = self.classes, self.comm, self.sparsity
        classes, labels = read_labels(y, X, "y", *parts)
        # Other labels of the same fit take the same form.
        self.sparsity = Sparsity(0) if isinstance(labels, SparseLabels) else DENSE
        self.classes, self.names, self.n_outputs = classes, classes.names, classes.n_outputs
        if isinstance(classes, ClassColumns):
            self.kind, self.widths = TargetKind.COLUMNS, classes.widths
        elif classes.kind == "multilabel":
            self.kind = TargetKind.LABELS
        else:
            numbered = self.softmax and classes.kind == "multiclass"
            self.kind = TargetKind.CLASSES if numbered else TargetKind.ONE_VS_REST
            names = column_names(y, "y")
            self.target_name = None if names is None else names[0]
        if self.label_hierarchy:  # without pairs there is nothing to agree with
            self.hierarchy = Hierarchy.of(self.label_hierarchy, classes)
        return classes.encode(labels, softmax=self.softmax)

    @property
    def output_names(self) -> Sequence[str] | None:
        """Names of the labels; those of columns of classes are made with the classes."""
        return None if self.widths is not None else self.names

    @property
    def raw_names(self) -> Sequence[str] | None:
        """Names of labels or classes."""
        names: Sequence[str] | None = self.classes.output_names
        return names

    def _read(self, y: Any, X: Table, name: str) -> NDArray[Any]:
        # Before the classes of one column are looked for in another.
        check_output_names(y, self.names, name)
        labels = read_labels(y, X, name, self.classes, sparsity=self.sparsity)[1]
        encoded: NDArray[Any] = self.classes.encode(labels, softmax=self.softmax, name=name)
        return encoded

    def _rows(
        self, X: Table, Y: Any, y: Any, ending: str, weight: Any, offset: Any, numbers: Any = None
    ) -> Rows:
        """Return rows of encoded labels, to which those above them are added."""
        if self.hierarchy is not None:
            checked = check_weight(weight, Y.shape, f"sample_weight{ending}", self.comm)
            # What a cell of weight zero holds says nothing about the labels above.
            known, name = without_weightless(Y, checked), "Y_val" if ending else "y"
            Y = self.hierarchy.close_targets(known, self.names, name)
        return super()._rows(X, Y, y, ending, weight, offset, numbers)


def as_columns(Y: F64) -> F64:
    """Return targets or predictions with a column for each output."""
    return Y[:, None] if Y.ndim == 1 else Y
