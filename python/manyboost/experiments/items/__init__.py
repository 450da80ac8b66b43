"""The items of the reproduction, one for each part of the paper's experiments."""

from manyboost.experiments.items.base import Item
from manyboost.experiments.items.curves import Components, Convergence, Projections
from manyboost.experiments.items.friedman import Friedman, FriedmanNoisy
from manyboost.experiments.items.real import Multilabel, Regression

#: By name, in the order of the paper.
ITEMS: dict[str, Item] = {
    item.name: item
    for item in (
        Convergence(),
        Friedman(),
        FriedmanNoisy(),
        Projections(),
        Components(),
        Multilabel(),
        Regression(),
    )
}

__all__ = ["ITEMS", "Item"]
