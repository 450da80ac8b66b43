"""Means of models as one model, fits to all rows, and fits of known trees to other data."""

import io
import pickle
from unittest import mock

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeRegressor

import manyboost
from manyboost import ManyBoostClassifier, ManyBoostRegressor

STRATEGIES = ["independent", "multioutput", "project", "relabel"]


def problem(n=240, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    weights = np.random.default_rng(7).normal(size=(5, d))
    return X, np.sin(X @ weights) + 0.3 * rng.normal(size=(n, d))


def regressor(**parameters):
    settings = {"max_iter": 15, "max_leaf_nodes": 6, "random_state": 0, "learning_rate": 0.2}
    return ManyBoostRegressor(**settings | parameters)


def stored(model, path):
    model.save(path)
    return path.read_bytes()


# Means of models -----------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_mean_is_kept_and_copied_as_one_model(strategy, tmp_path):
    X, Y = problem()
    model = regressor(strategy=strategy, n_folds=3).fit(X, Y)
    content = stored(model, tmp_path / "one.mb")
    loaded = manyboost.load(tmp_path / "one.mb")
    assert stored(loaded, tmp_path / "two.mb") == content
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert np.array_equal(loaded.best_iter_per_fold_, model.best_iter_per_fold_)
    assert np.array_equal(loaded._member_raw(X), model._member_raw(X))
    assert loaded.get_params() == model.get_params()
    assert loaded.info()["format_version"] == 2
    copied = pickle.load(io.BytesIO(pickle.dumps(model)))
    assert np.array_equal(copied.predict(X), model.predict(X))
    assert np.array_equal(copied.oof_prediction_, model.oof_prediction_)


def test_a_file_without_folds_is_that_of_the_first_version(tmp_path):
    X, Y = problem()
    model = regressor().fit(X, Y)
    content = stored(model, tmp_path / "one.mb")
    assert content[8:12] == (1).to_bytes(4, "little")
    assert b"n_folds" not in content
    assert model.info()["format_version"] == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_shapley_values_add_up_to_the_mean(strategy):
    X, Y = problem()
    model = regressor(strategy=strategy, n_folds=3).fit(X, Y)
    total = model.shap_values(X[:20]).sum(axis=1) + model.expected_value_
    np.testing.assert_allclose(total, model.predict(X[:20]), atol=1e-5)
    some = model.predict(X, outputs=[2, 0])
    np.testing.assert_array_equal(some, model.predict(X)[:, [2, 0]])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_other_runtimes_predict_the_mean(strategy):
    X, Y = problem()
    X = X.astype(np.float32)
    model = regressor(strategy=strategy, n_folds=3).fit(X, Y)
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(model.to_onnx().SerializeToString())
    np.testing.assert_allclose(session.run(None, {"X": X})[0], model.predict(X), atol=1e-4)
    treelite = pytest.importorskip("treelite")
    found = treelite.gtil.predict(model.to_treelite(), X).reshape(Y.shape)
    np.testing.assert_allclose(found, model.predict(X), atol=1e-4)


def test_importances_are_those_of_the_members():
    X, Y = problem()
    X = np.c_[X, np.zeros(len(X))]
    model = regressor(n_folds=3).fit(X, Y)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_[-1] == 0
    assert model.output_importances_.shape == (3, 6)


def test_what_a_mean_does_not_have_is_refused_by_name():
    X, Y = problem()
    model = regressor(n_folds=3, strategy="project").fit(X, Y)
    with pytest.raises(AttributeError, match="a mean of models"):
        model.step_sizes_  # noqa: B018
    with pytest.raises(ValueError, match="but the model was fitted with n_folds"):
        regressor(n_folds=3).fit(X, Y).training_weights(X[:2], X, Y)


def test_a_fit_without_folds_forgets_those_of_before():
    X, Y = problem()
    model = regressor(n_folds=3).fit(X, Y)
    model.set_params(n_folds=None).fit(X, Y)
    for name in ("oof_prediction_", "best_iter_per_fold_", "_member_baselines"):
        assert not hasattr(model, name)


def test_the_best_labels_are_those_of_the_mean():
    X, Y = problem()
    model = ManyBoostClassifier(n_folds=3, max_iter=10, random_state=0).fit(X, Y > 0)
    labels, scores = model.predict_top_k(X, 2)
    raw = model.decision_function(X)
    np.testing.assert_array_equal(labels[:, 0], raw.argmax(axis=1))
    np.testing.assert_allclose(scores[:, 0], raw.max(axis=1), rtol=1e-6)


# Fits to all rows ----------------------------------------------------------------------------


def test_a_fit_to_all_rows_has_more_rounds_in_proportion():
    X, Y = problem()
    settings = {"early_stopping": True, "max_iter": 200}
    found = regressor(**settings).fit(X, Y)
    model = regressor(refit_all=True, **settings).fit(X, Y)
    assert model.n_iter_ == round(found.n_iter_ / 0.9)
    rounds = {"early_stopping": False, "max_iter": model.n_iter_}
    again = regressor(**rounds).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    assert not hasattr(model, "validation_score_")


def test_a_fit_to_all_rows_has_the_importances_of_its_rounds():
    X, Y = problem()
    # Gains wait until they are as many as the features of all outputs.
    X = np.hstack([X, np.zeros((len(X), 200))])
    model = regressor(refit_all=True, early_stopping=True).fit(X, Y)
    again = regressor(max_iter=model.n_iter_).fit(X, Y)
    assert model.feature_importances_.sum() == pytest.approx(1)
    np.testing.assert_array_equal(model.output_importances_, again.output_importances_)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_leaves_of_members_are_fitted_to_all_rows(strategy):
    X, Y = problem()
    plain = regressor(n_folds=3, strategy=strategy).fit(X, Y)
    model = regressor(n_folds=3, strategy=strategy, refit_all=True).fit(X, Y)
    np.testing.assert_array_equal(model.oof_prediction_, plain.oof_prediction_)
    assert model.best_iter_per_fold_.tolist() == plain.best_iter_per_fold_.tolist()
    intervals = model.predict_interval(X, 0.8)
    assert intervals.shape == (*Y.shape, 2)
    np.testing.assert_array_equal(plain.refit(X, Y).predict(X), model.predict(X))
    assert (model._member_baselines == model._member_baselines[0]).all()


# Known trees, other data ---------------------------------------------------------------------


CASES = {
    "squared error": {},
    "huber": {"loss": "huber"},
    "absolute error": {"loss": "absolute_error"},
    "line search": {"step": "line_search"},
    "poisson": {"loss": "poisson"},
    "quantiles": {"loss": "quantile", "quantile": [0.2, 0.8]},
    "subsampled features": {"max_features": 0.5},
    "two components": {"n_components": 2, "strategy": "relabel"},
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("case", CASES)
def test_a_refit_to_the_same_data_gives_the_same_model(strategy, case):
    X, Y = problem()
    Y = np.exp(Y) if case == "poisson" else Y
    parameters = {"strategy": strategy} | CASES[case]
    if parameters["strategy"] != strategy and strategy != "relabel":
        pytest.skip("relabel alone takes several components")
    model = regressor(**parameters).fit(X, Y)
    before, covers = model.predict(X), model._progress.model.trees.arrays()["node_cover"]
    train, importances = model.train_score_, model.feature_importances_
    assert model.refit(X, Y) is model
    np.testing.assert_array_equal(model.predict(X), before)
    np.testing.assert_array_equal(model._progress.model.trees.arrays()["node_cover"], covers)
    np.testing.assert_allclose(model.train_score_, train, rtol=1e-12)
    np.testing.assert_allclose(model.feature_importances_, importances, rtol=1e-12)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_refit_keeps_the_splits_and_learns_the_new_targets(strategy):
    X, Y = problem()
    model = regressor(strategy=strategy).fit(X, Y)
    splits = model._progress.model.trees.arrays()["split_threshold"]
    X_new, Y_new = problem(seed=1)
    model.refit(X_new, 10 + 3 * Y_new)
    np.testing.assert_array_equal(model._progress.model.trees.arrays()["split_threshold"], splits)
    assert model.score(X_new, 10 + 3 * Y_new) > 0.3
    assert model.baseline_.min() > 5
    total = model.shap_values(X[:5]).sum(axis=1) + model.expected_value_
    np.testing.assert_allclose(total, model.predict(X[:5]), atol=1e-4)


def test_a_refit_takes_weights_missing_targets_and_offsets():
    X, Y = problem()
    rng = np.random.default_rng(2)
    weight, offset = rng.random(len(X)) + 0.1, rng.normal(size=Y.shape)
    partial = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
    for y, w in [(Y, weight), (partial, None), (partial, rng.random(Y.shape))]:
        model = regressor().fit(X, y, w, offset=offset)
        before = model.predict(X, offset=offset)
        model.refit(X, y, w, offset=offset)
        np.testing.assert_array_equal(model.predict(X, offset=offset), before)


def test_labels_classes_and_thresholds():
    X, Y = problem()
    labels = ManyBoostClassifier(thresholds="tuned", max_iter=10, random_state=0).fit(X, Y > 0)
    thresholds = labels.thresholds_
    labels.refit(X, Y > 0.5)
    assert labels.thresholds_ is thresholds
    assert labels.predict_proba(X).mean() < 0.45
    y = np.array(["a", "b", "c"])[Y.argmax(axis=1)]
    classes = ManyBoostClassifier(max_iter=10, random_state=0).fit(X, y)
    before = classes.predict_proba(X)
    np.testing.assert_array_equal(classes.refit(X, y).predict_proba(X), before)
    with pytest.raises(ValueError, match="'d'"):
        classes.refit(X, np.where(y == "a", "d", y))
    np.testing.assert_array_equal(classes.predict_proba(X), before)


def test_outputs_that_were_stopped_stay_as_they_were():
    X, Y = problem()
    Y[:, 1] = np.random.default_rng(0).normal(size=len(X))
    settings = {"early_stopping": "per_output", "max_iter": 60, "n_iter_no_change": 3}
    for strategy in STRATEGIES:
        model = regressor(strategy=strategy, **settings).fit(X, Y)
        rounds = model.best_iter_per_output_
        assert rounds.min() < rounds.max()
        model.refit(X, Y)
        stages = np.array(list(model.staged_predict(X)))
        for j, last in enumerate(rounds):
            assert (stages[max(last, 1) - 1 :, :, j] == stages[-1, :, j]).all() or last == 0


@pytest.mark.parametrize("strategy", ["independent", "multioutput", "relabel"])
def test_a_refit_of_stopped_outputs_to_the_same_data_gives_the_same_importances(strategy):
    X, Y = problem()
    Y[:, 1] = np.random.default_rng(0).normal(size=len(X))
    settings = {"early_stopping": "per_output", "max_iter": 60, "n_iter_no_change": 3}
    train, validation = (X[60:], Y[60:]), {"X_val": X[:60], "Y_val": Y[:60]}
    model = regressor(strategy=strategy, **settings).fit(*train, **validation)
    before, importances = model.predict(X), model.output_importances_
    assert len(set(model.best_iter_per_output_)) > 1
    model.refit(*train)
    np.testing.assert_array_equal(model.predict(X), before)
    np.testing.assert_allclose(model.output_importances_, importances, rtol=1e-12)


def test_stopped_outputs_have_no_part_in_the_projections_of_a_refit():
    # Huber's loss with a large δ is the squared error, by other kernels.
    X, Y = problem()
    Y[:, 1] = np.random.default_rng(0).normal(size=len(X))
    settings = {"early_stopping": "per_output", "max_iter": 60, "n_iter_no_change": 3}
    settings |= {"strategy": "project", "step": "newton", "huber_delta": 1e6}
    squared, huber = (
        regressor(loss=loss, **settings).fit(X, Y).refit(X, Y)
        for loss in ("squared_error", "huber")
    )
    np.testing.assert_allclose(squared.predict(X), huber.predict(X), atol=1e-4)


def test_outputs_that_are_stopped_one_by_one_are_not_fitted_further():
    X, Y = problem()
    settings = {"early_stopping": "per_output", "max_iter": 30}
    with pytest.raises(ValueError, match="refit_all=True fits all outputs with the same rounds"):
        regressor(refit_all=True, **settings).fit(X, Y)
    model = regressor(n_folds=3, **settings).fit(X, Y)
    with pytest.raises(ValueError, match="stopped one by one cannot be refitted"):
        model.refit(X, Y)


def test_half_of_the_time_is_for_finding_the_rounds():
    X, Y = problem()
    settings = {"max_time": 1e-9, "max_iter": 50, "early_stopping": True}
    assert regressor(refit_all=True, **settings).fit(X, Y).n_iter_ == 1
    with mock.patch("manyboost.estimators.fitting.Fitting._one_fit") as one_fit:
        one_fit.side_effect = RuntimeError
        with pytest.raises(RuntimeError):
            regressor(refit_all=True, max_time=8.0, early_stopping=True).fit(X, Y)
    assert one_fit.call_args.args[0].max_time == 4.0


def test_members_are_refitted_one_by_one():
    X, Y = problem()
    for strategy in STRATEGIES:
        model = regressor(n_folds=3, strategy=strategy).fit(X, Y)
        before = model.score(X, Y)
        model.refit(X, Y)
        assert model.score(X, Y) > before - 0.05
        assert len(model._member_baselines) == 3
        np.testing.assert_allclose(model._member_baselines, Y.mean(axis=0)[None] + np.zeros((3, 1)))
        assert not hasattr(model, "oof_prediction_")


def test_a_fit_to_all_rows_forgets_where_outputs_of_an_earlier_fit_stopped():
    X, Y = problem()
    noise = Y.copy()
    noise[:, 1] = np.random.default_rng(0).normal(size=len(X))
    stopped = {"early_stopping": "per_output", "max_iter": 60, "n_iter_no_change": 3}
    model = regressor(**stopped).fit(X, noise)
    assert model.best_iter_per_output_.min() < model.n_iter_
    folds = {"n_folds": 3, "refit_all": True, "early_stopping": True}
    model.set_params(**folds).fit(X, Y)
    fresh = regressor(**stopped | folds).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), fresh.predict(X))
    assert vars(model).keys() == vars(fresh).keys()
    np.testing.assert_array_equal(model.oof_prediction_, fresh.oof_prediction_)


