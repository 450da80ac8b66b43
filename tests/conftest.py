"""Fixtures of several folders."""

import pytest


@pytest.fixture
def no_work(monkeypatch):
    """Training must not have begun when input is refused."""
    from manyboost.training.boosting import Boosting

    def run(self):
        raise AssertionError("training began")

    monkeypatch.setattr(Boosting, "run", run)
