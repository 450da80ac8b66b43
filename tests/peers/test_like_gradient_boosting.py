"""What users of scikit-learn's GradientBoosting rely on, written anew for these estimators.

Not taken over, with the reason:

- ``oob_improvement_``: rows left out by ``subsample`` are not scored; use validation rows or folds
- ``estimators_``: trees live in one ensemble; see ``apply`` and ``trees_to_dataframe``
- ``criterion``, ``min_samples_split``, ``ccp_alpha``, ``min_weight_fraction_leaf``: not there
- ``init``: an estimator's predictions are passed as ``offset``
"""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_friedman1, make_hastie_10_2
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss

from manyboost import ManyBoostClassifier, ManyBoostRegressor

X, Y = make_friedman1(n_samples=500, random_state=0)
IRIS = load_iris()


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber"])
@pytest.mark.parametrize("subsample", [1.0, 0.5])
def test_friedmans_problem_is_learnt(loss, subsample):
    model = ManyBoostRegressor(loss, subsample=subsample, max_iter=200, random_state=0)
    assert model.fit(X[:300], Y[:300]).score(X[300:], Y[300:]) > 0.75


@pytest.mark.parametrize("loss", ["log_loss", "exponential", "squared_error"])
def test_hasties_problem_is_learnt(loss):
    data, labels = make_hastie_10_2(n_samples=3000, random_state=0)
    model = ManyBoostClassifier(loss, max_leaf_nodes=6, max_iter=100, random_state=0)
    model.fit(data[:2000], labels[:2000])
    assert model.score(data[2000:], labels[2000:]) > 0.85
    assert set(model.classes_) == {-1.0, 1.0}


def test_probabilities_are_those_of_classes():
    model = ManyBoostClassifier(max_iter=50, random_state=0).fit(IRIS.data, IRIS.target)
    proba = model.predict_proba(IRIS.data)
    assert proba.sum(axis=1) == pytest.approx(1.0)
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(IRIS.data))
    assert model.n_classes_ == 3
    assert log_loss(IRIS.target, proba) < 0.1


def test_classes_may_be_text_and_in_any_order():
    names = IRIS.target_names[IRIS.target]
    model = ManyBoostClassifier(max_iter=10, random_state=0).fit(IRIS.data[::-1], names[::-1])
    assert model.classes_.tolist() == sorted(IRIS.target_names)
    assert model.score(IRIS.data, names) > 0.95


def test_training_loss_falls_and_stages_tell_how():
    model = ManyBoostRegressor(max_iter=40, random_state=0).fit(X, Y)
    assert (np.diff(model.train_score_) >= 0).all()
    errors = [np.mean((Y - stage) ** 2) / 2 for stage in model.staged_predict(X)]
    np.testing.assert_allclose(errors, -model.train_score_[1:], rtol=1e-4)


def test_importances_find_the_features_that_matter():
    model = ManyBoostRegressor(max_iter=60, random_state=0).fit(X, Y)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert set(np.argsort(model.feature_importances_)[-5:]) == {0, 1, 2, 3, 4}
    assert model.split_counts_[:5].sum() > model.split_counts_[5:].sum()


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix])
def test_sparse_features_give_the_model_of_dense_ones(make):
    dense = np.where(X > 0.5, X, 0.0)
    model = ManyBoostRegressor(max_iter=10, random_state=0)
    np.testing.assert_array_equal(
        model.fit(make(dense), Y).predict(make(dense)), model.fit(dense, Y).predict(dense)
    )


@pytest.mark.parametrize("start", [DummyRegressor(), LinearRegression()])
def test_another_model_can_be_the_start(start):
    first = start.fit(X[:300], Y[:300])
    offsets = first.predict(X)
    model = ManyBoostRegressor(max_iter=60, random_state=0)
    model.fit(X[:300], Y[:300], offset=offsets[:300])
    better = model.score(X[300:], Y[300:], offset=offsets[300:])
    assert better > first.score(X[300:], Y[300:]) + 0.05


def test_limits_of_trees_are_kept():
    for limits, most in (({"max_leaf_nodes": 4}, 4), ({"max_depth": 2}, 4), ({"max_depth": 1}, 2)):
        info = ManyBoostRegressor(max_iter=5, random_state=0, **limits).fit(X, Y).info()
        assert info["n_leaves"] <= most * info["n_trees"]
    wide = ManyBoostRegressor(min_samples_leaf=200, max_iter=5, random_state=0).fit(X, Y)
    assert wide.info()["n_leaves"] == 2 * 5


def test_drawn_features_need_a_seed_and_keep_it():
    model = {"max_features": 0.3, "max_iter": 10}
    one, two, other = (
        ManyBoostRegressor(random_state=seed, **model).fit(X, Y).predict(X) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_iter": 0}, "max_iter=0 is not allowed"),
        ({"learning_rate": -1.0}, "learning_rate=-1.0 is not allowed"),
        ({"loss": "foobar"}, "loss='foobar' is not a regression loss"),
        ({"subsample": 1.1}, "subsample=1.1 is not allowed"),
        ({"max_features": 0}, "max_features=0 is not allowed"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        ManyBoostRegressor(**parameters).fit(X, Y)


def test_a_constant_target_is_predicted():
    model = ManyBoostRegressor(max_iter=5).fit(X, np.full(500, 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0)
    with pytest.raises(ValueError, match="only one class"):
        ManyBoostClassifier().fit(X, np.zeros(500, int))
