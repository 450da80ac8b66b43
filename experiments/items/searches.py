"""Items that tune several methods on several data sets."""

from __future__ import annotations

from dataclasses import dataclass

from experiments import problems
from experiments.items.base import Item, splits
from experiments.options import Scope
from experiments.problems import MULTILABEL_SETS, REGRESSION_SETS
from experiments.protocol import Search
from manyboost.datasets import CATALOGUE

# Three settings for each pair of a loss and a learning rate, one or two on larger sets.
_SETTINGS, _FEWER_SETTINGS, _LARGE = 42, 20, 3000
_SHARED = (
    "gbmort",
    *(f"gbrt-{kind}-{x}" for kind in ("relabel-rpo", "rpo") for x in ("gaussian", "subsampled")),
    "mo-rf",
)
_SYNTHETIC = ("st-gbrt", "gbmort", "gbrt-relabel-rpo-subsampled", "gbrt-rpo-subsampled")
_OF_LABELS = ("br-gbrt", "br-rf", *_SHARED)


@dataclass(frozen=True, kw_only=True, eq=False)
class Searches(Item):
    """Methods tuned on validation rows and scored on test rows."""

    def run(self, scope: Scope, dataset: str, split: int, method: str) -> Search:
        """Return the run of a method on a split of a data set."""
        n_settings = scope.n_settings or _n_settings(dataset)
        return Search.declare(dataset, scope.seed, split, method, n_settings, scope.budget)

    def runs(self, scope: Scope) -> list[Search]:
        return [
            self.run(scope, dataset, split, method)
            for dataset in scope.datasets
            for split in splits(scope, dataset)
            for method in scope.methods
        ]


def _n_settings(dataset: str) -> int:
    entry = CATALOGUE.get(dataset)
    return _SETTINGS if entry is None or entry.n_rows < _LARGE else _FEWER_SETTINGS


def _by_size(names: tuple[str, ...]) -> tuple[str, ...]:
    """Order data sets by their cells: small ones are run first."""

    def cells(name: str) -> int:
        entry = CATALOGUE[name]
        return entry.n_rows * (entry.n_features + entry.n_outputs)

    return tuple(sorted(names, key=cells))


FRIEDMAN = Searches(
    name="friedman",
    of_paper="Tables 4 and 5",
    summary="tuned methods on the synthetic data sets",
    full=Scope(tuple(problems.FRIEDMAN), ("artificial-gbrt", *_SYNTHETIC), "rounds:10000"),
    quick={"budget": "rounds:300", "n_splits": 2, "n_settings": 4},
)
FRIEDMAN_NOISY = Searches(
    name="friedman-noisy",
    of_paper="Tables 6 and 7",
    summary="the same with additional outputs of pure noise",
    full=Scope(tuple(f"{name}-noisy" for name in problems.FRIEDMAN), _SYNTHETIC, "rounds:10000"),
    quick={"budget": "rounds:200", "n_splits": 2, "n_settings": 4},
)
FRIEDMAN_NORMAL = Searches(
    name="friedman-normal",
    of_paper="Table 4 with the features of the text",
    summary="the synthetic data sets with normal features",
    full=Scope(
        tuple(f"{name}-normal" for name in problems.FRIEDMAN),
        ("artificial-gbrt", *_SYNTHETIC),
        "rounds:10000",
        n_settings=14,
    ),
    quick={"budget": "rounds:200", "n_splits": 2, "n_settings": 4},
)
FRIEDMAN_TEN = Searches(
    name="friedman-ten",
    of_paper="Table 4 with five irrelevant features added",
    summary="chain and group with ten features, five of them irrelevant",
    full=Scope(
        ("friedman1-chain-ten", "friedman1-group-ten"),
        ("artificial-gbrt", *_SYNTHETIC),
        "rounds:10000",
    ),
    quick={"budget": "rounds:200", "n_splits": 2, "n_settings": 4},
)
FRIEDMAN_ORACLE = Searches(
    name="friedman-oracle",
    of_paper="Table 4 with another oracle for the chain",
    summary="an oracle that learns the mean of the chain's outputs, not the first output",
    full=Scope(
        ("friedman1-chain", "friedman1-chain-ten"), ("artificial-gbrt-mean",), "rounds:10000"
    ),
    quick={"budget": "rounds:200", "n_splits": 2, "n_settings": 4},
)
REGRESSION = Searches(
    name="regression",
    of_paper="Figure 8, Tables 9 and 12",
    summary="eight methods on the regression data sets",
    full=Scope(_by_size(REGRESSION_SETS), ("st-gbrt", "st-rf", *_SHARED), "T:500"),
    quick={"datasets": ("edm", "atp7d"), "budget": "T:50", "n_splits": 2, "n_settings": 4},
)
MULTILABEL = Searches(
    name="multilabel",
    of_paper="Figure 7, Tables 8, 10 and 11",
    summary="eight methods on the multi-label data sets",
    full=Scope(_by_size(MULTILABEL_SETS), _OF_LABELS, "T:100"),
    quick={"datasets": ("emotions", "birds"), "budget": "T:20", "n_splits": 2, "n_settings": 4},
)
STAND_INS = Searches(
    name="stand-ins",
    of_paper="not in the paper",
    summary="eight methods on data sets similar to missing ones of the paper",
    full=Scope(
        # Of reuters and protein-interaction.
        ("reutersk500", "protein-drugbank-proxy"),
        _OF_LABELS,
        "T:100",
        n_settings=14,  # one for each pair of a loss and a learning rate: these are not the paper's
    ),
    quick={"datasets": ()},
)
