"""Write a report as a web page, as Markdown and as CSV files.

==============  ===============================================================================
file            content
==============  ===============================================================================
index.html      everything, in one file that loads nothing else
README.md       the first page of the site: what is covered, claims, what goes beyond the paper
*.md            a page of the site for each other section; figures are in ``figures``
tables/*.csv    every table, not rounded
figures/*.svg   every figure; the numbers behind it are in a CSV file of the same name
==============  ===============================================================================
"""

from __future__ import annotations

import base64
import itertools
import re
from collections import Counter
from os import PathLike
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from experiments.report.cells import legend, numeric, shown_rows
from experiments.report.content import Lines, Report, Section, Table, Verdict
from experiments.report.figures import draw
from experiments.report.sheets import sheet

#: Marks and styles of verdicts.
MARKS = {
    Verdict.REPRODUCED: ("✓", "holds"),
    Verdict.PARTLY: ("◐", "partly"),
    Verdict.NOT: ("✗", "fails"),
    Verdict.BY_CONSTRUCTION: ("–", "undecided"),
    Verdict.NOT_RUN: ("○", "undecided"),
}


def summary(report: Report) -> str:
    """Count the claims in one sentence."""
    verdicts = [finding.verdict for finding in report.findings]
    counts = {kind: verdicts.count(kind) for kind in Verdict}
    parts = [f"{n} {kind.value}" for kind, n in counts.items() if n]
    n_open = sum(not finding.is_whole for finding in report.findings)
    so_far = f"; {n_open} of these “so far”, because runs are missing" if n_open else ""
    return f"Claims of the paper: {', '.join(parts) or 'none'}{so_far}."


def escape_markdown(text: str) -> str:
    """Return text on one line without characters that Markdown or HTML interpret."""
    return re.sub(r"([\\`*_\[\]<>|~$#&])", r"\\\1", " ".join(text.split()))


def write_report(report: Report, folder: str | PathLike[str]) -> Path:
    """Write a report into a folder; the same report gives the same bytes.

    Tables and figures of an earlier report are removed. Returns the path of ``index.html``.
    """
    folder = Path(folder)
    for old in (*folder.glob("tables/*.csv"), *folder.glob("figures/*")):
        old.unlink()
    pictures: dict[str, str] = {}
    for section in report.sections:
        colours = _colours(section)
        for block in section.blocks:
            place = folder / ("tables" if isinstance(block, Table) else "figures")
            _write(place / f"{block.name}.csv", sheet(block))
            if not isinstance(block, Table):
                svg = draw(block, colours.get(block.name, {}))
                _write(place / f"{block.name}.svg", svg)
                pictures[block.name] = base64.b64encode(svg.encode()).decode()
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=select_autoescape(["html.jinja"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {"md": escape_markdown, "shown": shown_rows, "numeric": numeric}
    templates.tests["table"] = lambda block: isinstance(block, Table)
    values = {
        "report": report,
        "summary": summary(report),
        "marks": MARKS,
        "legend": legend,
        "md": escape_markdown,
        "pictures": pictures,
    }
    page = templates.get_template("page.md.jinja")
    for section in report.sections:
        if not _is_in_front(section):
            _write(
                folder / f"{section.name}.md", page.render(values, section=section, heading="##")
            )
    front = [section for section in report.sections if _is_in_front(section)]
    text = templates.get_template("front.md.jinja").render(values, front=front, heading="###")
    _write(folder / "README.md", text)
    return _write(folder / "index.html", templates.get_template("page.html.jinja").render(values))


def _is_in_front(section: Section) -> bool:
    """Whether a section stands on the first page: the claims, and what is not the paper's."""
    return bool(section.findings) or section.name == "beyond"


def _colours(section: Section) -> dict[str, dict[str, int]]:
    """Number the lines of each figure: a line has the same number in all figures of a section."""
    figures = [block for block in section.blocks if isinstance(block, Lines)]
    counts = Counter(series.label for figure in figures for series in figure.series)
    shared = {label: k for k, label in enumerate(label for label in counts if counts[label] > 1)}
    numbers = {}
    for figure in figures:
        labels = [series.label for series in figure.series]
        taken = {shared[label] for label in labels if label in shared}
        free = (k for k in itertools.count() if k not in taken)
        numbers[figure.name] = {m: shared[m] if m in shared else next(free) for m in labels}
    return numbers


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path
