"""Write a report as a web page, as Markdown and as CSV files.

==============  ===============================================================================
file            content
==============  ===============================================================================
index.html      everything, in one file that loads nothing else
README.md       the same as a page of the site; its figures are in ``figures``
tables/*.csv    every table, not rounded
figures/*.svg   every figure; the numbers behind it are in a CSV file of the same name
==============  ===============================================================================
"""

from __future__ import annotations

import base64
import re
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
    Verdict.NOT_RUN: ("○", "undecided"),
}


def summary(report: Report) -> str:
    """Count the claims in one sentence."""
    verdicts = [finding.verdict for finding in report.findings]
    counts = {kind: verdicts.count(kind) for kind in Verdict}
    parts = [f"{n} {kind.value}" for kind, n in counts.items() if n]
    return f"Claims of the paper: {', '.join(parts) or 'none'}."


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
                svg = draw(block, colours)
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
    _write(folder / "README.md", templates.get_template("page.md.jinja").render(values))
    return _write(folder / "index.html", templates.get_template("page.html.jinja").render(values))


def _colours(section: Section) -> dict[str, int]:
    """Number the lines of a section: a method has the same colour in all its figures."""
    figures = [block for block in section.blocks if isinstance(block, Lines)]
    labels = dict.fromkeys(series.label for figure in figures for series in figure.series)
    return {label: number for number, label in enumerate(labels)}


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path
