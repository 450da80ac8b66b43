"""Intervals, regions, sets of classes and labels hold the truth as often as they promise."""

import math

import numpy as np
import pandas as pd
import pytest

from folded import folded_classifier, folded_regressor
from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.data.rows import make_rows
from manyboost.training import calibration as calibration_module
from manyboost.training.calibration import Calibration
from refusals import refusal

RNG = np.random.default_rng(0)
N, N_NEW = 400, 1000
X = RNG.normal(size=(N + N_NEW, 5))
NOISE = 0.3 + np.exp(X[:, :1])
Y = np.column_stack([3 * X[:, 0], 40 * X[:, 1], X[:, 0] * X[:, 2]])
Y += np.array([1.0, 20.0, 0.5]) * NOISE * RNG.normal(size=Y.shape)
X, X_NEW, Y, Y_NEW = X[:N], X[N:], Y[:N], Y[N:]
HOLES = np.where(RNG.random(Y.shape) < 0.3, np.nan, Y)
SOME = ~np.isnan(HOLES).all(axis=1)
WEIGHT = RNG.uniform(0.2, 3, N)
CELL_WEIGHT = RNG.uniform(0.2, 3, Y.shape)
LABELS = (Y > [1.0, 20.0, 0.0]).astype(int)
LABELS_NEW = (Y_NEW > [1.0, 20.0, 0.0]).astype(int)
CLASSES = np.array(["low", "middle", "top"])[np.digitize(Y[:, 0], [-2, 2])]
CLASSES_NEW = np.array(["low", "middle", "top"])[np.digitize(Y_NEW[:, 0], [-2, 2])]
FEW = {"max_iter": 20, "learning_rate": 0.2}
METHODS = ["split", "cv+", "normalised"]
NOISE_OF_COVERAGE = 0.05  # three standard deviations for so many calibration rows


@pytest.fixture(scope="module")
def model():
    return folded_regressor(X, Y, **FEW)


def inside(ends, Y):
    return (ends[..., 0] <= Y) & (ends[..., 1] >= Y)


def rank(n, coverage):
    return math.ceil(round((n + 1) * coverage, 9)) - 1


# Intervals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
@pytest.mark.parametrize("method", METHODS)
def test_intervals_hold_each_output_as_often_as_is_asked_for(model, method, coverage):
    ends = model.predict_interval(X_NEW, coverage, method=method)
    assert ends.shape == (N_NEW, 3, 2)
    assert np.isfinite(ends).all()
    held = inside(ends, Y_NEW).mean(axis=0)
    assert (np.abs(held - coverage) < NOISE_OF_COVERAGE).all()


def test_the_split_form_is_prediction_and_quantile(model):
    kept = model._calibration
    residuals = np.sort(np.abs(Y - kept.raw), axis=0)
    reach = residuals[rank(N, 0.9)]
    ends = model.predict_interval(X_NEW, 0.9)
    np.testing.assert_allclose(ends[..., 0], model.predict(X_NEW) - reach, rtol=1e-12)
    np.testing.assert_allclose(ends[..., 1], model.predict(X_NEW) + reach, rtol=1e-12)


def test_cv_plus_is_the_quantile_over_members_and_residuals(model):
    kept = model._calibration
    residuals = np.abs(Y - kept.raw)
    said = model._member_raw(X_NEW[:20], None)[kept.member]  # (n_calibration, n_new, n_outputs)
    high = np.sort(said + residuals[:, None], axis=0)[rank(N, 0.9)]
    low = -np.sort(-said + residuals[:, None], axis=0)[rank(N, 0.9)]
    ends = model.predict_interval(X_NEW[:20], 0.9, method="cv+")
    np.testing.assert_allclose(ends, np.stack([low, high], axis=-1), rtol=1e-10)


