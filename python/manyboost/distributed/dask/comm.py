"""Exchanges between ranks on Dask workers."""

from __future__ import annotations

import pickle
from typing import Any, TypeVar

import numpy as np
from distributed.protocol.serialize import Serialized
from numpy.typing import NDArray

from manyboost.comm import F64, I64, Comm
from manyboost.distributed.dask.links import Links

_T = TypeVar("_T")

# Sending so many bytes takes about as long as the fixed cost of a message.
_WORTH_A_MESSAGE = 1 << 16
# Up to so many ranks, each sends a small array to all others.
_FEW = 4
# Messages of at least so many bytes go as a frame of their own, which saves two copies.
_LARGE = 1 << 16


class DaskComm(Comm):
    """Ranks on Dask workers, one on each.

    A few ranks send a small array to each other, and each adds them up: one wait. Otherwise ranks
    swap arrays in pairs, first with the neighbour, then with the rank two apart, four, and so on
    (recursive doubling): log2(size) waits. A large array is halved at each step, and put together
    on the way back (recursive halving): twice as many waits, but each rank sends at most twice the
    bytes of the array, however many ranks there are.
    """

    def __init__(self, links: Links) -> None:
        self._links = links
        self.rank = links.rank
        self.size = len(links.addresses)
        self.n_bytes_sent = 0  # by this rank to all others, in reductions and otherwise
        # Memory for what arrives from each rank: fresh memory would cost more than the copy.
        self._rooms = [np.empty(0, np.uint8) for _ in links.addresses]

    def _reduce(self, sums: I64, maxima: F64) -> None:
        numbers = _Numbers(sums.reshape(-1), maxima.reshape(-1))
        if self.size == 2 or (self.size <= _FEW and numbers.n_bytes <= _WORTH_A_MESSAGE):
            peers = self._links.peers
            for contents in self._swap(
                dict.fromkeys(peers, numbers), dict.fromkeys(peers, numbers)
            ):
                numbers.add(contents)
        else:
            self._reduce_in_pairs(numbers)

    def _reduce_in_pairs(self, numbers: _Numbers) -> None:
        n_levels = self.size.bit_length() - 1
        paired = 1 << n_levels
        # A rank beyond a power of two hands its numbers to another, its proxy.
        if self.rank >= paired:
            proxy = self.rank - paired
            self._swap({proxy: numbers}, {})
            numbers.set(*self._swap({}, {proxy: numbers}))
            return
        ward = self.rank + paired
        if ward < self.size:
            numbers.add(*self._swap({}, {ward: numbers}))
        saved_copies = n_levels - 2 * (paired - 1) / paired
        if numbers.n_bytes * saved_copies > n_levels * _WORTH_A_MESSAGE:
            self._reduce_by_halves(numbers, n_levels)
        else:
            for level in range(n_levels):
                peer = self.rank ^ (1 << level)
                numbers.add(*self._swap({peer: numbers}, {peer: numbers}))
        if ward < self.size:
            self._swap({ward: numbers}, {})

    def _reduce_by_halves(self, numbers: _Numbers, n_levels: int) -> None:
        way_back = []
        for level in range(n_levels):
            bit = 1 << level
            peer, halves = self.rank ^ bit, numbers.halves()
            mine, other = halves if self.rank & bit == 0 else halves[::-1]
            mine.add(*self._swap({peer: other}, {peer: mine}))
            way_back.append((peer, mine, other))
            numbers = mine
        for peer, mine, other in reversed(way_back):
            other.set(*self._swap({peer: mine}, {peer: other}))

    def _swap(
        self, outgoing: dict[int, _Numbers], like: dict[int, _Numbers]
    ) -> list[NDArray[np.uint8]]:
        """Send numbers to some ranks; return as many of others, ``like`` those given."""
        contents = {rank: numbers.octets() for rank, numbers in outgoing.items()}
        self.n_bytes_sent += sum(map(len, contents.values()))
        rooms = {rank: self._room(rank, numbers.n_bytes) for rank, numbers in like.items()}
        self._links.swap(contents, {rank: room.data for rank, room in rooms.items()})
        return list(rooms.values())

    def _room(self, rank: int, n_bytes: int) -> NDArray[np.uint8]:
        if self._rooms[rank].nbytes < n_bytes:
            self._rooms[rank] = np.empty(n_bytes, np.uint8)
        return self._rooms[rank][:n_bytes]

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Return the value that the rank ``root`` passes."""
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
        peers = self._links.peers
        self.n_bytes_sent += len(contents) * len(peers)
        message = contents if len(contents) < _LARGE else Serialized({}, [contents])
        self._links.send((rank, message) for rank in peers)

    def _receive(self, rank: int) -> Any:
        message = self._links.receive(rank)
        return message.frames[0] if isinstance(message, Serialized) else message


class _Numbers:
    """Sums and maxima that are sent together."""

    def __init__(self, sums: I64, maxima: F64) -> None:
        self.sums, self.maxima = sums, maxima
        self.n_bytes = sums.nbytes + maxima.nbytes

    def halves(self) -> tuple[_Numbers, _Numbers]:
        """Return views of both halves."""
        s, m = len(self.sums) // 2, len(self.maxima) // 2
        return _Numbers(self.sums[:s], self.maxima[:m]), _Numbers(self.sums[s:], self.maxima[m:])

    def octets(self) -> memoryview:
        """Return the bytes of both, those of one array where they lie."""
        if not (self.sums.size and self.maxima.size):
            return (self.sums if self.sums.size else self.maxima).data.cast("B")
        return memoryview(self.sums.tobytes() + self.maxima.tobytes())

    def views(self, octets: NDArray[np.uint8]) -> tuple[I64, F64]:
        """Return sums and maxima of the same sizes in the bytes of another rank."""
        n_sums = self.sums.nbytes
        return octets[:n_sums].view(np.int64), octets[n_sums:].view(np.float64)

    def add(self, octets: NDArray[np.uint8]) -> None:
        """Add the sums of another rank, and take the larger maxima."""
        sums, maxima = self.views(octets)
        np.add(self.sums, sums, out=self.sums)
        np.maximum(self.maxima, maxima, out=self.maxima)

    def set(self, octets: NDArray[np.uint8]) -> None:
        """Replace by those of another rank."""
        self.sums[:], self.maxima[:] = self.views(octets)
