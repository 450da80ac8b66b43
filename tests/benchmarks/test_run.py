"""Planning, resuming and killing, with processes that do no more than they must."""

import subprocess
import sys

import pytest
from benchmarks.result_files import Refused, Results, serves, unit_of
from benchmarks.run import (
    Budget,
    SuitePlan,
    end,
    interleaved,
    resident_bytes,
    run_process,
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


# ------------------------------------------------------------------ machines


class Counting(SuitePlan):
    """Measures nothing."""

    def measured(self, spec, entry):
        return record(spec, made_here=True)


SHAPES = ("regression-100x5x2", "regression-100x5x20", "regression-900x5x2")
PLAN = Counting(
    [
        Entry(name, c, 5, 1)
        for name in SHAPES
        for c in ("sklearn-random-forest", "manyboost-relabel")
    ]
)


@pytest.fixture
def elsewhere(tmp_path):
    """The file of another machine that measured the whole plan."""
    results = Results(tmp_path / "results.json")
    results.machines[0] = {**results.machines[0], "cpu": "another"}
    for jobs in PLAN.units().values():
        for entry, repeat in jobs:
            results.add(record(PLAN.specification(entry, repeat)))
    return results


def test_shapes_that_differ_in_their_outputs_are_one_unit_and_the_engine_is_one():
    assert list(PLAN.units()) == ["regression-100x5", "regression-900x5"]
    assert unit_of({"workload": "bibtex"}) == "bibtex"
    assert unit_of({"workload": "yeast", "protocol": "rounds"}) == "engine"
    assert unit_of({"workload": "yeast", "protocol": "contest"}) == "yeast"


def test_what_another_machine_measured_as_a_whole_is_kept(elsewhere):
    results = Results(elsewhere.file)
    PLAN.run(results)
    assert not any("made_here" in each for each in results.records)
    assert len(results.records) == 18
    assert {each["machine"] for each in results.records} == {0} != {results.here}


@pytest.mark.parametrize("mixed", [False, True])
def test_a_unit_of_which_another_machine_measured_a_part_is_measured_anew(elsewhere, mixed):
    last = elsewhere.records.pop()
    assert unit_of(last["spec"]) == "regression-900x5"
    elsewhere.save()
    results = Results(elsewhere.file)
    PLAN.run(results, mixed=mixed)
    made = [each for each in Results(results.file).records if "made_here" in each]
    assert len(made) == (1 if mixed else 6)
    assert {unit_of(each["spec"]) for each in made} == {"regression-900x5"}
    assert {each["machine"] for each in made} == {results.here}
    assert len(results.records) == 18


def test_a_part_that_would_leave_times_of_two_machines_is_refused(elsewhere):
    elsewhere.records.pop()
    elsewhere.save()
    results = Results(elsewhere.file)
    part = Counting([entry for entry in PLAN.entries if entry.contestant == "manyboost-relabel"])
    with pytest.raises(Refused, match="A part of regression-900x5 was measured on another machine"):
        part.run(results)
    assert len(results.records) == 17


def test_machines_without_records_are_not_stored(elsewhere):
    results = Results(elsewhere.file)
    assert len(results.machines) == 2
    results.forget(PLAN.entries)
    results.add(record(specification(ENTRY, 0)))
    stored = Results(results.file)
    assert [each["cpu"] for each in stored.machines] != ["another"]
    assert [each["machine"] for each in stored.records] == [0]


def test_what_was_skipped_is_forgotten_once_it_is_measured(tmp_path):
    results = Results(tmp_path / "results.json")
    results.skip(ENTRY, "not today")
    assert list(Results(results.file).skipped.values()) == ["not today"]
    results.add(record(specification(ENTRY, 0)))
    assert Results(results.file).skipped == {}


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


def test_a_fit_that_failed_elsewhere_does_not_make_its_unit_endless(elsewhere):
    spec = elsewhere.records.pop()["spec"]
    elsewhere.add({"spec": spec, "status": "failed"})
    results = Results(elsewhere.file)
    PLAN.run(results)
    assert not any("made_here" in each for each in results.records)


def test_records_of_other_builds_are_dropped_where_their_unit_is_measured(elsewhere):
    for each in elsewhere.records:
        if each["spec"]["contestant"] == "manyboost-relabel":
            each["spec"] = {**each["spec"], "library": "manyboost 0.0 (old)"}
    elsewhere.save()
    results = Results(elsewhere.file)
    Counting([entry for entry in PLAN.entries if entry.workload.startswith("regression-900")]).run(
        results
    )
    old = [each for each in results.records if "old" in each["spec"]["library"]]
    assert {unit_of(each["spec"]) for each in old} == {"regression-100x5"}
    made = [each for each in results.records if "made_here" in each]
    assert {unit_of(each["spec"]) for each in made} == {"regression-900x5"}
    assert len(made) == 6  # on one machine: the peer, too


def test_more_memory_asks_again_for_what_had_too_little(tmp_path):
    results = Results(tmp_path / "results.json")
    entry = PLAN.entries[0]
    spec = specification(entry, 0)
    results.add({"spec": spec, "status": "over memory", "budget": {"memory": 12e9}, "log": ""})
    assert SuitePlan([entry], memory=12).known(entry, 0, results) == "known: over memory"
    assert SuitePlan([entry], memory=20).known(entry, 0, results) is None
