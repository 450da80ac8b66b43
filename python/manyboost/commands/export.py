"""``manyboost export``: a model for other runtimes."""

from __future__ import annotations

import argparse
from pathlib import Path

from manyboost.commands import UsageError, check_output, count, tell
from manyboost.commands.data import load_model

SUMMARY = "Turn a model into ONNX or treelite."

#: Formats, the methods of estimators that make them, and the endings of their files.
METHODS = {"onnx": "to_onnx", "treelite": "to_treelite"}
ENDINGS = {".onnx": "onnx", ".tl": "treelite", ".treelite": "treelite"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="file of the model")
    add("-o", "--output", metavar="FILE", help="file to write, such as model.onnx or model.tl")
    add("--to", choices=METHODS, help="format (default: as the ending of FILE says)")
    add("--quiet", action="store_true", help="say nothing unless something goes wrong")


def run(arguments: argparse.Namespace) -> None:
    """Write the exported model."""
    if arguments.output is None:
        raise UsageError("Name the file to write, with -o model.onnx or -o model.tl.")
    output = Path(arguments.output)
    format_ = arguments.to or ENDINGS.get(output.suffix.lower())
    if format_ is None:
        raise UsageError(
            f"The name {output.name!r} does not tell the format; end it with "
            f"{', '.join(ENDINGS)}, or pass --to."
        )
    check_output(arguments.output, arguments.model)
    model = load_model(arguments.model)
    if not hasattr(model, METHODS[format_]):
        raise UsageError(f"This version of manyboost does not export to {format_}.")
    if format_ == "onnx":
        model.to_onnx(output)
    else:
        from manyboost.persistence.files import replacing

        with replacing(output) as file:
            file.write(model.to_treelite().serialize_bytes())
    if not arguments.quiet:
        tell(f"{output}: {count(output.stat().st_size, 'byte')}.")
