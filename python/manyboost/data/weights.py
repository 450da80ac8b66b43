"""Weights of rows, cells and classes; a cell of weight zero is a missing target."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost import _core
from manyboost.arrays import F32, F64, Mask
from manyboost.comm import ALONE, Comm
from manyboost.data.cells import (
    MISSING_LABEL,
    class_numbers,
    first_cell,
    missing_cells,
    refuse_cells,
    row_blocks,
)
from manyboost.data.labels import ClassColumns, Classes
from manyboost.data.plain_arrays import dense_floats
from manyboost.data.sparse_labels import SparseLabels, times
from manyboost.spelling import listing


@dataclass(frozen=True)
class Weights:
    """Weights as the kernels take them; the weight of a cell is the product of all of them."""

    rows: F32 | None = None  # (n_rows,); None: 1
    cells: F32 | None = None  # (n_rows, n_outputs), zero if the target is missing; None: 1
    partial: bool = False  # whether any target is missing
    #: Of labels that stay sparse, the weights of single cells as CSR, zero if the label is missing;
    #: all others have 1.
    stored: Any = None

    @property
    def by_cell(self) -> bool:
        """Whether the cells of a row may differ in weight."""
        return self.partial or self.cells is not None or self.stored is not None

    @property
    def is_trivial(self) -> bool:
        """Whether all weights are 1."""
        return self.rows is None and self.cells is None and self.stored is None

    def heaviest(self, pool: _core.Pool) -> float:
        """Return the largest weight that a cell can have, on all ranks."""
        return float(self.heaviest_of(1 if self.cells is None else self.cells.shape[1], pool).max())

    def total_of_rows(self, pool: _core.Pool, n_rows: int) -> float:
        """Return the sum of the row weights over all ranks; this rank has ``n_rows`` rows."""
        if self.rows is None:
            return float(pool.all_rows(n_rows))
        return float(_core.column_sums(pool, self.rows[:, None], Weights())[0])

    def heaviest_of(self, n_outputs: int, pool: _core.Pool) -> F64:
        """Return the largest weight that a cell of each output can have, on all ranks."""
        if self.is_trivial:
            return np.ones(n_outputs)
        rows = 1.0 if self.rows is None else float(self.rows.max(initial=0))
        largest = np.ones(n_outputs) if self.cells is None else self.cells.max(axis=0, initial=0)
        both = pool.largest(np.append(largest, rows).astype(np.float64))
        return np.asarray(both[:-1] * both[-1])

    def take(self, chosen: NDArray[Any]) -> Weights:
        """Return the weights of some rows."""
        rows, cells, stored = (
            None if each is None else each[chosen] for each in (self.rows, self.cells, self.stored)
        )
        return Weights(rows, cells, self.partial, stored)

    def within(self, chosen: NDArray[Any], n_rows: int) -> Weights:
        """Return weights that are zero outside the chosen rows."""
        bag = np.zeros(n_rows, np.float32)
        bag[chosen] = 1.0 if self.rows is None else self.rows[chosen]
        return Weights(bag, self.cells, self.partial, self.stored)

    def of_output(self, j: int) -> F32 | None:
        """Return the weights of one output in all rows, also where it is missing."""
        if self.cells is None:
            return self.rows
        column = self.cells[:, j]
        return np.ascontiguousarray(column if self.rows is None else column * self.rows)

    def of_outputs(self, columns: slice) -> Weights:
        """Return the weights of neighbouring outputs."""
        cells = None if self.cells is None else np.ascontiguousarray(self.cells[:, columns])
        return Weights(self.rows, cells, self.partial)

    def repeated(self, times: int) -> Weights:
        """Return the weights with each output repeated ``times`` times in a row."""
        cells = None if self.cells is None else np.repeat(self.cells, times, axis=1)
        return Weights(self.rows, cells, self.partial)

    def of_rows(self, Y: NDArray[Any]) -> F64 | None:
        """Return the mean weight of each row's cells, or None if all weights are 1."""
        if not self.by_cell:
            return None if self.rows is None else self.rows.astype(np.float64)
        n_rows, d = Y.shape
        if self.cells is not None:
            mean = self.cells.sum(axis=1, dtype=np.float64) / d
        elif self.stored is not None:
            missed = np.diff(self.stored.indptr) - self.stored.sum(axis=1, dtype=np.float64)
            mean = 1.0 - missed / d
        else:
            mean = np.ones(n_rows)
            for block in row_blocks(n_rows, d):
                mean[block] -= missing_cells(Y[block]).mean(axis=1)
        return np.asarray(mean if self.rows is None else mean * self.rows)

    def excess(self) -> F64:
        """Return what stored cells weigh more than other cells of their row."""
        more = self.stored.data.astype(np.float64) - 1
        if self.rows is None:
            return np.asarray(more)
        return np.asarray(more * np.repeat(self.rows, np.diff(self.stored.indptr)))

    def matrix(self, Y: NDArray[Any]) -> F32:
        """Return the weight of every cell, zero if the target is missing."""
        weight = np.ones(Y.shape, np.float32) if self.cells is None else self.cells.copy()
        weight[missing_cells(Y)] = 0
        return weight if self.rows is None else weight * self.rows[:, None]


