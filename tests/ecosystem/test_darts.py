"""darts gives one model the horizons of all components."""

import numpy as np
import pytest

from manyboost import ManyBoostRegressor

darts = pytest.importorskip("darts", reason="make test-ecosystem installs it")


def forecaster_of(model, **parameters):
    from darts.models import SKLearnModel

    return SKLearnModel(model=model, lags=48, **parameters)


@pytest.fixture
def series(shops):
    return darts.TimeSeries.from_dataframe(shops)


@pytest.mark.parametrize("n_horizons", [24, 72])
def test_horizons_of_all_components_are_outputs_of_one_model(series, n_horizons):
    forecaster = forecaster_of(
        ManyBoostRegressor(max_iter=60, random_state=0), output_chunk_length=n_horizons
    )
    forecaster.fit(series[:-n_horizons])
    assert isinstance(forecaster.model, ManyBoostRegressor)
    assert forecaster.model.n_outputs_ == 3 * n_horizons
    forecast = forecaster.predict(n_horizons)
    assert np.abs(forecast.values() - series[-n_horizons:].values()).mean() < 1


def test_many_series_are_learnt_by_one_model_with_weights(shops):
    each = [darts.TimeSeries.from_series(shops[name]) for name in shops]
    forecaster = forecaster_of(
        ManyBoostRegressor(max_iter=60, random_state=0), output_chunk_length=24
    )
    forecaster.fit([one[:-24] for one in each], sample_weight="linear")
    forecasts = forecaster.predict(24, series=[one[:-24] for one in each])
    errors = [
        np.abs(forecast.values() - one[-24:].values()).mean()
        for forecast, one in zip(forecasts, each, strict=True)
    ]
    assert max(errors) < 1.5


def test_forecasts_of_the_past_are_made_with_one_fit(series):
    forecaster = forecaster_of(
        ManyBoostRegressor(max_iter=30, random_state=0), output_chunk_length=12
    )
    forecaster.fit(series[:-100])
    forecasts = forecaster.historical_forecasts(
        series, start=series.time_index[-90], forecast_horizon=12, retrain=False
    )
    assert np.isfinite(forecasts.values()).all()


def test_conformal_intervals_of_darts(series):
    from darts.models import ConformalNaiveModel

    forecaster = forecaster_of(
        ManyBoostRegressor(max_iter=30, random_state=0), output_chunk_length=12
    )
    forecaster.fit(series[:-300])
    bands = ConformalNaiveModel(forecaster, quantiles=[0.1, 0.5, 0.9], cal_length=48)
    found = bands.predict(12, series=series[:-12], predict_likelihood_parameters=True)
    values = found.values().reshape(12, 3, 3)
    assert (np.diff(values, axis=2) >= 0).all()
