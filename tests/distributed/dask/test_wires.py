"""Bytes move over wires in both directions at once, and a broken wire is noticed."""

import socket
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from manyboost.distributed.dask.wires import BrokenWire, Transfer, Wire, complete

#: More than the buffers of a socket hold.
LARGE = 50_000_000


class Loop:
    """An event loop that watches sockets."""

    def __init__(self, *watched):
        self.watched = set(watched)

    def remove_handler(self, watched):
        self.watched.remove(watched)


def wire_of(end):
    end.setblocking(False)
    return Wire.of(SimpleNamespace(stream=SimpleNamespace(socket=end, io_loop=Loop(end))))


@pytest.fixture
def ends():
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def never():
    raise AssertionError("bytes were not waited for")


def test_event_loops_leave_wires_alone(ends):
    loop = Loop(*ends)
    wire = Wire.of(SimpleNamespace(stream=SimpleNamespace(socket=ends[0], io_loop=loop)))
    assert wire.socket is ends[0]
    assert loop.watched == {ends[1]}


def test_connections_within_a_process_have_no_wire():
    assert Wire.of(object()) is None


@pytest.mark.parametrize(
    ("n_out", "n_in"), [(8, 8), (LARGE, LARGE), (LARGE, 0), (0, LARGE), (0, 0)]
)
def test_both_ends_send_before_either_has_read(ends, n_out, n_in):
    rng = np.random.default_rng(0)
    sent = [rng.integers(256, size=n, dtype=np.uint8) for n in (n_out, n_in)]
    got = [np.zeros(n, np.uint8) for n in (n_in, n_out)]

    def move(k):
        complete([Transfer(k, wire_of(ends[k]), sent[k].data, got[k].data)], never)

    other = threading.Thread(target=move, args=(1,))
    other.start()
    move(0)
    other.join()
    np.testing.assert_array_equal(got[0], sent[1])
    np.testing.assert_array_equal(got[1], sent[0])


def test_a_slow_rank_does_not_keep_others_from_moving(ends):
    slow, silent = socket.socketpair()
    with slow, silent:
        got = {rank: np.zeros(3, np.uint8) for rank in (1, 2)}
        nothing = memoryview(b"")
        transfers = [
            Transfer(1, wire_of(slow), nothing, got[1].data),
            Transfer(2, wire_of(ends[0]), nothing, got[2].data),
        ]
        ends[1].send(b"abc")
        threading.Timer(0.3, silent.send, (b"xyz",)).start()
        checks = []
        complete(transfers, lambda: checks.append(got[2].tobytes()))
    assert got[1].tobytes() == b"xyz"
    # What has arrived was not kept waiting.
    assert checks
    assert set(checks) == {b"abc"}


def test_a_lost_rank_breaks_its_wire(ends):
    room = memoryview(bytearray(8))
    ends[1].close()
    with pytest.raises(BrokenWire) as broken:
        complete([Transfer(7, wire_of(ends[0]), memoryview(b""), room)], never)
    assert broken.value.rank == 7


def test_waiting_ends_with_the_error_of_another_rank(ends):
    def failed():
        raise LookupError("elsewhere")

    room = memoryview(bytearray(8))
    with pytest.raises(LookupError, match="elsewhere"):
        complete([Transfer(1, wire_of(ends[0]), memoryview(b""), room)], failed)
