"""Run items, and tell how much is left."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from experiments.estimates import seconds_of
from experiments.items import ITEMS, Item
from experiments.options import Options, Scope
from experiments.protocol import Run, Search
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

    Runs of a data set and method take as many times their estimate as those that are stored; if
    none is, as those of other methods on the data set, or of the method on other data sets.
    """
    works: list[_Work] = []
    for item, scope in choose(items, options, store).items():
        for each in item.runs(scope):
            needs = _all_needs(each, options, store)
            estimates = [seconds_of(need, options.data_dir) for need in needs]
            estimates.append(seconds_of(each, options.data_dir, estimates))
            for run, estimate in zip((*needs, each), estimates, strict=True):
                works.append(_Work(item.name, run, estimate, _spent(store.get(run))))
    factors = _factors(works)
    left: dict[tuple[str, str], Left] = {}
    for work in works:
        entry = left.setdefault((work.item, work.run.dataset), Left())
        entry.n_runs += 1
        if work.seconds is None:
            entry.n_missing += 1
            known = (factors[level] for level in _levels(work.run) if level in factors)
            entry.hours += work.estimate * next(known, 1.0) / 3600
    return left


def _all_needs(run: Run, options: Options, store: Store) -> list[Run]:
    """Return what a run needs, or is likely to if that depends on missing results."""
    needs = run.needs(options.data_dir)
    if not isinstance(run, Search) or not needs:
        return list(needs)
    results = [store.get(need) for need in needs]
    if None in results:
        then = run.likely_needs_then(options.data_dir)
    else:
        then = run.needs_then(results, options.data_dir)
    # A trial that goes on is one run.
    return list({each.key: each for each in (*needs, *then)}.values())


@dataclass(frozen=True)
class _Work:
    """A run of an item: the CPU seconds that are estimated, and those that it took."""

    item: str
    run: Run
    estimate: float
    seconds: float | None


def _levels(run: Run) -> list[tuple[str, ...]]:
    kind, method = type(run).__name__, getattr(run, "method", getattr(run, "model", ""))
    return [(kind, run.dataset, method), (kind, run.dataset), (kind, "", method), (kind,)]


def _factors(works: Sequence[_Work]) -> Mapping[tuple[str, ...], float]:
    """Return how many times their estimate runs took, by level."""
    totals: dict[tuple[str, ...], list[float]] = {}
    for work in works:
        if work.seconds is not None:
            for level in _levels(work.run):
                total = totals.setdefault(level, [0.0, 0.0])
                total[0] += work.seconds
                total[1] += work.estimate
    return {level: seconds / estimate for level, (seconds, estimate) in totals.items()}


def _spent(result: object) -> float | None:
    if result is None:
        return None
    seconds = getattr(result, "seconds")  # noqa: B009
    return float(seconds[-1] if isinstance(seconds, Sequence) else seconds)
