"""Connections between the ranks of a fit, made by Dask.

Each pair of ranks shares two connections to the port on which a worker listens anyway: no other
port is opened, and if the cluster uses TLS, so do the connections. They stay open during the fit.

One carries messages, which get no reply; those of a pair arrive in the order in which they were
sent. It also tells when a rank is lost.

    training thread of a rank         event loop of its worker         event loop of another
    send ──── call_soon_threadsafe ───▶ comm.write ────────────────────▶ comm.read
    receive ◀────── inbox of the peer ─ comm.read ◀──────────────────── comm.write

The other one is a wire: training threads swap bytes over its socket themselves. Connections without
a socket carry messages instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections.abc import Iterable
from typing import Any

from manyboost.comm import CommError
from manyboost.distributed.dask.wires import BrokenWire, Transfer, Wire, complete

#: Name of the operation that asks a worker for a link.
OPERATION = "manyboost_link"

# Seconds between two checks that the task of a rank is still wanted.
_CHECK = 0.5
# Seconds in which the event loop learns why a wire is broken, before its rank counts as lost.
_GRACE = 2.0


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
        self.abandoned = False  # nobody will go on with the rounds of this fit
        self._loop = asyncio.get_running_loop()
        self._inbox: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in addresses]
        self._comms: dict[int, Any] = {}
        self._wires: dict[int, Wire | None] = {}
        self._ended: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writing: asyncio.Task[None] | None = None
        self.begun = self._closing = False
        self._greeted = [asyncio.Event() for _ in addresses]
        self._over = asyncio.Event()

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
            has_wire = self.receive(rank)
            if not has_wire:
                self._wires[rank] = None

    def send(self, messages: Iterable[tuple[int, Any]]) -> None:
        """Send messages to ranks; the caller must not change them afterwards."""
        self._loop.call_soon_threadsafe(self._write, list(messages))

    def receive(self, rank: int, timeout: float | None = None) -> Any:
        """Return the next message of a rank; messages of this rank come from the client."""
        message = self._inbox[rank].get(timeout=timeout)
        if isinstance(message, CommError):
            raise message
        return message

    def swap(self, outgoing: dict[int, memoryview], incoming: dict[int, memoryview]) -> None:
        """Send bytes to some ranks, and fill memory with those of some ranks."""
        nothing, transfers = memoryview(b""), []
        for rank in outgoing.keys() | incoming.keys():
            wire = self._wires[rank]
            if wire is not None:
                each = outgoing.get(rank, nothing), incoming.get(rank, nothing)
                transfers.append(Transfer(rank, wire, *each))
        by_message = {rank for rank, wire in self._wires.items() if wire is None}
        if by_message:
            self.send((rank, bytes(outgoing[rank])) for rank in by_message & outgoing.keys())
        try:
            complete(transfers, self._look)
        except BrokenWire as broken:
            self._explain(broken.rank)
        for rank in by_message & incoming.keys():
            incoming[rank][:] = self.receive(rank)

    def _look(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _explain(self, rank: int) -> None:
        """Raise the error that has broken the wire to a rank."""
        with contextlib.suppress(queue.Empty):
            self.receive(rank, timeout=_GRACE)
        raise WorkerLost(self.addresses[rank])

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
        """Use a connection for messages of a peer until it is closed."""
        # Arrays arrive as plain bytes.
        comm.deserialize = False
        comm.allow_offload = False
        self._comms[rank] = comm
        self._greet(rank)
        # The training thread may answer whatever is read; the greeting must go out before.
        await self._greeted[rank].wait()
        await self._read(rank, comm)

    async def accept_wire(self, comm: Any, rank: int) -> None:
        """Use a connection as the wire to a peer until training is over."""
        self._wires[rank] = Wire.of(comm)
        self._greet(rank)
        await self._over.wait()
        comm.abort()

    def release(self) -> None:
        """Let go of all connections: nothing waits any more."""
        for event in (*self._greeted, self._over):
            event.set()

    def _greet(self, rank: int) -> None:
        """Tell a peer that this rank has begun, and whether it has the wire in its hands.

        Nobody sends bytes before: an event loop that still watched the socket would take them.
        """
        if self.begun and rank in self._comms and rank in self._wires:
            self._write([(rank, self._wires[rank] is not None)])
            self._greeted[rank].set()

    def _begin(self, task: str) -> None:
        self.begun = True
        for rank in self.peers:
            self._greet(rank)
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
                self.abandoned = True
                self.fail(Aborted("Training was cancelled."))
                return

    async def _connect(self, rank: int) -> None:
        address, comms = self.addresses[rank], []
        request = {"op": OPERATION, "fit": self.fit, "rank": self.rank, "reply": False}
        try:
            for is_wire in (True, False):
                comms.append(await self.worker.rpc.connect(address))
                await comms[-1].write(request | {"is_wire": is_wire})
            self._wires[rank] = Wire.of(comms[0])
            await self.accept(comms[1], rank)
            await self._over.wait()
        except Exception:
            self.fail(WorkerLost(address))
        finally:
            for comm in comms:
                comm.abort()
                self.worker.rpc.reuse(address, comm)

    async def _read(self, rank: int, comm: Any) -> None:
        put = self._inbox[rank].put
        try:
            while True:
                message = await comm.read()
                if isinstance(message, dict):
                    self._ended.add(rank)
                    self.abandoned |= message["abandoned"]
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
        last = {"reason": reason, "abandoned": self.abandoned}
        self._write([(rank, last) for rank in self._comms])
        self._start(self._hang_up())

    async def _hang_up(self) -> None:
        assert self._writing is not None
        await self._writing
        for comm in self._comms.values():
            await comm.close()
        self.release()
        for task in self._tasks - {asyncio.current_task()}:
            task.cancel()
