"""What users of scikit-learn and its kin expect to find, and find."""

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import cross_val_score

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.datasets import Dataset

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
    model = regressor(scoring="r2").fit(X, Y)
    assert not hasattr(model, "validation_score_")
    np.testing.assert_array_equal(model.predict(X), regressor().fit(X, Y).predict(X))
    # Of 10,200 rows two folds train on 5,100 each: stopping is on for all rows, off in the folds.
    wide = RNG.normal(size=(10_200, 2))
    few = regressor(max_iter=2, scoring="r2")
    assert cross_val_score(few, wide, wide[:, 0], cv=2).min() > 0
    assert hasattr(few.fit(wide, wide[:, 0]), "validation_score_")
    with pytest.raises(ValueError, match="scoring='r2' is what early stopping looks at"):
        regressor(scoring="r2", early_stopping=False).fit(X, Y)


# Attributes ----------------------------------------------------------------------------------


def test_is_categorical_says_which_features_hold_categories():
    codes = RNG.integers(0, 3, 240)
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


# The progress line ---------------------------------------------------------------------------


def test_the_progress_line_shows_losses_and_scores_by_name(capfd):
    model = regressor(verbose=2).fit(X, Y, X_val=X, Y_val=Y)
    first = capfd.readouterr().err.splitlines()[0]
    assert f"train loss {-model.train_score_[1]:.6g}, " in first
    assert first.endswith(f"validation loss {-model.validation_score_[1]:.6g}")
    model = regressor(verbose=2, scoring="r2").fit(X, Y, X_val=X, Y_val=Y)
    first = capfd.readouterr().err.splitlines()[0]
    assert first.endswith(f"validation r2 {model.validation_score_[1]:.6g}")
