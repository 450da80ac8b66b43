"""Starting, continuing and ending a fit; running several; and what users put into it."""

import pickle
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from manyboost import Loss, ManyBoostClassifier, ManyBoostRegressor
from manyboost.data.rows import make_rows, split_validation
from small_problems import stepped_labels as labels
from small_problems import stepped_numbers as numbers

STRATEGIES = ["independent", "multioutput", "project", "relabel"]

# Seconds from Ctrl-C to the exception, at most.
PROMPT = 0.5


def regressor(**parameters):
    return ManyBoostRegressor(**{"max_iter": 10, "random_state": 0, **parameters})


def classifier(**parameters):
    return ManyBoostClassifier(**{"max_iter": 10, "random_state": 0, **parameters})


def model_bytes(model):
    return model._progress.model.trees.to_bytes()


# Warm starts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("step", ["newton", "line_search"])
def test_fifty_rounds_and_fifty_more_are_a_hundred(strategy, step):
    for make, (X, Y) in [(regressor, numbers()), (classifier, labels())]:
        parameters = {
            "strategy": strategy,
            "step": step,
            "subsample": 0.7,
            "max_features": 0.5,
        }
        at_once = make(max_iter=100, **parameters).fit(X, Y)
        twice = make(max_iter=50, warm_start=True, **parameters).fit(X, Y)
        assert twice.n_iter_ == 50
        twice.set_params(max_iter=100).fit(X, Y)
        assert twice.n_iter_ == 100
        assert model_bytes(twice) == model_bytes(at_once)
        assert np.array_equal(twice.predict(X), at_once.predict(X))
        assert np.array_equal(twice.train_score_, at_once.train_score_)
        assert np.array_equal(twice.output_importances_, at_once.output_importances_)
        if hasattr(at_once, "step_sizes_"):
            assert np.array_equal(twice.step_sizes_, at_once.step_sizes_)


@pytest.mark.parametrize("loss", ["absolute_error", "huber", "poisson"])
def test_any_loss_can_be_continued(loss):
    X, Y = labels()
    at_once = regressor(loss=loss, max_iter=10).fit(X, Y)
    twice = regressor(loss=loss, max_iter=5, warm_start=True).fit(X, Y)
    assert model_bytes(twice.set_params(max_iter=10).fit(X, Y)) == model_bytes(at_once)


def test_classes_can_be_continued():
    X, Y = numbers()
    y = np.array(["x", "y", "z"])[Y.argmax(axis=1)]
    at_once = classifier().fit(X, y)
    twice = classifier(max_iter=4, warm_start=True).fit(X, y).set_params(max_iter=10).fit(X, y)
    assert model_bytes(twice) == model_bytes(at_once)


def test_a_pickled_model_can_be_continued():
    X, Y = numbers()
    begun = regressor(max_iter=4, warm_start=True, random_state=None).fit(X, Y)
    resumed = pickle.loads(pickle.dumps(begun)).set_params(max_iter=10).fit(X, Y)
    assert model_bytes(resumed) == model_bytes(begun.set_params(max_iter=10).fit(X, Y))


def test_rounds_already_done_are_not_repeated():
    X, Y = numbers()
    calls = []

    def projection(n_components, n_outputs, rng):
        calls.append(1)
        return rng.normal(size=(n_components, n_outputs))

    model = regressor(projection=projection, warm_start=True).fit(X, Y)
    before = model_bytes(model)
    assert model_bytes(model.fit(X, Y)) == before
    assert len(calls) == 10
    assert model.set_params(warm_start=False).fit(X, Y).n_iter_ == 10
    assert len(calls) == 20


@pytest.mark.parametrize(
    ("parameters", "one_column", "expected"),
    [
        ({}, False, 300),
        ({"early_stopping": True}, False, 1000),
        ({"n_folds": 2}, False, 1000),
        ({"strategy": "independent", "early_stopping": True}, False, 100),
        ({"early_stopping": True}, True, 100),
        ({"max_iter": 7, "early_stopping": True}, False, 7),
    ],
)
def test_rounds_by_default_are_more_where_validation_rows_end_training(
    parameters, one_column, expected
):
    X, Y = numbers()
    seen = []

    def stop(state):
        seen.append(state.max_iter)
        return True

    model = regressor(**{"max_iter": "auto", "callbacks": [stop], **parameters})
    model.fit(X, Y[:, 0] if one_column else Y)
    assert set(seen) == {expected}


