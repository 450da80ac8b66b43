"""The results that the paper reports."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_name("paper_results.csv")


@dataclass(frozen=True)
class PaperScore:
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
def _scores() -> dict[tuple[str, str, str, str], PaperScore]:
    with _FILE.open(newline="", encoding="utf-8") as file:
        return {
            (row["table"], row["dataset"], row["method"], row["metric"]): PaperScore(
                float(row["score"]), _number(row["std"]), _number(row["rank"])
            )
            for row in csv.DictReader(file)
        }


def _number(text: str) -> float | None:
    return float(text) if text else None
