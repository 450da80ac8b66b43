"""A store holds complete runs, and nothing else."""

import json

import pytest
from experiments.protocol import Points, Result, Trial
from experiments.store import Store
from tests.experiments.toy_runs import Toy

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
    store = Store(tmp_path / "runs")
    assert store.get(run) is None
    store.put(run, RESULT)
    store = Store(tmp_path / "runs")
    assert store.get(run) == RESULT
    assert store.get(Toy("toy", 0, 2)) is None
    assert store.datasets() == {"toy"}
    assert store.made_with()[0].keys() >= {"manyboost", "numpy", "python", "machine"}


def test_the_first_result_stands():
    store = Store(None)
    run = Toy("toy", 0, 1)
    store.put(run, RESULT)
    store.put(run, Result({"lrap": 0.5}, 1, 1.0))
    assert store.get(run) == RESULT
    assert len(store) == 1


def test_a_failure_is_kept_until_the_run_succeeds():
    store = Store(None)
    run = Toy("toy", 0, 1)
    store.fail(run, "Traceback\nRuntimeError: no")
    assert store.get(run) is None
    assert store.error(run) == "Traceback\nRuntimeError: no"
    store.put(run, RESULT)
    assert store.error(run) is None


def test_a_result_that_cannot_be_written_leaves_nothing(tmp_path):
    run = Toy("toy", 0, 1)
    store = Store(tmp_path / "runs")
    with pytest.raises(ValueError, match="Out of range float"):
        store.put(run, Result({"lrap": float("nan")}, 1, 1.0))
    assert store.get(run) is None
    assert len(Store(tmp_path / "runs")) == 0


def test_a_line_that_was_cut_off_is_dropped(tmp_path):
    path = tmp_path / "runs"
    store = Store(path)
    for number in (1, 2):
        store.put(Toy("toy", 0, number), RESULT)
    path.write_bytes(path.read_bytes()[:-20])
    store = Store(path)
    assert len(store) == 1
    store.put(Toy("toy", 0, 3), RESULT)
    rows = list(map(json.loads, path.read_text().splitlines()))
    assert [row["run"]["number"] for row in rows] == [1, 3]


def test_another_file_is_not_a_store(tmp_path):
    (tmp_path / "notes.txt").write_text("not a store at all\n" * 20)
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