def test_normalised_widths_follow_the_noise(model):
    ends = model.predict_interval(X_NEW, 0.9, method="normalised")
    noise = 0.3 + np.exp(X_NEW[:, 0])
    widths = ends[:, 0, 1] - ends[:, 0, 0]
    assert np.corrcoef(np.log(noise), np.log(widths))[0, 1] > 0.6
    calm, wild = noise < np.median(noise), noise >= np.median(noise)
    held = inside(ends, Y_NEW)[:, 0]
    plain = inside(model.predict_interval(X_NEW, 0.9), Y_NEW)[:, 0]
    assert abs(held[calm].mean() - held[wild].mean()) < 0.8 * abs(
        plain[calm].mean() - plain[wild].mean()
    )


def test_models_of_the_spread_are_fitted_once_and_not_with_another_fit(model, monkeypatch):
    again = folded_regressor(X, Y, **FEW)
    ends = again.predict_interval(X_NEW, method="normalised")
    fits = []
    fit = ManyBoostRegressor.fit
    monkeypatch.setattr(ManyBoostRegressor, "fit", lambda *a, **k: fits.append(1) or fit(*a, **k))
    np.testing.assert_array_equal(again.predict_interval(X_NEW, method="normalised"), ends)
    assert not fits
    again._calibration = model._calibration
    again.predict_interval(X_NEW, method="normalised")
    assert len(fits) == 5


@pytest.mark.parametrize("method", METHODS)
def test_one_dimensional_targets_have_two_columns(method):
    one = folded_regressor(X, Y[:, 0], **FEW)
    ends = one.predict_interval(X_NEW, method=method)
    assert ends.shape == (N_NEW, 2)
    assert 0.87 < inside(ends, Y_NEW[:, 0]).mean() < 0.95


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_some_outputs_are_those_of_all_unless_their_region_is_joint(model, method, joint):
    some = model.predict_interval(X_NEW, outputs=[2, 0], method=method, joint=joint)
    everything = model.predict_interval(X_NEW, method=method, joint=joint)
    if joint:
        assert 0.85 < inside(some, Y_NEW[:, [2, 0]]).all(axis=1).mean() < 0.95
        assert (some[..., 1] - some[..., 0]).mean() < np.ptp(everything[:, [2, 0]], axis=2).mean()
    else:
        np.testing.assert_array_equal(some, everything[:, [2, 0]])


@pytest.mark.parametrize("method", METHODS)
def test_scales_of_outputs_do_not_matter(method):
    scales = np.array([1e-9, 1.0, 1e9])
    plain = folded_regressor(X, Y, **FEW, output_scaling="auto")
    scaled = folded_regressor(X, Y * scales, **FEW, output_scaling="auto")
    for joint in (False, True):
        widths, other = (
            np.ptp(each.predict_interval(X_NEW, joint=joint, method=method), axis=2)
            for each in (plain, scaled)
        )
        np.testing.assert_allclose(other.mean(axis=0) / scales, widths.mean(axis=0), rtol=0.1)


# Regions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0.8, 0.9])
@pytest.mark.parametrize("method", METHODS)
def test_a_region_holds_all_outputs_of_a_row(model, method, coverage):
    ends = model.predict_interval(X_NEW, coverage, joint=True, method=method)
    held = inside(ends, Y_NEW).all(axis=1).mean()
    assert abs(held - coverage) < NOISE_OF_COVERAGE
    alone = model.predict_interval(X_NEW, coverage, method=method)
    assert (np.ptp(ends, axis=2).mean(axis=0) > np.ptp(alone, axis=2).mean(axis=0)).all()


def test_the_sides_of_a_region_are_in_proportion_to_intervals(model):
    sides = np.ptp(model.predict_interval(X_NEW[:1], joint=True), axis=2)
    alone = np.ptp(model.predict_interval(X_NEW[:1]), axis=2)
    ratio = sides / alone
    np.testing.assert_allclose(ratio[0], ratio[0, 0])
    residuals, member = np.abs(Y - model._calibration.raw), model._calibration.member
    worst = np.empty(N)
    for k in range(5):
        others = np.sort(residuals[member != k], axis=0)
        units = others[rank(len(others), 0.9)]
        worst[member == k] = (residuals[member == k] / units).max(axis=1)
    np.testing.assert_allclose(ratio[0, 0], np.sort(worst)[rank(N, 0.9)])


