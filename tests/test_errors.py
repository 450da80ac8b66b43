"""Errors and warnings of the package."""

import warnings

import numpy as np
import pytest

from manyboost import ManyBoostRegressor


def test_warnings_are_about_the_line_that_called_the_package():
    X = np.arange(20.0).reshape(-1, 1)
    model = ManyBoostRegressor(warm_start=True).fit(X, X[:, 0])
    with pytest.warns(UserWarning, match="no round is added") as caught:
        model.fit(X, X[:, 0])
    assert caught[0].filename == __file__
    settings = {"loss": "poisson", "learning_rate": 100.0, "step": "line_search", "max_iter": 1}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ManyBoostRegressor(**settings).fit(X, X[:, 0])
    assert {each.filename for each in seen} == {__file__}
