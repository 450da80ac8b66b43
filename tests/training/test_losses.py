"""One numeric test for every loss: derivatives, baselines, and losses written in Python."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from sklearn.ensemble import HistGradientBoostingRegressor as HistGradientBoosting
from sklearn.metrics import mean_tweedie_deviance, r2_score

import fitted_losses
from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor, _core, load
from manyboost.data.weights import Weights
from manyboost.training.losses import LABEL_LOSSES, REGRESSION_LOSSES
from manyboost.training.split_gradients import SplitGradients
from positive_targets import positive

POOL = _core.Pool(1)
REAL = list(REGRESSION_LOSSES)
LABEL = list(LABEL_LOSSES)
CURVED = [name for name in REAL if REGRESSION_LOSSES[name].curved]


def real_targets(loss, n=40, d=3, seed=0):
    Y = np.random.default_rng(seed).normal(size=(n, d)) * [1, 3, 0.5] + [0, 5, -1]
    return positive(loss, Y)


def label_targets(n=40, seed=0):
    return (np.random.default_rng(seed).random((n, 3)) < [0.5, 0.2, 0.8]).astype(np.uint8)


def fitted(loss, Y, weight=None, n_outputs=None):
    n_outputs = n_outputs or Y.shape[1]
    return fitted_losses.fitted(loss, Y, weight, n_outputs=n_outputs, quantile=0.3)


def targets_of(case):
    task, loss = case
    return real_targets(loss) if task == "real" else label_targets()


CASES = [("real", name) for name in REAL] + [("label", name) for name in LABEL]


def cell_losses(loss, Y, raw, cell):
    """Loss of the whole data as a function of one cell of raw, by the kernel."""
    i, j = cell

    def value(f):
        moved = raw.copy()
        moved[i, j] = f
        objective = loss.bind(Y, Weights(), POOL)
        return objective.losses(moved)[0] * objective.cells

    return value


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case))
def test_residuals_and_curvatures_match_finite_differences(case):
    Y = targets_of(case)[:6]
    loss = fitted(case[1], Y)
    raw = np.random.default_rng(1).normal(size=Y.shape).astype(np.float32)
    objective = loss.bind(Y, Weights(), POOL)
    residuals = np.empty_like(raw)
    objective.advance(raw, residuals, None, SplitGradients(residuals, None))
    curvatures = np.empty_like(raw)
    loss.kernel().curvatures(POOL, objective.y, residuals, curvatures)
    step = np.float32(2**-7)
    for cell in np.ndindex(*Y.shape):
        value = cell_losses(loss, Y, raw, cell)
        up, here, down = value(raw[cell] + step), value(raw[cell]), value(raw[cell] - step)
        assert -(up - down) / (2 * step) == pytest.approx(residuals[cell], rel=2e-3, abs=2e-3)
        if loss.facts.curved and case[1] != "huber":
            second = (up - 2 * here + down) / step**2
            assert second == pytest.approx(curvatures[cell], rel=2e-2, abs=2e-2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("step", ["newton", "line_search"])
def test_a_huber_delta_may_be_larger_than_single_precision(step):
    Y = real_targets("huber")
    models = [
        ManyBoostRegressor("huber", huber_delta=delta, step=step, max_iter=100, random_state=0)
        for delta in (2e37, 1e300)
    ]
    predictions = [model.fit(Y, Y).predict(Y) for model in models]
    np.testing.assert_array_equal(*predictions)
    assert r2_score(Y, predictions[0]) > 0.9


def test_huber_curvature_is_one_inside_delta_and_zero_outside():
    Y = real_targets("huber")
    loss = fitted("huber", Y)
    objective = loss.bind(Y, Weights(), POOL)
    raw = np.zeros(Y.shape, np.float32)
    residuals, curvatures = np.empty_like(raw), np.empty_like(raw)
    objective.advance(raw, residuals, None, SplitGradients(residuals, None))
    loss.kernel().curvatures(POOL, objective.y, residuals, curvatures)
    np.testing.assert_array_equal(curvatures, np.abs(objective.y) < loss.param.astype(np.float32))
    assert 0.4 < 1 - curvatures.mean() < 0.6


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case))
def test_the_baseline_minimises_the_loss(case, weighted):
    Y = targets_of(case)
    weight = (
        np.random.default_rng(2).uniform(0.1, 2, len(Y)).astype(np.float32) if weighted else None
    )
    loss = fitted(case[1], Y, weight)
    for j in range(Y.shape[1]):
        column = np.ascontiguousarray(Y[:, [j]])
        single = fitted(case[1], column, weight)
        assert single.baseline[0] == pytest.approx(loss.baseline[j])
        objective = single.bind(column, Weights(weight), POOL)

        def total(shift, objective=objective):
            return objective.losses(np.full((len(Y), 1), shift, np.float32))[0]

        best = minimize_scalar(total, bracket=(-0.1, 0.1)).fun
        assert total(0.0) <= best + 1e-6 * max(1, abs(best))


def test_softmax_residuals_curvatures_and_baseline():
    rng = np.random.default_rng(3)
    classes = rng.integers(0, 4, 30).astype(np.uint32)
    loss = fitted("log_loss", classes, n_outputs=4)
    objective = loss.bind(classes, Weights(), POOL)
    raw = rng.normal(size=(30, 4)).astype(np.float32)
    residuals, curvatures = np.empty_like(raw), np.empty_like(raw)
    objective.advance(raw, residuals, None, SplitGradients(residuals, None))
    loss.kernel().curvatures(POOL, objective.y, residuals, curvatures)
    step = np.float32(2**-7)
    for cell in [(0, 0), (3, 2), (7, 1), (9, 3)]:
        value = cell_losses(loss, classes, raw, cell)
        up, here, down = value(raw[cell] + step), value(raw[cell]), value(raw[cell] - step)
        assert -(up - down) / (2 * step) == pytest.approx(residuals[cell], abs=2e-3)
        assert (up - 2 * here + down) / step**2 == pytest.approx(curvatures[cell], abs=2e-2)

    def total(shift):
        return objective.losses(np.tile(shift.astype(np.float32), (30, 1)))[0]

    assert total(np.zeros(4)) <= minimize(total, np.zeros(4), method="Nelder-Mead").fun + 1e-6


def test_outputs_far_from_zero_keep_their_digits():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 2))
    Y = np.column_stack([X[:, 0], X[:, 1]])
    near = ManyBoostRegressor(random_state=0).fit(X, Y).predict(X)
    far = ManyBoostRegressor(random_state=0).fit(X, Y + 1e9).predict(X)
    np.testing.assert_allclose(far - 1e9, near, atol=1e-5)


@pytest.mark.parametrize("loss", LABEL)
def test_constant_labels_have_a_finite_baseline(loss):
    X = np.random.default_rng(5).normal(size=(60, 3))
    Y = np.column_stack([np.zeros(60), np.ones(60), X[:, 0] > 0]).astype(int)
    model = ManyBoostClassifier(loss=loss, min_samples_leaf=2).fit(X, Y)
    proba = model.predict_proba(X)
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(proba).all()
    assert (model.predict(X)[:, :2] == [0, 1]).all()
    assert np.abs(model.baseline_).max() <= 15


def test_amounts_above_zero_score_no_worse_than_in_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5))
    y = np.exp(X[:, 0] + np.sin(3 * X[:, 1])) * rng.gamma(2, 0.5, 4000)
    scores = []
    for model in (ManyBoostRegressor("gamma", random_state=0), HistGradientBoosting(loss="gamma")):
        predictions = model.fit(X[:2500], y[:2500]).predict(X[2500:])
        scores.append(mean_tweedie_deviance(y[2500:], predictions, power=2))
    assert scores[0] < scores[1]


def test_sums_of_claims_are_predicted_better_by_their_own_loss():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5))
    claims = rng.poisson(np.exp(0.5 * X[:, 0] - 1))
    y = rng.gamma(np.maximum(claims, 1e-9)) * np.exp(X[:, 1]) * (claims > 0)
    scores = [mean_tweedie_deviance(y[2500:], np.full(1500, y[:2500].mean()), power=1.5)]
    for loss in ("squared_error", "tweedie"):
        model = ManyBoostRegressor(loss, random_state=0, max_iter=30).fit(X[:2500], y[:2500])
        predictions = np.maximum(model.predict(X[2500:]), 1e-3)
        scores.append(mean_tweedie_deviance(y[2500:], predictions, power=1.5))
    assert scores[2] < 0.9 * min(scores[:2])


def test_the_power_is_a_part_of_the_loss(tmp_path):
    X = np.random.default_rng(6).normal(size=(200, 3))
    y = np.maximum(X[:, 0], 0) * np.exp(X[:, 1])
    models = [ManyBoostRegressor("tweedie", power=p, max_iter=5).fit(X, y) for p in (1.2, 1.8)]
    assert not np.allclose(models[0].predict(X), models[1].predict(X), rtol=1e-3)
    models[0].save(tmp_path / "model.mb")
    read = load(tmp_path / "model.mb")
    assert read.power == 1.2
    np.testing.assert_array_equal(read.predict(X), models[0].predict(X))
    read.set_params(warm_start=True, max_iter=6).fit(X, y)
    with pytest.raises(ValueError, match="loss, strategy"):
        read.set_params(power=1.3, max_iter=7).fit(X, y)


def test_poisson_with_an_output_that_is_always_zero():
    X = np.random.default_rng(6).normal(size=(60, 3))
    Y = np.column_stack([np.zeros(60), np.arange(60) % 5])
    model = ManyBoostRegressor(loss="poisson").fit(X, Y)
    predictions = model.predict(X)
    assert (predictions[:, 0] < 1e-5).all()
    assert np.isfinite(predictions).all()


class Quartic(Loss):
    """A loss with all that may be given."""

    def value(self, y, raw):
        return 0.25 * (y - raw) ** 4 + 0.5 * (y - raw) ** 2

    def gradient(self, y, raw):
        return -((y - raw) ** 3) - (y - raw)

    def hessian(self, y, raw):
        return 3 * (y - raw) ** 2 + 1


class OwnSquaredError(Loss):
    """Squared error once more, without second derivatives."""

    def value(self, y, raw):
        return (0.5 * (y - raw) ** 2).sum(axis=1)

    def gradient(self, y, raw):
        return raw - y


class OwnLogLoss(Loss):
    """Log loss once more."""

    def value(self, y, raw):
        return np.logaddexp(0, -(2 * y - 1) * raw)

    def gradient(self, y, raw):
        return 1 / (1 + np.exp(-raw)) - y

    def hessian(self, y, raw):
        p = 1 / (1 + np.exp(-raw))
        return p * (1 - p)

    def inverse_link(self, raw):
        return 1 / (1 + np.exp(-raw))


@pytest.mark.parametrize("strategy", ["independent", "multioutput", "project", "relabel"])
def test_a_custom_loss_is_the_built_in_one_when_it_says_the_same(strategy):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(150, 4))
    Y = X[:, :3] + 0.1 * rng.normal(size=(150, 3))
    settings = {"strategy": strategy, "max_iter": 15, "random_state": 0, "step": "line_search"}
    own = ManyBoostRegressor(OwnSquaredError(), **settings).fit(X, Y)
    builtin = ManyBoostRegressor(**settings).fit(X, Y)
    np.testing.assert_allclose(own.predict(X), builtin.predict(X), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(own.train_score_, builtin.train_score_, rtol=1e-4)

    # (Splits for rare labels go by curvature, if the loss is built in.)
    labels = (Y > 0).astype(int)
    settings |= {"step": "newton", "l2_regularization": 1.0}
    own = ManyBoostClassifier(OwnLogLoss(), **settings).fit(X, labels)
    builtin = ManyBoostClassifier(**settings).fit(X, labels)
    np.testing.assert_allclose(own.predict_proba(X), builtin.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("step", ["auto", "line_search", "newton"])
@pytest.mark.parametrize("strategy", ["independent", "multioutput", "project", "relabel"])
def test_a_custom_loss_is_minimised(strategy, step):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(200, 3))
    Y = np.column_stack([X[:, 0], -X[:, 0] * X[:, 1]])
    model = ManyBoostRegressor(
        Quartic(), strategy=strategy, step=step, max_iter=40, random_state=0
    ).fit(X, Y)
    assert model.train_score_[-1] > 0.3 * model.train_score_[0]


class CurvedLogCosh(Loss):
    """log cosh(y - f), whose curvature vanishes far from the target."""

    def value(self, y, raw):
        return np.logaddexp(y - raw, raw - y) - np.log(2)

    def gradient(self, y, raw):
        return np.tanh(raw - y)

    def hessian(self, y, raw):
        return 1 - np.tanh(raw - y) ** 2


@pytest.mark.parametrize("seed", range(6))
def test_a_loss_whose_curvature_vanishes_does_not_diverge(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 5))
    Y = 3 * X @ rng.normal(size=(5, 4)) + rng.normal(size=(500, 4))
    model = ManyBoostRegressor(CurvedLogCosh(), random_state=seed).fit(X, Y)
    assert model.score(X, Y) > 0.8


def test_training_that_ends_above_the_baseline_warns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = ManyBoostRegressor(learning_rate=2.5, max_iter=20, random_state=0)
    with pytest.warns(UserWarning, match="above the .* of the baseline; use a smaller"):
        model.fit(X, X)


def test_probabilities_of_a_loss_without_inverse_link_are_refused():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    labels = (X > 0).astype(int)
    model = ManyBoostClassifier(CurvedLogCosh(), max_iter=30, random_state=0).fit(X, labels)
    assert model.decision_function(X).shape == (200, 3)
    with pytest.raises(ValueError, match="CurvedLogCosh has no inverse_link"):
        model.predict_proba(X)


def test_an_inverse_link_beyond_probabilities_is_refused():
    class Doubled(CurvedLogCosh):
        def inverse_link(self, raw):
            return 2 * raw

    X = np.random.default_rng(0).normal(size=(200, 3))
    model = ManyBoostClassifier(Doubled(), max_iter=30, random_state=0).fit(X, (X > 0).astype(int))
    with pytest.raises(ValueError, match=r"Doubled\.inverse_link returned numbers from"):
        model.predict_proba(X)
