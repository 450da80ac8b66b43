"""Exchanges between ranks on Dask workers."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from distributed.protocol.serialize import Serialized
from numpy.typing import NDArray

from manyboost.distributed.comm import Comm
from manyboost.distributed.dask.links import Links

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

# Bytes that cost about as much as one more message, whatever it holds.
_WORTH_A_MESSAGE = 1 << 16

# Bytes from which on a message is sent beside its envelope, which saves two copies.
_LARGE = 1 << 16


class DaskComm(Comm):
    """Ranks on Dask workers, one on each.

    An array is either sent to all, who then do the same sum: one message to each peer, and one
    wait. Or, if it is large and there are more than two ranks, it is cut in as many slices as there
    are ranks: every rank gets its slice from all and sends their sum to all, which is two waits for
    far fewer bytes.
    """

    def __init__(self, links: Links) -> None:
        self._links = links
        self.rank = links.rank
        self.size = len(links.addresses)

    def sum(self, array: I64) -> None:
        """Sum an array over all ranks, in place."""
        self.reduce(array, np.empty(0))

    def max(self, array: F64) -> None:
        """Take the maximum of an array over all ranks, in place."""
        self.reduce(np.empty(0, np.int64), array)

    def reduce(self, sums: I64, maxima: F64) -> None:
        """Sum one array and take the maximum of another, in one exchange."""
        parts = _Parts(sums.reshape(-1), maxima.reshape(-1))
        n_bytes = sums.nbytes + maxima.nbytes
        peers = self._peers()
        if n_bytes * (self.size - 2) <= self.size * _WORTH_A_MESSAGE:
            message = _envelope(parts.to_bytes())
            self._links.send((rank, message) for rank in peers)
            for rank in peers:
                parts.add(_contents(self._links.receive(rank)))
            return
        mine = parts.slice(self.rank, self.size)
        slices = {rank: parts.slice(rank, self.size) for rank in peers}
        self._links.send((rank, _envelope(part.to_bytes())) for rank, part in slices.items())
        for rank in peers:
            mine.add(_contents(self._links.receive(rank)))
        message = _envelope(mine.to_bytes())
        self._links.send((rank, message) for rank in peers)
        for rank in peers:
            slices[rank].set(_contents(self._links.receive(rank)))

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Return the value of one rank on all ranks."""
        peers = self._peers()
        if self.rank != root:
            return pickle.loads(_contents(self._links.receive(root)))
        message = _envelope(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
        self._links.send((rank, message) for rank in peers)
        return value

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in order of ranks."""
        peers = self._peers()
        message = _envelope(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
        self._links.send((rank, message) for rank in peers)
        values = {rank: pickle.loads(_contents(self._links.receive(rank))) for rank in peers}
        values[self.rank] = value
        return [values[rank] for rank in range(self.size)]

    def _peers(self) -> list[int]:
        if self._links.failure is not None:
            raise self._links.failure
        return self._links.peers


class _Parts:
    """Sums and maxima that travel together."""

    def __init__(self, sums: I64, maxima: F64) -> None:
        self.sums, self.maxima = sums, maxima

    def slice(self, rank: int, size: int) -> _Parts:
        """The part that is combined by a rank."""

        def cut(array: NDArray[Any]) -> NDArray[Any]:
            return array[len(array) * rank // size : len(array) * (rank + 1) // size]

        return _Parts(cut(self.sums), cut(self.maxima))

    def to_bytes(self) -> bytes:
        """A copy."""
        return (
            self.sums.tobytes() + self.maxima.tobytes() if self.maxima.size else self.sums.tobytes()
        )

    def add(self, other: Any) -> None:
        """Combine with those of another rank."""
        self._with(other, np.add, np.maximum)

    def set(self, other: Any) -> None:
        """Replace by others."""
        self._with(other, lambda _, theirs, out: np.copyto(out, theirs))

    def _with(self, other: Any, on_sums: Callable[..., Any], on_maxima: Any = None) -> None:
        n_sums = len(self.sums)
        if n_sums:
            on_sums(self.sums, np.frombuffer(other, np.int64, n_sums), out=self.sums)
        if len(self.maxima):
            theirs = np.frombuffer(other, np.float64, offset=8 * n_sums)
            (on_maxima or on_sums)(self.maxima, theirs, out=self.maxima)


def _envelope(contents: bytes) -> Any:
    return contents if len(contents) < _LARGE else Serialized({}, [contents])


def _contents(message: Any) -> Any:
    return message.frames[0] if isinstance(message, Serialized) else message
