"""The one seam of distributed training: what the machines that share a fit say to each other.

Every *rank* runs the same fit on its own rows. Where a number depends on all rows, the ranks add up
theirs, or take the largest, and go on with the same number; all end with the same model, byte for
byte. One machine is a single rank (:data:`ALONE`), for which nothing is exchanged.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
_T = TypeVar("_T")


class CommError(RuntimeError):
    """A rank was lost, or training was ended from outside.

    Attributes
    ----------
    round : int
        The round of training that did not end; 0 before the first.
    unfinished : dict or None
        Attributes of the estimator with its complete rounds, from which training can go on.
    """

    round: int = 0
    unfinished: dict[str, Any] | None = None


class Comm(ABC):
    """A set of ranks, seen from one of them.

    All ranks call the same methods in the same order, with arrays of the same shapes; a call
    returns when all have come. What goes wrong raises :class:`CommError`.

    Attributes
    ----------
    rank, size : int
        The number of this rank, and how many there are.
    n_exchanges, n_bytes : int
        Reductions so far, and the bytes of numbers that this rank brought to them.
    """

    rank: int = 0
    size: int = 1
    n_exchanges: int = 0
    n_bytes: int = 0

    @abstractmethod
    def _reduce(self, sums: I64, maxima: F64) -> None:
        """Replace sums and maxima of this rank by those of all, in one exchange."""

    @abstractmethod
    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Return what the rank ``root`` calls this with; anything that can be pickled."""

    def reduce(self, sums: I64, maxima: F64) -> None:
        """Replace sums (around the end of 64 bits) and maxima of this rank by those of all."""
        if self.size > 1:
            self.n_exchanges += 1
            self.n_bytes += sums.nbytes + maxima.nbytes
            self._reduce(sums, maxima)

    def sum(self, array: I64) -> None:
        """Replace integers by their sums over all ranks."""
        self.reduce(array, np.empty(0))

    def max(self, array: F64) -> None:
        """Replace numbers by the largest over all ranks."""
        self.reduce(np.empty(0, np.int64), array)

    def gather(self, value: _T) -> list[_T]:
        """Return the values of all ranks, in their order."""
        if self.size == 1:
            return [value]
        return [self.broadcast(value, root) for root in range(self.size)]

    def subset(self, ranks: list[int]) -> Comm | None:
        """Return these ranks as a set of their own, None for the others; all ranks call this."""
        raise NotImplementedError(f"{type(self).__name__} cannot leave out ranks")

    def fail(self, error: BaseException) -> None:  # noqa: B027 (most need not do anything)
        """Take note that this rank cannot go on; called before the error is raised."""

    # What is made of these.

    def total(self, number: int) -> int:
        """Return the sum of a number over all ranks."""
        array = np.array([number], np.int64)
        self.sum(array)
        return int(array[0])

    def any(self, flag: bool | np.bool_) -> bool:
        """Return whether a flag is true on any rank."""
        return bool(self.largest(np.array([float(flag)]))[0] > 0)

    def all(self, flag: bool | np.bool_) -> bool:
        """Return whether a flag is true on all ranks."""
        return not self.any(not flag)

    def totals(self, numbers: Any) -> I64:
        """Return the sums of integers over all ranks."""
        array = np.ascontiguousarray(numbers, dtype=np.int64).copy()
        self.sum(array.reshape(-1))
        return array

    def largest(self, numbers: Any) -> F64:
        """Return the largest of numbers over all ranks."""
        array = np.ascontiguousarray(numbers, dtype=np.float64).copy()
        self.max(array.reshape(-1))
        return array

    def unique(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the distinct values of all ranks, sorted."""
        return np.unique(np.concatenate(self.gather(np.unique(values))))


class Alone(Comm):
    """One rank."""

    def _reduce(self, sums: I64, maxima: F64) -> None:
        """Nothing to exchange."""

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Return the value."""
        return value

    def subset(self, ranks: list[int]) -> Comm | None:
        """Return the one rank, if it is wanted."""
        return self if ranks == [0] else None


ALONE = Alone()


class Threads(Comm):
    """Ranks that are threads of one process: to try out what other machines would do.

    >>> Threads.run(3, lambda comm: comm.total(comm.rank))
    [3, 3, 3]
    """

    def __init__(self, rank: int, size: int, shared: _Shared) -> None:
        self.rank, self.size, self.shared = rank, size, shared

    @classmethod
    def run(cls, size: int, work: Callable[[Comm], _T]) -> list[_T]:
        """Call ``work(comm)`` on ``size`` ranks; returns what each returned."""
        shared = _Shared(size)
        results: list[Any] = [None] * size
        errors: list[BaseException] = []

        def start(rank: int) -> None:
            try:
                results[rank] = work(cls(rank, size, shared))
            except BaseException as error:  # reaches the caller below
                errors.append(error)
                shared.barrier.abort()

        threads = [threading.Thread(target=start, args=(rank,)) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for error in sorted(errors, key=lambda error: isinstance(error, CommError)):
            raise error
        return results

    def _meet(self, mine: Any) -> list[Any]:
        """Return what all ranks brought."""
        self.shared.brought[self.rank] = mine
        try:
            self.shared.barrier.wait()
            brought = list(self.shared.brought)
            self.shared.barrier.wait()
        except threading.BrokenBarrierError:
            raise CommError("Another rank failed; training ended.") from None
        return brought

    def _reduce(self, sums: I64, maxima: F64) -> None:
        brought = self._meet((sums.copy(), maxima.copy()))
        shapes = {(len(s), len(m)) for s, m in brought}
        if len(shapes) > 1:
            raise AssertionError(f"ranks are out of step: {shapes}")
        sums[:] = np.add.reduce([s for s, _ in brought])
        maxima[:] = np.maximum.reduce([m for _, m in brought])

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Return what the rank ``root`` calls this with."""
        return self._meet(value)[root]

    def subset(self, ranks: list[int]) -> Comm | None:
        """Return these ranks as a set of their own."""
        shared = self.broadcast(_Shared(len(ranks)), ranks[0])
        if self.rank not in ranks:
            return None
        return Threads(ranks.index(self.rank), len(ranks), shared)


class _Shared:
    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.brought: list[Any] = [None] * size
