"""Exchanges between ranks on Dask workers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
from distributed.protocol.serialize import Serialized
from numpy.typing import NDArray

from manyboost.distributed.comm import F64, I64, Comm
from manyboost.distributed.dask.links import Links

_T = TypeVar("_T")

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

    Attributes
    ----------
    n_bytes_sent : int
        Bytes that this rank sent to all others together, reductions and all else.
    """

    def __init__(self, links: Links) -> None:
        self._links = links
        self.rank = links.rank
        self.size = len(links.addresses)
        self.n_bytes_sent = 0

    def _reduce(self, sums: I64, maxima: F64) -> None:
        parts = _Parts(sums.reshape(-1), maxima.reshape(-1))
        n_bytes = sums.nbytes + maxima.nbytes
        peers = self._links.peers
        if n_bytes * (self.size - 2) <= self.size * _WORTH_A_MESSAGE:
            self._send_all(parts.to_bytes())
            for rank in peers:
                parts.add(self._receive(rank))
            return
        slices = {rank: parts.slice(rank, self.size) for rank in range(self.size)}
        mine = slices[self.rank]
        self._send((rank, slices[rank].to_bytes()) for rank in peers)
        for rank in peers:
            mine.add(self._receive(rank))
        self._send_all(mine.to_bytes())
        for rank in peers:
            slices[rank].set(self._receive(rank))

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Return what the rank ``root`` calls this with."""
        if self.rank != root:
            return pickle.loads(self._receive(root))
        self._send_all(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
        return value

    def gather(self, value: _T) -> list[_T]:
        """Return the values of all ranks, in their order."""
        self._send_all(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
        return [
            value if rank == self.rank else pickle.loads(self._receive(rank))
            for rank in range(self.size)
        ]

    def _send_all(self, contents: bytes) -> None:
        self._send((rank, contents) for rank in self._links.peers)

    def _send(self, contents: Iterable[tuple[int, bytes]]) -> None:
        messages = [(rank, _envelope(each)) for rank, each in contents]
        self.n_bytes_sent += sum(len(_contents(message)) for _, message in messages)
        self._links.send(messages)

    def _receive(self, rank: int) -> Any:
        return _contents(self._links.receive(rank))


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
