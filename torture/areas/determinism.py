"""Model bytes over numbers of threads, and across a pickled round trip."""

from __future__ import annotations

import pickle

import numpy as np

from torture.figures import Figure, none_of
from torture.models import STRATEGIES, model_bytes, samples

TITLE = "determinism"
PROMISE = (
    "The same data and seed give the same model, byte for byte, whatever the number of threads."
)

THREADS = (1, 2, 3, 8)


def run(long: bool, seed: int) -> list[Figure]:
    n_rows, n_seeds = (5_000, 20) if long else (2_000, 1)
    differing, fits = [], 0
    changed_by_pickle, pickles = [], 0
    for model_seed in range(seed, seed + n_seeds):
        for strategy in STRATEGIES:
            for sample in samples(model_seed, n_rows, strategy):
                name = f"{sample.name}, {strategy}, seed {model_seed}"
                serial = sample.fit(n_jobs=1)
                expected = model_bytes(serial)
                differing += [
                    f"{name}, {threads} threads"
                    for threads in THREADS[1:]
                    if model_bytes(sample.fit(n_jobs=threads)) != expected
                ]
                again = pickle.loads(pickle.dumps(serial))
                same = np.array_equal(again.predict(sample.X), serial.predict(sample.X))
                if not same or model_bytes(again) != expected:
                    changed_by_pickle.append(name)
                fits += len(THREADS)
                pickles += 1
    threads = ", ".join(map(str, THREADS))
    return [
        none_of(f"models that differ between threads ({threads})", fits, differing),
        none_of("models changed by a pickled round trip", pickles, changed_by_pickle),
    ]
