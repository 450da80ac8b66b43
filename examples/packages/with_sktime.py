"""
Horizons as outputs in sktime
=============================

``make_reduction`` turns a regressor into a forecaster. With ``strategy="multioutput"`` one model
forecasts all horizons.
"""

# %%
# Ten weeks of a generated hourly series; the last two days are forecast.

import numpy as np
import pandas as pd
from sktime.forecasting.compose import make_reduction

from manyboost import ManyBoostRegressor

rng = np.random.default_rng(0)
hours = pd.period_range("2026-01-01", periods=24 * 7 * 10, freq="h")
day = np.sin(2 * np.pi * (np.arange(len(hours)) % 24 - 6) / 24)
y = pd.Series(10 + 3 * day + 0.5 * rng.normal(size=len(hours)), index=hours)
past, future = y[:-48], y[-48:]

# %%
# ``window_length`` is the number of lags. ``fh`` is given to ``fit``: it decides how many outputs
# the model has.

forecaster = make_reduction(
    ManyBoostRegressor(random_state=0), strategy="multioutput", window_length=72
)
forecaster.fit(past, fh=np.arange(1, 49))
forecast = forecaster.predict()

print(f"outputs of the model: {forecaster.estimator_.n_outputs_}")
print(f"mean absolute error: {np.abs(forecast - future).mean():.2f}")
last_day = np.tile(past[-24:], 2)
print(f"of the last day again: {np.abs(last_day - future).mean():.2f}")
