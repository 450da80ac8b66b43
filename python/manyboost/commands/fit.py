"""``manyboost fit``: a model of a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from manyboost.commands import Interrupted, UsageError, count, tell
from manyboost.commands.data import (
    Problem,
    add_file,
    add_ignore,
    add_targets,
    kind_of,
    load_model,
    outputs_like,
    read_problem,
    read_rows,
)
from manyboost.commands.parameters import add_parameters, estimator_for, flag, given, implied_task

SUMMARY = "Train a model on a file and write it to another."


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s FILE --target NAME… -o MODEL [options]"
    add_file(parser, "what to learn from", "train")
    add_targets(parser, "those that the file itself declares")
    add_ignore(parser)
    add = parser.add_argument
    add("-o", "--output", metavar="MODEL", help="file to write the model to, such as model.mb")
    add(
        "--task",
        choices=("classification", "regression"),
        help="what to make of the outputs (default: text and 0/1 are classes, numbers are numbers)",
    )
    add(
        "--resume",
        metavar="MODEL",
        help="go on with this model, up to --max-iter rounds, on the same outputs",
    )
    add("--quiet", action="store_true", help="say nothing unless something goes wrong")
    add_parameters(parser)


def run(arguments: argparse.Namespace) -> None:
    """Train, then write the model."""
    output = _output(arguments)
    parameters = given(arguments)
    parameters.setdefault("verbose", 0 if arguments.quiet else 1)
    if arguments.resume is None:
        problem = read_problem(arguments, implied_task(parameters))
        model = estimator_for(problem.kind, parameters)
    else:
        model = load_model(arguments.resume)
        problem = _problem_like(arguments, model)
        try:
            model.set_params(warm_start=True, **parameters)
        except ValueError as error:
            raise UsageError(" ".join(str(error).split())) from None
    if not arguments.quiet:
        tell(problem.description)
    try:
        model.fit(problem.X, problem.Y)
    except KeyboardInterrupt:
        if not hasattr(model, "n_iter_"):
            raise Interrupted("Interrupted before the first round; no model was written.") from None
        _save(model, output)
        raise Interrupted(
            f"Interrupted; the model of the {count(model.n_iter_, 'round')} so far is in {output}: "
            f"--resume {output} goes on from there."
        ) from None
    _save(model, output)
    if not arguments.quiet:
        size = output.stat().st_size
        tell(f"{output}: {count(model.n_iter_, 'round')}, {count(size, 'byte')}.")


def _output(arguments: argparse.Namespace) -> Path:
    if arguments.output is None or arguments.output == "-":
        raise UsageError("Name the file to write the model to, with -o model.mb.")
    output = Path(arguments.output)
    if not output.parent.is_dir():
        raise UsageError(f"There is no folder {str(output.parent)!r} to write the model to.")
    return output


def _save(model: Any, output: Path) -> None:
    # How the model was shown and resumed is no part of it.
    model.set_params(verbose=0, warm_start=False)
    model.save(output)


def _problem_like(arguments: argparse.Namespace, model: Any) -> Problem:
    """Read a file with the features and outputs of a model."""
    from manyboost.datasets.readers.columns import features_of, stack

    for option in ("task", "categorical_features"):
        if getattr(arguments, option, None) is not None:
            raise UsageError(f"{flag(option)} is settled by the model of --resume; leave it out.")
    rows = read_rows(arguments, model, with_outputs=True)
    parts = list(rows.blocks)
    if not parts:
        raise ValueError(f"{rows.file} has no rows; a model needs some.")
    X, Y = (stack([pair[k] for pair in parts]) for k in (0, 1))
    outputs = outputs_like(model, Y)
    return Problem(rows.file, features_of(X), outputs, kind_of(model), rows.part)
