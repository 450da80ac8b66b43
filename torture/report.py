"""Turn torture/results/*.json into docs/torture.md: `python -m torture.report`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torture import areas, results

PAGE = Path(__file__).resolve().parent.parent / "docs" / "torture.md"

HEAD = """\
# Torture

What the library promises, tried until it should break. Generated from `torture/results` by
`make torture`, which runs all of it (hours); short versions of all areas are among the tests.
`python -m torture interrupt load` runs areas by name, `--seed` with another seed."""

VERDICTS = {True: "yes", False: "**no**", None: "not tried"}


def write(folder: Path = results.FOLDER, page: Path = PAGE) -> None:
    """Write the page from all stored figures."""
    page.write_text(document(results.read(folder)))


def document(stored: dict[str, dict[str, Any]]) -> str:
    """The page, areas in the order in which they run."""
    known = [name for name in areas.names() if name in stored]
    figures = [figure for name in known for figure in stored[name]["figures"]]
    held = sum(figure["holds"] is True for figure in figures)
    tried = sum(figure["holds"] is not None for figure in figures)
    parts = [HEAD, f"{held} of {tried} figures hold."]
    parts.append(
        table(
            ("area", "test", "figure to reach", "reached", "cases", "holds"),
            [row for name in known for row in rows(name, stored[name])],
        )
    )
    parts.append("## Areas")
    parts += [paragraph(name, stored[name]) for name in known]
    return "\n\n".join(parts) + "\n"


def rows(name: str, record: dict[str, Any]) -> list[tuple[str, ...]]:
    """The lines of the table for one area, which is named in the first."""
    title = areas.find(name).TITLE
    return [
        (
            "" if number else title,
            figure["what"],
            figure["bar"],
            figure["value"],
            "" if figure["cases"] is None else f"{figure['cases']:,}",
            VERDICTS[figure["holds"]],
        )
        for number, figure in enumerate(record["figures"])
    ]


def paragraph(name: str, record: dict[str, Any]) -> str:
    """What the area promises, and where and when that was tried."""
    area, found = areas.find(name), record["versions"]
    libraries = ", ".join(f"{each} {found[each]}" for each in ("manyboost", *results.LIBRARIES))
    run = "long run" if record["long"] else "short run"
    return (
        f"**{area.TITLE}.** {area.PROMISE}  \n"
        f"{run} of {record['date']}, {record['seconds']:,.0f} s, seed {record['seed']}; "
        f"Python {found['python']}, {libraries}; {found['system']}, {found['cores']} cores."
    )


def table(head: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    """A Markdown table; the number of cases is aligned right."""
    align = tuple("---:" if name == "cases" else "---" for name in head)
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, align, *cells])


if __name__ == "__main__":
    write()
