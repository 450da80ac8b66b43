"""Fit one contestant to one workload once, in this process, and write down what it took.

Started by `run`:  python -m benchmarks.measure SPEC.json RECORD.json
"""

import contextlib
import ctypes
import gc
import json
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import metrics, workloads
from benchmarks.contestants import CONTESTANTS, Contestant, Settings, Stopwatch
from benchmarks.workloads import Data

SHORT_FIT = 1.0  # seconds: a fit this short is repeated in place, the first one pays for warm-up
SHORT_PREDICT = 1.0  # seconds spent on repeating a prediction
MOST_REPEATS = 5


def main() -> None:
    end_with_parent()
    spec_file, record_file = map(Path, sys.argv[1:])
    spec = json.loads(spec_file.read_text())
    record_file.write_text(json.dumps({"spec": spec, "status": "ok", **measured(spec)}))


def end_with_parent() -> None:
    """Be killed when the run that started this process is, however it ends."""
    with contextlib.suppress(OSError, AttributeError):  # Linux alone
        ctypes.CDLL("libc.so.6").prctl(1, signal.SIGKILL)  # 1: PR_SET_PDEATHSIG


def measured(spec: dict[str, Any]) -> dict[str, Any]:
    if spec["workload"] == "import":
        return import_time(spec)
    if spec.get("protocol") == "contest":
        from benchmarks.contest import fitting

        return fitting.fit_and_score(spec)
    if spec.get("protocol") in ("rounds", "prediction"):
        from benchmarks import engine

        of_rounds = spec["protocol"] == "rounds"
        return engine.time_of_rounds(spec) if of_rounds else engine.time_of_prediction(spec)
    return fit_and_predict(spec)


def import_time(spec: dict[str, Any]) -> dict[str, Any]:
    """Seconds that `import` takes in a fresh interpreter whose files are in the system's cache."""
    # The estimators, not the name alone: the package loads them when they are first asked for.
    what = {"manyboost": "from manyboost import ManyBoostRegressor", "sklearn": "import sklearn"}
    code = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", code.format(what[spec["contestant"].removeprefix("import-")])]
    runs = [float(subprocess.check_output(command, cwd="/")) for _ in range(6)]
    return {"fit_seconds": statistics.median(runs[1:])}


def fit_and_predict(spec: dict[str, Any]) -> dict[str, Any]:
    kind = CONTESTANTS[spec["contestant"]]
    settings = settings_of(spec)
    kind().prepare()
    data = workloads.find(spec["workload"]).load()

    contestant, fits, peak = timed_fits(kind, data, settings, spec["limit"])
    seconds = statistics.median(fits)

    raw, predict_seconds = timed_predict(contestant, data.X_test)
    whole = Whole.of(contestant, settings.n_rounds, data, fits[-1])
    return {
        "n_rows": data.X.shape[0],
        "n_features": data.X.shape[1],
        "n_outputs": data.n_outputs,
        "n_test_rows": data.X_test.shape[0],
        "parameters": contestant.parameters,
        "fit_seconds": whole.seconds(seconds),
        "fit_seconds_measured": fits,
        "seconds_per_round": whole.seconds_per_round(seconds),
        "extrapolated": whole.extrapolated,
        "peak_bytes": peak,
        "predict_seconds": predict_seconds * whole.output_factor * whole.round_factor,
        "model_bytes": int(contestant.model_bytes() * whole.output_factor * whole.round_factor),
        **scores(contestant, data, raw, whole, spec["n_rounds"]),
    }


def settings_of(spec: dict[str, Any], **others: Any) -> Settings:
    names = ("n_rounds", "max_leaf_nodes", "max_bins", "learning_rate", "n_threads")
    return Settings(**{name: spec[name] for name in names}, **others)


def timed_fits(
    kind: type[Contestant], data: Data, settings: Settings, limit: float
) -> tuple[Contestant, list[float], int | None]:
    """The fitted contestant, the seconds of each fit, and the peak memory of the first."""
    contestant, seconds, peak = timed_fit(kind, data, settings, limit)
    fits = [seconds]
    while sum(fits) < SHORT_FIT and len(fits) < MOST_REPEATS:
        contestant, seconds, _ = timed_fit(kind, data, settings, limit)
        fits.append(seconds)
    return contestant, fits, peak


def timed_fit(
    kind: type[Contestant], data: Data, settings: Settings, limit: float
) -> tuple[Contestant, float, int | None]:
    """The fitted contestant, the seconds and the peak memory in bytes that its fit took."""
    contestant = kind()
    memory = PeakMemory()
    watch = Stopwatch(limit)
    contestant.fit(data, settings, watch)
    seconds = watch.elapsed
    return contestant, seconds, memory.above_start()


def timed_predict(contestant: Contestant, X) -> tuple[np.ndarray, float]:
    """Raw predictions and the median time they took."""
    seconds: list[float] = []
    while not seconds or (sum(seconds) < SHORT_PREDICT and len(seconds) < MOST_REPEATS):
        began = time.perf_counter()
        raw = contestant.predict(X)
        seconds.append(time.perf_counter() - began)
    return raw, statistics.median(seconds)