def test_a_region_of_one_output_is_nearly_its_interval():
    one = folded_regressor(X, Y[:, 0], **FEW)
    joint = one.predict_interval(X_NEW, joint=True)
    np.testing.assert_allclose(
        np.ptp(joint, axis=1), np.ptp(one.predict_interval(X_NEW), axis=1), rtol=0.1
    )


def test_regions_hold_rows_where_rows_are_few():
    """Units that a row has a part in would make regions too small."""
    held = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        Z = rng.standard_t(3, size=(40 + 200, 8))
        few = folded_regressor(X[:40], Z[:40], max_iter=1)
        held.append(inside(few.predict_interval(X[:200], joint=True), Z[40:]).all(axis=1).mean())
    assert 0.88 < np.mean(held) < 0.96


# Quantiles ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def levels():
    levels = [0.05, 0.1, 0.5, 0.9, 0.95]
    return folded_regressor(X, Y, loss="quantile", quantile=levels, **FEW)


@pytest.mark.parametrize(("coverage", "pair"), [(0.9, (0, 4)), (0.8, (1, 3)), (0.99, (0, 4))])
def test_two_levels_are_moved_until_they_have_the_coverage(levels, coverage, pair):
    low, high = pair
    of_rows = np.sort(levels._calibration.raw.reshape(N, 3, 5), axis=2)
    scores = np.maximum(of_rows[..., low] - Y, Y - of_rows[..., high])
    reach = np.sort(scores, axis=0)[rank(N, coverage)]
    said = levels.predict(X_NEW)
    ends = levels.predict_interval(X_NEW, coverage)
    np.testing.assert_allclose(ends[..., 0], said[..., low] - reach, rtol=1e-12)
    np.testing.assert_allclose(ends[..., 1], said[..., high] + reach, rtol=1e-12)
    assert abs(inside(ends, Y_NEW).mean() - coverage) < NOISE_OF_COVERAGE


@pytest.mark.parametrize("method", METHODS)
def test_regions_of_quantiles_hold_rows(levels, method):
    ends = levels.predict_interval(X_NEW, 0.8, joint=True, method=method)
    assert 0.77 < inside(ends, Y_NEW).all(axis=1).mean() < 0.86


def test_one_level_is_a_prediction_like_others():
    high = folded_regressor(X, Y[:, 0], loss="quantile", quantile=0.9, **FEW)
    ends = high.predict_interval(X_NEW)
    np.testing.assert_allclose(ends.mean(axis=1), high.predict(X_NEW))
    assert 0.87 < inside(ends, Y_NEW[:, 0]).mean() < 0.94


def test_levels_too_far_apart_move_inwards_and_never_cross():
    wide = folded_regressor(X, Y, loss="quantile", quantile=[0.02, 0.98], **FEW)
    ends = wide.predict_interval(X_NEW, 0.3)
    assert (ends[..., 0] <= ends[..., 1]).all()
    said = wide.predict(X_NEW)
    assert (np.ptp(ends, axis=2) < np.ptp(said, axis=2)).all()
    assert 0.26 < inside(ends, Y_NEW).mean() < 0.4


# Losses with other links, missing targets, weights, offsets --------------------------------------


