"""Planning, resuming and killing, with processes that do no more than they must."""

import subprocess
import sys

import pytest
from benchmarks.run import (
    Budget,
    Results,
    end,
    interleaved,
    resident_bytes,
    run_process,
    serves,
    specification,
    watch,
)
from benchmarks.suites import Entry

ENTRY = Entry("regression-100x5x2", "sklearn-random-forest", n_rounds=5, threads=1, limit=10.0)


def record(spec, **facts):
    return {"spec": spec, "status": "ok", "extrapolated": None, "fit_seconds": 1.0, **facts}


def test_repeats_are_interleaved():
    plan = [Entry("a", "x", repeats=3), Entry("b", "x", repeats=1)]
    order = [(entry.workload, repeat) for entry, repeat in interleaved(plan, None)]
    assert order == [("a", 0), ("b", 0), ("a", 1), ("a", 2)]
    assert len(interleaved(plan, 2)) == 3


def test_a_record_serves_the_same_specification_only():
    spec = specification(ENTRY, 0)
    assert serves(record(spec), spec)
    assert not serves(record(spec), {**spec, "library": "another build"})
    assert not serves(record(spec), specification(ENTRY, 1))
    assert not serves(record(spec, status="failed"), spec)


def test_a_larger_limit_asks_again_only_for_what_the_limit_stopped():
    spec = specification(ENTRY, 0)
    longer = {**spec, "limit": 100.0}
    assert serves(record(spec), longer)
    assert not serves(record(spec, extrapolated="1 of 2 outputs"), longer)
    assert not serves(record(spec, status="over budget"), longer)
    assert serves(record(longer, extrapolated="1 of 2 outputs"), spec)


def test_results_survive_and_a_new_record_takes_the_place_of_the_old(tmp_path):
    file = tmp_path / "results.json"
    spec = specification(ENTRY, 0)
    results = Results(file)
    results.add(record(spec))
    results.add(record({**spec, "limit": 20.0}, fit_seconds=2.0))
    results.skip(ENTRY, "not today")
    stored = Results(file)
    assert [r["fit_seconds"] for r in stored.records] == [2.0]
    assert Results(file, fresh=True).records == []


def test_records_of_another_machine_are_refused_or_kept_with_their_place(tmp_path):
    file = tmp_path / "results.json"
    spec = specification(ENTRY, 0)
    results = Results(file)
    results.machine = {**results.machine, "cpu": "another"}
    results.add(record(spec))
    with pytest.raises(SystemExit, match="another machine"):
        Results(file)
    [kept] = Results(file, elsewhere=True).records
    assert kept["place"]["cpu"] == "another"


@pytest.mark.parametrize(
    ("code", "budget", "status"),
    [
        ("pass", Budget(60, 1e9), "ok"),
        ("import time; time.sleep(60)", Budget(0.3, 1e9), "over budget"),
        ("x = b'x' * 200_000_000; import time; time.sleep(60)", Budget(60, 1e8), "over memory"),
    ],
)
def test_a_process_is_watched(code, budget, status):
    if status == "over memory" and not resident_bytes(1):
        pytest.skip("this system does not tell the memory of a process")
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        assert watch(process, budget) == status
    finally:
        end(process)
    assert process.returncode is not None


def test_a_contestant_is_measured_in_a_process_of_its_own():
    made = run_process(specification(ENTRY, 0), Budget(120, 4e9))
    assert made["status"] == "ok", made.get("log")
    assert made["fit_seconds"] > 0
    assert made["curve"][-1][2] == pytest.approx(made["score"])
    assert made["n_outputs"] == 2


def test_a_contestant_that_fails_leaves_a_record_with_the_reason():
    spec = {**specification(ENTRY, 0), "workload": "regression-wide"}
    made = run_process(spec, Budget(60, 4e9))
    assert made["status"] == "failed"
    assert "no workload" in made["log"]
