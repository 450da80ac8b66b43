"""Two builds side by side: what `builds` has measured, as ratios and as a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.engine import short_rounds, slope
from benchmarks.tables import number, table

HOW = """\
Both builds take turns in one run, each in its own process, and the fastest of the turns counts. The
time of a round is the difference of a long and a short fit, divided by that of their rounds.
Growing a tree is the part of a round that finds and makes its splits. Times as fast: speed of the
new build relative to the old one, with the middle half of the ratios of single turns."""
NAMES = {"before": "old", "now": "new"}
BUSY = 0.1  # cores used by other processes from which on it is said
WHAT = {
    "rounds": "a round",
    "growth": "growing a tree",
    "prediction": "predictions, {n_rounds} rounds",
}


@dataclass(frozen=True)
class Pair:
    """What both builds took for the same."""

    spec: dict[str, Any]
    before: list[list[float]]  # the turns of each
    now: list[list[float]]

    @classmethod
    def of(cls, record: dict[str, Any]) -> "Pair":
        return cls(record["spec"], record["before"], record["now"])

    @property
    def seconds(self) -> tuple[float, float]:
        """The fastest of both builds."""
        return self._seconds(self.before), self._seconds(self.now)

    @property
    def times_as_fast(self) -> float:
        before, now = self.seconds
        return before / now

    @property
    def middle_half(self) -> tuple[float, float]:
        """Of the ratios of neighbouring turns."""
        ratios = [
            self._seconds([before]) / self._seconds([now])
            for before, now in zip(self.before, self.now, strict=True)
        ]
        low, high = np.quantile(ratios, [0.25, 0.75])
        return float(low), float(high)

    def _seconds(self, turns: list[list[float]]) -> float:
        if self.spec["protocol"] != "rounds":
            return min(seconds for (seconds,) in turns)
        short, long = zip(*turns, strict=True)
        n_rounds = self.spec["n_rounds"]
        return slope(short_rounds(n_rounds), short, n_rounds, long)


class Builds:
    """The comparison: what the builds are, and a record for each entry."""

    def __init__(self, head: dict[str, Any], records: Sequence[dict[str, Any]]) -> None:
        self.builds, self.pairs = head["builds"], [Pair.of(record) for record in records]
        self.others_cores = max((r["others_cores"] or 0.0 for r in records), default=0.0)

    def section(self) -> Iterator[str]:
        """Markdown: the builds, and a table of all pairs."""
        named = [
            f"{NAMES[key]} build: commit {build['commit']} ({build['digest']})"
            for key, build in self.builds.items()
        ]
        yield f"The {', the '.join(named)}.\n{HOW}"
        if self.others_cores > BUSY:
            yield f"Other processes ran at the same time, on up to {self.others_cores:.1f} cores."
        head = ("data", "what", "leaves", "threads", "old, ms", "new, ms")
        rows = [row(pair) for pair in self.pairs]
        yield table((*head, "times as fast", "middle half"), rows, 2, 8)


def row(pair: Pair) -> list[str]:
    spec = pair.spec
    what = WHAT[spec["protocol"]].format(**spec)
    times = [number(seconds, 1000) for seconds in pair.seconds]
    spread = " to ".join(number(ratio) for ratio in pair.middle_half)
    settings = [str(spec["max_leaf_nodes"]), str(spec["n_threads"])]
    return [spec["workload"], what, *settings, *times, number(pair.times_as_fast), spread]