def check_weight(
    sample_weight: Any, shape: tuple[int, ...], name: str, comm: Comm = ALONE
) -> F64 | None:
    """Return weights as an array (n,) or, if ``shape`` is that of cells, (n, d)."""
    if sample_weight is None:
        return None
    n_rows = shape[0]
    weight = dense_floats(sample_weight, name, "ones")
    if weight.ndim == 0:
        weight = np.full(n_rows, weight)
    if weight.shape not in ((n_rows,), shape):
        cells = f", or one for each of the {n_rows} × {shape[1]} cells" if len(shape) == 2 else ""
        wanted = f"one weight for each of the {n_rows} rows{cells}"
        raise ValueError(f"{name} has shape {weight.shape}; it must have {wanted}.")
    rest = "; weights must be at least zero."
    refuse_cells(weight, np.isnan, name, "is missing (NaN)", rest)
    refuse_cells(weight, lambda block: block < 0, name, "is negative ({:g})", rest)
    refuse_cells(weight, np.isinf, name, "is infinite (inf)", "; weights must be finite.")
    if not comm.any((weight > 0).any()):
        raise ValueError(f"All of {name} is zero; at least one row needs a positive weight.")
    return weight


def normalise(
    Y: NDArray[Any], weight: Any, name: str, comm: Comm = ALONE
) -> tuple[NDArray[Any], Weights, Mask]:
    """Bring targets and weights to one form; also return which rows have an observed cell.

    Cells of weight zero become missing targets. Weights that agree within each row become weights
    of rows, and weights that are all 1 become none. All ranks choose the same form.
    """
    stored = None
    if isinstance(Y, SparseLabels):
        if sparse.issparse(weight):
            weight, stored = None, weight
        stored = times(Y.missing, stored)
        stored = None if stored is None else single_precision(stored, name)
    Y = without_weightless(Y, weight)
    is_whole = isinstance(Y, SparseLabels) or first_cell(Y, missing_cells) is None
    missing = np.broadcast_to(False, Y.shape) if is_whole else missing_cells(Y)
    observed = np.ones(len(Y), bool)
    if not is_whole:
        observed &= ~missing.all(axis=1)
    if weight is not None and weight.ndim == 1:
        observed &= weight > 0
    partial = comm.any(not is_whole and missing[observed].any())
    if weight is None:
        return Y, Weights(partial=partial, stored=stored), observed
    if weight.ndim == 2:
        heaviest = weight.max(axis=1, where=~missing, initial=0)
        lightest = weight.min(axis=1, where=~missing, initial=np.inf)
        if comm.all(np.array_equal(heaviest[observed], lightest[observed])):
            weight = heaviest
        elif partial:
            weight = np.where(missing, 0, weight)
    single = single_precision(weight, name)
    if single.ndim == 2:
        return Y, Weights(cells=single, partial=partial), observed
    is_one = comm.all((single[observed] == 1).all())
    return Y, Weights(None if is_one else single, partial=partial, stored=stored), observed


