"""Where the time of a round goes, beside what moving its bytes once would take.

    python -m benchmarks.roofline            writes docs/profile.md

For each shape the kernels of a fit are timed from inside, and each is set against the time that
reading and writing the arrays it must touch would take at the speed of a plain copy.
"""

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import machine
from benchmarks.engine import short_rounds, slope
from benchmarks.parts import kernel_seconds
from benchmarks.tables import number, table
from manyboost import ManyBoostClassifier, ManyBoostRegressor

THREADS = 2
LEAVES = 31
FITS = 3  # of which the fastest counts
WORTH_A_LINE = 0.02  # of a round
PAGE = Path(__file__).parent.parent / "docs" / "profile.md"


@dataclass(frozen=True)
class Shape:
    n: int
    p: int
    d: int
    labels: bool = False
    weighted: bool = False
    filled: float = 1.0  # share of the features that are not zero, which are all that is stored
    rounds: int = 42

    @property
    def title(self) -> str:
        parts = [
            f"{self.n:,} rows × {self.p:,} features × {self.d:,} outputs",
            "log loss" if self.labels else "squared error",
        ]
        if self.weighted:
            parts.append("rows with weights")
        if self.filled < 1:
            parts.append(f"sparse, {self.filled:.0%} filled")
        return ", ".join(parts)

    def bytes_once(self) -> dict[str, float]:
        """Bytes that each kernel has to read and write at least, in one round."""
        cells, weights = 4.0 * self.n * self.d, 4.0 * self.n if self.weighted else 0.0
        # Every row passes through log2(leaves) nodes, in the smaller of two half the time; what is
        # stored of sparse features has a row number beside the bin.
        stored = self.n * self.p * (self.filled * 5 if self.filled < 1 else 1)
        grow = {"grow": (stored + weights) * (1 + 0.5 * np.log2(LEAVES))}
        if not self.labels:
            return grow | {"sweep": 2 * cells + weights}  # residuals, read and written in place
        # Raw predictions are read and written, residuals written and read again, labels read.
        labels = self.n * self.d
        return grow | {"advance": 3 * cells + labels + weights, "leaf_sums": cells + labels}

    def data(self) -> tuple[Any, np.ndarray, dict[str, np.ndarray]]:
        """Features, targets, and further arguments of `fit`."""
        rng = np.random.default_rng(0)
        if self.filled < 1:
            X: Any = sparse.random(
                self.n, self.p, self.filled, format="csr", dtype=np.float32, random_state=rng
            )
        else:
            X = rng.normal(size=(self.n, self.p)).astype(np.float32)
        Y = np.tanh(X @ rng.normal(size=(self.p, self.d))) + rng.normal(size=(self.n, self.d))
        Y = (Y > 1).astype(np.uint8) if self.labels else Y
        return X, Y, {"sample_weight": rng.uniform(0.5, 1.5, self.n)} if self.weighted else {}


SHAPES = [
    Shape(20_000, 50, 50),
    Shape(20_000, 50, 1000),
    Shape(20_000, 50, 1000, labels=True),
    Shape(400, 70, 6, rounds=600),
    Shape(200_000, 20, 5, weighted=True),
    Shape(5_000, 1_800, 150, labels=True, filled=0.04),
    Shape(2**20 + 20_000, 20, 5),
]
MEANING = {
    "sweep": "residuals moved, their loss, sums by leaf, next projection",
    "advance": "leaf values added, residuals taken, loss, projection",
    "leaf_sums": "residuals and curvature summed by leaf",
    "grow": "histograms, split search, partition",
}


def copy_speed() -> float:
    """Bytes a second that plain copies move (read and written), all threads together."""
    arrays = [np.ones(20_000_000, np.float32) for _ in range(2 * THREADS)]
    best = np.inf
    for _ in range(5):
        pairs = [(arrays[2 * i], arrays[2 * i + 1]) for i in range(THREADS)]
        threads = [threading.Thread(target=np.copyto, args=pair) for pair in pairs]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        best = min(best, time.perf_counter() - start)
    return THREADS * 2 * arrays[0].nbytes / best


def round_seconds(shape: Shape) -> tuple[dict[str, float], float]:
    """Seconds a round spends in each kernel, and in all.

    The profiler slows Python down, not the kernels: the whole is the slope between a short and a
    long fit without it.
    """
    X, Y, arguments = shape.data()
    kind = ManyBoostClassifier if shape.labels else ManyBoostRegressor

    def fit(rounds: int) -> float:
        model = kind(max_iter=rounds, max_leaf_nodes=LEAVES, n_jobs=THREADS, random_state=0)
        model.set_params(early_stopping=False)
        began = time.perf_counter()
        model.fit(X, Y, **arguments)
        return time.perf_counter() - began

    few = short_rounds(shape.rounds)
    fit(few)
    short, long, spent = [], [], []
    for _ in range(FITS):
        short.append(fit(few))
        long.append(fit(shape.rounds))
        spent.append(kernel_seconds(lambda: fit(shape.rounds), shape.rounds))
    kernels = {name: min(each[name] for each in spent) for name in spent[0]}
    return kernels, slope(few, short, shape.rounds, long)


def section(shape: Shape, speed: float) -> str:
    kernels, whole = round_seconds(shape)
    least = shape.bytes_once()
    shown = [name for name in kernels if name in MEANING or kernels[name] > WORTH_A_LINE * whole]
    # The profiler makes short kernels look longer than they are in the whole.
    rest = max(0.0, whole - sum(kernels[name] for name in shown))
    rows = []
    for name in sorted(shown, key=lambda name: (*MEANING, name).index(name)):
        what = f"`{name}`: {MEANING[name]}" if name in MEANING else f"`{name}`"
        limit = ["", "", ""]
        if name in least:
            seconds = least[name] / speed
            share = f"{seconds / kernels[name]:.0%}"
            limit = [number(least[name], 1e-6), number(seconds, 1e3), share]
        rows.append([what, *time_and_share(kernels[name], whole), *limit])
    rows += [
        ["the rest (Python, small arrays)", *time_and_share(rest, whole), "", "", ""],
        ["all", *time_and_share(whole, whole), "", "", ""],
    ]
    head = ("part of a round", "ms", "share", "MB once", "ms at copy speed", "share of that limit")
    return f"## {shape.title}\n\n{table(head, rows, 1, 6)}"


def time_and_share(seconds: float, whole: float) -> list[str]:
    return [number(seconds, 1e3), f"{seconds / whole:.0%}"]


def main() -> None:
    speed = copy_speed()
    text = [
        "# Where a round's time goes",
        "",
        (
            "Generated by `make profile`; do not edit. The time of each kernel of a round is "
            "compared with the time to read and write the arrays it needs once, at the speed of a "
            f"plain copy on the same machine: {speed / 1e9:.1f} GB/s with {THREADS} threads. 100% "
            "is the limit of the memory; arrays that fit into a cache can exceed it. Histograms "
            "are limited by one addition per row and feature, not by bytes, and stay far below "
            f"100%. `relabel`, one component, {LEAVES} leaves, the fastest of {FITS} fits. The "
            "time of a complete round is the time of a long fit minus that of a short fit, divided "
            "by the difference of their rounds. "
            f"{machine.cpu()}; {machine.library('manyboost')}."
        ),
    ]
    for shape in SHAPES:
        print(shape.title, flush=True)
        text += ["", section(shape, speed)]
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("\n".join(text) + "\n")
    print(f"written to {PAGE}")


if __name__ == "__main__":
    main()
