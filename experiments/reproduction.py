"""Run items and report on them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TextIO

from experiments.items import ITEMS, Item
from experiments.options import Options
from experiments.report.content import Report
from experiments.runner import run_missing
from experiments.store import Store, versions

TITLE = "Gradient boosting with random output projections, reproduced"


def run(
    items: Sequence[str],
    options: Options,
    store_path: str | os.PathLike[str] | None,
    *,
    stream: TextIO | None = sys.stderr,
) -> Report:
    """Carry out the runs of items that the store does not hold, and report on them.

    An interrupted call can be repeated: it continues with the missing runs. ``store_path`` None
    keeps results in memory, ``stream`` None shows no progress. With ``n_jobs`` above 1, call it
    under ``if __name__ == "__main__":`` in a script.
    """
    chosen, store = choose(items, options), Store(store_path)
    runs = [run for item in chosen for run in item.runs(item.scope(options, store.datasets()))]
    run_missing(runs, store, data_dir=options.data_dir, n_jobs=options.n_jobs, stream=stream)
    return _report(chosen, options, store)


def summarise(
    items: Sequence[str], options: Options, store_path: str | os.PathLike[str] | None
) -> Report:
    """Report on items from what the store holds, complete or not, without running anything."""
    return _report(choose(items, options), options, Store(store_path))


def choose(items: Sequence[str], options: Options) -> list[Item]:
    """Return the items; raise a ValueError if a name of an item or of its parts is unknown."""
    for name in items:
        if name not in ITEMS:
            raise ValueError(f"item {name!r} is unknown; use some of {', '.join(ITEMS)}.")
    chosen = [ITEMS[name] for name in items]
    datasets = [name for item in chosen for name in item.full.datasets]
    methods = [name for item in chosen for name in item.methods]
    for kind, wanted, known in (
        ("data set", options.datasets, datasets),
        ("method", options.methods, methods),
    ):
        for name in wanted or ():
            if name not in known:
                raise ValueError(
                    f"{kind} {name!r} belongs to none of the items {', '.join(items)}; use some of "
                    f"{', '.join(dict.fromkeys(known))}."
                )
    return chosen


def _report(items: Sequence[Item], options: Options, store: Store) -> Report:
    stored, made_with = store.datasets(), store.made_with()
    if options.refit:
        refit = "fitted again on training and validation rows, with the settings and rounds that"
    else:
        refit = "not fitted again on the validation rows; it is the model that"
    notes = [
        (
            f"The model scored on test rows is {refit} did best on the validation rows, a fifth "
            "of the training rows. The paper does not say which it uses."
        ),
        "Boosting is that of the paper: exact line searches, leaves of one row allowed.",
    ]
    if options.quick:
        notes.insert(0, "A quick run: budgets and searches are far below the paper's.")
    if len(made_with) > 1:
        notes.append(f"The stored runs were made with {len(made_with)} different sets of versions.")
    sections = [item.section(item.scope(options, stored), store) for item in items]
    return Report(TITLE, sections, made_with[-1] if made_with else versions(), notes)
