"""Strategies are one where theory says so."""

import numpy as np
import pytest
from sklearn.preprocessing import scale as standardise

from manyboost import ManyBoostClassifier, ManyBoostRegressor, _core

STRATEGIES = ["independent", "multioutput", "project", "relabel"]
EXACT = {"max_iter": 20, "learning_rate": 0.1, "min_samples_leaf": 2, "random_state": 0}
EXACT |= {"early_stopping": False}


def make_data(n=200, p=5, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    Y = np.tanh(X @ rng.normal(size=(p, d))) + 0.3 * rng.normal(size=(n, d))
    return X, Y


def model_bytes(model):
    return model._progress.model.trees.to_bytes()


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber"])
def test_relabel_without_projection_is_multioutput(loss):
    X, Y = make_data()
    settings = EXACT | {"loss": loss, "step": "line_search"}
    relabel = ManyBoostRegressor(strategy="relabel", projection="identity", **settings).fit(X, Y)
    multioutput = ManyBoostRegressor(strategy="multioutput", **settings).fit(X, Y)
    assert model_bytes(relabel) == model_bytes(multioutput)


@pytest.mark.parametrize("least_gain", [0.0, 1.0])
@pytest.mark.parametrize("loss", ["squared_error", "huber", "log_loss", "exponential"])
def test_with_one_output_all_strategies_agree(loss, least_gain):
    X, Y = make_data(d=1)
    estimator = ManyBoostRegressor
    if loss in ("log_loss", "exponential"):
        estimator, Y = ManyBoostClassifier, (Y > 0).astype(int)
    predictions = [
        estimator(loss, strategy=strategy, min_split_gain=least_gain, step="line_search", **EXACT)
        .fit(X, Y.ravel())
        ._raw_predict(X)
        for strategy in STRATEGIES
    ]
    for other in predictions[1:]:
        np.testing.assert_allclose(other, predictions[0], rtol=1e-5, atol=1e-5)


def test_project_on_equal_outputs_is_independent_boosting_of_one():
    X, Y = make_data(d=1)
    shared = ManyBoostRegressor(
        strategy="project", projection="subsample", step="line_search", **EXACT
    ).fit(X, np.repeat(Y, 5, axis=1))
    alone = ManyBoostRegressor(strategy="independent", step="line_search", **EXACT).fit(X, Y)
    for j in range(5):
        np.testing.assert_allclose(shared.predict(X)[:, [j]], alone.predict(X), rtol=1e-5)


@pytest.mark.parametrize("strategy", ["multioutput", "independent"])
@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_permuting_the_outputs_permutes_the_predictions(strategy, loss):
    X, Y = make_data(d=6)
    Y = np.round(np.exp(Y)) if loss == "poisson" else Y
    order = np.random.default_rng(1).permutation(6)
    settings = EXACT | {"loss": loss, "strategy": strategy, "step": "line_search"}
    plain = ManyBoostRegressor(**settings).fit(X, Y).predict(X)
    permuted = ManyBoostRegressor(**settings).fit(X, Y[:, order]).predict(X)
    np.testing.assert_allclose(permuted, plain[:, order], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("projection", ["gaussian", "rademacher", "achlioptas", "sparse"])
def test_projections_preserve_variance_ever_better(projection):
    # The variance theorem: Var(Φ y) / Var(y) → 1 as q grows, at rate 1/√q.
    _, Y = make_data(d=30)
    Y = Y - Y.mean(axis=0)
    errors = []
    for q in (10, 1000):
        ratios = [
            ((Y @ _core.draw_projection(projection, q, 30, [], seed, 0).T) ** 2).sum()
            / (Y**2).sum()
            for seed in range(40)
        ]
        errors.append(np.sqrt(np.mean((np.array(ratios) - 1) ** 2)))
    assert errors[1] < 0.2 * errors[0]
    assert errors[1] < 0.1


def test_relabel_with_many_components_approaches_multioutput():
    X, Y = make_data(n=400, d=5)
    settings = EXACT | {"max_iter": 1, "learning_rate": 1.0, "max_leaf_nodes": 8}
    target = ManyBoostRegressor(strategy="multioutput", **settings).fit(X, Y).predict(X)

    def distance(q):
        models = [
            ManyBoostRegressor(n_components=q, **(settings | {"random_state": seed})).fit(X, Y)
            for seed in range(10)
        ]
        return np.mean([np.mean((model.predict(X) - target) ** 2) for model in models])

    few, some, many = distance(1), distance(10), distance(2000)
    assert many < some < few
    assert many < 0.25 * few


def test_scaling_an_output_scales_its_predictions_when_outputs_are_scaled():
    X, Y = make_data()
    factors = np.array([1.0, 1024.0, 2.0**-10, 4.0])
    plain = ManyBoostRegressor(**EXACT).fit(X, Y).predict(X)
    scaled = ManyBoostRegressor(**EXACT).fit(X, Y * factors).predict(X)
    np.testing.assert_allclose(scaled / factors, plain, rtol=1e-4, atol=1e-4)


def test_output_scaling_can_be_switched_off():
    X, Y = make_data()
    as_they_are = ManyBoostRegressor(output_scaling=None, **EXACT).fit(X, standardise(Y))
    scaled = ManyBoostRegressor(output_scaling="auto", **EXACT).fit(X, standardise(Y))
    np.testing.assert_allclose(as_they_are.predict(X), scaled.predict(X), atol=1e-3)
    Y[:, 0] *= 1000
    drowned = ManyBoostRegressor(output_scaling=None, strategy="multioutput", **EXACT).fit(X, Y)
    spared = ManyBoostRegressor(strategy="multioutput", **EXACT).fit(X, Y)
    assert spared.score(X, Y) > drowned.score(X, Y)
