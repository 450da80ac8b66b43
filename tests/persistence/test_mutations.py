"""Damaged files: refused, or sound, but never a crash, a hang, or a change that goes unnoticed.

A child process with little memory reads mutants of the golden files. MANYBOOST_MUTATIONS=10000 runs
the long test.
"""

import os
import subprocess
import sys
from pathlib import Path

N_MUTANTS = int(os.environ.get("MANYBOOST_MUTATIONS", "500"))
# Seconds for all; a mutant takes a millisecond, and one that hangs hangs for ever.
PATIENCE = 60 + N_MUTANTS // 10


def test_mutants_are_refused_or_sound():
    script = Path(__file__).parents[1] / "model_mutants.py"
    done = subprocess.run(
        [sys.executable, script, str(N_MUTANTS)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    counts = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert sum(int(n) for name, n in counts.items() if name.endswith("mutants")) == N_MUTANTS
    # Kinds of damage that no mending of checksums hides are refused every time.
    for kind in ("flipped bits", "truncated", "spliced", "lengthened"):
        assert int(counts[f"{kind}, refused"]) == int(counts[f"{kind}, mutants"]) > 0
    # With a checksum that fits, most are refused, and some are other models.
    for kind in ("mended bits", "mended splice", "edited header", "edited array"):
        assert 0 < int(counts[f"{kind}, refused"]) <= int(counts[f"{kind}, mutants"])
    assert int(counts["edited array, sound"]) > 0
