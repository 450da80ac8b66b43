"""What an item runs by default, and what the user may change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.budgets import Budget
from experiments.methods import METHODS, parse_search


@dataclass(frozen=True)
class Options:
    """Choices of the user; None keeps the default of each item.

    Parameters
    ----------
    quick : bool
        Run small versions of all items: a check of the code, not of the paper.
    data_dir : Path or None
        The folder of the data sets; None: where :func:`manyboost.datasets.load_dataset` looks.
    budget : str or None
        Budget of a fit: ``rounds:N``, ``seconds:S`` or ``T:M`` (see :class:`Budget`).
    methods, datasets : sequence of str or None
        The methods and data sets to run, out of those of an item.
    search : str or None
        Settings to try: ``random:N`` or ``grid``.
    n_splits : int or None
        Number of random splits into training and test rows.
    max_seconds : float or None
        Cap on the time of every fit.
    n_jobs : int
        Number of processes; every fit uses one thread.
    seed : int
        Seed of synthetic data, splits, searches and fits.
    refit : bool
        Whether to fit tuned models again on training and validation rows.
    """

    quick: bool = False
    data_dir: Path | None = None
    budget: str | None = None
    methods: Sequence[str] | None = None
    datasets: Sequence[str] | None = None
    search: str | None = None
    n_splits: int | None = None
    max_seconds: float | None = None
    n_jobs: int = 1
    seed: int = 0
    refit: bool = False

    def __post_init__(self) -> None:
        if self.budget is not None:
            Budget.parse(self.budget)
        if self.search is not None:
            parse_search(self.search)
        for method in self.methods or ():
            if method not in METHODS:
                raise ValueError(f"method {method!r} is unknown; use some of {', '.join(METHODS)}.")
        for name, least in (("n_splits", 1), ("n_jobs", 1), ("seed", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name}={value!r} is too small; use at least {least}.")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise ValueError(f"max_seconds={self.max_seconds!r} is not positive; use more than 0.")


@dataclass(frozen=True)
class Scope:
    """What an item runs. ``absent`` are the data sets that were not found."""

    datasets: Sequence[str]
    methods: Sequence[str]
    budget: str
    n_splits: int
    search: str = "random:40"
    max_seconds: float | None = None
    #: Numbers of components, one curve for each; empty: the default of the estimator.
    components: Sequence[int] = ()
    refit: bool = False
    seed: int = 0
    absent: Sequence[str] = ()
