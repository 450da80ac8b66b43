"""Items that follow fits with given settings as they grow: no tuning."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, ClassVar

import numpy as np

from manyboost.experiments import statistics
from manyboost.experiments.items.base import Item
from manyboost.experiments.methods import STUMPS, Settings
from manyboost.experiments.options import Options, Scope
from manyboost.experiments.paper import MULTILABEL_SETS
from manyboost.experiments.problems import FRIEDMAN
from manyboost.experiments.protocol import Curve, Result, Specification
from manyboost.experiments.results import (
    Block,
    Column,
    Finding,
    Lines,
    Score,
    Section,
    Series,
    Table,
)
from manyboost.experiments.store import Store

_METRIC = {"multilabel": "lrap", "regression": "macro-r2"}


def task_of(dataset: str) -> str:
    """Return the task of a set of the paper."""
    return "multilabel" if dataset in MULTILABEL_SETS else "regression"


def paper_settings(dataset: str, **more: Any) -> Settings:
    """Stumps and the loss of the paper's figures: squared error, or log loss for labels."""
    loss = "log_loss" if task_of(dataset) == "multilabel" else "squared_error"
    return {**STUMPS, "loss": loss, **more}


@dataclass(frozen=True)
class Grown:
    """The fits of one line of a figure, one for each split that is there."""

    label: str
    results: Sequence[Result]

    @property
    def rounds(self) -> list[int]:
        """Rounds at which all of them were scored."""
        common = set.intersection(*(set(r.points.rounds) for r in self.results if r.points))
        return sorted(common)

    def mean(self, of: str) -> list[float]:
        """Average the ``scores`` or ``seconds`` of the splits, by round."""
        return list(map(float, self._by_split(of).mean(axis=0)))

    def _by_split(self, of: str) -> Any:
        rows = []
        for result in self.results:
            assert result.points is not None
            at = dict(zip(result.points.rounds, getattr(result.points, of), strict=True))
            rows.append([at[m] for m in self.rounds])
        return np.array(rows)

    def best(self) -> float:
        """Return the best mean score on the way."""
        return max(self.mean("scores"))

    def seconds_to(self, score: float) -> float | None:
        """Return the time after which the mean score has reached a value; None if it never has."""
        scores = self.mean("scores")
        before = sum(1 for _ in takewhile(lambda s: s < score, scores))
        return self.mean("seconds")[before] if before < len(scores) else None

    def over_time(self) -> Series:
        """Return scores over seconds, with a band of one standard deviation."""
        by_split = self._by_split("scores")
        mean = by_split.mean(axis=0)
        if len(self.results) < 2:
            return Series(self.label, self.mean("seconds"), list(map(float, mean)))
        std = by_split.std(axis=0, ddof=1)
        low, high = (list(map(float, mean + sign * std)) for sign in (-1, 1))
        return Series(self.label, self.mean("seconds"), list(map(float, mean)), low, high)


class Curves(Item):
    """Test scores of fits as they grow."""

    note: ClassVar[str] = (
        "Seconds are those of fitting in one thread, shared out evenly among the rounds."
    )

    @abstractmethod
    def lines(self, options: Options, dataset: str) -> Mapping[str, tuple[str, Settings]]:
        """Return method and settings of each line of a set's figure."""

    def _runs(self, options: Options, dataset: str, line: str) -> list[Curve]:
        scope = self.scope(options)
        method, settings = self.lines(options, dataset)[line]
        limits = (scope.budget, scope.max_seconds)
        return [
            Curve(dataset, options.seed, split, method, settings, *limits)
            for split in range(scope.n_splits)
        ]

    def plan(self, options: Options) -> list[Specification]:
        """Return one curve for each line and split."""
        return [
            run
            for dataset in self.datasets(options)[0]
            for line in self.lines(options, dataset)
            for run in self._runs(options, dataset, line)
        ]

    def grown(self, store: Store, options: Options, dataset: str) -> dict[str, Grown]:
        """Return the lines of a set that the store has at least one split of."""
        found = {}
        for line in self.lines(options, dataset):
            runs = [store.get(run) for run in self._runs(options, dataset, line)]
            results = [result for result in runs if result is not None]
            if results:
                found[line] = Grown(line, results)
        return found

    def summarise(self, store: Store, options: Options) -> Section:
        """Figures of scores over time, a table of where they end, and the paper's claims."""
        blocks: list[Block] = []
        findings: list[Finding] = []
        for dataset in self.datasets(options)[0]:
            grown = self.grown(store, options, dataset)
            complete = len(grown) == len(self.lines(options, dataset)) and all(
                len(line.results) == self.scope(options).n_splits for line in grown.values()
            )
            if grown:
                blocks += self.blocks(dataset, grown)
            findings += self.findings(dataset, grown if complete else {})
        return Section(
            self.name,
            self.title,
            [*self.text, self.note, *self.state(store, options)],
            blocks,
            findings,
            {
                **self.specification(options),
                "settings": "stumps on all features, learning rate 0.1, line search",
            },
        )

    def blocks(self, dataset: str, grown: Mapping[str, Grown]) -> list[Block]:
        """Return the figure of a set and a table of its lines."""
        metric = _METRIC[task_of(dataset)]
        figure = Lines(
            f"{self.name}-{dataset}",
            f"{dataset}: {metric} while fitting",
            "seconds",
            metric,
            [line.over_time() for line in grown.values()],
            x_log=True,
            caption="Bands are one standard deviation over the splits." * _banded(grown),
        )
        table = Table(
            f"{self.name}-{dataset}-ends",
            f"{dataset}: where the lines end",
            [
                Column("line", "method"),
                Column("rounds", "rounds", 0),
                Column("seconds", "seconds"),
                Column("last", f"last {metric}"),
                Column("best", f"best {metric} on the way"),
            ],
            [
                {
                    "line": name,
                    "rounds": line.rounds[-1],
                    "seconds": line.mean("seconds")[-1],
                    "last": _last(line),
                    "best": line.best(),
                }
                for name, line in grown.items()
            ],
        )
        return [figure, table]

    def findings(self, dataset: str, grown: Mapping[str, Grown]) -> list[Finding]:
        """Return the claims about a set; nothing is grown where runs are missing."""
        return []


