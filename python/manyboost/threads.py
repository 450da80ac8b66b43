"""How many threads to use."""

from __future__ import annotations

import contextlib
import functools
import math
import numbers
import os
from pathlib import Path

from manyboost.control_groups import own_groups

#: No machine has more use for threads than this, whatever a model file asks for.
MOST_THREADS = 1024


def resolve_threads(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``, which may have changed since it was checked."""
    if n_jobs is not None:
        if not isinstance(n_jobs, numbers.Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
            allowed = "it must be None, or an integer other than 0."
            raise ValueError(f"n_jobs={n_jobs!r} is not allowed; {allowed}")
        if n_jobs > 0:
            return min(int(n_jobs), MOST_THREADS)
    if n_jobs is None:
        wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        if wanted.isdecimal():
            return min(max(1, int(wanted)), MOST_THREADS)
    return max(1, available_cpus() + (0 if n_jobs is None else 1 + n_jobs))


def available_cpus() -> int:
    """Return how many CPUs this process may use: those it may run on, or fewer by a quota."""
    mask = getattr(os, "sched_getaffinity", None)
    there = os.cpu_count() or 1 if mask is None else len(mask(0))
    return max(1, math.ceil(min(there, _quota())))


@functools.cache
def _quota() -> float:
    """Return the CPUs whose time the control groups allow, such as ``docker run --cpus`` sets."""
    quotas = [math.inf]
    # Other systems have no groups, or write these files differently.
    with contextlib.suppress(OSError, ValueError):
        quotas += [_quota_of(group, version) for version, group in own_groups("cpu")]
    return min(quotas)


def _quota_of(group: Path, version: int) -> float:
    try:
        if version == 2:
            time, period = (group / "cpu.max").read_text().split()  # "max" is no number
        else:
            time = (group / "cpu.cfs_quota_us").read_text()  # -1: none
            period = (group / "cpu.cfs_period_us").read_text()
        return int(time) / int(period) if int(time) > 0 else math.inf
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf
