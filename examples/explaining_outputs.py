"""
Explaining outputs
==================

Which features matter for which outputs? Which outputs are related? Why is a prediction what it is?
One model answers these questions for all outputs at once.
"""

# %%
# Twelve stations measure the air of three towns. Stations of a town share their causes, but their
# names do not say which town they belong to.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from manyboost import ManyBoostRegressor, plotting

rng = np.random.default_rng(2)
features = ["wind", "traffic", "heating", "sunshine", "rain", "holiday"]
X = pd.DataFrame(rng.uniform(0, 1, size=(1500, 6)), columns=features)
X["holiday"] = X["holiday"] > 0.8
town = rng.permutation(np.repeat(["harbour", "valley", "city"], 4))
causes = {
    "harbour": 2 * (X["wind"] - 0.5) ** 2 * 4 - X["rain"],
    "valley": 2 * X["heating"] * (1 - X["wind"]) + 0.5 * X["sunshine"],
    "city": 2 * X["traffic"] * (1 - 0.6 * X["holiday"]) + 0.6 * X["heating"],
}
Y = pd.DataFrame(
    {
        f"station {j + 1}": rng.uniform(0.6, 1.4) * causes[name] + 0.1 * rng.normal(size=1500)
        for j, name in enumerate(town)
    }
)
model = ManyBoostRegressor(max_iter=150, random_state=0).fit(X[:1000], Y[:1000])
print(f"r² on test rows: {model.score(X[1000:], Y[1000:]):.3f}")

# %%
# The share of every feature in every output. Similar rows are next to each other.

plotting.plot_importances(model)
plt.show()

# %%
# How much outputs share trees reveals the towns, which the model was never told.

plotting.plot_output_similarity(model)
plt.show()
for name in ("harbour", "valley", "city"):
    print(name, [f"station {j + 1}" for j in np.flatnonzero(town == name)])

# %%
# Exact Shapley values say how far each feature moves a prediction away from the mean. All outputs
# come from one call. Here is the day with the worst forecast for the stations of the city.

rows = X[1000:]
city = [f"station {j + 1}" for j in np.flatnonzero(town == "city")]
worst = int(model.predict(rows)[:, [Y.columns.get_loc(name) for name in city]].sum(axis=1).argmax())
values = model.shap_values(rows.iloc[[worst]])[0]  # (features, outputs)
expected = model.expected_value_

figure, axis = plt.subplots(figsize=(6.6, 3.6), layout="constrained")
place = np.arange(len(features))
chosen = [city[0], f"station {np.flatnonzero(town == 'valley')[0] + 1}"]
for k, (name, colour) in enumerate(zip(chosen, ("C0", "C1"), strict=True)):
    j = Y.columns.get_loc(name)
    reached = expected[j] + values[:, j].sum()
    axis.barh(
        place + (0.2 if k else -0.2),
        values[:, j],
        height=0.36,
        color=colour,
        label=f"{name} ({town[j]}): {expected[j]:.2f} → {reached:.2f}",
    )
day = rows.iloc[worst]
shown = [f"{name} = {day[name] if name == 'holiday' else round(day[name], 2)}" for name in features]
axis.set_yticks(place, shown)
axis.invert_yaxis()
axis.axvline(0, color="0.3", lw=0.8)
axis.set(xlabel="moves the prediction by", title="One day, two stations")
axis.legend(frameon=False, loc="lower right")
plt.show()
