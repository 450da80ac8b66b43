"""Items that follow fits with given settings as they grow, without tuning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments import problems
from experiments.items.base import Item, splits
from experiments.methods import STUMPS
from experiments.options import Scope
from experiments.problems import task_of
from experiments.protocol import Curve


@dataclass(frozen=True, kw_only=True, eq=False)
class Curves(Item):
    """Test scores of fits as they grow: stumps on all features, learning rate 0.1."""

    #: Numbers of components, one line for each; empty: the default of the method.
    components: Sequence[int] = ()
    steps: Sequence[str] = ("line_search",)
    #: The budget of fits with Newton steps, if it is another.
    newton_budget: str | None = None

    def lines(self, scope: Scope, dataset: str) -> dict[str, list[Curve]]:
        """Return the runs of each line of the figure of a data set, one for each split."""
        loss = "log_loss" if task_of(dataset) == "multilabel" else "squared_error"
        lines: dict[str, list[Curve]] = {}
        for step in self.steps:
            for method in scope.methods:
                varied = self.components if method != "gbmort" else ()
                for q in varied or (None,):
                    settings, label, budget = {**STUMPS, "loss": loss}, method, scope.budget
                    if q is not None:
                        settings["n_components"] = q
                        label += f", q = {q}"
                    if step == "newton":
                        settings["step"] = step
                        label += ", newton"
                        if self.newton_budget and budget == self.full.budget:
                            budget = self.newton_budget
                    lines[label] = [
                        Curve(dataset, scope.seed, split, method, settings, budget)
                        for split in splits(scope, dataset)
                    ]
        return lines

    def runs(self, scope: Scope) -> list[Curve]:
        by_line = [self.lines(scope, dataset).values() for dataset in scope.datasets]
        return [run for lines in by_line for runs in lines for run in runs]


CONVERGENCE = Curves(
    name="convergence",
    of_paper="Figure 1",
    summary="score against cost on the synthetic data sets",
    full=Scope(
        tuple(problems.FRIEDMAN), ("st-gbrt", "gbmort", "gbrt-rpo-subsampled"), "rounds:10000"
    ),
    quick={"budget": "rounds:1000", "n_splits": 2},
)
PROJECTIONS = Curves(
    name="projections",
    of_paper="Figures 2, 3 and 4",
    summary="kinds of random projections",
    full=Scope(
        ("friedman1-ind", "mediamill", "delicious"),
        tuple(f"gbrt-rpo-{x}" for x in ("gaussian", "achlioptas", "sparse", "subsampled")),
        "rounds:2000",
    ),
    quick={"datasets": ("friedman1-ind",), "budget": "rounds:500", "n_splits": 2},
)
COMPONENTS = Curves(
    name="components",
    of_paper="Figures 5 and 6",
    summary="number of projections, with line searches and with Newton steps",
    full=Scope(
        ("delicious",),
        ("gbmort", "gbrt-relabel-rpo-gaussian", "gbrt-relabel-rpo-subsampled"),
        "T:130",  # more than 100 rounds of gbmort with log loss, and others in the same time
    ),
    quick={"budget": "T:1", "n_splits": 1},
    # Those of the paper's figures, and some in between.
    components=(1, 5, 10, 20, 50, 98, 196, 491),
    steps=("line_search", "newton"),
    newton_budget="rounds:100",
)
