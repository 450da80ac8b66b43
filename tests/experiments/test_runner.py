"""Runs are carried out once, in order, on any number of processes; failures are not lost."""

import io

import pytest
from experiments.protocol import Search
from experiments.runner import run_missing
from experiments.store import Store
from tests.experiments.toy_runs import Toy


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_needs_come_first_and_their_results_are_handed_on(n_jobs):
    run = Toy("toy", 0, 0, 1, below=3)
    store = Store(None)
    run_missing([run], store, n_jobs=n_jobs)
    assert store.get(run).scores == {"score": 1 + 10 + 11 + 12}
    assert len(store) == 4


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_needs_that_depend_on_results_come_after_these(n_jobs):
    run = Toy("toy", 0, 0, 1, below=1, then=1)
    store = Store(None)
    run_missing([run], store, n_jobs=n_jobs)
    assert store.get(run).scores == {"score": 1 + 10 + sum(range(1000, 1010))}
    assert len(store) == 1 + 1 + 10


def test_a_later_need_that_fails_is_tried_once_and_its_run_left_out():
    run = Toy("toy", 0, 0, 1, below=1, then=1, then_fate="raise")
    store, stream = Store(None), io.StringIO()
    run_missing([run], store, stream=stream)
    assert store.get(run) is None
    assert stream.getvalue().count("is not to be") == 10


def test_a_complete_run_is_not_repeated():
    store = Store(None)
    run = Toy("toy", 0, 0, 1, below=2)
    run_missing([run], store)
    stream = io.StringIO()
    run_missing([run, run], store, stream=stream)
    assert stream.getvalue() == ""
    assert len(store) == 3


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_exception_is_shown_and_ends_nothing_else(n_jobs):
    broken, fine = Toy("toy", 0, 0, 2, below=1, fate="raise"), Toy("toy", 0, 0, 1)
    stream = io.StringIO()
    store = Store(None)
    run_missing([broken, fine], store, n_jobs=n_jobs, stream=stream)
    assert store.get(fine) is not None
    assert store.get(broken) is None
    assert "RuntimeError: run 20 is not to be" in stream.getvalue()


def test_a_worker_that_dies_fails_its_run_alone():
    runs = [Toy("toy", 0, 0, 1, fate="die"), *(Toy("toy", 0, 0, n) for n in range(2, 6))]
    store, stream = Store(None), io.StringIO()
    run_missing(runs, store, n_jobs=2, stream=stream)
    assert len(store) == 4
    assert "worker process died" in stream.getvalue()


N_SETTINGS = 4
SEARCHES = [
    Search.declare("friedman1-group", 0, split, method, N_SETTINGS, "rounds:110")
    for split in (0, 1)
    for method in ("gbmort", "gbrt-rpo-subsampled", "mo-rf")
]


class Interruption(Exception):
    """What Ctrl-C does, at a chosen row."""


class Interrupted(Store):
    """A store that is interrupted in the middle of its fourth row."""

    def put(self, run, result):
        if len(self) == 3:
            with (self._folder / "trials.csv").open("a") as file:
                file.write("friedman1-group,0,1,gbm")
            raise Interruption
        super().put(run, result)


def rows(store):
    """What the store holds, without the CPU seconds."""

    def without_seconds(result):
        fields = dict(vars(result))
        del fields["seconds"]
        return fields

    kept = [*store.trials(), *store.runs()]
    return {run.key: without_seconds(result) for run, result in kept}


def rounds_of_trials(store):
    return [trial.rounds for trial, _ in store.trials()]


def test_one_process_two_and_an_interrupted_run_give_the_same_rows(tmp_path):
    for n_jobs in (1, 2):
        run_missing(SEARCHES, Store(tmp_path / str(n_jobs)), n_jobs=n_jobs)
    with pytest.raises(Interruption):
        run_missing(SEARCHES, Interrupted(tmp_path / "cut"))
    assert len(Store(tmp_path / "cut")) == 3
    run_missing(SEARCHES, Store(tmp_path / "cut"))
    one, two, cut = (rows(Store(tmp_path / name)) for name in ("1", "2", "cut"))
    assert len(one) == 2 * (2 * (N_SETTINGS + 1) + 1)
    assert len(set(rounds_of_trials(Store(tmp_path / "1")))) == 2  # some went on, others did not
    assert one == two == cut
