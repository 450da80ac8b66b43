"""Results of a file are those of one build, and of one machine where times are compared."""

import json

import pytest

from benchmarks import machine, one_build


@pytest.fixture
def file(tmp_path):
    """Results of this build on this machine."""
    file = tmp_path / "results" / "some.json"
    one_build.save(file, one_build.opened(file, sets={}) | {"sets": {"a": 1}})
    return file


def change(file, name, value):
    """Make the stored results those of another build or machine."""
    stored = json.loads(file.read_text())
    stored["machine"][name] = value
    file.write_text(json.dumps(stored))


def test_results_of_this_build_go_on(file, capsys):
    assert one_build.opened(file, timed=True, sets={})["sets"] == {"a": 1}
    assert capsys.readouterr().err == ""


def test_another_build_begins_anew_and_says_so(file, capsys):
    change(file, "libraries", ["manyboost 0.0 (old)", "numpy 1"])
    begun = one_build.opened(file, sets={})
    assert begun == {"sets": {}, "machine": machine.describe()}
    said = "some.json is of manyboost 0.0 (old): all of it is measured anew\n"
    assert capsys.readouterr().err == said
    assert one_build.read(file)["sets"] == {"a": 1}


def test_other_versions_of_named_libraries_begin_anew(file):
    libraries = [name for name in machine.describe()["libraries"] if not name.startswith("scipy ")]
    change(file, "libraries", [*libraries, "scipy 0.1"])
    assert one_build.opened(file, sets={})["sets"] == {"a": 1}
    assert one_build.opened(file, also=["scipy"], sets={})["sets"] == {}


def test_times_of_another_machine_do_not_go_on_but_scores_do(file, capsys):
    change(file, "cpu", "abacus")
    assert one_build.opened(file, sets={})["sets"] == {"a": 1}
    assert one_build.opened(file, timed=True, sets={})["sets"] == {}
    assert "on abacus: all of it is measured anew" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_empty(tmp_path):
    assert one_build.read(tmp_path / "none.json", sets={}) == {"sets": {}}
