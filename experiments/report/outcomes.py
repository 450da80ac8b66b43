"""What a store holds for an item, by data set, method and split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import methods, statistics
from experiments.items import Curves, Models, Searches
from experiments.items.base import splits
from experiments.options import Scope
from experiments.paper import paper_digits, paper_score
from experiments.problems import METRICS, in_paper, task_of
from experiments.protocol import NOMINAL, Curve, CurveResult, SearchResult
from experiments.report.content import Score, Series
from experiments.store import Store

#: The variant that the paper's text supports; see ``VARIANT_NOTE``.
MAIN = "no refit"
VARIANT_NOTE = (
    "The paper does not say whether the final model is refitted on training and validation rows "
    "together once its settings are chosen. Its text suggests that it is not: for data sets "
    "without test rows it uses 40 % of the samples as training set, 10 % as validation set and "
    "50 % as testing set, and it mentions no second fit. We report both: “no refit”, and “refit” "
    "with the same settings and number of rounds."
)
SEARCH_NOTE = (
    "A search tries 42 of the 490 settings of the paper's grid (20 on real data sets with 3,000 "
    "rows or more), drawn evenly over losses and learning rates. Every setting first runs for an "
    "eighth of its rounds, but at least 100. The best third then run for all of them. A fit stops "
    "early if its second half, at least 100 rounds, improved the validation score by less than "
    "0.001."
)
F64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The searches of an item; some may be missing."""

    scope: Scope
    results: Mapping[tuple[str, str], Mapping[int, SearchResult]]

    @classmethod
    def of(cls, item: Searches, scope: Scope, store: Store) -> Outcomes:
        """Collect what the store holds."""
        results = {
            (dataset, method): {
                split: result
                for split in splits(scope, dataset)
                if (result := store.get(item.run(scope, dataset, split, method))) is not None
            }
            for dataset in scope.datasets
            for method in scope.methods
        }
        return cls(scope, results)

    @property
    def n_missing(self) -> tuple[int, int]:
        """The number of missing runs, and that of all runs."""
        wanted = [len(splits(self.scope, dataset)) for dataset, _ in self.results]
        return sum(wanted) - sum(map(len, self.results.values())), sum(wanted)

    def metric(self, dataset: str) -> str:
        """The first metric of a data set."""
        return METRICS[task_of(dataset)]

    def scores(
        self,
        dataset: str,
        method: str,
        variant: str = MAIN,
        metric: str | None = None,
        budget: str = NOMINAL,
    ) -> dict[int, float]:
        """Return the test scores by split."""
        metric = metric or self.metric(dataset)
        found = self.results.get((dataset, method), {})
        return {s: r.model(budget).scores[variant][metric] for s, r in found.items()}

    def mean(self, dataset: str, method: str, *which: Any) -> float | None:
        """Return the mean score over all splits, None if one is missing."""
        scores = list(self.scores(dataset, method, *which).values())
        whole = len(scores) == len(splits(self.scope, dataset)) > 0
        return float(np.mean(scores)) if whole else None

    def means(self, dataset: str, *which: Any) -> dict[str, float]:
        """Return the mean scores of the methods with all splits."""
        found = {method: self.mean(dataset, method, *which) for method in self.scope.methods}
        return {method: mean for method, mean in found.items() if mean is not None}

    def complete(self) -> list[str]:
        """Return the data sets on which every method has all splits."""
        return [d for d in self.scope.datasets if len(self.means(d)) == len(self.scope.methods)]

    def compared(self, variant: str = MAIN, budget: str = NOMINAL) -> dict[str, list[float]]:
        """Return rounded mean scores by method over the complete data sets."""
        means = {d: self.means(d, variant, None, budget) for d in self.complete()}
        digits = {d: paper_digits(in_paper(d), self.metric(d)) for d in means}
        return {
            method: [round(means[d][method], digits[d]) for d in means]
            for method in self.scope.methods
        }

    def ranks(
        self, dataset: str, variant: str = MAIN, metric: str | None = None
    ) -> dict[str, float]:
        """Return the ranks of the methods on a data set; empty if one is missing or alone."""
        means = self.means(dataset, variant, metric)
        if len(means) < max(2, len(self.scope.methods)):
            return {}
        digits = paper_digits(in_paper(dataset), metric or self.metric(dataset))
        rounded = {method: [round(mean, digits)] for method, mean in means.items()}
        return statistics.average_ranks(rounded)

    def score(
        self, dataset: str, method: str, variant: str = MAIN, metric: str | None = None
    ) -> Score | None:
        """Return a cell: our score over all splits and the paper's; None if both are missing."""
        metric = metric or self.metric(dataset)
        found = list(self.scores(dataset, method, variant, metric).values())
        if len(found) < len(splits(self.scope, dataset)):
            found = []
        rank = self.ranks(dataset, variant, metric).get(method)
        paper = paper_score(in_paper(dataset), methods.in_paper(method), metric)
        if paper is None:
            return Score(*statistics.mean_std(found), rank, len(found)) if found else None
        digits = paper_digits(in_paper(dataset), metric)
        return Score(*statistics.mean_std(found), rank, len(found), *paper, digits)

    def all_scores(self, variant: str) -> list[Score]:
        """Return the scores of the first metric that both sides have."""
        cells = (self.score(d, m, variant) for d in self.scope.datasets for m in self.scope.methods)
        return [cell for cell in cells if cell is not None and cell.difference is not None]

    def order_agrees(self, dataset: str, variant: str) -> float | None:
        """Rank correlation of the methods on a data set with the paper's; None: incomplete."""
        ranks, metric = self.ranks(dataset, variant), self.metric(dataset)
        papers = {m: paper_score(in_paper(dataset), m, metric) for m in ranks}
        known = {m: -paper.score for m, paper in papers.items() if paper is not None}
        if len(known) < len(self.scope.methods):
            return None
        return statistics.spearman(ranks, known)

    def paired_t(
        self, dataset: str, first: str, second: str, variant: str
    ) -> tuple[float, int] | None:
        """P-value over the splits and the sign of the difference; None if splits are missing."""
        a, b = (self.scores(dataset, method, variant) for method in (first, second))
        if len(a) < len(splits(self.scope, dataset)) or a.keys() != b.keys():
            return None
        pairs = [a[s] for s in a], [b[s] for s in a]
        p = statistics.paired_t(*pairs)
        return None if p is None else (p, int(np.sign(np.mean(pairs[0]) - np.mean(pairs[1]))))

    def pairs(self) -> list[tuple[str, str]]:
        """Return all pairs of methods."""
        return list(combinations(self.scope.methods, 2))


