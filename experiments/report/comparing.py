"""Tables that several sections share: scores, pairs of methods, and what was chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from experiments import statistics
from experiments.paper import PaperTest
from experiments.protocol import VARIANTS
from experiments.report.content import Cell, Column, Table
from experiments.report.outcomes import MAIN, Outcomes

#: A p-value and the sign of the difference; None: not known.
Tested = tuple[float, int] | None


def state(outcomes: Outcomes) -> list[str]:
    """Say what is missing."""
    missing, total = outcomes.n_missing
    if not missing:
        return []
    return [f"{missing} of {total} runs are missing; what needs them is a dash."]


def p_text(tested: Tested) -> str | None:
    """Write a p-value as the paper does: marked if significant."""
    if tested is None:
        return None
    p, sign = tested
    return f"{p:.2g} ({'>' if sign > 0 else '<'})" if p < statistics.ALPHA else f"{p:.2g}"


def agreement(ours: Tested, paper: Tested) -> str | None:
    """Say whether two tests of a pair agree."""
    if ours is None or paper is None:
        return None
    significant = [test[1] if test[0] < statistics.ALPHA else 0 for test in (ours, paper)]
    match significant:
        case [0, 0]:
            return "neither significant"
        case [0, _]:
            return "only the paper's"
        case [_, 0]:
            return "only ours"
        case [a, b] if a == b:
            return "same, significant"
    return "opposite, significant"


def of_paper(test: PaperTest) -> tuple[float, int]:
    """Return the p-value and the sign of a pair of the paper."""
    return test.p, test.sign


def pair_rows(
    tests: Iterable[PaperTest], columns: Mapping[str, Mapping[tuple[str, str], Tested]]
) -> list[dict[str, Cell]]:
    """Return a row for each pair: the p-values of each column, and whether ours agrees.

    ``columns`` holds tests by pair; those of the main variant are compared with the paper's.
    """
    rows: list[dict[str, Cell]] = []
    for test in tests:
        pair = test.first, test.second
        row: dict[str, Cell] = {"first": test.first, "second": test.second}
        row |= {name: p_text(column.get(pair)) for name, column in columns.items()}
        row["paper"] = p_text(of_paper(test))
        row["agreement"] = agreement(columns[MAIN].get(pair), of_paper(test))
        rows.append(row)
    return rows


def pair_columns(names: Sequence[str]) -> list[Column]:
    """Return the columns of rows of pairs."""
    return [
        Column("first", "method"),
        Column("second", "against"),
        *(Column(name, name) for name in names),
        Column("paper", "paper"),
        Column("agreement", f"{MAIN} and paper"),
    ]


PAIRS_CAPTION = (
    f"P-values; below {statistics.ALPHA} marked (>) if the method is better than the one it is "
    "compared with, (<) if it is worse."
)


def counted(rows: Sequence[Mapping[str, Cell]]) -> str:
    """Count the agreements of rows of pairs in words."""
    counts = Counter(str(row["agreement"]) for row in rows if row["agreement"] is not None)
    parts = [f"{n} {kind}" for kind, n in counts.most_common()]
    return f"{', '.join(parts)}." if parts else "No pair is complete."


def variants_table(name: str, outcomes: Outcomes) -> Table:
    """Compare both variants of the final model with the paper's scores."""
    rows: list[dict[str, Cell]] = []
    for variant in VARIANTS:
        cells = outcomes.all_scores(variant)
        orders = [outcomes.order_agrees(d, variant) for d in outcomes.scope.datasets]
        known = [value for value in orders if value is not None]
        differences = [cell.difference or 0.0 for cell in cells]
        deviations = Counter(cell.deviates for cell in cells)
        rows.append(
            {
                "variant": variant,
                "cells": len(cells),
                "within": deviations[0],
                "above": deviations[1],
                "below": deviations[-1],
                "mean": float(np.mean(differences)) if differences else None,
                "absolute": float(np.mean(np.abs(differences))) if differences else None,
                "order": float(np.mean(known)) if known else None,
            }
        )
    columns = [
        Column("variant", "final model"),
        Column("cells", "scores"),
        Column("within", "within two standard errors"),
        Column("above", "above"),
        Column("below", "below"),
        Column("mean", "mean difference"),
        Column("absolute", "mean absolute difference"),
        Column("order", "Spearman's correlation of the order, mean over sets", 2),
    ]
    title = "Both variants of the final model against the paper"
    return Table(f"{name}-variants", title, columns, rows)


def chosen_table(name: str, outcomes: Outcomes) -> Table:
    """Return what the searches chose, over the splits."""
    columns = [
        Column("dataset", "data set"),
        Column("method", "method"),
        Column("splits", "splits"),
        Column("losses", "losses"),
        Column("rate", "learning rates"),
        Column("leaves", "leaves"),
        Column("rounds", "rounds, median", 0),
        Column("validation", "validation score"),
        Column("seconds", "CPU seconds of the final fits", 1),
    ]
    rows: list[dict[str, Cell]] = []
    for (dataset, method), found in outcomes.results.items():
        models = [result.model() for result in found.values() if result.trials]
        if models:
            settings = [model.settings for model in models]
            rows.append(
                {
                    "dataset": dataset,
                    "method": method,
                    "splits": len(models),
                    "losses": _tally(each["loss"] for each in settings),
                    "rate": _tally(each["learning_rate"] for each in settings),
                    "leaves": _tally(each["max_leaf_nodes"] for each in settings),
                    "rounds": float(np.median([model.rounds for model in models])),
                    "validation": float(np.mean([model.validation or 0.0 for model in models])),
                    "seconds": float(np.mean([result.seconds for result in found.values()])),
                }
            )
    return Table(f"{name}-chosen", "What the searches chose", columns, rows, is_detail=True)


def _tally(values: Iterable[object]) -> str:
    return ", ".join(f"{value} × {n}" for value, n in sorted(Counter(map(str, values)).items()))


def score_rows(outcomes: Outcomes, datasets: Sequence[str], variant: str) -> list[dict[str, Cell]]:
    """Return a row for each data set: a score for each method, and the agreement of the order."""
    return [
        {
            "dataset": d,
            **{m: outcomes.score(d, m, variant) for m in outcomes.scope.methods},
            "order": outcomes.order_agrees(d, variant),
        }
        for d in datasets
    ]
