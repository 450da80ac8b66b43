"""One loss for each output, and several quantiles of one: all in one model."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import Ridge
from sklearn.metrics import d2_pinball_score
from sklearn.tree import DecisionTreeRegressor

import reference
from fitted_losses import fitted
from manyboost import ManyBoostClassifier, ManyBoostRegressor, _core
from manyboost.data.weights import Weights
from manyboost.training.losses import LISTED_LOSSES
from manyboost.training.plan import Plan
from positive_targets import positive

STRATEGIES = ["independent", "multioutput", "project", "relabel"]
ALL = ["poisson", "squared_error", "squared_error", "log_loss", "huber", "absolute_error",
       "exponential", "quantile", "poisson"]  # fmt: skip
POOL = _core.Pool(1)


def mixed(losses=ALL, n=300, seed=0):
    """Features, and targets that suit the losses."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    signal = X @ rng.normal(size=(4, len(losses))) + 0.5 * rng.normal(size=(n, len(losses)))
    columns = []
    for loss, column in zip(losses, signal.T, strict=True):
        if loss == "poisson":
            columns.append(rng.poisson(np.exp(np.clip(column, -3, 2))))
        elif loss in ("gamma", "tweedie"):
            columns.append(positive(loss, np.exp(column / 2)))
        elif loss in ("log_loss", "exponential"):
            columns.append(column > 0.3)
        else:
            columns.append(10 * column + 100)
    return X, np.column_stack(columns).astype(float)


def regressor(loss=ALL, **parameters):
    return ManyBoostRegressor(loss, **{"max_iter": 10, "random_state": 0, **parameters})


def model_bytes(model):
    return model._progress.model.trees.to_bytes()


def alone(loss, X, y, weight=None, **parameters):
    """The model of one output by itself, and its predictions."""
    parameters = {"max_iter": 10, "random_state": 0, "strategy": "independent", **parameters}
    if loss in ("log_loss", "exponential"):
        parameters.pop("quantile", None)
        model = ManyBoostClassifier(loss, **parameters).fit(X, y.astype(int), weight)
        return model, model.predict_proba(X)[:, 1]
    model = ManyBoostRegressor(loss, **parameters).fit(X, y, weight)
    return model, model.predict(X)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("step", ["auto", "newton", "line_search"])
def test_independent_outputs_are_those_of_their_loss_alone_to_the_last_bit(step, weighted):
    X, Y = mixed()
    weight = np.random.default_rng(1).exponential(size=300) if weighted else None
    together = regressor(strategy="independent", step=step, quantile=0.2).fit(X, Y, weight)
    predicted = together.predict(X)
    for j, loss in enumerate(ALL):
        model, expected = alone(loss, X, Y[:, j], weight, step=step, quantile=0.2)
        assert together.baseline_[j] == model.baseline_[0], loss
        assert np.array_equal(predicted[:, j], expected), loss
        assert np.array_equal(together.output_importances_[j], model.output_importances_[0])


