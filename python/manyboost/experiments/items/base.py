"""What all items have in common: a plan of runs, and a section made of what is there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from manyboost.experiments.options import Options, Scope
from manyboost.experiments.problems import is_available
from manyboost.experiments.protocol import Specification
from manyboost.experiments.results import Section
from manyboost.experiments.store import Store


class Item(ABC):
    """One part of the paper: what to run for it, and what the results say."""

    name: ClassVar[str]
    title: ClassVar[str]
    text: ClassVar[Sequence[str]]
    full: ClassVar[Scope]
    quick: ClassVar[Scope]
    #: Methods that are run if asked for.
    others: ClassVar[Sequence[str]] = ()

    def scope(self, options: Options) -> Scope:
        """Return what is run under the given options."""
        default = self.quick if options.quick else self.full
        return default.chosen(options, self.full.datasets, (*self.full.methods, *self.others))

    def datasets(self, options: Options) -> tuple[list[str], list[str]]:
        """Return the sets that are there, and those that are not."""
        wanted = self.scope(options).datasets
        found = [name for name in wanted if is_available(name, options.data_dir)]
        return found, [name for name in wanted if name not in found]

    @abstractmethod
    def plan(self, options: Options) -> list[Specification]:
        """Return the runs of the item, on the sets that are there."""

    @abstractmethod
    def summarise(self, store: Store, options: Options) -> Section:
        """Say what the runs in the store show; some may be missing."""

    def specification(self, options: Options) -> dict[str, str]:
        """Return the settings of the item in words."""
        scope = self.scope(options)
        found, absent = self.datasets(options)
        cap = scope.max_seconds
        return {
            "data sets": ", ".join(found) or "none",
            "data sets not found": ", ".join(absent) or "none",
            "methods": ", ".join(scope.methods) or "none",
            "splits": str(scope.n_splits),
            "budget of a fit": scope.budget,
            "cap of seconds a fit": "none" if cap is None else f"{cap:g}",
            "seed": str(options.seed),
        }

    def state(self, store: Store, options: Options) -> list[str]:
        """Say what is missing: sets not found, runs not there or failed, fits ended early."""
        sentences = []
        absent = self.datasets(options)[1]
        if absent:
            sentences.append(f"Not found, and left out: {', '.join(absent)}.")
        runs = self.plan(options)
        results = [store.get(run) for run in runs]
        missing = [run for run, result in zip(runs, results, strict=True) if result is None]
        n_capped = sum(result.n_capped for result in results if result is not None)
        if n_capped:
            sentences.append(f"The cap of seconds ended {n_capped} fits before their budget.")
        if missing:
            sentences.append(f"{len(missing)} of {len(runs)} runs are missing.")
        for run in missing:
            failed = next((r for r in (run, *run.needs()) if store.error(r)), None)
            if failed is not None:
                last_line = (store.error(failed) or "").strip().splitlines()[-1]
                sentences.append(f"Failed: {failed.label}: {last_line}")
        return list(dict.fromkeys(sentences))
