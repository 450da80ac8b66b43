"""What users of scikit-learn and its kin expect to find, and find."""

import inspect
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import manyboost
from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor
from manyboost.datasets import Dataset
from manyboost.estimators import elsewhere

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 4))
Y = np.column_stack([X[:, 0] + X[:, 1], X[:, 2]]) + 0.1 * RNG.normal(size=(240, 2))
CLASSES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)


def regressor(**parameters):
    return ManyBoostRegressor(**{"max_iter": 8, "random_state": 0, **parameters})


def classifier(**parameters):
    return ManyBoostClassifier(**{"max_iter": 8, "random_state": 0, **parameters})


# Arguments -----------------------------------------------------------------------------------


def test_validation_targets_may_be_called_y_val():
    one = regressor(max_iter=30).fit(X[:200], Y[:200], X_val=X[200:], Y_val=Y[200:])
    two = regressor(max_iter=30).fit(X[:200], Y[:200], X_val=X[200:], y_val=Y[200:])
    np.testing.assert_array_equal(one.validation_score_, two.validation_score_)
    labels = classifier().fit(X, CLASSES, X_val=X, y_val=CLASSES)
    assert len(labels.validation_score_) == 9
    with pytest.raises(ValueError, match="Y_val and y_val are names of the same argument"):
        regressor().fit(X, Y, X_val=X, Y_val=Y, y_val=Y)


def test_scoring_none_is_the_score_of_the_estimator():
    model = regressor(scoring=None, early_stopping=True).fit(X, Y)
    by_name = regressor(scoring="r2", early_stopping=True).fit(X, Y)
    np.testing.assert_array_equal(model.validation_score_, by_name.validation_score_)
    model = classifier(scoring=None).fit(X, CLASSES, X_val=X, y_val=CLASSES)
    assert model.validation_score_[-1] == model.score(X, CLASSES)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["labels", "columns"])
def test_scoring_none_counts_what_is_observed_of_a_row(kind, weighted):
    rng = np.random.default_rng(1)
    present = Y + 0.3 * rng.normal(size=Y.shape) > 0
    y = (present if kind == "labels" else np.where(present, "yes", "no")).astype(object)
    y[rng.random(y.shape) < 0.2] = None
    weight = rng.integers(1, 4, size=len(y)) if weighted else None
    model = classifier(scoring=None, class_weight="balanced")
    model.fit(X, y, weight, X_val=X, y_val=y, sample_weight_val=weight)
    score = model.validation_score_[model.n_iter_]
    assert score == pytest.approx(model.score(X, y, weight), abs=1e-6)
    assert 0.5 < score < 1
    weights = rng.integers(1, 4, size=y.shape)
    with pytest.raises(ValueError, match="scoring=None is the accuracy of whole rows"):
        model.fit(X, y, X_val=X, y_val=y, sample_weight_val=weights)


def test_without_a_validation_fraction_stopping_looks_at_the_training_rows():
    model = regressor(validation_fraction=None, early_stopping=True).fit(X, Y)
    same = regressor().fit(X, Y, X_val=X, Y_val=Y)
    np.testing.assert_array_equal(model.validation_score_, same.validation_score_)
    np.testing.assert_array_equal(model.predict(X), regressor().fit(X, Y).predict(X))
    raced = regressor(validation_fraction=None, strategy="auto").fit(X, Y)
    assert raced.strategy_ in raced.search_results_["strategy"]
    with pytest.raises(ValueError, match="needs rows that no tree was fitted to"):
        classifier(validation_fraction=None, thresholds="tuned").fit(X, np.c_[CLASSES, CLASSES] > 1)


def test_scoring_is_not_looked_at_where_few_rows_turn_stopping_off():
    rng = np.random.default_rng(1)
    model = regressor(scoring="r2").fit(X, Y)
    assert not hasattr(model, "validation_score_")
    np.testing.assert_array_equal(model.predict(X), regressor().fit(X, Y).predict(X))
    # Of 10,200 rows two folds train on 5,100 each: stopping is on for all rows, off in the folds.
    wide = rng.normal(size=(10_200, 2))
    few = regressor(max_iter=2, scoring="r2")
    assert cross_val_score(few, wide, wide[:, 0], cv=2).min() > 0
    assert hasattr(few.fit(wide, wide[:, 0]), "validation_score_")
    with pytest.raises(ValueError, match="scoring='r2' is what early stopping looks at"):
        regressor(scoring="r2", early_stopping=False).fit(X, Y)


# Attributes ----------------------------------------------------------------------------------


