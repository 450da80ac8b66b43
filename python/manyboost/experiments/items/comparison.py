"""Items that tune several methods on several sets and compare their test scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from manyboost.experiments import statistics
from manyboost.experiments.items.base import Item
from manyboost.experiments.options import Options, Scope
from manyboost.experiments.paper import paper_score
from manyboost.experiments.problems import Task
from manyboost.experiments.protocol import Result, Specification, Tuned, Unit
from manyboost.experiments.results import Block, Cell, Column, Finding, Score, Section, Table
from manyboost.experiments.store import Store


@dataclass(frozen=True)
class Outcomes:
    """Results by set, method and split; some may be missing."""

    scope: Scope
    datasets: Sequence[str]
    results: Mapping[tuple[str, str], Mapping[int, Result]]
    table: str
    digits: int

    def scores(self, dataset: str, method: str, metric: str) -> dict[int, float]:
        """Return the scores by split."""
        by_split = self.results[dataset, method]
        return {split: result.scores[metric] for split, result in by_split.items()}

    def mean(self, dataset: str, method: str, metric: str) -> float | None:
        """Return the mean score, None if no split is there."""
        return statistics.mean_std(list(self.scores(dataset, method, metric).values()))[0]

    def means(self, dataset: str, metric: str) -> dict[str, float]:
        """Return the mean scores of the methods that are complete."""
        means = {m: self.mean(dataset, m, metric) for m in self.scope.methods}
        return {
            method: mean
            for method, mean in means.items()
            if mean is not None and len(self.results[dataset, method]) == self.scope.n_splits
        }

    def is_complete(self, dataset: str, metric: str) -> bool:
        """Whether every method has all its splits."""
        return len(self.means(dataset, metric)) == len(self.scope.methods)

    def compared(self, metric: str) -> dict[str, list[float]]:
        """Return the mean scores by method over the sets that are complete."""
        complete = [d for d in self.datasets if self.is_complete(d, metric)]
        means = [self.means(dataset, metric) for dataset in complete]
        return {method: [by_method[method] for by_method in means] for method in self.scope.methods}

    def paired_t(self, dataset: str, first: str, second: str, metric: str) -> float | None:
        """P-value of the paired test over the splits that both methods have."""
        a, b = (self.scores(dataset, method, metric) for method in (first, second))
        splits = sorted(a.keys() & b.keys())
        return statistics.paired_t([a[s] for s in splits], [b[s] for s in splits])

    def score(self, dataset: str, method: str, metric: str) -> Score:
        """Return a cell: ours beside the paper's."""
        scores = self.scores(dataset, method, metric)
        mean, std = statistics.mean_std(list(scores.values()))
        rank = None
        if self.is_complete(dataset, metric):
            rank = statistics.ranks(self.means(dataset, metric), digits=self.digits)[method]
        paper = paper_score(self.table, dataset, method, metric)
        if paper is None:
            return Score(mean, std, rank, len(scores))
        return Score(mean, std, rank, len(scores), paper.score, paper.std, paper.rank)


