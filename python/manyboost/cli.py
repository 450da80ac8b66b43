"""The command line: ``manyboost VERB …``.

A verb is a module of :mod:`manyboost.commands`. Errors go to standard error as one sentence; the
exit code is 0 for success, 1 for a failure, 2 for wrong usage, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import cast

from manyboost.commands.usage import Parser, UsageError, Verb, carry_out

SUCCESS, FAILURE, USAGE, INTERRUPTED = 0, 1, 2, 130

_NAMES = ["fit", "predict", "evaluate", "info", "explain", "export", "demo", "bench", "completion"]
VERBS: Mapping[str, Verb] = {
    name: cast(Verb, import_module(f"manyboost.commands.{name}")) for name in _NAMES
}


class _Closed(io.TextIOBase):
    """A standard output that is closed, which only matters if there is something to write."""

    def write(self, text: str) -> int:
        raise ValueError("Standard output is closed; redirect it to a file.")


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out a command, by default that of the process; return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    verb = words[0] if words and not words[0].startswith("-") else None
    name = "manyboost" if verb is None else f"manyboost {verb}"
    if sys.stderr is None:  # closed: nobody wants messages
        sys.stderr = io.StringIO()
    if sys.stdout is None:
        sys.stdout = _Closed()
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8")  # as files are, whatever the locale
    try:
        with warnings.catch_warnings():
            # One line for users: no file, line and category of the library.
            warnings.showwarning = lambda message, *_: print(
                f"{name}: Warning: {message}", file=sys.stderr
            )
            if verb is None:
                _general(words)
            else:
                carry_out(verb, VERBS, words[1:])
        sys.stdout.flush()
    except SystemExit as end:  # argparse exits after --help
        return end.code if isinstance(end.code, int) else SUCCESS
    except UsageError as error:
        return _complain(name, str(error), USAGE)
    except KeyboardInterrupt as error:
        return _complain(name, str(error) or "Interrupted.", INTERRUPTED)
    except BrokenPipeError:  # the reader of the output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except Exception as error:
        if os.environ.get("MANYBOOST_TRACEBACK"):
            raise
        return _complain(name, _sentence(error), FAILURE)
    return SUCCESS


def _general(words: Sequence[str]) -> None:
    """Answer a command without a verb: help or the version."""
    verbs = "\n".join(f"  {name:<12}{verb.SUMMARY}" for name, verb in VERBS.items())
    parser = Parser(
        prog="manyboost",
        usage="manyboost COMMAND …",
        description="Gradient tree boosting for many outputs.",
        epilog=f"commands:\n{verbs}\n\nSee manyboost COMMAND --help for the options of a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    if parser.parse_args(words).version:
        from manyboost import __version__

        print(f"manyboost {__version__}")
    else:
        parser.print_help()


def _complain(name: str, sentence: str, code: int) -> int:
    print(f"{name}: {sentence}", file=sys.stderr)
    return code


def _sentence(error: Exception) -> str:
    """Return an error on one line, with its type unless the message is meant for users."""
    text = " ".join(str(error).split())
    if not text:
        return f"{type(error).__name__}."
    is_for_users = isinstance(error, ValueError | OSError | RuntimeError | ImportError)
    return text if is_for_users else f"{type(error).__name__}: {text}"