@pytest.mark.parametrize("n_folds", [None, 3])
def test_thresholds_are_tuned_on_rows_that_no_tree_was_fitted_to(n_folds):
    X, Y = problem()
    settings = {"thresholds": "tuned", "n_folds": n_folds, "max_iter": 15, "random_state": 0}
    settings["early_stopping"] = True
    plain, refitted = (
        ManyBoostClassifier(refit_all=refit_all, **settings).fit(X, Y > 0.3)
        for refit_all in (False, True)
    )
    assert not np.array_equal(plain.predict_proba(X), refitted.predict_proba(X))
    np.testing.assert_array_equal(refitted.thresholds_, plain.thresholds_)


@pytest.mark.parametrize("n_folds", [None, 3])
def test_an_interrupt_of_the_fit_to_all_rows_leaves_the_model_before_it(n_folds):
    X, Y = problem()
    settings = {"n_folds": n_folds, "early_stopping": True}
    model = regressor(refit_all=True, **settings)
    interrupted = mock.patch.object(ManyBoostRegressor, "_refitted", side_effect=KeyboardInterrupt)
    with interrupted, pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), regressor(**settings).fit(X, Y).predict(X))


@pytest.mark.parametrize("refit_all", [False, True])
def test_no_rounds_are_added_to_a_mean(refit_all):
    X, Y = problem()
    model = regressor(n_folds=3, refit_all=refit_all).fit(X, Y)
    before = model.predict(X)
    model.set_params(n_folds=None, refit_all=False, warm_start=True, max_iter=20)
    with pytest.raises(ValueError, match="the mean of models that n_folds made; no rounds"):
        model.fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("strategy", ["independent", "multioutput", "project", "relabel"])
