"""Speed alone, without scores: the time of one more round, and of predictions.

A round is the difference of a long and a short fit over the difference of their rounds: what a fit
does once (reading, binning, building the result) drops out. Both fits take turns, and the fastest
of each counts: what other processes do can only slow them down.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import workloads
from benchmarks.contestants import CONTESTANTS, Contestant, Settings, Stopwatch
from benchmarks.measure import PeakMemory, Whole, settings_of
from benchmarks.suites import AS_STORED
from benchmarks.workloads import Data

SHARE = 6  # a long fit has so many times the rounds of a short one
LEAST_PAIRS, MOST_PAIRS = 2, 25
TRAINING_ROWS = 1000  # of the models whose predictions are timed
TRAINING_BINS = 32  # histograms of a thousand outputs fit into memory
PREDICT_SECONDS = 1.0  # spent on repeating a prediction
MOST_PREDICTIONS = 50


def time_of_rounds(spec: dict[str, Any]) -> dict[str, Any]:
    """The record of one contestant's rounds; `limit` seconds are spent on repeats."""
    kind, data = prepared(spec)
    short, long = short_and_long(spec)
    memory = PeakMemory()
    fitted(kind, data, short)  # a warm-up
    peak = memory.above_start()
    short_seconds: list[float] = []
    long_seconds: list[float] = []
    while another(short_seconds, long_seconds, spec["limit"]):
        short_seconds.append(fitted(kind, data, short)[1])
        contestant, seconds = fitted(kind, data, long)
        long_seconds.append(seconds)
    return {
        **shape(data),
        "parameters": contestant.parameters,
        "fit_seconds": min(long_seconds),
        "short_rounds": short.n_rounds,
        "short_seconds": short_seconds,
        "long_seconds": long_seconds,
        "seconds_per_round": slope(short.n_rounds, short_seconds, long.n_rounds, long_seconds),
        "leaves_per_round": contestant.leaves_per_round(),
        "peak_bytes": peak,
        "expected_bytes": contestant.expected_bytes(data, short),
    }


def short_and_long(spec: dict[str, Any]) -> tuple[Settings, Settings]:
    """The settings of both fits."""
    long = settings_of(spec, laps=False, variant=spec.get("variant", ""))
    # The same least leaf: otherwise some libraries grow far fewer leaves on small tables.
    long = replace(long, min_leaf_rows=1)
    return replace(long, n_rounds=short_rounds(long.n_rounds)), long


def short_rounds(long_rounds: int) -> int:
    return max(1, long_rounds // SHARE)


def slope(
    short_rounds: int, short: Sequence[float], long_rounds: int, long: Sequence[float]
) -> float:
    """Seconds of one more round."""
    return (min(long) - min(short)) / (long_rounds - short_rounds)


def another(short: Sequence[float], long: Sequence[float], limit: float) -> bool:
    if len(long) < LEAST_PAIRS:
        return True
    spent, next_pair = sum(short) + sum(long), short[-1] + long[-1]
    return len(long) < MOST_PAIRS and spent + next_pair < limit


def time_of_prediction(spec: dict[str, Any]) -> dict[str, Any]:
    """The record of the predictions, for all training rows, of a model of a few of them."""
    kind, data = prepared(spec)
    X, n_outputs = data.X, data.n_outputs
    data, settings = few_rows(data), settings_of_predictor(spec)
    contestant, seconds = fitted(kind, data, settings, spec["limit"])
    whole = Whole.of(contestant, settings.n_rounds, data, seconds)
    times = repeated(lambda: contestant.predict(X))
    return {
        **shape(data),
        "n_outputs": n_outputs,
        "n_test_rows": X.shape[0],
        "parameters": contestant.parameters,
        "fit_seconds": whole.seconds(seconds),
        "extrapolated": whole.extrapolated,
        "predict_seconds": min(times) * whole.output_factor * whole.round_factor,
        "predict_seconds_measured": times,
        "leaves_per_round": contestant.leaves_per_round(),
    }


def few_rows(data: Data) -> Data:
    """Those that a model is fitted to whose predictions are timed."""
    n, one = TRAINING_ROWS, slice(1)
    return Data(data.X[:n], data.Y[:n], data.X[one], data.Y[one], data.task)


def settings_of_predictor(spec: dict[str, Any]) -> Settings:
    return replace(settings_of(spec, variant=spec.get("variant", "")), max_bins=TRAINING_BINS)


def repeated(call: Callable[[], Any]) -> list[float]:
    """The seconds of each call, for about a second."""
    times: list[float] = []
    while len(times) < MOST_PREDICTIONS and sum(times) < PREDICT_SECONDS:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return times


def prepared(spec: dict[str, Any]) -> tuple[type[Contestant], Data]:
    kind = CONTESTANTS[spec["contestant"]]
    kind().prepare()
    data = workloads.find(spec["workload"]).load()
    return kind, data if spec.get("variant") == AS_STORED else even_label_first(data)


def even_label_first(data: Data) -> Data:
    """The label nearest to half of the rows in front: one that hardly any row has could not be
    split, and would make a contestant of the first output alone look fast."""
    if data.task == "multilabel":
        first = int(np.abs(data.Y.mean(axis=0) - 0.5).argmin())
        order = np.argsort(np.arange(data.n_outputs) != first, kind="stable")
        data.Y, data.Y_test = data.Y[:, order].copy(), data.Y_test[:, order].copy()
    return data


def fitted(
    kind: type[Contestant], data: Data, settings: Settings, limit: float = np.inf
) -> tuple[Contestant, float]:
    """The fitted contestant, and the seconds it took."""
    contestant, watch = kind(), Stopwatch(limit)
    contestant.fit(data, settings, watch)
    return contestant, watch.elapsed


def shape(data: Data) -> dict[str, int]:
    n_rows, n_features = data.X.shape
    return {"n_rows": n_rows, "n_features": n_features, "n_outputs": data.n_outputs}
