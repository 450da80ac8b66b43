"""Files of results of one build: another build begins anew, so that no page mixes two."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.progress import say


def opened(
    file: Path, *, also: Sequence[str] = (), timed: bool = False, **empty: Any
) -> dict[str, Any]:
    """The results of this build and of these other libraries, or empty ones.

    Where times are compared (``timed``), those of another machine do not count either.
    """
    here = machine.describe(also)
    stored = read(file, **empty)
    made_on = stored.get("machine")
    if made_on is not None and not (
        machine.versions(made_on, also) == machine.versions(here, also)
        and (not timed or machine.place(made_on) == machine.place(here))
    ):
        where = "" if not timed else f" on {made_on.get('cpu', 'a machine that is not named')}"
        made_with = machine.versions(made_on, also)
        say(f"{file.name} is of {made_with}{where}: all of it is measured anew")
        stored = dict(empty)
    return {**stored, "machine": here}


def read(file: Path, **empty: Any) -> dict[str, Any]:
    """The results as they are stored, of whatever build: for pages."""
    return dict(json.loads(file.read_text())) if file.is_file() else dict(empty)


def save(file: Path, results: dict[str, Any]) -> None:
    replace(file, json.dumps(results, indent=1, ensure_ascii=False) + "\n")


def replace(file: Path, text: str) -> None:
    """Write a file at once or not at all: a run may be ended at any time."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(file)
