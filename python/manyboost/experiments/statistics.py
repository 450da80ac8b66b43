"""Comparisons of methods: ranks, paired tests, and tests over many sets.

The tests are SciPy's and scikit-posthocs'; here they are given tables by method.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

F64 = NDArray[np.float64]

#: Level of significance, the paper's.
ALPHA = 0.05


def mean_std(scores: Sequence[float]) -> tuple[float | None, float | None]:
    """Mean and standard deviation of a sample; None where there are too few scores."""
    if not scores:
        return None, None
    std = float(np.std(scores, ddof=1)) if len(scores) > 1 else None
    return float(np.mean(scores)), std


def ranks(scores: Mapping[str, float], *, digits: int = 3) -> dict[str, float]:
    """Rank methods, 1 the best; scores that look equal when printed share their ranks.

    Examples
    --------
    >>> from manyboost.experiments.statistics import ranks
    >>> ranks({"a": 0.5, "b": 0.9, "c": 0.5001})
    {'a': 2.5, 'b': 1.0, 'c': 2.5}
    """
    rounded = np.round(list(scores.values()), digits)
    return dict(zip(scores, map(float, stats.rankdata(-rounded)), strict=True))


def average_ranks(scores: Mapping[str, Sequence[float]], *, digits: int = 3) -> dict[str, float]:
    """Average the ranks of methods over sets, one score per set and method."""
    by_set = [
        ranks(dict(zip(scores, row, strict=True)), digits=digits)
        for row in zip(*scores.values(), strict=True)
    ]
    return {method: float(np.mean([row[method] for row in by_set])) for method in scores}


def paired_t(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Two-sided p-value of Student's paired test; None with fewer than two pairs."""
    difference = np.subtract(first, second)
    if len(difference) < 2:
        return None
    if np.ptp(difference) == 0:
        return 1.0 if difference[0] == 0 else 0.0
    return float(stats.ttest_rel(first, second).pvalue)


def wilcoxon(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Two-sided p-value of Wilcoxon's signed-rank test; None with fewer than two pairs."""
    if len(first) < 2:
        return None
    if np.array_equal(first, second):
        return 1.0
    return float(stats.wilcoxon(first, second).pvalue)


def friedman(scores: Mapping[str, Sequence[float]]) -> float | None:
    """P-value of Friedman's test that all methods are alike; it needs three methods, two sets."""
    table = np.array(list(scores.values()))
    if len(table) < 3 or table.shape[1] < 2:
        return None
    return float(stats.friedmanchisquare(*table).pvalue)


def critical_distance(n_methods: int, n_sets: int, *, alpha: float = ALPHA) -> float:
    """Difference of average ranks that Nemenyi's test calls significant.

    Examples
    --------
    >>> from manyboost.experiments.statistics import critical_distance
    >>> round(critical_distance(8, 21), 2)
    2.29
    """
    q = stats.studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def alike(average: Mapping[str, float], distance: float) -> list[list[str]]:
    """Longest runs of methods, by rank, none of which is significantly apart from another.

    Examples
    --------
    >>> from manyboost.experiments.statistics import alike
    >>> alike({"a": 1.0, "b": 2.0, "c": 3.5, "d": 3.9}, 2.0)
    [['a', 'b'], ['b', 'c', 'd']]
    """
    methods = sorted(average, key=lambda method: average[method])
    groups: list[list[str]] = []
    for i, best in enumerate(methods):
        group = [m for m in methods[i:] if average[m] - average[best] < distance]
        if len(group) > 1 and not (groups and set(group) <= set(groups[-1])):
            groups.append(group)
    return groups


def nemenyi(scores: Mapping[str, Sequence[float]]) -> dict[str, dict[str, float]]:
    """P-values of Nemenyi's test for all pairs of methods."""
    table = np.array(list(scores.values())).T
    p = require_posthocs().posthoc_nemenyi_friedman(table).to_numpy()
    return {
        row: {column: float(p[i, j]) for j, column in enumerate(scores)}
        for i, row in enumerate(scores)
    }


def require_posthocs() -> Any:
    """Import scikit-posthocs, or say how to get it."""
    try:
        return importlib.import_module("scikit_posthocs")
    except ImportError as error:
        raise ImportError(
            "Nemenyi's test needs scikit-posthocs, which is not installed; run "
            "pip install 'manyboost[reproduce]'."
        ) from error
