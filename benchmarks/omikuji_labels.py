"""Linear label trees (omikuji) on a file of rows and labels: the peer of `benchmarks.many_labels`.

    python omikuji_labels.py FILE.npz parabel|bonsai

It needs numpy, scipy and omikuji, and nothing of manyboost: it may have an environment of its own.
It prints seconds of training, and the best five labels of each test row go to FILE.best.npy.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import omikuji
from scipy import sparse

SETTINGS = {
    "parabel": {},
    "bonsai": {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3},
}


def matrix(file, name: str) -> sparse.csr_matrix:
    indices, starts = file[f"{name}_indices"], file[f"{name}_indptr"]
    data = file[f"{name}_data"] if f"{name}_data" in file else np.ones(len(indices), np.float32)
    return sparse.csr_matrix((data, indices, starts), shape=tuple(file[f"{name}_shape"]))


def write(path: str, X: sparse.csr_matrix, Y: sparse.csr_matrix) -> None:
    with open(path, "w", encoding="utf-8") as text:  # noqa: PTH123
        text.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for i in range(X.shape[0]):
            labels = Y.indices[Y.indptr[i] : Y.indptr[i + 1]]
            places = range(X.indptr[i], X.indptr[i + 1])
            values = " ".join(f"{X.indices[k]}:{X.data[k]:.6g}" for k in places)
            text.write(f"{','.join(map(str, labels))} {values}\n")


def main(path: str, setting: str) -> None:
    file = np.load(path, allow_pickle=False)
    X, Y, train = matrix(file, "X"), matrix(file, "Y"), file["split"] == 0
    parameters = omikuji.Model.default_hyper_param()
    for name, value in SETTINGS[setting].items():
        setattr(parameters, name, value)
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "train.txt")  # noqa: PTH118
        write(text, X[train], Y[train])
        began, began_cpu = time.perf_counter(), time.process_time()
        model = omikuji.Model.train_on_data(text, parameters)
    seconds = time.perf_counter() - began
    cpu = time.process_time() - began_cpu
    test = X[~train]
    best = np.full((test.shape[0], 5), -1, np.int64)
    for i in range(test.shape[0]):
        row = slice(test.indptr[i], test.indptr[i + 1])
        pairs = zip(test.indices[row].tolist(), test.data[row].tolist(), strict=True)
        found = [label for label, _ in model.predict(list(pairs), top_k=5)]
        # A row may have fewer: labels that it lacks count for nothing.
        rest = [label for label in range(5 + len(found)) if label not in found]
        best[i] = (found + rest)[:5]
    np.save(Path(path).with_suffix(".best.npy"), best)
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu}))


if __name__ == "__main__":
    main(*sys.argv[1:])
