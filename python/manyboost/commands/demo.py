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
    """Declare the arguments."""
    meaning = "folder to keep the files in (default: a temporary one)"
    parser.add_argument("-o", "--output", metavar="DIR", help=meaning)


def run(arguments: argparse.Namespace) -> None:
    """Show the commands and their results."""
    kept = arguments.output
    with tempfile.TemporaryDirectory() if kept is None else nullcontext(kept) as name:
        Path(name).mkdir(parents=True, exist_ok=True)
        _show(Path(name), arguments.verbs)


def _show(folder: Path, verbs: Mapping[str, Verb]) -> None:
    _write_data(folder)
    show(f"Synthetic data: train.csv ({N_TRAIN} rows) and test.csv ({N_TEST} rows). The features")
    show("are five sensors and a machine. All outputs, y0 to y7, depend on the same signal.")
    for command in (
        "fit train.csv --target 'y*' -o model.mb --random-state 0 --quiet",
        "evaluate model.mb test.csv --worst 3",
        "explain model.mb --top 5",
        "predict model.mb test.csv -o predictions.csv",
    ):
        show()
        show(f"$ manyboost {command}")
        verb, *words = shlex.split(command)
        files = ("train.csv", "test.csv", "model.mb", "predictions.csv")
        carry_out(verb, verbs, [str(folder / word) if word in files else word for word in words])
    show()
    show("$ head -n 3 predictions.csv")
    with (folder / "predictions.csv").open(encoding="utf-8") as lines:
        for _ in range(3):
            show(next(lines).rstrip())


def _write_data(folder: Path) -> None:
    import numpy as np

    from manyboost.datasets import make_friedman1_group

    rows = N_TRAIN + N_TEST
    X, Y = make_friedman1_group(rows, n_outputs=N_OUTPUTS, random_state=0)
    machine = np.random.default_rng(0).integers(3, size=rows)
    Y = Y + 3.0 * np.array([0.0, 1.0, -1.0])[machine][:, None]
    header = [*(f"sensor{j}" for j in range(X.shape[1])), "machine"]
    header += [f"y{j}" for j in range(N_OUTPUTS)]
    for name, part in (("train", slice(N_TRAIN)), ("test", slice(N_TRAIN, rows))):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(header)
            for x, k, y in zip(X[part], machine[part], Y[part], strict=True):
                numbers = [f"{value:.5g}" for value in (*x, *y)]
                writer.writerow([*numbers[: len(x)], "ABC"[k], *numbers[len(x) :]])
