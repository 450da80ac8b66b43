"""Items that follow fits with given settings as they grow, without tuning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import problems, statistics
from experiments.items.base import Item
from experiments.methods import STUMPS
from experiments.options import Scope
from experiments.problems import METRICS, task_of
from experiments.protocol import Curve, Result
from experiments.report.content import Block, Column, Finding, Lines, Score, Section, Series, Table
from experiments.store import Store

F64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Line:
    """One line of a figure: a method, perhaps with a number of components, on some splits.

    ``seconds`` (n_points,) are averaged over the splits; ``scores`` is (n_splits, n_points).
    """

    label: str
    method: str
    components: int | None
    rounds: Sequence[int]
    seconds: F64
    scores: F64

    @classmethod
    def of(cls, label: str, run: Curve, results: Sequence[Result]) -> Line:
        """Collect the points after rounds at which all splits were scored."""
        points = [result.points for result in results if result.points is not None]
        rounds = sorted(set.intersection(*(set(each.rounds) for each in points)))

        def at_rounds(values: str) -> F64:
            by_round = [dict(zip(p.rounds, getattr(p, values), strict=True)) for p in points]
            return np.array([[values_at[m] for m in rounds] for values_at in by_round])

        seconds = at_rounds("seconds").mean(axis=0)
        components = run.settings.get("n_components")
        return cls(label, run.method, components, rounds, seconds, at_rounds("scores"))

    @property
    def mean(self) -> F64:
        """Scores averaged over the splits."""
        return np.asarray(self.scores.mean(axis=0))

    @property
    def best(self) -> float:
        """The best mean score on the way."""
        return float(self.mean.max())

    def seconds_to(self, score: float) -> float:
        """Return the time after which the mean score has reached a value; infinity if never."""
        reached = np.flatnonzero(self.mean >= score)
        return float(self.seconds[reached[0]]) if len(reached) else np.inf

    def series(self) -> Series:
        """Return scores over seconds, with a band of one standard deviation."""
        seconds, mean = self.seconds.tolist(), self.mean
        if len(self.scores) < 2:
            return Series(self.label, seconds, mean.tolist())
        std = self.scores.std(axis=0, ddof=1)
        low, high = (mean - std).tolist(), (mean + std).tolist()
        return Series(self.label, seconds, mean.tolist(), low, high)


@dataclass(frozen=True)
class Claim:
    """A claim about some lines; ``check`` gets them and returns what was measured and a verdict."""

    text: str
    about: Sequence[str]
    check: Callable[..., tuple[str, bool | None]]


@dataclass(frozen=True, kw_only=True)
class Curves(Item):
    """Test scores of fits as they grow."""

    #: The claims about a data set.
    claims: Callable[[str], Sequence[Claim]]

    def lines(self, scope: Scope, dataset: str) -> dict[str, list[Curve]]:
        """Return the runs of each line of the figure of a data set."""
        loss = "log_loss" if task_of(dataset) == "multilabel" else "squared_error"
        stumps, limits = {**STUMPS, "loss": loss}, (scope.budget, scope.max_seconds)
        lines: dict[str, list[Curve]] = {}
        for method in scope.methods:
            varied = scope.components if method != "gbmort" else ()
            for q in varied or (None,):
                label = method if q is None else f"{method}, q = {q}"
                settings = stumps if q is None else {**stumps, "n_components": q}
                lines[label] = [
                    Curve(dataset, scope.seed, split, method, settings, *limits)
                    for split in range(scope.n_splits)
                ]
        return lines

    def runs(self, scope: Scope) -> list[Curve]:
        by_line = [self.lines(scope, dataset).values() for dataset in scope.datasets]
        return [run for lines in by_line for runs in lines for run in runs]

    def section(self, scope: Scope, store: Store) -> Section:
        blocks: list[Block] = []
        findings: list[Finding] = []
        for dataset in scope.datasets:
            lines, complete = {}, True
            for label, runs in self.lines(scope, dataset).items():
                results = [result for run in runs if (result := store.get(run)) is not None]
                complete &= len(results) == len(runs)
                if results:
                    lines[label] = Line.of(label, runs[0], results)
            if lines:
                if any(line.components for line in lines.values()):
                    blocks += _over_components(self.name, dataset, lines)
                blocks += _over_time(self.name, dataset, lines)
            for claim in self.claims(dataset):
                measured, holds = "runs are missing", None
                if complete and set(claim.about) <= lines.keys():
                    measured, holds = claim.check(*(lines[label] for label in claim.about))
                findings.append(Finding(claim.text, measured, holds))
        note = "Seconds are those of fitting in one thread, divided equally among the rounds."
        settings = {"settings": "stumps on all features, learning rate 0.1, line search"}
        return Section(
            self.name,
            self.title,
            [self.text, note, *self.state(scope, store)],
            blocks,
            findings,
            self.specification(scope) | settings,
        )


def _over_time(item: str, dataset: str, lines: Mapping[str, Line]) -> list[Block]:
    """Return the figure of a data set and a table of its last points."""
    metric = METRICS[task_of(dataset)]
    banded = any(len(line.scores) > 1 for line in lines.values())
    figure = Lines(
        f"{item}-{dataset}",
        f"{dataset}: {metric} while fitting",
        "seconds",
        metric,
        [line.series() for line in lines.values()],
        caption="Bands are one standard deviation over the splits." * banded,
    )
    columns = [
        Column("line", "method"),
        Column("rounds", "rounds", 0),
        Column("seconds", "seconds"),
        Column("last", f"last {metric}"),
        Column("best", f"best {metric} on the way"),
    ]
    rows: list[dict[str, Any]] = []
    for label, line in lines.items():
        last = line.scores[:, -1].tolist()
        row = {"line": label, "rounds": line.rounds[-1], "seconds": float(line.seconds[-1])}
        score = Score(*statistics.mean_std(last), n_repeats=len(last))
        rows.append(row | {"last": score, "best": line.best})
    name, title = f"{item}-{dataset}-ends", f"{dataset}: after the last round"
    return [figure, Table(name, title, columns, rows)]


def _over_components(item: str, dataset: str, lines: Mapping[str, Line]) -> list[Block]:
    """Return last scores and times over the number of components."""
    counts = [line.components for line in lines.values() if line.components is not None]
    figures: list[Block] = []
    for name, label in (("lrap", "LRAP"), ("seconds", "seconds")):
        points: dict[str, list[tuple[int, float]]] = {}
        for line in lines.values():
            last = float((line.mean if name == "lrap" else line.seconds)[-1])
            # A line without components is a level to compare with.
            at = (min(counts), max(counts)) if line.components is None else (line.components,)
            points.setdefault(line.method, []).extend((q, last) for q in at)
        series = [
            Series(method, [q for q, _ in of], [y for _, y in of]) for method, of in points.items()
        ]
        title = f"{dataset}: {label} after the last round"
        figures.append(Lines(f"{item}-{dataset}-{name}", title, "components q", label, series))
    return figures


_SINGLE = "st-gbrt"
_ONE = "gbrt-rpo-subsampled"
_DENSE = "gbrt-rpo-gaussian"
_RELABEL = "gbrt-relabel-rpo-gaussian"


def _convergence_claims(dataset: str) -> list[Claim]:
    """Shared trees are faster if outputs are related, and worse if they are not."""

    def faster(single: Line, shared: Line) -> tuple[str, bool]:
        measured, _ = worse(single, shared)
        there, here = (line.seconds_to(single.best) for line in (single, shared))
        if np.isfinite(here):
            measured += f"; {there / here:.0f} times faster to {single.best:.3f}"
        return measured, here < there

    def worse(single: Line, shared: Line) -> tuple[str, bool]:
        measured = f"best {single.best:.3f} ({_SINGLE}), {shared.best:.3f} ({shared.method})"
        return measured, shared.best < single.best

    claims = []
    for method in ("gbmort", _ONE):
        if dataset == "friedman1-ind":
            text, check = f"{_SINGLE} reaches a better score than {method}", worse
        else:
            text = f"{method} reaches the best score of {_SINGLE} in less time"
            text, check = f"{text} (the paper: more than 100 times faster)", faster
        claims.append(Claim(f"{dataset}: {text}", (_SINGLE, method), check))
    return claims


CONVERGENCE = Curves(
    name="convergence",
    summary="score against time on the synthetic data sets",
    title="Convergence with known output structure",
    text=(
        "How fast three strategies learn outputs in a chain, outputs that share one signal, and "
        "outputs that share nothing."
    ),
    claims=_convergence_claims,
    full=Scope(tuple(problems.FRIEDMAN), (_SINGLE, "gbmort", _ONE), "rounds:10000", n_splits=5),
    quick={"budget": "rounds:1000", "n_splits": 2},
)


def _projection_claims(dataset: str) -> list[Claim]:
    """Dense projections help if outputs are correlated."""

    def highest(*lines: Line) -> tuple[str, bool]:
        best = max(lines, key=lambda line: line.best)
        measured = ", ".join(f"{line.label} {line.best:.3f}" for line in lines)
        return measured, best.method == _ONE

    def faster(dense: Line, one: Line) -> tuple[str, bool | None]:
        target = min(dense.best, one.best)
        first, second = dense.seconds_to(target), one.seconds_to(target)
        measured = f"{_DENSE} {first:.3g} s, {_ONE} {second:.3g} s to lrap {target:.3f}"
        return measured, first < second if dataset == "mediamill" else None

    if dataset == "friedman1-ind":
        return [Claim(f"{dataset}: {_ONE} reaches the highest score", _PROJECTED, highest)]
    claim = f"{_DENSE} is faster than {_ONE}"
    if dataset == "delicious":
        # The paper's text and the caption of its figure contradict each other.
        claim = f"{_DENSE} or {_ONE} is faster (the paper says both)"
    return [Claim(f"{dataset}: {claim}", (_DENSE, _ONE), faster)]


_PROJECTED = (_DENSE, "gbrt-rpo-achlioptas", "gbrt-rpo-sparse", _ONE)
PROJECTIONS = Curves(
    name="projections",
    summary="kinds of random projections",
    title="The kind of projection",
    text=(
        "A tree is grown on one random combination of all outputs, or on one output: boosting on a "
        "projection without relabelling."
    ),
    claims=_projection_claims,
    full=Scope(
        ("friedman1-ind", "mediamill", "delicious"),
        _PROJECTED,
        budget="rounds:2000",
        n_splits=1,
        max_seconds=600.0,
    ),
    quick={
        "datasets": ("friedman1-ind",),
        "budget": "rounds:1000",
        "n_splits": 2,
        "max_seconds": None,
    },
    others=("gbrt-rpo-rademacher",),
)


def _component_claims(dataset: str) -> list[Claim]:
    """Twenty components are as good as all outputs, in a seventh of the time."""
    slack, share = 0.005, 1 / 7
    lines = (f"{_RELABEL}, q = 20", "gbmort")

    def score(few: Line, every: Line) -> tuple[str, bool]:
        a, b = few.mean[-1], every.mean[-1]
        return f"{a:.3f}, gbmort {b:.3f}", bool(a >= b - slack)

    def time(few: Line, every: Line) -> tuple[str, bool]:
        a, b = few.seconds[-1], every.seconds[-1]
        return f"{a:.1f} s, gbmort {b:.1f} s: {b / a:.1f} times faster", bool(a <= share * b)

    return [
        Claim(f"{dataset}: {lines[0]} reaches the LRAP of gbmort − {slack:g}", lines, score),
        Claim(f"{dataset}: {lines[0]} takes at most a seventh of the time of gbmort", lines, time),
    ]


COMPONENTS = Curves(
    name="components",
    summary="number of projections",
    title="The number of components",
    text=(
        "Relabelled trees grown on q random projections of the outputs: more components come "
        "closer to multi-output trees, and cost more."
    ),
    claims=_component_claims,
    full=Scope(
        ("delicious",),
        ("gbmort", _RELABEL, "gbrt-relabel-rpo-subsampled"),
        budget="rounds:100",
        n_splits=1,
        # Those of the paper's figures, and some in between.
        components=(1, 5, 10, 20, 50, 98, 196, 491),
    ),
    quick={"methods": ("gbmort", _RELABEL), "budget": "rounds:10", "components": (1, 20)},
)
