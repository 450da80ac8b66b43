"""Ctrl-C at random moments, in small rounds and inside one huge round."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from torture.figures import Figure, none_of
from torture.models import ROOT, model_bytes

TITLE = "interrupt"
PROMISE = (
    "Ctrl-C stops a fit within half a second, inside a round too, and leaves an estimator that "
    "works, idle threads and no memory."
)

LIMIT = 0.5  # seconds
IDLE = 0.02  # seconds of processor time in half a second after the interrupt
SPARE = 32 << 20  # bytes that may stay: the model so far, pools

#: Name, whether rounds are huge, and how many moments in the long run: some come too late.
SCENARIOS = {
    "small rounds": (False, 16),
    "small rounds, stopped early": (False, 8),
    "small rounds, independent": (False, 8),
    "classes, line search": (False, 8),
    "one huge round, multioutput": (True, 10),
    "one huge round, independent": (True, 8),
    "one huge round, quantiles": (True, 10),
}


@dataclass
class Trial:
    """What one interrupt led to."""

    case: str
    in_time: bool  # else the fit was over before
    seconds: float = 0.0
    processor: float = 0.0
    kept_bytes: int = 0
    wrong: str = ""


def run(long: bool, seed: int) -> list[Figure]:
    trials: list[Trial] = []
    for name, (huge, count) in SCENARIOS.items():
        if long or not huge:
            trials += in_process(name, count if long else 2, seed)
    heard = [trial for trial in trials if trial.in_time]
    n = len(heard)
    slowest = max(heard, key=lambda trial: trial.seconds)
    busiest = max(heard, key=lambda trial: trial.processor)
    largest = max(heard, key=lambda trial: trial.kept_bytes)
    wrong = [f"{trial.case}: {trial.wrong}" for trial in trials if trial.wrong]
    others = os.getloadavg()[0]
    return [
        Figure(
            "slowest stop",
            f"< {LIMIT} s",
            f"{slowest.seconds:.2f} s ({slowest.case}; load of the machine {others:.1f})",
            slowest.seconds < LIMIT,
            n,
        ),
        none_of("estimators that do not work afterwards", n, wrong),
        Figure(
            "processor time in the half second afterwards",
            f"< {IDLE} s",
            f"{busiest.processor:.3f} s",
            busiest.processor < IDLE,
            n,
        ),
        Figure(
            "memory that is not returned, free pages of the allocator aside",
            f"< {SPARE >> 20} MB",
            f"{largest.kept_bytes / (1 << 20):.0f} MB ({largest.case})",
            largest.kept_bytes < SPARE,
            n,
        ),
    ]


def in_process(name: str, count: int, seed: int) -> list[Trial]:
    """Trials in a process of their own: a signal that comes too late must hit nobody else."""
    command = [sys.executable, "-m", "torture.areas.interrupt", name, str(count), str(seed)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False)
    try:
        return [Trial(**trial) for trial in json.loads(done.stdout)]
    except ValueError:
        return [Trial(name, True, wrong=f"the process ended with code {done.returncode}")]


def problem(name: str) -> tuple[Any, Any, Any]:
    """The estimator and the data of a scenario."""
    rng = np.random.default_rng(0)
    huge, _ = SCENARIOS[name]
    n, p, d = (300_000, 30, 100) if huge else (20_000, 10, 30)
    X = rng.normal(size=(n, p)).astype(np.float32)
    Y = (X[:, :8] @ rng.normal(size=(8, d)) + rng.normal(size=(n, d))).astype(np.float32)
    parameters: dict[str, Any] = {"random_state": 0, "max_iter": 40, "early_stopping": False}
    if name.endswith("stopped early"):
        parameters |= {"early_stopping": True, "n_iter_no_change": 3, "learning_rate": 0.9}
    if name.startswith("classes"):
        model = ManyBoostClassifier(step="line_search", **parameters)
        return model, X, Y[:, :10].argmax(axis=1)
    if name.endswith("quantiles"):
        parameters |= {"loss": "quantile", "max_iter": 2}
    elif huge:
        strategy = name.rpartition(" ")[2]
        parameters |= {"strategy": strategy, "max_iter": 2, "max_leaf_nodes": 255}
    elif name.endswith("independent"):
        parameters |= {"strategy": "independent"}
    return ManyBoostRegressor(**parameters), X, Y


def trials(name: str, count: int, seed: int) -> list[Trial]:
    """Interrupt fits of one scenario at random moments."""
    model, X, Y = problem(name)
    rng = random.Random(f"{name} {seed}")
    huge, _ = SCENARIOS[name]
    # Threads, lookup tables, imports: what stays from the first fit on is no leak.
    twin(model).set_params(max_iter=1).fit(X[:20_000], Y[:20_000])
    seconds = time_of(lambda: twin(model).fit(X, Y)) if not huge else 8.0
    if huge:
        interrupt("", twin(model), X, Y, 0.5 * seconds)
    found = []
    for number in range(count):
        delay = rng.uniform(0, 0.9 * seconds)
        case = f"{name}, after {delay:.2f} s"
        trial = interrupt(case, twin(model), X, Y, delay)
        if trial.in_time and not huge and not trial.wrong:
            trial.wrong = wrong_with(LAST[0], model, X, Y, refit=number == 0)
        LAST.clear()
        found.append(trial)
    return found


#: The estimator of the last trial.
LAST: list[Any] = []


def twin(model: Any) -> Any:
    return type(model)(**model.get_params(deep=False))


def time_of(action: Any) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def interrupt(case: str, model: Any, X: Any, Y: Any, delay: float) -> Trial:
    """Interrupt one fit, and look at what it leaves behind."""
    before = resident_bytes()
    sent: list[float] = []

    def send() -> None:
        time.sleep(delay)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    in_time = True
    try:
        sender.start()
        model.fit(X, Y)
        in_time = False
        sender.join()
        time.sleep(60)
    except KeyboardInterrupt:
        heard = time.monotonic()
    sender.join()
    trial = Trial(case, in_time, heard - sent[0])
    before_rest = processor_seconds()
    time.sleep(0.5)
    trial.processor = processor_seconds() - before_rest
    trial.kept_bytes = resident_bytes() - before
    LAST[:] = [model]
    return trial


def wrong_with(model: Any, original: Any, X: Any, Y: Any, *, refit: bool) -> str:
    """What does not work with an estimator whose fit was interrupted."""
    rounds = getattr(model, "n_iter_", None)
    if rounds is None:
        if hasattr(model, "_progress") or vars(model) != vars(twin(model)):
            return "half fitted"
    elif original.early_stopping:
        if not 0 <= model.best_iter_ == model.validation_score_.argmax():
            return f"{rounds} rounds kept, but the best was {model.validation_score_.argmax()}"
        if not np.isfinite(model.predict(X[:100])).all():
            return "predictions are not finite"
    elif rounds == 0:
        return "fitted with no round"
    else:
        expected = twin(original)
        expected.set_params(max_iter=rounds)
        expected.fit(X, Y)
        expected.set_params(max_iter=original.max_iter)
        if model_bytes(expected) != model_bytes(model):
            return f"not the model of {rounds} rounds"
    if refit:
        whole = twin(original).fit(X, Y)
        if model_bytes(model.fit(X, Y)) != model_bytes(whole):
            return "another model when fitted again"
    return ""


def processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def resident_bytes() -> int:
    """Resident memory without what the allocator keeps for the next to ask (up to 150 MB here)."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    # (Ignored in what a shell starts in the background.)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    found = trials(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps([asdict(trial) for trial in found]))
