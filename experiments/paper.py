"""The results that the paper reports, typed out of its tables."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from experiments import statistics

_FOLDER = Path(__file__).parent
_METRICS = {"multilabel": "lrap", "regression": "macro-r2"}


class PaperScore(NamedTuple):
    """A score as printed: mean, standard deviation over splits, rank among the methods."""

    score: float
    std: float | None
    rank: float | None


#: The p-values of Friedman's test in the paper's text, by task.
PAPER_FRIEDMAN = {"multilabel": 1.36e-10, "regression": 0.3}


class PaperTest(NamedTuple):
    """A p-value as printed; ``sign`` is 1 if ``first`` is better, -1 if worse, 0 if p ≥ 0.05."""

    table: int
    dataset: str
    first: str
    second: str
    p: float
    sign: int


class PaperClaim(NamedTuple):
    """A claim, where it stands, and the name of what is measured for it."""

    where: str
    measure: str
    text: str


def paper_score(dataset: str, method: str, metric: str) -> PaperScore | None:
    """Look up a score by the paper's names; None if the paper has none.

    ``metric`` is ``macro-r2``, ``half-macro-r2`` or ``lrap``.
    """
    return _scores().get((dataset, method, metric))


def paper_sets(task: str) -> list[str]:
    """Return the real data sets of a task (``multilabel`` or ``regression``), in table order."""
    found = [d for d, _, metric in _scores() if metric == _METRICS[task]]
    return [name for name in dict.fromkeys(found) if not name.startswith("friedman1")]


def paper_table(task: str, datasets: Collection[str] | None = None) -> dict[str, list[float]]:
    """Return the printed scores of each method on the real data sets, or on some of them."""
    chosen = [name for name in paper_sets(task) if datasets is None or name in datasets]
    methods = dict.fromkeys(m for d, m, _ in _scores() if d in chosen)
    return {m: [_scores()[d, m, _METRICS[task]].score for d in chosen] for m in methods}


def paper_ranks(task: str, datasets: Collection[str] | None = None) -> dict[str, float]:
    """Return the average ranks of the methods over the real data sets, or over some of them."""
    return statistics.average_ranks(paper_table(task, datasets))


def paper_digits(dataset: str, metric: str) -> int:
    """Return the digits to which the paper prints and ranks the scores of a data set.

    Three for data sets that are not in the paper.
    """
    return _digits().get((dataset, metric), 3)


def paper_tests(table: int, dataset: str) -> list[PaperTest]:
    """Return the p-values of Table 5, 7, 8 or 9, one for each pair of methods.

    ``dataset`` is a synthetic set, or the task for tests over all data sets of a task.
    """
    return [test for test in _tests() if test.table == table and test.dataset == dataset]


def paper_claims() -> list[PaperClaim]:
    """Return the claims in the order of the paper."""
    return [
        PaperClaim(row["where"], row["measure"], row["claim"]) for row in _rows("paper_claims.csv")
    ]


@cache
def _scores() -> dict[tuple[str, str, str], PaperScore]:
    def number(text: str) -> float | None:
        return float(text) if text else None

    return {
        (row["dataset"], row["method"], row["metric"]): PaperScore(
            float(row["score"]), number(row["std"]), number(row["rank"])
        )
        for row in _rows("paper_results.csv")
    }


@cache
def _digits() -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for row in _rows("paper_results.csv"):
        key = row["dataset"], row["metric"]
        found[key] = max(found.get(key, 0), len(row["score"].partition(".")[2]))
    return found


@cache
def _tests() -> list[PaperTest]:
    signs = {">": 1, "<": -1, "": 0}
    return [
        PaperTest(
            int(row["table"]), row["dataset"], row["first"], row["second"], float(row["p"]),
            signs[row["sign"]],
        )
        for row in _rows("paper_tests.csv")
    ]  # fmt: skip


def _rows(name: str) -> Iterator[dict[str, str]]:
    with (_FOLDER / name).open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)
