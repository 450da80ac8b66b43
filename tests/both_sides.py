"""The library and the reference, run on the same data with the same projections."""

import numpy as np

from manyboost import ManyBoostRegressor
from reference import boost, make_loss

STRATEGIES = ["independent", "multioutput", "project", "relabel"]
SMOOTH = ["squared_error", "huber", "poisson", "gamma", "tweedie"]
SIGNS = ["absolute_error", "quantile"]
LABELS = {"log_loss": "log_loss", "exponential": "exponential", "squared_error": "squared_labels"}
N_ROUNDS = 8
SHAPE = {"learning_rate": 0.3, "max_leaf_nodes": 5, "min_samples_leaf": 3}


def make_data(seed, n=90, p=4, d=3, missing=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    signal = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1] * j + X[:, 2] ** 2 for j in range(d)])
    Y = signal + 0.5 * rng.normal(size=(n, d))
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X, Y


class Projections:
    """The same matrices for both sides, round by round."""

    def __init__(self, n_rounds, q, d, seed=0):
        self.matrices = list(np.random.default_rng(seed).normal(size=(n_rounds, q, d)))
        self.calls = 0

    def __call__(self, n_components, n_outputs, rng):
        self.calls += 1
        return self.matrices[self.calls - 1]


def both(estimator, X, Y, reference_Y, strategy, loss, step, *, q=2, weight=None, **settings):
    """Raw training predictions of the library and of the reference."""
    d = reference_Y.shape[1] if reference_Y.ndim == 2 else int(reference_Y.max()) + 1
    q = q if strategy == "relabel" else 1
    projections = Projections(N_ROUNDS, q, d)
    shape = SHAPE | settings
    model = estimator(
        strategy=strategy,
        step=step,
        projection=projections,
        n_components=q,
        max_iter=N_ROUNDS,
        early_stopping=False,
        random_state=0,
        **shape,
    ).fit(X, Y, weight)
    expected = boost(
        X,
        reference_Y,
        strategy=strategy,
        loss=loss,
        step=step,
        projections=projections.matrices if strategy in ("project", "relabel") else None,
        max_iter=N_ROUNDS,
        sample_weight=weight,
        **shape,
    )
    return model, expected


def assert_close(actual, expected, tolerance=1e-5):
    scale = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale)


def check_signs_one_round_at_a_time(X, Y, strategy, loss, step, weight):
    """Compare losses whose gradients are signs.

    These tie often, and a residual of 1e-9 may have either sign: every round starts from the same
    raw predictions.
    """
    q = 2 if strategy == "relabel" else 1
    projections = Projections(N_ROUNDS, q, Y.shape[1])
    model = ManyBoostRegressor(
        loss=loss,
        quantile=0.7,
        strategy=strategy,
        step=step,
        projection=projections,
        n_components=q,
        output_scaling=None,
        warm_start=True,
        early_stopping=False,
        random_state=0,
        **SHAPE,
    )
    raw = None
    for m in range(N_ROUNDS):
        projections.calls = m
        model.set_params(max_iter=m + 1).fit(X, Y, weight)
        expected = boost(
            X,
            Y,
            strategy=strategy,
            loss=make_loss(loss, quantile=0.7),
            step=step,
            projections=[projections.matrices[m]] if strategy in ("project", "relabel") else None,
            max_iter=1,
            raw=raw,
            sample_weight=weight,
            **SHAPE,
        )
        raw = model._raw_predict(X)
        assert_close(raw, expected.raw)
