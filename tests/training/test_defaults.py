"""What "auto" stands for: right for one output and few classes as well as for many outputs."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, make_classification, make_friedman1
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from manyboost import ManyBoostClassifier, ManyBoostRegressor


@pytest.mark.parametrize(
    ("data", "gain"),
    [
        (make_friedman1(600, random_state=0), 0.04),
        (make_friedman1(120, random_state=0), 0.05),
        (load_diabetes(return_X_y=True), 0.05),
    ],
)
def test_leaves_of_one_output_are_not_tiny_where_rows_are_few(data, gain):
    X, X_test, y, y_test = train_test_split(*data, test_size=0.5, random_state=0)
    model = ManyBoostRegressor(random_state=0).fit(X, y)
    tiny = ManyBoostRegressor(min_samples_leaf=len(y) // 100 or 1, random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > tiny.score(X_test, y_test) + gain


@pytest.mark.parametrize(
    ("shape", "least"), [((600,), 20), ((60,), 10), ((39,), 1), ((600, 2), 6), ((60, 2), 1)]
)
def test_the_default_leaf_is_a_sixth_of_the_rows_or_a_hundredth(shape, least):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(shape[0], 3)), rng.normal(size=shape)
    models = [
        ManyBoostRegressor(min_samples_leaf=leaf, max_iter=3, random_state=0).fit(X, Y)
        for leaf in ("auto", least)
    ]
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))


@pytest.mark.parametrize("loss", ["log_loss", "exponential", "squared_error"])
def test_the_default_leaf_of_classes_is_a_sixth_of_the_rows(loss):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 3
    models = [
        ManyBoostClassifier(loss, min_samples_leaf=leaf, max_iter=3, random_state=0).fit(X, y)
        for leaf in ("auto", 10)
    ]
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in models))


@pytest.mark.parametrize(("tails", "gain"), [(1.5, 0.15), (3.0, 0.03)])
def test_the_default_huber_loss_resists_heavy_tails(tails, gain):
    X, signal = make_friedman1(2000, random_state=0)
    y = signal + 2 * np.random.default_rng(0).standard_t(tails, size=2000)

    def error(delta: float | None) -> float:
        model = ManyBoostRegressor("huber", huber_delta=delta, random_state=0).fit(X, y)
        return float(np.abs(model.predict(X) - signal).mean())

    assert error(None) < (1 - gain) * error(np.quantile(np.abs(y - np.median(y)), 0.9))


@pytest.mark.parametrize(
    ("y", "options", "rounds", "rate"),
    [
        (np.zeros(90), {}, 100, 0.1),
        (np.zeros((90, 3)), {}, 300, 0.05),
        (np.zeros((90, 3)), {"strategy": "independent"}, 100, 0.1),
        (np.zeros((90, 3)), {"max_iter": 7}, 7, 0.05),
        (np.arange(90) % 2, {}, 100, 0.1),
        (np.arange(90) % 3, {}, 150, 0.1),
        (np.arange(90) % 30, {}, 500, 0.1),
        (np.arange(90) % 30, {"strategy": "independent"}, 100, 0.1),
        (np.arange(90) % 3, {"loss": "exponential"}, 150, 0.1),
        (np.arange(90) % 4, {"loss": "squared_error"}, 200, 0.1),
        (np.arange(90) % 30, {"loss": "exponential", "early_stopping": True}, 500, 0.1),
        (np.arange(90) % 30, {"loss": "exponential", "strategy": "independent"}, 100, 0.1),
    ],
)
def test_rounds_and_rates_go_by_the_outputs_that_share_trees(y, options, rounds, rate):
    X = np.random.default_rng(0).normal(size=(90, 2))
    kind = ManyBoostClassifier if y.dtype.kind == "i" else ManyBoostRegressor
    seen = []

    def watch(state):
        seen.append(state.max_iter)
        return True

    y = y if kind is ManyBoostClassifier else y + X[:, :1].reshape(-1, *[1] * (y.ndim - 1))
    model = kind(callbacks=[watch], random_state=0, **options).fit(X, y)
    assert seen == [rounds]
    same = kind(learning_rate=rate, random_state=0, **options | {"max_iter": 1})
    assert np.array_equal(model.predict(X), same.fit(X, y).predict(X))


def test_few_classes_have_rounds_enough():
    X, y = make_classification(
        4000, 20, n_informative=12, n_classes=8, n_clusters_per_class=1, random_state=0
    )
    model = ManyBoostClassifier(random_state=0).fit(X[:2000], y[:2000])
    fewer = ManyBoostClassifier(max_iter=100, random_state=0).fit(X[:2000], y[:2000])
    losses = [log_loss(y[2000:], each.predict_proba(X[2000:])) for each in (model, fewer)]
    assert losses[0] < 0.9 * losses[1]


@pytest.mark.parametrize("share", [0.1, 0.03])
def test_rare_positives_are_predicted_as_well_as_by_newton_trees(share):
    X, y = make_classification(
        20_000, 20, n_informative=8, weights=[1 - share], flip_y=0.01, random_state=1
    )
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    ours, theirs = (
        log_loss(y_test, kind(random_state=0).fit(X, y).predict_proba(X_test))
        for kind in (ManyBoostClassifier, HistGradientBoostingClassifier)
    )
    assert ours < 1.01 * theirs
