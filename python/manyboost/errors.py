"""Errors with fields, for callers that know more about where the data came from."""

from __future__ import annotations


class RowError(ValueError):
    """A row of an argument holds something that cannot be used.

    The message reads ``{problem} in row {row}, output {output}{rest}``. A caller that passed only
    some of the rows rewrites it with :meth:`relocated`.

    Parameters
    ----------
    argument : str
        The argument of ``fit`` or ``predict``, such as ``"X_val"``.
    problem : str
        What is wrong, such as ``"y has an infinite value (inf)"``.
    row : int
        The number of the row in the argument.
    rest : str
        The end of the sentence, with its punctuation: what to do.
    output : str, optional
        The name or number of the output.
    note : str, optional
        What else there is to say about the place.

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
