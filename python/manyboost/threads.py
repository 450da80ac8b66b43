"""How many threads to use."""

from __future__ import annotations

import os

#: No machine has more use for threads than this, whatever a model file asks for.
MOST_THREADS = 1024


def resolve_threads(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``."""
    available = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    if n_jobs is None:
        wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        return max(1, int(wanted)) if wanted.isdigit() else available
    return min(n_jobs, MOST_THREADS) if n_jobs > 0 else max(1, available + 1 + n_jobs)
