"""Measure the constants of the cost model: ``costs.json``.

Sorting and the fixed work of a tree are those of scikit-learn's exact trees, passes over residuals
those of NumPy, Brent's method that of SciPy. The statistics of a scan are measured on
``exact_scan.c``, which keeps four sums for each output as scikit-learn did until 0.16; later
versions keep one. Run it on an idle machine with a C compiler:
``python -m experiments.cost_measurement``.

Constants are medians over fresh processes. In these, memory that was released is used again: else
the C library returns it to the system or not by rules of its own, and the temporary arrays of a
pass cost up to twice as much in one process as in another.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar, nnls
from scipy.special import expit
from sklearn import __version__ as sklearn_version
from sklearn.tree import DecisionTreeRegressor

from experiments.costs import FILE, GROUPS

Array = NDArray[Any]
_GROWING = ("sort", "scan", "its move", "its judge", "tree")
_SHAPES = itertools.product((300, 1000, 4000), (10, 40), (1, 8, 64, 256), (2, 16, 10**9), (2, 6))
_CELLS = (2000, 100)
_PROCESSES = 5
#: One thread; no memory goes back to the system (glibc; other C libraries ignore the names).
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
}
_ERROR = "typical error of the growing model"


def main(arguments: Sequence[str] = ()) -> None:
    """Measure, write and show the constants; ``--once`` only prints those of this process."""
    if list(arguments) == ["--once"]:
        json.dump(measure(), sys.stdout)
        return
    command = [sys.executable, "-m", "experiments.cost_measurement", "--once"]
    environment = {**os.environ, **_ENVIRONMENT}
    runs = []
    for _ in range(_PROCESSES):
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
        runs.append(json.loads(done.stdout))
    FILE.write_text(json.dumps(summary(runs), indent=1) + "\n", "utf-8")
    sys.stdout.write(FILE.read_text("utf-8"))


def summary(runs: Sequence[Mapping[str, float]]) -> dict[str, dict[str, Any]]:
    """Return the content of ``costs.json``: medians over processes, and how far these differ.

    The spread leaves out the highest and the lowest value of a constant.
    """
    values = {name: sorted(run[name] for run in runs) for name in runs[0]}
    medians = {name: statistics.median(each) for name, each in values.items()}
    error = medians.pop(_ERROR)
    spreads = {name: (values[name][-2] - values[name][1]) / medians[name] for name in medians}
    widest = max(spreads, key=spreads.__getitem__)
    about = {
        "unit": "nanoseconds; evaluations: a number",
        "measured on": f"scikit-learn {sklearn_version}, NumPy {np.__version__}, one thread",
        "processes": len(runs),
        "largest spread over processes": f"{spreads[widest]:.0%}, of {widest}",
        _ERROR: round(error, 2),
    }
    return {
        "about": about,
        "constants": {name: float(f"{value:.3g}") for name, value in medians.items()},
    }


def measure() -> dict[str, float]:
    """Measure the constants in this process, and the typical error of the growing model."""
    growing, error = _growing()
    kept = {name: growing[name] for name in ("sort", "scan", "tree")}
    measured = {**kept, **_statistics(), **_passes(), **_brent()}
    assert set(measured) == {n for names in GROUPS.values() for n in names} | {"evaluations"}
    return {**measured, _ERROR: error}


def _seconds(work: Callable[[], object], repeats: int = 20) -> float:
    """Return the shortest CPU time of a call."""
    best = np.inf
    for _ in range(repeats):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return float(best)


def _growing() -> tuple[dict[str, float], float]:
    """Fit the constants of the splitter to the times of exact trees of many shapes."""
    rng = np.random.default_rng(0)
    rows, times = [], []
    for n, p, q, v, leaves in _SHAPES:
        if n * p * q > 12_000_000:
            continue
        levels = min(n, v)
        X = rng.permuted(np.tile(np.arange(n) % levels, (p, 1)), axis=1).T.astype(np.float32)
        X = np.asfortranarray(X)
        Y = rng.normal(size=(n, q))
        tree = DecisionTreeRegressor(max_leaf_nodes=leaves, random_state=0)
        times.append(_seconds(lambda: tree.fit(X, Y, check_input=False), 3))  # noqa: B023
        row = np.zeros(len(_GROWING))
        row[4] = 1
        for m in tree.tree_.n_node_samples:  # each node was evaluated once
            values = min(levels, m)
            row[:4] += p * np.array([m * np.log2(values), m, q * m, q * values])
        rows.append(row)
    seconds = np.array(times)
    design = np.array(rows) / seconds[:, None]  # relative errors
    scale = np.linalg.norm(design, axis=0)
    found, _ = nnls(design / scale, np.ones(len(seconds)))
    found /= scale
    error = np.median(np.abs(design @ found - 1))
    return {n: 1e9 * value for n, value in zip(_GROWING, found, strict=True)}, float(error)


def _statistics() -> dict[str, float]:
    """Measure what a scan does for each column: moving a row, judging a threshold."""
    rng = np.random.default_rng(0)
    rows, times = [], []
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "scan.so"
        source = Path(__file__).with_name("exact_scan.c")
        # Compilers of that time did not vectorise at -O2.
        options = ["-O2", "-fno-tree-vectorize", "-shared", "-fPIC"]
        subprocess.run(["cc", *options, str(source), "-o", str(library)], check=True)
        scan = ctypes.CDLL(str(library)).scan
        for n, q, v in itertools.product((300, 1000, 4000), (1, 8, 64, 256), (2, 10**9)):
            order = rng.permutation(n)
            is_threshold = np.zeros(n, np.int8)
            thresholds = np.linspace(0, n, min(n, v) + 1).astype(int)[1:-1]
            is_threshold[thresholds - 1] = 1
            y = rng.normal(size=(n, q))
            sums = [np.zeros(q), y.sum(axis=0), np.zeros(q), (y * y).sum(axis=0)]
            pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (order, is_threshold, y, *sums)]
            sizes = ctypes.c_size_t(n), ctypes.c_size_t(q)
            times.append(_seconds(lambda: scan(*sizes, *pointers), 7))  # noqa: B023
            rows.append([n * q, len(thresholds) * q, n])
    design = np.array(rows) / np.array(times)[:, None]
    scale = np.linalg.norm(design, axis=0)
    found, _ = nnls(design / scale, np.ones(len(times)))
    move, judge, _ = 1e9 * found / scale
    return {"move": float(move), "judge": float(judge)}


def _passes() -> dict[str, float]:
    """Measure passes over the cells of an array of residuals."""
    rng = np.random.default_rng(0)
    n, d = _CELLS
    y = (rng.random(_CELLS) < 0.1).astype(float)
    f, r, g = (rng.normal(size=_CELLS) for _ in range(3))
    leaf = rng.integers(0, 4, n)
    phi = rng.normal(size=(8, d))
    values, rho = rng.normal(size=(4, d)), rng.normal(size=d)

    def leaf_values() -> Array:
        return np.array([r[leaf == number].mean(axis=0) for number in range(4)])

    def medians() -> Array:
        ratios, weights = r / g, np.abs(g)
        order = np.argsort(ratios, axis=0)
        total = np.take_along_axis(weights, order, axis=0).cumsum(axis=0)
        return np.asarray(np.argmax(total >= total[-1] / 2, axis=0))

    def update() -> None:
        nonlocal f
        f += 0.1 * rho * values[leaf]

    per_cell = 1e9 / (n * d)
    return {
        "gradient squared_error": per_cell * _seconds(lambda: y - f),
        "gradient absolute_error": per_cell * _seconds(lambda: np.sign(y - f)),
        "gradient log_loss": per_cell * _seconds(lambda: y - expit(f)),
        "project": per_cell / 8 * _seconds(lambda: r @ phi.T),
        "leaf values": per_cell * _seconds(leaf_values),
        "step squared_error": per_cell
        * _seconds(lambda: (r * g).sum(axis=0) / (g * g).sum(axis=0)),
        "step absolute_error": per_cell / np.log2(n) * _seconds(medians),
        "update": per_cell * _seconds(update),
    }


def _brent() -> dict[str, float]:
    """Measure Brent's method for the logistic loss: evaluations, and the time of each."""
    rng = np.random.default_rng(0)
    times, counts = [], []
    sizes = (200, 2000, 20000)
    for n in sizes:
        feature = rng.random(n)
        spent, n_evaluations = 0.0, 0
        for _ in range(10):
            chance = 0.02 + 0.4 * rng.random() * (feature > 0.5)
            sign = np.where(rng.random(n) < chance, 1.0, -1.0)
            f = np.full(n, 0.5 * np.log((sign.mean() + 1) / (1 - sign.mean())))
            residual = (sign > 0) - expit(2 * f)
            right = feature > 0.5
            g = np.where(right, residual[right].mean(), residual[~right].mean())

            def loss(rho: float) -> float:
                return float(np.logaddexp(0, -2 * sign * (f + rho * g)).sum())  # noqa: B023

            n_evaluations += minimize_scalar(loss, method="brent").nfev
            spent += _seconds(lambda: loss(0.5))
        times.append(spent / 10)
        counts.append(n_evaluations / 10)
    slope, intercept = np.polyfit(sizes, times, 1, w=1 / np.array(times))
    return {
        "evaluations": float(np.mean(counts)),
        "step log_loss": 1e9 * float(slope),
        "evaluation": 1e9 * max(0.0, float(intercept)),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
