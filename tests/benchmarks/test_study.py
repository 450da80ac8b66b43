"""A study that chooses on one half of the sets and confirms on the other."""

import json

import numpy as np
import pytest
from benchmarks.study_page import BETTER, Half, gains, verdict

from benchmarks import study, study_page
from manyboost.training import plan


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A data folder with targets, labels and classes, where only some rows are for training."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((240, 3)).astype(np.float32)
    targets = X[:, :2] + 0.1 * rng.standard_normal((240, 2))
    names = {"feature_names": list("abc"), "target_names": list("st")}
    np.savez(tmp_path / "enb.npz", X=X, Y=targets, **names)
    labels = np.eye(4, dtype=np.uint8)[X[:, :3].argmax(axis=1)]
    labels[:30] = [0, 0, 1, 1]
    split = np.arange(240) >= 200
    names["target_names"] = list("pqrs")
    np.savez(tmp_path / "scene.npz", X=X, Y=labels, split=split.astype(np.uint8), **names)
    monkeypatch.setenv("MANYBOOST_DATA", str(tmp_path))
    study.whole.cache_clear()
    yield tmp_path
    study.whole.cache_clear()


def test_a_family_is_in_one_half_and_the_halves_are_of_like_size(monkeypatch):
    monkeypatch.setattr(study, "is_labels", lambda name: name.startswith("l"))
    monkeypatch.setattr(study, "FAMILIES", {"l1": "x", "l2": "x", "l3": "x"})
    sets = [f"{task}{i}" for task in "lr" for i in range(9)]
    halves = study.halves(sets)
    assert halves == study.halves(sets[::-1])
    assert halves["l1"] == halves["l2"] == halves["l3"]
    for task in "lr":
        in_a = sum(half == "A" for name, half in halves.items() if name[0] == task)
        assert in_a in (3, 4, 5, 6)


def test_tasks_are_made_of_training_rows_alone(folder):
    assert study.task_of("many", "scene").X.shape[0] == 200
    assert study.task_of("many", "enb").X.shape[0] == 240
    classes = study.task_of("classes", "scene")
    assert set(classes.Y) == {0, 1, 2}
    assert classes.X.shape[0] == 170  # 30 rows have two labels
    assert study.task_of("classes", "enb") is None
    one = study.task_of("one", "scene")
    assert one.Y.ndim == 1
    assert study.task_of("rare", "scene") is not None
    assert study.task_of("many, exponential", "enb") is None
    assert study.task_of("many, huber", "enb") is not None


def test_a_constant_is_back_after_a_change():
    before = plan.RARE
    with study.constants({"RARE": 0.0, "max_iter": 3}) as parameters:
        assert plan.RARE == 0.0
        assert parameters == {"max_iter": 3}
    assert before == plan.RARE


def test_constant_probabilities_explain_nothing_and_the_truth_explains_all():
    y, known = np.array([0, 1, 1, 0]), np.array([0, 1])
    assert study.explained(y, y, np.full((4, 2), 0.5), known) == pytest.approx(0.0)
    assert study.explained(y, y, np.eye(2)[y], known) == pytest.approx(1.0)


def test_a_change_must_win_on_both_halves():
    better, worse, unclear = Half([0.01] * 8), Half([-0.01] * 8), Half([0.01, -0.01] * 4)
    assert verdict(better, better) == BETTER
    assert verdict(better, unclear) == "better on A only"
    assert verdict(better, worse) == "better on A only"
    assert verdict(unclear, better) == ""
    assert verdict(worse, worse) == "**worse**"
    assert Half([0.001] * 8 + [-0.1]).sign == 0  # more wins, but a loss on average
    assert Half([0.0] * 9).p == 1.0


def test_gains_are_means_over_the_splits_that_have_both():
    def at(score):
        return {"score": score, "rounds": 1.0}

    splits = {
        "0": {"default": at(0.5), "c": at(0.6)},
        "1": {"default": at(0.5), "c": at(0.8)},
        "2": {"default": at(0.5)},
    }
    assert gains({"s": {"splits": splits}}, "c") == {"s": pytest.approx(0.2)}


def test_the_study_resumes_and_writes_a_page(folder, monkeypatch):
    changes = {"one": {"max_iter=2": {"max_iter": 2}}}
    monkeypatch.setattr(study, "CHANGES", changes)
    monkeypatch.setattr(study, "huber_errors", lambda: {"none": {"0.5": 1.0}})
    arguments = ["--kinds", "one", "--results", str(folder / "s.json"), "--page"]
    study.main([*arguments, str(folder / "s.md")])
    stored = json.loads((folder / "s.json").read_text())
    assert stored["halves"].keys() == {"enb", "scene"}
    found = stored["kinds"]["one"]["enb"]["splits"]
    assert set(found) == {"0", "1", "2", "3"}
    assert found["0"]["max_iter=2"]["rounds"] == 2
    monkeypatch.setattr(study, "measured", None)  # all is there
    study.main([*arguments, str(folder / "s.md")])
    assert "| `max_iter=2` |" in (folder / "s.md").read_text()
    assert set(study_page.WHAT) == set(study_page.TITLES)
