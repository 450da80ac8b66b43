"""Packages that only some features need, and that the extras of manyboost install."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_extra(module: str, feature: str, extra: str) -> Any:
    """Import a module for a feature, or say how to install its package."""
    try:
        return import_module(module)
    except ImportError:
        problem = f"{feature} needs the package {module.partition('.')[0]}"
        remedy = f"install it with `pip install 'manyboost[{extra}]'`."
        raise ImportError(f"{problem}; {remedy}") from None
