"""
Recursive forecasts of many series in skforecast
================================================

skforecast forecasts step by step: each forecast becomes a lag of the next. It passes arrays to
models, with numbers for the series; these numbers are categories here.
"""

# %%
# Four generated series of hours.

import numpy as np
import pandas as pd
from skforecast.recursive import ForecasterRecursiveMultiSeries

from manyboost import ManyBoostRegressor

rng = np.random.default_rng(0)
hours = pd.date_range("2026-01-01", periods=24 * 7 * 6, freq="h")
series = pd.DataFrame(
    {
        name: level + 3 * np.sin(2 * np.pi * (hours.hour.to_numpy() - shift) / 24)
        for name, level, shift in [("north", 10, 6), ("south", 30, 7), ("east", 20, 9)]
    },
    index=hours,
)
series += 0.3 * rng.normal(size=series.shape)
past, future = series[:-24], series[-24:]

# %%
# ``encoding="ordinal_category"`` makes the name of a series a category.

forecaster = ForecasterRecursiveMultiSeries(
    ManyBoostRegressor(random_state=0), lags=48, encoding="ordinal_category"
)
forecaster.fit(past)
forecast = forecaster.predict(24)
wide = forecast.pivot(columns="level", values="pred")
print(f"mean absolute error: {(wide - future).abs().mean().mean():.2f}")
