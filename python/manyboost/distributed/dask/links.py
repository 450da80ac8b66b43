"""Connections between the ranks of a fit, which are Dask's own.

Every two ranks share one connection, made to the port that a worker listens on anyway: no other
port is opened, and where the cluster has TLS it is used. It stays open during the fit. Messages go
one way, without an answer; those of a pair arrive in the order in which they were sent.

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

#: The operation by which a worker is asked for a link.
OPERATION = "manyboost_link"

# Seconds between two looks at whether the task of a rank is still wanted.
_LOOK = 0.5

_HELLO = "hello"


class WorkerLost(CommError):
    """The worker at ``address`` does not answer any more."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address

    def __str__(self) -> str:
        return f"The connection to worker {self.address} was lost."


class Aborted(CommError):
    """Training ended on this rank because it ended elsewhere."""


class Links:
    """The links of one rank to its peers.

    Made on the event loop of the worker, before any rank begins: a peer may ask for its link at any
    time from then on.

    Parameters
    ----------
    worker : distributed.Worker
    fit : str
        What the fit is called; ranks of other fits are none of our business.
    addresses : list of str
        Addresses of the workers, in order of their ranks.
    """

    def __init__(self, worker: Any, fit: str, addresses: list[str]) -> None:
        self.worker = worker
        self.fit = fit
        self.addresses = addresses
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
        """The other ranks, beginning with the next one: not all write to the same one first."""
        size = len(self.addresses)
        return [(self.rank + k) % size for k in range(1, size)]

    # ------------------------------------------------------------------ from the training thread

    def open(self, task: str) -> None:
        """Connect with all peers; returns when all have begun. ``task`` is the key of the rank."""
        self._loop.call_soon_threadsafe(self._begin, task)
        for rank in self.peers:
            self.receive(rank)

    def send(self, messages: Iterable[tuple[int, Any]]) -> None:
        """Send messages to ranks; they must not be changed any more."""
        self._loop.call_soon_threadsafe(self._write, list(messages))

    def receive(self, rank: int) -> Any:
        """Return the next message of a rank; those to itself come from the client."""
        message = self._inbox[rank].get()
        if isinstance(message, CommError):
            raise message
        return message

    def close(self, reason: str | None = None) -> None:
        """Take leave of the peers; with a reason they must not go on either."""
        self._loop.call_soon_threadsafe(self._close, reason)

    # ------------------------------------------------------------------ on the event loop

    def fail(self, failure: CommError) -> None:
        """Let the training thread end with a failure, at its next exchange."""
        if self.failure is None and not self._closing:
            self.failure = failure
            for inbox in self._inbox:
                inbox.put(failure)

    def answer(self, message: Any) -> None:
        """Take a message of the client."""
        self._inbox[self.rank].put(message)

    async def accept(self, comm: Any, rank: int) -> None:
        """Use a connection that a peer has made, until it is closed."""
        self._add(rank, comm)
        await self._read(rank, comm)

    def _begin(self, task: str) -> None:
        self.begun = True
        self._write([(rank, _HELLO) for rank in self._comms])
        self._start(self._look_after(task))
        for rank in range(self.rank + 1, len(self.addresses)):
            self._start(self._connect(rank))

    def _start(self, coroutine: Any) -> None:
        # (The loop keeps weak references only.)
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look_after(self, task: str) -> None:
        """Fail when the task of this rank is no longer wanted: the client is gone, or gave up."""
        while True:
            await asyncio.sleep(_LOOK)
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
            self._add(rank, comm)
            await self._read(rank, comm)
        except Exception:
            self.fail(WorkerLost(address))
        finally:
            comm.abort()
            self.worker.rpc.reuse(address, comm)

    def _add(self, rank: int, comm: Any) -> None:
        # Arrays come as the bytes they are.
        comm.deserialize = False
        comm.allow_offload = False
        self._comms[rank] = comm
        if self.begun:
            self._write([(rank, _HELLO)])

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
            if rank not in self._ended:
                self.fail(WorkerLost(self.addresses[rank]))

    def _write(self, messages: list[tuple[int, Any]]) -> None:
        # Writing to a socket never waits; other kinds of connections may, so writes keep in line.
        before = self._writing
        if before is not None and before.done():
            before = None
        self._writing = self._loop.create_task(self._write_in_turn(messages, before))

    async def _write_in_turn(
        self, messages: list[tuple[int, Any]], before: asyncio.Task[None] | None
    ) -> None:
        if before is not None:
            await before
        for rank, message in messages:
            await self._write_to(rank, message)

    async def _write_to(self, rank: int, message: Any) -> None:
        try:
            await self._comms[rank].write(message)
        except Exception:
            if rank not in self._ended:
                self.fail(WorkerLost(self.addresses[rank]))

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
