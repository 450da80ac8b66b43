"""``python -m experiments``: run the experiments of the paper and report them."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from experiments import reproduction
from experiments.items import ITEMS, Item
from experiments.options import Options

STORE = "runs.jsonl"
#: The options that a result depends on, and their flags if these have another name.
_REPEATED = ("methods", "datasets", "n_splits", "search", "budget", "max_seconds", "seed")
_FLAGS = {"n_splits": "repeats", "max_seconds": "cap"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    parser = _parser()
    arguments = parser.parse_intermixed_args(argv)
    items = list(dict.fromkeys(arguments.items)) or list(ITEMS)
    try:
        options = _options(arguments)
        chosen = reproduction.choose(items, options)
    except ValueError as error:
        parser.error(str(error))
    if arguments.list:
        _list(chosen)
        return 0
    store: Path = arguments.store or arguments.output / STORE
    for folder in (arguments.output, store.parent):
        folder.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end the workers too
    try:
        if arguments.no_run:
            report = reproduction.summarise(items, options, store)
        else:
            report = reproduction.run(items, options, store, stream=sys.stderr)
    except KeyboardInterrupt:
        print(
            f"Interrupted; complete runs are kept in {store}. The same command continues; with "
            "--no-run it reports what there is.",
            file=sys.stderr,
        )
        return 130
    from experiments.report.writing import summary, write_report  # slow to import, not for workers

    note = f"Made by: {_command(arguments)}"
    page = write_report(replace(report, notes=[*report.notes, note]), arguments.output)
    print(summary(report), file=sys.stderr)
    print(page)
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
    add("--no-run", action="store_true", help="run nothing, report what the store holds")
    add("--quick", action="store_true", help="small budgets and few data sets: a first look")

    add = parser.add_argument_group("what is run").add_argument
    add("--methods", type=_names, action="extend", metavar="A,B", help="only these methods")
    add("--datasets", type=_names, action="extend", metavar="A,B", help="only these data sets")
    add("--refit", action="store_true", help="fit tuned models again, on validation rows too")
    add("--repeats", type=int, dest="n_splits", metavar="N", help="random splits of every data set")
    add("--search", metavar="random:N|grid", help="settings tried for every method")
    add(
        "--budget",
        metavar="rounds:N|seconds:S|T:M",
        help="budget of a fit; T is one round of gbmort with stumps on the same data",
    )
    add("--cap", type=float, dest="max_seconds", metavar="SECONDS", help="longest time of one fit")
    add("--seed", type=int, metavar="N", help="seed of splits, searches and fits")

    add = parser.add_argument_group("how").add_argument
    data = os.environ.get("MANYBOOST_DATA") or None
    text = "folder of the data sets (or MANYBOOST_DATA)"
    add("--data", type=Path, dest="data_dir", default=data, metavar="DIR", help=text)
    add("--n-jobs", type=int, metavar="N", help="fits that run at the same time")
    output = Path("reproduction")
    add("--output", type=Path, default=output, metavar="DIR", help="folder of the report")
    text = f"file of complete runs, which are never repeated (default: {STORE} in the output)"
    add("--store", type=Path, metavar="FILE", help=text)
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


def _command(arguments: argparse.Namespace) -> str:
    """Return the command that gives the same report, without what belongs to one machine."""
    words = ["python -m experiments", *arguments.items]
    words += [f"--{name}" for name in ("quick", "refit") if getattr(arguments, name)]
    for name in _REPEATED:
        value = getattr(arguments, name)
        if value is not None:
            words += [
                f"--{_FLAGS.get(name, name)}",
                ",".join(value) if isinstance(value, list) else f"{value}",
            ]
    return " ".join(words)


def _list(items: Sequence[Item]) -> None:
    for item in items:
        print(f"{item.name}: {item.summary}")
        print(f"  methods: {', '.join(item.methods)}")
        print(f"  data sets: {', '.join(item.full.datasets)}")


if __name__ == "__main__":
    sys.exit(main())