def test_covers_of_a_refit_to_the_same_cells_are_the_same(strategy):
    X, Y = problem()
    rng = np.random.default_rng(0)
    Y[rng.random(Y.shape) < 0.3] = np.nan
    for weight in (None, rng.integers(1, 9, size=len(X)), rng.integers(1, 9, size=Y.shape)):
        model = regressor(strategy=strategy).fit(X, Y, weight)
        expected = model.expected_value_
        model.refit(X, Y, weight)
        np.testing.assert_allclose(model.expected_value_, expected, rtol=1e-5, atol=1e-7)


def test_an_output_that_stopped_at_once_has_no_steps_after_a_refit():
    X, Y = problem()
    Y[:, 1] = np.random.default_rng(1).normal(size=len(X))
    settings = {"strategy": "independent", "step": "line_search", "early_stopping": "per_output"}
    model = regressor(n_iter_no_change=1, **settings).fit(X, Y)
    assert (stopped := model.best_iter_per_output_ == 0).any()
    assert not model.step_sizes_[:, stopped].any()
    assert not model.refit(X, Y).step_sizes_[:, stopped].any()


def test_after_a_refit_early_stopping_has_no_scores_to_go_on_from():
    X, Y = problem()
    model = regressor(early_stopping=True).fit(X, Y).refit(X, Y)
    with pytest.raises(ValueError, match="early stopping is on"):
        model.set_params(warm_start=True, max_iter=30).fit(X, Y)
    model.set_params(early_stopping=False).fit(X, Y)
    assert model.n_iter_ == 30


