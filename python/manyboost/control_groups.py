"""The control groups of this process: how Linux, and containers on it, limit memory and CPUs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_CGROUPS, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def own_groups(controller: str) -> Iterator[tuple[int, Path]]:
    """Yield version (1 or 2) and folder of the groups of this process, and of their parents.

    Not every folder has the files of the controller. Systems without groups raise OSError.
    """
    for line in _OWN_GROUPS.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            version, root = 2, _CGROUPS
        elif controller in controllers.split(","):
            version, root = 1, _CGROUPS / controller
        else:
            continue
        own = root / path.lstrip("/")
        yield from ((version, group) for group in (own, *own.parents))
