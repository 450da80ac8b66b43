"""Rows: features, targets, weights and offsets in the form that training takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost import _core
from manyboost.arrays import F64
from manyboost.comm import ALONE, Comm
from manyboost.data.cells import TargetKind, class_numbers, missing_cells
from manyboost.data.features import Table
from manyboost.data.stored import StoredTable
from manyboost.data.weights import Weights, check_weight, normalise, weigh_classes


@dataclass(frozen=True)
class Rows:
    """Rows to train on or to score."""

    X: Table
    Y: NDArray[Any]  # encoded targets, (n_rows, n_outputs) or (n_rows,)
    weights: Weights
    numbers: NDArray[np.uint64]  # of the rows, among the rows of all ranks
    offset: F64 | None = None  # of the raw predictions, (n_rows, n_outputs)
    kind: TargetKind = TargetKind.REAL  # what Y holds
    comm: Comm = ALONE  # the ranks that hold the other rows

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
        stored = isinstance(self.X, StoredTable)
        return replace(
            self,
            X=self.X[chosen],
            Y=self.X.take_targets(self.Y, chosen) if stored else self.Y[chosen],
            weights=self.weights.take(chosen),
            numbers=self.numbers[chosen],
            offset=None if self.offset is None else self.offset[chosen],
        )

    def repeated(self, times: int) -> Rows:
        """Return the rows with each output ``times`` times; offsets stay as they are."""
        if times == 1:
            return self
        Y = np.repeat(self.Y, times, axis=1)
        return replace(self, Y=Y, weights=self.weights.repeated(times))

    def weighted(self, weight: NDArray[np.floating] | None, name: str) -> Rows:
        """Return the rows with other weights; rows without an observed cell are dropped."""
        Y, weights, observed = normalise(self.Y, weight, name, self.comm)
        rows = replace(self, Y=Y, weights=weights)
        return rows if observed.all() else rows.take(np.flatnonzero(observed))

    def with_class_weights(self, table: F64 | None) -> Rows:
        """Return the rows with weights multiplied by those of their classes."""
        if table is None:
            return self
        rows = self.weighted(weigh_classes(self.weights, self.Y, table), "class_weight")
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
    kind: TargetKind = TargetKind.REAL,
    comm: Comm = ALONE,
    numbers: NDArray[np.uint64] | None = None,
) -> Rows:
    """Check weights and put rows together; drop rows without an observed cell of positive weight.

    Weights may be those of cells, (n, d), unless a row has one class. ``name`` is what the user
    calls the weights; ``numbers`` are those of the rows among the rows of all ranks.
    """
    shape = Y.shape[:1] if kind.one_class_per_row else Y.shape
    weight = check_weight(sample_weight, shape, name, comm)
    n_rows = X.shape[0]
    offset = None if offset is None else np.ascontiguousarray(offset)
    if numbers is None:
        numbers = np.arange(n_rows, dtype=np.uint64)
    rows = Rows(X, Y, Weights(), numbers, offset, kind, comm).weighted(weight, name)
    if not rows.count():
        target = "Y_val" if name == "sample_weight_val" else "y"
        raise ValueError(
            f"{target} has no observed value of positive weight in any of its {n_rows} rows; at "
            "least one cell must hold a value."
        )
    return rows


def split_validation(rows: Rows, fraction: int | float, seed: int) -> tuple[Rows, Rows]:
    """Return training and validation rows; these are drawn by number, class by class if any."""
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
    if rows.kind.one_class_per_row:
        classes = class_numbers(rows.Y)
        groups = [np.flatnonzero(classes == c) for c in comm.unique(classes)]
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
        none = float(2**53)
        numbers = np.where(observed[:, ~left], rows.numbers.astype(np.float64)[:, None], none)
        first = -comm.largest(-numbers.min(axis=0, initial=none))
        chosen &= ~np.isin(rows.numbers, np.asarray(first).astype(np.uint64))
        if not comm.any(chosen.any()):
            raise ValueError(
                "Each row that could be set apart for validation holds the only observed value of "
                "some output; pass X_val and Y_val, or use early_stopping=False."
            )
    return rows.take(np.flatnonzero(~chosen)), rows.take(np.flatnonzero(chosen))
