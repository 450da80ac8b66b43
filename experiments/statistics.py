"""Comparisons of methods by SciPy and scikit-posthocs, for tables of scores by method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

#: The paper's level of significance.
ALPHA = 0.05


def mean_std(scores: Sequence[float]) -> tuple[float | None, float | None]:
    """Return mean and standard deviation of a sample; None if there are too few scores."""
    if not scores:
        return None, None
    std = float(np.std(scores, ddof=1)) if len(scores) > 1 else None
    return float(np.mean(scores)), std


def average_ranks(scores: Mapping[str, Sequence[float]], *, digits: int = 3) -> dict[str, float]:
    """Average the ranks of methods over data sets, 1 is the best.

    Scores that are equal when printed share their rank.
    """
    rounded = np.round(list(scores.values()), digits)
    average = stats.rankdata(-rounded, axis=0).mean(axis=1)
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
    """Two-sided p-value of Wilcoxon's signed-rank test; None with fewer than two pairs."""
    if len(first) < 2:
        return None
    if np.array_equal(first, second):
        return 1.0
    return float(stats.wilcoxon(first, second).pvalue)


def friedman(scores: Mapping[str, Sequence[float]]) -> float | None:
    """P-value of Friedman's test; None with fewer than three methods or two data sets."""
    table = np.array(list(scores.values()))
    if len(table) < 3 or table.shape[1] < 2:
        return None
    return float(stats.friedmanchisquare(*table).pvalue)


def nemenyi(scores: Mapping[str, Sequence[float]]) -> dict[str, dict[str, float]]:
    """P-values of Nemenyi's test for all pairs of methods."""
    import scikit_posthocs  # slow to import, and worker processes need none of it

    table = np.array(list(scores.values())).T
    p = scikit_posthocs.posthoc_nemenyi_friedman(table).to_numpy()
    return {
        row: dict(zip(scores, map(float, values), strict=True))
        for row, values in zip(scores, p, strict=True)
    }


def critical_distance(n_methods: int, n_sets: int) -> float:
    """Difference of average ranks that is significant by Nemenyi's test."""
    q = stats.studentized_range.ppf(1 - ALPHA, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))
