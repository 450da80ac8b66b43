"""The command line: ``manyboost VERB …``.

A verb is a module of :mod:`manyboost.commands`. Errors go to standard error as one sentence; the
exit code is 0 for success, 1 for a failure, 2 for wrong usage, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn, Protocol

from manyboost.commands import (
    UsageError,
    bench,
    completion,
    demo,
    evaluate,
    explain,
    export,
    fit,
    info,
    nearest,
    predict,
)

SUCCESS, FAILURE, USAGE, INTERRUPTED = 0, 1, 2, 130


class Verb(Protocol):
    """What a module of :mod:`manyboost.commands` offers."""

    #: One line for the list of verbs.
    SUMMARY: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""

    def run(self, arguments: argparse.Namespace) -> None:
        """Do it."""


VERBS: Mapping[str, Verb] = {
    "fit": fit,
    "predict": predict,
    "evaluate": evaluate,
    "info": info,
    "explain": explain,
    "export": export,
    "demo": demo,
    "bench": bench,
    "completion": completion,
}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments."""
        raise UsageError(f"{message.rstrip('.')}; see {self.prog} --help.")


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out a command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; by default those of the process.

    Returns
    -------
    code : int
        The exit code.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    verb = arguments[0] if arguments and not arguments[0].startswith("-") else None
    name = "manyboost" if verb is None else f"manyboost {verb}"
    try:
        if verb is None:
            _general(arguments)
        else:
            carry_out(verb, arguments[1:])
        sys.stdout.flush()
    except SystemExit as end:  # argparse ends so after --help and --version
        return end.code if isinstance(end.code, int) else SUCCESS
    except UsageError as error:
        return _complain(name, str(error), USAGE)
    except KeyboardInterrupt as error:
        return _complain(name, str(error) or "Interrupted.", INTERRUPTED)
    except BrokenPipeError:  # whoever read the output has gone: nothing to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except Exception as error:
        if os.environ.get("MANYBOOST_TRACEBACK"):
            raise
        return _complain(name, _sentence(error), FAILURE)
    return SUCCESS


def _general(arguments: Sequence[str]) -> None:
    """What is asked without a verb: help or the version."""
    verbs = "\n".join(f"  {verb:<12}{module.SUMMARY}" for verb, module in VERBS.items())
    parser = Parser(
        prog="manyboost",
        usage="manyboost VERB …",
        description="Gradient tree boosting for many outputs.",
        epilog=f"verbs:\n{verbs}\n\nmanyboost VERB --help tells more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    if parser.parse_args(arguments).version:
        from manyboost import __version__

        print(f"manyboost {__version__}")
    else:
        parser.print_help()


def parser_of(verb: str) -> Parser:
    """Return the parser of a verb."""
    module = VERBS[verb]
    parser = Parser(prog=f"manyboost {verb}", description=module.SUMMARY, allow_abbrev=False)
    module.configure(parser)
    return parser


def carry_out(verb: str, arguments: Sequence[str]) -> None:
    """Do what a verb stands for."""
    if verb not in VERBS:
        raise UsageError(f"There is no verb {verb!r}; {nearest(verb, VERBS)}")
    parser = parser_of(verb)
    # Intermixed: names may stand before and after options.
    options, unknown = parser.parse_known_intermixed_args(arguments)
    if unknown:
        if not unknown[0].startswith("-"):
            raise UsageError(f"{unknown[0]!r} is one word too many; see {parser.prog} --help.")
        flags = [name for action in parser._actions for name in action.option_strings]
        raise UsageError(f"There is no option {unknown[0]!r}; {nearest(unknown[0], flags)}")
    VERBS[verb].run(options)


def _complain(name: str, sentence: str, code: int) -> int:
    print(f"{name}: {sentence}", file=sys.stderr)
    return code


def _sentence(error: Exception) -> str:
    """An error on one line; its type too, unless it was raised to be read."""
    text = " ".join(str(error).split())
    if not text:
        return f"{type(error).__name__}."
    spoken = isinstance(error, ValueError | OSError | RuntimeError | ImportError)
    return text if spoken else f"{type(error).__name__}: {text}"
