"""The area "coverage", in seconds; `python -m torture coverage` tries longer."""

from torture.areas import coverage


def test_every_figure_holds():
    figures = coverage.run(long=False, seed=0)
    assert figures
    assert [figure.line() for figure in figures if figure.holds is False] == []
