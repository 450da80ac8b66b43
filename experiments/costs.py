"""What a round costs in the paper's setting, and so how many rounds a budget buys.

The paper gives every method the same time. Time on one machine says nothing about another splitter,
so rounds are counted here in the work of an exact splitter like that of scikit-learn 0.16, which
sorts and scans drawn features of a node. A node of m rows, of which k features are drawn for a tree
grown on q columns, costs

    k m (sort log2 v + scan) + k q (move m + judge v),

where v is the number of distinct values of a feature, at most m: sorting takes log2 v comparisons,
every row moves from right to left once, and every threshold is judged once. A tree with L leaves
evaluates its root and both children of each split; splits are taken to halve nodes. A round adds
passes over the n x d residuals: gradients, projection, leaf values, line search, update. The
logistic loss is searched by Brent's method, output by output, as in the paper.

The nanoseconds of each operation are in ``costs.json``, measured by ``cost_measurement.py``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FILE = Path(__file__).with_name("costs.json")

#: The constants of each group, in nanoseconds; evaluations are a number.
GROUPS: dict[str, tuple[str, ...]] = {
    "sort": ("sort", "scan"),
    "statistic": ("move", "judge"),
    "outputs": (
        "gradient squared_error",
        "gradient absolute_error",
        "gradient log_loss",
        "project",
        "leaf values",
        "step squared_error",
        "step absolute_error",
        "step log_loss",
        "update",
    ),
    "fixed": ("tree", "evaluation"),
}
#: Factors of the groups of constants, by the name of the budget.
VARIATIONS: dict[str, dict[str, float]] = {
    "nominal": {},
    **{f"{group}*{factor:g}": {group: factor} for group in GROUPS for factor in (0.5, 2.0)},
}


@dataclass(frozen=True, eq=False)
class Shape:
    """The size of a fit; ``values`` (n_features,) are the distinct values of each feature."""

    n_rows: int
    n_outputs: int
    values: NDArray[np.intp]


@cache
def constants() -> Mapping[str, float]:
    """Return the measured constants."""
    stored: dict[str, float] = json.loads(FILE.read_text("utf-8"))["constants"]
    return stored


def digest() -> str:
    """Return a short name of the constants, part of what a search depends on."""
    return sha256(json.dumps(dict(constants()), sort_keys=True).encode()).hexdigest()[:8]


def varied(variation: str) -> dict[str, float]:
    """Return the constants of one of the VARIATIONS."""
    factors = VARIATIONS[variation]
    of_group = {name: factors.get(group, 1.0) for group, names in GROUPS.items() for name in names}
    return {name: value * of_group.get(name, 1.0) for name, value in constants().items()}


def n_drawn(max_features: str | float, n_features: int) -> int:
    """Return the number of features that are drawn at a node."""
    share = math.sqrt(n_features) if max_features == "sqrt" else float(max_features) * n_features
    return max(1, int(share))


def evaluated_nodes(n_leaves: int) -> list[tuple[int, float]]:
    """Return how many nodes of a tree are evaluated, and which share of the rows each has.

    Split s is that of a node with a share of 2 ** -floor(log2 s), and both children are evaluated.
    """
    splits = [2.0 ** -math.floor(math.log2(s)) for s in range(1, n_leaves)]
    return [(1, 1.0), *((2, share / 2) for share in splits)]


def tree_cost(
    shape: Shape, n_columns: int, settings: Mapping[str, Any], c: Mapping[str, float]
) -> float:
    """Return the cost of growing one tree on some columns."""
    k = n_drawn(settings["max_features"], len(shape.values))
    total = c["tree"]
    for count, share in evaluated_nodes(settings["max_leaf_nodes"]):
        m = max(1.0, share * shape.n_rows)
        comparisons, thresholds = _mean_feature(shape, m)
        feature = m * (c["sort"] * comparisons + c["scan"])
        feature += n_columns * (c["move"] * m + c["judge"] * thresholds)
        total += count * k * feature
    return total


@cache
def _mean_feature(shape: Shape, m: float) -> tuple[float, float]:
    """Return log2 v and v in a node of m rows, averaged over the features."""
    v = np.clip(shape.values, 1, m)
    return float(np.log2(v).mean()), float(v.mean())


def round_cost(
    shape: Shape, strategy: str, settings: Mapping[str, Any], c: Mapping[str, float]
) -> float:
    """Return the cost of one round in nanoseconds, with the constants ``c``.

    ``settings`` are those of a method, with ``n_components``, ``projection`` and ``step`` if these
    differ from one dense component and line searches.
    """
    n, d, loss = shape.n_rows, shape.n_outputs, settings["loss"]
    q = settings.get("n_components", 1)
    cells = n * d
    n_columns = {"independent": 1, "multioutput": d, "project": 1, "relabel": q}[strategy]
    n_trees = d if strategy == "independent" else 1
    cost = n_trees * tree_cost(shape, n_columns, settings, c)
    cost += cells * (c[f"gradient {loss}"] + c["update"])
    if strategy in ("project", "relabel"):
        combined = n if settings.get("projection") == "subsample" else cells
        cost += q * combined * c["project"]
    if strategy == "relabel":
        cost += cells * c["leaf values"]
    if settings.get("step") == "newton":  # curvatures and their sums instead of a search
        return cost + cells * (c[f"gradient {loss}"] + c["leaf values"])
    if loss == "log_loss":
        evaluations = c["evaluations"]
        return cost + evaluations * (cells * c["step log_loss"] + d * c["evaluation"])
    factor = math.log2(max(n, 2)) if loss == "absolute_error" else 1.0
    return cost + factor * cells * c[f"step {loss}"]


def unit(shape: Shape, c: Mapping[str, float]) -> float:
    """Return T: the cost of one round of gbmort with stumps and squared error."""
    stumps = {"loss": "squared_error", "max_features": 1.0, "max_leaf_nodes": 2}
    return round_cost(shape, "multioutput", stumps, c)


def relative_costs(shape: Shape, strategy: str, settings: Mapping[str, Any]) -> dict[str, float]:
    """Return the cost of one round in T, for each variation."""
    relative = {}
    for variation in VARIATIONS:
        c = varied(variation)
        relative[variation] = round_cost(shape, strategy, settings, c) / unit(shape, c)
    return relative


def rounds_bought(
    shape: Shape, strategy: str, settings: Mapping[str, Any], n_units: float
) -> dict[str, int]:
    """Return how many rounds ``n_units`` times T buy, at least one, for each variation."""
    relative = relative_costs(shape, strategy, settings)
    return {variation: max(1, int(n_units / cost)) for variation, cost in relative.items()}