def without_weightless(Y: NDArray[Any], weight: Any) -> NDArray[Any]:
    """Return targets of which cells of weight zero are missing."""
    if weight is None or weight.ndim == 1 or weight.all():
        return Y
    Y = np.array(Y)
    Y[weight == 0] = MISSING_LABEL if Y.dtype == np.uint8 else np.nan
    return Y


def single_precision(weight: Any, name: str) -> Any:
    """Return weights, an array or CSR, in single precision."""
    given = weight.data if sparse.issparse(weight) else weight
    with np.errstate(over="ignore", under="ignore"):
        single = np.ascontiguousarray(given, dtype=np.float32)
    if not (np.isfinite(single).all() and np.array_equal(single > 0, given > 0)):
        positive = given[given > 0]
        span = f"{positive.min():g} to {positive.max():g}, beyond the range of single precision"
        raise ValueError(f"{name} spans {span}; divide it by a constant.")
    if sparse.issparse(weight):
        return sparse.csr_array((single, weight.indices, weight.indptr), shape=weight.shape)
    return single


#: Weights of classes (n_classes,), of absent and present labels (n_labels, 2), or a list of the
#: former for several columns of classes.
ClassTable: TypeAlias = F64 | list[F64]


def class_weights(
    class_weight: Any, Y: NDArray[Any], classes: Classes, comm: Comm = ALONE
) -> ClassTable | None:
    """Return the weights of classes or labels, 1 for those not mentioned."""
    if class_weight is None:
        return None
    if isinstance(classes, ClassColumns):
        return _weights_of_columns(class_weight, Y, classes, comm)
    multilabel = classes.kind == "multilabel"
    if isinstance(class_weight, str):
        if multilabel:
            counts = np.stack([np.equal(Y, label).sum(axis=0) for label in (0, 1)], axis=1)
        else:
            counts = np.bincount(class_numbers(Y), minlength=len(classes.values))
        return _balanced(counts, comm)
    if isinstance(class_weight, dict):
        known = [0, 1] if multilabel else classes.values.tolist()
        table = _from_dict(class_weight, known, "class_weight")
        return np.tile(table, (classes.n_outputs, 1)) if multilabel else table
    if not multilabel:
        problem = f"class_weight is a list of {len(class_weight)} dicts, one for each label"
        raise ValueError(f"{problem}, but y has one class per row; pass one dict.")
    if len(class_weight) != classes.n_outputs:
        what = f"class_weight has {len(class_weight)} dicts, but y has {classes.n_outputs} labels"
        raise ValueError(f"{what}; pass one dict for each label, or one for all.")
    tables = (_from_dict(each, [0, 1], f"class_weight[{j}]") for j, each in enumerate(class_weight))
    return np.stack(list(tables))


def _balanced(counts: NDArray[Any], comm: Comm) -> F64:
    """Return weights that give all classes the same total; an absent class gets 1."""
    counts = comm.totals(counts)
    total, table = counts.sum(axis=-1, keepdims=True), np.ones(counts.shape)
    np.divide(total, counts.shape[-1] * counts, out=table, where=counts > 0)
    return table


