"""Figures 7 and 8 and Tables 8 to 12: all methods on the real data sets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from experiments import statistics
from experiments.costs import VARIATIONS
from experiments.paper import PAPER_FRIEDMAN, paper_score, paper_sets, paper_table, paper_tests
from experiments.problems import METRICS, task_of
from experiments.protocol import NOMINAL, VARIANTS, VARIED_ROWS
from experiments.report.comparing import (
    PAIRS_CAPTION,
    Tested,
    chosen_table,
    counted,
    pair_columns,
    pair_rows,
    score_rows,
    state,
    variants_table,
)
from experiments.report.content import Block, Cell, Column, CriticalDifference, Section, Table
from experiments.report.curves import GAUSSIAN
from experiments.report.outcomes import MAIN, SEARCH_NOTE, VARIANT_NOTE, Outcomes
from experiments.statistics import Scores

#: By task: number of the figure, of the table of pairs, names of the tables of scores.
_NUMBERS = {
    "multilabel": (7, 8, "Tables 10 and 11: LRAP"),
    "regression": (8, 9, "Table 12: macro-r²"),
}
_TEXT = (
    "Every boosting method is tuned on validation rows. As in the paper, each fit has a budget of "
    "{} T, where T is one round of gbmort with stumps and squared error. The paper measures T as "
    "time; here a cost model of an exact splitter turns the budget into a number of rounds, so "
    "that no result depends on a clock. Forests have 100 trees and are not tuned. They are fitted "
    "on training and validation rows, also where boosting is not refitted."
)
_SETS_TEXT = (
    "{} of the paper's {} data sets are complete. Our ranks and tests use these only. “Paper, on "
    "the same sets” repeats them with the scores that the paper prints for the same data sets, to "
    "show how much is due to their smaller number."
)
#: A score that is lower by no more than this reaches the paper's.
_SHORT = 0.01
_ALL = "paper, on all its sets"
_SAME = "paper, on the same sets"


def real_section(task: str, outcomes: Outcomes, stand_ins: Outcomes | None = None) -> Section:
    """Scores, average ranks and pairwise tests."""
    figure, pairs, scores = _NUMBERS[task]
    methods, done = outcomes.scope.methods, outcomes.complete()
    columns = [Column("dataset", "data set"), *(Column(m, m) for m in methods)]
    columns.append(Column("order", "Spearman's correlation with the paper's order of methods", 2))
    blocks: list[Block] = [
        *_ranks(task, figure, outcomes),
        _statistics_table(f"figure-{figure}-statistics", task, outcomes),
        _pairs_table(f"table-{pairs}", task, pairs, outcomes),
    ]
    blocks += [
        Table(
            f"table-{10 if task == 'multilabel' else 12}-{variant.replace(' ', '-')}",
            f"{scores}, {variant}",
            columns,
            score_rows(outcomes, paper_sets(task), variant),
        )
        for variant in VARIANTS
    ]
    blocks += [variants_table(f"figure-{figure}", outcomes), _costs_table(task, figure, outcomes)]
    if stand_ins is not None and any(stand_ins.results.values()):
        blocks.append(_stand_ins_table(stand_ins))
    blocks.append(chosen_table(f"figure-{figure}", outcomes))
    names = "multi-label" if task == "multilabel" else "multi-output regression"
    tables = "8, 10 and 11" if task == "multilabel" else "9 and 12"
    title = f"Figure {figure}, Tables {tables}: {names} data sets"
    return Section(
        task,
        title,
        [
            _TEXT.format(outcomes.scope.budget.partition(":")[2]),
            SEARCH_NOTE,
            _SETS_TEXT.format(len(done), len(paper_sets(task))),
            VARIANT_NOTE,
            *_reached(task, outcomes),
            *state(outcomes),
        ],
        blocks,
    )


def _reached(task: str, outcomes: Outcomes) -> list[str]:
    """On how many sets the best method of the paper reaches the scores that the paper prints."""
    metric, gaps = METRICS[task_of(outcomes.scope.datasets[0])], {}
    for dataset in outcomes.scope.datasets:
        mean, paper = outcomes.mean(dataset, GAUSSIAN), paper_score(dataset, GAUSSIAN, metric)
        if mean is not None and paper is not None:
            gaps[dataset] = mean - paper.score
    short = [f"{name} ({gap:+.3f})" for name, gap in gaps.items() if gap < -_SHORT]
    if not gaps:
        return []
    told = (
        f"Our own check: without refit, the score of {GAUSSIAN} is above the paper's or at most "
        f"{_SHORT} below it on {len(gaps) - len(short)} of {len(gaps)} data sets. Further below: "
        f"{', '.join(short) or 'none'}."
    )
    return [told]


def _tables(task: str, outcomes: Outcomes) -> dict[str, Scores]:
    """Return scores by method: the paper's on all sets and on the complete ones, and ours."""
    methods, done = outcomes.scope.methods, outcomes.complete()
    papers = {_ALL: paper_table(task), _SAME: paper_table(task, done)}
    tables: dict[str, Scores] = {
        name: {m: table[m] for m in methods if m in table} for name, table in papers.items()
    }
    if done:
        order = sorted(range(len(done)), key=lambda i: paper_sets(task).index(done[i]))
        for variant in VARIANTS:
            ours = outcomes.compared(variant)
            tables[variant] = {m: [ours[m][i] for i in order] for m in methods}
    return tables


