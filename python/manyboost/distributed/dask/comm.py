"""Exchanges between ranks on Dask workers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
from distributed.protocol.serialize import Serialized

from manyboost.comm import F64, I64, Comm
from manyboost.distributed.dask.links import Links

_T = TypeVar("_T")

# Bytes that take about as long as a message itself, whatever it holds.
_WORTH_A_MESSAGE = 1 << 16
# Ranks that send a small array to all others.
_FEW = 4

# Bytes from which on a message is sent beside its envelope, which saves two copies.
_LARGE = 1 << 16


class DaskComm(Comm):
    """Ranks on Dask workers, one on each.

    A few ranks send a small array to each other, and all do the same sum: one wait. Otherwise ranks
    meet in pairs, first the neighbours, then those two apart, four, and so on: log2(size) waits. A
    large array is halved at each meeting, a half for either, and put together on the way back:
    twice as many waits, but at most twice its bytes are sent, however many ranks there are.

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
        self._outboxes = [_Outbox() for _ in links.addresses]

    def _reduce(self, sums: I64, maxima: F64) -> None:
        parts = _Parts(sums.reshape(-1), maxima.reshape(-1))
        if self.size == 2:
            self._swap(1 - self.rank, parts, parts)
        elif self.size <= _FEW and parts.n_bytes <= _WORTH_A_MESSAGE:
            self._send_all(parts.to_bytes())
            for rank in self._links.peers:
                parts.add(self._receive(rank))
        else:
            self._reduce_in_pairs(parts)

    def _reduce_in_pairs(self, parts: _Parts) -> None:
        n_levels = self.size.bit_length() - 1
        paired = 1 << n_levels
        # Ranks beyond a power of two have another do it for them.
        if self.rank >= paired:
            self._send_parts(self.rank - paired, parts)
            parts.set(self._receive(self.rank - paired))
            return
        ward = self.rank + paired
        if ward < self.size:
            parts.add(self._receive(ward))
        saved_copies = n_levels - 2 * (paired - 1) / paired
        if parts.n_bytes * saved_copies > n_levels * _WORTH_A_MESSAGE:
            self._reduce_by_halves(parts, n_levels)
        else:
            for level in range(n_levels):
                self._swap(self.rank ^ (1 << level), parts, parts)
        if ward < self.size:
            self._send_parts(ward, parts)

    def _reduce_by_halves(self, parts: _Parts, n_levels: int) -> None:
        way_back = []
        for level in range(n_levels):
            bit = 1 << level
            peer, halves = self.rank ^ bit, parts.halves()
            mine, other = halves if self.rank & bit == 0 else halves[::-1]
            self._swap(peer, other, mine)
            way_back.append((peer, mine, other))
            parts = mine
        for peer, mine, other in reversed(way_back):
            self._send_parts(peer, mine)
            other.set(self._receive(peer))

    def _swap(self, peer: int, theirs: _Parts, mine: _Parts) -> None:
        """Send some parts to a peer, and add what it sends to others, or the same."""
        self._send_parts(peer, theirs)
        mine.add(self._receive(peer))

    def _send_parts(self, peer: int, parts: _Parts) -> None:
        large = parts.n_bytes >= _LARGE
        self._send([(peer, self._outboxes[peer].copy(parts) if large else parts.to_bytes())])

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

    def _send(self, contents: Iterable[tuple[int, bytes | memoryview]]) -> None:
        messages = [(rank, _envelope(each)) for rank, each in contents]
        self.n_bytes_sent += sum(len(_contents(message)) for _, message in messages)
        self._links.send(messages)

    def _receive(self, rank: int) -> Any:
        return _contents(self._links.receive(rank))


class _Outbox:
    """Memory for large messages to one rank, used in turn: new memory costs more than the copy.

    Two ranks take turns in sending to each other, one message each. Who sends the third has got the
    second of the other, which had then got the first: its memory is free again.
    """

    def __init__(self) -> None:
        self._buffers = [np.empty(0, np.uint8), np.empty(0, np.uint8)]

    def copy(self, parts: _Parts) -> memoryview:
        """Return a copy, good until the next but one is made."""
        buffer = self._buffers.pop(0)
        if buffer.nbytes < parts.n_bytes:
            buffer = np.empty(parts.n_bytes, np.uint8)
        self._buffers.append(buffer)
        used = buffer[: parts.n_bytes]
        n_sums = parts.sums.nbytes
        used[:n_sums].view(np.int64)[:] = parts.sums
        used[n_sums:].view(np.float64)[:] = parts.maxima
        return used.data


class _Parts:
    """Sums and maxima that travel together."""

    def __init__(self, sums: I64, maxima: F64) -> None:
        self.sums, self.maxima = sums, maxima

    @property
    def n_bytes(self) -> int:
        """Bytes of both."""
        return self.sums.nbytes + self.maxima.nbytes

    def halves(self) -> tuple[_Parts, _Parts]:
        """Both halves, of the same memory."""
        s, m = len(self.sums) // 2, len(self.maxima) // 2
        return _Parts(self.sums[:s], self.maxima[:m]), _Parts(self.sums[s:], self.maxima[m:])

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


def _envelope(contents: bytes | memoryview) -> Any:
    return contents if len(contents) < _LARGE else Serialized({}, [contents])


def _contents(message: Any) -> Any:
    return message.frames[0] if isinstance(message, Serialized) else message
