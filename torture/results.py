"""The stored figures: one JSON file for each area."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.machine import library

from torture.figures import Figure

FOLDER = Path(__file__).resolve().parent / "results"
LIBRARIES = ("numpy", "scipy", "scikit-learn")


def store(
    folder: Path, name: str, figures: list[Figure], seconds: float, long: bool, seed: int
) -> bool:
    """Write an area's file, unless it holds a long run and this was a short one."""
    file = folder / f"{name}.json"
    if not long and file.is_file() and json.loads(file.read_text())["long"]:
        return False
    content = {
        "area": name,
        "long": long,
        "seed": seed,
        "date": datetime.now(timezone.utc).date().isoformat(),
        "seconds": round(seconds, 1),
        "versions": versions(),
        "figures": [asdict(figure) for figure in figures],
    }
    folder.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    new.replace(file)
    return True


def versions() -> dict[str, str]:
    """Machine and libraries, as they are stored beside the figures."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": str(len(os.sched_getaffinity(0))),
        **{name: version(name) for name in LIBRARIES},
        "manyboost": str(library("manyboost")).removeprefix("manyboost "),
    }


def version(library: str) -> str:
    """The installed version of a library."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "not installed"


def read_figures(file: Path) -> list[Figure]:
    """The figures that an area's process wrote."""
    return [Figure(**figure) for figure in json.loads(file.read_text())]


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """All stored files, by area."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))}