def test_a_refit_refuses_categories_that_the_model_does_not_know():
    X, Y = problem()
    X[:, 0] = X[:, 0] > 0
    model = regressor(categorical_features=[0]).fit(X, Y)
    X[7, 0] = 3
    with pytest.raises(ValueError, match=r"category 3 in row 7, .*; make it missing, or fit a new"):
        model.refit(X, Y)
    model.set_params(categorical_features=None)
    with pytest.raises(ValueError, match=r"other features .* or fit a new model"):
        model.refit(X, Y)


@pytest.mark.parametrize("refit_all", [False, True])
def test_thresholds_are_not_tuned_again_on_rows_that_were_trained_on(refit_all):
    X, Y = problem()
    settings = {"early_stopping": "auto" if refit_all else False, "refit_all": refit_all}
    model = ManyBoostClassifier(thresholds="tuned", max_iter=10, random_state=0, **settings)
    model.fit(X, Y > 0.3)
    if not refit_all:
        model.refit(X, Y > 0.3)
    more = {"warm_start": True, "refit_all": False, "early_stopping": False}
    model.set_params(max_iter=model.n_iter_ + 1, **more)
    with pytest.raises(ValueError, match="rows that were set apart for it from the first round on"):
        model.fit(X, Y > 0.3)
    thresholds = model.thresholds_
    model.set_params(thresholds=thresholds).fit(X, Y > 0.3)
    np.testing.assert_array_equal(model.thresholds_, thresholds)


