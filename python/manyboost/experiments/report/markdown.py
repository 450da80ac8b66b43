"""The report as Markdown, for places that show no HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from manyboost.experiments.report import cells
from manyboost.experiments.report.outline import Chapter, tally, verdict
from manyboost.experiments.results import Finding, Report, Table


def document(report: Report, outline: Sequence[Chapter]) -> str:
    """The whole text; figures lie in ``figures``, tables as CSV in ``tables``."""
    paragraphs = [f"# {escape(report.title)}", *_summary(report)]
    for chapter in outline:
        paragraphs += _chapter(chapter)
    paragraphs += ["## Versions", *_pairs(report.versions)]
    return "\n\n".join(paragraphs) + "\n"


def escape(text: str) -> str:
    """Text on one line in which no character means anything to Markdown or HTML."""
    text = " ".join(text.split())
    text = re.sub(r"([\\`*\[\]<>|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))", r"\\\1", text)
    text = text.replace("&", "&amp;").replace("\\<", "&lt;").replace("\\>", "&gt;")
    text = re.sub(r"^(\d+)(?=[.)](\s|$))", r"\1\\", text)  # no list with numbers
    return re.sub(r"^(?=[-+#=]([-#=\s]|$))", r"\\", text)  # no list, heading or rule


def _summary(report: Report) -> Iterator[str]:
    findings = [finding for section in report.sections for finding in section.findings]
    yield "## Summary"
    counts = [f"{n} {kind.one if n == 1 else kind.several}" for kind, n in tally(findings)]
    if counts:
        yield f"Of {len(findings)} findings: {', '.join(counts)}."
    else:
        yield "No findings were recorded."
    if report.notes:
        yield _list(escape(note) for note in report.notes)


def _chapter(chapter: Chapter) -> Iterator[str]:
    section = chapter.section
    yield f"## {escape(section.title)}"
    yield from map(escape, section.text)
    if section.findings:
        yield _list(map(_finding, section.findings))
    for name, block in chapter.blocks:
        yield f"### {escape(block.title)}"
        if isinstance(block, Table):
            yield _table(block)
            about = filter(None, [block.caption, cells.legend(block)])
            yield f"{escape(' '.join(about))} [CSV](tables/{name}.csv)".strip()
        else:
            yield f"![{escape(block.title)}](figures/{name}.svg)"
            yield f"{escape(block.caption)} [CSV](figures/{name}.csv)".strip()
    if section.specification:
        yield "### Specification"
        yield from _pairs(section.specification)


def _finding(finding: Finding) -> str:
    kind = verdict(finding)
    return f"{kind.mark} **{kind.one}**: {escape(finding.claim)} – {escape(finding.measured)}"


def _table(table: Table) -> str:
    columns = cells.headings(table)
    if not table.rows or not columns:
        return "Nothing to show."
    titles, rules = [], []
    for heading in columns:
        titles += [f"{escape(heading.title)} {part}".strip() for part in heading.parts]
        rules += ["---:" if heading.numeric else "---"] * len(heading.parts)
    rows = [list(map(_cell, cells.row(table, columns, row))) for row in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [titles, rules, *rows])


def _cell(shown: cells.Shown) -> str:
    text = escape(shown.text)
    if shown.best:
        text = f"**{text}**"
    below = f"{shown.paper} {shown.difference}".strip()
    return f"{text}<br>{escape(below)}" if below else text


def _pairs(pairs: Mapping[str, str]) -> Iterator[str]:
    if pairs:
        yield _list(f"**{escape(name)}**: {escape(value)}" for name, value in pairs.items())


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
