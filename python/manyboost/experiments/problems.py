"""The data sets of the experiments, and the rows that a fit sees and is scored on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manyboost.datasets import (
    CATALOGUE,
    load_dataset,
    make_friedman1_chain,
    make_friedman1_group,
    make_friedman1_ind,
)
from manyboost.experiments.scoring import lrap, macro_r2

Array: TypeAlias = NDArray[Any]
Task: TypeAlias = Literal["multilabel", "regression"]
#: ``tuning``: scored on validation rows. ``testing``: the same fit, scored on test rows.
#: ``training``: fitted to the validation rows as well, scored on test rows.
Purpose: TypeAlias = Literal["tuning", "testing", "training"]

FRIEDMAN: dict[str, Callable[..., tuple[Array, Array]]] = {
    "friedman1-chain": make_friedman1_chain,
    "friedman1-group": make_friedman1_group,
    "friedman1-ind": make_friedman1_ind,
}
_FRIEDMAN_TRAIN, _FRIEDMAN_TEST = 300, 4000
_NOISY = "-noisy"
_VALIDATION = 0.2
# Cells (200 MB) up to which sparse features are made dense, for scikit-learn's trees.
_DENSE_CELLS = 50_000_000


@dataclass(frozen=True, eq=False)
class Problem:
    """A data set and what the protocol must know about it.

    ``structure`` is the known output structure of a synthetic set, ``n_informative`` the number of
    leading outputs that are not pure noise, ``standardise`` whether outputs are brought to mean 0
    and variance 1.
    """

    name: str
    task: Task
    X: Any
    Y: Array
    train_fraction: float
    structure: str | None = None
    n_informative: int | None = None
    standardise: bool = False

    @property
    def metric(self) -> str:
        """What is tuned for, and reported first."""
        return "lrap" if self.task == "multilabel" else "macro-r2"

    def score(self, Y: Array, predictions: Array) -> float:
        """Score predictions (n_rows, n_outputs) by the metric."""
        return lrap(Y, predictions) if self.task == "multilabel" else macro_r2(Y, predictions)

    def scores(self, Y: Array, predictions: Array) -> dict[str, float]:
        """Return all scores that are reported for this set."""
        scores = {self.metric: self.score(Y, predictions)}
        if self.n_informative is not None:
            leading = slice(self.n_informative)
            scores["half-macro-r2"] = self.score(Y[:, leading], predictions[:, leading])
        return scores


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to fit to and rows to score on, of one split of a problem."""

    problem: Problem
    X: Any
    Y: Array
    X_eval: Any
    Y_eval: Array


@lru_cache(maxsize=2)
def load_problem(name: str, data_dir: Path | None, seed: int) -> Problem:
    """Draw a synthetic set, or load a real one.

    Raises
    ------
    FileNotFoundError
        If there is no such set.
    """
    base = name.removesuffix(_NOISY)
    if base in FRIEDMAN:
        noisy = name != base
        X, Y = FRIEDMAN[base](
            _FRIEDMAN_TRAIN + _FRIEDMAN_TEST, noisy_outputs=noisy, random_state=seed
        )
        return Problem(
            name,
            "regression",
            X.astype(np.float32),
            Y,
            _FRIEDMAN_TRAIN / len(X),
            structure=None if noisy else base.removeprefix("friedman1-"),
            n_informative=Y.shape[1] // 2 if noisy else None,
        )
    data = load_dataset(name, data_dir)
    X, Y, entry = data.X, data.Y, CATALOGUE[name]
    # Where the paper gives no test rows, half of all rows are.
    fraction = 0.5 if entry.n_test is None else entry.n_train / entry.n_rows
    if sparse.issparse(X) and X.shape[0] * X.shape[1] <= _DENSE_CELLS:
        X = X.toarray()
    if sparse.issparse(Y):
        Y = Y.toarray()
    return Problem(name, data.task, X, Y, fraction, standardise=data.task == "regression")


@cache
def is_available(name: str, data_dir: Path | None) -> bool:
    """Whether a set can be drawn, is stored, or can be fetched."""
    if name.removesuffix(_NOISY) in FRIEDMAN:
        return True
    try:
        load_problem(name, data_dir, 0)
    except FileNotFoundError:
        return False
    return True


def make_fold(problem: Problem, split: int, purpose: Purpose, seed: int) -> Fold:
    """Draw a random split with the problem's share of training rows.

    A fifth of the training rows is for validation. The rows depend on the set, the split and the
    seed alone, so that methods can be compared pair by pair.
    """
    n_rows = problem.X.shape[0]
    rng = np.random.default_rng([seed, crc32(problem.name.encode()), split])
    order = rng.permutation(n_rows)
    n_train = round(problem.train_fraction * n_rows)
    n_fit = n_train - round(_VALIDATION * n_train)
    fit_rows = order[: n_train if purpose == "training" else n_fit]
    eval_rows = order[n_fit:n_train] if purpose == "tuning" else order[n_train:]
    Y, Y_eval = problem.Y[fit_rows], problem.Y[eval_rows]
    if problem.standardise:
        mean, std = Y.mean(axis=0), Y.std(axis=0)
        std = np.where(std > 0, std, 1.0)
        Y, Y_eval = (Y - mean) / std, (Y_eval - mean) / std
    return Fold(problem, problem.X[fit_rows], Y, problem.X[eval_rows], Y_eval)
