"""The paper's numbers: its tables of results and the names of its data sets."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from manyboost.datasets import CATALOGUE

#: Names of the paper's sets.
MULTILABEL_SETS, REGRESSION_SETS = (
    tuple(entry.name for entry in CATALOGUE.values() if entry.in_paper and entry.task == task)
    for task in ("multilabel", "regression")
)


@dataclass(frozen=True)
class PaperScore:
    """A score as printed: mean, standard deviation over splits, rank among the methods."""

    score: float
    std: float | None
    rank: float | None


def paper_score(table: str, dataset: str, method: str, metric: str) -> PaperScore | None:
    """Look up a score; None where the paper has none.

    Parameters
    ----------
    table : {"table-friedman1", "table-noisy", "appendix"}
    dataset, method : str
        As the paper names them.
    metric : {"macro-r2", "half-macro-r2", "lrap"}

    Examples
    --------
    >>> from manyboost.experiments.paper import paper_score
    >>> paper_score("table-friedman1", "friedman1-ind", "gbmort", "macro-r2")
    PaperScore(score=0.644, std=0.01, rank=5.0)
    """
    return _scores().get((table, dataset, method, metric))


@cache
def _scores() -> dict[tuple[str, str, str, str], PaperScore]:
    text = files("manyboost.experiments").joinpath("paper_results.csv").read_text("utf-8")
    return {
        (row["table"], row["dataset"], row["method"], row["metric"]): PaperScore(
            float(row["score"]), _number(row["std"]), _number(row["rank"])
        )
        for row in csv.DictReader(text.splitlines())
    }


def _number(text: str) -> float | None:
    return float(text) if text else None
