"""Offsets: what is added to the raw predictions, in training and after."""

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logsumexp, softmax
from sklearn import config_context
from sklearn.model_selection import cross_validate
from sklearn.tree import DecisionTreeRegressor

from fitted_losses import fitted
from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor, _core
from manyboost.data.weights import Weights
from manyboost.training.losses import LABEL_LOSSES, REGRESSION_LOSSES
from positive_targets import positive

STRATEGIES = ["independent", "multioutput", "project", "relabel"]
POOL = _core.Pool(1)


def numbers(n=300, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, X[:, :d] + 0.3 * rng.normal(size=(n, d)), rng.normal(size=(n, d))


def regressor(loss="squared_error", **parameters):
    return ManyBoostRegressor(loss, **{"max_iter": 10, "random_state": 0, **parameters})


def classifier(loss="log_loss", **parameters):
    return ManyBoostClassifier(loss, **{"max_iter": 10, "random_state": 0, **parameters})


def model_bytes(model):
    return model._progress.model.trees.to_bytes()


@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
def test_labels_that_vary_make_up_for_any_constant_offset(loss):
    X, Y, _ = numbers()
    labels, far = (Y > 0).astype(int), np.full(Y.shape, 30.0)
    plain = classifier(loss).fit(X, labels)
    model = classifier(loss).fit(X, labels, offset=far)
    np.testing.assert_allclose(model.baseline_ + 30, plain.baseline_, atol=1e-4)
    assert model.train_score_[-1] == pytest.approx(plain.train_score_[-1], rel=1e-3)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "quantile"])
def test_an_offset_is_subtracted_where_that_is_the_same(strategy, loss):
    X, Y, offset = numbers()
    model = regressor(loss, strategy=strategy).fit(X, Y, offset=offset)
    plain = regressor(loss, strategy=strategy).fit(X, Y - offset)
    assert model_bytes(model) == model_bytes(plain)
    assert np.array_equal(model.baseline_, plain.baseline_)
    np.testing.assert_allclose(model.predict(X, offset=offset), plain.predict(X) + offset)
    zeros = np.zeros(300)
    np.testing.assert_allclose(model.predict(X, offset=zeros), plain.predict(X))


def test_offsets_far_from_zero_keep_the_digits():
    X, Y, offset = numbers()
    near = regressor().fit(X, Y, offset=offset)
    far = regressor().fit(X, Y + 1e9, offset=offset + 1e9)
    difference = far.predict(X, offset=offset + 1e9) - near.predict(X, offset=offset) - 1e9
    assert np.abs(difference).max() < 1e-5


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("step", ["newton", "line_search"])
def test_exposures_of_counts_recover_the_rates(strategy, step):
    rng = np.random.default_rng(0)
    n = 6000
    X = rng.integers(0, 2, size=(n, 3)).astype(float)
    rates = np.column_stack([0.5 + 2 * X[:, 0], 3 - 2 * X[:, 1]])
    exposure = rng.uniform(0.1, 20, size=n)
    Y = rng.poisson(rates * exposure[:, None])
    options = {"strategy": strategy, "step": step, "max_iter": 150, "max_leaf_nodes": 4}
    model = regressor("poisson", early_stopping=False, learning_rate=0.1, **options)
    model.fit(X, Y, offset=np.log(exposure))
    found = model.predict(X, offset=np.zeros(n))
    np.testing.assert_allclose(found, rates, rtol=0.06)
    # The prediction for an exposure is as many times the rate.
    counts = model.predict(X, offset=np.log(exposure))
    np.testing.assert_allclose(counts, found * exposure[:, None], rtol=1e-6)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_margin_of_a_previous_model_is_gone_on_from(strategy):
    X, Y, _ = numbers()
    labels = (Y > 0).astype(int)
    first = classifier(strategy=strategy, max_iter=30).fit(X, labels)
    margin = first.decision_function(X)
    second = classifier(strategy=strategy, max_iter=30).fit(X, labels, offset=margin)

    def loss(proba):
        return -np.log(np.where(labels == 1, proba, 1 - proba)).mean()

    after = second.predict_proba(X, offset=margin)
    assert loss(after) < 0.9 * loss(first.predict_proba(X))
    np.testing.assert_allclose(after, expit(second.decision_function(X, offset=margin)))
    assert -second.train_score_[-1] == pytest.approx(loss(after), rel=1e-4)
    # Where the margin is all there is to know, little is added to it.
    assert np.abs(second.baseline_).max() < np.abs(first.baseline_).max() + 0.5


