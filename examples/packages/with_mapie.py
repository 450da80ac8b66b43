"""
Intervals by MAPIE
==================

MAPIE accepts these estimators as it does those of scikit-learn, but for one output only.
``predict_interval`` of a model with folds covers all outputs, one by one or jointly.
"""

# %%
# Rows, some of which are kept for the calibration.

import numpy as np
from mapie.regression import CrossConformalRegressor, SplitConformalRegressor

from manyboost import ManyBoostRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 4))
y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=3000)
train, calibration, test = slice(0, 800), slice(800, 1500), slice(1500, 3000)


def share_inside(ends):
    return np.mean((ends[:, 0] <= y[test]) & (y[test] <= ends[:, 1]))


# %%
# Intervals of a fitted model, which need rows for calibration; and by members, which need none.

fitted = ManyBoostRegressor(random_state=0).fit(X[train], y[train])
split = SplitConformalRegressor(fitted, confidence_level=0.9, prefit=True)
split.conformalize(X[calibration], y[calibration])
print(f"split: {share_inside(split.predict_interval(X[test])[1][:, :, 0]):.1%}")

members = CrossConformalRegressor(ManyBoostRegressor(random_state=0), confidence_level=0.9)
members.fit_conformalize(X[:1500], y[:1500])
print(f"members: {share_inside(members.predict_interval(X[test])[1][:, :, 0]):.1%}")

# %%
# The same with manyboost alone.

folded = ManyBoostRegressor(n_folds=5, random_state=0).fit(X[:1500], y[:1500])
print(f"folds: {share_inside(folded.predict_interval(X[test], coverage=0.9)):.1%}")