def test_is_categorical_says_which_features_hold_categories():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3, 240)
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(codes)})
    assert regressor().fit(frame, Y).is_categorical_.tolist() == [False, True]
    chosen = regressor(categorical_features=[0]).fit(np.c_[codes, X[:, 0]], Y)
    assert chosen.is_categorical_.tolist() == [True, False]
    assert regressor().fit(X, Y).is_categorical_ is None
    with pytest.raises(NotFittedError):
        _ = regressor().is_categorical_


def test_n_classes_counts_classes_or_labels():
    assert classifier().fit(X, CLASSES).n_classes_ == 3
    assert classifier().fit(X, CLASSES > 0).n_classes_ == 2
    assert classifier().fit(X, np.eye(4, dtype=int)[CLASSES]).n_classes_ == 4


# Shapes --------------------------------------------------------------------------------------


def test_quantiles_come_as_frames_with_a_column_for_each_output_and_level():
    levels = {"loss": "quantile", "quantile": [0.1, 0.9]}
    model = regressor(**levels).fit(X, Y)
    array = model.predict(X)
    frame = model.set_output(predict="pandas").predict(X)
    assert frame.columns.tolist() == ["y0_q0.1", "y0_q0.9", "y1_q0.1", "y1_q0.9"]
    np.testing.assert_array_equal(frame.to_numpy(), array.reshape(len(X), -1))
    some = model.predict(X, outputs=[1])
    pd.testing.assert_frame_equal(some, frame[["y1_q0.1", "y1_q0.9"]])
    named = regressor(**levels).fit(X, pd.Series(Y[:, 0], name="price"))
    assert named.set_output(transform="polars").predict(X).columns == ["price_q0.1", "price_q0.9"]
    assert named.set_output(predict="default").predict(X).shape == (240, 2)


@pytest.mark.parametrize(
    ("frame", "remedy"),
    [
        (pd.DataFrame({"kind": CLASSES}), r"Pass y\['kind'\] to silence"),
        (pd.DataFrame(CLASSES), r"Pass y\[0\] to silence"),
        (polars.DataFrame({"kind": CLASSES}), r"Pass y\['kind'\] to silence"),
        (CLASSES[:, None], r"Pass y.ravel\(\) to silence"),
    ],
    ids=["pandas", "without names", "polars", "array"],
)
def test_the_remedy_for_a_column_vector_works_for_what_was_passed(frame, remedy):
    with pytest.warns(DataConversionWarning, match=remedy):
        classifier().fit(X, frame)


def test_a_data_set_is_shown_in_one_line():
    data = Dataset("toy", X, Y, tuple("abcd"), ("y", "z"), "regression")
    assert repr(data) == "Dataset('toy', regression, 240 rows, 4 features, 2 outputs)"


def test_horizons_may_be_named_by_whole_numbers(tmp_path):
    horizons = pd.DataFrame(Y, columns=[1, 2])
    model = regressor().fit(X, horizons, X_val=X, Y_val=horizons).set_output(predict="pandas")
    assert model.output_names_.tolist() == ["1", "2"]
    model.save(tmp_path / "model.mb")
    loaded = manyboost.load(tmp_path / "model.mb")
    assert loaded.predict(X).columns.tolist() == ["1", "2"]
    assert loaded.predict(X, outputs=["2"]).shape == (240, 1)
    with pytest.raises(ValueError, match="Y_val has the output '3', which fit did not see"):
        regressor().fit(X, horizons, X_val=X, Y_val=horizons.rename(columns={2: 3}))
    counted = regressor().fit(X, pd.DataFrame(Y))
    assert not hasattr(counted, "output_names_")


# The progress line ---------------------------------------------------------------------------


def test_the_progress_line_shows_losses_and_scores_by_name(capfd):
    model = regressor(verbose=2).fit(X, Y, X_val=X, Y_val=Y)
    first = capfd.readouterr().err.splitlines()[0]
    assert f"train loss {-model.train_score_[1]:.6g}, " in first
    assert first.endswith(f"validation loss {-model.validation_score_[1]:.6g}")
    model = regressor(verbose=2, scoring="r2").fit(X, Y, X_val=X, Y_val=Y)
    first = capfd.readouterr().err.splitlines()[0]
    assert first.endswith(f"validation r2 {model.validation_score_[1]:.6g}")


