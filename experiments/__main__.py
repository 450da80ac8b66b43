"""``python -m experiments``: run the experiments of the paper and report them."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from experiments import reproduction
from experiments.items import ITEMS, Item
from experiments.options import Options, Scope
from experiments.store import Store

STORE = Path("experiments/rows")
OUTPUT = Path("docs/reproduction")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    parser = _parser()
    arguments = parser.parse_intermixed_args(argv)
    items = list(dict.fromkeys(arguments.items)) or list(ITEMS)
    quick = Path("reproduction-quick")
    try:
        options = _options(arguments)
        store = Store(arguments.store or (quick / "rows" if options.quick else STORE))
        chosen = reproduction.choose(items, options, store)
    except ValueError as error:
        parser.error(str(error))
    if arguments.list:
        _list(chosen)
        return 0
    if arguments.archive:
        print(store.archive() or "no rows to archive")
        return 0
    if arguments.time_left:
        _show_time_left(reproduction.time_left(items, options, store))
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end the workers too
    try:
        if not arguments.no_run:
            reproduction.run(items, options, store)
    except KeyboardInterrupt:
        print(
            "Interrupted; complete runs are kept. The same command continues; with --no-run it "
            "reports what there is.",
            file=sys.stderr,
        )
        return 130
    if arguments.no_report:
        return 0
    from experiments.report import write  # slow to import, not for workers

    print(write(chosen, store, arguments.output or (quick if options.quick else OUTPUT)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Repeat the experiments of the paper and report them next to its results.",
        epilog="items:\n" + "\n".join(f"  {i.name:<16}{i.summary}" for i in ITEMS.values()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("items", nargs="*", metavar="ITEM", help="what to reproduce (default: all)")
    add("--list", action="store_true", help="list items, their methods and data sets")
    add("--time-left", action="store_true", help="estimate the core-hours of the missing runs")
    add("--archive", action="store_true", help="compress the rows of trials, to commit them")
    add("--no-run", action="store_true", help="run nothing, report what the store holds")
    add("--no-report", action="store_true", help="run only")
    add("--quick", action="store_true", help="small budgets and few data sets: a first look")

    add = parser.add_argument_group("what is run").add_argument
    add("--methods", type=_names, action="extend", metavar="A,B", help="only these methods")
    add("--datasets", type=_names, action="extend", metavar="A,B", help="only these data sets")
    add("--splits", type=int, dest="n_splits", metavar="N", help="random splits of every data set")
    add("--settings", type=int, dest="n_settings", metavar="N", help="settings tried per method")
    add("--seed", type=int, metavar="N", help="seed of splits, searches and fits")

    add = parser.add_argument_group("how").add_argument
    data = os.environ.get("MANYBOOST_DATA") or None
    text = "folder of the data sets (or MANYBOOST_DATA)"
    add("--data", type=Path, dest="data_dir", default=data, metavar="DIR", help=text)
    add("--n-jobs", type=int, metavar="N", help="fits that run at the same time")
    text = f"folder of the report (default: {OUTPUT})"
    add("--output", type=Path, metavar="DIR", help=text)
    text = f"folder of the rows of complete runs, which are never repeated (default: {STORE})"
    add("--store", type=Path, metavar="DIR", help=text)
    return parser


def _names(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]


def _options(arguments: argparse.Namespace) -> Options:
    """Return the options of the experiments; those not given keep their defaults."""
    if arguments.data_dir is not None and not arguments.data_dir.is_dir():
        raise ValueError(f"--data {str(arguments.data_dir)!r} is not a folder.")
    names = {field.name for field in fields(Options)}
    chosen = {n: value for n, value in vars(arguments).items() if n in names and value is not None}
    return Options(**chosen)


def _list(chosen: Mapping[Item, Scope]) -> None:
    for item, scope in chosen.items():
        print(f"{item.name}: {item.summary} ({item.of_paper})")
        print(f"  methods: {', '.join(scope.methods)}")
        print(f"  data sets: {', '.join(scope.datasets) or 'none'}")
        if scope.absent:
            print(f"  not found: {', '.join(scope.absent)}")


def _show_time_left(left: Mapping[tuple[str, str], reproduction.Left]) -> None:
    for (item, dataset), part in left.items():
        done = f"{part.n_runs - part.n_missing} of {part.n_runs} runs"
        print(f"{item:<16}{dataset:<28}{done:<24}{part.hours:8.2f} core-hours left")
    print(f"about {sum(part.hours for part in left.values()):.1f} core-hours left")


if __name__ == "__main__":
    sys.exit(main())
