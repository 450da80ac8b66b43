"""What part of a round's time is spent in each kernel of the extension, seen by the profiler."""

import cProfile
import re
from collections.abc import Callable

# As the profiler names functions and methods of the extension.
KERNEL = re.compile(r"manyboost\._core\.(\w+)>|'(\w+)' of 'manyboost\._core\.")


def kernel_seconds(fit: Callable[[], object], n_rounds: int) -> dict[str, float]:
    """Seconds that one round of a fit spends in each kernel that all rounds call."""
    profile = cProfile.Profile()
    profile.runcall(fit)
    spent: dict[str, float] = {}
    for entry in profile.getstats():
        if (found := KERNEL.search(str(entry.code))) and entry.callcount >= n_rounds:
            kernel = (found[1] or found[2]).removesuffix("_residuals")
            spent[kernel] = spent.get(kernel, 0.0) + entry.inlinetime / n_rounds
    return spent