def _ranks(task: str, figure: int, outcomes: Outcomes) -> list[Block]:
    blocks: list[Block] = []
    for name, table in _tables(task, outcomes).items():
        n_sets = min(map(len, table.values()), default=0)
        if n_sets < 2 or len(table) < 3:
            continue
        distance = statistics.critical_distance(len(table), n_sets)
        title = name if name.startswith("paper") else f"ours, {name}"
        blocks.append(
            CriticalDifference(
                f"figure-{figure}-{name.replace(',', '').replace(' ', '-')}",
                f"Figure {figure}: average ranks, {title} ({n_sets} sets)",
                statistics.average_ranks(table),
                distance,
                "A bar joins methods that do not differ significantly: their average ranks differ "
                f"by less than {distance:.2f} (Nemenyi's test, α = {statistics.ALPHA}).",
            )
        )
    return blocks


def _statistics_table(name: str, task: str, outcomes: Outcomes) -> Table:
    """Friedman's test and average ranks, ours and the paper's."""
    tables = _tables(task, outcomes)
    rows: list[dict[str, Cell]] = []
    for title, table in tables.items():
        n_sets = min(map(len, table.values()), default=0)
        row: dict[str, Cell] = {"whose": title, "sets": n_sets}
        if n_sets >= 2 and table:
            p = statistics.friedman(table)
            row["p"] = None if p is None else f"{p:.2g}"
            row["distance"] = statistics.critical_distance(len(table), n_sets)
            row |= statistics.average_ranks(table)
        if title in VARIANTS:
            found = statistics.spearman_of_ranks(table, tables[_SAME])
            row["order"] = None if found is None else "{:.2f} ({:.2f} to {:.2f})".format(*found)
        rows.append(row)
    columns = [
        Column("whose", "scores"),
        Column("sets", "data sets"),
        Column("p", "p of Friedman's test"),
        Column("distance", "critical distance (Nemenyi)", 2),
        Column(
            "order",
            "Spearman's correlation of average ranks with the paper's on the same sets "
            "(95 % interval)",
        ),
        *(Column(m, m, 2) for m in outcomes.scope.methods),
    ]
    return Table(
        name,
        "Friedman's test and average ranks",
        columns,
        rows,
        "“No refit” and “refit” are ours. Columns with the name of a method have its average rank; "
        "1 is best. Intervals come from a bootstrap over the data sets. Tests of the paper's "
        "scores use those that it prints; its text gives p = "
        f"{PAPER_FRIEDMAN[task]:.3g} over all its sets.",
    )


def _pairs_table(name: str, task: str, number: int, outcomes: Outcomes) -> Table:
    """Wilcoxon's tests, ours and the paper's."""

    def tests(table: Scores) -> dict[tuple[str, str], Tested]:
        found: dict[tuple[str, str], Tested] = {}
        for a, b in combinations(table, 2):
            p = statistics.wilcoxon(table[a], table[b])
            sign = statistics.direction(table[a], table[b])
            found[a, b] = None if p is None else (p, sign)
            found[b, a] = None if p is None else (p, -sign)
        return found

    tables = _tables(task, outcomes)
    tested = {title: tests(table) for title, table in tables.items() if title != _ALL}
    columns = {title: tested.get(title, {}) for title in (*VARIANTS, _SAME)}
    rows = pair_rows(paper_tests(number, task), columns)
    return Table(
        name,
        f"Table {number}: Wilcoxon's signed-rank test over the data sets",
        pair_columns((*VARIANTS, _SAME)),
        rows,
        f"{PAIRS_CAPTION} {counted(rows)}",
    )


def _costs_table(task: str, figure: int, outcomes: Outcomes) -> Table:
    """Average ranks with the constants of the cost model halved and doubled."""
    methods = outcomes.scope.methods
    nominal = outcomes.compared(MAIN)
    rows: list[dict[str, Cell]] = []
    for budget in VARIATIONS if outcomes.complete() else ():
        table = outcomes.compared(MAIN, budget)
        ranks = statistics.average_ranks(table)
        p = statistics.friedman(table)
        row: dict[str, Cell] = {
            "budget": "as measured" if budget == NOMINAL else budget,
            "first": min(ranks, key=lambda m: ranks[m]),
            "p": None if p is None else f"{p:.2g}",
            **ranks,
        }
        row["change"] = max(
            abs(a - b) for m in methods for a, b in zip(table[m], nominal[m], strict=True)
        )
        rows.append(row)
    columns = [
        Column("budget", "constants"),
        Column("first", "method with the best average rank"),
        Column("p", "p of Friedman's test"),
        Column("change", "largest change of a score"),
        *(Column(m, m, 2) for m in methods),
    ]
    return Table(
        f"figure-{figure}-costs",
        "Average ranks with constants of the cost model halved or doubled",
        columns,
        rows,
        "Shows how much depends on the cost model. Each row halves or doubles one group of its "
        "constants, which changes the number of rounds that the budget allows. Columns with the "
        f"name of a method have its average rank ({MAIN}). experiments/README.md explains the "
        f"groups. Data sets with more than {VARIED_ROWS:,} rows keep the rounds of the constants "
        "as measured.",
    )


def _stand_ins_table(outcomes: Outcomes) -> Table:
    methods: Sequence[str] = outcomes.scope.methods
    rows = [
        {"dataset": f"{d} (stand-in)", **{m: outcomes.score(d, m) for m in methods}}
        for d in outcomes.scope.datasets
    ]
    return Table(
        "stand-ins",
        "Stand-ins: data sets similar to missing ones",
        [Column("dataset", "data set"), *(Column(m, m) for m in methods)],
        rows,
        "These data sets are not the paper's and count in no rank and no test. They are similar to "
        "reuters and protein-interaction. Searches try 14 settings. "
        f"{MAIN.capitalize()}.",
    )
