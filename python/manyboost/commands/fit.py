"""``manyboost fit``: train a model on a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from manyboost.commands import data
from manyboost.commands.output import check_output, count, tell
from manyboost.commands.parameters import (
    add_parameters,
    estimator_for,
    flag,
    given,
    implied_task,
    with_classes,
)
from manyboost.commands.usage import Interrupted, UsageError

SUMMARY = "Train a model on a file."


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s FILE --target NAME… -o MODEL [options]"
    data.add_problem(parser)
    add = parser.add_argument
    add("-o", "--output", metavar="MODEL", help="file to write the model to, such as model.mb")
    add("--resume", metavar="MODEL", help="continue to train this model, up to --max-iter rounds")
    add("--quiet", action="store_true", help="print nothing but errors")
    add_parameters(parser)


def run(arguments: argparse.Namespace) -> None:
    from manyboost.distributed import Alone
    from manyboost.distributed.mpi import MPIComm, launched_ranks

    if arguments.output is None or arguments.output == "-":
        raise UsageError("Name the file to write the model to, with -o model.mb.")
    output = Path(arguments.output)
    check_output(arguments.output, arguments.file)
    # The processes that share the fit: those of mpiexec, or this one alone.
    comm: Any = MPIComm() if launched_ranks() > 1 else Alone()
    quiet = arguments.quiet or comm.rank > 0
    parameters = {"verbose": 0 if quiet else 1} | given(arguments)
    if arguments.resume is None:
        problem = data.read_problem(arguments, implied_task(parameters))
        model = estimator_for(problem.kind, with_classes(parameters, problem))
    else:
        model = data.load_model(arguments.resume)
        problem = _problem_like(arguments, model)
        try:
            model.set_params(warm_start=True, **with_classes(parameters, problem))
        except ValueError as error:
            raise UsageError(" ".join(str(error).split())) from None
    tell(problem.description, quiet=quiet)
    try:
        _fit(model, problem, comm)
        # For `info`: the file of the model holds nothing of these.
        model._left_out = sorted({*model._left_out, *problem.left_out})
    except KeyboardInterrupt:
        if not hasattr(model, "n_iter_"):
            raise Interrupted("Interrupted before there was a model; none was written.") from None
        _save(model, output)
        kept = f"{output} holds the model after {count(model.n_iter_, 'round')}"
        raise Interrupted(f"Interrupted; {kept}, pass --resume {output} to continue.") from None
    if comm.rank == 0:
        _save(model, output)
        what = f"{count(model.n_iter_, 'round')}, {count(output.stat().st_size, 'byte')}"
        tell(f"Wrote {output}: {what}.", quiet=quiet)


def _fit(model: Any, problem: data.Problem, comm: Any) -> None:
    """Fit a model; every rank has read the whole file and uses its share of the rows."""
    if comm.size == 1:
        model.fit(problem.X, problem.Y)
        return
    import numpy as np

    from manyboost.distributed import fit_rank

    rows = np.array_split(np.arange(len(problem.X)), comm.size)[comm.rank]
    fit_rank(model, comm, problem.X.take(rows), problem.Y.take(rows))


def _save(model: Any, output: Path) -> None:
    model.set_params(verbose=0, warm_start=False)  # settings of this command, not of the model
    model.save(output)


def _problem_like(arguments: argparse.Namespace, model: Any) -> data.Problem:
    """Read a file with the features and outputs of a model."""
    from manyboost.datasets.readers.columns import features_of, whole

    for option in ("task", "categorical_features"):
        if getattr(arguments, option, None) is not None:
            raise UsageError(f"The model of --resume determines {flag(option)}; remove it.")
    file, _, blocks = data.read_rows(arguments, model, with_outputs=True)
    X, Y = whole(file.file, blocks)
    outputs, kind = data.outputs_like(model, Y), data.kind_of(model)
    return data.Problem(file.file, features_of(X), outputs, kind, file.part)
