"""The report as one web page that needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from manyboost.experiments.report import cells, figures
from manyboost.experiments.report.markup import asset, escape
from manyboost.experiments.report.outline import Chapter, tally, verdict
from manyboost.experiments.results import Block, CriticalDifference, Finding, Lines, Report, Table

#: Nothing may be loaded: the page says so to the browser.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"

#: A table of more rows scrolls in a box of its own.
LONG = 24
#: Up to so many letters a text is kept on one line.
SHORT = 32
COLOURED = "A difference is coloured where it exceeds both standard deviations together."


def document(report: Report, outline: Sequence[Chapter]) -> str:
    """The whole page."""
    title = escape(report.title)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<link rel="icon" href="data:,">',
            f"<title>{title}</title>",
            f"<style>\n{asset('page.css')}\n{asset('figure.css')}\n</style>",
            "</head>",
            "<body>",
            f"<header><h1>{title}</h1></header>",
            "<main>",
            *_summary(report, outline),
            *_contents(outline),
            *(line for chapter in outline for line in _chapter(chapter)),
            *_versions(report.versions),
            "</main>",
            f"<script>\n{asset('page.js')}\n</script>",
            "</body>",
            "</html>\n",
        ]
    )


# ------------------------------------------------------------------ the parts of the page


def _summary(report: Report, outline: Sequence[Chapter]) -> Iterator[str]:
    findings = [finding for chapter in outline for finding in chapter.section.findings]
    yield '<section id="summary"><h2>Summary</h2>'
    if findings:
        yield '<ul class="counts">'
        for kind, n in tally(findings):
            words = kind.one if n == 1 else kind.several
            yield f'<li class="{kind.style}"><b>{n}</b> {words}</li>'
        yield "</ul>"
    else:
        yield "<p>No findings were recorded.</p>"
    for chapter in outline:
        if chapter.section.findings:
            yield f"<h3>{_link(chapter)}</h3>"
            yield from _findings(chapter.section.findings)
    if report.notes:
        yield "<h3>Notes</h3><ul>"
        yield from (f"<li>{escape(note)}</li>" for note in report.notes)
        yield "</ul>"
    yield "</section>"


def _contents(outline: Sequence[Chapter]) -> Iterator[str]:
    yield '<nav id="contents" aria-labelledby="contents-title">'
    yield '<h2 id="contents-title">Contents</h2><ol>'
    for chapter in outline:
        counts = "".join(
            f' <span class="{kind.style}" title="{n} {kind.one}">{n}&nbsp;{kind.mark}</span>'
            for kind, n in tally(chapter.section.findings)
        )
        yield f"<li>{_link(chapter)}{counts}</li>"
    yield '<li><a href="#versions">Versions</a></li></ol></nav>'


def _chapter(chapter: Chapter) -> Iterator[str]:
    section = chapter.section
    yield f'<section id="{chapter.anchor}"><h2>{escape(section.title)}</h2>'
    yield from (f"<p>{escape(paragraph)}</p>" for paragraph in section.text)
    yield from _findings(section.findings)
    for lines, group in groupby(chapter.blocks, key=lambda named: isinstance(named[1], Lines)):
        yield '<div class="gallery">' if lines else "<div>"
        for name, block in group:
            yield from _block(name, block, chapter.colours)
        yield "</div>"
    if section.specification:
        yield "<h3>Specification</h3>"
        yield from _pairs(section.specification)
    yield "</section>"


def _versions(versions: Mapping[str, str]) -> Iterator[str]:
    yield '<section id="versions"><h2>Versions</h2>'
    yield from _pairs(versions)
    yield "</section>"


def _findings(findings: Sequence[Finding]) -> Iterator[str]:
    if not findings:
        return
    yield '<ul class="findings">'
    for finding in findings:
        kind = verdict(finding)
        yield (
            f'<li class="{kind.style}"><span class="verdict">{kind.mark} {kind.one}</span>'
            f"<div><p>{escape(finding.claim)}</p>"
            f'<p class="measured">{escape(finding.measured)}</p></div></li>'
        )
    yield "</ul>"


def _pairs(pairs: Mapping[str, str]) -> Iterator[str]:
    yield '<dl class="pairs">'
    for name, value in pairs.items():
        yield f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
    yield "</dl>"


def _link(chapter: Chapter) -> str:
    return f'<a href="#{chapter.anchor}">{escape(chapter.section.title)}</a>'


# ------------------------------------------------------------------ blocks


def _block(name: str, block: Block, colours: Mapping[str, int]) -> Iterator[str]:
    kind = {Table: "table", Lines: "lines", CriticalDifference: "ranks"}[type(block)]
    place = "tables" if isinstance(block, Table) else "figures"
    anchor = f"{kind}.{name}"  # no section has a point in its anchor
    yield f'<figure class="{kind}" id="{anchor}">'
    yield (
        f'<figcaption><h3 id="{anchor}.caption">{escape(block.title)}</h3>'
        f' <a class="csv" href="{place}/{name}.csv"'
        f' aria-label="{escape(block.title)} as CSV">CSV</a>'
    )
    about = [block.caption]
    if isinstance(block, Table):
        about += [cells.legend(block), COLOURED if cells.has_colours(block) else ""]
    if any(about):
        yield f"<p>{escape(' '.join(filter(None, about)))}</p>"
    yield "</figcaption>"
    long = " long" * (isinstance(block, Table) and len(block.rows) > LONG)
    yield (
        f'<div class="scroll{long}" role="region" tabindex="0" aria-labelledby="{anchor}.caption">'
    )
    if isinstance(block, Table):
        yield from _table(block)
    else:
        yield figures.draw(block, anchor, colours)
    yield "</div></figure>"


def _table(table: Table) -> Iterator[str]:
    columns = cells.headings(table)
    if not table.rows or not columns:
        yield '<p class="empty">Nothing to show.</p>'
        return
    yield '<table class="data"><thead>'
    yield from _heads(columns)
    yield "</thead><tbody>"
    numeric = [heading.numeric for heading in columns for _ in heading.parts]
    for row in table.rows:
        shown = cells.row(table, columns, row)
        yield "<tr>" + "".join(map(_cell, shown, numeric, range(len(shown)))) + "</tr>"
    yield "</tbody></table>"


def _heads(columns: Sequence[cells.Heading]) -> Iterator[str]:
    """One row of headings, or two where a column of scores is shown as three."""
    grouped = any(len(heading.parts) > 1 for heading in columns)
    first, second, n = "", "", 0
    for heading in columns:
        style = ' class="number"' if heading.numeric else ""
        if len(heading.parts) > 1:
            first += f'<th scope="colgroup" colspan="{len(heading.parts)}">'
            first += f"{escape(heading.title)}</th>"
            for i, part in enumerate(heading.parts):
                second += f'<th scope="col" data-column="{n + i}"{style}>{part}</th>'
        else:
            span = ' rowspan="2"' if grouped else ""
            first += f'<th scope="col" data-column="{n}"{style}{span}>{escape(heading.title)}</th>'
        n += len(heading.parts)
    yield f"<tr>{first}</tr>"
    if grouped:
        yield f"<tr>{second}</tr>"


def _cell(shown: cells.Shown, numeric: bool, column: int) -> str:
    tag, attributes = "td", ""
    if column == 0 and not numeric:
        tag, attributes = "th", ' scope="row"'
    elif numeric:
        attributes = ' class="number"'
    elif len(shown.text) <= SHORT:
        attributes = ' class="word"'
    if shown.value is not None:
        attributes += f' data-value="{escape(shown.value)}"'
    if shown.hint:
        attributes += f' title="{escape(shown.hint)}"'
    text = escape(shown.text)
    if shown.best:
        text = f"<b>{text}</b>"
    apart = {1: ' class="above"', -1: ' class="below"'}.get(shown.apart, "")
    if shown.paper:
        difference = f" <span{apart}>{escape(shown.difference)}</span>" if shown.difference else ""
        text += f"<small>{escape(shown.paper)}{difference}</small>"
    elif apart:
        text = f"<span{apart}>{text}</span>"
    return f"<{tag}{attributes}>{text}</{tag}>"
