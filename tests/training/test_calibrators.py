"""Calibrators: curves from raw predictions to probabilities, fitted to out-of-fold rows."""

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

import manyboost
from manyboost import Loss, ManyBoostClassifier
from manyboost.training.calibrators import (
    LEAST_ROWS,
    Isotonics,
    Sigmoids,
    fit_calibrator,
)
from refusals import refusal

RNG = np.random.default_rng(0)
N = 400
X = RNG.normal(size=(N, 5))
LOGITS = np.column_stack([2 * X[:, 0], X[:, 1] - 1, X[:, 2] + X[:, 3]])
LABELS = (RNG.uniform(size=LOGITS.shape) < expit(LOGITS)).astype(np.uint8)
KINDS = ("sigmoid", "isotonic")


def classifier(**parameters):
    fixed = {"n_folds": 3, "max_iter": 20, "random_state": 0}
    return ManyBoostClassifier(**{**fixed, **parameters})


# The curves ----------------------------------------------------------------------------------


def platt(raw, present, weight):
    """Slope and intercept by a general minimiser, with Platt's targets."""
    weight = weight * (weight > 0).sum() / weight.sum()
    n_with, n_without = weight[present].sum(), weight[~present].sum()
    target = np.where(present, (n_with + 1) / (n_with + 2), 1 / (n_without + 2))

    def loss(parameters):
        z = parameters[0] * raw + parameters[1]
        return (weight * (np.logaddexp(0, z) - target * z)).sum()

    return minimize(loss, [1.0, 0.0], method="BFGS", options={"gtol": 1e-7}).x


@pytest.mark.parametrize("scale", [1.0, 20.0, 1e-3])
def test_a_sigmoid_minimises_the_log_loss_of_platts_targets(scale):
    raw = scale * (LOGITS[:, :1] + RNG.normal(size=(N, 1)))
    weight = RNG.uniform(0, 2, size=(N, 1))
    weight[::7] = 0
    found = Sigmoids.fitted(raw, LABELS[:, :1] == 1, weight)
    there = weight[:, 0] > 0
    # The minimiser takes numbers of about 1.
    expected = platt(raw[there, 0] / scale, LABELS[there, 0] == 1, weight[there, 0])
    np.testing.assert_allclose([found.slope[0] * scale, found.intercept[0]], expected, rtol=1e-4)


def test_a_sigmoid_recovers_the_truth():
    raw = RNG.normal(size=(200_000, 1))
    present = RNG.uniform(size=raw.shape) < expit(0.5 * raw - 1)
    found = Sigmoids.fitted(raw, present, np.ones(raw.shape))
    np.testing.assert_allclose([found.slope[0], found.intercept[0]], [0.5, -1], atol=0.02)


def test_a_sigmoid_stays_finite_where_a_threshold_tells_all():
    raw = np.linspace(-1, 1, 100)[:, None]
    found = Sigmoids.fitted(raw, raw > 0, np.ones(raw.shape))
    proba = found.probabilities(raw, raw, None)
    assert 0.5 < proba[-1, 0] < 1
    assert 0 < proba[0, 0] < 0.5


def test_a_sigmoid_never_falls():
    raw = LOGITS[:, :1]
    found = Sigmoids.fitted(-raw, LABELS[:, :1] == 1, np.ones(raw.shape))
    assert found.slope[0] == 0
    proba = found.probabilities(-raw, raw, None)
    np.testing.assert_allclose(proba, LABELS[:, 0].mean(), atol=0.005)
    constant = Sigmoids.fitted(np.zeros_like(raw), LABELS[:, :1] == 1, np.ones(raw.shape))
    assert constant.slope[0] == 0


def test_an_isotonic_curve_is_that_of_scikit_learn():
    raw, present = LOGITS[:, :1] + RNG.normal(size=(N, 1)), LABELS[:, :1] == 1
    found = Isotonics.fitted(raw, present, np.ones(raw.shape))
    n_with = present.sum()
    target = np.where(present[:, 0], (n_with + 1) / (n_with + 2), 1 / (N - n_with + 2))
    expected = IsotonicRegression(out_of_bounds="clip").fit(raw[:, 0], target)
    new = np.linspace(-9, 9, 200)[:, None]
    proba = found.probabilities(new, new, None)
    np.testing.assert_allclose(proba[:, 0], expected.predict(new[:, 0]), rtol=1e-12)
    assert 0 < proba.min() < proba.max() < 1


