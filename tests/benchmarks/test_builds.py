"""Two builds take turns on the same work, and are compared by the fastest."""

from pathlib import Path

import pytest
from benchmarks.build_tables import Builds, Pair
from benchmarks.suites import RELABEL, Entry

import manyboost
from benchmarks import builds, suites

HERE = Path(manyboost.__file__).resolve().parents[1]


def entry(workload="regression-200x5x3", protocol="rounds", **options):
    options = {"n_rounds": 12, "threads": 1, "limit": 0.0, "leaves": 4, **options}
    return Entry(workload, RELABEL, protocol=protocol, **options)


def comparison(*records):
    made = {"before": {"commit": "abc", "digest": "1"}, "now": {"commit": "def", "digest": "2"}}
    return Builds({"builds": made}, records)


def record(before, now, workload="yeast", protocol="rounds", n_rounds=12, **facts):
    spec = {"workload": workload, "protocol": protocol, "n_rounds": n_rounds, "n_threads": 1}
    when = "2026-01-02T03:04:05+00:00"
    made = {"spec": {**spec, "max_leaf_nodes": 31}, "when": when, "others_cores": 0.0}
    return {**made, "before": before, "now": now, **facts}


@pytest.mark.parametrize("protocol", builds.PROTOCOLS)
def test_both_builds_measure_what_they_are_asked(protocol):
    made = builds.in_turns(entry(protocol=protocol), {"before": HERE, "now": HERE})
    assert len(made["before"]) == len(made["now"]) == builds.LEAST_TURNS
    assert all(seconds > 0 for turn in made["before"] + made["now"] for seconds in turn)
    assert len(made["now"][0]) == (2 if protocol == "rounds" else 1)
    assert Pair.of(made).times_as_fast > 0 or protocol == "rounds"  # tiny rounds drown in noise


def test_a_folder_whose_package_is_not_imported_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="failed"):
        builds.in_turns(entry(), {"before": tmp_path, "now": HERE})


def test_data_that_are_not_there_are_skipped_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("MANYBOOST_DATA", str(tmp_path))
    head, records = builds.compared([entry("yeast")], {"before": HERE, "now": HERE})
    assert "yeast.npz is not in" in head["skipped"]["yeast · two builds"]
    assert not records
    assert set(head["builds"]["now"]) == {"commit", "digest"}


def test_a_round_is_the_difference_of_the_fastest_fits_of_all_turns():
    before = [[1.0, 4.0], [2.0, 3.0]]
    now = [[1.0, 9.0], [1.0, 2.0]]
    pair = Pair.of(record(before, now))
    assert pair.seconds == pytest.approx((0.2, 0.1))
    assert pair.times_as_fast == pytest.approx(2)


def test_the_table_shows_both_builds_and_the_spread_of_the_turns():
    rounds = record([[1.0, 5.0]] * 2, [[1.0, 2.0]] * 2)
    growth = record([[0.4], [0.3]], [[0.1], [0.1]], protocol="growth", others_cores=0.5)
    page = "\n".join(comparison(rounds, growth).section())
    assert "The old build: commit abc (1), the new build: commit def (2)." in page
    assert "| yeast | a round | 31 | 1 | 400 | 100 | 4 | 4 to 4 |" in page
    assert "| yeast | growing a tree | 31 | 1 | 300 | 100 | 3 | 3.25 to 3.75 |" in page
    assert "on up to 0.5 cores" in page


def test_every_entry_has_a_protocol_that_builds_know():
    assert {one.protocol for one in suites.builds()} == set(builds.PROTOCOLS)
    assert {one.contestant for one in suites.builds()} == {RELABEL}
