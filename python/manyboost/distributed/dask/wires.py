"""Bytes between the training threads of two ranks, past the event loops of their workers.

A wire is the socket of a connection that Dask has made, with its TLS. The event loop stops to watch
it, and the training thread reads and writes it instead: no thread waits for another to wake up, and
bytes go from array to array.
"""

from __future__ import annotations

import contextlib
import selectors
import ssl
from collections.abc import Callable, Iterator
from typing import Any

_WOULD_WAIT = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

# Seconds between two checks that training goes on elsewhere.
_CHECK = 0.1


class Wire:
    """The socket of a connection, taken over by the training thread."""

    def __init__(self, stream: Any) -> None:
        self.socket = stream.socket
        stream.io_loop.remove_handler(stream.socket)

    @classmethod
    def of(cls, comm: Any) -> Wire | None:
        """Take over a connection of Dask; None if it has no socket, as within a process."""
        stream = getattr(comm, "stream", None)
        return None if stream is None else cls(stream)


class BrokenWire(Exception):
    """The connection to a rank was lost."""

    def __init__(self, rank: int) -> None:
        super().__init__(rank)
        self.rank = rank


class Transfer:
    """Bytes that are still to be sent to a rank, and memory to be filled with those of the rank."""

    def __init__(self, rank: int, wire: Wire, outgoing: memoryview, incoming: memoryview) -> None:
        self.rank, self._socket = rank, wire.socket
        self._outgoing, self._incoming = outgoing, incoming

    @property
    def waits_for(self) -> int:
        """Return the events of the socket with which more bytes can move; 0 at the end."""
        writes = selectors.EVENT_WRITE if self._outgoing else 0
        return writes | (selectors.EVENT_READ if self._incoming else 0)

    def advance(self) -> None:
        """Move as many bytes as is possible without waiting."""
        with self._as_broken_wire():
            with contextlib.suppress(*_WOULD_WAIT):
                while self._outgoing:
                    self._outgoing = self._outgoing[self._socket.send(self._outgoing) :]
            with contextlib.suppress(*_WOULD_WAIT):
                while self._incoming:
                    self._incoming = self._incoming[self._receive() :]

    def _receive(self) -> int:
        n_bytes: int = self._socket.recv_into(self._incoming)
        if n_bytes == 0:
            raise ConnectionError("The other rank has closed the connection.")
        return n_bytes

    def register(self, selector: selectors.BaseSelector) -> None:
        """Wait at a selector."""
        with self._as_broken_wire():
            selector.register(self._socket, self.waits_for, self)

    def update(self, selector: selectors.BaseSelector) -> None:
        """Wait at a selector for what is missing now."""
        with self._as_broken_wire():
            if self.waits_for:
                selector.modify(self._socket, self.waits_for, self)
            else:
                selector.unregister(self._socket)

    @contextlib.contextmanager
    def _as_broken_wire(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:  # the latter if this worker closed the socket
            raise BrokenWire(self.rank) from error


def complete(transfers: list[Transfer], check: Callable[[], None]) -> None:
    """Move all bytes of some transfers, as they can; ``check`` raises an error to end it."""
    for transfer in transfers:
        transfer.advance()
    waiting = [transfer for transfer in transfers if transfer.waits_for]
    if not waiting:
        return
    with selectors.DefaultSelector() as selector:
        for transfer in waiting:
            transfer.register(selector)
        while selector.get_map():
            ready = [key.data for key, _ in selector.select(_CHECK)]
            for transfer in ready:
                transfer.advance()
                transfer.update(selector)
            if not ready:
                check()
