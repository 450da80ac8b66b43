"""Flags for the parameters of the estimators, made of the table of parameters.

``--max-iter 200`` is ``max_iter=200``. A list is written ``0.1,0.5,0.9``, a dict ``area=1,age=-1``,
lists of lists ``a,b;c,d``; ``none``, ``true`` and ``false`` are None, True and False. What a text
stands for is whatever the parameter's own checks allow.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from manyboost.commands import UsageError, names, nearest

if TYPE_CHECKING:
    from manyboost.datasets.readers.columns import Kind

#: Parameters that a shell cannot give, or that other options stand for.
WITHOUT_FLAG = ("estimator", "callbacks", "warm_start")

_WORDS: Mapping[str, Any] = {"none": None, "true": True, "false": False}


def flag(name: str) -> str:
    """Return the flag of a parameter."""
    return f"--{name.replace('_', '-')}"


def add_parameters(parser: argparse.ArgumentParser, *without: str) -> None:
    """Declare a flag for each parameter."""
    from manyboost.params import PARAMS

    group = parser.add_argument_group(
        "parameters of the model",
        "As those of the estimators in Python. Write a list as 0.1,0.5,0.9, a dict as "
        "area=1,age=-1, lists of lists as 'a,b;c,d', and none for None.",
    )
    for name, parameter in PARAMS.items():
        if name in WITHOUT_FLAG or name in without:
            continue
        read: Callable[[str], Any] = partial(parse, name)
        # Names, which the file is asked for.
        options: dict[str, Any] = {"type": read}
        if name == "categorical_features":
            options = {"type": names, "action": "extend"}
        group.add_argument(
            flag(name),
            metavar="VALUE",
            default=argparse.SUPPRESS,
            help=_help(name, parameter.meaning, parameter.default),
            **options,
        )


def _help(name: str, meaning: str, default: Any) -> str:
    if name == "categorical_features":
        meaning = "Features that hold categories although they look like numbers; text always does."
        default = "those of text"
    if name == "verbose":
        default = 1
    text = re.sub(r":\w+:`~?([^`]*)`", r"\1", meaning).replace("``", "")
    shown = "as the task asks" if name == "loss" else str(default).lower()
    return f"{text} (default: {shown})".replace("%", "%%")


def values_of(name: str) -> list[str]:
    """Return the words that a parameter may be, for completion."""
    from manyboost.params import PARAMS

    checks = " ".join(check.words for check in PARAMS[name].checks)
    words = re.findall(r"'(\w+)'", checks)
    words += ["none"] if "None" in checks else []
    words += ["true", "false"] if "True" in checks else []
    return words


def parse(name: str, text: str) -> Any:
    """Return what the text of a flag stands for."""
    from manyboost.params import PARAMS, check_value

    readings = list(_readings(name, text))
    for value in readings:
        if any(check.holds(value) for check in PARAMS[name].checks):
            return value
    try:
        check_value(name, readings[0])
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    raise AssertionError(f"{name}={text!r} is refused by no check.")


def _readings(name: str, text: str) -> Iterator[Any]:
    """Yield all that a text may stand for, the likeliest first."""
    # Names of features are text, even if they look like numbers.
    member = str if name in ("interaction_cst", "monotonic_cst") else _scalar
    if "=" in text:
        pairs = [part.partition("=") for part in text.split(",")]
        yield {member(key.strip()): _scalar(value.strip()) for key, _, value in pairs}
    if name == "interaction_cst" and ("," in text or ";" in text):
        yield [[each.strip() for each in group.split(",")] for group in text.split(";")]
    if "," in text:
        yield [_scalar(part.strip()) for part in text.split(",")]
    yield _scalar(text)
    yield [_scalar(text)]


def _scalar(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def given(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters that were given."""
    from manyboost.params import PARAMS

    # Columns are read as categories, so their type says it.
    found = {name: value for name, value in vars(arguments).items() if name in PARAMS}
    return {name: value for name, value in found.items() if name != "categorical_features"}


def implied_task(parameters: Mapping[str, Any]) -> str | None:
    """Return the task that parameters belong to, if they are for one alone."""
    from manyboost import ManyBoostClassifier, ManyBoostRegressor
    from manyboost.training.losses import LABEL_LOSSES, REGRESSION_LOSSES

    loss = parameters.get("loss")
    if isinstance(loss, str):
        if loss not in {*LABEL_LOSSES, *REGRESSION_LOSSES}:
            known = dict.fromkeys([*REGRESSION_LOSSES, *LABEL_LOSSES])
            raise UsageError(f"There is no loss {loss!r}; {nearest(loss, known)}")
        if loss not in LABEL_LOSSES:
            return "regression"
        if loss not in REGRESSION_LOSSES:
            return "classification"
    elif loss is not None:
        return "regression"
    for task, ours, others in (
        ("regression", ManyBoostRegressor, ManyBoostClassifier),
        ("classification", ManyBoostClassifier, ManyBoostRegressor),
    ):
        alone = set(inspect.signature(ours).parameters) - set(inspect.signature(others).parameters)
        if alone & set(parameters):
            return task
    return None


def estimator_for(kind: Kind, parameters: Mapping[str, Any]) -> Any:
    """Return an estimator for outputs of a kind; parameters of the other one are refused."""
    from manyboost import ManyBoostClassifier, ManyBoostRegressor

    regression = kind == "regression"
    estimator = ManyBoostRegressor if regression else ManyBoostClassifier
    known = inspect.signature(estimator).parameters
    for name in parameters:
        if name not in known:
            tasks = (
                ("classification", "regression") if regression else ("regression", "classification")
            )
            raise UsageError(
                f"{flag(name)} is for {tasks[0]}, but the task is {tasks[1]}; leave it out, or "
                "choose the other with --task."
            )
    return estimator(**parameters)
