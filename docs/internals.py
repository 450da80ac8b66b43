"""Pages about the modules of the Rust core, from their own comments and from ARCHITECTURE.md.

Nothing about a module is written here but which decisions of ARCHITECTURE.md concern it.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
CORE = ROOT / "crates" / "core" / "src"

# How the decisions begin that concern a module.
DECISIONS = {
    "baseline": ["The baseline is kept apart"],
    "binning": ["Compressed columns"],
    "category": ["A set of categories"],
    "ensemble": ["Some outputs are a smaller model", "Early stopping per output"],
    "format": ["A model file has one way to be written"],
    "grower": ["Where the speed of growing comes from", "Compressed columns"],
    "histogram": ["Sums over rows are integers", "Where the speed of growing comes from"],
    "interaction": ["Interaction constraints"],
    "leaf": ["Two passes over rows × outputs a round", "Subsampled rounds"],
    "losses": ["Curvature is a function of the residual", "Two passes over rows × outputs a round"],
    "lowlevel": ["No platform mathematics in kernels", "Threads"],
    "math": ["No platform mathematics in kernels"],
    "monotone": ["Monotonic constraints are kept by the leaves"],
    "parallel": ["Threads"],
    "projection": ['`output_scaling="auto"`'],
    "random": ["Random numbers are addressed"],
    "ranking": ["Some outputs are a smaller model"],
    "reduce": ["Sums over rows are integers"],
    "runs": ["Outputs of different losses"],
    "shap": ["Shapley values are integrals"],
    "split": ["The gain is"],
    "step": ["The line search"],
    "weights": ["A missing target is a cell of weight zero"],
}

ITEM = re.compile(
    r"((?:^///.*\n)+)(?:^#\[.*\n)*^pub (?:const fn|fn|struct|enum|trait|type|const) (\w+)",
    re.M,
)


def modules() -> list[str]:
    """Names of the modules, in the order data walk through them."""
    return re.findall(r"^pub mod (\w+);", (CORE / "lib.rs").read_text(), re.M)


def decisions() -> dict[str, str]:
    """Paragraphs of the section "Decisions" of ARCHITECTURE.md by the words in bold."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    section = text.split("\n## Decisions\n", 1)[1].split("\n## ", 1)[0]
    found = {}
    for paragraph in re.split(r"\n(?=\*\*)", section):
        if match := re.match(r"\*\*(.*?)\*\*", paragraph.strip(), re.S):
            found[match[1]] = paragraph.strip()
    return found


def comment(lines: str, marker: str) -> str:
    """The text of a comment."""
    return "\n".join(re.sub(rf"^\s*{re.escape(marker)} ?", "", line) for line in lines.splitlines())


def markdown(text: str) -> str:
    """Rust's links to items as code."""
    return re.sub(r"\[(`[^`]+`)\](?!\()", r"\1", text)


def items(source: str) -> list[tuple[str, str]]:
    """Public items with the first sentence about them; those of tests are left out."""
    source = source.split("#[cfg(test)]")[0]
    found = []
    for lines, name in ITEM.findall(source):
        text = " ".join(comment(lines, "///").split("\n\n")[0].split())
        sentence = re.match(r".*?\.(?= |$)|.*", text)[0]
        found.append((name, markdown(sentence).replace("|", r"\|")))
    return found


def page(module: str, known: dict[str, str]) -> str:
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
    for beginning in wanted:
        match = [text for title, text in known.items() if title.startswith(beginning)]
        if not match:
            raise LookupError(
                f"ARCHITECTURE.md has no decision that begins with {beginning!r}, which "
                f"docs/internals.py wants for the module {module!r}; name another there."
            )
        lines += [match[0], ""]
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
        f"{intro}\n\nThese pages are made of the comments in `crates/core` and of the decisions in "
        f"[Architecture](../architecture.md).\n\n```{{toctree}}\n{contents}\n```\n"
    )
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
