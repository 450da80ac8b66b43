"""Targets in single precision stay so, and give the model of the same values as doubles."""

import tracemalloc

import numpy as np
import pytest

from manyboost import ManyBoostRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4)).astype(np.float32)
Y = (X[:, :3] @ RNG.normal(size=(3, 3)) + RNG.normal(size=(120, 3))).astype(np.float32)
HOLES = np.where(RNG.random(Y.shape) < 0.2, np.nan, Y).astype(np.float32)
MIXED = np.column_stack([Y[:, 0], np.exp(Y[:, 1]), Y[:, 2] > 0]).astype(np.float32)
WEIGHT = RNG.random(120)


@pytest.mark.parametrize("strategy", ["independent", "multioutput", "project", "relabel"])
@pytest.mark.parametrize(
    ("loss", "y"),
    [
        ("squared_error", Y),
        ("squared_error", HOLES),
        ("squared_error", Y[:, 0]),
        ("absolute_error", Y),
        ("huber", Y),
        ("quantile", HOLES),
        ("poisson", np.exp(Y)),
        ("gamma", np.exp(Y)),
        (["squared_error", "poisson", "log_loss"], MIXED),
    ],
)
def test_the_model_is_that_of_doubles(strategy, loss, y, tmp_path):
    files = []
    for dtype in (np.float32, np.float64):
        model = ManyBoostRegressor(loss, strategy=strategy, max_iter=5, random_state=0)
        model.fit(X, y.astype(dtype), WEIGHT).save(tmp_path / "model.mb")
        files.append((tmp_path / "model.mb").read_bytes())
        assert model.predict(X).dtype == np.float64
    assert files[0] == files[1]


@pytest.mark.parametrize(
    "parameters",
    [
        {"early_stopping": True},
        {"early_stopping": "per_output"},
        {"early_stopping": True, "scoring": "r2"},
        {"n_folds": 3},
        {"n_folds": 3, "refit_all": True},
        {"subsample": 0.5},
        {"strategy": "auto"},
    ],
    ids=str,
)
def test_so_it_is_with_validation_rows_folds_and_samples(parameters):
    found = []
    for dtype in (np.float32, np.float64):
        model = ManyBoostRegressor(max_iter=8, random_state=0, **parameters)
        found.append(model.fit(X, Y.astype(dtype)).predict(X))
    np.testing.assert_array_equal(*found)


def test_very_many_outputs_take_one_more_array_of_their_size():
    wide = RNG.normal(size=(200, 20_000)).astype(np.float32)
    rows = RNG.normal(size=(200, 5)).astype(np.float32)
    model = ManyBoostRegressor(max_iter=2, max_leaf_nodes=4, random_state=0, n_jobs=1)
    tracemalloc.start()
    try:
        model.fit(rows, wide)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.6 * wide.nbytes