@pytest.mark.parametrize("step", ["newton", "line_search"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_list_of_one_loss_is_that_loss(strategy, step):
    X, Y = mixed(["huber"] * 3)
    same = {"strategy": strategy, "step": step, "subsample": 0.7}
    listed = regressor(["huber"] * 3, **same).fit(X, Y)
    named = regressor("huber", **same).fit(X, Y)
    assert model_bytes(listed) == model_bytes(named)
    assert listed.train_score_ == pytest.approx(named.train_score_, rel=1e-12)


def test_blocks_are_runs_of_equal_losses():
    X, Y = mixed()
    blocks = regressor().fit(X, Y)._fitted_loss.blocks
    assert [facts.kernel for facts, _ in blocks] == [*ALL[:2], *ALL[3:]]
    assert [pair for _, pair in blocks][:3] == [(0, 1), (1, 3), (3, 4)]


def reference_loss(loss, y):
    made = reference.make_loss({"squared_error": "squared_error"}.get(loss, loss), quantile=0.2)
    return made.prepare(y, np.ones(len(y)))


@pytest.mark.parametrize("step", ["newton", "line_search"])
@pytest.mark.parametrize("strategy", ["multioutput", "project", "relabel"])
def test_one_round_agrees_with_the_reference(strategy, step):
    """Leaves and steps of the first tree, output by output, from the oracle's own formulas."""
    X, Y = mixed()
    rate = 0.1
    model = regressor(strategy=strategy, step=step, max_iter=1, quantile=0.2, learning_rate=rate)
    model.fit(X, Y)
    raw = model._raw_predict(X)
    moved = raw - model.baseline_
    # Rows of one leaf move together.
    _, leaf_of_row = np.unique(moved[:, 1], return_inverse=True)
    ones = np.ones(len(X))
    directions = []
    for j, loss in enumerate(ALL):
        y, f = Y[:, [j]], np.full((len(X), 1), model.baseline_[j])
        oracle = reference_loss(loss, y)
        assert model.baseline_[j] == pytest.approx(oracle.baseline(y, ones)[0], rel=1e-5, abs=1e-5)
        r, h = oracle.residual(y, f)[:, 0], oracle.hessian(y, f)[:, 0]
        if strategy == "project":
            directions.append((oracle, y, f, r, h))
            continue
        if step == "newton" and oracle.level is not None:
            g = np.array(
                [
                    reference.lower_quantile(
                        (y - f)[leaf_of_row == k, 0], ones[leaf_of_row == k],
                        oracle.level * np.sum(leaf_of_row == k),
                    )
                    for k in range(leaf_of_row.max() + 1)
                ]
            )[leaf_of_row]  # fmt: skip
            expected = rate * g
        elif step == "newton":
            total = np.bincount(leaf_of_row, r)
            curvature = np.bincount(leaf_of_row, h) + oracle.default_l2
            safe = np.where(curvature > 0, curvature, 1.0)
            mean = total / np.bincount(leaf_of_row)
            expected = rate * np.where(curvature > 0, total / safe, mean)[leaf_of_row]
        else:
            g = (np.bincount(leaf_of_row, r) / np.bincount(leaf_of_row))[leaf_of_row]
            rho = oracle.line_search(y, f, g[:, None], ones)[0]
            expected = rate * rho * g
        np.testing.assert_allclose(moved[:, j], expected, rtol=2e-3, atol=2e-4, err_msg=loss)
    if strategy == "project":
        # One direction for all; its scale is known from the steps of squared error.
        steps = model.step_sizes_[0]
        g = moved[:, 1] / (rate * steps[1])
        for j, (oracle, y, f, r, h) in enumerate(directions):
            if step == "newton" and oracle.level is None:
                leaves = np.array([g[leaf_of_row == k][0] for k in range(leaf_of_row.max() + 1)])
                damping = oracle.default_l2 * np.mean(leaves**2)
                expected = np.sum(r * g) / (np.sum(h * g**2) + damping)
            else:
                expected = oracle.line_search(y, f, g[:, None], ones)[0]
            assert steps[j] == pytest.approx(expected, rel=5e-3, abs=1e-6), ALL[j]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("step", ["auto", "newton", "line_search"])
def test_every_output_learns(strategy, step):
    X, Y = mixed(n=600)
    model = regressor(strategy=strategy, step=step, max_iter=60, n_components=1).fit(
        X, Y, X_val=X, Y_val=Y
    )
    curves = model.validation_score_per_output_
    assert (curves[-1] > curves[0]).all()
    assert model.validation_score_ == pytest.approx(model.train_score_, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_training_loss_never_rises(strategy):
    for seed in range(5):
        X, Y = mixed(n=150, seed=seed)
        model = regressor(strategy=strategy, step="line_search", learning_rate=0.5).fit(X, Y)
        losses = -model.train_score_
        assert (np.diff(losses) <= 2e-6 * np.abs(losses[:-1])).all()


def test_predictions_are_means_and_probabilities():
    losses = ["log_loss", "poisson", "squared_error"]
    X, Y = mixed(losses)
    model = regressor(losses).fit(X, Y)
    raw, predicted = model._raw_predict(X), model.predict(X)
    # Within units in the last place: SciPy and NumPy have other functions.
    np.testing.assert_allclose(predicted[:, 0], expit(raw[:, 0]), rtol=1e-15)
    np.testing.assert_allclose(predicted[:, 1], np.exp(raw[:, 1]), rtol=1e-15)
    np.testing.assert_array_equal(predicted[:, 2], raw[:, 2])
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], predicted)


def test_losses_of_large_targets_do_not_drown_the_others():
    losses = ["squared_error", "log_loss"]
    X, Y = mixed(losses, n=600)
    Y[:, 0] *= 1e6
    scaled = regressor(losses, max_iter=50).fit(X, Y)
    unscaled = regressor(losses, max_iter=50, output_scaling=None).fit(X, Y)

    def accuracy(model):
        return np.mean((model.predict(X)[:, 1] > 0.5) == Y[:, 1])

    assert accuracy(scaled) > accuracy(unscaled) + 0.05
    # The scale is the standard deviation of the residuals at the baseline.
    bound = scaled._fitted_loss.bind(Y, Weights(), POOL)
    plan = SimpleNamespace(scales_outputs=True, importance=None)
    assert Plan.split_scale(plan, bound) == pytest.approx(1 / Y.std(axis=0), rel=1e-5)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_mixed_models_are_pickled_and_gone_on_with(strategy):
    X, Y = mixed()
    at_once = regressor(strategy=strategy, max_iter=8, learning_rate=0.1).fit(X, Y)
    begun = regressor(strategy=strategy, max_iter=4, learning_rate=0.1, warm_start=True).fit(X, Y)
    resumed = pickle.loads(pickle.dumps(begun)).set_params(max_iter=8).fit(X, Y)
    assert model_bytes(resumed) == model_bytes(at_once)
    assert np.array_equal(resumed.predict(X), at_once.predict(X))
    with pytest.raises(ValueError, match="loss"):
        resumed.set_params(loss=ALL[::-1], max_iter=9).fit(X, Y[:, ::-1])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_threads_do_not_change_a_mixed_model(strategy):
    X, Y = mixed(n=4000)
    models = [
        regressor(strategy=strategy, n_jobs=n_jobs, step=step, max_iter=3, early_stopping=True)
        for step in ("newton", "line_search")
        for n_jobs in (1, 2, 3)
    ]
    digests = [(model_bytes(m), m.train_score_.tobytes()) for m in (m.fit(X, Y) for m in models)]
    assert len(set(digests)) == 2


@pytest.mark.parametrize(
    ("strategy", "estimator"),
    [
        ("independent", Ridge()),
        ("multioutput", Ridge()),
        ("project", Ridge()),
        ("relabel", DecisionTreeRegressor(max_depth=3)),
    ],
    ids=str,
)
@pytest.mark.parametrize("step", ["auto", "newton", "line_search"])
def test_mixed_losses_with_foreign_weak_learners(strategy, estimator, step):
    X, Y = mixed()
    model = regressor(strategy=strategy, estimator=estimator, step=step, max_iter=20).fit(X, Y)
    assert model.train_score_[-1] > model.train_score_[0]
    assert model.predict(X).shape == Y.shape


def test_mixed_outputs_are_stopped_one_by_one():
    X, Y = mixed()
    X_val, Y_val = mixed(seed=0, n=400)
    model = regressor(early_stopping="per_output", max_iter=200, n_iter_no_change=5)
    model.set_params(learning_rate=0.5).fit(X, Y, X_val=X_val[300:], Y_val=Y_val[300:])
    best = model.best_iter_per_output_
    assert len(set(best.tolist())) > 2
    assert np.array_equal(model.validation_score_per_output_.argmax(axis=0), best)


def test_a_list_serves_a_single_output_too():
    X, Y = mixed(["poisson"])
    listed = regressor(["poisson"]).fit(X, Y[:, 0])
    assert listed.predict(X).shape == (300,)
    assert np.array_equal(listed.predict(X), regressor("poisson").fit(X, Y[:, 0]).predict(X))


@pytest.mark.parametrize("name", LISTED_LOSSES)
def test_a_loss_in_a_list_has_the_baseline_it_has_alone(name):
    X, Y = mixed([name])
    del X
    listed = fitted([name], Y, n_outputs=1, quantile=0.2)
    encoded = Y.astype(np.uint8) if name in ("log_loss", "exponential") else Y
    assert listed.baseline == fitted(name, encoded, n_outputs=1, quantile=0.2).baseline


@pytest.mark.parametrize(
    ("losses", "column", "value", "sentence"),
    [
        (["squared_error"] * 2, None, None, "loss has 2 names but y has 3 outputs"),
        (["squared_error", "log_loss", "huber"], 1, 0.5, r"row 4, output 1; loss='log_loss'"),
        (["squared_error", "huber", "poisson"], 2, -1.0, r"row 4, output 2; loss='poisson'"),
        (["exponential"] * 3, 0, 2.0, r"value 2 in row 4, output 0; loss='exponential'"),
    ],
)
def test_targets_that_a_loss_cannot_take(losses, column, value, sentence):
    X = np.random.default_rng(0).normal(size=(30, 2))
    Y = (np.random.default_rng(1).random((30, 3)) > 0.5).astype(float)
    if column is not None:
        Y[4, column] = value
    with pytest.raises(ValueError, match=sentence):
        regressor(losses).fit(X, Y)


def test_a_classifier_has_one_loss():
    X, Y = mixed(["log_loss", "log_loss"])
    with pytest.raises(ValueError, match="is not a classification loss for all outputs"):
        ManyBoostClassifier(["log_loss", "log_loss"]).fit(X, Y)


def test_regularisation_that_no_output_uses_is_refused():
    X, Y = mixed(["absolute_error", "quantile"])
    with pytest.raises(ValueError, match=r"l2_regularization=3.0 has no effect"):
        regressor(["absolute_error", "quantile"], l2_regularization=3.0).fit(X, Y)
    losses = ["absolute_error", "poisson"]
    X, Y = mixed(losses)
    damped = regressor(losses, l2_regularization=1e6, max_iter=1).fit(X, Y)
    moved = np.abs(damped._raw_predict(X) - damped.baseline_).max(axis=0)
    assert moved[1] < 1e-3 < moved[0]


# Several quantiles ------------------------------------------------------------------------------

LEVELS = [0.1, 0.5, 0.9]


def noisy(n=2000, seed=0):
    """Noise whose spread depends on a feature; the second output is another scale of it."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 3))
    y = X[:, 0] + (1 + X[:, 1]) * rng.normal(size=n)
    return X, np.column_stack([y, 50 - 10 * y])


def quantiles(**parameters):
    return regressor("quantile", **{"quantile": LEVELS, "max_iter": 60, **parameters})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_quantiles_never_cross_and_cover(strategy):
    X, Y = noisy()
    X_test, Y_test = noisy(seed=1)
    model = quantiles(strategy=strategy).fit(X, Y)
    predicted = model.predict(X_test)
    assert predicted.shape == (2000, 2, 3)
    assert (np.diff(predicted, axis=2) >= 0).all()
    below = (Y_test[:, :, None] <= predicted).mean(axis=0)
    assert below == pytest.approx(np.tile(LEVELS, (2, 1)), abs=0.06)
    assert model.n_outputs_ == 6
    for stage in model.staged_predict(X_test):
        assert (np.diff(stage, axis=2) >= 0).all()
    np.testing.assert_array_equal(stage, predicted)


def test_quantiles_of_one_output_have_two_dimensions():
    X, Y = noisy()
    model = quantiles().fit(X, Y[:, 0])
    assert model.predict(X).shape == (2000, 3)
    assert quantiles(quantile=(0.3,)).fit(X, Y[:, 0]).predict(X).shape == (2000, 1)
    assert quantiles(quantile=np.array(LEVELS)).fit(X, Y[:, 0]).predict(X).shape == (2000, 3)


def test_sorting_is_all_that_is_done_to_crossing_quantiles():
    X, Y = noisy(n=300)
    model = quantiles(strategy="independent", max_iter=40).fit(X, Y)
    columns = [
        regressor("quantile", quantile=level, strategy="independent", max_iter=40)
        .fit(X, Y)
        .predict(X)
        for level in LEVELS
    ]
    crossing = np.stack(columns, axis=2)
    assert (np.diff(crossing, axis=2) < 0).any()
    np.testing.assert_array_equal(model.predict(X), np.sort(crossing, axis=2))


def test_the_score_of_quantiles_is_the_loss_saved():
    X, Y = noisy()
    weight = np.random.default_rng(3).random(2000)
    model = quantiles().fit(X, Y)
    predicted = model.predict(X)
    for given in (None, weight):
        expected = np.mean(
            [
                d2_pinball_score(Y, predicted[:, :, k], alpha=level, sample_weight=given)
                for k, level in enumerate(LEVELS)
            ]
        )
        assert model.score(X, Y, given) == pytest.approx(expected)
    assert 0.1 < expected < 1


def test_quantiles_are_validated_and_stopped():
    X, Y = noisy()
    X_val, Y_val = noisy(n=500, seed=1)

    def width(estimator, X, y):
        assert y.shape == (500, 2)
        return -np.diff(estimator.predict(X)[:, :, [0, 2]], axis=2).mean()

    model = quantiles(max_iter=300, early_stopping="per_output", scoring=["loss", width])
    model.fit(X, Y, X_val=X_val, Y_val=Y_val)
    assert model.best_iter_per_output_.shape == (6,)
    assert list(model.validation_scores_) == ["loss", "width"]
    # As fitted, whatever is set later.
    before = model.predict(X)
    assert np.array_equal(model.set_params(quantile=0.5).predict(X), before)


def test_quantiles_are_gone_on_with():
    X, Y = noisy(n=300)
    at_once = quantiles(max_iter=10).fit(X, Y)
    twice = quantiles(max_iter=5, warm_start=True).fit(X, Y).set_params(max_iter=10).fit(X, Y)
    assert model_bytes(twice) == model_bytes(at_once)
    with pytest.raises(ValueError, match="loss"):
        twice.set_params(max_iter=20, quantile=[0.1, 0.5, 0.8]).fit(X, Y)


def test_quantiles_that_have_no_use_are_refused():
    X, Y = noisy(n=50)
    with pytest.raises(ValueError, match="which only loss='quantile' can use"):
        regressor("huber", quantile=LEVELS).fit(X, Y)
    with pytest.raises(ValueError, match="which only loss='quantile' can use"):
        regressor(["quantile", "huber"], quantile=LEVELS).fit(X, Y)
    with pytest.raises(ValueError, match="a list of quantiles has several; use 'loss'"):
        quantiles(scoring="r2", early_stopping=True).fit(X, Y)
    with pytest.raises(ValueError, match="Y_val has 1 outputs but y has 2"):
        quantiles().fit(X, Y, X_val=X, Y_val=Y[:, 0])
