"""Reductions among ranks are those of all their arrays at once, for any number of ranks."""

import queue
import threading

import numpy as np
import pytest

from manyboost.distributed.dask.comm import DaskComm


class Letters:
    """Links within a process: what is sent to a rank is in its box, one for each sender."""

    def __init__(self, rank, boxes):
        self.rank, self._boxes = rank, boxes
        self.addresses = list(range(len(boxes)))
        self.peers = [(rank + k) % len(boxes) for k in range(1, len(boxes))]

    def send(self, messages):
        for rank, message in messages:
            self._boxes[rank][self.rank].put(message)

    def receive(self, rank):
        return self._boxes[self.rank][rank].get(timeout=20)

    def swap(self, outgoing, incoming):
        self.send((rank, bytes(contents)) for rank, contents in outgoing.items())
        for rank, room in incoming.items():
            room[:] = self.receive(rank)


def on_ranks(size, work):
    """What each of so many ranks makes of ``work(comm)``."""
    boxes = [[queue.SimpleQueue() for _ in range(size)] for _ in range(size)]
    comms = [DaskComm(Letters(rank, boxes)) for rank in range(size)]
    results = [None] * size

    def run(rank):
        results[rank] = work(comms[rank])

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Every message was for somebody who waited for it.
    assert all(box.empty() for of_rank in boxes for box in of_rank)
    return results, comms


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 9, 16])
@pytest.mark.parametrize(
    ("n_sums", "n_maxima"), [(1, 0), (0, 3), (5, 1), (1000, 77), (40_001, 0), (30_000, 9_999)]
)
def test_sums_and_maxima_are_those_of_all_ranks(size, n_sums, n_maxima):
    rng = np.random.default_rng(size)
    sums = rng.integers(-(2**62), 2**62, size=(size, n_sums))
    maxima = rng.normal(size=(size, n_maxima))

    def reduce(comm):
        mine = sums[comm.rank].copy(), maxima[comm.rank].copy()
        comm.reduce(*mine)
        return mine

    results, comms = on_ranks(size, reduce)
    with np.errstate(over="ignore"):
        total = sums.sum(axis=0)
    for found, largest in results:
        np.testing.assert_array_equal(found, total)
        np.testing.assert_array_equal(largest, maxima.max(axis=0))
    if size > 1:
        assert {comm.n_exchanges for comm in comms} == {1}
        assert {comm.n_bytes for comm in comms} == {8 * (n_sums + n_maxima)}


def test_many_ranks_send_hardly_more_than_twice_a_large_array():
    array = np.arange(100_000)

    def reduce(comm):
        comm.sum(array.copy())
        return comm.n_bytes_sent

    sent, _ = on_ranks(16, reduce)
    assert max(sent) <= 2 * array.nbytes


@pytest.mark.parametrize("size", [1, 2, 5])
def test_values_are_those_of_their_rank(size):
    def exchange(comm):
        value = {"rank": comm.rank, "large": bytes(70_000 + comm.rank)}
        last = comm.broadcast(value, size - 1)
        return comm.gather(comm.rank), comm.gather(value), last["rank"], len(last["large"])

    for ranks, values, last, length in on_ranks(size, exchange)[0]:
        assert ranks == list(range(size))
        assert [value["rank"] for value in values] == ranks
        assert [len(value["large"]) for value in values] == [70_000 + rank for rank in ranks]
        assert (last, length) == (size - 1, 70_000 + size - 1)
