"""
Missing targets
===============

Sensors fail. A target that is NaN has no influence, and the other outputs of its row still count.
Dropping incomplete rows would lose most of the data.
"""

# %%
# Sixteen sensors measure the same few causes. Each cell of the targets is lost with the same
# probability, and few rows stay complete.

import matplotlib.pyplot as plt
import numpy as np

from manyboost import ManyBoostRegressor

rng = np.random.default_rng(0)
n_train, n_test, n_outputs = 1500, 1000, 16
X = rng.uniform(-2, 2, size=(n_train + n_test, 6))
causes = np.column_stack(
    [np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2], np.abs(X[:, 3]), np.tanh(3 * X[:, 4])]
)
Y = causes @ rng.normal(size=(4, n_outputs)) + 0.3 * rng.normal(size=(len(X), n_outputs))
X_train, Y_train, X_test, Y_test = X[:n_train], Y[:n_train], X[n_train:], Y[n_train:]


def score(rows, targets):
    """The score of a model on the test rows."""
    if len(rows) < 20:
        return np.nan
    model = ManyBoostRegressor(max_iter=60, learning_rate=0.2, random_state=0)
    return model.fit(rows, targets).score(X_test, Y_test)


# %%
# There are three ways to handle this: use all observed cells, use complete rows only, or fill gaps
# with the mean of the output.

shares = [0.0, 0.05, 0.1, 0.2, 0.4, 0.7]
results = {"NaN where a target is missing": [], "mean in its place": [], "complete rows only": []}
n_complete = []
for share in shares:
    holes = np.where(rng.random(Y_train.shape) < share, np.nan, Y_train)
    complete = ~np.isnan(holes).any(axis=1)
    n_complete.append(complete.sum())
    filled = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
    results["NaN where a target is missing"].append(score(X_train, holes))
    results["mean in its place"].append(score(X_train, filled))
    results["complete rows only"].append(score(X_train[complete], holes[complete]))

# %%
# The number next to a mark is the number of complete rows.

figure, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for (name, scores), colour in zip(results.items(), ("C0", "C2", "C1"), strict=True):
    axis.plot(np.multiply(100, shares), scores, "o-", ms=5, color=colour, label=name)
for share, value, rows in zip(shares, results["complete rows only"], n_complete, strict=True):
    if np.isfinite(value):
        axis.annotate(
            f"{rows}",
            (100 * share, value),
            xytext=(-4, -12),
            textcoords="offset points",
            color="C1",
            fontsize=8,
            ha="right",
        )
axis.set(
    xlabel="targets missing, %",
    ylabel="macro r² on complete test rows",
    ylim=(0, 1),
    xlim=(-5, 73),
    title="1,500 training rows of 16 outputs",
)
axis.legend(frameon=False, loc="lower right")
plt.show()
