"""Forks, joblib's backends, fits at once in threads, and Python without its lock."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from manyboost import ManyBoostRegressor
from torture.figures import Figure, none_of, skipped
from torture.models import ROOT, STRATEGIES, model_bytes

TITLE = "processes"
PROMISE = (
    "Fits in forked children, in joblib's workers and at once in several threads neither hang nor "
    "differ from a fit alone."
)

PATIENCE = 120.0  # seconds after which a fit of a tenth of a second counts as a deadlock


def run(long: bool, seed: int) -> list[Figure]:
    counts = {
        "children forked after a fit": 20 if long else 2,
        "children forked while threads fit": 100 if long else 4,
        "joblib, loky": 40 if long else 2,
        "joblib, multiprocessing": 40 if long else 2,
        "joblib, threading": 40 if long else 2,
        "fits at once in threads": 40 if long else 4,
    }
    figures = []
    for name, count in counts.items():
        figures.append(
            none_of(f"{name}: hangs, crashes, other models", count, failures(name, count, seed))
        )
    return [*figures, without_lock()]


def failures(name: str, count: int, seed: int) -> list[str]:
    """What went wrong in a scenario, which runs in a process of its own."""
    command = [sys.executable, "-m", "torture.areas.processes", name, str(count), str(seed)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=PATIENCE + 20 * count)
        return json.loads(output)
    except subprocess.TimeoutExpired:
        return ["the whole scenario hangs"]
    except ValueError:
        return [f"the process ended with code {process.returncode}"]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


# ---------------------------------------------------------------- what is fitted


def problem(k: int) -> tuple[dict[str, Any], Any, Any]:
    """Parameters and data of the k-th fit; large enough that threads take part."""
    rng = np.random.default_rng(k % 4)
    X = rng.normal(size=(4_000, 6))
    Y = X @ rng.normal(size=(6, 12)) + rng.normal(size=(len(X), 12))
    parameters = {"strategy": STRATEGIES[k % 4], "max_iter": 6, "random_state": k % 4}
    return parameters, X, Y


def fitted(k: int, n_jobs: int = 2) -> bytes:
    """The model of the k-th fit, and its predictions."""
    parameters, X, Y = problem(k)
    model = ManyBoostRegressor(n_jobs=n_jobs, **parameters).fit(X, Y)
    return model_bytes(model) + model.predict(X).tobytes()


# ---------------------------------------------------------------- scenarios


def forked_after_a_fit(count: int, rng: random.Random) -> list[str]:
    expected = [fitted(k) for k in range(4)]
    return [words for k in range(count) if (words := in_child(k, expected[k % 4]))]


def forked_while_threads_fit(count: int, rng: random.Random) -> list[str]:
    expected = [fitted(k) for k in range(4)]
    over = threading.Event()
    wrong: list[str] = []

    def fit_on(first: int) -> None:
        k = first
        while not over.is_set():
            # New numbers of threads make new pools, which a fork may catch in the making.
            if fitted(k, n_jobs=2 + k % 5) != expected[k % 4]:
                wrong.append(f"the parent's fit {k}")
            k += 1

    threads = [threading.Thread(target=fit_on, args=(first,)) for first in (0, 1)]
    for thread in threads:
        thread.start()
    try:
        for k in range(count):
            time.sleep(rng.uniform(0, 0.05))
            words = in_child(k, expected[k % 4])
            wrong += [words] if words else []
    finally:
        over.set()
        for thread in threads:
            thread.join()
    return wrong


def in_child(k: int, expected: bytes) -> str:
    """Fit in a forked child; what went wrong."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            code = 0 if fitted(k) == expected else 2
        finally:
            os._exit(code)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return {0: "", 2: f"child {k}: another model"}.get(code, f"child {k}: ended by {code}")
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"child {k}: hangs"


def with_joblib(backend: str) -> Callable[[int, random.Random], list[str]]:
    def scenario(count: int, rng: random.Random) -> list[str]:
        from joblib import Parallel, delayed

        expected = [fitted(k) for k in range(4)]
        jobs = (delayed(fitted)(k) for k in range(count))
        results = Parallel(n_jobs=min(4, count), backend=backend)(jobs)
        return [f"fit {k}" for k, result in enumerate(results) if result != expected[k % 4]]

    return scenario


def at_once_in_threads(count: int, rng: random.Random) -> list[str]:
    expected = [fitted(k) for k in range(4)]
    wrong: list[str] = []

    def fit_some(first: int) -> None:
        mine = range(first, count, 4)
        wrong.extend(f"fit {k}" for k in mine if fitted(k, 1 + k % 3) != expected[k % 4])

    threads = [threading.Thread(target=fit_some, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


SCENARIOS = {
    "children forked after a fit": forked_after_a_fit,
    "children forked while threads fit": forked_while_threads_fit,
    "joblib, loky": with_joblib("loky"),
    "joblib, multiprocessing": with_joblib("multiprocessing"),
    "joblib, threading": with_joblib("threading"),
    "fits at once in threads": at_once_in_threads,
}


# ---------------------------------------------------------------- Python without its lock


def without_lock() -> Figure:
    """Fits at once in threads of a free-threaded Python, if there is one."""
    what, bar = "free-threaded Python: fits at once in threads", "0"
    python = next(filter(None, map(shutil.which, ("python3.14t", "python3.13t"))), None)
    if python is None:
        return skipped(what, bar, "no free-threaded Python is installed here")
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder) / "venv"
        subprocess.run([python, "-m", "venv", venv], check=True)
        own = venv / "bin" / "python"
        built = subprocess.run([own, "-m", "pip", "install", "--quiet", ROOT], check=False)
        if built.returncode != 0:
            return skipped(what, bar, f"the extension could not be built for {python}")
        command = [own, "-X", "gil=0", "-m", "torture.areas.processes", "fits at once in threads"]
        done = subprocess.run(
            [*command, "40", "0"], cwd=ROOT, stdout=subprocess.PIPE, check=False, timeout=1800
        )
    wrong = json.loads(done.stdout) if done.returncode == 0 else [f"code {done.returncode}"]
    return none_of(what, 40, wrong)


if __name__ == "__main__":
    name, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    wrong = SCENARIOS[name](count, random.Random(seed))
    print(json.dumps(wrong))
