"""A search, led by the lines that run, for model files that are not dealt with.

    python -m torture.model_fuzzing SECONDS SEED CANDIDATE

Files are changed at random, with a checksum that fits; one that makes the reader take a step that
no other file made it take is kept and changed further. Every file must be refused by a sentence or
be a model that says what its file says, and predicts. CANDIDATE is where each file is written
before it is read: it holds the culprit if this process dies. Prints what was found as JSON.
"""

from __future__ import annotations

import json
import random
import resource
import signal
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from torture.children import described

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS))

import model_mutants  # noqa: E402 (found on the path that was just added)
from model_surgery import closed, opened  # noqa: E402

SPARE_MEMORY = 192 << 20  # for the corpus; a file has a few kilobytes
SECONDS_PER_FILE = 5
READERS = "/manyboost/persistence/"
SHORTEST, LARGEST = 64, 1 << 18


class Steps:
    """The steps from line to line that the reader has taken."""

    def __init__(self) -> None:
        self.known: set[tuple[str, int, int]] = set()
        self._new = 0
        self._last = 0

    def follow(self, file: bytes) -> tuple[str, int]:
        """Read a file; return what becomes of it, and how many steps were never taken before."""
        self._new = 0
        sys.settrace(self._enter)
        try:
            return model_mutants.outcome(file), self._new
        finally:
            sys.settrace(None)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        if READERS not in frame.f_code.co_filename:
            return None
        self._last = 0
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            step = frame.f_code.co_filename, self._last, frame.f_lineno
            self._last = frame.f_lineno
            if step not in self.known:
                self.known.add(step)
                self._new += 1
        return self._step


def crossed(file: bytes, rng: random.Random, corpus: list[bytes]) -> bytes:
    """The header of one file with arrays of another."""
    header, arrays = opened(file)
    others = opened(rng.choice(corpus))[1]
    for name in rng.sample(sorted(others), min(len(others), rng.choice([1, 1, 2, 5]))):
        arrays[name] = others[name]
    return bytes(closed(header, arrays))


def mutant(corpus: list[bytes], rng: random.Random) -> bytes:
    """One of the files, changed some times; the newest are chosen more often."""
    file = corpus[max(rng.randrange(len(corpus)), rng.randrange(len(corpus)))]
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        kind = rng.choice([*model_mutants.MENDED, "crossed"])
        try:
            if kind == "crossed":
                file = crossed(file, rng, corpus)
            else:
                file = model_mutants.KINDS[kind](file, rng)
        except Exception:
            # It is not put together as files are any more: bits are all that can be changed.
            if len(file) > SHORTEST:
                file = model_mutants.mended_bits(file, rng)
    return file[:LARGEST]


def limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + SPARE_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main(seconds: float, seed: int, candidate: Path) -> None:
    rng = random.Random(seed)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    corpus = [*model_mutants.GOLDEN.values(), model_mutants.with_arrays_and_code()]
    steps = Steps()
    for file in corpus:
        assert steps.follow(file)[0] == "sound"
    hostile = [path.read_bytes() for path in sorted(TESTS.glob("models/hostile/*.mb"))]
    n_known = len(steps.known)
    limit_memory()
    counts: Counter[str] = Counter()
    failures: list[str] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        file = hostile.pop() if hostile else mutant(corpus, rng)
        candidate.write_bytes(file)
        signal.alarm(SECONDS_PER_FILE)
        try:
            ending, n_new = steps.follow(file)
        except Exception as error:
            failures.append(described(error))
            candidate.with_suffix(f".{len(failures)}").write_bytes(file)
            ending, n_new = "failed", 0
        signal.alarm(0)
        counts[ending] += 1
        if n_new and len(corpus) < 1000:
            corpus.append(file)
    found = {
        "files": sum(counts.values()),
        "endings": dict(counts),
        "failures": failures[:20],
        "corpus": len(corpus),
        "steps": len(steps.known),
        "steps of sound files": n_known,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
