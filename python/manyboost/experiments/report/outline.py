"""The report in order, every part under a name that is safe as an anchor and as a file name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from manyboost.experiments.results import Block, Finding, Lines, Report, Section

#: Anchors the page itself uses.
RESERVED = ("summary", "contents", "versions")


@dataclass(frozen=True)
class Chapter:
    """A section with the names of its parts, and the colour number of every line it draws."""

    section: Section
    anchor: str
    blocks: Sequence[tuple[str, Block]]
    colours: Mapping[str, int]


@dataclass(frozen=True)
class Verdict:
    """What became of a claim: a mark, words for one and for several, and a class of style."""

    mark: str
    one: str
    several: str
    style: str

    def count(self, findings: Sequence[Finding]) -> int:
        """How many of the findings ended so."""
        return sum(verdict(finding) is self for finding in findings)


HOLDS = Verdict("✓", "holds", "hold", "holds")
FAILS = Verdict("✗", "does not hold", "do not hold", "fails")
UNDECIDED = Verdict("○", "not decided", "not decided", "undecided")
VERDICTS = (HOLDS, FAILS, UNDECIDED)


def verdict(finding: Finding) -> Verdict:
    """The verdict of one finding."""
    if finding.holds is None:
        return UNDECIDED
    return HOLDS if finding.holds else FAILS


def tally(findings: Sequence[Finding]) -> list[tuple[Verdict, int]]:
    """The verdicts that occur, with their counts."""
    return [(kind, n) for kind in VERDICTS if (n := kind.count(findings))]


def chapters(report: Report) -> list[Chapter]:
    """The sections of a report with names that are unique in all of it."""
    anchors, files = set(RESERVED), set[str]()
    return [_chapter(section, anchors, files) for section in report.sections]


def _chapter(section: Section, anchors: set[str], files: set[str]) -> Chapter:
    anchor = _unique(section.name, anchors)
    blocks = [(_unique(block.name, files), block) for block in section.blocks]
    lines = [block for block in section.blocks if isinstance(block, Lines)]
    labels = dict.fromkeys(series.label for figure in lines for series in figure.series)
    return Chapter(section, anchor, blocks, {label: i for i, label in enumerate(labels)})


def _unique(name: str, taken: set[str]) -> str:
    stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80] or "part"
    safe, n = stem, 1
    while safe in taken:
        n += 1
        safe = f"{stem}-{n}"
    taken.add(safe)
    return safe
