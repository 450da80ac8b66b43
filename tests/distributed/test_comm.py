"""Ranks that are threads exchange what the ranks of a cluster would."""

import numpy as np
import pytest

from manyboost.comm import ALONE, CommError, Threads


def test_all_ranks_get_the_numbers_of_all():
    def work(comm):
        totals = comm.totals([[comm.rank, 1]])
        return (
            comm.total(comm.rank),
            totals.tolist(),
            comm.largest([-comm.rank, comm.rank]).tolist(),
            comm.any(comm.rank == 2),
            comm.all(comm.rank < 2),
            comm.unique(np.array([comm.rank, 0])).tolist(),
            comm.gather(comm.rank),
            comm.broadcast(comm.rank, 1),
        )

    expected = (3, [[3, 3]], [0, 2], True, False, [0, 1, 2], [0, 1, 2], 1)
    assert Threads.run(3, work) == [expected] * 3


def test_sums_wrap_around_at_64_bits():
    largest = np.iinfo(np.int64).max
    assert Threads.run(2, lambda comm: comm.total(largest)) == [-2, -2]


def test_exchanges_are_counted():
    def work(comm):
        comm.reduce(np.zeros(3, np.int64), np.zeros(2))
        return comm.n_exchanges, comm.n_bytes

    assert Threads.run(2, work) == [(1, 40)] * 2
    ALONE.reduce(np.zeros(3, np.int64), np.zeros(2))
    assert (ALONE.n_exchanges, ALONE.n_bytes) == (0, 0)


def test_a_subset_of_ranks_exchanges_among_itself():
    def work(comm):
        some = comm.subset([0, 2])
        return None if some is None else (some.rank, some.size, some.total(comm.rank))

    assert Threads.run(3, work) == [(0, 2, 2), None, (1, 2, 2)]
    assert ALONE.subset([0]) is ALONE
    assert ALONE.subset([1]) is None


def test_an_error_of_one_rank_ends_those_of_a_subset():
    def work(comm):
        some = comm.subset([0, 2])
        if comm.rank == 2:
            raise ValueError("no rows")
        if some is not None:
            some.total(1)

    with pytest.raises(ValueError, match="no rows"):
        Threads.run(3, work)


def test_an_error_of_one_rank_ends_the_others():
    ended = []

    def work(comm):
        if comm.rank == 1:
            raise LookupError("on one rank")
        try:
            comm.total(1)
        except CommError:
            ended.append(comm.rank)
            raise

    with pytest.raises(LookupError, match="on one rank"):
        Threads.run(3, work)
    assert sorted(ended) == [0, 2]
