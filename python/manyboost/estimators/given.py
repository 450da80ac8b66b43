"""The arguments of fit, before they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyboost.comm import ALONE, Comm


@dataclass(frozen=True)
class Given:
    """The arguments of fit as the user passed them, and the ranks that hold the other rows."""

    X: Any
    y: Any
    sample_weight: Any = None
    X_val: Any = None
    Y_val: Any = None
    sample_weight_val: Any = None
    offset: Any = None
    offset_val: Any = None
    comm: Comm = ALONE
    row_numbers: NDArray[np.uint64] | None = None

    def refuse_validation_alone(self) -> None:
        """Refuse arguments that belong together and are not all there."""
        if (self.X_val is None) != (self.Y_val is None):
            given, missing = ("X_val", "Y_val") if self.Y_val is None else ("Y_val", "X_val")
            raise ValueError(f"{given} was given without {missing}; pass both or neither.")
        if self.X_val is None:
            for name in ("sample_weight_val", "offset_val"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} was given without X_val and Y_val; pass all.")
        elif (self.offset is None) != (self.offset_val is None):
            pair = ("offset_val", "offset") if self.offset is None else ("offset", "offset_val")
            raise ValueError(f"{pair[0]} was given without {pair[1]}; pass both or neither.")
