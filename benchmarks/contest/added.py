"""Contestants from a file that a user names."""

import hashlib
import importlib.util
import sys
from pathlib import Path

from benchmarks.contest.contestants import CONTESTANTS
from benchmarks.contestants.base import Contestant
from benchmarks.result_files import Refused


def read(file: Path) -> dict[str, type[Contestant]]:
    """The contestants that a file defines, by name.

    Raises
    ------
    Refused
        When there is no file or no contestant, or when a name is taken.
    """
    if not file.is_file():
        raise Refused(f"{file} is not a file.")
    module_name = f"added_{file.stem}"  # pickled models name it
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise Refused(f"{file} is not a Python file: its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    found: dict[str, type[Contestant]] = {}
    for kind in vars(module).values():
        if is_contestant(kind) and kind.__module__ == module_name:
            if kind.name in (*CONTESTANTS, *found):
                raise Refused(f"{file} names a contestant {kind.name!r}, and this name is taken.")
            found[kind.name] = kind
    if not found:
        raise Refused(
            f"{file} defines no contestant: a subclass of benchmarks.contest.Contestant with "
            "name, library, fit and predict."
        )
    return found


def is_contestant(kind: object) -> bool:
    """Whether it is a class with all that a contestant must say."""
    if not (isinstance(kind, type) and issubclass(kind, Contestant)):
        return False
    says = all(hasattr(kind, word) for word in ("name", "library"))
    return says and all(
        getattr(kind, method) is not getattr(Contestant, method) for method in ("fit", "predict")
    )


def digest(file: Path) -> str:
    """What tells one state of a file from another."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:8]
