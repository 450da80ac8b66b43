"""The items of the reproduction: what each table or figure of the paper runs."""

from experiments.items.base import Item
from experiments.items.curves import COMPONENTS, CONVERGENCE, PROJECTIONS, Curves
from experiments.items.models import BEYOND, Models
from experiments.items.searches import (
    FRIEDMAN,
    FRIEDMAN_NOISY,
    FRIEDMAN_NORMAL,
    FRIEDMAN_ORACLE,
    FRIEDMAN_TEN,
    MULTILABEL,
    REGRESSION,
    STAND_INS,
    Searches,
)

#: By name, in the order in which they are run: short ones first.
ITEMS: dict[str, Item] = {
    item.name: item
    for item in (
        CONVERGENCE,
        REGRESSION,
        FRIEDMAN,
        FRIEDMAN_NOISY,
        MULTILABEL,
        BEYOND,
        PROJECTIONS,
        COMPONENTS,
        FRIEDMAN_TEN,
        FRIEDMAN_ORACLE,
        FRIEDMAN_NORMAL,
        STAND_INS,
    )
}

__all__ = ["ITEMS", "Curves", "Item", "Models", "Searches"]
