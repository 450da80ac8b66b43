"""Cells of the targets, one for each row and output: their kinds, their names, the missing ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.arrays import Mask
from manyboost.comm import ALONE, Comm
from manyboost.errors import RowError

#: What a missing label is stored as among 0/1 labels.
MISSING_LABEL = 255

#: Cells of an array that are tested at once.
_CELLS_PER_BLOCK = 1 << 19

#: What to do about a cell, by default.
DROP = "; drop such rows or fill them in before fit."


class TargetKind(Enum):
    """What encoded targets ``Y`` hold."""

    REAL = "real"  # floats (n_rows, n_outputs), NaN if missing
    LABELS = "labels"  # any number per row: 0/1 as uint8 (n_rows, n_outputs), 255 if missing
    ONE_VS_REST = "one_vs_rest"  # a class per row: 0/1 as uint8; two classes share one column
    CLASSES = "classes"  # a class per row: class numbers as uint32 (n_rows,), for softmax
    COLUMNS = "columns"  # classes in several columns: 0/1 as uint8, a block of outputs for each

    @property
    def one_class_per_row(self) -> bool:
        """Whether every row belongs to exactly one class."""
        return self in (TargetKind.ONE_VS_REST, TargetKind.CLASSES)


def missing_cells(Y: NDArray[Any]) -> Mask:
    """Return where encoded targets are missing; class numbers never are."""
    if Y.dtype == np.uint8:
        return np.asarray(Y == MISSING_LABEL)
    if Y.dtype.kind == "f":
        return np.asarray(np.isnan(Y))
    return np.zeros(Y.shape, bool)


def class_numbers(Y: NDArray[Any]) -> NDArray[np.intp]:
    """Return the class number of each row of encoded targets with one class per row."""
    if Y.ndim == 2:
        Y = Y[:, 0] if Y.shape[1] == 1 else Y.argmax(axis=1)
    return Y.astype(np.intp)


def column_name(j: int, names: Any = None) -> str:
    """Return what an error calls a feature or output: its name, or its number without names."""
    return str(j) if names is None else repr(str(names[j]))


def cell_error(argument: str, problem: str, place: Any, rest: str, names: Any = None) -> RowError:
    """Return the error for a place, (row,) or (row, output), of an argument."""
    output = None if len(place) == 1 else column_name(place[1], names)
    return RowError(argument, problem, int(place[0]), rest, output)


def unknown_category(column: str, name: str, category: str, row: int) -> RowError:
    """Return the error of a category that a model does not know, which is to be fitted further."""
    rest = ", which the fitted model does not know; make it missing, or fit a new model."
    return RowError(name, f"Column {column} of {name} has the category {category}", row, rest)


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Yield slices of rows that hold a bounded number of cells."""
    size = max(1, _CELLS_PER_BLOCK // max(1, width))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def first_cell(array: NDArray[Any], test: Callable[..., Mask]) -> tuple[int, ...] | None:
    """Return the index of the first cell that passes a test, or None; test blocks of rows."""
    for rows in row_blocks(len(array), array.size // max(1, len(array))):
        passed = test(array[rows])
        if passed.any():
            row, *column = np.argwhere(passed)[0].tolist()
            return (rows.start + row, *column)
    return None


def refuse_cells(
    array: Any, test: Callable[..., Mask], name: str, what: str, rest: str = DROP, names: Any = None
) -> None:
    """Refuse an array with a cell that passes a test; ``what`` may show its value as {:g}."""
    place = first_cell(array, test)
    if place is not None:
        raise cell_error(name, f"{name} {what.format(array[place])}", place, rest, names)


def _observed_outputs(Y: NDArray[Any]) -> Mask:
    """Return which outputs have a value in some row; blocks of rows are read until all have."""
    observed = np.zeros(Y.shape[1], bool)
    for rows in row_blocks(*Y.shape):
        if observed.all():
            break
        observed |= ~missing_cells(Y[rows]).all(axis=0)
    return observed


def refuse_unobserved_outputs(
    Y: NDArray[Any], name: str, names: Sequence[str] | None = None, comm: Comm = ALONE
) -> None:
    """Refuse targets with an output that is missing in all rows."""
    if (
        isinstance(Y, np.ndarray)
        and Y.ndim == 2
        and not (observed := comm.largest(_observed_outputs(Y))).all()
    ):
        raise unobserved_output(int(np.argmin(observed)), name, names)


def unobserved_output(j: int, name: str, names: Sequence[str] | None) -> ValueError:
    """Return the error of an output that is missing in all rows."""
    problem = f"Output {column_name(j, names)} of {name} has no observed value of positive weight"
    remedy = "leave the output out, or give it a value in at least one row."
    return ValueError(f"{problem}; {remedy}")
