"""Running items and reporting on them: what a command does."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TextIO

from manyboost.experiments import statistics
from manyboost.experiments.items import ITEMS, Item
from manyboost.experiments.items.real import RealSets
from manyboost.experiments.options import Options
from manyboost.experiments.results import Report
from manyboost.experiments.runner import run_missing
from manyboost.experiments.store import Store, versions

TITLE = "Gradient boosting with random output projections, reproduced"


def run(
    items: Sequence[str],
    options: Options | None = None,
    store_path: str | os.PathLike[str] = "runs.sqlite",
    *,
    stream: TextIO | None = sys.stderr,
) -> Report:
    """Carry out the runs of items that the store does not hold, and report on them.

    It may be interrupted at any time: the same call goes on where it was.

    With ``n_jobs`` above 1, call it under ``if __name__ == "__main__":`` in a script.

    Parameters
    ----------
    items : sequence of str
        Names of items, of :data:`ITEMS`.
    options : Options, optional
        What to run, and how much of it.
    store_path : path-like
        File that keeps the results.
    stream : text stream or None
        Where to show progress; None shows nothing.

    Returns
    -------
    Report
    """
    options = options or Options()
    chosen = _chosen(items, options)
    for item in chosen:
        if isinstance(item, RealSets) and item.datasets(options)[0]:
            # Better now than after hours of runs.
            statistics.require_posthocs()
    runs = [run for item in chosen for run in item.plan(options)]
    with Store(store_path) as store:
        run_missing(runs, store, data_dir=options.data_dir, n_jobs=options.n_jobs, stream=stream)
        return _report(chosen, options, store)


def summarise(
    items: Sequence[str],
    options: Options | None = None,
    store_path: str | os.PathLike[str] = "runs.sqlite",
) -> Report:
    """Report on items from what the store holds, be it complete or not; nothing is run.

    Parameters
    ----------
    items, options, store_path
        As for :func:`run`.

    Returns
    -------
    Report
    """
    options = options or Options()
    with Store(store_path) as store:
        return _report(_chosen(items, options), options, store)


def _report(items: Sequence[Item], options: Options, store: Store) -> Report:
    sections = [item.summarise(store, options) for item in items]
    made_with = store.made_with()
    how = (
        "that is fitted to all of them, with the settings and rounds that did best on a fifth of "
        "them when fitted to the others"
        if options.refit
        else "that did best on a fifth of them, which it was not fitted to; it is not fitted again "
        "to all of them (--refit)"
    )
    notes = [
        f"Scores are those of the model of the training rows {how}. The paper does not say.",
        "Boosting is that of the paper: exact line searches, leaves of one row allowed.",
    ]
    if options.quick:
        notes.insert(0, "A quick run: budgets and searches are far below the paper's.")
    if len(made_with) > 1:
        notes.append(
            f"The runs in the store were made with {len(made_with)} different sets of versions."
        )
    return Report(TITLE, sections, made_with[-1] if made_with else versions(), notes)


def _chosen(items: Sequence[str], options: Options) -> list[Item]:
    """Return the items, after checking that all names are known to them."""
    for name in items:
        if name not in ITEMS:
            raise ValueError(f"item {name!r} is unknown; use some of {', '.join(ITEMS)}.")
    chosen = [ITEMS[name] for name in items]
    known = [dataset for item in chosen for dataset in item.full.datasets]
    for dataset in options.datasets or ():
        if dataset not in known:
            raise ValueError(
                f"data set {dataset!r} belongs to none of the items {', '.join(items)}; use some "
                f"of {', '.join(dict.fromkeys(known))}."
            )
    return chosen
