"""``manyboost completion``: a script that lets a shell complete verbs, options and their values."""

from __future__ import annotations

import argparse

from manyboost.commands.output import show
from manyboost.commands.parameters import choices
from manyboost.commands.usage import Parser
from manyboost.extras import import_extra

SUMMARY = "Print a script that lets bash, zsh or fish complete commands."

_EPILOG = """\
to use it:
  bash   eval "$(manyboost completion bash)"                       in ~/.bashrc
  zsh    eval "$(manyboost completion zsh)"                        in ~/.zshrc, after compinit
  fish   manyboost completion fish > ~/.config/fish/completions/manyboost.fish
"""


#: Parameters whose values are names: of columns, of a file.
_OF_FILES = ("categorical_features", "checkpoint")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")


def run(arguments: argparse.Namespace) -> None:
    from manyboost.params import PARAMS

    shtab = import_extra("shtab", "Completion", "completion")
    whole = Parser(prog="manyboost")
    whole.add_argument("--version", action="store_true", help="show the version")
    verbs = whole.add_subparsers()
    for name, verb in arguments.verbs.items():
        parser = verbs.add_parser(name, help=verb.SUMMARY)
        verb.configure(parser)
        for action in parser._actions:
            # Help is a page long for some parameters; a shell shows one line.
            action.help = (action.help or "").partition(".")[0].partition(" (default")[0]
            if action.dest in PARAMS and action.dest not in _OF_FILES:
                action.choices = choices(action.dest) or None
            elif action.choices is None and action.nargs != 0:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    show(shtab.complete(whole, arguments.shell))