def test_intervals_keep_to_what_the_loss_allows():
    counts = RNG.poisson(np.exp(X[:, :2]))
    Z = np.column_stack([counts[:, 0], LABELS[:, 0], Y[:, 2]])
    mixed = folded_regressor(X, Z, loss=["poisson", "log_loss", "squared_error"], **FEW)
    ends = mixed.predict_interval(X_NEW)
    assert ends[:, 0].min() == 0
    assert ends[:, 1].min() >= 0
    assert ends[:, 1].max() <= 1
    assert ends[:, 2].min() < 0
    np.testing.assert_array_equal(mixed.predict_interval(X_NEW, outputs=[2, 0]), ends[:, [2, 0]])


@pytest.mark.parametrize("method", METHODS)
def test_outputs_are_judged_where_they_are_observed(method):
    partial = folded_regressor(X[SOME], HOLES[SOME], **FEW)
    for joint in (False, True):
        ends = partial.predict_interval(X_NEW, method=method, joint=joint)
        assert np.isfinite(ends).all()
    ends = partial.predict_interval(X_NEW, method=method)
    assert (np.abs(inside(ends, Y_NEW).mean(axis=0) - 0.9) < NOISE_OF_COVERAGE).all()
    if method == "split":
        residuals = np.abs(HOLES[SOME] - partial._calibration.raw)[:, 0]
        known = np.sort(residuals[~np.isnan(residuals)])
        np.testing.assert_allclose(np.ptp(ends[0, 0]), 2 * known[rank(len(known), 0.9)])


@pytest.mark.parametrize("weight", [WEIGHT, CELL_WEIGHT], ids=["rows", "cells"])
@pytest.mark.parametrize("method", METHODS)
def test_weights_count(method, weight):
    weighted = folded_regressor(X, Y, weight, **FEW)
    weights = weighted._calibration.weights
    np.testing.assert_allclose(weights, weight, rtol=1e-6)
    for joint in (False, True):
        ends = weighted.predict_interval(X_NEW, method=method, joint=joint)
        held = inside(ends, Y_NEW)
        assert 0.87 < (held.all(axis=1) if joint else held).mean() < 0.96


def test_rows_of_weight_move_the_quantile():
    """Rows with large noise that weigh nearly nothing do not widen the intervals."""
    loud = np.arange(N) % 2 == 0
    Z = 0.1 * Y[:, :2] + np.where(loud, 30.0, 1.0)[:, None] * RNG.normal(size=(N, 2))
    weight = np.where(loud, 1e-3, 1.0)
    heard = folded_regressor(X, Z, **FEW).predict_interval(X_NEW)
    ignored = folded_regressor(X, Z, weight, **FEW).predict_interval(X_NEW)
    assert np.ptp(ignored, axis=2).mean() < 0.4 * np.ptp(heard, axis=2).mean()


@pytest.mark.parametrize("method", METHODS)
def test_offsets_are_part_of_the_prediction(method):
    offset = 100 * RNG.normal(size=(N, 3))
    moved = folded_regressor(X, Y + offset, offset=offset, **FEW)
    new = 100 * RNG.normal(size=(N_NEW, 3))
    ends = moved.predict_interval(X_NEW, offset=new, method=method)
    assert 0.87 < inside(ends, Y_NEW + new).mean() < 0.95


# Sets of classes, and labels ---------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sets_hold_the_class(n_classes, loss):
    classes, new = CLASSES, CLASSES_NEW
    if n_classes == 2:
        classes, new = (np.where(each == "low", "low", "other") for each in (classes, new))
    model = folded_classifier(X, classes, loss=loss, **FEW)
    sizes = []
    for coverage in (0.8, 0.9, 0.95):
        sets = model.predict_set(X_NEW, coverage)
        assert sets.shape == (N_NEW, n_classes)
        assert sets.dtype == bool
        assert sets.any(axis=1).all()
        held = (sets & (model.classes_ == new[:, None])).any(axis=1).mean()
        accuracy = (model.predict(X_NEW) == new).mean()
        assert coverage - 0.03 < held < max(coverage, accuracy) + 0.07
        sizes.append(sets.sum())
    assert sizes[0] < sizes[1] < sizes[2]


