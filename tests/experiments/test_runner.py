"""Runs are carried out once, in order, on any number of processes; failures are not lost."""

import io

import pytest
from experiments.runner import run_missing
from experiments.store import Store
from tests.experiments.toy_runs import Toy


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_needs_come_first_and_their_results_are_handed_on(n_jobs):
    run = Toy("toy", 0, 1, below=3)
    store = Store(None)
    run_missing([run], store, n_jobs=n_jobs)
    assert store.get(run).scores == {"score": 1 + 10 + 11 + 12}
    assert len(store) == 4


def test_a_complete_run_is_not_repeated():
    store = Store(None)
    run = Toy("toy", 0, 1, below=2)
    run_missing([run], store)
    stream = io.StringIO()
    run_missing([run, run], store, stream=stream)
    assert stream.getvalue() == ""
    assert len(store) == 3


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_exception_is_written_shown_and_ends_nothing_else(n_jobs):
    broken, fine = Toy("toy", 0, 2, below=1, fate="raise"), Toy("toy", 0, 1)
    stream = io.StringIO()
    store = Store(None)
    run_missing([broken, fine], store, n_jobs=n_jobs, stream=stream)
    assert store.get(fine) is not None
    assert store.get(broken) is None
    error = store.error(broken.needs()[0])
    assert "RuntimeError: run 20 is not to be" in error
    assert error.startswith("Traceback")
    shown = stream.getvalue()
    assert "RuntimeError: run 20 is not to be" in shown


def test_a_worker_that_dies_fails_its_run_alone():
    runs = [Toy("toy", 0, 1, fate="die"), *(Toy("toy", 0, n) for n in range(2, 6))]
    store = Store(None)
    run_missing(runs, store, n_jobs=2)
    assert len(store) == 4
    assert "worker process died" in store.error(runs[0])
