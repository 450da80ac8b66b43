"""Run items, and tell how much is left."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from experiments.costs import n_drawn
from experiments.items import ITEMS, Item
from experiments.methods import METHODS, Boosting
from experiments.options import Options, Scope
from experiments.problems import is_available
from experiments.protocol import Budget, Curve, Run, Trial
from experiments.runner import run_missing
from experiments.store import Store


def run(
    items: Sequence[str], options: Options, store: Store, *, stream: TextIO | None = sys.stderr
) -> None:
    """Carry out the runs of items that the store does not hold.

    An interrupted call can be repeated: it continues with the missing runs. With ``n_jobs`` above
    1, call it under ``if __name__ == "__main__":`` in a script.
    """
    for item, scope in choose(items, options, store).items():
        runs = item.runs(scope)
        for dataset in scope.datasets:
            batch = [each for each in runs if each.dataset == dataset]
            title = f"{item.name} {dataset}"
            run_missing(batch, store, options.data_dir, options.n_jobs, stream, title)


def choose(items: Sequence[str], options: Options, store: Store) -> dict[Item, Scope]:
    """Return the items and their scopes; raise a ValueError if a name is unknown."""
    for name in items:
        if name not in ITEMS:
            raise ValueError(f"item {name!r} is unknown; use some of {', '.join(ITEMS)}.")
    chosen = [ITEMS[name] for name in items]
    for kind, wanted, known in (
        ("data set", options.datasets, [n for item in chosen for n in item.full.datasets]),
        ("method", options.methods, [n for item in chosen for n in item.full.methods]),
    ):
        for name in wanted or ():
            if name not in known:
                raise ValueError(
                    f"{kind} {name!r} belongs to none of the items {', '.join(items)}; use some of "
                    f"{', '.join(dict.fromkeys(known))}."
                )
    stored = store.datasets()
    return {item: item.scope(options, stored) for item in chosen}


@dataclass
class Left:
    """Runs that are missing, and about how many core-hours they take."""

    n_missing: int = 0
    n_runs: int = 0
    hours: float = 0.0


def time_left(items: Sequence[str], options: Options, store: Store) -> dict[tuple[str, str], Left]:
    """Estimate what is left by item and data set, from the CPU seconds of the rows so far.

    Runs of a data set and method cost as much for each unit of work as those that are stored; if
    none is, as those of the method on other data sets. Trials that stall early make it less.
    """
    works: list[tuple[str, Run, float, float | None]] = []  # item, run, work, CPU seconds
    for item, scope in choose(items, options, store).items():
        for each in item.runs(scope):
            for run in (*each.needs(options.data_dir), each):
                result = store.get(run)
                seconds = None if result is None else _total_seconds(result)
                works.append((item.name, run, _work(run, options), seconds))
    other = [
        ("", trial, _work(trial, options), result.seconds)
        for trial, result in store.trials()
        if is_available(trial.dataset, options.data_dir)
    ]
    rates = {**_rates(other), **_rates(works)}
    left: dict[tuple[str, str], Left] = {}
    for item_name, run, work, seconds in works:
        entry = left.setdefault((item_name, run.dataset), Left())
        entry.n_runs += 1
        if seconds is None:
            entry.n_missing += 1
            levels = _levels(run)
            rate = next((rates[level] for level in levels if level in rates), _RATE)
            entry.hours += work * rate / 3600
    return left


_RATE = 3e-9  # seconds for a unit of work, before anything is stored


def _levels(run: Run) -> list[tuple[str, ...]]:
    kind, method = type(run).__name__, getattr(run, "method", getattr(run, "model", ""))
    return [(kind, run.dataset, method), (kind, method), (kind,)]


def _rates(
    works: Sequence[tuple[str, Run, float, float | None]],
) -> Mapping[tuple[str, ...], float]:
    totals: dict[tuple[str, ...], list[float]] = {}
    for _, run, work, seconds in works:
        if seconds is not None:
            for level in _levels(run):
                total = totals.setdefault(level, [0.0, 0.0])
                total[0] += seconds
                total[1] += work
    return {level: seconds / work for level, (seconds, work) in totals.items() if work}


def _total_seconds(result: object) -> float:
    seconds = getattr(result, "seconds")  # noqa: B009
    return float(seconds[-1] if isinstance(seconds, Sequence) else seconds)


def _work(run: Run, options: Options) -> float:
    """Return about how many cells our own engine touches."""
    problem = run.problem(options.data_dir)
    shape = problem.shape
    n, d, p = shape.n_rows, shape.n_outputs, len(shape.values)
    method = METHODS.get(getattr(run, "method", ""))
    if not isinstance(run, Trial | Curve) or not isinstance(method, Boosting):
        return 1000.0 * n * (p + d)
    if isinstance(run, Trial):
        rounds = run.rounds
    else:
        rounds = Budget.parse(run.budget).limits(problem, method, run.settings)["nominal"]
    trees = d if method.strategy == "independent" else 1
    columns = d if method.strategy == "multioutput" else run.settings.get("n_components", 1)
    k = n_drawn(run.settings["max_features"], p)
    searched = 10 if run.settings["loss"] != "squared_error" else 1
    return float(rounds * n * (d * searched + 2 * trees * columns * k))
