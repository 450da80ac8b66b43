"""Errors with fields, for callers that know more about where the data came from; and warnings."""

from __future__ import annotations

import sys
import warnings

# A warning is about the line that called the package, perhaps through these.
_INSIDE = ("manyboost", "sklearn", "contextlib")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class RowError(ValueError):
    """A row of an argument, such as ``"X_val"``, holds something that cannot be used.

    The message reads ``{problem} in row {row}, output {output} ({note}){rest}``; ``rest`` says what
    to do. A caller that passed only some of the rows rewrites it with :meth:`relocated`.

    Examples
    --------
    >>> error = RowError("y", "y has an infinite value", 3, "; drop such rows.", output="'a'")
    >>> print(error)
    y has an infinite value in row 3, output 'a'; drop such rows.
    >>> print(error.relocated(103, "row 3 of partition 1"))
    y has an infinite value in row 103, output 'a' (row 3 of partition 1); drop such rows.
    """

    def __init__(
        self,
        argument: str,
        problem: str,
        row: int,
        rest: str,
        output: str | None = None,
        note: str | None = None,
    ) -> None:
        # Pickle calls the class with these.
        super().__init__(argument, problem, row, rest, output, note)
        self.argument, self.problem, self.row, self.rest = argument, problem, int(row), rest
        self.output, self.note = output, note

    def __str__(self) -> str:
        output = "" if self.output is None else f", output {self.output}"
        note = "" if self.note is None else f" ({self.note})"
        return f"{self.problem} in row {self.row}{output}{note}{self.rest}"

    def relocated(self, row: int, note: str | None = None) -> RowError:
        """Return the same error for another row number."""
        return RowError(self.argument, self.problem, row, self.rest, self.output, note)