def _banded(grown: Mapping[str, Grown]) -> bool:
    return any(len(line.results) > 1 for line in grown.values())


def _last(line: Grown) -> Score:
    last = [result.points.scores[-1] for result in line.results if result.points]
    mean, std = statistics.mean_std(last)
    return Score(mean, std, n_repeats=len(last))


def _undecided(claim: str) -> Finding:
    return Finding(claim, "runs are missing", None)


class Convergence(Curves):
    """Figure 1 of the paper."""

    name = "convergence"
    title = "Convergence with known output structure"
    text = (
        (
            "How fast three strategies learn outputs in a chain, outputs that share one signal, "
            "and outputs that share nothing."
        ),
    )
    full = Scope(
        tuple(FRIEDMAN),
        ("st-gbrt", "gbmort", "gbrt-rpo-subsampled"),
        budget="rounds:10000",
        n_splits=5,
    )
    quick = Scope(full.datasets, full.methods, "rounds:1000", n_splits=2)

    def lines(self, options: Options, dataset: str) -> Mapping[str, tuple[str, Settings]]:
        """One line for each method."""
        return {m: (m, paper_settings(dataset)) for m in self.scope(options).methods}

    def findings(self, dataset: str, grown: Mapping[str, Grown]) -> list[Finding]:
        """Shared trees are faster where outputs are related, worse where they are not."""
        shared = ("gbmort", "gbrt-rpo-subsampled")
        related = dataset != "friedman1-ind"
        if related:
            claims = [
                f"{dataset}: {m} reaches the best score of st-gbrt in less time (the paper: more "
                "than 100 times faster)"
                for m in shared
            ]
        else:
            claims = [f"{dataset}: st-gbrt reaches a better score than {m}" for m in shared]
        if not {"st-gbrt", *shared} <= grown.keys():
            return [_undecided(claim) for claim in claims]
        single = grown["st-gbrt"]
        target = single.best()
        found = []
        for claim, method in zip(claims, shared, strict=True):
            line = grown[method]
            measured = f"best {target:.3f} (st-gbrt), {line.best():.3f} ({method})"
            holds = line.best() < target
            if related:
                there, here = single.seconds_to(target), line.seconds_to(target)
                holds = here is not None and there is not None and here < there
                if here is not None and there is not None:
                    measured += f"; {there / here:.0f} times faster to {target:.3f}"
            found.append(Finding(claim, measured, holds))
        return found


class Projections(Curves):
    """Figures 2 to 4 of the paper."""

    name = "projections"
    title = "The kind of projection"
    text = (
        (
            "One random combination of all outputs, or one output alone: what a tree is grown on, "
            "for boosting on a projection without relabelling."
        ),
    )
    full = Scope(
        ("friedman1-ind", "mediamill", "delicious"),
        tuple(f"gbrt-rpo-{x}" for x in ("gaussian", "achlioptas", "sparse", "subsampled")),
        budget="rounds:2000",
        n_splits=1,
        max_seconds=600.0,
    )
    quick = Scope(("friedman1-ind",), full.methods, "rounds:1000", n_splits=2)
    others = ("gbrt-rpo-rademacher",)

    def lines(self, options: Options, dataset: str) -> Mapping[str, tuple[str, Settings]]:
        """One line for each projection."""
        return {m: (m, paper_settings(dataset)) for m in self.scope(options).methods}

    def findings(self, dataset: str, grown: Mapping[str, Grown]) -> list[Finding]:
        """Dense projections pay where outputs are correlated."""
        dense, single = "gbrt-rpo-gaussian", "gbrt-rpo-subsampled"
        claim = {
            "friedman1-ind": f"{dataset}: {single} reaches the highest score",
            "mediamill": f"{dataset}: {dense} is faster than {single}",
            # The paper's text and the caption of its figure say opposite things.
            "delicious": f"{dataset}: {dense} or {single} is faster (the paper says both)",
        }[dataset]
        if not {dense, single} <= grown.keys():
            return [_undecided(claim)]
        if dataset == "friedman1-ind":
            best = max(grown, key=lambda name: grown[name].best())
            measured = ", ".join(f"{name} {line.best():.3f}" for name, line in grown.items())
            return [Finding(claim, measured, best == single)]
        target = min(grown[dense].best(), grown[single].best())
        seconds = [grown[name].seconds_to(target) for name in (dense, single)]
        first, second = (float("inf") if s is None else s for s in seconds)
        measured = f"{dense} {first:.3g} s, {single} {second:.3g} s to lrap {target:.3f}"
        return [Finding(claim, measured, first < second if dataset == "mediamill" else None)]


