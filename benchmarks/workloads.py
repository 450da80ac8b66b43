"""The data sets of the benchmark, by name: generated ones, and public ones from the data folder.

Generated workloads carry their shape in their name, rows × features × outputs, so any shape can be
asked for: `regression-500x10x5`, `multilabel-20000x50x1000`, `classes-20000x50x100`.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.sparse import csr_matrix

Task = Literal["regression", "multilabel", "multiclass"]

ROOT = Path(__file__).resolve().parent.parent
N_FACTORS = 10  # hidden functions that all outputs of a generated workload are mixed from
NOISE = 0.5  # standard deviation of the noise; that of the signal is 1


@dataclass
class Data:
    """Training and test rows; X is dense float32 or CSR, Y (n, d), or (n,) class numbers."""

    X: np.ndarray | csr_matrix
    Y: np.ndarray
    X_test: np.ndarray | csr_matrix
    Y_test: np.ndarray
    task: Task

    @property
    def n_outputs(self) -> int:
        if self.task == "multiclass":
            return int(self.Y.max()) + 1
        return self.Y.shape[1]

    def first_output(self) -> "Data":
        """The same rows with the first output alone."""
        return Data(self.X, self.Y[:, :1], self.X_test, self.Y_test[:, :1], self.task)


@dataclass(frozen=True)
class Workload:
    """A named data set, with the size of the model that is fitted to it."""

    name: str
    task: Task
    load: Callable[[], Data]
    n_rounds: int = 100
    max_leaf_nodes: int = 31
    file: Path | None = None

    def missing(self) -> str | None:
        """Why this workload cannot be run here, or None."""
        if self.file is not None and not self.file.is_file():
            return f"{self.file.name} is not in {self.file.parent} (set MANYBOOST_DATA)"
        return None


def data_folder() -> Path:
    return Path(os.environ.get("MANYBOOST_DATA", ROOT.parent / "shared" / "data"))


def find(name: str) -> Workload:
    """The workload of that name.

    Raises
    ------
    KeyError
        When nothing is called so.
    """
    if shaped := re.fullmatch(r"(regression|multilabel|classes)-(\d+)x(\d+)x(\d+)", name):
        shape = [int(number) for number in shaped.groups()[1:]]
        make, task = GENERATORS[shaped[1]]
        return Workload(name, task, lambda: make(*shape))
    if name == "friedman1":
        return Workload(name, "regression", friedman1, n_rounds=10_000, max_leaf_nodes=2)
    if name in FILES:
        task, dense = FILES[name]
        file = data_folder() / f"{name}.npz"
        return Workload(name, task, lambda: read(file, task, dense), file=file)
    raise KeyError(f"no workload is called {name!r}")


# ------------------------------------------------------------------ generated


def regression(n_rows: int, n_features: int, n_outputs: int) -> Data:
    """Correlated outputs: each is a random mixture of the same ten functions, plus noise."""
    rng = np.random.default_rng(0)
    X, signal = mixed_factors(rng, n_rows + n_rows // 4, n_features, n_outputs)
    signal += NOISE * rng.standard_normal(signal.shape, dtype=np.float32)
    return cut(X, signal, n_rows, "regression")


def multilabel(n_rows: int, n_features: int, n_outputs: int) -> Data:
    """Labels that are on where such a mixture is high; 1 % to 30 % of the rows have each label."""
    rng = np.random.default_rng(0)
    X, signal = mixed_factors(rng, n_rows + n_rows // 4, n_features, n_outputs)
    signal += NOISE * rng.standard_normal(signal.shape, dtype=np.float32)
    frequency = np.exp(rng.uniform(np.log(0.01), np.log(0.3), n_outputs))
    Y = np.empty(signal.shape, np.uint8)
    for j in range(n_outputs):
        Y[:, j] = signal[:, j] > np.quantile(signal[:n_rows, j], 1 - frequency[j])
    return cut(X, Y, n_rows, "multilabel")


def classes(n_rows: int, n_features: int, n_classes: int) -> Data:
    """One class per row, drawn with softmax probabilities of such mixtures, about as many each."""
    rng = np.random.default_rng(0)
    X, signal = mixed_factors(rng, n_rows + n_rows // 4, n_features, n_classes)
    signal *= 5.0
    signal += rng.gumbel(size=signal.shape).astype(np.float32)
    for _ in range(20):
        count = np.bincount(signal[:n_rows].argmax(axis=1), minlength=n_classes)
        signal -= 0.5 * np.log((count + 1) * n_classes / n_rows).astype(np.float32)
    y = signal.argmax(axis=1)
    # A class without a training row would be unknown to some contestants: it gets one.
    absent = np.setdiff1d(np.arange(n_classes), y[:n_rows])
    y[rng.choice(n_rows, len(absent), replace=False)] = absent
    _, y = np.unique(y, return_inverse=True)
    return cut(X, y, n_rows, "multiclass")


def friedman1() -> Data:
    """friedman1-group of the paper: 16 noisy copies of one function of 5 uniform features."""
    rng = np.random.default_rng(0)
    X = rng.random((4300, 5), dtype=np.float32)
    Y = friedman(X)[:, None] + rng.standard_normal((4300, 16))
    return cut(X, Y.astype(np.float32), 300, "regression")


def mixed_factors(
    rng: np.random.Generator, n_rows: int, n_features: int, n_outputs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Uniform features (n, p) and the signal (n, d): ten friedman functions, each of five of the
    features and scaled to variance 1, mixed with Gaussian weights."""
    X = rng.random((n_rows, n_features), dtype=np.float32)
    factors = np.empty((n_rows, N_FACTORS), np.float32)
    for k in range(N_FACTORS):
        factors[:, k] = friedman(X[:, rng.choice(n_features, 5, replace=n_features < 5)])
    factors -= factors.mean(axis=0)
    factors /= factors.std(axis=0)
    weights = rng.standard_normal((N_FACTORS, n_outputs), dtype=np.float32)
    return X, factors @ (weights / np.float32(np.sqrt(N_FACTORS)))


