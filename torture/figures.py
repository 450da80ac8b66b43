"""What an area hands back: figures beside the bars they must reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One figure of an area.

    ``holds`` is None where the figure could not be taken here; ``value`` then says why.
    """

    what: str
    bar: str
    value: str
    holds: bool | None
    cases: int | None = None

    def __post_init__(self) -> None:
        # NumPy's numbers are no JSON.
        object.__setattr__(self, "value", str(self.value))
        if self.holds is not None:
            object.__setattr__(self, "holds", bool(self.holds))
        if self.cases is not None:
            object.__setattr__(self, "cases", int(self.cases))

    def line(self) -> str:
        """The figure as the battery prints it."""
        verdict = {True: "holds", False: "FAILS", None: "not tried"}[self.holds]
        cases = f" in {self.cases:,} cases" if self.cases is not None else ""
        return f"{verdict:9} {self.what}: {self.value}{cases} (to reach: {self.bar})"


def skipped(what: str, bar: str, reason: str) -> Figure:
    """A figure that cannot be taken on this machine."""
    return Figure(what, bar, reason, None)


def none_of(what: str, cases: int, failures: list[Any]) -> Figure:
    """The figure of a test that must never fail: how often it did, and how it did first."""
    value = "0" if not failures else f"{len(failures)}, the first: {failures[0]}"
    return Figure(what, "0", value, not failures, cases)
