"""Cells as text, and which columns a table shows.

A column of scores becomes three (ours, the paper's, the difference) while the table has room for
them; in a table with many such columns the paper's value and the difference stand beneath ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from manyboost.experiments.results import Cell, Column, Score, Table

MISSING = "–"
#: Up to so many columns of scores are shown as three columns each.
SIDE_BY_SIDE = 3


@dataclass(frozen=True)
class Shown:
    """A cell as it is shown; ``value`` is what it is sorted by, ``None`` comes last."""

    text: str
    value: float | str | None = None
    #: A second line: the paper's value, and the difference.
    paper: str = ""
    difference: str = ""
    #: The best of its data set.
    best: bool = False
    #: The sign of a difference larger than both standard deviations together.
    apart: int = 0
    hint: str = ""


@dataclass(frozen=True)
class Heading:
    """A column of the table; ``parts`` are the titles of the columns it is shown as."""

    title: str
    parts: Sequence[str]
    show: Callable[[Cell, int], list[Shown]]
    column: Column
    numeric: bool


def headings(table: Table) -> list[Heading]:
    """The headings of a table, in its order."""
    scores = {
        column.key: [cell for row in table.rows if isinstance(cell := row.get(column.key), Score)]
        for column in table.columns
    }
    wide = sum(map(bool, scores.values())) > SIDE_BY_SIDE
    result = []
    for column in table.columns:
        compared = any(score.paper is not None for score in scores[column.key])
        parts, show = [""], plain
        if compared and wide:
            show = stacked
        elif compared:
            parts, show = ["ours", "paper", "diff."], abreast
        result.append(Heading(column.title, parts, show, column, _numeric(table, column)))
    return result


def row(table: Table, columns: Sequence[Heading], cells: Mapping[str, Cell]) -> list[Shown]:
    """One row as it is shown under the headings of its table."""
    return [
        shown
        for heading in columns
        for shown in heading.show(cells.get(heading.column.key), heading.column.digits)
    ]


def legend(table: Table) -> str:
    """How to read the scores of a table; empty if it has none."""
    columns = headings(table)
    scores = [cell for cells in table.rows for cell in cells.values() if isinstance(cell, Score)]
    if not scores:
        return ""
    text = "Mean"
    if any(score.std is not None or score.paper_std is not None for score in scores):
        text += " ± standard deviation"
    if any(score.rank is not None or score.paper_rank is not None for score in scores):
        text += ", rank in parentheses, the best in bold"
    if any(heading.show is stacked for heading in columns):
        text += "; beneath it the paper’s value and our difference from it"
    return f"{text}."


def has_colours(table: Table) -> bool:
    """Whether any difference of a table is large enough to be coloured."""
    cells = [cell for row in table.rows for cell in row.values()]
    return any(isinstance(cell, Score) and _apart(cell) for cell in cells)


# ------------------------------------------------------------------ one cell


def plain(cell: Cell, digits: int) -> list[Shown]:
    """A cell in one column."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    match cell:
        case None:
            return [Shown(MISSING)]
        case Score():
            return [_ours(cell, digits)]
        case bool():
            return [Shown("✓" if cell else "✗", float(cell))]
        case str():
            return [Shown(cell, cell)]
    return [Shown(number(cell, digits), None if math.isnan(cell) else float(cell))]


def abreast(cell: Cell, digits: int) -> list[Shown]:
    """A score in three columns: ours, the paper's, the difference."""
    if not isinstance(cell, Score):
        return [*plain(cell, digits), Shown(""), Shown("")]
    paper = Shown(_paper(cell, digits), cell.paper)
    difference = Shown(signed(cell.difference, digits), cell.difference, apart=_apart(cell))
    return [_ours(cell, digits), paper, difference]


def stacked(cell: Cell, digits: int) -> list[Shown]:
    """A score in one column, the paper's and the difference beneath ours."""
    if not isinstance(cell, Score):
        return plain(cell, digits)
    if cell.paper is None:
        return [_ours(cell, digits)]
    paper = "paper " + score_text(cell.paper, None, cell.paper_rank, digits)
    difference = "" if cell.difference is None else signed(cell.difference, digits)
    return [
        replace(_ours(cell, digits), paper=paper, difference=difference, apart=_apart(cell)),
    ]


def _ours(score: Score, digits: int) -> Shown:
    text = score_text(score.mean, score.std, score.rank, digits)
    hint = f"{score.n_repeats} repeat{'s' * (score.n_repeats != 1)}" if score.n_repeats else ""
    return Shown(text, _finite(score.mean), best=score.rank == 1, hint=hint)


def _paper(score: Score, digits: int) -> str:
    return score_text(score.paper, score.paper_std, score.paper_rank, digits)


def _apart(score: Score) -> int:
    difference = _finite(score.difference)
    if difference is None or (score.std is None and score.paper_std is None):
        return 0
    if abs(difference) <= (score.std or 0) + (score.paper_std or 0):
        return 0
    return 1 if difference > 0 else -1


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _numeric(table: Table, column: Column) -> bool:
    cells = [cell for row in table.rows if (cell := row.get(column.key)) is not None]
    return bool(cells) and not any(isinstance(cell, str) for cell in cells)


# ------------------------------------------------------------------ numbers


def score_text(mean: float | None, std: float | None, rank: float | None, digits: int) -> str:
    """A score with what is known of it.

    Examples
    --------
    >>> score_text(0.706, 0.009, 4, digits=3)
    '0.706 ± 0.009 (4)'
    """
    if mean is None or math.isnan(mean):
        return MISSING
    text = fixed(mean, digits)
    if std is not None:
        text += f" ± {fixed(std, digits)}"
    if rank is not None:
        text += f" ({rank:g})"
    return text


def number(value: float, digits: int) -> str:
    """A number with so many digits after the point; a tiny one keeps its magnitude.

    Examples
    --------
    >>> number(0.5, 3), number(2e-6, 3), number(12, 3)
    ('0.500', '2e−06', '12')
    """
    if isinstance(value, int):
        return str(value).replace("-", "−")
    text = fixed(value, digits)
    if value and math.isfinite(value) and not text.strip("−0."):
        text = f"{value:.1g}".replace("-", "−")
    return text


def fixed(value: float, digits: int) -> str:
    """A number with so many digits after the point and a true minus sign."""
    if not math.isfinite(value):
        return MISSING if math.isnan(value) else "∞" if value > 0 else "−∞"
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")  # + 0.0: no minus zero


def signed(value: float | None, digits: int) -> str:
    """A difference: with its sign, unless it is shown as zero."""
    if value is None or math.isnan(value):
        return MISSING
    text = fixed(value, digits)
    return f"+{text}" if value > 0 and text.strip("0.") else text
