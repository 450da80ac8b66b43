"""The contest: one validation part for all, caps that are told, records with all that is asked."""

import json
import time

import numpy as np
import pytest
from benchmarks.contest import sets
from benchmarks.contest.__main__ import RESULTS, parse, planned
from benchmarks.contest.contestants import CONTESTANTS
from benchmarks.contest.contestants.sklearn import FOREST, TREES_AT_A_TIME
from benchmarks.contest.contestants.stopping import Stopped, hopeless
from benchmarks.contest.fitting import outcome
from benchmarks.contest.running import Plan
from benchmarks.contest.sets import SETS, Split
from benchmarks.contestants import Contestant, Settings, Stopwatch
from benchmarks.records import Run
from benchmarks.result_files import Results, serves
from benchmarks.workloads import Data, data_folder
from scipy.sparse import csr_matrix, issparse

from benchmarks import machine
from contest_records import record


def toy(task="multilabel", *, sparse=False) -> Data:
    """90 training and 40 test rows, four outputs of which the last never changes in training."""
    rng = np.random.default_rng(0)
    X = rng.integers(4, size=(130, 6)).astype(np.float32)
    signal = X[:, :4] + rng.standard_normal((130, 4))
    Y = (signal > 2).astype(np.uint8) if task == "multilabel" else signal.astype(np.float32)
    Y[:90, 3] = 0
    X = csr_matrix(X) if sparse else X
    return Data(X[:90], Y[:90], X[90:], Y[90:], task)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A data folder where two sets are toys without an official split."""
    data = toy()
    X, Y = np.concatenate([data.X, data.X_test]), np.concatenate([data.Y, data.Y_test])
    for name in ("emotions", "genbase"):
        np.savez(tmp_path / f"{name}.npz", X=X, Y=Y)
    monkeypatch.setenv("MANYBOOST_DATA", str(tmp_path))
    return tmp_path


# ------------------------------------------------------------------ the sets


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_tenth_of_the_training_rows_validates_and_the_test_rows_are_left_alone(sparse):
    data = toy(sparse=sparse)
    split, again, other = (Split.of(data, seed) for seed in (0, 0, 1))
    assert (split.X.shape[0], split.X_val.shape[0]) == (81, 9)
    X, Y = split.with_validation()
    dense = X.toarray() if issparse(X) else X
    whole = data.X.toarray() if sparse else data.X
    rows, expected = (np.hstack(pair) for pair in ((dense, Y), (whole, data.Y)))
    np.testing.assert_array_equal(np.sort(rows, axis=0), np.sort(expected, axis=0))
    assert split.X_test is data.X_test
    np.testing.assert_array_equal(split.Y_val, again.Y_val)
    assert (split.Y != other.Y).any()


def test_an_identifier_of_the_rows_is_dropped_for_all(folder):
    whole, without = sets.load("emotions", 0), sets.load("genbase", 0)
    for part in ("X", "X_val", "X_test"):
        np.testing.assert_array_equal(getattr(without, part), getattr(whole, part)[:, 1:])


def test_every_set_of_the_data_folder_takes_part_with_its_task():
    manifest = data_folder() / "MANIFEST.json"
    if not manifest.is_file():
        pytest.skip("there is no data folder")
    described = json.loads(manifest.read_text())["datasets"]
    tasks = {"multi-output regression": "regression", "multi-label classification": "multilabel"}
    found = {each["name"]: tasks[each["task"]] for each in described}
    assert {name: each.task for name, each in SETS.items()} == found
    for each in described:  # without an official split, half of the rows train
        n_train = each["n_train"] if each["n_test"] else each["n_total"] / 2
        assert SETS[each["name"]].repeats == (5 if n_train < 1000 else 3), each["name"]


def test_a_set_that_is_not_in_the_data_folder_is_skipped_with_a_reason(folder):
    results = Results(folder / "contest.json")
    plan = Plan(["yeast"], {"random-forest": CONTESTANTS["random-forest"]})
    plan.run(results)
    assert results.records == []
    assert list(results.skipped) == ["yeast · random-forest"]
    assert "yeast.npz is not in the data folder" in results.skipped["yeast · random-forest"]


# ------------------------------------------------------------------ the plan


def test_plan_walks_set_by_set_and_repeats_are_interleaved():
    plan = planned(
        parse(["--sets", "scm20d", "emotions", "--contestants", "lightgbm", "manyboost"])
    )
    jobs = [
        (entry.workload, entry.contestant, repeat)
        for jobs in plan.units().values()
        for entry, repeat in jobs
    ]
    first, second = "manyboost", "lightgbm"
    assert jobs[:3] == [("emotions", first, 0), ("emotions", second, 0), ("emotions", first, 1)]
    assert len(jobs) == 2 * (SETS["emotions"].repeats + SETS["scm20d"].repeats)
    assert {job[0] for job in jobs[-6:]} == {"scm20d"}


# ------------------------------------------------------------------ the contestants


def available(name):
    contestant = CONTESTANTS[name]()
    if reason := contestant.unavailable():
        pytest.skip(reason)
    return contestant


@pytest.mark.filterwarnings("default")  # theirs are not our business
@pytest.mark.parametrize("name", CONTESTANTS)
@pytest.mark.parametrize(
    ("task", "sparse"), [("multilabel", False), ("multilabel", True), ("regression", False)]
)
def test_every_contestant_keeps_its_best_round_and_predicts_all_outputs(name, task, sparse):
    contestant = available(name)
    data = Split.of(toy(task, sparse=sparse), 0)
    contestant.fit(data, Settings(n_rounds=15, n_threads=1), Stopwatch())
    raw = contestant.predict(data.X_test)
    assert raw.shape == data.Y_test.shape
    assert np.isfinite(raw).all()
    mean = data.Y.mean(axis=0)
    truth, ours, constant = (part[:, :3] for part in (data.Y_test, raw, 0 * raw + mean))
    if task == "regression":  # it has learned something
        assert ((truth - ours) ** 2).mean() < ((truth - constant) ** 2).mean()
    else:
        assert ours[truth == 1].mean() > ours[truth == 0].mean()
        assert (raw[:, 3:] <= ours).all()  # no training row has the last label
    assert 1 <= contestant.rounds_done <= (FOREST if name == "random-forest" else 15)
    assert max(contestant.model_bytes(), contestant.bytes_let_go) > 100


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", [name for name in CONTESTANTS if name != "boomer"])
def test_a_contestant_that_is_stopped_at_once_is_scored_with_what_it_has(name):
    contestant = available(name)  # the clock of boomer knows whole seconds
    data = Split.of(toy(), 0)
    contestant.fit(data, Settings(n_rounds=50, n_threads=1), Stopwatch(limit=1e-9))
    if isinstance(contestant, Stopped):
        assert len(contestant.outputs_done) == 1
    else:
        assert contestant.rounds_done in (1, TREES_AT_A_TIME)
        assert contestant.predict(data.X_test).shape == data.Y_test.shape


def test_a_paused_stopwatch_does_not_run():
    watch = Stopwatch()
    with watch.paused():
        time.sleep(0.1)
    assert watch.elapsed < 0.1


def test_one_model_per_output_is_given_up_when_a_fifth_of_the_time_shows_that_it_must_be():
    watch = Stopwatch(limit=100.0)
    watch.began -= 30  # 30 seconds have passed
    assert hopeless(10, 100, 0.0, watch)  # it would take 300
    assert not hopeless(9, 100, 0.0, watch)  # too few outputs to tell
    assert not hopeless(20, 100, 0.0, watch)  # 150: it may go on to the cap
    assert not hopeless(10, 100, 25.0, watch)  # the set-up is paid once: 75


# ------------------------------------------------------------------ records


def test_the_peers_of_the_stored_records_are_pinned_at_their_versions():
    files = RESULTS.parent.parent.glob("requirements*.txt")
    lines = [line for file in files for line in file.read_text().splitlines()]
    asked = [line for line in lines if line and not line.startswith("#")]
    assert all("==" in line for line in asked)
    pins = dict(line.split(";")[0].split("==") for line in asked)
    made_with = Run.read(RESULTS).libraries
    peers = dict(name.split() for name in made_with if not name.startswith("manyboost "))
    assert len(peers) >= 4
    assert {name: pins.get(machine.DISTRIBUTIONS[name]) for name in peers} == peers


def test_a_fit_is_measured_in_a_process_of_its_own_and_not_made_again(folder):
    plan = Plan(["emotions"], {"random-forest": CONTESTANTS["random-forest"]}, memory=4)
    (entry, repeat), *_ = plan.units()["emotions"]
    results = Results(folder / "contest.json")
    said = plan.run_one(entry, repeat, results)
    [made] = results.records
    assert made["status"] == "ok", made.get("log")
    assert "LRAP" in said
    assert 0 < made["score"] <= 1
    assert made["rounds"] == FOREST
    assert not made["capped"]
    assert made["predict_seconds"] > 0
    assert made["peak_bytes"] >= made["model_bytes"] > 10_000  # a hundred trees
    assert made["others_cores"] >= 0
    assert plan.run_one(entry, repeat, Results(results.file)).startswith("known")


class LetGo(Contestant):
    """Votes while it fits, and keeps nothing."""

    def predict(self, X):
        return np.zeros((len(X), 4))


def test_a_model_that_is_let_go_counts_into_memory_and_its_votes_are_its_predictions():
    contestant = LetGo()
    contestant.bytes_let_go, contestant.parts_let_go = 500, 5
    contestant.voting_seconds = 7.0
    made = outcome(contestant, Split.of(toy("regression"), 0), 2.0, 1000, limit=1.0)
    assert (made["peak_bytes"], made["model_bytes"], made["predict_seconds"]) == (1400, 500, 7.0)
    assert made["capped"]


def test_a_fit_of_some_outputs_has_no_score_and_an_extrapolated_time():
    contestant = LetGo()
    contestant.outputs_done, contestant.setup_seconds = np.array([2]), 1.0
    made = outcome(contestant, Split.of(toy(), 0), 3.0, 1000, limit=1.0)
    assert made == {"fit_seconds": 1 + 4 * 2.0, "extrapolated": "1 of 4 outputs"}


def test_a_record_that_lacks_memory_is_made_anew():
    assert not Plan().is_whole(record("manyboost", 0.5))
    assert Plan().is_whole(record("manyboost", 0.5, peak_bytes=None))  # the system does not tell
    assert Plan().is_whole(record("manyboost", None, extrapolated="3 of 9 outputs"))


def test_a_larger_cap_asks_again_only_for_what_the_cap_stopped():
    spec = record("manyboost", 0.5)["spec"]
    longer = {**spec, "limit": 1000.0}
    assert serves(record("manyboost", 0.5), longer)
    assert not serves(record("manyboost", 0.5, capped=True), longer)
