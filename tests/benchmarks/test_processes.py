"""Parts in processes of their own: what is done is not lost."""

import math

import pytest
from benchmarks.processes import side_by_side


def test_parts_come_back_under_their_keys():
    found = dict(side_by_side(2, pow, {"a": (2, 3), "b": (3, 2)}))
    assert found == {"a": 8, "b": 9}


def test_a_part_that_fails_is_raised_when_the_others_are_done():
    parts = side_by_side(1, math.sqrt, {"bad": (-1,), "a": (4,), "b": (9,)})
    assert {next(parts), next(parts)} == {("a", 2), ("b", 3)}
    with pytest.raises(RuntimeError, match="bad failed") as failure:
        next(parts)
    assert isinstance(failure.value.__cause__, ValueError)


def test_parts_that_have_not_begun_are_left_when_the_caller_stops(tmp_path):
    parts = {k: (tmp_path, k) for k in range(20)}
    for _ in side_by_side(1, begin, parts):
        break
    assert len(list(tmp_path.iterdir())) < 10


def begin(folder, k):
    (folder / str(k)).touch()
