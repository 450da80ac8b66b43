"""An interrupt at any line of training leaves whole rounds, or the estimator as it was."""

import sys
from unittest import mock

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from manyboost import ManyBoostClassifier, ManyBoostRegressor
from manyboost.persistence.model import to_parts

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ RNG.normal(size=(3, 2)) + RNG.normal(size=(60, 2))
FILES = ("boosting.py", "stopping.py")


def interrupted_at(line, fit):
    """Run a fit that an interrupt hits at the given line of training; False if it ended before."""
    seen = 0

    def trace(frame, event, argument):
        nonlocal seen
        if not frame.f_code.co_filename.endswith(FILES):
            return None
        if event == "line":
            seen += 1
            if seen == line:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        fit()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def stored(model):
    return b"".join(to_parts(model, "all"))


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"strategy": "independent", "step": "line_search"},
        {"strategy": "project"},
    ],
)
def test_the_rounds_that_were_complete_are_kept_whole(parameters):
    def make(rounds):
        return ManyBoostRegressor(
            max_iter=rounds, max_leaf_nodes=3, random_state=0, learning_rate=0.1, **parameters
        )

    whole = {n: stored(make(n).fit(X, Y).set_params(max_iter=3)) for n in (1, 2, 3)}
    kept = set()
    for line in range(1, 100_000, 3):
        model = make(3)
        if not interrupted_at(line, lambda model=model: model.fit(X, Y)):
            break
        if hasattr(model, "n_iter_"):
            kept.add(model.n_iter_)
            assert stored(model) == whole[model.n_iter_], line
        else:
            assert vars(model) == vars(make(3)), line
    # Interrupts hit all rounds, and some came before the first.
    assert kept == {1, 2, 3}
    assert line > 100


@pytest.mark.parametrize("early_stopping", [True, "per_output"])
def test_of_rounds_that_are_scored_the_best_is_kept(early_stopping):
    noise = np.random.default_rng(1).normal(size=60)
    Z = np.column_stack([Y[:, 0], noise])  # the second soon gets worse

    def make(**parameters):
        return ManyBoostRegressor(
            **parameters,
            max_leaf_nodes=3,
            random_state=0,
            learning_rate=0.9,
            early_stopping=early_stopping,
            n_iter_no_change=100,
            validation_fraction=0.3,
        )

    whole = {n: make(max_iter=n).fit(X, Z).set_params(max_iter=6) for n in range(1, 7)}
    assert np.min(getattr(whole[6], "best_iter_per_output_", whole[6].n_iter_)) < 6
    expected = {stored(model) for model in whole.values()}
    found = set()
    for line in range(1, 100_000, 5):
        model = make(max_iter=6)
        if not interrupted_at(line, lambda model=model: model.fit(X, Z)):
            break
        if hasattr(model, "n_iter_"):
            found.add(stored(model))
            assert found <= expected, line
    assert len(found) > 1


def test_an_interrupt_before_the_first_round_leaves_the_last_model():
    model = ManyBoostRegressor(max_iter=2, random_state=0).fit(X, Y)
    before, expected = dict(vars(model)), model.predict(X)
    assert interrupted_at(3, lambda: model.fit(X[:, :2], Y[:, 0]))
    assert vars(model) == before
    np.testing.assert_array_equal(model.predict(X), expected)
    blank = ManyBoostRegressor()
    assert interrupted_at(3, lambda: blank.fit(X, Y))
    with pytest.raises(NotFittedError):
        blank.predict(X)


@pytest.mark.parametrize(
    ("step", "parameters"),
    [
        ("tune_thresholds", {"thresholds": "tuned"}),
        ("tune_thresholds", {"thresholds": "tuned", "n_folds": 3}),
        ("fit_calibrator", {"calibration": "sigmoid", "n_folds": 3}),
    ],
)
def test_an_interrupt_after_training_leaves_no_model_without_what_it_was_to_find(step, parameters):
    model = ManyBoostClassifier(max_iter=4, random_state=0)
    interrupt = mock.patch(f"manyboost.estimators.classifier.{step}", side_effect=KeyboardInterrupt)
    with interrupt, pytest.raises(KeyboardInterrupt):
        model.set_params(**parameters).fit(X, Y > 0)
    with pytest.raises(NotFittedError):
        model.predict(X)
    expected = stored(model.fit(X, Y > 0))
    with interrupt, pytest.raises(KeyboardInterrupt):
        model.fit(X, Y > 0.3)
    assert stored(model) == expected