def test_a_refit_that_fails_leaves_the_model_as_it_was():
    X, Y = problem()
    model = regressor().fit(X, Y)
    before = model.predict(X)
    for arguments, sentence in [
        ((X, Y[:, :2]), "y has 2 outputs but the fitted model has 3"),
        ((X[:, :4], Y), "features"),
        ((X, Y + np.inf), "y"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            model.refit(*arguments)
    with pytest.raises(ValueError, match="refit was called with an offset"):
        model.refit(X, Y, offset=np.zeros(len(X)))
    np.testing.assert_array_equal(model.predict(X), before)


def test_trees_are_not_refitted_with_another_learner():
    X, Y = problem()
    model = regressor().fit(X, Y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="refit works with built-in trees only"):
        model.set_params(estimator=DecisionTreeRegressor()).refit(X, Y)
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_model_that_is_not_fitted_is_not_refitted():
    with pytest.raises(NotFittedError):
        regressor().refit(*problem())


# Calibration rows in files ------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, "rows", "cells"])
def test_intervals_of_a_loaded_model_are_the_same(weight, tmp_path):
    X, Y = problem()
    Y = np.where(np.random.default_rng(3).random(Y.shape) < 0.1, np.nan, Y)
    shape = {"rows": (len(X),), "cells": Y.shape}.get(weight)
    weights = None if shape is None else np.random.default_rng(4).random(shape) + 0.5
    model = regressor(n_folds=3).fit(X, Y, weights)
    content = stored(model, tmp_path / "one.mb")
    loaded = manyboost.load(tmp_path / "one.mb")
    assert stored(loaded, tmp_path / "two.mb") == content
    for method in ("split", "cv+"):
        expected = model.predict_interval(X, 0.8, method=method)
        np.testing.assert_array_equal(loaded.predict_interval(X, 0.8, method=method), expected)
    with pytest.raises(ValueError, match="out-of-fold predictions"):
        model.refit(X, Y).predict_interval(X)


def test_sets_of_a_loaded_model_are_the_same(tmp_path):
    X, Y = problem()
    y = np.array(["a", "b", "c"])[Y.argmax(axis=1)]
    for target, ask in [
        (y, lambda model: model.predict_set(X, 0.8)),
        (y == "a", lambda model: model.predict_set(X, 0.8)),
        ((Y > 0).astype(int), lambda model: model.predict_labels(X, recall=0.8)),
    ]:
        model = ManyBoostClassifier(n_folds=3, max_iter=10, random_state=0).fit(X, target)
        content = stored(model, tmp_path / "one.mb")
        loaded = manyboost.load(tmp_path / "one.mb")
        assert stored(loaded, tmp_path / "two.mb") == content
        assert np.array_equal(np.array(ask(loaded), object), np.array(ask(model), object))
