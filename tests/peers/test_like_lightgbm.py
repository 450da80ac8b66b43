"""What users of LightGBM's estimators rely on, written anew for these estimators.

Not taken over, with the reason:

- dart, random forests, goss, linear trees, extra trees, CEGB, position bias: other algorithms
- ranking (``LGBMRanker``, lambdarank): no ranking losses
- ``Dataset``, ``Booster``, ``train``, ``cv``: scikit-learn's interface is the only one
- several evaluation sets: early stopping looks at one; staged predictions give other curves
- refitting with ``decay_rate``: ``refit`` fits leaves anew
- text files of models: model files are binary; see ``trees_to_dataframe`` and the exports
- negative codes as missing categories: any number is a category; NaN is missing
"""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, make_multilabel_classification
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.multioutput import MultiOutputRegressor

from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor

RNG = np.random.default_rng(0)
CANCER = train_test_split(*load_breast_cancer(return_X_y=True), test_size=0.2, random_state=0)
X = RNG.normal(size=(500, 5))
Y = X[:, 0] + np.sin(3 * X[:, 1]) + 0.1 * RNG.normal(size=500)


def test_two_classes_are_learnt():
    X_train, X_test, y_train, y_test = CANCER
    model = ManyBoostClassifier(max_iter=50, random_state=0).fit(X_train, y_train)
    assert log_loss(y_test, model.predict_proba(X_test)) < 0.15


def test_many_classes_are_learnt():
    X_train, X_test, y_train, y_test = train_test_split(
        *load_digits(return_X_y=True), random_state=0
    )
    model = ManyBoostClassifier(random_state=0).fit(X_train, y_train)
    assert model.score(X_test, y_test) > 0.95


def test_stopping_ends_at_the_best_round_of_the_evaluation_set():
    X_train, X_test, y_train, y_test = CANCER
    model = ManyBoostClassifier(max_iter=300, n_iter_no_change=5, random_state=0)
    model.fit(X_train, y_train, X_val=X_test, y_val=y_test)
    assert model.n_iter_ == model.best_iter_ == np.argmax(model.validation_score_) < 300
    losses = [log_loss(y_test, stage) for stage in model.staged_predict_proba(X_test)]
    np.testing.assert_allclose(losses, -model.validation_score_[1:], rtol=1e-4)


def test_another_metric_may_decide():
    X_train, X_test, y_train, y_test = CANCER
    model = ManyBoostClassifier(max_iter=60, scoring=["roc_auc", "loss"], random_state=0)
    model.fit(X_train, y_train, X_val=X_test, y_val=y_test)
    assert set(model.validation_scores_) == {"roc_auc", "loss"}
    assert model.n_iter_ == np.argmax(model.validation_scores_["roc_auc"])


def test_an_objective_of_ones_own_gives_the_model_of_the_built_in_one():
    class Squared(Loss):
        def value(self, y, raw):
            return (y - raw) ** 2 / 2

        def gradient(self, y, raw):
            return raw - y

        def hessian(self, y, raw):
            return np.ones_like(y)

    own = ManyBoostRegressor(Squared(), l2_regularization=0, max_iter=20, random_state=0)
    built_in = ManyBoostRegressor(max_iter=20, random_state=0)
    np.testing.assert_allclose(own.fit(X, Y).predict(X), built_in.fit(X, Y).predict(X), rtol=1e-4)


def test_the_first_rounds_can_predict():
    model = ManyBoostRegressor(max_iter=30, random_state=0).fit(X, Y)
    errors = [mean_squared_error(Y, model.first_rounds(k).predict(X)) for k in (1, 10, 30)]
    assert errors[0] > errors[1] > errors[2]


def test_importances_come_as_gains_and_as_numbers_of_splits():
    model = ManyBoostRegressor(max_iter=30, random_state=0).fit(X, Y)
    assert set(np.argsort(model.feature_importances_)[-2:]) == {0, 1}
    info = model.info()
    assert model.split_counts_.sum() == info["n_nodes"] - info["n_leaves"]


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_category_columns_of_pandas_are_used_and_arrays_of_numbers_too():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": pd.Categorical(rng.choice([2, 5, 9], 500)), "b": X[:, 0]})
    y = np.where(frame["a"] == 5, 3.0, 0.0) + X[:, 0]
    model = ManyBoostRegressor(max_iter=40, random_state=0).fit(frame, y)
    assert model.score(frame, y) > 0.95
    np.testing.assert_array_equal(model.predict(frame.to_numpy(float)), model.predict(frame))
    shuffled = frame.assign(a=frame["a"].cat.reorder_categories([9, 2, 5]))
    np.testing.assert_array_equal(model.predict(shuffled), model.predict(frame))
    unseen = frame.assign(a=pd.Categorical([77] * 500))
    missing = frame.assign(a=pd.Categorical([None] * 500))
    np.testing.assert_array_equal(model.predict(unseen), model.predict(missing))


def test_weights_are_repetitions():
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 3, 500)
    common = {"max_iter": 10, "min_samples_leaf": 1, "random_state": 0, "max_leaf_nodes": 8}
    weighted = ManyBoostRegressor(**common).fit(X, Y, sample_weight=weight)
    repeated = ManyBoostRegressor(**common).fit(np.repeat(X, weight, 0), np.repeat(Y, weight))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6)


def test_an_initial_score_is_gone_on_from():
    first = ManyBoostRegressor(max_iter=15, random_state=0).fit(X, Y)
    rest = ManyBoostRegressor(max_iter=15, random_state=0)
    rest.fit(X, Y, offset=first.predict(X))
    both = rest.predict(X, offset=first.predict(X))
    assert mean_squared_error(Y, both) < mean_squared_error(Y, first.predict(X))


def test_missing_values_at_prediction_alone_are_answered():
    model = ManyBoostRegressor(max_iter=10, random_state=0).fit(X, Y)
    assert np.isfinite(model.predict(np.full((3, 5), np.nan))).all()


def test_constant_and_empty_features_are_not_split_by():
    wide = np.column_stack([X, np.ones(500), np.full(500, np.nan)])
    model = ManyBoostRegressor(max_iter=10, random_state=0).fit(wide, Y)
    assert model.split_counts_[5:].tolist() == [0, 0]


def test_one_model_serves_labels_and_outputs_that_meta_estimators_split():
    data, labels = make_multilabel_classification(n_samples=300, n_classes=4, random_state=0)
    model = ManyBoostClassifier(max_iter=30, random_state=0).fit(data, labels)
    assert model.predict(data).shape == labels.shape
    both = np.column_stack([Y, -Y])
    split = MultiOutputRegressor(ManyBoostRegressor(max_iter=10, random_state=0)).fit(X, both)
    assert split.predict(X).shape == (500, 2)


def test_a_search_finds_parameters_and_models_can_be_pickled():
    search = GridSearchCV(
        ManyBoostRegressor(max_iter=10, random_state=0), {"max_leaf_nodes": [2, 16]}, cv=2
    ).fit(X, Y)
    assert search.best_params_ == {"max_leaf_nodes": 16}
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))


def test_names_of_features_are_kept_and_compared():
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = ManyBoostRegressor(max_iter=5, random_state=0).fit(frame, Y)
    assert model.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="Select them in that order"):
        model.predict(frame[list("bacde")])


@pytest.mark.parametrize("name", ["n_estimators", "num_leaves", "min_child_samples", "objective"])
def test_its_names_are_answered(name):
    with pytest.raises(TypeError, match="in manyboost this is"):
        ManyBoostRegressor(**{name: 1})
