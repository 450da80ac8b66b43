"""Runs that take no time, in a module that worker processes can import."""

import os
from dataclasses import dataclass

from experiments.protocol import ModelResult, Run


@dataclass(frozen=True)
class Toy(Run):
    """A run whose score is its number, plus the scores of those it needs."""

    number: int
    below: int = 0
    fate: str = "fine"
    then: int = 0
    then_fate: str = "fine"

    def needs(self, data_dir):
        return [
            Toy("toy", self.seed, 0, self.number * 10 + i, fate=self.fate)
            for i in range(self.below)
        ]

    def needs_then(self, needed, data_dir):
        """As many as the first need scored, if there is one."""
        assert len(needed) == self.below
        n = int(needed[0].scores["score"]) if self.then else 0
        return [
            Toy("toy", self.seed, 0, self.number * 1000 + i, fate=self.then_fate) for i in range(n)
        ]

    def execute(self, needed, data_dir):
        assert len(needed) == self.below + (self.number * 10 if self.then else 0)
        if self.fate == "raise":
            raise RuntimeError(f"run {self.number} is not to be")
        if self.fate == "die":
            os._exit(9)
        return ModelResult({"score": self.number + sum(r.scores["score"] for r in needed)}, 1, 0.0)
