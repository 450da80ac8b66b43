"""``manyboost info``: the contents of a model file."""

from __future__ import annotations

import argparse

from manyboost.commands.data import load_model
from manyboost.commands.output import as_json, show

SUMMARY = "Describe a model file."


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="file of the model")
    parser.add_argument("--json", action="store_true", help="print JSON, with all parameters")


def run(arguments: argparse.Namespace) -> None:
    info = load_model(arguments.model).info()
    show(as_json(info) if arguments.json else str(info))
