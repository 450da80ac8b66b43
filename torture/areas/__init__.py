"""The areas, one module each, in the order in which the battery runs and the page shows them.

A module has a ``TITLE``, a ``PROMISE`` of one sentence and ``run(long, seed)``, which returns a
list of figures; where the usual limit does not suit it, ``SECONDS``, after which it is ended.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

ORDER = (
    "contract",
    "determinism",
    "checkpoint",
    "interrupt",
    "processes",
    "inputs",
    "parameters",
    "model_files",
    "memory",
    "native",
    "numerical",
    "load",
    "coverage",
)


def names() -> list[str]:
    """The names of the areas."""
    here = {file.stem for file in Path(__file__).parent.glob("[a-z]*.py")}
    return [name for name in ORDER if name in here] + sorted(here - set(ORDER))


def find(name: str) -> ModuleType:
    """The module of an area."""
    return importlib.import_module(f"torture.areas.{name}")
