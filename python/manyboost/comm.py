"""What the ranks of a distributed fit exchange; nothing else depends on how they are connected.

Every *rank* runs the same fit on its own rows. If a number depends on all rows, the ranks exchange
their sums or maxima and continue with the same number; all end with the same model, byte for byte.
One machine is a single rank (:data:`ALONE`), which exchanges nothing.
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
    """A rank was lost, or training was cancelled.

    Attributes
    ----------
    round, unfinished : int, dict or None
        The round that was not completed, 0 before the first; attributes of the estimator with its
        complete rounds, from which training can continue.
    """

    round: int = 0
    unfinished: dict[str, Any] | None = None


class Comm(ABC):
    """A set of ranks, seen from one of them.

    All ranks call the same methods in the same order, with arrays of the same shapes; a call
    returns once all ranks have called. Failures raise :class:`CommError`.

    Attributes
    ----------
    rank, size : int
        The number of this rank, and the number of ranks.
    n_exchanges, n_bytes : int
        Number of reductions so far, and the bytes of the arrays that this rank passed to them.
    """

    rank: int = 0
    size: int = 1
    n_exchanges: int = 0
    n_bytes: int = 0

    @abstractmethod
    def _reduce(self, sums: I64, maxima: F64) -> None:
        """Replace sums and maxima of this rank by those of all ranks, in one exchange."""

    @abstractmethod
    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Return the value that the rank ``root`` passes; anything that can be pickled."""

    def reduce(self, sums: I64, maxima: F64) -> None:
        """Replace sums (modulo 2**64) and maxima of this rank by those of all ranks."""
        if self.size > 1:
            self.n_exchanges += 1
            self.n_bytes += sums.nbytes + maxima.nbytes
            self._reduce(sums, maxima)

    def sum(self, array: I64) -> None:
        """Replace integers by their sums over the ranks."""
        self.reduce(array, np.empty(0))

    def max(self, array: F64) -> None:
        """Replace numbers by their maxima over the ranks."""
        self.reduce(np.empty(0, np.int64), array)

    def gather(self, value: _T) -> list[_T]:
        """Return the values of all ranks, in their order."""
        if self.size == 1:
            return [value]
        return [self.broadcast(value, root) for root in range(self.size)]

    def subset(self, ranks: list[int]) -> Comm | None:
        """Return a set of these ranks only, None on the others; all ranks call this."""
        raise NotImplementedError(f"{type(self).__name__} cannot leave out ranks")

    def fail(self, error: BaseException) -> None:  # noqa: B027 (optional)
        """Note that this rank cannot continue; called before the error is raised."""

    def total(self, number: int) -> int:
        """Return the sum of a number over all ranks."""
        return int(self.totals([number])[0])

    def any(self, flag: bool | np.bool_) -> bool:
        """Return whether a flag is true on any rank."""
        return bool(self.largest([flag])[0] > 0)

    def all(self, flag: bool | np.bool_) -> bool:
        """Return whether a flag is true on all ranks."""
        return not self.any(not flag)

    def totals(self, numbers: Any) -> I64:
        """Return the sums of integers over all ranks."""
        array = np.array(numbers, np.int64, order="C")
        self.sum(array.reshape(-1))
        return array

    def largest(self, numbers: Any) -> F64:
        """Return the largest of numbers over all ranks."""
        array = np.array(numbers, np.float64, order="C")
        self.max(array.reshape(-1))
        return array

    def unique(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the distinct values of all ranks, sorted."""
        return np.unique(np.concatenate(self.gather(np.unique(values))))


class Alone(Comm):
    """One rank."""

    def _reduce(self, sums: I64, maxima: F64) -> None:
        """Exchange nothing."""

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Return the value."""
        return value

    def subset(self, ranks: list[int]) -> Comm | None:
        """Return the one rank, if it is chosen."""
        return self if ranks == [0] else None


ALONE = Alone()


class Threads(Comm):
    """Ranks that are threads of one process, to try out a distributed fit.

    >>> Threads.run(3, lambda comm: comm.total(comm.rank))
    [3, 3, 3]
    """

    def __init__(self, rank: int, size: int, shared: _Shared) -> None:
        self.rank, self.size, self.shared = rank, size, shared

    @classmethod
    def run(cls, size: int, work: Callable[[Comm], _T]) -> list[_T]:
        """Call ``work(comm)`` on ``size`` ranks; return the result of each."""
        shared = _Shared(size)
        results: list[Any] = [None] * size
        errors: list[BaseException] = []

        def start(rank: int) -> None:
            try:
                results[rank] = work(cls(rank, size, shared))
            except BaseException as error:  # raised below
                errors.append(error)
                shared.abort()

        threads = [threading.Thread(target=start, args=(rank,)) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for error in sorted(errors, key=lambda error: isinstance(error, CommError)):
            raise error
        return results

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in their order."""
        self.shared.values[self.rank] = value
        try:
            self.shared.barrier.wait()
            values = list(self.shared.values)
            self.shared.barrier.wait()
        except threading.BrokenBarrierError:
            raise CommError("Another rank failed; training ended.") from None
        return values

    def _reduce(self, sums: I64, maxima: F64) -> None:
        values = self.gather((sums.copy(), maxima.copy()))
        shapes = {(len(s), len(m)) for s, m in values}
        if len(shapes) > 1:
            raise AssertionError(f"ranks are out of step: {shapes}")
        sums[:] = np.add.reduce([s for s, _ in values])
        maxima[:] = np.maximum.reduce([m for _, m in values])

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Return the value that the rank ``root`` passes."""
        return self.gather(value)[root]

    def subset(self, ranks: list[int]) -> Comm | None:
        """Return a set of these ranks only."""
        shared = _Shared(len(ranks))
        if self.rank == ranks[0]:
            self.shared.subsets.append(shared)
        shared = self.broadcast(shared, ranks[0])
        if self.rank not in ranks:
            return None
        return Threads(ranks.index(self.rank), len(ranks), shared)


class _Shared:
    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.values: list[Any] = [None] * size
        self.subsets: list[_Shared] = []

    def abort(self) -> None:
        """End all ranks that wait, in a subset too."""
        for each in (self, *self.subsets):
            each.barrier.abort()
