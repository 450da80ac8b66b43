"""From a table of named columns to a data set: which column is what, and what may go wrong.

ARFF, CSV and Parquet files end here, so all of them choose outputs, code categories and refuse
what cannot be kept in the same words.
"""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import accumulate
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.data.named import NamedColumn, NamedTable, densified
from manyboost.datasets.dataset import Dataset, Matrix, Task, check_task, check_unique

#: Names or glob patterns of columns.
Selection: TypeAlias = str | Sequence[str]
#: What outputs are: numbers, labels of which a row may have any, or one class for each row.
Kind: TypeAlias = Literal["regression", "labels", "classes"]

# Words for a label that is absent or present, in lower case.
_TRUTH = {"0": 0, "1": 1, "false": 0, "true": 1, "no": 0, "yes": 1}
#: Categories that are their own codes: such a feature is a number.
BINARY = ("0", "1")


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
    place: Callable[[int], str]  # of a row, for errors: "line 12"

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]


def select(wanted: Selection, names: Sequence[str], file: str, what: str) -> list[int]:
    """Find columns by name or, where no column is called so, by glob pattern."""
    if isinstance(wanted, str):
        wanted = [wanted]
    index = {name: i for i, name in enumerate(names)}
    found: dict[int, None] = {}  # a set that keeps the order
    for pattern in wanted:
        if pattern in index:
            matches = [index[pattern]]
        else:
            matches = [i for i, name in enumerate(names) if fnmatchcase(name, pattern)]
        if not matches:
            near = difflib.get_close_matches(pattern, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there is {_listing(names)}."
            raise ValueError(f"{what}={pattern!r} matches no column of {file}; {hint}")
        found.update(dict.fromkeys(matches))
    return list(found)


def select_targets(targets: Selection | int, names: Sequence[str], file: str) -> list[int]:
    """Find the outputs by name, pattern, or number: the first k columns, or the last -k."""
    if not isinstance(targets, int):
        return select(targets, names, file, "targets")
    if not 0 < abs(targets) < len(names):
        raise ValueError(
            f"targets={targets} does not leave outputs and features among the {len(names)} "
            f"columns of {file}; pass a smaller number of outputs, negative to count from the end."
        )
    columns = list(range(len(names)))
    return columns[:targets] if targets > 0 else columns[targets:]


def stack(tables: Sequence[Table]) -> Table:
    """Put the rows of tables with the same columns together; categories are those of all."""
    if len(tables) == 1:
        return tables[0]
    first = tables[0]
    starts = [0, *accumulate(table.values.shape[0] for table in tables)]
    values = np.concatenate([table.values for table in tables])
    columns: list[Column] = []
    for i, column in enumerate(first.columns):
        # A column without a value in some block has no categories there.
        if all(table.columns[i].categories is None for table in tables):
            columns.append(column)
            continue
        codes: dict[str, int] = {}
        for start, stop, table in zip(starts, starts[1:], tables, strict=False):
            found = table.columns[i].categories or ()
            places = np.array([*(codes.setdefault(c, len(codes)) for c in found), np.nan])
            part = values[start:stop, i]
            part[:] = places[np.where(np.isnan(part), len(found), part).astype(np.intp)]
        columns.append(Column(column.name, tuple(codes)))

    def place(row: int) -> str:
        k = bisect_right(starts, row) - 1
        return tables[k].place(row - starts[k])

    return Table(first.file, columns, values, place)


def features_of(table: Table) -> NamedTable:
    """Return all columns as features, in single precision."""
    for column in table.columns:
        if column.is_text:
            raise ValueError(
                f"Feature {column.name!r} of {table.file} is text; turn it into numbers or "
                "categories, or leave it out."
            )
    kinds = {j: column.categories for j, column in enumerate(table.columns)}
    categories = {j: found for j, found in kinds.items() if found is not None}
    X = _single_precision(table, range(len(table.columns)))
    # Of categories a sparse matrix would take most for the number 0.
    return NamedTable(table.names, densified(X) if categories else X, categories)


def outputs_of(
    table: Table, task: Literal["classification", "regression"] | None = None
) -> tuple[NamedTable | NamedColumn, Kind]:
    """Return all columns as outputs, and what they are.

    ``None`` finds out: text is classes, nothing but 0 and 1 (or false and true, no and yes) are
    labels, or two classes if there is one output; else outputs are numbers.
    """
    for column in table.columns:
        if column.is_text:
            raise ValueError(
                f"Output {column.name!r} of {table.file} is text; turn it into numbers or "
                "categories, or leave it out."
            )
    only = table.columns[0] if len(table.columns) == 1 else None
    if only is not None and only.categories is not None:
        return _classes(table, only, task), "classes"
    Y = densified(_labels_decoded(table, range(len(table.columns))))
    missing = np.isnan(Y) if Y.dtype.kind == "f" else np.zeros(Y.shape, bool)
    other = ~(np.isin(Y, (0, 1)) | missing)
    words = [column.name for column in table.columns if column.categories is not None]
    if task is None:
        task = "regression" if other.any() else "classification"
        if words and task == "regression":
            row, j = _first(Y, other)
            raise ValueError(
                f"{table.file} has labels (output {words[0]!r}) and numbers (output "
                f"{table.names[j]!r}) among its outputs; choose one kind, or ask for regression to "
                "predict the labels as numbers."
            )
    if task == "regression":
        Y = Y.astype(np.float64, copy=False)
        return (NamedTable(table.names, Y) if only is None else _column(only, Y)), "regression"
    if only is not None:
        whole = not missing.any() and np.array_equal(Y, np.rint(Y))
        return _column(only, Y.astype(np.int64) if whole else Y), "classes"
    if other.any():
        row, j = _first(Y, other)
        raise ValueError(
            f"{table.file}, {table.place(row)}: label {table.names[j]!r} is {Y[row, j]:g}, not 0 "
            "or 1; correct it, or ask for regression if it is a number to predict."
        )
    return NamedTable(table.names, Y if missing.any() else Y.astype(np.uint8)), "labels"


def _column(column: Column, Y: NDArray[Any]) -> NamedColumn:
    return NamedColumn(column.name, Y[:, 0])


def _classes(table: Table, column: Column, task: str | None) -> NamedColumn:
    """Classes in words."""
    if task == "regression":
        raise ValueError(
            f"Output {column.name!r} of {table.file} is text, which regression cannot predict; "
            "ask for classification, or turn it into numbers."
        )
    codes = densified(table.values)[:, 0]
    missing = np.isnan(codes)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(
            f"{table.file}, {table.place(row)}: the class {column.name!r} is missing; fill it in, "
            "or remove the row."
        )
    labels = np.array(column.categories, dtype=object)
    return NamedColumn(column.name, labels[codes.astype(np.intp)])


def code(cells: Iterable[Any]) -> tuple[list[float], tuple[str, ...]]:
    """Code cells by their place among the sorted categories; ``None`` becomes NaN."""
    texts = [None if cell is None else str(cell) for cell in cells]
    categories = tuple(sorted({text for text in texts if text is not None}))
    codes = {category: float(i) for i, category in enumerate(categories)}
    return [np.nan if text is None else codes[text] for text in texts], categories


def assemble(
    table: Table,
    name: str,
    outputs: Sequence[int],
    dropped: Sequence[int] = (),
    task: Task | None = None,
) -> Dataset:
    """Make a data set of a table whose outputs are known."""
    if task is not None:
        check_task(task)
    check_unique(table.names, table.file, "columns")
    if both := set(outputs) & set(dropped):
        raise ValueError(
            f"Column {table.names[min(both)]!r} of {table.file} is in both targets and drop; "
            "take it out of one."
        )
    features = [i for i in range(len(table.columns)) if i not in {*outputs, *dropped}]
    for what, found in (("output", outputs), ("feature", features)):
        if not found:
            raise ValueError(f"{table.file} is left without any {what}; see targets and drop.")
    if table.values.shape[0] == 0:
        raise ValueError(f"{table.file} has no rows; a data set needs at least one.")
    for what, found in (("Feature", features), ("Output", outputs)):
        for i in found:
            if table.columns[i].is_text:
                raise ValueError(
                    f"{what} {table.names[i]!r} of {table.file} is text; turn it into numbers "
                    f"or categories, or leave it out with drop={table.names[i]!r}."
                )
    Y, task = _outputs(table, outputs, task)
    categories = {
        j: kinds
        for j, i in enumerate(features)
        if (kinds := table.columns[i].categories) is not None and kinds != BINARY
    }
    return Dataset(
        name=name,
        X=_single_precision(table, features),
        Y=Y,
        feature_names=tuple(table.names[i] for i in features),
        target_names=tuple(table.names[i] for i in outputs),
        task=task,
        categorical=tuple(categories),
        categories=categories,
    )


def _single_precision(table: Table, features: Sequence[int]) -> Matrix:
    """Features as float32, the type trees are grown on; what it cannot hold is refused."""
    values = table.values[:, features]
    with np.errstate(over="ignore"):
        X = values.astype(np.float32)
    infinite = np.isinf(X.data if sparse.issparse(X) else X)
    if infinite.any():
        row, j = (int(k) for k in _first(X, infinite))
        raise ValueError(
            f"{table.file}, {table.place(row)}: feature {table.names[features[j]]!r} holds "
            f"{values[row, j]:g}, beyond the range of single precision (3e38); divide it by a "
            "constant."
        )
    return X


def _outputs(table: Table, outputs: Sequence[int], task: Task | None) -> tuple[Matrix, Task]:
    """Outputs as 0/1 labels (uint8) or as numbers (float64), and which of the two they are."""
    Y = _labels_decoded(table, outputs)
    stored = Y.data if sparse.issparse(Y) else Y
    other = ~np.isin(stored, (0, 1))
    missing = np.isnan(stored)
    if task is None:
        # A missing value says nothing about the task.
        task = "regression" if (other & ~missing).any() else "multilabel"
        labels = [i for i in outputs if table.columns[i].categories is not None]
        if task == "regression" and labels:
            row, j = _first(Y, other & ~missing)
            raise ValueError(
                f"{table.file} has labels (output {table.names[labels[0]]!r}) and numbers (output "
                f"{table.names[outputs[j]]!r}) among its outputs; choose one kind, or pass "
                "task='regression' to predict the labels as numbers."
            )
    if task == "regression":
        return (Y.toarray() if sparse.issparse(Y) else Y), task
    if other.any():
        row, j = _first(Y, other)
        found = "is missing" if np.isnan(Y[row, j]) else f"is {Y[row, j]:g}"
        raise ValueError(
            f"{table.file}, {table.place(int(row))}: label {table.names[outputs[j]]!r} {found}, "
            "not 0 or 1; correct it, or pass task='regression' if it is a number to predict."
        )
    labels_only = Y.astype(np.uint8)
    if sparse.issparse(labels_only):
        labels_only.eliminate_zeros()
    return labels_only, task


def _labels_decoded(table: Table, outputs: Sequence[int]) -> Matrix:
    """Outputs with the codes of nominal ones replaced by the 0 or 1 their category means."""
    Y = table.values[:, outputs]
    is_sparse = sparse.issparse(Y)
    Y = sparse.csc_matrix(Y) if is_sparse else Y.copy()
    changed: dict[int, NDArray[np.float64]] = {}
    for j, i in enumerate(outputs):
        categories = table.columns[i].categories
        if categories is None:
            continue
        truth = [_TRUTH.get(category.lower()) for category in categories]
        if None in truth or len(set(truth)) < len(truth):
            raise ValueError(
                f"Output {table.names[i]!r} of {table.file} takes the values "
                f"{_listing(categories)}, not 0 and 1; make it one label for each value."
            )
        if truth != list(range(len(truth))):
            codes = Y[:, [j]].toarray().ravel() if is_sparse else Y[:, j]
            meaning = np.array([*truth, np.nan], dtype=np.float64)
            changed[j] = meaning[np.where(np.isnan(codes), len(truth), codes).astype(np.intp)]
    for j, column in changed.items():
        if not is_sparse:
            Y[:, j] = column
    if is_sparse and changed:
        # The first category of a sparse row goes unwritten, and here it may be a 1.
        parts = [
            sparse.csc_matrix(changed[j][:, np.newaxis]) if j in changed else Y[:, [j]]
            for j in range(len(outputs))
        ]
        Y = sparse.hstack(parts)
    return Y.tocsr() if is_sparse else Y


def _first(matrix: Matrix, flags: NDArray[np.bool_]) -> tuple[int, int]:
    """Row and column of the first flagged value, among stored values if sparse."""
    if sparse.issparse(matrix):
        entries = matrix.tocoo()
        k = int(np.flatnonzero(flags)[0])
        return int(entries.row[k]), int(entries.col[k])
    row, column = np.argwhere(flags)[0]
    return int(row), int(column)


def _listing(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
