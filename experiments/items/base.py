"""What all items have in common: the runs they need, and a section made of the results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from experiments.options import Options, Scope
from experiments.problems import is_available
from experiments.protocol import Run
from experiments.report.content import Section
from experiments.store import Store


@dataclass(frozen=True, kw_only=True)
class Item(ABC):
    """One part of the paper: what to run for it, and what the results say.

    ``full`` is the paper's experiment; ``quick`` are the fields of a small version that differ.
    ``others`` are methods that are run on request only.
    """

    name: str
    summary: str
    title: str
    text: str
    full: Scope
    quick: Mapping[str, Any]
    others: Sequence[str] = ()

    @property
    def methods(self) -> Sequence[str]:
        """All methods that may be asked for."""
        return (*self.full.methods, *self.others)

    def scope(self, options: Options, stored: Collection[str] = ()) -> Scope:
        """Return what is run under the given options.

        Data sets with results in ``stored`` need not be available any more.
        """
        scope = replace(self.full, **(self.quick if options.quick else {}))
        wanted = scope.datasets
        if options.datasets is not None:
            wanted = [name for name in self.full.datasets if name in options.datasets]
        methods = scope.methods
        if options.methods is not None:
            methods = [name for name in self.methods if name in options.methods]
        found = [n for n in wanted if n in stored or is_available(n, options.data_dir)]
        return replace(
            scope,
            datasets=found,
            methods=methods,
            budget=options.budget or scope.budget,
            n_splits=options.n_splits or scope.n_splits,
            search=options.search or scope.search,
            max_seconds=options.max_seconds or scope.max_seconds,
            refit=options.refit,
            seed=options.seed,
            absent=[name for name in wanted if name not in found],
        )

    @abstractmethod
    def runs(self, scope: Scope) -> Sequence[Run]:
        """Return the runs of the item."""

    @abstractmethod
    def section(self, scope: Scope, store: Store) -> Section:
        """Report what the runs in the store show; some may be missing."""

    def specification(self, scope: Scope) -> dict[str, str]:
        """Return the settings of the item in words."""
        cap = scope.max_seconds
        return {
            "data sets": listed(scope.datasets),
            "data sets not found": listed(scope.absent),
            "methods": listed(scope.methods),
            "splits": str(scope.n_splits),
            "budget of a fit": scope.budget,
            "cap of seconds per fit": "none" if cap is None else f"{cap:g}",
            "seed": str(scope.seed),
        }

    def state(self, scope: Scope, store: Store) -> list[str]:
        """Report what is missing: data sets, runs, fits that ended early."""
        sentences = []
        if scope.absent:
            sentences.append(f"Data sets not found: {listed(scope.absent)}.")
        runs = self.runs(scope)
        results = [store.get(run) for run in runs]
        missing = [run for run, result in zip(runs, results, strict=True) if result is None]
        n_capped = sum(result.n_capped for result in results if result is not None)
        if n_capped:
            sentences.append(f"The cap of seconds ended {n_capped} fits before their budget.")
        if missing:
            sentences.append(f"{len(missing)} of {len(runs)} runs are missing.")
        errors = {
            f"Failed: {each.label}: {error.strip().splitlines()[-1]}": None
            for run in missing
            for each in (run, *run.needs())
            if (error := store.error(each))
        }
        return [*sentences, *errors]


def listed(names: Sequence[str]) -> str:
    """Join names, or return "none"."""
    return ", ".join(names) or "none"
