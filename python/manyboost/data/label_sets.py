"""Labels given as sets: for every row the labels that it has.

A row is a set, or a list or tuple if the rows cannot be read as an indicator: their lengths differ
or they hold text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.data.frames import is_missing, is_series
from manyboost.memory import check_labels

_ROWS = (list, tuple, set, frozenset)


def read_label_sets(y: Any, name: str = "y") -> list[frozenset[Any]] | None:
    """Return the labels of every row, or None if ``y`` is something else."""
    is_list = isinstance(y, list | tuple)
    if is_list:
        rows = list(y)
    elif (isinstance(y, np.ndarray) and y.ndim == 1) or is_series(y):
        if not str(y.dtype).lower().startswith(("object", "list", "array")):
            return None
        rows = y.tolist() if isinstance(y, np.ndarray) else y.to_list()
    else:
        return None
    if not any(isinstance(each, _ROWS) for each in rows):
        return None
    for i, each in enumerate(rows):
        if not isinstance(each, _ROWS):
            raise ValueError(
                f"{name} holds {each!r} in row {i} but sets of labels in others; pass a set of "
                "labels for every row, an empty one where there is none."
            )
    if is_list and not any(isinstance(each, set | frozenset) for each in rows):
        text = {value for each in rows for value in each if isinstance(value, str)}
        if len({len(each) for each in rows}) == 1 and text <= {"0", "1"}:
            return None
    for i, each in enumerate(rows):
        for label in each:
            if not isinstance(label, str | int | float | np.generic) or is_missing(label):
                raise ValueError(
                    f"{name} has the label {label!r} in row {i}; labels must be text or numbers."
                )
    return [frozenset(each) for each in rows]


def labels_of(sets: Iterable[frozenset[Any]]) -> NDArray[Any]:
    """All labels, sorted."""
    labels = frozenset().union(*sets)
    if not labels:
        raise ValueError("y has no label in any row; a classifier needs at least one label.")
    try:
        ordered = sorted(labels)
    except TypeError:
        types = sorted({type(label).__name__ for label in labels})
        raise ValueError(
            f"y mixes labels of the types {' and '.join(types)}; bring them to one type."
        ) from None
    text = any(isinstance(label, str) for label in labels)
    return np.array(ordered, dtype=object if text else None)


def indicator(
    sets: list[frozenset[Any]], labels: NDArray[Any], name: str = "y"
) -> NDArray[np.uint8]:
    """Return 0/1 for every row and label (n_rows, n_labels); labels must be known."""
    column = {label: j for j, label in enumerate(labels.tolist())}
    check_labels(len(sets), len(labels), name)
    marks = np.zeros((len(sets), len(labels)), np.uint8)
    for i, each in enumerate(sets):
        for label in each:
            if label not in column:
                raise ValueError(
                    f"{name} has the label {label!r} in row {i}, which the model does not know; "
                    "fit on rows of all labels."
                )
            marks[i, column[label]] = 1
    return marks
