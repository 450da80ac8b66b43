"""The estimators behave as scikit-learn's users expect, and tell what they have learnt."""

import copy
import io
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit, softmax
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import (
    accuracy_score,
    label_ranking_average_precision_score,
    make_scorer,
    r2_score,
)
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor
from manyboost.training.scoring import RunningClassifier, RunningRegressor

STRATEGIES = ["independent", "multioutput", "project", "relabel"]
BOTH = [ManyBoostRegressor, ManyBoostClassifier]
LABEL_LOSSES = ["log_loss", "exponential", "squared_error"]


@parametrize_with_checks(
    [
        kind(strategy=strategy, **others)
        for kind in BOTH
        for strategy in STRATEGIES
        # With 20 rows in a leaf at least, the checks of weights never see a split.
        for others in ({}, {"min_samples_leaf": 1, "max_leaf_nodes": 4})
    ]
)
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


def exceptions(estimator):
    """Checks that cannot hold for some parameters, and why."""
    drawn = "which rows are drawn depends on their number, and weights change it"
    weights = "check_sample_weight_equivalence_on_"
    known = {f"{weights}dense_data": drawn, f"{weights}sparse_data": drawn}
    if estimator.loss == "squared_error" and isinstance(estimator, ManyBoostClassifier):
        pure = "leaves are not damped: one whose rows all have tiny weights predicts their class"
        return {"check_class_weight_classifiers": pure}
    return known


@parametrize_with_checks(
    [
        *(kind(strategy="auto", max_iter=30) for kind in BOTH),
        *(kind(early_stopping=True) for kind in BOTH),
        *(kind(subsample=0.5) for kind in BOTH),
        ManyBoostClassifier(loss="squared_error"),
    ]
)
def test_scikit_learns_own_checks_pass_with_other_parameters(estimator, check):
    if reason := exceptions(estimator).get(check.func.__name__):
        pytest.skip(reason)
    check(estimator)


def test_models_in_training_are_classifiers_to_scikit_learn_1_6_too():
    assert RunningClassifier._estimator_type == "classifier"
    assert is_classifier(RunningClassifier(ManyBoostClassifier(), None, None))
    assert not is_classifier(RunningRegressor(ManyBoostRegressor(), None, None))


# Data and models --------------------------------------------------------------------------------


