"""Comparisons of methods by SciPy, for tables of scores by method."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

#: The paper's level of significance.
ALPHA = 0.05

_DRAWS = 2000  # of the bootstrap
Scores = Mapping[str, Sequence[float]]


def mean_std(scores: Sequence[float]) -> tuple[float | None, float | None]:
    """Return mean and standard deviation of a sample; None if there are too few scores."""
    if not scores:
        return None, None
    std = float(np.std(scores, ddof=1)) if len(scores) > 1 else None
    return float(np.mean(scores)), std


def standard_error(std: float, n: int, other_std: float, other_n: int) -> float:
    """Return the standard error of the difference of two means over splits."""
    return math.sqrt(std**2 / n + other_std**2 / other_n)


def average_ranks(scores: Scores) -> dict[str, float]:
    """Average the ranks of methods over data sets, 1 is the best; equal scores share a rank."""
    average = stats.rankdata(-np.array(list(scores.values())), axis=0).mean(axis=1)
    return dict(zip(scores, map(float, average), strict=True))


def paired_t(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Two-sided p-value of Student's paired test; None with fewer than two pairs."""
    difference = np.subtract(first, second)
    if len(difference) < 2:
        return None
    if np.ptp(difference) == 0:
        return 1.0 if difference[0] == 0 else 0.0
    return float(stats.ttest_rel(first, second).pvalue)


def wilcoxon(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Two-sided p-value of Wilcoxon's signed-rank test; None with fewer than two pairs.

    By the normal approximation: the p-values of the paper's Table 9 are those of no other.
    """
    if len(first) < 2:
        return None
    difference = _differences(first, second)
    if not difference.any():
        return 1.0
    return float(stats.wilcoxon(difference, method="approx").pvalue)


def direction(first: Sequence[float], second: Sequence[float]) -> int:
    """Return 1 if ``first`` is better by the sum of signed ranks, -1 if worse."""
    difference = _differences(first, second)
    return int(np.sign((np.sign(difference) * stats.rankdata(np.abs(difference))).sum()))


def _differences(first: Sequence[float], second: Sequence[float]) -> NDArray[np.float64]:
    """Return differences of printed scores without float noise, which would break ties."""
    return np.round(np.asarray(first, np.float64) - np.asarray(second, np.float64), 9)


def friedman(scores: Scores) -> float | None:
    """P-value of Friedman's test; None with fewer than three methods or two data sets."""
    table = np.array(list(scores.values()))
    if len(table) < 3 or table.shape[1] < 2:
        return None
    return float(stats.friedmanchisquare(*table).pvalue)


def critical_distance(n_methods: int, n_sets: int) -> float:
    """Difference of average ranks that is significant by Nemenyi's test."""
    q = stats.studentized_range.ppf(1 - ALPHA, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def spearman(first: Mapping[str, float], second: Mapping[str, float]) -> float | None:
    """Rank correlation of two orders of the same methods; None if one of them has no order."""
    a, b = [first[name] for name in first], [second[name] for name in first]
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(stats.spearmanr(a, b).statistic)


def spearman_of_ranks(first: Scores, second: Scores) -> tuple[float, float, float] | None:
    """Rank correlation of the average ranks of two tables, and its 95 % interval.

    The interval is that of a bootstrap over the data sets, the same for both tables.
    """
    tables = [np.array([table[name] for name in first]) for table in (first, second)]
    n_sets = tables[0].shape[1]
    if n_sets < 3:
        return None
    ranks = [stats.rankdata(-table, axis=0) for table in tables]

    def correlation(chosen: NDArray[np.intp]) -> float:
        a, b = (rank[:, chosen].mean(axis=1) for rank in ranks)
        return float(np.corrcoef(stats.rankdata(a), stats.rankdata(b))[0, 1])

    found = correlation(np.arange(n_sets))
    low, high = _interval(correlation, n_sets)
    return found, low, high


def _interval(statistic: Callable[[NDArray[np.intp]], float], n_sets: int) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    with np.errstate(invalid="ignore"):  # a draw in which all methods tie
        drawn = [statistic(rng.integers(n_sets, size=n_sets)) for _ in range(_DRAWS)]
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return float(low), float(high)
