"""A store holds complete runs, and nothing else."""

import sqlite3

import pytest

from experiments.toy_runs import Toy
from manyboost.experiments.protocol import Points, Result, Trial
from manyboost.experiments.store import Store

RESULT = Result(
    {"lrap": 0.25},
    7,
    1.5,
    Points([1, 7], [0.1, 1.5], [0.2, 0.25]),
    {"loss": "log_loss", "max_features": "sqrt"},
    1,
)


def test_a_result_comes_back_as_it_was(tmp_path):
    run = Toy("toy", 0, 1)
    with Store(tmp_path / "runs") as store:
        assert store.get(run) is None
        store.put(run, RESULT)
    with Store(tmp_path / "runs") as store:
        assert store.get(run) == RESULT
        assert store.get(Toy("toy", 0, 2)) is None
        assert [spec["number"] for spec in store] == [1]
        assert store.made_with()[0].keys() >= {"manyboost", "numpy", "python", "machine"}


def test_the_first_result_stands():
    with Store(":memory:") as store:
        run = Toy("toy", 0, 1)
        store.put(run, RESULT)
        store.put(run, Result({"lrap": 0.5}, 1, 1.0))
        assert store.get(run) == RESULT
        assert len(store) == 1


def test_a_failure_is_kept_until_the_run_succeeds():
    with Store(":memory:") as store:
        run = Toy("toy", 0, 1)
        store.fail(run, "Traceback\nRuntimeError: no")
        assert store.get(run) is None
        assert store.error(run) == "Traceback\nRuntimeError: no"
        store.put(run, RESULT)
        assert store.error(run) is None


def test_a_result_that_cannot_be_written_leaves_nothing(tmp_path):
    run = Toy("toy", 0, 1)
    with Store(tmp_path / "runs") as store:
        with pytest.raises(sqlite3.IntegrityError):
            store.put(run, Result({"lrap": 0.5}, None, 1.0))
        assert store.get(run) is None
        assert len(store) == 0


def test_another_file_is_not_a_store(tmp_path):
    (tmp_path / "notes.txt").write_text(
        "no database at all, but long enough to be looked at\n" * 20
    )
    with pytest.raises(ValueError, match="is not a store of runs"):
        Store(tmp_path / "notes.txt")


def test_keys_tell_all_runs_apart():
    settings = {"loss": "log_loss", "learning_rate": 0.1}
    base = ("scene", 0, 0, "gbmort", settings, "rounds:5", None)
    runs = [
        Trial(*base),
        Trial("birds", *base[1:]),
        Trial("scene", 1, *base[2:]),
        Trial("scene", 0, 1, *base[3:]),
        Trial(*base[:4], {**settings, "learning_rate": 0.2}, *base[5:]),
        Trial(*base[:5], "rounds:6", None),
        Trial(*base[:6], 3.0),
    ]
    assert len({run.key for run in runs}) == len(runs)
    reordered = dict(reversed(settings.items()))
    assert Trial(*base[:4], reordered, *base[5:]).key == runs[0].key