# Names from elsewhere ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (lambda: ManyBoostRegressor(n_estimators=3), "in manyboost this is max_iter."),
        (lambda: ManyBoostClassifier(num_leaves=3), "in manyboost this is max_leaf_nodes."),
        (lambda: ManyBoostRegressor(learnin_rate=1), "did you mean 'learning_rate'?"),
        (lambda: ManyBoostRegressor(zzz=1), "got an unexpected keyword argument 'zzz'."),
        (lambda: regressor().fit(X, Y, eval_set=[(X, Y)]), "this is X_val and y_val, for one set"),
        (lambda: regressor().fit(X, Y, verbose=1), "it is a parameter of the constructor."),
        (lambda: regressor().fit(X, Y, sample_weights=1), "did you mean 'sample_weight'?"),
        (lambda: regressor().fit(X, Y).predict(X, num_iteration=2), "this is first_rounds(k)"),
        (lambda: classifier().fit(X, CLASSES).predict_proba(X, raw_score=1), "decision_function"),
    ],
)  # fmt: skip
def test_an_unknown_argument_is_answered_by_its_name_here(call, answer):
    with pytest.raises(TypeError, match=re.escape(answer)):
        call()


def test_an_unknown_parameter_is_answered_by_its_name_here():
    with pytest.raises(ValueError, match=r"Invalid parameter 'eta' .* this is learning_rate"):
        regressor().set_params(eta=0.1)
    search = GridSearchCV(regressor(), {"max_leafs": [2]}, cv=2, error_score="raise")
    with pytest.raises(ValueError, match="did you mean 'max_leaf_nodes'"):
        search.fit(X, Y)


def test_every_answer_names_something_that_exists():
    own = {*inspect.signature(ManyBoostClassifier).parameters}
    own |= {*inspect.signature(ManyBoostRegressor).parameters}
    for table, method in ((elsewhere.CONSTRUCTOR, "__init__"), (elsewhere.FIT, "fit")):
        for name, (here, _) in table.items():
            known = inspect.signature(getattr(ManyBoostClassifier, method)).parameters
            assert name not in known
            words = set(re.findall(r"\w+", here))
            assert (
                words & {*own, *known, "nothing"}
                or "names of a data frame" in here
                or any(hasattr(ManyBoostClassifier, word) for word in words)
            ), name
    for here, _ in elsewhere.PREDICT.values():
        first = re.match(r"\w+", here)[0]
        assert hasattr(ManyBoostClassifier, first) or first in ("offset", "n_jobs"), here


def test_the_page_about_other_libraries_holds_the_table():
    page = Path(__file__).parents[2] / "docs" / "guide" / "coming-from.md"
    assert elsewhere.as_markdown() in page.read_text(encoding="utf-8")


def test_methods_that_the_page_names_exist():
    page = Path(__file__).parents[2] / "docs" / "guide" / "coming-from.md"
    section = page.read_text(encoding="utf-8").split("## Methods and attributes")[1].split("##")[0]
    model = regressor(n_folds=2, scoring=["loss"]).fit(X, Y)
    known = {*dir(model), "load", "manyboost", "plotting", "cross_validate"}
    rows = re.findall(r"^\| `.*\| (.*) \|$", section, re.M)
    named = {
        word for row in rows for name in re.findall(r"`(.*?)`", row) for word in name.split(".")
    }
    assert len(rows) > 10
    assert named <= known | {"validation_score_", "validation_scores_", "best_iter_"}


# Subclasses ----------------------------------------------------------------------------------


class Extended(ManyBoostRegressor):
    """A subclass with a parameter of its own, and few of ours."""

    def __init__(self, extra=1, *, max_iter=10, random_state=None):
        super().__init__(max_iter=max_iter, random_state=random_state)
        self.extra = extra


def test_a_subclass_may_have_a_parameter_of_its_own(tmp_path):
    model = clone(Extended(extra=3, max_iter=8, random_state=0)).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), regressor().fit(X, Y).predict(X))
    assert model.get_params() == {"extra": 3, "max_iter": 8, "random_state": 0}
    assert model.info()["changed_parameters"] == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    assert again.extra == 3
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match=r"Extended is a class of your own.* or pickle it"):
        model.save(tmp_path / "model.mb")


# Rounds and splits ---------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["relabel", "project", "independent"])
def test_the_first_rounds_are_a_model(strategy, tmp_path):
    model = regressor(strategy=strategy, scoring=["loss", "r2"]).fit(X, Y, X_val=X, Y_val=Y)
    short = model.first_rounds(3)
    np.testing.assert_array_equal(short.predict(X), list(model.staged_predict(X))[2])
    assert (short.n_iter_, len(short.train_score_), len(short.validation_scores_["r2"])) == (
        3,
        4,
        4,
    )
    assert model.n_iter_ == 8
    short.save(tmp_path / "short.mb")
    loaded = manyboost.load(tmp_path / "short.mb")
    np.testing.assert_array_equal(loaded.predict(X), short.predict(X))
    with pytest.raises(AttributeError, match="comes from first_rounds"):
        _ = loaded.feature_importances_
    longer = short.set_params(warm_start=True).fit(X, Y, X_val=X, Y_val=Y)
    np.testing.assert_array_equal(longer.predict(X), model.predict(X))