def numbers(n=200, d=3, p=5, seed=0):
    """Outputs that depend on one feature each: output j on feature j."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).astype(np.float32).astype(np.float64)
    return X, 3 * np.sign(X[:, :d]) + X[:, :d] + 0.1 * rng.normal(size=(n, d))


def labels(n=200, d=3, p=5, seed=0):
    X, Y = numbers(n, d, p, seed)
    return X, (Y > 0).astype(int)


def classes(n=200, k=3, seed=0):
    X, Y = numbers(n, k, seed=seed)
    return X, Y.argmax(axis=1)


def regressor(**parameters):
    return ManyBoostRegressor(**{"max_iter": 10, "random_state": 0, **parameters})


def classifier(**parameters):
    return ManyBoostClassifier(**{"max_iter": 10, "random_state": 0, **parameters})


def model_bytes(model):
    return model._progress.model.trees.to_bytes()


def fitted_models():
    """One fitted model of every strategy and kind of target."""
    for strategy in STRATEGIES:
        yield regressor(strategy=strategy).fit(*numbers())
        yield regressor(strategy=strategy, loss="poisson").fit(*labels())
        yield classifier(strategy=strategy).fit(*labels())
        yield classifier(strategy=strategy).fit(*classes())
        yield classifier(strategy=strategy).fit(*classes(k=2))


class HalfSquare(Loss):
    def value(self, y, raw):
        return (y - raw) ** 2 / 2

    def gradient(self, y, raw):
        return raw - y

    def hessian(self, y, raw):
        return np.ones_like(raw)


def first_output(n_components, n_outputs, rng):
    return np.eye(n_outputs)[:n_components]


# Parameters, clones, compositions ---------------------------------------------------------------


@pytest.mark.parametrize("kind", BOTH)
def test_a_clone_has_the_parameters_but_not_the_fit(kind):
    model = kind(loss=HalfSquare(), projection=first_output, max_iter=3, random_state=0)
    model.fit(*labels())
    twin = clone(model)
    assert {k: v for k, v in twin.get_params().items() if k != "loss"} == {
        k: v for k, v in model.get_params().items() if k != "loss"
    }
    assert type(twin.loss) is HalfSquare
    with pytest.raises(NotFittedError):
        twin.predict(labels()[0])
    assert model_bytes(twin.fit(*labels())) == model_bytes(model)


def test_parameters_of_the_weak_learner_are_reached_by_name():
    model = regressor(estimator=Ridge(), strategy="project").set_params(estimator__alpha=7.0)
    assert model.get_params()["estimator__alpha"] == 7.0


def test_fitting_does_not_touch_the_parameters():
    for model in [regressor(n_components=2), regressor(estimator=Ridge(), strategy="project")]:
        before = copy.deepcopy(model.get_params(deep=False))
        model.fit(*numbers())
        after = model.get_params(deep=False)
        assert repr(before) == repr(after)
        assert not hasattr(after["estimator"], "coef_")


@pytest.mark.parametrize("kind", BOTH)
def test_fit_returns_the_estimator(kind):
    model = kind(max_iter=1)
    assert model.fit(*labels()) is model


def test_tags_tell_what_is_supported():
    assert is_regressor(ManyBoostRegressor())
    assert is_classifier(ManyBoostClassifier())
    for kind in BOTH:
        tags = get_tags(kind())
        assert tags.target_tags.multi_output
        assert tags.input_tags.allow_nan
        assert not get_tags(kind(estimator=Ridge())).input_tags.allow_nan
    assert get_tags(ManyBoostClassifier()).classifier_tags.multi_label


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pipelines_score_as_the_estimator_alone(strategy):
    X, Y = numbers()
    model = regressor(strategy=strategy, learning_rate=0.1)
    piped = make_pipeline(StandardScaler(), clone(model)).fit(X, Y)
    alone = model.fit(StandardScaler().fit_transform(X), Y)
    assert piped.score(X, Y) == alone.score(StandardScaler().fit_transform(X), Y) > 0.3


def test_pipelines_hand_over_data_frames():
    X, Y = numbers()
    frame = pd.DataFrame(X, columns=list("abcde"))
    piped = make_pipeline(StandardScaler(), regressor()).set_output(transform="pandas")
    piped.fit(frame, Y)
    assert piped[-1].feature_names_in_.tolist() == list("abcde")
    scaled = StandardScaler().fit_transform(X)
    assert np.array_equal(piped.predict(frame), regressor().fit(scaled, Y).predict(scaled))


def test_grid_search_finds_the_parameters_that_can_learn():
    X, Y = numbers(n=150)
    grid = {"strategy": STRATEGIES, "learning_rate": [1e-6, 0.5]}
    search = GridSearchCV(regressor(), grid, cv=3).fit(X, Y)
    assert search.best_params_["learning_rate"] == 0.5
    assert search.best_score_ > 0.8
    assert search.predict(X).shape == Y.shape


def test_grid_search_reaches_into_a_pipeline_of_a_classifier():
    X, Y = labels(n=150)
    piped = make_pipeline(StandardScaler(), classifier(learning_rate=0.5))
    grid = {"manyboostclassifier__n_components": [1, 2], "manyboostclassifier__loss": LABEL_LOSSES}
    search = GridSearchCV(piped, grid, cv=3, scoring="f1_macro").fit(X, Y)
    assert search.best_score_ > 0.8


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_cross_validation_of_many_outputs(strategy):
    X, Y = numbers()
    assert cross_val_score(regressor(strategy=strategy, max_iter=50), X, Y, cv=3).min() > 0.7


lrap = make_scorer(label_ranking_average_precision_score, response_method="decision_function")


@pytest.mark.parametrize(
    ("scoring", "by_chance"),
    [
        ("f1_macro", 0.5),
        ("f1_samples", 0.5),
        ("jaccard_micro", 0.4),
        ("roc_auc", 0.5),
        ("average_precision", 0.5),
        ("accuracy", 1 / 8),
        (lrap, 0.7),
    ],
)
def test_multi_label_scorers_take_the_classifier(scoring, by_chance):
    X, Y = labels()
    # Every row has at least one label, as f1 over samples needs.
    Y[Y.sum(axis=1) == 0, 0] = 1
    model = classifier(max_iter=30, learning_rate=0.3)
    assert cross_val_score(model, X, Y, cv=KFold(3), scoring=scoring).min() > by_chance + 0.2


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", "roc_auc_ovr"])
def test_many_class_scorers_take_the_classifier(scoring):
    X, y = classes()
    bar = {"accuracy": 0.6, "neg_log_loss": -np.log(3) + 0.3, "roc_auc_ovr": 0.8}[scoring]
    assert cross_val_score(classifier(max_iter=30), X, y, cv=3, scoring=scoring).min() > bar


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_cross_val_predict_covers_every_row_and_label(method):
    X, Y = labels()
    folds = KFold(3)
    predictions = cross_val_predict(classifier(), X, Y, cv=folds, method=method)
    for train, test in folds.split(X):
        model = classifier().fit(X[train], Y[train])
        assert np.array_equal(predictions[test], getattr(model, method)(X[test]))


def test_score_is_macro_r2_and_accuracy():
    X, Y = numbers()
    weight = np.arange(len(X)) % 3
    model = regressor().fit(X, Y)
    assert model.score(X, Y) == r2_score(Y, model.predict(X))
    assert model.score(X, Y, weight) == r2_score(Y, model.predict(X), sample_weight=weight)
    for X, y in [labels(), classes()]:
        model = classifier().fit(X, y)
        assert model.score(X, y) == accuracy_score(y, model.predict(X))


# Names of features ------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_names_of_features_come_from_data_frames(frame):
    X, Y = numbers()
    named = frame({name: X[:, j] for j, name in enumerate("abcde")})
    model = regressor().fit(named, Y)
    assert model.feature_names_in_.tolist() == list("abcde")
    assert np.array_equal(model.predict(named), regressor().fit(X, Y).predict(X))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_serve_as_outputs_and_weights(frame):
    X, Y = numbers()
    weight = np.arange(1.0, len(X) + 1)
    expected = regressor().fit(X, Y, weight).predict(X)
    outputs = frame({name: Y[:, j] for j, name in enumerate("uvw")})
    weights = frame({"w": weight})["w"]
    assert np.array_equal(regressor().fit(X, outputs, weights).predict(X), expected)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_nulls_in_frames_are_missing_values(frame):
    X, Y = numbers()
    X[::3, 0] = np.nan
    X[:, 1] = np.arange(len(X))
    columns = {f"f{j}": X[:, j] for j in range(5)}
    columns["f0"] = [None if np.isnan(v) else v for v in X[:, 0]]
    columns["f1"] = X[:, 1].astype(int)
    named = frame(columns)
    assert np.array_equal(
        regressor().fit(named, Y).predict(named), regressor().fit(X, Y).predict(X)
    )


def test_arrays_have_no_names():
    assert not hasattr(regressor().fit(*numbers()), "feature_names_in_")


# Copies -----------------------------------------------------------------------------------------


def joblib_copy(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


@pytest.mark.parametrize(
    "duplicate",
    [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy, joblib_copy],
    ids=["pickle", "deepcopy", "joblib"],
)
def test_copies_predict_the_same_bits(duplicate):
    X = numbers(seed=1)[0]
    for model in fitted_models():
        twin = duplicate(model)
        assert model_bytes(twin) == model_bytes(model)
        assert np.array_equal(twin.predict(X), model.predict(X))
        if is_classifier(model):
            assert np.array_equal(twin.predict_proba(X), model.predict_proba(X))
            assert np.array_equal(twin.decision_function(X), model.decision_function(X))


def test_an_unfitted_estimator_and_a_custom_loss_can_be_pickled():
    assert pickle.loads(pickle.dumps(regressor(n_components=2))).n_components == 2
    X, Y = numbers()
    model = regressor(loss=HalfSquare()).fit(X, Y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_a_copy_is_independent():
    X, Y = numbers()
    model = regressor(warm_start=True).fit(X, Y)
    before = model.predict(X)
    copy.deepcopy(model).set_params(max_iter=20).fit(X, Y)
    assert model.n_iter_ == 10
    assert np.array_equal(model.predict(X), before)


def test_models_of_projected_trees_are_small():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, 10)), rng.normal(size=(100, 1000))
    sizes = {}
    for strategy in ["project", "relabel"]:
        model = regressor(strategy=strategy, max_iter=200, min_samples_leaf=1).fit(X, Y)
        # 31 leaves and 30 splits.
        assert np.all(model._progress.model.trees.tree_sizes() == 61)
        sizes[strategy] = len(pickle.dumps(model))
    assert sizes["project"] < 0.08 * sizes["relabel"]


# What a fit leaves ------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sizes_of_a_fit(strategy):
    X, Y = numbers(d=3, p=5)
    model = regressor(strategy=strategy).fit(X, Y)
    assert (model.n_iter_, model.n_outputs_, model.n_features_in_) == (10, 3, 5)
    assert model.best_iter_ == 10
    assert model.baseline_.shape == (3,)
    assert model.train_score_.shape == (11,)
    assert model.feature_importances_.shape == (5,)
    assert model.output_importances_.shape == (3, 5)
    assert not hasattr(model, "validation_score_")
    assert not hasattr(model, "classes_")


def test_number_of_outputs_and_classes():
    for X_y, n_outputs, known in [
        (labels(d=4), 4, [0, 1, 2, 3]),
        (classes(k=3), 3, [0, 1, 2]),
        (classes(k=2), 1, [0, 1]),
    ]:
        model = classifier().fit(*X_y)
        assert model.n_outputs_ == n_outputs
        assert model.baseline_.shape == (n_outputs,)
        assert model.classes_.tolist() == known


def test_the_baseline_is_the_best_constant():
    X, Y = numbers()
    assert regressor().fit(X, Y).baseline_ == pytest.approx(Y.mean(axis=0), rel=1e-6)
    medians = regressor(loss="absolute_error").fit(X, Y).baseline_
    assert np.all((medians > Y).mean(axis=0) <= 0.5)
    assert np.all((medians >= Y).mean(axis=0) >= 0.5)
    X, Y = labels()
    assert expit(classifier().fit(X, Y).baseline_) == pytest.approx(Y.mean(axis=0), rel=1e-6)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_scores_are_negative_losses_from_the_baseline_on(strategy):
    X, Y = numbers()
    X_val, Y_val = numbers(seed=1)
    model = regressor(strategy=strategy).fit(X, Y, X_val=X_val, Y_val=Y_val)

    def scores(X, Y):
        stages = [np.tile(model.baseline_, (len(X), 1)), *model.staged_predict(X)]
        return [-np.mean((Y - stage) ** 2) / 2 for stage in stages]

    assert model.train_score_ == pytest.approx(scores(X, Y), rel=1e-5)
    assert model.validation_score_ == pytest.approx(scores(X_val, Y_val), rel=1e-5)
    assert model.validation_score_.shape == (model.n_iter_ + 1,)
    assert np.all(np.diff(model.train_score_) > 0)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_steps_have_a_row_for_each_round_and_a_column_for_each_output(strategy):
    X, Y = numbers()
    model = regressor(strategy=strategy, step="line_search").fit(X, Y)
    assert model.step_sizes_.shape == (10, 3)
    assert np.isfinite(model.step_sizes_).all()
    if strategy != "project":
        # Leaves that are means need no correction for squared error.
        assert model.step_sizes_ == pytest.approx(1.0, rel=1e-5)


def test_steps_are_what_projected_trees_are_multiplied_with():
    X, Y = numbers()
    model = regressor(strategy="project", learning_rate=0.3).fit(X, Y)
    stages = np.array([np.tile(model.baseline_, (len(X), 1)), *model.staged_predict(X)])
    for added, rho in zip(np.diff(stages, axis=0), model.step_sizes_, strict=True):
        # One scalar g for each row: all outputs get it, times their step.
        g = added[:, :1] / rho[0]
        assert added == pytest.approx(g * rho, abs=1e-5)


@pytest.mark.parametrize("strategy", ["independent", "multioutput", "relabel"])
def test_newton_leaves_have_no_steps(strategy):
    model = regressor(strategy=strategy, step="newton").fit(*numbers())
    assert not hasattr(model, "step_sizes_")
    with pytest.raises(AttributeError, match="step_sizes_ needs step='line_search'"):
        _ = model.step_sizes_


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("make", [(regressor, numbers), (classifier, labels)])
def test_importances_find_the_feature_of_each_output(strategy, make):
    estimator, data = make
    X, Y = data(n=400, d=3, p=6)
    model = estimator(strategy=strategy, max_iter=30, max_leaf_nodes=4).fit(X, Y)
    importances = model.output_importances_
    assert importances.argmax(axis=1).tolist() == [0, 1, 2]
    assert importances.sum(axis=1) == pytest.approx(1)
    assert np.all(importances >= 0)
    assert np.all(importances[[0, 1, 2], [0, 1, 2]] > 0.8)
    assert model.feature_importances_ == pytest.approx(importances.mean(axis=0))
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_importances_are_zero_where_nothing_could_be_split():
    model = regressor().fit(np.ones((50, 2)), numbers(n=50)[1])
    assert not model.feature_importances_.any()
    assert not model.output_importances_.any()


def test_what_is_learnt_is_not_there_before_fit():
    for kind in BOTH:
        for name in ["n_iter_", "step_sizes_", "feature_importances_", "output_importances_"]:
            assert not hasattr(kind(), name)


def test_a_second_fit_forgets_the_first():
    X, Y = numbers(d=3)
    X_val, Y_val = numbers(d=3, seed=1)
    model = regressor().fit(X, Y, X_val=X_val, Y_val=Y_val)
    model.fit(X[:, :4], Y[:, :2])
    assert not hasattr(model, "validation_score_")
    assert (model.n_features_in_, model.n_outputs_) == (4, 2)
    fresh = regressor().fit(X[:, :4], Y[:, :2])
    assert model_bytes(model) == model_bytes(fresh)
    assert np.array_equal(model.output_importances_, fresh.output_importances_)


@pytest.mark.parametrize("strategy", ["project", "relabel"])
def test_the_seed_decides_the_model(strategy):
    def fit(seed):
        model = regressor(strategy=strategy, random_state=seed).fit(*numbers())
        return model_bytes(model)

    assert fit(1) == fit(1)
    assert fit(1) != fit(2)
    assert fit(np.random.RandomState(1)) == fit(np.random.RandomState(1))
    assert fit(None) != fit(None)


# Predictions ------------------------------------------------------------------------------------


def test_the_last_stage_is_the_prediction():
    X = numbers(seed=1)[0]
    for model in fitted_models():
        methods = ["predict"]
        if is_classifier(model):
            methods += ["predict_proba", "decision_function"]
        for method in methods:
            stages = list(getattr(model, f"staged_{method}")(X))
            assert len(stages) == model.n_iter_
            assert np.array_equal(stages[-1], getattr(model, method)(X))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_stage_is_the_prediction_of_a_shorter_model(strategy):
    X, Y = numbers()
    model = regressor(strategy=strategy).fit(X, Y)
    stages = list(model.staged_predict(X))
    short = regressor(strategy=strategy, max_iter=4).fit(X, Y)
    assert np.array_equal(stages[3], short.predict(X))
    # Stages do not share memory: what is kept does not change later.
    assert not np.array_equal(stages[3], stages[4])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_predictions_of_numbers_have_the_shape_of_the_outputs(strategy):
    X, Y = numbers()
    model = regressor(strategy=strategy)
    assert model.fit(X, Y).predict(X).shape == (200, 3)
    flat = model.fit(X, Y[:, 0]).predict(X)
    column = model.fit(X, Y[:, :1]).predict(X)
    assert flat.shape == (200,)
    assert column.shape == (200, 1)
    assert np.array_equal(flat, column[:, 0])
    assert model.fit(X, Y[:, 0]).n_outputs_ == 1
    assert next(model.staged_predict(X)).shape == (200,)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("loss", LABEL_LOSSES)
def test_two_classes_are_one_output(strategy, loss):
    X, y = classes(k=2)
    model = classifier(strategy=strategy, loss=loss).fit(X, y)
    decision, proba = model.decision_function(X), model.predict_proba(X)
    assert decision.shape == (200,)
    assert proba.shape == (200, 2)
    assert proba.sum(axis=1) == pytest.approx(1)
    positive = (
        np.clip((decision + 1) / 2, 2**-24, 1 - 2**-24)
        if loss == "squared_error"
        else expit(decision)
    )
    assert proba[:, 1] == pytest.approx(positive)
    assert np.array_equal(model.predict(X), (decision > 0).astype(int))
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("loss", LABEL_LOSSES)
def test_many_classes_are_one_output_each(strategy, loss):
    X, y = classes(k=4)
    model = classifier(strategy=strategy, loss=loss, max_iter=40, learning_rate=0.3).fit(X, y)
    decision, proba = model.decision_function(X), model.predict_proba(X)
    assert decision.shape == proba.shape == (200, 4)
    assert proba.sum(axis=1) == pytest.approx(1)
    assert np.all(proba >= 0)
    assert np.array_equal(model.predict(X), decision.argmax(axis=1))
    if loss == "log_loss":
        assert proba == pytest.approx(softmax(decision, axis=1))
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("loss", LABEL_LOSSES)
def test_labels_are_one_output_each(strategy, loss):
    X, Y = labels(d=4)
    model = classifier(strategy=strategy, loss=loss, max_iter=40, learning_rate=0.3).fit(X, Y)
    decision, proba = model.decision_function(X), model.predict_proba(X)
    assert isinstance(proba, np.ndarray)
    assert decision.shape == proba.shape == (200, 4)
    assert np.all((proba >= 0) & (proba <= 1))
    assert np.array_equal(model.predict(X), (decision > 0).astype(int))
    assert model.score(X, Y) > 0.6


@pytest.mark.parametrize(
    ("names", "dtype"),
    [
        (["no", "yes"], None),
        (["ape", "bee", "cat"], None),
        (["ape", "bee", "cat"], object),
        ([-1, 1], None),
        ([3, 10, 700], None),
        ([False, True], None),
        ([1.0, 2.0, 5.0], None),
    ],
)
def test_classes_come_back_as_they_went_in(names, dtype):
    X, y = classes(k=len(names))
    named = np.array(names, dtype=dtype)[y]
    model = classifier(max_iter=20).fit(X, named)
    assert model.classes_.tolist() == names
    predicted = model.predict(X)
    assert predicted.dtype == named.dtype
    assert np.array_equal(predicted, np.array(names)[classifier(max_iter=20).fit(X, y).predict(X)])
    assert set(next(model.staged_predict(X))) <= set(names)


@pytest.mark.parametrize("k", [2, 3])
def test_a_column_of_classes_is_read_as_one_class_per_row(k):
    X, y = classes(k=k)
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        model = classifier().fit(X, y[:, None])
    assert model.predict(X).shape == (200,)
    assert np.array_equal(model.predict_proba(X), classifier().fit(X, y).predict_proba(X))


def test_labels_may_be_boolean_or_real():
    X, Y = labels()
    expected = classifier().fit(X, Y).predict_proba(X)
    for dtype in [bool, np.int8, np.float32]:
        model = classifier().fit(X, Y.astype(dtype))
        assert np.array_equal(model.predict_proba(X), expected)
        assert model.predict(X).dtype == np.int64


# Outputs that never vary ------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("loss", LABEL_LOSSES)
@pytest.mark.parametrize("step", ["newton", "line_search"])
def test_labels_that_never_vary_are_learnt_without_fuss(strategy, loss, step):
    X, Y = labels(d=4)
    Y[:, 1], Y[:, 3] = 0, 1
    model = classifier(strategy=strategy, loss=loss, step=step).fit(X, Y)
    assert np.all(np.abs(model.baseline_) <= 15)
    for values in [model.decision_function(X), model.predict_proba(X), model.train_score_]:
        assert np.isfinite(values).all()
    assert np.array_equal(model.predict(X)[:, [1, 3]], Y[:, [1, 3]])
    assert np.isfinite(model.output_importances_).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("constant", [0, 1])
def test_nothing_but_constant_labels(strategy, constant):
    X, Y = labels()
    Y[:] = constant
    model = classifier(strategy=strategy).fit(X, Y)
    assert np.array_equal(model.predict(X), Y)
    assert np.abs(model.predict_proba(X) - constant).max() < 1e-5


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "huber", "quantile", "poisson"]
)
def test_numbers_that_never_vary_are_predicted_exactly(strategy, loss):
    X, Y = labels()
    Y[:, 1] = 7
    model = regressor(strategy=strategy, loss=loss).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()
    assert model.predict(X)[:, 1] == pytest.approx(7, rel=1e-5)


# Weights ----------------------------------------------------------------------------------------


def weighted_cases():
    for strategy in STRATEGIES:
        for estimator, data in [
            (regressor, numbers()),
            (regressor, (numbers()[0], numbers()[1][:, 0])),
            (classifier, labels()),
            (classifier, classes(k=2)),
            (classifier, classes(k=3)),
        ]:
            yield estimator(strategy=strategy, min_samples_leaf=1, max_leaf_nodes=8), *data


def test_a_row_of_weight_zero_is_absent():
    weight = np.tile([0.0, 1.5, 0.5, 2.0], 50)
    kept = weight > 0
    for model, X, y in weighted_cases():
        absent = clone(model).fit(X[kept], y[kept], weight[kept])
        assert model_bytes(model.fit(X, y, weight)) == model_bytes(absent)


def test_outliers_of_weight_zero_leave_no_trace():
    X, Y = numbers()
    weight = (np.arange(200) % 4 > 0).astype(float)
    wild_X, wild_Y = X.copy(), Y.copy()
    wild_X[weight == 0], wild_Y[weight == 0] = 1e30, -1e30
    for loss in ["squared_error", "huber", "quantile"]:
        expected = regressor(loss=loss).fit(X, Y, weight)
        assert model_bytes(regressor(loss=loss).fit(wild_X, wild_Y, weight)) == model_bytes(
            expected
        )


def test_a_whole_weight_is_a_repeated_row():
    weight = np.random.default_rng(0).integers(0, 4, 200)
    for model, X, y in weighted_cases():
        repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight, axis=0))
        model.fit(X, y, weight)
        method = "decision_function" if is_classifier(model) else "predict"
        expected = getattr(repeated, method)(X)
        assert getattr(model, method)(X) == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_class_without_weight_is_known_but_never_predicted(k, strategy):
    X, y = classes(k=k)
    model = classifier(strategy=strategy).fit(X, y, (y != 0).astype(float))
    assert model.classes_.tolist() == list(range(k))
    assert not np.any(model.predict(X) == 0)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.predict_proba(X)[:, 0].max() < 1e-4


def test_only_ratios_of_weights_matter():
    X, Y = numbers()
    weight = np.random.default_rng(0).random(200)
    expected = regressor().fit(X, Y, weight).predict(X)
    assert regressor().fit(X, Y, 1024 * weight).predict(X) == pytest.approx(expected, rel=1e-5)
    assert regressor().fit(X, Y, 3.0).predict(X) == pytest.approx(
        regressor().fit(X, Y).predict(X), rel=1e-5
    )


# Missing values ---------------------------------------------------------------------------------


def stump():
    """One split, and leaves taken as they are."""
    return regressor(max_iter=1, max_leaf_nodes=2, learning_rate=1.0, min_samples_leaf=1)


@pytest.mark.parametrize("like", ["low", "high"])
def test_missing_values_are_sent_where_they_fit_better(like):
    x = np.r_[np.zeros(30), np.ones(30), np.full(10, np.nan)][:, None]
    missing = 1.0 if like == "high" else 0.0
    model = stump().fit(x, np.r_[np.zeros(30), np.ones(30), np.full(10, missing)])
    predictions = model.predict([[0.0], [1.0], [np.nan]])
    assert predictions == pytest.approx([0, 1, missing], abs=1e-6)


def test_a_value_may_tell_only_by_being_missing():
    x = np.r_[np.linspace(0, 1, 30), np.full(30, np.nan)][:, None]
    model = stump().fit(x, np.isnan(x[:, 0]) * 5.0)
    assert model.predict([[0.0], [0.5], [1.0], [np.nan]]) == pytest.approx([0, 0, 0, 5], abs=1e-6)


@pytest.mark.parametrize(("n_low", "n_high"), [(30, 70), (70, 30)])
def test_missing_values_never_seen_follow_the_larger_child(n_low, n_high):
    x = np.r_[np.zeros(n_low), np.ones(n_high)][:, None]
    model = stump().fit(x, x[:, 0])
    assert model.predict([[np.nan]]) == pytest.approx(1.0 if n_high > n_low else 0.0, abs=1e-6)


def test_a_column_may_be_missing_altogether():
    X, Y = numbers()
    expected = regressor().fit(X, Y).predict(X)
    empty = np.c_[X, np.full(len(X), np.nan)]
    assert np.array_equal(regressor().fit(empty, Y).predict(empty), expected)


def test_rows_of_nothing_but_missing_values_are_predicted():
    for model in fitted_models():
        assert np.isfinite(model.predict(np.full((3, 5), np.nan))).all()


# Layouts ----------------------------------------------------------------------------------------


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


LAYOUTS = {
    "float32": lambda X: X.astype(np.float32),
    "float32 fortran": lambda X: np.asfortranarray(X.astype(np.float32)),
    "fortran": np.asfortranarray,
    "read-only": read_only,
    "strided rows": lambda X: np.repeat(X, 2, axis=0)[::2],
    "strided columns": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": lambda X: X[::-1].copy()[::-1],
    "big-endian": lambda X: X.astype(">f8"),
    "list": lambda X: X.tolist(),
    "object": lambda X: X.astype(object),
    "frame": pd.DataFrame,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("strategy", ["project", "relabel"])
def test_the_layout_of_the_features_makes_no_difference(layout, strategy):
    X, Y = numbers()
    laid_out = LAYOUTS[layout](X)
    expected = regressor(strategy=strategy).fit(X, Y)
    model = regressor(strategy=strategy).fit(laid_out, Y)
    assert model_bytes(model) == model_bytes(expected)
    assert np.array_equal(expected.predict(laid_out), expected.predict(X))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_of_the_outputs_makes_no_difference(layout):
    X, Y = numbers()
    Y = Y.astype(np.float32).astype(np.float64)
    expected = model_bytes(regressor().fit(X, Y))
    assert model_bytes(regressor().fit(X, LAYOUTS[layout](Y))) == expected
    X, Y = labels()
    expected = model_bytes(classifier().fit(X, Y))
    assert model_bytes(classifier().fit(X, LAYOUTS[layout](Y.astype(float)))) == expected


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int8, bool])
def test_whole_numbers_are_features(dtype):
    X, Y = numbers()
    X = (X > 0).astype(dtype)
    expected = regressor().fit(X.astype(float), Y)
    assert model_bytes(regressor().fit(X, Y)) == model_bytes(expected)


def test_the_data_are_left_as_they_are():
    for estimator, (X, y) in [(regressor, numbers()), (classifier, labels())]:
        X[0, 0] = np.nan
        weight = np.ones(len(X))
        before = X.copy(), y.copy(), weight.copy()
        model = estimator().fit(X, y, weight)
        model.predict(X)
        for now, then in zip((X, y, weight), before, strict=True):
            assert np.array_equal(now, then, equal_nan=True)
