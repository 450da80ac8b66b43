"""Sparse features: the model of their dense copy, bit for bit, at the cost of the stored values."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from manyboost import ManyBoostClassifier, ManyBoostRegressor

STRATEGIES = ("independent", "multioutput", "project", "relabel")


@pytest.fixture(scope="module")
def data():
    """Columns from nearly empty to full; negative, missing, repeated and stored zero values."""
    rng = np.random.default_rng(0)
    n, p = 400, 40
    density = np.linspace(0.005, 1.0, p)
    X = rng.normal(size=(n, p)).round(1) * (rng.uniform(size=(n, p)) < density)
    X[rng.uniform(size=(n, p)) < 0.01] = np.nan
    X[:, 7] = 0.0
    filled = np.nan_to_num(X)
    mixing = rng.normal(size=(p, 5))
    Y = np.tanh(filled @ mixing) + 0.1 * rng.normal(size=(n, 5))
    return X.astype(np.float32), Y


def model_bytes(model):
    return model._progress.model.trees.to_bytes()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_features": 0.3},
        {"subsample": 0.5, "min_samples_leaf": 1},
        {"max_bins": 4},
        {"early_stopping": True},
    ],
    ids=str,
)
def test_a_sparse_matrix_gives_the_model_of_its_dense_copy(data, strategy, options):
    X, Y = data
    options = {"max_iter": 8, "min_samples_leaf": 5, "random_state": 0} | options
    model = ManyBoostRegressor(strategy=strategy, **options)
    weight = np.random.default_rng(1).uniform(0.1, 2, len(X))
    expected = model.fit(X, Y, weight)
    expected_bytes, expected_raw = model_bytes(expected), expected.predict(X)
    for form in (sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        model.fit(form(X), Y, weight)
        assert model_bytes(model) == expected_bytes
        assert_array_equal(model.predict(form(X)), expected_raw)
        assert_array_equal(model.predict(X), expected_raw)


def test_several_components_and_threads_change_nothing(data):
    X, Y = data
    options = {"n_components": 3, "max_iter": 5, "min_samples_leaf": 2, "random_state": 0}
    expected = ManyBoostRegressor(**options).fit(X, Y)
    for n_jobs in (1, 2, 3):
        model = ManyBoostRegressor(**options, n_jobs=n_jobs).fit(sparse.csr_array(X), Y)
        assert model_bytes(model) == model_bytes(expected)


def test_stored_zeros_and_repeated_places_are_the_values_they_stand_for(data):
    X, Y = data
    rows, columns = np.nonzero(~np.isnan(X))
    halves = np.repeat(X[rows, columns] / 2, 2)
    places = (np.repeat(rows, 2), np.repeat(columns, 2))
    X = np.where(np.isnan(X), 0, X)
    given = sparse.csr_array(sparse.coo_array((halves, places), shape=X.shape))
    twice = sparse.csr_matrix(X.shape, dtype=np.float32)
    twice.data, twice.indices = halves, places[1].astype(np.int32)
    twice.indptr = np.searchsorted(places[0], np.arange(len(X) + 1)).astype(np.int32)
    before = twice.copy()
    model = ManyBoostRegressor(max_iter=3, random_state=0)
    expected = model_bytes(model.fit(X, Y))
    assert model_bytes(model.fit(given, Y)) == expected
    assert model_bytes(model.fit(twice, Y)) == expected
    assert_array_equal(twice.data, before.data)
    assert_array_equal(twice.indices, before.indices)


def test_rows_without_a_stored_value_and_a_single_row(data):
    X, Y = data
    model = ManyBoostRegressor(max_iter=3, random_state=0).fit(X, Y)
    empty = sparse.csr_array((3, X.shape[1]), dtype=np.float32)
    assert_array_equal(model.predict(empty), model.predict(np.zeros((3, X.shape[1]))))
    one = ManyBoostRegressor(max_iter=2).fit(sparse.csr_array(X[:1]), Y[:1])
    assert one.predict(sparse.csr_array(X[:1])).shape == (1, Y.shape[1])


def test_training_and_validation_rows_may_differ_in_form(data):
    X, Y = data
    model = ManyBoostRegressor(max_iter=6, random_state=0)
    expected = model_bytes(model.fit(X[:300], Y[:300], X_val=X[300:], Y_val=Y[300:]))
    model.fit(X[:300], Y[:300], X_val=sparse.csc_matrix(X[300:]), Y_val=Y[300:])
    assert model_bytes(model) == expected
    model.fit(sparse.csr_matrix(X[:300]), Y[:300], X_val=X[300:], Y_val=Y[300:])
    assert model_bytes(model) == expected


def test_classifiers_warm_starts_and_stages_take_sparse_rows(data):
    X, Y = data
    labels = (Y > 0).astype(int)
    S = sparse.csr_matrix(X)
    model = ManyBoostClassifier(max_iter=4, warm_start=True, random_state=0).fit(S, labels)
    model.set_params(max_iter=8).fit(S, labels)
    expected = ManyBoostClassifier(max_iter=8, random_state=0).fit(X, labels)
    assert model_bytes(model) == model_bytes(expected)
    *_, last = model.staged_predict_proba(S)
    assert_array_equal(last, expected.predict_proba(X))


@pytest.mark.parametrize(
    ("strategy", "estimator"), [("project", Ridge()), ("relabel", DecisionTreeRegressor())]
)
def test_foreign_estimators_get_the_sparse_rows(data, strategy, estimator):
    X, Y = np.nan_to_num(data[0]), data[1]
    if hasattr(estimator, "max_depth"):
        estimator.set_params(max_depth=3, random_state=0)
    model = ManyBoostRegressor(strategy=strategy, estimator=estimator, max_iter=3, random_state=0)
    expected = model.fit(X, Y).predict(X)
    S = sparse.csr_matrix(X)
    np.testing.assert_allclose(model.fit(S, Y).predict(S), expected, atol=1e-2)
