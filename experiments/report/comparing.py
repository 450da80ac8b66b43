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
    return [f"{missing} of {total} runs are missing; cells that need them show a dash."]


def p_text(tested: Tested) -> str | None:
    """Write a p-value as the paper does: marked if significant."""
    if tested is None:
        return None
    p, sign = tested
    return f"{p:.2g} ({'>' if sign > 0 else '<'})" if p < statistics.ALPHA else f"{p:.2g}"


def agreement(ours: Tested, paper: Tested) -> str | None:
    """Say which of two tests of a pair are significant, and whether their directions agree."""
    if ours is None or paper is None:
        return None
    significant = [test[1] if test[0] < statistics.ALPHA else 0 for test in (ours, paper)]
    match significant:
        case [0, 0]:
            return "neither"
        case [0, _]:
            return "paper only"
        case [_, 0]:
            return "ours only"
        case [a, b] if a == b:
            return "both, same direction"
    return "both, opposite directions"


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
        Column("second", "compared with"),
        *(Column(name, f"p, {'ours, ' * (name in VARIANTS)}{name}") for name in names),
        Column("paper", "p, as printed in the paper"),
        Column("agreement", f"significant (ours: {MAIN}; paper: as printed)"),
    ]


PAIRS_CAPTION = (
    f"Values of p below {statistics.ALPHA} are significant. They are marked (>) if the method in "
    "the column “method” is the better one, (<) if it is the worse one."
)


def counted(rows: Sequence[Mapping[str, Cell]]) -> str:
    """Count the agreements of rows of pairs in words."""
    counts = Counter(str(row["agreement"]) for row in rows if row["agreement"] is not None)
    parts = [f"{n} {kind}" for kind, n in counts.most_common()]
    return f"Pairs in the last column: {'; '.join(parts)}." if parts else "No pair is complete."


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
        Column("cells", "scores compared"),
        Column("within", "within two standard errors of the paper"),
        Column("above", "above the paper"),
        Column("below", "below the paper"),
        Column("mean", "mean difference from the paper"),
        Column("absolute", "mean absolute difference"),
        Column(
            "order", "Spearman's correlation with the paper's order of methods, mean over sets", 2
        ),
    ]
    title = "Both final models compared with the paper"
    caption = "“Above” and “below” count differences of more than two standard errors."
    return Table(f"{name}-variants", title, columns, rows, caption)


def chosen_table(name: str, outcomes: Outcomes) -> Table:
    """Return what the searches chose, over the splits."""
    columns = [
        Column("dataset", "data set"),
        Column("method", "method"),
        Column("splits", "splits"),
        Column("losses", "losses × splits"),
        Column("rate", "learning rates × splits"),
        Column("leaves", "leaves × splits"),
        Column("rounds", "rounds, median over splits", 0),
        Column("validation", "validation score, mean"),
        Column("seconds", "CPU seconds of the final fits, mean", 1),
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
    return Table(
        f"{name}-chosen", "Settings that the searches chose", columns, rows, is_detail=True
    )


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
