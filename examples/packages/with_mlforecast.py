"""
Many series in mlforecast
=========================

mlforecast makes lags, calendar features and horizons of many series at once. With ``max_horizon``
it trains a model for each horizon. Here one model has them all as outputs, and rows whose later
horizons have not come yet train the others.
"""

# %%
# Five generated shops with a daily rhythm of their own.

import numpy as np
import pandas as pd
from mlforecast import MLForecast

from manyboost import ManyBoostRegressor

rng = np.random.default_rng(0)
hours = pd.date_range("2026-01-01", periods=24 * 7 * 8, freq="h")
parts = []
for shop in range(5):
    day = np.sin(2 * np.pi * (hours.hour.to_numpy() - 6 - shop) / 24)
    sales = 10 + 5 * shop + (2 + shop) * day + rng.normal(size=len(hours))
    parts.append(pd.DataFrame({"unique_id": f"shop {shop}", "ds": hours, "y": sales}))
table = pd.concat(parts)
last_days = table["ds"] >= hours[-48]

# %%
# ``preprocess`` returns the features and a column of targets for each horizon, NaN at the end of
# each series. The name of a shop is a category.

table["shop"] = table["unique_id"].astype("category")
forecaster = MLForecast(
    models={}, freq="h", lags=[1, 2, 3, 24, 48, 168], date_features=["hour", "dayofweek"]
)
X, Y = forecaster.preprocess(
    table[~last_days], max_horizon=48, static_features=["shop"], return_X_y=True
)
model = ManyBoostRegressor(random_state=0).fit(X, Y)
print(f"{model.n_outputs_} outputs; {np.isnan(Y).mean():.1%} of the targets have not come yet")

# %%
# To forecast, mlforecast calls one model per horizon: each is a view of one output of our model.


class Horizon:
    """One output of a model, as a model."""

    def __init__(self, model, output):
        self.model, self.output = model, output

    def predict(self, X):
        return self.model.predict(X, outputs=[self.output])[:, 0]


forecaster.models_ = {"manyboost": {h: Horizon(model, h) for h in range(48)}}
forecast = forecaster.predict(48)
both = forecast.merge(table[last_days], on=["unique_id", "ds"])
print(f"mean absolute error: {(both['manyboost'] - both['y']).abs().mean():.2f}")
