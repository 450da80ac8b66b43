"""Cells of tables as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from experiments.report.content import Cell, Column, Score, Table

MISSING = "–"


@dataclass(frozen=True)
class Shown:
    """A cell as it is shown. ``value`` is what the table is sorted by; None comes last."""

    text: str
    value: float | str | None = None
    #: A second line: the paper's score, our difference from it, and its mark.
    paper: str = ""
    difference: str = ""
    is_best: bool = False
    #: Sign of a difference that exceeds two standard errors.
    sign: int = 0
    hint: str = ""


_MARKS = {None: "", 0: " ≈", 1: " ▲", -1: " ▼"}


def shown_rows(table: Table) -> list[list[Shown]]:
    """Return the rows of a table as they are shown."""
    return [[_shown(row, column) for column in table.columns] for row in table.rows]


def numeric(table: Table) -> list[bool]:
    """Return for each column whether it has no text."""
    return [
        not any(isinstance(row.get(column.key), str) for row in table.rows)
        for column in table.columns
    ]


def _shown(row: Mapping[str, Cell], column: Column) -> Shown:
    cell, digits = row.get(column.key), column.digits
    match cell:
        case None:
            return Shown(MISSING)
        case str():
            return Shown(cell, cell)
        case Score():
            return _score(cell, digits)
        case int():
            return Shown(str(cell), cell)
    return Shown(fixed(cell, digits), None if math.isnan(cell) else cell)


def _score(score: Score, digits: int) -> Shown:
    paper = difference = ""
    if score.paper is not None:
        paper = "paper " + _score_text(score.paper, None, score.paper_rank, score.paper_digits)
        digits = max(digits, score.paper_digits)
    if score.difference is not None:
        difference = fixed(score.difference, digits, "+") + _MARKS[score.deviates]
    hint = f"{score.n_repeats} split{'s' * (score.n_repeats != 1)}"
    if score.paper_std is not None:
        hint += f"; paper ± {fixed(score.paper_std, score.paper_digits)}"
    text = _score_text(score.mean, score.std, score.rank, digits)
    best, sign = score.rank == 1, score.deviates or 0
    return Shown(text, score.mean, paper, difference, best, sign, hint)


def _score_text(mean: float | None, std: float | None, rank: float | None, digits: int) -> str:
    if mean is None:
        return MISSING
    text = fixed(mean, digits)
    text += "" if std is None else f" ± {fixed(std, digits)}"
    return text if rank is None else f"{text} ({rank:g})"


def fixed(value: float, digits: int, sign: str = "") -> str:
    """Return a number with a fixed number of digits and a true minus sign."""
    if math.isnan(value):
        return MISSING
    value = round(value, digits) + 0.0  # + 0.0: no negative zero
    return f"{value:{sign if value else ''}.{digits}f}".replace("-", "−")


def legend(table: Table) -> str:
    """Explain the scores of a table; empty if it has none."""
    scores = [cell for row in table.rows for cell in row.values() if isinstance(cell, Score)]
    if not scores:
        return ""
    text = "Mean"
    if any(score.std is not None for score in scores):
        text += " ± standard deviation over the splits"
    if any(score.rank is not None for score in scores):
        text += " (rank), best in bold"
    if any(score.paper is not None for score in scores):
        text += ". Second line: the paper's score and our difference from it"
    if any(score.deviates is not None for score in scores):
        text += ": ≈ within two standard errors, ▲ above, ▼ below"
    return f"{text}."
