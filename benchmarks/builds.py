"""Two builds of the library, fit for fit, in one interleaved run.

    python -m benchmarks.builds OLD NEW [PAIRS]

OLD and NEW are folders that hold the package ``manyboost`` with its compiled extension. Each build
runs in a process of its own, and they take turns, so that the noise of the machine hits both alike.
Prints the median ratio of times (new over old) of each shape, with the middle half of the ratios.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np

# Rows, features, outputs, leaves, rounds, threads, kind of targets.
SHAPES = {
    "20,000 x 50 x 50, squared error": (20_000, 50, 50, 31, 20, 2, "real"),
    "20,000 x 50 x 1000, squared error": (20_000, 50, 1000, 31, 8, 2, "real"),
    "20,000 x 50 x 1000, log loss": (20_000, 50, 1000, 31, 6, 2, "labels"),
    "100,000 x 100 x 10, squared error": (100_000, 100, 10, 31, 6, 2, "real"),
    "2,000 x 30 x 5, squared error": (2_000, 30, 5, 31, 60, 1, "real"),
    "friedman stumps, 300 x 10 x 16": (300, 10, 16, 2, 400, 1, "real"),
}

WORKER = """
import sys, time, numpy as np
from manyboost import ManyBoostClassifier, ManyBoostRegressor
n, p, d, leaves, rounds, threads, kind = eval(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.normal(size=(n, p)).astype(np.float32)
Y = X @ rng.normal(size=(p, d)).astype(np.float32)
Y = (Y > 1).astype(np.uint8) if kind == "labels" else Y.astype(np.float64)
estimator = ManyBoostClassifier if kind == "labels" else ManyBoostRegressor
shape = {"max_iter": rounds, "max_leaf_nodes": leaves, "n_jobs": threads}
model = estimator(early_stopping=False, random_state=0, **shape)
model.fit(X, Y)
for _ in sys.stdin:
    began = time.perf_counter()
    model.fit(X, Y)
    print(time.perf_counter() - began, flush=True)
"""


def compare(shape: tuple[object, ...], folders: list[str], pairs: int) -> np.ndarray:
    """Ratios of the times of both builds, pair by pair."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, repr(shape)],
            env={"PYTHONPATH": folder, "PATH": "/usr/bin:/bin"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for folder in folders
    ]
    ratios = []
    for pair in range(pairs):
        times = [0.0, 0.0]
        for k in (0, 1) if pair % 2 else (1, 0):
            process = processes[k]
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("again\n")
            process.stdin.flush()
            times[k] = float(process.stdout.readline())
        ratios.append(times[1] / times[0])
    for process in processes:
        process.communicate()
    return np.array(ratios)


def main(old: str, new: str, pairs: str = "21") -> None:
    for name, shape in SHAPES.items():
        ratios = compare(shape, [old, new], int(pairs))
        low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
        print(f"{name:36s} {middle:.3f} ({low:.3f} to {high:.3f}), {len(ratios)} pairs", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
