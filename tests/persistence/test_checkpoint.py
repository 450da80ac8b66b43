"""A fit that was killed goes on from its checkpoint, and ends with the same model."""

import os
import re
import shutil
from functools import partial
from unittest import mock

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.metrics import make_scorer, max_error, r2_score
from sklearn.model_selection import KFold

import manyboost
from manyboost import Checkpoint, Loss, ManyBoostClassifier, ManyBoostRegressor
from manyboost.metrics import get_scorer
from manyboost.persistence.model import to_parts

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5))
Y = X @ RNG.normal(size=(5, 4)) + RNG.normal(size=(300, 4))
LABELS = (Y > 0.5).astype(int)


@pytest.fixture(autouse=True)
def _no_power_failures(monkeypatch):
    """Files that need not survive a power failure: waiting for the disk takes most of the time."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


class Killed(BaseException):
    """What ends a process: nothing after it runs, so that no file is written."""


class Die:
    """A callback that kills training after a number of rounds, as if the process had ended."""

    def __init__(self, after):
        self.after, self.rounds = after, 0

    def __call__(self, state):
        self.rounds += 1
        if self.rounds == self.after:
            raise Killed


def stored(model):
    return b"".join(to_parts(model, "all"))


def resumed(make, path, deaths, every=3, fit=lambda model: model.fit(X, Y)):
    """The model of a fit that died after each of these numbers of rounds."""
    for after in deaths:
        die = Die(after)
        with pytest.raises(Killed):
            fit(make(checkpoint=Checkpoint(path, every=every), callbacks=[die]))
    return fit(make(checkpoint=Checkpoint(path, every=every)))


class HalfSquare(Loss):
    def __init__(self, factor=0.5):
        self.factor = factor

    def value(self, y, raw):
        return self.factor * (y - raw) ** 2

    def gradient(self, y, raw):
        return 2 * self.factor * (raw - y)

    def hessian(self, y, raw):
        return np.full_like(raw, 2 * self.factor)


def two_columns(n_components, n_outputs, rng):
    return rng.normal(size=(n_components, n_outputs))


def last_output(estimator, X, y):
    return -float(np.abs(estimator.predict(X)[:, -1] - y[:, -1]).mean())


STOPPING = {"early_stopping": True, "n_iter_no_change": 4, "tol": 1e-2}
CASES = {
    "independent": {"strategy": "independent"},
    "multioutput": {"strategy": "multioutput"},
    "project": {"strategy": "project"},
    "relabel": {"strategy": "relabel", "n_components": 2, "projection": "sparse"},
    "subsampled": {"subsample": 0.5, "max_features": 0.5},
    "line search": {"loss": "huber", "step": "line_search"},
    "absolute error": {"loss": "absolute_error"},
    "two quantiles": {"loss": "quantile", "quantile": [0.2, 0.8]},
    "several losses": {"loss": ["squared_error", "huber", "absolute_error", "squared_error"]},
    "early stopping": STOPPING,
    "early stopping, project": {**STOPPING, "strategy": "project"},
    "output by output": {**STOPPING, "early_stopping": "per_output"},
    "output by output, independent": {
        **STOPPING,
        "early_stopping": "per_output",
        "strategy": "independent",
    },
    "scorers": {**STOPPING, "scoring": ["r2", last_output, "loss"]},
    "a loss of one's own": {"loss": HalfSquare()},
    "a projection of one's own": {"projection": two_columns, "n_components": 2},
    "constraints": {"monotonic_cst": [1, 0, 0, 0, -1], "interaction_cst": [[0, 1], [2, 3, 4]]},
    "chosen strategy": {"strategy": "auto", "max_iter": 22},
}


@pytest.mark.parametrize("name", CASES)
def test_a_killed_fit_ends_with_the_model_of_one_that_was_not(name, tmp_path):
    parameters = {"max_iter": 25, "max_leaf_nodes": 6, "random_state": 3, **CASES[name]}

    def make(**changes):
        return ManyBoostRegressor(**parameters, **changes)

    expected = make().fit(X, Y)
    model = resumed(make, tmp_path / "run.checkpoint", [2, 5, 9])
    np.testing.assert_array_equal(model._raw_predict(X), expected._raw_predict(X))
    assert stored(model) == stored(expected)


@pytest.mark.parametrize("early_stopping", [False, True, "per_output"])
def test_labels_with_weights_missing_cells_and_offsets(early_stopping, tmp_path):
    labels = np.where(RNG.random(LABELS.shape) < 0.2, np.nan, LABELS)
    weight = RNG.exponential(size=300)
    offset = RNG.normal(size=(300, 4))

    def make(**changes):
        return ManyBoostClassifier(
            max_iter=20,
            random_state=0,
            early_stopping=early_stopping,
            n_iter_no_change=3,
            thresholds="tuned",
            class_weight="balanced",
            **changes,
        )

    def fit(model):
        return model.fit(sparse.csr_array(X * (X > 0)), labels, weight, offset=offset)

    model = resumed(make, tmp_path / "run", [1, 4, 7], every=2, fit=fit)
    assert stored(model) == stored(fit(make()))


def test_classes_and_given_validation_rows(tmp_path):
    classes = np.array(["red", "green", "blue", "grey"])[Y.argmax(axis=1)]

    def make(**changes):
        return ManyBoostClassifier(max_iter=15, random_state=0, n_iter_no_change=3, **changes)

    def fit(model):
        return model.fit(X[:200], classes[:200], X_val=X[200:], Y_val=classes[200:])

    model = resumed(make, tmp_path / "run", [1, 4], every=1, fit=fit)
    assert stored(model) == stored(fit(make()))


def test_nothing_is_lost_but_the_rounds_since_the_last_checkpoint(tmp_path):
    path = tmp_path / "run"

    def make(*callbacks):
        checkpoint = Checkpoint(path, every=4)
        return ManyBoostRegressor(max_iter=30, checkpoint=checkpoint, callbacks=list(callbacks))

    with pytest.raises(Killed):
        make(Die(11)).fit(X, Y)
    rounds = []
    # The seed was drawn by the first fit: random_state is None.
    make(lambda state: rounds.append(state.round)).fit(X, Y)
    assert rounds == list(range(9, 31))


def test_a_complete_checkpoint_gives_the_model_at_once(tmp_path):
    rounds = []

    def make(**parameters):
        callbacks = [lambda state: rounds.append(state.round)]
        return ManyBoostRegressor(
            checkpoint=tmp_path / "run", random_state=1, callbacks=callbacks, **parameters
        )

    for parameters in ({"max_iter": 10}, {"max_iter": 100, **STOPPING}):
        (tmp_path / "run").unlink(missing_ok=True)
        first = make(**parameters).fit(X, Y)
        rounds.clear()
        again = make(**parameters).fit(X, Y)
        assert rounds == []
        assert stored(again.set_params(callbacks=None)) == stored(first.set_params(callbacks=None))


def test_a_callback_that_ends_training_ends_it_for_good(tmp_path):
    def make():
        stop = [lambda state: state.round == 7]
        return ManyBoostRegressor(checkpoint=tmp_path / "run", random_state=1, callbacks=stop)

    assert make().fit(X, Y).n_iter_ == 7
    assert make().set_params(callbacks=None).fit(X, Y).n_iter_ == 7


def test_time_that_ran_out_may_be_given_again(tmp_path):
    def make(max_time):
        return ManyBoostRegressor(
            max_iter=30, checkpoint=tmp_path / "run", random_state=1, max_time=max_time
        )

    assert make(1e-9).fit(X, Y).n_iter_ == 1
    model = make(None).fit(X, Y).set_params(max_time=None)
    assert stored(model) == stored(ManyBoostRegressor(max_iter=30, random_state=1).fit(X, Y))


def test_more_rounds_may_be_asked_for_but_not_fewer(tmp_path):
    def make(max_iter):
        return ManyBoostRegressor(checkpoint=tmp_path / "run", random_state=1, max_iter=max_iter)

    make(10).fit(X, Y)
    expected = ManyBoostRegressor(random_state=1, max_iter=20).fit(X, Y)
    assert stored(make(20).fit(X, Y)) == stored(expected)
    with pytest.raises(ValueError, match=r"has 20 rounds, more than max_iter=10; use a larger"):
        make(10).fit(X, Y)
    with pytest.raises(ValueError, match=r"has 400 rounds, more than max_iter=300; use a larger"):
        make(400).fit(X, Y).set_params(max_iter="auto").fit(X, Y)


def change(name, value):
    return lambda model: model.set_params(**{name: value}).fit(X, Y)


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (change("learning_rate", 0.3), "learning_rate was 'auto' and is 0.3"),
        (change("loss", "huber"), "loss was 'squared_error' and is 'huber'"),
        (change("loss", HalfSquare(0.7)), "loss was 'squared_error' and is HalfSquare"),
        (change("projection", two_columns), "projection was 'gaussian' and is tests."),
        (change("random_state", 5), "random_state was 1 and is 5"),
        (change("interaction_cst", [[0], [1, 2, 3, 4]]), "interaction_cst was None and is [[0], ["),
        (lambda model: model.fit(X + 1, Y), "other X;"),
        (lambda model: model.fit(sparse.csr_array(X), Y), "other X;"),
        (lambda model: model.fit(X[:-1], Y[:-1]), "other X, other y, other sample_weight"),
        (lambda model: model.fit(X, 2 * Y), "other y"),
        (lambda model: model.fit(X, Y, X[:, 0] ** 2), "other sample_weight"),
        (lambda model: model.fit(X, Y, offset=Y), "other offset"),
        (lambda model: model.fit(X, Y, X_val=X, Y_val=Y), "X_val was not given and is given"),
    ],
)
def test_another_fit_is_refused_and_told_what_differs(fit, words, tmp_path):
    path = tmp_path / "run"
    model = ManyBoostRegressor(checkpoint=path, random_state=1, max_iter=5).fit(X, Y)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        fit(model)
    assert str(caught.value).startswith(f"The checkpoint {str(path)!r} belongs to another fit")
    assert "remove the file to start anew" in str(caught.value)
    assert path.read_bytes() == before


def scaled(n_components, n_outputs, rng, scale=1.0):
    return scale * rng.normal(size=(n_components, n_outputs))


class Scaled:
    def __init__(self, scale, helper):
        self.scale, self.helper = scale, helper

    def __call__(self, n_components, n_outputs, rng):
        return scaled(n_components, n_outputs, rng, self.scale)


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("scoring", lambda: make_scorer(r2_score), lambda: make_scorer(max_error)),
        ("scoring", lambda: get_scorer("r2"), lambda: get_scorer("neg_mean_absolute_error")),
        ("projection", lambda: partial(scaled, scale=1.0), lambda: partial(scaled, scale=9.0)),
        ("validation_split", lambda: KFold(3), lambda: KFold(4)),
    ],
)
def test_an_object_made_with_something_else_is_another_one(name, one, other, tmp_path):
    def fit(value):
        settings = {"early_stopping": True, "random_state": 0, "max_iter": 4, name: value}
        ManyBoostRegressor(checkpoint=tmp_path / "run", **settings).fit(X, Y)

    fit(one())
    fit(one())
    with pytest.raises(ValueError, match=f"belongs to another fit: .*{name} was .* and is "):
        fit(other())


def test_an_object_that_does_not_show_what_it_is_made_with_is_another_one_too(tmp_path):
    settings = {"random_state": 0, "max_iter": 4, "checkpoint": tmp_path / "run"}
    for _ in range(2):  # a helper that no file could hold
        ManyBoostRegressor(projection=Scaled(2.0, object()), **settings).fit(X, Y)
    with pytest.raises(ValueError, match="other projection;"):
        ManyBoostRegressor(projection=Scaled(9.0, object()), **settings).fit(X, Y)


def test_a_loss_made_with_other_numbers_is_another_loss(tmp_path):
    model = ManyBoostRegressor(HalfSquare(0.5), checkpoint=tmp_path / "run", max_iter=2)
    model.fit(X, Y)
    with pytest.raises(ValueError, match="other loss"):
        model.set_params(loss=HalfSquare(0.6)).fit(X, Y)


def test_a_random_state_counts_with_what_it_draws_next(tmp_path):
    def make(seed, **parameters):
        state = np.random.RandomState(seed) if isinstance(seed, int) else seed
        return ManyBoostRegressor(random_state=state, max_iter=6, **parameters)

    path = tmp_path / "run"
    model = resumed(lambda **parameters: make(1, **parameters), path, [2, 3], every=1)
    assert stored(model) == stored(make(1).fit(X, Y))
    advanced = model.set_params(checkpoint=None).random_state
    assert advanced.randint(9) >= 0
    for other in (2, advanced):
        with pytest.raises(ValueError, match="belongs to another fit: other random_state;"):
            make(other, checkpoint=path).fit(X, Y)
    # A warm start draws nothing.
    going_on = make(1, checkpoint=tmp_path / "on").fit(X, Y)
    going_on.set_params(warm_start=True, max_iter=9).fit(X, Y)
    assert going_on.n_iter_ == 9


def test_names_and_classes_belong_to_the_fit(tmp_path):
    pandas = pytest.importorskip("pandas")
    named = pandas.DataFrame(X, columns=list("abcde"))
    model = ManyBoostRegressor(checkpoint=tmp_path / "run", max_iter=2).fit(named, Y)
    with pytest.raises(ValueError, match="other names of features"):
        model.fit(named.rename(columns={"a": "z"}), Y)
    words = np.where(Y[:, 0] > 0, "yes", "no")
    model = ManyBoostClassifier(checkpoint=tmp_path / "classes", max_iter=2).fit(X, words)
    with pytest.raises(ValueError, match="other names of features, outputs or classes"):
        model.fit(X, np.where(Y[:, 0] > 0, "ja", "ach"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("output_weight", [1.0, 2, 3, 4]),
        ("monotonic_cst", [1, 0, 0, 0, -1]),
        ("categorical_features", [True, False, True, False, False]),
    ],
)
def test_parameters_with_an_index_count_with_what_they_name(name, value, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X.round(1), columns=list("abcde"))
    targets = pandas.DataFrame(Y, columns=list("pqrs"))
    index = list("pqrs") if name == "output_weight" else list("abcde")
    given = pandas.Series(value, index)
    settings = {"random_state": 0, "max_iter": 4, "checkpoint": tmp_path / "run"}
    for each in (given, given.iloc[::-1], np.array(value)):
        ManyBoostRegressor(**settings, **{name: each}).fit(frame, targets)
    other = ManyBoostRegressor(**settings, **{name: pandas.Series(value, index[::-1])})
    with pytest.raises(ValueError, match=f"belongs to another fit: .*{name}"):
        other.fit(frame, targets)


def test_how_it_is_run_may_change(tmp_path):
    model = ManyBoostRegressor(checkpoint=str(tmp_path / "run"), max_iter=5, n_jobs=1).fit(X, Y)
    again = clone(model).set_params(
        n_jobs=2, verbose=0, max_time=100.0, callbacks=[lambda _: None], warm_start=True
    )
    np.testing.assert_array_equal(again.fit(X, Y).predict(X), model.predict(X))


def test_a_torn_or_foreign_file_is_neither_loaded_nor_overwritten(tmp_path):
    path = tmp_path / "run"
    model = ManyBoostRegressor(checkpoint=path, random_state=1, max_iter=5).fit(X, Y)
    whole = path.read_bytes()
    foreign = [b"", b"a,b\n1,2\n", whole[:-1], whole[: len(whole) // 2], whole + b"\0"]
    foreign += [whole[:200] + b"\x55" + whole[201:]]
    model.save(tmp_path / "model.mb")
    foreign.append((tmp_path / "model.mb").read_bytes())
    for content in foreign:
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is not a sound checkpoint: it"):
            model.fit(X, Y)
        assert path.read_bytes() == content


def test_a_checkpoint_is_no_model(tmp_path):
    path = tmp_path / "run"
    ManyBoostRegressor(checkpoint=path, max_iter=2).fit(X, Y)
    with pytest.raises(ValueError, match="it is a checkpoint of training; fit continues it"):
        manyboost.load(path)


def test_paths_that_cannot_be_are_refused_before_training(tmp_path):
    calls = []
    for path, words in ((tmp_path, "is a folder"), (tmp_path / "no" / "run", "is in no folder")):
        model = ManyBoostRegressor(checkpoint=path, callbacks=[calls.append])
        with pytest.raises(ValueError, match=words):
            model.fit(X, Y)
    assert calls == []


def test_two_fits_that_share_a_path_are_told(tmp_path):
    path = tmp_path / "run"

    def meddle(state):
        if state.round == 2:
            ManyBoostRegressor(max_iter=1).fit(X, Y).save(path)

    model = ManyBoostRegressor(checkpoint=Checkpoint(path, every=1), callbacks=[meddle])
    with pytest.raises(RuntimeError, match="changed by someone else during training"):
        model.fit(X, Y)
    assert not hasattr(model, "n_iter_")


def test_a_file_that_was_removed_meanwhile_is_written_again(tmp_path):
    path = tmp_path / "run"
    checkpoint = Checkpoint(path, every=1)
    model = ManyBoostRegressor(
        checkpoint=checkpoint, max_iter=5, callbacks=[lambda _: path.unlink()]
    )
    model.fit(X, Y)
    assert path.exists()


def test_a_warm_start_goes_on_after_its_own_checkpoint(tmp_path):
    path = tmp_path / "run"
    model = ManyBoostRegressor(
        max_iter=10, warm_start=True, random_state=0, checkpoint=Checkpoint(path, every=1)
    )
    model.fit(X, Y)
    model.save(tmp_path / "ten.mb")
    with pytest.raises(Killed):
        model.set_params(max_iter=25, callbacks=[Die(4)]).fit(X, Y)
    again = manyboost.load(tmp_path / "ten.mb")
    rounds = []
    again.set_params(
        max_iter=25,
        checkpoint=Checkpoint(path, every=1),
        callbacks=[lambda state: rounds.append(state.round)],
    )
    again.fit(X, Y)
    assert rounds[0] == 14
    expected = ManyBoostRegressor(max_iter=25, warm_start=True, random_state=0).fit(X, Y)
    assert stored(again.set_params(callbacks=None)) == stored(expected)
    # A fit from nothing is another one, and so is one from another model.
    for other in (ManyBoostRegressor(max_iter=25, random_state=0), again):
        other.set_params(checkpoint=path, warm_start=True, max_iter=30)
        if other is again:
            other._progress.truncate(9)
        with pytest.raises(ValueError, match="it continued another model"):
            other.fit(X, Y)


def test_a_warm_start_of_a_stopped_model_goes_on_too(tmp_path):
    parameters = {"max_iter": 40, "warm_start": True, "random_state": 0, "checkpoint": None}
    for early_stopping in (True, "per_output"):
        parameters |= {**STOPPING, "early_stopping": early_stopping}
        plain = ManyBoostRegressor(**parameters).fit(X, Y)
        kept = ManyBoostRegressor(**parameters)
        kept.set_params(checkpoint=tmp_path / str(early_stopping)).fit(X, Y)
        assert stored(kept) == stored(plain)
        for model in (plain, kept):
            model.set_params(max_iter=60).fit(X, Y)
        assert stored(kept) == stored(plain)


def test_foreign_estimators_are_refused(tmp_path):
    model = ManyBoostRegressor(estimator=LinearRegression(), checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match="checkpoint works with built-in trees only"):
        model.fit(X, Y)


@pytest.mark.parametrize("every", [0, -1, 1.5, True, "10"])
def test_frequencies_are_numbers_of_rounds(every):
    with pytest.raises(ValueError, match=r"every=.* is not allowed; it must be a number of rounds"):
        Checkpoint("run", every=every)


def test_paths_are_checked():
    with pytest.raises(ValueError, match=r"path=3 is not allowed"):
        Checkpoint(3)
    with pytest.raises(ValueError, match=r"checkpoint=3 is not allowed; it must be None, or the"):
        ManyBoostRegressor(checkpoint=3).fit(X, Y)


def test_the_checkpoint_is_no_part_of_the_model(tmp_path):
    path = tmp_path / "run"
    model = ManyBoostRegressor(max_iter=3, random_state=0, checkpoint=path).fit(X, Y)
    assert stored(model) == stored(ManyBoostRegressor(max_iter=3, random_state=0).fit(X, Y))
    model.save(tmp_path / "model.mb")
    assert manyboost.load(tmp_path / "model.mb").checkpoint is None


def test_a_failed_write_leaves_the_last_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "run"

    def full(handle):
        if path.exists():
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    model = ManyBoostRegressor(max_iter=9, random_state=0, checkpoint=Checkpoint(path, every=1))
    with pytest.raises(OSError, match="No space left"):
        model.fit(X, Y)
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    expected = ManyBoostRegressor(max_iter=9, random_state=0).fit(X, Y)
    assert stored(model.fit(X, Y)) == stored(expected)


def test_without_a_frequency_writing_takes_little_of_the_time(tmp_path, monkeypatch):
    from manyboost.persistence import checkpoint

    clock = iter(np.arange(0, 1000, 0.5))  # every look takes half a second, a write one
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: float(next(clock)))
    written = []
    write = checkpoint.Recorder.write
    monkeypatch.setattr(
        checkpoint.Recorder, "write", lambda self, state: (written.append(1), write(self, state))
    )
    ManyBoostRegressor(max_iter=100, checkpoint=tmp_path / "run").fit(X, Y)
    # 100 looks of half a second, and pauses of ten: the first, the last, and four between.
    assert 4 <= len(written) <= 7


# Folds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("random_state", [3, None])
@pytest.mark.parametrize("more", [{}, {"early_stopping": "per_output"}, {"refit_all": True}])
def test_members_of_folds_go_on_from_files_of_their_own(tmp_path, random_state, more):
    parameters = {"max_iter": 25, "max_leaf_nodes": 6, "n_folds": 3, "n_iter_no_change": 4} | more
    path = tmp_path / "run.checkpoint"

    def make(**changes):
        return ManyBoostRegressor(random_state=random_state, **parameters, **changes)

    model = resumed(make, path, [2, 5])
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == [f"run.checkpoint.{k}" for k in range(3)]
    plain = make()
    with mock.patch("manyboost.estimators.fitting.check_random_state") as drawn:
        drawn.return_value.randint.return_value = model._seed
        plain.fit(X, Y)
    assert stored(model) == stored(plain)
    assert np.array_equal(model.oof_prediction_, plain.oof_prediction_)
    # The file of a member that is lost, or behind, is made again.
    (tmp_path / "run.checkpoint.1").unlink()
    again = make(checkpoint=path).fit(X, Y)
    assert stored(again) == stored(plain)


@pytest.mark.parametrize("random_state", [3, None])
@pytest.mark.parametrize("lost", [[0], [0, 2]])
def test_a_member_whose_file_is_lost_starts_anew_with_the_same_folds(tmp_path, random_state, lost):
    parameters = {"max_iter": 12, "max_leaf_nodes": 6, "n_folds": 3, "random_state": random_state}
    path = tmp_path / "run"
    with pytest.raises(Killed):
        ManyBoostRegressor(
            checkpoint=Checkpoint(path, every=2), callbacks=[Die(6)], **parameters
        ).fit(X, Y)
    copied = tmp_path / "copy"
    for fold in range(3):
        if fold not in lost:
            shutil.copy(f"{path}.{fold}", f"{copied}.{fold}")
    whole = ManyBoostRegressor(checkpoint=path, **parameters).fit(X, Y)
    model = ManyBoostRegressor(checkpoint=copied, **parameters).fit(X, Y)
    assert stored(model) == stored(whole)
    np.testing.assert_array_equal(model.oof_prediction_, whole.oof_prediction_)


def test_members_of_different_fits_are_refused(tmp_path):
    parameters = {"max_iter": 3, "n_folds": 3}  # with drawn seeds
    for name in ("one", "other"):
        ManyBoostRegressor(checkpoint=tmp_path / name, **parameters).fit(X, Y)
    (tmp_path / "other.1").replace(tmp_path / "one.1")
    with pytest.raises(ValueError, match=r"one\.0' and .*one\.1' belong to fits of different"):
        ManyBoostRegressor(checkpoint=tmp_path / "one", **parameters).fit(X, Y)


@pytest.mark.parametrize("strategy", ["independent", "project", "relabel"])
def test_members_know_which_outputs_were_frozen(tmp_path, strategy):
    parameters = {"max_iter": 15, "max_leaf_nodes": 4, "n_iter_no_change": 3, "random_state": 0}
    parameters |= {"n_folds": 3, "early_stopping": "per_output", "learning_rate": 0.7}
    make, path = partial(ManyBoostRegressor, strategy=strategy, **parameters), tmp_path / "run"
    plain = make().fit(X, Y)
    assert stored(resumed(make, path, [2] * 12, every=1)) == stored(plain)
    # A member that starts anew catches up with the others.
    (tmp_path / "run.1").unlink()
    assert stored(make(checkpoint=path).fit(X, Y)) == stored(plain)


def test_other_folds_are_another_fit(tmp_path):
    path = tmp_path / "run.checkpoint"
    settings = {"max_iter": 3, "random_state": 0, "checkpoint": path}
    groups = np.arange(len(X)) % 7
    ManyBoostRegressor(n_folds=3, **settings).fit(X, Y, groups=groups)
    with pytest.raises(ValueError, match="n_folds was 3 and is 4"):
        ManyBoostRegressor(n_folds=4, **settings).fit(X, Y, groups=groups)
    with pytest.raises(ValueError, match="other groups"):
        ManyBoostRegressor(n_folds=3, **settings).fit(X, Y, groups=groups // 2)
    (tmp_path / "run.checkpoint.0").rename(tmp_path / "run.checkpoint.1")
    with pytest.raises(ValueError, match="the fold was 0 and is 1"):
        ManyBoostRegressor(n_folds=3, **settings).fit(X, Y, groups=groups)
