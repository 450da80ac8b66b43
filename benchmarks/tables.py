"""Numbers and Markdown tables, as all pages show them."""

from collections.abc import Sequence


def number(value: float | None, factor: float = 1.0) -> str:
    """Three digits, however large or small."""
    if value is None:
        return "–"
    value *= factor
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], numbers_from: int = 0, numbers_to: int = 0
) -> str:
    """A Markdown table; the columns in the given range are numbers, aligned right."""
    align = ["---:" if numbers_from <= i < numbers_to else "---" for i in range(len(head))]
    lines = [head, align, *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def filled(text: str, tables: dict[str, str]) -> str:
    """A page with other tables between its marks."""
    for name, each in tables.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        before, found, rest = text.partition(begin)
        if found:
            text = f"{before}{begin}\n\n{each}\n\n{end}{rest.partition(end)[2]}"
    return text
