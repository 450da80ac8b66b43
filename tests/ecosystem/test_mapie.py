"""MAPIE conformalises these estimators."""

import numpy as np
import pytest

from manyboost import ManyBoostClassifier, ManyBoostRegressor

regression = pytest.importorskip("mapie.regression", reason="make test-ecosystem installs it")
classification = pytest.importorskip("mapie.classification")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2400, 4))
Y = X[:, 0] + X[:, 1] * X[:, 2] + RNG.normal(size=2400)
CLASSES = np.digitize(Y, [-1, 1])
TRAIN, CALIBRATION, TEST = slice(0, 600), slice(600, 1200), slice(1200, 2400)


def share_inside(ends):
    return np.mean((ends[:, 0, 0] <= Y[TEST]) & (Y[TEST] <= ends[:, 1, 0]))


def regressor(**parameters):
    return ManyBoostRegressor(**{"max_iter": 50, "random_state": 0, **parameters})


def test_a_fitted_model_is_calibrated_on_other_rows():
    model = regressor().fit(X[TRAIN], Y[TRAIN])
    mapie = regression.SplitConformalRegressor(model, confidence_level=0.9, prefit=True)
    mapie.conformalize(X[CALIBRATION], Y[CALIBRATION])
    assert 0.86 < share_inside(mapie.predict_interval(X[TEST])[1]) < 0.94


@pytest.mark.parametrize("method", ["base", "plus"])
def test_members_are_clones_of_the_estimator(method):
    mapie = regression.CrossConformalRegressor(regressor(), confidence_level=0.9, method=method)
    mapie.fit_conformalize(X[:1200], Y[:1200])
    assert 0.86 < share_inside(mapie.predict_interval(X[TEST])[1]) < 0.95


def test_members_take_weights():
    weights = np.linspace(0.5, 1.5, 1200)
    mapie = regression.CrossConformalRegressor(regressor(), confidence_level=0.9)
    mapie.fit_conformalize(X[:1200], Y[:1200], fit_params={"sample_weight": weights})
    assert 0.86 < share_inside(mapie.predict_interval(X[TEST])[1]) < 0.95


def test_quantile_models_are_conformalised():
    levels = [
        regressor(loss="quantile", quantile=level).fit(X[TRAIN], Y[TRAIN])
        for level in (0.05, 0.95, 0.5)
    ]
    mapie = regression.ConformalizedQuantileRegressor(levels, confidence_level=0.9, prefit=True)
    mapie.conformalize(X[CALIBRATION], Y[CALIBRATION])
    assert 0.86 < share_inside(mapie.predict_interval(X[TEST])[1]) < 0.95


def test_sets_of_classes_hold_the_truth():
    model = ManyBoostClassifier(max_iter=50, random_state=0).fit(X[TRAIN], CLASSES[TRAIN])
    mapie = classification.SplitConformalClassifier(model, confidence_level=0.9, prefit=True)
    mapie.conformalize(X[CALIBRATION], CLASSES[CALIBRATION])
    sets = mapie.predict_set(X[TEST])[1][:, :, 0]
    assert 0.86 < sets[np.arange(1200), CLASSES[TEST]].mean() < 0.95
