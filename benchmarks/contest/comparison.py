"""One set: what each contestant reached, and how manyboost compares with the best peer."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.contest.contestants import CONTESTANTS
from benchmarks.contest.contestants.manyboost import Folds, ManyBoost, Refitted
from benchmarks.contest.ranking import DIGITS, MARGIN, Ranking, printed
from benchmarks.contest.running import is_long
from benchmarks.contest.sets import SETS
from benchmarks.records import Run, Summary

OURS, FOLDED, REFITTED = (kind.name for kind in (ManyBoost, Folds, Refitted))
SMALLEST = 1e5  # bytes: the counter of memory tells no less


@dataclass(frozen=True)
class Comparison:
    """The summaries of a set by contestant, and the peers that it takes to compare."""

    name: str
    summaries: dict[str, Summary]
    peers: tuple[str, ...] = ()

    def score(self, contestant: str) -> float | None:
        """The mean over the repeats; None where a repeat has none."""
        summary = self.summaries.get(contestant)
        if summary is None or len(scores := summary.values("score")) < len(summary.records):
            return None
        return statistics.fmean(scores)

    def best(self, names: Iterable[str]) -> str | None:
        scored = [name for name in names if self.score(name) is not None]
        return max(scored, key=self.score, default=None)

    @property
    def best_peer(self) -> str | None:
        return self.best(self.peers)

    @property
    def complete(self) -> bool:
        """Whether every peer has been tried, as often as manyboost or once for long."""
        wanted = {OURS, *self.peers}
        if not wanted <= self.summaries.keys():
            return False
        most = max(len(self.summaries[name].records) for name in wanted)
        records = (self.summaries[name].records for name in wanted)
        return all(len(each) == most or is_long(each[0]) for each in records)

    @property
    def difference(self) -> float | None:
        """Ours minus the best peer's; None until all have been tried."""
        return self.ahead_by(OURS)

    def ahead_by(self, name: str) -> float | None:
        """The score of one of ours minus the best peer's; None until all have been tried."""
        ours, peer = self.score(name), self.best_peer
        if not self.complete or ours is None or peer is None:
            return None
        return round(printed(ours) - printed(self.score(peer)), DIGITS)

    @property
    def within(self) -> bool | None:
        return None if self.difference is None else self.difference >= -MARGIN

    def is_elsewhere(self, contestant: str) -> bool:
        """Whether it was measured on another machine than manyboost."""
        both = [self.summaries[name] for name in (contestant, OURS) if name in self.summaries]
        return len(set().union(*(each.machines for each in both))) > 1

    def ratio(self, contestant: str, field: str) -> float | None:
        """Seconds or bytes over manyboost's, where both finished on one machine."""
        both = [self.summaries.get(name) for name in (contestant, OURS)]
        if self.is_elsewhere(contestant) or not all(each and finished(each) for each in both):
            return None
        theirs, ours = (each.median(field) for each in both)
        if theirs is None or ours is None:
            return None
        least = SMALLEST if field.endswith("bytes") else 0.0
        return max(theirs, least) / max(ours, least)


def comparisons(records: Run) -> tuple[list[Comparison], Ranking]:
    """The sets that have records, and the ranking of who was tried on enough of them."""
    by_set = {name: {each.contestant: each for each in records.of(name)} for name in SETS}
    found = [Comparison(name, summaries) for name, summaries in by_set.items() if summaries]
    ranking = Ranking.of({c.name: {name: c.score(name) for name in c.summaries} for c in found})
    peers = tuple(name for name in ranking.scores if name not in (OURS, FOLDED, REFITTED))
    return [Comparison(c.name, c.summaries, peers) for c in found], ranking


def everyone(found: Sequence[Comparison]) -> list[str]:
    """The known contestants, and those that were added."""
    return list(dict.fromkeys([*CONTESTANTS, *(name for c in found for name in c.summaries)]))


def ratios(found: Sequence[Comparison], contestant: str, field: str) -> list[float]:
    """Of a contestant to manyboost, on the sets that both finished."""
    each = (c.ratio(contestant, field) for c in found)
    return [ratio for ratio in each if ratio is not None]


def finished(summary: Summary) -> bool:
    """Whether it was fitted to its end in every repeat, and not stopped by the cap."""
    return summary.complete and not capped(summary)


def capped(summary: Summary) -> bool:
    return any(summary.values("capped"))
