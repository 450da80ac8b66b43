"""The benchmark of forecasts compares with the last season, and gives one model all horizons."""

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from benchmarks import forecasting


def series(step="h", season=4):
    return forecasting.Series(None, "made up", step, season, (1,), ("hour",), (2,))


def test_the_naive_forecast_is_the_last_known_value_of_the_season():
    hours = pd.date_range("2026-01-01", periods=20, freq="h")
    data = pd.DataFrame({"unique_id": "a", "ds": hours, "y": np.arange(20.0)})
    found = pd.DataFrame({"unique_id": "a", "ds": hours[12:18], "cutoff": hours[11]})
    naive = forecasting.seasonal(found, data, series())
    np.testing.assert_array_equal(naive, [8, 9, 10, 11, 8, 9])


class Kept(BaseEstimator):
    """Remembers what it was fitted to."""

    def fit(self, X, Y):
        self.X_, self.Y_ = X, Y
        return self

    def predict(self, X, outputs):
        return np.full((len(X), 1), 10.0 * outputs[0])


def test_one_model_gets_all_horizons_and_missing_ones_as_nan():
    X = pd.DataFrame({"lag1": [1.0, 2.0, 3.0]}, index=[5, 7, 8])

    def by_horizon():
        yield 0, X, np.array([1.0, 2.0, 3.0])
        yield 1, X[:2], np.array([2.0, 3.0])

    class Forecaster:
        models = {"model": Kept()}  # noqa: RUF012

    forecaster = Forecaster()
    forecasting.one_model(forecaster, by_horizon)
    views = forecaster.models_["model"]
    assert views[0].model is views[1].model
    np.testing.assert_array_equal(views[0].model.Y_, [[1, 2], [2, 3], [3, np.nan]])
    np.testing.assert_array_equal(views[1].predict(X), [10, 10, 10])


def test_the_table_shows_errors_and_times():
    runs = {
        name: {"levels": {"error": 0.5 + k, "fit seconds": 2.0 * (k + 1)}}
        for k, name in enumerate(forecasting.CONTESTANTS)
    }
    runs["LightGBM recursive"]["differences"] = {"error": 0.4, "fit seconds": 2.0}
    results = {"sets": {"demand": {"24": runs}}, "machine": {"libraries": ["manyboost 1"]}}
    section = forecasting.section(results)
    assert "demand (electricity, 12 weeks of half hours), 24 horizons" in section
    assert "| manyboost | 1 | 0.500 | – | 2 | 1.0 × |" in section
    assert "| manyboost, early stopping | 1 | 1.500 | – | 4 | 2.0 × |" in section
    assert "| LightGBM per horizon | 24 | 2.500 | – | 6 | 3.0 × |" in section
    assert "| LightGBM recursive | 1 | 3.500 | **0.400** | 5 | 2.5 × |" in section
    assert "<!-- horizons:begin -->" in forecasting.PAGE.read_text()


def test_generated_series_are_the_same_each_time():
    once, again = forecasting.generated(), forecasting.generated()
    pd.testing.assert_frame_equal(once, again)
    assert once["unique_id"].nunique() == 10
