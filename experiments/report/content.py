"""The content of a report: sections of tables, figures and findings, independent of a format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Score:
    """A mean score over splits next to the paper's; None if there is nothing to show."""

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


#: A cell of a table; None is shown as a dash.
Cell = str | float | int | Score | None


@dataclass(frozen=True)
class Column:
    """A column; ``digits`` are the digits after the decimal point."""

    key: str
    title: str
    digits: int = 3


@dataclass(frozen=True)
class Table:
    """A table; ``name`` is its file name without extension."""

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
    """A figure of lines over a logarithmic axis."""

    name: str
    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    caption: str = ""


@dataclass(frozen=True)
class CriticalDifference:
    """Average ranks on an axis; a bar joins methods without a significant difference."""

    name: str
    title: str
    ranks: Mapping[str, float]
    distance: float
    caption: str = ""


Figure = Lines | CriticalDifference
Block = Table | Figure


@dataclass(frozen=True)
class Finding:
    """A claim of the paper, what was measured, and whether it holds; None: not decided."""

    claim: str
    measured: str
    holds: bool | None


@dataclass(frozen=True)
class Section:
    """One item of the paper."""

    name: str
    title: str
    text: Sequence[str]
    blocks: Sequence[Block]
    findings: Sequence[Finding] = ()
    #: The exact settings of the runs: methods, data sets, splits, budgets, caps.
    specification: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """All sections of one command, with the versions that made them."""

    title: str
    sections: Sequence[Section]
    versions: Mapping[str, str]
    #: Facts that concern all sections, one sentence each.
    notes: Sequence[str] = ()

    @property
    def findings(self) -> list[Finding]:
        """The findings of all sections."""
        return [finding for section in self.sections for finding in section.findings]
