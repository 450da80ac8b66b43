"""Stand-in."""

from __future__ import annotations

import pickle
from abc import ABC
from typing import Any

import numpy as np


class CommError(RuntimeError):
    """A peer was lost."""


class Comm(ABC):
    """Stand-in."""

    rank: int
    size: int
    n_bytes: int = 0
    n_exchanges: int = 0

    def sum(self, array: Any) -> None:
        self.reduce(array, np.empty(0))

    def max(self, array: Any) -> None:
        self.reduce(np.empty(0, np.int64), array)

    def reduce(self, sums: Any, maxima: Any) -> None:
        raise NotImplementedError

    def broadcast(self, value: Any, root: int = 0) -> Any:
        raise NotImplementedError

    def gather(self, value: Any) -> list[Any]:
        return [self.broadcast(value, root) for root in range(self.size)]
