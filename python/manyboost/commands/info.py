"""``manyboost info``: the contents of a model file."""

from __future__ import annotations

import argparse
import json

from manyboost.commands.data import load_model
from manyboost.commands.output import show

SUMMARY = "Describe a model file."


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="file of the model")
    parser.add_argument("--json", action="store_true", help="print JSON, with all parameters")


def run(arguments: argparse.Namespace) -> None:
    info = load_model(arguments.model).info()
    # Values without a form in JSON are shown as in Python.
    show(json.dumps(info, indent=2, default=_plain) if arguments.json else str(info))


def _plain(value: object) -> object:
    return value.tolist() if hasattr(value, "tolist") else repr(value)
