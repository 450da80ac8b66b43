"""Hierarchies of labels: who is above whom, and values that agree with it.

A hierarchy is a directed graph without cycles: a label may have several parents, as in an ontology.
Values agree with it if no label has more than any of its ancestors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.arrays import F64
from manyboost.data.cells import column_name
from manyboost.data.labels import Classes
from manyboost.errors import warn
from manyboost.spelling import listing, number_of

PARAMETER = "label_hierarchy"
_COLLECTIONS = (list, tuple, set, frozenset)


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Pairs of a label and one of its parents, by number, ascending."""

    n_labels: int
    children: NDArray[np.intp]
    parents: NDArray[np.intp]

    @classmethod
    def of(cls, given: Any, classes: Classes) -> Hierarchy:
        """Read the parameter, which names labels by their names or numbers; refuse cycles."""
        if classes.kind != "multilabel":
            held = "columns of classes" if classes.kind == "columns" else "one class per row"
            problem = f"{PARAMETER} was given, but y holds {held}"
            raise ValueError(f"{problem}; pass an indicator or sets of labels, or leave it out.")
        values, n_labels = classes.values.tolist(), len(classes.values)
        numbers: dict[Any, int] = {value: j for j, value in enumerate(values)}
        is_text = isinstance(values[0], str)

        def place(label: Any) -> int:
            if is_text or not isinstance(label, Number):
                return number_of(PARAMETER, label, "output", n_labels, numbers if is_text else None)
            if label not in numbers:  # labels that are numbers are their own names
                problem = f"{PARAMETER} names the label {label}, which y does not have"
                raise ValueError(f"{problem}; the labels are {listing(values)}.")
            return numbers[label]

        pairs = sorted({(place(child), place(parent)) for child, parent in _pairs(given)})
        columns = np.array(pairs, np.intp).reshape(-1, 2).T
        hierarchy = cls(n_labels, columns[0].copy(), columns[1].copy())
        if (cycle := hierarchy._cycle()) is not None:
            shown = " -> ".join(column_name(j, values if is_text else None) for j in cycle)
            raise ValueError(f"{PARAMETER} has the cycle {shown}; leave out one of these pairs.")
        return hierarchy

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """All labels, parents before their children; those of a cycle are missing."""
        n_above = np.bincount(self.children, minlength=self.n_labels)
        below = self._neighbours(self.parents, self.children)
        order = np.flatnonzero(n_above == 0).tolist()
        for label in order:  # grows
            for child in below[label]:
                n_above[child] -= 1
                if n_above[child] == 0:
                    order.append(child)
        return np.array(order, np.intp)

    def _neighbours(self, of: NDArray[np.intp], neighbours: NDArray[np.intp]) -> list[list[int]]:
        lists: list[list[int]] = [[] for _ in range(self.n_labels)]
        for label, other in zip(of.tolist(), neighbours.tolist(), strict=True):
            lists[label].append(other)
        return lists

    def _cycle(self) -> list[int] | None:
        """Return labels on a cycle, from child to parent, or None."""
        left = set(range(self.n_labels)).difference(self.order.tolist())
        if not left:
            return None
        above, path = self._neighbours(self.children, self.parents), [min(left)]
        # A label that is left is on a cycle or below one, and so is one of its parents.
        while (following := min(left.intersection(above[path[-1]]))) not in path:
            path.append(following)
        return [*path[path.index(following) :], following]

    @cached_property
    def _upwards(self) -> list[tuple[int, int]]:
        """Pairs (child, parent), those with a label as parent before those with it as child."""
        rank = np.argsort(self.order)
        below_first = np.argsort(-rank[self.children], kind="stable")
        columns = self.children[below_first].tolist(), self.parents[below_first].tolist()
        return list(zip(*columns, strict=True))

    def consistent(self, values: F64) -> F64:
        """Return values (n_rows, n_labels) that agree with the hierarchy.

        Each label has the most of itself and its descendants.
        """
        most = np.array(values.T, order="C")
        for child, parent in self._upwards:
            np.maximum(most[parent], most[child], out=most[parent])
        return np.ascontiguousarray(most.T)

    def closed(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return encoded labels (n_rows, n_labels) with all ancestors of those that are present."""
        result = labels
        for child, parent in self._upwards:
            lacking = (result[:, child] == 1) & (result[:, parent] != 1)
            if lacking.any():
                if result is labels:  # those of the user stay as they are
                    result = labels.copy()
                result[lacking, parent] = 1
        return result

    def close_targets(self, labels: NDArray[Any], names: Any, name: str) -> NDArray[Any]:
        """Return the closed labels of training rows; say so if a label lacked an ancestor."""
        result = self.closed(labels)
        if result is labels:
            return labels
        added = (result == 1) & (labels == 0)
        if added.any():
            row, parent = np.argwhere(added)[0].tolist()
            n_rows = int(added.any(axis=1).sum())
            rows = f"{n_rows} row{'s' if n_rows > 1 else ''}"
            message = (
                f"{name} lacks labels above present ones in {rows}, such as "
                f"{column_name(parent, names)} in row {row}; {PARAMETER} adds them."
            )
            warn(message)
        return result


def _pairs(given: Any) -> Iterator[tuple[Any, Any]]:
    """Yield children and parents of a mapping, or of a list of pairs."""
    if isinstance(given, Mapping):
        for child, parents in given.items():
            several = parents if isinstance(parents, _COLLECTIONS) else [parents]
            yield from ((child, parent) for parent in several if parent is not None)
        return
    for pair in given:
        yield pair[0], pair[1]


def is_hierarchy(value: Any) -> bool:
    """Whether a value is a mapping of labels to their parents, or a list of pairs of labels."""
    if isinstance(value, Mapping):
        return True
    is_list = isinstance(value, list | tuple)
    return is_list and all(isinstance(e, list | tuple) and len(e) == 2 for e in value)
