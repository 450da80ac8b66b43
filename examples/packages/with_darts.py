"""
Horizons and series as outputs in darts
=======================================

The class of darts for scikit-learn's regressors passes all horizons of all components to one
regressor, if it supports several outputs.
"""

# %%
# Two generated series, which are forecast together.

import numpy as np
import pandas as pd
from darts import TimeSeries
from darts.models import SKLearnModel

from manyboost import ManyBoostRegressor

rng = np.random.default_rng(0)
hours = pd.date_range("2026-01-01", periods=24 * 7 * 8, freq="h")
day = np.sin(2 * np.pi * (hours.hour.to_numpy() - 6) / 24)
values = np.column_stack([10 + 3 * day, 5 - 2 * np.roll(day, 4)])
values += 0.3 * rng.normal(size=values.shape)
series = TimeSeries.from_times_and_values(hours, values, columns=["load", "wind"])
past, future = series[:-24], series[-24:]

# %%
# 24 horizons of two components are 48 outputs of one model.

forecaster = SKLearnModel(
    model=ManyBoostRegressor(random_state=0),
    lags=48,
    output_chunk_length=24,
    add_encoders={"cyclic": {"future": ["hour"]}},
    lags_future_covariates=[0],
)
forecaster.fit(past)
forecast = forecaster.predict(24)
print(f"outputs of the model: {forecaster.model.n_outputs_}")
print(f"mean absolute error: {np.abs(forecast.values() - future.values()).mean():.2f}")
