"""The data sets of the experiments, and the rows on which a model is fitted and scored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from experiments.costs import Shape
from experiments.scoring import lrap, macro_r2
from manyboost.datasets import (
    CATALOGUE,
    load_dataset,
    make_friedman1_chain,
    make_friedman1_group,
    make_friedman1_ind,
)

Array: TypeAlias = NDArray[Any]
Task: TypeAlias = Literal["multilabel", "regression"]
#: ``tuning``: fit on training rows, score on validation rows. ``testing``: the same fit, scored on
#: test rows. ``training``: fit on training and validation rows, score on test rows.
Purpose: TypeAlias = Literal["tuning", "testing", "training"]

FRIEDMAN: dict[str, Callable[..., tuple[Array, Array]]] = {
    "friedman1-chain": make_friedman1_chain,
    "friedman1-group": make_friedman1_group,
    "friedman1-ind": make_friedman1_ind,
}
#: The real data sets of the paper.
MULTILABEL_SETS, REGRESSION_SETS = (
    tuple(entry.name for entry in CATALOGUE.values() if entry.in_paper and entry.task == task)
    for task in ("multilabel", "regression")
)
METRICS: dict[Task, str] = {"multilabel": "lrap", "regression": "macro-r2"}
_FRIEDMAN_TRAIN, _FRIEDMAN_TEST = 300, 4000
_NOISY, _NORMAL, _TEN = "-noisy", "-normal", "-ten"
_IRRELEVANT = 5
_VALIDATION = 0.2
# scikit-learn's trees are much faster on dense features: convert up to 200 MB of float32.
_DENSE_CELLS = 50_000_000


def is_synthetic(name: str) -> bool:
    """Whether a data set is generated."""
    return _base(name) in FRIEDMAN


def is_stand_in(name: str) -> bool:
    """Whether a data set is not the paper's."""
    return not is_synthetic(name) and not CATALOGUE[name].in_paper


def in_paper(name: str) -> str:
    """Return the paper's name of a data set, whatever its inputs are here."""
    return name.removesuffix(_NORMAL).removesuffix(_TEN)


def _base(name: str) -> str:
    return in_paper(name).removesuffix(_NOISY)


def task_of(name: str) -> Task:
    """Return the task of a data set."""
    return "regression" if is_synthetic(name) else CATALOGUE[name].task


@dataclass(frozen=True, eq=False)
class Problem:
    """A data set and what the protocol must know about it.

    ``structure`` is the known output structure of a synthetic set. ``n_informative`` is the number
    of leading outputs that are not pure noise. ``standardise`` scales outputs to mean 0 and
    variance 1.
    """

    name: str
    task: Task
    X: Any
    Y: Array
    train_fraction: float
    structure: str | None = None
    n_informative: int | None = None
    standardise: bool = False

    @cached_property
    def shape(self) -> Shape:
        """The size of a fit on the training rows without the validation rows."""
        n_train = round(self.train_fraction * self.X.shape[0])
        n_rows = n_train - round(_VALIDATION * n_train)
        X = self.X.tocsc() if sparse.issparse(self.X) else self.X
        columns = (X[:, [j]] for j in range(X.shape[1]))
        values = [
            len(np.unique(column.toarray() if sparse.issparse(column) else column))
            for column in columns
        ]
        return Shape(n_rows, self.Y.shape[1], np.array(values))

    @property
    def metric(self) -> str:
        """The score used for tuning and reported first."""
        return METRICS[self.task]

    def score(self, Y: Array, predictions: Array) -> float:
        """Score predictions (n_rows, n_outputs) by the metric."""
        return lrap(Y, predictions) if self.task == "multilabel" else macro_r2(Y, predictions)

    def scores(self, Y: Array, predictions: Array) -> dict[str, float]:
        """Return all scores that are reported for this data set."""
        scores = {self.metric: self.score(Y, predictions)}
        if self.n_informative is not None:
            leading = slice(self.n_informative)
            scores["half-macro-r2"] = self.score(Y[:, leading], predictions[:, leading])
        return scores


@dataclass(frozen=True, eq=False)
class Fold:
    """The rows to fit on and the rows to score on, for one split of a problem."""

    problem: Problem
    X: Any
    Y: Array
    X_eval: Any
    Y_eval: Array


@lru_cache(maxsize=2)
def load_problem(name: str, data_dir: Path | None, seed: int) -> Problem:
    """Generate a synthetic data set or load a real one, which may raise FileNotFoundError."""
    if is_synthetic(name):
        base, noisy = _base(name), _NOISY in name
        n_rows = _FRIEDMAN_TRAIN + _FRIEDMAN_TEST
        distribution = "normal" if name.endswith(_NORMAL) else "uniform"
        X, Y = FRIEDMAN[base](
            n_rows, noisy_outputs=noisy, distribution=distribution, random_state=seed
        )
        if name.endswith(_TEN):
            X = np.hstack([X, np.random.default_rng([seed, 10]).random((n_rows, _IRRELEVANT))])
        return Problem(
            name,
            "regression",
            X.astype(np.float32),
            Y,
            _FRIEDMAN_TRAIN / n_rows,
            structure=None if noisy else base.removeprefix("friedman1-"),
            n_informative=Y.shape[1] // 2 if noisy else None,
        )
    data = load_dataset(name, data_dir)
    X, Y, entry = data.X, data.Y, CATALOGUE[name]
    # If the paper reports no test set, half of the rows are test rows.
    fraction = 0.5 if entry.n_test is None else entry.n_train / entry.n_rows
    if sparse.issparse(X) and X.shape[0] * X.shape[1] <= _DENSE_CELLS:
        X = X.toarray()
    if sparse.issparse(Y):
        Y = Y.toarray()
    return Problem(name, data.task, X, Y, fraction, standardise=data.task == "regression")


@cache
def is_available(name: str, data_dir: Path | None) -> bool:
    """Whether a data set is synthetic or can be loaded."""
    if is_synthetic(name):
        return True
    try:
        load_problem(name, data_dir, 0)
    except FileNotFoundError:
        return False
    return True


@lru_cache(maxsize=3)
def make_fold(problem: Problem, split: int, purpose: Purpose, seed: int) -> Fold:
    """Draw a random split; a fifth of its training rows are validation rows.

    The rows depend only on the data set, the split and the seed, so methods can be compared in
    pairs. Fits share the arrays, which cannot be changed.
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
    X, X_eval = problem.X[fit_rows], problem.X[eval_rows]
    shared: list[Any] = [X, Y, X_eval, Y_eval]
    for each in shared:
        (each.data if sparse.issparse(each) else each).flags.writeable = False
    return Fold(problem, X, Y, X_eval, Y_eval)
