"""The systematic comparison on real data sets, multi-label and multi-output regression."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from experiments import statistics
from experiments.items.base import listed
from experiments.items.comparison import Comparison, Outcomes, p_value_table
from experiments.methods import PROJECTIONS
from experiments.options import Scope
from experiments.problems import MULTILABEL_SETS, REGRESSION_SETS
from experiments.report.content import Block, Column, CriticalDifference, Finding, Table

_BEST = "gbrt-relabel-rpo-gaussian"
_KINDS = ("relabel-rpo", "rpo")
_SHARED = (
    "gbmort",
    *(f"gbrt-{kind}-{x}" for kind in _KINDS for x in ("gaussian", "subsampled")),
    "mo-rf",
)
# Methods that are not in the paper's tables.
_ALL = (f"gbrt-{kind}-{x}" for kind in _KINDS for x in PROJECTIONS)
_OTHERS = tuple(method for method in _ALL if method not in _SHARED)
_QUICK = {"n_splits": 2, "search": "random:4", "max_seconds": 10.0}
_TEXT = (
    "Every method is tuned, and every fit has the same time, in the paper {} T: T is the time of "
    "one round of multioutput boosting with stumps. Random forests have the paper's settings and "
    "no budget except the cap."
)


def _blocks(item: str, outcomes: Outcomes) -> list[Block]:
    """Scores, average ranks and pairwise tests."""
    methods, digits = outcomes.scope.methods, outcomes.digits
    scores = Table(
        item,
        f"{outcomes.metric} on test rows",
        [Column("dataset", "data set"), *(Column(m, m, digits) for m in methods)],
        [
            {"dataset": d, **{m: outcomes.score(d, m) for m in methods}}
            for d in outcomes.scope.datasets
        ],
    )
    compared = outcomes.compared()
    n_sets = min(map(len, compared.values()), default=0)
    if len(methods) < 2 or n_sets < 2:
        return [scores]
    average = statistics.average_ranks(compared, digits=digits)
    distance = statistics.critical_distance(len(methods), n_sets)
    p = statistics.friedman(compared)
    test = "" if p is None else f" Friedman's test: p = {p:.2g}."
    ranks = CriticalDifference(
        f"{item}-ranks",
        f"Average ranks over {n_sets} data sets",
        average,
        distance,
        f"Critical distance {distance:.2f} (Nemenyi, α = {statistics.ALPHA}).{test}",
    )
    nemenyi = statistics.nemenyi(compared)

    def tests(name: str, title: str, p_value: Callable[[str, str], float | None]) -> Table:
        caption = "P-values; the better method has the better average rank."
        is_better = lambda a, b: average[a] < average[b]  # noqa: E731
        title = f"{title} over the data sets"
        return p_value_table(f"{item}-{name}", title, methods, p_value, is_better, caption)

    return [
        scores,
        ranks,
        tests(
            "wilcoxon",
            "Wilcoxon's signed-rank test",
            lambda a, b: statistics.wilcoxon(compared[a], compared[b]),
        ),
        tests("nemenyi", "Nemenyi's test", lambda a, b: nemenyi[a][b]),
    ]


def _findings(outcomes: Outcomes, *, slack: float, differ: bool) -> list[Finding]:
    """Check the scores and the rank of the method that the paper recommends."""
    return [_reaches_paper(outcomes, slack), _is_first(outcomes), _differ(outcomes, differ)]


def _reaches_paper(outcomes: Outcomes, slack: float) -> Finding:
    claim = f"{_BEST} reaches the paper's {outcomes.metric} − {slack:g}"
    found = {d: outcomes.differences(d).get(_BEST) for d in outcomes.scope.datasets}
    known = {dataset: d for dataset, d in found.items() if d is not None}
    if not known:
        return Finding(claim, "no data set is complete", None)
    short = [f"{dataset} ({d:+.3f})" for dataset, d in known.items() if d < -slack]
    n_reached = len(known) - len(short)
    measured = f"on {n_reached} of {len(known)} data sets; not on: {listed(short)}"
    complete = len(known) == len(outcomes.scope.datasets)
    return Finding(claim, measured, (not short) if complete else None)


def _is_first(outcomes: Outcomes) -> Finding:
    claim = f"{_BEST} has the best average rank, or is within the critical distance of it"
    compared = outcomes.compared()
    n_sets = min(map(len, compared.values()), default=0)
    if _BEST not in compared or len(compared) < 2 or n_sets < 2:
        return Finding(claim, "too few data sets are complete", None)
    average = statistics.average_ranks(compared, digits=outcomes.digits)
    distance = statistics.critical_distance(len(compared), n_sets)
    first = min(average, key=lambda method: average[method])
    measured = (
        f"over {n_sets} data sets: {_BEST} {average[_BEST]:.2f}, first {first} "
        f"{average[first]:.2f}, critical distance {distance:.2f}"
    )
    return Finding(claim, measured, average[_BEST] - average[first] <= distance)


def _differ(outcomes: Outcomes, differ: bool) -> Finding:
    claim = f"Friedman's test {'finds' if differ else 'does not find'} differences between methods"
    p = statistics.friedman(outcomes.compared())
    if p is None:
        return Finding(claim, "too few data sets are complete", None)
    return Finding(claim, f"p = {p:.2g}", (p < statistics.ALPHA) == differ)


MULTILABEL = Comparison(
    name="multilabel",
    summary="eight methods on the multi-label data sets",
    title="Multi-label data sets",
    text=_TEXT.format(100),
    task="multilabel",
    paper_table="appendix",
    blocks=_blocks,
    findings=partial(_findings, slack=0.01, differ=True),
    full=Scope(
        MULTILABEL_SETS, ("br-gbrt", "br-rf", *_SHARED), "T:100", 5, "random:20", max_seconds=600.0
    ),
    quick={"datasets": ("CAL500", "birds", "emotions", "scene"), "budget": "T:50", **_QUICK},
    others=_OTHERS,
)

REGRESSION = Comparison(
    name="regression",
    summary="eight methods on the regression data sets",
    title="Multi-output regression data sets",
    text=_TEXT.format(500)
    + " Outputs are scaled to mean 0 and variance 1 on the rows that the model is fitted on.",
    task="regression",
    paper_table="appendix",
    blocks=_blocks,
    # The slack is three times the last digit of the paper's scores.
    findings=partial(_findings, slack=0.03, differ=False),
    digits=2,
    full=Scope(
        REGRESSION_SETS, ("st-gbrt", "st-rf", *_SHARED), "T:500", 5, "random:40", max_seconds=600.0
    ),
    quick={"datasets": ("atp1d", "edm", "water-quality"), "budget": "T:200", **_QUICK},
    others=_OTHERS,
)
