"""Beyond the paper: our own models on the same splits."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.items.base import Item, splits
from experiments.items.searches import MULTILABEL, REGRESSION
from experiments.methods import MODELS
from experiments.options import Scope
from experiments.protocol import Model


@dataclass(frozen=True, kw_only=True, eq=False)
class Models(Item):
    """Our models with their defaults, scored on test rows."""

    def run(self, scope: Scope, dataset: str, split: int, method: str) -> Model:
        """Return the run of a model on a split of a data set."""
        return Model(dataset, scope.seed, split, method)

    def runs(self, scope: Scope) -> list[Model]:
        return [
            self.run(scope, dataset, split, method)
            for dataset in scope.datasets
            for split in splits(scope, dataset)
            for method in scope.methods
        ]


BEYOND = Models(
    name="beyond",
    of_paper="not in the paper",
    summary="our default model and means of five folds, without tuning",
    full=Scope((*REGRESSION.full.datasets, *MULTILABEL.full.datasets), tuple(MODELS), ""),
    quick={"datasets": ("edm", "emotions"), "n_splits": 2},
)
