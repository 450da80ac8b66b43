"""Parsers of verbs, types of arguments, and the errors of a command that was not understood."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn, Protocol

from manyboost.spelling import nearest


class UsageError(Exception):
    """The command was not understood; the message says what to write instead."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a message that says how to continue."""


class Verb(Protocol):
    """What a module of :mod:`manyboost.commands` offers."""

    SUMMARY: str  # one line for the list of verbs

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""

    def run(self, arguments: argparse.Namespace) -> None:
        """Carry out the command."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments."""
        if message.endswith("?"):  # a suggestion is enough
            raise UsageError(message)
        raise UsageError(f"{message.rstrip('.')}; see {self.prog} --help.")


def parser_for(name: str, verb: Verb) -> Parser:
    """Return the parser of a verb."""
    parser = Parser(prog=f"manyboost {name}", description=verb.SUMMARY, allow_abbrev=False)
    verb.configure(parser)
    return parser


def carry_out(name: str, verbs: Mapping[str, Verb], words: Sequence[str]) -> None:
    """Parse the words after a verb, and run it; its arguments tell it about all ``verbs``."""
    check_names("verb", [name], verbs)
    parser = parser_for(name, verbs[name])
    # Intermixed: file names may come before and after options.
    arguments, unknown = parser.parse_known_intermixed_args(words)
    if unknown:
        if not unknown[0].startswith("-"):
            raise UsageError(f"Unexpected argument {unknown[0]!r}; see {parser.prog} --help.")
        _check_known_elsewhere(unknown[0])
        check_names("option", unknown, [f for a in parser._actions for f in a.option_strings])
    arguments.verbs = verbs
    verbs[name].run(arguments)


def _check_known_elsewhere(option: str) -> None:
    """Refuse an option that is a parameter of other libraries, and say what it is here."""
    from manyboost.estimators.elsewhere import CONSTRUCTOR
    from manyboost.params import PARAMS

    name = option.split("=")[0].lstrip("-").replace("-", "_")
    if name in CONSTRUCTOR:
        here = CONSTRUCTOR[name][0]
        here = f"--{here.replace('_', '-')}" if here in PARAMS else here
        raise UsageError(f"There is no option {option!r}; in manyboost this is {here}.")


def check_names(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse an unknown name, and suggest a known one."""
    known = list(dict.fromkeys(known))
    for name in names:
        if name not in known:
            raise UsageError(f"There is no {kind} {name!r}; {nearest(name, known)}")


def add_names(parser: argparse.ArgumentParser, option: str, meaning: str) -> None:
    """Declare an option that takes several names and may be repeated."""
    parser.add_argument(option, nargs="+", action="extend", metavar="NAME", help=meaning)


def names(text: str) -> list[str]:
    """Names separated by commas."""
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        raise argparse.ArgumentTypeError("give at least one name")
    return found


def positive_int(text: str) -> int:
    """An integer above zero."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def fraction(text: str) -> float:
    """A number between 0 and 1, both excluded."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1")
    return number
