"""
The four strategies
===================

Three problems of sixteen outputs that differ in what the outputs share. The best strategy depends
on that; ``strategy="auto"`` finds it.
"""

# %%
# The problems of the paper. In "group", outputs share one signal. In "chain", each output is the
# one before it plus noise. In "ind", outputs share nothing.

import matplotlib.pyplot as plt
import numpy as np

from manyboost import ManyBoostRegressor
from manyboost.datasets import make_friedman1_chain, make_friedman1_group, make_friedman1_ind

problems = {
    "group": make_friedman1_group,
    "chain": make_friedman1_chain,
    "ind": make_friedman1_ind,
}
strategies = ["independent", "multioutput", "project", "relabel"]
n_train, n_test = 300, 500

# %%
# The score on test rows after every round. A round of "independent" grows sixteen trees and a round
# of the others one, so we count trees, not rounds.

curves, chosen = {}, {}
for problem, make in problems.items():
    X, Y = make(n_train + n_test, n_outputs=16, random_state=0)
    X_train, Y_train, X_test, Y_test = X[:n_train], Y[:n_train], X[n_train:], Y[n_train:]
    spread = ((Y_test - Y_test.mean(axis=0)) ** 2).sum(axis=0)
    for strategy in strategies:
        model = ManyBoostRegressor(
            strategy=strategy,
            projection="subsample",
            learning_rate=0.2,
            max_leaf_nodes=4,
            max_iter=15 if strategy == "independent" else 240,
            random_state=0,
        ).fit(X_train, Y_train)
        curves[problem, strategy] = [
            np.mean(1 - ((Y_test - predicted) ** 2).sum(axis=0) / spread)
            for predicted in model.staged_predict(X_test)
        ]
    auto = ManyBoostRegressor(
        strategy="auto",
        learning_rate=0.2,
        max_leaf_nodes=4,
        validation_fraction=0.3,
        max_iter=100,
        random_state=0,
    ).fit(X_train, Y_train)
    chosen[problem] = auto.strategy_

# %%
# If outputs share a signal, trees for all of them average out their noise. If they share nothing, a
# tree for each output is best, and "project" comes closest.

figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.5), layout="constrained", sharex=True)
titles = {"group": "one signal for all", "chain": "a chain", "ind": "nothing in common"}
for axis, problem in zip(axes, problems, strict=True):
    for strategy in strategies:
        curve = curves[problem, strategy]
        trees = np.arange(1, len(curve) + 1) * (16 if strategy == "independent" else 1)
        axis.plot(trees, curve, label=strategy)
    axis.set(title=titles[problem], xlabel=f"trees\n(auto chose {chosen[problem]!r})")
    axis.set_ylim(bottom=0)
axes[0].set_ylabel("macro r² on test rows")
axes[0].legend(frameon=False, loc="lower right")
plt.show()