def test_a_set_holds_the_classes_above_the_quantile_of_true_classes():
    model = folded_classifier(X, CLASSES, **FEW)
    kept = model._calibration
    raw = kept.raw.astype(np.float64)
    proba = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
    true = np.sort(proba[np.arange(N), np.searchsorted(model.classes_, CLASSES)])
    least = true[N - 1 - rank(N, 0.9)]
    expected = model.predict_proba(X_NEW) >= least
    expected[np.arange(N_NEW), model.predict_proba(X_NEW).argmax(axis=1)] = True
    np.testing.assert_array_equal(model.predict_set(X_NEW), expected)


def test_sets_come_as_frames_if_asked_for():
    model = folded_classifier(X, CLASSES, **FEW).set_output(predict="pandas")
    sets = model.predict_set(pd.DataFrame(X_NEW, index=np.arange(N_NEW) + 7).to_numpy())
    assert list(sets.columns) == ["low", "middle", "top"]
    assert sets.to_numpy().dtype == np.bool_


def test_weights_of_classes_are_no_weights_of_rows():
    """How much a mistake costs in training does not change how often classes occur."""
    model = folded_classifier(X, CLASSES, class_weight={"low": 3.0}, **FEW)
    assert model._calibration.weights is None
    sets = model.predict_set(X_NEW)
    held = (sets & (model.classes_ == CLASSES_NEW[:, None])).any(axis=1).mean()
    assert 0.87 < held < 0.96


@pytest.mark.parametrize("recall", [0.7, 0.9, 0.95])
def test_labels_are_found_as_often_as_is_asked_for(recall):
    model = folded_classifier(X, LABELS, **FEW)
    chosen = np.zeros(LABELS_NEW.shape, bool)
    for row, labels in enumerate(model.predict_labels(X_NEW, recall)):
        chosen[row, list(labels)] = True
    there = LABELS_NEW.any(axis=1)
    found = (chosen & (LABELS_NEW > 0))[there].sum(axis=1) / LABELS_NEW[there].sum(axis=1)
    assert recall - 0.03 < found.mean() < recall + 0.08
    assert model.predict_labels(X_NEW) == model.predict_labels(X_NEW, None)


def test_missing_labels_are_neither_found_nor_lost():
    holes = np.where(np.isnan(HOLES), np.nan, LABELS)
    model = folded_classifier(X, holes, **FEW)
    chosen = np.zeros(LABELS_NEW.shape, bool)
    for row, labels in enumerate(model.predict_labels(X_NEW, 0.9)):
        chosen[row, list(labels)] = True
    there = LABELS_NEW.any(axis=1)
    found = (chosen & (LABELS_NEW > 0))[there].sum(axis=1) / LABELS_NEW[there].sum(axis=1)
    assert 0.86 < found.mean() < 0.96


# Refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 1.0, 1.5, -0.1, float("nan"), "0.9", None, True, 90])
def test_shares_are_between_zero_and_one(model, share):
    rest = f"={share!r} is not allowed; it must be a number strictly between 0 and 1."
    assert refusal(lambda: model.predict_interval(X, share)) == f"coverage{rest}"
    classifier = ManyBoostClassifier(max_iter=2).fit(X, CLASSES)
    assert refusal(lambda: classifier.predict_set(X, share)) == f"coverage{rest}"
    if share is not None:
        labels = ManyBoostClassifier(max_iter=2).fit(X, LABELS)
        assert refusal(lambda: labels.predict_labels(X, share)) == f"recall{rest}"


