"""How long a fit may take: rounds, seconds, or multiples of the unit of time of a data set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, cast, get_args

Kind = Literal["rounds", "seconds", "T"]


@dataclass(frozen=True)
class Limit:
    """The end of a fit: a number of rounds or of seconds, whichever comes first."""

    rounds: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Budget:
    """The budget of a fit: ``rounds:N``, ``seconds:S`` or ``T:M``.

    T is the time of one round of multioutput boosting with stumps and squared error on the same
    data set. With ``T:M`` all methods have the same time.
    """

    kind: Kind
    amount: float

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read a budget, or raise a ValueError that says how to write one."""
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
        """Return the end of a fit on a data set whose T is ``unit``, under a cap of seconds."""
        if self.kind == "rounds":
            return Limit(int(self.amount), max_seconds)
        seconds = self.amount
        if self.kind == "T":
            assert unit is not None
            seconds *= unit
        return Limit(None, seconds if max_seconds is None else min(seconds, max_seconds))
