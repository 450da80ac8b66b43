"""
Mixed outputs
=============

An amount, a count and a binary outcome in one model, each with its own loss. What the outputs share
is learned once.
"""

# %%
# Synthetic data about insured cars. Whether a customer cancels, how many claims there are during a
# contract, and what the car is worth all depend on the same features.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from manyboost import ManyBoostRegressor

rng = np.random.default_rng(0)
n_rows = 6000
X = pd.DataFrame(
    {
        "age of car": rng.uniform(0, 20, n_rows),
        "power": rng.gamma(9, 10, n_rows),
        "town": pd.Categorical(rng.choice(["small", "middle", "large"], n_rows)),
        "years as customer": rng.exponential(5, n_rows),
        "kilometres": rng.gamma(4, 4, n_rows),
    }
)
crowded = X["town"].map({"small": 0.0, "middle": 0.4, "large": 0.9}).astype(float)
value = 3 + 0.25 * X["power"] * np.exp(-X["age of car"] / 7) + rng.normal(size=n_rows)
rate = np.exp(-2.8 + 0.04 * X["kilometres"] + crowded + 0.006 * X["power"])
claims = rng.poisson(rate)
odds = 0.6 * claims - 0.25 * X["years as customer"] + 0.05 * X["age of car"] - 0.8
cancels = rng.random(n_rows) < 1 / (1 + np.exp(-odds))
Y = pd.DataFrame({"value": value, "claims": claims, "cancels": cancels.astype(int)})

# %%
# A loss for each output. Predictions are a mean, an expected count and a probability.

model = ManyBoostRegressor(
    loss=["squared_error", "poisson", "log_loss"], max_leaf_nodes=8, max_iter=150, random_state=0
)
model.fit(X[:4000], Y[:4000])
test, truth = X[4000:], Y[4000:]
predicted = pd.DataFrame(model.predict(test), columns=Y.columns, index=test.index)
print(predicted.head(3).round(2))

# %%
# Rows are sorted by prediction and cut into twenty groups. For every kind of output, predicted and
# true means should agree.

figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.3), layout="constrained")
words = {
    "value": ("mean value, thousands", "squared_error"),
    "claims": ("claims a contract", "poisson"),
    "cancels": ("share that cancels", "log_loss"),
}
for axis, (name, (label, loss)) in zip(axes, words.items(), strict=True):
    group = predicted[name].rank(method="first").floordiv(len(test) / 20 + 1e-9).clip(upper=19)
    means = pd.DataFrame({"predicted": predicted[name], "true": truth[name]}).groupby(group).mean()
    top = 1.08 * means.to_numpy().max()
    axis.plot([0, top], [0, top], color="0.8", lw=1)
    axis.plot(means["predicted"], means["true"], "o", ms=5)
    axis.set(
        xlabel=f"predicted: {label}",
        ylabel="true",
        title=f"{name}: {loss}",
        xlim=(0, top),
        ylim=(0, top),
    )
    axis.set_box_aspect(1)
plt.show()
