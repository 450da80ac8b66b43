"""What all items have in common: a scope, and the runs in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from experiments.options import Options, Scope
from experiments.problems import is_available
from experiments.protocol import Run

_SPLITS = 5
#: Data sets with fewer splits: the largest.
_FEWER_SPLITS = {"delicious": 3, "mediamill": 3}


def splits(scope: Scope, dataset: str) -> range:
    """Return the splits of a data set."""
    return range(min(_FEWER_SPLITS.get(dataset, _SPLITS), scope.n_splits or _SPLITS))


@dataclass(frozen=True, kw_only=True, eq=False)
class Item(ABC):
    """One part of the paper, and what to run for it.

    ``full`` is the paper's experiment; ``quick`` are the fields of a small version that differ.
    """

    name: str
    #: Where it is in the paper.
    of_paper: str
    summary: str
    full: Scope
    quick: Mapping[str, Any] = field(default_factory=dict)

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
            methods = [name for name in self.full.methods if name in options.methods]
        found = [n for n in wanted if n in stored or is_available(n, options.data_dir)]
        return replace(
            scope,
            datasets=found,
            methods=methods,
            n_splits=options.n_splits or scope.n_splits,
            n_settings=options.n_settings or scope.n_settings,
            seed=options.seed,
            absent=[name for name in wanted if name not in found],
        )

    @abstractmethod
    def runs(self, scope: Scope) -> Sequence[Run]:
        """Return the runs of the item, data set by data set."""