def test_a_warm_start_says_that_the_automatic_rounds_are_made():
    X, Y = numbers()
    model = regressor(max_iter="auto", warm_start=True, max_leaf_nodes=2).fit(X, Y)
    content = model_bytes(model)
    with pytest.warns(UserWarning, match=r"all 300 rounds of .*max_iter=model.n_iter_ \+ 100"):
        model.fit(X, Y)
    assert model_bytes(model) == content
    assert model.set_params(max_iter=model.n_iter_ + 2).fit(X, Y).n_iter_ == 302


def test_a_warm_start_goes_on_after_early_stopping():
    X, Y = numbers()
    val = dict(zip(["X_val", "Y_val"], numbers(seed=1), strict=True))
    model = regressor(max_iter=5, warm_start=True).fit(X, Y, **val)
    model.set_params(max_iter=12).fit(X, Y, **val)
    at_once = regressor(max_iter=12).fit(X, Y, **val)
    assert model_bytes(model) == model_bytes(at_once)
    assert np.array_equal(model.validation_score_, at_once.validation_score_)
    assert np.array_equal(model.output_importances_, at_once.output_importances_)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"max_iter": 5}, "max_iter=5 is less than the 10 rounds"),
        ({"strategy": "multioutput"}, "strategy"),
        ({"strategy": "project"}, "strategy"),
        ({"step": "line_search"}, "step"),
        ({"loss": "absolute_error"}, "loss"),
        ({"estimator": DecisionTreeRegressor()}, "estimator"),
        ({"early_stopping": True}, "early_stopping=True"),
    ],
    ids=str,
)
def test_what_a_warm_start_cannot_change_is_said(changes, sentence):
    X, Y = numbers()
    model = regressor(warm_start=True).fit(X, Y)
    before = model.predict(X)
    with pytest.raises(ValueError, match=sentence):
        model.set_params(**{"max_iter": 20, **changes}).fit(X, Y)
    assert np.array_equal(model.predict(X), before)


def test_a_warm_start_needs_the_features_outputs_and_classes_it_knows():
    X, Y = numbers()
    model = regressor(warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match="4 features, but ManyBoostRegressor is expecting 5"):
        model.fit(X[:, :4], Y)
    with pytest.raises(ValueError, match="y has 2 outputs but the fitted model has 3"):
        model.fit(X, Y[:, :2])
    y = np.array(["a", "b"])[(Y[:, 0] > 0).astype(int)]
    model = classifier(warm_start=True).fit(X, y)
    y[7] = "c"
    with pytest.raises(ValueError, match="class 'c' in row 7"):
        model.fit(X, y)


# Ending early -----------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_max_time_ends_after_a_whole_round(strategy):
    X, Y = numbers()
    started = time.monotonic()
    same = {"strategy": strategy, "learning_rate": 0.1}
    model = regressor(max_iter=10**7, max_time=0.2, **same).fit(X, Y)
    assert 0.2 <= time.monotonic() - started < 2
    assert model.n_iter_ > 1
    rounds = model.n_iter_
    assert model.train_score_.shape == (rounds + 1,)
    expected = regressor(max_iter=rounds, **same).fit(X, Y)
    assert model_bytes(model) == model_bytes(expected)


@pytest.mark.parametrize(("n_rows", "fewest"), [(60, 1), (420, 4), (2500, 20)])
def test_leaves_are_as_large_as_the_rows_allow(n_rows, fewest):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(n_rows, 3)), rng.normal(size=(n_rows, 2))
    options = {"max_iter": 3, "max_leaf_nodes": None, "random_state": 0}
    automatic = ManyBoostRegressor(**options).fit(X, Y)
    given = ManyBoostRegressor(min_samples_leaf=fewest, **options).fit(X, Y)
    assert model_bytes(automatic) == model_bytes(given)
    _, _, left, _, cover, _, _ = automatic._progress.model.trees.tree(0)
    assert cover[left == 0].min() >= fewest


