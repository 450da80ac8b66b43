"""skforecast trains on arrays whose columns of categories are numbers."""

import numpy as np
import pytest

from manyboost import ManyBoostRegressor

recursive = pytest.importorskip("skforecast.recursive", reason="make test-ecosystem installs it")


def regressor(**parameters):
    return ManyBoostRegressor(**{"max_iter": 60, "random_state": 0, **parameters})


@pytest.mark.parametrize("encoding", ["ordinal_category", "ordinal", "onehot", None])
def test_many_series_are_forecast_step_by_step(shops, encoding):
    forecaster = recursive.ForecasterRecursiveMultiSeries(regressor(), lags=48, encoding=encoding)
    forecaster.fit(shops[:-24])
    forecast = forecaster.predict(24).pivot(columns="level", values="pred")
    assert (forecast - shops[-24:]).abs().mean().max() < 1


def test_weights_of_series_and_of_hours_reach_the_model(shops):
    weights = {"north": 1.0, "south": 2.0, "east": 1.0}
    forecaster = recursive.ForecasterRecursiveMultiSeries(
        regressor(),
        lags=24,
        encoding="ordinal_category",
        series_weights=weights,
        weight_func=lambda index: np.linspace(0.5, 1, len(index)),
    )
    forecaster.fit(shops[:-24])
    forecast = forecaster.predict(24).pivot(columns="level", values="pred")
    assert (forecast - shops[-24:]).abs().mean().max() < 1


def test_categories_of_exogenous_columns_are_taken(shops):
    weekday = shops.index.day_of_week.to_series(index=shops.index).astype("category")
    exog = weekday.to_frame("weekday")
    from skforecast.preprocessing import RollingFeatures

    forecaster = recursive.ForecasterRecursive(
        regressor(), lags=24, window_features=RollingFeatures(stats=["mean"], window_sizes=48)
    )
    forecaster.fit(shops["north"][:-24], exog=exog[:-24])
    forecast = forecaster.predict(24, exog=exog[-24:])
    assert (forecast - shops["north"][-24:]).abs().mean() < 1


def test_intervals_and_quantiles_of_bootstrapped_residuals(shops):
    forecaster = recursive.ForecasterRecursive(regressor(), lags=48)
    forecaster.fit(shops["north"][:-24], store_in_sample_residuals=True)
    bands = forecaster.predict_interval(24, interval=[0.1, 0.9], n_boot=50)
    assert (bands["lower_bound"] <= bands["upper_bound"]).all()
    levels = forecaster.predict_quantiles(24, quantiles=[0.1, 0.5, 0.9], n_boot=50)
    assert levels.shape == (24, 3)


def test_a_backtest_refits_the_estimator(shops):
    from skforecast.model_selection import TimeSeriesFold, backtesting_forecaster

    forecaster = recursive.ForecasterRecursive(regressor(max_iter=20), lags=24)
    folds = TimeSeriesFold(steps=24, initial_train_size=700, refit=True)
    metric, found = backtesting_forecaster(
        forecaster, shops["north"], cv=folds, metric="mean_absolute_error", show_progress=False
    )
    assert float(metric.iloc[0, 0]) < 1
    assert len(found) == len(shops) - 700


def test_a_model_for_each_step_is_direct(shops):
    from skforecast.direct import ForecasterDirect

    forecaster = ForecasterDirect(regressor(max_iter=30), steps=6, lags=24)
    forecaster.fit(shops["north"][:-6])
    assert (forecaster.predict() - shops["north"][-6:]).abs().mean() < 1
