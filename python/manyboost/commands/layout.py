"""Tables of text, for people to read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_NUMBER = re.compile(r"-|-?[\d,.]+(e[+-]\d+)?")


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lay out rows below a header: words to the left, numbers to the right.

    Examples
    --------
    >>> print(table(["output", "r2"], [["heat", 0.91], ["cold", -12.5]]))
    output       r2
    heat     0.9100
    cold   -12.5000
    """
    texts = [[_text(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *texts, strict=True)]
    right = [all(map(_NUMBER.fullmatch, column)) for column in zip(*texts, strict=True)]
    lines = []
    for cells in (header, *texts):
        padded = [
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(cells, widths, right, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return "-" if cell != cell else f"{cell:.4f}" if abs(cell) < 1e5 else f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
