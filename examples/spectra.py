"""
Spectra
=======

Predict a whole curve: the absorption of a mixture at 150 wavelengths, from its ingredients.
Neighbouring wavelengths rise and fall together, which trees for all outputs can use.
"""

# %%
# Six substances have a few bands each. The bands shift with the acidity, which a linear mixture of
# six spectra cannot follow.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

from manyboost import ManyBoostRegressor

rng = np.random.default_rng(3)
n_rows, n_substances, wavelengths = 1200, 6, np.linspace(400, 800, 150)
amounts = rng.dirichlet(np.ones(n_substances), size=n_rows)
acidity = rng.uniform(4, 9, size=n_rows)
X = np.column_stack([amounts, acidity])

Y = np.zeros((n_rows, len(wavelengths)))
for substance in range(n_substances):
    for _ in range(3):
        centre, width = rng.uniform(420, 780), rng.uniform(8, 30)
        shift = rng.normal(scale=25) / (1 + np.exp(-3 * (acidity - rng.uniform(5.5, 7.5))))
        band = np.exp(-(((wavelengths - centre - shift[:, None]) / width) ** 2) / 2)
        Y += rng.uniform(0.5, 1.5) * amounts[:, [substance]] * band
Y += 0.01 * rng.normal(size=Y.shape)
train, test = slice(0, 900), slice(900, None)

# %%
# "independent" grows 150 trees a round, the others one. Even with ten times the rounds, the others
# are faster.

settings = {
    "relabel": {"strategy": "relabel", "max_iter": 200},
    "project": {"strategy": "project", "max_iter": 200},
    "independent": {"strategy": "independent", "max_iter": 20},
}
models, table = {}, []
for name, setting in settings.items():
    begin = time.perf_counter()
    models[name] = ManyBoostRegressor(learning_rate=0.2, random_state=0, **setting)
    models[name].fit(X[train], Y[train])
    seconds = time.perf_counter() - begin
    table.append((name, models[name].score(X[test], Y[test]), seconds))
linear = Ridge(alpha=1e-3).fit(X[train], Y[train])
table.append(("linear mixture", linear.score(X[test], Y[test]), 0.0))
for name, score, seconds in table:
    print(f"{name:15} r² {score:.3f}   {seconds:.2f} s")

# %%
# Two test mixtures that are far from linear, and the errors by wavelength.

figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.5), layout="constrained")
predicted = models["relabel"].predict(X[test])
shown = np.abs(linear.predict(X[test]) - Y[test]).mean(axis=1).argsort()[[-1, -20]]
for axis, row in zip(axes[:2], shown, strict=True):
    axis.plot(wavelengths, Y[test][row], color="0.6", lw=2.5, label="measured")
    axis.plot(wavelengths, predicted[row], color="C0", lw=1.2, label="relabel")
    axis.plot(wavelengths, linear.predict(X[test][[row]])[0], color="C1", lw=1, label="linear")
    axis.set(xlabel="wavelength, nm", title=f"acidity {X[test][row, -1]:.1f}")
axes[0].set_ylabel("absorption")
for name, colour in (("relabel", "C0"), ("project", "C2"), ("independent", "C3")):
    error = np.sqrt(((models[name].predict(X[test]) - Y[test]) ** 2).mean(axis=0))
    axes[2].plot(wavelengths, error, color=colour, lw=1.2, label=name)
error = np.sqrt(((linear.predict(X[test]) - Y[test]) ** 2).mean(axis=0))
axes[2].plot(wavelengths, error, color="C1", lw=1.2, label="linear")
axes[2].set(xlabel="wavelength, nm", ylabel="root mean squared error", title="All test mixtures")
axes[2].set_ylim(bottom=0)
handles, labels = axes[0].get_legend_handles_labels()
for line in axes[2].get_lines()[1:3]:
    handles.append(line)
    labels.append(line.get_label())
figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
plt.show()
