"""Flags for the parameters of the estimators, made from the table of parameters.

``--max-iter 200`` is ``max_iter=200``. A list is written ``0.1,0.5,0.9``, a dict ``area=1,age=-1``,
a list of lists ``a,b;c,d``; ``none``, ``true`` and ``false`` are None, True and False. The checks
of the parameter decide what a text stands for.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from manyboost.commands.usage import UsageError, check_names, names

if TYPE_CHECKING:
    from manyboost.commands.data import Problem

#: Parameters that a shell cannot express, or that another option replaces.
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
        "The same as in Python. Write a list as 0.1,0.5,0.9, a dict as area=1,age=-1, a list of "
        "lists as 'a,b;c,d', and None as none. A list that begins with a minus needs an equals "
        "sign: --monotonic-cst=-1,0,1.",
    )
    for name, parameter in PARAMS.items():
        if name in WITHOUT_FLAG or name in without:
            continue
        meaning, default = parameter.meaning, str(parameter.default).lower()
        default = {"loss": "depends on the task", "verbose": "1"}.get(name, default)
        options: dict[str, Any] = {"type": partial(parse, name)}
        if name == "categorical_features":  # names, to be looked up in the file
            options = {"type": names, "action": "extend"}
            meaning = "Columns of numbers that are categories; columns of text always are."
            default = "columns of text"
        text = re.sub(r":\w+:`~?([^`]*)`", r"\1", meaning).replace("``", "")
        text = f"{text} (default: {default})".replace("%", "%%")
        options |= {"metavar": "VALUE", "default": argparse.SUPPRESS, "help": text}
        group.add_argument(flag(name), **options)


def choices(name: str) -> list[str]:
    """Return the words that a parameter may be, for completion."""
    from manyboost.params import PARAMS

    values = [value for check in PARAMS[name].checks for value in check.choices]
    return [value if isinstance(value, str) else str(value).lower() for value in values]


def parse(name: str, text: str) -> Any:
    """Return what the text of a flag stands for."""
    from manyboost.params import PARAMS, check_value

    readings, checks = list(_readings(name, text)), PARAMS[name].checks
    allowed = (value for value in readings if any(check.holds(value) for check in checks))
    value = next(allowed, readings[0])
    try:
        check_value(name, value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return value


def _readings(name: str, text: str) -> Iterator[Any]:
    """Yield everything that a text may stand for, the likeliest first."""
    # Names of features and classes are text, even if they look like numbers.
    member = str if name in ("interaction_cst", "monotonic_cst", "class_weight") else _scalar
    if name == "label_hierarchy":
        yield [tuple(map(str.strip, part.split("="))) for part in text.split(",")]
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
    try:
        return int(text) if text.lstrip("+-").isdecimal() else float(text)
    except ValueError:
        return text


def given(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters that were given."""
    from manyboost.params import PARAMS

    # Categorical columns are read as categories, so the estimator finds them by their type.
    without = {"categorical_features"}
    return {n: value for n, value in vars(arguments).items() if n in PARAMS and n not in without}


def _estimators() -> dict[str, Any]:
    from manyboost import ManyBoostClassifier, ManyBoostRegressor

    return {"classification": ManyBoostClassifier, "regression": ManyBoostRegressor}


def implied_task(parameters: Mapping[str, Any]) -> str | None:
    """Return the task that the parameters belong to, if they belong to only one."""
    from manyboost.training.losses import LABEL_LOSSES, REGRESSION_LOSSES

    loss = parameters.get("loss")
    if isinstance(loss, str):
        check_names("loss", [loss], [*REGRESSION_LOSSES, *LABEL_LOSSES])
        if loss not in LABEL_LOSSES:
            return "regression"
        if loss not in REGRESSION_LOSSES:
            return "classification"
    elif loss is not None:
        return "regression"
    own = {task: inspect.signature(each).parameters for task, each in _estimators().items()}
    fitting = [task for task, its in own.items() if its.keys() >= parameters.keys()]
    return fitting[0] if len(fitting) == 1 else None


def with_classes(parameters: Mapping[str, Any], problem: Problem) -> dict[str, Any]:
    """Return parameters with classes as keys of ``class_weight``, in place of their texts."""
    result, weights = dict(parameters), parameters.get("class_weight")
    if isinstance(weights, Mapping):
        named = {str(each): each for each in problem.classes}
        result["class_weight"] = {named.get(key, key): each for key, each in weights.items()}
    return result


def estimator_for(kind: str, parameters: Mapping[str, Any]) -> Any:
    """Return an estimator for a kind of outputs; parameters of the other one are refused."""
    tasks = "regression", "classification"
    task, other = tasks if kind == "regression" else tasks[::-1]
    estimator = _estimators()[task]
    own = inspect.signature(estimator).parameters
    if foreign := [name for name in parameters if name not in own]:
        what = f"{flag(foreign[0])} is for {other}, but the task is {task}"
        raise UsageError(f"{what}; remove it, or pass --task {other}.")
    return estimator(**parameters)
