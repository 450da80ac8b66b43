"""Fits and predictions with too little memory; estimates; a thousand fits without a leak."""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import manyboost
from manyboost import ManyBoostClassifier, ManyBoostRegressor, memory
from torture.figures import Figure, none_of, skipped
from torture.models import ROOT, STRATEGIES

TITLE = "memory"
PROMISE = (
    "Where memory does not suffice there is a MemoryError that says how much was needed and what "
    "to do, never a process that is ended; and no fit keeps any."
)

MEGABYTE = 1 << 20
LEAK = 4 * MEGABYTE
#: How far estimates may be from what is measured.
ESTIMATES = (0.7, 1.3)


def run(long: bool, seed: int) -> list[Figure]:
    figures = []
    count = 40 if long else 6
    unchecked: list[dict[str, Any]] = []
    for name in SCENARIOS if long else ("relabel",):
        found = in_process("limits", name, str(count), str(seed))
        what = f"{name} with too little memory: other than MemoryError with size and remedy"
        figures.append(none_of(what, found["checked"]["refused"], found["checked"]["wrong"]))
        unchecked.append(found["unchecked"])
    # Memory that runs out in the middle: buffers are refused, but the smallest objects cannot be.
    refused = sum(found["refused"] for found in unchecked)
    ended = [words for found in unchecked for words in found["wrong"]]
    share = refused / max(1, refused + len(ended))
    figures.append(
        Figure(
            "the same without looking at what there is first: MemoryError",
            "≥ 98 %",
            f"{100 * share:.1f} %{'; the first other: ' + ended[0] if ended else ''}",
            share >= 0.98,
            refused + len(ended),
        )
    )
    figures.append(grouped(("relabel", *GROUPED) if long else ("relabel",), count // 3, seed))
    wrong = in_process("too_much")["wrong"]
    figures.append(none_of("more than the machine has: other than MemoryError", 2, wrong))
    ratios = in_process("estimates", str(int(long)))["ratios"]
    low, high = ESTIMATES
    figures.append(
        Figure(
            "estimated over measured memory of a fit",
            f"{low} to {high}",
            f"{min(ratios):.2f} to {max(ratios):.2f}",
            low <= min(ratios) and max(ratios) <= high,
            len(ratios),
        )
    )
    fits = 1000 if long else 60
    grown = in_process("leak", str(fits))["grown"]
    figures.append(
        Figure(
            "growth of resident memory over fits",
            f"< {LEAK // MEGABYTE} MB",
            f"{grown / MEGABYTE:.1f} MB",
            grown < LEAK,
            fits,
        )
    )
    return figures


def grouped(names: tuple[str, ...], count: int, seed: int) -> Figure:
    what = "in a group of processes (cgroup) with too little memory: other than MemoryError"
    parts = [in_process("groups", name, str(count), str(seed)) for name in names]
    if reasons := [part["reason"] for part in parts if "reason" in part]:
        return skipped(what, "0", reasons[0])
    refused = sum(part["refused"] for part in parts)
    return none_of(what, refused, [words for part in parts for words in part["wrong"]])


def in_process(*arguments: str) -> dict[str, Any]:
    """What a part of the area finds, in a process of its own."""
    command = [sys.executable, "-m", "torture.areas.memory", *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


# ---------------------------------------------------------------- too small limits


def numbers(n: int, p: int, d: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, X[:, :4] @ rng.normal(size=(4, d)) + rng.normal(size=(n, d))


def fit(n: int, p: int, d: int, **parameters: Any) -> Callable[[], Callable[[], Any]]:
    """A fit of that shape; what is called first prepares the data."""

    def prepare() -> Callable[[], Any]:
        X, Y = numbers(n, p, d)
        if parameters.pop("sparse", False):
            X = sparse.csr_array(np.where(X > 1, X, 0))
        classifier = parameters.pop("labels", False)
        Y = (Y > 1).astype(np.uint8) if classifier else Y
        estimator = ManyBoostClassifier if classifier else ManyBoostRegressor
        model = estimator(random_state=0, max_iter=3, n_jobs=2, **parameters)
        return lambda: model.fit(X, Y)

    return prepare


def predictions() -> Callable[[], Any]:
    X, Y = numbers(2_000, 5, 200)
    model = ManyBoostRegressor(max_iter=20, random_state=0, n_jobs=2).fit(X, Y)
    many = np.tile(X, (60, 1)).astype(np.float32)
    return lambda: model.predict(many)


def model_files() -> Callable[[], Any]:
    path = Path(tempfile.gettempdir()) / f"manyboost-torture-{os.getpid()}.mb"
    child = os.fork()
    if child == 0:  # so that the parent has no memory of it
        X, Y = numbers(2_000, 5, 400)
        ManyBoostRegressor(max_iter=1500, random_state=0).fit(X, Y).save(path)
        os._exit(0)
    os.waitpid(child, 0)
    atexit.register(path.unlink, missing_ok=True)
    return lambda: manyboost.load(path)


SCENARIOS: dict[str, Callable[[], Callable[[], Any]]] = {
    "relabel": fit(300_000, 20, 30),
    "multioutput": fit(50_000, 20, 20, strategy="multioutput"),
    "independent": fit(100_000, 20, 6, strategy="independent"),
    "labels, stopped early": fit(60_000, 20, 60, labels=True, early_stopping=True),
    "sparse": fit(100_000, 40, 20, sparse=True),
    "quantiles": fit(200_000, 5, 4, loss="quantile"),
    "subsampled": fit(200_000, 10, 6, subsample=0.5, strategy="project"),
    "deep trees": fit(100_000, 6, 30, max_leaf_nodes=None, min_samples_leaf=2),
    "predictions": predictions,
    "model files": model_files,
}


#: What is tried in groups of processes, too.
GROUPED = ("labels, stopped early", "sparse", "predictions", "model files")


def limits(name: str, count: str, seed: str) -> dict[str, Any]:
    """Run a scenario in forked children that may take more and more address space."""
    action = SCENARIOS[name]()
    # Freed memory that the allocator keeps serves the children beyond their limit: a fit that is
    # to run out of memory must need much more than that.
    ctypes.CDLL(None).malloc_trim(0)
    rng = random.Random(f"{name} {seed}")
    needed = peak_of(action)
    found = {}
    for how in ("checked", "unchecked"):
        wrong, refused = [], 0
        for k in range(int(count)):
            # Evenly over what is needed, and beyond.
            room = int(needed * (k + rng.random()) / int(count) * 1.2)
            outcome = limited(action, room, checked=how == "checked")
            refused += is_memory_error(outcome)
            if outcome != "done" and not sound(outcome):
                wrong.append(f"{room / MEGABYTE:.0f} of {needed / MEGABYTE:.0f} MB: {outcome}")
        found[how] = {"refused": refused, "wrong": wrong}
    return found


def sound(outcome: str) -> bool:
    """Whether an outcome is a MemoryError that names a size and a remedy."""
    size = re.search(r"\d\.? (GB|MB|kB|GiB|MiB|KiB|bytes)", outcome)
    return is_memory_error(outcome) and bool(size) and "; " in outcome


def is_memory_error(outcome: str) -> bool:
    """Whether an outcome is a MemoryError, or a subclass of it."""
    return outcome.partition(":")[0].endswith("MemoryError")


def limited(action: Callable[[], Any], room: int, *, checked: bool) -> str:
    """What becomes of an action in a child that may take so many bytes more."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        outcome = "nothing"
        try:
            if not checked:
                memory.check = lambda needed, what, remedy: None
            size = int(Path("/proc/self/statm").read_text().split()[0]) * 4096
            resource.setrlimit(resource.RLIMIT_AS, (size + room, resource.RLIM_INFINITY))
            outcome = outcome_of(action)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
            os.write(writer, outcome.encode()[:4000])
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        outcome = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return outcome if outcome else f"ended by {os.waitstatus_to_exitcode(status)}"


def peak_of(action: Callable[[], Any]) -> int:
    """Bytes of address space that an action takes at its peak, found by trying."""
    low, high = 0, 1 << 32
    while high - low > high // 16:
        middle = (low + high) // 2
        if limited(action, middle, checked=False) == "done":
            high = middle
        else:
            low = middle
    return high


#: Files with the limit and the use of a group, and what no limit is: of the older kind, and new.
GROUP_FILES = (
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "-1"),
    ("memory.max", "memory.current", "max"),
)


def groups(name: str, count: str, seed: str) -> dict[str, Any]:
    """Run a scenario in a group of processes whose memory is limited, as that of containers is."""
    group = new_group()
    if isinstance(group, str):
        return {"reason": group}
    rng = random.Random(f"{name} {seed}")
    needed = peak_of(SCENARIOS[name]())
    wrong, refused = [], 0
    try:
        for k in range(int(count)):
            # With less than that free, the system may end any process that goes on.
            least = 16 * MEGABYTE
            room = least + int((1.2 * needed - least) * (k + rng.random()) / int(count))
            command = [sys.executable, "-m", "torture.areas.memory", "in_group", name]
            command += [str(group), str(room)]
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False)
            ended = json.dumps({"outcome": f"ended by {done.returncode}"})
            outcome = json.loads(done.stdout.splitlines()[-1] if done.stdout else ended)["outcome"]
            refused += is_memory_error(outcome)
            if outcome != "done" and not sound(outcome):
                wrong.append(f"{room / MEGABYTE:.0f} of {needed / MEGABYTE:.0f} MB: {outcome}")
    finally:
        group.rmdir()
    return {"refused": refused, "wrong": wrong}


def in_group(name: str, group: str, room: str) -> dict[str, Any]:
    """What becomes of a scenario in a process whose group may take so many bytes more."""
    names = next(names for names in GROUP_FILES if Path(group, names[0]).exists())
    limit, usage, unlimited = Path(group, names[0]), Path(group, names[1]), names[2]
    limit.write_text(unlimited)
    Path(group, "cgroup.procs").write_text(str(os.getpid()))
    action = SCENARIOS[name]()
    ctypes.CDLL(None).malloc_trim(0)
    limit.write_text(str(int(usage.read_text()) + int(room)))
    outcome = outcome_of(action)
    limit.write_text(unlimited)
    return {"outcome": outcome}


def new_group() -> Path | str:
    """A group of processes below that of this one, or why there is none."""
    try:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers in ("", "memory"):
                root = Path("/sys/fs/cgroup") / controllers
                group = root / path.lstrip("/") / f"manyboost-torture-{os.getpid()}"
                group.mkdir()
                if any((group / names[0]).exists() for names in GROUP_FILES):
                    return group
                group.rmdir()
    except OSError as error:
        return f"no group of processes can be made here: {error}"
    return "there are no groups of processes whose memory can be limited"


def too_much() -> dict[str, Any]:
    """Predictions and labels for which this machine has no memory."""
    Path("/proc/self/oom_score_adj").write_text("1000")
    machine = memory.available() or 1 << 34
    X, Y = numbers(1_000, 4, 500)
    model = ManyBoostRegressor(max_iter=1).fit(X, Y)
    rows = int(1.2 * machine) // (500 * 8)
    many = np.zeros((rows, 4), np.float32)
    # One byte a cell would do, nine for training do not.
    labels = sparse.csr_array((1_000_000, machine // 4_000_000), dtype=np.uint8)
    outcomes = {
        "predictions": outcome_of(lambda: model.predict(many)),
        "labels": outcome_of(lambda: ManyBoostClassifier(max_iter=1).fit(many[:1_000_000], labels)),
    }
    return {"wrong": [f"{what}: {how}" for what, how in outcomes.items() if not sound(how)]}


def outcome_of(action: Callable[[], Any]) -> str:
    try:
        action()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "done"


# ---------------------------------------------------------------- estimates


def estimates(long: str) -> dict[str, Any]:
    """Estimated over measured memory, for fits of different shapes."""
    shapes = [
        (300_000, 20, 30, {}),
        (200_000, 20, 30, {"strategy": "multioutput"}),
        (150_000, 20, 80, {"labels": True}),
        (300_000, 10, 20, {"early_stopping": True}),
        (300_000, 60, 2, {"strategy": "independent"}),
    ]
    ratios = []
    for n, p, d, parameters in shapes if bool(int(long)) else shapes[:1]:
        action = fit(n, p, d, **{"early_stopping": False, **parameters})()
        ratios.append(estimate(action))
    return {"ratios": ratios}


def estimate(action: Callable[[], Any]) -> float:
    """The ratio for one fit, in a child, whose peak is its own."""
    ctypes.CDLL(None).malloc_trim(0)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        seen: list[float] = []

        def look(needed: int, what: str, remedy: str) -> None:
            Path("/proc/self/clear_refs").write_text("5")
            seen[:] = [needed, resident("VmRSS")]

        memory.check = look
        action()
        needed, before = seen
        os.write(writer, str(needed / (resident("VmHWM") - before)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        ratio = float(pipe.read())
    os.waitpid(child, 0)
    return ratio


def resident(field: str) -> int:
    """Resident bytes of this process: VmRSS now, VmHWM at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


# ---------------------------------------------------------------- leaks


def leak(fits: str) -> dict[str, Any]:
    """How much resident memory grows over small fits of all kinds."""
    X, Y = numbers(300, 6, 8)
    labels = (Y > 0).astype(int)
    classes = Y[:, :4].argmax(axis=1)
    readings = []
    for k in range(int(fits)):
        strategy = STRATEGIES[k % 4]
        common = {"strategy": strategy, "max_iter": 5, "random_state": k, "n_jobs": 1 + k % 2}
        if k % 3 == 0:
            model = ManyBoostRegressor(**common).fit(X, Y)
        elif k % 3 == 1:
            model = ManyBoostClassifier(early_stopping=True, **common).fit(X, labels)
        else:
            model = ManyBoostClassifier(**common).fit(X, classes)
        model.predict(X)
        if k % 10 == 9:
            gc.collect()
            readings.append(resident("VmRSS"))
    # Caches fill in the first fits; then nothing grows. Medians, since some pages come and go.
    third = max(1, len(readings) // 3)
    return {"grown": int(np.median(readings[-third:]) - np.median(readings[third : 2 * third]))}


PARTS = {
    "limits": limits,
    "groups": groups,
    "in_group": in_group,
    "too_much": too_much,
    "estimates": estimates,
    "leak": leak,
}

if __name__ == "__main__":
    print(json.dumps(PARTS[sys.argv[1]](*sys.argv[2:])))
