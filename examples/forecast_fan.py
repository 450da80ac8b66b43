"""
A fan of forecasts
==================

How sure is a forecast, hour by hour? A model with folds knows how far off its members were on
weeks that they were not trained on. From these errors it computes bands with a given coverage.
"""

# %%
# The synthetic load of a small power grid: a daily and a weekly rhythm, weather that persists, and
# noise that is larger by day.

import matplotlib.pyplot as plt
import numpy as np

from manyboost import ManyBoostRegressor
from manyboost.plotting import plot_fan

rng = np.random.default_rng(0)
n_hours, n_horizons = 24 * 7 * 60, 36
hour = np.arange(n_hours)
weather = np.zeros(n_hours)
for t in range(1, n_hours):
    weather[t] = 0.95 * weather[t - 1] + 0.3 * rng.normal()
day = np.sin(2 * np.pi * (hour % 24 - 6) / 24)
weekend = (hour // 24 % 7) >= 5
load = 10 + 3 * day - 2 * weekend + weather
load += (0.15 + 0.4 * (day > 0)) * rng.normal(size=n_hours)

# %%
# The features of a forecast are the last day and the calendar; the outputs are the next 36 hours.
# There is a forecast every three hours. Neighbouring forecasts share most of their hours, so whole
# weeks must fall into one fold: pass them as ``groups``.

windows = np.lib.stride_tricks.sliding_window_view(load, 24 + n_horizons)[::3]
start = 3 * np.arange(len(windows)) + 24  # the first hour to be forecast
X = np.column_stack([windows[:, :24], start % 24, start // 24 % 7])
Y = windows[:, 24:]
n_test = 8 * 7 * 15  # the last fifteen weeks
train = slice(0, len(X) - n_test - n_horizons // 3)
X_test, Y_test = X[-n_test:], Y[-n_test:]

model = ManyBoostRegressor(n_folds=5, max_iter=80, random_state=0)
model.fit(X[train], Y[train], groups=start[train] // (24 * 7))

# %%
# The interval of an hour contains nine in ten of the true values of that hour. A joint region
# contains the whole path of the next 36 hours nine times in ten, and must be wider.

hourly = model.predict_interval(X_test, coverage=0.9)
paths = model.predict_interval(X_test, coverage=0.9, joint=True)


def inside(ends):
    return (ends[..., 0] <= Y_test) & (ends[..., 1] >= Y_test)


print(f"hours within their intervals: {inside(hourly).mean():.0%}")
print(f"whole paths within hourly intervals: {inside(hourly).all(axis=1).mean():.0%}")
print(f"whole paths within joint regions: {inside(paths).all(axis=1).mean():.0%}")

# %%
# Left: one forecast, of a row for which 80 % of the hours are within the band of 80 %; the nearest
# hours are the most certain. Right: how often the truth is inside, for every horizon.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 3.8), layout="constrained", width_ratios=[3, 2]
)
typical = inside(model.predict_interval(X_test, coverage=0.8)).mean(axis=1)
row = int(np.abs(typical - 0.8).argmin())
plot_fan(model, X_test, row=row, y=Y_test, history=X_test[row, :24], ax=left)
left.set(xlabel="hours from now", ylabel="load", title="One forecast of 36 hours")
left.set_ylim(top=left.get_ylim()[1] + 2)
left.legend(frameon=False, fontsize="small", ncols=3, loc="upper left")

horizons = np.arange(1, n_horizons + 1)
for coverage, colour in ((0.95, "0.65"), (0.8, "0.45"), (0.5, "0.2")):
    ends = model.predict_interval(X_test, coverage)
    right.axhline(100 * coverage, color=colour, lw=0.8, ls=":")
    label = f"{100 * coverage:.0f} %"
    right.plot(horizons, 100 * inside(ends).mean(axis=0), ".-", color=colour, ms=4, label=label)
right.set(xlabel="hours ahead", ylabel="truths inside, %", ylim=(0, 104))
right.set_title("Fifteen weeks of forecasts")
right.legend(frameon=False, loc="lower right", ncols=3, title="asked for")
plt.show()