def test_at_least_one_round_is_done_whatever_the_time():
    assert regressor(max_time=1e-9).fit(*numbers()).n_iter_ == 1


def test_max_time_and_early_stopping_keep_the_best_round():
    X, Y = numbers()
    model = regressor(max_iter=10**7, max_time=0.1, n_iter_no_change=10**6)
    model.fit(X, Y, X_val=X[:50], Y_val=-Y[:50])
    assert model.n_iter_ == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_early_stopping_keeps_the_best_round(strategy):
    X, Y = numbers()
    rounds_run = []

    class Counted(Loss):
        def value(self, y, raw):
            return (y - raw) ** 2 / 2

        def gradient(self, y, raw):
            rounds_run.append(len(y))
            return raw - y

        def hessian(self, y, raw):
            return np.ones_like(raw)

        def baseline(self, y, sample_weight):
            return y.mean(axis=0)

    X_val, Y_val = numbers(n=50, seed=1)
    parameters = {"strategy": strategy, "loss": Counted(), "step": "newton", "learning_rate": 0.9}
    model = regressor(max_iter=1000, n_iter_no_change=7, **parameters)
    model.fit(X, Y, X_val=X_val, Y_val=Y_val)
    best = model.best_iter_
    assert 0 < best == model.n_iter_ < 900
    assert model.validation_score_.shape == model.train_score_.shape == (best + 1,)
    assert model.validation_score_.argmax() == best
    assert len(list(model.staged_predict(X))) == best
    assert -np.mean((Y_val - model.predict(X_val)) ** 2) / 2 == pytest.approx(
        model.validation_score_[-1], rel=1e-5
    )
    # X_val given, all rows are trained on: the model is the plain one of so many rounds.
    plain = regressor(max_iter=best, **parameters).fit(X, Y)
    assert model_bytes(model) == model_bytes(plain)
    assert np.array_equal(model.output_importances_, plain.output_importances_)


class CountedTree(DecisionTreeRegressor):
    """A tree that counts how many of its kind were fitted."""

    fits = 0

    def fit(self, X, y):
        CountedTree.fits += 1
        return super().fit(X, y)


def test_training_ends_so_many_rounds_after_the_best():
    X, Y = numbers()
    X_val, Y_val = numbers(n=50, seed=1)
    model = regressor(max_iter=1000, n_iter_no_change=7, learning_rate=0.9)
    model.set_params(strategy="multioutput", estimator=CountedTree(max_leaf_nodes=8))
    model.fit(X, Y, X_val=X_val, Y_val=Y_val)
    assert CountedTree.fits == model.best_iter_ + 7


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_model_may_end_at_its_baseline(strategy):
    X, Y = numbers()
    # Whatever is learnt makes it worse.
    model = regressor(strategy=strategy, step="line_search").fit(X, Y, X_val=X, Y_val=-Y)
    assert model.n_iter_ == model.best_iter_ == 0
    assert np.array_equal(model.predict(X), np.tile(model.baseline_, (len(X), 1)))
    assert list(model.staged_predict(X)) == []
    assert model.step_sizes_.shape == (0, 3)
    assert not model.feature_importances_.any()
    assert model.train_score_.shape == model.validation_score_.shape == (1,)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.parametrize("make", [regressor, classifier])
def test_early_stopping_is_automatic_for_many_rows_and_for_validation_rows(make):
    X, Y = labels(n=10_001, d=2)

    def stops(n, **parameters):
        model = make(max_iter=1, **parameters).fit(X[:n], Y[:n])
        return hasattr(model, "validation_score_")

    assert stops(10_001)
    assert not stops(10_000)
    assert not stops(10_001, early_stopping=False)
    assert stops(100, early_stopping=True)
    assert hasattr(make().fit(X[:100], Y[:100], X_val=X, Y_val=Y), "validation_score_")


def test_a_small_improvement_does_not_count():
    X, Y = numbers()
    X_val, Y_val = numbers(n=50, seed=1)
    model = regressor(tol=1e9, n_iter_no_change=3).fit(X, Y, X_val=X_val, Y_val=Y_val)
    assert model.n_iter_ == 0


