"""
Intervals with a given coverage
===============================

Twelve sensors, whose noise grows with what they measure. An interval says how far off a prediction
may be; a joint region says it for all twelve sensors at once.
"""

# %%
# All sensors depend on the same few causes. The noise of a sensor is large where its signal is.

import matplotlib.pyplot as plt
import numpy as np

from manyboost import ManyBoostRegressor
from manyboost.plotting import plot_coverage, plot_widths

rng = np.random.default_rng(0)
n_train, n_test, n_outputs = 1200, 3000, 12
X = rng.uniform(-2, 2, size=(n_train + n_test, 5))
causes = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2], np.abs(X[:, 3])])
signal = np.exp(0.35 * causes @ rng.normal(size=(3, n_outputs)))
Y = signal * np.exp(rng.uniform(0.1, 0.6, n_outputs) * rng.normal(size=signal.shape))
X_train, Y_train, X_test, Y_test = X[:n_train], Y[:n_train], X[n_train:], Y[n_train:]

# %%
# With ``n_folds=5``, five members are trained, each without a fifth of the rows. Intervals are
# computed from the errors of the members on the rows that they were not trained on.

model = ManyBoostRegressor(n_folds=5, random_state=0).fit(X_train, Y_train)
for method in ("split", "cv+", "normalised"):
    ends = model.predict_interval(X_test, coverage=0.9, method=method)
    inside = (ends[..., 0] <= Y_test) & (ends[..., 1] >= Y_test)
    loud = signal[n_train:] > np.quantile(signal[n_train:], 0.8, axis=0)
    print(
        f"{method:>10}: {inside.mean():.1%} inside, {inside[loud].mean():.1%} where the signal is "
        f"largest, median width {np.median(np.ptp(ends, axis=2)):.2f}"
    )

# %%
# An interval of the same width everywhere is too wide for weak signals and too narrow for strong
# ones. ``method="normalised"`` lets the width follow the prediction: left, for one sensor. Middle:
# over all sensors, intervals contain the truth as often as requested, and so do joint regions.
# Right: how wide intervals are.

figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(12, 4), layout="constrained", width_ratios=[4, 3, 3]
)
j = int(np.argmax(Y_test.std(axis=0)))
some = rng.choice(n_test, 250, replace=False)
some = some[np.argsort(model.predict(X_test)[some, j])]
place = np.arange(len(some))
styles = {"split": ("0.75", 0.5), "normalised": ("C0", 0.35)}
for method, (colour, alpha) in styles.items():
    ends = model.predict_interval(X_test[some], coverage=0.9, method=method)[:, j]
    left.fill_between(place, *ends.T, color=colour, alpha=alpha, lw=0, label=method)
left.plot(place, Y_test[some, j], ".", ms=3, color="C3", label="what came")
left.set(xlabel="rows by prediction", ylabel=f"sensor {j}", title="Intervals of 90 %")
left.set_ylim(top=1.05 * Y_test[some, j].max())
left.legend(frameon=False, loc="upper left")
plot_coverage(model, X_test, Y_test, method="normalised", ax=middle)
middle.set_title("Asked for and held")
plot_widths(model, X_test, ax=right)
right.set(xlabel="width, constant predictions = 1", title="Widths of 90 %")
plt.show()
