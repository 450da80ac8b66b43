"""Load, in seconds; `python -m torture load` tries longer."""

from torture.areas import load


def test_every_figure_holds():
    figures = load.run(long=False, seed=0)
    assert figures
    assert [figure.line() for figure in figures if figure.holds is False] == []
