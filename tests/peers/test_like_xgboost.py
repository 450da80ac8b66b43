"""What users of XGBoost's estimators rely on, written anew for these estimators.

Not taken over, with the reason:

- survival (Cox, AFT) and ranking objectives, gblinear, dart: other problems and algorithms
- ``DMatrix``, ``QuantileDMatrix``, ``Booster``, JSON models, GPU: other interfaces and machines
- slices of a model by step: ``first_rounds`` gives the beginning, which is what stopping needs
- values of ``missing`` other than NaN: replace them in X
- process of updating or pruning a model in place: ``refit`` fits leaves to other data
"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_regression
from sklearn.metrics import mean_pinball_loss

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.datasets import make_friedman1_group

RNG = np.random.default_rng(0)
X, Y = make_regression(n_samples=400, n_features=6, n_targets=3, noise=5.0, random_state=0)
LABELS = (Y > 0).astype(int)


@pytest.mark.parametrize("strategy", ["multioutput", "independent", "relabel", "project"])
def test_several_outputs_are_one_model(strategy):
    model = ManyBoostRegressor(strategy=strategy, max_iter=200, random_state=0).fit(X, Y)
    assert model.predict(X).shape == (400, 3)
    assert model.score(X, Y) > 0.8
    n_trees = model.info()["n_trees"]
    assert n_trees == model.n_iter_ * (3 if strategy == "independent" else 1)


def test_trees_of_all_outputs_learn_related_ones_from_less():
    data, outputs = make_friedman1_group(n_rows=600, n_outputs=16, random_state=0)
    shared = ManyBoostRegressor(random_state=0).fit(data[:300], outputs[:300])
    alone = ManyBoostRegressor(strategy="independent", random_state=0)
    alone.fit(data[:300], outputs[:300])
    assert shared.score(data[300:], outputs[300:]) > alone.score(data[300:], outputs[300:]) - 0.02
    assert shared.info()["n_trees"] < alone.info()["n_trees"]


def test_labels_are_predicted_one_by_one_with_their_probabilities():
    model = ManyBoostClassifier(max_iter=60, random_state=0).fit(X, LABELS)
    proba = model.predict_proba(X)
    assert proba.shape == LABELS.shape
    np.testing.assert_array_equal(model.predict(X), proba > 0.5)
    assert (model.predict(X) == LABELS).mean() > 0.95


def test_margins_and_base_margins_add_up():
    y = LABELS[:, 0]
    model = ManyBoostClassifier(max_iter=20, random_state=0).fit(X, y)
    margin = model.decision_function(X)
    np.testing.assert_allclose(1 / (1 + np.exp(-margin)), model.predict_proba(X)[:, 1], rtol=1e-6)
    shifted = ManyBoostClassifier(max_iter=20, random_state=0).fit(X, y, offset=np.ones(400))
    np.testing.assert_allclose(
        shifted.decision_function(X, offset=np.ones(400)), margin, rtol=1e-3, atol=1e-3
    )


def test_quantiles_of_one_model_do_not_cross():
    rng = np.random.default_rng(1)
    y = X[:, 0] + (1 + np.abs(X[:, 0])) * rng.normal(size=400)
    levels = [0.1, 0.5, 0.9]
    model = ManyBoostRegressor("quantile", quantile=levels, random_state=0).fit(X, y)
    predictions = model.predict(X)
    assert (np.diff(predictions, axis=1) >= 0).all()
    for j, level in enumerate(levels):
        constant = np.full(400, np.quantile(y, level))
        ours = mean_pinball_loss(y, predictions[:, j], alpha=level)
        assert ours < mean_pinball_loss(y, constant, alpha=level)


def test_contributions_add_up_to_the_margin():
    model = ManyBoostClassifier(max_iter=10, random_state=0).fit(X, LABELS)
    total = model.shap_values(X).sum(axis=1) + model.expected_value_
    np.testing.assert_allclose(total, model.decision_function(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix])
def test_a_value_that_is_not_stored_is_zero_and_not_missing(make):
    rng = np.random.default_rng(1)
    dense = np.where(rng.random((400, 2)) < 0.3, 0.0, 1 + rng.random((400, 2)))
    model = ManyBoostRegressor(max_iter=10, random_state=0).fit(dense, dense[:, 0] == 0)
    np.testing.assert_array_equal(model.predict(make(dense)), model.predict(dense))
    # Missing values go to the larger side, zeros to the other one.
    assert model.predict(make([[0.0, 1.5]])) > 0.5 > model.predict([[np.nan, 1.5]])


def test_training_goes_on_from_a_fitted_model():
    model = ManyBoostRegressor(max_iter=10, random_state=0, warm_start=True).fit(X, Y)
    ten = model.predict(X)
    model.set_params(max_iter=20).fit(X, Y)
    assert model.n_iter_ == 20
    np.testing.assert_array_equal(list(model.staged_predict(X))[9], ten)


def test_rounds_stop_by_the_evaluation_set_and_callbacks():
    model = ManyBoostRegressor(max_iter=500, n_iter_no_change=3, learning_rate=0.5, random_state=0)
    model.fit(X[:300], Y[:300], X_val=X[300:], y_val=Y[300:])
    assert model.n_iter_ < 500
    seen = []

    def five(state):
        seen.append(state.round)
        return state.round == 5

    assert ManyBoostRegressor(callbacks=[five], random_state=0).fit(X, Y).n_iter_ == 5
    assert seen == [1, 2, 3, 4, 5]


def test_counts_need_targets_that_are_not_negative():
    rng = np.random.default_rng(1)
    counts = rng.poisson(np.exp(X[:, 0] / 3))
    model = ManyBoostRegressor("poisson", max_iter=50, random_state=0).fit(X, counts)
    assert model.predict(X).min() > 0
    with pytest.raises(ValueError, match="loss='poisson' needs counts of at least zero"):
        ManyBoostRegressor("poisson").fit(X, -1.0 - counts)


def test_classes_must_be_those_of_fit_and_need_not_be_numbers_from_zero():
    classes = np.array([10, 30, 50])[Y.argmax(axis=1)]
    model = ManyBoostClassifier(max_iter=20, random_state=0).fit(X, classes)
    assert set(model.predict(X)) <= {10, 30, 50}
    with pytest.raises(ValueError, match="has the class 99"):
        ManyBoostClassifier().fit(X, classes, X_val=X, y_val=np.full(400, 99))


def test_frames_need_the_columns_of_fit():
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(6)])
    model = ManyBoostRegressor(max_iter=5, random_state=0).fit(frame, Y)
    with pytest.raises(ValueError, match="yet now missing:\n- f0"):
        model.predict(frame.drop(columns="f0"))


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_threads_do_not_change_the_model(n_jobs):
    model = ManyBoostRegressor(max_iter=10, random_state=0, n_jobs=n_jobs).fit(X, Y)
    one = ManyBoostRegressor(max_iter=10, random_state=0, n_jobs=1).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), one.predict(X))


def test_its_names_are_answered():
    with pytest.raises(TypeError, match="in manyboost this is X_val and y_val"):
        ManyBoostRegressor().fit(X, Y, eval_set=[(X, Y), (X, Y)])
    with pytest.raises(TypeError, match="in manyboost this is first_rounds"):
        ManyBoostRegressor(max_iter=2).fit(X, Y).predict(X, iteration_range=(0, 1))
