"""``manyboost demo``: the command line on synthetic data, in a few seconds."""

from __future__ import annotations

import argparse
import csv
import shlex
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from manyboost.commands.output import show
from manyboost.commands.usage import Verb, carry_out

SUMMARY = "Create a small data set, train on it, score the model, and show the commands."

N_TRAIN, N_TEST, N_OUTPUTS = 1000, 500, 8


def configure(parser: argparse.ArgumentParser) -> None:
    meaning = "folder to keep the files in (default: a temporary one)"
    parser.add_argument("-o", "--output", metavar="DIR", help=meaning)


def run(arguments: argparse.Namespace) -> None:
    from manyboost.datasets.readers.tables import polars_module

    polars_module()  # no file is written where it is missing
    kept = arguments.output
    with tempfile.TemporaryDirectory() if kept is None else nullcontext(kept) as name:
        _show(Path(name), arguments.verbs)


def _show(folder: Path, verbs: Mapping[str, Verb]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _write_data(folder)
    show(f"Synthetic data: train.csv ({N_TRAIN} rows) and test.csv ({N_TEST} rows). The features")
    show("are five sensors and a machine. All outputs, y0 to y7, depend on the same signal.")
    for command in (
        "fit train.csv --target 'y*' -o model.mb --random-state 0 --quiet",
        "evaluate model.mb test.csv --worst 3",
        "explain model.mb --top 5",
        "predict model.mb test.csv -o predictions.csv",
    ):
        show(f"\n$ manyboost {command}")
        verb, *words = shlex.split(command)
        files = ("train.csv", "test.csv", "model.mb", "predictions.csv")
        carry_out(verb, verbs, [str(folder / word) if word in files else word for word in words])
    show("\n$ head -n 3 predictions.csv")
    lines = (folder / "predictions.csv").read_text(encoding="utf-8").splitlines()
    show("\n".join(lines[:3]))


def _write_data(folder: Path) -> None:
    import numpy as np

    from manyboost.datasets import make_friedman1_group

    rows = N_TRAIN + N_TEST
    X, Y = make_friedman1_group(rows, n_outputs=N_OUTPUTS, random_state=0)
    machine = np.random.default_rng(0).integers(3, size=rows)
    Y = Y + 3.0 * np.array([0.0, 1.0, -1.0])[machine][:, None]
    header = [*(f"sensor{j}" for j in range(X.shape[1])), "machine"]
    header += [f"y{j}" for j in range(N_OUTPUTS)]
    lines = [
        [*(f"{value:.5g}" for value in x), "ABC"[k], *(f"{value:.5g}" for value in y)]
        for x, k, y in zip(X, machine, Y, strict=True)
    ]
    for name, part in (("train", lines[:N_TRAIN]), ("test", lines[N_TRAIN:])):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream, lineterminator="\n").writerows([header, *part])
