"""Tables and figures as CSV: plain numbers, unrounded."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

import numpy as np

from manyboost.experiments.results import Cell, CriticalDifference, Lines, Score, Table

#: What a column of scores is written as: the ending of its key, and the attribute.
SCORE = {
    "": "mean",
    "_std": "std",
    "_rank": "rank",
    "_repeats": "n_repeats",
    "_paper": "paper",
    "_paper_std": "paper_std",
    "_paper_rank": "paper_rank",
    "_difference": "difference",
}


def table(block: Table) -> str:
    """A table; a column ``k`` of scores becomes ``k``, ``k_std``, …, ``k_difference``."""
    header: list[str] = []
    rows: list[list[Cell]] = [[] for _ in block.rows]
    for column in block.columns:
        cells = [row.get(column.key) for row in block.rows]
        if any(isinstance(cell, Score) for cell in cells):
            header += [column.key + ending for ending in SCORE]
            for row, cell in zip(rows, cells, strict=True):
                row += _score(cell)
        else:
            header.append(column.key)
            for row, cell in zip(rows, cells, strict=True):
                row.append(cell)
    return _csv(header, rows)


def figure(block: Lines | CriticalDifference) -> str:
    """The numbers behind a figure."""
    if isinstance(block, CriticalDifference):
        return _csv(["method", "average_rank"], block.ranks.items())
    points: list[Sequence[Cell]] = []
    for series in block.series:
        blank = [None] * len(series.x)
        low = blank if series.low is None else series.low
        high = blank if series.high is None else series.high
        points += [
            (series.label, *point) for point in zip(series.x, series.y, low, high, strict=True)
        ]
    return _csv(["series", "x", "y", "low", "high"], points)


def _score(cell: Cell) -> list[Cell]:
    if isinstance(cell, Score):
        return [getattr(cell, attribute) for attribute in SCORE.values()]
    return [cell, *[None] * (len(SCORE) - 1)]


def _csv(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_written(cell) for cell in row] for row in rows)
    return file.getvalue()


def _written(cell: Cell) -> str:
    if isinstance(cell, np.generic):
        cell = cell.item()
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return str(cell)
