"""Numbers of all sizes: a power of two on targets or weights changes no digit of the model."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score

from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor

STRATEGIES = ["independent", "multioutput", "project", "relabel"]
LOSSES = ["squared_error", "absolute_error", "huber", "quantile"]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = np.column_stack([X[:, 0] + X[:, 1], np.sin(3 * X[:, 2])]) + 0.1 * RNG.normal(size=(200, 2))
Y = Y.astype(np.float32).astype(float)
WEIGHT = RNG.integers(1, 4, size=200).astype(float)
CELLS = RNG.integers(1, 4, size=(200, 2)).astype(float)


def fitted(Y, weight=None, **parameters):
    model = ManyBoostRegressor(max_iter=5, random_state=0, n_jobs=1, **parameters)
    return model.fit(X, Y, weight)


@pytest.mark.filterwarnings("ignore:Training ended with a mean loss")  # Newton's steps of Huber's
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("step", ["line_search", "newton"])
@pytest.mark.parametrize("weight", [None, WEIGHT, CELLS], ids=["equal", "rows", "cells"])
def test_targets_and_weights_of_any_size_give_the_same_model(strategy, loss, step, weight):
    parameters = {"strategy": strategy, "loss": loss, "step": step}
    plain = fitted(Y, weight, **parameters)
    for outputs, factor in [((100, -100), 1.0), ((-100, 0), 2.0**40), ((0, 100), 2.0**-40)]:
        scale = 2.0 ** np.array(outputs)
        model = fitted(Y * scale, None if weight is None else weight * factor, **parameters)
        assert np.array_equal(model.predict(X), plain.predict(X) * scale)
        assert np.isfinite(model.train_score_).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_an_output_of_light_cells_is_fitted_as_if_they_were_heavy(loss):
    parameters = {"strategy": "independent", "loss": loss}
    plain = fitted(Y, CELLS, **parameters).predict(X)
    assert np.array_equal(
        fitted(Y, CELLS * 2.0 ** np.array([40, -40]), **parameters).predict(X), plain
    )


def test_losses_of_outputs_beyond_single_precision_are_finite():
    scale = 2.0**100
    for strategy in STRATEGIES:
        parameters = {"strategy": strategy, "early_stopping": True, "output_scaling": None}
        plain, large = fitted(Y, **parameters), fitted(Y * scale, **parameters)
        assert large.n_iter_ == plain.n_iter_ == 5
        np.testing.assert_allclose(
            large.validation_score_, plain.validation_score_ * scale**2, rtol=1e-12
        )
        np.testing.assert_allclose(large.train_score_, plain.train_score_ * scale**2, rtol=1e-12)


def test_subnormal_outputs_are_fitted():
    model = fitted(Y * [1e-40, 1.0], learning_rate=0.5)
    assert np.corrcoef(model.predict(X)[:, 0], Y[:, 0])[0, 1] > 0.7


def test_a_loss_in_python_takes_weights_of_any_size():
    class Squared(Loss):
        def value(self, y, raw):
            return 0.5 * (y - raw) ** 2

        def gradient(self, y, raw):
            return raw - y

        def hessian(self, y, raw):
            return np.ones_like(raw)

        def baseline(self, y, sample_weight):
            return np.zeros(y.shape[1])

    settings = {"loss": Squared(), "l2_regularization": 0}
    plain = fitted(Y, WEIGHT, **settings).predict(X)
    large = fitted(Y * 2.0**100, WEIGHT * 2.0**40, **settings).predict(X)
    assert np.array_equal(large, plain * 2.0**100)


def test_targets_without_room_in_single_precision_are_refused():
    assert np.isfinite(fitted(np.where(Y > 0, 1e37, -1e37)).predict(X)).all()
    with pytest.raises(ValueError, match=r"y has the value -1.1e\+37 in row 0, output 0, beyond"):
        fitted(np.full_like(Y, -1.1e37))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("rate", [1e10, 1e300])
def test_training_that_diverges_says_so(strategy, rate):
    model = ManyBoostRegressor(strategy=strategy, learning_rate=rate, max_iter=50)
    with pytest.raises(ValueError, match=r"^Training diverged in round \d+, in which .*; use a "):
        model.fit(X, Y)
    assert not hasattr(model, "n_iter_")
    labels = ManyBoostClassifier(strategy=strategy, learning_rate=1e300, max_iter=50)
    with pytest.raises(ValueError, match="Training diverged in round 1, "):
        labels.fit(X, Y > 0)


def test_a_scorer_that_does_not_go_with_the_targets_is_named():
    model = ManyBoostRegressor(scoring="f1_macro", early_stopping=True, max_iter=3)
    with pytest.raises(ValueError, match="scoring='f1_macro' does not go with these targets"):
        model.fit(X, Y)


def test_an_output_of_light_rows_is_fitted_as_if_they_were_heavy():
    # The rows of an output may be as nothing to those of another, and its cells weigh nothing
    # elsewhere: what is left is a weight for each row, and missing cells.
    rows = np.arange(len(X)) < len(X) // 2
    seen = np.column_stack([rows, ~rows])
    light = np.where(rows, 2.0**-60, 2.0**60)
    for loss in LOSSES:
        parameters = {"strategy": "independent", "loss": loss}
        plain = fitted(Y, seen * 1.0, **parameters).predict(X)
        model = fitted(Y, seen * light[:, None], **parameters)
        # (Weights of rows take another way to the sums of Newton steps than no weights.)
        np.testing.assert_allclose(model.predict(X), plain, rtol=0, atol=1e-6, err_msg=loss)


def test_leaves_of_light_cells_have_the_medians_of_their_weights():
    # One feature tells light cells of the first output from heavy ones, and the second output makes
    # trees split by it; among the light cells one is heavier than all others.
    X = np.repeat([[0.0], [1.0]], 10, axis=0)
    Y = np.column_stack([np.tile(np.arange(10.0), 2), 100 * X[:, 0]])
    weight = np.ones((20, 2))
    weight[:10, 0] = 1e-30
    weight[7, 0] = 1e-28
    model = ManyBoostRegressor("absolute_error", max_iter=1, learning_rate=1.0, min_samples_leaf=1)
    model.set_params(strategy="multioutput", step="newton", early_stopping=False)
    assert model.fit(X, Y, sample_weight=weight).predict([[0.0]]).tolist() == [[7.0, 0.0]]


# Early stopping -----------------------------------------------------------------------------------


def signal(n=1500, seed=0):
    X, y = make_friedman1(n, noise=1.0, random_state=seed)
    return X, y


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "quantile"])
def test_early_stopping_does_not_depend_on_the_scale_of_y(loss):
    X, y = signal()
    rounds = {}
    for scale in (1e-12, 1e-5, 1.0, 1e5, 1e12):
        model = ManyBoostRegressor(loss=loss, early_stopping=True, random_state=0)
        rounds[scale] = model.fit(X, y * scale).n_iter_
    assert rounds[1.0] > 30
    assert max(rounds.values()) - min(rounds.values()) <= 3


@pytest.mark.parametrize("scale", [1e-4, 1e-5, 1e4, 1e8])
def test_early_stopping_of_counts_does_not_depend_on_their_scale(scale):
    X, y = signal()
    model = ManyBoostRegressor(loss="poisson", early_stopping=True, random_state=0)
    assert model.fit(X, np.exp(y / 10) * scale).n_iter_ > 30


@pytest.mark.parametrize("scale", [0.3681, 1e-2, 1e2, 1e6])
def test_early_stopping_of_positive_targets_does_not_depend_on_their_scale(scale):
    # Their loss is zero at a mean of 1 / e.
    X, y = signal(500)
    noise = np.random.default_rng(0).gamma(2.0, 0.5, size=len(y))
    settings = {"early_stopping": True, "n_iter_no_change": 5, "random_state": 0, "n_jobs": 1}
    rounds = [
        ManyBoostRegressor("gamma", **settings).fit(X, np.c_[np.exp(y / 10), noise * c]).n_iter_
        for c in (1.0, scale)
    ]
    assert rounds[0] > 10
    assert abs(rounds[1] - rounds[0]) <= 3


@pytest.mark.parametrize("scale", [1e-12, 1e-4, 1e4, 1e12])
@pytest.mark.parametrize("early_stopping", [True, "per_output"])
def test_an_output_of_another_scale_does_not_stop_the_others(scale, early_stopping):
    X, y = signal()
    noise = np.random.default_rng(0).normal(size=len(y))
    model = ManyBoostRegressor(early_stopping=early_stopping, random_state=0, n_jobs=1)
    model.fit(X, np.c_[y, noise * scale])
    assert r2_score(y, model.predict(X)[:, 0]) > 0.85


def test_the_outputs_of_a_list_of_losses_count_alike():
    X, y = signal()
    Y = np.c_[y > y.mean(), 1e6 * np.random.default_rng(0).normal(size=len(y))]
    model = ManyBoostRegressor(
        loss=["log_loss", "squared_error"], early_stopping=True, random_state=0
    ).fit(X, Y)
    assert model.n_iter_ > 10


def test_an_output_that_does_not_vary_in_training_has_no_say():
    X, y = signal(600)
    Y = np.c_[y, np.zeros(len(y))]
    late = np.c_[y, np.ones(len(y))]
    same = {"learning_rate": 0.1, "max_iter": 100, "min_samples_leaf": 5, "random_state": 0}
    model = ManyBoostRegressor(**same).fit(X[:500], Y[:500], X_val=X[500:], Y_val=late[500:])
    alone = ManyBoostRegressor(strategy="multioutput", **same)
    alone.fit(X[:500], y[:500], X_val=X[500:], Y_val=y[500:])
    assert abs(model.n_iter_ - alone.n_iter_) < 40
    assert model.n_iter_ > 30


def test_a_warm_start_without_curves_goes_on_from_the_last_round(tmp_path):
    X, y = signal(400)
    Y = np.c_[y, -1e5 * y]
    given = {"X_val": X[300:], "Y_val": Y[300:]}
    settings = {"learning_rate": 0.1, "random_state": 0, "n_iter_no_change": 5}
    straight = ManyBoostRegressor(max_iter=40, **settings).fit(X[:300], Y[:300], **given)
    first = ManyBoostRegressor(max_iter=20, warm_start=True, **settings)
    first.fit(X[:300], Y[:300], **given)
    first._progress.validation_per_output.clear()
    first.set_params(max_iter=40).fit(X[:300], Y[:300], **given)
    assert np.array_equal(first.predict(X), straight.predict(X))
