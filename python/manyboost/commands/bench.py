"""``manyboost bench``: compare the strategies on a file."""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

from manyboost.commands import data
from manyboost.commands.output import as_json, count, show, table, tell
from manyboost.commands.parameters import (
    add_parameters,
    estimator_for,
    given,
    implied_task,
    with_classes,
)
from manyboost.commands.usage import check_names, fraction, names

SUMMARY = "Compare the strategies on a file: score, time and size of each."


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s FILE --target NAME… [options]"
    data.add_problem(parser)
    add = parser.add_argument
    meaning = "strategies to compare (default: all that are fast enough, and auto)"
    add("--strategies", type=names, metavar="A,B", help=meaning)
    meaning = "share of the rows held out for scoring (default: 0.2)"
    add("--test-fraction", type=fraction, default=0.2, metavar="F", help=meaning)
    add("--json", action="store_true", help="print JSON")
    add("--quiet", action="store_true", help="print nothing but errors")
    # Several fits have no checkpoint in common.
    add_parameters(parser, "strategy", "verbose", "checkpoint")


def run(arguments: argparse.Namespace) -> None:
    from manyboost.training.strategies import STRATEGIES

    check_names("strategy", arguments.strategies or [], [*STRATEGIES, "auto"])
    parameters = {"random_state": 0} | given(arguments)
    problem = data.read_problem(arguments, implied_task(parameters))
    tell(problem.description, quiet=arguments.quiet)
    train, test = _split(problem, arguments.test_fraction, parameters["random_state"])
    results = []
    for strategy in arguments.strategies or _affordable(problem, arguments.quiet):
        tell(f"{strategy} …", quiet=arguments.quiet)
        chosen = with_classes({**parameters, "strategy": strategy}, problem)
        model = estimator_for(problem.kind, chosen)
        results.append(_run(problem, model, train, test))
    if arguments.json:
        show(as_json(results))
        return
    best = max(result["score"] for result in results)
    header = ["strategy", results[0]["metric"], "", "fit, s", "rounds", "predict, s", "file, kB"]
    rows = []
    for each in results:
        name = each["strategy"] + (f" ({each['chosen']})" if each["chosen"] else "")
        times = f"{each['fit_seconds']:.2f}", each["rounds"], f"{each['predict_seconds']:.3f}"
        mark, size = "best" if each["score"] == best else "", f"{each['bytes'] / 1000:,.0f}"
        rows.append([name, each["score"], mark, *times, size])
    show(f"{count(len(train), 'training row')}, {count(len(test), 'test row')}.\n")
    show(table(header, rows))


def _affordable(problem: data.Problem, quiet: bool) -> list[str]:
    """Return the strategies that are fast enough for the number of outputs, and auto."""
    from manyboost.training.strategies import STRATEGIES

    n_outputs = len(problem.outputs)
    if problem.kind == "classes":
        n_outputs = len(set(problem.Y.values.tolist()))
    limits = {name: each.max_race_outputs or n_outputs for name, each in STRATEGIES.items()}
    slow = [name for name, limit in limits.items() if n_outputs > limit]
    if slow:
        skipped = f"Skipped, slow with {n_outputs:,} outputs: {', '.join(slow)}"
        tell(f"{skipped} (see --strategies).", quiet=quiet)
    return [each for each in (*STRATEGIES, "auto") if each not in slow]


def _split(problem: data.Problem, share: float, seed: Any) -> tuple[Any, Any]:
    """Return indices of training and test rows, in order, stratified by class where that works."""
    import numpy as np
    from sklearn.model_selection import train_test_split

    rows = np.arange(len(problem.X))
    if len(rows) < 2:
        raise ValueError(
            f"{problem.file} has one row; bench needs some to learn and some to score."
        )
    n_test = min(math.ceil(share * len(rows)), len(rows) - 1)
    classes = problem.Y.values if problem.kind == "classes" else None
    if classes is not None:
        counts = np.unique(classes, return_counts=True)[1]
        if counts.min() < 2 or len(counts) > min(n_test, len(rows) - n_test):
            classes = None
    train, test = train_test_split(rows, test_size=n_test, random_state=seed, stratify=classes)
    return np.sort(train), np.sort(test)


def _run(problem: data.Problem, model: Any, train: Any, test: Any) -> dict[str, Any]:
    """Fit a model and score it."""
    from manyboost.commands.scores import predictor, score_model
    from manyboost.training.strategies import STRATEGIES

    start = time.perf_counter()
    model.fit(problem.X.take(train), problem.Y.take(train))
    fitted = time.perf_counter()
    X_test, truth = problem.X.take(test), problem.Y.take(test).values
    model.predict(X_test)
    predicted = time.perf_counter()
    scores = score_model(model, predictor(model).of(model, X_test), truth, problem.outputs)
    metric, score = next(iter(scores.overall.items()))
    if metric == "pinball_loss":
        metric, score = "-pinball_loss", -score
    chosen = ""
    if model.strategy == "auto":
        projected = STRATEGIES[model.strategy_].projects
        chosen = f"{model.strategy_}, {model.projection_}" if projected else model.strategy_
    result = {"strategy": model.strategy, "chosen": chosen, "metric": metric, "score": score}
    result |= {"fit_seconds": fitted - start, "predict_seconds": predicted - fitted}
    return result | {"rounds": int(model.n_iter_), "bytes": model.info()["n_bytes"]}
