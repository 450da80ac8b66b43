"""Determinism, in seconds; `python -m torture determinism` tries longer."""

from torture.areas import determinism


def test_every_figure_holds():
    figures = determinism.run(long=False, seed=0)
    assert figures
    assert [figure.line() for figure in figures if figure.holds is False] == []
