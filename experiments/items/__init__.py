"""The items of the reproduction, one for each table or group of figures of the paper."""

from experiments.items.base import Item
from experiments.items.curves import COMPONENTS, CONVERGENCE, PROJECTIONS
from experiments.items.friedman import FRIEDMAN, FRIEDMAN_NOISY
from experiments.items.real import MULTILABEL, REGRESSION

_ALL = (CONVERGENCE, FRIEDMAN, FRIEDMAN_NOISY, PROJECTIONS, COMPONENTS, MULTILABEL, REGRESSION)
#: By name, in the order of the paper.
ITEMS: dict[str, Item] = {item.name: item for item in _ALL}

__all__ = ["ITEMS", "Item"]
