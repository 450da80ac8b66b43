"""
Forecast horizons
=================

Forecast two days of an hourly series at once: every quantile of every horizon is an output. One
model has 48 × 3 outputs, and its quantiles never cross.
"""

# %%
# The synthetic load of a small power grid: a daily and a weekly rhythm, weather that persists, and
# noise that is larger by day.

import matplotlib.pyplot as plt
import numpy as np

from manyboost import ManyBoostRegressor

rng = np.random.default_rng(0)
n_hours, n_horizons = 24 * 7 * 25, 48
hour = np.arange(n_hours)
weather = np.zeros(n_hours)
for t in range(1, n_hours):
    weather[t] = 0.92 * weather[t - 1] + 0.4 * rng.normal()
day = np.sin(2 * np.pi * (hour % 24 - 6) / 24)
weekend = (hour // 24 % 7) >= 5
load = 10 + 3 * day - 2 * weekend + weather
load += (0.3 + 0.4 * (day > 0)) * rng.normal(size=n_hours)

# %%
# The features of an hour are the last day of the series and the calendar. The outputs are the next
# 48 hours.

windows = np.lib.stride_tricks.sliding_window_view(load, 24 + n_horizons)
start = np.arange(len(windows)) + 24  # the first hour to be forecast
X = np.column_stack([windows[:, :24], start % 24, start // 24 % 7])
Y = windows[:, 24:]
n_train = len(X) - 24 * 14
X_train, Y_train, X_test, Y_test = X[: n_train - 48], Y[: n_train - 48], X[n_train:], Y[n_train:]

model = ManyBoostRegressor(
    "quantile",
    quantile=[0.1, 0.5, 0.9],
    max_leaf_nodes=8,
    min_samples_leaf=100,
    max_iter=60,
    learning_rate=0.15,
    random_state=0,
)
model.fit(X_train, Y_train)
bands = model.predict(X_test)
print(bands.shape)  # rows, horizons, quantiles

# %%
# Eight in ten of the true values should lie within the band.

inside = (bands[:, :, 0] <= Y_test) & (Y_test <= bands[:, :, 2])
print(f"{inside.mean():.0%} of the hours lie between the 10 % and the 90 % quantile")

# %%
# Left: a forecast that covers that many hours. Right: the error of the median at each horizon,
# compared with a forecast that repeats the last day.

naive = X_test[:, np.arange(n_horizons) % 24]
errors = {
    "the last day again": np.abs(naive - Y_test).mean(axis=0),
    "the median of the model": np.abs(bands[:, :, 1] - Y_test).mean(axis=0),
}

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.4), layout="constrained", width_ratios=[3, 2]
)
row = np.abs(inside.mean(axis=1) - 0.8).argmin()
horizons = np.arange(1, n_horizons + 1)
left.plot(np.arange(-23, 1), X_test[row, :24], color="0.4", label="what was seen")
left.fill_between(
    horizons,
    bands[row, :, 0],
    bands[row, :, 2],
    color="C0",
    alpha=0.25,
    lw=0,
    label="10 % to 90 %",
)
left.plot(horizons, bands[row, :, 1], color="C0", label="median")
left.plot(horizons, Y_test[row], ".", ms=4, color="C1", label="what came")
left.axvline(0.5, color="0.7", lw=0.8)
left.set(xlabel="hours from now", ylabel="load", title="One forecast of two days")
left.set_ylim(top=left.get_ylim()[1] + 2.5)
left.legend(ncols=2, frameon=False, loc="upper left")
for name, error in errors.items():
    right.plot(horizons, error, label=name, color="0.5" if "again" in name else "C0")
right.set(xlabel="hours ahead", ylabel="mean absolute error", title="All forecasts of two weeks")
right.set_ylim(bottom=0)
right.legend(frameon=False, loc="lower right")
plt.show()
