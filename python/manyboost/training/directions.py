"""Directions: where a weak model would move the raw predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from manyboost import _core
from manyboost.arrays import F32, F64, U32
from manyboost.data.weights import Weights

# One output, a half-open range of outputs, or None for all outputs.
Outputs: TypeAlias = int | tuple[int, int] | None


@dataclass(frozen=True)
class SparseLeaves:
    """Values of a few outputs in each leaf; the others are zero."""

    starts: NDArray[np.int64]  # (n_leaves + 1,): where the values of each leaf begin
    outputs: U32  # ascending in each leaf
    values: Any  # F64, and F32 as they are added

    def __len__(self) -> int:
        return len(self.starts) - 1

    def with_values(self, values: F32 | F64) -> SparseLeaves:
        """Return the same leaves with other values."""
        return replace(self, values=values)

    def arrays(self) -> tuple[NDArray[np.int64], U32, F32]:
        """Return the arrays as the core takes them."""
        return self.starts, self.outputs, np.asarray(self.values, np.float32)


class Direction(NamedTuple):
    """The direction g of a weak model.

    ``values`` has a row for each leaf, or for each training row if ``leaf_of_row`` is None. It has
    one column for each output, or a single column that serves all outputs.
    """

    leaf_of_row: U32 | None
    values: F32

    def of_rows(self) -> F32:
        """Return the direction of each row (n_rows, n_outputs or 1)."""
        return self.values if self.leaf_of_row is None else self.values[self.leaf_of_row]

    def reach(self, pool: _core.Pool) -> F64:
        """Return the largest |g| of each column, over all ranks."""
        largest: F64 = np.abs(self.values).max(axis=0, initial=0).astype(np.float64)
        # Leaf values are the same on every rank; values of rows are not.
        return largest if self.leaf_of_row is not None else pool.largest(largest)


class Line(NamedTuple):
    """Raw predictions ``raw + ρ g`` for all ρ: where a step is searched for.

    The weights are those of the rows that the step is fitted to, ``outputs`` those that move.
    """

    raw: F32
    weights: Weights
    direction: Direction
    outputs: Outputs = None


class Move(NamedTuple):
    """What a tree adds to the raw predictions of the training rows.

    ``values`` are leaf values (n_leaves, n_outputs or 1), or those of a few outputs. ``steps``
    (n_outputs,) multiply a single column of values; None: values are added as they are.
    """

    leaf_of_row: U32
    values: Any  # F32, or SparseLeaves
    steps: F32 | None = None
