"""What outputs share, and the training rows behind a prediction."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.datasets import make_friedman1_group
from refusals import refusal

RNG = np.random.default_rng(0)
N = 120
X = RNG.normal(size=(N, 4))
X[RNG.random(X.shape) < 0.1] = np.nan
Y = np.nan_to_num(X) @ RNG.normal(size=(4, 3)) + RNG.normal(size=(N, 3)) + [0, 50, -3]
STRATEGIES = ["independent", "multioutput", "project", "relabel"]
SHARED = STRATEGIES[1:]


def regressor(**parameters):
    return ManyBoostRegressor(**{"max_iter": 30, "random_state": 0, **parameters})


# ------------------------------------------------------------------ similarity of outputs


def three_groups(seed=0):
    """Twelve outputs in three groups; each group is one signal of features of its own."""
    parts = [make_friedman1_group(400, n_outputs=4, random_state=seed + k) for k in range(3)]
    return np.hstack([X for X, _ in parts]), np.hstack([Y for _, Y in parts])


@pytest.mark.parametrize("strategy", SHARED)
def test_similarity_finds_the_groups_of_outputs(strategy):
    X, Y = three_groups()
    similarity = regressor(strategy=strategy, max_iter=100).fit(X, Y).output_similarity()
    group = np.arange(12) // 4
    same = group[:, None] == group
    beside = ~np.eye(12, dtype=bool)
    assert similarity[same & beside].min() > similarity[~same].max() + 0.2
    assert abs(similarity[~same]).mean() < 0.2


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_similarity_is_symmetric_with_ones_on_the_diagonal(strategy):
    similarity = regressor(strategy=strategy).fit(X, Y).output_similarity()
    np.testing.assert_array_equal(similarity, similarity.T)
    np.testing.assert_array_equal(np.diag(similarity), 1)
    assert np.abs(similarity).max() <= 1
    if strategy == "independent":
        np.testing.assert_array_equal(similarity, np.eye(3))


@pytest.mark.parametrize("strategy", SHARED)
def test_opposite_outputs_are_opposite_and_scales_do_not_matter(strategy):
    y = Y[:, 0]
    outputs = np.column_stack([y, -7 * y, np.ones(N)])
    similarity = regressor(strategy=strategy).fit(X, outputs).output_similarity()
    np.testing.assert_allclose(similarity, [[1, -1, 0], [-1, 1, 0], [0, 0, 1]], atol=1e-6)


@pytest.mark.parametrize("strategy", SHARED)
def test_similarity_is_the_correlation_of_what_trees_add_to_training_rows(strategy):
    model = regressor(strategy=strategy).fit(X, Y)
    raw = np.array([model.baseline_ + 0 * Y, *model.staged_predict(X)])
    added = np.diff(raw, axis=0)
    added -= added.mean(axis=1, keepdims=True)
    added = added.reshape(-1, 3)
    lengths = np.sqrt((added**2).sum(axis=0))
    expected = added.T @ added / np.outer(lengths, lengths)
    np.testing.assert_allclose(model.output_similarity(), expected, atol=1e-5)


def test_similarity_of_labels():
    labels = np.column_stack([Y[:, 0] > 0, Y[:, 0] > 0.1, Y[:, 0] < 0]).astype(int)
    similarity = ManyBoostClassifier(max_iter=20, random_state=0).fit(X, labels)
    similarity = similarity.output_similarity()
    assert similarity[0, 1] > 0.5
    assert similarity[0, 2] < -0.9


def test_similarity_needs_built_in_trees():
    dense = np.nan_to_num(X)
    foreign = regressor(estimator=Ridge(), strategy="project").fit(dense, Y)
    assert "built-in trees" in refusal(foreign.output_similarity)


# ------------------------------------------------------------------ weights of training rows


def check_weights(model, y=Y, sample_weight=None, shape=None, X_new=None, X=X):
    """The weights give the predictions, and add up to one."""
    X_new = X[:40] if X_new is None else X_new
    weights = model.training_weights(X_new, X, y, sample_weight)
    assert weights.shape == (X_new.shape[0], len(y)) + (() if shape is None else shape)
    columns = np.nan_to_num(y.reshape(len(y), -1))
    each = weights if weights.ndim == 3 else weights[..., None]
    each = np.broadcast_to(each, (*each.shape[:2], columns.shape[1]))
    found = np.einsum("ijk,jk->ik", each, columns)
    predicted = model.predict(X_new).reshape(found.shape)
    np.testing.assert_allclose(found, predicted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(each.sum(axis=1), 1, atol=1e-9)
    assert np.abs(predicted - columns.mean(axis=0)).max() > 0.5, "the trees do something"
    return weights


@pytest.mark.parametrize("step", ["newton", "line_search"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_predictions_are_weighted_sums_of_the_targets(strategy, step):
    model = regressor(strategy=strategy, step=step).fit(X, Y)
    check_weights(model, shape=(3,) if strategy == "independent" else None)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_output(strategy):
    check_weights(regressor(strategy=strategy).fit(X, Y[:, 0]), Y[:, 0])


def test_rows_that_were_not_trained_on():
    X_new = np.random.default_rng(5).normal(size=(9, 4))
    check_weights(regressor().fit(X, Y), X_new=X_new)


def test_a_single_tree_gives_the_mean_of_a_leaf():
    model = regressor(max_iter=1, learning_rate=1.0, max_leaf_nodes=2).fit(X, Y)
    weights = check_weights(model)
    leaves = {len(row[row > 1e-12]) for row in weights}
    assert len(leaves) == 2
    assert sum(leaves) == N
    for row in weights:
        np.testing.assert_allclose(row[row > 1e-12], 1 / (row > 1e-12).sum())


@pytest.mark.parametrize(
    "parameters",
    [
        {"subsample": 0.5},
        {"l2_regularization": 3.0},
        {"max_features": 0.5, "projection": "rademacher", "output_scaling": None},
        {"categorical_features": [3]},
        {"n_components": 2, "strategy": "relabel"},
    ],
    ids=lambda parameters: next(iter(parameters)),
)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_parameters_that_change_the_weights(parameters, strategy):
    if parameters.get("strategy", strategy) != strategy:
        return
    X_codes = X.copy()
    X_codes[:, 3] = np.round(np.abs(X_codes[:, 3]))
    model = regressor(**{"strategy": strategy, **parameters}).fit(X_codes, Y)
    check_weights(model, X=X_codes, shape=(3,) if strategy == "independent" else None)


@pytest.mark.parametrize("subsample", [1.0, 0.6])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_weights_of_rows_and_of_cells_and_missing_targets(strategy, subsample):
    rng = np.random.default_rng(1)
    rows = rng.random(N) + 0.2
    rows[:7] = 0
    model = regressor(strategy=strategy, subsample=subsample).fit(X, Y, rows)
    shape = (3,) if strategy == "independent" else None
    weights = check_weights(model, sample_weight=rows, shape=shape)
    assert not weights[:, :7].any()
    cells = rng.random((N, 3)) + 0.2
    gaps = np.where(rng.random((N, 3)) < 0.3, np.nan, Y)
    for y, weight in [(Y, cells), (gaps, None), (gaps, cells)]:
        model = regressor(strategy=strategy, subsample=subsample).fit(X, y, weight)
        weights = check_weights(model, y, weight, (3,))
        assert not weights[:, np.isnan(y)].any()


@pytest.mark.parametrize("early_stopping", [True, "per_output"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_validation_rows_from_these_or_others(strategy, early_stopping):
    parameters = {"strategy": strategy, "early_stopping": early_stopping, "n_iter_no_change": 3}
    by_output = strategy == "independent" or early_stopping == "per_output"
    shape = (3,) if by_output else None
    model = regressor(**parameters).fit(X, Y)
    weights = check_weights(model, shape=shape)
    assert (weights == 0).all(axis=0).reshape(N, -1)[:, 0].sum() >= N // 10
    model = regressor(**parameters).fit(X, Y, X_val=X[::2], Y_val=Y[::2] + 0.1)
    check_weights(model, shape=shape)


def test_sparse_features():
    rng = np.random.default_rng(2)
    dense = np.where(rng.random((N, 10)) < 0.3, 1.0, 0.0)
    y = dense @ rng.normal(size=(10, 2))
    rows = sparse.csr_matrix(dense)
    check_weights(regressor().fit(rows, y), y, X=rows)


def test_what_has_no_weights_is_refused():
    model = regressor().fit(X, Y)
    huber = regressor(loss="huber").fit(X, Y)
    assert "loss='huber'" in refusal(lambda: huber.training_weights(X, X, Y))
    monotone = regressor(monotonic_cst=[1, 0, 0, 0]).fit(X, Y)
    assert "monotonic_cst" in refusal(lambda: monotone.training_weights(X, X, Y))
    shifted = regressor().fit(X, Y, offset=Y)
    assert "offset" in refusal(lambda: shifted.training_weights(X, X, Y))
    foreign = regressor(estimator=Ridge(), strategy="project").fit(np.nan_to_num(X), Y)
    assert "built-in" in refusal(lambda: foreign.training_weights(*[np.nan_to_num(X)] * 2, Y))
    assert "2 outputs" in refusal(lambda: model.training_weights(X, X, Y[:, :2]))


def test_other_data_than_those_of_the_fit_are_refused():
    model = regressor().fit(X, Y)
    assert "baseline" in refusal(lambda: model.training_weights(X, X, Y + 1))
    weight = np.linspace(1, 2, N)
    assert "baseline" in refusal(lambda: model.training_weights(X, X, Y, weight))
    assert "reproduce" in refusal(lambda: model.training_weights(X, X[::-1], Y))
    model.set_params(learning_rate=0.02)
    assert "parameters" in refusal(lambda: model.training_weights(X, X, Y))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_refit_uses_all_rows_where_training_drew_some(strategy):
    model = regressor(strategy=strategy, subsample=0.5).fit(X, Y).refit(X, Y)
    check_weights(model, shape=(3,) if strategy == "independent" else None)


def test_the_automatic_rate_of_earlier_files_is_known():
    """It fell with the rounds: 20 / max_iter, from 0.1 down to 0.05."""
    for max_iter, rate in [(100, 0.1), (300, 20 / 300)]:
        model = regressor(max_iter=max_iter, learning_rate=rate).fit(X, Y)
        expected = model.training_weights(X[:9], X, Y)
        model.set_params(learning_rate="auto")
        np.testing.assert_array_equal(model.training_weights(X[:9], X, Y), expected)
