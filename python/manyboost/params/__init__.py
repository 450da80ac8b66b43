"""The parameters of the estimators: one table of what each may be and what it means.

Validation, the "Parameters" section of the docstrings and the flags of the command line come from
it.
"""

from __future__ import annotations

import inspect
import textwrap
from collections import ChainMap
from typing import Any

from manyboost.params.table import CLUSTER_PARAMS, PARAMS, STEPS, Param
from manyboost.spelling import closest

__all__ = [
    "CLUSTER_PARAMS",
    "PARAMS",
    "STEPS",
    "Param",
    "assign",
    "check_value",
    "described",
    "validate",
]

_ALL = ChainMap(PARAMS, CLUSTER_PARAMS)


def assign(estimator: Any, arguments: dict[str, Any]) -> None:
    """Set the parameters of an estimator from the arguments of its constructor."""
    for name, value in arguments.items():
        if name in _ALL:
            setattr(estimator, name, value)


def validate(estimator: Any) -> None:
    """Check every parameter of an estimator, or say which one is wrong and what it may be."""
    for name, value in estimator.get_params(deep=False).items():
        if name in _ALL:  # a subclass may have parameters of its own
            check_value(name, value)


def check_value(name: str, value: Any) -> None:
    """Check one parameter."""
    checks = _ALL[name].checks
    if not any(check.holds(value) for check in checks):
        shown = textwrap.shorten(repr(value), 60, placeholder="...")
        choices = (choice for check in checks for choice in check.choices)
        texts = [choice for choice in choices if isinstance(choice, str)]
        if isinstance(value, str) and (likely := closest(value, texts)) is not None:
            raise ValueError(f"{name}={shown} is not allowed; did you mean {likely!r}?")
        allowed = ", or ".join(check.words for check in checks)
        raise ValueError(f"{name}={shown} is not allowed; it must be {allowed}.")


def described(cls: type) -> str:
    """Return the "Parameters" section of the docstring of an estimator, from the table."""
    lines = []
    for name, parameter in inspect.signature(cls).parameters.items():
        lines.append(f"{name} : {_ALL[name].type}, default={parameter.default!r}")
        lines.append(textwrap.indent(textwrap.fill(_ALL[name].meaning, 84), "    "))
    return "\n".join(lines)