@pytest.mark.parametrize("fraction", [0.3, 60])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_model_validated_on_some_rows_is_trained_on_the_others(strategy, fraction):
    X, Y = numbers()
    model = regressor(
        strategy=strategy, early_stopping=True, validation_fraction=fraction, n_iter_no_change=10
    ).fit(X, Y)
    train, val = split_validation(make_rows(X, Y, None, ""), fraction, model._seed)
    expected = regressor(strategy=strategy)
    expected.fit(train.X, train.Y, X_val=val.X, Y_val=val.Y)
    assert model_bytes(model) == model_bytes(expected)
    assert np.array_equal(model.validation_score_, expected.validation_score_)


@pytest.mark.parametrize("k", [2, 3])
def test_classes_are_validated_too(k):
    X, Y = numbers(d=k)
    y = np.array(["a", "b", "c"])[Y.argmax(axis=1)]
    model = classifier(max_iter=300, early_stopping=True, learning_rate=0.5).fit(X, y)
    assert 0 < model.n_iter_ < 300
    assert model.validation_score_.argmax() == model.n_iter_
    model = classifier().fit(X, y, X_val=X, Y_val=y)
    assert model.score(X, y) > 0.7


def test_validation_rows_of_weight_zero_do_not_count():
    X, Y = numbers()
    X_val, Y_val = numbers(n=50, seed=1)
    weight = (np.arange(50) % 2).astype(float)
    weighted = regressor().fit(X, Y, X_val=X_val, Y_val=Y_val, sample_weight_val=weight)
    fewer = regressor().fit(X, Y, X_val=X_val[1::2], Y_val=Y_val[1::2])
    assert weighted.validation_score_ == pytest.approx(fewer.validation_score_, rel=1e-6)


# Ctrl-C -----------------------------------------------------------------------------------------


def interrupt(setup, **options):
    """The promptest of up to three tries: a busy machine may stall one."""
    tries = []
    while len(tries) < 3 and not any(seconds < PROMPT for seconds, _ in tries):
        tries.append(interrupt_once(setup, **options))
    return min(tries)


def interrupt_once(setup, *, after, report="", signal_line="started"):
    """Fit ``model`` to X and Y in another process, and press Ctrl-C there.

    That happens ``after`` seconds from when the process prints ``signal_line``. Returns the seconds
    it took to end, and the lines that ``report`` prints afterwards.
    """
    script = f"""
import json, signal, time
import numpy as np
from manyboost import ManyBoostRegressor
# A shell may start background jobs with the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
{textwrap.dedent(setup)}
print("started", flush=True)
try:
    model.fit(X, Y)
except KeyboardInterrupt:
    print("ended", time.monotonic(), flush=True)
{textwrap.dedent(report)}
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout:
            if line.strip() == signal_line:
                break
        time.sleep(after)
        pressed = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            out, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, errors
    assert "ended " in out, "the fit was over before it was interrupted"
    ended, *rest = out[out.index("ended ") :].splitlines()
    return float(ended.split()[1]) - pressed, rest


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_ctrl_c_between_many_rounds_leaves_those_done(strategy):
    setup = f"""
        X, Y = rng.normal(size=(2000, 10)), rng.normal(size=(2000, 20))
        same = dict(strategy={strategy!r}, learning_rate=0.1, random_state=0)
        model = ManyBoostRegressor(max_iter=10**6, **same)
    """
    report = """
        n = model.n_iter_
        plain = ManyBoostRegressor(max_iter=n, **same).fit(X, Y)
        print(n, len(model.train_score_), sum(1 for _ in model.staged_predict(X[:5])))
        print(model._progress.model.trees.to_bytes() == plain._progress.model.trees.to_bytes())
        print((model.predict(X) == plain.predict(X)).all())
        for m in [model, plain]:
            m.set_params(warm_start=True, max_iter=n + 3).fit(X, Y)
        print(model._progress.model.trees.to_bytes() == plain._progress.model.trees.to_bytes())
    """
    seconds, (sizes, *checks) = interrupt(setup, after=0.5, report=report)
    rounds, scores, stages = map(int, sizes.split())
    assert rounds > 0
    assert (scores, stages) == (rounds + 1, rounds)
    assert checks == ["True", "True", "True"]
    assert seconds < PROMPT


# A round takes some seconds: half a million rows, projected to a hundred columns and summed up.
LONG_ROUNDS = """
    calls = []

    def projection(n_components, n_outputs, rng):
        calls.append(1)
        print("round", len(calls), flush=True)
        return rng.normal(size=(n_components, n_outputs))

    X, Y = rng.random((500_000, 20), dtype=np.float32), rng.random((500_000, 4))
    model = ManyBoostRegressor(
        projection=projection, n_components=100, max_leaf_nodes=64, max_iter=10,
        early_stopping=False, n_jobs={n_jobs},
    )