@pytest.mark.parametrize("made", [Sigmoids, Isotonics])
def test_labels_of_too_few_rows_keep_their_probabilities(made):
    present = np.zeros((N, 4), bool)
    present[: LEAST_ROWS - 1, 0] = True
    present[: N - LEAST_ROWS + 1, 1] = True
    present[:LEAST_ROWS, 2] = True
    weight = np.ones(present.shape)
    weight[:, 3], present[:50, 3] = 0, True
    raw = RNG.normal(size=present.shape)
    given = RNG.uniform(size=present.shape)
    proba = made.fitted(raw, present, weight).probabilities(raw, given, None)
    changed = (proba != given).any(axis=0)
    assert changed.tolist() == [False, False, True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_too_few_rows_share_a_curve(kind):
    raw, labels = RNG.normal(size=(N, 4)), np.zeros((N, 4), np.uint8)
    labels[:, 0] = LABELS[:, 0]
    labels[np.argsort(-raw[:, 1])[3:9], 1] = 1
    labels[np.argsort(-raw[:, 3])[:7], 3] = 1
    found = fit_calibrator(kind, raw, labels, None, 10**9).probabilities(raw, raw, None)
    rare = [1, 2, 3]
    cells = (each[:, rare].reshape(-1, 1) for each in (raw, labels))
    together = fit_calibrator(kind, *cells, None, 10**9)
    for j in rare:
        expected = together.probabilities(raw[:, [j]], raw[:, [j]], None)
        np.testing.assert_array_equal(found[:, [j]], expected)
    alone = fit_calibrator(kind, raw[:, :1], labels[:, :1], None, 10**9)
    np.testing.assert_array_equal(found[:, :1], alone.probabilities(raw[:, :1], raw[:, :1], None))


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_fitted_one_by_one_whatever_the_block(kind):
    raw = LOGITS + RNG.normal(size=LOGITS.shape)
    at_once = fit_calibrator(kind, raw, LABELS, None, 10**9)
    in_turn = fit_calibrator(kind, raw, LABELS, None, 1)
    proba = [each.probabilities(raw, raw, None) for each in (at_once, in_turn)]
    np.testing.assert_array_equal(*proba)
    some = at_once.probabilities(raw[:, [2, 0]], raw[:, [2, 0]], [2, 0])
    np.testing.assert_array_equal(some, proba[0][:, [2, 0]])


@pytest.mark.parametrize("kind", KINDS)
def test_missing_labels_and_rows_without_weight_have_no_say(kind):
    raw, labels = LOGITS + RNG.normal(size=LOGITS.shape), LABELS.copy()
    labels[:100, 1] = 2**8 - 1
    weight = np.ones(N)
    found = fit_calibrator(kind, raw, labels, weight, 10**9).probabilities(raw, raw, None)
    alone = fit_calibrator(kind, raw[100:], labels[100:], None, 10**9)
    np.testing.assert_allclose(found[:, 1], alone.probabilities(raw, raw, None)[:, 1], rtol=1e-6)


# Models --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_of_a_model_are_calibrated_by_its_out_of_fold_rows(kind):
    plain, model = classifier().fit(X, LABELS), classifier(calibration=kind).fit(X, LABELS)
    raw = model.decision_function(X)
    np.testing.assert_array_equal(raw, plain.decision_function(X))
    np.testing.assert_array_equal(model.oof_decision_function_, plain.oof_decision_function_)
    curves = fit_calibrator(kind, model.oof_decision_function_, LABELS, None, 10**9)
    expected = curves.probabilities(raw, raw, None)
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    np.testing.assert_array_equal(model.predict(X), expected > 0.5)
    np.testing.assert_array_equal(model.predict_proba(X, outputs=[2, 0]), expected[:, [2, 0]])
    np.testing.assert_array_equal(model.predict(X, outputs=[1]), expected[:, [1]] > 0.5)


def test_calibration_undoes_what_class_weights_do_to_probabilities():
    rare = (RNG.uniform(size=(N, 2)) < expit(LOGITS[:, :2] - 2)).astype(int)
    weighted = classifier(class_weight="balanced").fit(X, rare).predict_proba(X)
    model = classifier(class_weight="balanced", calibration="sigmoid").fit(X, rare)
    assert (weighted.mean(axis=0) > 1.5 * rare.mean(axis=0)).all()
    np.testing.assert_allclose(model.predict_proba(X).mean(axis=0), rare.mean(axis=0), rtol=0.2)


@pytest.mark.parametrize("kind", KINDS)
def test_two_classes_are_calibrated(kind):
    y = np.where(LABELS[:, 0] == 1, "yes", "no")
    model = classifier(calibration=kind).fit(X, y)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X) == "yes", proba[:, 1] > 0.5)


