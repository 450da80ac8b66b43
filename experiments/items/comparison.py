"""Items that tune several methods on several data sets and compare their test scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from experiments import statistics
from experiments.items.base import Item, listed
from experiments.options import Scope
from experiments.paper import paper_score
from experiments.problems import METRICS, Task
from experiments.protocol import Result, Tuned, Unit
from experiments.report.content import Block, Cell, Column, Finding, Score, Section, Table
from experiments.store import Store


@dataclass(frozen=True)
class Outcomes:
    """Results by data set, method and split; some may be missing.

    Scores are those of ``metric`` unless another one is named.
    """

    scope: Scope
    results: Mapping[tuple[str, str], Mapping[int, Result]]
    metric: str
    paper_table: str
    digits: int

    def scores(self, dataset: str, method: str, metric: str | None = None) -> dict[int, float]:
        """Return the scores by split."""
        by_split = self.results[dataset, method]
        return {split: result.scores[metric or self.metric] for split, result in by_split.items()}

    def means(self, dataset: str, metric: str | None = None) -> dict[str, float]:
        """Return the mean scores of the methods with all splits."""
        means = {}
        for method in self.scope.methods:
            scores = list(self.scores(dataset, method, metric).values())
            mean, _ = statistics.mean_std(scores)
            if mean is not None and len(scores) == self.scope.n_splits:
                means[method] = mean
        return means

    def is_complete(self, dataset: str) -> bool:
        """Whether every method has all its splits."""
        return len(self.means(dataset)) == len(self.scope.methods)

    def compared(self) -> dict[str, list[float]]:
        """Return the mean scores by method over the data sets that are complete."""
        means = [
            self.means(dataset) for dataset in self.scope.datasets if self.is_complete(dataset)
        ]
        return {method: [by_method[method] for by_method in means] for method in self.scope.methods}

    def paired_t(self, dataset: str, first: str, second: str) -> float | None:
        """P-value of the paired test over the splits that both methods have."""
        a, b = (self.scores(dataset, method) for method in (first, second))
        splits = sorted(a.keys() & b.keys())
        return statistics.paired_t([a[s] for s in splits], [b[s] for s in splits])

    def score(self, dataset: str, method: str, metric: str | None = None) -> Score:
        """Return a cell: our score and the paper's."""
        scores = self.scores(dataset, method, metric)
        mean, std = statistics.mean_std(list(scores.values()))
        rank = None
        if self.is_complete(dataset):
            means = {m: [mean] for m, mean in self.means(dataset, metric).items()}
            rank = statistics.average_ranks(means, digits=self.digits)[method]
        paper = paper_score(self.paper_table, dataset, method, metric or self.metric)
        if paper is None:
            return Score(mean, std, rank, len(scores))
        return Score(mean, std, rank, len(scores), paper.score, paper.std, paper.rank)

    def differences(self, dataset: str) -> dict[str, float]:
        """Return our mean minus the paper's, for the methods that both have."""
        papers = {
            method: paper_score(self.paper_table, dataset, method, self.metric)
            for method in self.scope.methods
        }
        means = self.means(dataset)
        return {m: means[m] - paper.score for m, paper in papers.items() if paper and m in means}


@dataclass(frozen=True, kw_only=True)
class Comparison(Item):
    """Methods tuned on validation rows and compared on test rows."""

    task: Task
    paper_table: str
    #: The tables and figures of the item, and the claims of the paper with what was measured.
    blocks: Callable[[str, Outcomes], Sequence[Block]]
    findings: Callable[[Outcomes], Sequence[Finding]]
    #: Digits to which scores are shown and ranked.
    digits: int = 3

    def runs(self, scope: Scope) -> list[Tuned]:
        return [
            self._run(scope, dataset, split, method)
            for dataset in scope.datasets
            for split in range(scope.n_splits)
            for method in scope.methods
        ]

    def _run(self, scope: Scope, dataset: str, split: int, method: str) -> Tuned:
        limits = (scope.search, scope.budget, scope.max_seconds, scope.refit)
        return Tuned(dataset, scope.seed, split, method, *limits)

    def section(self, scope: Scope, store: Store) -> Section:
        results = {
            (dataset, method): {
                split: result
                for split in range(scope.n_splits)
                if (result := store.get(self._run(scope, dataset, split, method))) is not None
            }
            for dataset in scope.datasets
            for method in scope.methods
        }
        outcomes = Outcomes(scope, results, METRICS[self.task], self.paper_table, self.digits)
        units = {d: store.get(Unit(d, scope.seed)) for d in scope.datasets}
        return Section(
            self.name,
            self.title,
            [self.text, *self.state(scope, store)],
            [*self.blocks(self.name, outcomes), _chosen_table(self.name, outcomes)],
            self.findings(outcomes),
            {
                **self.specification(scope),
                "search": scope.search,
                "T in seconds": listed([f"{d} {u.seconds:.3g}" for d, u in units.items() if u]),
            },
        )


def p_value_table(
    name: str,
    title: str,
    methods: Sequence[str],
    p_value: Callable[[str, str], float | None],
    is_better: Callable[[str, str], bool],
    caption: str,
) -> Table:
    """Return p-values for all pairs of methods; significant ones are marked."""

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
        f"{caption} Values below {statistics.ALPHA} are marked: (>) if the method of the row is "
        "better, (<) if it is worse.",
    )


def _chosen_table(name: str, outcomes: Outcomes) -> Table:
    """Return the settings that every run chose."""
    metric = outcomes.metric
    columns = [
        Column("dataset", "data set"),
        Column("method", "method"),
        Column("split", "split"),
        Column("loss", "loss"),
        Column("learning_rate", "learning rate", 2),
        Column("max_features", "features per node"),
        Column("max_leaf_nodes", "leaves"),
        Column("rounds", "rounds"),
        Column("seconds", "seconds"),
        Column("validation", f"validation {metric}"),
        Column("test", f"test {metric}"),
        Column("capped", "capped fits"),
    ]
    rows: list[dict[str, Cell]] = [
        {
            "dataset": dataset,
            "method": method,
            "split": split,
            **{column.key: result.chosen.get(column.key) for column in columns[3:7]},
            "rounds": result.rounds,
            "seconds": result.seconds,
            "validation": result.chosen.get("validation score"),
            "test": result.scores[metric],
            "capped": result.n_capped,
        }
        for (dataset, method), by_split in outcomes.results.items()
        for split, result in by_split.items()
    ]
    return Table(f"{name}-chosen", "Chosen settings", columns, rows)
