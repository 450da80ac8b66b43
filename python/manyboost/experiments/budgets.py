"""How long a fit may take: rounds, seconds, or multiples of a set's own unit of time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, cast, get_args

Kind = Literal["rounds", "seconds", "T"]


@dataclass(frozen=True)
class Limit:
    """Where a fit ends: after so many rounds or seconds, whichever comes first."""

    rounds: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Budget:
    """What a fit is given: ``rounds:N``, ``seconds:S``, or ``T:M``.

    T is the time of one round of multioutput boosting with stumps and squared error on the set at
    hand, so that ``T:M`` gives every method the same time.

    Examples
    --------
    >>> from manyboost.experiments.budgets import Budget
    >>> Budget.parse("T:100").limit(unit=0.25, max_seconds=60)
    Limit(rounds=None, seconds=25.0)
    """

    kind: Kind
    amount: float

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read a budget, or say how one is written."""
        kind, _, amount = text.partition(":")
        try:
            number = float(amount)
        except ValueError:
            number = math.nan
        whole = kind != "rounds" or number.is_integer()
        if kind not in get_args(Kind) or not (0 < number < math.inf and whole):
            raise ValueError(
                f"budget={text!r} is not a budget; write rounds:N, seconds:S or T:M with a "
                "positive number."
            )
        return cls(cast(Kind, kind), number)

    def limit(self, unit: float | None, max_seconds: float | None) -> Limit:
        """Return the end of a fit on a set whose T is ``unit``, under a cap of seconds."""
        if self.kind == "rounds":
            return Limit(int(self.amount), max_seconds)
        if self.kind == "seconds":
            seconds = self.amount
        else:
            assert unit is not None
            seconds = self.amount * unit
        return Limit(None, seconds if max_seconds is None else min(seconds, max_seconds))
