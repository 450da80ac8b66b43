"""The results that the paper reports."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

_FILE = Path(__file__).with_name("paper_results.csv")


class PaperScore(NamedTuple):
    """A score as printed: mean, standard deviation over splits, rank among the methods."""

    score: float
    std: float | None
    rank: float | None


def paper_score(table: str, dataset: str, method: str, metric: str) -> PaperScore | None:
    """Look up a score by the paper's names; None if the paper has none.

    ``table`` is ``table-friedman1``, ``table-noisy`` or ``appendix``; ``metric`` is ``macro-r2``,
    ``half-macro-r2`` or ``lrap``.
    """
    return _scores().get((table, dataset, method, metric))


@cache
def _scores() -> dict[tuple[str, ...], PaperScore]:
    with _FILE.open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    numbers = [[float(text) if text else None for text in row[4:]] for row in rows]
    return {
        tuple(row[:4]): PaperScore(score or 0.0, std, rank)
        for row, (score, std, rank) in zip(rows, numbers, strict=True)
    }
