"""n_jobs=None takes the CPUs that the process may use: its affinity mask and its quota count."""

import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from manyboost import threads
from refusals import refusal
from small_problems import X, Y, regressor


@pytest.fixture(autouse=True)
def no_wishes(monkeypatch):
    """Nothing but the system says how many threads there are; it is asked anew."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: set(range(8)))
    threads._quota.cache_clear()
    yield
    threads._quota.cache_clear()


@pytest.mark.parametrize(
    ("quota", "expected"),
    [("150000 100000\n", 2), ("50000 100000\n", 1), ("9900000 100000\n", 8), ("max 100000\n", 8)],
)
def test_a_quota_counts(groups, quota, expected):
    groups("0::/job\n", {"job/cpu.max": "max 100000\n", "cpu.max": quota})
    assert threads.resolve_threads(None) == expected
    assert threads.resolve_threads(-1) == expected


@pytest.mark.parametrize(("quota", "expected"), [("300000", 3), ("-1", 8)])
def test_a_quota_of_the_older_kind_counts(groups, quota, expected):
    files = {"cpu/job/cpu.cfs_quota_us": quota, "cpu/job/cpu.cfs_period_us": "100000\n"}
    groups("5:cpu,cpuacct:/job\n4:memory:/x\n0::/\n", files)
    assert threads.resolve_threads(None) == expected


def test_an_explicit_number_is_taken_as_it_is(groups, monkeypatch):
    groups("0::/\n", {"cpu.max": "100000 100000\n"})
    assert threads.resolve_threads(4) == 4
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert threads.resolve_threads(None) == 5


@pytest.mark.parametrize(("wish", "expected"), [("100000", threads.MOST_THREADS), ("²", 8)])
def test_wishes_that_cannot_be_met(groups, monkeypatch, wish, expected):
    groups("0::/\n", {})
    monkeypatch.setenv("OMP_NUM_THREADS", wish)
    assert threads.resolve_threads(None) == expected


@pytest.mark.parametrize("own", ["", "no groups\n", "0::/gone\n"])
def test_a_system_without_quotas_has_the_cpus_of_the_mask(groups, own):
    groups(own, {})
    assert threads.resolve_threads(None) == 8
    assert threads.resolve_threads(-3) == 6


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter always has a GIL"
)
def test_the_extension_leaves_the_gil_off():
    assert not sys._is_gil_enabled()


def test_threads_of_python_fit_and_predict_side_by_side():
    def work(seed):
        model = regressor(random_state=seed, n_jobs=2).fit(X, Y)
        return [model.predict(X) for _ in range(20)]

    shared = regressor().fit(X, Y)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, [0, 1] * 8))
        same = list(pool.map(lambda _: shared.predict(X), range(40)))
    for seed, predictions in zip([0, 1] * 8, found, strict=True):
        expected = regressor(random_state=seed).fit(X, Y).predict(X)
        assert all(np.array_equal(each, expected) for each in predictions)
    assert all(np.array_equal(each, shared.predict(X)) for each in same)


@pytest.mark.parametrize("n_jobs", ["x", 1.5, 0, True])
def test_a_number_of_threads_set_after_fit_is_checked(n_jobs):
    model = regressor(max_iter=2).fit(X, Y).set_params(n_jobs=n_jobs)
    expected = f"n_jobs={n_jobs!r} is not allowed; it must be None, or an integer other than 0."
    assert refusal(lambda: model.predict(X)) == expected
