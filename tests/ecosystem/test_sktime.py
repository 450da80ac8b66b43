"""sktime's reductions: all horizons are outputs of one model."""

import numpy as np
import pytest

from manyboost import ManyBoostRegressor

compose = pytest.importorskip(
    "sktime.forecasting.compose", reason="make test-ecosystem installs it"
)


@pytest.fixture
def series(shops):
    return shops["north"].asfreq("h")


@pytest.mark.parametrize("n_horizons", [24, 72])
def test_horizons_are_outputs_of_one_model(series, n_horizons):
    forecaster = compose.make_reduction(
        ManyBoostRegressor(max_iter=50, random_state=0), strategy="multioutput", window_length=48
    )
    past, future = series[:-n_horizons], series[-n_horizons:]
    forecast = forecaster.fit(past, fh=np.arange(1, n_horizons + 1)).predict()
    assert isinstance(forecaster.estimator_, ManyBoostRegressor)
    assert forecaster.estimator_.n_outputs_ == n_horizons
    assert forecast.index.equals(future.index)
    assert np.abs(forecast - future).mean() < 0.5


@pytest.mark.parametrize("strategy", ["recursive", "direct"])
def test_other_reductions_take_the_estimator_too(series, strategy):
    forecaster = compose.make_reduction(
        ManyBoostRegressor(max_iter=30, random_state=0), strategy=strategy, window_length=24
    )
    forecast = forecaster.fit(series[:-6], fh=np.arange(1, 7)).predict()
    assert np.abs(forecast - series[-6:]).mean() < 0.6


def test_a_search_over_windows_and_parameters_goes_through(series):
    from sktime.forecasting.model_selection import ForecastingGridSearchCV
    from sktime.split import ExpandingWindowSplitter

    forecaster = compose.make_reduction(
        ManyBoostRegressor(max_iter=20, random_state=0), strategy="multioutput", window_length=24
    )
    search = ForecastingGridSearchCV(
        forecaster,
        cv=ExpandingWindowSplitter(initial_window=700, step_length=100, fh=np.arange(1, 13)),
        param_grid={"estimator__max_leaf_nodes": [2, 16]},
        error_score="raise",
    ).fit(series, fh=np.arange(1, 13))
    assert search.best_params_ == {"estimator__max_leaf_nodes": 16}
