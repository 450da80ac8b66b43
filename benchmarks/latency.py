"""Times of one row and of a row of a batch, in Python and C, beside LightGBM.

    python -m benchmarks.latency            measures, and writes docs/guide/deploy.md
    python -m benchmarks.latency --page     writes the page alone

Figures go to `benchmarks/results/latency.json`. Run it with the interpreter of `.venv-bench`, on a
machine that does nothing else. Takes two minutes. A model has 100 rounds of 31 leaves. A time is
the median of many calls, one after the other, of one thread.
"""

import argparse
import ctypes
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine, one_build
from benchmarks.run import OthersLoad, busy_meanwhile
from benchmarks.tables import filled, number, table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "latency.json"
PAGE = ROOT / "docs" / "guide" / "deploy.md"

FEATURES = 50
BATCH = 1000
OUTPUTS = (1, 20, 200)
#: Calls that a median is taken of, for one row and for a batch.
CALLS, BATCHES = 2000, 20


def microseconds(call: Callable[[], Any], calls: int) -> float:
    """The median time of a call."""
    for _ in range(calls // 10 + 1):
        call()
    times = []
    for _ in range(calls):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return 1e6 * statistics.median(times)


def data(outputs: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(outputs)
    X = rng.normal(size=(5000, FEATURES))
    return X, np.tanh(X @ rng.normal(size=(FEATURES, outputs))) + rng.normal(size=(5000, outputs))


def python_times(model: Any, X: np.ndarray) -> dict[str, float]:
    row, batch = X[:1].copy(), X[:BATCH].copy()
    return {
        "row": microseconds(lambda: model.predict(row), CALLS),
        "batch": microseconds(lambda: model.predict(batch), BATCHES) / BATCH,
    }


def library() -> ctypes.CDLL:
    """The library for C, compiled as the guide says."""
    path = Path(tempfile.mkdtemp()) / "libmanyboost_predict.so"
    options = ["--edition", "2021", "-O", "--crate-name", "manyboost_predict"]
    options += ["--cfg", 'feature="c"', "--crate-type", "cdylib", "src/lib.rs", "-o", str(path)]
    subprocess.run(["rustc", *options], cwd=ROOT / "crates" / "predict", check=True)
    loaded = ctypes.CDLL(str(path))
    loaded.manyboost_open.restype = ctypes.c_void_p
    return loaded


def c_times(c: ctypes.CDLL, model: Any, X: np.ndarray) -> dict[str, float]:
    with tempfile.NamedTemporaryFile(suffix=".mb") as file:
        model.save(file.name)
        content = Path(file.name).read_bytes()
    address = c.manyboost_open(content, ctypes.c_size_t(len(content)), None, ctypes.c_size_t(0))
    opened, out = ctypes.c_void_p(address), np.empty((BATCH, model.n_outputs_))
    rows, to = (ctypes.c_void_p(each.ctypes.data) for each in (X[:BATCH], out))

    def call(n_rows: int) -> Callable[[], Any]:
        count = ctypes.c_size_t(n_rows)
        return lambda: c.manyboost_predict(opened, rows, count, to)

    times = {
        "row": microseconds(call(1), CALLS),
        "batch": microseconds(call(BATCH), BATCHES) / BATCH,
    }
    assert np.array_equal(out, model.predict(X[:BATCH]).reshape(out.shape))
    c.manyboost_close(opened)
    return times


def lightgbm_times(X: np.ndarray, Y: np.ndarray) -> dict[str, float]:
    """One model for each output, asked one after the other."""
    import lightgbm

    parameters = {"num_leaves": 31, "num_threads": 1, "verbosity": -1}
    models = [
        lightgbm.train(parameters, lightgbm.Dataset(X, y, params={"verbosity": -1}), 100)
        for y in Y.T
    ]
    row, batch = X[:1].copy(), X[:BATCH].copy()

    def call(rows: np.ndarray) -> Callable[[], Any]:
        return lambda: [model.predict(rows, num_threads=1) for model in models]

    few = max(20, CALLS // Y.shape[1])
    return {
        "row": microseconds(call(row), few),
        "batch": microseconds(call(batch), 3) / BATCH,
    }


def measure() -> dict[str, Any]:
    from manyboost import ManyBoostRegressor

    others, c, figures = OthersLoad(), library(), {}
    for outputs in OUTPUTS:
        X, Y = data(outputs)
        options = {"max_iter": 100, "max_leaf_nodes": 31, "random_state": 0, "n_jobs": 1}
        model = ManyBoostRegressor(**options, early_stopping=False).fit(X, Y)
        figures[str(outputs)] = {
            "manyboost, Python": python_times(model, X),
            "manyboost, C": c_times(c, model, X),
            "LightGBM, a model for each output": lightgbm_times(X, Y),
        }
        print(outputs, json.dumps(figures[str(outputs)]), flush=True)
    return {"machine": machine.describe(), "figures": figures, "others_cores": others.cores()}


def page_table(stored: dict[str, Any]) -> str:
    head = ["", *(f"{n} output{'s' * (int(n) > 1)}, a row" for n in stored["figures"])]
    head += [f"{n}, a row of {BATCH:,}" for n in stored["figures"]]
    names = list(next(iter(stored["figures"].values())))
    rows = [
        [name]
        + [f"{number(stored['figures'][n][name]['row'])} µs" for n in stored["figures"]]
        + [f"{number(stored['figures'][n][name]['batch'])} µs" for n in stored["figures"]]
        for name in names
    ]
    about = stored["machine"]
    libraries = [
        each for each in about["libraries"] if each.split()[0] in ("manyboost", "lightgbm")
    ]
    return (
        f"{table(head, rows, 1, len(head))}\n\n"
        f"100 rounds of 31 leaves, {FEATURES} features, one thread; {about['cpu']}; "
        f"{', '.join(libraries)}; `make bench-latency`. {busy_meanwhile([stored])}"
    ).strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", action="store_true", help="write the page alone")
    if not parser.parse_args().page:
        one_build.save(RESULTS, measure())
    stored = one_build.read(RESULTS)
    PAGE.write_text(filled(PAGE.read_text(), {"latency": page_table(stored)}))


if __name__ == "__main__":
    main()
