"""Memory of training from a file of 4 GB, read in blocks.

    python -m benchmarks.out_of_core     writes benchmarks/results/out_of_core.json, and the table
                                         of docs/guide/scaling-out-of-core.md

A file of features (float64) and one of targets (float32) are made in a temporary folder, and a
child process fits a few rounds to them. Its peak is what the system counts (VmHWM), which includes
the pages of mapped files that happen to be in memory and that it could take back at any time; the
peak of what it could not take back (RssAnon) is sampled beside it.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import one_build
from benchmarks.machine import describe, versions
from benchmarks.tables import filled

N_ROWS, N_FEATURES, N_OUTPUTS, ROUNDS = 5_000_000, 100, 20, 5
CHUNK = 100_000
RESULTS = Path(__file__).parent / "results" / "out_of_core.json"
PAGE = Path(__file__).parent.parent / "docs" / "guide" / "scaling-out-of-core.md"


def make_files(folder: Path, n_rows: int) -> tuple[Path, Path]:
    """Write features and targets, some rows at a time."""
    paths = folder / "X.npy", folder / "Y.npy"
    shapes = (n_rows, N_FEATURES), (n_rows, N_OUTPUTS)
    W = np.random.default_rng(0).normal(size=(10, N_OUTPUTS)).astype(np.float32)
    with paths[0].open("wb") as X_file, paths[1].open("wb") as Y_file:
        for file, shape, dtype in zip((X_file, Y_file), shapes, ("<f8", "<f4"), strict=True):
            header = {"descr": dtype, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, n_rows, CHUNK):
            rng = np.random.default_rng([1, start])
            X = rng.standard_normal((min(CHUNK, n_rows - start), N_FEATURES))
            X.tofile(X_file)
            noise = rng.standard_normal((len(X), N_OUTPUTS), dtype=np.float32)
            (np.sin(X[:, :10]).astype(np.float32) @ W + noise).tofile(Y_file)
    return paths


def status(name: str) -> int:
    """A figure of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


def fit(X: str, Y: str, scratch: str, rounds: int) -> dict[str, Any]:
    """Fit in this process; returns seconds and peaks."""
    from manyboost import ManyBoostRegressor
    from manyboost.distributed import fit_files

    peak, done = 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.02):
            peak = max(peak, status("RssAnon"))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    began = time.perf_counter()
    model = ManyBoostRegressor(max_iter=rounds, random_state=0)
    fit_files(model, X, Y, scratch=scratch)
    seconds = time.perf_counter() - began
    done.set()
    watcher.join()
    score = float(model.validation_score_[-1] / model.validation_score_[0])
    return {
        "seconds": seconds,
        "peak_bytes": status("VmHWM"),
        "peak_anonymous_bytes": peak,
        "validation_loss_left": score,
    }


def measure(n_rows: int, rounds: int) -> dict[str, Any]:
    """Make files and fit them in a child process."""
    with tempfile.TemporaryDirectory() as folder:
        X, Y = make_files(Path(folder), n_rows)
        file_bytes = X.stat().st_size
        command = [sys.executable, "-m", "benchmarks.out_of_core", "--child"]
        arguments = [str(X), str(Y), folder, str(rounds)]
        done = subprocess.run(command + arguments, capture_output=True, text=True, check=True)
    return {
        "n_rows": n_rows,
        "n_features": N_FEATURES,
        "n_outputs": N_OUTPUTS,
        "rounds": rounds,
        "file_bytes": file_bytes,
        "bound_bytes": 10**9 + n_rows * N_OUTPUTS * 4,
        **json.loads(done.stdout),
    }


def table(run: dict[str, Any], machine: dict[str, Any]) -> str:
    """The figures as a page shows them."""
    rows = [
        ("file of features", f"{run['file_bytes'] / 1e9:.2f} GB"),
        ("bound: 1 GB and 4 bytes for each cell", f"{run['bound_bytes'] / 1e9:.2f} GB"),
        ("peak memory, mapped bins included", f"{run['peak_bytes'] / 1e9:.2f} GB"),
        ("peak memory that is not a file", f"{run['peak_anonymous_bytes'] / 1e9:.2f} GB"),
        ("time, reading and binning included", f"{run['seconds']:.0f} s"),
    ]
    shape = (
        f"{run['n_rows']:,} rows, {run['n_features']} features (float64), {run['n_outputs']} "
        f"outputs (float32), {run['rounds']} rounds, early stopping on. {machine['cpu']}, "
        f"{machine['cores']} cores; {versions(machine)}."
    )
    lines = ["| what | measured |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows)]
    return "\n".join([shape, "", *lines])


def write(record: dict[str, Any]) -> None:
    """Write the figures, and the table between the marks of its page."""
    one_build.save(RESULTS, record)
    shown = table(record["run"], record["machine"])
    PAGE.write_text(filled(PAGE.read_text(), {"measured": shown}))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=N_ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        X, Y, scratch, rounds = arguments.child
        print(json.dumps(fit(X, Y, scratch, int(rounds))))
        return
    write({"machine": describe(), "run": measure(arguments.rows, arguments.rounds)})


if __name__ == "__main__":
    main()
