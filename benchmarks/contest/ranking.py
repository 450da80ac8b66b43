"""Ranks of contestants: by set, on average, and whether they differ by more than chance."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from experiments import statistics

DIGITS = 4  # of a score, as printed: scores that print alike share their rank
MARGIN = 0.002  # of the best score
PART = 0.5  # of the sets that are measured: a contestant must have been tried on so many
ALPHA = statistics.ALPHA

# By contestant: None where it was tried and has no score. Who was not tried is not there.
Scores = Mapping[str, float | None]


@dataclass(frozen=True)
class Ranking:
    """Scores, as printed, of the ranked contestants on the sets that all of them were tried on.

    No score is the worst score: whoever is over budget ranks last, beside others that are.
    """

    sets: tuple[str, ...]
    scores: dict[str, list[float]]  # by contestant, in the order of the sets

    @classmethod
    def of(cls, by_set: Mapping[str, Scores]) -> "Ranking":
        tried = {name: found for name, found in by_set.items() if found}
        ranked = [
            name
            for name in dict.fromkeys(name for found in tried.values() for name in found)
            if sum(name in found for found in tried.values()) >= PART * len(tried)
        ]
        sets = tuple(name for name, found in tried.items() if found.keys() >= set(ranked))
        return cls(sets, {name: [printed(tried[each][name]) for each in sets] for name in ranked})

    def average_ranks(self) -> dict[str, float]:
        """By contestant, best first; 1 is the best."""
        if not self.sets:
            return {}
        found = statistics.average_ranks(self.scores)
        return dict(sorted(found.items(), key=lambda pair: pair[1]))

    def friedman(self) -> float | None:
        """The chance of ranks as uneven as these if all were alike; None if there is no test."""
        if all(len(set(scores)) == 1 for scores in zip(*self.scores.values(), strict=True)):
            return None  # nobody differs anywhere
        return statistics.friedman(self.scores)

    def critical_difference(self) -> float | None:
        """Nemenyi's: average ranks that are further apart differ by more than chance."""
        if len(self.scores) < 2 or len(self.sets) < 2:
            return None
        return statistics.critical_distance(len(self.scores), len(self.sets))

    def not_worse(self) -> list[str]:
        """The best contestant, and those whose ranks are within the critical difference of it."""
        ranks, difference = self.average_ranks(), self.critical_difference() or 0.0
        best = min(ranks.values(), default=0.0)
        return [name for name, rank in ranks.items() if rank - best <= difference]

    def n_near_best(self, contestant: str) -> int:
        """On how many sets it is the best, or no more than the margin below."""
        best = map(max, zip(*self.scores.values(), strict=True))
        pairs = zip(self.scores[contestant], best, strict=True)
        return sum(math.isfinite(s) and round(b - s, DIGITS) <= MARGIN for s, b in pairs)

    def n_without_score(self, contestant: str) -> int:
        return sum(math.isinf(score) for score in self.scores[contestant])


def printed(score: float | None) -> float:
    return -math.inf if score is None else round(score, DIGITS)
