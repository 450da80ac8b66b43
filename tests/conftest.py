"""Fixtures of several folders, and where the real data sets are."""

import os
from pathlib import Path

import pytest

from browser import started
from manyboost import control_groups

# Tests that read real data sets are skipped where there are none.
_DATA = Path(__file__).parents[2] / "shared" / "data"
if _DATA.is_dir():
    os.environ.setdefault("MANYBOOST_DATA", str(_DATA))


@pytest.fixture
def no_work(monkeypatch):
    """Training must not have begun when input is refused."""
    from manyboost.training.boosting import Boosting

    def run(self):
        raise AssertionError("training began")

    monkeypatch.setattr(Boosting, "run", run)


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Limits on groups of processes, as files."""
    monkeypatch.setattr(control_groups, "_CGROUPS", tmp_path)
    monkeypatch.setattr(control_groups, "_OWN_GROUPS", tmp_path / "own")

    def write(own, files):
        (tmp_path / "own").write_text(own)
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content)

    return write


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A page of a headless Chromium."""
    browser = started(tmp_path_factory.mktemp("profile"))
    if browser is None:
        pytest.skip("no Chromium on the PATH (Debian and Ubuntu: apt-get install chromium)")
    yield browser
    browser.close()