def test_models_without_folds_know_nothing_about_their_errors():
    reason = (
        "out-of-fold predictions, which a model fitted without folds, or refitted, does not have"
    )
    plain = ManyBoostRegressor(max_iter=2).fit(X, Y, X_val=X_NEW, Y_val=Y_NEW)
    said = refusal(lambda: plain.predict_interval(X))
    assert said == f"predict_interval needs {reason}; fit it with n_folds=5."
    classes = ManyBoostClassifier(max_iter=2).fit(X, CLASSES)
    said = refusal(lambda: classes.predict_set(X))
    assert said == f"predict_set needs {reason}; fit it with n_folds=5."
    labels = ManyBoostClassifier(max_iter=2).fit(X, LABELS)
    said = refusal(lambda: labels.predict_labels(X, recall=0.9))
    assert said == f"predict_labels with recall= needs {reason}; fit it with n_folds=5."


def test_methods_are_known_by_name(model):
    said = refusal(lambda: model.predict_interval(X, method="jackknife"))
    expected = "it must be 'split', 'cv+' or 'normalised'."
    assert said == f"method='jackknife' is not allowed; {expected}"


@pytest.mark.parametrize("method", METHODS)
def test_too_few_rows_are_counted(model, method):
    said = refusal(lambda: model.predict_interval(X_NEW, 0.999, method=method))
    needs = "coverage=0.999 needs at least 999 out-of-fold rows with a target"
    rest = "but there are 400; ask for a smaller coverage"
    assert said == f"{needs} of output 0, {rest}, or for other outputs."
    said = refusal(lambda: model.predict_interval(X_NEW, 0.999, method=method, joint=True))
    assert said == f"{needs}, {rest}."
    few = np.array(Y)
    few[5:, 1] = np.nan
    some = folded_regressor(X, few, **FEW)
    said = refusal(lambda: some.predict_interval(X_NEW, 0.9, method=method))
    assert "at least 9 out-of-fold rows with a target of output 1, but there are 5;" in said
    assert some.predict_interval(X_NEW, outputs=[0, 2], method=method).shape == (N_NEW, 2, 2)


def test_too_few_rows_for_sets_are_counted():
    classes = folded_classifier(X, CLASSES, **FEW)
    said = refusal(lambda: classes.predict_set(X, 0.999))
    needs = "coverage=0.999 needs at least 999 out-of-fold rows of all classes"
    assert said == f"{needs}, but there are 400; ask for a smaller coverage."
    labels = folded_classifier(X, LABELS, **FEW)
    said = refusal(lambda: labels.predict_labels(X, 0.999))
    n = LABELS.any(axis=1).sum()
    needs = "recall=0.999 needs at least 999 out-of-fold rows with labels"
    assert said == f"{needs}, but there are {n}; ask for a smaller recall."


def test_sets_of_classes_are_not_for_labels():
    labels = folded_classifier(X, LABELS, **FEW)
    said = refusal(lambda: labels.predict_set(X))
    expected = "predict_set is for classes, but this model predicts labels"
    assert said == f"{expected}; use predict_labels with recall=."


# What is kept ------------------------------------------------------------------------------------


def test_many_rows_are_thinned_by_number(monkeypatch):
    monkeypatch.setattr(calibration_module, "LEAST_ROWS", 50)
    monkeypatch.setattr(calibration_module, "MOST_CELLS", 300)
    rows = make_rows(X, Y, None, "sample_weight")
    member = (np.arange(N) % 5).astype(np.uint8)
    kept = Calibration.of(rows, Y + 1.0, member, 7, WEIGHT)
    assert kept.raw.shape == kept.Y.shape == (100, 3)
    np.testing.assert_array_equal(kept.raw, kept.Y + 1.0)
    places = [int(np.flatnonzero((row == Y).all(axis=1))[0]) for row in kept.Y]
    np.testing.assert_array_equal(kept.member, member[places])
    np.testing.assert_array_equal(kept.weights, WEIGHT[places])
    assert len(np.unique(kept.member)) == 5
    # The same rows wherever they lie.
    order = RNG.permutation(N)
    moved = Calibration.of(rows.take(order), (Y + 1.0)[order], member[order], 7, WEIGHT[order])
    assert sorted(map(tuple, moved.Y)) == sorted(map(tuple, kept.Y))
