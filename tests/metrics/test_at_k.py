"""Metrics of the best labels of each row, against hand-made cases and the published formulas."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import ndcg_score

from manyboost import ManyBoostClassifier, metrics

TRUTH = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0]])
SCORES = np.array(
    [[0.9, 0.8, 0.1, 0.0], [0.5, 0.4, 0.3, 0.2], [0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4]]
)
PROPENSITIES = np.array([0.5, 0.25, 1.0, 0.8])


def test_precision_counts_the_true_labels_among_the_best():
    assert metrics.precision_at_k(TRUTH, SCORES, 1) == pytest.approx((1 + 0 + 0 + 0) / 4)
    assert metrics.precision_at_k(TRUTH, SCORES, 2) == pytest.approx((1 + 1 + 0 + 1) / 8)


def test_recall_leaves_out_rows_without_labels():
    assert metrics.recall_at_k(TRUTH, SCORES, 2) == pytest.approx((1 / 2 + 1 + 1 / 3) / 3)


def test_discounted_gain_is_that_of_the_definition():
    at = [1 / math.log2(place + 1) for place in (1, 2)]
    expected = (at[0] / sum(at) + at[1] / at[0] + at[1] / sum(at)) / 3
    assert metrics.ndcg_at_k(TRUTH, SCORES, 2) == pytest.approx(expected)


def test_discounted_gain_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    truth = (rng.random((50, 20)) < 0.2).astype(int)
    truth[:, 0] |= truth.sum(axis=1) == 0
    scores = rng.normal(size=truth.shape)
    for k in (1, 3, 20):
        assert metrics.ndcg_at_k(truth, scores, k) == pytest.approx(ndcg_score(truth, scores, k=k))


def test_propensities_are_those_of_the_published_formula():
    Y = np.zeros((100, 3), int)
    Y[:40, 0], Y[:5, 1] = 1, 1
    c = (math.log(100) - 1) * (1.5 + 1) ** 0.55
    expected = [1 / (1 + c * math.exp(-0.55 * math.log(n + 1.5))) for n in (40, 5, 0)]
    assert metrics.label_propensities(Y) == pytest.approx(expected)
    assert metrics.label_propensities(sparse.csr_matrix(Y)) == pytest.approx(expected)
    other = metrics.label_propensities(Y, a=0.6, b=2.6)[0]
    c = (math.log(100) - 1) * 3.6**0.6
    assert other == pytest.approx(1 / (1 + c * (40 + 2.6) ** -0.6))


def test_propensity_scored_precision_weighs_the_hits():
    hits = [1 / 0.5, 1 / 0.25, 0, 1 / 1.0]
    best = [1 / 0.5 + 1 / 1.0, 1 / 0.25, 0, 1 / 0.25 + 1 / 0.5]
    plain = metrics.propensity_scored_precision_at_k(
        TRUTH, SCORES, 2, PROPENSITIES, normalize=False
    )
    assert plain == pytest.approx(sum(hits) / 2 / 4)
    share = metrics.propensity_scored_precision_at_k(TRUTH, SCORES, 2, PROPENSITIES)
    assert share == pytest.approx(sum(hits) / sum(best))


def test_propensity_scored_gain_weighs_the_hits_by_place():
    d = [1 / math.log2(2), 1 / math.log2(3)]
    hits = [d[0] / 0.5, d[1] / 0.25, 0, d[1] / 1.0]
    best = [d[0] / 0.5 + d[1] / 1.0, d[0] / 0.25, 0, d[0] / 0.25 + d[1] / 0.5]
    plain = metrics.propensity_scored_ndcg_at_k(TRUTH, SCORES, 2, PROPENSITIES, normalize=False)
    assert plain == pytest.approx(sum(hits) / sum(d) / 4)
    share = metrics.propensity_scored_ndcg_at_k(TRUTH, SCORES, 2, PROPENSITIES)
    assert share == pytest.approx(sum(hits) / sum(best))


@pytest.mark.parametrize(
    "metric", [metrics.propensity_scored_precision_at_k, metrics.propensity_scored_ndcg_at_k]
)
def test_rows_without_labels_have_no_best_ranking_to_compare_with(metric):
    nothing = np.zeros_like(TRUTH)
    with pytest.raises(ValueError, match="y_true has no label in rows of positive weight"):
        metric(nothing, SCORES, 2, PROPENSITIES)
    assert metric(nothing, SCORES, 2, PROPENSITIES, normalize=False) == 0


def test_an_indicator_stays_as_it_is():
    arrays = np.array([1, 1, 0, 1]), np.array([2, 0, 3, 1]), np.array([0, 3, 4])
    for array in arrays:
        array.flags.writeable = False
    truth = sparse.csr_matrix(arrays, shape=(2, 4))
    assert metrics.precision_at_k(truth, SCORES[:2], 1) == 0.5
    assert truth.nnz == 4
    assert truth.indices.tolist() == [2, 0, 3, 1]


def test_labels_in_another_order_than_in_fit_are_refused():
    X = np.random.default_rng(0).normal(size=(60, 2))
    labels = pd.DataFrame((X > 0).astype(int), columns=["a", "b"])
    model = ManyBoostClassifier(max_iter=2, random_state=0).fit(X, labels)
    scorer = metrics.TopKScorer("precision", 1)
    assert scorer(model, X, labels) == scorer(model, X, labels.to_numpy())
    with pytest.raises(ValueError, match="y has the outputs of fit in another order"):
        scorer(model, X, labels[["b", "a"]])


def test_scores_and_ranked_numbers_give_the_same():
    rng = np.random.default_rng(1)
    truth = sparse.random(300, 5000, 0.002, "csr", rng=rng)
    truth.data[:] = 1
    scores = rng.normal(size=truth.shape)
    ranked = np.argsort(-scores, axis=1)[:, :7]
    for metric in (metrics.precision_at_k, metrics.recall_at_k, metrics.ndcg_at_k):
        of_scores = metric(truth, scores, 5)
        assert metric(truth, ranked, 5) == of_scores
        assert metric(truth.toarray(), ranked.astype(np.uint32), 5) == of_scores


def test_the_first_of_equal_scores_comes_first():
    assert metrics.precision_at_k([[0, 1, 0]], [[0.5, 0.5, 0.5]], 1) == 0
    assert metrics.precision_at_k([[0, 1, 0]], [[0.5, 0.5, 0.5]], 2) == 0.5


def test_weights_of_rows_count():
    weight = [3, 0, 0, 1]
    assert metrics.precision_at_k(TRUTH, SCORES, 1, sample_weight=weight) == pytest.approx(3 / 4)


def test_no_array_of_rows_and_labels_is_made():
    cells = np.ones(3, np.int8), ([0, 1, 2], [5, 7, 2_000_000_000])
    truth, best = sparse.csr_matrix(cells, shape=(3, 2_000_000_001)), [[5, 1], [1, 7], [1, 2]]
    assert metrics.precision_at_k(truth, best, 2) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("y_true", "y_pred", "k", "message"),
    [
        (TRUTH, SCORES, 0, "k=0 is not allowed; it must be an integer from 1 to 4"),
        (TRUTH, SCORES, 5, "k=5 is not allowed"),
        (TRUTH, SCORES[:, :3], 1, r"y_pred has shape \(4, 3\), but y_true has \(4, 4\)"),
        (TRUTH * 2, SCORES, 1, "y_true has the value 2; it must hold 0 and 1"),
        (TRUTH[0], SCORES[0], 1, "it must have a column for each label"),
        (TRUTH, [[0], [1], [2], [4]], 1, "y_pred names a label outside 0 … 3"),
        (TRUTH, [[0, 0], [1, 2], [2, 1], [1, 3]], 2, "y_pred names a label twice in a row"),
        (TRUTH, [[0], [1], [2], [3]], 2, "names 1 labels for each row, but k=2"),
        (TRUTH, np.full((4, 4), np.nan), 1, "a missing score"),
        (TRUTH, [["a"], ["b"], ["c"], ["d"]], 1, "numbers of labels as integers"),
        (TRUTH, sparse.csr_matrix(SCORES), 1, "y_pred is a sparse matrix"),
    ],
)
def test_what_is_no_ranking_is_refused(y_true, y_pred, k, message):
    with pytest.raises(ValueError, match=message):
        metrics.precision_at_k(y_true, y_pred, k)


def test_wrong_propensities_are_refused():
    for wrong in ([0.5, 0.5], [0.5, 0.5, 0.5, 0.0]):
        with pytest.raises(ValueError, match="one such number for each of the 4 labels"):
            metrics.propensity_scored_precision_at_k(TRUTH, SCORES, 1, wrong)
