"""What a user may choose, and what the items run when the user does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from manyboost.experiments.budgets import Budget
from manyboost.experiments.methods import METHODS, parse_search


@dataclass(frozen=True)
class Options:
    """Choices of the user; None leaves one to each item.

    Parameters
    ----------
    quick : bool
        Small versions of all items: a check of the machinery, not of the paper.
    data_dir : Path or None
        Where stored sets are; None: where :func:`manyboost.datasets.load_dataset` looks.
    budget : str or None
        Of a fit: ``rounds:N``, ``seconds:S``, or ``T:M`` for M times the time of one round of
        multioutput boosting with stumps on the same set.
    methods, datasets : sequence of str or None
        Those to run, out of the ones that an item has.
    search : str or None
        Settings to try: ``random:N`` or ``grid``.
    n_splits : int or None
        Random splits into training and test rows.
    max_seconds : float or None
        Cap on every fit, whatever its budget.
    n_jobs : int
        Processes; every fit has one thread.
    seed : int
        Of synthetic data, splits, searches and fits.
    refit : bool
        Whether tuned models are fitted again, to training and validation rows.
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
            raise ValueError(f"max_seconds={self.max_seconds!r} is no time; use more than 0.")


@dataclass(frozen=True)
class Scope:
    """What an item runs: its sets and methods, and how much of everything."""

    datasets: Sequence[str]
    methods: Sequence[str]
    budget: str
    n_splits: int
    search: str = "random:40"
    max_seconds: float | None = None
    refit: bool = False

    def chosen(self, options: Options, datasets: Sequence[str], methods: Sequence[str]) -> Scope:
        """Return the scope with the choices of the user, out of all sets and methods there are."""

        def narrowed(
            wanted: Sequence[str] | None, default: Sequence[str], known: Sequence[str]
        ) -> Sequence[str]:
            return default if wanted is None else [name for name in known if name in wanted]

        return Scope(
            narrowed(options.datasets, self.datasets, datasets),
            narrowed(options.methods, self.methods, methods),
            options.budget or self.budget,
            options.n_splits or self.n_splits,
            options.search or self.search,
            options.max_seconds or self.max_seconds,
            options.refit or self.refit,
        )
