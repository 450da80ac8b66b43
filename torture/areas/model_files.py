"""Model files that are not what they should be: damaged, hostile, and found by fuzzing."""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from torture.figures import Figure, none_of, skipped
from torture.models import ROOT
from torture.native_builds import NoTool, fuzzer

TITLE = "model files"
PROMISE = (
    "A file is refused in one sentence or is a model that says exactly what its file says, in "
    "bounded time and memory; nothing in a file is executed."
)

MEGABYTES = 512  # for the fuzzer of the core, whose inputs have a few kilobytes


def run(long: bool, seed: int) -> list[Figure]:
    return [
        *mutants(10_000 if long else 80, seed),
        *searched(600.0 if long else 2.0, seed),
        *fuzzed(600 if long else 2, seed, may_build=long),
    ]


def mutants(count: int, seed: int) -> list[Figure]:
    """The mutation test of the suite, which ends at the first file that is not dealt with."""
    what = "damaged files: crashes, hangs, silent changes"
    command = [sys.executable, "tests/model_mutants.py", str(count), str(seed)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    words = process.stderr.strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
    return [none_of(what, count, words if process.returncode else [])]


# ---------------------------------------------------------------------- the reader in Python


def searched(seconds: float, seed: int) -> list[Figure]:
    """Files that are changed as the steps of the reader suggest, for so many seconds."""
    end = time.monotonic() + seconds
    files = steps = 0
    failures: list[str] = []
    deaths: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        candidate = Path(folder) / "candidate"
        while (left := end - time.monotonic()) > 0.1 and len(deaths) < 20:
            command = [sys.executable, "-m", "torture.model_fuzzing"]
            arguments = [str(left), str(seed + len(deaths)), str(candidate)]
            process = subprocess.run(
                command + arguments, cwd=ROOT, capture_output=True, text=True, check=False
            )
            if process.returncode:
                deaths.append(death(process, candidate))
                continue
            found = json.loads(process.stdout)
            files, steps = files + found["files"], max(steps, found["steps"])
            failures += found["failures"]
    what = f"files led by coverage for {seconds:g} s ({steps:,} steps of the reader)"
    return [
        none_of(f"{what}: errors, silent changes", files, failures),
        none_of(f"{what}: crashes, hangs, too much memory", files, deaths),
    ]


def death(process: subprocess.CompletedProcess[str], candidate: Path) -> str:
    """How a process died, and of which file; the file is kept beside the results."""
    code = process.returncode
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    words = process.stderr.strip().splitlines()[-1:]
    if candidate.is_file():
        kept = Path(tempfile.gettempdir()) / f"culprit-{os.getpid()}-{time.time_ns()}.mb"
        kept.write_bytes(candidate.read_bytes())
        words.append(str(kept))
    return ": ".join([how, *words])


# ---------------------------------------------------------------------- the trees in the core


def fuzzed(seconds: int, seed: int, *, may_build: bool) -> list[Figure]:
    """Arrays of trees from libFuzzer, under the address sanitizer."""
    what = f"arrays of trees, libFuzzer with AddressSanitizer for {seconds} s: reports"
    try:
        binary = fuzzer(build=may_build)
    except NoTool as reason:
        return [skipped(what, "0", str(reason))]
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        write_seeds(corpus)
        command = [
            str(binary),
            str(corpus),
            f"-max_total_time={seconds}",
            f"-seed={seed + 1}",
            f"-rss_limit_mb={MEGABYTES}",
            "-malloc_limit_mb=64",
            "-timeout=5",
            "-max_len=16384",
            "-use_value_profile=1",
            "-print_final_stats=1",
            f"-artifact_prefix={folder}/",
        ]
        # A process begins with the peak of memory of the one that started it: a shell's is small.
        command = ["sh", "-c", '"$@"; exit $?', "sh", *command]
        process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    executed = re.search(r"stat::number_of_executed_units:\s*(\d+)", process.stderr)
    covered = re.findall(r"cov: (\d+)", process.stderr)
    reports = re.findall(r"(?:ERROR|SUMMARY): .*|panicked at .*", process.stderr)
    if process.returncode and not reports:
        reports = [f"exit code {process.returncode}"]
    peak = re.search(r"stat::peak_rss_mb:\s*(\d+)", process.stderr)
    most = int(peak.group(1)) if peak else 0
    edges = covered[-1] if covered else "?"
    cases = int(executed.group(1)) if executed else 0
    return [
        none_of(f"{what} ({edges} edges)", cases, reports),
        Figure("the same: memory at most", f"{MEGABYTES} MB", f"{most} MB",
               0 < most <= MEGABYTES, cases),
    ]  # fmt: skip


def write_seeds(folder: Path) -> None:
    """The trees of the golden files as the target reads them: see fuzz_targets/model_arrays.rs."""
    from manyboost.persistence.model import from_bytes

    names = ("tree_sizes", "node_left", "node_cover", "split_feature", "split_threshold")
    names += ("split_gain", "split_categories", "leaf_values", "tree_steps")
    names += ("leaf_sizes", "leaf_outputs")
    kinds = {"per_output": 0, "vector": 1, "scaled": 2, "sparse": 3}
    for path in sorted((ROOT / "tests" / "models").glob("*.mb")):
        model: Any = from_bytes(path.read_bytes())
        trees = model._progress.model.trees
        stored = trees.arrays()
        arrays = [np.ascontiguousarray(stored.get(name, np.zeros(0, "<u4"))) for name in names]
        categories = model._progress.categories
        counts = np.zeros(trees.n_features, "<u4")
        for feature, table in categories.tables.items():
            counts[feature] = len(table)
        head = [kinds[trees.kind] | 4, trees.n_outputs, trees.n_features]
        head += [array.size for array in arrays]
        words = struct.pack(f"<{len(head)}I", *head) + counts.tobytes()
        (folder / path.stem).write_bytes(words + b"".join(array.tobytes() for array in arrays))
