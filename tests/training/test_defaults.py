"""What "auto" stands for: right for one output and few classes as well as for many outputs."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.model_selection import train_test_split

from manyboost import ManyBoostRegressor


@pytest.mark.parametrize(
    ("data", "gain"),
    [
        (make_friedman1(600, random_state=0), 0.04),
        (make_friedman1(60, random_state=0), 0.2),
        (load_diabetes(return_X_y=True), 0.05),
    ],
)
def test_leaves_of_one_output_are_not_tiny_where_rows_are_few(data, gain):
    X, X_test, y, y_test = train_test_split(*data, test_size=0.5, random_state=0)
    model = ManyBoostRegressor(random_state=0).fit(X, y)
    tiny = ManyBoostRegressor(min_samples_leaf=len(y) // 100 or 1, random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > tiny.score(X_test, y_test) + gain


@pytest.mark.parametrize(
    ("shape", "least"), [((600,), 20), ((60,), 10), ((5,), 1), ((600, 2), 6), ((60, 2), 1)]
)
def test_the_default_leaf_is_a_sixth_of_the_rows_or_a_hundredth(shape, least):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(shape[0], 3)), rng.normal(size=shape)
    models = [
        ManyBoostRegressor(min_samples_leaf=leaf, max_iter=3, random_state=0).fit(X, Y)
        for leaf in ("auto", least)
    ]
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))


@pytest.mark.parametrize(("tails", "gain"), [(1.5, 0.15), (3.0, 0.03)])
def test_the_default_huber_loss_resists_heavy_tails(tails, gain):
    X, signal = make_friedman1(2000, random_state=0)
    y = signal + 2 * np.random.default_rng(0).standard_t(tails, size=2000)

    def error(delta: float | None) -> float:
        model = ManyBoostRegressor("huber", huber_delta=delta, random_state=0).fit(X, y)
        return float(np.abs(model.predict(X) - signal).mean())

    assert error(None) < (1 - gain) * error(np.quantile(np.abs(y - np.median(y)), 0.9))