def model_scores(item: Models, scope: Scope, store: Store) -> dict[tuple[str, str], list[float]]:
    """Return the scores of our models by data set and model, if all splits are there."""
    found: dict[tuple[str, str], list[float]] = {}
    for dataset in scope.datasets:
        for model in scope.methods:
            runs = [item.run(scope, dataset, s, model) for s in splits(scope, dataset)]
            results = [store.get(run) for run in runs]
            if runs and all(result is not None for result in results):
                metric = METRICS[task_of(dataset)]
                found[dataset, model] = [result.scores[metric] for result in results]
    return found


@dataclass(frozen=True, eq=False)
class Line:
    """One line of a figure, averaged over its splits; ``scores`` is (n_splits, n_points)."""

    label: str
    method: str
    components: int | None
    step: str
    rounds: Sequence[int]
    scores: F64
    #: CPU seconds of one thread up to each of the rounds.
    seconds: F64
    #: The cost of a round in T, by budget.
    cost: Mapping[str, float]

    @classmethod
    def of(cls, label: str, run: Curve, results: Sequence[CurveResult]) -> Line:
        """Collect the rounds at which all splits were scored."""
        common = set.intersection(*(set(result.rounds) for result in results))
        rounds = sorted(common)

        def at_rounds(name: str) -> F64:
            maps = [dict(zip(r.rounds, getattr(r, name), strict=True)) for r in results]
            return np.array([[values[m] for m in rounds] for values in maps])

        settings = run.settings
        return cls(
            label,
            run.method,
            settings.get("n_components"),
            settings.get("step", "line_search"),
            rounds,
            at_rounds("scores"),
            at_rounds("seconds").mean(axis=0),
            results[0].cost,
        )

    @property
    def mean(self) -> F64:
        """Scores averaged over the splits."""
        return np.asarray(self.scores.mean(axis=0))

    @property
    def best(self) -> float:
        """The best mean score on the way."""
        return float(self.mean.max())

    def spent(self, budget: str = NOMINAL) -> F64:
        """Return the cost in T up to each of the rounds."""
        return np.asarray(self.rounds, dtype=float) * self.cost[budget]

    def cost_to(self, score: float, budget: str = NOMINAL) -> float:
        """Return the cost in T after which the mean score has reached a value, or infinity."""
        return self._at(score, self.spent(budget))

    def rounds_to(self, score: float) -> float:
        """Return the rounds after which the mean score has reached a value, or infinity."""
        return self._at(score, np.asarray(self.rounds, dtype=float))

    def seconds_to(self, score: float) -> float:
        """Return the CPU seconds after which the mean score has reached a value, or infinity."""
        return self._at(score, self.seconds)

    def _at(self, score: float, spent: F64) -> float:
        reached = np.flatnonzero(self.mean >= score)
        return float(spent[reached[0]]) if len(reached) else float("inf")

    def series(self) -> Series:
        """Return scores over cost, with a band of one standard deviation."""
        x, mean = self.spent().tolist(), self.mean
        if len(self.scores) < 2:
            return Series(self.label, x, mean.tolist())
        std = self.scores.std(axis=0, ddof=1)
        return Series(self.label, x, mean.tolist(), (mean - std).tolist(), (mean + std).tolist())


def read_lines(item: Curves, scope: Scope, store: Store, dataset: str) -> dict[str, Line]:
    """Return the lines of a figure of which all splits are there."""
    lines = {}
    for label, runs in item.lines(scope, dataset).items():
        results = [store.get(run) for run in runs]
        if runs and all(result is not None for result in results):
            lines[label] = Line.of(label, runs[0], results)
    return lines
