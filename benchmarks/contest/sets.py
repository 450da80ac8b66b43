"""The sets of the data folder, and how their rows are parted."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks import workloads
from benchmarks.workloads import Data, Task

VALIDATION = 0.1  # of the training rows


@dataclass(frozen=True)
class Set:
    """What is predicted, and how often; each repeat has another validation part and seed."""

    task: Task
    repeats: int = 3  # five where fewer than a thousand rows train
    dropped: tuple[int, ...] = ()  # features that no contestant sees


# The cheap ones first.
SETS: dict[str, Set] = {
    "slump": Set("regression", 5),
    "edm": Set("regression", 5),
    "andro": Set("regression", 5),
    "sf1": Set("regression", 5),
    "enb": Set("regression", 5),
    "flags": Set("multilabel", 5),
    "sf2": Set("regression", 5),
    "water-quality": Set("regression", 5),
    "emotions": Set("multilabel", 5),
    "atp7d": Set("regression", 5),
    "atp1d": Set("regression", 5),
    "birds": Set("multilabel", 5),
    "oes97": Set("regression", 5),
    "oes10": Set("regression", 5),
    "genbase": Set("multilabel", 5, dropped=(0,)),  # an identifier of the row
    "medical": Set("multilabel", 5),
    "yeast": Set("multilabel"),
    "scene": Set("multilabel"),
    "enron": Set("multilabel"),
    "CAL500": Set("multilabel", 5),
    "langlog": Set("multilabel", 5),
    "scm20d": Set("regression"),
    "imclef07a": Set("multilabel"),
    "reutersk500": Set("multilabel"),
    "bibtex": Set("multilabel"),
    "stackex_chemistry": Set("multilabel"),
    "stackex_philosophy": Set("multilabel"),
    "stackex_cs": Set("multilabel"),
    "corel5k": Set("multilabel"),
    "tmc2007-500": Set("multilabel"),
    "diatoms": Set("multilabel"),
    "yeast-cellcycle-funcat": Set("multilabel"),
    "yeast-seq-funcat": Set("multilabel"),
    "protein-drugbank-proxy": Set("multilabel", 5),
    "rcv1sub1": Set("multilabel"),
    "mediamill": Set("multilabel"),
    "delicious": Set("multilabel"),
    "yeast-cellcycle-go": Set("multilabel"),
    "yeast-gasch1-go": Set("multilabel"),
    "yeast-seq-go": Set("multilabel"),
    "yso-8k": Set("multilabel"),
}


@dataclass
class Split(Data):
    """Training rows without the validation part, that part, and the test rows."""

    X_val: np.ndarray | scipy.sparse.csr_matrix
    Y_val: np.ndarray

    @classmethod
    def of(cls, data: Data, seed: int) -> "Split":
        """A tenth of the training rows, drawn with this seed, becomes the validation part."""
        order = np.random.default_rng(seed).permutation(data.X.shape[0])
        n_val = round(VALIDATION * len(order))
        val, train = np.sort(order[:n_val]), np.sort(order[n_val:])
        X, Y = data.X, data.Y
        return cls(X[train], Y[train], data.X_test, data.Y_test, data.task, X[val], Y[val])

    def with_validation(self) -> tuple[Any, np.ndarray]:
        """All training rows."""
        return self._whole

    @cached_property
    def _whole(self) -> tuple[Any, np.ndarray]:
        stack = scipy.sparse.vstack if scipy.sparse.issparse(self.X) else np.concatenate
        X = stack([self.X, self.X_val])
        return (X.tocsr() if scipy.sparse.issparse(X) else X), np.concatenate([self.Y, self.Y_val])


def file_of(name: str) -> Path:
    return workloads.data_folder() / f"{name}.npz"


def missing(name: str) -> str | None:
    """Why a set cannot be run here, or None."""
    if file_of(name).is_file():
        return None
    return f"{name}.npz is not in the data folder (set MANYBOOST_DATA)"


def load(name: str, seed: int) -> Split:
    """Sparse features stay sparse, categories are their codes, missing values are NaN."""
    each = SETS[name]
    data = workloads.read(file_of(name), each.task, dense=False)
    if each.dropped:
        kept = np.setdiff1d(np.arange(data.X.shape[1]), each.dropped)
        data.X, data.X_test = data.X[:, kept], data.X_test[:, kept]
    return Split.of(data, seed)
