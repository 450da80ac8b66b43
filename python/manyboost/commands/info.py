"""``manyboost info``: what a model file holds."""

from __future__ import annotations

import argparse
import json

from manyboost.commands import show
from manyboost.commands.data import load_model

SUMMARY = "Tell what a model file holds."


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", metavar="MODEL", help="file of the model")
    parser.add_argument("--json", action="store_true", help="as JSON, with all parameters")


def run(arguments: argparse.Namespace) -> None:
    """Show the facts."""
    info = load_model(arguments.model).info()
    # What JSON has no word for is shown as Python writes it.
    show(json.dumps(info, indent=2, default=_plain) if arguments.json else str(info))


def _plain(value: object) -> object:
    return value.tolist() if hasattr(value, "tolist") else repr(value)