def test_first_rounds_keep_what_each_output_has():
    model = regressor(max_iter=60, early_stopping="per_output", n_iter_no_change=5).fit(X, Y)
    short = model.first_rounds(2)
    assert short.best_iter_per_output_.tolist() == [2, 2]
    np.testing.assert_array_equal(short.predict(X), list(model.staged_predict(X))[1])
    assert np.ptp(model.first_rounds(0).predict(X), axis=0).max() == 0
    with pytest.raises(ValueError, match=r"n_rounds=99 is not allowed; .* from 0 to "):
        model.first_rounds(99)
    with pytest.raises(ValueError, match="has members of different rounds"):
        regressor(n_folds=2).fit(X, Y).first_rounds(1)


def test_split_counts_are_the_splits_of_the_trees():
    model = regressor().fit(np.c_[X, np.zeros(240)], Y)
    info = model.info()
    assert model.split_counts_.sum() == info["n_nodes"] - info["n_leaves"]
    assert model.split_counts_[:2].min() > 0
    assert model.split_counts_[4] == 0


# Nothing random ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [{}, {"strategy": "independent"}, {"early_stopping": True, "validation_fraction": None}],
    ids=str,
)
def test_refits_without_a_seed_are_the_same_where_nothing_is_drawn(parameters):
    ties = np.round(X)
    fits = [ManyBoostRegressor(max_iter=20, **parameters).fit(ties, Y[:, 0]) for _ in range(4)]
    for model in fits:
        np.testing.assert_array_equal(model.predict(X), fits[0].predict(X))


def test_refits_without_a_seed_differ_where_something_is_drawn():
    fits = [ManyBoostRegressor(max_iter=20, subsample=0.5).fit(X, Y[:, 0]) for _ in range(2)]
    assert (fits[0].predict(X) != fits[1].predict(X)).any()


# Losses of one's own, soft labels, files -------------------------------------------------------


@pytest.mark.parametrize("curved", [False, True])
def test_a_gradient_of_the_wrong_sign_is_called_that(curved):
    class Wrong(Loss):
        def value(self, y, raw):
            return (y - raw) ** 2 / 2

        def gradient(self, y, raw):
            return y - raw

        def hessian(self, y, raw):
            return np.ones_like(y) if curved else None

    with pytest.raises(ValueError, match=r"Wrong\.gradient has the wrong sign"):
        regressor(loss=Wrong()).fit(X, Y)
    with pytest.raises(ValueError, match=r"Wrong\.gradient has the wrong sign"):
        classifier(loss=Wrong()).fit(X, CLASSES > 0, offset=np.ones(240))


def test_probabilities_as_targets_are_rows_with_both_labels():
    share = np.column_stack([np.full(240, 0.3), 1 / (1 + np.exp(-2 * X[:, 0]))])
    with pytest.raises(ValueError, match="for a probability p pass the row twice"):
        classifier().fit(X, share)
    labels = np.vstack([np.ones((240, 2), int), np.zeros((240, 2), int)])
    weights = np.vstack([share, 1 - share])
    model = classifier(max_iter=100).fit(np.vstack([X, X]), labels, sample_weight=weights)
    assert np.abs(model.predict_proba(X) - share).mean() < 0.03


def test_errors_of_save_name_the_file_that_was_asked_for(tmp_path):
    model = regressor().fit(X, Y)
    longest = tmp_path / ("x" * 252 + ".mb")
    model.save(longest)
    assert manyboost.load(longest).n_iter_ == 8
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "none" / "m.mb", tmp_path / ("x" * 300), tmp_path / "folder"):
        with pytest.raises(OSError, match=r"m\.mb|xxx|folder") as caught:
            model.save(path)
        assert caught.value.filename == str(path)
        assert caught.value.filename2 is None


def test_a_misspelt_column_is_found_by_letters_by_words_or_within():
    frame = pd.DataFrame(X, columns=["avg_temp", "Age", "income", "height"])
    model = regressor().fit(frame, Y)
    names = {"avg_temp": "temp avg", "Age": "age", "income": "annual_income", "height": "hieght"}
    with pytest.raises(ValueError, match="Did you mean ") as caught:
        model.predict(frame.rename(columns=names))
    for known, given in names.items():
        assert f"{known!r} for {given!r}" in str(caught.value)
    with pytest.raises(ValueError, match="Select them in that order, with feature_names_in_"):
        model.predict(frame[["Age", "avg_temp", "income", "height"]])
