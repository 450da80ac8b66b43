"""Ranks of MPI, for clusters with a scheduler: ``mpiexec -n 8 python script.py``."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from manyboost.comm import F64, I64, Comm
from manyboost.extras import import_extra

# Seconds that a failed rank waits for the others to fail too, before it ends them.
_GRACE = 2.0
# Environment variables in which launchers tell a process the number of ranks.
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS")


# The key of what is attached to communicators, by MPI.
_keys: list[int] = []


@dataclass(frozen=True)
class _Attached:
    """What belongs to a communicator of the caller, and ends with it; MPI has few of them."""

    ranks: Any  # the same ranks, for messages of this package
    failed: Any  # and to tell that all of them failed
    subsets: dict[tuple[int, ...], Any] = field(default_factory=dict)


def _attached(mpi: Any, given: Any) -> _Attached:
    """Return what is attached to a communicator; all of its ranks call this."""

    def free(freed: Any, _: int, attached: _Attached) -> None:
        if freed == mpi.COMM_WORLD:  # at the very end, with everything else
            return
        subsets = (each for each in attached.subsets.values() if each != mpi.COMM_NULL)
        for each in (attached.ranks, attached.failed, *subsets):
            each.Free()

    if not _keys:
        _keys.append(mpi.Comm.Create_keyval(delete_fn=free))
    attached = given.Get_attr(_keys[0])
    if attached is None:
        attached = _Attached(given.Dup(), given.Dup())
        given.Set_attr(_keys[0], attached)
    assert isinstance(attached, _Attached)
    return attached


def launched_ranks() -> int:
    """Return how many processes an MPI launcher has started; 1 without a launcher."""
    sizes = (os.environ.get(name, "") for name in _SIZES)
    return max([1, *(int(size) for size in sizes if size.isdigit())])


class MPIComm(Comm):
    """Ranks of an MPI communicator.

    Parameters
    ----------
    communicator : mpi4py.MPI.Comm, optional
        The ranks; None: all that were launched. It is duplicated once, so that messages of other
        code are kept apart; fits that run at the same time need communicators of their own.

    Examples
    --------
    Every process holds some of the rows; ``fit_rank`` gives all of them the same model::

        from manyboost import ManyBoostRegressor
        from manyboost.distributed import MPIComm, fit_rank

        comm = MPIComm()
        model = fit_rank(ManyBoostRegressor(), comm, X_of_this_rank, Y_of_this_rank)
    """

    def __init__(self, communicator: Any = None) -> None:
        self._mpi = import_extra("mpi4py.MPI", "MPIComm", "mpi")
        given = self._mpi.COMM_WORLD if communicator is None else communicator
        attached = _attached(self._mpi, given)
        self._ranks, self._failed = attached.ranks, attached.failed
        self._subsets = attached.subsets
        self.rank, self.size = self._ranks.Get_rank(), self._ranks.Get_size()

    def _reduce(self, sums: I64, maxima: F64) -> None:
        mpi = self._mpi
        if sums.size:
            self._ranks.Allreduce(mpi.IN_PLACE, [sums, mpi.INT64_T], op=mpi.SUM)
        if maxima.size:
            self._ranks.Allreduce(mpi.IN_PLACE, [maxima, mpi.DOUBLE], op=mpi.MAX)

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Return the value that the rank ``root`` passes."""
        return self._ranks.bcast(value, root=root)

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in their order."""
        return list(self._ranks.allgather(value))

    def subset(self, ranks: list[int]) -> Comm | None:
        """Return a set of these ranks only."""
        chosen, key = self.rank in ranks, tuple(ranks)
        if key not in self._subsets:
            colour = 0 if chosen else self._mpi.UNDEFINED
            self._subsets[key] = self._ranks.Split(colour, self.rank)
        return MPIComm(self._subsets[key]) if chosen else None

    def fail(self, error: BaseException) -> None:
        """Return if all ranks failed; else end them all, since the others would wait forever."""
        if self.size == 1:
            return
        all_failed = self._failed.Ibarrier()
        deadline = time.monotonic() + _GRACE
        while time.monotonic() < deadline:
            if all_failed.Test():
                return
            time.sleep(0.01)
        what = str(error) or type(error).__name__
        sys.stderr.write(f"manyboost: rank {self.rank} of {self.size} failed: {what}\n")
        sys.stderr.flush()
        self._ranks.Abort(1)
