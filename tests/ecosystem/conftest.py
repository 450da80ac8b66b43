"""Packages that users combine with these estimators; `make test-ecosystem` installs them.

Elsewhere the tests of a package that is not installed are skipped.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """Warnings of other packages are theirs to mend."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))


def wave(hours, rng, *, level=10.0, swing=3.0, shift=6):
    """An hourly series with a daily rhythm."""
    day = np.sin(2 * np.pi * (hours.hour.to_numpy() - shift) / 24)
    return level + swing * day + 0.3 * rng.normal(size=len(hours))


@pytest.fixture
def shops():
    """Three series of six weeks, a column each."""
    rng = np.random.default_rng(0)
    hours = pd.date_range("2026-01-01", periods=24 * 7 * 6, freq="h")
    each = {"north": (10, 6), "south": (30, 7), "east": (20, 9)}
    return pd.DataFrame(
        {name: wave(hours, rng, level=level, shift=at) for name, (level, at) in each.items()},
        index=hours,
    )


@pytest.fixture
def long_shops(shops):
    """The same in one column, with names of series."""
    return shops.melt(var_name="unique_id", value_name="y", ignore_index=False).reset_index(
        names="ds"
    )
