"""What an item runs by default, and what the user may change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.methods import METHODS, MODELS


@dataclass(frozen=True)
class Options:
    """Choices of the user; None keeps the default of each item."""

    #: Run small versions of all items: a check of the code, not of the paper.
    quick: bool = False
    #: The folder of the data sets; None: where ``load_dataset`` looks.
    data_dir: Path | None = None
    #: The methods and data sets to run, out of those of an item.
    methods: Sequence[str] | None = None
    datasets: Sequence[str] | None = None
    #: Number of settings to try for each method.
    n_settings: int | None = None
    #: Number of random splits into training and test rows.
    n_splits: int | None = None
    #: Number of processes; every fit uses one thread.
    n_jobs: int = 1
    #: Seed of synthetic data, splits, searches and fits.
    seed: int = 0

    def __post_init__(self) -> None:
        known = (*METHODS, *MODELS)
        for method in self.methods or ():
            if method not in known:
                raise ValueError(f"method {method!r} is unknown; use some of {', '.join(known)}.")
        for name, least in (("n_settings", 1), ("n_splits", 1), ("n_jobs", 1), ("seed", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name}={value!r} is too small; use at least {least}.")


@dataclass(frozen=True)
class Scope:
    """What an item runs. ``absent`` are the data sets that were not found."""

    datasets: Sequence[str]
    methods: Sequence[str]
    #: The budget of a fit; see ``protocol.Budget``.
    budget: str
    #: None: as many as the size of a data set allows.
    n_settings: int | None = None
    n_splits: int | None = None
    seed: int = 0
    absent: Sequence[str] = ()
