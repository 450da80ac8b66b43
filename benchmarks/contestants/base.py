"""What every contestant does: fit under a stopwatch, predict, predict in stages, be weighed."""

import contextlib
import importlib.util
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.workloads import Data

CONSTANT = 30.0  # raw prediction for a label that all, or minus that for one that no, row has


@dataclass(frozen=True)
class Settings:
    """The same for all contestants of a workload; each translates them into its own words."""

    n_rounds: int = 100
    max_leaf_nodes: int = 31
    max_bins: int = 255
    learning_rate: float = 0.1
    n_threads: int = 2
    seed: int = 0
    min_leaf_rows: int | None = None  # None: the default of the library
    laps: bool = True
    variant: str = ""  # what else is asked of manyboost: names joined by "+"

    @property
    def times_rounds(self) -> bool:
        """Whether each round is timed, and long enough for a Python callback not to disturb it."""
        return self.laps and self.n_rounds <= 1000


class Stopwatch:
    """Seconds since the fit began; `expired` asks the contestant to stop at its next chance."""

    def __init__(self, limit: float = np.inf) -> None:
        self.limit = limit
        self.began = time.perf_counter()

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    @property
    def expired(self) -> bool:
        return self.elapsed > self.limit

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Time that is not the fit's."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.began += time.perf_counter() - began


class Contestant:
    """One library, set up in one way.

    After `fit`: `rounds_done` and `outputs_done` tell how far it came before the stopwatch expired,
    `setup_seconds` what it did once for all outputs, and `round_seconds` (rounds_done,) the time at
    which each round was complete, or None when the library does not tell. One that predicts while
    it fits, and lets its model go in parts, says what that took (`voting_seconds`), what the model
    would weigh (`bytes_let_go`), and how many parts there were (`parts_let_go`).
    """

    name: str
    library: str  # the module to import
    tasks: Sequence[str] = ("regression", "multilabel", "multiclass")
    patience: int | None = None  # rounds without improvement that end a fit, if any do

    def __init__(self) -> None:
        self.rounds_done = 0
        self.outputs_done: np.ndarray | None = None  # None: all of them
        self.setup_seconds = 0.0
        self.round_seconds: np.ndarray | None = None
        self.parameters: dict[str, Any] = {}  # as given to the library, for the record
        self.model: Any = None
        self.voting_seconds: float | None = None
        self.stopped: bool | None = None  # by the stopwatch; None: it does not say
        self.bytes_let_go, self.parts_let_go = 0, 0

    def bytes_beside_the_peak(self) -> float:
        """What of the model the peak of memory lacks: all parts but one."""
        parts = self.parts_let_go
        return self.bytes_let_go * (parts - 1) / parts if parts else 0

    @property
    def curve_growth(self) -> float:
        """Ratio of neighbouring round numbers at which the score curve is evaluated."""
        return 1.25

    def unavailable(self) -> str | None:
        """Why this contestant cannot take part here, or None."""
        if importlib.util.find_spec(self.library.split(".")[0]) is None:
            return f"{self.library} is not installed"
        return None

    def prepare(self) -> None:
        """Import the library, so that the fit is not charged for it."""
        __import__(self.library)

    def fit(self, data: Data, settings: Settings, watch: Stopwatch) -> None:
        raise NotImplementedError

    def predict(self, X) -> np.ndarray:
        """Raw predictions (n, number of outputs done)."""
        raise NotImplementedError

    def staged(self, X, rounds: Sequence[int]) -> Iterator[np.ndarray]:
        """Raw predictions (n, d) after each of these rounds, in ascending order."""
        raise NotImplementedError

    def model_bytes(self) -> int:
        return pickled_bytes(self.model)

    def expected_bytes(self, data: Data, settings: Settings) -> int | None:
        """What the library itself says a fit takes above the data; None: it does not say."""
        return None

    def leaves_per_round(self) -> float | None:
        """How many leaves a tree was given, which may be fewer than allowed; None: not known."""
        return None


class PerOutput(Contestant):
    """One model per output, one after the other, in random order until the stopwatch expires."""

    tasks: Sequence[str] = ("regression", "multilabel")

    def start(self, data: Data, settings: Settings) -> None:
        """Whatever all outputs share."""

    def fit_one(self, data: Data, j: int, settings: Settings, lap: Callable[[], None]) -> Any:
        """A model of output j; calls `lap` after each round if it can."""
        raise NotImplementedError

    def predict_one(self, model: Any, X) -> np.ndarray:
        raise NotImplementedError

    def staged_one(self, model: Any, X, rounds: Sequence[int]) -> Iterator[np.ndarray]:
        raise NotImplementedError

    def gives_up(self, n_outputs: int, watch: Stopwatch) -> bool:
        """Whether the outputs so far must do."""
        return watch.expired

    def fit(self, data: Data, settings: Settings, watch: Stopwatch) -> None:
        self.start(data, settings)
        self.setup_seconds = watch.elapsed
        self.model = {}
        seconds = np.zeros(settings.n_rounds)
        for j in np.random.default_rng(settings.seed).permutation(data.n_outputs):
            began, laps = watch.elapsed, []
            self.model[int(j)] = self.fit_one(
                data, j, settings, lambda laps=laps: laps.append(watch.elapsed)
            )
            # A library may stop early on an output: it then waits at its last lap.
            laps += [watch.elapsed] * (settings.n_rounds - len(laps)) if laps else []
            seconds += np.array(laps) - began if laps else np.nan
            if self.gives_up(data.n_outputs, watch):
                break
        self.rounds_done = settings.n_rounds
        self.round_seconds = None if np.isnan(seconds[0]) else self.setup_seconds + seconds
        self.outputs_done = np.array(sorted(self.model))

    def models(self) -> list[Any]:
        return [self.model[j] for j in sorted(self.model)]

    def predict(self, X) -> np.ndarray:
        return np.column_stack([self.predict_one(model, X) for model in self.models()])

    def staged(self, X, rounds: Sequence[int]) -> Iterator[np.ndarray]:
        stages = [self.staged_one(model, X, rounds) for model in self.models()]
        for _ in rounds:
            yield np.column_stack([next(stage) for stage in stages])


def two_dimensional(raw: np.ndarray) -> np.ndarray:
    """Raw predictions as (n, d), also where a library drops the axis of a single output."""
    return raw.reshape(len(raw), -1)


def picked(stages: Iterator[np.ndarray], rounds: Sequence[int]) -> Iterator[np.ndarray]:
    """Those of the stages, one per round from the first on, that belong to `rounds`."""
    wanted = set(rounds)
    for n, stage in enumerate(stages, start=1):
        if n in wanted:
            yield two_dimensional(stage)


def pickled_bytes(model: Any) -> int:
    """Size of the pickled model, without holding the pickle in memory."""
    counter = ByteCounter()
    pickle.dump(model, counter, protocol=5)
    return counter.n_bytes


class ByteCounter:
    def __init__(self) -> None:
        self.n_bytes = 0

    def write(self, chunk) -> int:
        self.n_bytes += memoryview(chunk).nbytes
        return memoryview(chunk).nbytes