def friedman(x: np.ndarray) -> np.ndarray:
    """Friedman's first function of five columns."""
    x1, x2, x3, x4, x5 = x.T
    return 10 * np.sin(np.pi * x1 * x2) + 20 * (x3 - 0.5) ** 2 + 10 * x4 + 5 * x5


def cut(X, Y, n_train: int, task: Task) -> Data:
    """Copies, not views: no contestant pays for, or profits from, the rows beside its own."""
    parts = (X[:n_train], Y[:n_train], X[n_train:], Y[n_train:])
    return Data(*(part.copy() for part in parts), task)


GENERATORS: dict[str, tuple[Callable[[int, int, int], Data], Task]] = {
    "regression": (regression, "regression"),
    "multilabel": (multilabel, "multilabel"),
    "classes": (classes, "multiclass"),
}


# ------------------------------------------------------------------ from the data folder

# name: (task, X as a dense array). Some stay sparse; categories are used as their codes.
FILES: dict[str, tuple[Task, bool]] = {
    "mediamill": ("multilabel", True),
    "delicious": ("multilabel", True),
    "bibtex": ("multilabel", False),
    "scm20d": ("regression", True),
    "yeast-seq-go": ("multilabel", True),
    "emotions": ("multilabel", True),
    "atp1d": ("regression", True),
    "CAL500": ("multilabel", True),
    "oes97": ("regression", True),
    "yeast": ("multilabel", True),
    "scene": ("multilabel", True),
    "medical": ("multilabel", False),
    "genbase": ("multilabel", False),
    "enron": ("multilabel", False),
}


def read(file: Path, task: Task, dense: bool) -> Data:
    """A stored data set in its official split (its layout: README.md of the data folder)."""
    with np.load(file, allow_pickle=False) as z:
        if "X" in z:
            X = z["X"]
        else:
            parts = (z["X_data"].astype(np.float32), z["X_indices"], z["X_indptr"])
            X = csr_matrix(parts, shape=tuple(z["X_shape"]))
            X = X.toarray() if dense else X
        if "Y" in z:
            Y = z["Y"]
        else:
            ones = np.ones(len(z["Y_indices"]), np.uint8)
            parts = (ones, z["Y_indices"], z["Y_indptr"])
            Y = csr_matrix(parts, shape=tuple(z["Y_shape"])).toarray()
        # Sets without an official split are cut in halves.
        halves = np.random.default_rng(0).random(len(Y)) < 0.5
        train = z["split"] == 0 if "split" in z else halves
    return Data(X[train], Y[train], X[~train], Y[~train], task)
