"""Generated data sets have the shape their name says, and the same values every time."""

import numpy as np
import pytest
from benchmarks.contestants import CONTESTANTS
from benchmarks.suites import SUITES
from benchmarks.workloads import N_FACTORS, NOISE, find


@pytest.mark.parametrize("name", ["regression-400x10x3", "multilabel-400x10x3", "classes-400x10x3"])
def test_generated_workload_has_the_shape_of_its_name(name):
    data = find(name).load()
    assert data.X.shape == (400, 10)
    assert data.X_test.shape == (100, 10)
    assert data.n_outputs == 3
    assert data.X.dtype == np.float32


def test_generated_workload_is_the_same_every_time():
    first, second = (find("multilabel-100x5x4").load() for _ in range(2))
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.Y, second.Y)


def test_outputs_of_a_generated_regression_are_mixtures_of_ten_functions():
    Y = find("regression-2000x50x40").load().Y
    variances = np.linalg.svd(Y - Y.mean(axis=0), compute_uv=False) ** 2 / len(Y)
    noise = NOISE**2
    assert variances[N_FACTORS - 1] > 2 * noise
    assert variances[N_FACTORS] < 2 * noise


def test_every_class_has_a_training_row():
    data = find("classes-300x10x100").load()
    assert len(np.unique(data.Y)) == data.n_outputs == 100
    assert data.Y_test.max() < 100


def test_a_file_that_is_not_there_is_a_reason_not_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("MANYBOOST_DATA", str(tmp_path))
    assert "delicious.npz is not in" in find("delicious").missing()


def test_an_unknown_name_is_refused():
    with pytest.raises(KeyError, match="no workload"):
        find("regression-wide")


@pytest.mark.parametrize("suite", SUITES)
def test_suites_name_what_exists_and_only_tasks_that_their_contestants_can_do(suite):
    plan = SUITES[suite]()
    assert len(plan) == len(set(plan))
    for entry in plan:
        if entry.workload != "import":
            assert find(entry.workload).task in CONTESTANTS[entry.contestant].tasks
