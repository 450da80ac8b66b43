"""What a fit is given: checked and encoded rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.arrays import Mask
from manyboost.data.categories import Categories
from manyboost.data.rows import Rows


@dataclass(frozen=True)
class Split:
    """A split of the rows that were passed to fit; some may be in neither part."""

    train: Mask  # (n_given,)
    test: Mask


@dataclass(frozen=True)
class TrainingData:
    """Rows, and what belongs to them."""

    rows: Rows
    validation: Rows | None
    categories: Categories
    n_outputs: int
    n_given: int  # rows that were passed, of which ``rows`` may be some
    n_levels: int = 1  # outputs of the model for each output of y
    names: NDArray[Any] | None = None  # of the features
    output_names: list[str] | None = None
    target_names: Sequence[str] | None = None  # of outputs, of classes, or of columns of these
    groups: NDArray[np.intp] | None = None  # (n_given,), which folds keep together
    splits: tuple[Split, ...] | None = None  # those of a splitter; the last sets rows apart

    @property
    def is_one_column(self) -> bool:
        """Whether y has one column: one target, one label, or classes."""
        return self.rows.kind.one_class_per_row or self.n_outputs == self.n_levels
