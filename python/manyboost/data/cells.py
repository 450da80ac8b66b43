"""Cells of the targets: one row and one output each; where they are and which are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.data.plain_arrays import Holds
from manyboost.errors import RowError

MISSING_LABEL = 255

#: Cells of an array that are looked at at once.
_CELLS_LOOKED_AT = 1 << 19


def missing_cells(Y: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where encoded targets are missing; classes never are."""
    if Y.dtype == np.uint8:
        return np.asarray(Y == MISSING_LABEL)
    if Y.dtype.kind == "f":
        return np.asarray(np.isnan(Y))
    return np.zeros(Y.shape, bool)


def cell_holds(name: str) -> Holds:
    """Return a function that makes the error for a cell of targets, weights or offsets."""

    def holds(place: tuple[int, ...], what: str, rest: str) -> ValueError:
        problem = f"{name} holds {what}"
        return cell_error(name, problem, place, rest) if place else ValueError(problem + rest)

    return holds


def cell_error(
    argument: str,
    problem: str,
    place: Sequence[int] | NDArray[Any],
    rest: str,
    names: Sequence[str] | None = None,
) -> RowError:
    """Return the error for a place, (row,) or (row, output), of an argument."""
    output = None if len(place) == 1 else output_name(place[1], names)
    return RowError(argument, problem, int(place[0]), rest, output)


def output_name(j: int, names: Sequence[str] | None) -> str:
    """Return what a refusal calls an output: its name if it has one, else its number."""
    return str(j) if names is None else repr(str(names[j]))


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Yield slices of rows that hold a bounded number of cells."""
    size = max(1, _CELLS_LOOKED_AT // max(1, width))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def first_cell(
    array: NDArray[Any], test: Callable[[NDArray[Any]], NDArray[np.bool_]]
) -> NDArray[np.intp] | None:
    """Return the place of the first cell that passes a test, which looks at some rows at a time."""
    for rows in row_blocks(len(array), array.size // max(1, len(array))):
        passed = test(array[rows])
        if passed.any():
            place: NDArray[np.intp] = np.argwhere(passed)[0]
            place[0] += rows.start
            return place
    return None
