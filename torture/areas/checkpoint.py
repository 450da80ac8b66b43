"""Fits killed at random moments and resumed; torn checkpoint files."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from manyboost import Checkpoint, ManyBoostClassifier, ManyBoostRegressor
from torture.figures import Figure, none_of
from torture.models import ROOT, model_bytes

TITLE = "checkpoint"
PROMISE = (
    "A fit with a checkpoint that is killed at any moment goes on where it was and ends with the "
    "same model, byte for byte; a torn file is never loaded."
)

# Each with a frequency of its own: rounds between two files.
SCENARIOS = {
    "relabel": (5, {}),
    "project": (1, {"strategy": "project"}),
    "independent": (2, {"strategy": "independent", "max_iter": 12}),
    "subsampled": (3, {"subsample": 0.5, "max_features": 0.5}),
    "stopped early": (1, {"early_stopping": True, "n_iter_no_change": 5}),
    "stopped by output": (4, {"early_stopping": "per_output", "n_iter_no_change": 5}),
    "chosen": (3, {"strategy": "auto"}),
    "labels": (1, {"loss": "log_loss"}),
}


def run(long: bool, seed: int) -> list[Figure]:
    wanted = 50 if long else 2
    rng = random.Random(seed)
    differing, lost, failed = [], [], []
    kills = trials = 0
    names = list(SCENARIOS)
    with tempfile.TemporaryDirectory() as folder:
        whole: dict[str, tuple[bytes, float]] = {}
        while kills < wanted:
            name = names[kills % len(names)] if long else names[0]
            if name not in whole:
                first = Run(name, Path(folder) / f"whole-{len(whole)}")
                if first.go(None) != 0:
                    failed.append(f"{name}: the fit without a kill failed")
                    break
                whole[name] = first.model.read_bytes(), first.seconds
            expected, seconds = whole[name]
            trials += 1
            trial = Run(name, Path(folder) / f"killed-{trials}")
            for _ in range(rng.choice((1, 1, 2, 3))):
                if trial.go(rng.uniform(0, seconds)) == -signal.SIGKILL:
                    kills += 1
            case = f"{name}, kill {kills}"
            if trial.go(None) != 0:
                failed.append(f"{case}: {trial.errors()}")
            elif trial.model.read_bytes() != expected:
                differing.append(case)
            lost += [f"{case}: {words}" for words in trial.lost_rounds()]
        torn, tears = torn_files(Path(folder), rng, 500 if long else 20)
    return [
        none_of("models that differ from the uninterrupted one", kills, differing),
        none_of("resumed fits that failed", kills, failed),
        none_of("rounds lost other than those since the last checkpoint", kills, lost),
        none_of("torn files that were loaded or overwritten", tears, torn),
    ]


class Run:
    """One fit, by as many processes as it takes."""

    def __init__(self, name: str, folder: Path) -> None:
        folder.mkdir()
        self.name, self.folder = name, folder
        self.model, self.log = folder / "model.mb", folder / "rounds"
        self.log.touch()
        self.seconds = 0.0

    def go(self, kill_after: float | None) -> int:
        """Start the fit; kill it so many seconds after training began. Returns the exit code."""
        before = self.log.stat().st_size
        with (self.folder / "errors").open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "torture.areas.checkpoint", self.name, str(self.folder)],
                cwd=ROOT,
                stderr=errors,
            )
        try:
            while process.poll() is None and self.log.stat().st_size == before:
                time.sleep(0.002)
            began = time.monotonic()
            process.wait(kill_after)
            self.seconds = time.monotonic() - began
        except subprocess.TimeoutExpired:
            pass
        finally:
            process.kill()
            process.wait()
        return process.returncode

    def errors(self) -> str:
        """The last line that the process said."""
        return (self.folder / "errors").read_text().strip().rpartition("\n")[2]

    def lost_rounds(self) -> list[str]:
        """Processes that began earlier than after the last checkpoint of the one before them."""
        every = SCENARIOS[self.name][0]
        lost, last = [], 0
        for text in self.log.read_text().split("begin\n")[1:]:
            rounds = [int(line) for line in text.split()]
            # (A round is told of before its checkpoint is written.)
            written = max(0, last - 1) // every * every
            if rounds and rounds[0] <= written:
                lost.append(f"round {rounds[0]} again, after {last} with a file every {every}")
            last = rounds[-1] if rounds else last
        return lost


def make(name: str, checkpoint: Checkpoint | None, callbacks: list) -> tuple:
    """The model of a scenario, and its data."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(6_000, 12))
    Y = np.sin(2 * X) @ rng.normal(size=(12, 20)) + rng.normal(size=(len(X), 20))
    parameters = {"max_iter": 60, "random_state": 1, **SCENARIOS[name][1]}
    is_labels = "loss" in parameters
    estimator = ManyBoostClassifier if is_labels else ManyBoostRegressor
    model = estimator(checkpoint=checkpoint, callbacks=callbacks, **parameters)
    return model, X, (Y > 2).astype(int) if is_labels else Y


def fit(name: str, folder: Path) -> None:
    """What is killed: every round is told of in a file, at once."""
    log = os.open(folder / "rounds", os.O_WRONLY | os.O_APPEND)
    checkpoint = Checkpoint(folder / "run.checkpoint", every=SCENARIOS[name][0])
    tell = [lambda state: os.write(log, b"%d\n" % state.round) and None]
    model, X, Y = make(name, checkpoint, tell)
    os.write(log, b"begin\n")
    model.fit(X, Y)
    # Appears whole or not at all, so that who finds it has a complete fit.
    (folder / "model.new").write_bytes(model_bytes(model))
    (folder / "model.new").replace(folder / "model.mb")


def torn_files(folder: Path, rng: random.Random, tears: int) -> tuple[list[str], int]:
    """Cut, changed and lengthened checkpoint files must all be refused, and left alone."""
    path = folder / "torn.checkpoint"
    X, Y = np.random.default_rng(0).normal(size=(2, 200, 3))
    model = ManyBoostRegressor(max_iter=5, random_state=0, checkpoint=path).fit(X, Y)
    whole = path.read_bytes()
    accepted = []
    for number in range(tears):
        place = rng.randrange(len(whole))
        kind = ("cut", "changed", "zeroed", "lengthened")[number % 4]
        torn = {
            "cut": whole[:place],
            "changed": whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :],
            "zeroed": whole[:place] + bytes(len(whole) - place),
            "lengthened": whole + whole[: place + 1],
        }[kind]
        if torn == whole:
            continue
        path.write_bytes(torn)
        try:
            model.fit(X, Y)
            accepted.append(f"{kind} at byte {place}: loaded")
        except ValueError as error:
            if "is not a sound checkpoint" not in str(error) or path.read_bytes() != torn:
                accepted.append(f"{kind} at byte {place}: {error}")
    return accepted, tears


if __name__ == "__main__":
    fit(sys.argv[1], Path(sys.argv[2]))
