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
        paragraph = re.sub(r"\]\((?=\d\d-)", "](../decisions/", _indent(match[2]))
        found[int(path.name[:2])] = f"[{match[1]}](../decisions/{path.name})\n: {paragraph}"
    return found


def _indent(text: str) -> str:
    return text.rstrip().replace("\n", "\n  ")


def comment(lines: str, marker: str) -> str:
    """The text of a comment."""
    return "\n".join(re.sub(rf"^\s*{re.escape(marker)} ?", "", line) for line in lines.splitlines())


def markdown(text: str) -> str:
    """Rust's links to items as code."""
    return re.sub(r"\[(`[^`]+`)\](?:\([\w:]+\)|(?!\())", r"\1", text)


def first_sentence(text: str) -> str:
    """The first sentence of a comment, in one line."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.match(r".*?\.(?= |$)|.*", paragraph)[0]


def items(source: str) -> list[tuple[str, str]]:
    """Public items with the first sentence about them; those of tests are left out."""
    source = source.split("#[cfg(test)]")[0]
    found = []
    for lines, name in ITEM.findall(source):
        sentence = first_sentence(comment(lines, "///"))
        found.append((name, markdown(sentence).replace("|", r"\|")))
    return found


def parts_of(module: str) -> list[Path]:
    """The files of a module, the one that speaks for all of them first."""
    parts = (CORE / module).glob("*.rs")
    in_order = sorted(parts, key=lambda path: (path.stem != "mod", path.stem))
    return [*CORE.glob(f"{module}.rs"), *in_order]


def about(file: Path) -> str:
    """The comment at the head of a file."""
    head = re.match(r"(?://!.*\n)*", file.read_text())[0]
    return markdown(comment(head, "//!"))


def page(module: str, known: dict[int, str]) -> str:
    """The page of a module."""
    parts = parts_of(module)
    sources = [path.read_text() for path in parts]
    lines = [f"# `{module}`", "", about(parts[0]), ""]
    wanted = DECISIONS.get(module, [])
    if wanted:
        lines += ["## Decisions", ""]
    for number in wanted:
        lines += [known[number], ""]
    if found := [item for part in sources for item in items(part)]:
        lines += ["## What it offers", "", "| item | what it is |", "|---|---|"]
        lines += [f"| `{name}` | {meaning} |" for name, meaning in found]
    rows = sum(len(part.splitlines()) for part in sources)
    place = parts[0].name if parts[0].parent == CORE else f"{module}/"
    lines += ["", f"*`crates/core/src/{place}`, {rows:,} lines, tests included.*", ""]
    return "\n".join(lines)


def write_pages(folder: Path) -> None:
    """Write a page for each module, and one that lists them; leave unchanged ones alone."""
    folder.mkdir(exist_ok=True)
    known = decisions()
    pages = {f"{module}.md": page(module, known) for module in modules()}
    listed = "\n".join(
        f"- [`{module}`]({module}.md): {first_sentence(about(parts_of(module)[0]))}"
        for module in modules()
    )
    contents = "\n".join(modules())
    pages["index.md"] = (
        f"# Modules of the core\n\n{about(CORE / 'lib.rs')}\n\nThese pages are made from the "
        "comments in `crates/core` and from the [decisions](../decisions/README.md).\n\n"
        f"{listed}\n\n```{{toctree}}\n:hidden:\n\n{contents}\n```\n"
    )
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
