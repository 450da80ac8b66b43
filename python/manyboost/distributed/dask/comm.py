"""Exchanges between ranks on Dask workers."""

from __future__ import annotations

import pickle
from typing import Any, TypeVar

import numpy as np
from distributed.protocol.serialize import Serialized

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
        self._outboxes = [_Outbox() for _ in links.addresses]

    def _reduce(self, sums: I64, maxima: F64) -> None:
        numbers = _Numbers(sums.reshape(-1), maxima.reshape(-1))
        if self.size == 2:
            self._swap(1 - self.rank, numbers, numbers)
        elif self.size <= _FEW and numbers.n_bytes <= _WORTH_A_MESSAGE:
            self._send_all(numbers.to_bytes())
            for rank in self._links.peers:
                numbers.add(self._receive(rank))
        else:
            self._reduce_in_pairs(numbers)

    def _reduce_in_pairs(self, numbers: _Numbers) -> None:
        n_levels = self.size.bit_length() - 1
        paired = 1 << n_levels
        # A rank beyond a power of two hands its numbers to another, its proxy.
        if self.rank >= paired:
            self._send_numbers(self.rank - paired, numbers)
            numbers.set(self._receive(self.rank - paired))
            return
        ward = self.rank + paired
        if ward < self.size:
            numbers.add(self._receive(ward))
        saved_copies = n_levels - 2 * (paired - 1) / paired
        if numbers.n_bytes * saved_copies > n_levels * _WORTH_A_MESSAGE:
            self._reduce_by_halves(numbers, n_levels)
        else:
            for level in range(n_levels):
                self._swap(self.rank ^ (1 << level), numbers, numbers)
        if ward < self.size:
            self._send_numbers(ward, numbers)

    def _reduce_by_halves(self, numbers: _Numbers, n_levels: int) -> None:
        way_back = []
        for level in range(n_levels):
            bit = 1 << level
            peer, halves = self.rank ^ bit, numbers.halves()
            mine, other = halves if self.rank & bit == 0 else halves[::-1]
            self._swap(peer, other, mine)
            way_back.append((peer, mine, other))
            numbers = mine
        for peer, mine, other in reversed(way_back):
            self._send_numbers(peer, mine)
            other.set(self._receive(peer))

    def _swap(self, peer: int, theirs: _Numbers, mine: _Numbers) -> None:
        """Send one array to a peer, and add what the peer sends to another, or to the same."""
        self._send_numbers(peer, theirs)
        mine.add(self._receive(peer))

    def _send_numbers(self, peer: int, numbers: _Numbers) -> None:
        large = numbers.n_bytes >= _LARGE
        self._send([(peer, self._outboxes[peer].copy(numbers) if large else numbers.to_bytes())])

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
        self._send([(rank, contents) for rank in self._links.peers])

    def _send(self, contents: list[tuple[int, bytes | memoryview]]) -> None:
        self.n_bytes_sent += sum(len(each) for _, each in contents)
        self._links.send(
            (rank, each if len(each) < _LARGE else Serialized({}, [each]))
            for rank, each in contents
        )

    def _receive(self, rank: int) -> Any:
        message = self._links.receive(rank)
        return message.frames[0] if isinstance(message, Serialized) else message


class _Outbox:
    """Two buffers for large messages to one rank: fresh memory costs more than the copy.

    Two ranks send each other messages in turn. A rank that sends its third message has received the
    second message of the other, which had received the first by then: its buffer is free again.
    """

    def __init__(self) -> None:
        self._buffers = [np.empty(0, np.uint8), np.empty(0, np.uint8)]

    def copy(self, numbers: _Numbers) -> memoryview:
        """Return a copy that is valid until the next but one."""
        buffer = self._buffers.pop(0)
        if buffer.nbytes < numbers.n_bytes:
            buffer = np.empty(numbers.n_bytes, np.uint8)
        self._buffers.append(buffer)
        used = buffer[: numbers.n_bytes]
        sums, maxima = numbers.views(used)
        sums[:], maxima[:] = numbers.sums, numbers.maxima
        return used.data


class _Numbers:
    """Sums and maxima that are sent together."""

    def __init__(self, sums: I64, maxima: F64) -> None:
        self.sums, self.maxima = sums, maxima
        self.n_bytes = sums.nbytes + maxima.nbytes

    def halves(self) -> tuple[_Numbers, _Numbers]:
        """Return views of both halves."""
        s, m = len(self.sums) // 2, len(self.maxima) // 2
        return _Numbers(self.sums[:s], self.maxima[:m]), _Numbers(self.sums[s:], self.maxima[m:])

    def to_bytes(self) -> bytes:
        """Return a copy."""
        return self.sums.tobytes() + self.maxima.tobytes()

    def views(self, contents: Any) -> tuple[I64, F64]:
        """Return sums and maxima of the same sizes in the bytes of a message."""
        octets, n_sums = np.frombuffer(contents, np.uint8), self.sums.nbytes
        return octets[:n_sums].view(np.int64), octets[n_sums:].view(np.float64)

    def add(self, contents: Any) -> None:
        """Add the sums of another rank, and take the larger maxima."""
        sums, maxima = self.views(contents)
        np.add(self.sums, sums, out=self.sums)
        np.maximum(self.maxima, maxima, out=self.maxima)

    def set(self, contents: Any) -> None:
        """Replace by those of another rank."""
        self.sums[:], self.maxima[:] = self.views(contents)