class Comparison(Item):
    """Methods tuned on validation rows and compared on test rows."""

    task: ClassVar[Task]
    metric: ClassVar[str]
    paper_table: ClassVar[str]
    #: Digits to which scores are shown and ranked.
    digits: ClassVar[int] = 3

    def plan(self, options: Options) -> list[Specification]:
        """Return one tuned run for each set, split and method."""
        scope, (datasets, _) = self.scope(options), self.datasets(options)
        return [
            self._run(scope, options, dataset, split, method)
            for dataset in datasets
            for split in range(scope.n_splits)
            for method in scope.methods
        ]

    def _run(self, scope: Scope, options: Options, dataset: str, split: int, method: str) -> Tuned:
        return Tuned(
            dataset,
            options.seed,
            split,
            method,
            scope.search,
            scope.budget,
            scope.max_seconds,
            self.task,
            scope.refit,
        )

    def outcomes(self, store: Store, options: Options) -> Outcomes:
        """Return what the store holds of the plan."""
        scope, (datasets, _) = self.scope(options), self.datasets(options)
        results: dict[tuple[str, str], dict[int, Result]] = {}
        for dataset in datasets:
            for method in scope.methods:
                by_split = results[dataset, method] = {}
                for split in range(scope.n_splits):
                    result = store.get(self._run(scope, options, dataset, split, method))
                    if result is not None:
                        by_split[split] = result
        return Outcomes(scope, datasets, results, self.paper_table, self.digits)

    def summarise(self, store: Store, options: Options) -> Section:
        """Tables of scores, tests and chosen settings; what the paper claims, and what we saw."""
        outcomes = self.outcomes(store, options)
        return Section(
            self.name,
            self.title,
            [*self.text, *self.state(store, options)],
            [*self.blocks(outcomes), chosen_table(self.name, self.metric, outcomes)],
            self.findings(outcomes),
            {
                **self.specification(options),
                "search": outcomes.scope.search,
                "T in seconds": self._units(store, options),
            },
        )

    def _units(self, store: Store, options: Options) -> str:
        """Return T of the sets for which it was measured."""
        units = {d: store.get(Unit(d, options.seed)) for d in self.datasets(options)[0]}
        return listed(f"{d} {unit.seconds:.3g}" for d, unit in units.items() if unit is not None)

    @abstractmethod
    def blocks(self, outcomes: Outcomes) -> list[Block]:
        """Return the tables and figures of the item."""

    @abstractmethod
    def findings(self, outcomes: Outcomes) -> list[Finding]:
        """Return the claims and what was measured."""


def p_value_table(
    name: str,
    title: str,
    methods: Sequence[str],
    p_value: Callable[[str, str], float | None],
    is_better: Callable[[str, str], bool],
    caption: str,
) -> Table:
    """Return p-values for all pairs; significant ones say which method is better."""

    def cell(row: str, column: str) -> str | None:
        p = None if row == column else p_value(row, column)
        if p is None:
            return None
        sign = ""
        if p < statistics.ALPHA:
            sign = " (>)" if is_better(row, column) else " (<)"
        return f"{p:.2g}{sign}"

    return Table(
        name,
        title,
        [Column("method", "method"), *(Column(m, m) for m in methods)],
        [{"method": row, **{m: cell(row, m) for m in methods}} for row in methods],
        caption,
    )


def chosen_table(name: str, metric: str, outcomes: Outcomes) -> Table:
    """Return the settings that every run chose."""
    settings = ("loss", "learning_rate", "max_features", "max_leaf_nodes")
    rows: list[dict[str, Cell]] = []
    for (dataset, method), by_split in outcomes.results.items():
        for split, result in by_split.items():
            row: dict[str, Cell] = {"dataset": dataset, "method": method, "split": split}
            row |= {key: result.chosen.get(key) for key in settings}
            row |= {
                "rounds": result.rounds,
                "seconds": result.seconds,
                "validation": result.chosen.get("validation score"),
                "test": result.scores[metric],
                "capped": result.n_capped,
            }
            rows.append(row)
    titles = {
        "dataset": "data set",
        "max_features": "features a node",
        "max_leaf_nodes": "leaves",
        "learning_rate": "learning rate",
        "validation": f"validation {metric}",
        "test": f"test {metric}",
        "capped": "fits ended by the cap",
    }
    keys = ("dataset", "method", "split", *settings, *("rounds", "seconds"))
    columns = [
        Column(key, titles.get(key, key), digits=2 if key == "learning_rate" else 3)
        for key in (*keys, "validation", "test", "capped")
    ]
    return Table(f"{name}-chosen", "Chosen settings", columns, rows)


def within(outcomes: Outcomes, dataset: str, metric: str, tolerance: float, table: str) -> Finding:
    """Compare the mean of each method with the paper's."""
    claim = f"{dataset}: {metric} of each method within {tolerance:g} of the paper's"
    differences = {}
    for method, mean in outcomes.means(dataset, metric).items():
        paper = paper_score(table, dataset, method, metric)
        if paper is not None:
            differences[method] = mean - paper.score
    if not differences:
        return Finding(claim, "nothing measured", None)
    measured = ", ".join(f"{method} {d:+.3f}" for method, d in differences.items())
    if not outcomes.is_complete(dataset, metric):
        return Finding(claim, f"{measured}; runs are missing", None)
    return Finding(claim, measured, all(abs(d) <= tolerance for d in differences.values()))


def listed(names: Iterable[str]) -> str:
    """Join names, or say that there is none."""
    return ", ".join(names) or "none"