"""


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("after", [0.3, 2.2])
def test_ctrl_c_inside_a_long_round_is_answered_at_once(n_jobs, after):
    setup = LONG_ROUNDS.format(n_jobs=n_jobs)
    seconds, _ = interrupt(setup, after=after, signal_line="round 1")
    assert seconds < PROMPT


def test_ctrl_c_inside_a_long_round_leaves_those_before():
    seconds, found = interrupt(
        LONG_ROUNDS.format(n_jobs=2),
        # The projection of a round is drawn while the one before is brought to its end.
        signal_line="round 3",
        after=0.3,
        report="print(0 < model.n_iter_ < 10, np.isfinite(model.predict(X[:100])).all())",
    )
    assert found == ["True True"]
    assert seconds < PROMPT


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_while_features_are_binned_is_answered_at_once(n_jobs):
    setup = f"""
        X, Y = rng.random((1_500_000, 24), dtype=np.float32), rng.random(1_500_000)
        model = ManyBoostRegressor(max_iter=1, n_jobs={n_jobs}, early_stopping=False)
    """
    assert interrupt(setup, after=0.3)[0] < PROMPT


class InterruptedIn:
    """A projection in whose n-th call Ctrl-C is pressed."""

    def __init__(self, call):
        self.calls_left = call

    def __call__(self, n_components, n_outputs, rng):
        self.calls_left -= 1
        if self.calls_left == 0:
            raise KeyboardInterrupt
        return rng.normal(size=(n_components, n_outputs))


@pytest.mark.parametrize("strategy", ["project", "relabel"])
def test_an_interrupted_fit_can_be_resumed(strategy):
    X, Y = numbers()
    model = regressor(strategy=strategy, projection=InterruptedIn(call=6), warm_start=True)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    done = model.n_iter_
    # The projection of a round is drawn while the one before is brought to its end.
    assert done in (4, 5)
    assert model.best_iter_ == done
    whole = regressor(strategy=strategy, projection=InterruptedIn(call=-1)).fit(X, Y)
    assert np.array_equal(model.predict(X), list(whole.staged_predict(X))[done - 1])
    assert model_bytes(model.fit(X, Y)) == model_bytes(whole)
    assert np.array_equal(model.output_importances_, whole.output_importances_)


def test_an_interrupt_before_the_first_round_leaves_what_was_there():
    X, Y = numbers()
    model = regressor(projection=InterruptedIn(call=1))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not hasattr(model, "n_iter_")
    model.fit(X, Y)
    before = model.predict(X)
    model.set_params(projection=InterruptedIn(call=1), loss="absolute_error")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert np.array_equal(model.predict(X), before)


def test_an_interrupt_with_validation_rows_keeps_the_rounds_done():
    X, Y = numbers()
    model = regressor(projection=InterruptedIn(call=6))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, X_val=X, Y_val=Y)
    assert model.n_iter_ in (4, 5)
    assert model.validation_score_.shape == (model.n_iter_ + 1,)


# Several fits -----------------------------------------------------------------------------------


def test_a_forked_child_can_fit():
    # Enough rows for the threads to be used.
    script = """
import os
import numpy as np
from manyboost import ManyBoostRegressor

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(20_000, 10)), rng.normal(size=(20_000, 5))

def fit():
    model = ManyBoostRegressor(max_iter=5, n_jobs=2, random_state=0).fit(X, Y)
    return model._progress.model.trees.to_bytes(), model.predict(X).tobytes()

