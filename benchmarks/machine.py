"""Where a run took place, and on which versions of what."""

import hashlib
import os
import platform
import re
from collections.abc import Sequence
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import Any

DISTRIBUTIONS = {
    "manyboost": "manyboost",
    "xgboost": "xgboost",
    "lightgbm": "lightgbm",
    "catboost": "catboost",
    "hessboost": "hessboost",
    "mlrl": "mlrl-boomer",
    "sklearn": "scikit-learn",
    "numpy": "numpy",
    "scipy": "scipy",
}


def describe(also: Sequence[str] = ()) -> dict[str, Any]:
    """The machine and the versions, of other libraries too, as they are stored with the results."""
    return {
        "cpu": cpu(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "libraries": [name for name in map(library, (*DISTRIBUTIONS, *also)) if name],
        "notes": past_their_python(),
    }


def cpu() -> str:
    """The processor's name and the vector instructions it has."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    facts = {key.strip(): value.strip() for key, value in facts.items()}
    flags = facts.get("flags", "").split()
    vector = [name for flag, name in (("avx2", "AVX2"), ("avx512f", "AVX-512")) if flag in flags]
    return " · ".join([facts.get("model name", platform.machine()), *vector])


def place(facts: dict[str, Any]) -> dict[str, Any]:
    """The part of a description that no installation changes."""
    return {key: value for key, value in facts.items() if key not in ("libraries", "notes")}


def versions(facts: dict[str, Any], also: Sequence[str] = ()) -> str:
    """The build of manyboost that a description names, and the versions of others."""
    wanted = ("manyboost", *also)
    return ", ".join(name for name in facts["libraries"] if name.split()[0] in wanted)


@cache
def library(name: str) -> str | None:
    """Name and version of an installed library; manyboost's with a digest of its files.

    A rebuilt manyboost keeps its version number: the digest is what makes its old records stale.
    """
    try:
        version = f"{name} {metadata.version(DISTRIBUTIONS.get(name, name))}"
    except metadata.PackageNotFoundError:
        return None
    if name != "manyboost":
        return version
    spec = util.find_spec(name)
    return f"{version} ({digest(Path(spec.origin).parent if spec and spec.origin else None)})"


def digest(package: Path | None) -> str:
    """Of the sources of a package: the same in each environment that they are built in."""
    files = sorted(package.rglob("*.py")) if package else []
    parts = [file.read_bytes() for file in files]
    for library in sorted(package.glob("_core*")) if package else []:
        content = library.read_bytes() if library.suffix in (".so", ".pyd") else b""
        # The extension names its sources; what the compiler makes of them depends on folders.
        named = re.search(rb"sources:[0-9a-f]{16}", content)
        parts.append(named.group() if named else content)
    return hashlib.sha256(b"".join(parts)).hexdigest()[:8]


def past_their_python() -> list[str]:
    """The libraries that ask for another Python than this one, and were installed all the same."""
    from packaging.specifiers import SpecifierSet

    python = platform.python_version()
    notes = []
    for name, distribution in DISTRIBUTIONS.items():
        try:
            wanted = metadata.metadata(distribution).get("Requires-Python")
        except metadata.PackageNotFoundError:
            continue
        if wanted and not SpecifierSet(wanted).contains(python, prereleases=True):
            notes.append(
                f"{library(name)} asks for Python {wanted}; installed past that check on {python}"
            )
    return notes
