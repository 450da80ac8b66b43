"""``manyboost reproduce``: the paper's experiments, and a report of them."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from manyboost.commands import (
    Interrupted,
    UsageError,
    check_names,
    names,
    positive_float,
    positive_int,
    show,
    tell,
)

if TYPE_CHECKING:
    from manyboost.experiments import Options

SUMMARY = "Repeat the experiments of the paper and report them beside its results."

ITEMS: Mapping[str, str] = {
    "convergence": "score against time on the synthetic sets",
    "friedman": "best scores on the synthetic sets",
    "friedman-noisy": "the same with outputs of pure noise added",
    "projections": "kinds of random projections",
    "components": "number of projections",
    "multilabel": "eight methods on the multi-label sets",
    "regression": "eight methods on the regression sets",
}
STORE = "runs.sqlite"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "items:\n" + "\n".join(f"  {name:<16}{text}" for name, text in ITEMS.items())
    add = parser.add_argument
    add("items", nargs="*", metavar="ITEM", help="what to reproduce (default: all)")
    add("--list", action="store_true", help="list items, their methods and data sets")
    add("--no-run", action="store_true", help="run nothing, report what the store holds")
    add("--quick", action="store_true", help="small budgets and few sets: a look, not a result")

    what = parser.add_argument_group("what is run")
    add = what.add_argument
    add("--methods", type=names, action="extend", metavar="A,B", help="only these methods")
    add("--datasets", type=names, action="extend", metavar="A,B", help="only these data sets")
    add("--refit", action="store_true", help="fit tuned models again, to validation rows too")
    add("--repeats", type=positive_int, metavar="N", help="random splits of every data set")
    add("--search", metavar="random:N|grid", help="settings tried for every method")
    add(
        "--budget",
        metavar="rounds:N|seconds:S|T:M",
        help="what a fit may cost; T is one round of gbmort with stumps on the same data",
    )
    add("--cap", type=positive_float, metavar="SECONDS", help="longest time of one fit")
    add("--seed", type=int, metavar="N", help="seed of splits, searches and fits")

    how = parser.add_argument_group("how")
    add = how.add_argument
    add("--data", type=Path, metavar="DIR", help="folder of the data sets (or MANYBOOST_DATA)")
    add("--n-jobs", type=positive_int, metavar="N", help="fits that run at the same time")
    add(
        "--output",
        type=Path,
        default=Path("reproduction"),
        metavar="DIR",
        help="folder of the report (default: %(default)s)",
    )
    add(
        "--store",
        type=Path,
        metavar="FILE",
        help=f"file of finished fits, which are never repeated (default: {STORE} in the output)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Reproduce, then write the report."""
    check_names("item", arguments.items, ITEMS)
    items = list(dict.fromkeys(arguments.items)) or list(ITEMS)
    if arguments.list:
        _list(items)
        return
    options = _options(arguments, items)
    store: Path = arguments.store or arguments.output / STORE

    from manyboost import experiments
    from manyboost.experiments.report import write_report
    from manyboost.experiments.report.outline import tally

    for folder in (arguments.output, store.parent):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        if arguments.no_run:
            report = experiments.summarise(items, options, store)
        else:
            with _ended_like_ctrl_c():
                report = experiments.run(items, options, store, stream=sys.stderr)
    except KeyboardInterrupt:
        raise Interrupted(
            f"Interrupted; finished fits are kept in {store}: the same command goes on from there, "
            "and with --no-run it reports what there is."
        ) from None
    note = f"Made by: {_command(arguments)}"
    page = write_report(replace(report, notes=[*report.notes, note]), arguments.output)
    findings = [finding for section in report.sections for finding in section.findings]
    counts = [f"{n} {kind.one if n == 1 else kind.several}" for kind, n in tally(findings)]
    if counts:
        tell(f"Findings: {', '.join(counts)}.")
    show(str(page))


def _command(arguments: argparse.Namespace) -> str:
    """The command that gives the same report, without what belongs to one machine."""
    words = ["manyboost", "reproduce", *arguments.items]
    words += ["--quick"] if arguments.quick else []
    words += ["--refit"] if arguments.refit else []
    for name in ("methods", "datasets", "repeats", "search", "budget", "cap", "seed"):
        value = getattr(arguments, name)
        if value is not None:
            text = ",".join(value) if isinstance(value, list) else str(value)
            words += [f"--{name}", text]
    return " ".join(words)


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Turn a request to end into an interrupt, so that worker processes end too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _options(arguments: argparse.Namespace, items: Sequence[str]) -> Options:
    """The options of the experiments; what is not given keeps its default."""
    from manyboost.experiments import Options

    methods, datasets = _members(items)
    place = f" of {', '.join(arguments.items)}" if arguments.items else ""
    check_names(f"method{place}", arguments.methods or [], methods)
    check_names(f"data set{place}", arguments.datasets or [], datasets)
    data = arguments.data or os.environ.get("MANYBOOST_DATA")
    if data and not Path(data).is_dir():
        raise UsageError(f"There is no folder {str(data)!r}; name the one that holds the data.")
    given = {
        "data_dir": Path(data) if data else None,
        "budget": arguments.budget,
        "methods": arguments.methods,
        "datasets": arguments.datasets,
        "search": arguments.search,
        "n_splits": arguments.repeats,
        "max_seconds": arguments.cap,
        "refit": arguments.refit,
        "n_jobs": arguments.n_jobs,
        "seed": arguments.seed,
    }
    given = {name: value for name, value in given.items() if value is not None}
    try:
        return Options(quick=arguments.quick, **given)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _members(items: Sequence[str]) -> tuple[list[str], list[str]]:
    """The methods and the data sets of some items."""
    from manyboost.experiments import ITEMS

    chosen = [ITEMS[name] for name in items]
    methods = [method for item in chosen for method in (*item.full.methods, *item.others)]
    datasets = [dataset for item in chosen for dataset in item.full.datasets]
    return list(dict.fromkeys(methods)), list(dict.fromkeys(datasets))


def _list(items: Sequence[str]) -> None:
    methods, datasets = _members(items)
    show("items")
    for name in items:
        show(f"  {name:<16}{ITEMS[name]}")
    for title, names_of in (("methods", methods), ("data sets", datasets)):
        show(title)
        for name in names_of:
            show(f"  {name}")
