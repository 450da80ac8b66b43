"""Fits with MPI: ``mpiexec -n 4 python mpi_rank.py FATE SIZE,PARTITION,STRATEGY,TARGET...``.

Every case is fitted on the first SIZE ranks. Each of them prints the number of the case and the
fingerprint of the model, or the error that all ranks got.
"""

import os
import sys

from mpi4py import MPI

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.distributed import MPIComm, fit_rank
from rank_problems import LABELS, N_ROWS, PARTITIONS, X, Y, fingerprint


def fitted(comm, partition, strategy, target, fate):
    ends = PARTITIONS.get(partition, [N_ROWS * k // comm.size for k in range(comm.size + 1)])
    rows = slice(ends[comm.rank], ends[comm.rank + 1])
    estimator = ManyBoostClassifier if target == "labels" else ManyBoostRegressor
    parameters = {"strategy": strategy, "max_iter": 4, "max_leaf_nodes": 7, "random_state": 1}
    targets = (LABELS if target == "labels" else Y)[rows].astype(float)
    if fate == "bad row" and comm.rank == 1:
        targets[0] = float("inf")
    if fate == "bad parameter":
        parameters["max_iter"] = -1

    def watch(state):
        if fate == "die" and state.round == 2:
            os._exit(9)
        if fate == "interrupted" and state.round == 2:
            raise KeyboardInterrupt

    model = estimator(**parameters, callbacks=[watch])
    try:
        fit_rank(model, comm, X[rows], targets)
    except ValueError as error:
        return f"{type(error).__name__}: {error}"
    return fingerprint(model)


def main(fate, *cases):
    world = MPI.COMM_WORLD
    for number, case in enumerate(cases):
        size, *how = case.split(",")
        takes_part = world.Get_rank() < int(size)
        some = world.Split(0 if takes_part else MPI.UNDEFINED, world.Get_rank())
        if takes_part:
            sys.stdout.write(f"{number} {fitted(MPIComm(some), *how, fate)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
