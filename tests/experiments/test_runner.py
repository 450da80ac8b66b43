"""Runs are carried out once, in order, on any number of processes; failures are not lost."""

import io
import re

import pytest

from experiments.toy_runs import Toy
from manyboost.experiments.progress import Progress
from manyboost.experiments.runner import run_missing
from manyboost.experiments.store import Store


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_needs_come_first_and_their_results_are_handed_on(n_jobs):
    run = Toy("toy", 0, 1, below=3)
    with Store(":memory:") as store:
        run_missing([run], store, n_jobs=n_jobs)
        assert store.get(run).scores == {"score": 1 + 10 + 11 + 12}
        assert len(store) == 4


def test_a_complete_run_is_not_repeated():
    with Store(":memory:") as store:
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
    with Store(":memory:") as store:
        run_missing([broken, fine], store, n_jobs=n_jobs, stream=stream)
        assert store.get(fine) is not None
        assert store.get(broken) is None
        error = store.error(broken.needs()[0])
        assert "RuntimeError: run 20 is not to be" in error
        assert error.startswith("Traceback")
    shown = stream.getvalue()
    assert "RuntimeError: run 20 is not to be" in shown
    assert "1 runs that need it are left out" in shown


def test_a_worker_that_dies_fails_its_run_alone():
    runs = [Toy("toy", 0, 1, fate="die"), *(Toy("toy", 0, n) for n in range(2, 6))]
    with Store(":memory:") as store:
        run_missing(runs, store, n_jobs=2)
        assert len(store) == 4
        assert "exit code 9" in store.error(runs[0])


def test_progress_is_plain_lines_where_there_is_no_terminal():
    stream = io.StringIO()
    runs = [Toy("toy", 0, n) for n in range(4)]
    with Store(":memory:") as store:
        run_missing(runs, store, stream=stream)
    lines = stream.getvalue().splitlines()
    assert "\r" not in stream.getvalue()
    assert re.fullmatch(r"1/4 runs, about 0 s left · toy toy", lines[0])
    assert lines[-1] == "4/4 runs"


def test_progress_is_one_line_on_a_terminal():
    stream = io.StringIO()
    stream.isatty = lambda: True
    runs = [Toy("toy", 0, n) for n in range(2)]
    progress = Progress(stream, runs, 1)
    progress.finished(runs[0], 60.0)
    progress.finished(runs[1], 60.0)
    progress.close()
    first, _, last = stream.getvalue().split("\r")
    assert first == "1/2 runs, about 60 s left · toy toy"
    assert last == "2/2 runs\n"


def test_time_left_goes_by_like_runs():
    runs = [Toy(name, 0, n) for name in ("slow", "fast") for n in range(4)]
    progress = Progress(None, runs, 2)
    progress.finished(runs[0], 100.0)
    progress.finished(runs[4], 1.0)
    assert progress.seconds_left() == pytest.approx((3 * 100 + 3 * 1) / 2)
