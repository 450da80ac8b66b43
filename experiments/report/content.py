"""The content of a report: sections of tables, figures and findings, independent of a format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from experiments.statistics import standard_error

#: Splits behind a mean of the paper.
PAPER_SPLITS = 5


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
    paper_digits: int = 3

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        if self.mean is None or self.paper is None:
            return None
        return self.mean - self.paper

    @property
    def deviates(self) -> int | None:
        """0 if the difference lies within two standard errors, else its sign; None: not known."""
        if self.difference is None or self.std is None or self.paper_std is None:
            return None
        error = standard_error(self.std, self.n_repeats, self.paper_std, PAPER_SPLITS)
        if abs(self.difference) <= 2 * error:
            return 0
        return 1 if self.difference > 0 else -1


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
    """A table; ``name`` is its file name without extension. Pages of the site only link details."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Cell]]
    caption: str = ""
    is_detail: bool = False


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


class Verdict(Enum):
    """What became of a claim of the paper."""

    REPRODUCED = "reproduced"
    PARTLY = "partly reproduced"
    NOT = "not reproduced"
    BY_CONSTRUCTION = "true by construction"
    NOT_RUN = "not yet run"


@dataclass(frozen=True)
class Finding:
    """A claim of the paper, where it stands, and what was measured, perhaps in part."""

    claim: str
    where: str
    measured: str
    verdict: Verdict
    is_whole: bool = True

    @property
    def words(self) -> str:
        """The verdict in words."""
        return self.verdict.value + ("" if self.is_whole else " so far")


@dataclass(frozen=True)
class Section:
    """One part of the report."""

    name: str
    title: str
    text: Sequence[str]
    blocks: Sequence[Block] = ()
    findings: Sequence[Finding] = ()


@dataclass(frozen=True)
class Report:
    """All sections, and the versions that made the rows; ``lead`` says what is covered."""

    title: str
    lead: Sequence[str]
    sections: Sequence[Section]
    versions: Mapping[str, str]

    @property
    def findings(self) -> list[Finding]:
        """The findings of all sections."""
        return [finding for section in self.sections for finding in section.findings]
