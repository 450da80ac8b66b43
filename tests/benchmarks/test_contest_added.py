"""A contestant from a file runs on the sets beside the stored records, and is ranked with them."""

import json

import numpy as np
import pytest
from benchmarks.contest import added
from benchmarks.contest.__main__ import main
from benchmarks.contest.protocol import ADDING, EXAMPLE

from contest_records import record, stored


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Two tiny sets, and a results file with records of two contestants that know more."""
    rng = np.random.default_rng(0)
    X, Y = rng.random((60, 4), np.float32), rng.random((60, 3), np.float32)
    np.savez(tmp_path / "slump.npz", X=X, Y=Y)
    np.savez(tmp_path / "emotions.npz", X=X, Y=(Y < 0.4).astype(np.uint8))
    monkeypatch.setenv("MANYBOOST_DATA", str(tmp_path))
    kept = [
        record(name, score, workload=each, score_name=metric)
        for each, metric in (("slump", "macro r²"), ("emotions", "LRAP"))
        for name, score in (("manyboost", 0.98), ("lightgbm", 0.97))
    ]
    (tmp_path / "contest.json").write_text(json.dumps(stored(*kept)))
    return tmp_path


def add(folder, text, *more):
    file = folder / "my_model.py"
    file.write_text(text)
    paths = ["--results", str(folder / "contest.json"), "--page", str(folder / "contest.md")]
    limits = ["--sets", "slump", "emotions", "--cap", "5", "--repeats", "1", "--memory", "4"]
    main(["--add", str(file), *paths, *limits, *more])
    return json.loads((folder / "contest.json").read_text())


def test_the_example_of_the_page_is_run_stored_and_ranked(folder):
    before = json.loads((folder / "contest.json").read_text())
    after = add(folder, EXAMPLE)
    new = [each for each in after["records"] if each["spec"]["contestant"] == "mean"]
    assert [each for each in after["records"] if each not in new] == sorted(
        before["records"], key=lambda each: (each["spec"]["workload"], each["spec"]["contestant"])
    )
    assert after["machines"][0] == before["machines"][0]
    assert [(each["spec"]["workload"], each["status"]) for each in new] == [
        ("emotions", "ok"),
        ("slump", "ok"),
    ]
    assert new[1]["score"] == pytest.approx(0, abs=0.2)  # the mean explains nothing
    assert {each["machine"] for each in new} == {1}  # no such machine as the made-up one
    assert str(folder) not in json.dumps(after)
    page = (folder / "contest.md").read_text()
    assert "3 contestants on 2 sets: manyboost.**" in page
    assert "| mean | 3.00 | 0 | 0 | 0 | – | – |" in page


def test_records_of_the_same_file_are_known_and_those_of_a_changed_one_made_anew(folder, capsys):
    add(folder, EXAMPLE, "--sets", "slump")
    assert "known" not in capsys.readouterr().err
    add(folder, EXAMPLE, "--sets", "slump")
    assert "known" in capsys.readouterr().err
    changed = EXAMPLE.replace("self.model = data.Y.mean(axis=0)", "self.model = data.Y[0]")
    after = add(folder, changed, "--sets", "slump")
    assert "known" not in capsys.readouterr().err
    [made] = [each for each in after["records"] if each["spec"]["contestant"] == "mean"]
    assert made["score"] < -0.2


def test_the_page_shows_a_whole_example_of_ten_lines():
    assert f"```python\n{EXAMPLE}```" in ADDING
    assert len([line for line in EXAMPLE.splitlines() if line]) <= 10


NO_PREDICT = EXAMPLE.split("    def predict")[0]
TWICE = EXAMPLE + EXAMPLE.replace("class Mean", "class Other")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1\n", "defines no contestant: a subclass of benchmarks.contest.Contestant with"),
        ("from benchmarks.contest import Contestant\n", "defines no contestant"),
        (NO_PREDICT, "defines no contestant"),
        (
            EXAMPLE.replace('"mean"', '"lightgbm"'),
            "a contestant 'lightgbm', and this name is taken.",
        ),
        (TWICE, "names a contestant 'mean', and this name is taken."),
    ],
    ids=["nothing", "only the import", "no predict", "taken", "twice"],
)
def test_a_file_that_cannot_take_part_is_refused_in_a_sentence(folder, text, reason):
    with pytest.raises(SystemExit) as refused:
        add(folder, text)
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_or_not_python_is_refused(tmp_path):
    with pytest.raises(added.Refused, match="is not a file"):
        added.read(tmp_path / "none.py")
    (tmp_path / "model.txt").write_text(EXAMPLE)
    with pytest.raises(added.Refused, match=r"must end in \.py"):
        added.read(tmp_path / "model.txt")