CASES = [("real", name) for name in REGRESSION_LOSSES] + [("label", name) for name in LABEL_LOSSES]


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(("task", "name"), CASES)
def test_the_baseline_minimises_the_loss_given_the_offset(task, name, weighted):
    rng = np.random.default_rng(1)
    Y = rng.normal(size=(60, 3)) * [1, 3, 0.5] + [0, 5, -1]
    if task == "label":
        Y = (rng.random((60, 3)) < [0.5, 0.2, 0.8]).astype(np.uint8)
    Y = positive(name, Y)
    offset = rng.normal(size=(60, 3)) * [0.5, 1, 2]
    weight = rng.uniform(0.1, 2, 60).astype(np.float32) if weighted else None
    loss = fitted(name, Y, weight, n_outputs=3, quantile=0.3, offset=offset)
    objective = loss.bind(Y, Weights(weight), POOL, offset=offset)
    start = objective.blank_state()
    for j in range(3):

        def total(shift, j=j):
            moved = start.copy()
            moved[:, j] += np.float32(shift)
            return objective.losses(moved)[1][j]

        best = minimize_scalar(total, bracket=(-0.1, 0.1)).fun
        assert total(0.0) <= best + 2e-6 * max(1, abs(best))


def test_the_baseline_of_classes_given_the_offset():
    rng = np.random.default_rng(2)
    classes = rng.integers(0, 4, 200).astype(np.uint32)
    offset = rng.normal(size=(200, 4)) * 2
    loss = fitted("log_loss", classes, n_outputs=4, offset=offset)
    objective = loss.bind(classes, Weights(), POOL, offset=offset)

    def total(shift):
        return objective.losses(objective.blank_state() + shift.astype(np.float32))[0]

    best = minimize(total, np.zeros(4), method="Nelder-Mead", options={"maxiter": 2000})
    assert total(np.zeros(4)) <= best.fun + 1e-6
    assert loss.baseline.sum() == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("far", [20.0, 40.0, 80.0, 300.0])
def test_classes_that_occur_make_up_for_any_constant_offset(far):
    X, Y, _ = numbers(d=3)
    y, offset = Y.argmax(axis=1), np.zeros((300, 3))
    offset[:, 0] = far
    plain = classifier().fit(X, y)
    model = classifier().fit(X, y, offset=offset)
    moved = model.baseline_ + offset[0]
    np.testing.assert_allclose(moved - moved.mean(), plain.baseline_, atol=1e-4)
    np.testing.assert_allclose(model.train_score_, plain.train_score_, rtol=1e-3)
    # Columns of classes have baselines of their own.
    columns = np.column_stack([y, Y[:, 0] > 0]).astype(object)
    plain = classifier().fit(X, columns)
    model = classifier().fit(X, columns, offset=np.column_stack([offset, np.zeros(300)]))
    assert model.train_score_[0] == pytest.approx(plain.train_score_[0], rel=1e-5)