def _weights_of_columns(
    class_weight: Any, Y: NDArray[Any], classes: ClassColumns, comm: Comm
) -> list[F64]:
    """Return the weights of the classes of each column."""
    n_columns = len(classes.values)
    if isinstance(class_weight, str):
        tables = []
        for part, values in zip(classes.split(Y), classes.values, strict=True):
            observed = part[~missing_cells(part[:, 0])]
            tables.append(
                _balanced(np.bincount(class_numbers(observed), minlength=len(values)), comm)
            )
        return tables
    if isinstance(class_weight, dict) or len(class_weight) != n_columns:
        given = "one dict" if isinstance(class_weight, dict) else f"{len(class_weight)} dicts"
        what = f"class_weight is {given}, but y has {n_columns} columns of classes"
        raise ValueError(f"{what}; pass a list of dicts, one for each column, or 'balanced'.")
    known = enumerate(zip(class_weight, classes.values, strict=True))
    return [_from_dict(each, v.tolist(), f"class_weight[{j}]") for j, (each, v) in known]


def _from_dict(weights: Any, known: list[Any], name: str) -> F64:
    """Return the weights of the known classes, 1 for those not in the dict."""
    if not isinstance(weights, dict):
        raise ValueError(
            f"{name} is {weights!r}; it must be a dict of weights such as {{0: 1, 1: 5}}."
        )
    table, place = np.ones(len(known)), {each: k for k, each in enumerate(known)}
    for key, weight in weights.items():
        if key not in place:
            problem = f"{name} has the class {key!r}, which y does not have"
            raise ValueError(f"{problem}; the classes are {listing(known)}.")
        is_number = isinstance(weight, numbers.Real) and not isinstance(weight, bool)
        if not (is_number and (weight == 0 or 1e-37 < weight < 1e38)):
            problem = f"{name} gives the class {key!r} the weight {weight!r}"
            remedy = "it must be a number of at least zero, within the range of single precision."
            raise ValueError(f"{problem}; {remedy}")
        table[place[key]] = float(weight)
    return table


def weigh_classes(weights: Weights, Y: NDArray[Any], table: ClassTable) -> NDArray[np.floating]:
    """Multiply weights by those of classes: (n,) for classes, (n, d) for labels and columns."""
    if not isinstance(table, list) and table.ndim == 1:
        by_class = table[class_numbers(Y)]
        return by_class if weights.rows is None else by_class * weights.rows
    by_label = _by_label(Y, table) * (1 if weights.cells is None else weights.cells)
    return by_label if weights.rows is None else by_label * weights.rows[:, None]


def _by_label(Y: NDArray[Any], table: ClassTable) -> F32:
    """Return the weight of each cell by its label, or by the class in its column."""
    if isinstance(table, list):
        widths = [1 if len(each) == 2 else len(each) for each in table]
        parts = np.split(Y, np.cumsum(widths)[:-1], axis=1)
        # A missing cell, whose code is no number of a class, has no weight anyway.
        numbers = [np.where(missing_cells(p[:, 0]), 0, class_numbers(p)) for p in parts]
        columns = [each[k] for each, k in zip(table, numbers, strict=True)]
        return np.repeat(np.column_stack(columns), widths, axis=1).astype(np.float32)
    single = table.astype(np.float32)
    return np.where(Y == 1, single[:, 1], single[:, 0])


def without_class_weights(
    weights: Weights, Y: NDArray[Any], table: ClassTable | None
) -> NDArray[np.floating] | None:
    """Return the weights of rows or cells without those of classes; None if all are 1."""
    given: NDArray[np.floating] | None
    if table is None:
        given = weights.matrix(Y) if weights.by_cell else weights.rows
    elif not isinstance(table, list) and table.ndim == 1:
        given = (1.0 if weights.rows is None else weights.rows) / table[class_numbers(Y)]
    else:
        given = weights.matrix(Y)
        np.divide(given, _by_label(Y, table), out=given, where=given > 0)
    if given is None:
        return None
    # Cells of a row agree up to rounding.
    if given.ndim == 2 and np.allclose(given, given[:, :1], rtol=1e-6, atol=0):
        given = given[:, 0]
    return None if np.allclose(given, 1, rtol=1e-6, atol=0) else given
