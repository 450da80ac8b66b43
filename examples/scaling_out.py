"""
Scaling out
===========

What does one more output cost? The search for splits looks at a projection. Only the work for each
output (residuals, leaves, predictions) grows with their number.
"""

# %%
# Outputs are random mixtures of ten functions of the features, from four outputs to a thousand.

import time

import matplotlib.pyplot as plt
import numpy as np

from manyboost import ManyBoostRegressor

rng = np.random.default_rng(0)
n_rows, n_features, n_rounds = 3000, 30, 10
X = rng.normal(size=(n_rows, n_features)).astype(np.float32)
signals = np.column_stack([np.sin(X[:, k] + X[:, k + 1] * X[:, k + 2]) for k in range(10)])
Y = signals @ rng.normal(size=(10, 1000)) + rng.normal(size=(n_rows, 1000))

# %%
# Each strategy is timed up to the number of outputs at which it becomes slow.

seconds = {"relabel": {}, "project": {}, "multioutput": {}, "independent": {}}
most = {"relabel": 1000, "project": 1000, "multioutput": 64, "independent": 16}
sizes = [4, 16, 64, 250, 1000]
ManyBoostRegressor(max_iter=2).fit(X, Y[:, :4])  # the first fit also starts the threads
for strategy, times in seconds.items():
    for n_outputs in sizes:
        if n_outputs <= most[strategy]:
            model = ManyBoostRegressor(strategy=strategy, max_iter=n_rounds, random_state=0)
            begin = time.perf_counter()
            model.fit(X, Y[:, :n_outputs])
            times[n_outputs] = (time.perf_counter() - begin) / n_rounds
for strategy, times in seconds.items():
    print(f"{strategy:12}", "  ".join(f"{d}: {1000 * s:6.1f} ms" for d, s in times.items()))

# %%
# Axes are logarithmic. The dotted line is a cost proportional to the number of outputs. Two
# strategies are fast, and "project" also has small models: a number for each leaf and one for each
# output. "relabel" has a number for each leaf and output.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
colours = dict(zip(seconds, ("C0", "C2", "C1", "C3"), strict=True))
for strategy, times in seconds.items():
    left.plot(
        list(times),
        [1000 * s for s in times.values()],
        "o-",
        ms=4,
        label=strategy,
        color=colours[strategy],
    )
start = 1000 * seconds["independent"][4]
left.plot([4, 1000], [start, start * 250], ":", color="0.6", label="proportional")
left.set(xscale="log", yscale="log", xlabel="outputs", ylabel="milliseconds a round")
left.set_title("Time of a round")
left.set_xticks(sizes, [str(size) for size in sizes])
left.minorticks_off()
left.legend(frameon=False)

for strategy in ("relabel", "project"):
    model = ManyBoostRegressor(strategy=strategy, max_iter=30, random_state=0)
    n_bytes = [model.fit(X[:500], Y[:500, :d]).info()["n_bytes"] for d in sizes]
    right.plot(sizes, np.divide(n_bytes, 1000), "o-", ms=4, label=strategy, color=colours[strategy])
right.set(xscale="log", yscale="log", xlabel="outputs", ylabel="kilobytes")
right.set_title("Size of a model of 30 rounds")
right.set_xticks(sizes, [str(size) for size in sizes])
right.minorticks_off()
right.legend(frameon=False)
plt.show()
