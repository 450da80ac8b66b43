"""One fit in a process of its own: what `measure` calls, and what the record says."""

import statistics
from pathlib import Path
from typing import Any

from benchmarks import measure, metrics
from benchmarks.contest import added, sets
from benchmarks.contest.contestants import CONTESTANTS
from benchmarks.contest.sets import Split
from benchmarks.contestants.base import Contestant, Settings


def fit_and_score(spec: dict[str, Any]) -> dict[str, Any]:
    """The record of one fit; `spec["file"]` is where an added contestant is defined."""
    kinds = added.read(Path(spec["file"])) if spec.get("file") else CONTESTANTS
    kind = kinds[spec["contestant"]]
    kind().prepare()
    data = sets.load(spec["workload"], seed=spec["repeat"])
    data.with_validation()  # who asks for it does not pay for the copy
    settings = Settings(n_rounds=spec["n_rounds"], n_threads=spec["n_threads"], seed=spec["repeat"])
    contestant, fits, peak = measure.timed_fits(kind, data, settings, spec["limit"])
    return {
        **facts(contestant, data),
        "fit_seconds_measured": fits,
        **outcome(contestant, data, statistics.median(fits), peak, spec["limit"]),
    }


def facts(contestant: Contestant, data: Split) -> dict[str, Any]:
    return {
        "n_rows": data.X.shape[0],
        "n_validation_rows": data.X_val.shape[0],
        "n_test_rows": data.X_test.shape[0],
        "n_features": data.X.shape[1],
        "n_outputs": data.n_outputs,
        "parameters": contestant.parameters,
        "patience": contestant.patience,
        "rounds": contestant.rounds_done,
        "score_name": metrics.score_name(data.task, data.n_outputs),
    }


def outcome(
    contestant: Contestant, data: Split, seconds: float, peak: int | None, limit: float
) -> dict[str, Any]:
    """Score, time, memory and size; only an extrapolated time where outputs are missing."""
    done = contestant.outputs_done
    n_done = data.n_outputs if done is None else len(done)
    if n_done < data.n_outputs:
        setup = contestant.setup_seconds
        return {
            "fit_seconds": setup + (seconds - setup) * data.n_outputs / n_done,
            "extrapolated": f"{n_done} of {data.n_outputs} outputs",
        }
    raw, predict_seconds = measure.timed_predict(contestant, data.X_test)
    if contestant.voting_seconds is not None:
        predict_seconds = contestant.voting_seconds
    return {
        "fit_seconds": seconds,
        "predict_seconds": predict_seconds,
        "peak_bytes": None if peak is None else peak + contestant.bytes_beside_the_peak(),
        "model_bytes": contestant.bytes_let_go or contestant.model_bytes(),
        "capped": seconds > limit if contestant.stopped is None else contestant.stopped,
        "score": metrics.score(data.task, data.Y_test, raw),
    }
