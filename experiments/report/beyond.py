"""What goes beyond the paper: our defaults and folds beside the paper's best on the same splits."""

from __future__ import annotations

from collections.abc import Mapping

from experiments import statistics
from experiments.options import Scope
from experiments.protocol import VARIANTS
from experiments.report.content import Cell, Column, Score, Section, Table
from experiments.report.outcomes import Outcomes, digits_of

OURS = ("default", "folds")
_TEXT = (
    "Our default model and the mean of five folds (n_folds=5), without any tuning, on the same "
    "splits as the eight tuned methods of the paper. For these, the best test score of all methods "
    "and both variants is taken, which favours them."
)


def best_of_paper(outcomes: Outcomes, dataset: str) -> tuple[str, float] | None:
    """Return the method and variant with the best mean test score; None if one is missing."""
    if dataset not in outcomes.complete():
        return None
    found = {
        f"{method}, {variant}": mean
        for variant in VARIANTS
        for method, mean in outcomes.means(dataset, variant).items()
    }
    best = max(found, key=lambda name: found[name])
    return best, found[best]


def ahead_counts(
    scores: Mapping[tuple[str, str], list[float]], real: Mapping[str, Outcomes]
) -> dict[str, tuple[int, int]]:
    """Return for each model of ours on how many sets it is ahead, and how many are compared."""
    counts = {}
    for model in OURS:
        ahead = total = 0
        for outcomes in real.values():
            for dataset in outcomes.scope.datasets:
                best = best_of_paper(outcomes, dataset)
                ours = scores.get((dataset, model))
                if best is not None and ours is not None:
                    total += 1
                    ahead += statistics.mean_std(ours)[0] > best[1]  # type: ignore[operator]
        counts[model] = (ahead, total)
    return counts


def beyond_section(
    scope: Scope, scores: Mapping[tuple[str, str], list[float]], real: Mapping[str, Outcomes]
) -> Section:
    """Our models next to the best method of the paper on each set."""
    rows: list[dict[str, Cell]] = []
    for outcomes in real.values():
        for dataset in outcomes.scope.datasets:
            if dataset not in scope.datasets:
                continue
            best = best_of_paper(outcomes, dataset)
            row: dict[str, Cell] = {"dataset": dataset, "metric": outcomes.metric(dataset)}
            if best is not None:
                row |= {"best": best[1], "method": best[0]}
            for model in OURS:
                found = scores.get((dataset, model), [])
                if found:
                    row[model] = Score(*statistics.mean_std(found), n_repeats=len(found))
                    if best is not None:
                        mean = round(sum(found) / len(found), digits_of(dataset))
                        gap = mean - round(best[1], digits_of(dataset))
                        row[f"{model} ahead"] = gap
            rows.append(row)
    columns = [
        Column("dataset", "data set"),
        Column("metric", "score"),
        Column("method", "best of the paper's methods here"),
        Column("best", "its score"),
        *(c for m in OURS for c in (Column(m, f"ours, {m}"), Column(f"{m} ahead", "difference"))),
    ]
    counts = ahead_counts(scores, real)
    texts = [f"{model} on {n} of {total}" for model, (n, total) in counts.items() if total]
    return Section(
        "beyond",
        "Beyond the paper: defaults and folds",
        [
            _TEXT,
            f"Ahead of it: {', '.join(texts)} sets." if texts else "No set is complete yet.",
            "Newton steps beside line searches are under Figures 5 and 6.",
        ],
        [Table("beyond", "Our models beside the paper's best", columns, rows)],
    )
