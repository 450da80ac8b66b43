"""What an experiment has to say, before anyone decides how to print it.

Items of :mod:`manyboost.experiments` return a :class:`Section`; the report turns sections into
HTML, Markdown and CSV without knowing what they are about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Score:
    """A score over repeats beside the paper's; ``None`` where there is nothing to show."""

    mean: float | None
    std: float | None = None
    rank: float | None = None
    n_repeats: int = 0
    paper: float | None = None
    paper_std: float | None = None
    paper_rank: float | None = None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        if self.mean is None or self.paper is None:
            return None
        return self.mean - self.paper


#: What a cell of a table may hold: a bool is shown as a mark, ``None`` as a dash.
Cell = str | float | int | bool | Score | None


@dataclass(frozen=True)
class Column:
    """A column; ``digits`` are those after the point."""

    key: str
    title: str
    digits: int = 3


@dataclass(frozen=True)
class Table:
    """A sortable table; ``name`` is its file name without an ending."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Cell]]
    caption: str = ""


@dataclass(frozen=True)
class Series:
    """One line of a figure; ``low`` and ``high`` bound a band around it."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


@dataclass(frozen=True)
class Lines:
    """A figure of lines."""

    name: str
    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_log: bool = False
    caption: str = ""


@dataclass(frozen=True)
class CriticalDifference:
    """Average ranks on an axis, those not significantly apart joined by a bar."""

    name: str
    title: str
    ranks: Mapping[str, float]
    distance: float
    groups: Sequence[Sequence[str]]
    caption: str = ""


Block = Table | Lines | CriticalDifference


@dataclass(frozen=True)
class Finding:
    """A claim of the paper or a bar of ours, and what was seen; ``None``: not decided."""

    claim: str
    measured: str
    holds: bool | None


@dataclass(frozen=True)
class Section:
    """One reproduced item."""

    name: str
    title: str
    text: Sequence[str]
    blocks: Sequence[Block]
    findings: Sequence[Finding] = ()
    #: The exact settings under which it was run: methods, data, repeats, budgets, caps.
    specification: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """All sections of one command, with the versions and the machine that made them."""

    title: str
    sections: Sequence[Section]
    versions: Mapping[str, str]
    #: Caps and choices that hold for all sections, one sentence each.
    notes: Sequence[str] = ()
