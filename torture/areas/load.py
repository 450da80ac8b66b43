"""Eight threads that predict with one model, and a fit meanwhile."""

from __future__ import annotations

import gc
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from torture.figures import Figure, none_of
from torture.models import model_bytes

TITLE = "load"
PROMISE = (
    "Eight threads that predict with one model, while another one fits, get the answers of one "
    "thread alone, and memory does not grow."
)

THREADS = 8
LEAK = 16 << 20


def run(long: bool, seed: int) -> list[Figure]:
    seconds = 60.0 if long else 2.0
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3_000, 12))
    Y = X @ rng.normal(size=(12, 40)) + rng.normal(size=(len(X), 40))
    calls = requests(X, Y, rng)
    expected = [call() for call in calls]
    fitted = model_bytes(fit(X, Y))
    wrong: list[str] = []
    counts = [0] * THREADS
    fits = [0]
    over = threading.Event()

    def predict(thread: int) -> None:
        order = np.random.default_rng(seed + thread)
        while not over.is_set():
            k = int(order.integers(len(calls)))
            try:
                if not np.array_equal(calls[k](), expected[k]):
                    wrong.append(f"thread {thread}, request {k}: another answer")
            except Exception as error:
                wrong.append(f"thread {thread}, request {k}: {error!r}")
            counts[thread] += 1

    def train() -> None:
        while not over.is_set():
            if model_bytes(fit(X, Y)) != fitted:
                wrong.append(f"fit {fits[0]}: another model")
            fits[0] += 1

    threads = [threading.Thread(target=predict, args=(k,)) for k in range(THREADS)]
    threads.append(threading.Thread(target=train))
    for thread in threads:
        thread.start()
    readings = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(seconds / 40)
        readings.append(resident_bytes())
    over.set()
    for thread in threads:
        thread.join()
    gc.collect()
    # The first quarter warms up: arenas of threads, buffers.
    quarter = len(readings) // 4
    grown = np.median(readings[-quarter:]) - np.median(readings[quarter : 2 * quarter])
    return [
        none_of(
            f"other answers than alone: {THREADS} threads, {seconds:.0f} s, beside {fits[0]} fits",
            sum(counts),
            wrong,
        ),
        Figure(
            "growth of resident memory meanwhile",
            f"< {LEAK >> 20} MB",
            f"{max(0, grown) / (1 << 20):.1f} MB",
            grown < LEAK,
            sum(counts),
        ),
    ]


def fit(X: Any, Y: Any) -> Any:
    return ManyBoostRegressor(max_iter=10, random_state=0, n_jobs=2).fit(X, Y)


def requests(X: Any, Y: Any, rng: Any) -> list[Any]:
    """What is asked of the models: all methods, a row or thousands, one thread or two."""
    model = ManyBoostRegressor(max_iter=30, random_state=0, n_jobs=2).fit(X, Y)
    small = ManyBoostRegressor(strategy="project", max_iter=30, random_state=0, n_jobs=1).fit(X, Y)
    labels = ManyBoostClassifier(max_iter=30, random_state=0, n_jobs=2).fit(X, (Y > 1).astype(int))
    few = X[rng.integers(len(X), size=5)]
    return [
        lambda: model.predict(X),
        lambda: model.predict(few),
        lambda: model.predict(X, outputs=[3, 1], dtype=np.float32),
        lambda: small.predict(X),
        lambda: small.predict(few[:1]),
        lambda: labels.predict_proba(X),
        lambda: labels.predict(few),
        lambda: labels.predict_top_k(few, 3)[0],
        lambda: model.shap_values(few),
    ]


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
