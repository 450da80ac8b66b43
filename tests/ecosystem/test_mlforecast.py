"""mlforecast makes horizons of many series; one model has them all as outputs."""

import numpy as np
import pytest
from sklearn.base import clone

from manyboost import ManyBoostRegressor

mlforecast = pytest.importorskip("mlforecast", reason="make test-ecosystem installs it")


def forecaster_of(model, **parameters):
    common = {"freq": "h", "lags": [1, 2, 24, 48], "date_features": ["hour"]}
    return mlforecast.MLForecast({"manyboost": model}, **common, **parameters)


def regressor(**parameters):
    return ManyBoostRegressor(**{"max_iter": 60, "random_state": 0, **parameters})


def error(forecast, table):
    both = forecast.merge(table, on=["unique_id", "ds"])
    assert len(both) == len(forecast)
    return (both["manyboost"] - both["y"]).abs().mean()


@pytest.mark.parametrize("max_horizon", [None, 6], ids=["recursive", "direct"])
def test_the_estimator_is_a_model_of_mlforecast(long_shops, max_horizon):
    late = long_shops["ds"] >= long_shops["ds"].max() - np.timedelta64(5, "h")
    forecaster = forecaster_of(regressor())
    forecaster.fit(long_shops[~late], max_horizon=max_horizon, static_features=[])
    assert error(forecaster.predict(6), long_shops) < 1


@pytest.mark.parametrize("n_horizons", [24, 72])
def test_horizons_that_have_not_come_yet_are_missing_targets(long_shops, n_horizons):
    forecaster = forecaster_of(regressor())
    table = long_shops.assign(shop=long_shops["unique_id"].astype("category"))
    X, Y = forecaster.preprocess(
        table, max_horizon=n_horizons, return_X_y=True, static_features=["shop"]
    )
    assert Y.shape == (len(X), n_horizons)
    assert np.isnan(Y).any(axis=1).sum() == 3 * (n_horizons - 1)
    model = clone(regressor()).fit(X, Y)
    assert model.n_outputs_ == n_horizons
    assert model.is_categorical_.tolist().count(True) == 1
    assert model.score(X, Y) > 0.9
    bands = regressor(loss="quantile", quantile=[0.1, 0.9]).fit(X, Y).predict(X)
    assert bands.shape == (len(X), n_horizons, 2)


def test_weights_of_rows_reach_the_model(long_shops):
    table = long_shops.assign(weight=np.linspace(0.1, 1, len(long_shops)))
    forecaster = forecaster_of(regressor())
    forecaster.fit(table, static_features=[], weight_col="weight")
    plain = forecaster_of(regressor()).fit(long_shops, static_features=[])
    assert (forecaster.predict(6)["manyboost"] != plain.predict(6)["manyboost"]).any()


def test_intervals_of_mlforecast(long_shops):
    from mlforecast.utils import PredictionIntervals

    forecaster = forecaster_of(regressor(max_iter=20))
    intervals = PredictionIntervals(n_windows=3, h=6)
    forecaster.fit(long_shops, static_features=[], prediction_intervals=intervals)
    bands = forecaster.predict(6, level=[80])
    assert (bands["manyboost-lo-80"] <= bands["manyboost-hi-80"]).all()
