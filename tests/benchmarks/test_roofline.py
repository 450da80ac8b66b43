"""The profile of a round: its kernels, and what moving their bytes once would take."""

import pytest
from benchmarks.parts import kernel_seconds
from benchmarks.roofline import SHAPES, Shape, section

from manyboost import ManyBoostRegressor


def test_kernels_that_every_round_calls_are_timed():
    X, Y, _ = Shape(300, 5, 3).data()
    model = ManyBoostRegressor(max_iter=10, early_stopping=False, n_jobs=1)
    spent = kernel_seconds(lambda: model.fit(X, Y), 10)
    assert {"sweep", "grow"} <= set(spent)
    assert "column_sums" not in spent  # once a fit
    assert all(0 < seconds < 0.1 for seconds in spent.values())


@pytest.mark.parametrize(
    "kind", [{}, {"labels": True}, {"weighted": True}, {"labels": True, "filled": 0.1}]
)
def test_a_section_shows_every_kernel_beside_its_limit(kind):
    shape = Shape(300, 8, 3, rounds=6, **kind)
    X, _, arguments = shape.data()
    assert X.shape == (300, 8)
    assert ("sample_weight" in arguments) == shape.weighted
    page = section(shape, 1e10)
    assert page.startswith(f"## {shape.title}")
    passes = ("advance", "leaf_sums") if shape.labels else ("sweep",)
    for name in (*passes, "grow"):
        (line,) = [line for line in page.splitlines() if line.startswith(f"| `{name}`")]
        assert len([cell for cell in line.split("|") if cell.strip()]) == 6
    assert page.splitlines()[-1].startswith("| all |")


def test_small_weighted_sparse_and_tall_shapes_are_covered():
    assert any(shape.n < 1000 for shape in SHAPES)
    assert any(shape.weighted for shape in SHAPES)
    assert any(shape.filled < 1 for shape in SHAPES)
    assert any(shape.n > 2**20 for shape in SHAPES)
