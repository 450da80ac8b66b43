"""Which generated pages are of this build, which are older, and what makes them anew.

    python -m benchmarks.pages

A build is known by a digest of its sources, which pages name beside their figures. Decisions are
left out: they record what was measured when they were made.
"""

import re
from pathlib import Path

from benchmarks import machine

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "docs/benchmarks.md": "make bench",
    "docs/contest.md": "make bench-contest",
    "docs/data-figures.md": "make bench-data",
    "docs/folds.md": "python -m benchmarks.folds",
    "docs/intervals.md": "make bench-intervals",
    "docs/labels.md": "make bench-labels",
    "docs/profile.md": "make profile",
    "docs/shap.md": "python -m benchmarks.shap",
    "docs/study.md": "make bench-study",
    "docs/torture.md": "make torture",
    "docs/reproduction/README.md": "make reproduce",
    "docs/guide/deploy.md": "make bench-latency",
    "docs/guide/forecasting.md": "make bench-forecasting",
    "docs/guide/scaling-cost.md": "make bench-distributed",
    "docs/guide/scaling-out.md": "make bench-distributed",
    "docs/guide/scaling-out-of-core.md": "python -m benchmarks.out_of_core",
    "docs/guide/tuning.md": "make bench-tuning",
    "docs/guide/very-many-labels.md": "python -m benchmarks.many_labels",
}
_BUILD = re.compile(r"manyboost (\d+(?:\.\w+)*)(?: \(([0-9a-f]{8})\))?")


def builds(text: str) -> list[str]:
    """The builds that a page names, each once."""
    found = (
        f"{version} ({digest})" if digest else version for version, digest in _BUILD.findall(text)
    )
    return list(dict.fromkeys(found))


def state(named: list[str], current: str) -> str:
    """Whether figures of some builds are those of the current one."""
    if not named:
        return "names no build"
    older = [build for build in named if build != current]
    return f"older: {', '.join(older)}" if older else "of this build"


def main() -> None:
    current = str(machine.library("manyboost")).removeprefix("manyboost ")
    print(f"this build: {current}")
    found = {page: state(builds((ROOT / page).read_text()), current) for page in PAGES}
    widths = max(map(len, found)), max(map(len, found.values()))
    for page, known in found.items():
        command = "" if known == "of this build" else PAGES[page]
        print(f"{page:{widths[0]}}  {known:{widths[1]}}  {command}".rstrip())


if __name__ == "__main__":
    main()