expected = fit()
child = os.fork()
if child == 0:
    grandchild = os.fork()
    if grandchild == 0:
        os._exit(0 if fit() == expected else 1)
    code = os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1])
    os._exit(code if fit() == expected else 2)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(code, fit() == expected)
"""
    # A dead thread pool would wait for ever.
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "0 True\n", done.stderr


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib_workers_fit_the_same_models(backend):
    X, Y = numbers(n=5000, d=5)
    models = [
        regressor(strategy=s, n_jobs=2, random_state=seed) for s in STRATEGIES for seed in (0, 1)
    ]
    expected = [model_bytes(model.fit(X, Y)) for model in models]
    # Threads share memory: each needs an estimator of its own.
    fresh = [regressor(**model.get_params()) for model in models]
    fitted = Parallel(n_jobs=2, backend=backend)(delayed(model.fit)(X, Y) for model in fresh)
    assert [model_bytes(model) for model in fitted] == expected


def test_fits_at_the_same_time_do_not_disturb_each_other():
    X, Y = numbers(n=20_000, d=5)

    def fit_and_predict(seed):
        model = regressor(n_jobs=2, random_state=seed, early_stopping=False).fit(X, Y)
        return model_bytes(model), model.predict(X).tobytes()

    serially = [fit_and_predict(seed) for seed in range(6)]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(fit_and_predict, range(6))) == serially


def test_threads_can_predict_with_one_model():
    X, Y = numbers(n=20_000, d=5)
    model = regressor().fit(X, Y)
    expected = model.predict(X)
    with ThreadPoolExecutor(4) as pool:
        for predictions in pool.map(model.predict, [X] * 8):
            assert np.array_equal(predictions, expected)


# Code of the user -------------------------------------------------------------------------------


class Boom(Exception):
    """What only a user could raise."""


BOOM = Boom("the user's own words")


class Explosive(Loss):
    """Squared error, one of whose methods raises on its n-th call."""

    def __init__(self, method, call):
        self.method, self.calls_left = method, call

    def _tick(self, method):
        if method == self.method:
            self.calls_left -= 1
            if self.calls_left == 0:
                raise BOOM

    def value(self, y, raw):
        self._tick("value")
        return (y - raw) ** 2 / 2

    def gradient(self, y, raw):
        self._tick("gradient")
        return raw - y

    def hessian(self, y, raw):
        self._tick("hessian")
        return np.ones_like(raw)

    def baseline(self, y, sample_weight):
        self._tick("baseline")
        return y.mean(axis=0)

    def inverse_link(self, raw):
        self._tick("inverse_link")
        return raw


class ExplosiveRidge(Ridge):
    """A ridge regression that raises in a method."""

    def __init__(self, method="fit", alpha=1.0):
        super().__init__(alpha=alpha)
        self.method = method

    def fit(self, X, y, sample_weight=None):
        if self.method == "fit":
            raise BOOM
        return super().fit(X, y, sample_weight)

    def predict(self, X):
        if self.method == "predict":
            raise BOOM
        return super().predict(X)


def explode(*_):
    raise BOOM


@pytest.mark.parametrize(
    "parameters",
    [
        {"projection": explode},
        {"projection": explode, "strategy": "project"},
        {"loss": Explosive("value", 3)},
        {"loss": Explosive("gradient", 1)},
        {"loss": Explosive("gradient", 4)},
        {"loss": Explosive("gradient", 9), "strategy": "independent", "step": "line_search"},
        {"loss": Explosive("hessian", 1)},
        {"loss": Explosive("hessian", 3)},
        {"loss": Explosive("baseline", 1)},
        {"estimator": ExplosiveRidge("fit"), "strategy": "project"},
        {"estimator": ExplosiveRidge("predict"), "strategy": "independent"},
    ],
    ids=lambda p: " ".join(
        f"{v.method} {v.calls_left}" if isinstance(v, Explosive) else getattr(v, "__name__", str(v))
        for v in p.values()
    ),
)
def test_an_exception_of_the_user_reaches_the_user(parameters):
    X, Y = numbers()
    model = regressor(**parameters)
    with pytest.raises(Boom) as caught:
        model.fit(X, Y)
    assert caught.value is BOOM
    assert not hasattr(model, "n_iter_")


def test_an_exception_in_a_link_reaches_who_predicts():
    X, Y = numbers()
    model = regressor(loss=Explosive("inverse_link", 1)).fit(X, Y)
    with pytest.raises(Boom) as caught:
        model.predict(X)
    assert caught.value is BOOM


def test_an_exception_leaves_the_fitted_model_as_it_was():
    X, Y = numbers()
    model = regressor(loss=Explosive("gradient", 14), warm_start=True).fit(X, Y)
    before, importances = model_bytes(model), model.output_importances_
    with pytest.raises(Boom):
        model.set_params(max_iter=20).fit(X, Y)
    assert model.n_iter_ == 10
    assert model_bytes(model) == before
    assert np.array_equal(model.output_importances_, importances)
    # And it can still be continued.
    whole = regressor(loss=Explosive("none", 0), max_iter=20).fit(X, Y)
    assert model_bytes(model.fit(X, Y)) == model_bytes(whole)


# Weak learners of scikit-learn ------------------------------------------------------------------

WEAK = {
    "ridge": Ridge(),
    "neighbours": KNeighborsRegressor(20),
    "tree": DecisionTreeRegressor(max_leaf_nodes=8),
}
PAIRS = [(s, w) for s in STRATEGIES for w in WEAK if s != "relabel" or w == "tree"]


@pytest.mark.parametrize(("strategy", "weak"), PAIRS)
@pytest.mark.parametrize("step", ["newton", "line_search"])
def test_any_regressor_can_be_boosted(strategy, weak, step):
    X, Y = numbers()
    model = regressor(
        strategy=strategy, step=step, estimator=WEAK[weak], max_iter=20, learning_rate=0.3
    ).fit(X, Y)
    assert np.all(np.diff(model.train_score_) >= -1e-7)
    assert model.score(X, Y) > 0.6
    stages = list(model.staged_predict(X))
    assert len(stages) == 20
    assert np.array_equal(stages[-1], model.predict(X))
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert not hasattr(model, "feature_importances_")


@pytest.mark.parametrize(("strategy", "weak"), PAIRS)
@pytest.mark.parametrize("loss", ["log_loss", "exponential", "squared_error"])
def test_any_regressor_can_serve_labels_and_classes(strategy, weak, loss):
    for X, y in [labels(), (numbers()[0], numbers()[1].argmax(axis=1))]:
        model = classifier(
            strategy=strategy, loss=loss, estimator=WEAK[weak], max_iter=20, learning_rate=0.3
        ).fit(X, y)
        assert model.score(X, y) > 0.5
        assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(("strategy", "weak"), PAIRS)
def test_foreign_models_warm_start_and_stop_early(strategy, weak):
    X, Y = numbers()
    val = dict(zip(["X_val", "Y_val"], numbers(seed=1), strict=True))
    parameters = {"strategy": strategy, "estimator": WEAK[weak]}
    at_once = regressor(max_iter=8, **parameters).fit(X, Y)
    twice = regressor(max_iter=4, warm_start=True, **parameters).fit(X, Y)
    twice.set_params(max_iter=8).fit(X, Y)
    assert np.array_equal(twice.predict(X), at_once.predict(X))
    assert np.array_equal(twice.train_score_, at_once.train_score_)
    stopped = regressor(max_iter=200, learning_rate=1.0, n_iter_no_change=3, **parameters)
    stopped.fit(X, Y, **val)
    assert stopped.n_iter_ < 197
    assert stopped.validation_score_.argmax() == stopped.n_iter_
    loss = np.mean((val["Y_val"] - stopped.predict(val["X_val"])) ** 2) / 2
    assert stopped.validation_score_[-1] == pytest.approx(-loss, rel=1e-5)


def test_one_step_along_a_linear_model_is_the_linear_model():
    X, Y = numbers()
    expected = LinearRegression().fit(X, Y).predict(X)
    for strategy in ["independent", "multioutput"]:
        model = regressor(
            strategy=strategy, estimator=LinearRegression(), max_iter=1, learning_rate=1.0
        ).fit(X, Y)
        assert model.predict(X) == pytest.approx(expected, abs=1e-5)


def test_relabelled_leaves_hold_the_means_of_all_outputs():
    X, Y = numbers()
    tree = DecisionTreeRegressor(max_leaf_nodes=6, random_state=0)
    model = regressor(estimator=tree, max_iter=1, learning_rate=1.0, output_scaling=None)
    # Grown on the first output alone, labelled for all.
    model.set_params(projection=lambda q, d, rng: np.eye(d)[:1]).fit(X, Y)
    leaf = tree.fit(X, Y[:, 0]).apply(X)
    means = np.array([Y[leaf == k].mean(axis=0) for k in leaf])
    assert model.predict(X) == pytest.approx(means, abs=1e-5)


def test_the_seed_reaches_the_weak_learner():
    X, Y = numbers()

    def fit(seed, tree_seed=None):
        tree = DecisionTreeRegressor(max_features=1, max_leaf_nodes=4, random_state=tree_seed)
        model = regressor(estimator=tree, strategy="multioutput", random_state=seed)
        return model.fit(X, Y).predict(X)

    assert np.array_equal(fit(0), fit(0))
    assert not np.array_equal(fit(0), fit(1))
    assert np.array_equal(fit(0, tree_seed=5), fit(1, tree_seed=5))


def test_weights_and_subsamples_reach_the_weak_learner():
    X, Y = numbers()
    weight = np.tile([0.0, 1.0], 100)
    for strategy in STRATEGIES:
        tree = DecisionTreeRegressor(max_leaf_nodes=4)
        model = regressor(strategy=strategy, estimator=tree).fit(X, Y, weight)
        fewer = regressor(strategy=strategy, estimator=tree).fit(X[1::2], Y[1::2])
        assert model.predict(X) == pytest.approx(fewer.predict(X), abs=1e-5)
        model = regressor(strategy=strategy, estimator=tree, subsample=0.5, learning_rate=0.1)
        assert model.fit(X, Y).score(X, Y) > 0.3


@pytest.mark.parametrize("estimator", [Ridge(), KNeighborsRegressor()], ids=str)
def test_relabelling_needs_leaves(estimator):
    with pytest.raises(ValueError, match=r"'relabel' needs the leaves of a tree, but \w+ has no"):
        regressor(estimator=estimator).fit(*numbers())


def test_relabelling_needs_a_single_tree():
    with pytest.raises(ValueError, match="needs one leaf per row, from a single tree"):
        regressor(estimator=GradientBoostingRegressor(n_estimators=2)).fit(*numbers())


def test_all_outputs_at_once_need_an_estimator_that_takes_them():
    X, Y = numbers()
    with pytest.raises(
        ValueError, match="several outputs, but SVR takes one; use strategy='project'"
    ):
        regressor(strategy="multioutput", estimator=SVR()).fit(X, Y)
    for strategy in ["independent", "project"]:
        model = regressor(strategy=strategy, estimator=SVR(), learning_rate=0.1).fit(X, Y)
        assert model.score(X, Y) > 0.3
    assert regressor(strategy="multioutput", estimator=SVR()).fit(X, Y[:, 0]).n_iter_ == 10


@pytest.mark.parametrize("estimator", [Ridge, StandardScaler()], ids=str)
def test_only_regressors_are_weak_learners(estimator):
    with pytest.raises(ValueError, match="estimator="):
        regressor(strategy="project", estimator=estimator).fit(*numbers())


def test_weights_need_an_estimator_that_takes_them():
    X, Y = numbers()
    model = regressor(strategy="project", estimator=KNeighborsRegressor())
    with pytest.raises(ValueError, match="sample_weight was given, but KNeighborsRegressor"):
        model.fit(X, Y, np.ones(len(X)))


def test_missing_values_are_the_weak_learners_business():
    X, Y = numbers()
    X[::7, 0] = np.nan
    assert regressor(estimator=DecisionTreeRegressor(max_depth=3)).fit(X, Y).score(X, Y) > 0.3
    with pytest.raises(ValueError, match="NaN"):
        regressor(estimator=Ridge(), strategy="project").fit(X, Y)
