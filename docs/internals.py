"""Pages about the modules of the Rust core, from their own comments and from docs/decisions.

Nothing about a module is written here but which decisions concern it.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
CORE = ROOT / "crates" / "core" / "src"

# The numbers of the decisions that concern a module.
DECISIONS = {
    "baseline": [6, 28],
    "binning": [12, 13],
    "category": [3],
    "comm": [29],
    "ensemble": [17, 25],
    "format": [31],
    "grower": [11, 12, 29],
    "histogram": [1, 11],
    "interaction": [5],
    "leaf": [10, 23],
    "losses": [7, 10, 24],
    "lowlevel": [8, 13, 14],
    "math": [8],
    "memory": [36],
    "monotone": [4],
    "outputs": [24],
    "parallel": [14],
    "projection": [15, 47],
    "random": [9],
    "ranking": [17],
    "reduce": [1, 29],
    "select": [1, 29],
    "shap": [18],
    "split": [2],
    "step": [16],
    "weights": [21, 22],
}

ITEM = re.compile(
    r"((?:^///.*\n)+)(?:^#\[.*\n)*^pub (?:const fn|fn|struct|enum|trait|type|const) (\w+)",
    re.M,
)


def modules() -> list[str]:
    """Names of the modules, in the order data walk through them."""
    return re.findall(r"^pub mod (\w+);", (CORE / "lib.rs").read_text(), re.M)


def decisions() -> dict[int, str]:
    """Title, link and first paragraph of each page of docs/decisions, by number."""
    found = {}
    for path in sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md")):
        text = path.read_text()
        match = re.match(r"# (.*)\n\n## Decision\n\n((?:.+\n)+)", text)
        if match is None:
            raise ValueError(f"{path} does not begin with a title and the section Decision.")
        found[int(path.name[:2])] = f"[{match[1]}](../decisions/{path.name})\n: {_indent(match[2])}"
    return found


def _indent(text: str) -> str:
    return text.rstrip().replace("\n", "\n  ")


def comment(lines: str, marker: str) -> str:
    """The text of a comment."""
    return "\n".join(re.sub(rf"^\s*{re.escape(marker)} ?", "", line) for line in lines.splitlines())


def markdown(text: str) -> str:
    """Rust's links to items as code."""
    return re.sub(r"\[(`[^`]+`)\](?:\([\w:]+\)|(?!\())", r"\1", text)


def items(source: str) -> list[tuple[str, str]]:
    """Public items with the first sentence about them; those of tests are left out."""
    source = source.split("#[cfg(test)]")[0]
    found = []
    for lines, name in ITEM.findall(source):
        text = " ".join(comment(lines, "///").split("\n\n")[0].split())
        sentence = re.match(r".*?\.(?= |$)|.*", text)[0]
        found.append((name, markdown(sentence).replace("|", r"\|")))
    return found


def page(module: str, known: dict[int, str]) -> str:
    """The page of a module."""
    folder = CORE / module
    parts = sorted(folder.glob("*.rs"), key=lambda path: (path.stem != "mod", path.stem))
    sources = [path.read_text() for path in parts or [CORE / f"{module}.rs"]]
    source = sources[0]
    head = re.match(r"(?://!.*\n)*", source)[0]
    lines = [f"# `{module}`", "", markdown(comment(head, "//!")), ""]
    wanted = DECISIONS.get(module, [])
    if wanted:
        lines += ["## Decisions", ""]
    for number in wanted:
        lines += [known[number], ""]
    if found := [item for part in sources for item in items(part)]:
        lines += ["## What it offers", "", "| item | what it is |", "|---|---|"]
        lines += [f"| `{name}` | {meaning} |" for name, meaning in found]
    rows = sum(len(part.splitlines()) for part in sources)
    place = f"{module}/" if parts else f"{module}.rs"
    lines += ["", f"*`crates/core/src/{place}`, {rows:,} lines, tests included.*", ""]
    return "\n".join(lines)


def write_pages(folder: Path) -> None:
    """Write a page for each module, and one that lists them; leave unchanged ones alone."""
    folder.mkdir(exist_ok=True)
    known = decisions()
    pages = {f"{module}.md": page(module, known) for module in modules()}
    intro = comment(re.match(r"(?://!.*\n)*", (CORE / "lib.rs").read_text())[0], "//!")
    contents = "\n".join(modules())
    pages["index.md"] = (
        "# Modules of the core\n\n"
        f"{intro}\n\nThese pages are made from the comments in `crates/core` and from the "
        f"[decisions](../decisions/README.md).\n\n```{{toctree}}\n{contents}\n```\n"
    )
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
