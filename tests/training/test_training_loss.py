"""With exact line searches the training loss never rises: the convergence proof of the paper."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.training.losses import LABEL_LOSSES, REGRESSION_LOSSES
from manyboost.training.projections import PROJECTIONS
from positive_targets import positive

STRATEGIES = ["independent", "multioutput", "project", "relabel"]
RATES = [1.0, 0.5, 0.1]


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n, p, d = rng.integers(20, 120), rng.integers(1, 5), rng.integers(2, 6)
    X = rng.normal(size=(n, p)).round(int(rng.integers(0, 3)))
    Y = X @ rng.normal(size=(p, d)) + rng.standard_t(3, size=(n, d))
    shape = {
        "max_leaf_nodes": int(rng.integers(2, 9)),
        "min_samples_leaf": int(rng.integers(1, 6)),
        "max_iter": 12,
        "random_state": int(seed),
    }
    return X, Y, shape


def assert_never_rises(model):
    losses = -model.train_score_
    rises = np.diff(losses)
    assert (rises <= 2e-6 * np.abs(losses[:-1]) + 1e-9).all(), losses
    assert np.isfinite(losses).all()


CASES = [("independent", "gaussian"), ("multioutput", "gaussian")]
CASES += [("project", name) for name in PROJECTIONS if name != "identity"]
CASES += [("relabel", name) for name in PROJECTIONS]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("loss", [*REGRESSION_LOSSES, "labels-log_loss", "labels-exponential",
                                  "labels-squared_error", "softmax"])  # fmt: skip
@pytest.mark.parametrize(("strategy", "projection"), CASES)
def test_training_loss_never_rises(strategy, projection, loss, rate):
    seed = CASES.index((strategy, projection))
    X, Y, shape = random_problem(seed)
    common = {"strategy": strategy, "step": "line_search", "learning_rate": rate,
              "projection": projection} | shape  # fmt: skip
    if loss == "softmax":
        classes = np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.3, 0.6, 0.8]))
        model = ManyBoostClassifier(**common).fit(X, classes)
    elif loss.startswith("labels-"):
        labels = (np.quantile(Y, 0.7, axis=0) < Y).astype(int)
        model = ManyBoostClassifier(loss=loss.removeprefix("labels-"), **common).fit(X, labels)
    else:
        if loss in ("poisson", "gamma", "tweedie"):
            Y = positive(loss, np.exp(np.clip(Y, -5, 5)))
        model = ManyBoostRegressor(loss=loss, quantile=0.8, **common).fit(X, Y)
    assert_never_rises(model)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    strategy=st.sampled_from(STRATEGIES),
    loss=st.sampled_from([*REGRESSION_LOSSES, *("labels-" + name for name in LABEL_LOSSES)]),
    rate=st.sampled_from(RATES),
    projection=st.sampled_from([name for name in PROJECTIONS if name != "identity"]),
    weighted=st.booleans(),
)
# Rows far on the right side of a label must not hide what a step does to the others.
@example(
    seed=1949,
    strategy="multioutput",
    loss="labels-exponential",
    rate=1.0,
    projection="gaussian",
    weighted=True,
)
def test_training_loss_never_rises_on_random_data(seed, strategy, loss, rate, projection, weighted):
    X, Y, shape = random_problem(seed)
    weight = np.random.default_rng(seed).exponential(size=len(X)) if weighted else None
    common = {"strategy": strategy, "step": "line_search", "learning_rate": rate,
              "projection": projection} | shape  # fmt: skip
    if loss.startswith("labels-"):
        labels = (np.quantile(Y, 0.8, axis=0) < Y).astype(int)
        model = ManyBoostClassifier(loss=loss.removeprefix("labels-"), **common)
        model.fit(X, labels, weight)
    else:
        if loss in ("poisson", "gamma", "tweedie"):
            Y = positive(loss, np.exp(np.clip(Y, -5, 5)))
        model = ManyBoostRegressor(loss=loss, quantile=0.25, **common).fit(X, Y, weight)
    assert_never_rises(model)
