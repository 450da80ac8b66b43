"""The report: its content from the rows of a store, written as HTML, Markdown, CSV and SVG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path

from experiments.items import Curves, Item, Models, Searches
from experiments.options import Scope
from experiments.report import curves
from experiments.report.beyond import beyond_section
from experiments.report.claims import Evidence, claims_section
from experiments.report.content import Report, Section
from experiments.report.coverage import NOT_FOUND, coverage_section, lead
from experiments.report.outcomes import Outcomes, model_scores, read_lines
from experiments.report.real import real_section
from experiments.report.synthetic import friedman_section, noisy_section
from experiments.report.writing import write_report
from experiments.store import Store

TITLE = "Gradient boosting with random output projections, reproduced"


def write(chosen: Mapping[Item, Scope], store: Store, folder: str | PathLike[str]) -> Path:
    """Report on items from what the store holds; return the path of the HTML page."""
    return write_report(make_report(chosen, store), folder)


def make_report(chosen: Mapping[Item, Scope], store: Store) -> Report:
    """Return the report on items, in the order of the paper."""
    searches, drawn, n_lines = {}, {}, {}
    chosen = {item: _known(item, scope, store) for item, scope in chosen.items()}
    for item, scope in chosen.items():
        if isinstance(item, Searches):
            searches[item.name] = Outcomes.of(item, scope, store)
        elif isinstance(item, Curves):
            drawn[item.name] = {d: read_lines(item, scope, store, d) for d in scope.datasets}
            n_lines[item.name] = sum(len(item.lines(scope, d)) for d in scope.datasets)
    real: dict[str, Outcomes] = {
        task: searches[task] for task in ("multilabel", "regression") if task in searches
    }
    sections = [coverage_section(real)]
    sections += _of_paper(searches, drawn, n_lines)
    sections.append(claims_section(Evidence(searches, drawn)))
    for item, scope in chosen.items():
        if isinstance(item, Models):
            sections.append(beyond_section(scope, model_scores(item, scope, store), real))
    versions = {
        name: ", ".join(f"{k} {v}" for k, v in of.items()) for name, of in store.builds.items()
    }
    return Report(TITLE, lead(searches), sections, versions)


def _known(item: Item, scope: Scope, store: Store) -> Scope:
    """Return the scope of the files that are known to exist: the same on every machine."""
    stored, wanted = store.datasets(), {*scope.datasets, *scope.absent}
    names = [d for d in item.full.datasets if d in wanted]
    return replace(
        scope, datasets=[d for d in names if d in stored or d not in NOT_FOUND], absent=()
    )


def _of_paper(
    searches: Mapping[str, Outcomes], drawn: Mapping[str, curves.Drawn], n_lines: Mapping[str, int]
) -> list[Section]:
    sections = []
    if "convergence" in drawn:
        lines = drawn["convergence"]
        sections.append(curves.convergence_section(lines, n_lines["convergence"]))
    if "friedman" in searches:
        sections.append(friedman_section(searches))
    if "friedman-noisy" in searches:
        sections.append(noisy_section(searches["friedman-noisy"]))
    if "projections" in drawn:
        lines = drawn["projections"]
        sections.append(curves.projections_section(lines, n_lines["projections"]))
    if "components" in drawn:
        of_delicious = drawn["components"].get("delicious", {})
        sections.append(curves.components_section(of_delicious, n_lines["components"]))
    if "multilabel" in searches:
        stand_ins = searches.get("stand-ins")
        sections.append(real_section("multilabel", searches["multilabel"], stand_ins))
    if "regression" in searches:
        sections.append(real_section("regression", searches["regression"]))
    return sections