def scores(
    contestant: Contestant, data: Data, raw: np.ndarray, whole: "Whole", n_rounds: int
) -> dict[str, Any]:
    """The test score and its curve; none where labels cannot be ranked because some are missing."""
    Y = data.Y_test
    if contestant.outputs_done is not None:
        Y = Y[:, contestant.outputs_done]
    n_outputs = round(raw.shape[1] * whole.output_factor)
    found: dict[str, Any] = {
        "score_name": metrics.score_name(data.task, n_outputs),
        "score": None,
        "curve": [],
    }
    if data.task == "multilabel" and whole.output_factor > 1:
        return found
    if contestant.rounds_done == n_rounds:
        found["score"] = metrics.score(data.task, Y, raw)
        if data.task == "multiclass":
            found["log_loss"] = metrics.log_loss(Y, raw)
    rounds = curve_rounds(contestant.rounds_done, contestant.curve_growth)
    for n, stage in zip(rounds, contestant.staged(data.X_test, rounds), strict=True):
        found["curve"].append([n, whole.seconds_at(n), metrics.score(data.task, Y, stage)])
    return found


def curve_rounds(n_rounds: int, growth: float) -> list[int]:
    """Round numbers 1 … n_rounds in steps that grow by this factor, first and last included."""
    rounds = [1]
    while rounds[-1] < n_rounds:
        rounds.append(min(n_rounds, max(rounds[-1] + 1, round(rounds[-1] * growth))))
    return rounds[: n_rounds and len(rounds)]


class Whole:
    """What a fit that was stopped at its time limit would have taken as a whole.

    A contestant with one model per output stops between outputs: the time after its set-up grows
    with the outputs. Others stop between rounds: the time grows with the rounds.
    """

    def __init__(
        self,
        *,
        n_rounds: int,
        rounds_done: int,
        n_outputs: int,
        outputs_done: int,
        setup_seconds: float,
        round_seconds: np.ndarray | None,
        fit_seconds: float,
    ) -> None:
        self.rounds_done = rounds_done
        self.missing_rounds = n_rounds - rounds_done
        self.round_factor = n_rounds / max(rounds_done, 1)
        self.output_factor = n_outputs / outputs_done
        self.setup_seconds = setup_seconds
        if round_seconds is None:
            round_seconds = np.linspace(0, fit_seconds, rounds_done + 1)[1:]
        self.round_seconds = round_seconds
        self.extrapolated = None
        if outputs_done < n_outputs:
            self.extrapolated = f"{outputs_done} of {n_outputs} outputs"
        elif self.missing_rounds:
            self.extrapolated = f"{rounds_done} of {n_rounds} rounds"

    @classmethod
    def of(cls, contestant: Contestant, n_rounds: int, data: Data, fit_seconds: float) -> "Whole":
        one = contestant.name.endswith("-one-output")  # one output is all it is asked for
        done = contestant.outputs_done
        return cls(
            n_rounds=n_rounds,
            rounds_done=contestant.rounds_done,
            n_outputs=1 if one else data.n_outputs,
            outputs_done=data.n_outputs if done is None else len(done),
            setup_seconds=contestant.setup_seconds,
            round_seconds=contestant.round_seconds,
            fit_seconds=fit_seconds,
        )

    def seconds(self, measured: float) -> float:
        """The whole fit's time, from the measured time of the part."""
        grown = self.setup_seconds + (measured - self.setup_seconds) * self.output_factor
        return grown + self.missing_rounds * self.seconds_per_round(measured)

    def seconds_per_round(self, measured: float) -> float:
        """Time of one more round for all outputs, without what comes before the first."""
        if self.rounds_done < 2:
            return measured * self.output_factor / max(self.rounds_done, 1)
        laps = self.round_seconds
        return float((laps[-1] - laps[0]) / (self.rounds_done - 1)) * self.output_factor

    def seconds_at(self, n: int) -> float:
        """The time at which round n was complete for all outputs."""
        at = float(self.round_seconds[n - 1])
        return self.setup_seconds + (at - self.setup_seconds) * self.output_factor


class PeakMemory:
    """The highest resident memory above that at the start, from the kernel's own counter.

    Memory that the loading of the data has freed is given back first: a fit that would quietly
    reuse it looks too small.
    """

    def __init__(self) -> None:
        gc.collect()
        trim_heap()
        self.start = resident_bytes("VmRSS")
        try:
            Path("/proc/self/clear_refs").write_text("5")  # 5: reset the peak
        except OSError:
            self.start = None

    def above_start(self) -> int | None:
        return None if self.start is None else max(0, resident_bytes("VmHWM") - self.start)


def resident_bytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def trim_heap() -> None:
    try:
        trim: Callable[[int], int] = ctypes.CDLL("libc.so.6").malloc_trim
    except (OSError, AttributeError):
        return
    trim(0)


if __name__ == "__main__":
    main()