@pytest.mark.parametrize("far", [30.0, 80.0])
def test_a_class_without_weight_has_a_finite_baseline(far):
    rng = np.random.default_rng(3)
    classes = rng.integers(0, 3, 200).astype(np.uint32)
    offset = np.column_stack([np.full(200, far), rng.normal(size=(200, 3))])
    loss = fitted("log_loss", classes, n_outputs=4, offset=offset)
    assert -15 <= loss.baseline[3] < -14
    without = fitted("log_loss", classes, n_outputs=3, offset=offset[:, :3])
    np.testing.assert_allclose(loss.baseline[:3], without.baseline, atol=1e-3)


@pytest.mark.parametrize("scale", [2, 30, 100])
def test_the_baseline_of_classes_is_the_best_for_offsets_of_any_size(scale):
    rng = np.random.default_rng(4)
    classes = rng.integers(0, 4, 300).astype(np.uint32)
    offset = rng.normal(size=(300, 4)) * scale
    found = fitted("log_loss", classes, n_outputs=4, offset=offset).baseline

    def total(baseline):
        raw = offset + baseline
        slope = softmax(raw, axis=1).sum(axis=0) - np.bincount(classes)
        return (logsumexp(raw, axis=1) - raw[np.arange(300), classes]).mean(), slope / 300

    best = minimize(total, np.zeros(4), jac=True, method="L-BFGS-B", options={"ftol": 1e-15})
    assert total(found)[0] <= best.fun * (1 + 1e-5)


@pytest.mark.parametrize("constant", [0, 1])
def test_a_constant_label_with_an_offset_has_a_finite_baseline(constant):
    X, Y, offset = numbers()
    labels = (Y > 0).astype(int)
    labels[:, 0] = constant
    model = classifier().fit(X, labels, offset=offset)
    assert 5 < np.abs(model.baseline_[0]) <= 15
    assert (model.predict(X, offset=offset)[:, 0] == constant).all()


def test_a_constant_offset_of_counts_is_absorbed_by_the_baseline():
    X, Y, _ = numbers()
    Y = np.round(np.abs(Y) * 3)
    plain = regressor("poisson").fit(X, Y)
    shifted = regressor("poisson").fit(X, Y, offset=np.full(300, 2.5))
    np.testing.assert_allclose(shifted.baseline_, plain.baseline_ - 2.5, atol=1e-6)
    found = shifted.predict(X, offset=np.full(300, 2.5))
    np.testing.assert_allclose(found, plain.predict(X), rtol=1e-3)


def test_classes_with_offsets():
    X, Y, offset = numbers(d=3)
    y = np.array(["a", "b", "c"])[Y.argmax(axis=1)]
    model = classifier(max_iter=30).fit(X, y, offset=offset)
    raw = model.decision_function(X, offset=offset)
    np.testing.assert_allclose(raw, model.decision_function(X, offset=0 * offset) + offset)
    assert (model.predict(X, offset=offset) == model.classes_[raw.argmax(axis=1)]).all()
    assert model.score(X, y, offset=offset) > 0.9
    with pytest.raises(ValueError, match=r"an offset for each output; .*, 3\)"):
        classifier().fit(X, y, offset=offset[:, 0])


