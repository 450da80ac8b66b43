"""Tables of named columns, and the features and outputs made of them.

All formats end here, so that they select outputs, decode labels and refuse values in the same way.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import accumulate
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.arrays import F64, Mask
from manyboost.data.named import NamedColumn, NamedTable, densified
from manyboost.datasets.dataset import Dataset, Matrix, Task, check_task, check_unique
from manyboost.spelling import listing, nearest

#: Names or glob patterns of columns.
Selection: TypeAlias = str | Sequence[str]
#: Where a row is in its file, for errors: "line 12".
Place: TypeAlias = Callable[[int], str]
#: What outputs are: numbers, labels of which a row may have any, one class for each row, or several
#: columns of classes.
Kind: TypeAlias = Literal["regression", "labels", "classes", "columns"]

# Words for a label that is absent or present, in lower case.
_TRUTH = {"0": 0, "1": 1, "false": 0, "true": 1, "no": 0, "yes": 1}
#: Categories that equal their codes: such a feature is a number.
BINARY = ("0", "1")


class SelectionError(ValueError):
    """A name or pattern matches no column."""

    def __init__(self, what: str, pattern: str, problem: str) -> None:
        super().__init__(f"{what}={pattern!r} {problem}")
        self.pattern, self.problem = pattern, problem


@dataclass(frozen=True)
class Column:
    """A column of a table: numbers, codes of categories, or text that is not kept."""

    name: str
    categories: tuple[str, ...] | None = None
    is_text: bool = False


@dataclass(frozen=True)
class Table:
    """Columns and their values, (n_rows, n_columns), NaN where a value is missing."""

    file: str
    columns: Sequence[Column]
    values: Matrix
    place: Place

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    @property
    def categories(self) -> dict[int, tuple[str, ...]]:
        """Categories of the columns that have any."""
        return {j: c.categories for j, c in enumerate(self.columns) if c.categories is not None}

    def refuse_text(self, what: str) -> None:
        """Refuse columns of text; ``what`` they should be."""
        for column in self.columns:
            if column.is_text:
                remedy = "turn it into numbers or categories, or leave it out."
                raise ValueError(f"{what} {column.name!r} of {self.file} is text; {remedy}")

    def error(self, row: int, what: str) -> ValueError:
        """Return an error about a row."""
        return ValueError(f"{self.file}, {self.place(row)}: {what}")

    def take(self, columns: Sequence[int]) -> Table:
        """Return some of the columns."""
        values = self.values[:, list(columns)]
        return Table(self.file, [self.columns[i] for i in columns], values, self.place)


def select(wanted: Selection, names: Sequence[str], file: str, what: str) -> list[int]:
    """Find columns by name or, if no column has that name, by glob pattern."""
    found: list[int] = []
    index = {name: i for i, name in enumerate(names)}
    for pattern in [wanted] if isinstance(wanted, str) else wanted:
        matches = [i for i, name in enumerate(names) if fnmatchcase(name, pattern)]
        matches = [index[pattern]] if pattern in index else matches
        if not matches:
            problem = f"matches no column of {file}; {nearest(pattern, names)}"
            raise SelectionError(what, pattern, problem)
        found += matches
    return list(dict.fromkeys(found))


def select_targets(targets: Selection | int, names: Sequence[str], file: str) -> list[int]:
    """Find the outputs by name or pattern, or as the first k (last -k) columns."""
    if not isinstance(targets, int):
        return select(targets, names, file, "targets")
    if not 0 < abs(targets) < len(names):
        what = f"targets={targets} does not leave outputs and features among the"
        remedy = "pass a smaller number of outputs, negative to count from the end."
        raise ValueError(f"{what} {len(names)} columns of {file}; {remedy}")
    return list(range(len(names)))[slice(targets) if targets > 0 else slice(targets, None)]


def remaining(
    names: Sequence[str], file: str, outputs: Sequence[int], drop: Selection
) -> list[int]:
    """Return the columns that are neither outputs nor dropped: the features."""
    dropped = select(drop, names, file, "drop")
    if both := set(outputs) & set(dropped):
        what = f"Column {names[min(both)]!r} of {file} is in both targets and drop"
        raise ValueError(f"{what}; remove it from one.")
    left_out = {*outputs, *dropped}
    features = [i for i in range(len(names)) if i not in left_out]
    for what, found in (("output", outputs), ("feature", features)):
        if not found:
            raise ValueError(f"{file} is left without any {what}; check targets and drop.")
    return features


def stack(tables: Sequence[Table]) -> Table:
    """Concatenate tables with the same columns; categories are the sorted union."""
    if len(tables) == 1:
        return tables[0]
    starts = [0, *accumulate(table.values.shape[0] for table in tables)]
    values = np.concatenate([table.values for table in tables])
    columns = list(tables[0].columns)
    for i in {i for table in tables for i in table.categories}:
        # A block without any value of the column has no categories.
        parts = [table.columns[i].categories or () for table in tables]
        merged = tuple(sorted(set().union(*parts)))
        codes = {category: code for code, category in enumerate(merged)}
        for start, stop, part in zip(starts, starts[1:], parts, strict=False):
            values[start:stop, i] = recoded(values[start:stop, i], [codes[c] for c in part])
        columns[i] = Column(columns[i].name, merged)

    def place(row: int) -> str:
        k = bisect_right(starts, row) - 1
        return tables[k].place(row - starts[k])

    return Table(tables[0].file, columns, values, place)


def whole(file: str, blocks: Iterable[tuple[Table, Table]]) -> tuple[Table, Table]:
    """Return the features and outputs of all blocks of a file."""
    if not (parts := list(blocks)):
        raise ValueError(f"{file} has no rows; it needs at least one.")
    return stack([X for X, _ in parts]), stack([Y for _, Y in parts])


def recoded(codes: NDArray[Any], mapping: Sequence[float]) -> F64:
    """Replace each code k by ``mapping[k]``; NaN stays NaN."""
    numbers = np.array([*mapping, np.nan])
    return np.asarray(numbers[np.where(np.isnan(codes), len(mapping), codes).astype(np.intp)])


def features_of(table: Table) -> NamedTable:
    """Return all columns as features, in single precision if it holds them exactly."""
    table.refuse_text("Feature")
    X, single = table.values, _rounded(table)
    parts = (X.data, single.data) if sparse.issparse(X) else (X, single)
    X, categories = single if np.array_equal(*parts, equal_nan=True) else X, table.categories
    # A sparse matrix does not store code 0, which is a category like any other.
    return NamedTable(table.names, densified(X) if categories else X, categories)


def single_precision(table: Table) -> Matrix:
    """Return features as float32; text and values that float32 cannot hold are refused."""
    table.refuse_text("Feature")
    X = _rounded(table)
    parts = (X.data, table.values.data) if sparse.issparse(X) else (X, table.values)
    beyond = np.isinf(parts[0]) & np.isfinite(parts[1])
    if beyond.any():
        row, j = _first(X, beyond)
        what = f"feature {table.names[j]!r} holds {table.values[row, j]:g}, beyond the range of"
        raise table.error(row, f"{what} single precision (3e38); divide it by a constant.")
    return X


def _rounded(table: Table) -> Matrix:
    with np.errstate(over="ignore"):
        return table.values.astype(np.float32)


def outputs_of(
    table: Table, task: Literal["classification", "regression"] | None = None
) -> tuple[NamedTable | NamedColumn, Kind]:
    """Return all columns as outputs, and what they are.

    Without a task, one column of text or of 0 and 1 is classes, several columns of 0 and 1 (or
    false and true, no and yes) are labels, those with other text are columns of classes, and
    everything else is regression.
    """
    only = table.columns[0] if len(table.columns) == 1 else None
    if only is not None and only.categories is not None:
        return _classes(table, only, task), "classes"
    if only is not None and task == "classification":
        table.refuse_text("Output")
        Y, found = table.values, "multilabel"
    elif only is None and task != "regression" and _hold_classes(table, task):
        return class_columns(table), "columns"
    else:
        wanted: Task | None = "multilabel" if task == "classification" else task
        Y, found = typed_outputs(table, wanted, missing_labels=True)
    if only is None:  # labels may be very many, so sparse ones stay sparse
        return NamedTable(table.names, Y), "labels" if found == "multilabel" else "regression"
    y = densified(Y)[:, 0]
    if found == "regression":
        return NamedColumn(only.name, y), "regression"
    _refuse_missing(table, y)
    _refuse_large(table, only.name, y)
    return NamedColumn(only.name, y.astype(np.int64) if (y == np.rint(y)).all() else y), "classes"


def _classes(table: Table, column: Column, task: str | None) -> NamedColumn:
    """Return classes that are text."""
    if task == "regression":
        what = f"Output {column.name!r} of {table.file} is text, which regression cannot predict"
        raise ValueError(f"{what}; ask for classification, or turn it into numbers.")
    codes = densified(table.values)[:, 0]
    _refuse_missing(table, codes)
    labels = np.array(column.categories, dtype=object)
    return NamedColumn(column.name, labels[codes.astype(np.intp)])


def _refuse_missing(table: Table, classes: NDArray[Any]) -> None:
    """Refuse a row without a class; the table has one column."""
    missing = np.isnan(classes)
    if missing.any():
        what = f"the class {table.names[0]!r} is missing; fill it in, or remove the row."
        raise table.error(int(np.argmax(missing)), what)


def _refuse_large(table: Table, name: str, classes: F64) -> None:
    """Refuse whole numbers as classes that doubles cannot tell from their neighbours."""
    large = np.abs(classes) >= 2**53  # NaN is not
    if large.any():
        row = int(np.argmax(large))
        what = f"the class {name!r} is {classes[row]:.0f}, but numbers from 2**53 on are not exact"
        raise table.error(row, f"{what}; turn the classes into text, such as 'id1'.")


def _hold_classes(table: Table, task: str | None) -> bool:
    """Whether several columns hold classes: text that means neither 0 nor 1, or other numbers.

    Numbers are classes if the task says so. A sparse matrix holds labels.
    """
    if sparse.issparse(table.values):
        return False
    texts = table.categories
    is_text = not {word.lower() for each in texts.values() for word in each} <= _TRUTH.keys()
    numbers = table.values[:, [j for j in range(len(table.columns)) if j not in texts]]
    has_numbers = bool((~np.isin(numbers, (0, 1)) & ~np.isnan(numbers)).any())
    if is_text and has_numbers and task is None:
        what = f"{table.file} has classes (output {table.names[min(texts)]!r}) and numbers"
        remedy = "choose one kind, or set the task to classification to take numbers as classes."
        raise ValueError(f"{what}; {remedy}")
    return is_text or (has_numbers and task is not None)


def class_columns(table: Table) -> NamedTable:
    """Return all columns as classes: text or whole numbers, None where they are missing."""
    table.refuse_text("Output")
    values = densified(table.values)
    classes = np.empty(values.shape, object)
    for j, column in enumerate(values.T):
        known = table.categories.get(j)
        there = ~np.isnan(column)
        found = column[there]
        if known is not None:
            classes[there, j] = np.array(known, object)[found.astype(np.intp)]
        else:
            _refuse_large(table, table.names[j], column)
            is_whole = np.array_equal(found, np.rint(found))
            classes[there, j] = found.astype(np.int64) if is_whole else found
    return NamedTable(table.names, classes)


def typed_outputs(
    table: Table, task: Task | None, *, missing_labels: bool = False
) -> tuple[Matrix, Task]:
    """Return outputs as 0/1 labels (uint8) or as numbers (dense float64), and the task.

    Labels with missing values stay floats, if ``missing_labels`` allows them.
    """
    table.refuse_text("Output")
    Y = _labels_decoded(table)
    stored = Y.data if sparse.issparse(Y) else Y
    missing = np.isnan(stored)
    other = ~np.isin(stored, (0, 1)) & ~missing
    if task is None:
        task = "regression" if other.any() else "multilabel"
        if task == "regression" and table.categories:
            label, number = (table.names[j] for j in (min(table.categories), _first(Y, other)[1]))
            what = f"{table.file} has labels (output {label!r}) and numbers (output {number!r})"
            remedy = "choose one kind, or set the task to regression to predict labels as numbers."
            raise ValueError(f"{what}; {remedy}")
    if task == "regression":
        return densified(Y).astype(np.float64, copy=False), task
    wrong = other if missing_labels else other | missing
    if wrong.any():
        row, j = _first(Y, wrong)
        found = "missing" if np.isnan(Y[row, j]) else f"{Y[row, j]:g}"
        remedy = "correct it, or set the task to regression if it is a number to predict."
        raise table.error(row, f"label {table.names[j]!r} is {found}, not 0 or 1; {remedy}")
    if not missing.any():
        Y = Y.astype(np.uint8)
        if sparse.issparse(Y):
            Y.eliminate_zeros()
    return Y, task


def _labels_decoded(table: Table) -> Matrix:
    """Return outputs with codes of categories replaced by the 0 or 1 their category means."""
    Y = table.values
    is_sparse = sparse.issparse(Y)
    decoded: dict[int, Matrix] = {}
    for j, categories in table.categories.items():
        truth = [_TRUTH.get(category.lower()) for category in categories]
        known = [value for value in truth if value is not None]
        if len(set(known)) < len(truth):
            what = f"Output {table.names[j]!r} of {table.file} takes the values"
            remedy = "make it one label for each value."
            raise ValueError(f"{what} {listing(categories)}, not 0 and 1; {remedy}")
        if known != list(range(len(known))):
            column = recoded(densified(Y[:, [j]]), known)
            decoded[j] = sparse.csr_matrix(column) if is_sparse else column
    if not decoded:
        return Y
    # A code 0 that a sparse row does not store may mean 1, so such columns are built anew.
    parts = [decoded[j] if j in decoded else Y[:, [j]] for j in range(len(table.columns))]
    return sparse.hstack(parts, format="csr") if is_sparse else np.hstack(parts)


def split_table(
    table: Table, outputs: Sequence[int], drop: Selection, task: Task | None, name: str
) -> Dataset:
    """Make a data set of the columns of a table; those neither outputs nor dropped are features."""
    features = remaining(table.names, table.file, outputs, drop)
    return assemble(table.take(features), table.take(outputs), name, task)


def assemble(X: Table, Y: Table, name: str, task: Task | None = None) -> Dataset:
    """Make a data set of features and outputs."""
    if task is not None:
        check_task(task)
    check_unique([*X.names, *Y.names], X.file, "columns")
    features = single_precision(X)
    outputs, task = typed_outputs(Y, task)
    categories = {j: found for j, found in X.categories.items() if found != BINARY}
    names = tuple(X.names), tuple(Y.names)
    return Dataset(name, features, outputs, *names, task, None, tuple(categories), categories)


def _first(matrix: Matrix, flags: Mask) -> tuple[int, int]:
    """Row and column of the first flagged value, among stored values if sparse."""
    if sparse.issparse(matrix):
        entries, k = matrix.tocoo(), np.argmax(flags)
        return int(entries.row[k]), int(entries.col[k])
    row, column = np.argwhere(flags)[0]
    return int(row), int(column)
