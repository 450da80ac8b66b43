"""One rank of a fit with MPI: ``mpiexec -n 2 python mpi_rank.py PARTITION STRATEGY TARGET FATE``.

Prints the fingerprint of the model, or the error that all ranks were told of.
"""

import os
import sys

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.distributed import MPIComm, fit_rank
from rank_problems import LABELS, N_ROWS, PARTITIONS, X, Y, fingerprint


def main(partition, strategy, target, fate):
    comm = MPIComm()
    ends = PARTITIONS.get(partition, [N_ROWS * k // comm.size for k in range(comm.size + 1)])
    rows = slice(ends[comm.rank], ends[comm.rank + 1])
    estimator = ManyBoostClassifier if target == "labels" else ManyBoostRegressor
    parameters = {"strategy": strategy, "max_iter": 4, "max_leaf_nodes": 7, "random_state": 1}
    features = X[rows].copy()
    if fate == "bad row" and comm.rank == 1:
        features[0] = float("inf")
    if fate == "bad parameter":
        parameters["max_iter"] = -1

    def watch(state):
        if fate == "die" and state.round == 2:
            os._exit(9)

    model = estimator(**parameters, callbacks=[watch])
    try:
        fit_rank(model, comm, features, (LABELS if target == "labels" else Y)[rows])
    except ValueError as error:
        return f"{type(error).__name__}: {error}"
    return fingerprint(model)


if __name__ == "__main__":
    sys.stdout.write(f"{main(*sys.argv[1:])}\n")