@pytest.mark.parametrize("loss", ["log_loss", "squared_error", "exponential"])
def test_two_classes_with_offsets(loss):
    X, Y, offset = numbers()
    y = np.array(["no", "yes"])[(Y[:, 0] > 0).astype(int)]
    model = classifier(loss).fit(X, y, offset=offset[:, 0])
    for shape in (offset[:, 0], offset[:, :1]):
        raw = model.decision_function(X, offset=shape)
        assert raw.shape == (300,)
        np.testing.assert_allclose(
            raw, model.decision_function(X, offset=np.zeros(300)) + offset[:, 0]
        )


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (regressor(), "numbers"),
        (regressor("poisson"), "counts"),
        (regressor("quantile", quantile=[0.2, 0.8]), "numbers"),
        (regressor(["squared_error", "log_loss", "poisson"]), "labels"),
        (classifier(), "labels"),
    ],
    ids=["squared_error", "poisson", "quantiles", "mixed", "log_loss"],
)
def test_what_was_scored_in_training_is_what_is_predicted(model, kind):
    X, Y, offset = numbers()
    X_val, Y_val, offset_val = numbers(n=100, seed=1)
    if kind == "counts":
        Y, Y_val = np.round(np.abs(3 * Y)), np.round(np.abs(3 * Y_val))
    elif kind == "labels":
        Y, Y_val = (Y > 0).astype(int), (Y_val > 0).astype(int)
    seen = []

    def record(estimator, X, y):
        seen.append(estimator.predict(X))
        return len(seen)

    model.set_params(scoring=record, max_iter=4)
    model.fit(X, Y, X_val=X_val, Y_val=Y_val, offset=offset, offset_val=offset_val)
    stages = list(model.staged_predict(X_val, offset=offset_val))
    assert len(stages) == 4
    for found, expected in zip(seen[1:], stages, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(stages[-1], model.predict(X_val, offset=offset_val))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_set_apart_keep_their_offsets(strategy):
    X, Y, _ = numbers(n=600)
    # Without its offset every row is noise.
    offset = np.random.default_rng(3).normal(size=600) * 100
    model = regressor(strategy=strategy, early_stopping=True, max_iter=50)
    model.fit(X, Y + offset[:, None], offset=offset)
    assert model.validation_score_[-1] > -0.5


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_fit_with_offsets_is_gone_on_with(strategy, loss):
    X, Y, offset = numbers()
    Y = np.round(np.abs(3 * Y))
    same = {"strategy": strategy, "subsample": 0.7}
    at_once = regressor(loss, **same).fit(X, Y, offset=offset)
    twice = regressor(loss, max_iter=5, warm_start=True, **same).fit(X, Y, offset=offset)
    twice = pickle.loads(pickle.dumps(twice)).set_params(max_iter=10).fit(X, Y, offset=offset)
    assert model_bytes(twice) == model_bytes(at_once)
    assert np.array_equal(twice.train_score_, at_once.train_score_)
    with pytest.raises(ValueError, match="fit was called without an offset"):
        twice.set_params(max_iter=12).fit(X, Y)


def test_rows_without_weight_take_their_offsets_along():
    X, Y, offset = numbers()
    weight = (np.arange(300) % 2).astype(float)
    some = regressor("poisson").fit(X, np.abs(Y), weight, offset=offset)
    half = slice(1, None, 2)
    fewer = regressor("poisson", min_samples_leaf=3).fit(X[half], np.abs(Y[half]), weight[half],
                                                         offset=offset[half])  # fmt: skip
    some.set_params(min_samples_leaf=3).fit(X, np.abs(Y), weight, offset=offset)
    assert np.array_equal(some.baseline_, fewer.baseline_)
    assert model_bytes(some) == model_bytes(fewer)


class OwnPoisson(Loss):
    def value(self, y, raw):
        return np.exp(raw) - y * raw

    def gradient(self, y, raw):
        return np.exp(raw) - y

    def hessian(self, y, raw):
        return np.exp(raw)

    def baseline(self, y, sample_weight):
        return np.log(y.mean(axis=0))

    def inverse_link(self, raw):
        return np.exp(raw)


def test_losses_written_in_python_with_offsets():
    X, Y, offset = numbers()
    Y = np.round(np.abs(3 * Y))
    same = {"step": "newton", "l2_regularization": 1.0}
    own = regressor(OwnPoisson(), **same).fit(X, Y, offset=offset)
    builtin = regressor("poisson", **same).fit(X, Y, offset=offset)
    np.testing.assert_allclose(own.baseline_, builtin.baseline_, atol=1e-5)
    found, expected = (model.predict(X, offset=offset) for model in (own, builtin))
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.parametrize("strategy", ["independent", "multioutput", "project", "relabel"])
def test_foreign_weak_learners_with_offsets(strategy):
    X, Y, offset = numbers()
    counts = np.round(np.abs(3 * Y))
    model = regressor("poisson", strategy=strategy, estimator=DecisionTreeRegressor(max_depth=3))
    model.fit(X, counts, offset=offset)
    predicted = model.predict(X, offset=offset)
    loss = np.mean(predicted - counts * np.log(predicted))
    assert model.train_score_[-1] == pytest.approx(-loss, rel=1e-4)


def test_threads_do_not_change_a_model_with_offsets():
    X, Y, offset = numbers(n=4000)
    digests = set()
    for n_jobs in (1, 2, 3):
        for make, target in [(classifier, Y > 0), (regressor, Y)]:
            model = make(n_jobs=n_jobs, max_iter=3).fit(X, target.astype(float), offset=offset)
            digests.add((model_bytes(model), model.baseline_.tobytes()))
    assert len(digests) == 2


def test_an_offset_is_demanded_and_refused():
    X, Y, offset = numbers()
    labels = (Y > 0).astype(int)
    with_offset = classifier().fit(X, labels, offset=offset)
    without = classifier().fit(X, labels)
    names = ["predict", "predict_proba", "decision_function"]
    for name in [*names, *(f"staged_{name}" for name in names)]:
        with pytest.raises(
            ValueError, match=r"The model was fitted with an offset, but offset=None"
        ):
            list(getattr(with_offset, name)(X))
        with pytest.raises(ValueError, match=r"the model was fitted without one"):
            list(getattr(without, name)(X, offset=offset))
    with pytest.raises(ValueError, match="fitted with an offset"):
        with_offset.score(X, labels)
    with pytest.raises(ValueError, match="fitted with an offset"):
        regressor().fit(X, Y, offset=offset).predict(X)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (np.zeros(299), r"offset has shape \(299,\); it must have one number for each of the 300"),
        (np.zeros((300, 2)), r"offset has shape \(300, 2\)"),
        (np.zeros((300, 3, 1)), r"offset has shape \(300, 3, 1\)"),
        (0.0, r"offset has shape \(\)"),
        (np.r_[np.zeros(299), np.nan], r"offset has the value nan in row 299"),
        (np.r_[np.zeros(299), 1e39], r"offset has the value 1e\+39 in row 299"),
        (["a"] * 300, r"offset holds text \('a'\) in row 0, not numbers; pass numbers."),
    ],
    ids=["rows", "outputs", "dimensions", "scalar", "nan", "large", "text"],
)
def test_offsets_that_do_not_fit(bad, sentence):
    X, Y, offset = numbers()
    with pytest.raises(ValueError, match=sentence):
        regressor().fit(X, Y, offset=bad)
    model = regressor().fit(X, Y, offset=offset)
    with pytest.raises(ValueError, match=sentence):
        model.predict(X, offset=bad)


def test_offsets_can_be_routed():
    with config_context(enable_metadata_routing=True):
        model = regressor().set_fit_request(offset=True).set_predict_request(offset=True)
        model.set_score_request(offset=True)
        X, Y, offset = numbers()
        found = cross_validate(model, X, Y + 100 * offset, params={"offset": 100 * offset}, cv=3)
    assert found["test_score"].min() > 0.99


def test_offsets_of_validation_rows_go_with_those_of_training():
    X, Y, offset = numbers()
    val = {"X_val": X, "Y_val": Y}
    with pytest.raises(ValueError, match="offset was given without offset_val"):
        regressor().fit(X, Y, offset=offset, **val)
    with pytest.raises(ValueError, match="offset_val was given without offset"):
        regressor().fit(X, Y, offset_val=offset, **val)
    with pytest.raises(ValueError, match="offset_val was given without X_val"):
        regressor().fit(X, Y, offset=offset, offset_val=offset)
    with pytest.raises(ValueError, match=r"offset_val has shape \(3,\)"):
        regressor().fit(X, Y, offset=offset, offset_val=offset[0], **val)
