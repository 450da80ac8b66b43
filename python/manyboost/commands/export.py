"""``manyboost export``: write a model for other runtimes."""

from __future__ import annotations

import argparse
from pathlib import Path

from manyboost.commands.data import load_model
from manyboost.commands.output import check_output, count, tell
from manyboost.commands.usage import UsageError

SUMMARY = "Convert a model to ONNX or treelite."

#: Formats by the ending of the file.
ENDINGS = {".onnx": "onnx", ".tl": "treelite", ".treelite": "treelite"}


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL", help="file of the model")
    add("-o", "--output", metavar="FILE", help="file to write, such as model.onnx or model.tl")
    add("--to", choices=("onnx", "treelite"), help="format (default: from the ending of FILE)")
    add("--quiet", action="store_true", help="print nothing but errors")


def run(arguments: argparse.Namespace) -> None:
    if arguments.output is None or arguments.output == "-":
        raise UsageError("Name the file to write, with -o model.onnx or -o model.tl.")
    output = Path(arguments.output)
    format_ = arguments.to or ENDINGS.get(output.suffix.lower())
    if format_ is None:
        problem = f"The format of {output.name!r} is unknown"
        raise UsageError(f"{problem}; pass --to, or use one of the endings {', '.join(ENDINGS)}.")
    check_output(arguments.output, arguments.model)
    model = load_model(arguments.model)
    if format_ == "onnx":
        model.to_onnx(output)
    else:
        from manyboost.persistence.files import replacing

        with replacing(output) as file:
            file.write(model.to_treelite().serialize_bytes())
    tell(f"Wrote {output}: {count(output.stat().st_size, 'byte')}.", quiet=arguments.quiet)