class Components(Curves):
    """Figures 5 and 6 of the paper."""

    name = "components"
    title = "The number of components"
    text = (
        (
            "Relabelled trees grown on q random projections of the outputs: more components come "
            "closer to multi-output trees, and cost more."
        ),
    )
    full = Scope(
        ("delicious",),
        ("gbmort", "gbrt-relabel-rpo-gaussian", "gbrt-relabel-rpo-subsampled"),
        budget="rounds:100",
        n_splits=1,
    )
    quick = Scope(full.datasets, full.methods[:2], "rounds:10", n_splits=1)
    #: Those of the paper's figures, and some between.
    components: ClassVar[Sequence[int]] = (1, 5, 10, 20, 50, 98, 196, 491)
    _quick_components: ClassVar[Sequence[int]] = (1, 20)
    #: A score as good as that of multi-output trees, at this fraction of their time.
    score_slack = 0.005
    time_share = 1 / 7

    def lines(self, options: Options, dataset: str) -> Mapping[str, tuple[str, Settings]]:
        """One line for multi-output trees, one for each number of components."""
        components = self._quick_components if options.quick else self.components
        lines: dict[str, tuple[str, Settings]] = {}
        for method in self.scope(options).methods:
            if method == "gbmort":
                lines[method] = (method, paper_settings(dataset))
                continue
            for q in components:
                lines[f"{method}, q = {q}"] = (method, paper_settings(dataset, n_components=q))
        return lines

    def blocks(self, dataset: str, grown: Mapping[str, Grown]) -> list[Block]:
        """Add scores and times over the number of components."""
        figures: list[Block] = []
        quantities = (("lrap", "LRAP", "scores"), ("seconds", "seconds", "seconds"))
        for name, label, of in quantities:
            series = []
            methods = dict.fromkeys(line.partition(",")[0] for line in grown)
            counts = [int(line.partition("q = ")[2]) for line in grown if "q = " in line]
            for method in methods:
                if method == "gbmort" and counts:
                    # A level to compare with: it has no components.
                    last = grown[method].mean(of)[-1]
                    series.append(Series(method, [min(counts), max(counts)], [last, last]))
                    continue
                points = [
                    (int(line.partition("q = ")[2]), grown[line].mean(of)[-1])
                    for line in grown
                    if line.startswith(f"{method}, ")
                ]
                if points:
                    series.append(Series(method, *map(list, zip(*points, strict=True))))
            figures.append(
                Lines(
                    f"{self.name}-{dataset}-{name}",
                    f"{dataset}: {label} after the last round",
                    "components q",
                    label,
                    series,
                    x_log=True,
                )
            )
        return [*figures, *super().blocks(dataset, grown)]

    def findings(self, dataset: str, grown: Mapping[str, Grown]) -> list[Finding]:
        """Twenty components are as good as all outputs, in a seventh of the time."""
        line = "gbrt-relabel-rpo-gaussian, q = 20"
        claims = (
            f"{dataset}: {line} reaches the LRAP of gbmort − {self.score_slack:g}",
            f"{dataset}: {line} takes a seventh of the time of gbmort or less",
        )
        if not {"gbmort", line} <= grown.keys():
            return [_undecided(claim) for claim in claims]
        few, all_ = grown[line], grown["gbmort"]
        scores = few.mean("scores")[-1], all_.mean("scores")[-1]
        seconds = few.mean("seconds")[-1], all_.mean("seconds")[-1]
        return [
            Finding(
                claims[0],
                f"{scores[0]:.3f}, gbmort {scores[1]:.3f}",
                scores[0] >= scores[1] - self.score_slack,
            ),
            Finding(
                claims[1],
                f"{seconds[0]:.1f} s, gbmort {seconds[1]:.1f} s: {seconds[1] / seconds[0]:.1f} "
                "times faster",
                seconds[0] <= self.time_share * seconds[1],
            ),
        ]
