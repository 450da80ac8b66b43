"""When a fit ends."""

from benchmarks.contestants.base import PerOutput, Settings, Stopwatch
from benchmarks.workloads import Data

PATIENCE = 10  # rounds without improvement, where a library has no default of its own
TRIAL = 0.2  # of the cap: after this, one model per output is given up if it would take far longer


class Stopped(PerOutput):
    """One model per output, each stopped on its own."""

    def fit(self, data: Data, settings: Settings, watch: Stopwatch) -> None:
        super().fit(data, settings, watch)
        self.stopped = False  # all outputs, or no score

    def gives_up(self, n_outputs: int, watch: Stopwatch) -> bool:
        return watch.expired or hopeless(len(self.model), n_outputs, self.setup_seconds, watch)


def hopeless(n_done: int, n_outputs: int, setup_seconds: float, watch: Stopwatch) -> bool:
    """Whether a fifth of the time has shown that all outputs would take over twice of it."""
    whole = setup_seconds + (watch.elapsed - setup_seconds) * n_outputs / n_done
    return n_done >= 10 and watch.elapsed > TRIAL * watch.limit and whole > 2 * watch.limit
