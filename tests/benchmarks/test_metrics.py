"""The vectorised scores agree with scikit-learn's."""

import numpy as np
import pytest
import sklearn.metrics
from benchmarks.metrics import auc, log_loss, lrap, macro_r2


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("distinct", [5, 1000], ids=["many ties", "few ties"])
def test_lrap_is_sklearns_also_with_ties_and_rows_without_labels(rng, distinct):
    Y = (rng.random((300, 12)) < 0.15).astype(np.uint8)
    Y[0], Y[1] = 0, 1
    raw = rng.integers(distinct, size=Y.shape).astype(np.float32)
    expected = sklearn.metrics.label_ranking_average_precision_score(Y, raw)
    assert lrap(Y, raw) == pytest.approx(expected, abs=1e-12)


def test_auc_is_sklearns_also_with_ties(rng):
    y, raw = rng.integers(2, size=400), rng.integers(20, size=400)
    assert auc(y, raw) == pytest.approx(sklearn.metrics.roc_auc_score(y, raw), abs=1e-12)


def test_macro_r2_is_sklearns_on_the_outputs_that_vary(rng):
    Y = rng.standard_normal((200, 4)).astype(np.float32)
    prediction = Y + rng.standard_normal(Y.shape).astype(np.float32)
    expected = sklearn.metrics.r2_score(Y, prediction)
    constant = np.ones((200, 1), np.float32)
    Y, prediction = np.hstack([Y, constant]), np.hstack([prediction, constant])
    assert macro_r2(Y, prediction) == pytest.approx(expected, abs=1e-6)


def test_log_loss_is_sklearns_of_the_softmax(rng):
    raw, y = rng.standard_normal((100, 5)), rng.integers(5, size=100)
    probability = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
    expected = sklearn.metrics.log_loss(y, probability, labels=range(5))
    assert log_loss(y, raw) == pytest.approx(expected, abs=1e-12)
