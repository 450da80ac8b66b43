"""A report as a web page, as Markdown and as CSV files.

==============  ===================================================================================
file            holds
==============  ===================================================================================
index.html      everything, in one file that needs no network
report.md       the same as text; its figures lie in ``figures``
tables/*.csv    every table, unrounded
figures/*.svg   every figure; the numbers behind it in a CSV file of the same name
==============  ===================================================================================
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from manyboost.experiments.report import figures, markdown, page, sheets
from manyboost.experiments.report.outline import chapters
from manyboost.experiments.results import Report, Table

__all__ = ["write_report"]


def write_report(report: Report, folder: str | PathLike[str]) -> Path:
    """Write a report into a folder; the same report gives the same bytes.

    Files of the same name are replaced, others left alone.

    Parameters
    ----------
    report : Report
        What was found.
    folder : path
        Where to write; made if it is missing.

    Returns
    -------
    path : Path
        The web page, ``index.html`` in `folder`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from manyboost.experiments.results import Report
    >>> with TemporaryDirectory() as folder:
    ...     page = write_report(Report("Nothing yet", sections=[], versions={}), folder)
    ...     page.name
    'index.html'
    """
    folder = Path(folder)
    outline = chapters(report)
    for chapter in outline:
        for name, block in chapter.blocks:
            if isinstance(block, Table):
                _write(folder / "tables" / f"{name}.csv", sheets.table(block))
            else:
                _write(folder / "figures" / f"{name}.csv", sheets.figure(block))
                _write(
                    folder / "figures" / f"{name}.svg",
                    figures.draw(block, name, chapter.colours, alone=True),
                )
    _write(folder / "report.md", markdown.document(report, outline))
    return _write(folder / "index.html", page.document(report, outline))


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path
