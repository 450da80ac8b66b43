"""Connections between the ranks of a fit, made by Dask.

Each pair of ranks shares one connection to the port on which a worker listens anyway: no other port
is opened, and if the cluster uses TLS, so does the connection. It stays open during the fit.
Messages get no reply; those of a pair arrive in the order in which they were sent.

    training thread of a rank         event loop of its worker         event loop of another
    send ──── call_soon_threadsafe ───▶ comm.write ────────────────────▶ comm.read
    receive ◀────── inbox of the peer ─ comm.read ◀──────────────────── comm.write
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Iterable
from typing import Any

from manyboost.comm import CommError

#: Name of the operation that asks a worker for a link.
OPERATION = "manyboost_link"

# Seconds between two checks that the task of a rank is still wanted.
_CHECK = 0.5

_HELLO = "hello"


class WorkerLost(CommError):
    """The worker at ``address`` no longer answers."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address

    def __str__(self) -> str:
        return f"The connection to worker {self.address} was lost."


class Aborted(CommError):
    """Training ended on this rank because it ended elsewhere."""


class Links:
    """The links of one rank to its peers.

    Created on the event loop of the worker, before any rank begins: a peer may ask for its link at
    any time from then on. ``fit`` names the fit, of which several may run at once; ``addresses``
    are those of the workers, in order of their ranks.
    """

    def __init__(self, worker: Any, fit: str, addresses: list[str]) -> None:
        self.worker, self.fit, self.addresses = worker, fit, addresses
        self.rank = addresses.index(worker.address)
        self.failure: CommError | None = None
        self._loop = asyncio.get_running_loop()
        self._inbox: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in addresses]
        self._comms: dict[int, Any] = {}
        self._ended: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writing: asyncio.Task[None] | None = None
        self.begun = self._closing = False

    @property
    def peers(self) -> list[int]:
        """Return the other ranks from the next one on: not all write to the same one first."""
        size = len(self.addresses)
        return [(self.rank + k) % size for k in range(1, size)]

    # ------------------------------------------------------------------ from the training thread

    def open(self, task: str) -> None:
        """Connect to all peers and wait until all have begun; ``task`` is the key of the rank."""
        self._loop.call_soon_threadsafe(self._begin, task)
        for rank in self.peers:
            self.receive(rank)

    def send(self, messages: Iterable[tuple[int, Any]]) -> None:
        """Send messages to ranks; the caller must not change them afterwards."""
        self._loop.call_soon_threadsafe(self._write, list(messages))

    def receive(self, rank: int) -> Any:
        """Return the next message of a rank; messages of this rank come from the client."""
        message = self._inbox[rank].get()
        if isinstance(message, CommError):
            raise message
        return message

    def close(self, reason: str | None = None) -> None:
        """Close all links; with a reason, the peers end too."""
        self._loop.call_soon_threadsafe(self._close, reason)

    # ------------------------------------------------------------------ on the event loop

    def fail(self, failure: CommError) -> None:
        """Make the training thread end with a failure at its next exchange."""
        if self.failure is None and not self._closing:
            self.failure = failure
            for inbox in self._inbox:
                inbox.put(failure)

    def answer(self, message: Any) -> None:
        """Take a message of the client."""
        self._inbox[self.rank].put(message)

    async def accept(self, comm: Any, rank: int) -> None:
        """Use a connection to a peer until it is closed."""
        # Arrays arrive as plain bytes.
        comm.deserialize = False
        comm.allow_offload = False
        self._comms[rank] = comm
        if self.begun:
            self._write([(rank, _HELLO)])
        await self._read(rank, comm)

    def _begin(self, task: str) -> None:
        self.begun = True
        self._write([(rank, _HELLO) for rank in self._comms])
        self._start(self._check(task))
        for rank in range(self.rank + 1, len(self.addresses)):
            self._start(self._connect(rank))

    def _start(self, coroutine: Any) -> None:
        # The loop keeps only weak references to tasks.
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _check(self, task: str) -> None:
        """Fail when nobody wants the task of this rank any more: the client is gone or gave up."""
        while True:
            await asyncio.sleep(_CHECK)
            state = self.worker.state.tasks.get(task)
            if state is None or state.state in ("cancelled", "released", "forgotten"):
                self.fail(Aborted("Training was cancelled."))
                return

    async def _connect(self, rank: int) -> None:
        address = self.addresses[rank]
        try:
            comm = await self.worker.rpc.connect(address)
        except Exception:
            self.fail(WorkerLost(address))
            return
        try:
            request = {"op": OPERATION, "fit": self.fit, "rank": self.rank, "reply": False}
            await comm.write(request)
            await self.accept(comm, rank)
        except Exception:
            self.fail(WorkerLost(address))
        finally:
            comm.abort()
            self.worker.rpc.reuse(address, comm)

    async def _read(self, rank: int, comm: Any) -> None:
        put = self._inbox[rank].put
        try:
            while True:
                message = await comm.read()
                if isinstance(message, dict):
                    self._ended.add(rank)
                    if message["reason"] is not None:
                        self.fail(Aborted(message["reason"]))
                else:
                    put(message)
        except Exception:  # whatever it is, nothing more will come
            self._lose(rank)

    def _lose(self, rank: int) -> None:
        if rank not in self._ended:
            self.fail(WorkerLost(self.addresses[rank]))

    def _write(self, messages: list[tuple[int, Any]]) -> None:
        # Writing to a socket never waits, but other connections may: keep the order of writes.
        before = self._writing
        self._writing = self._loop.create_task(self._write_after(before, messages))

    async def _write_after(
        self, before: asyncio.Task[None] | None, messages: list[tuple[int, Any]]
    ) -> None:
        if before is not None:
            await before
        for rank, message in messages:
            await self._write_to(rank, message)

    async def _write_to(self, rank: int, message: Any) -> None:
        try:
            await self._comms[rank].write(message)
        except Exception:
            self._lose(rank)

    def _close(self, reason: str | None) -> None:
        self._closing = True
        self._write([(rank, {"reason": reason}) for rank in self._comms])
        self._start(self._hang_up())

    async def _hang_up(self) -> None:
        assert self._writing is not None
        await self._writing
        for comm in self._comms.values():
            await comm.close()
        for task in self._tasks - {asyncio.current_task()}:
            task.cancel()