def test_thresholds_are_those_of_calibrated_probabilities():
    model = classifier(calibration="sigmoid", thresholds="tuned").fit(X, LABELS)
    expected = model.predict_proba(X) > model.thresholds_
    np.testing.assert_array_equal(model.predict(X), expected)
    np.testing.assert_array_equal(model.predict(X, outputs=[2]), expected[:, [2]])


@pytest.mark.parametrize("kind", KINDS)
def test_calibrators_are_kept_in_files_and_pickles(kind, tmp_path):
    labels = LABELS.copy()
    labels[:, 1] = np.arange(N) < 5
    model = classifier(calibration=kind).fit(X, labels)
    model.save(tmp_path / "model.mb")
    for other in (manyboost.load(tmp_path / "model.mb"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    plain = model.set_params(calibration=None).fit(X, labels)
    np.testing.assert_array_equal(
        plain.predict_proba(X), classifier().fit(X, labels).predict_proba(X)
    )


def test_a_fit_to_all_rows_and_to_other_rows_keeps_the_calibrator():
    model = classifier(calibration="sigmoid", refit_all=True).fit(X, LABELS)
    before = model._calibrator
    model.refit(X[:200], LABELS[:200])
    assert model._calibrator is before


@pytest.mark.parametrize(
    ("parameters", "y", "problem"),
    [
        ({"calibration": "platt"}, LABELS, "'sigmoid' or 'isotonic'"),
        ({"calibration": "sigmoid", "n_folds": None}, LABELS, "set n_folds=5"),
        ({"calibration": "sigmoid"}, LABELS.sum(axis=1), "but y has 4 classes"),
    ],
)
def test_calibrations_without_ground_are_refused(parameters, y, problem):
    assert problem in refusal(lambda: classifier(**parameters).fit(X, y))


def test_a_calibrator_replaces_the_link_of_a_custom_loss():
    class Logistic(Loss):
        def gradient(self, y, raw):
            return expit(raw) - y

        def value(self, y, raw):
            return np.logaddexp(0, raw) - y * raw

        def inverse_link(self, raw):
            return expit(raw)

    model = classifier(loss=Logistic(), calibration="sigmoid").fit(X, LABELS)
    proba = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X, outputs=[1]), proba[:, [1]])
    np.testing.assert_array_equal(model.predict(X), proba > 0.5)


# Exports -------------------------------------------------------------------------------------


def test_sigmoids_are_exported_to_onnx():
    runtime = pytest.importorskip("onnxruntime")
    labels = LABELS.copy()
    labels[:, 1] = np.arange(N) < 5
    model = classifier(calibration="sigmoid").fit(X, labels)
    session = runtime.InferenceSession(model.to_onnx().SerializeToString())
    single = X.astype(np.float32)
    present, proba = session.run(None, {"X": single})
    np.testing.assert_allclose(proba, model.predict_proba(single), atol=1e-6)
    np.testing.assert_array_equal(present, model.predict(single))


def test_other_calibrators_are_not_exported():
    model = classifier(calibration="isotonic").fit(X, LABELS)
    pytest.importorskip("onnx")
    assert "calibration='isotonic' is no operator of ONNX" in refusal(model.to_onnx)
    pytest.importorskip("treelite")
    assert "treelite does not have calibration='isotonic'" in refusal(model.to_treelite)
    assert model.to_treelite(raw=True) is not None
