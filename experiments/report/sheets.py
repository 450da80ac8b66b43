"""Tables and figures as CSV: plain numbers, not rounded."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from experiments.report.content import Block, Cell, CriticalDifference, Lines, Score

#: A column of scores is written as several columns, one for each attribute.
_SCORE = (
    *("mean", "std", "rank", "n_repeats", "paper", "paper_std", "paper_rank"),
    *("difference", "deviates"),
)
_ENDINGS = {"mean": "", "n_repeats": "_repeats"}


def sheet(block: Block) -> str:
    """Return a table, or the numbers behind a figure."""
    if isinstance(block, CriticalDifference):
        return _csv(["method", "average_rank"], block.ranks.items())
    if isinstance(block, Lines):
        points: list[Sequence[Cell]] = []
        for series in block.series:
            none = [None] * len(series.x)
            low, high = (none if edge is None else edge for edge in (series.low, series.high))
            columns = zip(series.x, series.y, low, high, strict=True)
            points += [(series.label, *point) for point in columns]
        return _csv(["series", "x", "y", "low", "high"], points)
    header: list[str] = []
    rows: list[list[Cell]] = [[] for _ in block.rows]
    for column in block.columns:
        cells = [row.get(column.key) for row in block.rows]
        has_scores = any(isinstance(cell, Score) for cell in cells)
        attributes = _SCORE if has_scores else ("mean",)
        header += [column.key + _ENDINGS.get(name, f"_{name}") for name in attributes]
        for row, cell in zip(rows, cells, strict=True):
            if isinstance(cell, Score):
                row += [getattr(cell, name) for name in attributes]
            else:
                row += [cell, *[None] * (len(attributes) - 1)]
    return _csv(header, rows)


def _csv(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return file.getvalue()
