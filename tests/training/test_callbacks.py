"""Callbacks, the progress that is shown, and scikit-learn's own callbacks."""

import dataclasses
import io
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from manyboost import ManyBoostClassifier, ManyBoostRegressor, RoundState
from manyboost.training.callbacks import Display

STRATEGIES = ["independent", "multioutput", "project", "relabel"]


def numbers(n=200, d=3, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.sign(X[:, :d]) + X[:, :d] + 0.3 * rng.normal(size=(n, d))


def regressor(**parameters):
    return ManyBoostRegressor(**{"max_iter": 10, "random_state": 0, **parameters})


def model_bytes(model):
    return model._progress.model.trees.to_bytes()


# Callbacks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_callback_is_told_of_every_round(strategy):
    X, Y = numbers()
    states = []
    model = regressor(strategy=strategy, step="line_search", callbacks=[states.append])
    model.fit(X, Y, X_val=X[:50], Y_val=Y[:50])
    assert [state.round for state in states] == list(range(1, 11))
    assert {state.max_iter for state in states} == {10}
    elapsed = [state.elapsed for state in states]
    assert elapsed[0] > 0
    assert elapsed == sorted(elapsed)
    assert [state.train_score for state in states] == model.train_score_[1:].tolist()
    assert [state.validation_score for state in states] == model.validation_score_[1:].tolist()
    steps = np.array([state.step_sizes for state in states])
    np.testing.assert_allclose(steps, model.step_sizes_, rtol=1e-6)
    plain = regressor(strategy=strategy, step="line_search").fit(X, Y, X_val=X[:50], Y_val=Y[:50])
    assert model_bytes(model) == model_bytes(plain)


def test_what_a_callback_is_told_cannot_be_changed():
    states = []
    regressor(step="line_search", callbacks=[states.append]).fit(*numbers())
    with pytest.raises(dataclasses.FrozenInstanceError):
        states[0].round = 3
    with pytest.raises(ValueError, match="read-only"):
        states[0].step_sizes[0] = 1.0
    assert states[0].validation_score is None


def test_newton_leaves_have_no_steps():
    states = []
    regressor(step="newton", callbacks=[states.append]).fit(*numbers())
    assert {state.step_sizes for state in states} == {None}


def test_the_rounds_the_model_would_keep_are_told():
    X, Y = numbers()
    states = []
    model = regressor(max_iter=100, n_iter_no_change=5, learning_rate=0.9)
    model.set_params(callbacks=[states.append]).fit(X, Y, X_val=-X[:50], Y_val=Y[:50])
    assert states[-1].n_iter == model.n_iter_ == states[-1].round - 5


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("answer", [True, np.True_], ids=["bool", "numpy"])
def test_a_callback_that_returns_true_ends_training(strategy, answer):
    X, Y = numbers()
    seen = []

    def stop_at_four(state):
        seen.append(state.round)
        return answer if state.round == 4 else None

    same = {"strategy": strategy, "learning_rate": 0.1, "subsample": 0.7}
    model = regressor(callbacks=[stop_at_four, lambda _: False], **same).fit(X, Y)
    assert seen == [1, 2, 3, 4]
    plain = regressor(max_iter=4, **same).fit(X, Y)
    assert model.n_iter_ == 4
    assert model_bytes(model) == model_bytes(plain)
    assert np.array_equal(model.train_score_, plain.train_score_)
    assert np.array_equal(model.output_importances_, plain.output_importances_)
    # And it can be gone on with.
    model.set_params(callbacks=None, warm_start=True).fit(X, Y)
    assert model_bytes(model) == model_bytes(regressor(**same).fit(X, Y))


def test_all_callbacks_hear_of_the_last_round():
    heard = []
    model = regressor(callbacks=[lambda state: state.round == 2, heard.append]).fit(*numbers())
    assert len(heard) == model.n_iter_ == 2


def test_a_warm_start_counts_on():
    X, Y = numbers()
    rounds = []
    model = regressor(max_iter=3, warm_start=True).fit(X, Y)
    model.set_params(max_iter=5, callbacks=[lambda state: rounds.append(state.round)]).fit(X, Y)
    assert rounds == [4, 5]


class Refused(Exception):
    pass


def fail(state):
    if state.round in (3, 6):
        raise Refused


@pytest.mark.parametrize("make", [ManyBoostRegressor, ManyBoostClassifier])
def test_an_error_in_a_callback_leaves_an_estimator_unfitted(make):
    X, Y = numbers()
    model = make(max_iter=5, callbacks=[fail])
    before = dict(vars(model))
    with pytest.raises(Refused):
        model.fit(X, Y > 0)
    assert vars(model) == before


@pytest.mark.parametrize("warm_start", [True, False])
def test_an_error_in_a_callback_leaves_the_model_of_before(warm_start):
    X, Y = numbers()
    model = regressor(max_iter=4, warm_start=warm_start, early_stopping=True).fit(X, Y)
    state, prediction, before = dict(vars(model)), model.predict(X), model_bytes(model)
    model.set_params(max_iter=9, callbacks=[fail])
    other = X[:, :4] if not warm_start else X
    with pytest.raises(Refused):
        model.fit(other, Y)
    assert set(vars(model)) == set(state)
    assert model.n_iter_ == 4
    assert model_bytes(model) == before
    assert np.array_equal(model.predict(X), prediction)


def test_what_a_callback_may_return():
    model = regressor(callbacks=[lambda _: "stop"])
    with pytest.raises(TypeError, match=r"returned 'stop'; it must return True to end training"):
        model.fit(*numbers())


def test_callbacks_survive_cloning():
    rounds = []
    model = regressor(callbacks=[lambda state: rounds.append(state.round)], verbose=0)
    clone(model).fit(*numbers())
    assert rounds == list(range(1, 11))


# What is shown ----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def state(number, elapsed, validation=None, max_iter=100):
    return RoundState(number, number, max_iter, elapsed, -0.5 / number, validation, None)


def test_a_terminal_sees_one_line_that_changes():
    stream = Terminal()
    display = Display(1, stream=stream)
    for number in range(1, 101):
        display(state(number, number * 0.25, validation=-1 / number))
    display.close()
    shown = stream.getvalue()
    assert shown.count("\n") == 1
    assert shown.endswith("\n")
    lines = shown.strip("\n").split("\r")[1:]
    assert lines[0] == (
        "round   1/100 [........................], 24.8 s left, train loss 0.5, validation loss 1"
    )
    assert lines[49].rstrip() == (
        "round  50/100 [############............], 12.5 s left, "
        "train loss 0.01, validation loss 0.02"
    )
    assert (
        lines[-1].rstrip()
        == "100 rounds in 25.0 s, train loss 0.005, validation loss 0.01, 100 kept"
    )
    # What was longer is wiped out.
    widths = [len(line.rstrip()) for line in lines]
    assert all(len(line) >= before for line, before in zip(lines[1:], widths, strict=False))


def test_fast_rounds_are_not_all_shown():
    stream = Terminal()
    display = Display(1, stream=stream)
    for number in range(1, 1001):
        display(state(number, number * 0.001, max_iter=1000))
    assert stream.getvalue().count("\r") == 10


def test_a_file_sees_lines_at_growing_intervals():
    stream = io.StringIO()
    display = Display(1, stream=stream)
    for number in range(1, 1001):
        display(state(number, float(number), max_iter=1000))
    display.close()
    shown = stream.getvalue()
    assert "\r" not in shown
    *lines, last = shown.splitlines()
    rounds = [int(re.match(r"round +(\d+)/1000, ", line)[1]) for line in lines]
    assert rounds[:9] == [1, 2, 4, 8, 16, 32, 64, 124, 184]
    assert set(np.diff(rounds[6:])) == {60}
    assert lines[0] == "round    1/1000, 17 min left, train loss 0.5"
    assert last == "1000 rounds in 17 min, train loss 0.0005"


def test_every_round_is_shown_if_so_wished():
    for stream in (Terminal(), io.StringIO()):
        display = Display(2, stream=stream)
        for number in range(1, 6):
            display(state(number, 0.001 * number))
        display.close()
        assert "\r" not in stream.getvalue()
        assert len(stream.getvalue().splitlines()) == 6


def test_the_time_left_is_at_most_that_allowed():
    stream = io.StringIO()
    display = Display(2, max_time=10.0, stream=stream)
    display(state(11, 4.0, max_iter=10**6))
    assert ", 6.0 s left" in stream.getvalue()


def test_nothing_is_shown_by_default(capfd):
    regressor().fit(*numbers())
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("verbose", [1, True, 2])
def test_progress_goes_to_standard_error(capfd, verbose):
    X, Y = numbers()
    model = regressor(verbose=verbose).fit(X, Y, X_val=X, Y_val=Y)
    out, errors = capfd.readouterr()
    assert out == ""
    lines = errors.splitlines()
    assert len(lines) == (11 if verbose == 2 else 2)
    scores = -model.train_score_[1], -model.validation_score_[1]
    first = "train loss {:.6g}, validation loss {:.6g}".format(*scores)
    assert re.fullmatch(rf"round  1/10, \d+\.\d s left, {first}", lines[0])
    assert re.fullmatch(r"10 rounds in \d+\.\d s, train .*, validation .*, 10 kept", lines[-1])
    silent = regressor().fit(X, Y, X_val=X, Y_val=Y)
    assert model_bytes(model) == model_bytes(silent)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals here")
def test_progress_on_a_real_terminal():
    script = """if True:
        import numpy as np
        from manyboost import ManyBoostRegressor
        X = np.random.default_rng(0).normal(size=(300, 4))
        ManyBoostRegressor(verbose=1, max_iter=20).fit(X, X[:, :2])
    """
    leader, follower = os.openpty()
    subprocess.run([sys.executable, "-c", script], stderr=follower, check=True)
    os.close(follower)
    shown = b""
    while b"rounds in" not in shown or not shown.endswith(b"\n"):
        shown += os.read(leader, 10_000)
    os.close(leader)
    lines = shown.decode().strip().split("\r")
    assert re.match(r"round  1/20 \[#?\.+\], \d+\.\d s left, train ", lines[0] or lines[1])
    assert re.match(r"20 rounds in ", lines[-1])


def test_the_line_is_ended_when_training_fails(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(Refused):
        regressor(verbose=1, callbacks=[fail]).fit(*numbers())
    assert stream.getvalue().endswith("\n")


def test_a_program_without_standard_error_is_silent(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert regressor(verbose=1).fit(*numbers()).n_iter_ == 10


# scikit-learn's callbacks -----------------------------------------------------------------------


def test_an_older_scikit_learn_has_no_callbacks():
    script = """if True:
        import sys
        import numpy as np
        # What scikit-learn itself does with them.
        import sklearn.model_selection, sklearn.linear_model, sklearn.pipeline, sklearn.ensemble
        sys.modules["sklearn.callback"] = None
        from manyboost import ManyBoostRegressor
        X = np.random.default_rng(0).normal(size=(50, 2))
        model = ManyBoostRegressor(callbacks=[lambda state: state.round == 2]).fit(X, X)
        print(model.n_iter_, hasattr(model, "set_callbacks"))
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["2", "False"], done.stderr


callback = pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")


class Recorder:
    """A callback that follows scikit-learn's protocol."""

    def __init__(self, stop_at=None, fail_at=None):
        self.stop_at, self.fail_at = stop_at, fail_at
        self.events, self.predictions = [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.events.append(f"end {context.task_name}")
        if context.task_name == "round":
            self.predictions.append((fitted_estimator.n_iter_, fitted_estimator.predict(X)))
            if len(self.predictions) == self.fail_at:
                raise Refused
            return len(self.predictions) == self.stop_at
        return None


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_callbacks_of_scikit_learn_hear_of_rounds(strategy):
    X, Y = numbers()
    recorder = Recorder()
    model = regressor(strategy=strategy, max_iter=3).set_callbacks(recorder).fit(X, Y)
    rounds = ["begin round", "end round"] * 3
    assert recorder.events == ["setup", "begin fit", *rounds, "end fit", "teardown"]
    for (_, found), expected in zip(recorder.predictions, model.staged_predict(X), strict=True):
        assert np.array_equal(found, expected)
    assert [n_iter for n_iter, _ in recorder.predictions] == [1, 2, 3]
    plain = regressor(strategy=strategy, max_iter=3).fit(X, Y)
    assert model_bytes(model) == model_bytes(plain)


def test_callbacks_of_scikit_learn_may_end_training():
    recorder = Recorder(stop_at=4)
    model = regressor().set_callbacks(recorder).fit(*numbers())
    assert model.n_iter_ == 4
    assert recorder.events[-2:] == ["end fit", "teardown"]


def test_an_error_in_a_callback_of_scikit_learn_leaves_the_estimator_as_it_was():
    recorder = Recorder(fail_at=2)
    model = regressor().set_callbacks(recorder)
    before = dict(vars(model))
    with pytest.raises(Refused):
        model.fit(*numbers())
    assert vars(model) == before
    assert recorder.events[-1] == "teardown"


def test_scikit_learn_monitors_scores():
    X, Y = numbers()
    monitor = callback.ScoringMonitor(scoring="r2")
    model = regressor(max_iter=4).set_callbacks(monitor).fit(X, Y)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "round"]
    expected = [ManyBoostRegressor.score(stage, X, Y) for stage in stages(model, X, Y)]
    assert [row["r2"] for row in rows] == pytest.approx(expected)


def stages(model, X, Y):
    return [
        ManyBoostRegressor(max_iter=m, random_state=0).fit(X, Y)
        for m in range(1, model.n_iter_ + 1)
    ]


def test_callbacks_of_scikit_learn_reach_into_a_search():
    class Propagated(Recorder):
        max_propagation_depth = None

        def on_fit_task_end(self, estimator, context):
            self.events.append(f"end {context.task_name}")

    recorder = Propagated()
    search = GridSearchCV(regressor(max_iter=2), {"max_leaf_nodes": [3, 5]}, cv=2)
    search.set_callbacks(recorder).fit(*numbers())
    assert recorder.events.count("end round") == 2 * (2 * 2 + 1)
    assert recorder.events.count("setup") == 1
