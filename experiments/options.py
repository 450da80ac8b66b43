"""What an item runs by default, and what the user may change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.budgets import Budget
from experiments.methods import METHODS, parse_search


@dataclass(frozen=True)
class Options:
    """Choices of the user; None keeps the default of each item."""

    #: Run small versions of all items: a check of the code, not of the paper.
    quick: bool = False
    #: The folder of the data sets; None: where ``load_dataset`` looks.
    data_dir: Path | None = None
    #: Budget of a fit: ``rounds:N``, ``seconds:S`` or ``T:M``.
    budget: str | None = None
    #: The methods and data sets to run, out of those of an item.
    methods: Sequence[str] | None = None
    datasets: Sequence[str] | None = None
    #: Settings to try: ``random:N`` or ``grid``.
    search: str | None = None
    #: Number of random splits into training and test rows.
    n_splits: int | None = None
    #: Cap on the time of every fit.
    max_seconds: float | None = None
    #: Number of processes; every fit uses one thread.
    n_jobs: int = 1
    #: Seed of synthetic data, splits, searches and fits.
    seed: int = 0
    #: Whether to fit tuned models again on training and validation rows.
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
